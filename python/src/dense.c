/* Copies of arguments whose numbers do not lie as the library needs them. */
#include <stdlib.h>

#include "module.h"

/* Do the numbers of the last n dimensions follow each other? */
static bool is_dense(const att_tensor *t, int n)
{
    int64_t follows = 1;
    for (int i = t->rank - 1; i >= 0 && i >= t->rank - n; follows *= t->dim[i--])
        if (t->dim[i] > 1 && t->stride[i] != follows)
            return false;
    return true;
}

static void *room_for(const att_tensor *t)
{
    size_t bytes = att_dtype_size(t->dtype);
    for (int i = 0; i < t->rank; i++)
        bytes *= (size_t)t->dim[i]; /* a broadcast dimension makes it larger than what is there, but not endless */
    return aligned_alloc(64, (bytes / 64 + 1) * 64);
}

bool tensor_make_dense(module_state *state, tensor_argument *a, int n)
{
    if (is_dense(&a->t, n))
        return true;
    att_tensor copy;
    a->copy = room_for(&a->t);
    if (!a->copy)
        return PyErr_NoMemory();
    att_status status = att_wrap(&copy, a->copy, a->t.dtype, a->t.rank, a->t.dim, NULL);
    if (status == ATT_OK) {
        Py_BEGIN_ALLOW_THREADS
        status = att_tensor_convert(state->ctx, &a->t, &copy);
        Py_END_ALLOW_THREADS
    }
    if (status != ATT_OK)
        return raise_status(state, status);
    a->t = copy;
    return true;
}
