/* The backbone of a sentence model, below its modules: a tokenizer, and a model that makes hidden states of tokens, or
 * a vector for each text. A table has the kinds; one of them opens the model of a folder. */
#ifndef ATT_SENTENCE_BACKBONE_H
#define ATT_SENTENCE_BACKBONE_H

#include "attend_sentence.h"
#include "model/model.h"
#include "model/trace.h"

typedef struct att_backbone_kind att_backbone_kind;

typedef struct att_backbone_info {
    int64_t vocabulary;
    int64_t max_tokens;    /* of a text; 0: no limit */
    int64_t layers, heads; /* 0: it has no attention */
    bool no_special;       /* texts are tokenized without [CLS] and [SEP] */
    bool normalized;       /* the vectors of texts have length 1 */
} att_backbone_info;

typedef struct att_backbone {
    const att_backbone_kind *kind; /* NULL: it is not open */
    att_model *model;              /* the kind's own struct, which begins with it; it also has the parameters of
                                    * modules */
    att_tokenizer *tokenizer;
    att_backbone_info info;
} att_backbone;

/* The dropout of a training step. */
typedef struct att_texts_dropout {
    uint64_t seed;
    const uint32_t *sequence_ids; /* [n] */
    const int64_t *rows;          /* [n + 1]: 0, 1, ..., n, the offsets of a vector for each text */
} att_texts_dropout;

/* The texts of a batch. */
typedef struct att_texts {
    const int32_t *ids;     /* [offsets[n]] */
    const int64_t *offsets; /* [n + 1] ascending from 0 */
    int64_t n;
    int64_t prompt; /* number of tokens of the prompt at the start of each, if modules leave them out; otherwise 0 */
    const att_texts_dropout *dropout; /* or NULL */
} att_texts;

/* The arguments of att_model_open_inside that the backbone does not know. */
typedef struct att_backbone_opening {
    const att_model *outer;               /* the sentence model, which is opened for inference or training */
    const att_model_extension *extension; /* makes the layers of modules */
} att_backbone_opening;

/* Settings for reading texts, from files besides the model's. */
typedef struct att_backbone_settings {
    int64_t max_tokens; /* of a text; 0: none is given */
    bool lower_case;    /* convert text to lower case before tokenization */
    const char *file;   /* the file that states lower_case; valid as long as the program */
} att_backbone_settings;

struct att_backbone_kind {
    const char *module; /* the last component of its class in modules.json: "Transformer" */
    /* The values of "model_type" in config.json that the kind opens, followed by NULL; or NULL: it has no
     * config.json. */
    const att_model_kind *const *types;
    /* Return the number of features of hidden states of a built model, and the file that states it, for errors.
     */
    int64_t (*features)(const att_model *m);
    const char *source;
    /* Reads settings of sentence-transformers; NULL: there are none. plain: the folder has no modules.json. */
    att_status (*configure)(att_ctx *ctx, const char *folder, bool plain, att_backbone_settings *out);
    /* Sets b->model, b->tokenizer and b->info; after an error, what is set is freed. */
    att_status (*open)(att_backbone *b, const char *folder, const att_backbone_opening *how);
    /* Tokenizes texts as att_tokenize_batch does -> out [n]. NULL: that function, with the folder's limit of tokens */
    att_status (*tokenize)(const att_backbone *b, int64_t n, const char *const *texts, const size_t *bytes,
                           att_tokens *out);
    /* Hidden states of tokens -> [offsets[n], hidden]. */
    att_var *(*tokens)(att_tape *t, const att_backbone *b, const att_texts *x);
    /* Returns vectors of texts, [n, hidden], without a Pooling, which must not follow such a kind; NULL: a Pooling must
     * make them. */
    att_var *(*vectors)(att_tape *t, const att_backbone *b, const att_texts *x);
    /* Returns the pooling of a folder without modules.json, from its config.json; NULL: the mean. */
    att_pooling (*plain)(const att_settings *config);
    /* Returns the backbone's part of a trace of n tokens. NULL: it has no attention. */
    att_trace_part (*trace)(const att_backbone *b, int64_t n);
    /* What `tokens` makes of the hidden states of the last layer: their norm; NULL: it leaves them unchanged */
    att_var *(*finish)(att_tape *t, const att_backbone *b, att_var *x);
    const char *const *files; /* those of its folder that a copy needs besides weights, up to NULL */
    /* Writes FOLDER/model.safetensors of a model that was opened for training from the folder `from`. dtype 0: f32 */
    att_status (*write)(const att_backbone *b, const char *from, const char *folder, att_dtype dtype);
};

extern const att_backbone_kind att_backbone_encoder, att_backbone_language, att_backbone_static;
extern const att_backbone_kind *const att_backbone_kinds[]; /* up to NULL */

/* Returns whether this is the last component of a backbone's class in modules.json. */
bool att_backbone_is_module(const char *module);
/* Finds the kind that opens a folder whose class in modules.json is `module`. plain: the pooling if there is no
 * modules.json. Errors: config.json cannot be read, or has another type; the message lists the supported ones. */
att_status att_backbone_find(att_ctx *ctx, const char *folder, const char *module, const att_backbone_kind **kind,
                             att_pooling *plain);
/* Reads sentence_bert_config.json or its older names, and tokenizer_config.json. `configure` of Transformer.
 * (transformer_settings.c) */
att_status att_transformer_settings_read(att_ctx *ctx, const char *folder, bool plain, att_backbone_settings *out);
/* The `files` of Transformer: settings, and those of any tokenizer. */
extern const char *const att_transformer_files[];
/* Frees a backbone. b NULL or not open: does nothing. */
void att_backbone_free(att_backbone *b);

#endif
