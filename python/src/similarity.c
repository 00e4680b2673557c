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

static att_status euclidean(att_ctx *ctx, const att_tensor *a, const att_tensor *b, const att_tensor *out)
{
    (void)ctx;
    for (int64_t i = 0; i < a->dim[0]; i++)
        for (int64_t j = 0; j < b->dim[0]; j++) {
            double sum = 0;
            for (int64_t d = 0; d < a->dim[1]; d++)
                sum += pow((double)at(a, i, d) - at(b, j, d), 2);
            ((float *)out->data)[i * b->dim[0] + j] = (float)-sqrt(sum);
        }
    return ATT_OK;
}

static att_status manhattan(att_ctx *ctx, const att_tensor *a, const att_tensor *b, const att_tensor *out)
{
    (void)ctx;
    for (int64_t i = 0; i < a->dim[0]; i++)
        for (int64_t j = 0; j < b->dim[0]; j++) {
            double sum = 0;
            for (int64_t d = 0; d < a->dim[1]; d++)
                sum += fabs((double)at(a, i, d) - at(b, j, d));
            ((float *)out->data)[i * b->dim[0] + j] = (float)-sum;
        }
    return ATT_OK;
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

/* Rows [n, dim] of float32; a vector is one row. */
static bool rows(module_state *state, PyObject *object, const char *name, tensor_argument *out)
{
    if (!tensor_read(state, object, name, TENSOR_READ, out))
        return false;
    att_tensor *t = &out->t;
    if (t->rank == 1) {
        t->dim[1] = t->dim[0], t->stride[1] = t->stride[0];
        t->dim[0] = 1, t->stride[0] = 0, t->rank = 2;
    }
    if (t->rank == 2 && t->dtype == ATT_F32)
        return true;
    return raise_sentence(state, ATT_ERR_SHAPE, "%s: embeddings are float32, [n, dim] or [dim]", name);
}

PyObject *similarity(PyObject *module, PyObject *args)
{
    PyObject *first, *second, *result = NULL;
    const char *name = "cosine";
    module_state *state = PyModule_GetState(module);
    tensor_argument a = {.capsule = NULL}, b = {.capsule = NULL};
    if (!PyArg_ParseTuple(args, "OO|s:similarity", &first, &second, &name))
        return NULL;
    measure_fn measure = find(state, name);
    if (measure && rows(state, first, "a", &a) && rows(state, second, "b", &b)) {
        array *out = NULL;
        if (a.t.dim[1] != b.t.dim[1])
            raise_sentence(state, ATT_ERR_SHAPE, "a has %lld numbers a row, b %lld", (long long)a.t.dim[1],
                           (long long)b.t.dim[1]);
        else
            out = array_new(state, ATT_F32, 2, (int64_t[]){a.t.dim[0], b.t.dim[0]});
        att_status status = ATT_OK;
        if (out) {
            Py_BEGIN_ALLOW_THREADS status = measure(state->ctx, &a.t, &b.t, &out->t);
            Py_END_ALLOW_THREADS result = status == ATT_OK ? array_like(out, first) : raise_status(state, status);
            if (status != ATT_OK)
                Py_DECREF((PyObject *)out);
        }
    }
    tensor_release(&a);
    tensor_release(&b);
    return result;
}
