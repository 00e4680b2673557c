#include "vectors.h"
#include "cli/base/grow.h"
#include "cli/base/shard.h"

#include <stdlib.h>
#include <string.h>

int cli_item_vectors_open(cli_item_vectors *v, const cli_recommender *m, const char *path, int format,
                          const char *table, const char *key)
{
    *v = (cli_item_vectors){.m = m,
                            .file = {.format = format,
                                     .precision = ATT_PRECISION_FLOAT32,
                                     .dim = m->info.hidden,
                                     .similarity = ATT_SIMILARITY_DOT,
                                     .key = key,
                                     .table = table}};
    if (m->info.hidden == 0)
        return cli_fail("%s: %s has no vectors of items: it counts the actions of a log", m->base.name, m->info.type);
    if (format == CLI_VECTORS_SQLITE)
        return cli_misuse("--vector-format sqlite-vec does not compare by dot products, which the scores are");
    v->row = calloc((size_t)m->info.hidden, sizeof *v->row);
    int code = v->row ? cli_output_open(&v->out, path) : cli_fail_memory();
    return code ? code : cli_vector_file_begin(&v->file, v->out.file);
}

/* Adds a row. x NULL: zeros. */
static int add_row(cli_item_vectors *v, const char *name, const float *x)
{
    bool any = false;
    for (int64_t i = 0; x && !any && i < v->file.dim; i++)
        any = x[i] < 0 || x[i] > 0;
    v->without += !any;
    return cli_vector_file_add(
        &v->file,
        &(cli_embedded){.text = name, .bytes = strlen(name), .number = v->before + ++v->rows, .codes = x ? x : v->row});
}

/* Allocates memory for n vectors. */
static int need(cli_item_vectors *v, int64_t n)
{
    return cli_reserve(&v->room, (size_t)n, &(cli_array){&v->x, (size_t)v->file.dim * sizeof *v->x}, 1)
               ? CLI_DONE
               : cli_fail_memory();
}

int cli_item_vectors_add_items(cli_item_vectors *v)
{
    const cli_recommender *m = v->m;
    int code = need(v, m->info.items);
    if (!code)
        code = cli_status(m->base.ctx, att_recommender_vectors(m->model, v->x));
    const cli_range r = cli_shard_of(m->info.items);
    v->before = r.first;
    for (int64_t i = r.first; !code && i < r.end; i++)
        code = add_row(v, m->items[i], v->x + i * v->file.dim);
    return code;
}

int cli_item_vectors_add_histories(cli_item_vectors *v, const cli_histories *h, const char *const *names)
{
    const cli_recommender *m = v->m;
    int64_t *offsets = malloc(((size_t)h->n + 1) * sizeof *offsets); /* of histories with an item */
    int64_t n = 0;
    int code = offsets ? need(v, h->n) : cli_fail_memory();
    for (int64_t i = 0; !code && i <= h->n; i++)
        if (i == 0 || h->offsets[i] > h->offsets[i - 1])
            offsets[n++] = h->offsets[i];
    if (!code && n > 1)
        code = cli_status(m->base.ctx, att_recommender_embed(m->model, n - 1, h->items, offsets, NULL, v->x));
    free(offsets);
    for (int64_t i = 0, row = 0; !code && i < h->n; i++) {
        const bool empty = h->offsets[i] == h->offsets[i + 1];
        code = add_row(v, names[i], empty ? NULL : v->x + row * v->file.dim);
        row += !empty;
    }
    return code;
}

void cli_item_vectors_report(const cli_item_vectors *v, const char *path, bool items)
{
    const long long n = v->without, rows = v->rows;
    const char *have = n == 1 ? "has" : "have";
    if (n > 0 && items)
        cli_note("%s: %lld of %lld items %s no vector, having had neither a text nor an action in training: zeros",
                 path, n, rows, have);
    else if (n > 0)
        cli_note("%s: %lld of %lld histories %s no item that the model knows: zeros", path, n, rows, have);
}

int cli_item_vectors_close(cli_item_vectors *v, int code)
{
    if (v->file.file)
        code = cli_vector_file_end(&v->file, code);
    if (v->out.file)
        code = cli_output_close(&v->out, code);
    free(v->row);
    free(v->x);
    return code;
}
