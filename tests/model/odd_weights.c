/* Weights as other programs write them: tensors that begin at any byte, and tensors that the model does not have. */
#include "attend_sentence.h"

#include "fixtures/check.h"
#include "fixtures/context.h"
#include "fixtures/tiny_bert.h"
#include "fixtures/tiny_gguf.h"
#include "fixtures/tiny_marian.h"
#include "fixtures/tiny_vit.h"

/* ---- a context that keeps the last note */

static char note[1024];
static int notes;

static void keep_note(void *user, const char *text)
{
    (void)user;
    snprintf(note, sizeof note, "%s", text);
    notes++;
}

static int open_noting(void **state)
{
    (void)state;
    return att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = 1, .note = keep_note));
}

/* ---- files of weights, changed */

typedef struct extra {
    const char *name, *dtype, *shape;
    int bytes;
} extra;

/* Adds tensors [n] to model.safetensors, and blanks to its header until its length leaves `rest` when divided by 8. */
static void change_weights(const test_folder *f, const extra *tensors, int n, uint64_t rest)
{
    static unsigned char file[1 << 18];
    static char header[1 << 16];
    char path[256];
    snprintf(path, sizeof path, "%s/model.safetensors", f->path);
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    const size_t bytes = fread(file, 1, sizeof file, in);
    fclose(in);
    uint64_t length;
    memcpy(&length, file, sizeof length);
    size_t at = length, end = bytes - 8 - length;
    memcpy(header, file + 8, length);
    while (header[at - 1] != '}')
        at--;
    at--;
    for (int i = 0; i < n; i++) {
        at += (size_t)snprintf(header + at, sizeof header - at,
                               ",\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}", tensors[i].name,
                               tensors[i].dtype, tensors[i].shape, end, end + (size_t)tensors[i].bytes);
        end += (size_t)tensors[i].bytes;
    }
    header[at++] = '}';
    while (at % 8 != rest)
        header[at++] = ' ';
    const uint64_t now = at;
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    fwrite(&now, 1, sizeof now, out);
    fwrite(header, 1, at, out);
    fwrite(file + 8 + length, 1, bytes - 8 - length, out);
    for (size_t i = bytes - 8 - length; i < end; i++)
        fputc(0x41, out);
    assert_int_equal(fclose(out), 0);
}

/* ---- models, and the numbers of a call */

enum { RESULTS = 4096 };

static void use_bert(const test_folder *f, float *out)
{
    static const int32_t ids[] = {2, 7, 9, 11, 3};
    att_encoder *m;
    att_tape *t;
    att_tensor x;
    if (att_encoder_open(ctx, f->path, NULL, &m))
        fail_msg("%s", att_error(ctx));
    assert_int_equal(att_tape_new(ctx, NULL, &t), ATT_OK);
    assert_int_equal(att_var_value(t, att_encoder_apply(t, m, ids, (const int64_t[]){0, 5}, 1, NULL), &x), ATT_OK);
    memcpy(out, x.data, 5 * TINY_HIDDEN * sizeof *out);
    att_tape_free(t);
    att_encoder_free(m);
}

static void use_llama(const test_folder *f, float *out)
{
    static const int32_t ids[] = {1, 7, 9, 11, 3};
    tiny_logits(ctx, f->path, ids, 5, out);
}

static void use_vit(const test_folder *f, float *out)
{
    static tiny_images images;
    att_vit *m = tiny_vit_open(f, false);
    tiny_images_of(&images, "vit");
    tiny_vit_apply(m, att_vit_apply, &images.tensor, out);
    att_vit_free(m);
}

static void use_marian(const test_folder *f, float *out)
{
    att_transformer *m = open_model(ctx, f);
    out[0] = 1;
    att_transformer_free(m);
}

static test_folder make_bert(void) { return tiny_bert(); }
static test_folder make_llama(void) { return tiny_llama_folder(&tiny_llamas[0], NULL); }
static test_folder make_vit(void) { return tiny_vit_folder("vit", NULL); }
static test_folder make_marian(void) { return tiny_marian(); }

static const struct {
    test_folder (*make)(void);
    void (*use)(const test_folder *f, float *out);
} models[] = {{make_bert, use_bert}, {make_llama, use_llama}, {make_vit, use_vit}, {make_marian, use_marian}};
enum { MODELS = sizeof models / sizeof models[0] };

/* ---- tests */

static void weights_that_begin_at_any_byte_give_the_same_bits(void **state)
{
    (void)state;
    static float want[RESULTS], is[RESULTS];
    for (int i = 0; i < MODELS; i++)
        for (uint64_t rest = 1; rest < 8; rest += (uint64_t)check_step(3)) {
            const test_folder f = models[i].make();
            memset(want, 0, sizeof want);
            memset(is, 0, sizeof is);
            models[i].use(&f, want);
            change_weights(&f, NULL, 0, rest);
            models[i].use(&f, is);
            assert_memory_equal(is, want, sizeof want);
            folder_remove(&f);
        }
}

/* A flag of one byte is the first tensor, so that those after it begin at odd bytes. */
static void tensors_that_the_model_does_not_have_are_left_out_and_said(void **state)
{
    static const extra tensors[] = {{"zero", "F32", "[0,5]", 0},   {"flag", "BOOL", "[3]", 3},
                                    {"count", "I64", "[]", 8},     {"small", "F8_E4M3", "[2,3]", 6},
                                    {"smaller", "F4", "[2,3]", 3}, {"deep", "U16", "[1,1,1,1,1,1,1,1]", 2}};
    (void)state;
    static float want[RESULTS], is[RESULTS];
    for (int i = 0; i < MODELS; i++) {
        const test_folder f = models[i].make();
        models[i].use(&f, want);
        memcpy(is, want, sizeof is);
        change_weights(&f, tensors, 6, 1);
        note[0] = 0;
        notes = 0;
        models[i].use(&f, is);
        assert_int_equal(notes, 1);
        assert_memory_equal(is, want, sizeof want);
        assert_non_null(strstr(note, f.path));
        if (!strstr(note, "model.safetensors: left out, as the model of config.json does not have these tensors: "
                          "\"count\", \"deep\", \"flag\", \"small\", \"smaller\", \"zero\""))
            fail_msg("%s", note);
        folder_remove(&f);
    }
}

/* As `transformers`, which warns of them. */
static void tensors_that_are_nearly_those_of_the_model_are_said_too(void **state)
{
    static const extra biases[] = {{"model.layers.0.self_attn.q_proj.bias", "F32", "[16]", 64}},
                       norms[] = {{"model.layers.1.self_attn.q_norm.weight", "F32", "[4]", 16}},
                       layer[] = {{"model.layers.2.input_layernorm.weight", "F32", "[16]", 64}};
    static const extra *const near[] = {biases, norms, layer};
    (void)state;
    float out[RESULTS];
    for (size_t i = 0; i < sizeof near / sizeof near[0]; i++) {
        const test_folder f = make_llama();
        change_weights(&f, near[i], 1, 0);
        notes = 0;
        use_llama(&f, out);
        assert_int_equal(notes, 1);
        assert_non_null(strstr(note, "does not have this tensor: "));
        assert_non_null(strstr(note, near[i]->name));
        folder_remove(&f);
    }
}

static void of_many_tensors_the_first_are_named(void **state)
{
    enum { MANY = 60 };
    static char name[MANY][128];
    static extra tensors[MANY];
    (void)state;
    float out[RESULTS];
    const test_folder f = make_bert();
    for (int i = 0; i < MANY; i++) {
        snprintf(name[i], sizeof name[i], "%02d%0*d", i, i % 2 ? 90 : 5, i);
        tensors[i] = (extra){name[i], "F32", "[1]", 4};
    }
    change_weights(&f, tensors, MANY, 0);
    use_bert(&f, out);
    assert_non_null(strstr(note, "\"0000000\", \"01"));
    assert_non_null(strstr(note, " and others"));
    folder_remove(&f);
}

static void a_missing_tensor_is_an_error_whatever_else_is_there(void **state)
{
    static const extra other[] = {{"encoder.layer.1.output.dense.biases", "F32", "[12]", 48}};
    (void)state;
    att_encoder *m;
    const test_folder f = tiny_bert();
    tiny_write_weights(&f, &(const tiny_weights){.without = "encoder.layer.1.output.dense.bias"});
    change_weights(&f, other, 1, 0);
    check_file_refused(ctx, att_encoder_open(ctx, f.path, NULL, &m), ATT_ERR_FORMAT, "model.safetensors",
                       "there is no tensor \"encoder.layer.1.output.dense.bias\"");
    folder_remove(&f);
}

/* ---- numbers that are not finite are not results */

static void all_weights_nan(const test_folder *f)
{
    char path[256];
    uint64_t length;
    snprintf(path, sizeof path, "%s/model.safetensors", f->path);
    FILE *file = fopen(path, "rb+");
    assert_non_null(file);
    assert_int_equal(fread(&length, sizeof length, 1, file), 1);
    fseek(file, 0, SEEK_END);
    const long end = ftell(file);
    fseek(file, 8 + (long)length, SEEK_SET);
    for (long i = 8 + (long)length; i < end; i++)
        fputc(0xff, file);
    assert_int_equal(fclose(file), 0);
}

static void check_damaged(att_status s, const char *words)
{
    check_file_refused(ctx, s, ATT_ERR_FORMAT, words, "are not finite: the weights are damaged, or too large");
}

static void vectors_and_attention_of_damaged_weights_are_refused(void **state)
{
    (void)state;
    att_sentence *sentence;
    att_image_model *images;
    att_trace *trace;
    float weight[16];
    static uint8_t pixels[16 * 16 * 3];
    static float out[RESULTS];
    const att_image image = {16, 16, 3, pixels};
    test_folder f = tiny_sentence();
    all_weights_nan(&f);
    assert_int_equal(att_sentence_open(ctx, f.path, NULL, &sentence), ATT_OK);
    check_damaged(att_sentence_embed(sentence, 2, (const char *[]){"a", "b"}, NULL, NULL, out),
                  "the numbers of the vector of text 0");
    assert_int_equal(att_sentence_trace(sentence, "a", 1, NULL, NULL, &trace), ATT_OK);
    check_damaged(att_trace_weights(trace, 0, 0, 0, 3, weight), "the attention weights of token 0");
    check_damaged(att_trace_weights(trace, 1, -1, 2, 1, weight), "the attention weights of token 2");
    att_trace_pair pair = {.size = sizeof pair};
    check_damaged(att_trace_pair_of(trace, 1, 0, 2, 1, &pair), "the attention weights of token 2");
    att_trace_free(trace);
    att_sentence_free(sentence);
    folder_remove(&f);
    f = make_vit();
    folder_write(&f, "preprocessor_config.json",
                 "{\"image_processor_type\": \"ViTImageProcessor\", \"size\": {\"height\": 12, \"width\": 12}}");
    all_weights_nan(&f);
    if (att_image_model_open(ctx, f.path, NULL, &images))
        fail_msg("%s", att_error(ctx));
    check_damaged(att_image_embed(images, 1, &image, NULL, out), "the numbers of the vector of image 0");
    assert_int_equal(att_image_trace(images, &image, NULL, &trace), ATT_OK);
    check_damaged(att_trace_rollout(trace, out), "the attention weights of token 0");
    att_trace_free(trace);
    att_image_model_free(images);
    folder_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_that_begin_at_any_byte_give_the_same_bits),
        cmocka_unit_test(tensors_that_the_model_does_not_have_are_left_out_and_said),
        cmocka_unit_test(tensors_that_are_nearly_those_of_the_model_are_said_too),
        cmocka_unit_test(of_many_tensors_the_first_are_named),
        cmocka_unit_test(vectors_and_attention_of_damaged_weights_are_refused),
        cmocka_unit_test(a_missing_tensor_is_an_error_whatever_else_is_there),
    };
    return cmocka_run_group_tests(tests, open_noting, close_context);
}
