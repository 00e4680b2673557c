#include "image/caption_file.h"
#include "image/image_set.h"
#include "io/fields.h"
#include "io/util.h"
#include "text/not_utf8.h"
#include "text/utf8.h"

#include <string.h>

enum { MAX_FILE = 1 << 30, MAX_CAPTION = 1 << 16, MAX_NAME = 255 };

static const char expected[] =
    "expected lines \"NAME#K<tab>caption\" or \"NAME<tab>caption\", CSV whose header has the "
    "columns image and caption, or COCO's JSON";

/* ---- images and captions */

att_byte_view att_trim(att_byte_view text)
{
    while (text.bytes > 0 && strchr(" \t\r", text.data[0]) && text.data[0])
        text.data++, text.bytes--;
    while (text.bytes > 0 && strchr(" \t\r", text.data[text.bytes - 1]) && text.data[text.bytes - 1])
        text.bytes--;
    return text;
}

static bool is_text(att_byte_view v, const char *text)
{
    return strlen(text) == v.bytes && !memcmp(text, v.data, v.bytes);
}

/* Names become parts of paths. */
static att_status check_name(const att_where *where, att_byte_view name)
{
    if (name.bytes > MAX_NAME)
        return att_fail_at(where, ATT_ERR_UNSUPPORTED, "the name of an image has %zu bytes, the most is %d: %.32s...",
                           name.bytes, MAX_NAME, name.data);
    if (memchr(name.data, '/', name.bytes) || memchr(name.data, '\\', name.bytes) || is_text(name, ".") ||
        is_text(name, ".."))
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
        return att_fail_at(where, ATT_ERR_UNSUPPORTED, "the caption has %zu bytes, the most is %d", text.bytes,
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

/* ---- lines */

enum { IMAGE, CAPTION, COLUMNS, USUAL = 4 };

/* Names of columns, in the order in which they are searched */
static const char *const usual[COLUMNS][USUAL] = {
    [IMAGE] = {"image", "image_name", "file_name", "filename"}, [CAPTION] = {"caption", "comment"}};

typedef struct line_format {
    bool has_header, numbered; /* numbered: names end with #K */
    const char *separator;
    int64_t fields, column[COLUMNS];
    att_bytes unquoted;
} line_format;

static att_fields fields_of(const line_format *l, att_byte_view line)
{
    return (att_fields){line.data, line.data + line.bytes, l->separator, *l->separator == ','};
}

/* Finds the columns of a header; false: the line is none. */
static bool find_columns(line_format *l, att_byte_view line)
{
    for (int c = 0; c < COLUMNS; c++) {
        l->column[c] = -1;
        for (int u = 0; u < USUAL && usual[c][u] && l->column[c] < 0; u++) {
            att_fields fields = fields_of(l, line);
            att_byte_view field;
            for (l->fields = 0; att_fields_next(&fields, &field); l->fields++)
                if (l->column[c] < 0 && is_text(att_trim(field), usual[c][u]))
                    l->column[c] = l->fields;
        }
    }
    return l->column[IMAGE] >= 0 && l->column[CAPTION] >= 0;
}

/* Where "#K" at the end of a name begins; NULL: there is none. */
static const char *find_number(att_byte_view name)
{
    const char *hash = memrchr(name.data, '#', name.bytes), *digit = hash;
    while (hash && ++digit < name.data + name.bytes && *digit >= '0' && *digit <= '9')
        ;
    return hash && digit > hash + 1 && digit == name.data + name.bytes ? hash : NULL;
}

/* Name and caption of a line without header; false: it has no tab. */
static bool split_at_tab(att_byte_view line, att_byte_view *name, att_byte_view *caption)
{
    const char *tab = memchr(line.data, '\t', line.bytes);
    if (!tab)
        return false;
    *name = att_trim((att_byte_view){line.data, (size_t)(tab - line.data)});
    *caption = (att_byte_view){tab + 1, (size_t)(line.data + line.bytes - tab) - 1};
    return true;
}

/* The first line: finds the format. */
static att_status find_format(att_caption_file *f, line_format *l, const att_where *where, att_byte_view line)
{
    att_byte_view name, caption;
    l->separator = memchr(line.data, '\t', line.bytes) ? "\t" : ",";
    l->has_header = find_columns(l, line);
    if (!l->has_header && !split_at_tab(line, &name, &caption))
        return att_fail_at(where, ATT_ERR_FORMAT, "\"%.*s%s\"; %s", (int)att_min((int64_t)line.bytes, 60), line.data,
                           line.bytes > 60 ? "..." : "", expected);
    l->numbered = !l->has_header && find_number(name);
    f->format = l->numbered ? "Flickr8k.token" : *l->separator == '\t' ? "tabs" : "CSV";
    return ATT_OK;
}

/* Name and caption of a line after a header. */
static att_status split_fields(line_format *l, const att_where *where, att_byte_view line, att_byte_view *name,
                               att_byte_view *caption)
{
    att_byte_view of[COLUMNS] = {{"", 0}, {"", 0}}, field;
    att_fields fields = fields_of(l, line);
    int64_t n = 0;
    l->unquoted.count = 0;
    if (!att_bytes_reserve(&l->unquoted, line.bytes))
        return ATT_ERR_MEMORY;
    for (; att_fields_next(&fields, &field); n++)
        for (int c = 0; c < COLUMNS; c++)
            if (l->column[c] == n)
                of[c] = fields.quoted ? att_fields_unquote(&l->unquoted, field) : field;
    if (att_fields_damaged(&fields))
        return att_fields_refuse(where);
    if (n != l->fields)
        return att_fail_at(where, ATT_ERR_FORMAT, "%lld field%s, but the header has %lld%s", (long long)n,
                           n == 1 ? "" : "s", (long long)l->fields,
                           n > l->fields ? "; a caption with a separator must be in quotes" : "");
    *name = att_trim(of[IMAGE]);
    *caption = of[CAPTION];
    return ATT_OK;
}

static att_status add_line(att_caption_file *f, line_format *l, const att_where *where, att_byte_view line)
{
    att_byte_view name, caption;
    int32_t image;
    att_status e = ATT_OK;
    if (l->has_header)
        e = split_fields(l, where, line, &name, &caption);
    else if (!split_at_tab(line, &name, &caption))
        e = att_fail_at(where, ATT_ERR_FORMAT, "there is no tab between a name and a caption");
    const char *number = !e && l->numbered ? find_number(name) : NULL;
    if (!e && l->numbered && !number)
        e = att_fail_at(where, ATT_ERR_FORMAT,
                        "the name \"%.*s\" does not end with # and a number, as that of the first "
                        "line does",
                        (int)att_min((int64_t)name.bytes, 80), name.data);
    if (number)
        name.bytes = (size_t)(number - name.data);
    e = e ? e : att_caption_file_add_image(f, where, name, &image);
    return e ? e : att_caption_file_add(f, where, image, caption);
}

static att_status read_lines(att_caption_file *f, const char *path, const char *text, const char *end)
{
    line_format l = {.unquoted.ctx = f->ctx};
    att_where where = {.ctx = f->ctx, .path = path};
    att_status e = ATT_OK;
    for (const char *next; !e && text < end; text = next) {
        const char *line_end = memchr(text, '\n', (size_t)(end - text));
        const att_byte_view line = {text, (size_t)((line_end ? line_end : end) - text)};
        next = line_end ? line_end + 1 : end;
        where.number++;
        if (att_trim(line).bytes == 0)
            continue;
        const bool first = !f->format;
        e = first ? find_format(f, &l, &where, line) : ATT_OK;
        if (!e && !(first && l.has_header))
            e = add_line(f, &l, &where, line);
    }
    att_bytes_free(&l.unquoted);
    return e;
}

/* ---- a file */

/* The whole file, followed by a zero byte. */
static att_status read_text(att_ctx *ctx, const char *path, char **text, size_t *bytes)
{
    att_data_file file;
    att_status e = att_data_file_open(&file, ctx, NULL, path);
    if (e)
        return e;
    if (file.bytes > MAX_FILE)
        e = att_fail(ctx, ATT_ERR_UNSUPPORTED, "%s has %lld bytes, the most is %d", path, (long long)file.bytes,
                     MAX_FILE);
    *bytes = e ? 0 : (size_t)file.bytes;
    *text = e ? NULL : att_alloc(ctx, *bytes + 1, 1);
    if (!e && !*text)
        e = ATT_ERR_MEMORY;
    e = e ? e : att_data_file_read(&file, *text, *bytes);
    if (!e)
        (*text)[*bytes] = 0;
    att_data_file_close(&file);
    return e;
}

att_status att_caption_file_read(att_caption_file *f, att_ctx *ctx, const char *path)
{
    static const char mark[] = "\xEF\xBB\xBF"; /* of the byte order */
    char *text = NULL;
    size_t bytes;
    *f = (att_caption_file){.ctx = ctx, .captions.text.ctx = ctx};
    att_ids_init(&f->images, ctx);
    att_status e = read_text(ctx, path, &text, &bytes);
    if (!e) {
        const bool marked = !strncmp(text, mark, sizeof mark - 1);
        att_json_scan scan = {text + (marked ? sizeof mark - 1 : 0), text + bytes};
        att_json_scan json = scan;
        e = att_json_accept(&json, '{') ? att_caption_file_read_coco(f, path, json)
                                        : read_lines(f, path, scan.at, scan.end);
    }
    if (!e && !f->captions.n)
        e = att_fail(ctx, ATT_ERR_FORMAT, "%s has no caption; %s", path, expected);
    att_free(ctx, text);
    return e;
}

void att_caption_file_free(att_caption_file *f)
{
    att_ids_free(&f->images);
    att_names_free(&f->captions);
    att_free(f->ctx, f->image);
}
