#include "decoder/recurrent_decoder.h"
#include "util/shape.h"

#include <math.h>

/* ---- the layers */

static const att_init xavier = {.size = sizeof xavier, .kind = ATT_INIT_XAVIER_UNIFORM};

/* Returns whether the context is an input of the recurrent layers. */
static bool context_first(const att_recurrent_decoder *d) { return d->config.attention <= ATT_SEQ2SEQ_ADDITIVE; }

static void make_attention(att_recurrent_decoder *d, att_nn_params *p)
{
    const int64_t units = d->config.units, matrix[] = {1, units, units};
    if (d->config.attention == ATT_SEQ2SEQ_ADDITIVE) {
        d->query =
            att_nn_linear_new(p, "attention.query", units, units, ATT_OPTIONS(att_nn_linear_options, .no_bias = true));
        d->key =
            att_nn_linear_new(p, "attention.key", units, units, ATT_OPTIONS(att_nn_linear_options, .no_bias = true));
        d->score = att_nn_params_request(p, "attention", "score", 2, matrix, &xavier);
        d->gate = d->config.gate ? att_nn_linear_new(p, "attention.gate", units, 1, NULL) : NULL;
    }
    if (d->config.attention == ATT_SEQ2SEQ_GENERAL)
        d->score = att_nn_params_request(p, "attention", "score", 3, matrix, &xavier);
}

static void make_output(att_recurrent_decoder *d, att_nn_params *p)
{
    const att_recurrent_decoder_config *c = &d->config;
    const int64_t out = c->tie ? c->embedding : c->units, rows = c->vocabulary;
    d->readout = att_nn_linear_new(p, "readout", 2 * c->units, out, NULL);
    d->output.weight = c->table;
    if (!c->tie)
        d->output.weight = att_nn_params_request(p, "output", "weight", 2, (const int64_t[]){rows, out}, &xavier);
    d->output.bias = att_nn_params_request(p, "output", "bias", 1, &rows, NULL);
}

static att_status make_plan(const att_recurrent_decoder *d, int64_t more, att_plan **plan)
{
    const att_score *const scores[] = {[ATT_SEQ2SEQ_ADDITIVE] = att_score_additive,
                                       [ATT_SEQ2SEQ_DOT] = att_score_dot,
                                       [ATT_SEQ2SEQ_GENERAL] = att_score_general};
    return att_plan_new(d->ctx,
                        ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = d->config.units,
                                    .value_dim = d->config.units + more, .score = scores[d->config.attention],
                                    .scale = 1),
                        plan);
}

/* Makes the attention plans. The weights are read with attention whose values are an identity matrix: its results are
 * its weights. */
static att_status make_plans(att_recurrent_decoder *d)
{
    const int64_t locations = d->config.locations;
    if (d->config.attention == ATT_SEQ2SEQ_NONE)
        return ATT_OK;
    att_status e = make_plan(d, 0, &d->plan);
    if (e || locations == 0)
        return e;
    d->identity = att_calloc(d->ctx, (size_t)(locations * locations), sizeof *d->identity);
    for (int64_t i = 0; d->identity && i < locations; i++)
        d->identity[i * locations + i] = 1;
    return d->identity ? make_plan(d, locations, &d->weights) : ATT_ERR_MEMORY;
}

att_status att_recurrent_decoder_build(att_recurrent_decoder *d, att_model *m, const att_recurrent_decoder_config *c)
{
    att_nn_params *p = m->params;
    *d = (att_recurrent_decoder){.config = *c, .ctx = m->ctx};
    for (int64_t i = 0; i < c->layers; i++)
        d->bridge[i] = att_nn_linear_new(p, att_nn_number("bridge", i).text, c->units, c->units, NULL);
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
    return make_plans(d);
}

void att_recurrent_decoder_clean(att_recurrent_decoder *d)
{
    att_plan_free(d->plan);
    att_plan_free(d->weights);
    att_free(d->ctx, d->identity);
}

void att_recurrent_decoder_trace(const att_recurrent_decoder *d, int64_t first_key, att_trace_pass *pass)
{
    static const char *const scores[] = {
        [ATT_SEQ2SEQ_ADDITIVE] = "additive", [ATT_SEQ2SEQ_DOT] = "dot", [ATT_SEQ2SEQ_GENERAL] = "general"};
    if (d->config.attention == ATT_SEQ2SEQ_NONE)
        return;
    pass->part[pass->parts++] = (att_trace_part){.side = ATT_TRACE_SIDE_CROSS,
                                                 .layers = 1,
                                                 .heads = 1,
                                                 .head_dim = d->config.units,
                                                 .queries = pass->info.target,
                                                 .keys = pass->info.source - first_key,
                                                 .first_key = first_key,
                                                 .params = d->score ? att_elements(att_param_value(d->score)) : 0,
                                                 .score = scores[d->config.attention],
                                                 .scope = ATT_RECURRENT_ATTENTION};
}

/* ---- the sources */

static att_var *one_head(att_tape *t, att_var *x) { return att_split_heads(t, x, 1); }

att_decoder_memory att_recurrent_decoder_memory(att_tape *t, const att_recurrent_decoder *d, att_var *h,
                                                const int64_t *offsets, int64_t n, const att_recurrent_state *last)
{
    att_decoder_memory y = {.n = n, .offsets = offsets, .context = last[d->config.layers - 1].hidden};
    for (int64_t i = 0; i < d->config.layers; i++) {
        y.first[i].hidden = att_nn_linear_apply(t, d->bridge[i], last[i].hidden, ATT_ACTIVATION_TANH, NULL);
        y.first[i].cell = last[i].cell;
    }
    if (d->plan)
        y.values = y.keys = one_head(t, h);
    if (d->key)
        y.keys = one_head(t, att_nn_linear_apply(t, d->key, h, ATT_ACTIVATION_IDENTITY, NULL));
    if (d->score)
        y.score = att_parameter(t, d->score);
    return y;
}

/* Appends an identity matrix to the values of each source. */
static att_var *widen(att_tape *t, const att_recurrent_decoder *d, const att_decoder_memory *source)
{
    const int64_t locations = d->config.locations, rows = source->n * locations;
    att_tensor v;
    int32_t *row = att_alloc(d->ctx, (size_t)rows, sizeof *row);
    if (!row)
        return att_tape_fail(t, ATT_ERR_MEMORY, "%s", att_error(d->ctx));
    for (int64_t i = 0; i < rows; i++)
        row[i] = (int32_t)(i % locations);
    att_wrap(&v, d->identity, ATT_F32, 2, (const int64_t[]){locations, locations}, NULL);
    att_var *one = att_gather(t, att_constant(t, &v), row, rows);
    att_free(d->ctx, row);
    return one_head(t, att_concat(t, 2, (att_var *[]){att_merge_heads(t, source->values), one}, 1));
}

/* ---- some tokens */

att_var *att_recurrent_decoder_embed(att_tape *t, const att_recurrent_decoder *d, const int32_t *ids, int64_t tokens,
                                     const att_nn_dropout *dropout)
{
    att_scope s = att_scope_begin(t, "decoder/embeddings");
    att_var *x = att_embedding(t, d->config.table, ids, tokens);
    x = d->config.scale_embedding ? att_scale(t, x, sqrtf((float)d->config.embedding)) : x;
    return att_scope_end(t, s, att_nn_dropout_apply(t, dropout, ATT_DECODER_TARGET, x, NULL));
}

/* Computes c = sum_j softmax(score(query, h_j))_j h_j, [tokens, units], and the weights if they are requested. */
static att_var *attend(att_tape *t, const att_recurrent_decoder *d, const att_decoder_memory *source,
                       const att_decoder_targets *x, att_var *query)
{
    const att_attention_args args = {
        .size = sizeof args, .n_sequences = source->n, .q_offsets = x->of_source, .k_offsets = source->offsets};
    const att_attend_params params = {
        .size = sizeof params, .param = &source->score, .n_params = source->score != NULL};
    const att_scope s = att_scope_begin(t, ATT_RECURRENT_ATTENTION);
    att_var *c = att_attend(t, x->weights ? d->weights : d->plan, one_head(t, query), source->keys,
                            x->weights ? source->wide_values : source->values, &args, &params);
    c = att_merge_heads(t, att_scope_end(t, s, c));
    if (!x->weights)
        return c;
    *x->weights = att_slice(t, c, 1, d->config.units, d->config.locations);
    return att_slice(t, c, 1, 0, d->config.units);
}

/* Computes the context of additive attention, whose query is the state before the token. */
static att_var *attend_before(att_tape *t, const att_recurrent_decoder *d, const att_decoder_memory *source,
                              const att_decoder_targets *x, att_var *state)
{
    att_var *c = attend(t, d, source, x, att_nn_linear_apply(t, d->query, state, ATT_ACTIVATION_IDENTITY, NULL));
    return d->gate ? att_mul(t, c, att_nn_linear_apply(t, d->gate, state, ATT_ACTIVATION_SIGMOID, NULL)) : c;
}

att_var *att_recurrent_decoder_decode(att_tape *t, const att_recurrent_decoder *d, const att_decoder_memory *source,
                                      const att_decoder_targets *x, att_var *y, att_recurrent_state *state)
{
    att_var *c = NULL;
    if (!d->plan)
        c = att_gather(t, source->context, x->sources, x->offsets[x->rows]);
    else if (context_first(d))
        c = attend_before(t, d, source, x, state[d->config.layers - 1].hidden);
    if (c)
        y = att_concat(t, 2, (att_var *[]){y, c}, 1);
    att_var *s = att_nn_recurrent_apply(t, d->recurrent, y, x->offsets, x->rows, state, state, x->dropout);
    if (!context_first(d))
        c = attend(t, d, source, x, s);
    return att_nn_linear_apply(t, d->readout, att_concat(t, 2, (att_var *[]){c, s}, 1), ATT_ACTIVATION_TANH, NULL);
}

/* ---- training, with teacher forcing */

/* The rows of one time step. */
typedef struct steps {
    const att_decoder_teacher *x;
    int64_t targets, sources;
    const int64_t *targets_of; /* [sources + 1] */
    int64_t *one_each;         /* [targets + 1]: 0, 1, 2 ...; allocated together with the next two */
    int64_t *of_source;        /* [sources + 1] */
    int64_t *position;         /* [targets]: the position of each row */
    uint32_t *id;              /* [targets]: of each row's target, for dropout */
    int32_t *source;           /* [tokens]: of each token; allocated together with the next ones */
    int32_t *order;            /* [tokens]: index of each target token in the results of all steps, concatenated */
    int32_t *token;            /* [targets]: target token of each row */
    int32_t *still, *at;       /* [targets]: the index of each row in the previous step; the row of each target */
    att_var **results;         /* [tokens]: of each step; there are at most `tokens` steps */
    att_var **weights;         /* [tokens]: of each step */
} steps;

static void steps_free(att_ctx *ctx, steps *s)
{
    att_free(ctx, s->one_each);
    att_free(ctx, s->id);
    att_free(ctx, s->source);
    att_free(ctx, s->results);
}

static bool steps_alloc(att_tape *t, att_ctx *ctx, int64_t tokens, steps *s)
{
    const size_t targets = (size_t)s->targets, n = (size_t)tokens;
    s->one_each = att_alloc(ctx, 2 * targets + (size_t)s->sources + 2, sizeof *s->one_each);
    s->id = att_alloc(ctx, targets, sizeof *s->id);
    s->source = att_alloc(ctx, 2 * n + 3 * targets, sizeof *s->source);
    s->results = att_alloc(ctx, 2 * n, sizeof(att_var *));
    if (!s->one_each || !s->id || !s->source || !s->results)
        return att_tape_fail(t, ATT_ERR_MEMORY, "%s", att_error(ctx));
    s->of_source = s->one_each + targets + 1;
    s->position = s->of_source + s->sources + 1;
    s->order = s->source + n;
    s->token = s->order + n;
    s->still = s->token + targets;
    s->at = s->still + targets;
    s->weights = s->results + n;
    return true;
}

static bool steps_new(att_tape *t, att_ctx *ctx, int64_t sources, const att_decoder_teacher *x, steps *s)
{
    const int64_t n = x->dropout->at->n, *offsets = x->dropout->at->offsets;
    *s = (steps){.x = x, .targets = n, .sources = sources};
    if (!x->of_source && n != sources)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "decoder: %lld targets of %lld sources", (long long)n,
                             (long long)sources);
    if (!steps_alloc(t, ctx, offsets[n], s))
        return false;
    for (int64_t i = 0; i <= n; i++)
        s->one_each[i] = i;
    s->targets_of = x->of_source ? x->of_source : s->one_each;
    for (int64_t b = 0; b < sources; b++)
        for (int64_t j = offsets[s->targets_of[b]]; j < offsets[s->targets_of[b + 1]]; j++)
            s->source[j] = (int32_t)b;
    return true;
}

/* Sets the initial states of targets to those of their sources: state [layers]. */
static void first_states(att_tape *t, const att_recurrent_decoder *d, const att_decoder_memory *source, steps *s,
                         att_recurrent_state *state)
{
    for (int64_t b = 0; b < s->sources; b++)
        for (int64_t k = s->targets_of[b]; k < s->targets_of[b + 1]; k++) {
            s->at[k] = (int32_t)k;
            s->still[k] = (int32_t)b;
        }
    for (int64_t i = 0; i < d->config.layers; i++) {
        state[i] = source->first[i];
        if (s->x->of_source) {
            state[i].hidden = att_gather(t, state[i].hidden, s->still, s->targets);
            state[i].cell = att_gather(t, state[i].cell, s->still, s->targets);
        }
    }
}

/* Adds a row for target k if it has a token i; `done` tokens were processed before, `rows` in this step. */
static bool add_row(steps *s, int64_t k, int64_t i, int64_t done, int64_t rows)
{
    const att_nn_dropout *dropout = s->x->dropout;
    const int64_t token = dropout->at->offsets[k] + i;
    if (token >= dropout->at->offsets[k + 1])
        return false;
    s->token[rows] = (int32_t)token;
    s->still[rows] = s->at[k];
    s->at[k] = (int32_t)rows;
    s->position[rows] = i;
    s->id[rows] = dropout->sequence_ids ? dropout->sequence_ids[k] : 0;
    s->order[token] = (int32_t)(done + rows);
    return true;
}

/* Makes the rows of step i: the targets that have a token i. Returns their number. */
static int64_t next_step(steps *s, int64_t i, int64_t done)
{
    int64_t rows = 0;
    for (int64_t b = 0; b < s->sources; b++) {
        s->of_source[b] = rows;
        for (int64_t k = s->targets_of[b]; k < s->targets_of[b + 1]; k++)
            rows += add_row(s, k, i, done, rows);
    }
    s->of_source[s->sources] = rows;
    return rows;
}

/* Decodes step by step, because the query of a token is the state before it. */
static att_var *decode_in_steps(att_tape *t, const att_recurrent_decoder *d, const att_decoder_memory *source, steps *s,
                                att_var *y, att_recurrent_state *state)
{
    const att_nn_dropout *dropout = s->x->dropout;
    int64_t rows, before = s->targets, done = 0, i = 0;
    for (; (rows = next_step(s, i, done)) > 0; i++) {
        for (int64_t k = 0; rows < before && k < d->config.layers; k++) {
            state[k].hidden = att_gather(t, state[k].hidden, s->still, rows);
            state[k].cell = att_gather(t, state[k].cell, s->still, rows);
        }
        const att_positions at = {.size = sizeof at, .offsets = s->one_each, .n = rows, .starts = s->position};
        const att_nn_dropout step_dropout = {sizeof step_dropout, dropout->p, dropout->seed, &at, s->id};
        const att_decoder_targets x = {.rows = rows,
                                       .offsets = s->one_each,
                                       .of_source = s->of_source,
                                       .sources = s->source,
                                       .dropout = &step_dropout,
                                       .weights = s->x->weights ? &s->weights[i] : NULL};
        s->results[i] = att_recurrent_decoder_decode(t, d, source, &x, att_gather(t, y, s->token, rows), state);
        if (!s->results[i])
            return NULL;
        done += rows;
        before = rows;
    }
    if (s->x->weights)
        *s->x->weights = att_gather(t, att_concat(t, (int)i, s->weights, 0), s->order, done);
    return att_gather(t, att_concat(t, (int)i, s->results, 0), s->order, done);
}

/* Computes all tokens at once. The tokens of a source are consecutive rows. */
static att_var *decode_together(att_tape *t, const att_recurrent_decoder *d, const att_decoder_memory *source, steps *s,
                                att_var *y, att_recurrent_state *state)
{
    const int64_t *offsets = s->x->dropout->at->offsets;
    for (int64_t b = 0; b <= s->sources; b++)
        s->of_source[b] = offsets[s->targets_of[b]];
    const att_decoder_targets all = {.rows = s->targets,
                                     .offsets = offsets,
                                     .of_source = s->of_source,
                                     .sources = s->source,
                                     .dropout = s->x->dropout};
    return att_recurrent_decoder_decode(t, d, source, &all, y, state);
}

att_var *att_recurrent_decoder_apply(att_tape *t, const att_recurrent_decoder *d, const att_decoder_memory *source,
                                     const att_decoder_teacher *x)
{
    att_decoder_memory from = *source;
    att_recurrent_state state[ATT_NN_MAX_RECURRENT];
    steps s = {0};
    att_var *h = NULL;
    att_var *y = att_recurrent_decoder_embed(t, d, x->inputs, x->dropout->at->offsets[x->dropout->at->n], x->dropout);
    from.wide_values = y && x->weights ? widen(t, d, source) : NULL;
    if (y && steps_new(t, d->ctx, source->n, x, &s)) {
        first_states(t, d, source, &s, state);
        h = (d->config.attention == ATT_SEQ2SEQ_ADDITIVE ? decode_in_steps : decode_together)(t, d, &from, &s, y,
                                                                                              state);
    }
    steps_free(d->ctx, &s);
    return att_nn_dropout_apply(t, x->dropout, ATT_DECODER_READOUT, h, NULL);
}
