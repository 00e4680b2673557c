/* Reads files of captions in any format: lines and tables here, JSON by caption_json.c. */
#include "caption/caption_file.h"
#include "io/cancelled.h"
#include "io/text_start.h"
#include "attend_util.h"
#include "util/util.h"
#include "text/table.h"
#include "vision/image_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { MAX_FILE = 1 << 30 };

static const char expected[] =
    "expected lines \"NAME#K<tab>caption\" or \"NAME<tab>caption\", CSV whose header has the "
    "columns image and caption or those that are named, or COCO's JSON";

/* ---- lines */

enum { IMAGE, CAPTION, COLUMNS, USUAL = 4 };

/* Names of columns, in the order in which they are searched. */
static const char *const usual[COLUMNS][USUAL] = {
    [IMAGE] = {"image", "image_name", "file_name", "filename"}, [CAPTION] = {"caption", "comment"}};

static bool is_text(att_byte_view v, const char *text)
{
    return strlen(text) == v.bytes && !memcmp(text, v.data, v.bytes);
}

/* Returns the column of the current record with a usual name; -1: there is none. */
static int64_t find_usual(const att_table *t, int c)
{
    for (int u = 0; u < USUAL && usual[c][u]; u++)
        for (int64_t i = 0; i < t->n; i++)
            if (is_text(att_trim(t->field[i]), usual[c][u]))
                return i;
    return -1;
}

typedef struct line_format {
    bool is_table, has_header, numbered; /* is_table: it has columns; numbered: names end with #K */
    int64_t fields, column[COLUMNS];
} line_format;

/* Returns the number of a column, from 0, that a text states from 1 on; -1: it is not such a number. */
static int64_t number_of(const char *text)
{
    char *end;
    const bool digits = text && *text >= '1' && *text <= '9';
    const long long n = digits ? strtoll(text, &end, 10) : 0;
    return digits && !*end && n <= INT32_MAX ? n - 1 : -1;
}

/* Finds the column of the current record with a name, in letters of either case if none has these; otherwise the one of
 * this number; -1: there is none. */
static int64_t find_named(const att_table *t, const char *name)
{
    for (int64_t i = 0; i < t->n; i++)
        if (is_text(att_trim(t->field[i]), name))
            return i;
    for (int64_t i = 0; i < t->n; i++) {
        const att_byte_view is = att_trim(t->field[i]);
        if (is.bytes == strlen(name) && !strncasecmp(is.data, name, is.bytes))
            return i;
    }
    return number_of(name) < t->n ? number_of(name) : -1;
}

/* Fails because a record has no column of this name, and lists its columns. */
static att_status fail_unnamed(const att_table *t, const char *name)
{
    const att_where where = att_table_where(t);
    char list[200] = "";
    size_t n = 0;
    for (int64_t i = 0; i < t->n && n < sizeof list - 1; i++) {
        const att_byte_view is = att_trim(t->field[i]);
        n += (size_t)snprintf(list + n, sizeof list - n, "%s\"%.*s\"", i ? ", " : "",
                              (int)att_min((int64_t)is.bytes, 40), is.data);
    }
    return att_fail_at(&where, ATT_ERR_FORMAT, "there is no column \"%.80s\"; the columns are %s%s", name, list,
                       n < sizeof list - 1 ? "" : " ...");
}

/* Finds the columns that the options name. Two numbers are those of columns of a table without a header. */
static att_status find_given(line_format *l, const att_table *t, const char *const given[COLUMNS])
{
    l->fields = t->n;
    l->is_table = true;
    l->has_header = number_of(given[IMAGE]) < 0 || number_of(given[CAPTION]) < 0;
    for (int c = 0; c < COLUMNS; c++) {
        const char *usual_name = c == IMAGE ? "image" : "caption";
        l->column[c] = given[c] ? find_named(t, given[c]) : find_usual(t, c);
        if (l->column[c] < 0)
            return fail_unnamed(t, given[c] ? given[c] : usual_name);
    }
    return ATT_OK;
}

/* Finds the columns of a header, which is the current record. Returns false if it is not a header. */
static bool find_columns(line_format *l, const att_table *t)
{
    l->fields = t->n;
    for (int c = 0; c < COLUMNS; c++)
        l->column[c] = find_usual(t, c);
    l->is_table = l->column[IMAGE] >= 0 && l->column[CAPTION] >= 0;
    return l->is_table;
}

/* Returns the beginning of "#K" at the end of a name; NULL: there is none. */
static const char *find_number(att_byte_view name)
{
    const char *hash = memrchr(name.data, '#', name.bytes), *digit = hash;
    while (hash && ++digit < name.data + name.bytes && *digit >= '0' && *digit <= '9')
        ;
    return hash && digit > hash + 1 && digit == name.data + name.bytes ? hash : NULL;
}

/* Splits a record, if there is no header, into name and caption: the text before the first tab and the text after
 * it. */
static void split_at_tab(const att_table *t, att_byte_view *name, att_byte_view *caption)
{
    const att_byte_view last = t->field[t->n - 1];
    *name = att_trim(t->field[0]);
    *caption = (att_byte_view){t->field[1].data, (size_t)(last.data + last.bytes - t->field[1].data)};
}

/* Finds the format from the first record, and reads a header. */
static att_status find_format(att_caption_file *f, line_format *l, att_table *t, const char *const given[COLUMNS])
{
    att_byte_view line;
    att_status e = att_table_first_line(t, &line);
    const bool tabs = memchr(line.data, '\t', line.bytes);
    if (!e && line.bytes && !tabs)
        e = att_table_find_separator(t);
    e = e ? e : att_table_peek(t);
    if (e || !t->n)
        return e;
    const att_where where = att_table_where(t);
    if (given[IMAGE] || given[CAPTION])
        e = find_given(l, t, given);
    else
        l->has_header = find_columns(l, t);
    if (e)
        return e;
    if (!l->is_table && (!tabs || t->n < 2))
        return att_fail_at(&where, ATT_ERR_FORMAT, "\"%.*s%s\"; %s", (int)att_min((int64_t)line.bytes, 60), line.data,
                           line.bytes > 60 ? "..." : "", expected);
    l->numbered = !l->is_table && find_number(att_trim(t->field[0]));
    f->format = l->numbered ? "Flickr8k.token" : tabs ? "tabs" : "CSV";
    return l->has_header ? att_table_read(t) : ATT_OK;
}

/* Finds name and caption of a record of a table. */
static att_status split_fields(const line_format *l, const att_table *t, att_byte_view *name, att_byte_view *caption)
{
    const att_where where = att_table_where(t);
    if (t->n != l->fields)
        return att_fail_at(&where, ATT_ERR_FORMAT, "%lld field%s, but the %s has %lld%s", (long long)t->n,
                           t->n == 1 ? "" : "s", l->has_header ? "header" : "first line", (long long)l->fields,
                           t->n > l->fields ? "; a caption with a separator must be in quotes" : "");
    *name = att_trim(t->field[l->column[IMAGE]]);
    *caption = t->field[l->column[CAPTION]];
    return ATT_OK;
}

static att_status add_record(att_caption_file *f, const line_format *l, const att_table *t)
{
    const att_where where = att_table_where(t);
    att_byte_view name, caption;
    int32_t image;
    att_status e = ATT_OK;
    if (l->is_table)
        e = split_fields(l, t, &name, &caption);
    else if (t->n < 2)
        e = att_fail_at(&where, ATT_ERR_FORMAT, "there is no tab between a name and a caption");
    else
        split_at_tab(t, &name, &caption);
    const char *number = !e && l->numbered ? find_number(name) : NULL;
    if (!e && l->numbered && !number)
        e = att_fail_at(&where, ATT_ERR_FORMAT,
                        "the name \"%.*s\" does not end with # and a number, as that of the first "
                        "line does",
                        (int)att_min((int64_t)name.bytes, 80), name.data);
    if (number)
        name.bytes = (size_t)(number - name.data);
    e = e ? e : att_caption_file_add_image(f, &where, name, &image);
    return e ? e : att_caption_file_add(f, &where, image, caption);
}

static att_status read_table(att_caption_file *f, att_table *t, const char *const given[COLUMNS])
{
    line_format l = {0};
    att_status e = find_format(f, &l, t, given);
    while (!e) {
        e = att_check_cancelled(f->ctx, t->lines.path);
        e = e ? e : att_table_read(t);
        if (e || !t->n)
            break;
        e = add_record(f, &l, t);
        e = e ? att_table_skip(t, e) : ATT_OK;
    }
    f->skipped = t->skipped;
    return e || !t->skipped ? e : att_names_add(&f->bad, att_names_at(&t->reason, 0));
}

/* ---- a file */

/* Reads the whole file, followed by a zero byte. */
static att_status read_text(att_ctx *ctx, const char *path, char **text, size_t *bytes)
{
    att_data_file file;
    att_status e = att_data_file_open(&file, ctx, NULL, path);
    if (e)
        return e;
    if (file.bytes > MAX_FILE)
        e = att_fail(ctx, ATT_ERR_UNSUPPORTED, "%s has %lld bytes, the maximum is %d", path, (long long)file.bytes,
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

/* Returns whether the text begins like a JSON object. */
static bool is_json(const att_text_lines *l)
{
    char first[64] = ""; /* a text to be scanned ends with a zero byte */
    const ssize_t n = pread(l->file, first, sizeof first - 1, l->offset);
    att_json_scan scan = {first, first + (n > 0 ? n : 0)};
    return att_json_accept(&scan, '{');
}

static att_status read_json(att_caption_file *f, const char *path)
{
    char *text = NULL;
    size_t bytes;
    att_status e = read_text(f->ctx, path, &text, &bytes);
    if (!e) {
        att_json_scan scan = {text + att_mark_bytes(text, bytes), text + bytes};
        att_json_accept(&scan, '{');
        e = att_caption_file_read_coco(f, path, scan);
    }
    att_free(f->ctx, text);
    return e;
}

att_status att_caption_file_read(att_caption_file *f, att_ctx *ctx, const char *path,
                                 const att_caption_set_options *options)
{
    const char *const given[COLUMNS] = {[IMAGE] = options->image_column, [CAPTION] = options->caption_column};
    *f = (att_caption_file){.ctx = ctx, .captions.text.ctx = ctx, .bad.text.ctx = ctx};
    att_ids_init(&f->images, ctx);
    att_table t;
    att_table_init(&t, ctx);
    t.max_skipped = options->skip_bad_lines;
    att_status e = att_table_begin(&t, path);
    const bool json = !e && is_json(&t.lines);
    if (json && (given[IMAGE] || given[CAPTION]))
        e = att_fail(ctx, ATT_ERR_ARGUMENT, "%s is COCO's JSON, which has no columns to name", path);
    else if (!e)
        e = json ? read_json(f, path) : read_table(f, &t, given);
    att_table_close(&t);
    if (!e && !f->captions.n)
        e = att_fail(ctx, ATT_ERR_FORMAT, "%s has no caption; %s", path, expected);
    return e;
}
