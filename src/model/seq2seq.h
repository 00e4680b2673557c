/* The recurrent encoder-decoder, internal. Public: att_seq2seq_*. */
#ifndef ATT_MODEL_SEQ2SEQ_H
#define ATT_MODEL_SEQ2SEQ_H

#include "model/encoder_decoder.h"

extern const att_architecture att_seq2seq_architecture;

struct att_seq2seq {
    att_encoder_decoder base;
    att_seq2seq_config config;
    att_plan *plan;             /* of the attention; NULL: none */
    att_param *source, *target; /* tables */
    const att_nn_recurrent *encoder, *decoder;
    const att_nn_linear
        *bridge[ATT_NN_MAX_RECURRENT]; /* [layers]: the encoder's last states to the decoder's initial states */
    const att_nn_linear *query, *key;  /* W and U of additive attention; else NULL */
    att_param *score;                  /* v [1, units] or W [1, units, units] */
    const att_nn_linear *readout;
    att_nn_linear output;
};

/* Rows of an embedding table, scaled if the model says so: ids [tokens] -> [tokens, embedding] */
att_var *att_seq2seq_embed(att_tape *t, const att_seq2seq *m, att_param *table, const int32_t *ids, int64_t tokens);

/* Encoded sources. */
typedef struct att_seq2seq_memory {
    int64_t n;
    const int64_t *offsets;                          /* [n + 1] */
    att_var *values, *keys;                          /* [tokens, 1, units] */
    att_var *score;                                  /* parameter of the attention, as in the model */
    att_var *context;                                /* [n, units], of a model without attention */
    att_recurrent_state first[ATT_NN_MAX_RECURRENT]; /* [layers]: the decoder's initial states, [n, units] */
} att_seq2seq_memory;
/* ids [offsets[n]], offsets [n + 1]; dropout NULL: none */
att_seq2seq_memory att_seq2seq_encode(att_tape *t, const att_seq2seq *m, const int32_t *ids, const int64_t *offsets,
                                      int64_t n, const att_nn_dropout *dropout);

/* Target tokens, concatenated. */
typedef struct att_seq2seq_texts {
    int64_t rows;
    const int64_t *offsets;        /* [rows + 1]: tokens of each row */
    const int64_t *of_source;      /* [n + 1]: tokens that attend to each source */
    const int32_t *sources;        /* [tokens]: source of each token */
    const att_nn_dropout *dropout; /* of these tokens; NULL: none */
} att_seq2seq_texts;
/* From embeddings y [tokens, embedding] to the input of the output layer, [tokens, units]; state [layers], updated.
 * With additive attention a row has one token. */
att_var *att_seq2seq_decode(att_tape *t, const att_seq2seq *m, const att_seq2seq_memory *source,
                            const att_seq2seq_texts *x, att_var *y, att_recurrent_state *state);

/* The `start` function of its att_architecture. */
att_status att_seq2seq_start(const att_encoder_decoder *m, const int32_t *ids, const int64_t *offsets, int64_t n,
                             att_generator *out);

#endif
