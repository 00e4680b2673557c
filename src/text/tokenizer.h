/* The common base of all tokenizers. */
#ifndef ATT_TOKENIZER_H
#define ATT_TOKENIZER_H

#include "attend_util.h"
#include "io/bytes.h"
#include "text/trie.h"

#define ATT_MAX_SPECIAL 16

/* The positions of texts among special tokens: "[CLS] A [SEP]". */
typedef struct att_template {
    int32_t item[ATT_MAX_SPECIAL + 2]; /* [count]: a special token, or ATT_TEXT_A, ATT_TEXT_B */
    int32_t type[ATT_MAX_SPECIAL + 2]; /* [count]: the type id of its tokens */
    int64_t count;
} att_template;

enum { ATT_TEXT_A = -1, ATT_TEXT_B = -2 };

/* Appends an item; false: there would be more than ATT_MAX_SPECIAL special tokens or two texts. */
bool att_template_add(att_template *t, int32_t item, int32_t type);

/* Bytes [begin, end) of a text in which special tokens are plain text. */
typedef struct att_literal {
    int64_t begin, end;
} att_literal;

typedef struct att_literals {
    const att_literal *range; /* [count], ascending, not empty, without overlaps */
    size_t count;
} att_literals;

/* A receiver of tokens, up to a limit. */
typedef struct att_token_sink {
    const att_tokenizer *t;
    int64_t limit;
    size_t capacity, offsets_capacity, special_capacity;
    att_tokens tokens;
    att_status status;
    const att_tokenize_options *options;
    att_literals literal; /* as options->split_special, for parts of the text */
    bool full;            /* the limit is reached */
    bool truncated;       /* a token was not accepted, or an error occurred: the rest of the text can be skipped */
} att_token_sink;

/* Appends tokens. */
void att_token_sink_add(att_token_sink *sink, const int32_t *ids, int64_t n);
/* Appends a token for bytes [begin, end) of the text. */
void att_token_sink_add_at(att_token_sink *sink, int32_t id, int64_t begin, int64_t end);
/* Reports text [bytes] that becomes the unknown token: character by character, or as a whole. */
void att_token_sink_unknown(att_token_sink *sink, const char *text, size_t bytes, bool by_characters);
/* Makes att_tokenize fail with a status whose message is set. */
void att_token_sink_fail(att_token_sink *sink, att_status status);

typedef struct att_tokenizer_kind {
    void (*encode)(att_token_sink *sink, const char *text, size_t bytes);
    void (*decode)(const att_tokenizer *t, const int32_t *ids, int64_t n, att_bytes *text);
    const char *(*token)(const att_tokenizer *t, int32_t id);
    void (*free)(att_tokenizer *t);                                          /* frees the whole tokenizer */
    bool has_literals;                                                       /* encode uses sink->literal */
    int32_t (*find)(const att_tokenizer *t, const char *text, size_t bytes); /* ATT_NO_ID: none */
    bool (*is_special)(const att_tokenizer *t, int32_t id);                  /* id in [0, size) */
} att_tokenizer_kind;

enum { ATT_TOKENS = ATT_TOKEN_MASK + 1 };

/* The first member of each tokenizer's struct. */
struct att_tokenizer {
    att_ctx *ctx;
    const att_tokenizer_kind *kind;
    int64_t size;              /* ids are in [0, size) */
    bool truncate_left;        /* a text that is too long loses its start */
    att_template single, pair; /* count 0: texts without special tokens */
    att_template plain_pair;   /* without special tokens; count 0: the first text with type 0, the second with type 1 */
    int32_t special[ATT_TOKENS]; /* by att_token; ATT_NO_ID: none */
};

/* Makes the common part of a tokenizer, with which a constructor begins. */
att_tokenizer att_tokenizer_empty(att_ctx *ctx, const att_tokenizer_kind *kind);

/* Reads and checks the options for a single text. */
att_status att_tokenize_options_read(const att_tokenizer *t, const att_tokenize_options *opt,
                                     att_tokenize_options *out);

/* Tokenizes text [bytes] as att_tokenize does, without special tokens around it. Special tokens that overlap `literal`
 * are not recognized. Error: the tokenizer does not come from tokenizer.json. */
att_status att_encode_literals(const att_tokenizer *t, const char *text, size_t bytes, const att_literals *literal,
                               att_tokens *out);

/* As att_tokenize_batch, of pairs: texts a [n], b [n], which have been checked, with lengths or NULL, as
 * att_tokenize_pair has them. (tokenize_batch.c) */
att_status att_tokenize_pairs(const att_tokenizer *t, int64_t n, const char *const *a, const size_t *a_bytes,
                              const char *const *b, const size_t *b_bytes, const att_tokenize_options *opt,
                              att_tokens *out);
/* The tokens of a pair: of texts that were tokenized without special tokens and without a limit. */
att_status att_tokens_join(const att_tokenizer *t, const att_tokens *a, const att_tokens *b,
                           const att_tokenize_options *opt, att_tokens *out);

/* Constructors; *out is NULL on error. */
/* Opens tokenizer.json, or the older layouts vocab.txt, or vocab.json and merges.txt. */
att_status att_json_tokenizer_open(att_ctx *ctx, const char *folder, att_tokenizer **out);
/* From FOLDER/tokenizer.json alone, as Tokenizer.from_file of the `tokenizers` package: what files beside it state is
 * not applied. *max_tokens: its "truncation"; 0: none. */
att_status att_bare_tokenizer_open(att_ctx *ctx, const char *folder, int64_t *max_tokens, att_tokenizer **out);
att_status att_marian_tokenizer_open(att_ctx *ctx, const char *folder, att_tokenizer **out);
att_status att_sentencepiece_tokenizer_open(att_ctx *ctx, const char *path, att_tokenizer **out);

#endif
