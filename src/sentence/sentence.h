/* Sentence models, internal. Public: att_sentence_*. */
#ifndef ATT_SENTENCE_SENTENCE_H
#define ATT_SENTENCE_SENTENCE_H

#include "model/model.h"
#include "model/tape_pool.h"
#include "sentence/modules.h"
#include "sentence/prompts.h"

struct att_sentence {
    att_model model; /* parameters are those of the backbone's model */
    att_modules modules;
    att_prompts prompts;
    att_model_extension extension; /* modules, of the backbone's model */
    att_backbone backbone;
    int64_t max_tokens; /* of a text */
    int64_t dim;        /* of an embedding, truncated by "truncate_dim" */
    att_tape_pool tapes;
};

/* Returns the tapes, which are mutable: the model is not. */
att_tape_pool *att_sentence_tapes(const att_sentence *m);

/* Texts [n] after a prompt: their addresses and lengths, and the texts themselves, in one allocation. */
typedef struct att_prompted {
    const char **text; /* att_free frees all */
    size_t *bytes;
} att_prompted;
/* Puts a prompt before each of texts [n], whose lengths are bytes [n] or NULL. */
att_status att_prompted_make(att_ctx *ctx, int64_t n, const char *const *texts, const size_t *bytes, const char *prompt,
                             att_prompted *out);
/* Tokenizes texts [n], whose lengths are bytes [n] or NULL, each after a prompt, to out [n], truncated to max_tokens.
 * After an error all are empty. */
att_status att_sentence_tokenize(const att_sentence *m, int64_t n, const char *const *texts, const size_t *bytes,
                                 const char *prompt, att_tokens *out);
/* Counts the tokens of a prompt, with special ones before it, that Poolings leave out; 0: all Poolings include them. */
att_status att_sentence_prompt_tokens(const att_sentence *m, const char *prompt, int64_t *count);
/* Chooses the text of a prompt: `prompt` itself, or that of this name, or, if both are NULL, that of the default
 * prompt. Errors: both are given; no such name. caller: for messages. */
att_status att_sentence_choose_prompt(const att_sentence *m, const char *caller, const char *prompt, const char *name,
                                      const char **text);

/* Returns the vectors of texts, [n, m->modules.dim], not truncated. */
att_var *att_sentence_apply(att_tape *t, const att_sentence *m, const att_texts *texts);
/* Truncates vectors x [n, m->modules.dim] to their first numbers, [n, dims], and normalizes them if the model's are
 * normalized.
 */
att_var *att_sentence_truncate(att_tape *t, const att_sentence *m, att_var *x, int64_t dims);

#endif
