/* attend bench gemm: a linear layer as models use it: parameter, tape, att_linear. */
#include "attend_util.h"
#include "bench.h"

#include <attend_learn.h>

#include <math.h>

static int64_t m = 1024, n = 1024, k = 1024;
static int compute; /* an att_compute */
static bench_options common = {.seconds = 1};

static const cli_option options[] = {
    {"m", 'm', "N", .integer = &m, .min = 1, .max = 1e9, .help = "rows of x and out"},
    {"n", 'n', "N", .integer = &n, .min = 1, .max = 1e9, .help = "columns of out, rows of the weight"},
    {"k", 'k', "N", .integer = &k, .min = 1, .max = 1e9, .help = "columns of x and of the weight"},
    CLI_COMPUTE(&compute, "type of the numbers that are multiplied, and summed in f32"),
    CLI_THREADS(&common.threads),
    BENCH_REPEAT(&common.repeat),
    BENCH_SECONDS(&common.seconds),
    BENCH_NO_VERIFY(&common.no_verify),
    CLI_JSON(&common.json),
    {0},
};

typedef struct gemm_job {
    att_ctx *ctx;
    att_tape *tape;
    att_tensor x;      /* [m, k] */
    att_param *weight; /* [n, k] */
    att_tensor out;    /* [m, n], after once() */
} gemm_job;

static int once(void *arg)
{
    gemm_job *j = arg;
    att_tape_reset(j->tape);
    att_var *y = att_linear(j->tape, att_input(j->tape, &j->x), j->weight, NULL, ATT_ACTIVATION_IDENTITY, NULL);
    return cli_status(j->ctx, att_var_value(j->tape, y, &j->out));
}

/* Checks up to 16 rows, the first and the last among them, against sums in double. A chain of k products and sums in
 * float is off by at most k u / (1 - k u) times the sum of absolute products (Higham 2002, 3.5), u = 2^-24. Numbers
 * that are rounded to bf16 are off by up to 2^-9 of them, so their products by up to 2^-8 (1 + 2^-10). */
static int verify(gemm_job *j, double *worst)
{
    enum { ROWS = 16 };
    int code = once(j);
    const float *x = j->x.data, *w = att_param_value(j->weight)->data, *out = j->out.data;
    const double ku = (double)k * 0x1p-24, rounded = compute == ATT_COMPUTE_BF16 ? 0x1p-8 * (1 + 0x1p-10) : 0;
    int64_t rows = m < ROWS ? m : ROWS;
    *worst = 0;
    for (int64_t r = 0; !code && r < rows; r++) {
        int64_t i = rows > 1 ? r * (m - 1) / (rows - 1) : 0;
        for (int64_t c = 0; c < n; c++) {
            double sum = 0, size = 0;
            for (int64_t p = 0; p < k; p++) {
                double term = (double)x[i * k + p] * w[c * k + p];
                sum += term;
                size += fabs(term);
            }
            double e =
                bench_error((double)out[i * n + c], sum, (rounded + (1 + rounded) * ku / (1 - fmin(ku, 0.5))) * size);
            if (e > 1)
                return cli_fail("bench gemm: out[%lld][%lld] is %.9g, but must be %.9g", (long long)i, (long long)c,
                                (double)out[i * n + c], sum);
            *worst = fmax(*worst, e);
        }
    }
    return code;
}

static int run(int argc, char **arguments)
{
    (void)argc;
    (void)arguments;
    gemm_job j = {0};
    float *x = NULL, *w = NULL;
    bench_times times;
    double error = -1;
    att_tensor weight;
    int code = cli_open(&j.ctx, common.threads);
    if (code)
        return code;
    code = bench_numbers(j.ctx, &x, 1, 2, (const int64_t[]){m, k});
    if (!code)
        code = bench_numbers(j.ctx, &w, 2, 2, (const int64_t[]){n, k});
    if (!code)
        code = cli_status(j.ctx, att_wrap(&j.x, x, ATT_F32, ATT_DIMS(m, k), NULL));
    if (!code)
        code = cli_status(j.ctx, att_wrap(&weight, w, ATT_F32, ATT_DIMS(n, k), NULL));
    if (!code)
        code = cli_status(j.ctx, att_param_new(j.ctx, &weight, &j.weight));
    if (!code)
        code = cli_status(j.ctx,
                          att_tape_new(j.ctx, ATT_OPTIONS(att_tape_config, .compute = (att_compute)compute), &j.tape));
    if (!code)
        compute = (int)att_tape_compute(j.tape);
    if (!code && !common.no_verify)
        code = verify(&j, &error);
    if (!code)
        code = bench_measure(j.ctx, common.repeat, common.seconds, once, &j, &times);
    if (!code) {
        char title[96];
        snprintf(title, sizeof title, "m %lld, n %lld, k %lld", (long long)m, (long long)n, (long long)k);
        code = bench_report(j.ctx, "gemm", title,
                            json_pack("{s:I, s:I, s:I, s:s}", "m", (json_int_t)m, "n", (json_int_t)n, "k",
                                      (json_int_t)k, "compute", att_compute_name((att_compute)compute)),
                            2.0 * (double)m * (double)n * (double)k, &times, error, common.json);
    }
    att_tape_free(j.tape);
    att_param_free(j.weight);
    att_free(j.ctx, x);
    att_free(j.ctx, w);
    att_close(j.ctx);
    return code;
}

const cli_command bench_gemm = {
    .name = "gemm",
    .summary = "measure the product of two matrices",
    .details = "out[m, n] = x[m, k] weight[n, k]^T, as models compute it: a linear layer whose weight is packed once.",
    .examples = "attend bench gemm --m 512 --n 1536 --k 384 --threads 1",
    .options = options,
    .see = "bench attention|bench peak",
    .run = run,
};
