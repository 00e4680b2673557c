/* attend_text_classifier.h - classifiers of texts and of pairs of texts, reranking, and their training.
 *
 * Chapters: 1 Classifiers, 2 Training, 3 Probes.
 *
 * A model is a folder in the format in which it is published, as in attend_model.h, whose rules for names, files and
 * threads hold here, too. Arguments that may be NULL are marked as in attend.h. */
#ifndef ATTEND_TEXT_CLASSIFIER_H
#define ATTEND_TEXT_CLASSIFIER_H

#include "attend_encoder.h"
#include "attend_probe.h"
#include "attend_train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1 Classifiers ------------------------------------------------------ */

/* A text encoder with a classifier on the vector of the first token (or, as ModernBERT's settings state, on the mean),
 * with its tokenizer and the names of its labels: BertForSequenceClassification and the classes of the other encoders
 * of `transformers`. With one label and pairs of texts it is a cross-encoder, which reads a query and a document
 * together and scores them (Nogueira, Cho 2019): CrossEncoder of sentence-transformers.
 *
 * Or a sentence model (attend_sentence.h) with a probe of att_text_probe_train, which classifies its embeddings: texts
 * alone, truncated to its max_tokens. Its scores are those of att_probe_scores. */
typedef struct att_text_classifier att_text_classifier;

/* The function that is applied to the logits. */
typedef enum att_text_activation {
    ATT_TEXT_ACTIVATION_MODEL = 0, /* in options: att_text_classifier_info.activation */
    ATT_TEXT_ACTIVATION_IDENTITY,
    ATT_TEXT_ACTIVATION_SIGMOID, /* of each logit by itself */
    ATT_TEXT_ACTIVATION_SOFTMAX  /* over all labels */
} att_text_activation;

typedef struct att_text_classifier_info {
    size_t size;
    const char *type;   /* of its encoder, as "bert"; valid as long as the model */
    int64_t labels;     /* numbers of a result; 1: a score */
    int64_t max_tokens; /* of a text or pair, special tokens included; longer ones are truncated */
    int64_t hidden, layers, heads;
    /* The activation of CrossEncoder: "activation_fn" of config_sentence_transformers.json or, in config.json, of
     * "sentence_transformers", otherwise "sbert_ce_default_activation_function". If there are none of these, it is the
     * sigmoid for one label, and the identity for several. */
    att_text_activation activation;
    /* The activation that makes probabilities of the logits, which the pipeline of `transformers` chooses by
     * "problem_type": the sigmoid for one label and for multi_label_classification, otherwise the softmax. Regression
     * has no probabilities, and here the identity. */
    att_text_activation probability;
} att_text_classifier_info;

/* Opens a model for inference. options or NULL: defaults. Errors: the folder has an encoder without a classifier, or a
 * model of another kind; there are not as many names of labels as the classifier has. */
ATT_API att_status att_text_classifier_open(att_ctx *ctx, const char *folder, const att_model_options *options,
                                            att_text_classifier **out);
/* Opens a model for training: it has its own f32 weights, except frozen ones. options or NULL: defaults. */
ATT_API att_status att_text_classifier_open_for_training(att_ctx *ctx, const char *folder,
                                                         const att_trainable_options *options,
                                                         att_text_classifier **out);
typedef struct att_text_labels {
    size_t size;
    int64_t n;                /* labels; 1: a score */
    const char *const *names; /* [call] [n], UTF-8, no two the same; or NULL: "LABEL_0", "LABEL_1" ... */
    uint64_t seed;            /* of the initialization */
} att_text_labels;
/* Opens a folder for training with these labels: that of a classifier, of an encoder, or of a sentence model whose
 * encoder is in its main folder. If the folder has other names of labels or another number of them, the last matrix is
 * new, drawn from a normal distribution with a standard deviation of 0.02; so are other parts of the classifier that
 * the folder lacks. If labels has no names, a folder with as many labels keeps its own. options or NULL: defaults. */
ATT_API att_status att_text_classifier_new(att_ctx *ctx, const char *folder, const att_text_labels *labels,
                                           const att_trainable_options *options, att_text_classifier **out);
ATT_API void att_text_classifier_free(att_text_classifier *m);
ATT_API att_status att_text_classifier_describe(const att_text_classifier *m, att_text_classifier_info *info);
ATT_API att_status att_text_classifier_weights(const att_text_classifier *m, att_model_weights *weights);
/* Returns the model's parameters: those of its encoder, and those of its head, whose names begin with "classifier.".
 * See attend_model.h. */
ATT_API const att_nn_params *att_text_classifier_params(const att_text_classifier *m);
ATT_API const att_tokenizer *att_text_classifier_tokenizer(const att_text_classifier *m);
/* NULL: it is a probe of a model without an encoder. */
ATT_API const att_encoder *att_text_classifier_encoder(const att_text_classifier *m);
/* Returns the probe that the folder has in probe.json; NULL: it has none. */
ATT_API const att_probe *att_text_classifier_probe(const att_text_classifier *m);
/* Returns the name of label i, that of "id2label" or "LABEL_0"; NULL if i is out of range. */
ATT_API const char *att_text_classifier_label(const att_text_classifier *m, int64_t i);
/* Frees the memory that calls keep for later calls: for each of at most 16 calls that ran at once, that of its largest
 * batch. Other threads may use the model meanwhile. m or NULL: does nothing. */
ATT_API void att_text_classifier_trim(const att_text_classifier *m);
/* Returns the bytes of memory that calls keep for later calls, which att_text_classifier_trim frees. m or NULL: 0. */
ATT_API size_t att_text_classifier_idle_bytes(const att_text_classifier *m);

typedef struct att_text_classify_options {
    size_t size;
    const char *const *pairs; /* [call] [n]: the second texts of pairs; or NULL: each text stands alone */
    const size_t *pair_bytes; /* [call] [n]: their lengths; or NULL: they are zero-terminated */
    att_text_activation activation;
    int64_t max_tokens; /* to which texts are truncated, at most the model's; 0: the model's */
    /* Instead of texts and pairs, the tokens of each as att_tokenize and att_tokenize_pair have them, special tokens
     * included; texts are NULL. */
    const int32_t *ids;      /* [call] [offsets[n]] or NULL */
    const int32_t *type_ids; /* [call] [offsets[n]] or NULL: all 0 */
    const int64_t *offsets;  /* [call] [n + 1] ascending from 0; or NULL */
    int64_t *tokens; /* [call] or NULL: receives the number of tokens of each text or pair [n], special tokens included,
                      * after it was truncated */
    bool *truncated; /* [call] or NULL: receives whether each text or pair [n] was truncated */
    att_progress_fn progress; /* [call] in numbers of texts; or NULL */
    void *user;               /* [call] */
} att_text_classify_options;
/* Scores the labels of texts [n] with lengths bytes [n] or NULL (zero-terminated), or of pairs with options.pairs ->
 * out [n, labels], in the given order. A score has the same bits whatever else is in the call. If options.ids is given,
 * texts is NULL. If a pair has more than max_tokens, the longer text loses tokens first, as with "longest_first" of
 * `transformers`. options or NULL: defaults. The memory besides out does not grow with n. Errors: a text that is NULL;
 * max_tokens less than the number of special tokens or more than the model's; ids or types of tokens that the model
 * does not have; a text with no ids or with more than max_tokens; a score that is not finite, because weights are
 * damaged; of a probe, pairs, types of tokens, or another max_tokens than the model's; out of memory; cancelled. After
 * an error, out, tokens and truncated may be written in part. */
ATT_API att_status att_text_classify(const att_text_classifier *m, int64_t n, const char *const *texts,
                                     const size_t *bytes, const att_text_classify_options *options, float *out);

typedef struct att_ranked_text {
    int64_t document;
    float score;
} att_ranked_text;
typedef struct att_text_rank_options {
    size_t size;
    int64_t top; /* documents of the result; 0: all */
    att_text_activation activation;
    int64_t max_tokens;       /* of a pair, at most the model's; 0: the model's */
    int64_t *tokens;          /* [call] or NULL: receives the number of tokens of each pair of query and document [n] */
    bool *truncated;          /* [call] or NULL: receives whether each pair [n] was truncated */
    att_progress_fn progress; /* [call] in numbers of documents; or NULL */
    void *user;               /* [call] */
} att_text_rank_options;
/* Ranks documents [n] with lengths bytes [n] or NULL (zero-terminated) by their score with a query [query_bytes]: the
 * best first, equal ones in the given order -> out [n], or [top] if that is less. options or NULL: defaults. Errors:
 * those of att_text_classify; the model has more than one label; the activation is the softmax, which is 1 for one
 * label. */
ATT_API att_status att_text_rank(const att_text_classifier *m, const char *query, size_t query_bytes, int64_t n,
                                 const char *const *documents, const size_t *bytes,
                                 const att_text_rank_options *options, att_ranked_text *out);

/* Writes a model that was opened for training as a folder, which it creates if needed: config.json with its labels and
 * activation, model.safetensors in the format of its class, and the tokenizer files of the original folder.
 * `transformers` and CrossEncoder open it. dtype is that of the weights; 0: f32. */
ATT_API att_status att_text_classifier_write(const att_text_classifier *m, const char *folder, att_dtype dtype);

/* Traces one pass of the model (attend_trace.h): its attention and hidden states for one text [bytes], or for a pair
 * whose second text is pair [pair_bytes], truncated to max_tokens, or for options.ids, if text is NULL. The output is
 * one row, the logits. pair or NULL: the text alone. options or NULL: defaults. Errors: the model is a probe, whose
 * sentence model att_sentence_trace traces; options out of range; both text and ids, or neither; an id that is not in
 * the vocabulary; out of memory; cancelled. */
ATT_API att_status att_text_classifier_trace(const att_text_classifier *m, const char *text, size_t bytes,
                                             const char *pair, size_t pair_bytes, const att_trace_options *options,
                                             att_trace **out);

/* ---- 2 Training --------------------------------------------------------- */

/* The loss of an example, which is a row of texts. Each equals that of the same name for CrossEncoder in
 * sentence-transformers. */
typedef enum att_text_classifier_loss {
    /* -t log s - (1 - t) log(1 - s), s = sigmoid(logit), of pairs with scores t from 0 to 1: BinaryCrossEntropyLoss */
    ATT_TEXT_CLASSIFIER_LOSS_BINARY_CROSS_ENTROPY = 0,
    /* Cross entropy of softmax(logits) of labeled pairs: CrossEntropyLoss */
    ATT_TEXT_CLASSIFIER_LOSS_CROSS_ENTROPY,
    /* Cross entropy of softmax(scale sigmoid(logit_j)) over the pairs of an anchor with its positive, which is the
     * correct one, with other texts of the batch and with its hard negatives: MultipleNegativesRankingLoss. No text
     * occurs twice in a batch. */
    ATT_TEXT_CLASSIFIER_LOSS_MULTIPLE_NEGATIVES_RANKING,
    /* (logit - score)^2 of pairs with scores of a teacher (Hofstaetter et al. 2020): MSELoss */
    ATT_TEXT_CLASSIFIER_LOSS_MEAN_SQUARED_ERROR
} att_text_classifier_loss;

/* Training of a text classifier from rows of texts: it minimizes the mean loss with AdamW. Weight decay applies to all
 * matrices. */
typedef struct att_text_classifier_training_options {
    size_t size;
    int64_t rows;
    const char *const *texts; /* [call] [rows, columns], UTF-8 */
    const size_t *bytes;      /* [call] [rows, columns], or NULL: zero-terminated */
    int64_t columns;       /* texts of a row; 0: 2. 1: texts that stand alone; 3 and more, for the ranking loss: anchor,
                            * positive, hard negatives */
    const double *scores;  /* [call] [rows], for binary cross entropy, from 0 to 1, and for the squared error */
    const int32_t *labels; /* [call] [rows], from 0 to classes - 1, for cross entropy */
    int64_t classes;
    const char *const *names; /* [call] [classes] of the labels, UTF-8, no two the same; or NULL. A model with the same
                               * names in another order keeps its own order. */
    int64_t batch;            /* rows; 0: 16 */
    int64_t max_tokens;       /* of a pair, at most the model's; 0: the model's */
    const char *model;        /* [call] for att_text_classifier_training_open only: the folder to begin with, which
                               * att_text_classifier_new opens for one label or for `classes` */
    att_text_classifier_loss loss;
    int64_t negatives; /* for the ranking loss: the number of texts of other rows of the batch that each anchor is
                        * paired with, drawn for each; all, if there are not more; 0: 4 */
    double scale;      /* for the ranking loss; 0: 10 */
    /* The activation of logits before the ranking loss and the squared error: the identity or the sigmoid.
     * ATT_TEXT_ACTIVATION_MODEL: the sigmoid for the ranking loss, the identity for the squared error. */
    att_text_activation activation;
} att_text_classifier_training_options;
/* att_text_classifier_training_new trains a model in memory, which was opened for training and must outlive the
 * training. att_text_classifier_training_open trains in a folder, which becomes one that att_text_classifier_open opens
 * and must not be that of the model to begin with. The activation of a new classifier of one label is the sigmoid or,
 * after the squared error, options.activation. */
ATT_API att_status att_text_classifier_training_new(att_text_classifier *m, const att_training_options *common,
                                                    const att_text_classifier_training_options *options,
                                                    att_training **out);
ATT_API att_status att_text_classifier_training_open(att_ctx *ctx, const char *folder,
                                                     const att_training_options *common,
                                                     const att_text_classifier_training_options *options,
                                                     att_training **out);
ATT_API const att_text_classifier *att_training_text_classifier(const att_training *t); /* NULL for other trainings */

/* ---- 3 Probes ----------------------------------------------------------- */

/* Training of a classifier on the embeddings of a sentence model that stays as it is: see attend_probe.h. */
typedef struct att_text_probe_options {
    size_t size;
    int64_t n, n_valid;       /* texts for training, and after them those for validation */
    const char *const *texts; /* [call] [n + n_valid], UTF-8 */
    const size_t *bytes;      /* [call] [n + n_valid], or NULL: zero-terminated */
    const int32_t *labels;    /* [call] [n + n_valid], from 0 to classes - 1 */
    int64_t classes;
    const char *const *names;       /* [call] [classes]: of the labels, UTF-8, no two the same */
    bool refit;                     /* finally train on all texts, with the c that validation chose */
    const att_probe_options *probe; /* [call] or NULL: defaults */
    att_dtype dtype;                /* of the probe's numbers that are written; 0: f32 */
    att_progress_fn progress;       /* [call] called as texts are embedded; or NULL */
    void *user;                     /* [call] */
} att_text_probe_options;
/* Embeds all texts by the sentence model in the folder `model`, with its default prompt, trains a probe, and writes
 * `folder`, which must be new or empty; it appears when complete. It has a copy of the model's files, and probe.json
 * and probe.safetensors: att_text_classifier_open opens it, and att_sentence_open opens the sentence model. *result or
 * NULL: its size is to be set. Errors: those of opening the model, of att_sentence_embed and of att_probe_fit; the
 * folder is not empty; the model is a .gguf file. */
ATT_API att_status att_text_probe_train(att_ctx *ctx, const char *model, const char *folder,
                                        const att_text_probe_options *options, att_probe_result *result);

#ifdef __cplusplus
}
#endif
#endif
