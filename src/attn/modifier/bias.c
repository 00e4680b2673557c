/* s + bias[q][k]: an additive bias of any broadcast shape. -inf forbids the pair. */
#include "attn/stage.h"
#include "kernel/tile.h"

static double formula(const att_site *site, int64_t q, int64_t k, double s)
{
    return s + (double)site->bias[q * site->bias_q + k * site->bias_k];
}

/* The biases of one query for some keys, at most a vector of them. */
static vf biases(const att_site *at, int64_t q, int64_t k, int keys)
{
    const float *row = at->bias + q * at->bias_q + k * at->bias_k;
    if (at->bias_k == 1)
        return v_load_n(row, keys);
    float x[ATT_LANES] = {0};
    for (int i = 0; i < keys; i++)
        x[i] = row[i * at->bias_k];
    return v_load(x);
}

/* Scores lie transposed and in units of log2, so squares of biases are turned on the way. */
static void tile(const att_block *b)
{
    const vf log2e = v_set((float)ATT_LOG2_E);
    for (int i = 0; i < b->queries; i += ATT_LANES)
        for (int j = 0; j < b->keys; j += ATT_LANES) {
            const int keys = b->keys - j < ATT_LANES ? b->keys - j : ATT_LANES;
            vf x[ATT_LANES];
            for (int r = 0; r < ATT_LANES; r++)
                x[r] = i + r < b->queries ? biases(b->site, b->q0 + i + r, b->k0 + j, keys) : v_set(0);
            v_transpose(x);
            for (int c = 0; c < keys; c++) {
                float *s = b->s + (j + c) * b->s_stride + i;
                v_store(s, v_fma(x[c], log2e, v_load(s)));
            }
        }
}

extern const att_modifier_set ATT_ISA(att_modifier_bias);
const att_modifier_set ATT_ISA(att_modifier_bias) = {formula, tile, ATT_NEEDS_BIAS};
