/* How similar rows are, by the four measures of sentence-transformers. */
#include "attend_util.h"
#include "module.h"

#include <limits.h>
#include <math.h>

typedef att_status (*measure_fn)(att_ctx *ctx, const att_tensor *a, const att_tensor *b, const att_tensor *out);

static att_status dot(att_ctx *ctx, const att_tensor *a, const att_tensor *b, const att_tensor *out)
{
    return att_tensor_matmul(ctx, a, b, ATT_OPTIONS(att_matmul_options, .transpose_b = true), out);
}

static att_status cancelled(att_ctx *ctx)
{
    return att_cancelled(ctx) ? att_fail(ctx, ATT_ERR_CANCELLED, "similarity was cancelled") : ATT_OK;
}

/* ---- distances, in double, on all threads */

typedef double (*distance_fn)(int64_t n, const float *x, const float *y);

static double euclidean_distance(int64_t n, const float *x, const float *y)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += ((double)x[i] - y[i]) * ((double)x[i] - y[i]);
    return sqrt(sum);
}

static double manhattan_distance(int64_t n, const float *x, const float *y)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += fabs((double)x[i] - y[i]);
    return sum;
}

typedef struct distances {
    att_ctx *ctx;
    const att_tensor *a, *b, *out;
    distance_fn of;
} distances;

enum { ROWS_OF_A_TASK = 8 };

static const float *row(const att_tensor *t, int64_t i) { return (const float *)t->data + i * t->stride[0]; }

static void some_distances(void *arg, int task)
{
    const distances *d = arg;
    int64_t first = (int64_t)task * ROWS_OF_A_TASK, last = first + ROWS_OF_A_TASK;
    for (int64_t i = first; i < last && i < d->a->dim[0] && !att_cancelled(d->ctx); i++)
        for (int64_t j = 0; j < d->b->dim[0]; j++)
            ((float *)d->out->data)[i * d->b->dim[0] + j] = (float)-d->of(d->a->dim[1], row(d->a, i), row(d->b, j));
}

static att_status all_distances(att_ctx *ctx, const att_tensor *a, const att_tensor *b, const att_tensor *out,
                                distance_fn of)
{
    distances d = {ctx, a, b, out, of};
    int64_t tasks = (a->dim[0] + ROWS_OF_A_TASK - 1) / ROWS_OF_A_TASK;
    if (tasks > INT_MAX)
        return att_fail(ctx, ATT_ERR_SHAPE, "a has %lld rows", (long long)a->dim[0]);
    att_parallel_for(ctx, (int)tasks, some_distances, &d);
    return cancelled(ctx);
}

static att_status euclidean(att_ctx *ctx, const att_tensor *a, const att_tensor *b, const att_tensor *out)
{
    return all_distances(ctx, a, b, out, euclidean_distance);
}

static att_status manhattan(att_ctx *ctx, const att_tensor *a, const att_tensor *b, const att_tensor *out)
{
    return all_distances(ctx, a, b, out, manhattan_distance);
}

/* ---- all measures */

static const struct {
    const char *name;
    measure_fn of;
} measures[] = {{"cosine", att_tensor_cosine}, {"dot", dot}, {"euclidean", euclidean}, {"manhattan", manhattan}};

static measure_fn find(module_state *state, const char *name)
{
    for (size_t i = 0; i < sizeof measures / sizeof *measures; i++)
        if (!strcmp(measures[i].name, name))
            return measures[i].of;
    raise_sentence(state, ATT_ERR_ARGUMENT, "similarity_fn_name: \"%s\", must be cosine, dot, euclidean or manhattan",
                   name);
    return NULL;
}

/* Measures all rows, some thousand million products at a time, between which the call can be cancelled: out [n, m] */
static att_status measure_all(att_ctx *ctx, measure_fn measure, const att_tensor *a, const att_tensor *b,
                              const att_tensor *out)
{
    enum { FEWEST = 256 }; /* rows: cosine prepares b each time */
    double products = (double)b->dim[0] * (double)b->dim[1];
    int64_t n = a->dim[0], most = (int64_t)(4e9 / (products + 1)), step = most > FEWEST ? most : FEWEST;
    att_status status = ATT_OK;
    att_tensor rows = *a, results = *out;
    for (int64_t i = 0; i < n && status == ATT_OK; i += step) {
        rows.dim[0] = results.dim[0] = n - i < step ? n - i : step;
        rows.data = (float *)a->data + i * a->stride[0], results.data = (float *)out->data + i * out->stride[0];
        status = measure(ctx, &rows, b, &results);
        if (status == ATT_OK)
            status = cancelled(ctx);
    }
    return status;
}

/* Measures each row of a against the row of b that has the same number: out [n] */
static att_status measure_pairs(att_ctx *ctx, measure_fn measure, att_tensor a, att_tensor b, float *out)
{
    int64_t n = a.dim[0];
    att_status status = ATT_OK;
    a.dim[0] = b.dim[0] = 1;
    for (int64_t i = 0; i < n && status == ATT_OK; i++) {
        att_tensor one;
        status = att_wrap(&one, out + i, ATT_F32, ATT_DIMS(1, 1), NULL);
        if (status == ATT_OK)
            status = measure(ctx, &a, &b, &one);
        if (status == ATT_OK)
            status = cancelled(ctx);
        a.data = (float *)a.data + a.stride[0], b.data = (float *)b.data + b.stride[0];
    }
    return status;
}

/* [n, m], or pairwise [n] */
static PyObject *compare(module_state *state, measure_fn measure, const att_tensor *a, const att_tensor *b,
                         bool pairwise)
{
    if (a->dim[1] != b->dim[1])
        return raise_sentence(state, ATT_ERR_SHAPE, "a has %lld numbers a row, b %lld", (long long)a->dim[1],
                              (long long)b->dim[1]);
    if (pairwise && a->dim[0] != b->dim[0])
        return raise_sentence(state, ATT_ERR_SHAPE, "a has %lld rows, b %lld", (long long)a->dim[0],
                              (long long)b->dim[0]);
    array *out = array_new(state, ATT_F32, pairwise ? 1 : 2, (int64_t[]){a->dim[0], b->dim[0]});
    if (!out)
        return NULL;
    att_status status;
    LONG_CALL_BEGIN
    status = pairwise ? measure_pairs(state->ctx, measure, *a, *b, out->t.data)
                      : measure_all(state->ctx, measure, a, b, &out->t);
    LONG_CALL_END(status)
    return call_result(state, status, (PyObject *)out);
}

PyObject *similarity(PyObject *module, PyObject *args)
{
    PyObject *first, *second, *result = NULL;
    const char *name = "cosine";
    int pairwise = 0;
    module_state *state = PyModule_GetState(module);
    tensor_argument a = {.capsule = NULL}, b = {.capsule = NULL};
    if (!PyArg_ParseTuple(args, "OO|sp:similarity", &first, &second, &name, &pairwise))
        return NULL;
    measure_fn measure = find(state, name);
    if (measure && tensor_read_rows(state, first, "a", &a) && tensor_read_rows(state, second, "b", &b) &&
        tensor_make_dense(state, &a, 1) && tensor_make_dense(state, &b, 1))
        result = compare(state, measure, &a.t, &b.t, pairwise);
    tensor_release(&a);
    tensor_release(&b);
    return array_like((array *)result, first);
}
