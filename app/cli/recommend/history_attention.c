#include "history_attention.h"
#include "cli/draw/heatmap.h"
#include "cli/draw/picture.h"

#include <stdlib.h>

enum { MAX_COLUMNS = 64, NAME = 64 };

typedef struct map {
    int64_t n, columns; /* items that count */
    float *column;      /* [all items]: weights of a column */
    float *weights;     /* [n, MAX_COLUMNS] at first, then [n, columns] */
    char names[MAX_COLUMNS][NAME];
} map;

static int add_column(map *w, const cli_recommender *m, const int32_t *items, int64_t n, int64_t layer, int64_t head)
{
    char *name = w->names[w->columns];
    const int code = cli_status(m->base.ctx, att_recommender_attention(m->model, n, items, layer, head, w->column));
    if (layer < 0)
        snprintf(name, NAME, "mean");
    else if (head < 0)
        snprintf(name, NAME, "layer %lld", (long long)layer);
    else
        snprintf(name, NAME, "layer %lld, head %lld", (long long)layer, (long long)head);
    for (int64_t i = 0; !code && i < w->n; i++)
        w->weights[i * MAX_COLUMNS + w->columns] = w->column[n - w->n + i];
    w->columns++;
    return code;
}

/* Heads only where all of them fit. */
static int add_columns(map *w, const cli_recommender *m, const int32_t *items, int64_t n)
{
    const int64_t layers = m->info.layers, heads = m->info.heads;
    const bool all = heads > 1 && heads < MAX_COLUMNS && layers < MAX_COLUMNS && 1 + layers * (1 + heads) < MAX_COLUMNS;
    int code = add_column(w, m, items, n, -1, -1);
    for (int64_t l = 0; !code && (layers > 1 || all) && l < layers && w->columns < MAX_COLUMNS; l++) {
        code = add_column(w, m, items, n, l, -1);
        for (int64_t h = 0; !code && all && h < heads; h++)
            code = add_column(w, m, items, n, l, h);
    }
    for (int64_t i = 0; i < w->n; i++)
        for (int64_t c = 0; c < w->columns; c++)
            w->weights[i * w->columns + c] = w->weights[i * MAX_COLUMNS + c];
    return code;
}

int history_attention_draw(const cli_recommender *m, const char *path, const char *title, const int32_t *items,
                           int64_t n, const char *const *labels)
{
    map w = {.n = n < m->info.max_positions ? n : m->info.max_positions};
    const char *columns[MAX_COLUMNS];
    picture file;
    w.column = malloc((size_t)n * sizeof *w.column);
    w.weights = malloc((size_t)w.n * MAX_COLUMNS * sizeof *w.weights);
    int code = w.column && w.weights ? add_columns(&w, m, items, n) : cli_fail_memory();
    for (int64_t c = 0; c < w.columns; c++)
        columns[c] = w.names[c];
    if (!code)
        code = picture_open(&file, path);
    if (!code) {
        const heatmap h = {labels + n - w.n,      columns,           w.n, w.columns, w.weights,
                           "item of the history", "attention to it", ""};
        heatmap_svg(file.svg, title, &h); /* an error stays with the file, which reports it */
        code = picture_close(&file, CLI_DONE);
    }
    free(w.column);
    free(w.weights);
    return code;
}
