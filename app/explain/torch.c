#include "torch.h"

#include <math.h>

enum { SHIFT = 397 };

void torch_manual_seed(torch_random *g, uint32_t seed)
{
    g->state[0] = seed;
    for (uint32_t i = 1; i < TORCH_STATE; i++)
        g->state[i] = 1812433253u * (g->state[i - 1] ^ g->state[i - 1] >> 30) + i;
    g->used = TORCH_STATE;
}

static void renew(uint32_t *s /* [TORCH_STATE] */)
{
    for (int i = 0; i < TORCH_STATE; i++) {
        uint32_t y = (s[i] & 0x80000000u) | (s[(i + 1) % TORCH_STATE] & 0x7fffffffu);
        s[i] = s[(i + SHIFT) % TORCH_STATE] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
    }
}

uint32_t torch_draw(torch_random *g)
{
    if (g->used == TORCH_STATE) {
        renew(g->state);
        g->used = 0;
    }
    uint32_t y = g->state[g->used++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

float torch_uniform(torch_random *g, float from, float to)
{
    float u = (float)(torch_draw(g) & 0xffffff) * 0x1p-24f;
    return fmaf(u, to - from, from); /* one rounding: PyTorch is compiled so for AVX2 and later */
}

float torch_linear_bound(int64_t inputs) { return (float)(1 / sqrt((double)inputs)); }

float torch_xavier_bound(int64_t inputs, int64_t outputs) { return (float)sqrt(6 / (double)(inputs + outputs)); }

int torch_bernoulli(torch_random *g, double p)
{
    uint64_t high = torch_draw(g), both = high << 32 | torch_draw(g);
    return (double)(both & 0x1fffffffffffff) * 0x1p-53 < p;
}
