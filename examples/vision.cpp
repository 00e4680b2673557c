// Which picture is nearest to the first one? From C++: embeddings of a vision Transformer, compared by cosine.
//
//     c++ -std=c++20 vision.cpp $(pkg-config --cflags --libs attend_model) -o vision
//     ./vision MODEL cat.jpg dog.jpg other-cat.jpg
#include <attend_vision.h>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <vector>

static void check(att_status status)
{
    if (status != ATT_OK)
        throw std::runtime_error(att_error(nullptr));
}

class Embedder
{
  public:
    explicit Embedder(const char *name)
    {
        att_ctx *ctx = nullptr;
        check(att_open(&ctx, nullptr));
        ctx_.reset(ctx);
        att_model_path folder;
        check(att_model_find(name, &folder));
        att_image_model *model = nullptr;
        check(att_image_model_open(ctx, folder.text, NULL, &model));
        model_.reset(model);
    }

    std::vector<float> embed(const char *path) const
    {
        att_image image;
        check(att_image_open(ctx_.get(), path, nullptr, &image));
        std::vector<float> embedding(static_cast<size_t>(att_image_model_dim(model_.get())));
        const att_status status = att_image_embed(model_.get(), 1, &image, NULL, embedding.data());
        att_image_free(ctx_.get(), &image);
        check(status);
        return embedding;
    }

  private:
    std::unique_ptr<att_ctx, void (*)(att_ctx *)> ctx_{nullptr, att_close};
    std::unique_ptr<att_image_model, void (*)(att_image_model *)> model_{nullptr, att_image_model_free};
};

static float dot(const std::vector<float> &a, const std::vector<float> &b)
{
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0f);
}

int main(int argc, char **argv)
try {
    if (argc < 4) {
        std::fprintf(stderr, "usage: vision MODEL IMAGE IMAGE...\n");
        return 2;
    }
    const Embedder embedder(argv[1]);
    const std::vector<float> first = embedder.embed(argv[2]);
    const char *nearest = argv[3];
    float highest = -2;
    for (int i = 3; i < argc; i++) {
        const std::vector<float> other = embedder.embed(argv[i]);
        const float cosine = dot(first, other) / std::sqrt(dot(first, first) * dot(other, other));
        std::printf("%.4f %s\n", static_cast<double>(cosine), argv[i]);
        if (cosine > highest) {
            highest = cosine;
            nearest = argv[i];
        }
    }
    std::printf("nearest: %s\n", nearest);
} catch (const std::exception &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
