/* Memory that an attention call may and may not write. */
#ifndef FUZZ_ATTENTION_CHECK_H
#define FUZZ_ATTENTION_CHECK_H

#include "attention_call.h"

typedef struct copies {
    unsigned char *of[MOST_TENSORS];
} copies;

static copies copy(const call *c)
{
    copies x = {{NULL}};
    for (int i = 0; i < c->n_arrays; i++)
        if (c->arrays[i].memory) {
            x.of[i] = malloc(c->arrays[i].bytes + 1);
            if (!x.of[i])
                abort();
            memcpy(x.of[i], c->arrays[i].memory, c->arrays[i].bytes);
        }
    return x;
}

static void drop(copies *x)
{
    for (int i = 0; i < MOST_TENSORS; i++)
        free(x->of[i]);
}

/* Arguments that a forward or backward call does not write are unchanged; after an error all are. */
static void check_untouched(const call *c, const copies *before, bool backward, bool failed)
{
    for (int i = 0; i < c->n_arrays; i++) {
        const array *a = &c->arrays[i];
        const bool written = (backward ? a->backward : a->forward) && !failed;
        for (size_t j = 0; j < a->bytes; j++)
            if (!(written && a->element && a->element[j]))
                fuzz_check(a->memory[j] == before->of[i][j], failed ? "refused, but written" : "written beside it");
    }
}

static void check_same(const call *c, const copies *x)
{
    for (int i = 0; i < c->n_arrays; i++)
        if ((c->arrays[i].forward || c->arrays[i].backward) && c->arrays[i].element)
            for (size_t j = 0; j < c->arrays[i].bytes; j++)
                fuzz_check(!c->arrays[i].element[j] || c->arrays[i].memory[j] == x->of[i][j], "other bits");
}

static void check_error(att_status e) { fuzz_check(!e || *att_error(NULL), "an error without a sentence"); }

/* A call on one context. Returns the first error. */
static att_status compute(const call *c, const att_plan *plan, bool backward)
{
    copies before = copy(c);
    const att_status e = backward ? att_backward(plan, &c->args, &c->grads) : att_forward(plan, &c->args);
    check_error(e);
    check_untouched(c, &before, backward, e != ATT_OK);
    drop(&before);
    return e;
}

#endif
