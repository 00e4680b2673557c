/* c tanh(s / c): scores stay within (-c, c), c = value[0] (Gemma 2). */
#include "attn/stage/stage.h"
#include "simd/math.h"

#include <math.h>

static double formula(const att_pair *p, double s) { return p->value[0] * tanh(s / p->value[0]); }

static double derivative(const att_pair *p, double s, double ds, double *const *dparam)
{
    (void)ds, (void)dparam;
    const double y = tanh(s / p->value[0]);
    return 1 - y * y;
}

static void tile(const att_modifier_tile *t)
{
    const vf cap = v_set((float)t->value[0]), one_over = v_set(1 / (float)t->value[0]);
    for (int j = 0; j < t->keys; j++)
        for (int i = 0; i < t->queries; i += ATT_LANES) {
            float *s = t->s + j * t->stride + i;
            v_store(s, v_mul(v_tanh(v_mul(v_load(s), one_over)), cap));
        }
}

static void tile_back(const att_modifier_tile *t)
{
    const vf one = v_set(1), one_over = v_set(1 / (float)t->value[0]);
    for (int j = 0; j < t->keys; j++)
        for (int i = 0; i < t->queries; i += ATT_LANES) {
            const vf y = v_tanh(v_mul(v_load(t->s + j * t->stride + i), one_over));
            float *ds = t->ds + j * t->stride + i;
            v_store(ds, v_mul(v_load(ds), v_mul(v_sub(one, y), v_add(one, y))));
        }
}

extern const att_modifier ATTEND_ISA(att_modifier_softcap);
const att_modifier ATTEND_ISA(att_modifier_softcap) = {.size = sizeof(att_modifier),
                                                       .name = "softcap",
                                                       .flags = ATT_STAGE_NEEDS_VALUE,
                                                       .formula = formula,
                                                       .derivative = derivative,
                                                       .tile = tile,
                                                       .tile_back = tile_back};
