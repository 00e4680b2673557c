/* s times value[0]. */
#include "attn/stage/stage.h"
#include "simd/simd.h"

static double formula(const att_pair *p, double s) { return s * p->value[0]; }

static double derivative(const att_pair *p, double s, double ds, double *const *dparam)
{
    (void)s, (void)ds, (void)dparam;
    return p->value[0];
}

static void multiply(const att_modifier_tile *t, float *x)
{
    for (int j = 0; j < t->keys; j++)
        for (int i = 0; i < t->queries; i += ATT_LANES)
            v_store(x + j * t->stride + i, v_mul(v_load(x + j * t->stride + i), v_set((float)t->value[0])));
}

static void tile(const att_modifier_tile *t) { multiply(t, t->s); }
static void tile_back(const att_modifier_tile *t) { multiply(t, t->ds); }

extern const att_modifier ATTEND_ISA(att_modifier_scale);
const att_modifier ATTEND_ISA(att_modifier_scale) = {.size = sizeof(att_modifier),
                                                     .name = "scale",
                                                     .flags = ATT_STAGE_NEEDS_VALUE,
                                                     .formula = formula,
                                                     .derivative = derivative,
                                                     .tile = tile,
                                                     .tile_back = tile_back};
