/* attend._attend.tool: the command-line tool, which `attend` and `python -m attend` run (attend/__main__.py). */
#include "module.h"

#include <stdio.h>
#include <unistd.h>

#include "cli/base/process.h"
#include "cli/fetch/download.h"

/* Options have their values, and streams and signals their handlers, for the rest of the process. */
static bool has_run;

/* Gives C's streams the buffers of a new process, which PYTHONUNBUFFERED has taken away. */
static void buffer_streams(void)
{
    static char in[BUFSIZ], out[BUFSIZ];
    setvbuf(stdin, in, _IOFBF, sizeof in);
    setvbuf(stdout, out, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, sizeof out);
}

/* The list [bytes] of a sequence of str, as the system has them */
static PyObject *encode_all(PyObject *arguments)
{
    PyObject *list = PySequence_List(arguments);
    for (Py_ssize_t i = 0; list && i < PyList_Size(list); i++) {
        PyObject *bytes = NULL;
        if (!PyUnicode_FSConverter(PyList_GetItem(list, i), &bytes) || PyList_SetItem(list, i, bytes))
            Py_CLEAR(list);
    }
    return list;
}

/* tool(arguments, python): the exit code. python: the interpreter whose pip downloads, or "" */
PyObject *tool(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *given;
    const char *python;
    if (!PyArg_ParseTuple(args, "Os:tool", &given, &python))
        return NULL;
    if (has_run) {
        PyErr_SetString(PyExc_RuntimeError, "the tool runs once in a process");
        return NULL;
    }
    PyObject *arguments = encode_all(given);
    Py_ssize_t n = arguments ? PyList_Size(arguments) : 0;
    char **argv = arguments ? PyMem_Calloc((size_t)n + 1, sizeof *argv) : NULL;
    if (!argv) {
        Py_XDECREF(arguments);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; i < n; i++)
        argv[i] = PyBytes_AsString(PyList_GetItem(arguments, i));
    has_run = true;
    buffer_streams();
    cli_python = *python ? python : NULL;
    int code;
    Py_BEGIN_ALLOW_THREADS
    code = cli_tool((int)n, argv);
    Py_END_ALLOW_THREADS
    PyMem_Free(argv);
    Py_DECREF(arguments);
    return PyLong_FromLong(code);
}
