/* Memory that an attention call may and may not write. */
#ifndef FUZZ_ATTENTION_CHECK_H
#define FUZZ_ATTENTION_CHECK_H

#include "attention_call.h"

typedef struct copies {
    unsigned char *of[MAX_TENSORS];
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
    for (int i = 0; i < MAX_TENSORS; i++)
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

/* Returns whether the element of this type at p is a NaN. Integers never are. */
static bool is_nan(att_dtype type, const unsigned char *p)
{
    uint32_t wide = 0;
    uint16_t narrow = 0;
    memcpy(&wide, p, type == ATT_F32 ? sizeof wide : 0);
    memcpy(&narrow, p, type == ATT_F16 || type == ATT_BF16 ? sizeof narrow : 0);
    wide |= type == ATT_BF16 ? (uint32_t)narrow << 16 : 0;
    return (wide & 0x7fffffff) > 0x7f800000 || (type == ATT_F16 && (narrow & 0x7fff) > 0x7c00);
}

/* Outputs have the same bits as before. Any NaN equals any other: which of two a sum takes its sign and payload from
 * depends on the order of an instruction's operands. */
static void check_same(const call *c, const copies *x)
{
    for (int i = 0; i < c->n_arrays; i++) {
        const array *a = &c->arrays[i];
        const att_dtype type = a->view->dtype;
        const size_t size = att_dtype_size(type);
        for (size_t j = 0; (a->forward || a->backward) && a->element && j < a->bytes; j += size)
            if (a->element[j] && !(is_nan(type, a->memory + j) && is_nan(type, x->of[i] + j)))
                fuzz_check(memcmp(a->memory + j, x->of[i] + j, size) == 0, "other bits");
    }
}

static void check_error(att_status e) { fuzz_check(!e || *att_error(NULL), "an error without a sentence"); }

/* Runs a call on one context, and returns the first error. */
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
