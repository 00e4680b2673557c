/* Encoder and decoder of recurrent layers: with a fixed context (Cho et al. 2014), with additive attention (Bahdanau et
 * al. 2015), with dot or general attention (Luong et al. 2015).
 *
 * The encoder's outputs h_j are what attention looks at. Its last states, tanh(W h) of them, are the decoder's first.
 *
 *   none      c is the encoder's last states, for all tokens;     s_i = RNN(s_i-1, [y_i-1; c])
 *   additive  e_ij = v . tanh(W s_i-1 + U h_j), c_i = sum_j softmax(e_i)_j h_j;   s_i = RNN(s_i-1, [y_i-1; c_i])
 *   dot       s_i = RNN(s_i-1, y_i-1); e_ij = s_i . h_j, c_i alike
 *   general   the same with e_ij = s_i . W h_j
 *
 * Logits are W_o tanh(W_c [c_i; s_i]) in all four: Luong's attentional vector, which stands for Bahdanau's maxout too.
 * Luong's input feeding is left out. So all of them but the additive one go through all tokens of a target at once. */
#include "model/seq2seq.h"
#include "model/seq2seq_config.h"
#include "model/store.h"
#include "model/teacher.h"

#include <math.h>
#include <string.h>

enum { MAX = ATT_NN_MAX_RECURRENT };

struct att_seq2seq {
    att_ctx *ctx;
    att_seq2seq_config config;
    att_checkpoint *checkpoint; /* owns all parameters, or, where they learn, */
    att_store *store;           /* does */
    att_plan *plan;             /* of the attention; NULL: there is none */
    att_nn_embedding source, target;
    att_nn_recurrent encoder, decoder;
    att_nn_linear bridge[MAX]; /* [layers]: from the encoder's states to the decoder's */
    att_nn_linear query, key;  /* W and U of additive attention */
    att_param *score;          /* v [1, units] or W [1, units, units] */
    att_nn_linear readout, output;
};

/* ---- load */

static bool attends(const att_seq2seq_config *c) { return c->attention != ATT_SEQ2SEQ_NONE; }
/* Is the context known before the decoder's layers, and read by them? */
static bool context_first(const att_seq2seq_config *c) { return c->attention <= ATT_SEQ2SEQ_ADDITIVE; }

static void load_attention(att_seq2seq *m, att_nn_source *s)
{
    const int64_t units = m->config.units;
    if (m->config.attention == ATT_SEQ2SEQ_ADDITIVE) {
        m->query.weight = att_nn_matrix(s, "attention.query", "weight", units, units);
        m->key.weight = att_nn_matrix(s, "attention.key", "weight", units, units);
        m->score = att_nn_matrix(s, "attention", "score", 1, units);
    }
    if (m->config.attention == ATT_SEQ2SEQ_GENERAL)
        m->score = att_nn_param(s, "attention", "score", 3, (const int64_t[]){1, units, units});
}

static att_status load_layers(att_seq2seq *m, att_nn_source *s)
{
    const att_seq2seq_config *c = &m->config;
    att_nn_recurrent (*const load)(att_nn_source *, const char *, const att_nn_recurrent_config *) =
        c->lstm ? att_nn_lstm_load : att_nn_gru_load;
    att_nn_recurrent_config layers = {.in = c->embedding,
                                      .units = c->bidirectional ? c->units / 2 : c->units,
                                      .layers = c->layers,
                                      .bidirectional = c->bidirectional};
    m->source = att_nn_embedding_load(s, "source", c->source_vocabulary, c->embedding);
    m->encoder = load(s, "encoder", &layers);
    for (int64_t i = 0; i < c->layers; i++)
        m->bridge[i] = att_nn_linear_load(s, att_nn_number("bridge", i).text, c->units, c->units);
    layers = (att_nn_recurrent_config){
        .in = c->embedding + (context_first(c) ? c->units : 0), .units = c->units, .layers = c->layers};
    m->target = att_nn_embedding_load(s, "target", c->target_vocabulary, c->embedding);
    m->decoder = load(s, "decoder", &layers);
    load_attention(m, s);
    m->readout = att_nn_linear_load(s, "readout", 2 * c->units, c->units);
    m->output = att_nn_linear_load(s, "output", c->units, c->target_vocabulary);
    return s->status;
}

static att_status make_plan(att_seq2seq *m)
{
    static const att_score *const scores[] = {[ATT_SEQ2SEQ_ADDITIVE] = &att_score_additive,
                                              [ATT_SEQ2SEQ_DOT] = &att_score_dot,
                                              [ATT_SEQ2SEQ_GENERAL] = &att_score_general};
    if (!attends(&m->config))
        return ATT_OK;
    return att_plan_new(m->ctx,
                        ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = m->config.units,
                                    .score = scores[m->config.attention], .scale = 1),
                        &m->plan);
}

static att_status load(att_seq2seq *m, const char *folder, bool learn)
{
    att_checkpoint *c = NULL;
    att_status s = att_seq2seq_config_read(m->ctx, folder, &m->config);
    s = s ? s : att_checkpoint_open(m->ctx, folder, NULL, "", &c);
    if (!s && learn)
        s = att_store_new(m->ctx, 0, c, &m->store);
    m->checkpoint = m->store ? NULL : c;
    s = s ? s : load_layers(m, learn ? &m->store->source : &c->source);
    s = s ? s : att_checkpoint_all_used(c, (const char *const[]){NULL});
    if (!s && m->store)
        att_store_filled(m->store);
    return s;
}

static att_status make(att_seq2seq *m, const att_seq2seq_config *config, uint64_t seed)
{
    att_status s = att_take_options(&m->config, sizeof m->config, config, "att_seq2seq_config");
    s = s ? s : att_seq2seq_config_check(m->ctx, &m->config);
    s = s ? s : att_store_new(m->ctx, seed, NULL, &m->store);
    s = s ? s : load_layers(m, &m->store->source);
    if (s)
        return s;
    att_store_normal(m->store, m->source.weight, 1 / sqrt((double)m->config.embedding));
    att_store_normal(m->store, m->target.weight, 1 / sqrt((double)m->config.embedding));
    return ATT_OK;
}

/* folder NULL: a new one, by config and seed */
static att_status open_or_make(att_ctx *ctx, const char *folder, bool learn, const att_seq2seq_config *config,
                               uint64_t seed, att_seq2seq **out)
{
    *out = NULL;
    att_seq2seq *m = att_alloc(ctx, 1, sizeof *m);
    if (!m)
        return ATT_ERR_MEMORY;
    *m = (att_seq2seq){.ctx = ctx};
    att_status s = folder ? load(m, folder, learn) : make(m, config, seed);
    s = s ? s : make_plan(m);
    if (s)
        att_seq2seq_free(m);
    else
        *out = m;
    return s;
}

att_status att_seq2seq_open(att_ctx *ctx, const char *folder, att_seq2seq **out)
{
    if (!folder || !out)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "att_seq2seq_open: %s is NULL", folder ? "out" : "folder");
    return open_or_make(ctx, folder, false, NULL, 0, out);
}

att_status att_seq2seq_learn(att_ctx *ctx, const char *folder, att_seq2seq **out)
{
    if (!folder || !out)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "att_seq2seq_learn: %s is NULL", folder ? "out" : "folder");
    return open_or_make(ctx, folder, true, NULL, 0, out);
}

att_status att_seq2seq_new(att_ctx *ctx, const att_seq2seq_config *config, uint64_t seed, att_seq2seq **out)
{
    if (!config || !out)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "att_seq2seq_new: %s is NULL", config ? "out" : "config");
    return open_or_make(ctx, NULL, true, config, seed, out);
}

void att_seq2seq_free(att_seq2seq *m)
{
    if (!m)
        return;
    att_plan_free(m->plan);
    att_checkpoint_close(m->checkpoint);
    att_store_free(m->store);
    att_free(m->ctx, m);
}

att_status att_seq2seq_describe(const att_seq2seq *m, att_seq2seq_config *config)
{
    return att_give_info(config, &m->config, sizeof m->config, "att_seq2seq_config");
}

int64_t att_seq2seq_params(const att_seq2seq *m) { return att_store_params(m->store); }

att_param *att_seq2seq_param(const att_seq2seq *m, int64_t i, const char **name)
{
    return att_store_param(m->store, i, name);
}

/* ---- the source */

/* Where dropout is */
typedef enum place { OF_SOURCE = 1, OF_TARGET, OF_READOUT } place;

/* Sources, as a decoder looks at them. */
typedef struct memory {
    int64_t n;
    const int64_t *offsets; /* [n + 1] */
    att_var *values, *keys; /* [tokens, 1, units] */
    att_var *score;         /* of the attention, as in the model */
    att_var *context;       /* [n, units], of a decoder without attention */
    att_states first[MAX];  /* [layers]: the decoder's, [n, units] */
} memory;

static att_var *one_head(att_tape *t, att_var *x) { return att_split_heads(t, x, 1); }

/* What a layer of the encoder leaves, both directions side by side: [n, units] */
static att_var *joined(att_tape *t, int64_t directions, att_var *forward, att_var *backward)
{
    return directions == 2 ? att_concat(t, 2, (att_var *[]){forward, backward}, 1) : forward;
}

static memory encode(att_tape *t, const att_seq2seq *m, const int32_t *ids, const int64_t *offsets, int64_t n,
                     const att_nn_dropout *dropout)
{
    const int64_t layers = m->config.layers, directions = m->encoder.directions;
    memory y = {.n = n, .offsets = offsets};
    att_states last[MAX];
    att_var *x = att_nn_drop(t, dropout, OF_SOURCE, att_nn_embedding_apply(t, &m->source, ids, offsets[n]), NULL);
    att_var *h = att_nn_recurrent_apply(t, &m->encoder, x, offsets, n, NULL, last);
    for (int64_t i = 0; i < layers; i++) {
        const att_states *forward = &last[i * directions], *backward = forward + directions - 1;
        y.context = joined(t, directions, forward->hidden, backward->hidden); /* of the last layer, at the end */
        y.first[i].hidden = att_nn_linear_apply(t, &m->bridge[i], y.context, ATT_TANH, NULL);
        y.first[i].cell = m->config.lstm ? joined(t, directions, forward->cell, backward->cell) : NULL;
    }
    if (attends(&m->config))
        y.values = y.keys = one_head(t, h);
    if (m->key.weight)
        y.keys = one_head(t, att_nn_linear_apply(t, &m->key, h, ATT_IDENTITY, NULL));
    if (m->score)
        y.score = att_use(t, m->score);
    return y;
}

/* ---- the target */

/* Tokens of texts that are written, all one after the other. */
typedef struct texts {
    int64_t rows;
    const int64_t *offsets;   /* [rows + 1]: the tokens of each */
    const int64_t *of_source; /* [n + 1]: those that look at each source */
    const int32_t *sources;   /* [tokens]: the source of each */
} texts;

/* c = sum_j softmax(score(query, h_j))_j h_j, [tokens, units] */
static att_var *look(att_tape *t, const att_seq2seq *m, const memory *source, const texts *x, att_var *query)
{
    const att_attention_args args = {
        .size = sizeof args, .n_sequences = source->n, .q_offsets = x->of_source, .k_offsets = source->offsets};
    const att_attend_params params = {.size = sizeof params, .score_param = {source->score}};
    return att_merge_heads(t, att_attend(t, m->plan, one_head(t, query), source->keys, source->values, &args, &params));
}

/* From embeddings y [tokens, embedding] what logits are made of, [tokens, units]; state [layers], before and after.
 * With additive attention a row has one token. */
static att_var *decode(att_tape *t, const att_seq2seq *m, const memory *source, const texts *x, att_var *y,
                       att_states *state)
{
    att_var *c = NULL;
    if (!attends(&m->config))
        c = att_gather(t, source->context, x->sources, x->offsets[x->rows]);
    else if (context_first(&m->config))
        c = look(t, m, source, x,
                 att_nn_linear_apply(t, &m->query, state[m->config.layers - 1].hidden, ATT_IDENTITY, NULL));
    if (c)
        y = att_concat(t, 2, (att_var *[]){y, c}, 1);
    att_var *s = att_nn_recurrent_apply(t, &m->decoder, y, x->offsets, x->rows, state, state);
    if (!context_first(&m->config))
        c = look(t, m, source, x, s);
    return att_nn_linear_apply(t, &m->readout, att_concat(t, 2, (att_var *[]){c, s}, 1), ATT_TANH, NULL);
}

/* ---- training: the target is known */

/* Which rows a step has. */
typedef struct steps {
    int64_t *one_each;   /* [n + 1]: 0, 1, 2 ...; with the next one in one piece */
    int64_t *of_source;  /* [n + 1] */
    int32_t *sources;    /* [tokens]; with the next ones in one piece */
    int32_t *order;      /* [tokens]: where the results of all steps, one after the other, have that of each */
    int32_t *token;      /* [n]: of each row, among all tokens */
    int32_t *still, *at; /* [n]: of each row, which one it was in the step before; of each target, its row */
    att_var **results;   /* [tokens], and fewer steps */
} steps;

static void steps_free(att_ctx *ctx, steps *s)
{
    att_free(ctx, s->one_each);
    att_free(ctx, s->sources);
    att_free(ctx, s->results);
}

static bool steps_new(att_tape *t, att_ctx *ctx, const int64_t *offsets, int64_t n, steps *s)
{
    const int64_t tokens = offsets[n];
    s->one_each = att_alloc(ctx, 2 * ((size_t)n + 1), sizeof *s->one_each);
    s->sources = att_alloc(ctx, 2 * (size_t)tokens + 3 * (size_t)n, sizeof *s->sources);
    s->results = att_alloc(ctx, (size_t)tokens, sizeof(att_var *));
    if (!s->one_each || !s->sources || !s->results)
        return att_tape_fail(t, ATT_ERR_MEMORY, "%s", att_error(ctx));
    s->of_source = s->one_each + n + 1;
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

/* The rows of step i are the targets that have a token there; `done` tokens were before. Returns how many. */
static int64_t next_step(steps *s, const int64_t *offsets, int64_t n, int64_t i, int64_t done)
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
        s->order[token] = (int32_t)(done + rows++);
    }
    s->of_source[n] = rows;
    return rows;
}

/* Token by token, as each one's context needs the state before. */
static att_var *decode_in_steps(att_tape *t, const att_seq2seq *m, const memory *source, steps *s, att_var *y,
                                const int64_t *offsets, int64_t n, att_states *state)
{
    int64_t rows, before = n, done = 0, i = 0;
    for (; (rows = next_step(s, offsets, n, i, done)) > 0; i++) {
        for (int64_t k = 0; rows < before && k < m->config.layers; k++) {
            state[k].hidden = att_gather(t, state[k].hidden, s->still, rows);
            state[k].cell = att_gather(t, state[k].cell, s->still, rows);
        }
        const texts x = {.rows = rows, .offsets = s->one_each, .of_source = s->of_source};
        s->results[i] = decode(t, m, source, &x, att_gather(t, y, s->token, rows), state);
        if (!s->results[i])
            return NULL;
        done += rows;
        before = rows;
    }
    return att_gather(t, att_concat(t, (int)i, s->results, 0), s->order, done);
}

static bool check(att_tape *t, const char *what, const int32_t *ids, const int64_t *offsets, int64_t n)
{
    if (n < 1 || !ids || !offsets || offsets[0] != 0)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "seq2seq: n = %lld %ss need ids, and offsets from 0", (long long)n, what);
    else
        for (int64_t i = 0; i < n; i++)
            if (offsets[i] >= offsets[i + 1]) {
                att_tape_fail(t, ATT_ERR_ARGUMENT, "seq2seq: %s %lld has no tokens: its offsets are %lld and %lld",
                              what, (long long)i, (long long)offsets[i], (long long)offsets[i + 1]);
                return false;
            }
    return n >= 1 && ids && offsets && offsets[0] == 0;
}

/* What logits are made of: of all target tokens, before [target_offsets[n]] being what stands before each. */
static att_var *decode_all(att_tape *t, const att_seq2seq *m, const att_pairs *p, const int32_t *before, memory *source,
                           const att_nn_dropout *dropout)
{
    steps s = {0};
    att_var *h = NULL, *y = att_nn_embedding_apply(t, &m->target, before, p->target_offsets[p->n]);
    y = att_nn_drop(t, dropout, OF_TARGET, y, NULL);
    if (y && steps_new(t, m->ctx, p->target_offsets, p->n, &s)) {
        const texts all = {
            .rows = p->n, .offsets = p->target_offsets, .of_source = p->target_offsets, .sources = s.sources};
        h = m->config.attention == ATT_SEQ2SEQ_ADDITIVE
                ? decode_in_steps(t, m, source, &s, y, p->target_offsets, p->n, source->first)
                : decode(t, m, source, &all, y, source->first);
    }
    steps_free(m->ctx, &s);
    return att_nn_drop(t, dropout, OF_READOUT, h, NULL);
}

att_var *att_seq2seq_logits(att_tape *t, const att_seq2seq *m, const att_pairs *p, const att_learning *learning)
{
    static const att_learning none = {0};
    const att_learning *l = learning ? learning : &none;
    if (!check(t, "source", p->source, p->source_offsets, p->n) ||
        !check(t, "target", p->target, p->target_offsets, p->n))
        return NULL;
    const att_positions sources = {.size = sizeof sources, .offsets = p->source_offsets, .n = p->n};
    const att_positions targets = {.size = sizeof targets, .offsets = p->target_offsets, .n = p->n};
    const att_nn_dropout of_source = {l->dropout, l->seed, &sources, l->sequence_ids};
    const att_nn_dropout of_target = {l->dropout, l->seed, &targets, l->sequence_ids};
    int32_t *before = att_teacher_before(m->ctx, p, m->config.start);
    if (!before)
        return att_tape_fail(t, ATT_ERR_MEMORY, "%s", att_error(m->ctx));
    memory source = encode(t, m, p->source, p->source_offsets, p->n, &of_source);
    att_var *h = decode_all(t, m, p, before, &source, &of_target);
    att_free(m->ctx, before);
    return att_nn_linear_apply(t, &m->output, h, ATT_IDENTITY, NULL);
}

att_var *att_seq2seq_loss(att_tape *t, const att_seq2seq *m, const att_pairs *p, const att_learning *l)
{
    return att_teacher_loss(t, att_seq2seq_logits(t, m, p, l), p, l, m->config.target_vocabulary, m->config.pad);
}

/* ---- token by token */

/* Row b is of sentence[b]; rows of a sentence lie together, in the order of sentences. */
typedef struct row_states {
    int64_t n;
    int64_t *one_each; /* [n + 1]: 0, 1, 2 ... */
    int32_t *sentence; /* [n] */
    float *numbers;    /* [states][n, units]: of each layer, hidden states and then cells */
} row_states;

struct att_seq2seq_state {
    const att_seq2seq *model;
    att_tape *tape; /* of what the source became */
    memory source;
    int64_t *source_offsets, *of_source; /* [sentences + 1]: tokens, and rows, of each sentence */
    row_states rows;
};

static int64_t n_states(const att_seq2seq *m) { return m->config.layers * (m->config.lstm ? 2 : 1); }

static void rows_free(att_ctx *ctx, row_states *r)
{
    att_free(ctx, r->one_each);
    att_free(ctx, r->sentence);
    att_free(ctx, r->numbers);
}

static att_status rows_new(const att_seq2seq *m, int64_t n, row_states *r)
{
    *r = (row_states){.n = n,
                      .one_each = att_alloc(m->ctx, (size_t)n + 1, sizeof *r->one_each),
                      .sentence = att_alloc(m->ctx, (size_t)n, sizeof *r->sentence),
                      .numbers = att_alloc(m->ctx, (size_t)(n * n_states(m) * m->config.units), sizeof *r->numbers)};
    if (!r->one_each || !r->sentence || !r->numbers) {
        rows_free(m->ctx, r);
        return ATT_ERR_MEMORY;
    }
    for (int64_t b = 0; b <= n; b++)
        r->one_each[b] = b;
    return ATT_OK;
}

/* In place of those that there are. */
static void rows_set(att_seq2seq_state *s, const row_states *r)
{
    rows_free(s->model->ctx, &s->rows);
    s->rows = *r;
    memset(s->of_source, 0, (size_t)(s->source.n + 1) * sizeof *s->of_source);
    for (int64_t b = 0; b < r->n; b++)
        s->of_source[r->sentence[b] + 1]++;
    for (int64_t i = 0; i < s->source.n; i++)
        s->of_source[i + 1] += s->of_source[i];
}

/* State i of rows, [n, units]: its numbers, its variable. */
static float *numbers_of(const att_seq2seq *m, const row_states *r, int64_t i)
{
    return r->numbers + i * r->n * m->config.units;
}

static att_var **variable_of(const att_seq2seq *m, att_states *state, int64_t i)
{
    return !m->config.lstm ? &state[i].hidden : i % 2 ? &state[i / 2].cell : &state[i / 2].hidden;
}

static att_status store(const att_seq2seq *m, att_tape *t, att_states *state, const row_states *r)
{
    att_status e = ATT_OK;
    for (int64_t i = 0; !e && i < n_states(m); i++) {
        att_tensor x;
        e = att_read(t, *variable_of(m, state, i), &x);
        if (!e)
            memcpy(numbers_of(m, r, i), x.data, (size_t)(r->n * m->config.units) * sizeof(float));
    }
    return e;
}

static void recall(const att_seq2seq *m, att_tape *t, att_states *state, const row_states *r)
{
    for (int64_t i = 0; i < n_states(m); i++) {
        att_tensor x;
        att_wrap(&x, numbers_of(m, r, i), ATT_F32, 2, (const int64_t[]){r->n, m->config.units}, NULL);
        *variable_of(m, state, i) = att_constant(t, &x);
    }
}

static att_status read_source(att_seq2seq_state *s, const int32_t *ids, const int64_t *offsets, int64_t n)
{
    const att_seq2seq *m = s->model;
    row_states r;
    att_status e = att_tape_new(m->ctx, NULL, &s->tape);
    s->source_offsets = att_alloc(m->ctx, (size_t)n + 1, sizeof *s->source_offsets);
    s->of_source = att_alloc(m->ctx, (size_t)n + 1, sizeof *s->of_source);
    if (!e && (!s->source_offsets || !s->of_source))
        e = ATT_ERR_MEMORY;
    e = e ? e : rows_new(m, n, &r);
    if (e)
        return e;
    memcpy(s->source_offsets, offsets, (size_t)(n + 1) * sizeof *offsets);
    s->source = encode(s->tape, m, ids, s->source_offsets, n, NULL);
    for (int64_t b = 0; b < n; b++)
        r.sentence[b] = (int32_t)b;
    rows_set(s, &r);
    return store(m, s->tape, s->source.first, &r);
}

void att_seq2seq_state_free(att_seq2seq_state *s)
{
    if (!s)
        return;
    att_ctx *ctx = s->model->ctx;
    rows_free(ctx, &s->rows);
    att_tape_free(s->tape);
    att_free(ctx, s->source_offsets);
    att_free(ctx, s->of_source);
    att_free(ctx, s);
}

att_status att_seq2seq_start(const att_seq2seq *m, const int32_t *ids, const int64_t *offsets, int64_t n,
                             att_seq2seq_state **out)
{
    *out = NULL;
    att_seq2seq_state *s = att_alloc(m->ctx, 1, sizeof *s);
    if (!s)
        return ATT_ERR_MEMORY;
    *s = (att_seq2seq_state){.model = m};
    const att_status e = read_source(s, ids, offsets, n);
    if (e)
        att_seq2seq_state_free(s);
    else
        *out = s;
    return e;
}

att_var *att_seq2seq_step(att_seq2seq_state *s, att_tape *t, const int32_t *ids)
{
    const att_seq2seq *m = s->model;
    const texts x = {
        .rows = s->rows.n, .offsets = s->rows.one_each, .of_source = s->of_source, .sources = s->rows.sentence};
    att_states state[MAX] = {{0}};
    recall(m, t, state, &s->rows);
    att_var *h = decode(t, m, &s->source, &x, att_nn_embedding_apply(t, &m->target, ids, s->rows.n), state);
    att_var *logits = att_nn_linear_apply(t, &m->output, h, ATT_IDENTITY, NULL);
    return logits && !store(m, t, state, &s->rows) ? logits : NULL;
}

att_status att_seq2seq_select(att_seq2seq_state *s, int64_t n, const int64_t *from)
{
    const int64_t units = s->model->config.units;
    row_states r;
    const att_status e = rows_new(s->model, n, &r);
    if (e)
        return e;
    for (int64_t b = 0; b < n; b++) {
        r.sentence[b] = s->rows.sentence[from[b]];
        for (int64_t i = 0; i < n_states(s->model); i++)
            memcpy(numbers_of(s->model, &r, i) + b * units, numbers_of(s->model, &s->rows, i) + from[b] * units,
                   (size_t)units * sizeof(float));
    }
    rows_set(s, &r);
    return ATT_OK;
}
