// Causal attention with four heads on random arrays, from C++.
//
//     c++ -std=c++20 attention.cpp $(pkg-config --cflags --libs attend) -o attention
#include <attend.h>
#include <cstdio>
#include <memory>
#include <random>
#include <vector>

int main()
{
    const int heads = 4, time = 100, dim = 64;
    std::vector<float> q(heads * time * dim), k(q.size()), v(q.size()), out(q.size());
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (auto *array : {&q, &k, &v})
        for (float &x : *array)
            x = normal(random);

    att_attention_args args = {};
    args.size = sizeof args;
    att_wrap(&args.q, q.data(), ATT_F32, ATT_DIMS(1, heads, time, dim), nullptr); // [batch, heads, time, dim]
    att_wrap(&args.k, k.data(), ATT_F32, ATT_DIMS(1, heads, time, dim), nullptr);
    att_wrap(&args.v, v.data(), ATT_F32, ATT_DIMS(1, heads, time, dim), nullptr);
    att_wrap(&args.out, out.data(), ATT_F32, ATT_DIMS(1, heads, time, dim), nullptr);

    att_ctx *opened = nullptr;
    att_status status = att_open(&opened, nullptr);
    std::unique_ptr<att_ctx, void (*)(att_ctx *)> ctx(opened, att_close);
    const att_stage causal = {.modifier = nullptr, .mask = att_mask_causal, .value = {}};
    if (status == ATT_OK)
        status = att_attention(ctx.get(),
                               ATT_OPTIONS(att_attention_spec, .heads = heads, .head_dim = dim, .stage = &causal,
                                           .n_stages = 1, .align = ATT_ALIGN_TOP_LEFT),
                               &args);
    if (status != ATT_OK) {
        std::fprintf(stderr, "%s\n", att_error(ctx.get()));
        return 1;
    }
    // The first query sees only the first key, so its output is the first value.
    std::printf("%s\n", out[0] == v[0] ? "the first word sees only itself" : "wrong");
}
