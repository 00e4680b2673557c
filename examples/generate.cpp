// A language model continues a text, from C++: sampled, each piece printed when it is there.
//
//     c++ -std=c++20 generate.cpp $(pkg-config --cflags --libs attend_model) -o generate
//     ./generate FOLDER "The capital of France is"
#include <attend_language.h>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

static void check(att_status status)
{
    if (status != ATT_OK)
        throw std::runtime_error(att_error(nullptr));
}

class Generator
{
  public:
    explicit Generator(const char *folder)
    {
        att_ctx *ctx = nullptr;
        check(att_open(&ctx, nullptr));
        ctx_.reset(ctx);
        att_text_generator *g = nullptr;
        check(att_text_generator_open(ctx, folder, NULL, &g));
        g_.reset(g);
    }

    std::vector<int32_t> encode(std::string_view text) const
    {
        const att_tokenizer *tokenizer = att_text_generator_tokenizer(g_.get());
        att_tokens tokens;
        check(att_tokenize(tokenizer, text.data(), text.size(), nullptr, &tokens));
        std::vector<int32_t> ids(tokens.ids, tokens.ids + tokens.count);
        att_tokens_free(ctx_.get(), &tokens);
        return ids;
    }

    // Calls piece(std::string_view) with the text while it comes; false from it ends the text.
    template <typename Piece> std::string generate(std::string_view prompt, int64_t max_tokens, Piece piece) const
    {
        const std::vector<int32_t> ids = encode(prompt);
        const int64_t offsets[] = {0, static_cast<int64_t>(ids.size())};
        att_sampling sampling = {};
        sampling.size = sizeof sampling;
        check(att_text_generator_sampling(g_.get(), &sampling)); // the folder's, ...
        sampling.sample = true;
        sampling.top_k = 1; // ... but for these
        att_generate_options options = {};
        options.size = sizeof options;
        options.max_tokens = max_tokens;
        options.sampling = &sampling;
        options.user = &piece;
        options.token = [](void *user, const att_generated_token *token) {
            return (*static_cast<Piece *>(user))(token->bytes ? std::string_view(token->text, token->bytes)
                                                              : std::string_view());
        };
        att_generated out;
        check(att_generate(g_.get(), 1, ids.data(), offsets, &options, &out));
        std::string text(out.text.text, out.text.bytes);
        att_generated_free(ctx_.get(), &out);
        return text;
    }

  private:
    std::unique_ptr<att_ctx, void (*)(att_ctx *)> ctx_{nullptr, att_close};
    std::unique_ptr<att_text_generator, void (*)(att_text_generator *)> g_{nullptr, att_text_generator_free};
};

int main(int argc, char **argv)
try {
    if (argc != 3) {
        std::fprintf(stderr, "usage: generate FOLDER TEXT\n");
        return 2;
    }
    const Generator generator(argv[1]);
    const std::string text = generator.generate(argv[2], 24, [](std::string_view piece) {
        std::fwrite(piece.data(), 1, piece.size(), stdout);
        return std::fflush(stdout) == 0;
    });
    std::printf("\n%zu bytes\n", text.size());
} catch (const std::exception &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
