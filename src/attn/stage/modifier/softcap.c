/* c tanh(s / c): scores stay within (-c, c), c = spec.modifier_value (Gemma 2). */
#include "attn/stage/stage.h"
#include "simd/math.h"

#include <math.h>

static double formula(const att_pair *p, double s) { return (double)p->value * tanh(s / (double)p->value); }

static double derivative(const att_pair *p, double s, double ds, double *dparam)
{
    (void)ds, (void)dparam;
    const double y = tanh(s / (double)p->value);
    return 1 - y * y;
}

static void tile(const att_tile *t)
{
    const vf cap = v_set(t->value), one_over = v_set(1 / t->value);
    for (int j = 0; j < t->keys; j++)
        for (int i = 0; i < t->queries; i += ATT_LANES) {
            float *s = t->s + j * t->stride + i;
            v_store(s, v_mul(v_tanh(v_mul(v_load(s), one_over)), cap));
        }
}

static void tile_back(const att_tile *t)
{
    const vf one = v_set(1), one_over = v_set(1 / t->value);
    for (int j = 0; j < t->keys; j++)
        for (int i = 0; i < t->queries; i += ATT_LANES) {
            const vf y = v_tanh(v_mul(v_load(t->s + j * t->stride + i), one_over));
            float *ds = t->ds + j * t->stride + i;
            v_store(ds, v_mul(v_load(ds), v_mul(v_sub(one, y), v_add(one, y))));
        }
}

extern const att_modifier ATT_ISA(att_modifier_softcap);
const att_modifier ATT_ISA(att_modifier_softcap) = {.name = "softcap",
                                                    .flags = ATT_HAS_VALUE,
                                                    .formula = formula,
                                                    .derivative = derivative,
                                                    .tile = tile,
                                                    .tile_back = tile_back};
