/* attend bench attention: the plan's forward pass. */
#include "bench.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

static int64_t batch = 1, heads = 12, kv_heads, tq = 1024, tk, dim = 64, vdim;
static int causal = -1, dtype, pass;
static bench_options common;

enum { TOP_LEFT, BOTTOM_RIGHT };

static const cli_option options[] = {
    {"batch", 'b', "N", .integer = &batch, .min = 1, .max = 1e6, .help = "sequences"},
    {"heads", 'H', "N", .integer = &heads, .min = 1, .max = 1e6, .help = "heads of the queries"},
    {"kv-heads", 0, "N", .integer = &kv_heads, .max = 1e6, .quiet = true,
     .help = "heads of the keys and values; default: as many as of the queries"},
    {"tq", 0, "N", .integer = &tq, .min = 1, .max = 1e9, .help = "queries of each sequence"},
    {"tk", 0, "N", .integer = &tk, .max = 1e9, .quiet = true, .help = "keys of each sequence; default: tq"},
    {"dim", 'd', "N", .integer = &dim, .min = 1, .max = 1e6, .help = "numbers of a query and a key"},
    {"vdim", 0, "N", .integer = &vdim, .max = 1e6, .quiet = true, .help = "numbers of a value; default: dim"},
    {"causal", 'c', "top-left|bottom-right", .choice = &causal,
     .help =
         "keys up to the query's position only; with tq and tk unequal, where the queries stand; default: all keys"},
    {"dtype", 0, "f32", .choice = &dtype, .help = "of queries, keys, values and results"},
    {"pass", 0, "fwd", .choice = &pass, .help = "which pass"},
    CLI_THREADS(&common.threads),
    BENCH_REPEAT(&common.repeat),
    BENCH_NO_VERIFY(&common.no_verify),
    CLI_JSON(&common.json),
    {0},
};

typedef struct job {
    att_ctx *ctx;
    att_plan *plan;
    float *q, *k, *v, *out; /* [batch, heads or kv_heads, tq or tk, dim or vdim] */
    att_attention_args args;
} job;

static int once(void *arg)
{
    job *j = arg;
    return cli_status(j->ctx, att_forward(j->plan, &j->args));
}

/* ---- The same with plain loops in double ------------------------------------ */

/* How many keys query i attends to. */
static int64_t visible(int64_t i)
{
    int64_t last = causal < 0 ? tk : causal == TOP_LEFT ? i + 1 : tk - tq + i + 1;
    return last < 0 ? 0 : last < tk ? last : tk;
}

/* One row: out [vdim] in double, and what rounding may do to each number: with u = 2^-24 a score is off by at most
 * (dim + 3) u times its absolute products, a weight by the factor exp(2 * that) and some 8 u of exp and rescaling, and
 * the two chains over the keys (the sum and the products) by tk u each. p [tk] is scratch. */
static void row(const float *q, const float *k, const float *v, int64_t keys, double *p, double *out, double *bound)
{
    const double u = 0x1p-24, scale = 1 / sqrt((double)dim);
    double most = -INFINITY, sum = 0, score_error = 0;
    for (int64_t t = 0; t < keys; t++) {
        double score = 0, size = 0;
        for (int64_t d = 0; d < dim; d++) {
            score += (double)q[d] * k[t * dim + d];
            size += fabs((double)q[d] * k[t * dim + d]);
        }
        p[t] = scale * score;
        most = fmax(most, p[t]);
        score_error = fmax(score_error, scale * size * (double)(dim + 3) * u);
    }
    for (int64_t t = 0; t < keys; t++)
        sum += p[t] = exp(p[t] - most);
    double relative = 2 * score_error + (2 * (double)keys + 16) * u;
    for (int64_t d = 0; d < vdim; d++) {
        double value = 0, size = 0;
        for (int64_t t = 0; t < keys; t++) {
            value += p[t] / sum * v[t * vdim + d];
            size += p[t] / sum * fabs((double)v[t * vdim + d]);
        }
        out[d] = value;
        bound[d] = relative * size;
    }
}

/* Up to 24 rows, spread over sequences, heads and queries. */
static int verify(job *j, double *worst)
{
    enum { ROWS = 24 };
    const int64_t all = batch * heads * tq, rows = all < ROWS ? all : ROWS;
    double *p = malloc((size_t)tk * sizeof *p), *out = malloc(2 * (size_t)vdim * sizeof *out);
    int code = p && out ? once(j) : cli_fail_memory();
    *worst = 0;
    for (int64_t r = 0; !code && r < rows; r++) {
        int64_t at = rows > 1 ? (int64_t)((double)r * (double)(all - 1) / (double)(rows - 1)) : 0;
        int64_t i = at % tq, head = at / tq % heads, b = at / tq / heads;
        int64_t kv = b * kv_heads + head / (heads / kv_heads);
        row(j->q + at * dim, j->k + kv * tk * dim, j->v + kv * tk * vdim, visible(i), p, out, out + vdim);
        for (int64_t d = 0; !code && d < vdim; d++) {
            double x = (double)j->out[at * vdim + d], e = bench_error(x, out[d], out[vdim + d]);
            if (e > 1)
                code = cli_fail("bench attention: out[%lld][%lld][%lld][%lld] is %.9g, but must be %.9g", (long long)b,
                                (long long)head, (long long)i, (long long)d, x, out[d]);
            *worst = fmax(*worst, e);
        }
        if (!code && cli_signal)
            code = CLI_INTERRUPTED;
    }
    free(p);
    free(out);
    return code;
}

/* ---- ------------------------------------------------------------------------ */

static int prepare(job *j)
{
    const att_attention_spec spec = {
        .size = sizeof spec,
        .heads = heads,
        .kv_heads = kv_heads,
        .head_dim = dim,
        .value_dim = vdim,
        .dtype = ATT_F32,
        .mask = {causal < 0 ? NULL : &att_mask_causal},
        .align = causal < 0           ? ATT_ALIGN_UNSET
                 : causal == TOP_LEFT ? ATT_ALIGN_TOP_LEFT
                                      : ATT_ALIGN_BOTTOM_RIGHT,
    };
    int code = cli_status(j->ctx, att_plan_new(j->ctx, &spec, &j->plan));
    if (!code)
        code = bench_numbers(j->ctx, &j->q, 1, 4, (const int64_t[]){batch, heads, tq, dim});
    if (!code)
        code = bench_numbers(j->ctx, &j->k, 2, 4, (const int64_t[]){batch, kv_heads, tk, dim});
    if (!code)
        code = bench_numbers(j->ctx, &j->v, 3, 4, (const int64_t[]){batch, kv_heads, tk, vdim});
    if (!code)
        code = bench_numbers(j->ctx, &j->out, 4, 4, (const int64_t[]){batch, heads, tq, vdim});
    if (code)
        return code;
    j->args = (att_attention_args){.size = sizeof j->args};
    att_wrap(&j->args.q, j->q, ATT_F32, ATT_DIMS(batch, heads, tq, dim), NULL);
    att_wrap(&j->args.k, j->k, ATT_F32, ATT_DIMS(batch, kv_heads, tk, dim), NULL);
    att_wrap(&j->args.v, j->v, ATT_F32, ATT_DIMS(batch, kv_heads, tk, vdim), NULL);
    att_wrap(&j->args.out, j->out, ATT_F32, ATT_DIMS(batch, heads, tq, vdim), NULL);
    return CLI_DONE;
}

static void report(const job *j, const bench_times *times, double error)
{
    static const char *const align[] = {"none", "top-left", "bottom-right"};
    char shape[320];
    snprintf(shape, sizeof shape,
             "\"batch\": %lld, \"heads\": %lld, \"kv_heads\": %lld, \"tq\": %lld, \"tk\": %lld, \"dim\": %lld, "
             "\"vdim\": %lld, \"causal\": \"%s\", \"dtype\": \"f32\", \"pass\": \"fwd\"",
             (long long)batch, (long long)heads, (long long)kv_heads, (long long)tq, (long long)tk, (long long)dim,
             (long long)vdim, align[causal + 1]);
    double flops = 2.0 * (double)(dim + vdim) * (double)batch * (double)heads * (double)tq * (double)tk;
    bench_report(j->ctx, "attention", shape, causal < 0 ? flops : flops / 2, times, error, common.json);
}

static int run(int argc, char **arguments)
{
    (void)argc;
    (void)arguments;
    kv_heads = kv_heads ? kv_heads : heads;
    tk = tk ? tk : tq;
    vdim = vdim ? vdim : dim;
    if (heads % kv_heads)
        return cli_misuse("--kv-heads: %lld does not divide the %lld heads", (long long)kv_heads, (long long)heads);
    job j = {0};
    bench_times times;
    double error = -1;
    int code = cli_open(&j.ctx, common.threads);
    if (code)
        return code;
    code = prepare(&j);
    if (!code && !common.no_verify)
        code = verify(&j, &error);
    if (!code)
        code = bench_measure(j.ctx, common.repeat, once, &j, &times);
    if (!code)
        report(&j, &times, error);
    att_plan_free(j.plan);
    att_free(j.ctx, j.q);
    att_free(j.ctx, j.k);
    att_free(j.ctx, j.v);
    att_free(j.ctx, j.out);
    att_close(j.ctx);
    return code;
}

const cli_command bench_attention = {
    .name = "attention",
    .summary = "scaled dot-product attention",
    .details = "Floating-point operations are 2 (dim + vdim) for each query and key; causal\n"
               "counts as half of that.",
    .examples = "attend bench attention --batch 8 --heads 12 --tq 128 --dim 64\n"
                "attend bench attention --tq 4096 --causal top-left --threads 1 --json",
    .options = options,
    .run = run,
};
