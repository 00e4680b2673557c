#include "decoder/transformer_decoder.h"
#include "attend_util.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

att_var *att_transformer_embed(att_tape *t, const att_transformer_decoder *d, att_param *table, const int32_t *ids,
                               int64_t tokens, const att_positions *at, const att_nn_dropout *dropout,
                               uint64_t dropout_id)
{
    att_scope s = att_scope_begin(t, "embeddings");
    att_var *x = att_embedding(t, table, ids, tokens);
    if (d->scale_embedding)
        x = att_scale(t, x, sqrtf((float)d->hidden));
    x = att_sinusoidal(t, x, at, NULL);
    return att_scope_end(t, s, att_nn_dropout_apply(t, dropout, dropout_id, x, NULL));
}

att_var *att_transformer_decoder_apply(att_tape *t, const att_transformer_decoder *d,
                                       const att_transformer_memory *source, const int32_t *ids, const int64_t *offsets,
                                       int64_t n, const int64_t *of_source, const att_nn_dropout *dropout)
{
    if (!att_sequences_fit(t, "target", ids, offsets, n, d->max_positions))
        return NULL;
    const att_attention_args args = {.size = sizeof args, .n_sequences = n, .q_offsets = offsets};
    const att_attention_args cross = {.size = sizeof cross,
                                      .n_sequences = source->n,
                                      .q_offsets = of_source ? of_source : offsets,
                                      .k_offsets = source->offsets};
    const att_nn_layer_call call = {
        .size = sizeof call, .args = &args, .source = source->rows, .cross = &cross, .dropout = dropout};
    const att_positions at = {.size = sizeof at, .offsets = offsets, .n = n};
    att_scope s = att_scope_begin(t, "decoder");
    att_var *x = att_transformer_embed(t, d, d->table, ids, offsets[n], &at, dropout, 2);
    for (int64_t i = 0; i < d->layers; i++) {
        att_scope layer = att_scope_begin(t, att_nn_number("layer", i).text);
        x = att_scope_end(t, layer, att_nn_decoder_layer_apply(t, d->layer[i], x, &call));
        x = att_scope_reset(t, s, x);
    }
    return att_scope_end(t, s, x);
}

void att_transformer_decoder_trace(const att_transformer_decoder *d, int64_t first_key, att_trace_pass *pass)
{
    const att_trace_part self = {.side = ATT_TRACE_SIDE_DECODER,
                                 .layers = d->layers,
                                 .heads = d->heads,
                                 .head_dim = d->hidden / d->heads,
                                 .queries = pass->info.target,
                                 .keys = pass->info.target,
                                 .causal = true,
                                 .hidden = d->hidden};
    att_trace_part *cross = &pass->part[pass->parts + 1];
    pass->part[pass->parts] = *cross = self;
    cross->side = ATT_TRACE_SIDE_CROSS;
    cross->keys = pass->info.source - first_key;
    cross->first_key = first_key;
    cross->causal = false;
    cross->hidden = 0;
    pass->parts += 2;
}

/* ---- incremental decoding */

/* The state of decoding. A row is one hypothesis; the rows of a sentence are adjacent and share its encoded source. */
typedef struct decoding {
    const att_transformer_decoder *decoder;
    int64_t rows, length;
    int64_t rows_per_source; /* rows per sequence in memory */
    att_cache **memory;      /* [layers]: keys and values of the sources, which are rows / rows_per_source sequences */
    att_cache **cache;       /* [layers] keys and values of the rows */
} decoding;

static void free_decoding(void *user)
{
    decoding *s = user;
    att_ctx *ctx = s->decoder->ctx;
    for (int64_t i = 0; s->memory && s->cache && i < s->decoder->layers; i++) {
        att_cache_free(s->memory[i]);
        att_cache_free(s->cache[i]);
    }
    att_free(ctx, s->memory);
    att_free(ctx, s->cache);
    att_free(ctx, s);
}

/* Projects the sources for all layers. */
static att_status project_source(decoding *s, att_tape *t, const att_transformer_memory *source)
{
    att_status e = ATT_OK;
    att_scope scope = att_scope_begin(t, "decoder");
    for (int64_t i = 0; !e && i < s->decoder->layers; i++) {
        att_scope layer = att_scope_begin(t, att_nn_number("layer", i).text);
        const att_nn_decoder_layer *l = s->decoder->layer[i];
        e = att_cache_new(l->attention->plan, s->rows, &s->cache[i]);
        e = e ? e : att_cache_new(l->cross->plan, s->rows, &s->memory[i]);
        e = e ? e : att_nn_attention_cache_source(t, l->cross, source->rows, source->offsets, s->memory[i]);
        att_scope_end(t, layer, NULL);
    }
    att_scope_end(t, scope, NULL);
    return e;
}

/* Appends ids to the rows. Returns the input of the output layer. */
static att_var *advance(void *user, att_tape *t, const int32_t *ids)
{
    decoding *s = user;
    const att_transformer_decoder *d = s->decoder;
    int64_t *each = att_alloc(d->ctx, (size_t)s->rows, sizeof *each);
    if (!each)
        return att_tape_fail(t, ATT_ERR_MEMORY, "%s", att_error(d->ctx));
    for (int64_t b = 0; b < s->rows; b++)
        each[b] = s->length;
    const att_positions at = {.size = sizeof at, .position_ids = each};
    att_scope scope = att_scope_begin(t, "decoder");
    att_var *x = att_transformer_embed(t, d, d->table, ids, s->rows, &at, NULL, 2);
    for (int64_t i = 0; i < d->layers; i++) {
        const att_nn_layer_call call = {.size = sizeof call, .cache = s->cache[i], .memory = s->memory[i]};
        att_scope layer = att_scope_begin(t, att_nn_number("layer", i).text);
        x = att_scope_end(t, layer, att_nn_decoder_layer_apply(t, d->layer[i], x, &call));
        x = att_scope_reset(t, scope, x);
    }
    att_free(d->ctx, each);
    s->length++;
    return att_scope_end(t, scope, x);
}

/* Groups adjacent rows with the same source if all such groups have the same size; otherwise each row is a group.
 * Replaces source [n], the memory sequence of each row, by that of each group. Returns the group size. */
static int64_t group_rows(int64_t n, int64_t *source)
{
    int64_t rows_per_source = 0;
    for (int64_t first = 0, last; first < n; first = last) {
        for (last = first; last < n && source[last] == source[first];)
            last++;
        rows_per_source = rows_per_source == 0 || rows_per_source == last - first ? last - first : 1;
    }
    for (int64_t i = 0; i < n / rows_per_source; i++)
        source[i] = source[i * rows_per_source];
    return rows_per_source;
}

static att_status select_rows(void *user, int64_t n, const int64_t *from)
{
    decoding *s = user;
    att_ctx *ctx = s->decoder->ctx;
    const int64_t layers = s->decoder->layers;
    int64_t *source = att_alloc(ctx, (size_t)n, sizeof *source);
    if (!source)
        return ATT_ERR_MEMORY;
    for (int64_t b = 0; b < n; b++)
        source[b] = from[b] / s->rows_per_source;
    s->rows_per_source = group_rows(n, source);
    s->rows = n;
    att_status e = ATT_OK;
    for (int64_t i = 0; !e && i < layers; i++) {
        e = att_cache_select(s->cache[i], n, from);
        e = e ? e : att_cache_select(s->memory[i], n / s->rows_per_source, source);
    }
    att_free(ctx, source);
    return e;
}

att_status att_transformer_decoder_start(att_tape *t, const att_transformer_decoder *d,
                                         const att_transformer_memory *source, att_generator *out)
{
    const size_t layers = (size_t)d->layers;
    *out = (att_generator){0};
    decoding *s = att_alloc(d->ctx, 1, sizeof *s);
    if (!s)
        return ATT_ERR_MEMORY;
    *s = (decoding){.decoder = d,
                    .rows = source->n,
                    .rows_per_source = 1,
                    .memory = att_calloc(d->ctx, layers, sizeof(att_cache *)),
                    .cache = att_calloc(d->ctx, layers, sizeof(att_cache *))};
    const att_status e = s->memory && s->cache ? project_source(s, t, source) : ATT_ERR_MEMORY;
    if (e)
        free_decoding(s);
    else
        *out = (att_generator){
            .user = s, .step = advance, .output = &d->output, .select = select_rows, .free = free_decoding};
    return e;
}
