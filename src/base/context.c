/* The context: threads, allocator, instruction set. */
#include "base/base.h"
#include "simd/isa.h"

#include <stdio.h>
#include <stdlib.h>

static void *default_alloc(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    return att_os_alloc(bytes, alignment);
}

static void default_free(void *user, void *p)
{
    (void)user;
    att_os_free(p);
}

static att_status set_allocator(att_ctx *ctx, const att_allocator *a)
{
    if (!a->alloc != !a->free)
        return att_fail(NULL, ATT_ERR_ARGUMENT, "att_config: allocator.%s is given but allocator.%s is not",
                        a->alloc ? "alloc" : "free", a->alloc ? "free" : "alloc");
    ctx->allocator = a->alloc ? *a : (att_allocator){default_alloc, default_free, NULL};
    return ATT_OK;
}

static att_status set_threads(att_ctx *ctx, int n)
{
    if (n < 0 || n > ATT_MAX_THREADS)
        return att_fail(NULL, ATT_ERR_ARGUMENT, "att_config: n_threads is %d, but must be from 0 to %d", n,
                        ATT_MAX_THREADS);
    ctx->n_threads = n ? n : att_os_cpu_count();
    if (ctx->n_threads > ATT_MAX_THREADS)
        ctx->n_threads = ATT_MAX_THREADS;
    return ATT_OK;
}

/* Writes the names of the supported instruction sets: "scalar avx2". */
static void list_usable(char *text, size_t size)
{
    size_t n = 0;
    for (int i = 0; i < att_isa_count() && n < size; i++)
        if (att_isa_usable(i))
            n += (size_t)snprintf(text + n, size - n, "%s%s", n ? " " : "", att_isa_name(i));
}

static att_status set_isa(att_ctx *ctx, const char *name)
{
    const char *source = "att_config.isa";
    if (!name) {
        name = getenv("ATTEND_ISA");
        source = "$ATTEND_ISA";
    }
    if (!name || !*name) {
        ctx->isa = att_isa_best();
        return ATT_OK;
    }
    ctx->isa = att_isa_find(name);
    if (ctx->isa >= 0 && att_isa_usable(ctx->isa))
        return ATT_OK;
    char usable[128] = "";
    list_usable(usable, sizeof usable);
    return att_fail(NULL, ATT_ERR_UNSUPPORTED, "%s: \"%s\" %s; available here are: %s", source, name,
                    ctx->isa < 0 ? "is not an instruction set of this library" : "cannot run on this machine", usable);
}

att_status att_open(att_ctx **out, const att_config *cfg)
{
    if (att_require(__func__, ATT_NAMED({"out", out})))
        return ATT_ERR_ARGUMENT;
    *out = NULL;
    att_config c;
    att_ctx draft = {0};
    att_status s = att_options_read(&c, sizeof c, cfg, "att_config");
    s = s ? s : set_allocator(&draft, &c.allocator);
    s = s ? s : set_threads(&draft, c.n_threads);
    s = s ? s : set_isa(&draft, c.isa);
    if (s)
        return s;
    draft.limit = (uint32_t)draft.n_threads;
    draft.parallel_for = c.parallel_for;
    draft.parallel_user = c.parallel_user;
    draft.cancel = c.cancel;
    draft.note = c.note;
    draft.note_user = c.note_user;
    enum { PAGE = 4096 }; /* L1 sets span at most a page */
    const size_t usual = (size_t)1 << 20, second = att_os_cache(2);
    draft.cached = (int64_t)((second ? second : usual) / sizeof(float));
    draft.ways = (int)(att_os_cache(1) / PAGE);

    att_ctx *ctx = att_alloc(&draft, 1, sizeof *ctx);
    if (!ctx)
        return ATT_ERR_MEMORY;
    *ctx = draft;
    if (!ctx->parallel_for && ctx->n_threads > 1)
        s = att_pool_open(ctx, &ctx->pool);
    if (s)
        att_close(ctx);
    else
        *out = ctx;
    return s;
}

void att_close(att_ctx *ctx)
{
    if (!ctx)
        return;
    att_pool_close(ctx, ctx->pool);
    const att_ctx last = *ctx;
    last.allocator.free(last.allocator.user, ctx);
}

const char *att_isa(const att_ctx *ctx) { return ctx ? att_isa_name(ctx->isa) : NULL; }
const char *att_version(void) { return ATT_VERSION; }
