#include "io/parallel_status.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

typedef struct tasks {
    att_ctx *ctx;
    att_status (*body)(void *arg, int i);
    void *arg;
    pthread_mutex_t lock; /* lock of the following fields */
    att_status status;
    int failed; /* if status: the smallest i */
    int number; /* error number and sentence of that i */
    char why[1024];
} tasks;

static void run(void *arg, int i)
{
    tasks *t = arg;
    const att_status s = t->body(t->arg, i);
    if (!s)
        return;
    pthread_mutex_lock(&t->lock);
    if (!t->status || i < t->failed) {
        t->status = s;
        t->failed = i;
        t->number = att_error_number();
        snprintf(t->why, sizeof t->why, "%s", att_error(t->ctx));
    }
    pthread_mutex_unlock(&t->lock);
}

att_status att_parallel_all(att_ctx *ctx, int n, att_status (*body)(void *arg, int i), void *arg)
{
    tasks t = {.ctx = ctx, .body = body, .arg = arg, .lock = PTHREAD_MUTEX_INITIALIZER};
    att_parallel_for(ctx, n, run, &t);
    errno = t.number;
    return t.status ? att_fail_text(ctx, t.status, t.why) : ATT_OK;
}
