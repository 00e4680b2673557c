/* The input is a byte, the options, and the bytes of a table. What is accepted must be complete: records of UTF-8 in
 * the order of their lines, which are the same when they are written with all fields in quotes and read again. */
#include "fuzz.h"

#include "attend_text.h"

enum { TSV = 1, SKIP = 2 };

static void put_quoted(FILE *f, att_byte_view field)
{
    fputc('"', f);
    for (size_t i = 0; i < field.bytes; i++) {
        if (field.data[i] == '"')
            fputc('"', f);
        fputc(field.data[i], f);
    }
    fputc('"', f);
}

/* Returns a hash of all fields of the table, and the number of its *records; writes them to f, if that is not NULL. */
static uint64_t read_table(att_table *t, FILE *f, int64_t *records)
{
    att_table_record r = {.size = sizeof r};
    uint64_t hash = 0;
    int64_t line = 0, offset = 0;
    for (*records = 0; !att_table_next(t, &r) && r.n > 0; ++*records) {
        fuzz_check(r.line > line && r.offset > offset, "records that are not in the order of their lines");
        line = r.line;
        offset = r.offset;
        for (int64_t i = 0; i < r.n; i++) {
            fuzz_check(!att_check_utf8("table", r.line, r.fields[i].data, r.fields[i].bytes), "no UTF-8");
            for (size_t k = 0; k < r.fields[i].bytes; k++)
                hash = (hash ^ (unsigned char)r.fields[i].data[k]) * UINT64_C(0x100000001b3);
            hash = (hash ^ (i + 1 == r.n ? 0x101 : 0x100)) * UINT64_C(0x100000001b3);
            if (f && i > 0)
                fputc(',', f);
            if (f)
                put_quoted(f, r.fields[i]);
        }
        if (f)
            fputc('\n', f);
    }
    return hash;
}

static void remove_files(void)
{
    static const char *const names[] = {"table", "again", NULL};
    fuzz_remove(names);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    static bool registered;
    char path[128], again[128];
    att_table *t;
    att_table_info info = {.size = sizeof info};
    int64_t records[2];
    if (!registered)
        registered = !atexit(remove_files);
    if (size < 2)
        return 0;
    const att_table_options o = {.size = sizeof o,
                                 .format = data[0] & TSV ? ATT_TABLE_TSV : ATT_TABLE_CSV,
                                 .skip_bad_lines = data[0] & SKIP ? 1000 : 0};
    fuzz_write("table", (fuzz_section){data + 1, size - 1});
    snprintf(path, sizeof path, "%s/table", fuzz_folder());
    snprintf(again, sizeof again, "%s/again", fuzz_folder());
    if (att_table_open(fuzz_context(), path, &o, &t)) {
        fuzz_check(!t, "refused, but with a table");
        return 0;
    }
    FILE *f = fopen(again, "wb");
    if (!f)
        abort();
    const uint64_t hash = read_table(t, f, &records[0]);
    fuzz_check(!att_table_describe(t, &info) && (info.skipped == 0) == !info.bad && info.skipped <= o.skip_bad_lines,
               "a wrong number of records that were left out");
    att_table_free(t);
    if (fclose(f))
        abort();
    if (att_table_open(fuzz_context(), again, NULL, &t)) { /* control characters that are those of UTF-16 */
        fuzz_check(strstr(att_error(fuzz_context()), "is UTF-"), "a table that was written is refused");
        return 0;
    }
    fuzz_check(read_table(t, NULL, &records[1]) == hash && records[0] == records[1], "a table that is another one");
    att_table_free(t);
    return 0;
}
