/* For tests of translation: one folder with a tiny model and its text, for all of a program. */
#ifndef TRANSLATOR_HELP_H
#define TRANSLATOR_HELP_H

#include "context.h"
#include "tiny_marian.h"

static test_folder folder; /* with a model as it should be; others are made of its parts */
static int64_t tokens;     /* of its vocabulary */

static inline int set_up(void **state)
{
    const int failed = open_context(state);
    folder = folder_new();
    tokens = write_translator(ctx, &folder);
    return failed;
}

static inline int tear_down(void **state)
{
    folder_remove(&folder);
    return close_context(state);
}

static inline att_translator *open_translator(att_ctx *c)
{
    att_translator *m;
    if (att_translator_open(c, folder.path, &m))
        fail_msg("%s", att_error(c));
    return m;
}

static inline void translate(const att_translator *m, int64_t n, const char *const *texts,
                             const att_translate_options *o, att_translation *out)
{
    if (att_translate(m, n, texts, NULL, o, out))
        fail_msg("%s", att_error(NULL));
}

static inline void free_all(const att_translator *m, att_translation *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        att_translation_free(m, &out[i]);
}

#endif
