/* One context for all tests of a program: cmocka_run_group_tests(tests, open_context, close_context). */
#ifndef CONTEXT_H
#define CONTEXT_H

#include "attend.h"

static att_ctx *ctx;

static inline int open_context(void **state)
{
    (void)state;
    return att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = 2));
}

static inline int close_context(void **state)
{
    (void)state;
    att_close(ctx);
    return 0;
}

#endif
