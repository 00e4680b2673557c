/* Chat templates. */
#ifndef ATT_LANGUAGE_CHAT_H
#define ATT_LANGUAGE_CHAT_H

#include "attend_language.h"
#include "io/bytes.h"
#include "jinja/jinja.h"
#include "language/chat_format.h"

#include <jansson.h>

typedef enum att_chat_text { ATT_CHAT_BOS, ATT_CHAT_EOS, ATT_CHAT_DATE, ATT_CHAT_CUTOFF, ATT_CHAT_TEXTS } att_chat_text;

struct att_chat_template {
    att_ctx *ctx;
    const att_chat_format *format; /* or, if NULL: */
    att_jinja *program;            /* writes conversations whose format is not known */
    bool bos, has_default;
    att_bytes text[ATT_CHAT_TEXTS]; /* of {bos}, {eos}, {date}, {cutoff} */
    att_bytes system;               /* the default system message */
    att_bytes end;                  /* zero-terminated: the token after an answer; empty: none */
};

/* The source of a template: texts, or NULL. */
typedef struct att_chat_source {
    const char *path;       /* for errors */
    const char *text;       /* [bytes]: Jinja */
    size_t bytes;           /* of text */
    att_byte_view token[2]; /* bos, eos; data NULL: none */
} att_chat_source;

/* Makes a template from its source. name or NULL: as in att_chat_template_open. */
att_status att_chat_template_from(att_ctx *ctx, const att_chat_source *source, const char *name,
                                  att_chat_template **out);
/* Returns the text of "chat_template" in tokenizer_config.json, which may be a list of {"name", "template"}; another
 * one is named "default". NULL: there is none with this name. */
const json_t *att_chat_template_text(const json_t *settings, const char *wanted);

#endif
