// An encoder and a decoder layer learn to reverse sequences, from C++.
//
//     c++ -std=c++20 nn.cpp $(pkg-config --cflags --libs attend) -o nn
#include <attend_nn.h>
#include <cstdio>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

// What the library makes is freed as it goes out of scope, the last first.
template <class T> using owned = std::unique_ptr<T, void (*)(T *)>;

static void check(att_status status)
{
    if (status != ATT_OK)
        throw std::runtime_error(att_error(nullptr));
}

constexpr int64_t tokens = 12, length = 6, width = 32, sequences = 64; // token 0 begins a target

struct batch {
    std::vector<int32_t> source, target, before; // before: the token before each of the target
    std::vector<int64_t> offsets{0};

    explicit batch(unsigned seed)
    {
        std::mt19937 random(seed);
        while (offsets.size() <= sequences) {
            for (int64_t i = 0; i < length; i++)
                source.push_back(static_cast<int32_t>(1 + random() % (tokens - 1)));
            target.insert(target.end(), source.rbegin(), source.rbegin() + length);
            before.push_back(0);
            before.insert(before.end(), source.rbegin(), source.rbegin() + length - 1);
            offsets.push_back(offsets.back() + length);
        }
    }
};

struct model {
    const att_nn_embedding *token, *position;
    const att_nn_encoder_layer *encoder;
    const att_nn_decoder_layer *decoder;
    const att_nn_linear *output;

    explicit model(att_nn_params *p)
    {
        const auto c = *ATT_OPTIONS(att_nn_layer_config, .width = width, .heads = 4, .intermediate = 64,
                                    .activation = ATT_ACTIVATION_SILU, .gated = true, .order = ATT_NN_ORDER_PRE_NORM);
        token = att_nn_embedding_new(p, "token", tokens, width);
        position = att_nn_embedding_new(p, "position", length, width);
        encoder = att_nn_encoder_layer_new(p, "encoder", &c);
        decoder = att_nn_decoder_layer_new(p, "decoder", &c);
        output = att_nn_linear_new(p, "output", width, tokens, NULL);
        check(att_nn_params_status(p)); // the first error of all these
    }

    att_var *logits(att_tape *t, const batch &b) const // [sequences * length, tokens]
    {
        const auto args = *ATT_OPTIONS(att_attention_args, .n_sequences = sequences, .q_offsets = b.offsets.data());
        const auto at = *ATT_OPTIONS(att_positions, .offsets = b.offsets.data(), .n = sequences);
        auto embed = [&](const std::vector<int32_t> &ids) {
            att_var *x = att_nn_embedding_apply(t, token, ids.data(), static_cast<int64_t>(ids.size()));
            return att_learned_positions(t, x, position->weight, &at);
        };
        att_var *x =
            att_nn_encoder_layer_apply(t, encoder, embed(b.source), ATT_OPTIONS(att_nn_layer_call, .args = &args));
        x = att_nn_decoder_layer_apply(t, decoder, embed(b.before),
                                       ATT_OPTIONS(att_nn_layer_call, .args = &args, .source = x, .cross = &args));
        return att_nn_linear_apply(t, output, x, ATT_ACTIVATION_IDENTITY, nullptr);
    }
};

static void train(att_tape *t, att_optimizer *o, const model &m)
{
    att_tensor value;
    for (unsigned step = 1; step <= 200; step++) {
        const batch b(step);
        att_var *loss = att_cross_entropy(t, m.logits(t, b), b.target.data(), nullptr);
        check(att_var_value(t, loss, &value));
        if (step % 50 == 0)
            std::printf("step %u: loss %.3f\n", step, static_cast<double>(*static_cast<const float *>(value.data)));
        check(att_tape_backward(t, loss, nullptr));
        check(att_optimizer_step(o, ATT_OPTIONS(att_update, .rate = 3e-3, .clip = 1), nullptr));
        att_tape_reset(t);
    }
    const batch b(1000); // not seen in training
    att_var *loss = att_cross_entropy(t, m.logits(t, b), b.target.data(), nullptr);
    check(att_var_value(t, loss, &value));
    std::printf("held-out: loss %.3f\n", static_cast<double>(*static_cast<const float *>(value.data)));
}

int main()
try {
    att_ctx *ctx_made = nullptr;
    check(att_open(&ctx_made, nullptr));
    owned<att_ctx> ctx(ctx_made, att_close);
    att_nn_params *params_made = nullptr;
    check(att_nn_params_new(ctx.get(), nullptr, &params_made));
    owned<att_nn_params> params(params_made, att_nn_params_free);
    att_tape *tape_made = nullptr;
    check(att_tape_new(ctx.get(), ATT_OPTIONS(att_tape_config, .record = true), &tape_made));
    owned<att_tape> tape(tape_made, att_tape_free);
    att_optimizer *optimizer_made = nullptr;
    check(att_optimizer_new(ctx.get(), nullptr, &optimizer_made));
    owned<att_optimizer> optimizer(optimizer_made, att_optimizer_free);

    const model m(params.get());
    check(att_nn_params_optimize(params.get(), optimizer.get()));
    train(tape.get(), optimizer.get(), m);
} catch (const std::exception &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
