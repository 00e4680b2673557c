/* Matrix products of a linear layer: attend, OpenBLAS and oneDNN, turn and turn about in one process.
 *
 *   bench_peers_gemm [--json] [ROUNDS]
 *
 * y [m, n] = x [m, k] w [n, k]^T with weights that stay: attend packs its parameter once, oneDNN's matmul gets its
 * weights in the layout that it asks for, OpenBLAS's sgemm takes them as they lie. Every result is verified before
 * anything is timed. Between two libraries a pause lets the other's threads fall asleep. Each round takes the best time
 * of each, and compares them; of these ratios the middle one counts, as the processor's frequency differs from second
 * to second by more than the libraries do. */
#include "../bench.h"
#include "attend_learn.h"

#include <cblas.h>
#include <dnnl.h>
#include <omp.h>

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct problem {
    int64_t m, n, k;
    float *x, *w, *y;
} problem;

/* One library: opened for a problem, it multiplies as often as it is told to. */
typedef struct library {
    const char *name;
    void *(*open)(const problem *p, int threads);
    void (*multiply)(void *self);
    void (*close)(void *self);
} library;

static void must(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "bench_peers_gemm: %s\n", what);
    exit(1);
}

/* ---- attend: a parameter and the linear operation, as layers use them */

typedef struct ours {
    const problem *p;
    att_ctx *ctx;
    att_tape *tape;
    att_param *w;
} ours;

static void *ours_open(const problem *p, int threads)
{
    ours *o = calloc(1, sizeof *o);
    att_tensor w;
    o->p = p;
    must(!att_open(&o->ctx, ATT_OPTIONS(att_config, .n_threads = threads)), att_error(NULL));
    must(!att_wrap(&w, p->w, ATT_F32, ATT_DIMS(p->n, p->k), NULL), "att_wrap");
    must(!att_param_new(o->ctx, &w, &o->w), att_error(o->ctx));
    must(!att_tape_new(o->ctx, NULL, &o->tape), att_error(o->ctx));
    return o;
}

static att_tensor ours_run(const ours *o)
{
    att_tensor x, y;
    att_tape_reset(o->tape);
    att_wrap(&x, o->p->x, ATT_F32, ATT_DIMS(o->p->m, o->p->k), NULL);
    att_var *v = att_linear(o->tape, att_input(o->tape, &x), o->w, NULL, ATT_ACTIVATION_IDENTITY, NULL);
    must(!att_var_value(o->tape, v, &y), att_error(o->ctx));
    return y;
}

static void ours_multiply(void *self) { ours_run(self); }

static void ours_close(void *self)
{
    ours *o = self;
    const att_tensor y = ours_run(o);
    memcpy(o->p->y, y.data, (size_t)(o->p->m * o->p->n) * sizeof(float));
    att_tape_free(o->tape);
    att_param_free(o->w);
    att_close(o->ctx);
    free(o);
}

/* ---- OpenBLAS */

static void *blas_open(const problem *p, int threads)
{
    openblas_set_num_threads(threads);
    return (void *)p;
}

static void blas_multiply(void *self)
{
    const problem *p = self;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)p->m, (int)p->n, (int)p->k, 1, p->x, (int)p->k, p->w,
                (int)p->k, 0, p->y, (int)p->n);
}

static void blas_close(void *self) { (void)self; }

/* ---- oneDNN: the matmul primitive with weights in its own layout */

typedef struct onednn {
    int threads;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t matmul;
    dnnl_memory_t x, w, y;
} onednn;

static void dn(dnnl_status_t s) { must(s == dnnl_success, "oneDNN failed"); }

static cpu_set_t all; /* the processors that the process may use */

/* Pins the calling thread to one of the processors; which < 0: to all. */
static void pin(int which)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0, n = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && n++ == which)
            CPU_SET(cpu, &one);
    must(!sched_setaffinity(0, sizeof one, which < 0 ? &all : &one), "sched_setaffinity");
}

static void *onednn_open(const problem *p, int threads)
{
    onednn *o = calloc(1, sizeof *o);
    const dnnl_dims_t xs = {p->m, p->k}, ws = {p->k, p->n}, ys = {p->m, p->n};
    dnnl_memory_desc_t x, w, w_plain, y;
    dnnl_matmul_desc_t desc;
    dnnl_primitive_desc_t pd, rpd;
    dnnl_primitive_t reorder;
    dnnl_memory_t plain;
    o->threads = threads;
    omp_set_num_threads(threads);
#pragma omp parallel
    pin(omp_get_thread_num()); /* two that wait for each other on one processor were seen to stay there */
    pin(-1);
    dn(dnnl_engine_create(&o->engine, dnnl_cpu, 0));
    dn(dnnl_stream_create(&o->stream, o->engine, dnnl_stream_default_flags));
    dn(dnnl_memory_desc_init_by_tag(&x, 2, xs, dnnl_f32, dnnl_ab));
    dn(dnnl_memory_desc_init_by_tag(&w, 2, ws, dnnl_f32, dnnl_format_tag_any));
    dn(dnnl_memory_desc_init_by_tag(&w_plain, 2, ws, dnnl_f32, dnnl_ba));
    dn(dnnl_memory_desc_init_by_tag(&y, 2, ys, dnnl_f32, dnnl_ab));
    dn(dnnl_matmul_desc_init(&desc, &x, &w, NULL, &y));
    dn(dnnl_primitive_desc_create(&pd, &desc, NULL, o->engine, NULL));
    const dnnl_memory_desc_t *wanted = dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
    dn(dnnl_memory_create(&o->x, &x, o->engine, p->x));
    dn(dnnl_memory_create(&o->y, &y, o->engine, p->y));
    dn(dnnl_memory_create(&plain, &w_plain, o->engine, p->w));
    dn(dnnl_memory_create(&o->w, wanted, o->engine, DNNL_MEMORY_ALLOCATE));
    dn(dnnl_reorder_primitive_desc_create(&rpd, &w_plain, o->engine, wanted, o->engine, NULL));
    dn(dnnl_primitive_create(&reorder, rpd));
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, plain}, {DNNL_ARG_TO, o->w}};
    dn(dnnl_primitive_execute(reorder, o->stream, 2, args));
    dn(dnnl_stream_wait(o->stream));
    dn(dnnl_primitive_create(&o->matmul, pd));
    dnnl_primitive_destroy(reorder);
    dnnl_primitive_desc_destroy(rpd);
    dnnl_primitive_desc_destroy(pd);
    dnnl_memory_destroy(plain);
    return o;
}

static void onednn_multiply(void *self)
{
    onednn *o = self;
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, o->x}, {DNNL_ARG_WEIGHTS, o->w}, {DNNL_ARG_DST, o->y}};
    dn(dnnl_primitive_execute(o->matmul, o->stream, 3, args));
    dn(dnnl_stream_wait(o->stream));
}

static void onednn_close(void *self)
{
    onednn *o = self;
    dnnl_primitive_destroy(o->matmul);
    dnnl_memory_destroy(o->x);
    dnnl_memory_destroy(o->w);
    dnnl_memory_destroy(o->y);
    dnnl_stream_destroy(o->stream);
    dnnl_engine_destroy(o->engine);
    free(o);
}

static const library libraries[] = {
    {"attend", ours_open, ours_multiply, ours_close},
    {"openblas", blas_open, blas_multiply, blas_close},
    {"onednn", onednn_open, onednn_multiply, onednn_close},
};
enum { N_LIBRARIES = sizeof libraries / sizeof libraries[0] };

/* ---- the measurement */

static float *numbers(int64_t n)
{
    float *p = aligned_alloc(64, ((size_t)n * sizeof *p + 63) / 64 * 64);
    must(p != NULL, "out of memory");
    for (int64_t i = 0; i < n; i++)
        p[i] = (float)rand() / (float)RAND_MAX - 0.5f;
    return p;
}

/* Elements spread over y against sums in double; k chained roundings of products below 1/4. */
static void verify(const problem *p, const char *name)
{
    for (int64_t t = 0; t < 1000; t++) {
        const int64_t i = t * 7919 % p->m, j = t * 104729 % p->n;
        double sum = 0;
        for (int64_t q = 0; q < p->k; q++)
            sum += (double)p->x[i * p->k + q] * p->w[j * p->k + q];
        if (!(fabs(sum - p->y[i * p->n + j]) <= 0x1p-24 * (double)p->k * 0.25))
            must(false, name);
    }
}

static void pause_for(double s)
{
    const struct timespec t = {0, (long)(s * 1e9)};
    nanosleep(&t, NULL);
}

static double best_of(const library *l, void *self)
{
    static const double some = 0.03; /* seconds, as the peak is measured for */
    enum { FEWEST = 5 };
    l->multiply(self);
    double best = 1e9, start = seconds();
    const double stop = start + some;
    for (int i = 0; i < FEWEST || start < stop; i++) {
        l->multiply(self);
        const double end = seconds();
        best = end - start < best ? end - start : best;
        start = end;
    }
    return best;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns the median of the ratios of x to y [rounds]: what a round compares was measured within a second. */
static double middle(int rounds, const double *x, const double *y)
{
    double *ratio = malloc((size_t)rounds * sizeof *ratio);
    must(ratio != NULL, "out of memory");
    for (int i = 0; i < rounds; i++)
        ratio[i] = x[i] / y[i];
    qsort(ratio, (size_t)rounds, sizeof *ratio, ascending);
    const double m = (ratio[(rounds - 1) / 2] + ratio[rounds / 2]) / 2;
    free(ratio);
    return m;
}

/* Everything once, and GFLOP/s of each library, and of multiply-adds in registers. */
static void run_round(att_ctx *ctx, void *const *self, int threads, double flops, double *peak,
                      double *const rate[N_LIBRARIES])
{
    for (int i = 0; i < N_LIBRARIES; i++) {
        pause_for(0.03);
        openblas_set_num_threads(threads);
        omp_set_num_threads(threads);
        *rate[i] = flops / best_of(&libraries[i], self[i]);
    }
    pause_for(0.03);
    must(!att_measure_peak(ctx, flops / *rate[0], peak), att_error(ctx));
}

static void measure(int64_t m, int64_t n, int64_t k, int threads, int rounds, bool json)
{
    problem p = {m, n, k, numbers(m * k), numbers(n * k), numbers(m * n)};
    void *self[N_LIBRARIES];
    for (int i = 0; i < N_LIBRARIES; i++) {
        void *once = libraries[i].open(&p, threads);
        libraries[i].multiply(once);
        libraries[i].close(once);
        verify(&p, libraries[i].name);
        self[i] = libraries[i].open(&p, threads);
    }
    att_ctx *ctx;
    must(!att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = threads)), att_error(NULL));
    double *peak = calloc((size_t)(1 + N_LIBRARIES) * (size_t)rounds, sizeof *peak);
    must(peak != NULL, "out of memory");
    double *rate[N_LIBRARIES];
    pin(0);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < N_LIBRARIES; i++)
            rate[i] = peak + (1 + i) * rounds + round;
        run_round(ctx, self, threads, 2.0 * (double)m * (double)n * (double)k, peak + round, rate);
    }
    pin(-1);
    att_close(ctx);
    printf(json ? "{\"m\":%lld,\"n\":%lld,\"k\":%lld,\"threads\":%d" : "%5lld x %4lld x %4lld, threads %d",
           (long long)m, (long long)n, (long long)k, threads);
    const double *ours = peak + rounds;
    for (int i = 0; i < N_LIBRARIES; i++) {
        const double *theirs = peak + (1 + i) * rounds;
        printf(json ? ",\"%s\":{\"of_peak\":%.4f,\"ratio\":%.4f}" : "   %s %5.1f %% of peak (%.3f x)",
               libraries[i].name, (json ? 1 : 100) * middle(rounds, theirs, peak), middle(rounds, ours, theirs));
        libraries[i].close(self[i]);
    }
    printf(json ? "}\n" : "\n");
    fflush(stdout);
    free(peak);
    free(p.x);
    free(p.w);
    free(p.y);
}

int main(int argc, char **argv)
{
    static const int64_t shapes[][3] = {
        {1024, 1024, 1024}, {512, 1536, 384}, {16, 1536, 384}, {512, 384, 1536}, {1, 1536, 384}};
    const bool json = argc > 1 && !strcmp(argv[1], "--json");
    const int rounds = argc > 1 + json ? atoi(argv[1 + json]) : 10;
    must(!sched_getaffinity(0, sizeof all, &all), "sched_getaffinity");
    for (int threads = 1; threads <= 2; threads++)
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
            measure(shapes[i][0], shapes[i][1], shapes[i][2], threads, rounds, json);
    return 0;
}
