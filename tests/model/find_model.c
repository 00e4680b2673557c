/* Models by name: the order of the search, the list, and the message where there is none. */
#include "fixtures/check.h"
#include "fixtures/fail_malloc.h"
#include "fixtures/folder.h"

#include "attend_model.h"

#include <unistd.h>

/* Makes a models folder with "one" and "two", and "other", which is not a model. */
static test_folder models_folder(void)
{
    const test_folder f = folder_new();
    folder_write(&f, "two/config.json", "{}");
    folder_write(&f, "one/config.json", "{}");
    folder_write(&f, "other/file", "");
    folder_write(&f, ".hidden/config.json", "{}");
    return f;
}

static void set(const char *models, const char *data, const char *home)
{
    const char *const name[] = {"ATTEND_MODELS", "XDG_DATA_HOME", "HOME"}, *const value[] = {models, data, home};
    for (int i = 0; i < 3; i++)
        assert_int_equal(value[i] ? setenv(name[i], value[i], 1) : unsetenv(name[i]), 0);
}

static void assert_found(const char *name, const char *folder, const char *expected)
{
    att_model_path path, whole;
    if (att_model_find(name, &path))
        fail_msg("%s", att_error(NULL));
    snprintf(whole.text, sizeof whole.text, "%.2000s%s", folder, expected);
    assert_string_equal(path.text, whole.text);
}

static void the_models_folder_is_the_first_of_three_variables(void **state)
{
    (void)state;
    att_model_path path;
    set("/m", "/d", "/h");
    assert_int_equal(att_models_folder(&path), ATT_OK);
    assert_string_equal(path.text, "/m");
    set("", "/d", "/h");
    assert_int_equal(att_models_folder(&path), ATT_OK);
    assert_string_equal(path.text, "/d/attend/models");
    set(NULL, "", "/h");
    assert_int_equal(att_models_folder(&path), ATT_OK);
    assert_string_equal(path.text, "/h/.local/share/attend/models");
}

/* Not below the root folder, which for root is a place that can be written to. */
static void without_a_home_there_is_no_models_folder(void **state)
{
    (void)state;
    att_model_path path;
    set(NULL, NULL, NULL);
    assert_int_equal(att_models_folder(&path), ATT_ERR_ARGUMENT);
    assert_non_null(strstr(att_error(NULL), "HOME is not set: set ATTEND_MODELS to a folder"));
    set("", "", "");
    assert_int_equal(att_models_folder(&path), ATT_ERR_ARGUMENT);
    assert_found("tests", "", "tests");
    assert_int_equal(att_model_find("tatoeba-de-en", &path), ATT_OK);
    assert_int_equal(att_model_find("nix", &path), ATT_ERR_IO);
    assert_non_null(strstr(att_error(NULL), "nor a model in a models folder (HOME and ATTEND_MODELS are not set)"));
}

static void a_path_comes_before_the_models_folder_and_what_ships_comes_last(void **state)
{
    (void)state;
    const test_folder f = models_folder();
    set(f.path, NULL, NULL);
    assert_found("two", f.path, "/two");
    assert_found(f.path, f.path, "");
    assert_found("tests", "", "tests"); /* of the folder in which the test runs */
    att_model_path shipped;
    assert_int_equal(att_model_find("tatoeba-de-en", &shipped), ATT_OK); /* beside the program */
    assert_non_null(strstr(shipped.text, "/models/tatoeba-de-en"));
    folder_write(&f, "tests/config.json", "{}");
    folder_write(&f, "tatoeba-de-en/config.json", "{}");
    assert_found("tests", "", "tests");
    assert_found("tatoeba-de-en", f.path, "/tatoeba-de-en");
    folder_remove(&f);
}

static void append(void *user, const char *name)
{
    char *list = user;
    strcat(strcat(list, name), " ");
}

static void the_list_is_in_alphabetical_order_the_models_folder_first(void **state)
{
    (void)state;
    const test_folder f = models_folder();
    char list[4096] = "";
    set(f.path, NULL, NULL);
    assert_int_equal(att_models_list(append, list), ATT_OK);
    assert_string_equal(list, "one two fashion-mnist flickr8k-captions tatoeba-de-en ");
    folder_remove(&f);
    list[0] = 0;
    assert_int_equal(att_models_list(append, list), ATT_OK); /* of no folder */
    assert_string_equal(list, "fashion-mnist flickr8k-captions tatoeba-de-en ");
}

static void a_model_that_is_not_there_is_an_error_that_lists_those_that_are(void **state)
{
    (void)state;
    const test_folder f = models_folder();
    att_model_path path = {"before"};
    char expected[256];
    set(f.path, NULL, NULL);
    folder_write(&f, "file", "");
    static const char *const names[] = {"nix", "", "file"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(att_model_find(names[i], &path), ATT_ERR_IO);
        assert_string_equal(path.text, "");
        snprintf(
            expected, sizeof expected,
            "\"%s\" is neither a folder nor a model in %s, nor one that comes with attend; available are: one, two, "
            "fashion-mnist, flickr8k-captions, tatoeba-de-en",
            names[i], f.path);
        assert_string_equal(att_error(NULL), expected);
    }
    folder_remove(&f);
}

static void a_path_that_is_too_long_is_refused(void **state)
{
    (void)state;
    static char longest[5000];
    att_model_path path;
    memset(longest, 'x', sizeof longest - 1);
    set("/m", NULL, NULL);
    assert_int_equal(att_model_find(longest, &path), ATT_ERR_IO);
    set(longest, NULL, NULL);
    assert_int_equal(att_models_folder(&path), ATT_ERR_ARGUMENT);
    assert_int_equal(att_model_find("one", &path), ATT_ERR_ARGUMENT);
    assert_non_null(strstr(att_error(NULL), "4095 bytes"));
}

/* ---- the cache of the Hugging Face Hub */

enum { N_VARIABLES = 5 };
static const char *const variables[N_VARIABLES] = {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME",
                                                   "HOME"};

/* Sets one of the variables, and no other. */
static void set_only(int which, const char *value)
{
    for (int i = 0; i < N_VARIABLES; i++)
        unsetenv(variables[i]);
    if (value)
        setenv(variables[which], value, 1);
}

/* Makes a cache with snapshots of "ann/some-model": abc0 of main, and abc1 of the tag v2 and of refs/pr/1. */
static test_folder hub_folder(void)
{
    const test_folder f = folder_new();
    folder_write(&f, "models--ann--some-model/refs/main", "abc0");
    folder_write(&f, "models--ann--some-model/refs/v2", "abc1\n");
    folder_write(&f, "models--ann--some-model/refs/refs/pr/1", "abc1");
    folder_write(&f, "models--ann--some-model/snapshots/abc0/model.safetensors", "");
    folder_write(&f, "models--ann--some-model/snapshots/abc1/Model-Q8_0.GGUF", "");
    folder_write(&f, "models--old/refs/main", "0123");
    folder_write(&f, "models--old/snapshots/0123/0_StaticEmbedding/model.safetensors", "");
    set("/m", NULL, NULL);
    set_only(0, f.path);
    return f;
}

static void the_cache_is_where_huggingface_hub_has_it(void **state)
{
    (void)state;
    static const char *const expected[N_VARIABLES] = {"/c", "/c", "/c/hub", "/c/huggingface/hub",
                                                      "/c/.cache/huggingface/hub"};
    att_model_path path;
    for (int i = 0; i < N_VARIABLES; i++) {
        set_only(i, "/c");
        setenv("HOME", "/c", 1); /* the last of them */
        assert_int_equal(att_hub_cache(&path), ATT_OK);
        assert_string_equal(path.text, expected[i]);
    }
    set_only(4, "/h");
    setenv("HF_HOME", "~/x", 1);
    setenv("HF_HUB_CACHE", "", 1);
    assert_int_equal(att_hub_cache(&path), ATT_OK);
    assert_string_equal(path.text, "/h/x/hub");
    set(NULL, NULL, NULL);
    set_only(4, NULL);
    assert_int_equal(att_hub_cache(&path), ATT_ERR_ARGUMENT);
    assert_non_null(strstr(att_error(NULL), "HOME is not set: set HF_HUB_CACHE to a folder"));
    assert_int_equal(att_model_find("a/b", &path), ATT_ERR_IO);
    assert_non_null(strstr(att_error(NULL), "set HF_HUB_CACHE to a folder; nor is it a folder, or a model in"));
}

static void a_name_of_the_hub_is_its_snapshot_in_the_cache(void **state)
{
    (void)state;
    const test_folder f = hub_folder();
    static const char *const names[][2] = {{"ann/some-model", "abc0"},      {"ann/some-model@main", "abc0"},
                                           {"ann/some-model@v2", "abc1"},   {"ann/some-model@refs/pr/1", "abc1"},
                                           {"ann/some-model@abc1", "abc1"}, {"ann/some-model@abc0", "abc0"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char expected[64];
        snprintf(expected, sizeof expected, "/models--ann--some-model/snapshots/%s", names[i][1]);
        assert_found(names[i][0], f.path, expected);
    }
    folder_remove(&f);
}

/* A bare name is of attend's own models, but callers may look for it in the cache, and in another cache. */
static void a_name_without_owner_is_found_on_request(void **state)
{
    (void)state;
    const test_folder f = hub_folder();
    att_model_path path, other;
    set_only(0, "/nowhere");
    assert_int_equal(att_model_find("old", &path), ATT_ERR_IO);
    assert_int_equal(att_hub_find("old", NULL, &path), ATT_ERR_IO);
    assert_int_equal(att_hub_find("old", ATT_OPTIONS(att_hub_options, .cache = f.path), &path), ATT_OK);
    snprintf(other.text, sizeof other.text, "%s/models--old/snapshots/0123", f.path);
    assert_string_equal(path.text, other.text);
    folder_remove(&f);
}

static void a_path_and_the_models_folder_come_before_the_hub(void **state)
{
    (void)state;
    const test_folder f = hub_folder(), models = folder_new();
    char here[4096];
    assert_non_null(getcwd(here, sizeof here));
    folder_write(&models, "ann/some-model/config.json", "{}");
    set(models.path, NULL, NULL);
    assert_found("ann/some-model", models.path, "/ann/some-model");
    set("/m", NULL, NULL);
    assert_int_equal(chdir(models.path), 0);
    assert_found("ann/some-model", "", "ann/some-model");
    folder_write(&models, "bob/notes", "");
    att_model_path path;
    assert_int_equal(att_model_find("bob/notes", &path), ATT_ERR_IO); /* a file that is not a model */
    assert_null(strstr(att_error(NULL), "Hub"));
    assert_int_equal(chdir(here), 0);
    folder_remove(&models);
    folder_remove(&f);
}

static void assert_not_found(const char *name, const char *cache, const char *rest)
{
    att_model_path path = {"before"};
    char expected[1024];
    assert_int_equal(att_model_find(name, &path), ATT_ERR_IO);
    assert_string_equal(path.text, "");
    snprintf(expected, sizeof expected,
             "\"%s\" is %s the cache of the Hugging Face Hub, %s%s; nor is it a folder, or a "
             "model in /m",
             name, *rest == ',' ? "in" : "not in", cache, rest);
    assert_string_equal(att_error(NULL), expected);
}

static void the_error_names_the_places_and_the_command(void **state)
{
    (void)state;
    const test_folder f = hub_folder();
    static const char incomplete[] =
        ", but without all of its weights (.safetensors or .gguf): attend fetch a/b (or hf download a/b) gets them";
    assert_not_found("ann/other", f.path, ": attend fetch ann/other (or hf download ann/other) puts it there");
    assert_not_found("ann/some-model@v3", f.path,
                     ": attend fetch ann/some-model@v3 (or hf download ann/some-model --revision v3) puts it there");
    folder_write(&f, "models--a--b/refs/main", "../../..\n"); /* not a commit */
    folder_write(&f, "models--a--b/snapshots/0a/config.json", "{}");
    assert_not_found("a/b", f.path, ": attend fetch a/b (or hf download a/b) puts it there");
    folder_write(&f, "models--a--b/refs/main", "0a");
    folder_write(&f, "models--a--b/snapshots/0a/pytorch_model.bin", "");
    assert_not_found("a/b", f.path, incomplete);
    static const char index[] = "models--a--b/snapshots/0a/model.safetensors.index.json";
    folder_write(&f, index, "{\"weight_map\": {\"x\": \"1.safetensors\", \"y\": \"2.safetensors\"}}");
    folder_write(&f, "models--a--b/snapshots/0a/1.safetensors", "");
    assert_not_found("a/b", f.path, incomplete);
    folder_write(&f, "models--a--b/snapshots/0a/2.safetensors", "");
    assert_found("a/b", f.path, "/models--a--b/snapshots/0a");
    folder_write(&f, index, "{"); /* opening the model reports that */
    assert_found("a/b", f.path, "/models--a--b/snapshots/0a");
    att_model_path path;
    assert_int_equal(unlink(strcat(strcpy(path.text, f.path), "/models--a--b/snapshots/0a/2.safetensors")), 0);
    assert_int_equal(symlink("nothing", path.text), 0);
    folder_write(&f, index, "{\"weight_map\": {\"y\": \"2.safetensors\"}}");
    assert_not_found("a/b", f.path, incomplete);
    assert_int_equal(att_hub_find("a/b", ATT_OPTIONS(att_hub_options, .incomplete = true), &path), ATT_OK);
    folder_remove(&f);
}

static void what_the_hub_does_not_allow_is_not_looked_for(void **state)
{
    (void)state;
    char longest[128] = "a/", longer[130];
    memset(longest + 2, 'x', 96);
    snprintf(longer, sizeof longer, "%sx", longest);
    const char *const names[] = {"a/..",   "../a",    "a/b/c", "a/-b",   "a/b.", "a/b--c",   "a/b.git",
                                 "a/b c",  "a/b@",    "a/@v",  "/b",     "a/",   "a/b@../c", "a/b@/c",
                                 "a/b@c/", "a/b@c@d", "a\n/b", "a/b\\c", "@",    "a/b@c//d", longer};
    const test_folder f = hub_folder();
    att_model_path path;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (att_hub_find(names[i], NULL, &path) != ATT_ERR_IO ||
            !strstr(att_error(NULL), "is not the name of a model of the Hugging Face Hub"))
            fail_msg("\"%s\": %s", names[i], att_error(NULL));
        assert_false(att_hub_is_name(names[i]));
        assert_int_equal(att_model_find(names[i], &path), ATT_ERR_IO);
        assert_non_null(strstr(att_error(NULL), "\" is neither a folder nor a model in /m"));
    }
    snprintf(path.text, sizeof path.text, ": attend fetch %s (or hf download %s) puts it there", longest, longest);
    assert_not_found(longest, f.path, path.text);
    assert_true(att_hub_is_name(longest) && att_hub_is_name("a/b@refs/pr/1"));
    assert_false(att_hub_is_name("old")); /* without an owner */
    folder_remove(&f);
}

/* Whichever allocation fails, the error is not that the model is missing, and nothing leaks. */
static void a_search_without_memory_is_that_error(void **state)
{
    (void)state;
    if (!FAIL_MALLOC_WORKS)
        skip();
    const test_folder f = hub_folder();
    att_model_path path;
    long at = 0;
    folder_write(&f, "models--a--b/snapshots/0a/model.safetensors.index.json", "{\"weight_map\": {\"x\": \"1.gguf\"}}");
    folder_write(&f, "models--a--b/snapshots/0a/1.gguf", "");
    folder_write(&f, "models--a--b/refs/main", "0a");
    assert_int_equal(att_model_find("a/b", &path), ATT_OK); /* makes what stays */
    do {
        malloc_fails_at(++at);
        const att_status s = att_model_find("a/b", &path);
        malloc_fails_never();
        assert_int_equal(malloc_live, 0);
        if (s != ATT_OK && s != ATT_ERR_MEMORY)
            fail_msg("failing at %ld gives %s: %s", at, att_status_name(s), att_error(NULL));
        assert_int_equal(*path.text == 0, s != ATT_OK);
    } while (malloc_calls >= at);
    assert_true(at > 2); /* the context that reads the index, and its text */
    folder_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_models_folder_is_the_first_of_three_variables),
        cmocka_unit_test(without_a_home_there_is_no_models_folder),
        cmocka_unit_test(a_path_comes_before_the_models_folder_and_what_ships_comes_last),
        cmocka_unit_test(the_list_is_in_alphabetical_order_the_models_folder_first),
        cmocka_unit_test(a_model_that_is_not_there_is_an_error_that_lists_those_that_are),
        cmocka_unit_test(a_path_that_is_too_long_is_refused),
        cmocka_unit_test(the_cache_is_where_huggingface_hub_has_it),
        cmocka_unit_test(a_name_of_the_hub_is_its_snapshot_in_the_cache),
        cmocka_unit_test(a_name_without_owner_is_found_on_request),
        cmocka_unit_test(a_path_and_the_models_folder_come_before_the_hub),
        cmocka_unit_test(the_error_names_the_places_and_the_command),
        cmocka_unit_test(what_the_hub_does_not_allow_is_not_looked_for),
        cmocka_unit_test(a_search_without_memory_is_that_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
