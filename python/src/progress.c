/* What long calls do between batches of work: Ctrl-C, and a function of the caller's, end them. */
#include "module.h"

bool progress_call(void *user, double share)
{
    progress *p = user;
    PyGILState_STATE gil = PyGILState_Ensure(); /* the calling thread's own state: an exception stays set in it */
    bool go_on = PyErr_CheckSignals() == 0;
    if (go_on && p->function) {
        PyObject *returned = PyObject_CallFunction(p->function, "d", share);
        go_on = returned != NULL;
        Py_XDECREF(returned);
    }
    PyGILState_Release(gil);
    return go_on;
}
