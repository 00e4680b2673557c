/* att_linear_cross_entropy against att_linear and att_cross_entropy: time of forward and backward, the best of
 * alternating runs, and peak memory of the library, after their results have been compared.
 *
 *   bench_linear_cross_entropy [ROWS FEATURES CLASSES [RUNS [THREADS]]]
 *
 * Of one thread, the processor's time counts, which other programs disturb less. */
#include "bench.h"
#include "attend_learn.h"

#include <math.h>
#include <string.h>

/* ---- an allocator that counts */

typedef struct counter {
    size_t bytes, peak;
} counter;

static void *count_alloc(void *user, size_t bytes, size_t alignment)
{
    counter *c = user;
    unsigned char *p = NULL;
    if (posix_memalign((void **)&p, alignment, bytes + alignment))
        return NULL;
    memcpy(p, &bytes, sizeof bytes);
    c->bytes += bytes;
    c->peak = c->bytes > c->peak ? c->bytes : c->peak;
    return p + alignment;
}

static void count_free(void *user, void *p)
{
    enum { ALIGNMENT = 64 }; /* the library's */
    unsigned char *start = (unsigned char *)p - ALIGNMENT;
    size_t bytes;
    memcpy(&bytes, start, sizeof bytes);
    ((counter *)user)->bytes -= bytes;
    free(start);
}

/* ---- a problem */

typedef struct problem {
    int64_t rows, features, classes;
    int threads;
    float *x, *weight, *bias; /* [rows, features], [classes, features], [classes] */
    int32_t *targets;         /* [rows] */
} problem;

/* One of the two ways to compute the loss, in a context of its own */
typedef struct method {
    bool fused;
    counter memory;
    att_ctx *ctx;
    att_tape *tape;
    att_param *weight, *bias;
    double best;
    float loss;
    att_tensor dx; /* until the next reset */
} method;

static float *numbers(int64_t n, float spread)
{
    static uint32_t random = 1;
    float *x = malloc((size_t)n * sizeof *x);
    for (int64_t i = 0; x && i < n; i++) {
        random = random * 1664525 + 1013904223;
        x[i] = ((float)(random >> 8) / 0x1p23f - 1) * spread;
    }
    return x;
}

static void open_method(method *m, const problem *p, bool fused)
{
    const att_allocator allocator = {count_alloc, count_free, &m->memory};
    att_tensor weight, bias;
    m->fused = fused;
    m->best = (double)INFINITY;
    check(NULL, att_open(&m->ctx, ATT_OPTIONS(att_config, .n_threads = p->threads, .allocator = allocator)));
    check(m->ctx, att_tape_new(m->ctx, ATT_OPTIONS(att_tape_config, .record = true), &m->tape));
    check(m->ctx, att_wrap(&weight, p->weight, ATT_F32, ATT_DIMS(p->classes, p->features), NULL));
    check(m->ctx, att_wrap(&bias, p->bias, ATT_F32, ATT_DIMS(p->classes), NULL));
    check(m->ctx, att_param_new(m->ctx, &weight, &m->weight));
    check(m->ctx, att_param_new(m->ctx, &bias, &m->bias));
}

static void close_method(method *m)
{
    att_param_free(m->weight);
    att_param_free(m->bias);
    att_tape_free(m->tape);
    att_close(m->ctx);
}

/* Seconds of the clock, or of the processor where it has one thread */
static double now(const problem *p)
{
    struct timespec t;
    clock_gettime(p->threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void run(method *m, const problem *p)
{
    att_tensor x, loss;
    check(m->ctx, att_wrap(&x, p->x, ATT_F32, ATT_DIMS(p->rows, p->features), NULL));
    att_tape_reset(m->tape);
    att_param_zero_grad(m->weight);
    att_param_zero_grad(m->bias);
    const att_cross_entropy_options o = {.size = sizeof o, .label_smoothing = 0.1f};
    const double begin = now(p);
    att_var *in = att_input(m->tape, &x);
    att_var *y =
        m->fused
            ? att_linear_cross_entropy(m->tape, in, m->weight, m->bias, p->targets, &o)
            : att_cross_entropy(m->tape, att_linear(m->tape, in, m->weight, m->bias, ATT_ACTIVATION_IDENTITY, NULL),
                                p->targets, &o);
    check(m->ctx, att_tape_backward(m->tape, y, NULL));
    const double time = now(p) - begin;
    m->best = time < m->best ? time : m->best;
    check(m->ctx, att_var_value(m->tape, y, &loss));
    check(m->ctx, att_var_grad(m->tape, in, &m->dx));
    m->loss = *(const float *)loss.data;
}

/* ---- verification: both sum the same numbers in float, mostly in the same order */

/* Returns the largest difference of a and b [n], relative to the largest of a. */
static double difference(int64_t n, const float *a, const float *b)
{
    double largest = 0, off = 0;
    for (int64_t i = 0; i < n; i++) {
        largest = fmax(largest, fabs((double)a[i]));
        off = fmax(off, fabs((double)a[i] - (double)b[i]));
    }
    return largest > 0 ? off / largest : off;
}

static void verify(const method *a, const method *b, const problem *p)
{
    const double off[] = {
        fabs((double)a->loss - (double)b->loss) / fabs((double)a->loss),
        difference(p->rows * p->features, a->dx.data, b->dx.data),
        difference(p->classes * p->features, att_param_grad(a->weight)->data, att_param_grad(b->weight)->data),
        difference(p->classes, att_param_grad(a->bias)->data, att_param_grad(b->bias)->data)};
    static const char *const name[] = {"loss", "dx", "dweight", "dbias"};
    for (int i = 0; i < 4; i++)
        if (!(off[i] < 1e-5)) {
            fprintf(stderr, "%s differs by %g\n", name[i], off[i]);
            exit(1);
        }
    printf("differences: loss %.1e, dx %.1e, dweight %.1e, dbias %.1e\n", off[0], off[1], off[2], off[3]);
}

int main(int argc, char **argv)
{
    problem p = {.rows = argc > 3 ? atoll(argv[1]) : 2048,
                 .features = argc > 3 ? atoll(argv[2]) : 512,
                 .classes = argc > 3 ? atoll(argv[3]) : 50000,
                 .threads = argc > 5 ? atoi(argv[5]) : 2};
    const int runs = argc > 4 ? atoi(argv[4]) : 5;
    p.x = numbers(p.rows * p.features, 1);
    p.weight = numbers(p.classes * p.features, 0.1f);
    p.bias = numbers(p.classes, 1);
    p.targets = malloc((size_t)p.rows * sizeof *p.targets);
    if (!p.x || !p.weight || !p.bias || !p.targets)
        return 1;
    for (int64_t i = 0; i < p.rows; i++)
        p.targets[i] = (int32_t)(i * 7919 % p.classes);
    method m[2] = {0};
    for (int i = 0; i < 2; i++) {
        open_method(&m[i], &p, i);
        run(&m[i], &p); /* allocates; its time counts only where RUNS is 0 */
    }
    verify(&m[0], &m[1], &p);
    for (int r = 0; r < runs; r++)
        for (int i = 0; i < 2; i++)
            run(&m[i], &p);
    printf("[%lld, %lld] to %lld classes, forward and backward, %s, threads: %d\n", (long long)p.rows,
           (long long)p.features, (long long)p.classes, att_isa(m[0].ctx), p.threads);
    for (int i = 0; i < 2; i++)
        printf("%-26s %8.1f ms  %8.1f MB\n", i ? "att_linear_cross_entropy" : "att_linear, _cross_entropy",
               1e3 * m[i].best, 1e-6 * (double)m[i].memory.peak);
    printf("time %.3f, memory %.3f\n", m[1].best / m[0].best, (double)m[1].memory.peak / (double)m[0].memory.peak);
    for (int i = 0; i < 2; i++)
        close_method(&m[i]);
    free(p.x), free(p.weight), free(p.bias), free(p.targets);
    return 0;
}
