#include "pairs.h"
#include "cli.h"
#include "lines.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int cli_pairs_open(cli_pairs *p, const char *path, int format, bool want_gold, int64_t most)
{
    const size_t n = strlen(path);
    const bool named = n > 4 && strcasecmp(path + n - 4, ".csv") == 0;
    const bool csv = format == CLI_PAIRS_BY_NAME ? named : format == CLI_PAIRS_CSV;
    *p = (cli_pairs){.path = path, .csv = csv, .want_gold = want_gold, .most = most, .next_line = 1};
    int code = cli_file_check(path, &p->total);
    if (code)
        return code;
    p->file = strcmp(path, "-") ? fopen(path, "rb") : stdin;
    p->text = malloc(2 * (size_t)most * sizeof *p->text);
    p->bytes = malloc(2 * (size_t)most * sizeof *p->bytes);
    p->begin = malloc(2 * (size_t)most * sizeof *p->begin);
    p->gold = malloc((size_t)most * sizeof *p->gold);
    if (!p->file)
        code = cli_fail_errno(path);
    else if (!p->text || !p->bytes || !p->begin || !p->gold)
        code = cli_fail_memory();
    if (code)
        cli_pairs_close(p);
    return code;
}

void cli_pairs_close(cli_pairs *p)
{
    if (p->file && p->file != stdin)
        fclose(p->file);
    free(p->text);
    free(p->bytes);
    free(p->begin);
    free(p->gold);
    free(p->data);
    *p = (cli_pairs){0};
}

static int wrong(const cli_pairs *p, const char *what)
{
    return cli_fail("%s: line %lld: %s", p->path, (long long)p->line, what);
}

static int put(cli_pairs *p, int c)
{
    if (p->used == p->capacity) {
        size_t capacity = p->capacity ? 2 * p->capacity : 1 << 16;
        char *data = capacity <= (size_t)1 << 31 ? realloc(p->data, capacity) : NULL;
        if (!data)
            return cli_fail_memory();
        p->data = data;
        p->capacity = capacity;
    }
    p->data[p->used++] = (char)c;
    return CLI_DONE;
}

static int get(cli_pairs *p)
{
    int c = getc_unlocked(p->file);
    p->read += c != EOF;
    p->next_line += c == '\n';
    return c;
}

/* Behind the opening quote: up to the closing one. */
static int read_quoted(cli_pairs *p)
{
    for (int code = CLI_DONE; !code;) {
        int c = get(p);
        if (c == EOF)
            return wrong(p, "a quoted field does not end");
        if (c == '"') {
            c = getc_unlocked(p->file);
            if (c != '"') {
                ungetc(c, p->file);
                return CLI_DONE;
            }
            p->read++;
        }
        code = put(p, c);
    }
    return CLI_FAILED;
}

/* One field to the end of data, zero-terminated; *last: what stood behind it, '\n' at the end of the file. */
static int read_field(cli_pairs *p, int *last)
{
    const int between = p->csv ? ',' : '\t';
    size_t begin = p->used;
    int c = get(p), code = CLI_DONE;
    bool quoted = p->csv && c == '"';
    if (quoted) {
        code = read_quoted(p);
        c = get(p);
        if (!code && c == '\r')
            c = get(p);
        if (!code && c != between && c != '\n' && c != EOF)
            code = wrong(p, "text stands behind a closing quote");
    }
    for (; !code && c != between && c != '\n' && c != EOF; c = get(p))
        code = put(p, c);
    if (!code && !quoted && c != between && p->used > begin && p->data[p->used - 1] == '\r')
        p->used--;
    *last = c == EOF ? '\n' : c;
    return code ? code : put(p, '\0');
}

static int take_gold(cli_pairs *p, const char *field)
{
    char *end;
    double v = strtod(field, &end);
    if (end == field || *end || !isfinite(v))
        return cli_fail("%s: line %lld: the third column is \"%.40s\", but must be a number", p->path,
                        (long long)p->line, field);
    p->gold[p->count] = v;
    return CLI_DONE;
}

/* One pair into the block. */
static int read_record(cli_pairs *p)
{
    int fields = 0, last = 0, code = CLI_DONE;
    p->line = p->next_line;
    p->gold[p->count] = 0;
    for (; !code && last != '\n'; fields++) {
        size_t begin = p->used;
        code = read_field(p, &last);
        if (code)
            return code;
        if (fields < 2) {
            p->begin[2 * p->count + fields] = begin;
            p->bytes[2 * p->count + fields] = p->used - 1 - begin;
            continue;
        }
        if (fields == 2 && p->want_gold)
            code = take_gold(p, p->data + begin);
        p->used = begin; /* further columns are not kept */
    }
    if (!code && fields < 2)
        code = wrong(p, p->csv ? "one column, but a pair has two with a comma between them"
                               : "one column, but a pair has two with a tab between them");
    if (!code && fields < 3 && p->want_gold)
        code = wrong(p, "two columns, but the expected score must stand in a third");
    if (!code)
        p->count++;
    return code;
}

int cli_pairs_next(cli_pairs *p)
{
    int code = CLI_DONE;
    p->count = 0;
    p->used = 0;
    while (!code && p->count < p->most) {
        errno = 0;
        int c = getc_unlocked(p->file);
        if (c == EOF)
            break;
        ungetc(c, p->file);
        code = read_record(p);
    }
    if (!code && ferror(p->file))
        code = cli_fail_errno(p->path);
    for (int64_t i = 0; i < 2 * p->count; i++)
        p->text[i] = p->data + p->begin[i];
    return code;
}

/* ---- Cosine, correlation ---------------------------------------------------- */

double cli_cosine(const float *a, const float *b, int64_t dim)
{
    double ab = 0, aa = 0, bb = 0;
    for (int64_t i = 0; i < dim; i++) {
        ab += (double)a[i] * b[i];
        aa += (double)a[i] * a[i];
        bb += (double)b[i] * b[i];
    }
    return aa == 0 || bb == 0 ? 0 : ab / sqrt(aa * bb);
}

float cli_clamp_cosine(float x) { return x > 1 ? 1 : x < -1 ? -1 : x; }

double cli_pearson(const double *a, const double *b, int64_t n)
{
    double mean_a = 0, mean_b = 0, ab = 0, aa = 0, bb = 0;
    for (int64_t i = 0; i < n; i++) {
        mean_a += a[i] / (double)n;
        mean_b += b[i] / (double)n;
    }
    for (int64_t i = 0; i < n; i++) {
        ab += (a[i] - mean_a) * (b[i] - mean_b);
        aa += (a[i] - mean_a) * (a[i] - mean_a);
        bb += (b[i] - mean_b) * (b[i] - mean_b);
    }
    return ab / sqrt(aa * bb);
}

static int by_value(const void *x, const void *y)
{
    const double a = **(const double *const *)x, b = **(const double *const *)y;
    return (a > b) - (a < b);
}

/* rank[i] of a[i] in ascending order, equal values share the mean; order [n] is scratch. */
static void rank_all(const double *a, int64_t n, double *rank, const double **order)
{
    for (int64_t i = 0; i < n; i++)
        order[i] = a + i;
    qsort(order, (size_t)n, sizeof *order, by_value);
    for (int64_t first = 0, next; first < n; first = next) {
        for (next = first + 1; next < n && *order[next] == *order[first]; next++) {
        }
        for (int64_t i = first; i < next; i++)
            rank[order[i] - a] = 0.5 * (double)(first + next - 1);
    }
}

int cli_spearman(const double *a, const double *b, int64_t n, double *correlation)
{
    double *rank = malloc(2 * (size_t)n * sizeof *rank + 1);
    const double **order = malloc((size_t)n * sizeof *order + 1);
    const int code = rank && order ? CLI_DONE : cli_fail_memory();
    if (!code) {
        rank_all(a, n, rank, order);
        rank_all(b, n, rank + n, order);
        *correlation = cli_pearson(rank, rank + n, n);
        for (int64_t i = 0; i < n; i++)
            if (isnan(a[i]) || isnan(b[i])) /* which has no rank */
                *correlation = NAN;
    }
    free(rank);
    free(order);
    return code;
}
