/* How similar rows are, by the four measures of sentence-transformers. */
#include "module.h"

#include <math.h>

typedef att_status (*measure_fn)(att_ctx *ctx, const att_tensor *a, const att_tensor *b, const att_tensor *out);

static att_status dot(att_ctx *ctx, const att_tensor *a, const att_tensor *b, const att_tensor *out)
{
    return att_tensor_matmul(ctx, a, b, ATT_OPTIONS(att_matmul_options, .transpose_b = true), out);
}

static float at(const att_tensor *t, int64_t row, int64_t column)
{
    return ((const float *)t->data)[row * t->stride[0] + column * t->stride[1]];
}

/* out[i, j] = -whole(sum over d of part(a[i, d] - b[j, d])), in double */
static att_status distances(const att_tensor *a, const att_tensor *b, const att_tensor *out, double (*part)(double),
                            double (*whole)(double))
{
    for (int64_t i = 0; i < a->dim[0]; i++)
        for (int64_t j = 0; j < b->dim[0]; j++) {
            double sum = 0;
            for (int64_t d = 0; d < a->dim[1]; d++)
                sum += part((double)at(a, i, d) - at(b, j, d));
            ((float *)out->data)[i * b->dim[0] + j] = (float)-whole(sum);
        }
    return ATT_OK;
}

static double square(double x) { return x * x; }
static double identity(double x) { return x; }

static att_status euclidean(att_ctx *ctx, const att_tensor *a, const att_tensor *b, const att_tensor *out)
{
    (void)ctx;
    return distances(a, b, out, square, sqrt);
}

static att_status manhattan(att_ctx *ctx, const att_tensor *a, const att_tensor *b, const att_tensor *out)
{
    (void)ctx;
    return distances(a, b, out, fabs, identity);
}

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
    Py_BEGIN_ALLOW_THREADS
    status = pairwise ? measure_pairs(state->ctx, measure, *a, *b, out->t.data) : measure(state->ctx, a, b, &out->t);
    Py_END_ALLOW_THREADS
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
    if (measure && tensor_read_rows(state, first, "a", &a) && tensor_read_rows(state, second, "b", &b))
        result = compare(state, measure, &a.t, &b.t, pairwise);
    tensor_release(&a);
    tensor_release(&b);
    return array_like((array *)result, first);
}
