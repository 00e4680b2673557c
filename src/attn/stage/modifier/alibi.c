/* s - slope |key position - query position|: attention with linear biases (Press et al. 2022). */
#include "attn/stage/modifier/distance.h"

#include <math.h>

static double formula(const att_pair *p, double s)
{
    return s - (double)p->param->data[0] * fabs((double)distance_of_pair(p));
}

static double derivative(const att_pair *p, double s, double ds, double *const *dparam)
{
    (void)s;
    if (dparam[0])
        dparam[0][0] -= ds * fabs((double)distance_of_pair(p));
    return 1;
}

static void tile(const att_modifier_tile *t)
{
    const int64_t first = first_distance(t);
    float x[MAX_DIAGONALS];
    for (int n = 0; n < all_diagonals(t); n++)
        x[n] = -t->param->data[0] * fabsf((float)(first - n));
    add_diagonals(t, x);
}

static void tile_back(const att_modifier_tile *t)
{
    if (!t->param->grad)
        return;
    const int64_t first = first_distance(t);
    float y[MAX_DIAGONALS];
    double sum = 0;
    sum_diagonals(t, y);
    for (int n = 0; n < used_diagonals(t); n++)
        sum -= (double)y[n] * fabs((double)(first - n));
    t->param->grad[0] += (float)sum;
}

static const att_param_shape slope_shape = {.name = "slopes"};

extern const att_modifier ATTEND_ISA(att_modifier_alibi);
const att_modifier ATTEND_ISA(att_modifier_alibi) = {.size = sizeof(att_modifier),
                                                     .name = "alibi",
                                                     .flags = ATT_STAGE_ADDITIVE | ATT_STAGE_NEEDS_ALIGN,
                                                     .param = &slope_shape,
                                                     .n_params = 1,
                                                     .formula = formula,
                                                     .derivative = derivative,
                                                     .tile = tile,
                                                     .tile_back = tile_back};
