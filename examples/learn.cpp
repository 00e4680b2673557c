// A linear layer learns which of three points is nearest, from C++: a tape, its gradients, and Adam.
//
//     c++ -std=c++20 learn.cpp $(pkg-config --cflags --libs attend) -o learn
#include <attend_optimizer.h>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <vector>

// What the library makes is freed as it goes out of scope, the last first.
template <class T> using owned = std::unique_ptr<T, void (*)(T *)>;

static void check(att_status status)
{
    if (status != ATT_OK)
        throw std::runtime_error(att_error(nullptr));
}

static int32_t nearest(float x, float y)
{
    const float point[3][2] = {{0, 1}, {-1, -1}, {1, -1}};
    int32_t best = 0;
    auto distance = [&](int32_t i) {
        return (x - point[i][0]) * (x - point[i][0]) + (y - point[i][1]) * (y - point[i][1]);
    };
    for (int32_t i = 1; i < 3; i++)
        if (distance(i) < distance(best))
            best = i;
    return best;
}

static void run()
{
    std::vector<float> points; // [rows, 2]: a grid
    std::vector<int32_t> classes;
    for (int i = 0; i < 20; i++)
        for (int j = 0; j < 20; j++) {
            const float x = static_cast<float>(i) / 5 - 1.9f, y = static_cast<float>(j) / 5 - 1.9f;
            points.insert(points.end(), {x, y});
            classes.push_back(nearest(x, y));
        }
    std::vector<float> w(3 * 2), b(3); // zeros
    att_tensor input, weight_value, bias_value;
    check(att_wrap(&input, points.data(), ATT_F32, ATT_DIMS(classes.size(), 2), nullptr));
    check(att_wrap(&weight_value, w.data(), ATT_F32, ATT_DIMS(3, 2), nullptr));
    check(att_wrap(&bias_value, b.data(), ATT_F32, ATT_DIMS(3), nullptr));

    att_ctx *made_ctx = nullptr;
    check(att_open(&made_ctx, nullptr));
    owned<att_ctx> ctx(made_ctx, att_close);
    att_param *made_param = nullptr;
    check(att_param_new(ctx.get(), &weight_value, &made_param));
    owned<att_param> weight(made_param, att_param_free);
    check(att_param_new(ctx.get(), &bias_value, &made_param));
    owned<att_param> bias(made_param, att_param_free);
    att_tape *made_tape = nullptr;
    check(att_tape_new(ctx.get(), ATT_OPTIONS(att_tape_config, .record = true), &made_tape));
    owned<att_tape> tape(made_tape, att_tape_free);
    att_optimizer *made_optimizer = nullptr;
    check(att_optimizer_new(ctx.get(), ATT_OPTIONS(att_optimizer_config, .weight_decay = 1e-4), &made_optimizer));
    owned<att_optimizer> optimizer(made_optimizer, att_optimizer_free);
    check(att_optimizer_add(optimizer.get(), weight.get(), nullptr));
    check(att_optimizer_add(optimizer.get(), bias.get(), ATT_OPTIONS(att_param_options, .no_weight_decay = true)));

    att_tensor value;
    for (int step = 1; step <= 200; step++) {
        att_tape *t = tape.get();
        att_tape_reset(t);
        att_var *logits =
            att_linear(t, att_constant(t, &input), weight.get(), bias.get(), ATT_ACTIVATION_IDENTITY, nullptr);
        att_var *loss = att_cross_entropy(t, logits, classes.data(), nullptr);
        check(att_var_value(t, loss, &value)); // the first error of all these operations
        if (step % 50 == 0)
            std::printf("step %3d: loss %.3f\n", step, static_cast<double>(*static_cast<const float *>(value.data)));
        check(att_tape_backward(t, loss, nullptr));
        check(att_optimizer_step(optimizer.get(), ATT_OPTIONS(att_update, .rate = 0.1), nullptr));
    }

    std::vector<att_top_column> found(classes.size());
    att_tape *t = tape.get();
    att_tape_reset(t);
    check(att_linear_argmax(t, att_constant(t, &input), weight.get(), bias.get(), nullptr, found.data()));
    size_t right = 0;
    for (size_t i = 0; i < classes.size(); i++)
        right += found[i].column == classes[i];
    std::printf("%zu of %zu points right\n", right, classes.size());
}

int main()
try {
    run();
} catch (const std::exception &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
