/* ModernBERT, NomicBERT and EmbeddingGemma beyond what encoder_families.c compares: training and writing, traces, names
 * of tensors, settings. The folders are those of tests/golden/make_encoder_families.py. */
#include "fixtures/check.h"
#include "fixtures/context.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/folder.h"
#include "attend_sentence.h"
#include "io/atomic_write.h"
#include "io/settings.h"
#include "stack/encoder.h"

#include <math.h>

#define FOLDERS "tests/golden/encoders/"

enum { MAX_TOKENS = 64, MAX_HIDDEN = 64, MAX_TENSORS = 64 };

/* ---- models */

static void need(att_status s)
{
    if (s)
        fail_msg("%s", att_error(ctx));
}

static att_encoder *open_model(const char *folder)
{
    att_encoder *m;
    need(att_encoder_open(ctx, folder, NULL, &m));
    return m;
}

static att_encoder *open_for_training(const char *folder)
{
    att_encoder *m;
    need(att_encoder_open_for_training(ctx, folder, NULL, &m));
    return m;
}

/* Hidden states [n, hidden] -> y */
static void apply(const att_encoder *m, const int32_t *ids, int64_t n, float *y)
{
    att_tape *t;
    att_tensor x;
    need(att_tape_new(ctx, NULL, &t));
    need(att_var_value(t, att_encoder_apply(t, m, ids, (const int64_t[]){0, n}, 1, NULL), &x));
    assert_true(att_count(&x) <= MAX_TOKENS * MAX_HIDDEN);
    memcpy(y, x.data, (size_t)att_count(&x) * sizeof *y);
    att_tape_free(t);
}

static void apply_folder(const char *folder, const int32_t *ids, int64_t n, float *y)
{
    att_encoder *m = open_model(folder);
    apply(m, ids, n, y);
    att_encoder_free(m);
}

static const int32_t some[] = {1, 5, 9, 7, 7, 3, 11, 2, 4, 8, 6, 2};
enum { SOME = sizeof some / sizeof some[0] };

/* ---- folders that are copies with changes */

static json_t *read_config(const char *folder)
{
    att_settings s;
    att_settings_read(&s, ctx, folder, "config.json", true);
    need(s.status);
    json_t *copy = json_deep_copy(s.root);
    att_settings_close(&s);
    return copy;
}

static void write_config(const test_folder *f, json_t *config)
{
    char *text = json_dumps(config, 0);
    folder_write(f, "config.json", text);
    free(text);
    json_decref(config);
}

typedef struct tensors {
    att_safetensors *file;
    char name[MAX_TENSORS][128];
    att_tensor value[MAX_TENSORS];
    int64_t n;
} tensors;

static void add(tensors *t, const char *name, att_tensor value)
{
    assert_in_range(t->n, 0, MAX_TENSORS - 1);
    snprintf(t->name[t->n], sizeof t->name[0], "%s", name);
    t->value[t->n++] = value;
}

static void read_tensors(const char *folder, tensors *t)
{
    char path[256];
    *t = (tensors){0};
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    need(att_safetensors_open(ctx, path, &t->file));
    for (int64_t i = 0; i < att_safetensors_count(t->file); i++) {
        att_tensor x;
        need(att_safetensors_get(t->file, att_safetensors_name(t->file, i), &x));
        add(t, att_safetensors_name(t->file, i), x);
    }
}

static void write_tensors(const test_folder *f, const tensors *t)
{
    char path[256];
    const char *names[MAX_TENSORS];
    for (int64_t i = 0; i < t->n; i++)
        names[i] = t->name[i];
    snprintf(path, sizeof path, "%s/model.safetensors", f->path);
    need(att_safetensors_write(ctx, path, t->n, names, t->value, NULL));
}

/* ---- training */

/* What is written has the tensors that were read, but for a prefix of names and tensors of heads. */
static void expect_written(const char *folder, const char *prefix)
{
    static tensors read, written;
    static float numbers[1 << 16];
    att_tensor f32;
    const test_folder f = folder_new();
    float before[MAX_TOKENS * MAX_HIDDEN], after[MAX_TOKENS * MAX_HIDDEN];
    att_encoder *m = open_for_training(folder);
    apply(m, some, SOME, before);
    need(att_encoder_write_weights(m, folder, f.path, 0));
    read_tensors(folder, &read);
    read_tensors(f.path, &written);
    for (int64_t i = 0; i < written.n; i++) {
        char name[160];
        att_tensor x;
        snprintf(name, sizeof name, "%s%s", prefix, written.name[i]);
        need(att_safetensors_get(read.file, name, &x));
        assert_int_equal(x.rank, written.value[i].rank);
        assert_memory_equal(x.dim, written.value[i].dim, (size_t)x.rank * sizeof *x.dim);
        need(att_wrap(&f32, numbers, ATT_F32, x.rank, x.dim, NULL));
        need(att_tensor_convert(ctx, &x, &f32));
        for (int64_t k = 0; k < att_count(&x); k++) /* a norm of Gemma is 1 + weight, of 24 bits */
            check_near((double)numbers[k], ((const float *)written.value[i].data)[k], 0x1p-24, "%s: %d", name, (int)k);
    }
    write_config(&f, read_config(folder));
    apply_folder(f.path, some, SOME, after);
    assert_memory_equal(before, after, sizeof(float) * SOME * 16);
    att_safetensors_free(read.file);
    att_safetensors_free(written.file);
    att_encoder_free(m);
    folder_remove(&f);
}

static void a_trained_model_is_written_with_the_tensors_that_were_read(void **state)
{
    (void)state;
    expect_written(FOLDERS "modernbert", "model.");
    expect_written(FOLDERS "nomic_bert", "");
    expect_written(FOLDERS "gemma3_text", "");
}

/* Queries are frozen, so they stay views of the file in its type; the whole tensor is f32 then. */
static void a_tensor_may_be_frozen_in_part(void **state)
{
    (void)state;
    static const char *const freeze[] = {"layer.*.attention.query"};
    const char *const folder = FOLDERS "modernbert";
    const test_folder f = folder_new();
    float before[MAX_TOKENS * MAX_HIDDEN], after[MAX_TOKENS * MAX_HIDDEN];
    att_encoder *m;
    need(att_encoder_open_for_training(ctx, folder, ATT_OPTIONS(att_trainable_options, .freeze = freeze, .n_freeze = 1),
                                       &m));
    apply(m, some, SOME, before);
    need(att_encoder_write_weights(m, folder, f.path, 0));
    write_config(&f, read_config(folder));
    apply_folder(f.path, some, SOME, after);
    assert_memory_equal(before, after, sizeof(float) * SOME * 16);
    att_encoder_free(m);
    folder_remove(&f);
}

/* ---- traces */

static void a_trace_has_the_windows_of_layers_and_the_last_norm(void **state)
{
    (void)state;
    static const struct {
        const char *folder;
        int64_t window, sliding, full; /* the window, and a layer of either type */
    } is[] = {{FOLDERS "modernbert", 9, 1, 0}, {FOLDERS "gemma3_text", 9, 0, 1}};
    for (int i = 0; i < 2; i++) {
        att_encoder *m = open_model(is[i].folder);
        att_encoder_info info = {.size = sizeof info};
        att_trace *t;
        att_trace_info of = {.size = sizeof of};
        att_trace_attention_info a = {.size = sizeof a};
        float weights[SOME * SOME], y[MAX_TOKENS * MAX_HIDDEN], x[MAX_TOKENS * MAX_HIDDEN];
        need(att_encoder_describe(m, &info));
        need(att_encoder_trace(m, some, SOME, NULL, &t));
        need(att_trace_describe(t, &of));
        assert_int_equal(of.output_rows, SOME);
        assert_int_equal(of.outputs, info.hidden);
        need(att_trace_attention(t, is[i].full, &a));
        assert_int_equal(a.window, 0);
        need(att_trace_attention(t, is[i].sliding, &a));
        assert_int_equal(a.window, is[i].window);
        need(att_trace_weights(t, is[i].sliding, 0, 0, SOME, weights));
        for (int q = 0; q < SOME; q++)
            for (int k = 0; k < SOME; k++)
                assert_true((weights[q * SOME + k] > 0) == (abs(q - k) <= is[i].window / 2));
        need(att_trace_output(t, -1, 0, SOME, x));
        apply(m, some, SOME, y);
        assert_memory_equal(x, y, (size_t)(SOME * info.hidden) * sizeof *x);
        att_trace_free(t);
        att_encoder_free(m);
    }
}

static void a_trace_of_a_sentence_has_its_embedding(void **state)
{
    (void)state;
    static const char *const folders[] = {FOLDERS "modernbert", FOLDERS "nomic_bert", FOLDERS "gemma3_text"};
    static const char text[] = "The sky is blue.";
    for (int i = 0; i < 3; i++) {
        att_sentence *s;
        att_trace *t;
        float embedding[MAX_HIDDEN], traced[MAX_HIDDEN];
        att_sentence_info info = {.size = sizeof info};
        need(att_sentence_open(ctx, folders[i], NULL, &s));
        need(att_sentence_describe(s, &info));
        need(att_sentence_embed(s, 1, (const char *const[]){text}, NULL, NULL, embedding));
        need(att_sentence_trace(s, text, sizeof text - 1, NULL, NULL, &t));
        need(att_trace_output(t, -1, 0, 1, traced));
        assert_memory_equal(traced, embedding, (size_t)info.dim * sizeof *traced);
        att_trace_free(t);
        att_sentence_free(s);
    }
}

/* ---- modules after them */

/* The encoder of the folder, whose hidden states are averaged, then a LayerNorm */
static test_folder with_layer_norm(const char *folder, const float *weight, const float *bias, int64_t n)
{
    static const char *const files[] = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
                                        NULL};
    static tensors t;
    const test_folder f = folder_new();
    test_folder norm;
    need(att_copy_files(ctx, folder, f.path, files, 4));
    folder_write(&f, "modules.json",
                 "[{\"path\": \"\", \"type\": \"sentence_transformers.models.Transformer\"},"
                 " {\"path\": \"1_Pooling\", \"type\": \"sentence_transformers.models.Pooling\"},"
                 " {\"path\": \"2_LayerNorm\", \"type\": \"sentence_transformers.models.LayerNorm\"}]");
    folder_write(&f, "1_Pooling/config.json", "{\"embedding_dimension\": 16, \"pooling_mode\": \"mean\"}");
    folder_write(&f, "2_LayerNorm/config.json", "{\"dimension\": 16}");
    assert_in_range(snprintf(norm.path, sizeof norm.path, "%s/2_LayerNorm", f.path), 1, sizeof norm.path - 1);
    t.n = 0;
    add(&t, "norm.weight", (att_tensor){0});
    add(&t, "norm.bias", (att_tensor){0});
    need(att_wrap(&t.value[0], (void *)weight, ATT_F32, 1, &n, NULL));
    need(att_wrap(&t.value[1], (void *)bias, ATT_F32, 1, &n, NULL));
    write_tensors(&norm, &t);
    return f;
}

static void a_layer_norm_after_an_encoder_multiplies_by_its_own_weight(void **state)
{
    (void)state;
    enum { N = 16 };
    static const char *const folders[] = {FOLDERS "modernbert", FOLDERS "nomic_bert", FOLDERS "gemma3_text"};
    static const char *const text[] = {"The sky is blue."};
    float weight[N], bias[N], x[N], y[N];
    for (int d = 0; d < N; d++) {
        weight[d] = 0.5f + (float)d / 8;
        bias[d] = (float)d / 4 - 1;
    }
    for (int i = 0; i < 3; i++) {
        const test_folder f = with_layer_norm(folders[i], weight, bias, N);
        att_sentence *plain, *s;
        double mean = 0, variance = 0;
        need(att_sentence_open(ctx, folders[i], NULL, &plain));
        need(att_sentence_embed(plain, 1, text, NULL, NULL, x));
        need(att_sentence_open(ctx, f.path, NULL, &s));
        need(att_sentence_embed(s, 1, text, NULL, NULL, y));
        for (int d = 0; d < N; d++)
            mean += (double)x[d] / N;
        for (int d = 0; d < N; d++)
            variance += ((double)x[d] - mean) * ((double)x[d] - mean) / N;
        for (int d = 0; d < N; d++) {
            const double normal = ((double)x[d] - mean) / sqrt(variance + 1e-5);
            const double expected = normal * (double)weight[d] + (double)bias[d];
            if (!(fabs((double)y[d] - expected) <= 1e-5))
                fail_msg("%s: %d is %g, not %g", folders[i], d, (double)y[d], expected);
        }
        att_sentence_free(s);
        att_sentence_free(plain);
        folder_remove(&f);
    }
}

/* ---- memory */

/* Opens, applies and writes a model; ATT_ERR_MEMORY or ATT_OK */
static att_status use(att_ctx *c, const char *folder, const test_folder *f)
{
    att_encoder *m = NULL;
    att_tape *t = NULL;
    att_tensor y;
    att_status s = att_encoder_open_for_training(c, folder, NULL, &m);
    s = s ? s : att_tape_new(c, NULL, &t);
    s = s ? s : att_var_value(t, att_encoder_apply(t, m, some, (const int64_t[]){0, SOME}, 1, NULL), &y);
    s = s ? s : att_encoder_write_weights(m, folder, f->path, 0);
    att_tape_free(t);
    att_encoder_free(m);
    return s;
}

static void a_failing_allocation_anywhere_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    const test_folder f = folder_new();
    bool done = false;
    for (long n = 1; !done; n += check_step(7)) {
        fail_alloc failing = {.fail_at = n};
        att_ctx *c;
        if (att_open(&c, ATT_OPTIONS(att_config, .n_threads = 1, .allocator = fail_allocator(&failing))))
            continue;
        const att_status s = use(c, FOLDERS "modernbert", &f);
        if (s && s != ATT_ERR_MEMORY)
            fail_msg("allocation %ld: %s: %s", n, att_status_name(s), att_error(c));
        done = !s && failing.calls < n;
        att_close(c);
        assert_int_equal(failing.live, 0);
    }
    folder_remove(&f);
}

/* ---- names of tensors and of settings */

/* Replaces the tensor `name` by three of equal parts of its rows; {0} in `parts` ends them. */
static void split(tensors *t, const char *name, const char *const parts[3])
{
    int64_t i = 0;
    while (i < t->n && strcmp(t->name[i], name) != 0)
        i++;
    assert_true(i < t->n);
    att_tensor x = t->value[i];
    x.dim[0] /= 3;
    for (int k = 0; k < 3; k++) {
        if (k == 0) {
            snprintf(t->name[i], sizeof t->name[i], "%s", parts[0]);
            t->value[i] = x;
        } else
            add(t, parts[k], x);
        x.data = (char *)x.data + att_dtype_bytes(x.dtype, x.dim[0] * x.stride[0]);
    }
}

static void rename_tensors(tensors *t)
{
    static const char *const names[][2] = {{"emb_ln.", "embeddings.LayerNorm."},  {"encoder.layers.", "layers."},
                                           {"attn.out_proj", "self_attn.o_proj"}, {"norm1", "post_attention_layernorm"},
                                           {"norm2", "post_mlp_layernorm"},       {"mlp.fc11", "mlp.up_proj"},
                                           {"mlp.fc12", "mlp.gate_proj"},         {"mlp.fc2", "mlp.down_proj"}};
    for (int64_t i = 0; i < t->n; i++)
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
            char rest[128], *at = strstr(t->name[i], names[k][0]);
            if (!at)
                continue;
            snprintf(rest, sizeof rest, "%s", at + strlen(names[k][0]));
            snprintf(at, sizeof t->name[i] - (size_t)(at - t->name[i]), "%s%s", names[k][1], rest);
        }
}

/* The class of transformers names tensors in its own way, and has queries, keys and values by themselves. */
static void nomic_bert_may_have_the_names_of_either_program(void **state)
{
    (void)state;
    static tensors t;
    const test_folder f = folder_new();
    float expected[MAX_TOKENS * MAX_HIDDEN], y[MAX_TOKENS * MAX_HIDDEN];
    apply_folder(FOLDERS "nomic_bert", some, SOME, expected);
    read_tensors(FOLDERS "nomic_bert", &t);
    split(&t, "encoder.layers.0.attn.Wqkv.weight",
          (const char *const[]){"layers.0.self_attn.q_proj.weight", "layers.0.self_attn.k_proj.weight",
                                "layers.0.self_attn.v_proj.weight"});
    split(&t, "encoder.layers.1.attn.Wqkv.weight",
          (const char *const[]){"layers.1.self_attn.q_proj.weight", "layers.1.self_attn.k_proj.weight",
                                "layers.1.self_attn.v_proj.weight"});
    rename_tensors(&t);
    write_tensors(&f, &t);
    write_config(&f, read_config(FOLDERS "nomic_bert"));
    apply_folder(f.path, some, SOME, y);
    assert_memory_equal(y, expected, sizeof(float) * SOME * 16);
    att_safetensors_free(t.file);
    folder_remove(&f);
}

static void copy_weights(const char *folder, const test_folder *f)
{
    static tensors t;
    read_tensors(folder, &t);
    write_tensors(f, &t);
    att_safetensors_free(t.file);
}

/* config.json of the folder, in which keys are replaced by the members of `instead`, has the same results. */
static void expect_same(const char *folder, const char *const *without, const char *instead)
{
    const test_folder f = folder_new();
    float expected[MAX_TOKENS * MAX_HIDDEN], y[MAX_TOKENS * MAX_HIDDEN];
    json_t *config = read_config(folder), *more = json_loads(instead, JSON_DECODE_INT_AS_REAL, NULL);
    assert_non_null(more);
    for (; *without; without++)
        assert_int_equal(json_object_del(config, *without), 0);
    assert_int_equal(json_object_update(config, more), 0);
    json_decref(more);
    write_config(&f, config);
    copy_weights(folder, &f);
    apply_folder(folder, some, SOME, expected);
    apply_folder(f.path, some, SOME, y);
    assert_memory_equal(y, expected, sizeof(float) * SOME * 16);
    folder_remove(&f);
}

static void settings_of_older_folders_give_the_same_bits(void **state)
{
    (void)state;
    static const char *const types_and_rotary[] = {"layer_types", "rope_parameters", NULL};
    expect_same(FOLDERS "modernbert", types_and_rotary,
                "{\"global_attn_every_n_layers\": 2, \"global_rope_theta\": 1000.0, \"local_rope_theta\": 100.0}");
    expect_same(FOLDERS "gemma3_text", types_and_rotary,
                "{\"sliding_window_pattern\": 2, \"rope_theta\": 1000.0, \"rope_local_base_freq\": 100.0}");
    static const char *const sizes[] = {"hidden_size",
                                        "num_hidden_layers",
                                        "num_attention_heads",
                                        "intermediate_size",
                                        "max_position_embeddings",
                                        "rope_parameters",
                                        "layer_norm_eps",
                                        NULL};
    expect_same(FOLDERS "nomic_bert", sizes,
                "{\"n_embd\": 16, \"n_layer\": 2, \"n_head\": 2, \"n_inner\": 24, \"n_positions\": 32, "
                "\"layer_norm_epsilon\": 1e-5, \"rotary_emb_base\": 1000, \"rotary_emb_fraction\": 1.0, "
                "\"activation_function\": \"swiglu\", \"qkv_proj_bias\": false, \"mlp_fc1_bias\": false, "
                "\"mlp_fc2_bias\": false, \"pad_vocab_size_multiple\": 1}");
}

/* Opening with a setting changed fails with these words. */
static void expect_refused(const char *folder, const char *key, const char *value, const char *words)
{
    const test_folder f = folder_new();
    att_encoder *m;
    json_t *config = read_config(folder), *is = json_loads(value, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, NULL);
    assert_int_equal(json_object_set_new(config, key, is), 0);
    write_config(&f, config);
    const att_status s = att_encoder_open(ctx, f.path, NULL, &m);
    assert_null(m);
    if (!s || !strstr(att_error(ctx), words))
        fail_msg("%s with \"%s\" %s: \"%s\", not \"%s\"", folder, key, value, s ? att_error(ctx) : "opened", words);
    folder_remove(&f);
}

static void settings_that_are_not_supported_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *folder, *key, *value, *words;
    } wrong[] = {
        {"modernbert", "hidden_size", "15", "\"num_attention_heads\" is 2, which does not divide \"hidden_size\", 15"},
        {"modernbert", "num_attention_heads", "16", "heads of 1 features are not supported"},
        {"modernbert", "layer_types", "[\"full_attention\"]", "\"layer_types\" has 1 types, but there are 3 layers"},
        {"modernbert", "layer_types", "[1, 2, 3]", "\"layer_types\" has 1, which is not supported"},
        {"modernbert", "layer_types", "[\"full_attention\", \"chunked_attention\", \"full_attention\"]",
         "\"chunked_attention\", which is not supported"},
        {"modernbert", "rope_parameters", "{\"rope_theta\": 10.0}",
         "\"rope_parameters.rope_theta\" is not a known setting"},
        {"modernbert", "rope_parameters", "{\"full_attention\": {\"rope_type\": \"yarn\"}}", "\"yarn\""},
        {"modernbert", "rope_parameters", "{\"full_attention\": {\"partial_rotary_factor\": 0.5}}",
         "\"rope_parameters.full_attention.partial_rotary_factor\" is 0.5"},
        {"modernbert", "rope_scaling", "{\"rope_type\": \"linear\", \"factor\": 2.0}", "\"rope_scaling\""},
        {"modernbert", "local_attention", "1", "\"local_attention\" is 1, not in [2, 2147483647]"},
        {"modernbert", "hidden_activation", "\"silu\"", "\"hidden_activation\" is \"silu\", which is not supported"},
        {"modernbert", "quantization_config", "{\"bits\": 4}", "quantization_config"},
        {"nomic_bert", "hidden_act", "\"gelu\"", "\"hidden_act\" is \"gelu\""},
        {"nomic_bert", "head_dim", "7", "heads of 7 features are not supported"},
        {"nomic_bert", "rope_parameters", "{\"rope_type\": \"dynamic\", \"factor\": 2.0}", "\"dynamic\""},
        {"nomic_bert", "n_embd", "16", "there is no \"n_layer\""},
        {"gemma3_text", "use_bidirectional_attention", "false", "\"use_bidirectional_attention\" is not true"},
        {"gemma3_text", "num_key_value_heads", "3", "\"num_key_value_heads\" is 3, which does not divide"},
        {"gemma3_text", "attn_logit_softcapping", "30.0", "\"attn_logit_softcapping\" is 30,"},
        {"gemma3_text", "hidden_activation", "\"gelu\"", "\"hidden_activation\" is \"gelu\""},
        {"gemma3_text", "sliding_window", "1", "\"sliding_window\" is 1, not in [2, 2147483647]"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char folder[80];
        snprintf(folder, sizeof folder, FOLDERS "%s", wrong[i].folder);
        expect_refused(folder, wrong[i].key, wrong[i].value, wrong[i].words);
    }
}

/* Published folders have one of the forms that NomicBERT's own program computes. */
static void other_forms_of_nomic_bert_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *more, *words; /* words NULL: it opens as far as its weights */
    } forms[] = {
        {"", NULL},
        {", \"prenorm\": true", "\"prenorm\" is true"},
        {", \"qkv_proj_bias\": true", "\"qkv_proj_bias\" is true"},
        {", \"mlp_fc1_bias\": null", "\"mlp_fc1_bias\" is missing"},
        {", \"activation_function\": \"gelu\"", "\"activation_function\" is \"gelu\""},
        {", \"activation_function\": null", "there is no \"activation_function\""},
        {", \"rotary_emb_fraction\": 0.5", "\"rotary_emb_fraction\" is 0.5"},
        {", \"rotary_emb_fraction\": null", "there is no \"rotary_emb_fraction\""},
        {", \"moe_every_n_layers\": 2", "\"moe_every_n_layers\" is 2,"},
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        const test_folder f = folder_new();
        att_encoder *m;
        json_t *config =
            json_loads("{\"model_type\": \"nomic_bert\", \"vocab_size\": 40, \"n_embd\": 16, \"n_layer\": 2, "
                       "\"n_head\": 4, \"n_inner\": 24, \"n_positions\": 64, \"activation_function\": "
                       "\"swiglu\", \"rotary_emb_fraction\": 1.0, \"qkv_proj_bias\": false, "
                       "\"mlp_fc1_bias\": false, \"mlp_fc2_bias\": false}",
                       0, NULL);
        char text[200];
        snprintf(text, sizeof text, "{\"use_cache\": true%s}", forms[i].more);
        json_t *more = json_loads(text, 0, NULL);
        assert_int_equal(json_object_update(config, more), 0);
        json_decref(more);
        write_config(&f, config);
        assert_true(att_encoder_open(ctx, f.path, NULL, &m) != ATT_OK);
        check_message(ctx, forms[i].words ? forms[i].words : "there is no model.safetensors");
        folder_remove(&f);
    }
}

/* Beyond max_trained_positions rotary_scaling_factor would count; the table may have rows of no token. */
static void nomic_bert_has_the_positions_and_rows_of_its_own_settings(void **state)
{
    (void)state;
    static const char *const keys[] = {"hidden_size",       "num_hidden_layers",       "num_attention_heads",
                                       "intermediate_size", "max_position_embeddings", "rope_parameters",
                                       "layer_norm_eps"};
    const char *const folder = FOLDERS "nomic_bert";
    const test_folder f = folder_new();
    att_encoder_info info = {.size = sizeof info};
    json_t *config = read_config(folder);
    const int64_t rows = (int64_t)json_number_value(json_object_get(config, "vocab_size"));
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        assert_int_equal(json_object_del(config, keys[i]), 0);
    json_t *more = json_pack("{s:i, s:i, s:i, s:i, s:i, s:f, s:i, s:f, s:s, s:b, s:b, s:b, s:f, s:f, s:f}", "n_embd",
                             16, "n_layer", 2, "n_head", 2, "n_inner", 24, "n_positions", 8192, "layer_norm_epsilon",
                             1e-5, "rotary_emb_base", 1000, "rotary_emb_fraction", 1.0, "activation_function", "swiglu",
                             "qkv_proj_bias", 0, "mlp_fc1_bias", 0, "mlp_fc2_bias", 0, "rotary_scaling_factor", 2.0,
                             "vocab_size", (double)(rows - 1), "pad_vocab_size_multiple", (double)rows);
    assert_int_equal(json_object_update(config, more), 0);
    json_decref(more);
    write_config(&f, config);
    copy_weights(folder, &f);
    att_encoder *m = open_model(f.path);
    need(att_encoder_describe(m, &info));
    assert_int_equal(info.max_positions, 2048);
    assert_int_equal(info.vocabulary, rows);
    att_encoder_free(m);
    folder_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trained_model_is_written_with_the_tensors_that_were_read),
        cmocka_unit_test(a_tensor_may_be_frozen_in_part),
        cmocka_unit_test(a_layer_norm_after_an_encoder_multiplies_by_its_own_weight),
        cmocka_unit_test(a_trace_has_the_windows_of_layers_and_the_last_norm),
        cmocka_unit_test(a_trace_of_a_sentence_has_its_embedding),
        cmocka_unit_test(a_failing_allocation_anywhere_is_an_error_and_leaks_nothing),
        cmocka_unit_test(nomic_bert_may_have_the_names_of_either_program),
        cmocka_unit_test(settings_of_older_folders_give_the_same_bits),
        cmocka_unit_test(settings_that_are_not_supported_are_named),
        cmocka_unit_test(other_forms_of_nomic_bert_are_refused),
        cmocka_unit_test(nomic_bert_has_the_positions_and_rows_of_its_own_settings),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
