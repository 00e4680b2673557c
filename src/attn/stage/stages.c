/* The public pointers of the built-in scores and modifiers, and their versions for each instruction set. */
#include "attn/stage/stage.h"

#include "att_stages.h"

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
