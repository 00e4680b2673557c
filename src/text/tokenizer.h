/* The common base of all tokenizers. */
#ifndef ATT_TOKENIZER_H
#define ATT_TOKENIZER_H

#include "attend_util.h"
#include "io/bytes.h"
#include "text/trie.h"

#define ATT_MAX_SPECIAL 16

/* Where the texts stand among special tokens: "[CLS] A [SEP]". */
typedef struct att_template {
    int32_t item[ATT_MAX_SPECIAL + 2]; /* [count]: a special token, or ATT_TEXT_A, ATT_TEXT_B */
    int32_t type[ATT_MAX_SPECIAL + 2]; /* [count]: the type id of its tokens */
    int64_t count;
} att_template;

enum { ATT_TEXT_A = -1, ATT_TEXT_B = -2 };

/* Appends an item; false: there are ATT_MAX_SPECIAL special tokens already, or more texts than two. */
bool att_template_add(att_template *t, int32_t item, int32_t type);

/* Bytes [begin, end) of a text in which special tokens are text like any other. */
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
void att_token_sink_unknown(const att_token_sink *sink, const char *text, size_t bytes, bool by_characters);
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
    bool truncate_left;        /* of a text that is too long, the end is kept */
    att_template single, pair; /* count 0: the texts alone */
    att_template plain_pair;   /* without special tokens; count 0: the first text with type 0, the second with type 1 */
    int32_t special[ATT_TOKENS]; /* by att_token; ATT_NO_ID: none */
};

/* What a constructor begins with. */
att_tokenizer att_tokenizer_empty(att_ctx *ctx, const att_tokenizer_kind *kind);

/* Reads and checks the options of a text alone. */
att_status att_tokenize_options_read(const att_tokenizer *t, const att_tokenize_options *opt,
                                     att_tokenize_options *out);

/* As att_tokenize of a text [bytes] without the special tokens around it, where no special token of the text has bytes
 * in `literal`. Errors: a tokenizer that is not one of tokenizer.json. */
att_status att_encode_literals(const att_tokenizer *t, const char *text, size_t bytes, const att_literals *literal,
                               att_tokens *out);

/* Constructors; *out is NULL on error. */
/* From tokenizer.json, or from the older layouts vocab.txt, and vocab.json and merges.txt. */
att_status att_json_tokenizer_open(att_ctx *ctx, const char *folder, att_tokenizer **out);
att_status att_marian_tokenizer_open(att_ctx *ctx, const char *folder, att_tokenizer **out);
att_status att_sentencepiece_tokenizer_open(att_ctx *ctx, const char *path, att_tokenizer **out);

#endif
