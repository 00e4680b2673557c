/* Models whose files are given by a callback, or read instead of mapped. */
#include "fixtures/check.h"
#include "fixtures/model_cases.h"

#include <fcntl.h>
#include <unistd.h>

/* ---- a folder in memory */

enum { MAX_FILES = 64 };
typedef struct memory_file {
    char name[128];
    char *data; /* [bytes], in memory of its own, so that a sanitizer sees what is read beyond it */
    size_t bytes;
    int asked;
} memory_file;
typedef struct memory_folder {
    memory_file file[MAX_FILES];
    int n;
    const char *failing; /* asking for this one is an error */
    const char *sentence;
} memory_folder;

static void load(memory_folder *m, const test_folder *f)
{
    char command[200], name[128];
    *m = (memory_folder){0};
    snprintf(command, sizeof command, "cd %s && find . -type f", f->path);
    FILE *list = popen(command, "r");
    assert_non_null(list);
    while (fgets(name, sizeof name, list)) {
        char path[300];
        memory_file *file = &m->file[m->n++];
        assert_true(m->n <= MAX_FILES);
        name[strcspn(name, "\n")] = 0;
        snprintf(file->name, sizeof file->name, "%s", name + 2);
        snprintf(path, sizeof path, "%s/%s", f->path, file->name);
        FILE *in = fopen(path, "rb");
        assert_non_null(in);
        fseek(in, 0, SEEK_END);
        file->bytes = (size_t)ftell(in);
        rewind(in);
        file->data = malloc(file->bytes + 1);
        assert_non_null(file->data);
        assert_int_equal(fread(file->data, 1, file->bytes, in), file->bytes);
        fclose(in);
    }
    assert_int_equal(pclose(list), 0);
}

static void unload(memory_folder *m)
{
    for (int i = 0; i < m->n; i++)
        free(m->file[i].data);
}

static memory_file *find(memory_folder *m, const char *name)
{
    for (int i = 0; i < m->n; i++)
        if (strcmp(m->file[i].name, name) == 0)
            return &m->file[i];
    return NULL;
}

static att_status read_file(void *user, const char *name, const void **data, size_t *bytes)
{
    memory_folder *m = user;
    memory_file *f = find(m, name);
    if (m->failing && strcmp(name, m->failing) == 0)
        return m->sentence ? att_fail(NULL, ATT_ERR_SYSTEM, "%s", m->sentence) : ATT_ERR_SYSTEM;
    if (!f)
        return ATT_OK;
    f->asked++;
    *data = f->data;
    *bytes = f->bytes;
    return ATT_OK;
}

/* ---- the same model */

/* Where the folder is not: nothing of the disk is read. */
static void a_model_in_memory_has_the_bits_of_its_folder(void **state)
{
    (void)state;
    static memory_folder files;
    static case_result on_disk, in_memory;
    for (int i = 0; i < MODEL_CASES; i++) {
        const model_case *k = &model_cases[i];
        const test_folder f = k->make();
        const att_model_path path = case_path(k, &f);
        captioner_need(case_open_and_run(k, path.text, NULL, &on_disk));
        load(&files, &f);
        folder_remove(&f);
        for (int copy = 0; copy < 2; copy++) {
            captioner_need(case_open_and_run(
                k, path.text, ATT_OPTIONS(att_model_options, .copy = copy, .read = read_file, .read_user = &files),
                &in_memory));
            case_expect_same(k, &on_disk, &in_memory);
        }
        unload(&files);
    }
}

/* Each subject's own function, with a path that is but a name, also with '/' at its end */
static void a_path_only_names_a_model_in_memory(void **state)
{
    (void)state;
    static const char *const paths[] = {"", "no/such/folder", "no//such/./folder/"};
    static memory_folder files;
    const test_folder f = tiny_sentence();
    load(&files, &f);
    folder_remove(&f);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        att_sentence *m;
        captioner_need(att_sentence_open(ctx, paths[i],
                                         ATT_OPTIONS(att_model_options, .read = read_file, .read_user = &files), &m));
        att_sentence_free(m);
    }
    unload(&files);
}

/* With the options of its model */
static void a_chat_template_is_in_memory_too(void **state)
{
    (void)state;
    static memory_folder files;
    char command[200];
    const test_folder f = folder_new();
    const att_model_options o = {.size = sizeof o, .read = read_file, .read_user = &files};
    att_chat_template *t;
    snprintf(command, sizeof command, "cp tests/golden/chat/chatml.jinja %s/chat_template.jinja", f.path);
    assert_int_equal(system(command), 0);
    load(&files, &f);
    folder_remove(&f);
    captioner_need(att_chat_template_open(ctx, f.path, NULL, &o, &t));
    assert_string_equal(att_chat_template_name(t), "chat_template.jinja");
    att_chat_template_free(t);
    files.failing = "chat_template.jinja";
    assert_int_equal(att_chat_template_open(ctx, f.path, NULL, &o, &t), ATT_ERR_SYSTEM);
    assert_null(t);
    unload(&files);
}

/* ---- errors */

/* With or without a sentence, at each file that is asked for */
static void an_error_of_the_callback_is_returned(void **state)
{
    (void)state;
    static memory_folder files;
    static case_result r;
    for (int i = 0; i < MODEL_CASES; i++) {
        const model_case *k = &model_cases[i];
        const test_folder f = k->make();
        const att_model_path path = case_path(k, &f);
        const att_model_options o = {.size = sizeof o, .read = read_file, .read_user = &files};
        load(&files, &f);
        folder_remove(&f);
        captioner_need(case_open_and_run(k, path.text, &o, &r));
        for (int j = 0; j < files.n; j++) {
            if (!files.file[j].asked)
                continue;
            files.failing = files.file[j].name;
            files.sentence = j % 2 ? "the archive is closed" : NULL;
            assert_int_equal(case_open_and_run(k, path.text, &o, &r), ATT_ERR_SYSTEM);
            check_message(ctx, files.failing);
            check_message(ctx, j % 2 ? "read: the archive is closed" : "read: ");
        }
        unload(&files);
    }
}

/* As of a disk: cut, or with a byte that is another one */
static void content_in_memory_is_checked(void **state)
{
    (void)state;
    static memory_folder files;
    static case_result r;
    const test_folder f = tiny_sentence();
    const att_model_options o = {.size = sizeof o, .read = read_file, .read_user = &files};
    load(&files, &f);
    folder_remove(&f);
    memory_file *weights = find(&files, "model.safetensors"), *config = find(&files, "config.json");
    const size_t bytes = weights->bytes;
    weights->bytes = bytes - 4;
    assert_int_equal(case_open_and_run(&model_cases[0], "m", &o, &r), ATT_ERR_FORMAT);
    check_message(ctx, "m/model.safetensors: tensor");
    weights->bytes = 0;
    assert_int_equal(case_open_and_run(&model_cases[0], "m", &o, &r), ATT_ERR_FORMAT);
    check_message(ctx, "m/model.safetensors is empty");
    weights->bytes = bytes;
    strcpy(weights->name, "none");
    assert_int_equal(case_open_and_run(&model_cases[0], "m", &o, &r), ATT_ERR_IO);
    check_message(ctx, "m: there is no model.safetensors");
    strcpy(weights->name, "model.safetensors");
    config->data[0] = '[';
    assert_int_equal(case_open_and_run(&model_cases[0], "m", &o, &r), ATT_ERR_FORMAT);
    check_message(ctx, "m/config.json: line 1");
    strcpy(config->name, "none");
    assert_int_equal(case_open_and_run(&model_cases[0], "m", &o, &r), ATT_ERR_IO);
    check_message(ctx, "m/config.json: No such file or directory");
    unload(&files);
}

/* An opening inside of the callback is one of the disk. */
typedef struct nested {
    memory_folder *files;
    const char *folder;
    int opened;
} nested;

static att_status read_nested(void *user, const char *name, const void **data, size_t *bytes)
{
    nested *n = user;
    att_sentence *m;
    captioner_need(att_sentence_open(ctx, n->folder, NULL, &m));
    att_sentence_free(m);
    n->opened++;
    return read_file(n->files, name, data, bytes);
}

static void a_callback_may_open_another_model(void **state)
{
    (void)state;
    static memory_folder files;
    static case_result r;
    const test_folder f = tiny_sentence();
    nested n = {.files = &files, .folder = f.path};
    load(&files, &f);
    captioner_need(case_open_and_run(&model_cases[0], "m",
                                     ATT_OPTIONS(att_model_options, .read = read_nested, .read_user = &n), &r));
    assert_true(n.opened > 2);
    unload(&files);
    folder_remove(&f);
}

/* A .gguf file that does not begin at a multiple of 8 */
static void content_may_begin_anywhere(void **state)
{
    (void)state;
    static memory_folder files;
    static case_result aligned, other;
    for (int i = 0; i < MODEL_CASES; i++) {
        const model_case *k = &model_cases[i];
        if (strcmp(k->name, "gguf") != 0 && strcmp(k->name, "bert") != 0)
            continue;
        const test_folder f = k->make();
        const att_model_path path = case_path(k, &f);
        const att_model_options o = {.size = sizeof o, .read = read_file, .read_user = &files};
        load(&files, &f);
        folder_remove(&f);
        captioner_need(case_open_and_run(k, path.text, &o, &aligned));
        for (int j = 0; j < files.n; j++) {
            char *moved = malloc(files.file[j].bytes + 3);
            assert_non_null(moved);
            memcpy(moved + 3, files.file[j].data, files.file[j].bytes);
            free(files.file[j].data);
            files.file[j].data = moved + 3;
        }
        captioner_need(case_open_and_run(k, path.text, &o, &other));
        case_expect_same(k, &aligned, &other);
        for (int j = 0; j < files.n; j++)
            free(files.file[j].data - 3);
    }
}

/* ---- files that are read */

static void overwrite(const test_folder *f)
{
    char command[300];
    snprintf(command, sizeof command, "find %s -type f -exec sh -c 'printf overwritten > \"$0\"' {} \\;", f->path);
    assert_int_equal(system(command), 0);
}

/* A mapped file that is truncated would raise SIGBUS. */
static void files_that_were_read_may_be_overwritten(void **state)
{
    (void)state;
    static case_result before, after;
    for (int i = 0; i < MODEL_CASES; i++) {
        const model_case *k = &model_cases[i];
        const test_folder f = k->make();
        const att_model_path path = case_path(k, &f);
        att_any_model *m;
        captioner_need(case_open_and_run(k, path.text, NULL, &before));
        captioner_need(
            att_any_model_open(ctx, path.text, ATT_SUBJECT_NONE, ATT_OPTIONS(att_model_options, .copy = true), &m));
        overwrite(&f);
        case_run(k, ctx, m, &after);
        case_expect_same(k, &before, &after);
        att_any_model_free(m);
        folder_remove(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_in_memory_has_the_bits_of_its_folder),
        cmocka_unit_test(a_path_only_names_a_model_in_memory),
        cmocka_unit_test(a_chat_template_is_in_memory_too),
        cmocka_unit_test(an_error_of_the_callback_is_returned),
        cmocka_unit_test(content_in_memory_is_checked),
        cmocka_unit_test(a_callback_may_open_another_model),
        cmocka_unit_test(content_may_begin_anywhere),
        cmocka_unit_test(files_that_were_read_may_be_overwritten),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
