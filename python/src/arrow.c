/* Embeddings out by Arrow's C data interface, in place: [n, dim] of float32 as a fixed-size list. */
#include "arrow.h"

#include <stdio.h>
#include <stdlib.h>

#include "texts.h"

/* What the list and its child hold until both are released: a consumer may move the child away. */
typedef struct exported {
    arrow_array items, *child;
    const void *list_buffers[1], *item_buffers[2];
    PyObject *owner;
    int holders;
} exported;

/* A consumer may call it without the GIL, and at exit. */
static void release_holder(arrow_array *self)
{
    exported *e = self->manager;
    self->release = NULL;
    if (__atomic_sub_fetch(&e->holders, 1, __ATOMIC_ACQ_REL))
        return;
    if (Py_IsInitialized()) {
        PyGILState_STATE gil = PyGILState_Ensure();
        Py_DECREF(e->owner);
        PyGILState_Release(gil);
    }
    free(e);
}

static void release_list(arrow_array *self)
{
    exported *e = self->manager;
    if (e->items.release)
        e->items.release(&e->items);
    release_holder(self);
}

typedef struct exported_schema {
    arrow_schema items, *child;
    char format[32];
} exported_schema;

static void release_child_schema(arrow_schema *self) { self->release = NULL; }

static void release_list_schema(arrow_schema *self)
{
    exported_schema *e = self->manager;
    if (e->items.release)
        e->items.release(&e->items);
    self->release = NULL;
    free(e);
}

static void schema_capsule_destructor(PyObject *capsule)
{
    arrow_schema *s = PyCapsule_GetPointer(capsule, "arrow_schema");
    if (s && s->release)
        s->release(s);
    free(s);
}

static void array_capsule_destructor(PyObject *capsule)
{
    arrow_array *a = PyCapsule_GetPointer(capsule, "arrow_array");
    if (a && a->release)
        a->release(a);
    free(a);
}

static PyObject *schema_capsule(int64_t dim)
{
    arrow_schema *list = calloc(1, sizeof *list);
    exported_schema *e = calloc(1, sizeof *e);
    if (!list || !e) {
        free(list);
        free(e);
        return PyErr_NoMemory();
    }
    snprintf(e->format, sizeof e->format, "+w:%lld", (long long)dim);
    e->items = (arrow_schema){.format = "f", .name = "item", .flags = ARROW_NULLABLE, .release = release_child_schema};
    e->child = &e->items;
    *list = (arrow_schema){.format = e->format,
                           .name = "",
                           .n_children = 1,
                           .children = &e->child,
                           .release = release_list_schema,
                           .manager = e};
    PyObject *capsule = PyCapsule_New(list, "arrow_schema", schema_capsule_destructor);
    if (!capsule) {
        release_list_schema(list);
        free(list);
    }
    return capsule;
}

static PyObject *array_capsule(const array *a)
{
    arrow_array *list = calloc(1, sizeof *list);
    exported *e = calloc(1, sizeof *e);
    if (!list || !e) {
        free(list);
        free(e);
        return PyErr_NoMemory();
    }
    e->owner = Py_NewRef((PyObject *)a), e->holders = 2;
    e->item_buffers[1] = a->t.data;
    e->items = (arrow_array){.length = a->t.dim[0] * a->t.dim[1],
                             .n_buffers = 2,
                             .buffers = e->item_buffers,
                             .release = release_holder,
                             .manager = e};
    e->child = &e->items;
    *list = (arrow_array){.length = a->t.dim[0],
                          .n_buffers = 1,
                          .n_children = 1,
                          .buffers = e->list_buffers,
                          .children = &e->child,
                          .release = release_list,
                          .manager = e};
    PyObject *capsule = PyCapsule_New(list, "arrow_array", array_capsule_destructor);
    if (!capsule) {
        release_list(list);
        free(list);
    }
    return capsule;
}

PyObject *array_arrow(PyObject *self, PyObject *args)
{
    PyObject *requested = Py_None; /* a schema, which may be left aside */
    if (!PyArg_ParseTuple(args, "|O:__arrow_c_array__", &requested))
        return NULL;
    const array *a = (array *)self;
    const att_tensor *t = &a->t;
    if (t->rank != 2 || t->dtype != ATT_F32 || t->stride[1] != 1 || t->stride[0] != t->dim[1]) {
        PyErr_SetString(PyExc_BufferError, "Arrow takes arrays of float32 with two dimensions, contiguous ones");
        return NULL;
    }
    PyObject *schema = schema_capsule(t->dim[1]), *array = schema ? array_capsule(a) : NULL;
    if (array)
        return Py_BuildValue("(NN)", schema, array);
    Py_XDECREF(schema);
    return NULL;
}
