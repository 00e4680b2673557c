/* The tokenizer that tokenizer.json describes: added tokens, normalizers, pre-tokenizers, a model, a post-processor,
 * and decoders, as in the `tokenizers` package. */
#ifndef ATT_PIPELINE_H
#define ATT_PIPELINE_H

#include "text/bert_normalizer.h"
#include "text/pipeline/added_tokens.h"
#include "text/post_processor.h"
#include "text/tokenizer.h"
#include "text/wordpiece.h"

typedef struct att_pipeline att_pipeline;

/* A text that is being encoded. */
typedef struct att_encoding {
    const att_pipeline *t;
    att_token_sink *sink;
    const char *original; /* the text of the call */
    att_pieces p;
    att_text_piece piece; /* piece that is being segmented */
    bool first;           /* no token yet */
    att_bytes a, b;       /* the model's memory, reused for each piece */
} att_encoding;

/* Adds a token for bytes [begin, end) of the piece. */
void att_encoding_add(att_encoding *e, int32_t id, size_t begin, size_t end);
/* Reports bytes [begin, end) of the piece as unknown. */
void att_encoding_unknown(att_encoding *e, size_t begin, size_t end);

/* How a model segments a piece. */
typedef struct att_subword_model {
    const char *name; /* its "type" */
    /* Reads the object "model", which was entered; the vocabulary is filled. */
    void (*read)(att_settings *s, att_pipeline *t);
    /* Segments s [bytes], not empty. */
    void (*segment)(att_encoding *e, const char *s, size_t bytes);
} att_subword_model;

extern const att_subword_model att_bpe_model, att_unigram_model, att_wordpiece_model, att_wordlevel_model;

/* BPE: a merge of two tokens; lower numbers are applied first. */
typedef struct att_bpe_merge {
    int32_t left, right, id;
} att_bpe_merge;

typedef struct att_bpe {
    att_bpe_merge *merge; /* [count] */
    size_t count;
    att_hash_table pairs;                                /* from left and right to the number of their merge */
    char prefix[ATT_MAX_PREFIX], suffix[ATT_MAX_PREFIX]; /* of characters inside, of the last one of a word */
    bool byte_fallback, fuse_unknown, ignore_merges;
    int32_t byte[256]; /* ids of "<0x0A>", or ATT_NO_TOKEN */
} att_bpe;

typedef struct att_unigram {
    att_trie trie;
    double *score;         /* [size] */
    const double *written; /* [n_written]: scores as tokenizer.json has them, while it is read; or none */
    size_t n_written;
    double unknown_score;
    bool byte_fallback;
    int32_t byte[256];
} att_unigram;

struct att_pipeline {
    att_tokenizer base;
    att_vocabulary vocabulary; /* with added tokens; `unknown` may be ATT_NO_TOKEN */
    att_added_tokens added;
    att_steps normalizers, pre_tokenizers, decoders;
    const att_subword_model *model;
    att_bpe bpe;
    att_unigram unigram;
    int max_word; /* WordPiece: characters of a word; longer ones are unknown */
    att_post_processor post;
    bool one_pass;          /* it is BERT's, whose words are found in one pass if offsets are not wanted ... */
    att_bert_settings bert; /* ... with these settings */
    bool clean_up;          /* decoded text is cleaned up as a whole */
};

/* Encodes a text by a tokenizer that is BERT's, without offsets. (bert_words.c) */
void att_encode_bert_words(att_token_sink *sink, const char *text, size_t bytes);
/* Reports a word that WordPiece cannot segment: its characters that are in no token, or the whole word if each is in a
 * token. (bert_words.c) */
void att_wordpiece_report_unknown(const att_vocabulary *v, att_token_sink *sink, const char *word, size_t bytes);

/* Finds the tokens "<0x00>" to "<0xFF>". */
void att_find_byte_tokens(const att_vocabulary *v, int32_t byte[256]);

/* Reads the settings into an empty tokenizer (pipeline_file.c). */
void att_pipeline_read_settings(att_settings *s, const att_token_list *list, att_pipeline *t);

#endif
