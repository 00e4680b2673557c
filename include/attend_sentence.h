/* attend_sentence.h - sentence embeddings, and their training.
 *
 * Chapters: 1 Sentence embeddings, 2 Training.
 *
 * A model is a folder in the format in which it is published, as in attend_model.h, whose rules for names, files and
 * threads hold here, too. Arguments that may be NULL are marked as in attend.h. */
#ifndef ATTEND_SENTENCE_H
#define ATTEND_SENTENCE_H

#include "attend_encoder.h"
#include "attend_train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1 Sentence embeddings ---------------------------------------------- */

/* A sentence-transformers folder: Transformer, Pooling, optionally Normalize (Reimers, Gurevych 2019). Or that of an
 * encoder without modules.json, whose hidden states are averaged, as sentence-transformers does. */
typedef struct att_sentence att_sentence;

/* How similar two embeddings are: a model's own measure, "similarity_fn_name" of sentence-transformers. The last two
 * are distances, less than 0. */
typedef enum att_similarity {
    ATT_SIMILARITY_COSINE = 0,
    ATT_SIMILARITY_DOT,       /* a . b */
    ATT_SIMILARITY_EUCLIDEAN, /* -|a - b| */
    ATT_SIMILARITY_MANHATTAN  /* -sum |a_i - b_i| */
} att_similarity;

typedef struct att_sentence_info {
    size_t size;
    int64_t dim;        /* of an embedding */
    int64_t max_tokens; /* longer sentences are truncated */
    int64_t layers, heads;
    att_pooling pooling;
    bool normalized; /* embeddings have norm 1: their dot product is the cosine similarity */
    bool plain;      /* the folder is that of an encoder alone, without modules.json: pooling is the mean, as there */
    att_similarity similarity;
} att_sentence_info;

/* options or NULL: defaults */
ATT_API att_status att_sentence_open(att_ctx *ctx, const char *folder, const att_model_options *options,
                                     att_sentence **out);
ATT_API void att_sentence_free(att_sentence *m);
ATT_API att_status att_sentence_describe(const att_sentence *m, att_sentence_info *info);
ATT_API att_status att_sentence_weights(const att_sentence *m, att_model_weights *weights);
/* Its parameters, those of its encoder: see attend_model.h. */
ATT_API const att_nn_params *att_sentence_params(const att_sentence *m);
ATT_API const att_tokenizer *att_sentence_tokenizer(const att_sentence *m);
/* Its encoder, for hidden states and attention of ids; of a model that was opened for training, for its parameters. */
ATT_API const att_encoder *att_sentence_encoder(const att_sentence *m);
/* Gives back the memory that calls have left for the next ones: that of the largest batches of at most 16 calls that
 * ran at once. May be called while others use the model. m or NULL: nothing. */
ATT_API void att_sentence_trim(const att_sentence *m);
/* Bytes of that memory. m or NULL: 0 */
ATT_API size_t att_sentence_idle_bytes(const att_sentence *m);

typedef struct att_embed_options {
    size_t size;
    const int32_t *ids; /* [call] [offsets[n]] or NULL: instead of texts, the tokens of each as att_tokenize has them,
                         * special tokens included; texts are NULL */
    const int64_t *offsets; /* [call] [n + 1] ascending from 0, of ids; or NULL */
    int64_t *tokens; /* [call] or NULL: receives the number of tokens of each text [n], special tokens included, after
                      * it was truncated */
    bool *truncated; /* [call] or NULL: receives whether each text [n] was truncated */
    att_progress_fn progress; /* [call] in numbers of texts; or NULL */
    void *user;               /* [call] */
} att_embed_options;

/* Embeds sentences: texts [n] with lengths bytes [n] or NULL (zero-terminated) -> out [n, dim], in the given order,
 * with the same bits whatever else is in the call. Where options.ids are given, there are no texts. options or NULL:
 * defaults. Texts are embedded in blocks, so that the memory besides out does not grow with n. One with more than
 * max_tokens is truncated. Errors: a text that is NULL; given ids that are not in the vocabulary, or of a text none or
 * more than max_tokens; a vector that is not finite, as of damaged weights; memory; cancelled. After an error out,
 * tokens and truncated may be written in part. */
ATT_API att_status att_sentence_embed(const att_sentence *m, int64_t n, const char *const *texts, const size_t *bytes,
                                      const att_embed_options *options, float *out);

typedef struct att_token_embeddings { /* att_token_embeddings_free frees the arrays */
    int64_t *offsets;                 /* [n + 1]: the rows of text i are [offsets[i], offsets[i + 1]) */
    int32_t *ids;                     /* [offsets[n]]: the tokens, special ones included */
    float *vectors;                   /* [offsets[n], hidden]: of each, the encoder's hidden state of the last layer */
    void *reserved[2];
    int64_t reserved_number[2];
} att_token_embeddings;
/* Vectors of each token of texts [n] with lengths bytes [n] or NULL (zero-terminated), or of options.ids: what
 * att_sentence_embed pools, sentence-transformers' output_value="token_embeddings". options or NULL: defaults. The same
 * bits whatever else is in the call; texts and errors are as there. */
ATT_API att_status att_sentence_embed_tokens(const att_sentence *m, int64_t n, const char *const *texts,
                                             const size_t *bytes, const att_embed_options *options,
                                             att_token_embeddings *out);
ATT_API void att_token_embeddings_free(att_ctx *ctx, att_token_embeddings *e);

/* Opens the model for training; its parameters are those of its encoder. options or NULL: defaults. att_sentence_write
 * writes a model that was opened for training as a folder, which is created if it does not exist: model.safetensors and
 * all settings and tokenizer files of the original folder. dtype: of the weights; 0: f32. */
ATT_API att_status att_sentence_open_for_training(att_ctx *ctx, const char *folder,
                                                  const att_trainable_options *options, att_sentence **out);
ATT_API att_status att_sentence_write(const att_sentence *m, const char *folder, att_dtype dtype);

/* Attention, hidden states and what depends on them of one text [bytes], which is truncated to max_tokens, or of
 * options.ids, where text is NULL: see attend_trace.h. Its output is one row, the embedding. options or NULL: defaults.
 * Errors: options out of range; both text and ids, or none; ids that are not in the vocabulary; memory; cancelled. */
ATT_API att_status att_sentence_trace(const att_sentence *m, const char *text, size_t bytes,
                                      const att_trace_options *options, att_trace **out);

/* ---- 2 Training --------------------------------------------------------- */

/* The loss of an example, a row of texts with embeddings u, v, ...; each equals sentence-transformers'. */
typedef enum att_sentence_loss {
    /* (cos(u, v) - score)^2 of pairs with scores: CosineSimilarityLoss (Reimers, Gurevych 2019, 3.1) */
    ATT_SENTENCE_LOSS_COSINE_SIMILARITY = 0,
    /* Cross entropy of softmax(scale cos(u_i, v_j)) over all texts j of the batch in the other columns, where i is
     * the right one: MultipleNegativesRankingLoss (Henderson et al. 2017, 4.4; InfoNCE). From pairs alone, or with
     * hard negatives as third and further texts. No text occurs twice in a batch (BatchSamplers.NO_DUPLICATES). */
    ATT_SENTENCE_LOSS_MULTIPLE_NEGATIVES_RANKING,
    /* max(0, d(u, v) - d(u, w) + margin) of an anchor, a positive and a negative: TripletLoss */
    ATT_SENTENCE_LOSS_TRIPLET,
    /* Cross entropy of softmax(W (u, v, |u - v|) + b) of labeled pairs: SoftmaxLoss. The classifier W, b learns, too;
     * checkpoints have it, the model has not. */
    ATT_SENTENCE_LOSS_SOFTMAX
} att_sentence_loss;
typedef enum att_sentence_distance {
    ATT_SENTENCE_DISTANCE_EUCLIDEAN = 0,
    ATT_SENTENCE_DISTANCE_COSINE /* 1 - cos */
} att_sentence_distance;

/* Training of a sentence embedding model from pairs, triplets or longer rows of texts: minimizes the mean loss with
 * AdamW. Weight decay is of all matrices. */
typedef struct att_sentence_training_options {
    size_t size;
    int64_t pairs;            /* rows */
    const char *const *texts; /* [call] [pairs, columns], UTF-8 */
    const size_t *bytes;      /* [call] [pairs, columns], or NULL: zero-terminated */
    const double *scores;     /* [call] [pairs]: target cosines, from -1 to 1; of the cosine loss */
    int64_t batch;            /* rows; 0: 16 */
    const char *model;        /* [call] of att_sentence_training_open only: the folder of the pre-trained model */
    /* The loss. */
    att_sentence_loss loss;
    att_sentence_distance distance; /* of the triplet loss */
    int64_t columns;                /* texts of a row; 0: 3 for the triplet loss, otherwise 2 */
    const int32_t *labels;          /* [call] [pairs], from 0 to classes - 1; of the softmax loss */
    int64_t classes;
    double scale;  /* of the ranking loss, 1 / temperature; 0: 20 */
    double margin; /* of the triplet loss; 0: 5, with the cosine distance 0.5 */
} att_sentence_training_options;
/* In memory: the model, which was opened for training, must outlive the training. In a folder, which is not that of the
 * pre-trained model and becomes a sentence-transformers folder. */
ATT_API att_status att_sentence_training_new(att_sentence *m, const att_training_options *common,
                                             const att_sentence_training_options *options, att_training **out);
ATT_API att_status att_sentence_training_open(att_ctx *ctx, const char *folder, const att_training_options *common,
                                              const att_sentence_training_options *options, att_training **out);
ATT_API const att_sentence *att_training_sentence(const att_training *t); /* NULL for other trainings */

#ifdef __cplusplus
}
#endif
#endif
