/* From three loops to the library, a step at a time: the same attention, each step held against plain sums in double
 * and then timed, turn and turn about, best of all rounds. Prints a table. A number: rounds. */
#include "bench.h"
#include <attend.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADS = 4, TIME = 1024, DIM = 64, HEAD = TIME * DIM, NUMBERS = HEADS * HEAD };
static const float scale = 0.125f; /* 1 / sqrt(DIM) */

/* ---- 1: the formula, word for word. S and P are a matrix. q, k, v, out [TIME, DIM] ---- */

static float matrix[TIME][TIME];

static void three_loops(const float *q, const float *k, const float *v, float *out)
{
    for (int i = 0; i < TIME; i++)
        for (int j = 0; j < TIME; j++) {
            matrix[i][j] = 0;
            for (int d = 0; d < DIM; d++)
                matrix[i][j] += scale * q[i * DIM + d] * k[j * DIM + d];
        }
    for (int i = 0; i < TIME; i++) {
        float max = -INFINITY, sum = 0;
        for (int j = 0; j < TIME; j++)
            max = fmaxf(max, matrix[i][j]);
        for (int j = 0; j < TIME; j++)
            sum += matrix[i][j] = expf(matrix[i][j] - max);
        for (int j = 0; j < TIME; j++)
            matrix[i][j] /= sum;
    }
    for (int i = 0; i < TIME; i++)
        for (int d = 0; d < DIM; d++) {
            float sum = 0;
            for (int j = 0; j < TIME; j++)
                sum += matrix[i][j] * v[j * DIM + d];
            out[i * DIM + d] = sum;
        }
}

/* ---- 2: row by row, so there is no matrix; values are read as they lie; one division a number, at the end ---- */

static void rows(const float *q, const float *k, const float *v, float *out)
{
    float s[TIME];
    for (int i = 0; i < TIME; i++) {
        float max = -INFINITY, sum = 0, o[DIM] = {0};
        for (int j = 0; j < TIME; j++) {
            s[j] = 0;
            for (int d = 0; d < DIM; d++)
                s[j] += scale * q[i * DIM + d] * k[j * DIM + d];
            max = fmaxf(max, s[j]);
        }
        for (int j = 0; j < TIME; j++) {
            const float p = expf(s[j] - max);
            sum += p;
            for (int d = 0; d < DIM; d++)
                o[d] += p * v[j * DIM + d];
        }
        for (int d = 0; d < DIM; d++)
            out[i * DIM + d] = o[d] / sum;
    }
}

/* ---- 3: tiles that stay in the first cache, lying on their side, and softmax in one pass over the keys ---- */

enum { QUERIES = 32, KEYS = 64 };

/* Queries are the columns of all of it. */
typedef struct panel {
    float q[DIM][QUERIES], s[KEYS][QUERIES], o[DIM][QUERIES], max[QUERIES], sum[QUERIES];
} panel;

static void load_keys(panel *p, const float *k, const float *v)
{
    float top[QUERIES], rescale[QUERIES];
    memset(p->s, 0, sizeof p->s);
    for (int j = 0; j < KEYS; j++)
        for (int d = 0; d < DIM; d++)
            for (int i = 0; i < QUERIES; i++)
                p->s[j][i] += k[j * DIM + d] * p->q[d][i];
    memcpy(top, p->max, sizeof top);
    for (int j = 0; j < KEYS; j++)
        for (int i = 0; i < QUERIES; i++)
            top[i] = p->s[j][i] > top[i] ? p->s[j][i] : top[i];
    for (int i = 0; i < QUERIES; i++) {
        rescale[i] = expf(p->max[i] - top[i]);
        p->max[i] = top[i];
        p->sum[i] *= rescale[i];
        for (int d = 0; d < DIM; d++)
            p->o[d][i] *= rescale[i];
    }
    for (int j = 0; j < KEYS; j++)
        for (int i = 0; i < QUERIES; i++)
            p->sum[i] += p->s[j][i] = expf(p->s[j][i] - top[i]);
    for (int j = 0; j < KEYS; j++)
        for (int d = 0; d < DIM; d++)
            for (int i = 0; i < QUERIES; i++)
                p->o[d][i] += v[j * DIM + d] * p->s[j][i];
}

static void tiles(const float *q, const float *k, const float *v, float *out)
{
    panel p;
    for (int first = 0; first < TIME; first += QUERIES) {
        memset(&p, 0, sizeof p);
        for (int i = 0; i < QUERIES; i++) {
            p.max[i] = -INFINITY;
            for (int d = 0; d < DIM; d++)
                p.q[d][i] = scale * q[(first + i) * DIM + d];
        }
        for (int j = 0; j < TIME; j += KEYS)
            load_keys(&p, k + j * DIM, v + j * DIM);
        for (int i = 0; i < QUERIES; i++)
            for (int d = 0; d < DIM; d++)
                out[(first + i) * DIM + d] = p.o[d][i] / p.sum[i];
    }
}

/* ---- the steps; the last ones are the library ---- */

typedef struct step {
    const char *name;
    void (*head)(const float *q, const float *k, const float *v, float *out); /* or the library: */
    const char *isa;
    int threads;
    att_ctx *ctx;
    att_plan *plan;
    double seconds, peak; /* peak: of the set, in operations a second */
} step;

static step steps[] = {
    {.name = "three loops and the whole matrix, C", .head = three_loops},
    {.name = "row by row, no matrix, C", .head = rows},
    {.name = "tiles, softmax in one pass, C", .head = tiles},
    {.name = "attend, portable C", .isa = "scalar", .threads = 1},
    {.name = "attend, AVX2", .isa = "avx2", .threads = 1},
    {.name = "attend, AVX-512", .isa = "avx512", .threads = 1},
    {.name = "attend, NEON", .isa = "neon", .threads = 1},
    {.name = "attend, the best set, two threads", .threads = 2},
};
enum { STEPS = sizeof steps / sizeof *steps };

static float numbers[4][NUMBERS]; /* q, k, v, out */
static att_attention_args args = {.size = sizeof args};

static void run(const step *s)
{
    if (s->plan)
        check(s->ctx, att_forward(s->plan, &args));
    for (int h = 0; s->head && h < HEADS; h++)
        s->head(numbers[0] + h * HEAD, numbers[1] + h * HEAD, numbers[2] + h * HEAD, numbers[3] + h * HEAD);
}

static bool usable(const step *s) { return s->head || s->plan; }

/* Scores are up to sqrt(DIM) = 8, sums of DIM products, and off by at most DIM + 2 roundings of that size; that is the
 * relative error of a weight, and again of their sum; these sums, of TIME terms, add a rounding for each. */
static void verify(const step *s)
{
    const double limit = 0x1p-24 * (2 * 8 * (DIM + 2) + 2 * TIME);
    memset(numbers[3], 0xff, sizeof numbers[3]);
    run(s);
    for (int row = 0; usable(s) && row < HEADS * TIME; row += 7) {
        const float *q = numbers[0] + row * DIM, *k = numbers[1] + row / TIME * HEAD,
                    *v = numbers[2] + row / TIME * HEAD;
        double sum = 0, o[DIM] = {0};
        for (int j = 0; j < TIME; j++) { /* scores are small enough to go without a maximum */
            double score = 0;
            for (int d = 0; d < DIM; d++)
                score += (double)scale * q[d] * k[j * DIM + d];
            sum += exp(score);
            for (int d = 0; d < DIM; d++)
                o[d] += exp(score) * v[j * DIM + d];
        }
        for (int d = 0; d < DIM; d++)
            if (!(fabs(numbers[3][row * DIM + d] - o[d] / sum) <= limit)) {
                fprintf(stderr, "bench_ladder: %s: row %d, number %d is wrong\n", s->name, row, d);
                exit(1);
            }
    }
}

int main(int argc, char **argv)
{
    const int rounds = argc > 1 && atoi(argv[1]) > 0 ? atoi(argv[1]) : 5;
    const double operations = 4.0 * HEADS * TIME * TIME * DIM;
    double peak = 0, before = 0; /* of one thread, the best set */
    uint32_t seed = 1;
    att_tensor *const tensors[] = {&args.q, &args.k, &args.v, &args.out};
    for (int n = 0; n < 3 * NUMBERS; n++)
        numbers[n / NUMBERS][n % NUMBERS] = (float)((seed = seed * 1664525 + 1013904223) >> 8) / (1 << 23) - 1;
    for (int i = 0; i < 4; i++)
        check(NULL, att_wrap(tensors[i], numbers[i], ATT_F32, ATT_DIMS(1, HEADS, TIME, DIM), NULL));
    for (step *s = steps; s < steps + STEPS; s++) {
        s->seconds = INFINITY;
        if (!s->head && !att_open(&s->ctx, ATT_OPTIONS(att_config, .n_threads = s->threads, .isa = s->isa)))
            check(s->ctx,
                  att_plan_new(s->ctx, ATT_OPTIONS(att_attention_spec, .heads = HEADS, .head_dim = DIM), &s->plan));
        verify(s);
    }
    for (int r = 0; r < rounds; r++)
        for (step *s = steps; s < steps + STEPS; s++) {
            for (int i = 0; usable(s) && i < (s->head ? 1 : 10); i++) { /* the first one wakes threads and clock */
                const double start = seconds();
                run(s);
                s->seconds = fmin(s->seconds, seconds() - start);
            }
            double found = 0;
            if (s->plan)
                check(s->ctx, att_measure_peak(s->ctx, s->seconds, &found));
            s->peak = fmax(s->peak, found);
            peak = s->threads == 1 ? fmax(peak, found) : peak;
        }
    puts("| | step | ms | times as fast as the step before | share of the peak | of that set's own |");
    puts("|---|---|--:|--:|--:|--:|");
    for (int i = 0, n = 1; i < STEPS; i++) {
        const step *s = &steps[i];
        if (!usable(s))
            continue;
        printf("| %d | %s | %.3g |", n++, s->name, 1e3 * s->seconds);
        before > 0 ? printf(" %.3g |", before / s->seconds) : printf(" |");
        printf(" %.3g %% |", 100 * operations / s->seconds / (s->threads > 1 ? s->peak : peak));
        s->plan ? printf(" %.3g %% |\n", 100 * operations / s->seconds / s->peak) : printf(" |\n");
        before = s->seconds;
    }
    for (step *s = steps; s < steps + STEPS; s++)
        att_plan_free(s->plan), att_close(s->ctx);
    return 0;
}
