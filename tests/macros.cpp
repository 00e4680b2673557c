// The macros of the public headers in C++: values, not only that they compile. Run by tests/cpp.sh.
#include <attend_util.h>
#include <cstring>
#include <vector>

static att_status needs(const att_ctx *ctx, const int *out)
{
    return att_require(__func__, ATT_NAMED({"ctx", ctx}, {"out", out}));
}

static bool is(int rank, const int64_t *dim, int64_t last)
{
    return rank == 3 && dim[0] == 2 && dim[1] == 0 && dim[2] == last;
}

static bool is(const att_attention_spec *s)
{
    return s->size == sizeof *s && s->heads == 2 && s->head_dim == 3 && s->scale == 0.5f && !s->score && !s->stage;
}

int main()
{
    att_ctx *ctx = nullptr;
    const std::vector<int> five(5);
    const int threads = 2, out = 0;
    if (att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = threads)) != ATT_OK || att_threads(ctx) != 2)
        return 1;
    if (needs(ctx, &out) != ATT_OK || needs(ctx, nullptr) != ATT_ERR_ARGUMENT || !std::strstr(att_error(ctx), "out"))
        return 2;
    if (!is(ATT_DIMS(2, 0, five.size()), 5) || is(ATT_DIMS(2, 0), 0))
        return 3;
    if (!is(ATT_OPTIONS(att_attention_spec, .heads = threads, .head_dim = 3, .scale = 0.5f)))
        return 4;
    att_close(ctx);
    return 0;
}
