/* Tiny recommenders of tests/golden/make_recommend.py, made for a test. */
#ifndef RECOMMEND_HELP_H
#define RECOMMEND_HELP_H

#include "attend_recommend.h"
#include "context.h"
#include "golden_text.h"
#include "tiny_model.h"

#define RECOMMEND_GOLDEN "tests/golden/recommend.txt"

enum { TINY_ITEMS = 7, TINY_HIDDEN = 4, TINY_POSITIONS = 6, TINY_CONTENT = 3, TINY_TOKENS = 9, TINY_HISTORIES = 3 };
static const char *const tiny_item_ids[] = {"bread", "a b", "ham", "käse", "猫", "\"quoted\"", "milk", "new", "newer"};
static const int64_t tiny_offsets[] = {0, 5, 6, TINY_TOKENS};
static const int32_t tiny_histories[] = {3, 1, 4, 1, 5, 2, 6, 0, 2};

static inline const char *tiny_key(const char *name, const char *what)
{
    static char key[200];
    snprintf(key, sizeof key, "%s.%s", name, what);
    return key;
}

/* The weights that follow from their names */
static inline void tiny_set_weights(att_recommender *m)
{
    const char *name;
    att_param *p;
    for (int64_t i = 0; (p = att_recommender_param(m, i, &name)); i++) {
        const att_tensor *v = att_param_value(p);
        for (int64_t k = 0; k < v->dim[0] * v->stride[0]; k++)
            ((float *)v->data)[k] = tiny_number(name, (uint64_t)k);
        att_param_invalidate(p);
    }
}

/* A case of the golden file */
static inline att_recommender *tiny_recommender(const char *name)
{
    static const float vectors[TINY_ITEMS * TINY_CONTENT] = {0};
    const att_item_content content = {.size = sizeof content, .vectors = vectors, .width = TINY_CONTENT, .add = true};
    att_recommender *m;
    if (att_recommender_new(ctx, golden_words(RECOMMEND_GOLDEN, tiny_key(name, "settings")), TINY_ITEMS, tiny_item_ids,
                            strcmp(name, "content") == 0 ? &content : NULL, 1, &m))
        fail_msg("%s: %s", name, att_error(ctx));
    tiny_set_weights(m);
    return m;
}

static inline bool tiny_has_mask(const char *name) { return !strncmp(name, "bert4rec", 8); }

/* Histories as the golden file has them: with masks or without */
static inline const int32_t *tiny_inputs(const char *name)
{
    static const int32_t masked[] = {3, TINY_ITEMS, 4, 1, 5, TINY_ITEMS, 6, 0, TINY_ITEMS};
    return tiny_has_mask(name) ? masked : tiny_histories;
}

#endif
