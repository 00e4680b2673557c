/* A caller's own scores on the matrix product (tests/fixtures/product_scores.h) beside the built-in cosine, by turns,
 * best of all rounds: cosine again, a Gaussian with a parameter, a polynomial. Prints "fwd: cosine 1.2 ms, own
 * cosine 1.3 ms: 1.08 times" for each, or with
 * --json one object a line. Numbers: rounds, then time steps, heads and head size; else 512, 4 and 32. */
#include "fixtures/product_scores.h"
#include "bench.h"
#include <attend_util.h>

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { SCORES = 4 };
static const att_score *score_of(int s)
{
    return s == 0 ? att_score_cosine : s == 1 ? &cosine_score : s == 2 ? &gaussian_score : &polynomial_score;
}
enum { Q, K, V, OUT, DOUT, DQ, DK, DV, TENSORS };

typedef struct work {
    att_ctx *ctx;
    int rounds, time, heads, dim;
    bool json;
    float *memory, width, dwidth;
    att_tensor x[TENSORS], lse, w, dw;
    att_plan *plan[SCORES];
    double best[2][SCORES]; /* [pass], seconds */
} work;

static void read_options(int argc, char **argv, work *b)
{
    int *const to[] = {&b->rounds, &b->time, &b->heads, &b->dim};
    for (int i = 1, next = 0; i < argc; i++)
        if (strcmp(argv[i], "--json") == 0)
            b->json = true;
        else if (atoi(argv[i]) > 0 && next < 4)
            *to[next++] = atoi(argv[i]);
}

static void make(work *b)
{
    const size_t rows = (size_t)b->time * (size_t)b->heads, numbers = rows * (size_t)b->dim;
    check(NULL, att_open(&b->ctx, ATT_OPTIONS(att_config, .n_threads = 2)));
    b->memory = att_alloc(b->ctx, TENSORS * numbers + rows, sizeof *b->memory);
    if (!b->memory)
        check(b->ctx, ATT_ERR_MEMORY);
    uint32_t seed = 1;
    for (size_t i = 0; i < TENSORS * numbers; i++) /* lengths of 0.6 */
        b->memory[i] = ((float)((seed = seed * 1664525 + 1013904223) >> 8) / (1 << 23) - 1) / sqrtf((float)b->dim);
    for (int i = 0; i < TENSORS; i++)
        check(b->ctx, att_wrap(&b->x[i], b->memory + (size_t)i * numbers, ATT_F32,
                               ATT_DIMS(1, b->heads, b->time, b->dim), NULL));
    check(b->ctx, att_wrap(&b->lse, b->memory + TENSORS * numbers, ATT_F32, ATT_DIMS(1, b->heads, b->time), NULL));
    check(b->ctx, att_wrap(&b->w, &b->width, ATT_F32, ATT_DIMS(1), NULL));
    check(b->ctx, att_wrap(&b->dw, &b->dwidth, ATT_F32, ATT_DIMS(1), NULL));
    for (int s = 0; s < SCORES; s++) {
        const att_attention_spec *spec =
            ATT_OPTIONS(att_attention_spec, .heads = b->heads, .head_dim = b->dim, .score = score_of(s));
        check(b->ctx, att_verify(b->ctx, spec));
        check(b->ctx, att_plan_new(b->ctx, spec, &b->plan[s]));
    }
}

static void measure(work *b, int s)
{
    const att_tensor *x = b->x;
    const int n = score_of(s)->n_params;
    const att_attention_args args = {.size = sizeof args,
                                     .q = x[Q],
                                     .k = x[K],
                                     .v = x[V],
                                     .out = x[OUT],
                                     .lse = b->lse,
                                     .param = &b->w,
                                     .n_params = n};
    const att_attention_grads grads = {
        .size = sizeof grads, .dout = x[DOUT], .dq = x[DQ], .dk = x[DK], .dv = x[DV], .dparam = &b->dw, .n_dparams = n};
    const double start = seconds();
    check(b->ctx, att_forward(b->plan[s], &args));
    const double middle = seconds();
    check(b->ctx, att_backward(b->plan[s], &args, &grads));
    b->best[0][s] = fmin(b->best[0][s], middle - start);
    b->best[1][s] = fmin(b->best[1][s], seconds() - middle);
}

static void print(const work *b, int pass, int s)
{
    const char *name = score_of(s)->name, *of = pass ? "bwd" : "fwd";
    const double cosine = 1e3 * b->best[pass][0], own = 1e3 * b->best[pass][s];
    if (b->json)
        printf("{\"pass\": \"%s\", \"score\": \"%s\", \"cosine_ms\": %.6g, \"own_ms\": %.6g}\n", of, name, cosine, own);
    else
        printf("%s: cosine %.4g ms, %s %.4g ms: %.2f times\n", of, cosine, name, own, own / cosine);
}

int main(int argc, char **argv)
{
    work b = {.rounds = 20, .time = 512, .heads = 4, .dim = 32, .width = 1};
    read_options(argc, argv, &b);
    make(&b);
    for (int i = 0; i < 2 * SCORES; i++)
        b.best[i / SCORES][i % SCORES] = INFINITY;
    for (int r = 0; r < b.rounds; r++)
        for (int s = 0; s < SCORES; s++)
            measure(&b, s);
    for (int pass = 0; pass < 2; pass++)
        for (int s = 1; s < SCORES; s++)
            print(&b, pass, s);
    for (int s = 0; s < SCORES; s++)
        att_plan_free(b.plan[s]);
    att_free(b.ctx, b.memory);
    att_close(b.ctx);
    return 0;
}
