#include "scored_pairs.h"

#include "cli/base/grow.h"
#include "cli/model/checkpoints.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 512 };

void cli_scored_free(cli_scored *s)
{
    for (int64_t i = 0; i < 2 * s->n; i++)
        free((char *)s->text[i]);
    free(s->text);
    free(s->bytes);
    free(s->score);
    *s = (cli_scored){0};
}

static int add(cli_scored *s, const cli_pairs *p, int64_t i, double highest)
{
    const cli_array arrays[] = {
        {&s->text, 2 * sizeof *s->text}, {&s->bytes, 2 * sizeof *s->bytes}, {&s->score, sizeof *s->score}};
    if (!cli_reserve(&s->room, (size_t)s->n + 1, arrays, 3))
        return cli_fail_memory();
    char *both[2];
    for (int k = 0; k < 2; k++) {
        both[k] = malloc(p->bytes[2 * i + k] + 1);
        if (!both[k]) {
            free(k ? both[0] : NULL);
            return cli_fail_memory();
        }
        memcpy(both[k], p->text[2 * i + k], p->bytes[2 * i + k] + 1);
        s->text[2 * s->n + k] = both[k];
        s->bytes[2 * s->n + k] = p->bytes[2 * i + k];
    }
    s->score[s->n++] = highest > 0 ? p->gold[i] / highest : p->gold[i];
    return CLI_DONE;
}

int cli_scored_read(cli_scored *s, const char *path, const cli_pairs_options *options)
{
    cli_pairs p;
    cli_skipped skipped;
    cli_pairs_options o = *options;
    o.gold = true;
    o.max_count = BLOCK;
    int code = cli_pairs_open(&p, path, &o);
    if (code)
        return code;
    do {
        code = cli_pairs_next(&p);
        for (int64_t i = 0; !code && i < p.count; i++)
            code = add(s, &p, i, o.highest);
    } while (!code && p.count > 0);
    cli_records_skipped(&p.in, &skipped);
    cli_pairs_close(&p);
    if (!code && s->n == 0)
        return cli_fail("%s: has no pairs", path);
    if (!code)
        cli_skipped_report(skipped.n, skipped.first);
    return code;
}

int64_t cli_scored_checksum(const cli_scored *s)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < s->n; i++) {
        for (int k = 0; k < 2; k++)
            sum = cli_training_checksum(sum, s->text[2 * i + k], s->bytes[2 * i + k] + 1);
        sum = cli_training_checksum(sum, &s->score[i], sizeof s->score[i]);
    }
    return (int64_t)sum;
}
