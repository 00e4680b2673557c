#include "pairs.h"
#include "cli.h"

#include <math.h>
#include <stdlib.h>

int cli_pairs_open(cli_pairs *p, const char *path, int format, bool want_gold, int64_t max_count)
{
    *p = (cli_pairs){.path = path, .want_gold = want_gold, .max_count = max_count};
    int code = cli_records_open(&p->in, path, format);
    p->total = p->in.total;
    p->text = malloc(2 * (size_t)max_count * sizeof *p->text);
    p->bytes = malloc(2 * (size_t)max_count * sizeof *p->bytes);
    p->begin = malloc(2 * (size_t)max_count * sizeof *p->begin);
    p->gold = malloc((size_t)max_count * sizeof *p->gold);
    if (!code && (!p->text || !p->bytes || !p->begin || !p->gold))
        code = cli_fail_memory();
    if (code)
        cli_pairs_close(p);
    return code;
}

void cli_pairs_close(cli_pairs *p)
{
    cli_records_close(&p->in);
    free(p->text);
    free(p->bytes);
    free(p->begin);
    free(p->gold);
    *p = (cli_pairs){0};
}

static int wrong(const cli_pairs *p, const char *what)
{
    return cli_fail("%s: line %lld: %s", p->path, (long long)p->in.line, what);
}

static int parse_gold(cli_pairs *p, const char *field)
{
    char *end;
    double v = strtod(field, &end);
    if (end == field || *end || !isfinite(v))
        return cli_fail("%s: line %lld: the third column is \"%.40s\", but must be a number", p->path,
                        (long long)p->in.line, field);
    p->gold[p->count] = v;
    return CLI_DONE;
}

/* Appends the record to the block, as one pair; further columns are dropped. */
static int add_record(cli_pairs *p)
{
    cli_records *in = &p->in;
    p->gold[p->count] = 0;
    if (in->fields < 2)
        return wrong(p, in->csv ? "one column, but a pair has two with a comma between them"
                                : "one column, but a pair has two with a tab between them");
    if (in->fields < 3 && p->want_gold)
        return wrong(p, "two columns, but the expected score must stand in a third");
    const int code = p->want_gold ? parse_gold(p, in->data + in->begin[2]) : CLI_DONE;
    for (int k = 0; !code && k < 2; k++) {
        p->begin[2 * p->count + k] = in->begin[k];
        p->bytes[2 * p->count + k] = in->bytes[k];
    }
    if (in->fields > 2)
        in->used = in->begin[2];
    p->count += !code;
    return code;
}

int cli_pairs_next(cli_pairs *p)
{
    int code = CLI_DONE;
    p->count = 0;
    p->in.used = 0;
    while (!code && p->count < p->max_count) {
        code = cli_records_next(&p->in);
        if (code || p->in.fields == 0)
            break;
        code = add_record(p);
    }
    p->read = p->in.read;
    for (int64_t i = 0; i < 2 * p->count; i++)
        p->text[i] = p->in.data + p->begin[i];
    return code;
}
