/* Incremental decoding with the recurrent encoder-decoder. */
#include "model/seq2seq.h"

#include <string.h>

/* Row b belongs to sentence[b]; rows are ordered by sentence. */
typedef struct row_states {
    int64_t n;
    int64_t *one_each; /* [n + 1]: 0, 1, 2 ... */
    int32_t *sentence; /* [n] */
    float *numbers;    /* [states][n, units]: of each layer, hidden states, then cell states */
} row_states;

typedef struct decoding {
    const att_seq2seq *model;
    att_tape *tape; /* owns the encoded sources */
    att_seq2seq_memory source;
    int64_t *source_offsets, *of_source; /* [sentences + 1]: tokens and rows of each sentence */
    row_states rows;
} decoding;

static int64_t n_states(const att_seq2seq *m) { return m->config.layers * (m->config.lstm ? 2 : 1); }

static void rows_free(att_ctx *ctx, row_states *r)
{
    att_free(ctx, r->one_each);
    att_free(ctx, r->sentence);
    att_free(ctx, r->numbers);
}

static att_status rows_new(const att_seq2seq *m, int64_t n, row_states *r)
{
    *r = (row_states){
        .n = n,
        .one_each = att_alloc(m->base.model.ctx, (size_t)n + 1, sizeof *r->one_each),
        .sentence = att_alloc(m->base.model.ctx, (size_t)n, sizeof *r->sentence),
        .numbers = att_alloc(m->base.model.ctx, (size_t)(n * n_states(m) * m->config.units), sizeof *r->numbers)};
    if (!r->one_each || !r->sentence || !r->numbers) {
        rows_free(m->base.model.ctx, r);
        return ATT_ERR_MEMORY;
    }
    for (int64_t b = 0; b <= n; b++)
        r->one_each[b] = b;
    return ATT_OK;
}

/* Replaces the current rows. */
static void rows_set(decoding *s, const row_states *r)
{
    rows_free(s->model->base.model.ctx, &s->rows);
    s->rows = *r;
    memset(s->of_source, 0, (size_t)(s->source.n + 1) * sizeof *s->of_source);
    for (int64_t b = 0; b < r->n; b++)
        s->of_source[r->sentence[b] + 1]++;
    for (int64_t i = 0; i < s->source.n; i++)
        s->of_source[i + 1] += s->of_source[i];
}

/* State i of the rows, [n, units]: its data; as a variable. */
static float *numbers_of(const att_seq2seq *m, const row_states *r, int64_t i)
{
    return r->numbers + i * r->n * m->config.units;
}

static att_var **variable_of(const att_seq2seq *m, att_recurrent_state *state, int64_t i)
{
    return !m->config.lstm ? &state[i].hidden : i % 2 ? &state[i / 2].cell : &state[i / 2].hidden;
}

static att_status store(const att_seq2seq *m, att_tape *t, att_recurrent_state *state, const row_states *r)
{
    att_status e = ATT_OK;
    for (int64_t i = 0; !e && i < n_states(m); i++) {
        att_tensor x;
        e = att_var_value(t, *variable_of(m, state, i), &x);
        if (!e)
            memcpy(numbers_of(m, r, i), x.data, (size_t)(r->n * m->config.units) * sizeof(float));
    }
    return e;
}

static void recall(const att_seq2seq *m, att_tape *t, att_recurrent_state *state, const row_states *r)
{
    for (int64_t i = 0; i < n_states(m); i++) {
        att_tensor x;
        att_wrap(&x, numbers_of(m, r, i), ATT_F32, 2, (const int64_t[]){r->n, m->config.units}, NULL);
        *variable_of(m, state, i) = att_constant(t, &x);
    }
}

static att_status encode_source(decoding *s, const int32_t *ids, const int64_t *offsets, int64_t n)
{
    const att_seq2seq *m = s->model;
    row_states r;
    att_status e = att_tape_new(m->base.model.ctx, NULL, &s->tape);
    s->source_offsets = att_alloc(m->base.model.ctx, (size_t)n + 1, sizeof *s->source_offsets);
    s->of_source = att_alloc(m->base.model.ctx, (size_t)n + 1, sizeof *s->of_source);
    if (!e && (!s->source_offsets || !s->of_source))
        e = ATT_ERR_MEMORY;
    e = e ? e : rows_new(m, n, &r);
    if (e)
        return e;
    memcpy(s->source_offsets, offsets, (size_t)(n + 1) * sizeof *offsets);
    s->source = att_seq2seq_encode(s->tape, m, ids, s->source_offsets, n, NULL);
    for (int64_t b = 0; b < n; b++)
        r.sentence[b] = (int32_t)b;
    rows_set(s, &r);
    return store(m, s->tape, s->source.first, &r);
}

static void free_decoding(void *user)
{
    decoding *s = user;
    att_ctx *ctx = s->model->base.model.ctx;
    rows_free(ctx, &s->rows);
    att_tape_free(s->tape);
    att_free(ctx, s->source_offsets);
    att_free(ctx, s->of_source);
    att_free(ctx, s);
}

/* Appends ids to the rows; returns the input of the output layer */
static att_var *advance(void *user, att_tape *t, const int32_t *ids)
{
    decoding *s = user;
    const att_seq2seq *m = s->model;
    const att_seq2seq_texts x = {
        .rows = s->rows.n, .offsets = s->rows.one_each, .of_source = s->of_source, .sources = s->rows.sentence};
    att_recurrent_state state[ATT_NN_MAX_RECURRENT] = {{0}};
    recall(m, t, state, &s->rows);
    att_var *y = att_seq2seq_embed(t, m, m->target, ids, s->rows.n);
    att_var *h = att_seq2seq_decode(t, m, &s->source, &x, y, state);
    return h && !store(m, t, state, &s->rows) ? h : NULL;
}

static att_status select_rows(void *user, int64_t n, const int64_t *from)
{
    decoding *s = user;
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

att_status att_seq2seq_start(const att_encoder_decoder *base, const int32_t *ids, const int64_t *offsets, int64_t n,
                             att_generator *out)
{
    const att_seq2seq *m = (const att_seq2seq *)base;
    *out = (att_generator){0};
    decoding *s = att_alloc(base->model.ctx, 1, sizeof *s);
    if (!s)
        return ATT_ERR_MEMORY;
    *s = (decoding){.model = m};
    const att_status e = encode_source(s, ids, offsets, n);
    if (e)
        free_decoding(s);
    else
        *out = (att_generator){
            .user = s, .step = advance, .output = &m->output, .select = select_rows, .free = free_decoding};
    return e;
}
