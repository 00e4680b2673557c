/* For tests of the tool on translators: a tiny one, in the folder of tool.h. */
#ifndef TRANSLATOR_TOOL_H
#define TRANSLATOR_TOOL_H

#include "tiny_marian.h"
#include "tool.h"

/* Its folder: $T */
static inline int translator_setup(void **state)
{
    att_ctx *ctx;
    test_folder f;
    assert_int_equal(tool_setup(state), 0);
    assert_int_equal(att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = 1)), ATT_OK);
    snprintf(f.path, sizeof f.path, "%.40s/de-en", tool_model.path);
    assert_int_equal(mkdir(f.path, 0777), 0);
    write_translator(ctx, &f);
    att_close(ctx);
    setenv("T", f.path, 1);
    return 0;
}

#endif
