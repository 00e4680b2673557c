/* attend_sentence.h - sentence embeddings, and their training.
 *
 * Chapters: 1 Sentence embeddings, 2 Training.
 *
 * A model is a folder in the format in which it is published. attend_model.h has the rules for names, files and
 * threads, attend.h those for arguments that may be NULL. */
#ifndef ATTEND_SENTENCE_H
#define ATTEND_SENTENCE_H

#include "attend_encoder.h"
#include "attend_train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1 Sentence embeddings ---------------------------------------------- */

/* A sentence embedding model: a sentence-transformers folder (Reimers, Gurevych 2019) with a text encoder, a causal
 * language model or static embeddings, and the modules of modules.json, each applied to the result of the one before
 * it: Pooling, Dense, LayerNorm, Normalize and Dropout. Or a folder without modules.json: of an encoder, whose hidden
 * states are averaged, of a causal language model, whose last one counts (both as in sentence-transformers), or of
 * model2vec. */
typedef struct att_sentence att_sentence;

/* The measure of similarity that a model is meant for, "similarity_fn_name" of sentence-transformers. The last two are
 * negated distances. */
typedef enum att_similarity {
    ATT_SIMILARITY_COSINE = 0,
    ATT_SIMILARITY_DOT,       /* a . b */
    ATT_SIMILARITY_EUCLIDEAN, /* -|a - b| */
    ATT_SIMILARITY_MANHATTAN  /* -sum |a_i - b_i| */
} att_similarity;

enum { ATT_MAX_POOLINGS = 8 };
typedef struct att_sentence_info {
    size_t size;
    int64_t dim; /* of an embedding: full_dim, or less if config_sentence_transformers.json has a "truncate_dim" */
    int64_t max_tokens;    /* longer sentences are truncated */
    int64_t layers, heads; /* 0: it has no attention, as static embeddings */
    /* [poolings]: how hidden states become a vector; those of more than one are concatenated. 0: no Pooling does. */
    att_pooling pooling[ATT_MAX_POOLINGS];
    int64_t poolings;
    bool normalized; /* embeddings have norm 1: their dot product is the cosine similarity */
    bool plain;      /* the folder has no modules.json, and has an encoder or a causal language model alone */
    att_similarity similarity;
    int64_t full_dim;           /* of an embedding that is not truncated */
    int64_t token_dim;          /* of the vector of a token */
    int64_t prompts;            /* number of prompts: see att_sentence_prompt_at */
    const char *default_prompt; /* the name of the prompt where options have none; NULL: there is none. Valid as long as
                                 * the model. */
} att_sentence_info;

/* Opens a model for inference. options or NULL: defaults. */
ATT_API att_status att_sentence_open(att_ctx *ctx, const char *folder, const att_model_options *options,
                                     att_sentence **out);
ATT_API void att_sentence_free(att_sentence *m);
ATT_API att_status att_sentence_describe(const att_sentence *m, att_sentence_info *info);
ATT_API att_status att_sentence_weights(const att_sentence *m, att_model_weights *weights);
/* Returns the model's parameters: those of its encoder and those of its modules. "module.2.linear.weight" is that of
 * module 2 of modules.json, counted from 0. See attend_model.h. */
ATT_API const att_nn_params *att_sentence_params(const att_sentence *m);
ATT_API const att_tokenizer *att_sentence_tokenizer(const att_sentence *m);
/* Returns the model's encoder, for hidden states and attention of ids; NULL: it has none. If the model was opened for
 * training, the encoder has its trainable parameters. */
ATT_API const att_encoder *att_sentence_encoder(const att_sentence *m);
/* Returns the text of prompt i and its name, both valid as long as the model; NULL if i is out of range. name or NULL.
 * A prompt is text before each text. All models have the prompts "query" and "document", which are empty unless
 * config_sentence_transformers.json has others, as in sentence-transformers 6. */
ATT_API const char *att_sentence_prompt_at(const att_sentence *m, int64_t i, const char **name);
/* Finds the text of a prompt by its name; name or NULL: the default prompt, "" if there is none. Errors: no such
 * prompt; the message lists the names of all. */
ATT_API att_status att_sentence_prompt(const att_sentence *m, const char *name, const char **text);
/* Frees the memory that calls keep for later calls: for each of at most 16 calls that ran at once, that of its largest
 * batch. Other threads may use the model meanwhile. m or NULL: does nothing. */
ATT_API void att_sentence_trim(const att_sentence *m);
/* Returns the bytes of memory that calls keep for later calls, which att_sentence_trim frees. m or NULL: 0. */
ATT_API size_t att_sentence_idle_bytes(const att_sentence *m);

typedef struct att_embed_options {
    size_t size;
    const int32_t *ids; /* [call] [offsets[n]] or NULL: instead of texts, the tokens of each as att_tokenize has them,
                         * special tokens included; texts are NULL */
    const int64_t *offsets; /* [call] [n + 1] ascending from 0, of ids; or NULL */
    int64_t *tokens; /* [call] or NULL: receives the number of tokens of each text [n], special tokens included, after
                      * it was truncated */
    bool *truncated; /* [call] or NULL: receives whether each text [n] was truncated */
    att_progress_fn progress; /* [call] called as texts are finished; or NULL */
    void *user;               /* [call] */
    /* Text before each text, or the name of one of the model's prompts. Both NULL: the model's default prompt; prompt
     * "": no prompt. Given ids get no prompt. A Pooling whose "include_prompt" is false does not pool the tokens of the
     * prompt. Their number is that of the prompt alone without a special token at its end, as in
     * sentence-transformers. */
    const char *prompt, *prompt_name; /* [call] or NULL */
    /* The size of an embedding, from 1 to full_dim; 0: info.dim. If it is less than full_dim, an embedding is its first
     * dims numbers. If the model normalizes embeddings, they are then normalized to norm 1, as by
     * sentence-transformers' encode(truncate_dim=dims, normalize_embeddings=True). */
    int64_t dims;
    /* Receives whether some part of each text [n], or of its prompt, is not in the vocabulary, and became the unknown
     * token or was left out. att_tokenize_options.unknown receives which. */
    bool *unknown; /* [call] or NULL */
} att_embed_options;

/* Embeds sentences: texts [n] with lengths bytes [n] or NULL (zero-terminated) -> out [n, options.dims or dim], in the
 * given order. An embedding has the same bits whatever else is in the call. If options.ids is given, texts is NULL.
 * options or NULL: defaults. Texts are embedded in blocks, so the memory besides out does not grow with n. A text that
 * has more than max_tokens tokens, with its prompt, is truncated. Errors: a text that is NULL; no such prompt; dims out
 * of range; an id that is not in the vocabulary; a text with no ids or with more than max_tokens; a vector that is not
 * finite, because weights are damaged; out of memory; cancelled. After an error, out, tokens and truncated may be
 * written in part. */
ATT_API att_status att_sentence_embed(const att_sentence *m, int64_t n, const char *const *texts, const size_t *bytes,
                                      const att_embed_options *options, float *out);

typedef struct att_token_embeddings { /* att_token_embeddings_free frees the arrays */
    int64_t *offsets;                 /* [n + 1]: the rows of text i are [offsets[i], offsets[i + 1]) */
    int32_t *ids;                     /* [offsets[n]]: the tokens, those of a prompt and special ones included */
    float *vectors;                   /* [offsets[n], token_dim]: the hidden state of each token after the last layer,
                                       * to which modules of token_embeddings have been applied */
    void *reserved[2];
    int64_t reserved_number[2];
} att_token_embeddings;
/* Computes a vector for each token of texts [n] with lengths bytes [n] or NULL (zero-terminated), or of options.ids:
 * the vectors that att_sentence_embed pools (sentence-transformers' output_value="token_embeddings"). options or NULL:
 * defaults; dims is 0. Vectors have the same bits whatever else is in the call. Texts and errors are as for
 * att_sentence_embed. */
ATT_API att_status att_sentence_embed_tokens(const att_sentence *m, int64_t n, const char *const *texts,
                                             const size_t *bytes, const att_embed_options *options,
                                             att_token_embeddings *out);
ATT_API void att_token_embeddings_free(att_ctx *ctx, att_token_embeddings *e);

/* att_sentence_open_for_training opens a model for training. options or NULL: defaults. att_sentence_write writes such
 * a model as a folder, which it creates if needed: the weights of the encoder and of modules, and all settings and
 * tokenizer files of the original folder. dtype is that of the weights; 0: f32. */
ATT_API att_status att_sentence_open_for_training(att_ctx *ctx, const char *folder,
                                                  const att_trainable_options *options, att_sentence **out);
ATT_API att_status att_sentence_write(const att_sentence *m, const char *folder, att_dtype dtype);

/* Traces one pass of the model (attend_trace.h): its attention and hidden states for one text [bytes] after a prompt,
 * truncated to max_tokens, or for options.ids, if text is NULL. The output is one row, the embedding. prompt or NULL:
 * the model's default prompt. options or NULL: defaults. Errors: options out of range; both text and ids, or neither;
 * an id that is not in the vocabulary; the model has no attention; out of memory; cancelled. */
ATT_API att_status att_sentence_trace(const att_sentence *m, const char *text, size_t bytes, const char *prompt,
                                      const att_trace_options *options, att_trace **out);

/* ---- 2 Training --------------------------------------------------------- */

/* The loss of an example, which is a row of texts with embeddings u, v, ... Each equals the loss of the same name in
 * sentence-transformers. */
typedef enum att_sentence_loss {
    /* (cos(u, v) - score)^2 of pairs with scores: CosineSimilarityLoss (Reimers, Gurevych 2019, 3.1) */
    ATT_SENTENCE_LOSS_COSINE_SIMILARITY = 0,
    /* Cross entropy of softmax(scale cos(u_i, v_j)) over all texts j of the batch in the other columns, where i is the
     * correct one: MultipleNegativesRankingLoss (Henderson et al. 2017, 4.4; InfoNCE). Rows are pairs; a third and
     * further texts are hard negatives. No text occurs twice in a batch (BatchSamplers.NO_DUPLICATES). */
    ATT_SENTENCE_LOSS_MULTIPLE_NEGATIVES_RANKING,
    /* max(0, d(u, v) - d(u, w) + margin) of an anchor, a positive and a negative: TripletLoss */
    ATT_SENTENCE_LOSS_TRIPLET,
    /* Cross entropy of softmax(W (u, v, |u - v|) + b) of labeled pairs: SoftmaxLoss. The classifier W, b is trained
     * with the model. Checkpoints contain it; the model that is written does not. */
    ATT_SENTENCE_LOSS_SOFTMAX
} att_sentence_loss;
typedef enum att_sentence_distance {
    ATT_SENTENCE_DISTANCE_EUCLIDEAN = 0,
    ATT_SENTENCE_DISTANCE_COSINE /* 1 - cos */
} att_sentence_distance;

/* Training of a sentence embedding model from pairs, triplets or longer rows of texts: it minimizes the mean loss with
 * AdamW. Weight decay applies to all matrices. Texts get no prompt, and embeddings are not truncated, as in
 * sentence-transformers. */
typedef struct att_sentence_training_options {
    size_t size;
    int64_t pairs;            /* rows */
    const char *const *texts; /* [call] [pairs, columns], UTF-8 */
    const size_t *bytes;      /* [call] [pairs, columns], or NULL: zero-terminated */
    const double *scores;     /* [call] [pairs]: target cosines, from -1 to 1, for the cosine loss */
    int64_t batch;            /* rows; 0: 16 */
    const char *model;        /* [call] for att_sentence_training_open only: the folder of the pre-trained model */
    /* The loss. */
    att_sentence_loss loss;
    att_sentence_distance distance; /* for the triplet loss */
    int64_t columns;                /* texts of a row; 0: 3 for the triplet loss, otherwise 2 */
    const int32_t *labels;          /* [call] [pairs], from 0 to classes - 1, for the softmax loss */
    int64_t classes;
    double scale;  /* for the ranking loss: 1 / temperature; 0: 20 */
    double margin; /* for the triplet loss; 0: 5, or 0.5 with the cosine distance */
} att_sentence_training_options;
/* att_sentence_training_new trains a model in memory, which was opened for training and must outlive the training.
 * att_sentence_training_open trains in a folder, which becomes a sentence-transformers folder and must not be that of
 * the pre-trained model. */
ATT_API att_status att_sentence_training_new(att_sentence *m, const att_training_options *common,
                                             const att_sentence_training_options *options, att_training **out);
ATT_API att_status att_sentence_training_open(att_ctx *ctx, const char *folder, const att_training_options *common,
                                              const att_sentence_training_options *options, att_training **out);
ATT_API const att_sentence *att_training_sentence(const att_training *t); /* NULL for other trainings */

#ifdef __cplusplus
}
#endif
#endif
