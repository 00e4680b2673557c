/* The public pointers of the built-in scores and modifiers, their versions for each instruction set, and all stages by
 * name. */
#include "attn/stage/stage.h"

#include "att_lists.h"
#include "att_stages.h"

#include <stdio.h>
#include <string.h>

#define COUNT(x) (sizeof(x) / sizeof(x)[0])

const att_builtin_score *att_builtin_score_of(const att_score *s, int isa)
{
    for (size_t i = 0; i < COUNT(score_versions); i++)
        if (&score_versions[i][0]->score == s)
            return score_versions[i][isa];
    return NULL;
}

const att_modifier *att_builtin_modifier_of(const att_modifier *m, int isa)
{
    for (size_t i = 0; i < COUNT(modifier_versions); i++)
        if (modifier_versions[i][0] == m)
            return modifier_versions[i][isa];
    return NULL;
}

/* ---- by name */

static const att_score *const *const scores[] = {
#define SCORE(kind, name) &att_score_##name,
    ATT_score_LIST(SCORE)
#undef SCORE
};

static const struct {
    const att_modifier *const *modifier;
    const att_mask *const *mask; /* one of them */
} stages[] = {
#define MODIFIER(kind, name) {&att_modifier_##name, NULL},
#define MASK(kind, name) {NULL, &att_mask_##name},
    ATT_modifier_LIST(MODIFIER) ATT_mask_LIST(MASK)
#undef MODIFIER
#undef MASK
};

const char *att_score_name(int i) { return i >= 0 && i < (int)COUNT(scores) ? (*scores[i])->name : NULL; }

const char *att_stage_name(int i)
{
    if (i < 0 || i >= (int)COUNT(stages))
        return NULL;
    return stages[i].modifier ? (*stages[i].modifier)->name : (*stages[i].mask)->name;
}

/* Returns the index of a name; -1: error set, with all names. */
static int find(const char *kind, const char *(*name_of)(int i), const char *name)
{
    char names[512] = "";
    size_t n = 0;
    for (int i = 0; name_of(i); i++) {
        if (!strcmp(name_of(i), name))
            return i;
        if (n < sizeof names)
            n += (size_t)snprintf(names + n, sizeof names - n, " %s", name_of(i));
    }
    att_fail(NULL, ATT_ERR_ARGUMENT, "there is no %s \"%s\", but there are:%s", kind, name, names);
    return -1;
}

att_status att_score_find(const char *name, const att_score **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"name", name}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    const int i = find("score", att_score_name, name);
    if (i < 0)
        return ATT_ERR_ARGUMENT;
    *out = *scores[i];
    return ATT_OK;
}

att_status att_stage_find(const char *name, att_stage *out)
{
    if (out)
        *out = (att_stage){0};
    if (att_require(__func__, ATT_NAMED({"name", name}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    const int i = find("modifier or mask", att_stage_name, name);
    if (i < 0)
        return ATT_ERR_ARGUMENT;
    *out = (att_stage){.modifier = stages[i].modifier ? *stages[i].modifier : NULL,
                       .mask = stages[i].mask ? *stages[i].mask : NULL};
    return ATT_OK;
}
