/* Recurrent encoder-decoder: with a fixed context (Cho et al. 2014), with additive attention (Bahdanau et al. 2015),
 * with dot or general attention (Luong et al. 2015).
 *
 * The encoder's outputs h_j are keys and values of the attention. Its last states, after a layer tanh(W h), are the
 * decoder's initial states.
 *
 * none      c is the encoder's last state, for all tokens;      s_i = RNN(s_i-1, [y_i-1; c])
 * additive  e_ij = v . tanh(W s_i-1 + U h_j), c_i = sum_j softmax(e_i)_j h_j;   s_i = RNN(s_i-1, [y_i-1; c_i])
 * dot       s_i = RNN(s_i-1, y_i-1); e_ij = s_i . h_j, c_i likewise
 * general   the same with e_ij = s_i . W h_j
 *
 * Logits are W_o tanh(W_c [c_i; s_i]) in all four: Luong's attentional vector, also in place of Bahdanau's maxout
 * layer. There is no input feeding (Luong), so all but the additive one process all target tokens at once in
 * training. */
#include "model/seq2seq.h"
#include "model/seq2seq_config.h"

#include <math.h>

/* The scope of the attention to the source */
#define ATTENTION "attention"

/* ---- open */

/* Is the context an input of the decoder's layers? */
static bool context_first(const att_seq2seq_config *c) { return c->attention <= ATT_SEQ2SEQ_ADDITIVE; }

static const att_init xavier = {.size = sizeof xavier, .kind = ATT_INIT_XAVIER_UNIFORM};

static void make_attention(att_seq2seq *m, att_nn_params *p)
{
    const int64_t units = m->config.units, matrix[] = {1, units, units};
    if (m->config.attention == ATT_SEQ2SEQ_ADDITIVE) {
        m->query = att_nn_linear_new(p, "attention.query", units, units, false);
        m->key = att_nn_linear_new(p, "attention.key", units, units, false);
        m->score = att_nn_params_request(p, "attention", "score", 2, matrix, &xavier);
    }
    if (m->config.attention == ATT_SEQ2SEQ_GENERAL)
        m->score = att_nn_params_request(p, "attention", "score", 3, matrix, &xavier);
}

static void make_layers(att_seq2seq *m, att_nn_params *p)
{
    const att_seq2seq_config *c = &m->config;
    att_nn_recurrent_config layers = {.size = sizeof layers,
                                      .in = c->embedding,
                                      .units = c->bidirectional ? c->units / 2 : c->units,
                                      .layers = c->layers,
                                      .bidirectional = c->bidirectional,
                                      .lstm = c->lstm};
    att_model *base = &m->base.model;
    m->source = att_model_embedding(base, c->share ? "shared" : "source", c->source_vocabulary, c->embedding, c->pad);
    m->encoder = att_nn_recurrent_new(p, "encoder", &layers);
    for (int64_t i = 0; i < c->layers; i++)
        m->bridge[i] = att_nn_linear_new(p, att_nn_number("bridge", i).text, c->units, c->units, true);
    layers.in = c->embedding + (context_first(c) ? c->units : 0);
    layers.units = c->units;
    layers.bidirectional = false;
    m->target = c->share ? m->source : att_model_embedding(base, "target", c->target_vocabulary, c->embedding, c->pad);
    m->decoder = att_nn_recurrent_new(p, "decoder", &layers);
    make_attention(m, p);
    const int64_t out = c->tie ? c->embedding : c->units, rows = c->target_vocabulary;
    m->readout = att_nn_linear_new(p, "readout", 2 * c->units, out, true);
    m->output.weight = m->target;
    if (!c->tie)
        m->output.weight = att_nn_params_request(p, "output", "weight", 2, (const int64_t[]){rows, out}, &xavier);
    m->output.bias = att_nn_params_request(p, "output", "bias", 1, &rows, NULL);
}

static att_status make_plan(att_seq2seq *m)
{
    const att_score *const scores[] = {[ATT_SEQ2SEQ_ADDITIVE] = att_score_additive,
                                       [ATT_SEQ2SEQ_DOT] = att_score_dot,
                                       [ATT_SEQ2SEQ_GENERAL] = att_score_general};
    if (m->config.attention == ATT_SEQ2SEQ_NONE)
        return ATT_OK;
    return att_plan_new(m->base.model.ctx,
                        ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = m->config.units,
                                    .score = scores[m->config.attention], .scale = 1),
                        &m->plan);
}

static att_status build(att_model *base)
{
    att_seq2seq *m = (att_seq2seq *)base;
    make_layers(m, base->params);
    return make_plan(m);
}

static att_encoder_decoder_info info_of(const att_seq2seq_config *c)
{
    const int attends = c->attention != ATT_SEQ2SEQ_NONE;
    return (att_encoder_decoder_info){.architecture = att_seq2seq_architecture.name,
                                      .source_vocabulary = c->source_vocabulary,
                                      .target_vocabulary = c->target_vocabulary,
                                      .max_positions = c->max_positions,
                                      .attention_layers = attends,
                                      .attention_heads = attends,
                                      .pad = c->pad,
                                      .eos = c->eos,
                                      .start = c->start};
}

static void configure(att_model *base, att_settings *s)
{
    att_seq2seq *m = (att_seq2seq *)base;
    m->config.size = sizeof m->config;
    att_seq2seq_config_read(s, &m->config);
    m->base.info = info_of(&m->config);
}

static void free_seq2seq(att_model *base) { att_plan_free(((att_seq2seq *)base)->plan); }

att_status att_seq2seq_open(att_ctx *ctx, const char *folder, att_seq2seq **out)
{
    return att_model_open(ctx, __func__, &att_seq2seq_architecture.kind, folder, false, out);
}

att_status att_seq2seq_open_for_training(att_ctx *ctx, const char *folder, att_seq2seq **out)
{
    return att_model_open(ctx, __func__, &att_seq2seq_architecture.kind, folder, true, out);
}

att_status att_seq2seq_new(att_ctx *ctx, const att_seq2seq_config *config, uint64_t seed, att_seq2seq **out)
{
    att_settings s;
    att_seq2seq_config c;
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"config", config}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_status e = att_take_options(&c, sizeof c, config, "att_seq2seq_config");
    if (!e && (unsigned)c.attention > ATT_SEQ2SEQ_GENERAL)
        e = att_fail(ctx, ATT_ERR_ARGUMENT, "seq2seq: %d is no attention", (int)c.attention);
    if (e)
        return e;
    att_settings_from_json(&s, ctx, "seq2seq", att_seq2seq_config_json(&c));
    e = att_model_new(ctx, &att_seq2seq_architecture.kind, &s, seed, out);
    att_settings_close(&s);
    return e;
}

void att_seq2seq_free(att_seq2seq *m) { att_model_free(m); }

att_status att_seq2seq_describe(const att_seq2seq *m, att_seq2seq_config *config)
{
    if (att_require(__func__, ATT_NAMED({"m", m}, {"config", config})))
        return ATT_ERR_ARGUMENT;
    return att_give_info(config, &m->config, sizeof m->config, "att_seq2seq_config");
}

/* ---- encoder */

/* Dropout layers besides those between recurrent layers */
typedef enum dropout_layer { OF_SOURCE = 1, OF_TARGET, OF_OUTPUTS, OF_READOUT } dropout_layer;

att_var *att_seq2seq_embed(att_tape *t, const att_seq2seq *m, att_param *table, const int32_t *ids, int64_t tokens)
{
    att_var *x = att_embedding(t, table, ids, tokens);
    return m->config.scale_embedding ? att_scale(t, x, sqrtf((float)m->config.embedding)) : x;
}

static bool check(att_tape *t, const char *what, const int32_t *ids, const int64_t *offsets, int64_t n,
                  int64_t max_positions)
{
    if (!att_sequences_fit(t, what, ids, offsets, n, max_positions))
        return false;
    if (n == 0)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: there is no sequence", what);
    for (int64_t i = 0; i < n; i++)
        if (offsets[i] == offsets[i + 1]) {
            att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: sequence %lld has no tokens", what, (long long)i);
            return false;
        }
    return n > 0;
}

static att_var *one_head(att_tape *t, att_var *x) { return att_split_heads(t, x, 1); }

/* Concatenates the results of both directions of an encoder layer: [n, units] */
static att_var *joined(att_tape *t, int64_t directions, att_var *forward, att_var *backward)
{
    return directions == 2 ? att_concat(t, 2, (att_var *[]){forward, backward}, 1) : forward;
}

att_seq2seq_memory att_seq2seq_encode(att_tape *t, const att_seq2seq *m, const int32_t *ids, const int64_t *offsets,
                                      int64_t n, const att_nn_dropout *dropout)
{
    const int64_t layers = m->config.layers, directions = m->encoder->directions;
    att_seq2seq_memory y = {.n = n, .offsets = offsets};
    att_recurrent_state last[ATT_NN_MAX_RECURRENT];
    if (!check(t, "source", ids, offsets, n, m->config.max_positions))
        return y;
    att_var *x = att_seq2seq_embed(t, m, m->source, ids, offsets[n]);
    x = att_nn_dropout_apply(t, dropout, OF_SOURCE, x, NULL);
    att_var *h = att_nn_recurrent_apply(t, m->encoder, x, offsets, n, NULL, last, dropout);
    h = att_nn_dropout_apply(t, dropout, OF_OUTPUTS, h, NULL);
    for (int64_t i = 0; i < layers; i++) {
        const att_recurrent_state *forward = &last[i * directions], *backward = forward + directions - 1;
        y.context =
            joined(t, directions, forward->hidden, backward->hidden); /* of the last layer, after the last step */
        y.first[i].hidden = att_nn_linear_apply(t, m->bridge[i], y.context, ATT_TANH, NULL);
        y.first[i].cell = m->config.lstm ? joined(t, directions, forward->cell, backward->cell) : NULL;
    }
    if (m->plan)
        y.values = y.keys = one_head(t, h);
    if (m->key)
        y.keys = one_head(t, att_nn_linear_apply(t, m->key, h, ATT_IDENTITY, NULL));
    if (m->score)
        y.score = att_parameter(t, m->score);
    return y;
}

/* ---- decoder */

/* c = sum_j softmax(score(query, h_j))_j h_j, [tokens, units] */
static att_var *attend(att_tape *t, const att_seq2seq *m, const att_seq2seq_memory *source, const att_seq2seq_texts *x,
                       att_var *query)
{
    const att_attention_args args = {
        .size = sizeof args, .n_sequences = source->n, .q_offsets = x->of_source, .k_offsets = source->offsets};
    const att_attend_params params = {
        .size = sizeof params, .param = &source->score, .n_params = source->score != NULL};
    const att_scope s = att_scope_begin(t, ATTENTION);
    att_var *c = att_attend(t, m->plan, one_head(t, query), source->keys, source->values, &args, &params);
    return att_merge_heads(t, att_scope_end(t, s, c));
}

att_var *att_seq2seq_decode(att_tape *t, const att_seq2seq *m, const att_seq2seq_memory *source,
                            const att_seq2seq_texts *x, att_var *y, att_recurrent_state *state)
{
    att_var *c = NULL;
    if (!m->plan)
        c = att_gather(t, source->context, x->sources, x->offsets[x->rows]);
    else if (context_first(&m->config))
        c = attend(t, m, source, x,
                   att_nn_linear_apply(t, m->query, state[m->config.layers - 1].hidden, ATT_IDENTITY, NULL));
    if (c)
        y = att_concat(t, 2, (att_var *[]){y, c}, 1);
    att_var *s = att_nn_recurrent_apply(t, m->decoder, y, x->offsets, x->rows, state, state, x->dropout);
    if (!context_first(&m->config))
        c = attend(t, m, source, x, s);
    return att_nn_linear_apply(t, m->readout, att_concat(t, 2, (att_var *[]){c, s}, 1), ATT_TANH, NULL);
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
static att_var *decode_in_steps(att_tape *t, const att_seq2seq *m, const att_seq2seq_memory *source, steps *s,
                                att_var *y, const att_nn_dropout *dropout, att_recurrent_state *state)
{
    const int64_t n = dropout->at->n, *offsets = dropout->at->offsets;
    int64_t rows, before = n, done = 0, i = 0;
    for (; (rows = next_step(s, offsets, dropout->sequence_ids, n, i, done)) > 0; i++) {
        for (int64_t k = 0; rows < before && k < m->config.layers; k++) {
            state[k].hidden = att_gather(t, state[k].hidden, s->still, rows);
            state[k].cell = att_gather(t, state[k].cell, s->still, rows);
        }
        const att_positions at = {.size = sizeof at, .offsets = s->one_each, .n = rows, .starts = s->position};
        const att_nn_dropout step_dropout = {sizeof step_dropout, dropout->p, dropout->seed, &at, s->id};
        const att_seq2seq_texts x = {
            .rows = rows, .offsets = s->one_each, .of_source = s->of_source, .dropout = &step_dropout};
        s->results[i] = att_seq2seq_decode(t, m, source, &x, att_gather(t, y, s->token, rows), state);
        if (!s->results[i])
            return NULL;
        done += rows;
        before = rows;
    }
    return att_gather(t, att_concat(t, (int)i, s->results, 0), s->order, done);
}

/* The input of the output layer for all target tokens; inputs [target_offsets[n]] of the decoder */
static att_var *decode_all(att_tape *t, const att_seq2seq *m, const int32_t *inputs, att_seq2seq_memory *source,
                           const att_nn_dropout *dropout)
{
    const int64_t n = dropout->at->n, *offsets = dropout->at->offsets;
    steps s = {0};
    att_var *h = NULL, *y = att_seq2seq_embed(t, m, m->target, inputs, offsets[n]);
    y = att_nn_dropout_apply(t, dropout, OF_TARGET, y, NULL);
    if (y && steps_new(t, m->base.model.ctx, offsets, n, &s)) {
        const att_seq2seq_texts all = {
            .rows = n, .offsets = offsets, .of_source = offsets, .sources = s.sources, .dropout = dropout};
        h = m->config.attention == ATT_SEQ2SEQ_ADDITIVE ? decode_in_steps(t, m, source, &s, y, dropout, source->first)
                                                        : att_seq2seq_decode(t, m, source, &all, y, source->first);
    }
    steps_free(m->base.model.ctx, &s);
    return att_nn_dropout_apply(t, dropout, OF_READOUT, h, NULL);
}

static att_var *logits_of_pairs(att_tape *t, const att_encoder_decoder *base, const att_sequence_pairs *p,
                                const int32_t *inputs, const att_nn_dropout *of_source, const att_nn_dropout *of_target)
{
    const att_seq2seq *m = (const att_seq2seq *)base;
    if (!check(t, "target", p->target, p->target_offsets, p->n, m->config.max_positions))
        return NULL;
    att_seq2seq_memory source = att_seq2seq_encode(t, m, p->source, p->source_offsets, p->n, of_source);
    att_var *h = decode_all(t, m, inputs, &source, of_target);
    return att_nn_linear_apply(t, &m->output, h, ATT_IDENTITY, NULL);
}

/* ---- the architecture */

att_encoder_decoder *att_seq2seq_as_encoder_decoder(att_seq2seq *m) { return m ? &m->base : NULL; }

static json_t *defaults(int64_t vocabulary)
{
    const att_seq2seq_config c = att_seq2seq_config_default(vocabulary);
    return att_seq2seq_config_json(&c);
}

static att_nn_name scope_of_attention(int64_t layer)
{
    (void)layer; /* there is only one */
    return (att_nn_name){ATTENTION};
}

static json_t *settings(const att_encoder_decoder *m)
{
    return att_seq2seq_config_json(&((const att_seq2seq *)m)->config);
}

const att_architecture att_seq2seq_architecture = {.kind = {.bytes = sizeof(att_seq2seq),
                                                            .configure = configure,
                                                            .build = build,
                                                            .prefix = "",
                                                            .unused = (const char *const[]){NULL},
                                                            .free = free_seq2seq},
                                                   .name = "rnn",
                                                   .model_type = ATT_SEQ2SEQ_TYPE,
                                                   .settings = settings,
                                                   .defaults = defaults,
                                                   .logits = logits_of_pairs,
                                                   .start = att_seq2seq_start,
                                                   .scope_of_attention = scope_of_attention};
