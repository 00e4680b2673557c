/* s(q, k) = q W k: the "general" score of Luong et al. 2015. The parameter W is [heads or 1, head_dim, key_dim]; tiles
 * see the product of q W and k. */
#include "attn/stage/score/dot.h"

static double formula(const att_pair *p)
{
    double s = 0;
    for (int64_t i = 0; i < p->dim; i++)
        for (int64_t j = 0; j < p->key_dim; j++)
            s += (double)p->query[i] * p->param[0].data[i * p->key_dim + j] * p->key[j];
    return s;
}

static void derivative(const att_pair *p, double ds, double *dq, double *dk, double *const *dparam)
{
    for (int64_t i = 0; i < p->dim; i++)
        for (int64_t j = 0; j < p->key_dim; j++) {
            const double w = p->param[0].data[i * p->key_dim + j];
            dq[i] += ds * w * p->key[j];
            dk[j] += ds * w * p->query[i];
            if (dparam[0])
                dparam[0][i * p->key_dim + j] += ds * p->query[i] * p->key[j];
        }
}

static const att_row_transforms transforms = {.q = {.kind = ATT_TRANSFORM_PROJECT, .param = 0}};

static const att_param_shape params[] = {{.name = "W", .rows = ATT_EXTENT_HEAD_DIM, .columns = ATT_EXTENT_KEY_DIM}};

extern const att_builtin_score ATTEND_ISA(att_score_general);
const att_builtin_score ATTEND_ISA(att_score_general) = {.score = {.size = sizeof(att_score),
                                                                   .name = "general",
                                                                   .flags = ATT_STAGE_BILINEAR,
                                                                   .param = params,
                                                                   .n_params = 1,
                                                                   .formula = formula,
                                                                   .derivative = derivative,
                                                                   .tile = ATTEND_ISA(att_dot_tile)},
                                                         .is_dot = true,
                                                         .transforms = &transforms};
