/* The post-processor of tokenizer.json: adds special tokens around a text or a pair, and trims spaces from offsets. */
#ifndef ATT_POST_PROCESSOR_H
#define ATT_POST_PROCESSOR_H

#include "text/tokenizer.h"
#include "text/tokenizer_file.h"

typedef struct att_post_processor {
    att_template single, pair, plain_pair; /* plain_pair: see att_tokenizer */
    bool trim_offsets;                     /* trim the spaces of byte-level tokens ... */
    bool add_prefix_space;                 /* ... except the one that may have been put before the text */
} att_post_processor;

/* Reads "post_processor", an object or null; its tokens must be in v. Supported: TemplateProcessing, BertProcessing,
 * RobertaProcessing, ByteLevel, and a Sequence of them. */
void att_post_processor_read(att_settings *s, const att_vocabulary *v, att_post_processor *p);

/* Reads an id in [0, ATT_MAX_VOCABULARY), of `token` in the list `where`; ATT_NO_TOKEN after an error. */
int32_t att_read_token_id(att_settings *s, const char *where, const char *token, const json_t *value);

#endif
