/* A file that was saved instead of another, a pointer of Git LFS, a web page, an archive, is named as what it is. */
#include "io/content.h"
#include "io/gguf.h"
#include "io/settings.h"
#include "io/line_reader.h"
#include "attend_sentence.h"
#include "attend_translate.h"
#include "attend_vision.h"

#include "fixtures/context.h"
#include "fixtures/check.h"
#include "fixtures/tiny_gguf.h"
#include "fixtures/write_files.h"

#include <unistd.h>

static const char pointer[] = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";

static att_status open_weights(const char *path)
{
    att_safetensors *f;
    return att_safetensors_open(ctx, path, &f);
}

static att_status open_gguf(const char *path)
{
    att_gguf *g;
    return att_gguf_open(ctx, path, &g);
}

static att_status open_image(const char *path)
{
    att_image image;
    return att_image_open(ctx, path, NULL, &image);
}

static att_status open_text(const char *path)
{
    int file;
    return att_open_text(path, &file);
}

static att_status open_lines(const char *path)
{
    att_text_lines l;
    const att_status s = att_text_lines_open(&l, ctx, path);
    att_text_lines_close(&l);
    return s;
}

static att_status open_settings(const char *path)
{
    char folder[256];
    att_settings s;
    snprintf(folder, sizeof folder, "%s", path);
    char *name = strrchr(folder, '/');
    *name = 0;
    att_settings_read(&s, ctx, folder, name + 1, true);
    att_settings_close(&s);
    return s.status;
}

static att_status open_tokenizer(const char *path)
{
    att_tokenizer *t;
    return att_tokenizer_open(ctx, path, &t);
}

static att_status open_tokenizer_of_folder(const char *path)
{
    char folder[256];
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = 0;
    return open_tokenizer(folder);
}

static att_status open_images(const char *path)
{
    char folder[256];
    att_image_set *set;
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = 0;
    return att_image_set_open(ctx, folder, ATT_IMAGE_SPLIT_TRAIN, NULL, 0, &set);
}

static const struct {
    const char *name;
    att_status (*open)(const char *path);
} readers[] = {{"model.safetensors", open_weights},
               {"m.gguf", open_gguf},
               {"config.json", open_settings},
               {"tokenizer.json", open_tokenizer_of_folder},
               {"source.spm", open_tokenizer},
               {"x.png", open_image},
               {"lines.txt", open_text},
               {"lines.tsv.gz", open_text},
               {"train.en", open_lines},
               {"train-images-idx3-ubyte", open_images}};
enum { READERS = sizeof readers / sizeof readers[0] };

static void pointers_of_git_lfs_are_named_whatever_they_should_be(void **state)
{
    (void)state;
    assert_int_equal(att_refuse_pointer(ctx, "x", "Version https://git-lfs.github.com/spec/v1", 42), ATT_OK);
    assert_int_equal(att_refuse_pointer(ctx, "x", pointer, 34), ATT_OK);
    for (int i = 0; i < READERS; i++) {
        const test_folder f = folder_new();
        folder_write(&f, readers[i].name, pointer);
        folder_write(&f, "train-labels-idx1-ubyte", pointer);
        check_file_refused(ctx, readers[i].open(path_in(&f, readers[i].name)), ATT_ERR_FORMAT, readers[i].name,
                           "is a pointer of git LFS, not the file that it stands for; in its repository: git lfs pull");
        folder_remove(&f);
    }
}

static void answers_of_servers_are_quoted_where_weights_are_expected(void **state)
{
    (void)state;
    static const char *const answers[] = {"{\"error\":\"Repository not found\"}", "Internal\tServer Error\n",
                                          "# xet version 0\nfilesize = 4\n"};
    static const char *const says[] = {"a text that begins with \"{\"error\":\"Repository not found\"}\", perhaps",
                                       "\"Internal Server Error \", perhaps a server's answer; download it anew",
                                       "\"# xet version 0 filesize = 4 \""};
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        const test_folder f = folder_new();
        folder_write(&f, "model.safetensors", answers[i]);
        check_file_refused(ctx, open_weights(path_in(&f, "model.safetensors")), ATT_ERR_FORMAT, "model.safetensors",
                           says[i]);
        folder_remove(&f);
    }
}

static void links_to_files_that_are_missing_are_named(void **state)
{
    (void)state;
    for (int r = 0; r < 4; r++) {
        const test_folder f = folder_new();
        const char *name = readers[r].name;
        assert_int_equal(symlink("../../blobs/4d7a", path_in(&f, name)), 0);
        check_file_refused(ctx, readers[r].open(path_in(&f, name)), ATT_ERR_IO, name,
                           "is a symbolic link to a file that is missing; copy folders with cp -L");
        folder_remove(&f);
    }
    const test_folder f = folder_new(); /* an optional file must be reported, too */
    att_settings s;
    att_settings_read(&s, ctx, f.path, "tokenizer_config.json", false);
    assert_int_equal(s.status, ATT_OK);
    assert_int_equal(symlink("blob", path_in(&f, "tokenizer_config.json")), 0);
    att_settings_read(&s, ctx, f.path, "tokenizer_config.json", false);
    assert_int_equal(s.status, ATT_ERR_IO);
    folder_remove(&f);
}

static void a_byte_order_mark_is_no_part_of_a_file_of_text(void **state)
{
    (void)state;
    const test_folder f = folder_new();
    att_settings s;
    att_tokenizer *t;
    folder_write(&f, "tokenizer_config.json", "\xef\xbb\xbf{\"do_lower_case\": false}");
    folder_write(&f, "vocab.txt", "\xef\xbb\xbf[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
    att_settings_read(&s, ctx, f.path, "tokenizer_config.json", true);
    assert_int_equal(s.status, ATT_OK);
    assert_false(att_settings_bool(&s, "do_lower_case", true));
    att_settings_close(&s);
    assert_int_equal(att_tokenizer_open(ctx, f.path, &t), ATT_OK);
    assert_string_equal(att_tokenizer_token(t, 0), "[PAD]");
    att_tokenizer_free(t);
    folder_write(&f, "tokenizer_config.json", "\xef\xbb\xbf");
    att_settings_read(&s, ctx, f.path, "tokenizer_config.json", true);
    assert_int_equal(s.status, ATT_ERR_FORMAT);
    folder_remove(&f);
}

static void pages_and_archives_are_named(void **state)
{
    static const struct {
        const char *content, *says;
    } others[] = {{"<!DOCTYPE html>\n<html lang=\"en\">", "it is a web page (HTML); download the file itself"},
                  {"\xef\xbb\xbf \r\n<HTML><head>", "it is a web page (HTML)"},
                  {"<?xml version=\"1.0\"?><Error>", "it is an XML page"},
                  {"Entry not found", "it is a server's answer that the file does not exist"},
                  {"PK\3\4 and more", "it is a zip archive"},
                  {"\x80\2}q\1 and more", "it is a pickle of Python"},
                  {"BZh91AY&SY and more", "it is packed by bzip2"},
                  {"\xfd"
                   "7zXZ\x01 and more",
                   NULL}, /* not the sixth byte of xz */
                  {"%PDF-1.7 and more", "it is a PDF document"}};
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        for (int r = 0; r < 6; r++) { /* texts may have any content */
            const test_folder f = folder_new();
            folder_write(&f, readers[r].name, others[i].content);
            const att_status s = readers[r].open(path_in(&f, readers[r].name));
            if (others[i].says)
                check_file_refused(ctx, s, ATT_ERR_FORMAT, readers[r].name, others[i].says);
            else
                assert_int_not_equal(s, ATT_OK);
            folder_remove(&f);
        }
}

/* A file of weights begins with any number. */
static void a_header_whose_length_looks_like_gzip_is_read(void **state)
{
    enum { LENGTH = 0x8b1f };
    (void)state;
    static _Alignas(8) char file[8 + LENGTH] = "\x1f\x8b";
    att_safetensors *f;
    memset(file + 8, ' ', LENGTH);
    memcpy(file + 8, "{}", 2);
    assert_int_equal(att_safetensors_from_memory(ctx, "m", file, sizeof file, &f), ATT_OK);
    att_safetensors_free(f);
}

static void an_adapter_is_named_with_its_model(void **state)
{
    (void)state;
    att_sentence *sentence;
    att_language_model *language;
    att_image_model *images;
    att_translator *translator;
    const test_folder f = folder_new();
    static const char says[] = "is an adapter of org/base-7b, not a model by itself: merge it into that first";
    folder_write(&f, "adapter_config.json", "{\"peft_type\": \"LORA\", \"base_model_name_or_path\": \"org/base-7b\"}");
    folder_write(&f, "adapter_model.safetensors", "");
    check_file_refused(ctx, att_sentence_open(ctx, f.path, NULL, &sentence), ATT_ERR_UNSUPPORTED, f.path, says);
    check_file_refused(ctx, att_language_model_open(ctx, f.path, NULL, &language), ATT_ERR_UNSUPPORTED, f.path, says);
    check_file_refused(ctx, att_image_model_open(ctx, f.path, NULL, &images), ATT_ERR_UNSUPPORTED, f.path, says);
    check_file_refused(ctx, att_translator_open(ctx, f.path, NULL, &translator), ATT_ERR_UNSUPPORTED, f.path, says);
    folder_remove(&f);
}

/* ---- .gguf */

static const tiny_llama *const model = &tiny_llamas[0];

static void check_value_refused(const gguf_value *v, int n, const char *words)
{
    att_language_model *m;
    const test_folder f = tiny_llama_folder(model, NULL);
    tiny_gguf_write(&f, "m.gguf", model, &(tiny_gguf){.change = v, .changes = n});
    check_file_refused(ctx, att_language_model_open(ctx, path_in(&f, "m.gguf"), NULL, &m), ATT_ERR_UNSUPPORTED,
                       "m.gguf", words);
    folder_remove(&f);
}

static void an_adapter_is_not_a_model(void **state)
{
    (void)state;
    const gguf_value adapter = {"general.type", GGUF_TEXT, .text = "adapter"};
    check_value_refused(&adapter, 1, "(\"general.type\" is \"adapter\"), not the model");
}

static void a_single_part_is_a_model(void **state)
{
    (void)state;
    att_language_model *m;
    const gguf_value one[] = {{"split.no", GGUF_U32, .number = 0}, {"split.count", GGUF_U32, .number = 1}};
    const test_folder f = tiny_llama_folder(model, NULL);
    tiny_gguf_write(&f, "m.gguf", model, &(tiny_gguf){.change = one, .changes = 2});
    if (att_language_model_open(ctx, path_in(&f, "m.gguf"), NULL, &m))
        fail_msg("%s", att_error(ctx));
    att_language_model_free(m);
    folder_remove(&f);
}

static void other_versions_and_types_are_named_with_what_to_do(void **state)
{
    static const struct {
        const char *begin, *says;
        att_status status;
    } others[] = {{"GGUF\0\0\0\3", "is for big-endian machines", ATT_ERR_UNSUPPORTED},
                  {"GGUF\0\0\0\2", "is for big-endian machines", ATT_ERR_UNSUPPORTED},
                  {"FUGG\0\0\0\3", "it is a .gguf file for big-endian machines", ATT_ERR_FORMAT},
                  {"GGUF\1\0\0\0", "is of version 1 of the format; 2 and 3 are supported; take a newer file",
                   ATT_ERR_UNSUPPORTED},
                  {"GGUF\4\0\0\0", "is of version 4 of the format; 2 and 3 are supported", ATT_ERR_UNSUPPORTED},
                  {"tjgg\3\0\0\0", "llama.cpp's old format GGJT; take the .gguf file", ATT_ERR_FORMAT},
                  {"lmgg\3\0\0\0", "llama.cpp's old format GGML", ATT_ERR_FORMAT}};
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        _Alignas(8) char file[64] = {0};
        att_gguf *g;
        memcpy(file, others[i].begin, 8);
        check_file_refused(ctx, att_gguf_from_memory(ctx, "m.gguf", file, sizeof file, &g), others[i].status, "m.gguf",
                           others[i].says);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pointers_of_git_lfs_are_named_whatever_they_should_be),
        cmocka_unit_test(answers_of_servers_are_quoted_where_weights_are_expected),
        cmocka_unit_test(links_to_files_that_are_missing_are_named),
        cmocka_unit_test(a_byte_order_mark_is_no_part_of_a_file_of_text),
        cmocka_unit_test(pages_and_archives_are_named),
        cmocka_unit_test(a_header_whose_length_looks_like_gzip_is_read),
        cmocka_unit_test(an_adapter_is_named_with_its_model),
        cmocka_unit_test(an_adapter_is_not_a_model),
        cmocka_unit_test(a_single_part_is_a_model),
        cmocka_unit_test(other_versions_and_types_are_named_with_what_to_do),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
