/* Models by name: the order of the search, the list, and the message where there is none. */
#include "fixtures/check.h"
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_models_folder_is_the_first_of_three_variables),
        cmocka_unit_test(without_a_home_there_is_no_models_folder),
        cmocka_unit_test(a_path_comes_before_the_models_folder_and_what_ships_comes_last),
        cmocka_unit_test(the_list_is_in_alphabetical_order_the_models_folder_first),
        cmocka_unit_test(a_model_that_is_not_there_is_an_error_that_lists_those_that_are),
        cmocka_unit_test(a_path_that_is_too_long_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
