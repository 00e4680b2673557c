/* Chat templates as programs: an interpreter of the part of Jinja that they use. It reads no files, starts nothing and
 * has limits of steps, memory and depth. Each character of a result carries whether it is from the template. */
#ifndef ATT_JINJA_H
#define ATT_JINJA_H

#include "io/bytes.h"
#include "jinja/value.h"

#include <jansson.h>

/* A parsed template. Threads may share it. */
typedef struct att_jinja att_jinja;

/* Parses a template [bytes] as `transformers` compiles it (trim_blocks, lstrip_blocks). path: for errors, with the
 * line. Errors: not UTF-8, a syntax error, what Jinja has and chat templates do not use; out of memory. */
att_status att_jinja_open(att_ctx *ctx, const char *path, const char *text, size_t bytes, att_jinja **out);
void att_jinja_free(att_jinja *t);

/* Sets the variables of a template: calls att_jinja_set with values that att_jinja_text and the other functions of
 * value.h make. It may leave by att_jinja_fail. */
typedef void att_jinja_variables(att_jinja_state *s, void *user);
void att_jinja_set(att_jinja_state *s, const char *name, att_jinja_value value);
/* Makes a value from JSON. message: its texts are from a message. */
att_jinja_value att_jinja_json(att_jinja_state *s, const json_t *json, bool message);

/* Runs a template: appends its text to out, and to literal the ranges (att_literal of text/tokenizer.h) of characters
 * that are not from the template. Errors: ATT_ERR_ARGUMENT, the template raises an exception; ATT_ERR_FORMAT, what it
 * does with its variables fails, or a limit; out of memory. */
att_status att_jinja_run(const att_jinja *t, att_jinja_variables *variables, void *user, att_bytes *out,
                         att_bytes *literal);

#endif
