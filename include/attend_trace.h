/* attend_trace.h - what attention does in one pass of a model: weights of all heads, hidden states, ablation.
 *
 * A function of each subject makes a trace (att_sentence_trace, att_language_trace and so on): it applies the model
 * once and keeps queries, keys and hidden states. Rows of weights are computed from these on request, so the memory is
 * linear in the number of tokens:
 *
 *     att_trace *t;
 *     att_sentence_trace(m, text, bytes, NULL, &t);
 *     int64_t i = att_trace_find(t, ATT_TRACE_SIDE_ENCODER, -1);   // the attention of the last layer
 *     att_trace_weights(t, i, head, 0, queries, weights);          // [queries, keys]
 *     att_trace_free(t);
 *
 * The model must outlive its traces. Many threads may use a trace at once. attend.h states how arguments that may be
 * NULL are marked. */
#ifndef ATTEND_TRACE_H
#define ATTEND_TRACE_H

#include "attend.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_trace att_trace;

typedef enum att_trace_side {
    /* Self-attention of an encoder, in which each token attends to all: sentence models, text encoders, vision
     * Transformers, BERT4Rec, the encoder of a translator or captioner */
    ATT_TRACE_SIDE_ENCODER = 0,
    /* Causal self-attention: language models, SASRec, the decoder of a translator or captioner */
    ATT_TRACE_SIDE_DECODER,
    ATT_TRACE_SIDE_CROSS /* of a decoder to its source: translators and captioners */
} att_trace_side;
enum { ATT_TRACE_SIDES = 3 };

typedef struct att_trace_head {
    att_trace_side side;
    int64_t layer, head;
} att_trace_head;

typedef struct att_trace_options {
    size_t size;
    const int32_t *ids; /* [call] [n_ids] or NULL: the tokens of the text instead of the text, as att_tokenize returns
                         * them, special tokens included */
    int64_t n_ids;
    bool describe_only; /* compute nothing: the trace can only be described */
    bool hidden;        /* keep the hidden states of all layers; false: only of the last layer */
    /* Keep queries and keys only of these layers, on each side that has such a layer. n_layers 0, or NULL: of all
     * layers. */
    const int64_t *layers; /* [call] [n_layers] */
    int64_t n_layers;
    /* Tokens to which no token attends: they are masked as keys. If the model has an encoder's side, they are source
     * tokens, masked there and in cross-attention; otherwise (language models, SASRec) they are tokens of the decoder's
     * side. For images, numbers include the tokens before the patches. A token that has no key left gets 0 from the
     * attention. */
    const int64_t *hide; /* [call] [n_hide] */
    int64_t n_hide;
    const att_trace_head *zero; /* [call] [n_zero]: heads whose results become 0 (Michel et al. 2019); or NULL */
    int64_t n_zero;
} att_trace_options;

typedef struct att_trace_info {
    size_t size;
    int64_t attentions; /* attention layers of all sides, numbered in the order in which they are computed */
    int64_t layers[ATT_TRACE_SIDES]; /* number of layers of each side */
    /* Number of tokens on the encoder's side (of an image including those before its patches) and on the decoder's; 0:
     * the model has no such side. */
    int64_t source, target;
    const int32_t *source_ids, *target_ids; /* [source], [target], valid as long as the trace; NULL: these tokens have
                                             * no ids, as in images */
    bool truncated;                         /* the text was too long and its end was cut off */
    /* True for translators and captioners: row t of the decoder and of cross-attention is the step that predicts
     * target_ids[t]; key t of the decoder is the token before that, and key 0 the start. False: row and key t of the
     * decoder are target_ids[t]. */
    bool shifted;
    int64_t grid[2], prefix;       /* for images: rows and columns of patches, and the number of tokens before the
                                    * patches; otherwise 0 */
    const struct att_image *image; /* the preprocessed image that the model sees (attend_vision.h), valid as long as the
                                    * trace; or NULL */
    int64_t hidden[ATT_TRACE_SIDES]; /* features of a hidden state on each side; 0: it has no hidden states */
    int64_t output_rows, outputs;    /* rows and columns of att_trace_output; 0: the model has no output layer */
    /* Memory of the trace, or with describe_only the memory that it would need. If tokens are hidden, each layer also
     * has a plan of less than 8 KiB, which is not counted. */
    size_t bytes;
} att_trace_info;

typedef struct att_trace_attention_info {
    size_t size;
    att_trace_side side;
    int64_t layer; /* of its side */
    int64_t heads, kv_heads, head_dim, key_dim, queries, keys;
    const char *scope; /* of its operations on a tape, "encoder/layer.3/attention": valid as long as the trace */
    const char *score; /* "dot", "additive", ...: as att_score_name */
    bool causal;       /* tokens attend to themselves and to those before them */
    int64_t window;    /* number of tokens that a token attends to, itself included; 0: no limit */
    bool recorded;     /* queries and keys are kept, because options.layers includes the layer */
} att_trace_attention_info;

ATT_API void att_trace_free(att_trace *t);
ATT_API att_status att_trace_describe(const att_trace *t, att_trace_info *info);
/* Describes attention layer i. Error: i out of range. */
ATT_API att_status att_trace_attention(const att_trace *t, int64_t i, att_trace_attention_info *info);
/* Returns the number of the attention of a layer of a side, or -1 if there is none. layer -1: the side's last layer. */
ATT_API int64_t att_trace_find(const att_trace *t, att_trace_side side, int64_t layer);

/* Computes the attention weights of a head, or with head -1 the mean over all heads, for queries [first, first + count)
 * -> out [count, keys]. They are the model's own, with the bits of att_weights, even for heads in options.zero. Errors:
 * out of range; the layer was not kept; numbers that are not finite, because weights are damaged; out of memory;
 * cancelled. */
ATT_API att_status att_trace_weights(const att_trace *t, int64_t i, int64_t head, int64_t first, int64_t count,
                                     float *out);
/* Computes a thumbnail of all weights of a head, or with head -1 of the mean over all heads: the largest weight in each
 * cell of a grid, out [rows, columns], where 255 stands for *scale, the largest weight of all. Row r of the grid has
 * the queries [r queries / rows, (r + 1) queries / rows); columns divide the keys in the same way. Weights are computed
 * in blocks of rows, never all at once. Errors: rows not in [1, queries] or columns not in [1, keys]; those of
 * att_trace_weights. */
ATT_API att_status att_trace_pooled(const att_trace *t, int64_t i, int64_t head, int64_t rows, int64_t columns,
                                    uint8_t *out, float *scale);
/* One weight and the steps to it; see att_pair_describe. */
typedef struct att_trace_pair {
    size_t size;
    const float *query,
        *key; /* [dim], [key_dim], after rotary encoding and normalization: valid as long as the trace */
    int64_t dim, key_dim;
    double score;          /* of query and key, scaled */
    int n_stages;          /* modifiers and masks; a mask "boolean" at the end is that of options.hide */
    const char *stage[16]; /* [n_stages] their names: valid as long as the trace */
    double after[16];      /* [n_stages] the score after each stage; -INFINITY from the first mask on that excludes the
                            * pair */
    int masked_by;         /* which stage that mask is; -1: none */
    double weight;         /* e^(score after all stages - log_sum_exp) */
    double log_sum_exp;    /* of the scores of the query's keys */
    float value_length;    /* Euclidean norm of the key's value, which the weight multiplies (Kobayashi et al. 2020) */
} att_trace_pair;
/* Describes the weight of query q and key k. Errors: head, q or k out of range; those of att_trace_weights. */
ATT_API att_status att_trace_pair_of(const att_trace *t, int64_t i, int64_t head, int64_t q, int64_t k,
                                     att_trace_pair *out);

/* Computes the attention rollout of the encoder's side (Abnar, Zuidema 2020): the product over layers of 0.5 A + 0.5 I,
 * where A is the mean of a layer's heads -> out [source, source]. It allocates two more such matrices. Errors: no such
 * side; those of att_trace_weights. */
ATT_API att_status att_trace_rollout(const att_trace *t, float *out);

/* Copies the hidden states of tokens [first, first + count) of a side -> out [count, hidden]. layer 0: the embeddings;
 * l: the state after l layers, before a final norm; -1: the last. Errors: out of range; not kept (options.hidden); the
 * side has no hidden states, as ATT_TRACE_SIDE_CROSS and the side of a recurrent model. */
ATT_API att_status att_trace_hidden(const att_trace *t, att_trace_side side, int64_t layer, int64_t first,
                                    int64_t count, float *out);
/* Applies the final norm and the output layer to the hidden states of a layer, as if it were the last (the logit lens,
 * nostalgebraist 2020) -> out [count, outputs], rows [first, first + count) of info.output_rows. The output is, for
 * language models and decoders, the logits after each token; for vision models, one row of logits; for sentence models,
 * one row, the embedding; for recommenders, scores of items. layer is as in att_trace_hidden; -1 has the bits of the
 * model. Errors: out of range; not kept; no output layer; a layer other than -1 of a recurrent decoder; out of memory;
 * cancelled. */
ATT_API att_status att_trace_output(const att_trace *t, int64_t layer, int64_t first, int64_t count, float *out);

#ifdef __cplusplus
}
#endif
#endif
