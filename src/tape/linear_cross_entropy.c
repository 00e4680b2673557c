/* Cross entropy of the logits x weight^T + bias, which are never stored as a whole (Liger-Kernel, Hsu et al. 2024; Cut
 * Cross-Entropy, Wijmans et al. 2025).
 *
 * Forward and backward process blocks of rows, and in each of these blocks of classes, whose logits stay in the cache.
 * Forward updates a maximum and a sum of exponentials for each row (online softmax). Backward computes the logits of a
 * block again, which costs one more product, replaces them by their gradient dz, and adds dz W to dx, dz^T x to dW and
 * the sums of the columns of dz to db. Elements of products are ascending chains, which the next block continues, as in
 * att_linear. */
#include "tape/cross_entropy.h"
#include "base/math.h"

#include <math.h>
#include <string.h>

enum {
    ROWS = 1024, /* rows of a block: weights are packed again for each block of rows */
    CLASSES = 512,
    GAP = 16 /* numbers between rows of a block, so that they do not all map to the same set of a cache */
};

/* The operands, and a block: rows [row, row + rows), classes [first, first + classes) */
typedef struct logits_block {
    const att_cross_entropy_saved *how;
    int64_t features;
    const float *x, *bias;       /* [all rows, features], [all classes] or NULL */
    const att_param *of;         /* the weight [all classes, features] */
    float *converted;            /* rows of a block of a weight that is not f32, converted to f32 */
    const float *weight;         /* rows of the block [classes, features] */
    const att_tensor *quantized; /* instead of weight, or NULL */
    int64_t max_rows, max_classes;
    int64_t row, rows, first, classes;
    float *z; /* [rows, stride] */
    int64_t stride;
    float *packed;  /* weight of the block, for one of the products; or scratch of quantized ones */
    bool bf16;      /* products round to bf16 */
    float *rounded; /* scratch of those */
} logits_block;

/* Packs a [n, k] for products, element (j, p) at x[j * row + p * column]. */
static void pack(att_ctx *ctx, const logits_block *b, int64_t n, int64_t k, att_matrix a, float *packed)
{
    if (b->bf16)
        att_bf16_pack(ctx, n, k, a, false, packed);
    else
        att_gemm_pack(ctx, n, k, a.x, a.row, a.column, packed);
}

static size_t packed_count(const att_ctx *ctx, const logits_block *b, int64_t n, int64_t k)
{
    return b->bf16 ? att_bf16_packed_count(ctx, n, k) : att_gemm_packed_count(ctx, n, k);
}

static void multiply(att_ctx *ctx, const logits_block *b, const att_gemm_args *product)
{
    if (b->bf16)
        att_bf16_multiply(ctx, product, 1, b->rounded);
    else
        att_gemm(ctx, product);
}

/* Returns the scratch memory of the products of a block with each other's rows: x, dz and its transpose. */
static size_t rounded_count(const att_ctx *ctx, const logits_block *b)
{
    const int64_t rows = b->max_rows, classes = b->max_classes;
    return b->bf16 ? att_bf16_scratch(ctx, att_max(rows, classes), att_max(b->features, att_max(rows, classes))) : 0;
}

/* Sets the operands of a step and allocates the block; false: error set. */
static bool begin(att_tape *t, const att_step *s, logits_block *b)
{
    const int64_t rows = s->in[0]->value.dim[0], features = s->in[0]->value.dim[1];
    b->how = s->saved;
    b->features = features;
    b->x = s->in[0]->value.data;
    const att_tensor *weight = att_param_value(s->param[0]);
    b->of = s->param[0];
    if (att_is_quantized(weight->dtype) && !t->for_backward)
        b->quantized = weight;
    b->bias = s->param[1] ? att_param_floats(s->param[1]) : NULL;
    if (s->param[1] && !b->bias && weight->dim[0] > 0)
        return false;
    b->max_rows = att_min(rows, ROWS);
    b->max_classes = att_min(b->how->classes, CLASSES);
    b->stride = b->max_classes + GAP;
    b->z = att_tape_scratch(t, (size_t)(b->max_rows * b->stride));
    b->bf16 = att_tape_in_bf16(t, b->of);
    b->rounded = att_tape_scratch(t, rounded_count(t->ctx, b));
    const size_t forward = packed_count(t->ctx, b, b->max_classes, features);
    const size_t backward = packed_count(t->ctx, b, features, b->max_classes);
    const size_t largest = forward > backward ? forward : backward;
    const size_t whole = b->quantized ? att_quantized_scratch(b->max_rows, features) : 0;
    b->packed = att_tape_scratch(t, whole > largest ? whole : largest);
    const bool whole_rows = b->quantized || att_param_block_count(b->of) == 0;
    b->converted = att_tape_scratch(t, whole_rows ? 0 : (size_t)(b->max_classes * features));
    return b->z && b->packed && b->converted && b->rounded;
}

/* Computes the logits of the block from class `first` on. */
static void compute_logits(att_ctx *ctx, logits_block *b, int64_t first)
{
    const att_epilogue epilogue = {.bias = b->bias ? b->bias + first : NULL};
    const float *x = b->x + b->row * b->features;
    b->first = first;
    b->classes = att_min(b->max_classes, b->how->classes - first);
    if (b->quantized) {
        const att_tensor *w = b->quantized;
        const int64_t row_bytes = att_dtype_bytes(w->dtype, w->stride[0]);
        att_quantized_multiply(ctx,
                               &(const att_quantized_product){.m = b->rows,
                                                              .n = b->classes,
                                                              .k = b->features,
                                                              .a = x,
                                                              .type = (int)w->dtype,
                                                              .b = (const char *)w->data + first * row_bytes,
                                                              .row_bytes = row_bytes,
                                                              .c = b->z,
                                                              .ldc = b->stride,
                                                              .epilogue = &epilogue},
                               b->packed);
        return;
    }
    b->weight = att_param_read_block(b->of, first, b->classes, b->converted);
    pack(ctx, b, b->classes, b->features, (att_matrix){b->weight, b->features, 1}, b->packed);
    multiply(ctx, b,
             &(const att_gemm_args){.m = b->rows,
                                    .n = b->classes,
                                    .k = b->features,
                                    .a = x,
                                    .lda = b->features,
                                    .packed = b->packed,
                                    .c = b->z,
                                    .ldc = b->stride,
                                    .epilogue = &epilogue});
}

/* Returns the logit of row i's target, if the block has it. */
static float *target_logit(const logits_block *b, int64_t i)
{
    const int64_t target = b->how->targets[b->row + i];
    return target >= b->first && target < b->first + b->classes ? b->z + i * b->stride + target - b->first : NULL;
}

/* ---- backward */

typedef struct backward_job {
    logits_block b;
    const att_kernels *k;
    float factor;      /* of the gradient: dy / divisor */
    float *transposed; /* dz^T, [max_classes, rows_stride] */
    int64_t rows_stride;
    float *packed_x;     /* the block's rows of x */
    float *dx, *dw, *db; /* as x, weight, bias; NULL: not wanted */
    bool add_x, add_w;   /* dx and dw have been written before: add to them */
} backward_job;

/* Replaces the logits of rows by dz = (softmax - target distribution) dy / divisor, and transposes that. */
static void logits_back(const void *arg, int64_t first, int64_t last)
{
    const backward_job *j = arg;
    const logits_block *b = &j->b;
    const att_cross_entropy_saved *how = b->how;
    for (int64_t i = first; i < last; i++) {
        float *z = b->z + i * b->stride, *target = target_logit(b, i);
        if (how->targets[b->row + i] < 0)
            memset(z, 0, (size_t)b->classes * sizeof *z);
        else
            j->k->layer.cross_entropy_back(b->classes, z, how->lse[b->row + i], how->share, j->factor, z);
        if (target)
            *target -= j->factor * (1 - how->label_smoothing);
    }
    j->k->vector.transpose(last - first, b->classes, b->z + first * b->stride, b->stride, j->transposed + first,
                           j->rows_stride);
}

static void bias_back(const void *arg, int64_t first, int64_t last)
{
    const backward_job *j = arg;
    for (int64_t c = first; c < last; c++)
        j->db[j->b.first + c] += j->k->vector.sum(j->b.rows, j->transposed + c * j->rows_stride);
}

static void block_back(att_ctx *ctx, backward_job *j)
{
    const logits_block *b = &j->b;
    const int64_t features = b->features;
    att_tape_for_rows(ctx, b->rows, b->classes, logits_back, j);
    if (j->db)
        att_tape_for_rows(ctx, b->classes, b->rows, bias_back, j);
    if (j->dx) {
        pack(ctx, b, features, b->classes, (att_matrix){b->weight, 1, features}, b->packed);
        multiply(ctx, b,
                 &(const att_gemm_args){.m = b->rows,
                                        .n = features,
                                        .k = b->classes,
                                        .a = b->z,
                                        .lda = b->stride,
                                        .packed = b->packed,
                                        .c = j->dx + b->row * features,
                                        .ldc = features,
                                        .epilogue = &(const att_epilogue){.add = j->add_x || b->first > 0}});
    }
    if (j->dw)
        multiply(ctx, b,
                 &(const att_gemm_args){.m = b->classes,
                                        .n = features,
                                        .k = b->rows,
                                        .a = j->transposed,
                                        .lda = j->rows_stride,
                                        .packed = j->packed_x,
                                        .c = j->dw + b->first * features,
                                        .ldc = features,
                                        .epilogue = &(const att_epilogue){.add = j->add_w || b->row > 0}});
}

static att_status backward(att_tape *t, const att_step *s)
{
    const int64_t rows = s->in[0]->value.dim[0];
    backward_job j = {.k = att_kernels_of(t->ctx->isa)};
    logits_block *b = &j.b;
    if (!begin(t, s, b))
        return ATT_ERR_MEMORY;
    const int64_t classes = b->how->classes, features = b->features;
    j.rows_stride = b->max_rows + GAP;
    j.transposed = att_tape_scratch(t, (size_t)(b->max_classes * j.rows_stride));
    j.packed_x = att_tape_scratch(t, packed_count(t->ctx, b, features, b->max_rows));
    if (!j.transposed || !j.packed_x)
        return ATT_ERR_MEMORY;
    if (rows == 0 || classes == 0)
        return ATT_OK;
    j.factor = (float)((double)*s->y->grad / (double)b->how->divisor);
    j.dx = att_tape_grad_for_write(s->in[0], &j.add_x);
    j.dw = att_param_partial_for_write(s->param[0], &j.add_w);
    j.db = att_param_partial(s->param[1]);
    if (j.dw && !j.add_w)
        memset(j.dw + classes * features, 0, (size_t)((b->how->all - classes) * features) * sizeof *j.dw);
    for (b->row = 0; b->row < rows; b->row += b->max_rows) {
        b->rows = att_min(b->max_rows, rows - b->row);
        if (j.dw)
            pack(t->ctx, b, features, b->rows, (att_matrix){b->x + b->row * features, 1, features}, j.packed_x);
        for (int64_t first = 0; first < classes; first += b->max_classes) {
            compute_logits(t->ctx, b, first);
            block_back(t->ctx, &j);
        }
    }
    return ATT_OK;
}

const att_operation att_operation_linear_cross_entropy = {.name = "linear_cross_entropy", .backward = backward};

/* ---- forward */

/* Sums over the classes of a row so far. */
typedef struct row_sums {
    double max, sum; /* sum of e^(z - max) */
    double total;    /* sum of z, if labels are smoothed */
    double target;   /* z of the target */
} row_sums;

typedef struct forward_job {
    logits_block b;
    const att_kernels *k;
    row_sums *sums; /* [max_rows] */
    float *loss;    /* [all rows] */
} forward_job;

/* Returns the sum of e^(z - new_max), from that of e^(z - max). */
static double rescaled(double sum, double max, double new_max)
{
    return max == new_max ? sum : sum * att_f64_exp(max - new_max);
}

static void merge_rows(const void *arg, int64_t first, int64_t last)
{
    const forward_job *j = arg;
    const logits_block *b = &j->b;
    for (int64_t i = first; i < last; i++) {
        row_sums *s = &j->sums[i];
        const float *z = b->z + i * b->stride, *target = target_logit(b, i);
        float max, sum;
        j->k->layer.sum_exp(b->classes, z, &max, &sum);
        const double new_max = att_fmax((double)max, s->max);
        s->sum = rescaled(s->sum, s->max, new_max) + rescaled((double)sum, (double)max, new_max);
        s->max = new_max;
        if (b->how->label_smoothing > 0)
            s->total += (double)j->k->vector.sum(b->classes, z);
        if (target)
            s->target = (double)*target;
    }
}

static void row_losses(const void *arg, int64_t first, int64_t last)
{
    const forward_job *j = arg;
    const att_cross_entropy_saved *how = j->b.how;
    for (int64_t i = first; i < last; i++) {
        const int64_t row = j->b.row + i;
        const row_sums *s = &j->sums[i];
        const double lse = s->max + att_f64_log(s->sum), smoothing = (double)how->label_smoothing;
        how->lse[row] = (float)lse;
        j->loss[row] =
            how->targets[row] < 0 ? 0 : (float)(lse - (1 - smoothing) * s->target - (double)how->share * s->total);
    }
}

/* Computes the loss of a step into its y; false: error set. */
static bool forward(att_tape *t, const att_step *s)
{
    const size_t mark = att_arena_mark(&t->arena);
    const int64_t rows = s->in[0]->value.dim[0];
    forward_job j = {.k = att_kernels_of(t->ctx->isa)};
    logits_block *b = &j.b;
    bool good = begin(t, s, b);
    j.sums = att_arena_alloc(&t->arena, (size_t)b->max_rows * sizeof *j.sums);
    j.loss = att_tape_scratch(t, (size_t)rows);
    good = good && j.sums && j.loss;
    for (b->row = 0; good && b->row < rows; b->row += b->max_rows) {
        b->rows = att_min(b->max_rows, rows - b->row);
        for (int64_t i = 0; i < b->rows; i++)
            j.sums[i] = (row_sums){.max = (double)-INFINITY};
        for (int64_t first = 0; first < b->how->classes; first += b->max_classes) {
            compute_logits(t->ctx, b, first);
            att_tape_for_rows(t->ctx, b->rows, b->classes, merge_rows, &j);
        }
        att_tape_for_rows(t->ctx, b->rows, 1, row_losses, &j);
    }
    if (good)
        att_tape_total(t->ctx, rows, j.loss, b->how->divisor, s->y->value.data);
    att_arena_release(&t->arena, mark);
    return good;
}

att_var *att_linear_cross_entropy(att_tape *t, att_var *x, att_param *weight, att_param *bias, const int32_t *targets,
                                  const att_cross_entropy_options *options)
{
    static const char op[] = "linear_cross_entropy";
    if (!x || !att_tape_ready(t) || !att_tape_check_linear(t, op, &x->value, weight, bias))
        return NULL;
    att_cross_entropy_saved how;
    const int64_t dim[] = {x->value.dim[0], att_param_value(weight)->dim[0]};
    att_var *y = att_tape_var(t, 1, (const int64_t[]){1});
    if (!y || !att_tape_save_cross_entropy(t, op, dim, targets, options, &how))
        return NULL;
    const att_step step = {.op = &att_operation_linear_cross_entropy,
                           .y = y,
                           .in = &x,
                           .n_in = 1,
                           .param = (att_param *[]){weight, bias},
                           .n_param = 2,
                           .saved = &how,
                           .saved_bytes = sizeof how};
    if (!forward(t, &step))
        return att_tape_fail(t, ATT_ERR_MEMORY, "%s: %s", op, att_error(t->ctx));
    return att_tape_done(t, &step, NULL, NULL);
}
