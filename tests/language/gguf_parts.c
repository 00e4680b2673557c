/* Models in several .gguf files: as one with the same weights, and parts that do not belong together. */
#include "fixtures/check.h"
#include "fixtures/context.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/tiny_gguf.h"

#include "io/gguf.h"

#include <unistd.h>

enum { VOCABULARY = LLAMA_VOCABULARY, TOKENS = 9 };

static const int32_t ids[TOKENS] = {1, 7, 9, 11, 3, 5, 2, 19, 18};
static const tiny_llama *const llama = &tiny_llamas[0];

static void logits(const char *path, float out[TOKENS * VOCABULARY]) { tiny_logits(ctx, path, ids, TOKENS, out); }

static att_status open_model(const char *path)
{
    att_language_model *m;
    return att_language_model_open(ctx, path, NULL, &m);
}

static const char part[] = "m-0000%d-of-00003.gguf";

static test_folder folder_of_parts(void)
{
    const test_folder f = tiny_llama_folder(llama, NULL);
    tiny_gguf_write_parts(&f, "m", llama, 3);
    return f;
}

static const char *in_folder(const test_folder *f, const char *name)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/%s", f->path, name);
    return path;
}

static const char *part_in(const test_folder *f, int i)
{
    char name[32];
    snprintf(name, sizeof name, part, i);
    return in_folder(f, name);
}

static void parts_open_as_one(void **state)
{
    (void)state;
    static float want[TOKENS * VOCABULARY], is[TOKENS * VOCABULARY];
    const test_folder f = folder_of_parts();
    char command[200];
    logits(f.path, want);
    logits(part_in(&f, 1), is);
    assert_memory_equal(is, want, sizeof want);
    snprintf(command, sizeof command, "rm %s/*.safetensors %s/*.json", f.path, f.path);
    assert_int_equal(system(command), 0);
    logits(f.path, is); /* the folder has no other model */
    assert_memory_equal(is, want, sizeof want);
    folder_write(&f, "other.gguf", "");
    check_file_refused(ctx, open_model(f.path), ATT_ERR_ARGUMENT, f.path, "has several .gguf files");
    folder_remove(&f);
}

/* Writes one part again, with these values instead. */
static void rewrite_part(const test_folder *f, int i, const gguf_value *v, int n)
{
    char name[32];
    gguf_file file = {0};
    if (i == 1)
        tiny_gguf_settings(&file, llama, &(tiny_gguf){0});
    for (int k = 0; k < n; k++)
        gguf_put(&file, &v[k]);
    tiny_gguf_tensors(&file, f, llama, &(tiny_gguf){.part = i - 1, .parts = 3});
    snprintf(name, sizeof name, part, i);
    gguf_write(&file, f, name);
}

static void assert_parts_refused(const test_folder *f, const char *path, att_status status, const char *message)
{
    check_file_refused(ctx, open_model(path), status, f->path, message);
    folder_remove(f);
}

static void parts_that_do_not_belong_together_are_named(void **state)
{
    (void)state;
    const gguf_value count = {"split.count", GGUF_U16, .number = 3}, second = {"split.no", GGUF_U16, .number = 1};
    test_folder f = folder_of_parts();
    assert_parts_refused(&f, part_in(&f, 2), ATT_ERR_ARGUMENT,
                         "m-00002-of-00003.gguf: is part 2 of a model in 3 files; give the first one, which ends in "
                         "-00001-of-00003.gguf");
    f = folder_of_parts();
    assert_int_equal(unlink(part_in(&f, 3)), 0);
    assert_parts_refused(&f, part_in(&f, 1), ATT_ERR_IO, "m-00003-of-00003.gguf, part 3 of this model, is missing");
    f = folder_of_parts();
    rewrite_part(&f, 3, (const gguf_value[]){second, count}, 2);
    assert_parts_refused(&f, part_in(&f, 1), ATT_ERR_FORMAT,
                         "m-00003-of-00003.gguf: \"split.no\" is 1, not 2 as in part 3 of a model in 3 files");
    f = folder_of_parts();
    rewrite_part(&f, 2, (const gguf_value[]){second, {"split.count", GGUF_U16, .number = 4}}, 2);
    assert_parts_refused(&f, part_in(&f, 1), ATT_ERR_FORMAT, "m-00002-of-00003.gguf: \"split.count\" is 4, not 3");
    f = folder_of_parts();
    rewrite_part(&f, 2, NULL, 0);
    assert_parts_refused(&f, part_in(&f, 1), ATT_ERR_FORMAT, "m-00002-of-00003.gguf: there is no \"split.no\"");
    f = folder_of_parts();
    rewrite_part(&f, 1,
                 (const gguf_value[]){
                     {"split.no", GGUF_U16, .number = 0}, count, {"split.tensors.count", GGUF_I32, .number = 99}},
                 3);
    assert_parts_refused(&f, part_in(&f, 1), ATT_ERR_FORMAT, "tensors, but \"split.tensors.count\" is 99");
    f = folder_of_parts();
    char from[300];
    snprintf(from, sizeof from, "%s", part_in(&f, 1));
    assert_int_equal(rename(from, in_folder(&f, "renamed.gguf")), 0);
    assert_parts_refused(&f, in_folder(&f, "renamed.gguf"), ATT_ERR_UNSUPPORTED,
                         "renamed.gguf: is part 1 of a model in 3 files (split.count), and its name should end in "
                         "-00001-of-00003.gguf");
    f = folder_of_parts();
    folder_write(&f, "m-00002-of-00003.gguf", "x");
    assert_parts_refused(&f, part_in(&f, 1), ATT_ERR_FORMAT, "m-00002-of-00003.gguf: is not a GGUF file");
}

static void a_tensor_in_two_parts_is_named(void **state)
{
    (void)state;
    const test_folder f = folder_of_parts();
    gguf_file file = {0};
    gguf_put(&file, &(gguf_value){"split.no", GGUF_U16, .number = 1});
    gguf_put(&file, &(gguf_value){"split.count", GGUF_U16, .number = 3});
    tiny_gguf_tensors(&file, &f, llama, &(tiny_gguf){.part = 1, .parts = 3, .extra = "output_norm.weight"});
    gguf_write(&file, &f, "m-00002-of-00003.gguf");
    rewrite_part(&f, 1,
                 (const gguf_value[]){{"split.no", GGUF_U16, .number = 0}, {"split.count", GGUF_U16, .number = 3}}, 2);
    assert_parts_refused(&f, part_in(&f, 1), ATT_ERR_FORMAT, "tensor \"output_norm.weight\" occurs twice");
}

/* A converted model is one file, without the values about parts. */
static void conversion_joins_parts(void **state)
{
    (void)state;
    static float want[TOKENS * VOCABULARY], is[TOKENS * VOCABULARY];
    const test_folder f = folder_of_parts();
    char joined[300];
    att_gguf *g;
    logits(part_in(&f, 1), want);
    snprintf(joined, sizeof joined, "%s", in_folder(&f, "joined.gguf"));
    if (att_gguf_write(ctx, part_in(&f, 1), joined, NULL))
        fail_msg("%s", att_error(ctx));
    logits(joined, is);
    assert_memory_equal(is, want, sizeof want);
    assert_int_equal(att_gguf_open(ctx, joined, &g), ATT_OK);
    assert_false(att_gguf_has(g, "split.no") || att_gguf_has(g, "split.count") ||
                 att_gguf_has(g, "split.tensors.count"));
    att_gguf_free(g);
    folder_remove(&f);
}

/* Reads a file of the folder `user`; all are asked for by their names. */
static att_status read_file(void *user, const char *name, const void **data, size_t *bytes)
{
    static _Alignas(8) char memory[4][1 << 16];
    const test_folder *folder = user;
    int i;
    *data = NULL;
    if (sscanf(name, "m-%d-of-00003.gguf", &i) != 1 || i > 3)
        return ATT_OK;
    FILE *f = fopen(in_folder(folder, name), "rb");
    assert_non_null(f);
    *bytes = fread(memory[i], 1, sizeof memory[i], f);
    fclose(f);
    *data = memory[i];
    return ATT_OK;
}

static void parts_may_be_in_memory(void **state)
{
    (void)state;
    att_language_model *m;
    test_folder f = folder_of_parts();
    const att_model_options o = {.size = sizeof o, .read = read_file, .read_user = &f};
    if (att_language_model_open(ctx, "m-00001-of-00003.gguf", &o, &m))
        fail_msg("%s", att_error(ctx));
    att_language_model_free(m);
    folder_remove(&f);
}

static void every_failing_allocation_gives_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    const test_folder f = folder_of_parts();
    att_status s = ATT_ERR_MEMORY;
    for (long n = 2; s != ATT_OK; n++) { /* the first is the context's own */
        fail_alloc a = {.fail_at = n};
        att_ctx *failing;
        if (att_open(&failing, ATT_OPTIONS(att_config, .n_threads = 1, .allocator = fail_allocator(&a))))
            continue;
        att_gguf *g;
        s = att_gguf_open(failing, part_in(&f, 1), &g);
        assert_true(s == ATT_OK || s == ATT_ERR_MEMORY);
        att_gguf_free(g);
        att_close(failing);
        assert_int_equal(a.live, 0);
    }
    folder_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_open_as_one),
        cmocka_unit_test(parts_that_do_not_belong_together_are_named),
        cmocka_unit_test(a_tensor_in_two_parts_is_named),
        cmocka_unit_test(conversion_joins_parts),
        cmocka_unit_test(parts_may_be_in_memory),
        cmocka_unit_test(every_failing_allocation_gives_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
