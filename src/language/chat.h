/* Chat templates: the program of one, and the conversations that it writes. */
#ifndef ATT_LANGUAGE_CHAT_H
#define ATT_LANGUAGE_CHAT_H

#include "attend_language.h"
#include "io/bytes.h"
#include "io/file.h"
#include "io/gguf_write.h"
#include "jinja/jinja.h"

#include <jansson.h>

/* The tokens of a model that templates write. */
typedef enum att_chat_token {
    ATT_CHAT_BOS,
    ATT_CHAT_EOS,
    ATT_CHAT_UNK,
    ATT_CHAT_SEP,
    ATT_CHAT_PAD,
    ATT_CHAT_CLS,
    ATT_CHAT_MASK,
    ATT_CHAT_TOKENS
} att_chat_token;
/* Their variables, such as "bos_token", which are keys of tokenizer_config.json. */
extern const char *const att_chat_token_names[ATT_CHAT_TOKENS];

struct att_chat_template {
    att_ctx *ctx;
    att_jinja *program, *with_tools; /* with_tools: for conversations with tools, or NULL */
    att_bytes name, end;             /* zero-terminated; end: the token after an answer; empty: none */
    att_bytes token[ATT_CHAT_TOKENS];
};

/* The source of a template. */
typedef struct att_chat_source {
    const char *path, *name;              /* for errors; for the user */
    att_byte_view text, with_tools;       /* Jinja; data NULL: none */
    att_byte_view token[ATT_CHAT_TOKENS]; /* data NULL: none */
} att_chat_source;

/* Makes a template from its source. Errors: as att_chat_template_open. */
att_status att_chat_template_from(att_ctx *ctx, const att_chat_source *source, att_chat_template **out);
/* Returns the text of "chat_template" in tokenizer_config.json, which may be a list of {"name", "template"}; another
 * one is named "default". NULL: there is none with this name. */
const json_t *att_chat_template_text(const json_t *settings, const char *wanted);

/* The template for conversations with tools, if a model has several */
#define ATT_CHAT_TOOL_USE "tool_use"
/* Reads the file of a folder that has the template with this name or, if it is NULL, the default one; its text is NULL
 * if there is none. */
att_status att_chat_template_read(att_ctx *ctx, const char *folder, const char *name, att_text_file *file);
/* Writes the templates of a folder. (chat_gguf.c) */
att_status att_chat_put_gguf(att_ctx *ctx, const char *folder, att_gguf_writer *w);

/* What a template writes. JSON that is NULL is none. */
typedef struct att_chat_conversation {
    int64_t n;
    const att_chat_message *messages; /* [n], which are checked */
    json_t *const *more;              /* [n] or NULL: the objects of messages[i].more */
    const json_t *tools, *documents, *variables;
    bool reply;
} att_chat_conversation;

/* Appends the text of a conversation, and the ranges of it that are not from the template (att_literal). */
att_status att_chat_write(const att_chat_template *t, const att_chat_conversation *c, att_bytes *text,
                          att_bytes *literal);
/* Sets the token after an answer: what the template writes there, or, if it writes none, the model's end token. */
att_status att_chat_find_end(att_chat_template *t);

#endif
