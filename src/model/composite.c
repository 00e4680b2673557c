#include "model/composite.h"
#include "attend_util.h"
#include "io/file_source.h"

#include <string.h>

att_status att_composite_open(att_ctx *ctx, const char *caller, const att_composite *kind, const char *folder,
                              const att_model_options *options, void *out)
{
    void *const none = NULL, *self;
    if (out)
        memcpy(out, &none, sizeof none);
    if (att_require(caller, ATT_NAMED({"ctx", ctx}, {"folder", folder}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    self = att_calloc(ctx, 1, kind->bytes);
    if (!self)
        return ATT_ERR_MEMORY;
    memcpy(self, &ctx, sizeof ctx);
    att_file_source files;
    att_status s = att_file_source_begin(&files, folder, options);
    s = s ? s : kind->open(self, folder, options);
    att_file_source_end(&files);
    if (s)
        kind->free(self);
    else
        memcpy(out, &self, sizeof self);
    return s;
}
