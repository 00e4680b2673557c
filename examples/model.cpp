// Translates a sentence, and prints how near that is to what a person wrote, from C++.
//
//     c++ -std=c++20 model.cpp $(pkg-config --cflags --libs attend_model) -o model
//     ./model models/tatoeba-de-en "Guten Morgen!" "Good morning!"
#include <attend_translate.h>
#include <attend_metric.h>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

static void check(att_status status)
{
    if (status != ATT_OK)
        throw std::runtime_error(att_error(nullptr));
}

static std::string translated(att_ctx *ctx, const att_translator *translator, const char *text)
{
    att_translation best;
    check(att_translate(translator, 1, &text, nullptr, ATT_OPTIONS(att_translate_options, .beam = 4), &best));
    std::string result(best.text.text, best.text.bytes);
    att_translation_free(ctx, &best);
    return result;
}

static void run(const char *folder, const char *text, const char *reference)
{
    att_ctx *made_ctx = nullptr;
    check(att_open(&made_ctx, ATT_OPTIONS(att_config, .n_threads = 2)));
    std::unique_ptr<att_ctx, void (*)(att_ctx *)> ctx(made_ctx, att_close);
    att_translator *made_translator = nullptr;
    check(att_translator_open(ctx.get(), folder, NULL, &made_translator));
    std::unique_ptr<att_translator, void (*)(att_translator *)> translator(made_translator, att_translator_free);

    const std::string translation = translated(ctx.get(), translator.get(), text);
    att_bleu_counts counts;
    att_bleu_info scores = {};
    scores.size = sizeof scores;
    check(att_bleu_count(ctx.get(), ATT_BLEU_TOKENIZER_13A, translation.data(), translation.size(), &reference, nullptr,
                         1, &counts));
    check(att_bleu_describe(&counts, ATT_OPTIONS(att_bleu_options, .effective_order = true), &scores));
    std::printf("%s\nBLEU %.1f, chrF %.1f\n", translation.c_str(), scores.bleu, scores.chrf);
}

int main(int argc, char **argv)
try {
    if (argc != 4) {
        std::fprintf(stderr, "usage: model TRANSLATOR_FOLDER TEXT REFERENCE\n");
        return 2;
    }
    run(argv[1], argv[2], argv[3]);
} catch (const std::exception &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
