/* The decoder of the Transformer (Vaswani et al. 2017), over what an encoder has made of each source: a row for each
 * token of a text (transformer.c) or each location of an image (captioner.c). Internal. */
#ifndef ATT_DECODER_TRANSFORMER_DECODER_H
#define ATT_DECODER_TRANSFORMER_DECODER_H

#include "decoder/beam_search.h"
#include "model/check_sequences.h"
#include "model/trace.h"

typedef struct att_transformer_decoder {
    att_ctx *ctx;
    int64_t hidden, layers, heads, max_positions;
    bool scale_embedding; /* multiply embeddings by sqrt(hidden) */
    att_param *table;     /* [vocabulary, hidden] */
    const att_nn_decoder_layer **layer;
    att_nn_linear output; /* to logits */
} att_transformer_decoder;

/* Embeddings of ids [tokens], scaled if its configuration scales them, plus positions; of a source, too. dropout_id: 1
 * of a source, 2 of a target. */
att_var *att_transformer_embed(att_tape *t, const att_transformer_decoder *d, att_param *table, const int32_t *ids,
                               int64_t tokens, const att_positions *at, const att_nn_dropout *dropout,
                               uint64_t dropout_id);

/* Encoded sources */
typedef struct att_transformer_memory {
    int64_t n;
    const int64_t *offsets; /* [n + 1] */
    att_var *rows;          /* [offsets[n], hidden] */
} att_transformer_memory;
/* Teacher forcing: inputs ids [offsets[n]] of the decoder -> the input of the output layer, [offsets[n], hidden].
 * of_source [source->n + 1]: tokens of each source, which are in a row; NULL: those of target i are of source i.
 * dropout or NULL: none */
att_var *att_transformer_decoder_apply(att_tape *t, const att_transformer_decoder *d,
                                       const att_transformer_memory *source, const int32_t *ids, const int64_t *offsets,
                                       int64_t n, const int64_t *of_source, const att_nn_dropout *dropout);
/* Adds the parts of both kinds of attention to a pass for a trace, whose info has the numbers of tokens; first_key: how
 * many of the source come before those that the decoder gets. */
void att_transformer_decoder_trace(const att_transformer_decoder *d, int64_t first_key, att_trace_pass *pass);
/* Decoding, a row for each source. After an error *out is {0}. */
att_status att_transformer_decoder_start(att_tape *t, const att_transformer_decoder *d,
                                         const att_transformer_memory *source, att_generator *out);

#endif
