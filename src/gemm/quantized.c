/* Products with quantized matrices: rows of A are quantized first; then each task has some rows by some panels of B. */
#include "gemm/gemm.h"

typedef struct rows_job {
    const att_kernels *kernels;
    int64_t blocks, tasks; /* blocks of all rows */
    const float *a;
    float *words, *step, *sum, *half; /* half: or NULL */
} rows_job;

typedef struct quantized_job {
    const att_kernels *kernels;
    att_quantized_run *run;
    const att_quantized_product *product;
    att_quantized_args args;
    int64_t rows, row_tasks;  /* rows of a task, and tasks over rows */
    int64_t n_panels, groups; /* panels of B, and tasks over panels */
} quantized_job;

enum {
    WORD = 4, /* numbers */
    MIN_ROWS = 64,
    MAX_ROWS = 256, /* of a task, which unpacks each panel of B once */
    TASKS_PER_THREAD = 8,
    QUANTIZED = 256 /* blocks of a task that quantizes */
};

size_t att_quantized_scratch(int64_t m, int64_t k)
{
    return att_size_mul((size_t)m, (size_t)(k / WORD + 3 * (k / ATT_QUANTIZED_BLOCK)));
}

/* Returns whether numbers of a type have scales of each 16. */
static bool has_sixteens(int type) { return type == ATT_Q6_K || type == ATT_Q3_K || type == ATT_Q2_K; }

/* Adds the first 16 numbers of each of n blocks -> half [n] */
static void add_halves(int64_t n, const float *words, float *half)
{
    enum { HALF = ATT_QUANTIZED_BLOCK / 2 };
    const int8_t *p = (const int8_t *)words;
    for (int64_t b = 0; b < n; b++, p += ATT_QUANTIZED_BLOCK) {
        int sum = 0;
        for (int i = 0; i < HALF; i++)
            sum += p[i];
        half[b] = (float)sum;
    }
}

static void quantize_task(void *arg, int64_t i, int thread)
{
    (void)thread;
    const rows_job *j = arg;
    const int64_t first = j->blocks * i / j->tasks, n = j->blocks * (i + 1) / j->tasks - first;
    j->kernels->quantized.quantize(n * ATT_QUANTIZED_BLOCK, j->a + first * ATT_QUANTIZED_BLOCK,
                                   j->words + first * (ATT_QUANTIZED_BLOCK / WORD), j->step + first, j->sum + first);
    if (j->half)
        add_halves(n, j->words + first * (ATT_QUANTIZED_BLOCK / WORD), j->half + first);
}

void att_quantize_rows(att_ctx *ctx, int64_t m, int64_t k, const float *a, float *scratch, att_quantized_args *args)
{
    const int64_t blocks = m * (k / ATT_QUANTIZED_BLOCK), tasks = att_ceil_div(blocks, QUANTIZED);
    float *step = scratch + m * (k / WORD), *sum = step + blocks,
          *half = has_sixteens(args->type) ? sum + blocks : NULL;
    att_parallel_partition(ctx, tasks, quantize_task,
                           &(rows_job){att_kernels_of(ctx->isa), blocks, tasks, a, scratch, step, sum, half});
    args->m = m;
    args->k = k;
    args->words = scratch;
    args->step = step;
    args->sum = sum;
    args->half = half;
}

static void multiply_task(void *arg, int64_t i, int thread)
{
    (void)thread;
    const quantized_job *j = arg;
    const int64_t row = i % j->row_tasks * j->rows, group = i / j->row_tasks, blocks = j->args.k / ATT_QUANTIZED_BLOCK;
    att_quantized_args part = j->args;
    part.m = att_min(j->rows, part.m - row);
    part.words += row * (part.k / WORD);
    part.step += row * blocks;
    part.sum += row * blocks;
    part.half = part.half ? part.half + row * blocks : NULL;
    part.c += row * part.ldc;
    part.first = j->n_panels * group / j->groups;
    part.last = j->n_panels * (group + 1) / j->groups;
    j->run(&part);
    if (j->product->epilogue) {
        const int64_t column = part.first * j->kernels->nr, end = att_min(part.last * j->kernels->nr, part.n);
        j->kernels->gemm.finish(part.m, end - column, part.c + column, part.ldc, j->product->epilogue, row, column);
    }
}

att_quantized_run *att_quantized_run_of(const att_ctx *ctx, int64_t m, int type)
{
    const att_quantized_kernels *k = &att_kernels_of(ctx->isa)->quantized;
    const bool fits = m > ATT_QUANTIZED_SMALL && !has_sixteens(type);
    return fits && k->run_tiles && att_os_allow_tiles() ? k->run_tiles : k->run;
}

void att_quantized_multiply(att_ctx *ctx, const att_quantized_product *p, float *scratch)
{
    quantized_job j = {
        .kernels = att_kernels_of(ctx->isa),
        .run = att_quantized_run_of(ctx, p->m, p->type),
        .product = p,
        .args = {.n = p->n, .type = p->type, .b = p->b, .row_bytes = p->row_bytes, .c = p->c, .ldc = p->ldc}};
    if (p->m == 0 || p->n == 0)
        return;
    att_quantize_rows(ctx, p->m, p->k, p->a, scratch, &j.args);
    j.n_panels = att_ceil_div(p->n, j.kernels->nr);
    const int64_t tasks = (int64_t)att_threads(ctx) * TASKS_PER_THREAD;
    const int64_t wanted = att_max(att_ceil_div(p->m, MAX_ROWS), att_ceil_div(tasks, j.n_panels));
    j.row_tasks = att_min(wanted, att_ceil_div(p->m, MIN_ROWS));
    j.rows = att_ceil_div(p->m, j.row_tasks);
    j.groups = att_min(j.n_panels, att_max(1, att_ceil_div(tasks, j.row_tasks)));
    att_parallel_partition(ctx, j.row_tasks * j.groups, multiply_task, &j);
}
