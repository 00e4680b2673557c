/* Inside att_verify: random numbers, and the part about masks. */
#ifndef ATT_ATTN_VERIFY_H
#define ATT_ATTN_VERIFY_H

#include "attn/attn.h"

enum { ATT_VERIFY_TQ = 90, ATT_VERIFY_TK = 300 }; /* one head's lengths */

/* The next one (splitmix64). */
static inline uint64_t att_verify_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Where the head is whose tiles are looked at, in round 0 or 1. */
static inline att_place att_verify_place(const att_attention_spec *s, int round)
{
    return (att_place){.head = round ? s->heads - 1 : 0,
                       .sequence = round,
                       .tq = ATT_VERIFY_TQ,
                       .tk = ATT_VERIFY_TK,
                       .position = s->align == ATT_ALIGN_UNSET ? 0
                                   : round                     ? ATT_VERIFY_TK - ATT_VERIFY_TQ
                                                               : 17,
                       .window = {s->window_left, s->window_right}};
}

att_status att_verify_mask(att_ctx *ctx, const att_attention_spec *spec, const att_mask *mask);

#endif
