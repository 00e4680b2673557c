#include "history_attention.h"
#include "cli/base/utf8.h"
#include "cli/draw/heatmap.h"
#include "cli/draw/picture.h"

#include <stdlib.h>

enum { MAX_COLUMNS = 64, NAME = 64 };

typedef struct map {
    const cli_recommender *m;
    att_trace *trace;
    int64_t n, columns; /* the last items, as many as there are positions */
    int64_t used;       /* items that the model uses; the mask of BERT4Rec has a position, too */
    int64_t tokens;     /* of the model */
    float *row;         /* [tokens]: weights of one head */
    float *weights;     /* [n, MAX_COLUMNS] at first, then [n, columns] */
    char names[MAX_COLUMNS][NAME];
} map;

/* Adds share times the weights of the last token, of a head or of the mean of all, -1, to a column. */
static int add_head(map *w, int64_t attention, int64_t head, float share)
{
    const int code = cli_status(w->m->base.ctx, att_trace_weights(w->trace, attention, head, w->tokens - 1, 1, w->row));
    for (int64_t i = 0; !code && i < w->used; i++)
        w->weights[(w->n - w->used + i) * MAX_COLUMNS + w->columns] += share * w->row[i];
    return code;
}

/* Computes the mean of the heads of one or all (-1) layers, or one of them. */
static int add_column(map *w, int64_t layer, int64_t head)
{
    const int64_t layers = w->m->info.layers;
    const float share = layer < 0 ? 1 / (float)layers : 1;
    char *name = w->names[w->columns];
    int code = CLI_DONE;
    for (int64_t l = layer < 0 ? 0 : layer; !code && l <= (layer < 0 ? layers - 1 : layer); l++)
        code = add_head(w, l, head, share);
    if (layer < 0)
        snprintf(name, NAME, "mean");
    else if (head < 0)
        snprintf(name, NAME, "layer %lld", (long long)layer);
    else
        snprintf(name, NAME, "layer %lld, head %lld", (long long)layer, (long long)head);
    w->columns++;
    return code;
}

/* Adds the columns. Heads are added only if all of them fit. */
static int add_columns(map *w)
{
    const int64_t layers = w->m->info.layers, heads = w->m->info.heads;
    const bool all = heads > 1 && heads < MAX_COLUMNS && layers < MAX_COLUMNS && 1 + layers * (1 + heads) < MAX_COLUMNS;
    int code = add_column(w, -1, -1);
    for (int64_t l = 0; !code && (layers > 1 || all) && l < layers && w->columns < MAX_COLUMNS; l++) {
        code = add_column(w, l, -1);
        for (int64_t h = 0; !code && all && h < heads; h++)
            code = add_column(w, l, h);
    }
    for (int64_t i = 0; i < w->n; i++)
        for (int64_t c = 0; c < w->columns; c++)
            w->weights[i * w->columns + c] = w->weights[i * MAX_COLUMNS + c];
    return code;
}

/* Traces the history and takes memory for its map. */
static int open_map(map *w, const int32_t *items, int64_t n)
{
    att_trace_info i = {.size = sizeof i};
    int code = cli_status(w->m->base.ctx, att_recommender_trace(w->m->model, n, items, NULL, &w->trace));
    code = code ? code : cli_status(w->m->base.ctx, att_trace_describe(w->trace, &i));
    if (code)
        return code;
    w->tokens = i.source + i.target;
    w->used = i.source > 0 ? i.source - 1 : i.target;
    w->n = n < w->m->info.max_positions ? n : w->m->info.max_positions;
    w->row = malloc((size_t)w->tokens * sizeof *w->row);
    w->weights = calloc((size_t)w->n * MAX_COLUMNS, sizeof *w->weights);
    return w->row && w->weights ? CLI_DONE : cli_fail_memory();
}

static int draw(const map *w, const char *path, const char *title, const char *const *labels)
{
    const char *columns[MAX_COLUMNS];
    picture file;
    for (int64_t c = 0; c < w->columns; c++)
        columns[c] = w->names[c];
    const int code = picture_open(&file, path);
    if (code)
        return code;
    const heatmap h = {labels, columns, w->n, w->columns, w->weights, "item of the history", "attention to it", ""};
    heatmap_svg(file.svg, title, &h); /* an error stays with the file, which reports it */
    return picture_close(&file, CLI_DONE);
}

static int draw_history(map *w, const char *path, const char *title, const int32_t *items, int64_t n,
                        const char *const *labels)
{
    int code = open_map(w, items, n);
    code = code ? code : add_columns(w);
    code = code ? code : draw(w, path, title, labels + n - w->n);
    att_trace_free(w->trace);
    free(w->row);
    free(w->weights);
    return code;
}

static const char *label_of(const cli_recommender *m, const cli_item_texts *texts, int32_t item)
{
    const char *text = cli_item_texts_find(texts, m->items[item]);
    return text ? text : m->items[item];
}

int history_attention_draw(const cli_recommender *m, const cli_item_texts *texts, const char *path, const char *name,
                           int32_t best, const int32_t *items, int64_t n)
{
    char title[512];
    map w = {.m = m};
    if (n == 0)
        return cli_fail("--attention: \"%.64s\" has no item that the model knows, so there is nothing to draw", name);
    const char **labels = malloc((size_t)n * sizeof *labels), *to = best < 0 ? "" : label_of(m, texts, best);
    if (!labels)
        return cli_fail_memory();
    for (int64_t i = 0; i < n; i++)
        labels[i] = label_of(m, texts, items[i]);
    snprintf(title, sizeof title, "%.*s → %.*s", utf8_prefix(name, 120), name, utf8_prefix(to, 200), to);
    const int code = draw_history(&w, path, title, items, n, labels);
    free(labels);
    return code;
}
