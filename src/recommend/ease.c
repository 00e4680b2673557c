/* EASE (Steck 2019, "Embarrassingly Shallow Autoencoders for Sparse Data"): linear regression from the items of a user
 * to each other item, in closed form. X [users, items] has 1 where a user has an item:
 *
 *     P = (X^T X + l2 I)^-1,  B[i, j] = -P[i, j] / P[j, j],  B[i, i] = 0
 *
 * score of item j after a history: sum over its items i of B[i, j], as in the paper, or weighted by the distance of i
 * from the end of the history. The matrix is computed in place, so that memory is that of B. */
#include "recommend/counting.h"
#include "util/util.h"

#include <math.h>
#include <string.h>

/* ---- the inverse of a symmetric positive definite matrix, in place */

/* BLOCK columns are eliminated at once, and a task updates a tile of TILE rows and columns. */
enum { BLOCK = 128, TILE = 512, PARTS = 16 };

typedef struct inversion {
    att_ctx *ctx;
    float *a; /* [n, n]; only the lower triangle is used */
    int64_t n;
    int64_t k, w;       /* the block: columns [k, k + w) */
    float *column;      /* [n, BLOCK]: the block's columns, in its own rows 0 */
    float *next;        /* [n, BLOCK]: column times the inverse of the diagonal block */
    float *diagonal;    /* [BLOCK, BLOCK]: this inverse */
    float *products;    /* [PARTS, TILE, TILE] */
    double *scratch;    /* [BLOCK, BLOCK] */
    att_status *failed; /* [PARTS]: of tasks */
} inversion;

/* Inverts the diagonal block by the sweep operator (Beaton 1964): s becomes -s^-1. Returns false if a pivot is not
 * positive. */
static bool invert_diagonal(inversion *v)
{
    const int64_t w = v->w;
    double *s = v->scratch;
    for (int64_t i = 0; i < w; i++)
        for (int64_t j = 0; j <= i; j++)
            s[i * w + j] = s[j * w + i] = (double)v->a[(v->k + i) * v->n + v->k + j];
    for (int64_t p = 0; p < w; p++) {
        const double pivot = s[p * w + p];
        if (!(pivot > 0))
            return false;
        for (int64_t i = 0; i < w; i++) {
            const double factor = s[i * w + p] / pivot;
            for (int64_t j = 0; i != p && j < w; j++)
                s[i * w + j] -= j == p ? 0 : factor * s[p * w + j];
        }
        for (int64_t i = 0; i < w; i++) {
            s[i * w + p] /= i == p ? 1 : pivot;
            s[p * w + i] = s[i * w + p];
        }
        s[p * w + p] = -1 / pivot;
    }
    for (int64_t i = 0; i < w * w; i++)
        v->diagonal[i] = (float)-s[i];
    return true;
}

/* Copies the block's columns. Above the diagonal they are rows of the lower triangle. */
static void gather_part(void *arg, int part)
{
    const inversion *v = arg;
    for (int64_t i = part; i < v->n; i += PARTS)
        for (int64_t c = 0; c < v->w; c++)
            v->column[i * v->w + c] = i < v->k          ? v->a[(v->k + c) * v->n + i]
                                      : i < v->k + v->w ? 0
                                                        : v->a[i * v->n + v->k + c];
}

/* Writes the block's columns back, after all other tiles were updated. */
static void scatter_part(void *arg, int part)
{
    const inversion *v = arg;
    for (int64_t i = part; i < v->n; i += PARTS)
        for (int64_t c = 0; c < v->w; c++)
            if (i < v->k)
                v->a[(v->k + c) * v->n + i] = v->next[i * v->w + c];
            else
                v->a[i * v->n + v->k + c] =
                    i < v->k + v->w ? -v->diagonal[(i - v->k) * v->w + c] : v->next[i * v->w + c];
}

/* Subtracts next[rows] column[columns]^T from a tile. */
static att_status update_tile(const inversion *v, int64_t row, int64_t column, float *product)
{
    const int64_t rows = att_min(TILE, v->n - row), columns = att_min(TILE, v->n - column);
    att_tensor a, b, out;
    att_wrap(&a, v->next + row * v->w, ATT_F32, ATT_DIMS(rows, v->w), NULL);
    att_wrap(&b, v->column + column * v->w, ATT_F32, ATT_DIMS(columns, v->w), NULL);
    att_wrap(&out, product, ATT_F32, ATT_DIMS(rows, columns), NULL);
    const att_status e = att_tensor_matmul(v->ctx, &a, &b, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &out);
    for (int64_t i = 0; !e && i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            v->a[(row + i) * v->n + column + j] -= product[i * columns + j];
    return e;
}

static void update_part(void *arg, int part)
{
    const inversion *v = arg;
    const int64_t tiles = att_ceil_div(v->n, TILE);
    int64_t number = 0;
    for (int64_t i = 0; i < tiles; i++)
        for (int64_t j = 0; j <= i; j++, number++)
            if (number % PARTS == part && !v->failed[part])
                v->failed[part] = update_tile(v, i * TILE, j * TILE, v->products + part * TILE * TILE);
}

static att_status multiply_columns(const inversion *v)
{
    att_tensor a, b, out;
    att_wrap(&a, v->column, ATT_F32, ATT_DIMS(v->n, v->w), NULL);
    att_wrap(&b, v->diagonal, ATT_F32, ATT_DIMS(v->w, v->w), NULL);
    att_wrap(&out, v->next, ATT_F32, ATT_DIMS(v->n, v->w), NULL);
    return att_tensor_matmul(v->ctx, &a, &b, NULL, &out);
}

/* Eliminates a block of columns: the sweep operator for a block. */
static att_status eliminate(inversion *v)
{
    if (!invert_diagonal(v))
        return att_fail(v->ctx, ATT_ERR_ARGUMENT,
                        "attend-ease: the matrix is not positive definite in single precision: raise l2");
    att_parallel_for(v->ctx, PARTS, gather_part, v);
    const att_status e = multiply_columns(v);
    if (e)
        return e;
    att_parallel_for(v->ctx, PARTS, update_part, v);
    for (int i = 0; i < PARTS; i++)
        if (v->failed[i])
            return v->failed[i];
    att_parallel_for(v->ctx, PARTS, scatter_part, v);
    return ATT_OK;
}

/* Replaces the lower triangle of a by that of -a^-1. Progress: a unit for each column. */
static att_status invert(inversion *v, att_progress *p)
{
    const size_t panel = (size_t)v->n * BLOCK;
    v->column = att_alloc(v->ctx, panel, sizeof *v->column);
    v->next = att_alloc(v->ctx, panel, sizeof *v->next);
    v->diagonal = att_alloc(v->ctx, BLOCK * BLOCK, sizeof *v->diagonal);
    v->scratch = att_alloc(v->ctx, BLOCK * BLOCK, sizeof *v->scratch);
    v->products = att_alloc(v->ctx, PARTS * TILE * TILE, sizeof *v->products);
    v->failed = att_calloc(v->ctx, PARTS, sizeof *v->failed);
    const bool all = v->column && v->next && v->diagonal && v->scratch && v->products && v->failed;
    att_status e = all ? ATT_OK : ATT_ERR_MEMORY;
    for (v->k = 0; !e && v->k < v->n; v->k += v->w) {
        v->w = att_min(BLOCK, v->n - v->k);
        e = eliminate(v);
        e = e ? e : att_progress_add(p, v->w);
    }
    void *const arrays[] = {v->column, v->next, v->diagonal, v->scratch, v->products, v->failed};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        att_free(v->ctx, arrays[i]);
    return e;
}

/* ---- the weights */

typedef struct weighting {
    const att_item_users *x;
    float *a;        /* [n, n] */
    float *diagonal; /* [n] */
    double l2;
    int64_t n;
} weighting;

/* Writes rows of X^T X + l2 I: how many users have both items. */
static void gram_part(void *arg, int part)
{
    const weighting *g = arg;
    const att_item_users *x = g->x;
    for (int64_t i = part; i < g->n; i += PARTS) {
        float *row = g->a + i * g->n;
        memset(row, 0, (size_t)g->n * sizeof *row);
        for (int64_t u = x->users_of[i]; u < x->users_of[i + 1]; u++)
            for (int64_t k = x->items_of[x->users[u]]; k < x->items_of[x->users[u] + 1]; k++)
                row[x->items[k]]++;
        row[i] += (float)g->l2;
    }
}

/* Divides the tiles of a row of tiles by the diagonal, also above it: from -P to B. */
static void finish_part(void *arg, int part)
{
    enum { SIDE = 64 };
    const weighting *g = arg;
    for (int64_t row = part * SIDE; row < g->n; row += PARTS * SIDE)
        for (int64_t column = 0; column <= row; column += SIDE)
            for (int64_t i = row; i < att_min(row + SIDE, g->n); i++)
                for (int64_t j = column; j < att_min(column + SIDE, i); j++) {
                    const float x = g->a[i * g->n + j];
                    g->a[i * g->n + j] = -x / g->diagonal[j];
                    g->a[j * g->n + i] = -x / g->diagonal[i];
                }
}

static att_status compute(const weighting *g, att_progress *p)
{
    inversion v = {.ctx = g->x->ctx, .a = g->a, .n = g->n};
    p->all = g->n;
    att_parallel_for(v.ctx, PARTS, gram_part, (void *)(uintptr_t)g);
    const att_status e = invert(&v, p);
    if (e)
        return e;
    for (int64_t i = 0; i < g->n; i++) {
        g->diagonal[i] = g->a[i * g->n + i];
        g->a[i * g->n + i] = 0;
    }
    att_parallel_for(v.ctx, PARTS, finish_part, (void *)(uintptr_t)g);
    return ATT_OK;
}

static att_status count(att_recommender *m, const att_item_users *x, att_progress *p)
{
    weighting g = {.x = x, .a = att_param_value(m->weights)->data, .l2 = m->config.info.l2, .n = x->n_items};
    g.diagonal = att_alloc(x->ctx, (size_t)g.n, sizeof *g.diagonal);
    const att_status e = g.diagonal ? compute(&g, p) : ATT_ERR_MEMORY;
    att_free(x->ctx, g.diagonal);
    att_param_invalidate(m->weights);
    return e;
}

/* ---- scores */

/* Returns the weights of an item; scratch: memory for them if they have another type than f32. */
static const float *weights_of(const att_recommender *m, int64_t item, float *scratch)
{
    att_tensor from = *att_param_value(m->weights), to;
    const int64_t n = m->config.info.items;
    from.data = (char *)from.data + att_dtype_bytes(from.dtype, item * n);
    if (from.dtype == ATT_F32)
        return from.data;
    from.dim[0] = 1;
    att_wrap(&to, scratch, ATT_F32, ATT_DIMS(1, n), NULL);
    att_tensor_convert(m->model.ctx, &from, &to); /* cannot fail: the shapes are equal */
    return scratch;
}

/* Items that no user has have no weights. */
static void leave_out_unseen(const att_recommender *m, float *scores)
{
    for (int64_t i = 0; i < m->config.info.items; i++)
        if (m->counts[i] == 0)
            scores[i] = -INFINITY;
}

/* An item counts once, where it is for the last time. */
static bool follows(const int32_t *items, int64_t n, int64_t at)
{
    bool found = false;
    for (int64_t i = at + 1; i < n; i++)
        found |= items[i] == items[at];
    return found;
}

static void score(const att_recommender *m, const int32_t *items, int64_t n, float *scores, float *row)
{
    const int64_t all = m->config.info.items;
    double weight = 1;
    for (int64_t i = 0; i < all; i++)
        scores[i] = 0;
    for (int64_t k = n - 1; k >= 0; k--, weight *= m->config.info.decay) {
        if (follows(items, n, k))
            continue;
        const float *weights = weights_of(m, items[k], row), w = (float)weight;
        for (int64_t i = 0; i < all; i++)
            scores[i] += w * weights[i];
    }
    leave_out_unseen(m, scores);
}

static void similar(const att_recommender *m, int64_t item, float *scores, float *row)
{
    memcpy(scores, weights_of(m, item, row), (size_t)m->config.info.items * sizeof *scores);
    leave_out_unseen(m, scores);
}

static void build(att_recommender *m)
{
    static const att_init zeros = {.size = sizeof zeros};
    const int64_t n = m->config.info.items;
    m->weights = att_nn_params_request(m->model.params, "ease", "weight", 2, (const int64_t[]){n, n}, &zeros);
}

static const char *const settings[] = {"model_type", "num_items", "l2", "decay", NULL};
/* The decay is between the best on validation of ml-100k, 0.9, and of Amazon Beauty, 0.6; l2 is the best of 50, 100,
 * 200, 500, 1000 on ml-100k. */
static const att_counting_kind kind = {.settings = settings,
                                       .decay = 0.8,
                                       .l2 = 500,
                                       .max_items = 32768, /* 4 GiB of weights */
                                       .count = count,
                                       .score = score,
                                       .similar = similar};
const att_recommender_architecture att_ease = {.counting = &kind, .build = build};
