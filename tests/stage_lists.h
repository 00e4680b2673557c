/* The stages of a spec and the parameters of its calls, added one by one.
 *
 * Lists lie in a ring, so that a spec or args may be copied and then changed by itself: what is added to makes a new
 * list. A list is there until RING more elements have been added. */
#ifndef STAGE_LISTS_H
#define STAGE_LISTS_H

#include "attend_extend.h"

#include <string.h>

enum { RING = 1 << 13, MOST_PARAMS = 16, MOST_STAGES = 16 };

static inline void *ring_take(void *ring, size_t element, int *used, const void *list, int n, int wanted)
{
    *used = *used + wanted > RING ? 0 : *used;
    void *place = memset((char *)ring + (size_t)*used * element, 0, (size_t)wanted * element);
    *used += wanted;
    return n ? memcpy(place, list, (size_t)n * element) : place;
}

static inline void add_stage(att_attention_spec *s, att_stage stage)
{
    static att_stage ring[RING];
    static int used;
    att_stage *list = ring_take(ring, sizeof *ring, &used, s->stage, s->n_stages, s->n_stages + 1);
    list[s->n_stages++] = stage;
    s->stage = list;
}
static inline void add_mask(att_attention_spec *s, const att_mask *mask) { add_stage(s, (att_stage){.mask = mask}); }
static inline void add_window(att_attention_spec *s, int64_t left, int64_t right)
{
    add_stage(s, (att_stage){.mask = att_mask_window, .value = {(double)left, (double)right}});
}
static inline void add_modifier(att_attention_spec *s, const att_modifier *modifier, double value)
{
    add_stage(s, (att_stage){.modifier = modifier, .value = {value}});
}

/* Parameter or gradient n of a list, to be written; the list is as long as that at least. */
static inline att_tensor *tensor_at(const att_tensor **list, int *count, int n)
{
    static att_tensor ring[RING];
    static int used;
    const int wanted = n < *count ? *count : n + 1;
    att_tensor *new_list = ring_take(ring, sizeof *ring, &used, *list, *count, wanted);
    *list = new_list;
    *count = wanted;
    return &new_list[n];
}
static inline att_tensor *param_at(att_attention_args *a, int n) { return tensor_at(&a->param, &a->n_params, n); }
static inline att_tensor *dparam_at(att_attention_grads *g, int n) { return tensor_at(&g->dparam, &g->n_dparams, n); }
static inline void add_param(att_attention_args *a, att_tensor t) { *param_at(a, a->n_params) = t; }
/* The parameters, to be written: a list of these args' own. */
static inline att_tensor *own_params(att_attention_args *a)
{
    return a->n_params ? param_at(a, a->n_params - 1) + 1 - a->n_params : NULL;
}
static inline att_tensor *own_dparams(att_attention_grads *g)
{
    return g->n_dparams ? dparam_at(g, g->n_dparams - 1) + 1 - g->n_dparams : NULL;
}
static const att_tensor no_tensor;
static inline const att_tensor *param_of(const att_attention_args *a, int n)
{
    return n < a->n_params ? &a->param[n] : &no_tensor;
}
static inline const att_tensor *dparam_of(const att_attention_grads *g, int n)
{
    return n < g->n_dparams ? &g->dparam[n] : &no_tensor;
}

#endif
