/* The weights of a layer and head: of all tokens, or of one. */
#include "cli/base/utf8.h"
#include "cli/draw/color.h"
#include "cli/draw/heatmap.h"
#include "cli/draw/picture.h"
#include "views.h"

#include <stdlib.h>
#include <string.h>

enum { LIMIT = 512, POOLED = 64, LARGEST = 20, BLOCK = 1 << 20 };

static att_status read_rows(const attended *a, int64_t first, int64_t count, float *out)
{
    return att_trace_weights(a->trace, att_trace_find(a->trace, a->side, a->layer), a->head, first, count, out);
}

/* Returns whether queries and keys are the same tokens. */
static bool are_same(const attended *a)
{
    return a->side == ATT_TRACE_SIDE_ENCODER || (a->side == ATT_TRACE_SIDE_DECODER && !a->info.shifted);
}

/* ---- JSON ---------------------------------------------------------------------- */

static void print_labels(cli_json *j, const attended *a)
{
    const bool cross = a->side == ATT_TRACE_SIDE_CROSS;
    if (are_same(a)) {
        cli_json_strings(j, "tokens", a->key, a->attention.keys);
        return;
    }
    cli_json_strings(j, cross ? "source" : "keys", a->key, a->attention.keys);
    cli_json_strings(j, cross ? "target" : "queries", a->query, a->attention.queries);
}

/* Prints JSON. Rows [block, keys] are computed at a time, because a long text has many. */
static int print_json(const attended *a, int64_t block, float *rows)
{
    const int64_t queries = a->attention.queries, keys = a->attention.keys;
    int code = CLI_DONE;
    cli_json j = {0}; /* begun only when there are rows, so that after an error nothing is printed */
    for (int64_t first = 0; !code && first < queries; first += block) {
        const int64_t count = first + block < queries ? block : queries - first;
        code = cli_status(a->m.base.ctx, read_rows(a, first, count, rows));
        if (!code && first == 0) {
            j = attention_json(a, a->attention.layer, a->head);
            print_labels(&j, a);
            cli_json_array(&j, "weights");
        }
        for (int64_t i = 0; !code && i < count; i++)
            cli_json_row(&j, NULL, rows + i * keys, keys);
        if (!code && first + count == queries)
            cli_json_close(&j);
    }
    return code;
}

/* ---- Pictures of all ------------------------------------------------------------- */

/* The cells of a heat map: all weights, or for a long text the largest weights of ranges of tokens. */
typedef struct shown {
    heatmap map;
    float *weights;
    char (*name)[64]; /* of ranges of queries, then of keys */
    const char **label;
    bool pooled;
} shown;

static void free_shown(shown *s)
{
    free(s->weights);
    free(s->name);
    free(s->label);
}

static void name_ranges(shown *s, int64_t at, int64_t cells, int64_t n, const char *const *names)
{
    for (int64_t i = 0; i < cells; i++) {
        const int64_t token = i * n / cells;
        snprintf(s->name[at + i], sizeof *s->name, "%lld %.*s", (long long)token, utf8_prefix(names[token], 40),
                 names[token]);
        s->label[at + i] = s->name[at + i];
    }
}

static int pool(const attended *a, shown *s)
{
    const int64_t queries = a->attention.queries, keys = a->attention.keys;
    const int64_t rows = queries < POOLED ? queries : POOLED, columns = keys < POOLED ? keys : POOLED;
    uint8_t cells[POOLED * POOLED];
    float scale;
    s->name = malloc((size_t)(rows + columns) * sizeof *s->name);
    s->label = malloc((size_t)(rows + columns) * sizeof *s->label);
    s->weights = malloc((size_t)(rows * columns) * sizeof *s->weights);
    if (!s->name || !s->label || !s->weights)
        return cli_fail_memory();
    const int code = cli_status(a->m.base.ctx, att_trace_pooled(a->trace, att_trace_find(a->trace, a->side, a->layer),
                                                                a->head, rows, columns, cells, &scale));
    for (int64_t i = 0; !code && i < rows * columns; i++)
        s->weights[i] = scale * (float)cells[i] / 255;
    name_ranges(s, 0, rows, queries, a->query);
    name_ranges(s, rows, columns, keys, a->key);
    s->pooled = true;
    s->map.row = s->label;
    s->map.column = are_same(a) ? s->label : s->label + rows;
    s->map.rows = rows;
    s->map.columns = columns;
    s->map.weights = s->weights;
    return code;
}

static int read_all(const attended *a, shown *s)
{
    const int64_t queries = a->attention.queries, keys = a->attention.keys;
    s->map = heatmap_square(a->query, queries, NULL);
    if (a->side == ATT_TRACE_SIDE_CROSS) {
        s->map.row_name = "target (row)";
        s->map.column_name = "source (column)";
        s->map.corner = "t↓ s→";
    }
    if (queries > LIMIT || keys > LIMIT)
        return pool(a, s);
    s->weights = malloc((size_t)(queries * keys + 1) * sizeof *s->weights);
    s->map.column = are_same(a) ? a->query : a->key;
    s->map.columns = keys;
    s->map.weights = s->weights;
    return s->weights ? cli_status(a->m.base.ctx, read_rows(a, 0, queries, s->weights)) : cli_fail_memory();
}

static int draw(const attended *a, const heatmap *h, const char *what)
{
    picture p;
    char title[256], heads[96];
    const int code = picture_open(&p, a->asked->svg);
    if (code)
        return code;
    attention_heads_name(a, heads, sizeof heads);
    snprintf(title, sizeof title, "%s: %s", heads, what);
    heatmap_svg(p.svg, title, h);
    return picture_close(&p, code);
}

/* Prints "Layer 5 of 0 to 5, head 0 of 0 to 11.", which also states the values that --layer and --head may have. */
static void print_name(const attended *a)
{
    const long long layers = a->info.layers[a->side], heads = a->attention.heads;
    char head[64];
    if (a->head >= 0)
        snprintf(head, sizeof head, "head %lld of 0 to %lld", (long long)a->head, heads - 1);
    else
        snprintf(head, sizeof head, "the mean of %lld head%s", heads, heads == 1 ? "" : "s");
    printf("Layer %lld of 0 to %lld, %s.\n", (long long)a->attention.layer, layers - 1, head);
}

static void print_all(const attended *a, const shown *s)
{
    print_name(a);
    printf("Rows: the token that attends; columns: the tokens attended to.\n");
    if (s->pooled)
        printf("The text is long: a cell is the largest weight of up to %lld x %lld tokens; --from N shows a token.\n",
               (long long)((a->attention.queries + s->map.rows - 1) / s->map.rows),
               (long long)((a->attention.keys + s->map.columns - 1) / s->map.columns));
    putchar('\n');
    heatmap_terminal(stdout, &s->map, terminal_colors(stdout));
}

static int show_all(const attended *a)
{
    const int64_t queries = a->attention.queries, keys = a->attention.keys, max = keys < BLOCK ? BLOCK / keys : 1,
                  block = max < queries ? max : queries;
    float *rows = a->asked->json ? malloc((size_t)(block * keys) * sizeof *rows) : NULL;
    shown s = {0};
    int code = a->asked->json && !rows ? cli_fail_memory() : CLI_DONE;
    if (!code && (a->asked->svg || !a->asked->json))
        code = read_all(a, &s);
    if (!code && a->asked->svg)
        code = draw(a, &s.map, a->asked->argument);
    if (!code && a->asked->json)
        code = print_json(a, block, rows);
    else if (!code)
        print_all(a, &s);
    free_shown(&s);
    free(rows);
    return code;
}

/* ---- One token ------------------------------------------------------------------- */

static void print_row_json(const attended *a, float *row)
{
    cli_json j = attention_json(a, a->attention.layer, a->head);
    cli_json_integer(&j, "from", a->asked->from);
    cli_json_string(&j, "token", a->query[a->asked->from]);
    cli_json_strings(&j, "tokens", a->key, a->attention.keys);
    cli_json_row(&j, "weights", row, a->attention.keys);
    cli_json_end(&j);
}

/* Prints the keys of largest weight, the first of equal ones first; negative ones are done. */
static void print_row(const attended *a, float *row)
{
    const int64_t keys = a->attention.keys, n = keys < LARGEST ? keys : LARGEST;
    print_name(a);
    printf("Token %lld \"%s\" attends to", (long long)a->asked->from, a->query[a->asked->from]);
    if (n < keys)
        printf(", the %lld largest of %lld weights:\n\n", (long long)n, (long long)keys);
    else
        printf(":\n\n");
    for (int64_t i = 0; i < n; i++) {
        int64_t best = 0;
        for (int64_t k = 1; k < keys; k++)
            best = row[k] > row[best] ? k : best;
        printf("%8.4f  %5lld  %s\n", (double)row[best], (long long)best, a->key[best]);
        row[best] = -1;
    }
}

static int draw_row(const attended *a, const float *row)
{
    const char *label[] = {a->query[a->asked->from]};
    const int64_t n = a->attention.keys < LIMIT ? a->attention.keys : LIMIT;
    heatmap h = heatmap_square(label, 1, row);
    h.column = a->key;
    h.columns = n;
    if (n < a->attention.keys)
        cli_note("%s shows the first %lld of %lld weights", a->asked->svg, (long long)n, (long long)a->attention.keys);
    return draw(a, &h, a->asked->argument);
}

static int show_row(const attended *a)
{
    float *row = malloc((size_t)a->attention.keys * sizeof *row);
    int code = row ? cli_status(a->m.base.ctx, read_rows(a, a->asked->from, 1, row)) : cli_fail_memory();
    if (!code && a->asked->svg)
        code = draw_row(a, row);
    if (!code)
        (a->asked->json ? print_row_json : print_row)(a, row);
    free(row);
    return code;
}

int attention_show_weights(attended *a)
{
    int code = attention_check_from(a, a->attention.queries);
    if (!code)
        code = attended_trace(a, a->attention.layer, false, true, &a->trace);
    if (code)
        return code;
    return a->asked->from >= 0 ? show_row(a) : show_all(a);
}
