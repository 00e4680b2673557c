/* Tables for callers outside the library: all fields of a record as an array, checked to be UTF-8. */
#include "text/not_utf8.h"
#include "text/table.h"
#include "text/utf8.h"

#include <string.h>

static att_status begin(att_table *t, const att_table_options *o)
{
    t->max_skipped = o->skip_bad_lines;
    att_table_separate(t, "\t", false);
    return o->format == ATT_TABLE_CSV ? att_table_find_separator(t) : ATT_OK;
}

att_status att_table_check_skip(att_ctx *ctx, int64_t skip_bad_lines)
{
    return skip_bad_lines >= 0 ? ATT_OK
                               : att_fail(ctx, ATT_ERR_ARGUMENT, "skip_bad_lines is %lld, but must not be negative",
                                          (long long)skip_bad_lines);
}

static att_status check(att_ctx *ctx, const att_table_options *o)
{
    if ((unsigned)o->format > ATT_TABLE_TSV)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "format is %d, not an att_table_format", (int)o->format);
    return att_table_check_skip(ctx, o->skip_bad_lines);
}

/* Opens a table; path NULL: reads from `file`, which is called `name`. */
static att_status new_table(att_ctx *ctx, const char *path, int file, const char *name,
                            const att_table_options *options, att_table **out)
{
    att_table_options o;
    att_status e = att_options_read(&o, sizeof o, options, "att_table_options");
    e = e ? e : check(ctx, &o);
    if (e)
        return e;
    att_table *t = att_calloc(ctx, 1, sizeof *t);
    if (!t)
        return ATT_ERR_MEMORY;
    att_table_init(t, ctx);
    e = path ? att_table_begin(t, path) : att_text_lines_of(&t->lines, ctx, file, name);
    e = e ? e : begin(t, &o);
    if (e)
        att_table_free(t);
    else
        *out = t;
    return e;
}

att_status att_table_open(att_ctx *ctx, const char *path, const att_table_options *options, att_table **out)
{
    if (out)
        *out = NULL;
    return att_require(__func__, ATT_NAMED({"ctx", ctx}, {"path", path}, {"out", out}))
               ? ATT_ERR_ARGUMENT
               : new_table(ctx, path, -1, NULL, options, out);
}

att_status att_table_open_stream(att_ctx *ctx, int file, const char *name, const att_table_options *options,
                                 att_table **out)
{
    if (out)
        *out = NULL;
    return att_require(__func__, ATT_NAMED({"ctx", ctx}, {"name", name}, {"out", out}))
               ? ATT_ERR_ARGUMENT
               : new_table(ctx, NULL, file, name, options, out);
}

void att_table_free(att_table *t)
{
    if (!t)
        return;
    att_ctx *ctx = t->ctx;
    att_table_close(t);
    att_free(ctx, t);
}

static att_status check_fields(const att_table *t)
{
    const att_where where = att_table_where(t);
    for (int64_t i = 0; i < t->n; i++)
        if (!att_utf8_valid(t->field[i].data, t->field[i].bytes))
            return att_fail_not_utf8(&where, NULL, t->field[i]);
    return ATT_OK;
}

att_status att_table_next(att_table *t, att_table_record *out)
{
    if (att_require(__func__, ATT_NAMED({"t", t}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_status e, bad;
    do {
        e = att_table_read(t);
        bad = e ? ATT_OK : check_fields(t);
        e = bad ? att_table_skip(t, bad) : e;
    } while (bad && !e); /* it was left out */
    const att_table_record record = {.size = sizeof record,
                                     .line = t->line,
                                     .n = t->n,
                                     .fields = t->n ? t->field : NULL,
                                     .offset = t->lines.offset + (int64_t)t->lines.at};
    return e ? e : att_info_write(out, &record, sizeof record, "att_table_record");
}

att_status att_table_refuse(att_table *t, const char *why)
{
    if (att_require(__func__, ATT_NAMED({"t", t}, {"why", why})))
        return ATT_ERR_ARGUMENT;
    const att_where where = att_table_where(t);
    return att_table_skip(t, att_fail_at(&where, ATT_ERR_FORMAT, "%s", why));
}

att_status att_table_describe(const att_table *t, att_table_info *info)
{
    if (att_require(__func__, ATT_NAMED({"t", t}, {"info", info})))
        return ATT_ERR_ARGUMENT;
    const att_table_info is = {.size = sizeof is,
                               .separator = *t->separator,
                               .skipped = t->skipped,
                               .bad = t->skipped ? att_names_at(&t->reason, 0) : NULL,
                               .bytes = t->lines.stream ? 0 : t->lines.opened.st_size};
    return att_info_write(info, &is, sizeof is, "att_table_info");
}
