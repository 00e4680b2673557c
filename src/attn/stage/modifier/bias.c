/* s + bias[q][k]: an additive bias of any broadcast shape. -inf forbids the pair. */
#include "attn/stage/stage.h"
#include "kernel/tile.h"

static double formula(const att_pair *p, double s)
{
    return s + (double)p->param->data[p->q * p->param->stride[0] + p->k * p->param->stride[1]];
}

static double derivative(const att_pair *p, double s, double ds, double *const *dparam)
{
    (void)s;
    if (dparam[0])
        dparam[0][p->q * p->param->stride[0] + p->k * p->param->stride[1]] += ds;
    return 1;
}

/* Returns the biases of one query for some keys, at most a vector of them. */
static vf biases(const att_param_view *bias, int64_t q, int64_t k, int keys)
{
    const float *row = bias->data + q * bias->stride[0] + k * bias->stride[1];
    if (bias->stride[1] == 1)
        return v_load_n(row, keys);
    float x[ATT_LANES] = {0};
    for (int i = 0; i < keys; i++)
        x[i] = row[i * bias->stride[1]];
    return v_load(x);
}

/* Adds biases. Scores are transposed, so squares of biases are transposed as they are read. */
static void tile(const att_modifier_tile *t)
{
    for (int i = 0; i < t->queries; i += ATT_LANES)
        for (int j = 0; j < t->keys; j += ATT_LANES) {
            const int keys = t->keys - j < ATT_LANES ? t->keys - j : ATT_LANES;
            vf x[ATT_LANES];
            for (int r = 0; r < ATT_LANES; r++)
                x[r] = i + r < t->queries ? biases(t->param, t->q + i + r, t->k + j, keys) : v_set(0);
            v_transpose(x);
            for (int c = 0; c < keys; c++) {
                float *s = t->s + (j + c) * t->stride + i;
                v_store(s, v_add(x[c], v_load(s)));
            }
        }
}

/* Adds gradients with keys in ascending order for each query, and queries in ascending order for each key. */
static void tile_back(const att_modifier_tile *t)
{
    const att_param_view *bias = t->param;
    for (int i = 0; bias->grad && i < t->queries; i++)
        for (int j = 0; j < t->keys; j++)
            bias->grad[(t->q + i) * bias->grad_stride[0] + (t->k + j) * bias->grad_stride[1]] +=
                t->ds[j * t->stride + i];
}

static const att_param_shape bias = {.name = "bias", .kind = ATT_PARAM_PER_PAIR};

extern const att_modifier ATTEND_ISA(att_modifier_bias);
const att_modifier ATTEND_ISA(att_modifier_bias) = {.size = sizeof(att_modifier),
                                                    .name = "bias",
                                                    .flags = ATT_STAGE_ADDITIVE,
                                                    .param = &bias,
                                                    .n_params = 1,
                                                    .formula = formula,
                                                    .derivative = derivative,
                                                    .tile = tile,
                                                    .tile_back = tile_back};
