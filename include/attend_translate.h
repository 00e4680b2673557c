/* attend_translate.h - translation by encoder-decoder models, Transformers or recurrent ones, and their training.
 *
 * Chapters: 1 Models, 2 The Transformer, 3 Recurrent models, 4 Translating, 5 Training.
 *
 * A model is a folder in the format in which it is published. attend_model.h has the rules for names, files and
 * threads, attend.h those for arguments that may be NULL. */
#ifndef ATTEND_TRANSLATE_H
#define ATTEND_TRANSLATE_H

#include "attend_trace.h"
#include "attend_train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1 Models -------------------------------------------------------- */

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

/* Describes a model, which is a view of an att_transformer or att_seq2seq and is freed with it. */
ATT_API att_status att_encoder_decoder_describe(const att_encoder_decoder *m, att_encoder_decoder_info *info);
/* Returns the model's parameters: see attend_model.h. */
ATT_API const att_nn_params *att_encoder_decoder_params(const att_encoder_decoder *m);

/* A batch of n source and target sequences, each concatenated; a target ends with the eos token. */
typedef struct att_sequence_pairs {
    size_t size;
    int64_t n;
    const int32_t *source;         /* [call] [source_offsets[n]] */
    const int64_t *source_offsets; /* [call] [n + 1] */
    const int32_t *target;         /* [call] [target_offsets[n]] */
    const int64_t *target_offsets; /* [call] [n + 1] */
} att_sequence_pairs;

typedef struct att_loss_options {
    size_t size;
    float label_smoothing, dropout; /* both in [0, 1) */
    uint64_t seed;                  /* of dropout: a different one for each step */
    const uint32_t *sequence_ids;   /* [call] [n], if dropout > 0: identify the pairs in the dropout masks */
    bool sum;                       /* reduction: true: sum over target tokens, false: mean */
    int64_t *count;                 /* [call] receives the number of target tokens; or NULL */
} att_loss_options;
/* Computes logits of each target token given the tokens before it (teacher forcing) -> [target_offsets[n],
 * target_vocabulary]. Only dropout, seed and sequence_ids of options are used; options or NULL: no dropout. Returns
 * NULL on error. */
ATT_API att_var *att_encoder_decoder_logits(att_tape *t, const att_encoder_decoder *m, const att_sequence_pairs *pairs,
                                            const att_loss_options *options);
/* Computes the cross entropy of the logits of att_encoder_decoder_logits -> [1]. options or NULL: the mean, without
 * dropout and label smoothing. */
ATT_API att_var *att_encoder_decoder_loss(att_tape *t, const att_encoder_decoder *m, const att_sequence_pairs *pairs,
                                          const att_loss_options *options);

typedef struct att_encoder_decoder_write_options {
    size_t size;
    att_dtype dtype; /* of the weights: ATT_F16, ATT_BF16; 0: f32 */
    int64_t beam;    /* default beam size of translators that open the folder; 0: 4 */
} att_encoder_decoder_write_options;
/* Writes a model that was opened for training: config.json, generation_config.json and model.safetensors, each replaced
 * atomically. A Transformer is written in the format of the class MarianMTModel. The folder is created if it does not
 * exist. options or NULL: defaults. */
ATT_API att_status att_encoder_decoder_write(const att_encoder_decoder *m, const char *folder,
                                             const att_encoder_decoder_write_options *options);

/* ---- 2 The Transformer -------------------------------------------------- */

/* The Transformer of Vaswani et al. 2017 in the format of the class MarianMTModel, as used by the OPUS-MT models. */
typedef struct att_transformer att_transformer;

typedef struct att_transformer_info {
    size_t size;
    int64_t source_vocabulary, target_vocabulary, hidden, max_positions;
    int64_t encoder_layers, encoder_heads, encoder_intermediate;
    int64_t decoder_layers, decoder_heads, decoder_intermediate;
} att_transformer_info;

/* Opens a model for inference. options or NULL: defaults. */
ATT_API att_status att_transformer_open(att_ctx *ctx, const char *folder, const att_model_options *options,
                                        att_transformer **out);
ATT_API void att_transformer_free(att_transformer *m);
ATT_API att_status att_transformer_describe(const att_transformer *m, att_transformer_info *info);
/* Computes the encoder's output for n sources, concatenated: ids [offsets[n]], offsets [n + 1] ascending from 0 ->
 * [offsets[n], hidden]. Returns NULL on error, like all operations. */
ATT_API att_var *att_transformer_encode(att_tape *t, const att_transformer *m, const int32_t *ids,
                                        const int64_t *offsets, int64_t n);
/* Computes logits of the token after each target token, for n targets, concatenated: ids [offsets[n]], offsets [n + 1];
 * source: the output of att_transformer_encode, with source_offsets [n + 1] -> [offsets[n], target_vocabulary]. */
ATT_API att_var *att_transformer_decode(att_tape *t, const att_transformer *m, att_var *source,
                                        const int64_t *source_offsets, const int32_t *ids, const int64_t *offsets,
                                        int64_t n);

/* Opens a model for training: its weights are f32 copies, except frozen ones. options or NULL: defaults. */
ATT_API att_status att_transformer_open_for_training(att_ctx *ctx, const char *folder,
                                                     const att_trainable_options *options, att_transformer **out);
/* The model as an att_encoder_decoder (an upcast), valid as long as m. */
ATT_API att_encoder_decoder *att_transformer_as_encoder_decoder(att_transformer *m);

/* ---- 3 Recurrent models ------------------------------------------------- */

/* The recurrent encoder-decoder (Cho et al. 2014, Sutskever et al. 2014), optionally with attention to the source
 * (Bahdanau et al. 2015, Luong et al. 2015). */
typedef struct att_seq2seq att_seq2seq;

typedef enum att_seq2seq_attention {
    ATT_SEQ2SEQ_NONE = 0, /* no attention: a fixed context, the encoder's last state, is an input of the decoder's
                           * layers (Cho) */
    ATT_SEQ2SEQ_ADDITIVE, /* additive score; the query is the state before the token, the context an input of the layers
                           * (Bahdanau) */
    ATT_SEQ2SEQ_DOT,      /* score s . h; the query s is the last layer's state, to which the context is added
                           * (Luong) */
    ATT_SEQ2SEQ_GENERAL   /* score s W h; otherwise as ATT_SEQ2SEQ_DOT (Luong) */
} att_seq2seq_attention;

typedef struct att_seq2seq_config {
    size_t size;
    int64_t source_vocabulary, target_vocabulary;
    int64_t embedding, units, layers; /* units of a state; layers of the encoder and of the decoder, each */
    int64_t max_positions;   /* maximum number of tokens of a text; only the settings limit it, not the layers */
    int64_t pad, eos, start; /* ids of the target vocabulary; start is the decoder's first input */
    bool lstm;               /* false: GRU */
    bool bidirectional;      /* the encoder, with units / 2 in each direction */
    bool scale_embedding;    /* multiply embeddings by sqrt(embedding) */
    bool share;              /* one embedding table for source and target */
    bool tie;                /* the output layer's weights are the target's embedding table (Press, Wolf 2017) */
    att_seq2seq_attention attention;
} att_seq2seq_config;

/* att_seq2seq_open opens a folder with config.json ("model_type": "attend-seq2seq") and model.safetensors for
 * inference, att_seq2seq_open_for_training for training. att_seq2seq_new makes a model with randomly initialized
 * weights, for training. options or NULL: defaults. Errors: a setting (the message names it and its value); quantized
 * weights, which recurrent layers do not support. */
ATT_API att_status att_seq2seq_open(att_ctx *ctx, const char *folder, const att_model_options *options,
                                    att_seq2seq **out);
ATT_API att_status att_seq2seq_open_for_training(att_ctx *ctx, const char *folder, const att_trainable_options *options,
                                                 att_seq2seq **out);
ATT_API att_status att_seq2seq_new(att_ctx *ctx, const att_seq2seq_config *config, uint64_t seed, att_seq2seq **out);
ATT_API void att_seq2seq_free(att_seq2seq *m);
ATT_API att_status att_seq2seq_describe(const att_seq2seq *m, att_seq2seq_config *config);
/* The model as an att_encoder_decoder (an upcast), valid as long as m. Texts must not be empty. Dropout: after
 * embeddings, between layers, after the encoder and before the output layer. */
ATT_API att_encoder_decoder *att_seq2seq_as_encoder_decoder(att_seq2seq *m);

/* ---- 4 Translating ------------------------------------------------------ */

/* A translator: an encoder-decoder and its tokenizer (source.spm, target.spm, vocab.json). Many threads may use it at
 * once. */
typedef struct att_translator att_translator;
/* Opens a model for inference. options or NULL: defaults. */
ATT_API att_status att_translator_open(att_ctx *ctx, const char *folder, const att_model_options *options,
                                       att_translator **out);
ATT_API att_status att_translator_weights(const att_translator *m, att_model_weights *weights);
/* Makes a translator from a model and a tokenizer, which must outlive it. It decodes greedily by default. */
ATT_API att_status att_translator_new(const att_encoder_decoder *m, const att_tokenizer *t, att_translator **out);
ATT_API void att_translator_free(att_translator *m);
ATT_API const att_encoder_decoder *att_translator_model(const att_translator *m);
/* Returns the parameters of its model: see attend_model.h. */
ATT_API const att_nn_params *att_translator_params(const att_translator *m);
ATT_API const att_tokenizer *att_translator_tokenizer(const att_translator *m);
ATT_API int64_t att_translator_beam(const att_translator *m); /* the default beam size of translations; m NULL: 0 */

typedef struct att_translate_options {
    size_t size;
    int64_t beam;       /* beam size; 0: as in the model's settings, or 1 */
    int64_t max_tokens; /* of a translation, eos included; 0: as in the settings, or the model's max_positions */
    int64_t min_tokens; /* of a translation: eos is not generated before; 0: as in the settings, or 1 */
    int64_t n_best;     /* number of translations per text, at most beam; 0: 1 */
    const float *length_penalty; /* [call] score = log probability / tokens ^ length_penalty; or NULL: as in the
                                    settings, or 1 */
    bool split;     /* split texts that are longer than max_positions, at sentence ends if possible, and translate the
                     * segments; false: such a text is an error */
    bool no_scores; /* leave scores NaN: with beam 1, tokens are then selected by att_linear_argmax, which is faster */
    const int32_t *ids;        /* [call] [offsets[n]] or NULL: the tokens of each text instead of texts, as att_tokenize
                                * returns them, eos included; texts is NULL, and no text is split */
    const int64_t *offsets;    /* [call] [n + 1] ascending from 0, of ids; or NULL */
    const int32_t *prefix_ids; /* [call] [prefix_offsets[n]] or NULL: target tokens, without eos, with which each
                                * translation must begin */
    const int64_t *prefix_offsets; /* [call] [n + 1] ascending from 0, of prefix_ids; or NULL */
    int64_t *tokens;    /* [call] or NULL: receives the number of source tokens of each text [n], eos included */
    att_status *status; /* [call] or NULL: receives the error of each text [n], or ATT_OK. A text that is too long, or
                         * whose ids or prefix are wrong, gets no translation (text.text is NULL), and the others are
                         * translated; att_error returns the sentence of the last such text. NULL: such a text is an
                         * error of the call */
    att_progress_fn progress; /* [call] counts tokens of the texts; or NULL */
    void *user;               /* [call] */
} att_translate_options;

typedef struct att_translation {
    att_text text;
    att_tokens tokens; /* without eos */
    float score;       /* log probability / tokens ^ length_penalty, eos included */
    void *reserved[2];
    int64_t reserved_number[2];
} att_translation;
/* Translates texts [n] with lengths bytes [n] or NULL (zero-terminated) -> out [n][n_best], in the given order, best
 * translation first; free each with att_translation_free. A translation has the same bits whatever else is in the call.
 * If fewer than n_best translations were found, text.text of the others is NULL. An empty or blank text has an empty
 * translation. A translation, and each hypothesis of beam search, begins with its prefix, in text and tokens. Tokens of
 * the prefix count toward max_tokens and min_tokens, but the score is only of the tokens after it, as in generate() of
 * transformers with decoder_input_ids. If a text is split, the translation of its first segment begins with the prefix;
 * an empty text has no prefix. Settings come from generation_config.json; an unsupported one is an error of
 * att_translator_open. options or NULL: defaults. beam 1 is greedy search; otherwise beam search as in the class
 * GenerationMixin. Errors: options out of range; a text that is NULL or too long; an id that is not in the vocabulary;
 * a prefix with eos, or of max_tokens or more tokens; logits that are not finite; out of memory; cancelled. */
ATT_API att_status att_translate(const att_translator *m, int64_t n, const char *const *texts, const size_t *bytes,
                                 const att_translate_options *options, att_translation *out);
ATT_API void att_translation_free(att_ctx *ctx, att_translation *t);

/* Traces one pass of the decoder (attend_trace.h) for a text [bytes] and its translation, target [n] without eos. text
 * is NULL if options.ids has its tokens, eos included. Row t of the decoder's side and of cross-attention, and
 * target_ids[t], belong to the step that predicts token t; the last token is eos. Key t of the decoder's self-attention
 * is the token before token t, key 0 the start. For recurrent models the trace has only the attention to the source
 * (additive, dot, general), one layer of one head, and no hidden states. options or NULL: defaults. Errors: a model
 * without attention; more tokens than positions; an id that is not in the vocabulary; those of the options; out of
 * memory. */
ATT_API att_status att_translator_trace(const att_translator *m, const char *text, size_t bytes, const int32_t *target,
                                        int64_t n, const att_trace_options *options, att_trace **out);

/* ---- 5 Training --------------------------------------------------------- */

/* Training of a translator from two files: line i of one is the translation of line i of the other. The files may have
 * any size: only line offsets are in memory, at most 16 bytes a line, and batches are read when needed. So they must be
 * regular files that do not change during the training; a changed file is an error of the next step. They are opened as
 * by att_open_text. A line has at most 1 MiB. att_training_info counts pairs that are skipped. Weight decay applies to
 * all matrices. */
typedef struct att_translator_training_options {
    size_t size;
    const char *source, *target; /* [call] files of text */
    int64_t max_tokens;          /* of a text; longer pairs are skipped; 0: 128 */
    int64_t batch_tokens;        /* target tokens of a batch, at most, except for a single longer pair; 0: 2048 */
    float label_smoothing, dropout;
    const char *valid_source, *valid_target; /* [call] validation files; NULL: none */
    /* The following fields are for att_translator_training_open only. */
    const char *tokenizer; /* [call] a folder with source.spm, target.spm, vocab.json, or a SentencePiece model; or
                            * NULL: a tokenizer is trained on the files */
    int64_t vocabulary; /* size of the vocabulary that is trained on both languages; 0: 8000. Each digit is a piece, as
                         * is each of the 4,000 most frequent characters that occur at least three times. */
    double character_coverage; /* of the trained vocabulary, see att_vocab_options; 0: 1 */
    bool byte_fallback;        /* of the trained vocabulary, see att_vocab_options */
    const char *settings;      /* [call] model settings as in config.json: {"model_type": "attend-seq2seq", "attention":
                                * "dot"}; or NULL: a Transformer with 3 + 3 layers of 256. Settings that are left out
                                * have its values, or those of recurrent layers of about that size. Settings that follow
                                * from the vocabulary may be left out. */
    const char *config;        /* [call] a file with such settings; or NULL. Settings given in both must be equal. */
    int64_t skip_bad_lines;    /* skip up to this many pairs that are not UTF-8, in the training and in the validation
                                * files each; 0: such a pair is an error */
} att_translator_training_options;
/* Makes a training in memory. The model (opened for training) and the tokenizer must outlive it. Errors name the
 * files. */
ATT_API att_status att_translator_training_new(att_encoder_decoder *m, const att_tokenizer *t,
                                               const att_training_options *common,
                                               const att_translator_training_options *options, att_training **out);
/* Makes or resumes a training in a folder, with the vocabulary and model that the options describe. */
ATT_API att_status att_translator_training_open(att_ctx *ctx, const char *folder, const att_training_options *common,
                                                const att_translator_training_options *options, att_training **out);
/* Return the model and the tokenizer of a translator's training; NULL for other trainings. */
ATT_API const att_encoder_decoder *att_training_encoder_decoder(const att_training *t);
ATT_API const att_tokenizer *att_training_tokenizer(const att_training *t);

#ifdef __cplusplus
}
#endif
#endif
