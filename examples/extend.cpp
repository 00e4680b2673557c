// A mask of one's own with a tensor that is given with each call, from C++: each query sets how many keys back it sees.
// The numbers are random ones that do not depend on threads.
//
//     c++ -std=c++20 extend.cpp $(pkg-config --cflags --libs attend) -o extend
#include <attend_extend.h>
#include <attend_util.h>
#include <cstdio>
#include <memory>
#include <vector>

namespace
{

const att_param_shape reach = {.name = "reach",
                               .kind = ATT_PARAM_PER_QUERY,
                               .dtype = ATT_I32,
                               .rows = {},
                               .columns = {},
                               .optional = {},
                               .as_queries = {}};

bool keep(const att_mask_block *b)
{
    const int64_t back = b->q - b->k;
    return back >= 0 && back <= b->param[0].i32[b->q * b->param[0].stride[0]];
}

att_mask reach_mask()
{
    att_mask mask = {};
    mask.size = sizeof mask;
    mask.name = "reach";
    mask.param = &reach;
    mask.n_params = 1;
    mask.keep = keep;
    return mask;
}

// x[i] in [0, 1) for each i, by Philox: the same for any number of threads.
void fill(void *arg, int i)
{
    std::vector<float> &x = *static_cast<std::vector<float> *>(arg);
    const uint32_t counter[4] = {static_cast<uint32_t>(i), 0, 0, 0};
    uint32_t words[4];
    att_random(1, counter, words);
    x[static_cast<size_t>(i)] = static_cast<float>(words[0] >> 8) * 0x1p-24f;
}

} // namespace

int main()
{
    const int time = 5, dim = 8;
    std::vector<float> x(time * dim), out(x.size());
    std::vector<int32_t> back = {0, 1, 0, 3, 2};
    att_ctx *opened = nullptr;
    att_status status = att_open(&opened, nullptr);
    std::unique_ptr<att_ctx, void (*)(att_ctx *)> ctx(opened, att_close);
    if (status == ATT_OK)
        att_parallel_for(ctx.get(), time * dim, fill, &x);

    att_attention_args args = {};
    att_tensor reach_of_each;
    args.size = sizeof args;
    att_wrap(&args.q, x.data(), ATT_F32, ATT_DIMS(1, 1, time, dim), nullptr); // [batch, heads, time, dim]
    att_wrap(&args.out, out.data(), ATT_F32, ATT_DIMS(1, 1, time, dim), nullptr);
    att_wrap(&reach_of_each, back.data(), ATT_I32, ATT_DIMS(1, time), nullptr);
    args.k = args.v = args.q;
    args.param = &reach_of_each;
    args.n_params = 1;

    const att_mask mask = reach_mask();
    const att_stage stage = {.modifier = nullptr, .mask = &mask, .value = {}};
    if (status == ATT_OK)
        status = att_attention(
            ctx.get(), ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = dim, .stage = &stage, .n_stages = 1),
            &args);
    if (status != ATT_OK) {
        std::fprintf(stderr, "%s\n", att_error(ctx.get()));
        return 1;
    }
    for (int i = 0; i < time; i++) // a query that sees itself alone gets its own value
        std::printf("query %d sees %d before it%s\n", i, back[i], out[i * dim] == x[i * dim] ? ": its own value" : "");
}
