// Causal attention with four heads on random arrays, from C++.
//
//     c++ attention.cpp $(pkg-config --cflags --libs attend) -o attention
#include <attend.h>
#include <cstdio>
#include <memory>
#include <random>
#include <vector>

int main()
{
    const int64_t shape[] = {1, 4, 100, 64}; // batch, heads, time, dim
    std::vector<float> q(1 * 4 * 100 * 64), k(q.size()), v(q.size()), out(q.size());
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (auto *array : {&q, &k, &v})
        for (float &x : *array)
            x = normal(random);

    att_attention_spec spec = {};
    spec.size = sizeof spec;
    spec.heads = 4;
    spec.head_dim = 64;
    const att_stage causal = {nullptr, att_mask_causal, {}};
    spec.stage = &causal;
    spec.n_stages = 1;
    spec.align = ATT_ALIGN_TOP_LEFT;

    att_attention_args args = {};
    args.size = sizeof args;
    att_wrap(&args.q, q.data(), ATT_F32, 4, shape, nullptr);
    att_wrap(&args.k, k.data(), ATT_F32, 4, shape, nullptr);
    att_wrap(&args.v, v.data(), ATT_F32, 4, shape, nullptr);
    att_wrap(&args.out, out.data(), ATT_F32, 4, shape, nullptr);

    att_ctx *opened = nullptr;
    att_status status = att_open(&opened, nullptr);
    std::unique_ptr<att_ctx, void (*)(att_ctx *)> ctx(opened, att_close);
    if (status == ATT_OK)
        status = att_attention(ctx.get(), &spec, &args);
    if (status != ATT_OK) {
        std::fprintf(stderr, "%s\n", att_error(ctx.get()));
        return 1;
    }
    // The first query sees only the first key, so its output is the first value.
    std::printf("%s\n", out[0] == v[0] ? "the first word sees only itself" : "wrong");
}
