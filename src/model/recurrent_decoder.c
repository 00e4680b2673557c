#include "model/recurrent_decoder.h"

#include <math.h>
#include <string.h>

/* ---- the layers */

static const att_init xavier = {.size = sizeof xavier, .kind = ATT_INIT_XAVIER_UNIFORM};

/* Is the context an input of the recurrent layers? */
static bool context_first(const att_recurrent_decoder *d) { return d->config.attention <= ATT_SEQ2SEQ_ADDITIVE; }

static void make_attention(att_recurrent_decoder *d, att_nn_params *p)
{
    const int64_t units = d->config.units, matrix[] = {1, units, units};
    if (d->config.attention == ATT_SEQ2SEQ_ADDITIVE) {
        d->query = att_nn_linear_new(p, "attention.query", units, units, false);
        d->key = att_nn_linear_new(p, "attention.key", units, units, false);
        d->score = att_nn_params_request(p, "attention", "score", 2, matrix, &xavier);
    }
    if (d->config.attention == ATT_SEQ2SEQ_GENERAL)
        d->score = att_nn_params_request(p, "attention", "score", 3, matrix, &xavier);
}

static void make_output(att_recurrent_decoder *d, att_nn_params *p)
{
    const att_recurrent_decoder_config *c = &d->config;
    const int64_t out = c->tie ? c->embedding : c->units, rows = c->vocabulary;
    d->readout = att_nn_linear_new(p, "readout", 2 * c->units, out, true);
    d->output.weight = c->table;
    if (!c->tie)
        d->output.weight = att_nn_params_request(p, "output", "weight", 2, (const int64_t[]){rows, out}, &xavier);
    d->output.bias = att_nn_params_request(p, "output", "bias", 1, &rows, NULL);
}

static att_status make_plan(att_recurrent_decoder *d)
{
    const att_score *const scores[] = {[ATT_SEQ2SEQ_ADDITIVE] = att_score_additive,
                                       [ATT_SEQ2SEQ_DOT] = att_score_dot,
                                       [ATT_SEQ2SEQ_GENERAL] = att_score_general};
    if (d->config.attention == ATT_SEQ2SEQ_NONE)
        return ATT_OK;
    return att_plan_new(d->ctx,
                        ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = d->config.units,
                                    .score = scores[d->config.attention], .scale = 1),
                        &d->plan);
}

att_status att_recurrent_decoder_build(att_recurrent_decoder *d, att_model *m, const att_recurrent_decoder_config *c)
{
    att_nn_params *p = m->params;
    *d = (att_recurrent_decoder){.config = *c, .ctx = m->ctx};
    for (int64_t i = 0; i < c->layers; i++)
        d->bridge[i] = att_nn_linear_new(p, att_nn_number("bridge", i).text, c->units, c->units, true);
    if (!c->table)
        d->config.table = att_model_embedding(m, "target", c->vocabulary, c->embedding, c->pad);
    const att_nn_recurrent_config layers = {.size = sizeof layers,
                                            .in = c->embedding + (context_first(d) ? c->units : 0),
                                            .units = c->units,
                                            .layers = c->layers,
                                            .lstm = c->lstm};
    d->recurrent = att_nn_recurrent_new(p, "decoder", &layers);
    make_attention(d, p);
    make_output(d, p);
    return make_plan(d);
}

void att_recurrent_decoder_clean(att_recurrent_decoder *d) { att_plan_free(d->plan); }

/* ---- the sources */

static att_var *one_head(att_tape *t, att_var *x) { return att_split_heads(t, x, 1); }

att_decoder_memory att_recurrent_decoder_memory(att_tape *t, const att_recurrent_decoder *d, att_var *h,
                                                const int64_t *offsets, int64_t n, const att_recurrent_state *last)
{
    att_decoder_memory y = {.n = n, .offsets = offsets, .context = last[d->config.layers - 1].hidden};
    for (int64_t i = 0; i < d->config.layers; i++) {
        y.first[i].hidden = att_nn_linear_apply(t, d->bridge[i], last[i].hidden, ATT_TANH, NULL);
        y.first[i].cell = last[i].cell;
    }
    if (d->plan)
        y.values = y.keys = one_head(t, h);
    if (d->key)
        y.keys = one_head(t, att_nn_linear_apply(t, d->key, h, ATT_IDENTITY, NULL));
    if (d->score)
        y.score = att_parameter(t, d->score);
    return y;
}

/* ---- some tokens */

att_var *att_recurrent_decoder_embed(att_tape *t, const att_recurrent_decoder *d, const int32_t *ids, int64_t tokens)
{
    att_var *x = att_embedding(t, d->config.table, ids, tokens);
    return d->config.scale_embedding ? att_scale(t, x, sqrtf((float)d->config.embedding)) : x;
}

/* c = sum_j softmax(score(query, h_j))_j h_j, [tokens, units] */
static att_var *attend(att_tape *t, const att_recurrent_decoder *d, const att_decoder_memory *source,
                       const att_decoder_targets *x, att_var *query)
{
    const att_attention_args args = {
        .size = sizeof args, .n_sequences = source->n, .q_offsets = x->of_source, .k_offsets = source->offsets};
    const att_attend_params params = {
        .size = sizeof params, .param = &source->score, .n_params = source->score != NULL};
    const att_scope s = att_scope_begin(t, ATT_RECURRENT_ATTENTION);
    att_var *c = att_attend(t, d->plan, one_head(t, query), source->keys, source->values, &args, &params);
    return att_merge_heads(t, att_scope_end(t, s, c));
}

att_var *att_recurrent_decoder_decode(att_tape *t, const att_recurrent_decoder *d, const att_decoder_memory *source,
                                      const att_decoder_targets *x, att_var *y, att_recurrent_state *state)
{
    att_var *c = NULL;
    if (!d->plan)
        c = att_gather(t, source->context, x->sources, x->offsets[x->rows]);
    else if (context_first(d))
        c = attend(t, d, source, x,
                   att_nn_linear_apply(t, d->query, state[d->config.layers - 1].hidden, ATT_IDENTITY, NULL));
    if (c)
        y = att_concat(t, 2, (att_var *[]){y, c}, 1);
    att_var *s = att_nn_recurrent_apply(t, d->recurrent, y, x->offsets, x->rows, state, state, x->dropout);
    if (!context_first(d))
        c = attend(t, d, source, x, s);
    return att_nn_linear_apply(t, d->readout, att_concat(t, 2, (att_var *[]){c, s}, 1), ATT_TANH, NULL);
}

/* ---- training, with teacher forcing */

/* The rows of each time step. */
typedef struct steps {
    int64_t *one_each;   /* [n + 1]: 0, 1, 2 ...; allocated together with the next two */
    int64_t *of_source;  /* [n + 1] */
    int64_t *position;   /* [n]: the position of each row */
    uint32_t *id;        /* [n]: of each row's target, for dropout */
    int32_t *sources;    /* [tokens]; allocated together with the next ones */
    int32_t *order;      /* [tokens]: index of each target token in the results of all steps, concatenated */
    int32_t *token;      /* [n]: target token of each row */
    int32_t *still, *at; /* [n]: of each row, its index in the previous step; of each target, its row */
    att_var **results;   /* [steps], at most tokens */
} steps;

static void steps_free(att_ctx *ctx, steps *s)
{
    att_free(ctx, s->one_each);
    att_free(ctx, s->id);
    att_free(ctx, s->sources);
    att_free(ctx, s->results);
}

static bool steps_new(att_tape *t, att_ctx *ctx, const int64_t *offsets, int64_t n, steps *s)
{
    const int64_t tokens = offsets[n];
    s->one_each = att_alloc(ctx, 3 * ((size_t)n + 1), sizeof *s->one_each);
    s->id = att_alloc(ctx, (size_t)n, sizeof *s->id);
    s->sources = att_alloc(ctx, 2 * (size_t)tokens + 3 * (size_t)n, sizeof *s->sources);
    s->results = att_alloc(ctx, (size_t)tokens, sizeof(att_var *));
    if (!s->one_each || !s->id || !s->sources || !s->results)
        return att_tape_fail(t, ATT_ERR_MEMORY, "%s", att_error(ctx));
    s->of_source = s->one_each + n + 1;
    s->position = s->of_source + n + 1;
    s->order = s->sources + tokens;
    s->token = s->order + tokens;
    s->still = s->token + n;
    s->at = s->still + n;
    s->one_each[n] = n;
    for (int64_t i = 0; i < n; i++) {
        s->one_each[i] = i;
        s->at[i] = (int32_t)i;
        for (int64_t j = offsets[i]; j < offsets[i + 1]; j++)
            s->sources[j] = (int32_t)i;
    }
    return true;
}

/* Rows of step i are the targets that have a token there; `done` tokens were processed before; ids [n] or NULL. Returns
 * the number of rows. */
static int64_t next_step(steps *s, const int64_t *offsets, const uint32_t *ids, int64_t n, int64_t i, int64_t done)
{
    int64_t rows = 0;
    for (int64_t k = 0; k < n; k++) {
        const int64_t token = offsets[k] + i;
        s->of_source[k] = rows;
        if (token >= offsets[k + 1])
            continue;
        s->token[rows] = (int32_t)token;
        s->still[rows] = s->at[k];
        s->at[k] = (int32_t)rows;
        s->position[rows] = i;
        s->id[rows] = ids ? ids[k] : 0;
        s->order[token] = (int32_t)(done + rows++);
    }
    s->of_source[n] = rows;
    return rows;
}

/* Step by step, since the query of a token is the state before it. */
static att_var *decode_in_steps(att_tape *t, const att_recurrent_decoder *d, const att_decoder_memory *source, steps *s,
                                att_var *y, const att_nn_dropout *dropout, att_recurrent_state *state)
{
    const int64_t n = dropout->at->n, *offsets = dropout->at->offsets;
    int64_t rows, before = n, done = 0, i = 0;
    for (; (rows = next_step(s, offsets, dropout->sequence_ids, n, i, done)) > 0; i++) {
        for (int64_t k = 0; rows < before && k < d->config.layers; k++) {
            state[k].hidden = att_gather(t, state[k].hidden, s->still, rows);
            state[k].cell = att_gather(t, state[k].cell, s->still, rows);
        }
        const att_positions at = {.size = sizeof at, .offsets = s->one_each, .n = rows, .starts = s->position};
        const att_nn_dropout step_dropout = {sizeof step_dropout, dropout->p, dropout->seed, &at, s->id};
        const att_decoder_targets x = {
            .rows = rows, .offsets = s->one_each, .of_source = s->of_source, .dropout = &step_dropout};
        s->results[i] = att_recurrent_decoder_decode(t, d, source, &x, att_gather(t, y, s->token, rows), state);
        if (!s->results[i])
            return NULL;
        done += rows;
        before = rows;
    }
    return att_gather(t, att_concat(t, (int)i, s->results, 0), s->order, done);
}

att_var *att_recurrent_decoder_apply(att_tape *t, const att_recurrent_decoder *d, const int32_t *inputs,
                                     const att_decoder_memory *source, const att_nn_dropout *dropout)
{
    const int64_t n = dropout->at->n, *offsets = dropout->at->offsets;
    att_recurrent_state state[ATT_NN_MAX_RECURRENT];
    steps s = {0};
    att_var *h = NULL, *y = att_recurrent_decoder_embed(t, d, inputs, offsets[n]);
    y = att_nn_dropout_apply(t, dropout, ATT_DECODER_TARGET, y, NULL);
    memcpy(state, source->first, sizeof state);
    if (y && steps_new(t, d->ctx, offsets, n, &s)) {
        const att_decoder_targets all = {
            .rows = n, .offsets = offsets, .of_source = offsets, .sources = s.sources, .dropout = dropout};
        h = d->config.attention == ATT_SEQ2SEQ_ADDITIVE ? decode_in_steps(t, d, source, &s, y, dropout, state)
                                                        : att_recurrent_decoder_decode(t, d, source, &all, y, state);
    }
    steps_free(d->ctx, &s);
    return att_nn_dropout_apply(t, dropout, ATT_DECODER_READOUT, h, NULL);
}
