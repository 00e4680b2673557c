#include "pairs.h"
#include "cli/base/command.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int cli_pairs_open(cli_pairs *p, const char *path, const cli_pairs_options *options)
{
    const size_t max_count = (size_t)options->max_count;
    *p = (cli_pairs){.options = *options};
    int code = cli_records_open(&p->in, path, options->format, options->skip);
    p->total = p->in.total;
    p->text = malloc(2 * max_count * sizeof *p->text);
    p->bytes = malloc(2 * max_count * sizeof *p->bytes);
    p->begin = malloc(2 * max_count * sizeof *p->begin);
    p->gold = malloc(max_count * sizeof *p->gold);
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

/* Returns whether the text begins like a number, even if it is not a score. Names of columns do not. */
static bool begins_as_number(const char *text)
{
    char *end;
    strtod(text, &end);
    return end > text;
}

/* Reads the gold score of the current record. *refused: it has no valid one. */
static int read_gold(cli_pairs *p, bool *refused)
{
    cli_records *in = &p->in;
    const char *text = in->data + in->begin[2];
    const bool number = cli_records_number(text, &p->gold[p->count]) && isfinite(p->gold[p->count]);
    const double gold = p->gold[p->count];
    *refused = !number || (p->options.highest > 0 && !(gold >= 0 && gold <= p->options.highest));
    if (!number)
        return cli_records_refuse(in, "the third column is \"%.40s\", but must be a number", text);
    return *refused ? cli_records_refuse(in, "the score is %g, but must be from 0 to %g (--highest)", gold,
                                         p->options.highest)
                    : CLI_DONE;
}

/* Returns whether the current record, the first one, is a heading. */
static bool is_heading(const cli_pairs *p)
{
    return cli_records_named(&p->in) ||
           (p->options.gold && p->in.fields > 2 && !begins_as_number(p->in.data + p->in.begin[2]));
}

/* Appends the record to the block, as one pair; further columns are dropped. */
static int add_record(cli_pairs *p)
{
    cli_records *in = &p->in;
    bool refused = false;
    p->gold[p->count] = 0;
    if (in->fields < 2)
        return cli_records_refuse_one(in);
    if (in->fields < 3 && p->options.gold)
        return cli_records_refuse(in, "two columns, but the expected score must stand in a third");
    const int code = p->options.gold ? read_gold(p, &refused) : CLI_DONE;
    if (code || refused)
        return code;
    for (int k = 0; k < 2; k++) {
        p->begin[2 * p->count + k] = in->begin[k];
        p->bytes[2 * p->count + k] = in->bytes[k];
    }
    if (in->fields > 2)
        in->used = in->begin[2];
    p->count++;
    return CLI_DONE;
}

/* Reports columns of a table without a heading that are not read, because the pairs may be in them. */
static void note_columns(const cli_pairs *p)
{
    const int64_t fields = p->in.fields;
    if (fields > (p->options.gold ? 3 : 2))
        cli_note(
            "%s: the columns 1 and 2 of %lld are compared; a heading, as sentence1, sentence2 and score, names others",
            p->in.path, (long long)fields);
}

int cli_pairs_next(cli_pairs *p)
{
    int code = CLI_DONE;
    p->count = 0;
    p->in.used = 0;
    while (!code && p->count < p->options.max_count) {
        code = cli_records_next(&p->in);
        if (code || p->in.fields == 0)
            break;
        if (!p->begun && is_heading(p))
            code = cli_records_heading(&p->in);
        else {
            if (!p->begun)
                note_columns(p);
            code = add_record(p);
        }
        p->begun = true;
    }
    p->read = p->in.read;
    for (int64_t i = 0; i < 2 * p->count; i++)
        p->text[i] = p->in.data + p->begin[i];
    return code;
}
