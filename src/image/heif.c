/* Reads HEIC photos with libheif, if the build was asked for it (-DATT_HEIF=ON). */
#include "image/image.h"
#include "util/util.h"

#ifdef ATT_HEIF
#include <libheif/heif.h>
#include <string.h>

typedef struct reader {
    const att_image_file *file;
    struct heif_context *context;
    struct heif_image_handle *handle;
    struct heif_image *image;
} reader;

static att_status refused(const reader *r, struct heif_error e)
{
    const att_image_file *f = r->file;
    if (e.subcode == heif_suberror_End_of_data)
        return att_image_truncated(f, "HEIC");
    if (e.code == heif_error_Memory_allocation_error)
        return att_fail(f->ctx, ATT_ERR_MEMORY, "%s: out of memory", f->label);
    const bool lacks = e.code == heif_error_Unsupported_feature || e.code == heif_error_Unsupported_filetype;
    return att_fail(f->ctx, lacks ? ATT_ERR_UNSUPPORTED : ATT_ERR_FORMAT, "%s: the HEIC file %s: %.200s", f->label,
                    lacks ? "has a feature that libheif lacks" : "is damaged", e.message);
}

/* Copies the rows that libheif has decoded, which may be padded. */
static att_status copy_rows(const reader *r, att_image *out)
{
    int stride;
    const uint8_t *from = heif_image_get_plane_readonly(r->image, heif_channel_interleaved, &stride);
    const bool same = from && heif_image_get_width(r->image, heif_channel_interleaved) == out->width &&
                      heif_image_get_height(r->image, heif_channel_interleaved) == out->height;
    if (!same)
        return att_fail(r->file->ctx, ATT_ERR_FORMAT, "%s: the HEIC file is damaged: its pixels do not fit its header",
                        r->file->label);
    for (int64_t y = 0; y < out->height; y++)
        memcpy(out->pixels + y * out->width * out->channels, from + y * stride, (size_t)(out->width * out->channels));
    return ATT_OK;
}

static att_status decode(reader *r, att_image *out)
{
    const att_image_file *f = r->file;
    const int channels = f->options.background ? 4 : 3;
    struct heif_error e = heif_context_read_from_memory_without_copy(r->context, f->data, f->bytes, NULL);
    if (!e.code)
        e = heif_context_get_primary_image_handle(r->context, &r->handle);
    if (e.code)
        return refused(r, e);
    const int64_t height = heif_image_handle_get_height(r->handle), width = heif_image_handle_get_width(r->handle);
    if (height < 1 || width < 1)
        return att_fail(f->ctx, ATT_ERR_FORMAT, "%s: the HEIC file is damaged: it has no pixels", f->label);
    /* libheif's own copy of the pixels; what its decoder takes comes on top */
    att_status s =
        att_image_file_alloc(f, height, width, channels, height < INT64_MAX / width / 4 ? height * width * 3 : 0, out);
    if (s)
        return s;
    e = heif_decode_image(r->handle, &r->image, heif_colorspace_RGB,
                          channels == 4 ? heif_chroma_interleaved_RGBA : heif_chroma_interleaved_RGB, NULL);
    s = e.code ? refused(r, e) : copy_rows(r, out);
    if (!s && channels == 4)
        att_image_composite(out, f->options.background);
    return s;
}

/* Orientation stays 1: libheif turns images as the file states, and EXIF data then does not count. */
att_status att_heif_decode(const att_image_file *f, att_image *out, int *orientation)
{
    reader r = {.file = f, .context = heif_context_alloc()};
    (void)orientation;
    if (!r.context)
        return att_fail(f->ctx, ATT_ERR_MEMORY, "%s: out of memory", f->label);
    const att_status s = decode(&r, out);
    heif_image_release(r.image);
    heif_image_handle_release(r.handle);
    heif_context_free(r.context);
    return s;
}

#else

att_status att_heif_decode(const att_image_file *f, att_image *out, int *orientation)
{
    (void)out, (void)orientation;
    return att_fail(f->ctx, ATT_ERR_UNSUPPORTED,
                    "%s is a HEIC file, which this build of attend cannot read: it was built without -DATT_HEIF=ON",
                    f->label);
}

#endif
