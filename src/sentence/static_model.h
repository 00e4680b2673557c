/* Static embeddings: each token has a vector, and a text has the mean of those of its tokens. The module
 * StaticEmbedding of sentence-transformers, and the folders of the package model2vec. */
#ifndef ATT_SENTENCE_STATIC_MODEL_H
#define ATT_SENTENCE_STATIC_MODEL_H

#include "model/model.h"

typedef struct att_static_model {
    att_model model;
    const att_tokenizer *tokenizer;
    bool model2vec;         /* the folder is one of model2vec, whose rules for texts differ: see below */
    bool embeddings;        /* the table is the tensor "embeddings", not "embedding.weight" */
    bool normalized;        /* "normalize" of model2vec's config.json; otherwise the module Normalize states it */
    int64_t rows, dim;      /* of the table */
    int64_t tokens;         /* ids are in [0, tokens) */
    int64_t max_tokens;     /* of a text; 0: any number */
    int64_t max_characters; /* of a text whose tokens are found; -1: any number */
    att_param *table;       /* [rows, dim] */
    int32_t *row;           /* [tokens]: the row of each token; NULL: they are the same */
    att_param *weight;      /* [tokens, 1]: a factor of each token's row, which does not learn; NULL: 1 */
} att_static_model;

/* Returns whether a folder with this config.json, or without one (root NULL), is one of model2vec. */
bool att_static_is_model2vec(const att_settings *config);
/* Reads config.json of a folder, and sets *model2vec: whether it is one of model2vec. */
att_status att_static_find(att_ctx *ctx, const char *folder, bool *model2vec);

/* Opens FOLDER/model.safetensors and FOLDER/tokenizer.json, of model2vec also config.json: see att_model_open_inside.
 * The table stays in the file, which is mapped. *tokenizer, which the model uses, is the caller's. Errors: those of
 * opening; a tokenizer with more tokens than the table has; a "mapping" to rows that the table does not have. After an
 * error, too, what is set is to be freed. */
att_status att_static_open(const att_model *outer, const char *folder, const att_model_extension *extension,
                           att_tokenizer **tokenizer, att_static_model **out);

/* Tokenizes texts [n] with lengths bytes [n] or NULL (zero-terminated), without special tokens -> out [n], as
 * att_tokenize_batch fills it. A text that is too long is truncated: by StaticEmbedding to the tokens that "truncation"
 * of tokenizer.json states; by model2vec to "max_length" times the median of the lengths of all tokens in characters,
 * then to "max_length" tokens. Of model2vec, unknown tokens are removed at last. (static_tokens.c) */
att_status att_static_tokenize(const att_static_model *m, int64_t n, const char *const *texts, const size_t *bytes,
                               att_tokens *out);
/* Sets m->max_characters from m->max_tokens and the tokenizer, as model2vec does. (static_tokens.c) */
att_status att_static_limit_characters(att_static_model *m);

/* Reads the vectors of tokens ids [count], each in [0, m->tokens) -> [count, dim]. Their means by att_pool are those
 * of texts; a text without tokens has 0. */
att_var *att_static_apply(att_tape *t, const att_static_model *m, const int32_t *ids, int64_t count);

/* Writes FOLDER/model.safetensors in the format that the model was read in. dtype 0: f32. */
att_status att_static_write_weights(const att_static_model *m, const char *folder, att_dtype dtype);

#endif
