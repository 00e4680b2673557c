/* Language models and tokenizers in .gguf files: as the folder with the same weights, and what is refused. */
#include "fixtures/check.h"
#include "fixtures/context.h"
#include "model/gguf_model.h"
#include "fixtures/tiny_gguf.h"

#include <math.h>

enum { VOCABULARY = LLAMA_VOCABULARY, TOKENS = 9 };

static const int32_t ids[TOKENS] = {1, 7, 9, 11, 3, 5, 2, 19, 18};
static const tiny_llama *const llama = &tiny_llamas[0];

static void logits(const char *path, float out[TOKENS * VOCABULARY]) { tiny_logits(ctx, path, ids, TOKENS, out); }

static const char *in_folder(const test_folder *f, const char *name)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/%s", f->path, name);
    return path;
}

/* ---- the same model */

static void assert_same_logits(const tiny_llama *m, const tiny_gguf *how, double tolerance)
{
    static float want[TOKENS * VOCABULARY], is[TOKENS * VOCABULARY];
    const test_folder f = tiny_llama_folder(m, NULL);
    logits(f.path, want);
    tiny_gguf_write(&f, "m.gguf", m, how);
    logits(in_folder(&f, "m.gguf"), is);
    double error = 0;
    for (int i = 0; i < TOKENS * VOCABULARY; i++)
        error = fmax(error, fabs((double)is[i] - (double)want[i]));
    if (!(error <= tolerance))
        fail_msg("%s: the logits differ by %g", m->name, error);
    folder_remove(&f);
}

/* The factors of Llama 3 for the frequencies of `base` -> factor [n] */
static void llama3_factors(float *factor, int n, double base, double scale, double original)
{
    for (int i = 0; i < n; i++) {
        const double turns = original * pow(base, -(double)i / n) / (2 * 3.14159265358979323846);
        const double smooth = fmin(fmax((turns - 1) / 3, 0), 1);
        factor[i] = (float)(1 / (smooth + (1 - smooth) / scale));
    }
}

static void logits_are_those_of_the_folder(void **state)
{
    (void)state;
    float factors[2];
    llama3_factors(factors, 2, 100, 8, 16);
    const gguf_value base[] = {{"llama.rope.freq_base", GGUF_F32, .number = 100}};
    const gguf_value linear[] = {{"llama.rope.freq_base", GGUF_F32, .number = 1000},
                                 {"llama.rope.scaling.type", GGUF_TEXT, .text = "linear"},
                                 {"llama.rope.scaling.factor", GGUF_F32, .number = 4}};
    const gguf_value untyped[] = {linear[0], linear[2]};
    assert_same_logits(llama, NULL, 0);
    assert_string_equal(tiny_llamas[1].name, "llama3");
    assert_same_logits(&tiny_llamas[1], &(tiny_gguf){.change = base, .changes = 1, .factors = factors}, 1e-5);
    assert_string_equal(tiny_llamas[2].name, "linear");
    assert_same_logits(&tiny_llamas[2], &(tiny_gguf){.change = linear, .changes = 3}, 0);
    assert_same_logits(&tiny_llamas[2], &(tiny_gguf){.change = untyped, .changes = 2}, 0);
    assert_string_equal(tiny_llamas[4].name, "qwen2");
    assert_same_logits(&tiny_llamas[4], NULL, 0);
    assert_string_equal(tiny_llamas[5].name, "qwen3");
    assert_same_logits(&tiny_llamas[5], NULL, 0);
    assert_string_equal(tiny_llamas[6].name, "olmo2");
    assert_same_logits(&tiny_llamas[6], NULL, 0);
    const gguf_value phi3[] = {{"phi3.rope.freq_base", GGUF_F32, .number = 1000},
                               {"phi3.rope.dimension_count", GGUF_U32, .number = 2},
                               {"phi3.attention.sliding_window", GGUF_U32, .number = 6}};
    assert_string_equal(tiny_llamas[7].name, "phi3");
    assert_same_logits(&tiny_llamas[7], &(tiny_gguf){.change = phi3, .changes = 3}, 0);
}

static void a_folder_with_one_file_is_a_model(void **state)
{
    (void)state;
    static float want[TOKENS * VOCABULARY], is[TOKENS * VOCABULARY];
    const test_folder f = tiny_llama_folder(llama, NULL);
    att_language_model *m;
    att_tokenizer *t;
    logits(f.path, want);
    tiny_gguf_write(&f, "m.gguf", llama, NULL);
    tiny_delete(&f, "config.json");
    logits(f.path, is);
    assert_memory_equal(is, want, sizeof want);
    assert_int_equal(att_tokenizer_open(ctx, f.path, &t), ATT_OK);
    assert_int_equal(att_tokenizer_size(t), 18); /* without unused tokens */
    att_tokenizer_free(t);
    tiny_gguf_write(&f, "n.gguf", llama, NULL);
    assert_int_equal(att_language_model_open(ctx, f.path, NULL, &m), ATT_ERR_ARGUMENT);
    check_message(ctx, "m.gguf");
    check_message(ctx, "n.gguf");
    folder_remove(&f);
}

/* ---- tokens */

/* Encodes a text, and compares the ids, which end with -1. */
static void assert_ids(const att_tokenizer *t, const char *text, const int32_t *want)
{
    att_tokens is;
    if (att_tokenize(t, text, strlen(text), NULL, &is))
        fail_msg("%s", att_error(ctx));
    int64_t n = 0;
    for (; want[n] >= 0; n++)
        if (n >= is.count || is.ids[n] != want[n])
            fail_msg("\"%s\": id %lld is %d, not %d", text, (long long)n, n < is.count ? is.ids[n] : -1, want[n]);
    assert_int_equal(is.count, n);
    att_tokens_free(ctx, &is);
}

#define IDS(...) ((const int32_t[]){__VA_ARGS__, -1})

static void assert_tokens(const char *path)
{
    att_tokenizer *t;
    if (att_tokenizer_open(ctx, path, &t))
        fail_msg("%s", att_error(ctx));
    assert_ids(t, "ab cd ab", IDS(10, 7, 13, 12));
    assert_ids(t, "a12<|end|><tool> <|begin|>b", IDS(3, 8, 9, 0, 2, 7, 1, 4));
    assert_ids(t, "[PAD18]a", IDS(8, 3)); /* the rest has no tokens */
    att_tokenizer_free(t);
}

static void tokens_are_those_of_the_file(void **state)
{
    (void)state;
    const test_folder f = tiny_llama_folder(llama, NULL);
    tiny_gguf_write(&f, "m.gguf", llama, NULL);
    assert_tokens(in_folder(&f, "m.gguf"));
    folder_remove(&f);
}

static void begin_and_end_are_added_as_the_file_says(void **state)
{
    (void)state;
    att_tokenizer *t;
    const test_folder f = tiny_llama_folder(llama, NULL);
    const gguf_value both[] = {{"tokenizer.ggml.add_bos_token", GGUF_BOOL, .number = 1},
                               {"tokenizer.ggml.add_eos_token", GGUF_BOOL, .number = 1}};
    const gguf_value llama3[] = {{"tokenizer.ggml.pre", GGUF_TEXT, .text = "llama-bpe"},
                                 {"tokenizer.ggml.padding_token_id", GGUF_U32, .number = 4294967295}};
    tiny_gguf_write(&f, "m.gguf", llama, &(tiny_gguf){.change = both, .changes = 2});
    assert_int_equal(att_tokenizer_open(ctx, in_folder(&f, "m.gguf"), &t), ATT_OK);
    assert_ids(t, "ab", IDS(1, 10, 0));
    assert_int_equal(att_tokenizer_special(t, ATT_TOKEN_BOS), 1);
    assert_int_equal(att_tokenizer_special(t, ATT_TOKEN_EOS), 0);
    assert_int_equal(att_tokenizer_special(t, ATT_TOKEN_PAD), -1);
    assert_true(att_tokenizer_is_special(t, 1));
    att_tokenizer_free(t);
    tiny_gguf_write(&f, "m.gguf", llama, &(tiny_gguf){.change = llama3, .changes = 2});
    assert_int_equal(att_tokenizer_open(ctx, in_folder(&f, "m.gguf"), &t), ATT_OK);
    assert_ids(t, "ab", IDS(1, 10));                               /* Llama 3 begins texts without being told */
    assert_int_equal(att_tokenizer_special(t, ATT_TOKEN_PAD), -1); /* out of range: there is none */
    att_tokenizer_free(t);
    folder_remove(&f);
}

/* All tags that are known give a tokenizer. */
static void each_tag_is_read(void **state)
{
    (void)state;
    static const char *const tags[] = {"gpt-2", "smollm", "llama-bpe", "dbrx", "qwen2", "tekken", "default"};
    const test_folder f = tiny_llama_folder(llama, NULL);
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        att_tokenizer *t;
        const gguf_value change[] = {{"tokenizer.ggml.pre", GGUF_TEXT, .text = tags[i]},
                                     {"tokenizer.ggml.add_bos_token", GGUF_BOOL, .number = 0}};
        tiny_gguf_write(&f, "m.gguf", llama, &(tiny_gguf){.change = change, .changes = 2});
        if (att_tokenizer_open(ctx, in_folder(&f, "m.gguf"), &t))
            fail_msg("%s", att_error(ctx));
        assert_ids(t, "ab cd!\n", IDS(10, 7, 13, 14, 15));
        att_tokenizer_free(t);
    }
    folder_remove(&f);
}

/* SentencePiece's own file and its pieces with their scores give the same ids. */
static void merges_by_score_are_those_of_sentencepiece(void **state)
{
    (void)state;
    enum { MAX = 4096 };
    static const char *text[MAX];
    static double kind[MAX], score[MAX];
    att_tokenizer *own, *t;
    const test_folder f = tiny_llama_folder(llama, NULL);
    assert_int_equal(att_tokenizer_open(ctx, "tests/golden/bpe.spm", &own), ATT_OK);
    const int64_t n = att_tokenizer_size(own);
    assert_true(n > 500 && n <= MAX);
    for (int64_t i = 0; i < n; i++) {
        text[i] = att_tokenizer_token(own, (int32_t)i);
        kind[i] = i == 0 ? 2 : i < 3 ? 3 : !strncmp(text[i], "<0x", 3) ? 6 : 1;
        score[i] = kind[i] == 1 ? -(double)i : 0;
    }
    const gguf_value change[] = {{"tokenizer.ggml.model", GGUF_TEXT, .text = "llama"},
                                 {"tokenizer.ggml.merges", .type = GGUF_NONE},
                                 {"tokenizer.ggml.add_bos_token", GGUF_BOOL, .number = 0},
                                 {"tokenizer.ggml.unknown_token_id", GGUF_U32, .number = 0},
                                 {"tokenizer.ggml.tokens", GGUF_TEXT, .count = n, .texts = text},
                                 {"tokenizer.ggml.token_type", GGUF_I32, .count = n, .numbers = kind},
                                 {"tokenizer.ggml.scores", GGUF_F32, .count = n, .numbers = score}};
    tiny_gguf_write(&f, "m.gguf", llama, &(tiny_gguf){.change = change, .changes = 7});
    if (att_tokenizer_open(ctx, in_folder(&f, "m.gguf"), &t))
        fail_msg("%s", att_error(ctx));
    static const char *const lines[] = {"The quick brown fox jumps over the lazy dog.", "a",
                                        "attention is all you need", "He said: it is 1234 times as large as before!"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        att_tokens want;
        int32_t list[256] = {0};
        assert_int_equal(
            att_tokenize(own, lines[i], strlen(lines[i]), ATT_OPTIONS(att_tokenize_options, .no_special = true), &want),
            ATT_OK);
        assert_true(want.count > 0 && want.count < 255);
        memcpy(list, want.ids, (size_t)want.count * sizeof *list);
        list[want.count] = -1;
        assert_ids(t, lines[i], list);
        att_tokens_free(ctx, &want);
    }
    att_tokenizer_free(t);
    att_tokenizer_free(own);
    folder_remove(&f);
}

/* ---- settings as if they were files */

static void settings_are_read_from_either(void **state)
{
    (void)state;
    att_settings s;
    const test_folder f = tiny_llama_folder(llama, NULL);
    att_model_settings_read(&s, ctx, f.path, "config.json", true);
    assert_int_equal(att_settings_int(&s, "hidden_size", 1, 100), LLAMA_HIDDEN);
    att_settings_close(&s);
    tiny_gguf_write(&f, "m.gguf", llama, NULL);
    const char *path = in_folder(&f, "m.gguf");
    att_model_settings_read(&s, ctx, path, "config.json", true);
    assert_int_equal(att_settings_int(&s, "hidden_size", 1, 100), LLAMA_HIDDEN);
    att_settings_close(&s);
    att_model_settings_read(&s, ctx, path, "generation_config.json", false);
    assert_int_equal(att_settings_int(&s, "bos_token_id", 0, 100), 1);
    att_settings_close(&s);
    tiny_delete(&f, "config.json");
    att_model_settings_read(&s, ctx, f.path, "tokenizer_config.json", false);
    assert_string_equal(att_settings_text(&s, "chat_template", ""), "{{ messages }}");
    assert_string_equal(att_settings_text(&s, "eos_token", ""), "<|end|>");
    assert_int_equal(s.status, ATT_OK);
    att_settings_close(&s);
    att_model_settings_read(&s, ctx, f.path, "modules.json", false);
    assert_true(!s.status && !s.root);
    att_settings_close(&s);
    att_model_settings_read(&s, ctx, f.path, "modules.json", true);
    assert_int_equal(s.status, ATT_ERR_IO);
    check_message(ctx, "there is no modules.json");
    att_settings_close(&s);
    folder_remove(&f);
}

static void sampling_is_that_of_the_file(void **state)
{
    (void)state;
    const gguf_value values[] = {{"general.sampling.temp", GGUF_F32, .number = 0.6},
                                 {"general.sampling.top_k", GGUF_I32, .number = 20},
                                 {"general.sampling.top_p", GGUF_F32, .number = 0.95},
                                 {"general.sampling.penalty_repeat", GGUF_F32, .number = 1.1},
                                 {"general.sampling.mirostat", GGUF_I32, .number = 0}};
    const gguf_value mirostat[] = {{"general.sampling.mirostat", GGUF_I32, .number = 2}};
    const test_folder f = tiny_llama_folder(llama, NULL);
    att_text_generator *g;
    att_sampling is = {.size = sizeof is};
    tiny_gguf_write(&f, "m.gguf", llama, &(tiny_gguf){.change = values, .changes = 5});
    assert_int_equal(att_text_generator_open(ctx, in_folder(&f, "m.gguf"), NULL, &g), ATT_OK);
    assert_int_equal(att_text_generator_sampling(g, &is), ATT_OK);
    att_text_generator_free(g);
    assert_true(is.sample && is.temperature == 0.6f && is.top_k == 20 && is.top_p == 0.95f &&
                is.repetition_penalty == 1.1f && is.min_p == 0);
    tiny_gguf_write(&f, "m.gguf", llama, &(tiny_gguf){.change = mirostat, .changes = 1});
    assert_int_equal(att_text_generator_open(ctx, in_folder(&f, "m.gguf"), NULL, &g), ATT_ERR_UNSUPPORTED);
    check_message(ctx, "\"general.sampling.mirostat\" is 2, which is not supported; 0 is");
    folder_remove(&f);
}

/* ---- what is refused */

static void assert_refused(const tiny_gguf *how, att_status status, const char *message)
{
    att_language_model *m;
    const test_folder f = tiny_llama_folder(llama, NULL);
    tiny_gguf_write(&f, "m.gguf", llama, how);
    const att_status s = att_language_model_open(ctx, in_folder(&f, "m.gguf"), NULL, &m);
    if (s != status)
        fail_msg("status %d, not %d, of: %s", s, status, message);
    assert_null(m);
    check_message(ctx, "m.gguf");
    check_message(ctx, message);
    folder_remove(&f);
}

static void assert_value_refused(gguf_value v, att_status status, const char *message)
{
    assert_refused(&(tiny_gguf){.change = &v, .changes = 1}, status, message);
}

static void models_that_are_not_built_are_refused_by_name(void **state)
{
    (void)state;
    const att_status no = ATT_ERR_UNSUPPORTED, bad = ATT_ERR_FORMAT;
    assert_value_refused((gguf_value){"general.architecture", GGUF_TEXT, .text = "gemma3"}, no,
                         "\"gemma3\", which is not supported; gpt2, llama, olmo2, phi3, qwen2 and qwen3 are");
    assert_value_refused((gguf_value){"general.architecture", .type = GGUF_NONE}, bad,
                         "there is no \"general.architecture\"");
    assert_value_refused((gguf_value){"llama.expert_count", GGUF_U32, .number = 8}, no, "mixtures of experts");
    assert_value_refused((gguf_value){"llama.attention.value_length", GGUF_U32, .number = 8}, no,
                         "\"llama.attention.value_length\" is not the size of keys, 4");
    assert_value_refused((gguf_value){"llama.rope.dimension_count", GGUF_U32, .number = 2}, no,
                         "rotating a part of them is not supported");
    assert_value_refused((gguf_value){"llama.rope.scaling.type", GGUF_TEXT, .text = "yarn"}, no,
                         "\"yarn\", which is not supported; none and linear are");
    assert_value_refused((gguf_value){"llama.attention.sliding_window", GGUF_U32, .number = 16}, no,
                         "a sliding window");
    assert_value_refused((gguf_value){"llama.rope.scale_linear", GGUF_F32, .number = 2}, no,
                         "\"llama.rope.scale_linear\"");
}

static void scaling_of_positions_that_is_not_built_is_refused(void **state)
{
    (void)state;
    float factors[2];
    const gguf_value type = {"llama.rope.scaling.type", GGUF_TEXT, .text = "yarn"};
    const gguf_value factor = {"llama.rope.scaling.factor", GGUF_F32, .number = 4};
    llama3_factors(factors, 2, 10000, 8, 8192);
    assert_refused(&(tiny_gguf){.change = &type, .changes = 1, .factors = factors}, ATT_ERR_UNSUPPORTED,
                   "\"llama.rope.scaling.type\" is \"yarn\", which is not supported together with tensor "
                   "\"rope_freqs.weight\"");
    assert_refused(&(tiny_gguf){.change = &factor, .changes = 1, .factors = factors}, ATT_ERR_UNSUPPORTED,
                   "\"linear\", which is not supported together with tensor \"rope_freqs.weight\"");
    assert_value_refused((gguf_value){"llama.rope.scaling.attn_factor", GGUF_F32, .number = 1.5}, ATT_ERR_UNSUPPORTED,
                         "\"llama.rope.scaling.attn_factor\" is 1.5, which is not supported; 1 is");
}

static void wrong_values_and_tensors_are_named(void **state)
{
    (void)state;
    const att_status bad = ATT_ERR_FORMAT;
    const float factors[2] = {1, -1};
    assert_value_refused((gguf_value){"llama.block_count", .type = GGUF_NONE}, bad,
                         "there is no \"llama.block_count\"");
    assert_value_refused((gguf_value){"llama.block_count", GGUF_U32, .number = 0}, bad, "\"llama.block_count\" is 0");
    assert_value_refused((gguf_value){"llama.attention.layer_norm_rms_epsilon", .type = GGUF_NONE}, bad, "rms_epsilon");
    assert_value_refused((gguf_value){"llama.attention.layer_norm_rms_epsilon", GGUF_F32, .number = NAN}, bad,
                         "finite");
    assert_value_refused((gguf_value){"llama.attention.head_count", GGUF_U32, .number = 12}, bad,
                         "16 rows, which are not 12 heads");
    assert_value_refused((gguf_value){"llama.feed_forward_length", GGUF_U32, .number = 23}, ATT_ERR_SHAPE, "mlp");
    assert_refused(&(tiny_gguf){.without = "blk.1.ffn_up.weight"}, bad, "there is no tensor \"blk.1.ffn_up.weight\"");
    assert_refused(&(tiny_gguf){.without = "token_embd.weight"}, bad, "there is no tensor \"token_embd.weight\"");
    assert_refused(&(tiny_gguf){.extra = "blk.0.ffn_gate_inp.weight"}, ATT_ERR_UNSUPPORTED,
                   "tensor \"blk.0.ffn_gate_inp.weight\" has no place in a model of this architecture");
    assert_refused(&(tiny_gguf){.extra = "blk.7.ffn_up.weight"}, ATT_ERR_UNSUPPORTED,
                   "tensor \"model.layers.7.mlp.up_proj.weight\" has no place in the model");
    assert_refused(&(tiny_gguf){.factors = factors}, bad, "\"rope_freqs.weight\" has -1, not a factor");
}

/* A bias in blocks, whose numbers cannot be put in the order of rotary positions one by one */
static void tensors_that_cannot_be_read_are_named(void **state)
{
    (void)state;
    enum { BLOCK = 32, Q8_0 = 8 };
    static const float zero[BLOCK];
    att_gguf *g;
    att_gguf_weights w;
    gguf_file file = {0};
    const test_folder f = tiny_llama_folder(llama, NULL);
    tiny_gguf_settings(&file, llama, &(tiny_gguf){0});
    tiny_gguf_tensors(&file, &f, llama, &(tiny_gguf){0});
    gguf_put_tensor(&file, "blk.0.attn_q.bias", 1, (const int64_t[]){BLOCK}, zero);
    file.tensors.data[file.tensors.count - 12] = Q8_0; /* the type; an offset of 8 bytes follows */
    gguf_write(&file, &f, "m.gguf");
    assert_int_equal(att_gguf_open(ctx, in_folder(&f, "m.gguf"), &g), ATT_OK);
    assert_int_equal(att_gguf_weights_read(ctx, g, &w), ATT_ERR_UNSUPPORTED);
    check_message(ctx, "m.gguf: tensor \"blk.0.attn_q.bias\" of type Q8_0 could not be read");
    att_gguf_free(g);
    folder_remove(&f);
}

/* 100 bytes after the header have space for three tensors, which have 32 bytes or more each. */
static void more_tensors_than_fit_are_refused(void **state)
{
    (void)state;
    static const _Alignas(8) unsigned char four[24 + 100] = "GGUF\3\0\0\0\4";
    att_gguf *g;
    assert_int_equal(att_gguf_from_memory(ctx, "four", four, sizeof four, &g), ATT_ERR_FORMAT);
    check_message(ctx, "four: 4 tensors cannot be in a file of 124 bytes");
}

static void assert_tokenizer_refused(const gguf_value *v, int n, att_status status, const char *message)
{
    att_tokenizer *t;
    const test_folder f = tiny_llama_folder(llama, NULL);
    tiny_gguf_write(&f, "m.gguf", llama, &(tiny_gguf){.change = v, .changes = n});
    assert_int_equal(att_tokenizer_open(ctx, in_folder(&f, "m.gguf"), &t), status);
    assert_null(t);
    check_message(ctx, "m.gguf");
    check_message(ctx, message);
    folder_remove(&f);
}

static void tokenizers_that_are_not_known_are_refused_by_name(void **state)
{
    (void)state;
    static const char *const few[] = {"a", ""}, *const no_text[] = {"a", "\xFF"}, *const strange[] = {"a z"};
    const att_status no = ATT_ERR_UNSUPPORTED, bad = ATT_ERR_FORMAT;
    const gguf_value pre = {"tokenizer.ggml.pre", GGUF_TEXT, .text = "superbpe"};
    const gguf_value model = {"tokenizer.ggml.model", GGUF_TEXT, .text = "bert"};
    const gguf_value none = {"tokenizer.ggml.tokens", .type = GGUF_NONE};
    const gguf_value fewer = {"tokenizer.ggml.tokens", GGUF_TEXT, .count = 2, .texts = few};
    const gguf_value merges = {"tokenizer.ggml.merges", GGUF_TEXT, .count = 1, .texts = strange};
    const gguf_value bos[] = {{"tokenizer.ggml.add_bos_token", GGUF_BOOL, .number = 1},
                              {"tokenizer.ggml.bos_token_id", GGUF_U32, .number = 20}};
    const gguf_value no_kinds = {"tokenizer.ggml.token_type", .type = GGUF_NONE};
    const gguf_value empty[] = {fewer, no_kinds};
    const gguf_value invalid[] = {{"tokenizer.ggml.tokens", GGUF_TEXT, .count = 2, .texts = no_text}, no_kinds};
    const gguf_value pieces[] = {{"tokenizer.ggml.model", GGUF_TEXT, .text = "llama"},
                                 {"tokenizer.ggml.merges", .type = GGUF_NONE}};
    assert_tokenizer_refused(&pre, 1, no, "\"superbpe\", a way to split texts into words that is not known");
    assert_tokenizer_refused(&model, 1, no, "\"bert\", a kind of tokenizer that is not supported; gpt2 and llama are");
    assert_tokenizer_refused(&none, 1, bad, "has 0 tokens");
    assert_tokenizer_refused(&fewer, 1, bad, "has 20 numbers, but there are 2 tokens");
    assert_tokenizer_refused(empty, 2, bad, "token 1 is empty");
    assert_tokenizer_refused(invalid, 2, bad, "not text in UTF-8");
    assert_tokenizer_refused(&merges, 1, bad, "\"z\"");
    assert_tokenizer_refused(bos, 2, bad, "\"tokenizer.ggml.bos_token_id\" is 20");
    assert_tokenizer_refused(pieces, 2, bad, "neither \"tokenizer.ggml.merges\" nor \"tokenizer.ggml.scores\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_are_those_of_the_folder),
        cmocka_unit_test(a_folder_with_one_file_is_a_model),
        cmocka_unit_test(tokens_are_those_of_the_file),
        cmocka_unit_test(begin_and_end_are_added_as_the_file_says),
        cmocka_unit_test(each_tag_is_read),
        cmocka_unit_test(merges_by_score_are_those_of_sentencepiece),
        cmocka_unit_test(settings_are_read_from_either),
        cmocka_unit_test(sampling_is_that_of_the_file),
        cmocka_unit_test(models_that_are_not_built_are_refused_by_name),
        cmocka_unit_test(scaling_of_positions_that_is_not_built_is_refused),
        cmocka_unit_test(wrong_values_and_tensors_are_named),
        cmocka_unit_test(tensors_that_cannot_be_read_are_named),
        cmocka_unit_test(more_tensors_than_fit_are_refused),
        cmocka_unit_test(tokenizers_that_are_not_known_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
