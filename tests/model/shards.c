/* Weights in several files: model.safetensors.index.json says which tensor is in which. */
#include "attend_language.h"
#include "fixtures/check.h"
#include "fixtures/context.h"
#include "fixtures/tiny_llama.h"

enum { VOCABULARY = LLAMA_VOCABULARY, TOKENS = 5 };

static const int32_t ids[TOKENS] = {1, 7, 9, 11, 3};

static void logits(const char *folder, float out[TOKENS * VOCABULARY])
{
    att_language_model *m;
    att_tape *t;
    att_tensor v;
    if (att_language_model_open(ctx, folder, NULL, &m))
        fail_msg("%s", att_error(ctx));
    assert_int_equal(att_tape_new(ctx, NULL, &t), ATT_OK);
    assert_int_equal(
        att_var_value(t, att_language_model_apply(t, m, ids, (const int64_t[]){0, TOKENS}, 1, NULL, NULL), &v), ATT_OK);
    memcpy(out, v.data, TOKENS * VOCABULARY * sizeof *out);
    att_tape_free(t);
    att_language_model_free(m);
}

/* The folder's model.safetensors as `shards` files, tensors, one after the other; text [size]: the index
 */
static void split(const test_folder *f, int shards, char *text, size_t size)
{
    char path[300], shard[64];
    att_safetensors *all;
    enum { MAX = 64 };
    snprintf(path, sizeof path, "%s/model.safetensors", f->path);
    assert_int_equal(att_safetensors_open(ctx, path, &all), ATT_OK);
    size_t used = (size_t)snprintf(text, size, "{\"metadata\": {\"total_size\": 1}, \"weight_map\": {");
    for (int k = 0; k < shards; k++) {
        const char *name[MAX];
        att_tensor tensor[MAX];
        int n = 0;
        snprintf(shard, sizeof shard, "model-%05d-of-%05d.safetensors", k + 1, shards);
        for (int64_t i = k; i < att_safetensors_count(all); i += shards, n++) {
            name[n] = att_safetensors_name(all, i);
            assert_int_equal(att_safetensors_get(all, name[n], &tensor[n]), ATT_OK);
            used += (size_t)snprintf(text + used, size - used, "%s\"%s\": \"%s\"", k + n ? ", " : "", name[n], shard);
        }
        snprintf(path, sizeof path, "%s/%s", f->path, shard);
        assert_int_equal(att_safetensors_write(ctx, path, n, name, tensor, NULL), ATT_OK);
    }
    snprintf(text + used, size - used, "}}");
    att_safetensors_free(all);
    tiny_delete(f, "model.safetensors");
    folder_write(f, "model.safetensors.index.json", text);
}

static void a_model_in_several_files_is_the_same(void **state)
{
    (void)state;
    static char index[8000];
    float want[TOKENS * VOCABULARY], is[TOKENS * VOCABULARY];
    for (int shards = 1; shards <= 3; shards++) {
        const test_folder f = tiny_llama_folder(&tiny_llamas[0], NULL);
        logits(f.path, want);
        split(&f, shards, index, sizeof index);
        logits(f.path, is);
        assert_memory_equal(is, want, sizeof want);
        folder_remove(&f);
    }
}

static void assert_refused(const test_folder *f, att_status status, const char *file, const char *message)
{
    att_language_model *m;
    assert_int_equal(att_language_model_open(ctx, f->path, NULL, &m), status);
    assert_null(m);
    check_message(ctx, file);
    check_message(ctx, message);
}

/* Writes the index with the first `what` replaced. */
static void change(const test_folder *f, const char *index, const char *what, const char *with)
{
    static char text[9000];
    const char *at = strstr(index, what);
    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - index), index, with, at + strlen(what));
    folder_write(f, "model.safetensors.index.json", text);
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    static char index[8000];
    static const char file[] = "model.safetensors.index.json", first[] = "\"model-00001-of-00002.safetensors\"";
    const test_folder f = tiny_llama_folder(&tiny_llamas[0], NULL);
    split(&f, 2, index, sizeof index);
    change(&f, index, first, "\"../model-00001-of-00002.safetensors\"");
    assert_refused(&f, ATT_ERR_FORMAT, file, "not the name of a file in the folder");
    change(&f, index, first, "\"/etc/passwd\"");
    assert_refused(&f, ATT_ERR_FORMAT, file, "\"/etc/passwd\"");
    change(&f, index, first, "\"..\"");
    assert_refused(&f, ATT_ERR_FORMAT, file, "not the name of a file in the folder");
    change(&f, index, first, "\"\"");
    assert_refused(&f, ATT_ERR_FORMAT, file, "not the name of a file in the folder");
    change(&f, index, first, "7");
    assert_refused(&f, ATT_ERR_FORMAT, file, "has 7 as the file of");
    change(&f, index, first, "\"model-00002-of-00002.safetensors\"");
    assert_refused(&f, ATT_ERR_FORMAT, file, "is not in model-00002-of-00002.safetensors");
    change(&f, index, first, "\"model-00003-of-00002.safetensors\"");
    assert_refused(&f, ATT_ERR_IO, file, "the file model-00003-of-00002.safetensors, which has some of the weights");
    change(&f, index, "\"weight_map\"", "\"weight_maps\"");
    assert_refused(&f, ATT_ERR_FORMAT, file, "there is no \"weight_map\"");
    change(&f, index, "model.norm.weight\"", "model.morn.weight\"");
    assert_refused(&f, ATT_ERR_FORMAT, file, "tensor \"model.morn.weight\" is not in");
    folder_write(&f, "model.safetensors.index.json", index);
    tiny_delete(&f, "model-00002-of-00002.safetensors");
    assert_refused(&f, ATT_ERR_IO, file, "the file model-00002-of-00002.safetensors, which has some of the weights");
    folder_write(&f, "model-00002-of-00002.safetensors", "damaged");
    assert_refused(&f, ATT_ERR_FORMAT, "model-00002-of-00002.safetensors", "");
    folder_remove(&f);
}

static void missing_tensors_are_named(void **state)
{
    (void)state;
    const test_folder f = tiny_llama_folder(&tiny_llamas[0], NULL);
    tiny_delete(&f, "model.safetensors");
    folder_write(&f, "model.safetensors.index.json", "{\"weight_map\": {}}");
    assert_refused(&f, ATT_ERR_FORMAT, "model.safetensors.index.json", "there is no tensor \"embed_tokens.weight\"");
    folder_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_in_several_files_is_the_same),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(missing_tensors_are_named),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
