/* Incremental decoding with the recurrent decoder. */
#include "decoder/recurrent_decoder.h"

#include <string.h>

/* The states of rows. Row b belongs to sentence[b]; rows are ordered by sentence. */
typedef struct row_states {
    int64_t n;
    int64_t *one_each; /* [n + 1]: 0, 1, 2 ... */
    int32_t *sentence; /* [n] */
    float *numbers;    /* [states][n, units]: of each layer, hidden states, then cell states */
} row_states;

typedef struct decoding {
    const att_recurrent_decoder *decoder;
    att_tape *tape; /* owns the encoded sources */
    att_decoder_memory source;
    int64_t *source_offsets, *of_source; /* [source.n + 1]: rows of the encoder, and of the decoder, of each source */
    row_states rows;
} decoding;

static int64_t n_states(const att_recurrent_decoder *d) { return d->config.layers * (d->config.lstm ? 2 : 1); }

static void rows_free(att_ctx *ctx, row_states *r)
{
    att_free(ctx, r->one_each);
    att_free(ctx, r->sentence);
    att_free(ctx, r->numbers);
}

static att_status rows_new(const att_recurrent_decoder *d, int64_t n, row_states *r)
{
    *r = (row_states){.n = n,
                      .one_each = att_alloc(d->ctx, (size_t)n + 1, sizeof *r->one_each),
                      .sentence = att_alloc(d->ctx, (size_t)n, sizeof *r->sentence),
                      .numbers = att_alloc(d->ctx, (size_t)(n * n_states(d) * d->config.units), sizeof *r->numbers)};
    if (!r->one_each || !r->sentence || !r->numbers) {
        rows_free(d->ctx, r);
        return ATT_ERR_MEMORY;
    }
    for (int64_t b = 0; b <= n; b++)
        r->one_each[b] = b;
    return ATT_OK;
}

/* Replaces the current rows. */
static void rows_set(decoding *s, const row_states *r)
{
    rows_free(s->decoder->ctx, &s->rows);
    s->rows = *r;
    memset(s->of_source, 0, (size_t)(s->source.n + 1) * sizeof *s->of_source);
    for (int64_t b = 0; b < r->n; b++)
        s->of_source[r->sentence[b] + 1]++;
    for (int64_t i = 0; i < s->source.n; i++)
        s->of_source[i + 1] += s->of_source[i];
}

/* Return state i of the rows, [n, units]: its data; a variable. */
static float *numbers_of(const att_recurrent_decoder *d, const row_states *r, int64_t i)
{
    return r->numbers + i * r->n * d->config.units;
}

static att_var **variable_of(const att_recurrent_decoder *d, att_recurrent_state *state, int64_t i)
{
    return !d->config.lstm ? &state[i].hidden : i % 2 ? &state[i / 2].cell : &state[i / 2].hidden;
}

static att_status store(const att_recurrent_decoder *d, att_tape *t, att_recurrent_state *state, const row_states *r)
{
    att_status e = ATT_OK;
    for (int64_t i = 0; !e && i < n_states(d); i++) {
        att_tensor x;
        e = att_var_value(t, *variable_of(d, state, i), &x);
        if (!e)
            memcpy(numbers_of(d, r, i), x.data, (size_t)(r->n * d->config.units) * sizeof(float));
    }
    return e;
}

static void recall(const att_recurrent_decoder *d, att_tape *t, att_recurrent_state *state, const row_states *r)
{
    for (int64_t i = 0; i < n_states(d); i++) {
        att_tensor x;
        att_wrap(&x, numbers_of(d, r, i), ATT_F32, 2, (const int64_t[]){r->n, d->config.units}, NULL);
        *variable_of(d, state, i) = att_constant(t, &x);
    }
}

/* Begins with a row for each source, in the initial states. */
static att_status begin(decoding *s)
{
    const int64_t n = s->source.n;
    row_states r;
    s->of_source = att_alloc(s->decoder->ctx, (size_t)n + 1, sizeof *s->of_source);
    const att_status e = s->of_source ? rows_new(s->decoder, n, &r) : ATT_ERR_MEMORY;
    if (e)
        return e;
    for (int64_t b = 0; b < n; b++)
        r.sentence[b] = (int32_t)b;
    rows_set(s, &r);
    return store(s->decoder, s->tape, s->source.first, &r);
}

static void free_decoding(void *user)
{
    decoding *s = user;
    att_ctx *ctx = s->decoder->ctx;
    rows_free(ctx, &s->rows);
    att_tape_free(s->tape);
    att_free(ctx, s->source_offsets);
    att_free(ctx, s->of_source);
    att_free(ctx, s);
}

/* Appends ids to the rows. Returns the input of the output layer. */
static att_var *advance(void *user, att_tape *t, const int32_t *ids)
{
    decoding *s = user;
    const att_recurrent_decoder *d = s->decoder;
    const att_decoder_targets x = {
        .rows = s->rows.n, .offsets = s->rows.one_each, .of_source = s->of_source, .sources = s->rows.sentence};
    att_recurrent_state state[ATT_NN_MAX_RECURRENT] = {{0}};
    recall(d, t, state, &s->rows);
    att_var *y = att_recurrent_decoder_embed(t, d, ids, s->rows.n, NULL);
    att_var *h = att_recurrent_decoder_decode(t, d, &s->source, &x, y, state);
    return h && !store(d, t, state, &s->rows) ? h : NULL;
}

static att_status select_rows(void *user, int64_t n, const int64_t *from)
{
    decoding *s = user;
    const int64_t units = s->decoder->config.units;
    row_states r;
    const att_status e = rows_new(s->decoder, n, &r);
    if (e)
        return e;
    for (int64_t b = 0; b < n; b++) {
        r.sentence[b] = s->rows.sentence[from[b]];
        for (int64_t i = 0; i < n_states(s->decoder); i++)
            memcpy(numbers_of(s->decoder, &r, i) + b * units, numbers_of(s->decoder, &s->rows, i) + from[b] * units,
                   (size_t)units * sizeof(float));
    }
    rows_set(s, &r);
    return ATT_OK;
}

att_status att_recurrent_decoder_start(const att_recurrent_decoder *d, att_tape *encoded,
                                       const att_decoder_memory *source, int64_t *offsets, att_generator *out)
{
    *out = (att_generator){0};
    decoding *s = att_alloc(d->ctx, 1, sizeof *s);
    if (!s) {
        att_tape_free(encoded);
        att_free(d->ctx, offsets);
        return ATT_ERR_MEMORY;
    }
    *s = (decoding){.decoder = d, .tape = encoded, .source = *source, .source_offsets = offsets};
    const att_status e = begin(s);
    if (e)
        free_decoding(s);
    else
        *out = (att_generator){
            .user = s, .step = advance, .output = &d->output, .select = select_rows, .free = free_decoding};
    return e;
}
