/* 2-D convolution by im2col: patches of the images become rows of a matrix, which is multiplied with the weights
 * (Chellapilla et al. 2006). A patch is copied by lines, [kernel[0], kernel[1], channels] as images are. So weights,
 * which models have as [out, channels, kernel[0], kernel[1]], are reordered. */
#include "tape/tape.h"
#include "gemm/gemm.h"

#include <string.h>

/* Elements of the patch matrix at a time. The number of rows depends only on shapes, not on the number of threads. */
enum { PATCHES = 1 << 19 };

typedef struct patches {
    att_window w;
    const float *x; /* [images, height, width, channels] */
    int64_t first;  /* first patch, counted through lines and images */
    int64_t length; /* kernel[0] * kernel[1] * channels */
    float *rows;    /* [rows, length] */
} patches;

/* Finds which columns of a line of a patch are in the image: [*first, *last); others are padding. left: its first
 * column. */
static void columns_inside(const att_window *w, int64_t left, int64_t *first, int64_t *last)
{
    *first = att_min(left < 0 ? -left : 0, w->kernel[1]);
    *last = att_max(*first, att_min(w->kernel[1], w->size[1] - left));
}

static void gather_patch(const patches *p, int64_t patch, float *to)
{
    const att_window *w = &p->w;
    const int64_t image = patch / (w->out[0] * w->out[1]), channels = w->channels;
    const int64_t top = patch / w->out[1] % w->out[0] * w->stride[0] - w->padding[0];
    const int64_t left = patch % w->out[1] * w->stride[1] - w->padding[1];
    int64_t inside[2];
    columns_inside(w, left, &inside[0], &inside[1]);
    const size_t before = (size_t)(inside[0] * channels) * sizeof *to,
                 bytes = (size_t)((inside[1] - inside[0]) * channels) * sizeof *to,
                 after = (size_t)((w->kernel[1] - inside[1]) * channels) * sizeof *to;
    for (int64_t y = top; y < top + w->kernel[0]; y++, to += w->kernel[1] * channels) {
        if (y < 0 || y >= w->size[0]) {
            memset(to, 0, before + bytes + after);
            continue;
        }
        memset(to, 0, before);
        memcpy(to + inside[0] * channels, p->x + ((image * w->size[0] + y) * w->size[1] + left + inside[0]) * channels,
               bytes);
        memset(to + inside[1] * channels, 0, after);
    }
}

static void gather(const void *arg, int64_t first, int64_t last)
{
    const patches *p = arg;
    for (int64_t r = first; r < last; r++)
        gather_patch(p, p->first + r, p->rows + r * p->length);
}

static int64_t patches_at_once(const att_window *w, int64_t length)
{
    const int64_t lines = PATCHES / (w->out[1] * length > 0 ? w->out[1] * length : 1);
    return (lines < 1 ? 1 : lines < w->out[0] ? lines : w->out[0]) * w->out[1];
}

/* ---- backward */

typedef struct spread {
    att_window w;
    const att_kernels *k;
    const float *rows; /* gradients of patches: whole output lines of one image */
    int64_t line;      /* the first of these lines */
    int64_t lines, length;
    float *dx; /* of this image: [height, width, channels] */
} spread;

/* Adds the gradients of patches to lines [first, last) of the image, in ascending order (col2im). */
static void spread_lines(const void *arg, int64_t first, int64_t last)
{
    const spread *s = arg;
    const att_window *w = &s->w;
    const int64_t of_line = w->kernel[1] * w->channels;
    for (int64_t y = first; y < last; y++)
        for (int64_t line = s->line; line < s->line + s->lines; line++) {
            const int64_t ky = y + w->padding[0] - line * w->stride[0];
            if (ky < 0 || ky >= w->kernel[0])
                continue;
            const float *from = s->rows + (line - s->line) * w->out[1] * s->length + ky * of_line;
            for (int64_t column = 0; column < w->out[1]; column++, from += s->length) {
                const int64_t left = column * w->stride[1] - w->padding[1];
                int64_t inside[2];
                columns_inside(w, left, &inside[0], &inside[1]);
                float *to = s->dx + (y * w->size[1] + left + inside[0]) * w->channels;
                s->k->vector.add((inside[1] - inside[0]) * w->channels, to, from + inside[0] * w->channels, to);
            }
        }
}

typedef struct back {
    patches p;
    int64_t n; /* output channels */
    const float *dy;
    float *dweight;      /* [n, length], as patches are */
    bool learns;         /* dweight is wanted; false: it is scratch memory */
    float *dx;           /* NULL: not required, as the following */
    const float *packed; /* weights [n, length], packed for dy W; NULL if dx is NULL */
    float *rows;         /* gradients of patches [max rows, length] */
} back;

/* Computes the backward of some output lines of one image: the patches for the gradient of the weights, unless they are
 * frozen, and dy W for the gradient of x. */
static att_status lines_back(att_tape *t, back *b, int64_t image, int64_t line, int64_t lines)
{
    const att_window *w = &b->p.w;
    const int64_t m = lines * w->out[1], k = b->p.length;
    b->p.first = (image * w->out[0] + line) * w->out[1];
    const float *dy = b->dy + b->p.first * b->n;
    if (b->learns)
        att_tape_for_rows(t->ctx, m, k, gather, &b->p);
    const att_matmul_args dweight = {
        .m = b->n, .n = k, .k = m, .a = {dy, 1, b->n}, .b = {b->p.rows, k, 1}, .add = true, .c = b->dweight, .ldc = k};
    const att_status e = b->learns ? att_tape_product(t, &dweight) : ATT_OK;
    if (e || !b->dx)
        return e;
    att_gemm(t->ctx, &(const att_gemm_args){
                         .m = m, .n = k, .k = b->n, .a = dy, .lda = b->n, .packed = b->packed, .c = b->rows, .ldc = k});
    const spread s = {.w = *w,
                      .k = att_kernels_of(t->ctx->isa),
                      .rows = b->rows,
                      .line = line,
                      .lines = lines,
                      .length = k,
                      .dx = b->dx + image * w->size[0] * w->size[1] * w->channels};
    att_tape_for_rows(t->ctx, w->size[0], w->size[1] * w->channels * w->kernel[0] * w->kernel[1], spread_lines, &s);
    return ATT_OK;
}

/* Allocates scratch memory and packs the weights for dy W; false: error set. */
static bool prepare(att_tape *t, back *b, att_param *weight, int64_t max_rows)
{
    const att_window *w = &b->p.w;
    const int64_t n = b->n, k = b->p.length;
    const size_t rows = att_size_mul((size_t)max_rows, (size_t)k);
    b->p.rows = att_tape_scratch(t, rows);
    b->dweight = att_tape_scratch(t, (size_t)(n * k));
    if (!b->p.rows || !b->dweight)
        return false;
    if (b->dx) {
        float *packed = att_tape_scratch(t, att_gemm_packed_count(t->ctx, k, n));
        float *converted = att_tape_scratch(t, att_param_block_count(weight));
        b->rows = att_tape_scratch(t, rows);
        if (!packed || !converted || !b->rows)
            return false;
        for (int64_t i = 0, block = att_param_block(weight); i < n; i += block) {
            const int64_t some = att_min(block, n - i);
            att_tape_reorder(t->ctx, some, w->channels, w->kernel[0] * w->kernel[1],
                             att_param_read_block(weight, i, some, converted), b->dweight + i * k);
        }
        att_gemm_pack(t->ctx, k, n, b->dweight, 1, k, packed);
        b->packed = packed;
    }
    memset(b->dweight, 0, (size_t)(n * k) * sizeof *b->dweight);
    return true;
}

static att_status backward(att_tape *t, const att_step *s)
{
    const att_window *w = s->saved;
    const int64_t n = s->y->value.dim[3], area = w->kernel[0] * w->kernel[1], k = area * w->channels,
                  max_rows = patches_at_once(w, k);
    back b = {.p = {.w = *w, .x = s->in[0]->value.data, .length = k},
              .n = n,
              .dy = s->y->grad,
              .dx = att_tape_grad(s->in[0])};
    float *dweight = att_param_partial(s->param[0]), *dbias = att_param_partial(s->param[1]);
    b.learns = dweight != NULL;
    if (!prepare(t, &b, s->param[0], max_rows))
        return ATT_ERR_MEMORY;
    if (dbias)
        att_tape_sum_rows(t->ctx, w->images * w->out[0] * w->out[1], n, s->y->grad, dbias);
    const int64_t lines = max_rows / w->out[1];
    for (int64_t image = 0; (dweight || b.dx) && image < w->images; image++)
        for (int64_t line = 0; line < w->out[0]; line += lines) {
            const att_status e = lines_back(t, &b, image, line, att_min(lines, w->out[0] - line));
            if (e)
                return e;
        }
    float *one = b.p.rows;
    for (int64_t i = 0; dweight && i < n; i++, dweight += k) {
        att_tape_reorder(t->ctx, 1, area, w->channels, b.dweight + i * k, one);
        att_kernels_of(t->ctx->isa)->vector.add(k, dweight, one, dweight);
    }
    return ATT_OK;
}

const att_operation att_operation_conv2d = {.name = "conv2d", .backward = backward};

/* ---- forward */

static bool check(att_tape *t, const att_tensor *x, const att_param *weight, const att_param *bias,
                  const att_conv_options *o, att_window *w)
{
    const att_tensor *v = weight ? att_param_value(weight) : NULL, *b = bias ? att_param_value(bias) : NULL;
    if (!v)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "conv2d: weight is NULL");
    else if (v->rank != 4 || x->rank != 4 || v->dim[1] != x->dim[3])
        att_tape_fail(t, ATT_ERR_SHAPE,
                      "conv2d: x is %s and weight %s, not [images, height, width, in] and [out, in, height, width]",
                      att_shape_of(x).text, att_shape_of(v).text);
    else if (b && (b->rank != 1 || b->dim[0] != v->dim[0]))
        att_tape_fail(t, ATT_ERR_SHAPE, "conv2d: bias is %s but weight is %s: expected [%lld]", att_shape_of(b).text,
                      att_shape_of(v).text, (long long)v->dim[0]);
    else
        return att_tape_window(t, "conv2d", x, v->dim + 2, o->stride, o->padding, w);
    return false;
}

att_var *att_conv2d(att_tape *t, att_var *x, att_param *weight, att_param *bias, const att_conv_options *options)
{
    if (!x || !att_tape_ready(t))
        return NULL;
    att_conv_options o;
    att_window w;
    if (!att_tape_options_read(t, "conv2d", &o, sizeof o, options, "att_conv_options"))
        return NULL;
    if (!check(t, &x->value, weight, bias, &o, &w))
        return NULL;
    const int64_t n = att_param_value(weight)->dim[0], k = w.channels * w.kernel[0] * w.kernel[1];
    const float *packed = att_param_packed(weight), *b = bias ? att_param_floats(bias) : NULL;
    att_var *y = att_tape_var(t, 4, (const int64_t[]){w.images, w.out[0], w.out[1], n});
    if (!y)
        return NULL;
    const size_t mark = att_arena_mark(&t->arena);
    const int64_t all = w.images * w.out[0] * w.out[1], max_rows = patches_at_once(&w, k);
    patches p = {.w = w, .x = x->value.data, .length = k};
    p.rows = att_tape_scratch(t, att_size_mul((size_t)max_rows, (size_t)k));
    if (!packed || (bias && !b) || !p.rows)
        return att_tape_fail(t, ATT_ERR_MEMORY, "conv2d: %s", att_error(t->ctx));
    for (; p.first < all; p.first += max_rows) {
        const int64_t m = max_rows < all - p.first ? max_rows : all - p.first;
        att_tape_for_rows(t->ctx, m, k, gather, &p);
        att_gemm(t->ctx, &(const att_gemm_args){.m = m,
                                                .n = n,
                                                .k = k,
                                                .a = p.rows,
                                                .lda = k,
                                                .packed = packed,
                                                .c = (float *)y->value.data + p.first * n,
                                                .ldc = n,
                                                .epilogue = &(const att_epilogue){.bias = b}});
    }
    att_arena_release(&t->arena, mark);
    const att_step step = {.op = &att_operation_conv2d,
                           .y = y,
                           .in = &x,
                           .n_in = 1,
                           .param = (att_param *[]){weight, bias},
                           .n_param = 2,
                           .saved = &w,
                           .saved_bytes = sizeof w};
    return att_tape_done(t, &step, NULL, NULL);
}
