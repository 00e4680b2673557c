/* Conversion of .gguf files to folders: the same model and tokenizer, completely or not at all. */
#include "fixtures/check.h"
#include "fixtures/progress.h"
#include "fixtures/context.h"
#include "fixtures/tiny_gguf.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VOCABULARY = LLAMA_VOCABULARY, TOKENS = 5 };

static const int32_t ids[TOKENS] = {1, 7, 9, 11, 3};
static const tiny_llama *const llama = &tiny_llamas[0];

static void logits(const char *path, float out[TOKENS * VOCABULARY]) { tiny_logits(ctx, path, ids, TOKENS, out); }

/* A folder with m.gguf; paths in it: the file, and the folder to write */
typedef struct fixture {
    test_folder folder;
    char file[300], out[300], unfinished[320];
} fixture;

static fixture begin(const tiny_llama *m, const tiny_gguf *how)
{
    fixture f = {.folder = tiny_llama_folder(m, NULL)};
    snprintf(f.file, sizeof f.file, "%s/m.gguf", f.folder.path);
    snprintf(f.out, sizeof f.out, "%s/out", f.folder.path);
    snprintf(f.unfinished, sizeof f.unfinished, "%s.unfinished", f.out);
    tiny_gguf_write(&f.folder, "m.gguf", m, how);
    return f;
}

static void remove_folder(const char *path)
{
    DIR *d = opendir(path);
    for (const struct dirent *e; d && (e = readdir(d));)
        unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
    rmdir(path);
}

static void end(const fixture *f)
{
    remove_folder(f->out);
    assert_int_not_equal(access(f->unfinished, F_OK), 0);
    folder_remove(&f->folder);
}

static void convert(const fixture *f, att_dtype dtype)
{
    if (att_gguf_convert(ctx, f->file, f->out, ATT_OPTIONS(att_gguf_options, .dtype = dtype)))
        fail_msg("%s", att_error(ctx));
}

/* Reads a file of the folder that was written. */
static json_t *read_json(const fixture *f, const char *name)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", f->out, name);
    json_t *v = json_load_file(path, 0, NULL);
    assert_non_null(v);
    return v;
}

static const char *text_of(const json_t *v, const char *key) { return json_string_value(json_object_get(v, key)); }

/* ---- what is written */

static void the_folder_is_the_same_model(void **state)
{
    (void)state;
    static float want[TOKENS * VOCABULARY], is[TOKENS * VOCABULARY];
    static const int which[] = {0, 4, 5};
    for (int i = 0; i < 3; i++) {
        const fixture f = begin(&tiny_llamas[which[i]], NULL);
        logits(f.file, want);
        convert(&f, 0);
        logits(f.out, is);
        assert_memory_equal(is, want, sizeof want);
        end(&f);
    }
}

static void weights_may_be_of_two_bytes(void **state)
{
    (void)state;
    static const att_dtype dtypes[] = {ATT_F32, ATT_F16, ATT_BF16};
    static const char *const names[] = {"float32", "float16", "bfloat16"};
    for (int i = 0; i < 3; i++) {
        const fixture f = begin(llama, NULL);
        char path[400];
        att_safetensors *s;
        att_tensor t;
        convert(&f, dtypes[i]);
        json_t *config = read_json(&f, "config.json");
        assert_string_equal(text_of(config, "dtype"), names[i]);
        json_decref(config);
        snprintf(path, sizeof path, "%s/model.safetensors", f.out);
        assert_int_equal(att_safetensors_open(ctx, path, &s), ATT_OK);
        assert_int_equal(att_safetensors_get(s, "model.layers.1.self_attn.q_proj.weight", &t), ATT_OK);
        assert_int_equal(t.dtype, dtypes[i]);
        att_safetensors_free(s);
        end(&f);
    }
}

static void settings_are_those_that_transformers_reads(void **state)
{
    (void)state;
    const gguf_value more[] = {{"tokenizer.ggml.eot_token_id", GGUF_U32, .number = 2},
                               {"tokenizer.ggml.padding_token_id", GGUF_U32, .number = 0}};
    const fixture f = begin(llama, &(tiny_gguf){.change = more, .changes = 2});
    convert(&f, 0);
    json_t *config = read_json(&f, "config.json");
    assert_string_equal(text_of(config, "model_type"), "llama");
    assert_string_equal(json_string_value(json_array_get(json_object_get(config, "architectures"), 0)),
                        "LlamaForCausalLM");
    assert_true(json_is_integer(json_object_get(config, "hidden_size")));
    assert_int_equal(json_integer_value(json_object_get(config, "num_key_value_heads")), 2);
    assert_true(json_real_value(json_object_get(config, "rms_norm_eps")) == 1e-5);
    assert_true(json_is_false(json_object_get(config, "tie_word_embeddings")));
    json_decref(config);
    json_t *generation = read_json(&f, "generation_config.json");
    const json_t *eos = json_object_get(generation, "eos_token_id");
    assert_int_equal(json_integer_value(json_array_get(eos, 0)), 0);
    assert_int_equal(json_integer_value(json_array_get(eos, 1)), 2);
    assert_int_equal(json_integer_value(json_object_get(generation, "bos_token_id")), 1);
    json_decref(generation);
    json_t *tokenizer = read_json(&f, "tokenizer_config.json");
    assert_string_equal(text_of(tokenizer, "bos_token"), "<|begin|>");
    assert_string_equal(text_of(tokenizer, "pad_token"), "<|end|>");
    assert_null(json_object_get(tokenizer, "chat_template")); /* which is in a file of its own */
    json_decref(tokenizer);
    char path[400], text[64] = "";
    snprintf(path, sizeof path, "%s/chat_template.jinja", f.out);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    assert_string_equal(text, "{{ messages }}");
    end(&f);
}

static void tokens_are_the_same(void **state)
{
    (void)state;
    static const char text[] = "ab cd<|end|> 12a<tool>b!\n";
    const fixture f = begin(llama, NULL);
    const char *const paths[] = {f.file, f.out};
    att_tokens is[2];
    att_tokenizer *t[2];
    convert(&f, 0);
    for (int i = 0; i < 2; i++) {
        if (att_tokenizer_open(ctx, paths[i], &t[i]) || att_tokenize(t[i], text, strlen(text), NULL, &is[i]))
            fail_msg("%s", att_error(ctx));
        assert_int_equal(is[i].count, is[0].count);
        assert_memory_equal(is[i].ids, is[0].ids, (size_t)is[0].count * sizeof *is[0].ids);
    }
    assert_true(is[0].count > 8);
    json_t *root = read_json(&f, "tokenizer.json");
    const json_t *vocab = json_object_get(json_object_get(root, "model"), "vocab");
    assert_int_equal(json_integer_value(json_object_get(vocab, "ab")), 10);
    assert_null(json_object_get(vocab, "[PAD18]"));
    assert_int_equal(json_array_size(json_object_get(root, "added_tokens")), 3);
    json_decref(root);
    for (int i = 0; i < 2; i++) {
        att_tokens_free(ctx, &is[i]);
        att_tokenizer_free(t[i]);
    }
    end(&f);
}

/* Factors for a base of 500,000 and a scale of 8, for a context of 8,192: those of Llama 3.1 */
static void factors_become_the_setting_of_llama3(void **state)
{
    (void)state;
    static float want[TOKENS * VOCABULARY], is[TOKENS * VOCABULARY];
    const tiny_llama *qwen3 = &tiny_llamas[5]; /* heads of 8 have four frequencies */
    float factors[4];
    for (int i = 0; i < 4; i++) {
        const double turns = 8192 * pow(500000, -i / 4.0) / (2 * 3.14159265358979323846);
        const double smooth = fmin(fmax((turns - 1) / 3, 0), 1);
        factors[i] = (float)(1 / (smooth + (1 - smooth) / 8));
    }
    assert_true(factors[1] == 1 && factors[2] > 1.01F && factors[2] < 7.99F && factors[3] == 8);
    const gguf_value base[] = {{"qwen3.rope.freq_base", GGUF_F32, .number = 500000}};
    fixture f = begin(qwen3, &(tiny_gguf){.change = base, .changes = 1, .factors = factors});
    logits(f.file, want);
    convert(&f, 0);
    json_t *config = read_json(&f, "config.json");
    const json_t *rope = json_object_get(config, "rope_parameters");
    assert_string_equal(text_of(rope, "rope_type"), "llama3");
    assert_true(json_real_value(json_object_get(rope, "factor")) == 8);
    assert_true(json_real_value(json_object_get(rope, "rope_theta")) == 500000);
    json_decref(config);
    logits(f.out, is);
    assert_memory_equal(is, want, sizeof want);
    end(&f);
    factors[2] *= 1.001F;
    f = begin(qwen3, &(tiny_gguf){.change = base, .changes = 1, .factors = factors});
    assert_int_equal(att_gguf_convert(ctx, f.file, f.out, NULL), ATT_ERR_UNSUPPORTED);
    check_message(ctx, "rope_freqs.weight are not those of Llama 3");
    end(&f);
}

/* ---- completely or not at all */

static void assert_refused(const fixture *f, att_status status, const char *message)
{
    assert_int_equal(att_gguf_convert(ctx, f->file, f->out, NULL), status);
    check_message(ctx, message);
}

static void a_folder_with_files_is_refused(void **state)
{
    (void)state;
    const fixture f = begin(llama, NULL);
    assert_int_equal(mkdir(f.out, 0777), 0);
    convert(&f, 0); /* an empty one */
    assert_refused(&f, ATT_ERR_ARGUMENT, "is not empty; remove it first, or give another folder");
    end(&f);
    const fixture g = begin(llama, NULL);
    folder_write(&g.folder, "out", "a file");
    assert_refused(&g, ATT_ERR_IO, "Not a directory");
    unlink(g.out);
    end(&g);
}

static void after_an_error_nothing_is_left(void **state)
{
    (void)state;
    const gguf_value pre = {"tokenizer.ggml.pre", GGUF_TEXT, .text = "superbpe"};
    fixture f = begin(llama, &(tiny_gguf){.change = &pre, .changes = 1});
    assert_refused(&f, ATT_ERR_UNSUPPORTED, "superbpe");
    assert_int_not_equal(access(f.out, F_OK), 0);
    end(&f);
    f = begin(llama, &(tiny_gguf){.without = "blk.1.ffn_up.weight"});
    assert_refused(&f, ATT_ERR_FORMAT, "layers.1.mlp.up_proj.weight");
    assert_int_not_equal(access(f.out, F_OK), 0);
    end(&f);
    f = begin(llama, NULL);
    assert_int_equal(att_gguf_convert(ctx, f.file, f.out, ATT_OPTIONS(att_gguf_options, .dtype = (att_dtype)77)),
                     ATT_ERR_ARGUMENT);
    assert_int_equal(att_gguf_convert(ctx, f.folder.path, f.out, NULL),
                     ATT_ERR_IO); /* its config.json has precedence */
    check_message(ctx, "there is neither tokenizer.json nor vocab.txt");
    end(&f);
}

static void when_cancelled_nothing_is_left(void **state)
{
    (void)state;
    static int cancel = 1;
    const fixture f = begin(llama, NULL);
    att_ctx *other;
    char unfinished[sizeof f.out + 16];
    snprintf(unfinished, sizeof unfinished, "%s.unfinished", f.out);
    assert_int_equal(att_open(&other, ATT_OPTIONS(att_config, .cancel = &cancel)), ATT_OK);
    assert_int_equal(att_gguf_convert(other, f.file, f.out, NULL), ATT_ERR_CANCELLED);
    assert_int_not_equal(access(f.out, F_OK), 0);
    assert_int_not_equal(access(unfinished, F_OK), 0);
    att_close(other);
    end(&f);
}

/* What a killed process has left is removed; another one that writes now is not disturbed. */
static void unfinished_folders_are_locked(void **state)
{
    (void)state;
    const fixture f = begin(llama, NULL);
    char path[400];
    assert_int_equal(mkdir(f.unfinished, 0777), 0);
    const int fd = open(f.unfinished, O_RDONLY | O_DIRECTORY);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    folder_write(&f.folder, "out.unfinished/model.safetensors.unfinished-0", "old");
    assert_refused(&f, ATT_ERR_IO, "is being written by another process");
    snprintf(path, sizeof path, "%s/model.safetensors.unfinished-0", f.unfinished);
    assert_int_equal(access(path, F_OK), 0);
    close(fd);
    convert(&f, 0);
    snprintf(path, sizeof path, "%s/model.safetensors.unfinished-0", f.out);
    assert_int_not_equal(access(path, F_OK), 0);
    end(&f);
}

static att_status convert_in_parts(void *fixture_of, att_progress_fn progress, void *user)
{
    const fixture *f = fixture_of;
    const att_status s =
        att_gguf_convert(ctx, f->file, f->out, ATT_OPTIONS(att_gguf_options, .progress = progress, .user = user));
    assert_int_equal(access(f->unfinished, F_OK), -1);
    assert_int_equal(access(f->out, F_OK), s ? -1 : 0);
    remove_folder(f->out);
    return s;
}

static void progress_may_stop_a_conversion(void **state)
{
    (void)state;
    fixture f = begin(llama, NULL);
    assert_progress(ctx, convert_in_parts, &f);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_folder_is_the_same_model),
        cmocka_unit_test(weights_may_be_of_two_bytes),
        cmocka_unit_test(settings_are_those_that_transformers_reads),
        cmocka_unit_test(tokens_are_the_same),
        cmocka_unit_test(factors_become_the_setting_of_llama3),
        cmocka_unit_test(a_folder_with_files_is_refused),
        cmocka_unit_test(after_an_error_nothing_is_left),
        cmocka_unit_test(when_cancelled_nothing_is_left),
        cmocka_unit_test(unfinished_folders_are_locked),
        cmocka_unit_test(progress_may_stop_a_conversion),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
