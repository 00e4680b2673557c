/* A caller's own softcap beside the built-in one: the same attention, turn and turn about, best of all rounds.
 * Prints "built-in 12.3 ms, own 12.5 ms: 98.4 %" for each pass, or with --json one object a line. A number: rounds. */
#include "bench.h"
#include <attend_extend.h>
#include <attend_util.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The caller's modifier: c tanh(s / c) ------------------------------------ */

static double formula(const att_pair *p, double s)
{
    const double c = p->value[0];
    return c * tanh(s / c);
}

static double derivative(const att_pair *p, double s, double ds, double *const *dparam)
{
    const double y = tanh(s / p->value[0]);
    (void)ds;
    (void)dparam;
    return 1 - y * y;
}

static void tile(const att_modifier_tile *t)
{
    for (int j = 0; j < t->keys; j++) {
        float *s = t->s + j * t->stride;
        t->vectors->scale(t->columns, 1 / (float)t->value[0], s, s);
        t->vectors->tanh(t->columns, s, s);
        t->vectors->scale(t->columns, (float)t->value[0], s, s);
    }
}

static void tile_back(const att_modifier_tile *t)
{
    for (int j = 0; j < t->keys; j++) {
        float *s = t->s + j * t->stride, *ds = t->ds + j * t->stride;
        t->vectors->scale(t->columns, 1 / (float)t->value[0], s, s);
        t->vectors->tanh_back(t->columns, s, ds, ds);
    }
}

static const att_modifier own_softcap = {.size = sizeof(att_modifier),
                                         .name = "own softcap",
                                         .flags = ATT_STAGE_NEEDS_VALUE,
                                         .formula = formula,
                                         .derivative = derivative,
                                         .tile = tile,
                                         .tile_back = tile_back};

/* ---- Both -------------------------------------------------------------------- */

enum { HEADS = 12, TIME = 1024, DIM = 64, NUMBERS = HEADS * TIME * DIM };
enum { Q, K, V, OUT, DOUT, DQ, DK, DV, TENSORS };

int main(int argc, char **argv)
{
    const att_modifier *const side[] = {att_modifier_softcap, &own_softcap};
    bool json = false;
    int rounds = 10;
    for (int i = 1; i < argc; i++) {
        json = json || strcmp(argv[i], "--json") == 0;
        rounds = atoi(argv[i]) > 0 ? atoi(argv[i]) : rounds;
    }
    att_ctx *ctx;
    att_plan *plan[2];
    att_tensor x[TENSORS], lse;
    check(NULL, att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = 2)));
    for (int s = 0; s < 2; s++)
        check(ctx, att_plan_new(ctx,
                                ATT_OPTIONS(att_attention_spec, .heads = HEADS, .head_dim = DIM,
                                            ATT_STAGES({.modifier = side[s], .value = {30}})),
                                &plan[s]));
    float *memory = att_alloc(ctx, TENSORS * (size_t)NUMBERS + HEADS * TIME, sizeof *memory);
    if (!memory)
        check(ctx, ATT_ERR_MEMORY);
    uint32_t seed = 1;
    for (size_t i = 0; i < TENSORS * (size_t)NUMBERS; i++)
        memory[i] = (float)((seed = seed * 1664525 + 1013904223) >> 8) / (1 << 23) - 1;
    for (int i = 0; i < TENSORS; i++)
        check(ctx, att_wrap(&x[i], memory + (size_t)i * NUMBERS, ATT_F32, ATT_DIMS(1, HEADS, TIME, DIM), NULL));
    check(ctx, att_wrap(&lse, memory + TENSORS * (size_t)NUMBERS, ATT_F32, ATT_DIMS(1, HEADS, TIME), NULL));
    const att_attention_args args = {.size = sizeof args, .q = x[Q], .k = x[K], .v = x[V], .out = x[OUT], .lse = lse};
    const att_attention_grads grads = {.size = sizeof grads, .dout = x[DOUT], .dq = x[DQ], .dk = x[DK], .dv = x[DV]};

    double best[2][2] = {{INFINITY, INFINITY}, {INFINITY, INFINITY}}; /* [pass][side], seconds */
    for (int r = 0; r < rounds; r++)
        for (int s = 0; s < 2; s++) {
            const double start = seconds();
            check(ctx, att_forward(plan[s], &args));
            const double middle = seconds();
            check(ctx, att_backward(plan[s], &args, &grads));
            best[0][s] = fmin(best[0][s], middle - start);
            best[1][s] = fmin(best[1][s], seconds() - middle);
        }
    for (int pass = 0; pass < 2; pass++) {
        const char *name = pass ? "bwd" : "fwd";
        const double built_in = 1e3 * best[pass][0], own = 1e3 * best[pass][1];
        if (json)
            printf("{\"pass\": \"%s\", \"built_in_ms\": %.6g, \"own_ms\": %.6g}\n", name, built_in, own);
        else
            printf("%s: built-in %.4g ms, own %.4g ms: %.1f %%\n", name, built_in, own, 100 * built_in / own);
    }

    att_free(ctx, memory);
    for (int s = 0; s < 2; s++)
        att_plan_free(plan[s]);
    att_close(ctx);
    return 0;
}
