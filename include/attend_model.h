/* attend_model.h - models on top of attend_learn.h: weights, text, layers, whole models.
 *
 * Chapters: 1 Weights, 2 Text, 3 BERT, 4 Sentences, 5 Translation, 6 Translations, measured.
 *
 * A model is a folder as the ecosystem publishes it. Settings are read, never
 * assumed: one that is not supported is an error that names it. Files are
 * checked completely before any of their content is used. What may be NULL is
 * said as in attend.h.
 *
 * Threads: what is opened here is read-only and serves many threads at once.
 *
 * What belongs to the process is the program's to set, and these libraries set none of it:
 *   Memory for JSON is jansson's. Its reader (2.15 and before) does not survive an allocation that fails amid a file:
 *     it loses characters or writes beyond its memory. A program that must survive that gives it, before all else, an
 *     allocator that never returns NULL (json_set_alloc_funcs), but ends the process or has a reserve.
 *   SIGBUS ends the process where a mapped file is cut short while it is in use (att_safetensors_open). A handler of
 *     the program's may say so; it runs in any thread, those of the library among them.
 */
#ifndef ATTEND_MODEL_H
#define ATTEND_MODEL_H

#include "attend_learn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1 Weights ---------------------------------------------------------- */

/* A .safetensors file, memory-mapped and checked: header length, JSON, duplicate names, dtypes,
 * overlaps, gaps, alignment, truncation. Tensors stay valid until att_safetensors_free. While it is open the file may
 * be replaced by another of its name, but not be cut short or written into: reading what has gone ends the process
 * (SIGBUS), as with any mapped file, and written numbers are seen. */
typedef struct att_safetensors att_safetensors;
ATT_API att_status att_safetensors_open(att_ctx *ctx, const char *path, att_safetensors **out);
ATT_API void att_safetensors_free(att_safetensors *f);
ATT_API int64_t att_safetensors_count(const att_safetensors *f);
/* Name of tensor i in [0, count), in the file's order; NULL outside. */
ATT_API const char *att_safetensors_name(const att_safetensors *f, int64_t i);
/* The number of the tensor of that name; -1: not there. */
ATT_API int64_t att_safetensors_find(const att_safetensors *f, const char *name);
/* The tensor of that name, a view into the file. Error: not there. */
ATT_API att_status att_safetensors_get(const att_safetensors *f, const char *name, att_tensor *out);
/* A text of the header's "__metadata__"; NULL: not there. */
ATT_API const char *att_safetensors_metadata(const att_safetensors *f, const char *key);
/* Reads the same from memory (not copied, 8-byte aligned), for embedding and for fuzzing; `label` stands for the path
 * in errors. */
ATT_API att_status att_safetensors_from_memory(att_ctx *ctx, const char *label, const void *data, size_t bytes,
                                               att_safetensors **out);

typedef struct att_safetensors_options {
    size_t size;
    att_dtype dtype;             /* of f32 tensors: ATT_F16 (infinite beyond 65,504), ATT_BF16; 0: as they are */
    const char *const *metadata; /* [2 n_metadata]: a key, its text, ...; `transformers` asks for "format", "pt" */
    int64_t n_metadata;
} att_safetensors_options;
/* Writes tensors [n] by these names [n], of any strides, the larger types first and each type by name. The file at path
 * is replaced when all of the new one is on the disk; until then, and after any error, it is as it was (only where the
 * disk fails just after that, the sentence says that the file is the new one). Where a symbolic link is at path, what
 * it leads to is replaced. Needs no memory for numbers but one piece of a few MB. options or NULL: defaults. Errors: a
 * name that is NULL, no UTF-8, there twice or "__metadata__"; an unsound tensor; what the reader would refuse; a
 * folder, a device or a link to nothing at path; the disk. */
ATT_API att_status att_safetensors_write(att_ctx *ctx, const char *path, int64_t n, const char *const *names,
                                         const att_tensor *tensors, const att_safetensors_options *options);

/* ---- 2 Text ------------------------------------------------------------- */

typedef struct att_tokenizer att_tokenizer;

/* From a model's folder or a tokenizer's file; any type or setting but these is an error that names it:
 *   a folder with tokenizer.json, or vocab.txt and tokenizer_config.json (and special_tokens_map.json): WordPiece with
 *     BertNormalizer and BertPreTokenizer. Truncation and padding in tokenizer.json are not used:
 *     att_encode_options.max_tokens is.
 *   a folder with source.spm, target.spm, vocab.json (tokenizer_config.json, special_tokens_map.json): Marian.
 *   a file: a SentencePiece model (.spm, .model), unigram or BPE (Kudo, Richardson 2018). */
ATT_API att_status att_tokenizer_open(att_ctx *ctx, const char *path, att_tokenizer **out);
ATT_API void att_tokenizer_free(att_tokenizer *t);
ATT_API int64_t att_tokenizer_size(const att_tokenizer *t);                  /* ids are in [0, size) */
ATT_API const char *att_tokenizer_token(const att_tokenizer *t, int32_t id); /* "##ing", UTF-8; NULL if there is none */

typedef struct att_encode_options {
    size_t size;
    int64_t max_tokens; /* 0 = no limit; special tokens count */
    bool no_special;    /* without [CLS] and [SEP] */
    bool target;        /* the text is a translation, which Marian cuts in another way; else no difference */
    /* Called with what becomes the unknown token, text [bytes] in UTF-8 as it was normalised: a character at a time, or
     * a word whose characters the vocabulary has, but not together; or NULL. */
    void (*unknown)(void *user, const char *text, size_t bytes);
    void *user;
} att_encode_options;

typedef struct att_tokens {
    int32_t *ids; /* [count]; att_tokens_free frees it */
    int64_t count;
    bool truncated; /* max_tokens cut something off */
} att_tokens;

/* text[bytes] to ids. Any bytes will do, zero bytes are characters, and an empty text has the special tokens alone.
 *   WordPiece: the ids of the `tokenizers` package. Each maximal invalid subpart of UTF-8 reads as one U+FFFD, time is
 *     linear, and where max_tokens cuts, the rest is not looked at. Special tokens typed in the text ("[MASK]") are
 *     found.
 *   SentencePiece: the ids of the `sentencepiece` package, which has no special tokens around a text. Each byte that is
 *     not UTF-8 reads as one U+FFFD; time for n bytes is n (unigram) or n log n (BPE), memory n.
 *   Marian: the ids of the class MarianTokenizer: SentencePiece, then "</s>". Special tokens typed in the text ("</s>",
 *     "<pad>", "<unk>") are found; a language code at the start (">>de<<") is one token.
 * opt or NULL: defaults. Errors: max_tokens negative or less than the special tokens; memory; with BPE a word of more
 * than 2 GiB. */
ATT_API att_status att_encode(const att_tokenizer *t, const char *text, size_t bytes, const att_encode_options *opt,
                              att_tokens *out);
ATT_API void att_tokens_free(const att_tokenizer *t, att_tokens *tokens);

typedef struct att_text {
    char *text; /* [bytes], and a zero byte behind; att_text_free frees it */
    size_t bytes;
} att_text;

/* ids [n] back to text, in UTF-8. SentencePiece: the text of the `sentencepiece` package, where control symbols give
 * nothing. Marian: that of MarianTokenizer, by the target's pieces and without special tokens. Errors: an id that is
 * not in [0, size); WordPiece, which forgets case and spaces; memory. */
ATT_API att_status att_detokenize(const att_tokenizer *t, const int32_t *ids, int64_t n, att_text *out);
ATT_API void att_text_free(const att_tokenizer *t, att_text *text);

/* A vocabulary is learnt from texts by byte-pair encoding (Sennrich et al. 2016): characters, and what is made of
 * neighbours, the most frequent first. The result is a SentencePiece model, always the same for the same texts. */
typedef struct att_vocab att_vocab;

typedef struct att_vocab_options {
    size_t size;
    int64_t pieces;            /* of the vocabulary in all, at least 4; there may be fewer, see att_vocab_result */
    double character_coverage; /* 0: 0.9995; the share of the text whose characters become pieces, at most 1 */
    int64_t max_characters;    /* the most characters that become pieces, the most frequent ones; 0: no limit */
    int64_t min_count;         /* characters that occur fewer times become no piece; 0: 1 */
    int64_t max_length;        /* 0: 16; characters of a piece, at most 64 */
    bool keep_text;            /* nothing is normalised but spaces; else NFKC, white space and control characters are */
    bool byte_fallback;        /* 256 pieces more: other characters are spelt in bytes, not unknown */
    bool split_digits;         /* no piece has a digit and another character: a number is one piece a digit */
    const char *const *symbols; /* [n_symbols]: kept whole wherever they are in a text, each a piece */
    int64_t n_symbols;
    const char *const *control; /* [n_control]: pieces that no text has, behind <unk>, <s> and </s>, as "<pad>" */
    int64_t n_control;
    void (*progress)(void *user, double share); /* of the learning; or NULL */
    void *user;
} att_vocab_options;

typedef struct att_vocab_result {
    size_t size;
    const void *model; /* [bytes]: the content of a .spm file, until att_vocab_free */
    size_t bytes;
    int64_t pieces, characters; /* of the vocabulary; fewer pieces than asked for: no two more are neighbours twice */
    int64_t words;              /* different ones that there were */
    int64_t left_out;           /* characters of the texts that are no piece, and */
    const char *left_out_text;  /* [zero-terminated] these in UTF-8, the most frequent first, until att_vocab_free */
} att_vocab_result;

ATT_API att_status att_vocab_new(att_ctx *ctx, const att_vocab_options *opt, att_vocab **out);
ATT_API void att_vocab_free(att_vocab *v);
/* Counts the words of a text, a line for instance. Memory grows with the number of different words and with the
 * longest text. */
ATT_API att_status att_vocab_add(att_vocab *v, const char *text, size_t bytes);
/* Once, after all texts. Errors: no text; characters and special pieces are more than `pieces` already. */
ATT_API att_status att_vocab_learn(att_vocab *v, att_vocab_result *result);

typedef struct att_marian_tokenizer_files {
    size_t size;
    const void *source; /* [source_bytes]: the content of a .spm file, as att_vocab_learn makes it */
    const void *target; /* [target_bytes], or NULL: the source's */
    size_t source_bytes, target_bytes;
    const char *source_language, *target_language; /* "de", or NULL; for the settings alone */
} att_marian_tokenizer_files;
/* Writes the text files of a Marian folder, which is made if it is not there: source.spm, target.spm, vocab.json with
 * "</s>", "<unk>", the pieces of both models, each once, and "<pad>", and tokenizer_config.json. size or NULL:
 * tokens of vocab.json. */
ATT_API att_status att_marian_tokenizer_write(att_ctx *ctx, const char *folder, const att_marian_tokenizer_files *text,
                                              int64_t *size);

/* ---- 3 BERT ------------------------------------------------------------- */

/* The encoder of Devlin et al. 2018, in the layout of the class BertModel. */
typedef struct att_bert att_bert;

typedef struct att_bert_info {
    size_t size;
    int64_t vocabulary, hidden, layers, heads, intermediate, max_positions;
} att_bert_info;

ATT_API att_status att_bert_open(att_ctx *ctx, const char *folder, att_bert **out);
ATT_API void att_bert_free(att_bert *m);
ATT_API att_status att_bert_describe(const att_bert *m, att_bert_info *info);
/* Hidden states of the last layer, all sequences one after the other:
 * ids [offsets[n]], offsets [n + 1] ascending from 0 -> [offsets[n], hidden]. NULL on error, as all operations. */
ATT_API att_var *att_bert_apply(att_tape *t, const att_bert *m, const int32_t *ids, const int64_t *offsets, int64_t n);

/* Opens it for training: with f32 weights of its own. */
ATT_API att_status att_bert_open_for_training(att_ctx *ctx, const char *folder, att_bert **out);
/* Of a model that was opened for training: how many parameters, and the i-th in [0, that) with its name (name or NULL).
 * NULL outside, and of other models. */
ATT_API int64_t att_bert_params(const att_bert *m);
ATT_API att_param *att_bert_param(const att_bert *m, int64_t i, const char **name);
/* Hidden states in training: hidden_dropout_prob of embeddings and of what each half of a layer adds is dropped, and
 * attention_probs_dropout_prob of attention weights. seed: another one each step; sequence_ids [n]: sequences are told
 * apart by these. */
ATT_API att_var *att_bert_apply_with_dropout(att_tape *t, const att_bert *m, const int32_t *ids, const int64_t *offsets,
                                             int64_t n, uint64_t seed, const uint32_t *sequence_ids);

/* ---- 4 Sentences -------------------------------------------------------- */

/* A sentence-transformers folder: Transformer, Pooling, optionally Normalize (Reimers, Gurevych 2019). */
typedef struct att_sentence att_sentence;

typedef struct att_sentence_info {
    size_t size;
    int64_t dim;        /* of an embedding */
    int64_t max_tokens; /* longer sentences are cut */
    int64_t layers, heads;
    att_pooling pooling;
    bool normalized; /* embeddings have length 1: their dot product is the cosine */
} att_sentence_info;

ATT_API att_status att_sentence_open(att_ctx *ctx, const char *folder, att_sentence **out);
ATT_API void att_sentence_free(att_sentence *m);
ATT_API att_status att_sentence_describe(const att_sentence *m, att_sentence_info *info);
ATT_API const att_tokenizer *att_sentence_tokenizer(const att_sentence *m);

/* One embedding a sentence: texts [n] with bytes [n] or NULL (zero-terminated) -> out [n, dim], in the given order,
 * the same bits whatever else is in the call. n_truncated or NULL: how many sentences were cut. */
ATT_API att_status att_sentence_encode(const att_sentence *m, int64_t n, const char *const *texts, const size_t *bytes,
                                       float *out, int64_t *n_truncated);

/* Opens it for training: its parameters are those of its BERT. att_sentence_write writes the folder of one that was
 * trained, made if it is not there: all files that the model's own folder has for it, and model.safetensors. dtype: of
 * weights; 0: f32. */
ATT_API att_status att_sentence_open_for_training(att_ctx *ctx, const char *folder, att_sentence **out);
ATT_API att_status att_sentence_write(const att_sentence *m, const char *folder, att_dtype dtype);

/* Attention weights of one layer and head over one sentence. */
typedef struct att_attention_map {
    att_tokens tokens;
    float *weights; /* [count, count]: row = query, column = key */
} att_attention_map;
ATT_API att_status att_sentence_attention(const att_sentence *m, const char *text, size_t bytes, int64_t layer,
                                          int64_t head, att_attention_map *out);
ATT_API void att_attention_map_free(const att_sentence *m, att_attention_map *map);

/* ---- 5 Translation ------------------------------------------------------ */

/* A model that reads one text and writes another, token by token: a Transformer, or recurrent layers. */
typedef struct att_encoder_decoder att_encoder_decoder;

typedef struct att_encoder_decoder_info {
    size_t size;
    const char *architecture; /* "transformer" or "rnn" */
    int64_t source_vocabulary, target_vocabulary;
    int64_t max_positions;                     /* tokens of a text, at most */
    int64_t attention_layers, attention_heads; /* by which a decoder looks at the source; 0: by none */
    int64_t pad, eos, start;                   /* ids of the target: start comes before its first token */
} att_encoder_decoder_info;

ATT_API att_status att_encoder_decoder_describe(const att_encoder_decoder *m, att_encoder_decoder_info *info);
/* Of a model that was opened for training: how many parameters, and the i-th in [0, that) with its name (name or NULL).
 * NULL outside, and of other models. */
ATT_API int64_t att_encoder_decoder_params(const att_encoder_decoder *m);
ATT_API att_param *att_encoder_decoder_param(const att_encoder_decoder *m, int64_t i, const char **name);

/* n texts and their translations, all one after the other; a target ends with the end. */
typedef struct att_sequence_pairs {
    int64_t n;
    const int32_t *source;         /* [source_offsets[n]] */
    const int64_t *source_offsets; /* [n + 1] */
    const int32_t *target;         /* [target_offsets[n]] */
    const int64_t *target_offsets; /* [n + 1] */
} att_sequence_pairs;

typedef struct att_loss_options {
    float label_smoothing, dropout; /* both in [0, 1) */
    uint64_t seed;                  /* of dropout: another one each step */
    const uint32_t *sequence_ids;   /* [n], where dropout > 0: pairs are told apart by these */
    bool sum;                       /* of all tokens; false: their mean */
    int64_t *count;                 /* becomes the number of target tokens; or NULL */
} att_loss_options;
/* Logits of each target token by those before it -> [target_offsets[n], target_vocabulary]; of learning only the
 * dropout counts, learning or NULL: none. NULL on error, as all operations. */
ATT_API att_var *att_encoder_decoder_logits(att_tape *t, const att_encoder_decoder *m, const att_sequence_pairs *pairs,
                                            const att_loss_options *learning);
/* Their cross entropy -> [1]. learning or NULL: as it is in use, in the mean. */
ATT_API att_var *att_encoder_decoder_loss(att_tape *t, const att_encoder_decoder *m, const att_sequence_pairs *pairs,
                                          const att_loss_options *learning);

typedef struct att_encoder_decoder_write_options {
    size_t size;
    att_dtype dtype; /* of the weights: ATT_F16, ATT_BF16; 0: as they are, f32 */
    int64_t beam;    /* that translators of the folder use unless told otherwise; 0: 4 */
} att_encoder_decoder_write_options;
/* Writes a model that was opened for training: config.json, generation_config.json and model.safetensors, each of which
 * is the old one or the new one at any time; a Transformer as the class MarianMTModel. The folder is made if it is not
 * there. options or NULL: defaults. */
ATT_API att_status att_encoder_decoder_write(const att_encoder_decoder *m, const char *folder,
                                             const att_encoder_decoder_write_options *options);

/* The Transformer of Vaswani et al. 2017 in the layout of the class MarianMTModel, as the OPUS-MT models have it. */
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
/* What the encoder makes of the sources, all one after the other: ids [offsets[n]], offsets [n + 1] ascending from 0
 * -> [offsets[n], hidden]. NULL on error, as all operations. */
ATT_API att_var *att_transformer_encode(att_tape *t, const att_transformer *m, const int32_t *ids,
                                        const int64_t *offsets, int64_t n);
/* Logits of what follows each target token, all targets one after the other: ids [offsets[n]], offsets [n + 1];
 * source as att_transformer_encode gives it, of source_offsets [n + 1] -> [offsets[n], target_vocabulary]. */
ATT_API att_var *att_transformer_decode(att_tape *t, const att_transformer *m, att_var *source,
                                        const int64_t *source_offsets, const int32_t *ids, const int64_t *offsets,
                                        int64_t n);

/* Opens it for training: with f32 weights of its own. */
ATT_API att_status att_transformer_open_for_training(att_ctx *ctx, const char *folder, att_transformer **out);
/* What it is as any other; it lives as long as m. */
ATT_API att_encoder_decoder *att_transformer_as_encoder_decoder(att_transformer *m);

/* Recurrent layers that read a source and write a target (Cho et al. 2014, Sutskever et al. 2014), and look back at the
 * source for each token (Bahdanau et al. 2015, Luong et al. 2015). */
typedef struct att_seq2seq att_seq2seq;

typedef enum att_seq2seq_attention {
    ATT_SEQ2SEQ_NONE = 0, /* one fixed context, the encoder's last states: into the decoder's layers (Cho) */
    ATT_SEQ2SEQ_ADDITIVE, /* by the state before the token: into the decoder's layers (Bahdanau) */
    ATT_SEQ2SEQ_DOT,      /* by the state behind them, which then joins it (Luong) */
    ATT_SEQ2SEQ_GENERAL   /* the same, by s W h */
} att_seq2seq_attention;

typedef struct att_seq2seq_config {
    size_t size;
    int64_t source_vocabulary, target_vocabulary;
    int64_t embedding, units, layers; /* units of a state; layers of the encoder, and of the decoder */
    int64_t max_positions;            /* tokens of a text, at most; the layers would take any number */
    int64_t pad, eos, start;          /* ids of the target: start comes before its first token */
    bool lstm;                        /* false: GRU */
    bool bidirectional;               /* the encoder, with half of the units in each direction */
    bool scale_embedding;             /* by sqrt(embedding) */
    bool share;                       /* one table for source and target */
    bool tie;                         /* the output's weights are the target's table (Press, Wolf 2017) */
    att_seq2seq_attention attention;
} att_seq2seq_config;

/* A folder with config.json ("model_type": "attend-seq2seq") and model.safetensors; the same to train, with f32 weights
 * of its own; and a new one to train, with random weights. Errors name the setting and its value. */
ATT_API att_status att_seq2seq_open(att_ctx *ctx, const char *folder, att_seq2seq **out);
ATT_API att_status att_seq2seq_open_for_training(att_ctx *ctx, const char *folder, att_seq2seq **out);
ATT_API att_status att_seq2seq_new(att_ctx *ctx, const att_seq2seq_config *config, uint64_t seed, att_seq2seq **out);
ATT_API void att_seq2seq_free(att_seq2seq *m);
ATT_API att_status att_seq2seq_describe(const att_seq2seq *m, att_seq2seq_config *config);
/* What it is as any other; it lives as long as m. Dropout is on embeddings, between layers, on the encoder's outputs
 * and on what logits are made of. No text is empty. */
ATT_API att_encoder_decoder *att_seq2seq_as_encoder_decoder(att_seq2seq *m);

/* A training: steps of an optimizer on a model, in memory or as a run in a folder of its own, which becomes
 * a model's folder: with its settings, checkpoints, and in the end its weights. */
typedef struct att_training att_training;

/* Of a translator, from two files, of which line i of one is a translation of line i of the other. They may have any
 * size: kept is where their lines are, at most 16 bytes a line, and each batch is read when its turn comes. So they
 * have to be regular files and to stay as they are while there is the training: one that was changed is an error of the
 * next step. No line may have more than a MiB. Pairs that are left out: see att_training_report. */
typedef struct att_translator_training_options {
    size_t size;
    const char *source, *target; /* files */
    int64_t max_tokens;          /* of a text; longer pairs are left out; 0: 128 */
    int64_t batch_tokens;        /* of the targets of a batch, at most, or a single pair; 0: 2048 */
    int64_t accumulate;          /* batches of a step; 0: 1 */
    att_schedule schedule;       /* of learning rates */
    float label_smoothing, dropout;
    double clip;                             /* the greatest norm of a step's gradients; 0: none */
    uint64_t seed;                           /* of dropout and of the order */
    const char *valid_source, *valid_target; /* files to validate by; none: both NULL */
    /* The rest is for att_translator_training_open alone. */
    const char *tokenizer; /* a folder with source.spm, target.spm and vocab.json, or a SentencePiece model that makes
                            * them; or NULL: they are made of the files */
    int64_t vocabulary;    /* pieces of that, of both languages together; 0: 8000. Each digit is one, and each of the
                            * 4,000 most frequent characters that the files have three times or more. */
    double character_coverage; /* of that, as in att_vocab_options; 0: 1 */
    bool byte_fallback;        /* the same */
    const char *settings;      /* of the model, as a config.json has them: {"model_type": "attend-seq2seq", "attention":
                                * "dot"}; what is left out, or NULL: those of a Transformer of 3 + 3 layers of 256, or of
                                * recurrent layers about as large. What follows from the vocabulary need not be there. */
    const char *config;        /* a file that has such settings, too; or NULL. They must not contradict each other. */
    bool resume;               /* go on from the newest checkpoint: the same bits as without a pause */
    int64_t keep;              /* checkpoints that stay; 0: 5 */
    char *note; /* [note_bytes], zero-terminated: a text of the caller's, which each checkpoint has as it then
                 * is; resume: it becomes that of the checkpoint, where that has one; or NULL. */
    size_t note_bytes;
} att_translator_training_options;
/* In memory. The model, opened for training, and the tokenizer must outlive it. Errors name the files. */
ATT_API att_status att_translator_training_new(att_encoder_decoder *m, const att_tokenizer *t,
                                               const att_translator_training_options *options, att_training **out);
/* In a folder, with a vocabulary and a model that are made by the options. Errors: another training runs in the folder;
 * it has checkpoints and options.resume is false, or none and it is true; a checkpoint of other options, or one that no
 * training has made: damaged, of another step than its name's, with numbers that are not finite; a symbolic link where
 * the folder's lock or a checkpoint should be. */
ATT_API att_status att_translator_training_open(att_ctx *ctx, const char *folder,
                                                const att_translator_training_options *options, att_training **out);
ATT_API void att_training_free(att_training *t);
/* What a translator's training has; NULL: it is another kind of training. */
ATT_API const att_encoder_decoder *att_training_model(const att_training *t);
ATT_API const att_tokenizer *att_training_tokenizer(const att_training *t);

/* Of a sentence model, which learns how alike sentences are: the mean of (cos(u, v) - score)^2 over pairs becomes
 * small, as Sentence-BERT learns it (Reimers, Gurevych 2019, 3.1), by AdamW. Reports' tokens are those of first and
 * second sentences, `too_long` counts pairs with a sentence that was cut, and the loss is a pair's. */
typedef struct att_sentence_training_options {
    size_t size;
    int64_t pairs;
    const char *const *texts; /* [2 pairs], UTF-8: the first and the second of each; needed until it is made */
    const size_t *bytes;      /* [2 pairs], or NULL: zero-terminated */
    const double *scores;     /* [pairs]: cosines that are wanted, from -1 to 1 */
    int64_t batch;            /* pairs; 0: 16 */
    att_schedule schedule;    /* of learning rates */
    double weight_decay;      /* of weights that are matrices */
    double clip;              /* the greatest norm of a step's gradients; 0: none */
    uint64_t seed;            /* of dropout and of the order */
    /* The rest is for att_sentence_training_open alone. */
    const char *model; /* the folder to begin with */
    bool resume;
    int64_t keep;          /* checkpoints that stay; 0: 2 */
    int64_t evaluation_id; /* a number that stands for what scores are of, as a checksum of texts: a
                            * checkpoint of another one is refused */
    char *note;            /* as that of att_translator_training_options */
    size_t note_bytes;
} att_sentence_training_options;
/* In memory: the model, opened for training, must outlive it. In a folder, which is not the model's and becomes a
 * sentence-transformers folder. */
ATT_API att_status att_sentence_training_new(att_sentence *m, const att_sentence_training_options *options,
                                             att_training **out);
ATT_API att_status att_sentence_training_open(att_ctx *ctx, const char *folder,
                                              const att_sentence_training_options *options, att_training **out);
ATT_API const att_sentence *att_training_sentence(const att_training *t); /* NULL: it is another kind of training */

typedef struct att_training_report {
    size_t size;
    int64_t step, epoch;                  /* how many steps were taken, and epochs were begun */
    int64_t steps_left;                   /* of this epoch */
    int64_t pairs;                        /* of the files: learnt, */
    int64_t empty, invalid, too_long;     /* and left out: with an empty side, not UTF-8, too long */
    int64_t source_tokens, target_tokens; /* of the step */
    double loss;                          /* of a target token, in the mean, smoothed and dropped as it was learnt */
    double norm, rate;
} att_training_report;
/* One step: a batch, or several, then the optimizer. The same bits for any number of threads, and whether or not it was
 * interrupted. Errors: a loss or gradients that are not finite; the sentence names the step and the operation that made
 * the first such number (see att_tape_config.finite). Nothing has changed then. */
ATT_API att_status att_training_step(att_training *t, att_training_report *report);
ATT_API int64_t att_training_steps(const att_training *t); /* that were taken */
/* A translator's loss of a target token of the files to validate by, in the mean, neither smoothed nor dropped. */
ATT_API att_status att_training_validate(att_training *t, double *loss);

/* The rest is for a training in a folder. */

/* A checkpoint of now: weights, moments, and where in the files it is. It is whole or is not there. Errors: numbers
 * that are not finite, which the sentence names; the disk. After each of them the checkpoints before are there as they
 * were.
 */
ATT_API att_status att_training_save(att_training *t);
/* The same where a run stops for a while: the next checkpoint takes its place, so that averages are those of a run that
 * has not stopped. */
ATT_API att_status att_training_pause(att_training *t);
/* Of a sentence model: evaluated on what is not learnt, the model of this step has that score. If it is the highest so
 * far, in steps before a pause too, the model is written to the folder, as att_training_write(t, 0, dtype) does. */
ATT_API att_status att_training_keep_best(att_training *t, double score, att_dtype dtype);
/* What att_training_keep_best was given. */
typedef struct att_training_info {
    size_t size;
    int64_t evaluated, best_step; /* the last step, and that of the best score; 0: none */
    double best;                  /* -INFINITY: none */
} att_training_info;
ATT_API att_status att_training_describe(const att_training *t, att_training_info *info);
/* model.safetensors: the mean of the weights of the newest n checkpoints (n = 0: those of now), as dtype. The folder is
 * then one for att_translator_open, or att_sentence_open. */
ATT_API att_status att_training_write(att_training *t, int64_t n, att_dtype dtype);

/* A folder with the model and its text: source.spm, target.spm, vocab.json. It serves many threads at once. */
typedef struct att_translator att_translator;
ATT_API att_status att_translator_open(att_ctx *ctx, const char *folder, att_translator **out);
/* The same of a model and a tokenizer that there are, as they are now: greedy, and they must outlive it. */
ATT_API att_status att_translator_new(const att_encoder_decoder *m, const att_tokenizer *t, att_translator **out);
ATT_API void att_translator_free(att_translator *m);
ATT_API const att_encoder_decoder *att_translator_model(const att_translator *m);
ATT_API const att_tokenizer *att_translator_tokenizer(const att_translator *m);

typedef struct att_translate_options {
    size_t size;
    int64_t beam;       /* translations that are followed at a time; 0: what the model's settings say, or 1 */
    int64_t max_tokens; /* of a translation, the end among them; 0: the settings, or as many as the model's positions */
    int64_t min_tokens; /* the same: it does not end before; 0: the settings, or 1 */
    int64_t n_best;     /* the best of each text, at most beam; 0: 1 */
    const float *length_penalty; /* score = log probability / tokens ^ this; or NULL: what the settings say, or 1 */
    bool split; /* texts that are longer than the model's positions are cut, at sentences where that can be, and their
                 * segments translated; false: an error */
    bool no_scores; /* scores are not asked for: they are NaN. With a beam of 1 the same tokens are then found from a
                     * quarter of the vocabulary's bytes (att_linear_argmax) */
} att_translate_options;

typedef struct att_translation {
    att_text text;
    att_tokens tokens; /* the end not among them */
    float score;       /* log probability / tokens ^ length penalty, the end counted */
} att_translation;
/* texts [n] with bytes [n] or NULL (zero-terminated) -> out [n][n_best], in the given order and the best first, the
 * same bits whatever else is in the call; free each with att_translation_free. Where less than n_best was found
 * text.text is NULL. Nothing, or white space, is translated to nothing. Settings are those of generation_config.json;
 * one that is not supported is an error of att_translator_open. options or NULL: defaults. beam 1: the likeliest token
 * each time. Else beam search as the class GenerationMixin has it. Errors: options out of range; a text that is NULL or
 * too long; logits that are not numbers; memory; cancelled. */
ATT_API att_status att_translate(const att_translator *m, int64_t n, const char *const *texts, const size_t *bytes,
                                 const att_translate_options *options, att_translation *out);
ATT_API void att_translation_free(const att_translator *m, att_translation *t);

/* What a translation looks at in its text: attention weights of one decoder layer, rows adding up to 1. */
typedef struct att_alignment {
    att_tokens source, target; /* with their ends */
    float *weights;            /* [target.count, source.count]: a row is of the step that chose its token */
} att_alignment;
/* text [bytes] and its translation's tokens, ids [n] without the end; layer -1: the last, head -1: the mean of all. It
 * is decoded once more, all at once. Errors: a layer or head that is not there, or no attention at all; more tokens
 * than positions; memory. */
ATT_API att_status att_translate_alignment(const att_translator *m, const char *text, size_t bytes, const int32_t *ids,
                                           int64_t n, int64_t layer, int64_t head, att_alignment *out);
ATT_API void att_alignment_free(const att_translator *m, att_alignment *a);

/* ---- 6 Translations, measured ------------------------------------------- */

/* BLEU (Papineni et al. 2002) and chrF (Popovic 2015), as the program sacreBLEU has them by default (Post 2018): the
 * same tokens, exponential smoothing, chrF2 of characters without spaces. Case counts. */

typedef enum att_bleu_tokenizer {
    ATT_BLEU_13A = 0,  /* as mteval-v13a cuts them: punctuation is cut off, "&quot;" and the like are read */
    ATT_BLEU_CHAR = 1, /* each character but white space: for texts without spaces between words */
    ATT_BLEU_NONE = 2  /* what stands between white space */
} att_bleu_tokenizer;

enum { ATT_BLEU_ORDER = 4, ATT_CHRF_ORDER = 6 };

/* What a translation shares with its references. The counts of several sentences, added up, are those of all. Arrays
 * are by order: [0] has single tokens or characters, [1] n-grams of two, ... A match is one that is in a reference,
 * too. Of several references, reference_tokens is of the one that is nearest in length, and characters are of the one
 * that gives the best chrF. */
typedef struct att_bleu_counts {
    int64_t tokens, reference_tokens;
    int64_t token_ngrams[ATT_BLEU_ORDER], token_matches[ATT_BLEU_ORDER];
    int64_t character_ngrams[ATT_CHRF_ORDER], reference_character_ngrams[ATT_CHRF_ORDER],
        character_matches[ATT_CHRF_ORDER];
} att_bleu_counts;

/* Counts of one sentence: text [bytes] against its references [n] with reference_bytes [n] or NULL (zero-terminated).
 * Any bytes will do: each maximal invalid subpart of UTF-8 reads as one U+FFFD. Time is that of sorting the tokens and
 * the characters. n 0: its own tokens alone. Errors: more than 2^31 - 1 bytes in all; memory. */
ATT_API att_status att_bleu_count(att_ctx *ctx, att_bleu_tokenizer tokenizer, const char *text, size_t bytes,
                                  const char *const *references, const size_t *reference_bytes, int64_t n,
                                  att_bleu_counts *out);
/* sum += c */
ATT_API void att_bleu_add(att_bleu_counts *sum, const att_bleu_counts *c);

typedef struct att_bleu_info {
    size_t size;
    double bleu, chrf;                /* in [0, 100] */
    double precision[ATT_BLEU_ORDER]; /* in percent; the k-th order without a match counts as if it had 2^-k of one */
    double brevity;                   /* in [0, 1]: less than 1 where translations are shorter than references */
} att_bleu_info;

/* effective_order: orders for which all sentences are too short do not count, as is usual for single sentences; else
 * BLEU is 0 then. */
ATT_API att_status att_bleu_describe(const att_bleu_counts *c, bool effective_order, att_bleu_info *info);

typedef struct att_bleu_resampling {
    size_t size;
    int64_t resamples; /* 0: 1,000 */
    uint64_t seed;
    bool effective_order;
} att_bleu_resampling;

typedef struct att_interval {
    double mean, low, high; /* 95 % of the resamples lie in [low, high] */
} att_interval;

/* How far the scores are due to the sentences that happened to be there: those of as many sentences drawn from c [n]
 * with replacement, again and again (Koehn 2004). Resample r draws sentence i by word i % 4 of att_random(seed, {i / 4,
 * r}), times n, divided by 2^32. opt or NULL: defaults. Errors: n or resamples not in [1, 2^31); memory; cancelled. */
ATT_API att_status att_bleu_intervals(att_ctx *ctx, const att_bleu_counts *c, int64_t n, const att_bleu_resampling *opt,
                                      att_interval *bleu, att_interval *chrf);

#ifdef __cplusplus
}
#endif
#endif
