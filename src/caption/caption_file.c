/* The contents of a file of captions: images and captions, checked. */
#include "caption/caption_file.h"
#include "attend_util.h"
#include "text/not_utf8.h"
#include "text/utf8.h"
#include "util/array.h"

#include <string.h>

enum { MAX_CAPTION = 1 << 16, MAX_NAME = 255 };

att_byte_view att_trim(att_byte_view text)
{
    while (text.bytes > 0 && strchr(" \t\r", text.data[0]) && text.data[0])
        text.data++, text.bytes--;
    while (text.bytes > 0 && strchr(" \t\r", text.data[text.bytes - 1]) && text.data[text.bytes - 1])
        text.bytes--;
    return text;
}

/* Checks a name, because names become parts of paths. */
static att_status check_name(const att_where *where, att_byte_view name)
{
    if (name.bytes > MAX_NAME)
        return att_fail_at(where, ATT_ERR_UNSUPPORTED,
                           "the name of an image has %zu bytes, the maximum is %d: %.32s...", name.bytes, MAX_NAME,
                           name.data);
    if (memchr(name.data, '/', name.bytes) || memchr(name.data, '\\', name.bytes) ||
        ((name.bytes == 1 || name.bytes == 2) && !memcmp(name.data, "..", name.bytes)))
        return att_fail_at(where, ATT_ERR_FORMAT,
                           "the image \"%.*s\" is not in the folder of images: a name may have no path separator",
                           (int)name.bytes, name.data);
    for (size_t i = 0; i < name.bytes; i++)
        if ((unsigned char)name.data[i] < ' ' && name.data[i])
            return att_fail_at(where, ATT_ERR_FORMAT, "the name of an image has a control character, number %d",
                               name.data[i]);
    return ATT_OK;
}

att_status att_caption_file_add_image(att_caption_file *f, const att_where *where, att_byte_view name, int32_t *image)
{
    const att_status e = check_name(where, name);
    return e ? e : att_ids_add(&f->images, name, where, "the name of an image", image);
}

att_status att_caption_file_add(att_caption_file *f, const att_where *where, int32_t image, att_byte_view caption)
{
    const att_byte_view text = att_trim(caption);
    if (text.bytes > MAX_CAPTION)
        return att_fail_at(where, ATT_ERR_UNSUPPORTED, "the caption has %zu bytes, the maximum is %d", text.bytes,
                           MAX_CAPTION);
    if (memchr(text.data, 0, text.bytes))
        return att_fail_at(where, ATT_ERR_FORMAT, "the caption has a zero byte, which texts do not have");
    if (!att_utf8_valid(text.data, text.bytes))
        return att_fail_not_utf8(where, "the caption", text);
    if (f->captions.n >= INT32_MAX)
        return att_fail_at(where, ATT_ERR_UNSUPPORTED, "there are more than %d captions", INT32_MAX);
    const att_status e = att_grow(f->ctx, &f->image, sizeof *f->image, f->captions.n, 1, &f->room);
    if (e)
        return e;
    f->image[f->captions.n] = image;
    return att_names_add_bytes(&f->captions, text.data, text.bytes);
}

void att_caption_file_free(att_caption_file *f)
{
    att_ids_free(&f->images);
    att_names_free(&f->captions);
    att_names_free(&f->bad);
    att_free(f->ctx, f->image);
}
