/* attend_trace.h - what attention does in one pass of a model: weights of all heads, hidden states, ablation.
 *
 * A trace is made by a function of its subject, att_sentence_trace, att_language_trace and so on: it applies the model
 * once and keeps queries, keys and hidden states. Rows of weights are computed from these when they are asked for, so
 * the memory is linear in the number of tokens:
 *
 *     att_trace *t;
 *     att_sentence_trace(m, text, bytes, NULL, &t);
 *     int64_t i = att_trace_find(t, ATT_TRACE_SIDE_ENCODER, -1);   // the attention of the last layer
 *     att_trace_weights(t, i, head, 0, queries, weights);          // [queries, keys]
 *     att_trace_free(t);
 *
 * The model must outlive its traces. Many threads may use a trace at once. Arguments that may be NULL are marked as in
 * attend.h. */
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
    const int32_t *ids; /* [call] [n_ids] or NULL: instead of a text its tokens, as att_tokenize has them, special
                         * tokens included */
    int64_t n_ids;
    bool describe_only; /* compute nothing: the trace describes what it would have, and has no numbers */
    bool hidden;        /* keep the hidden states of all layers; false: of the last one alone */
    /* Keep queries and keys of these layers alone, on each side that has such a layer. None, or NULL: of all. */
    const int64_t *layers; /* [call] [n_layers] */
    int64_t n_layers;
    /* Tokens that none attends to: they are masked as keys, on the encoder's side and in cross-attention those of the
     * source, else (language models, SASRec) those of the decoder's side. Of an image they are numbered with the tokens
     * before its patches. A token that then has no key gets 0 from the attention. */
    const int64_t *hide; /* [call] [n_hide] */
    int64_t n_hide;
    const att_trace_head *zero; /* [call] [n_zero]: heads whose results become 0 (Michel et al. 2019); or NULL */
    int64_t n_zero;
} att_trace_options;

typedef struct att_trace_info {
    size_t size;
    int64_t attentions; /* attention layers of all sides, numbered in the order in which they are computed */
    int64_t layers[ATT_TRACE_SIDES]; /* of each side */
    /* Tokens on the encoder's side (of an image with those before its patches) and on the decoder's; 0: the model has
     * no such side. */
    int64_t source, target;
    const int32_t *source_ids, *target_ids; /* [source], [target]: valid as long as the trace; NULL: these tokens have
                                             * no ids, as those of images */
    bool truncated;                         /* the text was too long, and its end was left out */
    /* Of translators and captioners: row t of the decoder and of cross-attention is the step that predicts
     * target_ids[t], and key t of the decoder the token before it, key 0 the start. False: row and key t of the
     * decoder are target_ids[t]. */
    bool shifted;
    int64_t grid[2], prefix;       /* of an image: rows and columns of patches, and tokens before these; or 0 */
    const struct att_image *image; /* what the model sees of an image (attend_vision.h): valid as long as the trace; or
                                    * NULL */
    int64_t hidden[ATT_TRACE_SIDES]; /* features of a hidden state, of each side; 0: it has none */
    int64_t output_rows, outputs;    /* what att_trace_output has: rows and columns; 0: the model has no output layer */
    /* Memory that the trace has, or with describe_only would have; where tokens are hidden, each layer has a plan
     * besides, of less than 8 KiB. */
    size_t bytes;
} att_trace_info;

typedef struct att_trace_attention_info {
    size_t size;
    att_trace_side side;
    int64_t layer; /* of its side */
    int64_t heads, kv_heads, head_dim, key_dim, queries, keys;
    const char *scope; /* of its operations on a tape, "encoder/layer.3/attention": valid as long as the trace */
    const char *score; /* "dot", "additive", ...: as att_score_name */
    bool causal;       /* queries attend to themselves and to what is before them */
    int64_t window;    /* number of tokens that a token attends to, itself included; 0: no limit */
    bool recorded;     /* options.layers does not leave it out */
} att_trace_attention_info;

ATT_API void att_trace_free(att_trace *t);
ATT_API att_status att_trace_describe(const att_trace *t, att_trace_info *info);
/* Attention i. Error: i out of range. */
ATT_API att_status att_trace_attention(const att_trace *t, int64_t i, att_trace_attention_info *info);
/* The number of the attention of a side's layer, layer -1: of its last one; -1: there is none. */
ATT_API int64_t att_trace_find(const att_trace *t, att_trace_side side, int64_t layer);

/* Attention weights of a head, -1: the mean of all, for queries [first, first + count) -> out [count, keys]: those that
 * the model computed, with the bits of att_weights; of a head that options.zero names, too. Errors: out of range; not
 * kept; numbers that are not finite, as of damaged weights; memory; cancelled. */
ATT_API att_status att_trace_weights(const att_trace *t, int64_t i, int64_t head, int64_t first, int64_t count,
                                     float *out);
/* A thumbnail of all weights of a head, -1: of the mean of all: the largest one in each cell of a grid, out [rows,
 * columns], where 255 is *scale, the largest of all. Row r of the grid has the queries [r queries / rows, (r + 1)
 * queries / rows), and columns likewise. Weights are computed by blocks of rows, and never needed all at once. Errors:
 * rows not in [1, queries] or columns not in [1, keys]; those of att_trace_weights. */
ATT_API att_status att_trace_pooled(const att_trace *t, int64_t i, int64_t head, int64_t rows, int64_t columns,
                                    uint8_t *out, float *scale);
/* What one weight is made of; see att_pair_describe. */
typedef struct att_trace_pair {
    size_t size;
    const float *query,
        *key; /* [dim], [key_dim], after rotary encoding and normalization: valid as long as the trace */
    int64_t dim, key_dim;
    double score;          /* of query and key, scaled */
    int n_stages;          /* modifiers and masks; a mask "boolean" at the end is that of options.hide */
    const char *stage[16]; /* [n_stages] their names: valid as long as the trace */
    double after[16];   /* [n_stages] the score after each; -INFINITY from the first mask on that leaves the pair out */
    int masked_by;      /* which stage that mask is; -1: none */
    double weight;      /* e^(score after all stages - log_sum_exp) */
    double log_sum_exp; /* of the scores of the query's keys */
    float value_length; /* Euclidean norm of the key's value, which the weight multiplies (Kobayashi et al. 2020) */
} att_trace_pair;
/* Errors: head, q or k out of range; those of att_trace_weights. */
ATT_API att_status att_trace_pair_of(const att_trace *t, int64_t i, int64_t head, int64_t q, int64_t k,
                                     att_trace_pair *out);

/* Attention rollout of the encoder's side: the product over layers of 0.5 A + 0.5 I, where A is the mean of a layer's
 * heads (Abnar, Zuidema 2020) -> out [source, source]; takes memory for two more of these. Errors: no such side; those
 * of att_trace_weights. */
ATT_API att_status att_trace_rollout(const att_trace *t, float *out);

/* Hidden states of a side, of the tokens [first, first + count) -> out [count, hidden]. Layer 0: the embeddings; layer
 * l: what l layers have made of them, before a final norm; -1: the last. Errors: out of range; not kept
 * (options.hidden); a side without hidden states, as ATT_TRACE_SIDE_CROSS and that of a recurrent model. */
ATT_API att_status att_trace_hidden(const att_trace *t, att_trace_side side, int64_t layer, int64_t first,
                                    int64_t count, float *out);
/* What the model makes of the hidden states of a layer as if it were the last: final norm and output layer (the logit
 * lens, nostalgebraist 2020) -> out [count, outputs], rows [first, first + count) of info.output_rows. Of language
 * models and decoders: logits after each token; of vision models: one row of logits; of sentence models: one row, the
 * embedding; of recommenders: scores of items. layer: as in att_trace_hidden; -1 has the bits of the model. Errors: out
 * of range; not kept; no output layer; a layer other than -1 of a recurrent decoder; memory; cancelled. */
ATT_API att_status att_trace_output(const att_trace *t, int64_t layer, int64_t first, int64_t count, float *out);

#ifdef __cplusplus
}
#endif
#endif
