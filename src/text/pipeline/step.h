/* Steps of the pipeline: normalizers, pre-tokenizers and decoders, each read from an object of tokenizer.json with a
 * "type". A Sequence stands for its steps, one after the other. */
#ifndef ATT_STEP_H
#define ATT_STEP_H

#include "text/charsmap.h"
#include "text/pipeline/decoded.h"
#include "text/pipeline/pieces.h"

typedef struct att_step {
    void (*apply)(const struct att_step *s, att_pieces *p);   /* for a normalizer or pre-tokenizer */
    void (*decode)(const struct att_step *s, att_decoded *d); /* for a decoder */
    void (*rewrite)(const void *step, att_edit *e);           /* for a normalizer that rewrites piece by piece */
    att_pattern pattern;                                      /* its text and regex belong to the step */
    att_split_behavior behavior;
    bool inverted;
    char *text; /* [bytes]: a text to write, or a prefix or suffix to remove */
    size_t bytes;
    int form;                                                                  /* of Unicode: ATT_NFC... */
    bool left, right;                                                          /* Strip */
    bool clean, ideographs, accents;                                           /* BertNormalizer */
    bool lowercase;                                                            /* BertNormalizer */
    bool prefix_space, use_regex;                                              /* ByteLevel */
    bool split;                                                                /* Metaspace */
    enum { ATT_PREPEND_ALWAYS, ATT_PREPEND_FIRST, ATT_PREPEND_NEVER } prepend; /* Metaspace */
    int64_t start, stop;                                                       /* Strip of a decoder: characters */
    bool cleanup;                                                              /* WordPiece of a decoder */
    att_charsmap charsmap;                                                     /* Precompiled */
} att_step;

enum { ATT_MAX_STEPS = 64 };

typedef struct att_steps {
    att_step *step; /* [count] */
    size_t count, capacity;
} att_steps;

/* A type of step, and the function that reads its settings, or NULL: it has none. */
typedef struct att_step_type {
    const char *name;
    void (*read)(att_settings *s, att_step *step);
    void (*apply)(const att_step *s, att_pieces *p);
    void (*rewrite)(const void *step, att_edit *e);
    void (*decode)(const att_step *s, att_decoded *d);
    int form; /* of Unicode */
} att_step_type;

/* Tables, each ended by a type without a name. */
extern const att_step_type att_normalizer_types[], att_pre_tokenizer_types[], att_decoder_types[];

/* Reads the value of `key`, an object or null; `list` is the key of a Sequence's steps. */
void att_steps_read(att_settings *s, const char *key, const char *list, const att_step_type *types, att_steps *steps);
void att_steps_free(att_ctx *ctx, att_steps *steps);
/* Applies the steps to the pieces. */
void att_steps_apply(const att_steps *steps, att_pieces *p);

/* ---- for reading settings */

/* Reads a copy of the text of `key`, not empty unless `empty`. */
void att_step_read_text(att_settings *s, const char *key, bool empty, char **text, size_t *bytes);
/* Sets a copy of a text that does not come from a setting. */
void att_step_set_text(att_settings *s, const char *value, char **text, size_t *bytes);
/* Reads "pattern": {"String": "..."} or {"Regex": "..."}. */
void att_step_read_pattern(att_settings *s, att_step *step);
/* Reads "pattern" and "content" of the normalizer and the decoder Replace. */
void att_step_read_replace(att_settings *s, att_step *step);

/* ---- shared by several steps */

enum { ATT_NFC, ATT_NFD, ATT_NFKC, ATT_NFKD };
/* Writes the piece in a Unicode normalization form (unicode_forms.c). */
void att_rewrite_form(int form, att_edit *e);
/* Writes `step->text` before the piece. */
void att_rewrite_prepend(const void *step, att_edit *e);
/* Writes `step->text` in place of each match of its pattern. */
void att_rewrite_matches(const att_step *s, att_pieces *p);
/* Writes each byte as the character that stands for it in vocabularies of the type ByteLevel. */
void att_rewrite_bytes(const void *step, att_edit *e);
/* Return the character of a byte, U+0021 to U+0143, and the byte for which a character stands; -1: none. */
uint32_t att_byte_char(unsigned char byte);
int att_char_byte(uint32_t c);
/* Reads the settings of Metaspace, the pre-tokenizer and the decoder. */
void att_step_read_metaspace(att_settings *s, att_step *step);

#endif
