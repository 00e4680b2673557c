/* Writing of .gguf files and of folders of another type: the same model and tokenizer, or an error. */
#include "fixtures/check.h"
#include "fixtures/gguf_write.h"
#include "fixtures/progress.h"
#include "fixtures/tiny_gpt2.h"

#include <jansson.h>

enum { VOCABULARY = LLAMA_VOCABULARY, TOKENS = 5 };

static const int32_t ids[TOKENS] = {1, 7, 9, 11, 3};

/* Rows of all matrices are in whole blocks of 32. */
static const tiny_llama wide[] = {{.name = "llama",
                                   .type = "llama",
                                   .head_dim = 8,
                                   .hidden = 32,
                                   .inner = 64,
                                   .qkv_bias = true,
                                   .other_bias = true,
                                   .more = ", \"attention_bias\": true, \"mlp_bias\": true"},
                                  {.name = "qwen2",
                                   .type = "qwen2",
                                   .head_dim = 8,
                                   .hidden = 32,
                                   .inner = 64,
                                   .tied = true,
                                   .qkv_bias = true,
                                   .more = ""},
                                  {.name = "qwen3",
                                   .type = "qwen3",
                                   .head_dim = 16,
                                   .hidden = 32,
                                   .inner = 32,
                                   .qk_norm = true,
                                   .more = ", \"head_dim\": 16"}};

/* ---- weights */

static void a_file_of_f32_has_the_logits_of_the_folder(void **state)
{
    (void)state;
    static float want[TOKENS * VOCABULARY], is[TOKENS * VOCABULARY];
    for (int i = 0; i < N_LLAMAS; i++) {
        const tiny_llama *m = &tiny_llamas[i];
        if (!strcmp(m->name, "mistral") || !strcmp(m->name, "qwen2_window"))
            continue; /* a file cannot state their windows */
        const fixture f = begin(m, NULL);
        tiny_logits(ctx, f.folder.path, ids, TOKENS, want);
        write_file(f.folder.path, f.file, ATT_F32);
        tiny_logits(ctx, f.file, ids, TOKENS, is);
        /* Factors of frequencies are f32 in a file: an angle of at most TOKENS is off by TOKENS * 2^-24, which the
         * largest of these logits amplify less than 100 times. */
        const double tolerance = strcmp(m->name, "llama3") ? 0 : 100 * TOKENS * (double)FLT_EPSILON;
        for (int k = 0; k < TOKENS * VOCABULARY; k++)
            if (!(fabs((double)is[k] - (double)want[k]) <= tolerance))
                fail_msg("%s: logit %d is %.9g, not %.9g", m->name, k, (double)is[k], (double)want[k]);
        end(&f);
    }
}

/* Fails unless two folders have the same tensors, but for the buffers of older folders. */
static void assert_same_weights(const char *a, const char *b)
{
    char path[2][320];
    att_safetensors *x, *y;
    snprintf(path[0], sizeof path[0], "%s/model.safetensors", a);
    snprintf(path[1], sizeof path[1], "%s/model.safetensors", b);
    assert_int_equal(att_safetensors_open(ctx, path[0], &x), ATT_OK);
    assert_int_equal(att_safetensors_open(ctx, path[1], &y), ATT_OK);
    for (int64_t i = 0; i < att_safetensors_count(x); i++) {
        att_tensor p, q;
        char name[128];
        const char *theirs = att_safetensors_name(x, i);
        if (strstr(theirs, ".attn.bias") || strstr(theirs, "masked_bias"))
            continue;
        snprintf(name, sizeof name, "%s%s", strcmp(theirs, "lm_head.weight") ? "transformer." : "", theirs);
        assert_int_equal(att_safetensors_get(x, theirs, &p), ATT_OK);
        if (att_safetensors_get(y, name, &q))
            fail_msg("%s", att_error(ctx));
        const int64_t bytes = att_count(&p) * (int64_t)sizeof(float);
        assert_int_equal(p.rank, q.rank);
        assert_memory_equal(p.dim, q.dim, (size_t)p.rank * sizeof *p.dim);
        assert_memory_equal(p.data, q.data, (size_t)bytes);
    }
    att_safetensors_free(x);
    att_safetensors_free(y);
}

/* The matrices of GPT-2 are [in, out] in a folder, and [out, in] in a file, by the names of the package gguf. */
static void gpt2_is_written_and_read(void **state)
{
    (void)state;
    static float want[TOKENS * VOCABULARY], is[TOKENS * VOCABULARY];
    for (int i = 0; i < N_GPT2S; i++) {
        const fixture f = begin_in(tiny_gpt2_folder(&tiny_gpt2s[i], NULL));
        tiny_logits(ctx, f.folder.path, ids, TOKENS, want);
        write_file(f.folder.path, f.file, ATT_F32);
        tiny_logits(ctx, f.file, ids, TOKENS, is);
        assert_memory_equal(is, want, sizeof want);
        att_gguf *g = open_file(f.file);
        const att_gguf_tensor *t = att_gguf_find(g, "blk.1.ffn_up.weight");
        assert_int_equal(t->dim[0], tiny_gpt2s[i].inner);
        assert_int_equal(t->dim[1], 16);
        assert_non_null(att_gguf_find(g, "blk.0.attn_qkv.bias"));
        assert_non_null(att_gguf_find(g, "position_embd.weight"));
        assert_int_equal(att_gguf_find(g, "output.weight") == NULL, tiny_gpt2s[i].tied);
        assert_int_equal(att_gguf_count(g), 2 + 2 * 12 + 2 + !tiny_gpt2s[i].tied);
        assert_true((float)att_gguf_number(g, "gpt2.attention.layer_norm_epsilon", 0) == (i ? 1e-3F : 1e-5F));
        assert_int_equal(att_gguf_int(g, "gpt2.feed_forward_length", 0, 100), tiny_gpt2s[i].inner);
        att_gguf_free(g);
        if (att_gguf_convert(ctx, f.file, f.out, NULL))
            fail_msg("%s", att_error(ctx));
        assert_same_weights(f.folder.path, f.out);
        end(&f);
    }
}

/* Logits of a model whose weights become int8 when it is opened */
static void logits_of(const char *folder, att_weight_type weights, float out[TOKENS * VOCABULARY])
{
    att_language_model *m;
    att_tape *t;
    att_tensor v;
    const att_model_options o = {.size = sizeof o, .weights = weights};
    if (att_language_model_open(ctx, folder, &o, &m))
        fail_msg("%s", att_error(ctx));
    assert_int_equal(att_tape_new(ctx, NULL, &t), ATT_OK);
    att_var *y = att_language_model_apply(t, m, ids, (const int64_t[]){0, TOKENS}, 1, NULL, NULL);
    assert_int_equal(att_var_value(t, y, &v), ATT_OK);
    memcpy(out, v.data, TOKENS * VOCABULARY * sizeof *out);
    att_tape_free(t);
    att_language_model_free(m);
}

static void gpt2_of_q8_0_becomes_a_folder(void **state)
{
    (void)state;
    static const tiny_gpt2 model = {"wide", true, 64, 32, ", \"n_inner\": 64"};
    char path[320];
    att_safetensors *file[2];
    att_tensor t[2];
    const fixture f = begin_in(tiny_gpt2_folder(&model, NULL));
    write_file(f.folder.path, f.file, ATT_Q8_0);
    att_gguf *g = open_file(f.file);
    assert_string_equal(att_gguf_find(g, "blk.1.attn_qkv.weight")->type_name, "Q8_0");
    assert_string_equal(att_gguf_find(g, "position_embd.weight")->type_name, "F32");
    att_gguf_free(g);
    if (att_gguf_convert(ctx, f.file, f.out, NULL))
        fail_msg("%s", att_error(ctx));
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/model.safetensors", i ? f.out : f.folder.path);
        assert_int_equal(att_safetensors_open(ctx, path, &file[i]), ATT_OK);
        assert_int_equal(
            att_safetensors_get(file[i], i ? "transformer.h.1.mlp.c_fc.weight" : "h.1.mlp.c_fc.weight", &t[i]), ATT_OK);
    }
    assert_memory_equal(t[0].dim, t[1].dim, 2 * sizeof *t[0].dim);
    const float *x = t[0].data, *y = t[1].data;
    float largest =
        0; /* a number of a block is off by half a step of at most the largest / 127; 1.01: f16 of the step */
    for (int64_t k = 0; k < att_count(&t[0]); k++)
        largest = fmaxf(largest, fabsf(x[k]));
    for (int64_t k = 0; k < att_count(&t[0]); k++)
        assert_true(fabsf(x[k] - y[k]) <= largest * (1 / 254.0F + 0x1p-11F));
    att_safetensors_free(file[0]);
    att_safetensors_free(file[1]);
    end(&f);
}

static void a_file_of_q8_0_has_the_logits_of_int8_weights(void **state)
{
    (void)state;
    static float want[TOKENS * VOCABULARY], is[TOKENS * VOCABULARY];
    for (int i = 0; i < 3; i++) {
        const fixture f = begin(&wide[i], &(tiny_weights){.bf16 = i == 1});
        logits_of(f.folder.path, ATT_WEIGHT_TYPE_INT8, want);
        write_file(f.folder.path, f.file, ATT_Q8_0);
        tiny_logits(ctx, f.file, ids, TOKENS, is);
        assert_memory_equal(is, want, sizeof want);
        att_gguf *g = open_file(f.file);
        assert_string_equal(att_gguf_find(g, "token_embd.weight")->type_name, "Q8_0");
        assert_string_equal(att_gguf_find(g, "blk.1.attn_q.weight")->type_name, "Q8_0");
        assert_string_equal(att_gguf_find(g, "blk.1.attn_norm.weight")->type_name, "F32");
        assert_int_equal(att_gguf_int(g, "general.file_type", 0, 100), 7);
        assert_int_equal(att_gguf_int(g, "general.quantization_version", 0, 100), 2);
        att_gguf_free(g);
        end(&f);
    }
}

static void a_file_of_q4_0_has_the_logits_of_int4_weights(void **state)
{
    (void)state;
    static float want[TOKENS * VOCABULARY], is[TOKENS * VOCABULARY];
    const fixture f = begin(&wide[0], NULL);
    logits_of(f.folder.path, ATT_WEIGHT_TYPE_INT4, want);
    write_file(f.folder.path, f.file, ATT_Q4_0);
    tiny_logits(ctx, f.file, ids, TOKENS, is);
    assert_memory_equal(is, want, sizeof want);
    att_gguf *g = open_file(f.file);
    assert_string_equal(att_gguf_find(g, "blk.1.attn_q.weight")->type_name, "Q4_0");
    assert_int_equal(att_gguf_int(g, "general.file_type", 0, 100), 2);
    att_gguf_free(g);
    end(&f);
}

static void rows_that_are_no_blocks_become_f16(void **state)
{
    (void)state;
    static const att_dtype dtypes[] = {ATT_Q8_0, ATT_F16, ATT_BF16, ATT_F32};
    static const char *const types[] = {"F16", "F16", "BF16", "F32"};
    static const int file_type[] = {7, 1, 32, 0};
    const fixture f = begin(&tiny_llamas[0], NULL);
    for (int i = 0; i < 4; i++) {
        write_file(f.folder.path, f.file, dtypes[i]);
        att_gguf *g = open_file(f.file);
        assert_string_equal(att_gguf_find(g, "blk.0.ffn_down.weight")->type_name, types[i]);
        assert_string_equal(att_gguf_find(g, "output_norm.weight")->type_name, "F32");
        assert_int_equal(att_gguf_int(g, "general.file_type", 0, 100), file_type[i]);
        att_gguf_free(g);
    }
    end(&f);
}

/* ---- values */

static bool has_value(const att_gguf *g, const char *key, att_byte_view want)
{
    att_byte_view raw;
    const char *is;
    for (int64_t i = 0; (is = att_gguf_raw(g, i, &raw)); i++)
        if (!strcmp(is, key))
            return raw.bytes == want.bytes && !memcmp(raw.data, want.data, raw.bytes);
    return false;
}

static void assert_same_tensors(const att_gguf *a, const att_gguf *b)
{
    assert_int_equal(att_gguf_count(a), att_gguf_count(b));
    for (int64_t i = 0; i < att_gguf_count(a); i++) {
        const att_gguf_tensor *x = att_gguf_at(a, i), *y = att_gguf_at(b, i);
        assert_string_equal(x->name, y->name);
        assert_int_equal(x->type, y->type);
        assert_int_equal(x->rank, y->rank);
        assert_memory_equal(x->dim, y->dim, (size_t)x->rank * sizeof *x->dim);
        assert_memory_equal(x->data, y->data, (size_t)x->bytes);
    }
}

/* From a .gguf file by a folder to another one, which has the same values, but sizes that are implied */
static void assert_round_trip(const tiny_llama *m, const tiny_gguf *how)
{
    const fixture f = begin(m, NULL);
    char path[300];
    snprintf(path, sizeof path, "%s/in.gguf", f.folder.path);
    tiny_gguf_write(&f.folder, "in.gguf", m, how);
    if (att_gguf_convert(ctx, path, f.out, NULL))
        fail_msg("%s", att_error(ctx));
    write_file(f.out, f.file, ATT_F32);
    att_gguf *a = open_file(path), *b = open_file(f.file);
    assert_same_tensors(a, b);
    att_byte_view raw;
    const char *key;
    for (int64_t i = 0; (key = att_gguf_raw(a, i, &raw)); i++)
        if (!strstr(key, "_length") && !has_value(b, key, raw))
            fail_msg("%s is not the same", key);
    assert_int_equal(strcmp(m->type, "qwen3") == 0, att_gguf_has(b, "qwen3.attention.key_length"));
    att_gguf_free(a);
    att_gguf_free(b);
    end(&f);
}

static void a_round_trip_changes_nothing(void **state)
{
    (void)state;
    static const char *const tags[] = {"gpt-2", "smollm", "llama-bpe", "dbrx", "qwen2", "tekken", "default"};
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        const gguf_value values[] = {{"tokenizer.ggml.pre", GGUF_TEXT, .text = tags[i]},
                                     {"tokenizer.ggml.add_bos_token", GGUF_BOOL, .number = (double)(i % 2)},
                                     {"tokenizer.ggml.eot_token_id", GGUF_U32, .number = 2},
                                     {"tokenizer.ggml.eom_token_id", GGUF_U32, .number = 1},
                                     {"tokenizer.ggml.padding_token_id", GGUF_U32, .number = 0}};
        assert_round_trip(&tiny_llamas[i % 3 == 0 ? 0 : 3 + i % 3], &(tiny_gguf){.change = values, .changes = 5});
    }
}

/* Scores are those that SentencePiece writes: 0, -1, -2 in the order of the merges; characters have lower ones. Two
 * pieces have the same one, and their merges are sorted by length: aaa a, aa aa, aa a, a aaa, a aa. */
static void pieces_with_scores_are_the_same(void **state)
{
    (void)state;
#define SPACE "\xE2\x96\x81"
    static const char *const pieces[VOCABULARY] = {
        "<unk>", "<s>", "</s>", "<0x0A>", "ab", SPACE "a", SPACE "ab", "bc", SPACE "c", "abc",
        "aa",    "aaa", "aaaa", SPACE,    "a",  "b",       "c",        "d",  "[PAD18]", "[PAD19]"};
    static const double kinds[VOCABULARY] = {2, 3, 3, 6, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 5, 5};
    double score[VOCABULARY] = {0};
    for (int i = 4; i < 18; i++)
        score[i] = 4 - i + (i > 11);
    const gguf_value values[] = {{"tokenizer.ggml.model", GGUF_TEXT, .text = "llama"},
                                 {"tokenizer.ggml.pre", GGUF_TEXT, .text = "default"},
                                 {"tokenizer.ggml.merges", .type = GGUF_NONE},
                                 {"tokenizer.ggml.add_bos_token", GGUF_BOOL, .number = 1},
                                 {"tokenizer.ggml.add_eos_token", GGUF_BOOL, .number = 1},
                                 {"tokenizer.ggml.add_space_prefix", GGUF_BOOL, .number = 1},
                                 {"tokenizer.ggml.unknown_token_id", GGUF_U32, .number = 0},
                                 {"tokenizer.ggml.tokens", GGUF_TEXT, .count = VOCABULARY, .texts = pieces},
                                 {"tokenizer.ggml.token_type", GGUF_I32, .count = VOCABULARY, .numbers = kinds},
                                 {"tokenizer.ggml.scores", GGUF_F32, .count = VOCABULARY, .numbers = score}};
    assert_round_trip(&tiny_llamas[0], &(tiny_gguf){.change = values, .changes = 10});
}

static void settings_of_positions_are_values(void **state)
{
    (void)state;
    fixture f = begin(&tiny_llamas[2], NULL); /* linear */
    write_file(f.folder.path, f.file, ATT_F32);
    att_gguf *g = open_file(f.file);
    assert_string_equal(att_gguf_text(g, "llama.rope.scaling.type", NULL), "linear");
    assert_true(att_gguf_number(g, "llama.rope.scaling.factor", 0) == 4);
    assert_true(att_gguf_number(g, "llama.rope.freq_base", 0) == 1000);
    assert_null(att_gguf_find(g, "rope_freqs.weight"));
    att_gguf_free(g);
    end(&f);
    f = begin(&tiny_llamas[1], NULL); /* llama3: frequencies 1 and 0.1 of a context of 16 turn 2.5 and 0.25 times */
    write_file(f.folder.path, f.file, ATT_F32);
    g = open_file(f.file);
    const float *factor = att_gguf_find(g, "rope_freqs.weight")->data;
    const double smooth = (16 / (2 * 3.14159265358979323846) - 1) / 3;
    assert_true(fabs((double)factor[0] - 1 / (smooth + (1 - smooth) / 8)) < 1e-6);
    assert_true(fabsf(factor[1] - 8) < 1e-6F);
    assert_false(att_gguf_has(g, "llama.rope.scaling.type"));
    att_gguf_free(g);
    end(&f);
}

static void values_of_a_file_are_copied(void **state)
{
    (void)state;
    const gguf_value more[] = {{"general.license", GGUF_TEXT, .text = "apache-2.0"},
                               {"general.file_type", GGUF_U32, .number = 3},
                               {"tokenizer.ggml.pre", GGUF_TEXT, .text = "superbpe"}};
    const fixture f = begin(&tiny_llamas[0], NULL);
    char path[300];
    snprintf(path, sizeof path, "%s/in.gguf", f.folder.path);
    tiny_gguf_write(&f.folder, "in.gguf", &tiny_llamas[0], &(tiny_gguf){.change = more, .changes = 3});
    write_file(path, f.file, ATT_F16);
    att_gguf *a = open_file(path), *b = open_file(f.file);
    att_byte_view raw;
    const char *key;
    for (int64_t i = 0; (key = att_gguf_raw(a, i, &raw)); i++)
        assert_int_equal(has_value(b, key, raw), strcmp(key, "general.file_type") != 0);
    assert_int_equal(att_gguf_int(b, "general.file_type", 0, 100), 1);
    assert_string_equal(att_gguf_find(b, "blk.1.attn_k.weight")->type_name, "F16");
    att_gguf_free(a);
    att_gguf_free(b);
    end(&f);
}

/* A list of templates is in a file as in those of the package gguf, and in a folder again as a list. */
static void templates_with_names_are_kept(void **state)
{
    (void)state;
    static const char list[] = "[{\"name\": \"default\", \"template\": \"d\"}, {\"name\": \"rag\", \"template\": "
                               "\"r\"}, {\"name\": \"tool_use\", \"template\": \"t\"}]";
    const fixture f = begin(&tiny_llamas[0], NULL);
    char text[400], config[400];
    att_byte_view names[2];
    snprintf(text, sizeof text, "{\"bos_token\": \"<|begin|>\", \"eos_token\": \"<|end|>\", \"chat_template\": %s}",
             list);
    folder_write(&f.folder, "tokenizer_config.json", text);
    write_file(f.folder.path, f.file, ATT_F32);
    att_gguf *g = open_file(f.file);
    assert_string_equal(att_gguf_text(g, "tokenizer.chat_template", ""), "d");
    assert_string_equal(att_gguf_text(g, "tokenizer.chat_template.rag", ""), "r");
    assert_int_equal(att_gguf_texts(g, "tokenizer.chat_templates"), 2);
    att_gguf_get_texts(g, "tokenizer.chat_templates", names, 2);
    assert_memory_equal(names[1].data, "tool_use", 8);
    att_gguf_free(g);
    if (att_gguf_convert(ctx, f.file, f.out, NULL))
        fail_msg("%s", att_error(ctx));
    snprintf(config, sizeof config, "%s/tokenizer_config.json", f.out);
    json_t *root = json_load_file(config, 0, NULL), *want = json_loads(list, 0, NULL);
    assert_true(json_equal(json_object_get(root, "chat_template"), want));
    json_decref(root);
    json_decref(want);
    folder_write(&f.folder, "chat_template.jinja", "file"); /* takes the place of the list */
    write_file(f.folder.path, f.file, ATT_F32);
    g = open_file(f.file);
    assert_string_equal(att_gguf_text(g, "tokenizer.chat_template", ""), "file");
    assert_false(att_gguf_has(g, "tokenizer.chat_template.tool_use"));
    att_gguf_free(g);
    end(&f);
}

/* ---- folders */

static void a_folder_becomes_one_of_another_type(void **state)
{
    (void)state;
    static float want[TOKENS * VOCABULARY], is[TOKENS * VOCABULARY];
    const fixture f = begin(&tiny_llamas[0], &(tiny_weights){.coarse = true}); /* whose numbers bf16 has */
    char line[1000];
    folder_write(&f.folder, "chat_template.jinja", "{{ messages }}");
    folder_write(&f.folder, "notes.txt", "not of the model");
    tiny_llama_write_config(&f.folder, &tiny_llamas[0], ", \"torch_dtype\": \"float32\", \"x\": 1e-05 ");
    tiny_logits(ctx, f.folder.path, ids, TOKENS, want);
    if (att_gguf_convert(ctx, f.folder.path, f.out, ATT_OPTIONS(att_gguf_options, .dtype = ATT_BF16)))
        fail_msg("%s", att_error(ctx));
    tiny_logits(ctx, f.out, ids, TOKENS, is);
    for (int i = 0; i < TOKENS * VOCABULARY; i++)
        assert_true(fabsf(is[i] - want[i]) < 0.1F);
    snprintf(line, sizeof line,
             "cd %s && sed 's/\"float32\"/\"bfloat16\"/' config.json | cmp - out/config.json && "
             "cmp tokenizer.json out/tokenizer.json && cmp chat_template.jinja out/chat_template.jinja "
             "&& test ! -e out/notes.txt",
             f.folder.path);
    assert_int_equal(system(line), 0);
    att_safetensors *a, *b;
    snprintf(line, sizeof line, "%s/model.safetensors", f.folder.path);
    assert_int_equal(att_safetensors_open(ctx, line, &a), ATT_OK);
    snprintf(line, sizeof line, "%s/model.safetensors", f.out);
    assert_int_equal(att_safetensors_open(ctx, line, &b), ATT_OK);
    assert_int_equal(att_safetensors_count(a), att_safetensors_count(b));
    for (int64_t i = 0; i < att_safetensors_count(a); i++) {
        att_tensor x, y;
        assert_int_equal(att_safetensors_get(a, att_safetensors_name(a, i), &x), ATT_OK);
        assert_int_equal(att_safetensors_get(b, att_safetensors_name(a, i), &y), ATT_OK);
        assert_int_equal(y.dtype, ATT_BF16);
        for (int64_t k = 0; k < att_count(&x); k++)
            assert_int_equal(((const uint32_t *)x.data)[k] >> 16, ((const uint16_t *)y.data)[k]);
    }
    att_safetensors_free(a);
    att_safetensors_free(b);
    end(&f);
}

static void parts_become_one_file(void **state)
{
    (void)state;
    const fixture f = begin(&tiny_llamas[0], NULL);
    char from[300], to[300];
    att_safetensors *all;
    snprintf(from, sizeof from, "%s/model.safetensors", f.folder.path);
    snprintf(to, sizeof to, "%s/part.safetensors", f.folder.path);
    assert_int_equal(att_safetensors_open(ctx, from, &all), ATT_OK);
    FILE *index = folder_open(&f.folder, "model.safetensors.index.json");
    for (int64_t i = 0; i < att_safetensors_count(all); i++)
        fprintf(index, "%s\"%s\": \"part.safetensors\"", i ? ", " : "{\"weight_map\": {", att_safetensors_name(all, i));
    fprintf(index, "}}");
    fclose(index);
    att_safetensors_free(all);
    assert_int_equal(rename(from, to), 0);
    if (att_gguf_convert(ctx, f.folder.path, f.out, NULL))
        fail_msg("%s", att_error(ctx));
    snprintf(from, sizeof from, "cd %s && test -e out/model.safetensors -a ! -e out/model.safetensors.index.json",
             f.folder.path);
    assert_int_equal(system(from), 0);
    end(&f);
}

/* ---- what is refused */

static void assert_refused(const fixture *f, att_status status, const char *message)
{
    const att_status s = att_gguf_write(ctx, f->folder.path, f->file, ATT_OPTIONS(att_gguf_options, .dtype = ATT_Q8_0));
    if (s != status)
        fail_msg("%s, not %s, of: %s; %s", att_status_name(s), att_status_name(status), message, att_error(ctx));
    check_message(ctx, message);
    DIR *d = opendir(f->folder.path);
    for (const struct dirent *e; d && (e = readdir(d));)
        assert_null(strstr(e->d_name, "out")); /* nothing of it is left */
    closedir(d);
}

static void other_models_are_refused(void **state)
{
    (void)state;
    fixture f = begin(&tiny_llamas[0], NULL);
    folder_write(&f.folder, "config.json", "{\"model_type\": \"bert\"}");
    assert_refused(&f, ATT_ERR_UNSUPPORTED,
                   "\"model_type\" is \"bert\", which is not supported in a .gguf file; gpt2, llama, mistral, olmo2, "
                   "phi3, qwen2 and qwen3 are");
    end(&f);
    f = begin(&tiny_llamas[3], NULL);
    assert_refused(&f, ATT_ERR_UNSUPPORTED, "\"sliding_window\" is 4, which a .gguf file of mistral cannot express");
    end(&f);
    f = begin(&tiny_llamas[0], &(tiny_weights){.without = "model.layers.1.mlp.up_proj.weight"});
    assert_refused(&f, ATT_ERR_FORMAT, "layers.1.mlp.up_proj.weight");
    end(&f);
    f = begin(&tiny_llamas[0], NULL);
    assert_int_equal(att_gguf_write(ctx, f.folder.path, f.file, ATT_OPTIONS(att_gguf_options, .dtype = ATT_Q3_K)),
                     ATT_ERR_ARGUMENT);
    check_message(ctx, "dtype is Q3_K, not f32, f16, bf16, Q8_0, Q6_K, Q5_K, Q5_1, Q5_0, Q4_K, Q4_1 or Q4_0");
    assert_int_equal(
        att_gguf_write(ctx, f.folder.path, f.file, ATT_OPTIONS(att_gguf_options, .dtype = ATT_Q6_K, .medium = true)),
        ATT_ERR_ARGUMENT);
    check_message(ctx, "dtype is Q6_K, not Q4_K or Q5_K, which a medium file has");
    write_file(f.folder.path, f.file, ATT_F32);
    assert_int_equal(att_gguf_write(ctx, f.file, f.file, NULL), ATT_ERR_ARGUMENT);
    check_message(ctx, "out.gguf is the model itself; give another file");
    end(&f);
}

/* With tokenizer.json in which the text `what` is `with` */
static void assert_tokenizer_refused(const char *what, const char *with, const char *message)
{
    const fixture f = begin(&tiny_llamas[0], NULL);
    const char *at = strstr(tokenizer, what);
    assert_non_null(at);
    FILE *file = folder_open(&f.folder, "tokenizer.json");
    fprintf(file, "%.*s%s%s", (int)(at - tokenizer), tokenizer, with, at + strlen(what));
    assert_int_equal(fclose(file), 0);
    assert_refused(&f, ATT_ERR_UNSUPPORTED, message);
    end(&f);
}

static void tokenizers_that_the_format_cannot_say_are_refused(void **state)
{
    (void)state;
    static const char other[] = "correspond together to none of the tags that a .gguf file can have";
    assert_tokenizer_refused("\"Digits\", \"individual_digits\": true", "\"Digits\", \"individual_digits\": false",
                             other);
    assert_tokenizer_refused("\"normalizer\": null", "\"normalizer\": {\"type\": \"NFC\"}", other);
    assert_tokenizer_refused("\"type\": \"BPE\"", "\"type\": \"BPE\", \"ignore_merges\": true", other);
    assert_tokenizer_refused("\"special\": false", "\"lstrip\": true, \"special\": false",
                             "added token \"<tool>\" has \"lstrip\": true");
    assert_tokenizer_refused("\"type\": \"BPE\"", "\"type\": \"BPE\", \"unk_token\": \"e\"",
                             "stands for bytes without a token, which a .gguf file cannot express; there are 245");
    assert_tokenizer_refused(
        "\"decoder\"",
        "\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": "
        "\"<tool>\", \"type_id\": 0}}, {\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}], \"pair\": "
        "[{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}, {\"Sequence\": {\"id\": \"B\", \"type_id\": "
        "0}}], \"special_tokens\": {\"<tool>\": {\"id\": \"<tool>\", \"ids\": [2], \"tokens\": "
        "[\"<tool>\"]}}}, \"decoder\"",
        "tokens around a text other than one bos_token and one eos_token");
    fixture f = begin(&tiny_llamas[0], NULL);
    folder_write(&f.folder, "generation_config.json", "{\"eos_token_id\": [0, 1, 2, 3]}");
    assert_refused(&f, ATT_ERR_UNSUPPORTED, "\"eos_token_id\" has 4 tokens, more than the 3");
    folder_write(&f.folder, "generation_config.json", "{\"eos_token_id\": 20}");
    assert_refused(&f, ATT_ERR_FORMAT, "\"eos_token_id\" has 20, not a token");
    folder_write(&f.folder, "tokenizer_config.json", "{\"pad_token\": \"<pad>\"}");
    folder_write(&f.folder, "generation_config.json", "{}");
    assert_refused(&f, ATT_ERR_FORMAT, "\"pad_token\" is \"<pad>\", which is not in the vocabulary");
    end(&f);
}

static att_status write_in_parts(void *fixture_of, att_progress_fn progress, void *user)
{
    const fixture *f = fixture_of;
    const att_status s =
        att_gguf_write(ctx, f->folder.path, f->file, ATT_OPTIONS(att_gguf_options, .progress = progress, .user = user));
    assert_int_equal(access(f->file, F_OK), s ? -1 : 0);
    unlink(f->file);
    return s;
}

static void progress_may_stop_writing(void **state)
{
    (void)state;
    fixture f = begin(&wide[0], NULL);
    assert_progress(ctx, write_in_parts, &f);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_of_f32_has_the_logits_of_the_folder),
        cmocka_unit_test(gpt2_is_written_and_read),
        cmocka_unit_test(gpt2_of_q8_0_becomes_a_folder),
        cmocka_unit_test(a_file_of_q8_0_has_the_logits_of_int8_weights),
        cmocka_unit_test(a_file_of_q4_0_has_the_logits_of_int4_weights),
        cmocka_unit_test(rows_that_are_no_blocks_become_f16),
        cmocka_unit_test(a_round_trip_changes_nothing),
        cmocka_unit_test(pieces_with_scores_are_the_same),
        cmocka_unit_test(settings_of_positions_are_values),
        cmocka_unit_test(values_of_a_file_are_copied),
        cmocka_unit_test(templates_with_names_are_kept),
        cmocka_unit_test(a_folder_becomes_one_of_another_type),
        cmocka_unit_test(parts_become_one_file),
        cmocka_unit_test(other_models_are_refused),
        cmocka_unit_test(tokenizers_that_the_format_cannot_say_are_refused),
        cmocka_unit_test(progress_may_stop_writing),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
