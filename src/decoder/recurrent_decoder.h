/* The recurrent decoder with a fixed context or with attention, internal. An encoder gives it a row for each token of a
 * text (seq2seq.c) or for each location of an image (captioner.c).
 *
 * none      c is the source's context, for all tokens;      s_i = RNN(s_i-1, [y_i-1; c]) additive  e_ij = v . tanh(W
 * s_i-1 + U h_j), c_i = sum_j softmax(e_i)_j h_j;   s_i = RNN(s_i-1, [y_i-1; c_i]) dot       s_i = RNN(s_i-1, y_i-1);
 * e_ij = s_i . h_j, c_i as for additive general   the same with e_ij = s_i . W h_j
 *
 * If there is a gate, c_i of additive attention is multiplied by sigmoid(f s_i-1) (Xu et al. 2015, 4.2.1).
 *
 * Logits are W_o tanh(W_c [c_i; s_i]) in all four: Luong's attentional vector, also in place of Bahdanau's maxout
 * layer. Input feeding (Luong) is not implemented; therefore all kinds except the additive one process all target
 * tokens at once in training. */
#ifndef ATT_DECODER_RECURRENT_DECODER_H
#define ATT_DECODER_RECURRENT_DECODER_H

#include "decoder/beam_search.h"
#include "model/model.h"
#include "model/trace.h"
#include "attend_translate.h"

/* The name of the part of a trace that has the attention to the source */
#define ATT_RECURRENT_ATTENTION "decoder/cross"

typedef struct att_recurrent_decoder_config {
    int64_t vocabulary, embedding, units, layers;
    att_seq2seq_attention attention;
    bool lstm;
    bool scale_embedding; /* multiply embeddings by sqrt(embedding) */
    bool tie;             /* the output layer's weights are the table */
    att_param *table;     /* [vocabulary, embedding] of tokens, or NULL: a new one */
    int64_t pad;          /* its row that is zero */
    bool gate;            /* of additive attention */
    int64_t locations;    /* of additive attention: rows of each source if training needs the weights, otherwise 0 */
} att_recurrent_decoder_config;

typedef struct att_recurrent_decoder {
    att_recurrent_decoder_config config;
    att_ctx *ctx;
    att_plan *plan;    /* of the attention; NULL: none */
    att_plan *weights; /* with wider values, whose results include the weights; NULL: none */
    float *identity;   /* [locations, locations], for the wider values */
    const att_nn_recurrent *recurrent;
    const att_nn_linear *bridge[ATT_NN_MAX_RECURRENT]; /* [layers]: the encoder's last states to the initial states */
    const att_nn_linear *query, *key, *gate;           /* W, U and f of additive attention; otherwise NULL */
    att_param *score;                                  /* v [1, units] or W [1, units, units] */
    const att_nn_linear *readout;
    att_nn_linear output;
} att_recurrent_decoder;

/* Adds the decoder's layers to a model under construction. */
att_status att_recurrent_decoder_build(att_recurrent_decoder *d, att_model *m, const att_recurrent_decoder_config *c);
void att_recurrent_decoder_clean(att_recurrent_decoder *d);
/* Adds the decoder's attention, if it has one, to a pass for a trace. info has the numbers of tokens. The decoder gets
 * the source's tokens from first_key on. */
void att_recurrent_decoder_trace(const att_recurrent_decoder *d, int64_t first_key, att_trace_pass *pass);

/* Encoded sources */
typedef struct att_decoder_memory {
    int64_t n;
    const int64_t *offsets; /* [n + 1] */
    att_var *values, *keys; /* [rows, 1, units] */
    att_var *wide_values;   /* [rows, 1, units + locations] or NULL: weights are not requested */
    att_var *score;         /* parameter of the attention, as in the model */
    att_var *context;       /* [n, units] */
    att_recurrent_state first[ATT_NN_MAX_RECURRENT]; /* [layers]: the decoder's initial states, [n, units] */
} att_decoder_memory;
/* Makes the memory from the encoder's results h [offsets[n], units], which are not used without attention, and its last
 * states [layers], each [n, units], with cells only if it is an LSTM. The fixed context is the last layer's hidden
 * state. */
att_decoder_memory att_recurrent_decoder_memory(att_tape *t, const att_recurrent_decoder *d, att_var *h,
                                                const int64_t *offsets, int64_t n, const att_recurrent_state *last);

/* The dropout layers of a decoder, besides those between recurrent layers. An encoder has other numbers. */
typedef enum att_decoder_dropout { ATT_DECODER_TARGET = 2, ATT_DECODER_READOUT = 4 } att_decoder_dropout;

typedef struct att_decoder_teacher {
    const int32_t *inputs;         /* [tokens] of the decoder */
    const att_nn_dropout *dropout; /* at: the targets */
    const int64_t *of_source;      /* [source->n + 1]: targets of each source; NULL: one each */
    att_var **weights;             /* out: the attention of each token, [tokens, locations]; or NULL */
} att_decoder_teacher;
/* Applies the decoder to known target tokens (teacher forcing). Returns the input of the output layer, [tokens, units],
 * or [tokens, embedding] if weights are tied. */
att_var *att_recurrent_decoder_apply(att_tape *t, const att_recurrent_decoder *d, const att_decoder_memory *source,
                                     const att_decoder_teacher *x);

/* Starts decoding with a row for each source, whose memory belongs to `encoded`. Takes possession of `encoded` and of
 * offsets [source.n + 1], even if it returns an error. After an error *out is {0}. */
att_status att_recurrent_decoder_start(const att_recurrent_decoder *d, att_tape *encoded,
                                       const att_decoder_memory *source, int64_t *offsets, att_generator *out);

/* The target tokens of all rows, concatenated (for recurrent_decoder_state.c). */
typedef struct att_decoder_targets {
    int64_t rows;
    const int64_t *offsets;        /* [rows + 1]: tokens of each row */
    const int64_t *of_source;      /* [n + 1]: tokens that attend to each source */
    const int32_t *sources;        /* [tokens]: source of each token */
    const att_nn_dropout *dropout; /* of these tokens; NULL: none */
    att_var **weights;             /* out, as above; or NULL */
} att_decoder_targets;
/* Returns the embeddings [tokens, embedding] of ids [tokens]. dropout NULL: none. */
att_var *att_recurrent_decoder_embed(att_tape *t, const att_recurrent_decoder *d, const int32_t *ids, int64_t tokens,
                                     const att_nn_dropout *dropout);
/* Computes the input of the output layer from embeddings y [tokens, embedding], and updates state [layers]. With
 * additive attention a row has one token. */
att_var *att_recurrent_decoder_decode(att_tape *t, const att_recurrent_decoder *d, const att_decoder_memory *source,
                                      const att_decoder_targets *x, att_var *y, att_recurrent_state *state);

#endif
