/* Tiny models of GPT-2, written for a test: those of tests/golden/make_tiny_gpt2.py. */
#ifndef TINY_GPT2_H
#define TINY_GPT2_H

#include "tiny_model.h"

typedef struct tiny_gpt2 {
    const char *name;
    bool tied;
    int inner;
    const char *more; /* settings */
} tiny_gpt2;

static const tiny_gpt2 tiny_gpt2s[] = {
    {"tied", true, 64, ", \"n_inner\": null"},
    {"untied", false, 24, ", \"n_inner\": 24, \"layer_norm_epsilon\": 1e-3, \"tie_word_embeddings\": false"},
};
enum { N_GPT2S = sizeof tiny_gpt2s / sizeof tiny_gpt2s[0] };

static const tiny_gpt2 *tiny_gpt2_writing; /* the model whose weights tiny_put_gpt2 puts */

/* Matrices are [in, out]. The buffers are those of older files. */
static inline void tiny_put_gpt2(tiny_file *f)
{
    const int width = 16, inner = tiny_gpt2_writing->inner;
    const tiny_tensor layer[] = {{"ln_1.weight", 0, width},
                                 {"ln_1.bias", 0, width},
                                 {"attn.bias", 64, 64},
                                 {"attn.masked_bias", 0, 1},
                                 {"attn.c_attn.weight", width, 3 * width},
                                 {"attn.c_attn.bias", 0, 3 * width},
                                 {"attn.c_proj.weight", width, width},
                                 {"attn.c_proj.bias", 0, width},
                                 {"ln_2.weight", 0, width},
                                 {"ln_2.bias", 0, width},
                                 {"mlp.c_fc.weight", width, inner},
                                 {"mlp.c_fc.bias", 0, inner},
                                 {"mlp.c_proj.weight", inner, width},
                                 {"mlp.c_proj.bias", 0, width}};
    tiny_put(f, "wte.weight", 20, width);
    tiny_put(f, "wpe.weight", 64, width);
    tiny_put_all(f, "h.0.", layer, sizeof layer / sizeof layer[0]);
    tiny_put_all(f, "h.1.", layer, sizeof layer / sizeof layer[0]);
    tiny_put(f, "ln_f.weight", 0, width);
    tiny_put(f, "ln_f.bias", 0, width);
    if (!tiny_gpt2_writing->tied)
        tiny_put(f, "lm_head.weight", 20, width);
}

static inline void tiny_gpt2_write_config(const test_folder *folder, const tiny_gpt2 *m, const char *more)
{
    char text[1000];
    snprintf(text, sizeof text,
             "{\"model_type\": \"gpt2\", \"vocab_size\": 20, \"n_embd\": 16, \"n_layer\": 2, \"n_head\": 4, "
             "\"n_positions\": 64, \"activation_function\": \"gelu_new\"%s%s}",
             m->more, more);
    folder_write(folder, "config.json", text);
}

static inline test_folder tiny_gpt2_folder(const tiny_gpt2 *m, const tiny_weights *how)
{
    const test_folder folder = folder_new();
    tiny_gpt2_write_config(&folder, m, "");
    tiny_gpt2_writing = m;
    tiny_write_tensors(&folder, how, tiny_put_gpt2);
    return folder;
}

#endif
