/* attend_model.h - models on top of attend_nn.h and attend_text.h: weights and whole models.
 *
 * Chapters: 1 Weights, 2 BERT, 3 Sentence embeddings, 4 Translation, 5 Models by name. Language models are in
 * attend_language.h, images and vision Transformers in attend_vision.h, recommendation in attend_recommend.h, text is
 * in attend_text.h.
 *
 * A model is a folder in the format in which it is published. Settings are read from it, never assumed: an unsupported
 * setting is an error that names it. Files are validated completely before any of their content is used. Arguments that
 * may be NULL are marked as in attend.h.
 *
 * Names: *_open opens a model for inference, *_open_for_training opens it for training, with f32 weights of its own,
 * *_new makes an object from others, *_free frees what *_open, *_open_for_training or *_new returned.
 *
 * Threads: a model that was opened for inference is read-only and may be used by many threads at once.
 *
 * Stacks: what attend.h says of calls holds for those on models, too: less than 96 KiB of the calling thread's, with
 * additive attention, as captioners in training have it, less than 256 KiB.
 *
 * Process-wide state belongs to the program; the libraries change none of it:
 *   Memory for JSON is allocated by jansson. Its parser (2.15 and before) does not survive a failed allocation: it
 * loses characters or writes out of bounds. A program that must survive running out of memory therefore first calls
 * json_set_alloc_funcs with an allocator that never returns NULL (it ends the process, or has a reserve). SIGBUS ends
 * the process if a mapped file (att_safetensors_open) is truncated while in use. A signal handler of the program may
 * report it; it runs in any thread, those of the library included. */
#ifndef ATTEND_MODEL_H
#define ATTEND_MODEL_H

#include "attend_nn.h"
#include "attend_text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1 Weights ---------------------------------------------------------- */

/* A .safetensors file, memory-mapped. Opening validates it: header length, JSON, duplicate names, dtypes, overlaps,
 * gaps, truncation. The format asks for no alignment: tensors that do not begin at a multiple of their type's size are
 * copied. Tensors are valid until att_safetensors_free. While the file is open it may be replaced
 * (by renaming another file to its name), but must not be truncated or overwritten: as with any mapped file, reading
 * truncated pages raises SIGBUS, and new content is visible. */
typedef struct att_safetensors att_safetensors;
ATT_API att_status att_safetensors_open(att_ctx *ctx, const char *path, att_safetensors **out);
ATT_API void att_safetensors_free(att_safetensors *f);
ATT_API int64_t att_safetensors_count(const att_safetensors *f);
/* Name of tensor i in [0, count), in the file's order; NULL if out of range. */
ATT_API const char *att_safetensors_name(const att_safetensors *f, int64_t i);
/* Index of the tensor with that name; -1 if there is none. */
ATT_API int64_t att_safetensors_find(const att_safetensors *f, const char *name);
/* The tensor with that name, as a view of the file, or of its copy. Error: no such tensor. */
ATT_API att_status att_safetensors_get(const att_safetensors *f, const char *name, att_tensor *out);
/* The value of a key in the header's "__metadata__"; NULL if there is none. */
ATT_API const char *att_safetensors_metadata(const att_safetensors *f, const char *key);
/* Opens a file in memory (not copied but for tensors that are not aligned), for embedding and fuzzing; `label` is its
 * path in messages. */
ATT_API att_status att_safetensors_from_memory(att_ctx *ctx, const char *label, const void *data, size_t bytes,
                                               att_safetensors **out);

typedef struct att_safetensors_options {
    size_t size;
    att_dtype dtype;             /* type to which f32 tensors are converted: ATT_F16 (infinite beyond 65,504), ATT_BF16;
                                  * 0: none */
    const char *const *metadata; /* [2 n_metadata]: key, value, ...; `transformers` requires "format", "pt" */
    int64_t n_metadata;
} att_safetensors_options;
/* Writes tensors [n] with names [n], of any strides, sorted by descending element size and then by name. The new
 * content is written to a temporary file which replaces the file at path once it is on the disk; until then, and after
 * any error, the old file is intact. (If the disk fails after the replacement, the message says that the new file is in
 * place.) A symbolic link at path is followed. Data is converted in chunks of a few MB. options or NULL: defaults.
 * Errors: a name that is NULL, not UTF-8, duplicate or "__metadata__"; an invalid tensor; anything that the reader
 * would refuse; a folder, a device or a dangling link at path; I/O errors. */
ATT_API att_status att_safetensors_write(att_ctx *ctx, const char *path, int64_t n, const char *const *names,
                                         const att_tensor *tensors, const att_safetensors_options *options);

/* Parameters by name: from a file, as the `load` of att_nn_params_config with the file (att_safetensors *) as its user;
 * and all of them to a file, as att_safetensors_write writes it. options or NULL: defaults. */
ATT_API att_status att_safetensors_load(void *file, const char *name, int rank, const int64_t *dim, att_tensor *value);
ATT_API att_status att_safetensors_write_params(att_ctx *ctx, const char *path, const att_nn_params *p,
                                                const att_safetensors_options *options);

/* In which type a model for inference has its matrices. Those that have it already stay in the file, which is mapped;
 * others are converted once, when the model is opened. Quantised ones are multiplied as they are, in whole numbers, and
 * the rows that they are multiplied with are quantised, too, to 8 bits in blocks of 32: see att_linear. A matrix whose
 * rows are not in whole blocks stays as stored. Errors: none has such rows; a number that the type does not have. */
typedef enum att_weights {
    ATT_WEIGHTS_STORED = 0, /* as in the file */
    ATT_WEIGHTS_F32,
    ATT_WEIGHTS_F16,
    ATT_WEIGHTS_BF16,
    ATT_WEIGHTS_INT8, /* ATT_Q8_0 */
    ATT_WEIGHTS_INT4  /* ATT_Q4_0 */
} att_weight_type;

/* Of att_NAME_open_with; NULL: as att_NAME_open */
typedef struct att_model_options {
    size_t size;
    att_weight_type weights;
} att_model_options;

/* Bytes of a model's weights by type (att_dtype), as its file has them and as it computes with them: att_NAME_weights.
 * A matrix of a quantised type is multiplied with rows that become int8 in blocks, others with rows of f32. */
enum { ATT_N_DTYPES = ATT_Q4_1 + 1 };
typedef struct att_model_weights {
    size_t size;
    int64_t stored[ATT_N_DTYPES], used[ATT_N_DTYPES];
} att_model_weights;

/* ---- 2 BERT ------------------------------------------------------------- */

/* The encoder of Devlin et al. 2018, in the format of the class BertModel. */
typedef struct att_bert att_bert;

typedef struct att_bert_info {
    size_t size;
    int64_t vocabulary, hidden, layers, heads, intermediate, max_positions;
} att_bert_info;

ATT_API att_status att_bert_open(att_ctx *ctx, const char *folder, att_bert **out);
/* options or NULL: defaults */
ATT_API att_status att_bert_open_with(att_ctx *ctx, const char *folder, const att_model_options *options,
                                      att_bert **out);
ATT_API void att_bert_free(att_bert *m);
ATT_API att_status att_bert_describe(const att_bert *m, att_bert_info *info);
/* Hidden states of the last layer for n sequences, concatenated: ids [offsets[n]], offsets [n + 1] ascending from 0 ->
 * [offsets[n], hidden]. Returns NULL on error, like all operations. */
ATT_API att_var *att_bert_apply(att_tape *t, const att_bert *m, const int32_t *ids, const int64_t *offsets, int64_t n);

/* Opens the model for training, with f32 weights of its own. */
ATT_API att_status att_bert_open_for_training(att_ctx *ctx, const char *folder, att_bert **out);
/* Of a model that was opened for training: the number of parameters, and parameter i with its name (name or NULL).
 * Returns NULL if i is out of range or the model was opened for inference. */
ATT_API int64_t att_bert_params(const att_bert *m);
ATT_API att_param *att_bert_param(const att_bert *m, int64_t i, const char **name);
/* Hidden states with dropout, for training: hidden_dropout_prob after the embeddings and after each sublayer,
 * attention_probs_dropout_prob on attention weights. seed: another one for each step; sequence_ids [n] identify the
 * sequences in the dropout masks. */
ATT_API att_var *att_bert_apply_with_dropout(att_tape *t, const att_bert *m, const int32_t *ids, const int64_t *offsets,
                                             int64_t n, uint64_t seed, const uint32_t *sequence_ids);

/* ---- 3 Sentence embeddings ---------------------------------------------- */

/* A sentence-transformers folder: Transformer, Pooling, optionally Normalize (Reimers, Gurevych 2019). Or that of a
 * BERT without modules.json, whose hidden states are averaged, as sentence-transformers does. */
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
    bool plain;      /* the folder is that of a BERT alone, without modules.json: pooling is the mean, as there */
    att_similarity similarity;
} att_sentence_info;

ATT_API att_status att_sentence_open(att_ctx *ctx, const char *folder, att_sentence **out);
/* options or NULL: defaults */
ATT_API att_status att_sentence_open_with(att_ctx *ctx, const char *folder, const att_model_options *options,
                                          att_sentence **out);
ATT_API void att_sentence_free(att_sentence *m);
ATT_API att_status att_sentence_describe(const att_sentence *m, att_sentence_info *info);
ATT_API att_status att_sentence_weights(const att_sentence *m, att_model_weights *weights);
ATT_API const att_tokenizer *att_sentence_tokenizer(const att_sentence *m);

/* Embeds sentences: texts [n] with lengths bytes [n] or NULL (zero-terminated) -> out [n, dim], in the given order,
 * with the same bits whatever else is in the call. n_truncated or NULL: receives the number of truncated sentences.
 * Error: a vector that is not finite, as of damaged weights. */
ATT_API att_status att_sentence_encode(const att_sentence *m, int64_t n, const char *const *texts, const size_t *bytes,
                                       float *out, int64_t *n_truncated);

/* Opens the model for training; its parameters are those of its BERT. att_sentence_write writes a model that was opened
 * for training as a folder, which is created if it does not exist: model.safetensors and all settings and tokenizer
 * files of the original folder. dtype: of the weights; 0: f32. */
ATT_API att_status att_sentence_open_for_training(att_ctx *ctx, const char *folder, att_sentence **out);
ATT_API att_status att_sentence_write(const att_sentence *m, const char *folder, att_dtype dtype);

/* Attention weights of one layer and head for one sentence. */
typedef struct att_attention_map {
    att_tokens tokens;
    float *weights; /* [count, count]: row = query, column = key */
} att_attention_map;
ATT_API att_status att_sentence_attention(const att_sentence *m, const char *text, size_t bytes, int64_t layer,
                                          int64_t head, att_attention_map *out);
ATT_API void att_attention_map_free(const att_sentence *m, att_attention_map *map);

/* ---- 4 Translation ------------------------------------------------------ */

/* An encoder-decoder model (a Transformer or recurrent layers), which generates a target text token by token. */
typedef struct att_encoder_decoder att_encoder_decoder;

typedef struct att_encoder_decoder_info {
    size_t size;
    const char *architecture; /* "transformer" or "rnn" */
    int64_t source_vocabulary, target_vocabulary;
    int64_t max_positions;                     /* maximum number of tokens of a text */
    int64_t attention_layers, attention_heads; /* of the decoder's attention to the source; 0: none */
    int64_t pad, eos, start;                   /* ids of the target vocabulary; start is the decoder's first input */
} att_encoder_decoder_info;

ATT_API att_status att_encoder_decoder_describe(const att_encoder_decoder *m, att_encoder_decoder_info *info);
/* Of a model that was opened for training: the number of parameters, and parameter i with its name (name or NULL).
 * Returns NULL if i is out of range or the model was opened for inference. */
ATT_API int64_t att_encoder_decoder_params(const att_encoder_decoder *m);
ATT_API att_param *att_encoder_decoder_param(const att_encoder_decoder *m, int64_t i, const char **name);

/* A batch of n source and target sequences, each concatenated; a target ends with the eos token. */
typedef struct att_sequence_pairs {
    int64_t n;
    const int32_t *source;         /* [source_offsets[n]] */
    const int64_t *source_offsets; /* [n + 1] */
    const int32_t *target;         /* [target_offsets[n]] */
    const int64_t *target_offsets; /* [n + 1] */
} att_sequence_pairs;

typedef struct att_loss_options {
    float label_smoothing, dropout; /* both in [0, 1) */
    uint64_t seed;                  /* of dropout: another one for each step */
    const uint32_t *sequence_ids;   /* [n], if dropout > 0: identify the pairs in the dropout masks */
    bool sum;                       /* reduction: true: sum over target tokens, false: mean */
    int64_t *count;                 /* receives the number of target tokens; or NULL */
} att_loss_options;
/* Logits of each target token given the tokens before it (teacher forcing) -> [target_offsets[n], target_vocabulary].
 * Only dropout, seed and sequence_ids of options are used; options or NULL: no dropout. NULL on error. */
ATT_API att_var *att_encoder_decoder_logits(att_tape *t, const att_encoder_decoder *m, const att_sequence_pairs *pairs,
                                            const att_loss_options *options);
/* The cross entropy of these logits -> [1]. options or NULL: the mean, without dropout and label smoothing. */
ATT_API att_var *att_encoder_decoder_loss(att_tape *t, const att_encoder_decoder *m, const att_sequence_pairs *pairs,
                                          const att_loss_options *options);

typedef struct att_encoder_decoder_write_options {
    size_t size;
    att_dtype dtype; /* of the weights: ATT_F16, ATT_BF16; 0: f32 */
    int64_t beam;    /* default beam size of translators that open the folder; 0: 4 */
} att_encoder_decoder_write_options;
/* Writes a model that was opened for training: config.json, generation_config.json and model.safetensors, each replaced
 * atomically; a Transformer in the format of the class MarianMTModel. The folder is created if it does not exist.
 * options or NULL: defaults. */
ATT_API att_status att_encoder_decoder_write(const att_encoder_decoder *m, const char *folder,
                                             const att_encoder_decoder_write_options *options);

/* The Transformer of Vaswani et al. 2017 in the format of the class MarianMTModel, as used by the OPUS-MT models. */
typedef struct att_transformer att_transformer;

typedef struct att_transformer_info {
    size_t size;
    int64_t source_vocabulary, target_vocabulary, hidden, max_positions;
    int64_t encoder_layers, encoder_heads, encoder_intermediate;
    int64_t decoder_layers, decoder_heads, decoder_intermediate;
} att_transformer_info;

ATT_API att_status att_transformer_open(att_ctx *ctx, const char *folder, att_transformer **out);
ATT_API void att_transformer_free(att_transformer *m);
ATT_API att_status att_transformer_describe(const att_transformer *m, att_transformer_info *info);
/* Encoder output for n sources, concatenated: ids [offsets[n]], offsets [n + 1] ascending from 0 -> [offsets[n],
 * hidden]. Returns NULL on error, like all operations. */
ATT_API att_var *att_transformer_encode(att_tape *t, const att_transformer *m, const int32_t *ids,
                                        const int64_t *offsets, int64_t n);
/* Logits of the token after each target token, for n targets, concatenated: ids [offsets[n]], offsets [n + 1]; source:
 * the output of att_transformer_encode, with source_offsets [n + 1] -> [offsets[n], target_vocabulary]. */
ATT_API att_var *att_transformer_decode(att_tape *t, const att_transformer *m, att_var *source,
                                        const int64_t *source_offsets, const int32_t *ids, const int64_t *offsets,
                                        int64_t n);

/* Opens the model for training, with f32 weights of its own. */
ATT_API att_status att_transformer_open_for_training(att_ctx *ctx, const char *folder, att_transformer **out);
/* The model as an att_encoder_decoder (an upcast), valid as long as m. */
ATT_API att_encoder_decoder *att_transformer_as_encoder_decoder(att_transformer *m);

/* The recurrent encoder-decoder (Cho et al. 2014, Sutskever et al. 2014), optionally with attention to the source
 * (Bahdanau et al. 2015, Luong et al. 2015). */
typedef struct att_seq2seq att_seq2seq;

typedef enum att_seq2seq_attention {
    ATT_SEQ2SEQ_NONE = 0, /* a fixed context, the encoder's last state, is an input of the decoder's layers (Cho) */
    ATT_SEQ2SEQ_ADDITIVE, /* query: state before the token; context: input of the layers (Bahdanau) */
    ATT_SEQ2SEQ_DOT,      /* query: last layer's state; the context is added to it (Luong) */
    ATT_SEQ2SEQ_GENERAL   /* likewise, with the score s W h */
} att_seq2seq_attention;

typedef struct att_seq2seq_config {
    size_t size;
    int64_t source_vocabulary, target_vocabulary;
    int64_t embedding, units, layers; /* units of a state; layers of the encoder and of the decoder, each */
    int64_t max_positions;   /* maximum number of tokens of a text; a limit of the settings, not of the layers */
    int64_t pad, eos, start; /* ids of the target vocabulary; start is the decoder's first input */
    bool lstm;               /* false: GRU */
    bool bidirectional;      /* the encoder, with units / 2 in each direction */
    bool scale_embedding;    /* multiply embeddings by sqrt(embedding) */
    bool share;              /* one embedding table for source and target */
    bool tie;                /* the output layer's weights are the target's embedding table (Press, Wolf 2017) */
    att_seq2seq_attention attention;
} att_seq2seq_config;

/* Opens a folder with config.json ("model_type": "attend-seq2seq") and model.safetensors, for inference or for
 * training, or makes a model with randomly initialised weights, for training. Errors name the setting and its value. */
ATT_API att_status att_seq2seq_open(att_ctx *ctx, const char *folder, att_seq2seq **out);
ATT_API att_status att_seq2seq_open_for_training(att_ctx *ctx, const char *folder, att_seq2seq **out);
ATT_API att_status att_seq2seq_new(att_ctx *ctx, const att_seq2seq_config *config, uint64_t seed, att_seq2seq **out);
ATT_API void att_seq2seq_free(att_seq2seq *m);
ATT_API att_status att_seq2seq_describe(const att_seq2seq *m, att_seq2seq_config *config);
/* The model as an att_encoder_decoder (an upcast), valid as long as m. Texts must not be empty. Dropout: after
 * embeddings, between layers, after the encoder and before the output layer. */
ATT_API att_encoder_decoder *att_seq2seq_as_encoder_decoder(att_seq2seq *m);

/* A training: a model, an optimizer and its data; in memory, or in a folder with settings and checkpoints, which in the
 * end becomes a model folder. */
typedef struct att_training att_training;

/* Training of a translator from two files: line i of one is the translation of line i of the other. The files may have
 * any size: only line offsets are held in memory, at most 16 bytes a line, and batches are read when needed. So they
 * must be regular files that do not change during the training: a changed file is an error of the next step. They
 * are opened as att_open_text does. A line has at most 1 MiB. For pairs that are skipped see
 * att_training_report. */
typedef struct att_translator_training_options {
    size_t size;
    const char *source, *target;  /* files of text */
    int64_t max_tokens;           /* of a text; longer pairs are skipped; 0: 128 */
    int64_t batch_tokens;         /* target tokens of a batch, at most, except for a single longer pair; 0: 2048 */
    int64_t accumulate;           /* batches per step; 0: 1 */
    const att_schedule *schedule; /* of the learning rate */
    float label_smoothing, dropout;
    double clip;                             /* maximum gradient norm; 0: no clipping */
    uint64_t seed;                           /* of dropout and of the order of pairs */
    const char *valid_source, *valid_target; /* validation files; NULL: none */
    /* The following fields are for att_translator_training_open only. */
    const char *tokenizer; /* a folder with source.spm, target.spm, vocab.json, or a SentencePiece model; or NULL:
                            * learnt from the files */
    int64_t vocabulary;    /* size of the learnt joint vocabulary; 0: 8000. Each digit is a piece, and so is each of the
                            * 4,000 most frequent characters that occur at least three times. */
    double character_coverage; /* of the learnt vocabulary, see att_vocab_options; 0: 1 */
    bool byte_fallback;        /* likewise */
    const char *settings;      /* model settings as in config.json: {"model_type": "attend-seq2seq", "attention":
                                * "dot"}. Left out, or NULL: a Transformer of 3 + 3 layers of 256, or recurrent layers
                                * of about that size. Settings implied by the vocabulary may be left out. */
    const char *config;        /* a file with such settings; or NULL. Settings given in both must be equal. */
    bool resume;               /* continue from the newest checkpoint, with the same bits as without interruption */
    int64_t keep;              /* number of checkpoints to keep; 0: 5 */
    char *note; /* [note_bytes], zero-terminated: the caller's text, saved with each checkpoint and read on resume; or
                 * NULL */
    size_t note_bytes;
    int64_t skip_bad_lines; /* skip up to as many pairs that are not UTF-8, of each two files; 0: none, an error */
} att_translator_training_options;
/* In memory. The model (opened for training) and the tokenizer must outlive the training. Errors name the files. */
ATT_API att_status att_translator_training_new(att_encoder_decoder *m, const att_tokenizer *t,
                                               const att_translator_training_options *options, att_training **out);
/* In a folder; vocabulary and model are made as the options say. Errors: another process trains in the folder; it has
 * checkpoints but options.resume is false, or none but it is true; a checkpoint with other options, or an invalid one
 * (damaged, of another step, with numbers that are not finite); a symbolic link instead of the lock or a checkpoint. */
ATT_API att_status att_translator_training_open(att_ctx *ctx, const char *folder,
                                                const att_translator_training_options *options, att_training **out);
/* One that has made no step and saved nothing leaves no files in its folder, and no folder that it has made. */
ATT_API void att_training_free(att_training *t);
/* The model and tokenizer of a translator's training; NULL for other trainings. */
ATT_API const att_encoder_decoder *att_training_model(const att_training *t);
ATT_API const att_tokenizer *att_training_tokenizer(const att_training *t);

/* The loss of an example, a row of texts with embeddings u, v, ...; each equals sentence-transformers'. */
typedef enum att_sentence_loss {
    /* (cos(u, v) - score)^2 of pairs with scores: CosineSimilarityLoss (Reimers, Gurevych 2019, 3.1) */
    ATT_LOSS_COSINE_SIMILARITY = 0,
    /* Cross entropy of softmax(scale cos(u_i, v_j)) over all texts j of the batch in the other columns, where i is
     * the right one: MultipleNegativesRankingLoss (Henderson et al. 2017, 4.4; InfoNCE). From pairs alone, or with
     * hard negatives as third and further texts. No text occurs twice in a batch (BatchSamplers.NO_DUPLICATES). */
    ATT_LOSS_MULTIPLE_NEGATIVES_RANKING,
    /* max(0, d(u, v) - d(u, w) + margin) of an anchor, a positive and a negative: TripletLoss */
    ATT_LOSS_TRIPLET,
    /* Cross entropy of softmax(W (u, v, |u - v|) + b) of labelled pairs: SoftmaxLoss. The classifier W, b learns, too;
     * checkpoints have it, the model has not. */
    ATT_LOSS_SOFTMAX
} att_sentence_loss;
typedef enum att_sentence_distance {
    ATT_DISTANCE_EUCLIDEAN = 0,
    ATT_DISTANCE_COSINE /* 1 - cos */
} att_sentence_distance;

/* Training of a sentence embedding model from pairs, triplets or longer rows of texts: minimises the mean loss with
 * AdamW. In reports, source tokens are those of first texts and target tokens those of the others, too_long counts
 * rows with a truncated text, and the loss is per row. */
typedef struct att_sentence_training_options {
    size_t size;
    int64_t pairs;                /* rows */
    const char *const *texts;     /* [pairs, columns], UTF-8; not used after the constructor */
    const size_t *bytes;          /* [pairs, columns], or NULL: zero-terminated */
    const double *scores;         /* [pairs]: target cosines, from -1 to 1; of the cosine loss */
    int64_t batch;                /* rows; 0: 16 */
    const att_schedule *schedule; /* of the learning rate */
    double weight_decay;          /* of matrices only */
    double clip;                  /* maximum gradient norm; 0: no clipping */
    uint64_t seed;                /* of dropout and of the order of rows */
    /* The following fields are for att_sentence_training_open only. */
    const char *model; /* the folder of the pre-trained model */
    bool resume;
    int64_t keep;          /* number of checkpoints to keep; 0: 2 */
    int64_t evaluation_id; /* identifies the held-out data of att_training_keep_best; a checkpoint with another id is
                            * refused */
    char *note;            /* as in att_translator_training_options */
    size_t note_bytes;
    /* The loss. */
    att_sentence_loss loss;
    att_sentence_distance distance; /* of the triplet loss */
    int64_t columns;                /* texts of a row; 0: 3 for the triplet loss, otherwise 2 */
    const int32_t *labels;          /* [pairs], from 0 to classes - 1; of the softmax loss */
    int64_t classes;
    double scale;  /* of the ranking loss, 1 / temperature; 0: 20 */
    double margin; /* of the triplet loss; 0: 5, with the cosine distance 0.5 */
} att_sentence_training_options;
/* In memory: the model, which was opened for training, must outlive the training. In a folder, which is not that of the
 * pre-trained model and becomes a sentence-transformers folder. */
ATT_API att_status att_sentence_training_new(att_sentence *m, const att_sentence_training_options *options,
                                             att_training **out);
ATT_API att_status att_sentence_training_open(att_ctx *ctx, const char *folder,
                                              const att_sentence_training_options *options, att_training **out);
ATT_API const att_sentence *att_training_sentence(const att_training *t); /* NULL for other trainings */

typedef struct att_training_report {
    size_t size;
    int64_t step, epoch;                  /* steps so far; epochs begun */
    int64_t steps_left;                   /* in this epoch */
    int64_t pairs;                        /* used pairs of the files */
    int64_t empty, invalid, too_long;     /* skipped pairs: with an empty text, not UTF-8, too long */
    int64_t source_tokens, target_tokens; /* in this step */
    double loss;                          /* mean per target token, with dropout and label smoothing */
    double norm, rate;
} att_training_report;
/* One step: one or more batches, then an update by the optimizer. The same bits for any number of threads and after any
 * interruption. Errors: a loss or gradients that are not finite; the message names the step and the operation that
 * produced the first such number (see att_tape_config.detect_anomaly). After an error the weights are unchanged. */
ATT_API att_status att_training_step(att_training *t, att_training_report *report);
ATT_API int64_t att_training_steps(const att_training *t); /* steps so far */
typedef struct att_training_info {
    size_t size;
    int64_t evaluated, best_step;     /* step of the last score of att_training_keep_best and of the best; 0: none, or
                                       * of the model that the training begins with */
    double best;                      /* best score; -INFINITY: none */
    int64_t pairs;                    /* used pairs of the files */
    int64_t empty, invalid, too_long; /* as in att_training_report */
    int64_t vocabulary, parameters;   /* tokens of the tokenizer; numbers that are trained */
} att_training_info;
ATT_API att_status att_training_describe(const att_training *t, att_training_info *info);
/* The mean loss of a translator per target token of the validation files, without dropout and label smoothing. */
ATT_API att_status att_training_validate(att_training *t, double *loss);

/* The rest is for trainings in a folder only. */

/* Saves a checkpoint: weights, moments and the position in the data. It is written atomically. Errors: numbers that are
 * not finite, which the message names; I/O errors. After an error the older checkpoints are intact. */
ATT_API att_status att_training_save(att_training *t);
/* Saves a checkpoint for an interruption: the next checkpoint replaces it, so that averages over checkpoints are those
 * of an uninterrupted run. */
ATT_API att_status att_training_pause(att_training *t);
/* For all but translators: records the score of the current weights on held-out data. If it is the best so far,
 * including before a resume, the model is written to the folder, like att_training_write(t, 0, dtype). */
ATT_API att_status att_training_keep_best(att_training *t, double score, att_dtype dtype);
/* Before the first step: the folder has the model that the training begins with, and this is its score.
 * att_training_keep_best then writes only a model that is better; until then best_step is 0, and the files stay as they
 * are. Error: a step has been made. */
ATT_API att_status att_training_keep_first(att_training *t, double score);
/* Writes model.safetensors: the mean of the weights of the newest n checkpoints (n = 0: the current weights), as dtype.
 * The folder can then be opened as one of the kind that was learnt: by att_translator_open, att_sentence_open,
 * att_image_model_open or att_recommender_open. */
ATT_API att_status att_training_write(att_training *t, int64_t n, att_dtype dtype);
/* Removes all checkpoints but the newest n, for a training that has finished: to continue it takes one, and a mean over
 * more of them is then over those that are left and new ones. */
ATT_API att_status att_training_keep(att_training *t, int64_t n);

/* A translator: an encoder-decoder and its tokenizer (source.spm, target.spm, vocab.json). Serves many threads at
 * once. */
typedef struct att_translator att_translator;
ATT_API att_status att_translator_open(att_ctx *ctx, const char *folder, att_translator **out);
/* options or NULL: defaults */
ATT_API att_status att_translator_open_with(att_ctx *ctx, const char *folder, const att_model_options *options,
                                            att_translator **out);
ATT_API att_status att_translator_weights(const att_translator *m, att_model_weights *weights);
/* A translator of an existing model and tokenizer, which must outlive it; greedy by default. */
ATT_API att_status att_translator_new(const att_encoder_decoder *m, const att_tokenizer *t, att_translator **out);
ATT_API void att_translator_free(att_translator *m);
ATT_API const att_encoder_decoder *att_translator_model(const att_translator *m);
ATT_API const att_tokenizer *att_translator_tokenizer(const att_translator *m);
ATT_API int64_t att_translator_beam(const att_translator *m); /* the default beam size of translations; m NULL: 0 */

typedef struct att_translate_options {
    size_t size;
    int64_t beam;       /* beam size; 0: as in the model's settings, or 1 */
    int64_t max_tokens; /* of a translation, eos included; 0: as in the settings, or the model's max_positions */
    int64_t min_tokens; /* likewise: no eos before; 0: as in the settings, or 1 */
    int64_t n_best;     /* number of translations per text, at most beam; 0: 1 */
    const float
        *length_penalty; /* score = log probability / tokens ^ length_penalty; or NULL: as in the settings, or 1 */
    bool split;     /* split texts longer than max_positions, at sentence ends if possible, and translate the segments;
                     * false: such a text is an error */
    bool no_scores; /* leave scores NaN: with beam 1, tokens are then selected by att_linear_argmax, which is faster */
} att_translate_options;

typedef struct att_translation {
    att_text text;
    att_tokens tokens; /* without eos */
    float score;       /* log probability / tokens ^ length_penalty, eos included */
} att_translation;
/* Translates texts [n] with lengths bytes [n] or NULL (zero-terminated) -> out [n][n_best], in the given order, best
 * translation first; free each with att_translation_free. The same bits whatever else is in the call. If fewer than
 * n_best translations were found, text.text of the others is NULL. An empty or blank text has an empty translation.
 * Settings come from generation_config.json; an unsupported one is an error of att_translator_open. options or NULL:
 * defaults. beam 1 is greedy search; otherwise beam search as in the class GenerationMixin. Errors: options out of
 * range; a text that is NULL or too long; logits that are not finite; memory; cancelled. */
ATT_API att_status att_translate(const att_translator *m, int64_t n, const char *const *texts, const size_t *bytes,
                                 const att_translate_options *options, att_translation *out);
ATT_API void att_translation_free(const att_translator *m, att_translation *t);

/* Attention of a translation to its source: the weights of one decoder layer; rows sum to 1. */
typedef struct att_alignment {
    att_tokens source, target; /* eos included */
    float *weights;            /* [target.count, source.count]: row t has the weights with which target token t was
                                * predicted */
} att_alignment;
/* Computes the alignment of text [bytes] and its translation, ids [n] without eos, in one decoder pass. layer -1: the
 * last; head -1: the mean of all heads. Errors: no such layer or head, or a model without attention; more tokens than
 * positions; memory. */
ATT_API att_status att_translate_alignment(const att_translator *m, const char *text, size_t bytes, const int32_t *ids,
                                           int64_t n, int64_t layer, int64_t head, att_alignment *out);
ATT_API void att_alignment_free(const att_translator *m, att_alignment *a);

/* ---- 5 Models by name --------------------------------------------------- */

typedef struct att_model_path {
    char text[4096]; /* zero-terminated */
} att_model_path;
/* The folder of a model, for the functions that open one. name is the first of these that is a folder:
 *   a path, which may also be that of a .gguf file;
 *   "all-MiniLM-L6-v2", a name in the models folder: $ATTEND_MODELS, else $XDG_DATA_HOME/attend/models, else
 *     $HOME/.local/share/attend/models;
 *   the name of a model that comes with attend: share/attend/models where the program is installed, else `models`
 * beside the program, else share/attend/models where the library was installed.
 *
 *     att_model_path path;
 *     if (att_model_find("all-MiniLM-L6-v2", &path) || att_sentence_open(ctx, path.text, &m)) ... att_error(NULL)
 *
 * Errors: there is none, and the message says which there are; memory. */
ATT_API att_status att_model_find(const char *name, att_model_path *out);
/* The models folder, which need not exist. Errors: none of the three variables is set. */
ATT_API att_status att_models_folder(att_model_path *out);
/* Calls each(user, name) for the models in the models folder, then for those that come with attend, each in
 * alphabetical order: folders with a config.json or a .gguf file. user or NULL. */
ATT_API att_status att_models_list(void (*each)(void *user, const char *name), void *user);

#ifdef __cplusplus
}
#endif
#endif
