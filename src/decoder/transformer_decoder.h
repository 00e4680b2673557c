/* The decoder of the Transformer (Vaswani et al. 2017), internal. An encoder gives it a row for each token of a text
 * (transformer.c) or for each location of an image (captioner.c). */
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

/* Returns the embeddings of ids [tokens], scaled if the configuration states it, plus positions. Sources and targets
 * use it; dropout_id is 1 for a source and 2 for a target. */
att_var *att_transformer_embed(att_tape *t, const att_transformer_decoder *d, att_param *table, const int32_t *ids,
                               int64_t tokens, const att_positions *at, const att_nn_dropout *dropout,
                               uint64_t dropout_id);

/* Encoded sources */
typedef struct att_transformer_memory {
    int64_t n;
    const int64_t *offsets; /* [n + 1] */
    att_var *rows;          /* [offsets[n], hidden] */
} att_transformer_memory;
/* Applies the decoder to known target tokens (teacher forcing): ids [offsets[n]]. Returns the input of the output
 * layer, [offsets[n], hidden]. of_source [source->n + 1] are the offsets of each source's tokens, which are adjacent;
 * NULL: the tokens of target i belong to source i. dropout NULL: none. */
att_var *att_transformer_decoder_apply(att_tape *t, const att_transformer_decoder *d,
                                       const att_transformer_memory *source, const int32_t *ids, const int64_t *offsets,
                                       int64_t n, const int64_t *of_source, const att_nn_dropout *dropout);
/* Adds both kinds of attention to a pass for a trace. info has the numbers of tokens. The decoder gets the source's
 * tokens from first_key on. */
void att_transformer_decoder_trace(const att_transformer_decoder *d, int64_t first_key, att_trace_pass *pass);
/* Starts decoding with a row for each source. After an error *out is {0}. */
att_status att_transformer_decoder_start(att_tape *t, const att_transformer_decoder *d,
                                         const att_transformer_memory *source, att_generator *out);

#endif
