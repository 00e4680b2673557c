/* Base64, as RFC 4648 defines it. */
#include "fixtures/check.h"
#include "fixtures/context.h"
#include "text/base64.h"

static const struct {
    const char *data, *text;
} vectors[] = {/* RFC 4648, chapter 10, and one with the last digits of the alphabet */
               {"", ""},
               {"f", "Zg=="},
               {"fo", "Zm8="},
               {"foo", "Zm9v"},
               {"foob", "Zm9vYg=="},
               {"fooba", "Zm9vYmE="},
               {"foobar", "Zm9vYmFy"},
               {"\xFB\xFF\xFE", "+//+"}};

static void is_equal(const att_bytes *b, const char *expected)
{
    assert_int_equal(b->status, ATT_OK);
    assert_int_equal(b->count, strlen(expected));
    assert_true(b->count == 0 || memcmp(b->data, expected, b->count) == 0);
}

static void the_vectors_of_the_standard_are_written_and_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        const char *data = vectors[i].data, *text = vectors[i].text;
        att_bytes written = {.ctx = ctx}, read = {.ctx = ctx};
        att_base64_write(&written, (att_byte_view){data, strlen(data)});
        is_equal(&written, text);
        assert_true(att_base64_read(&read, text, strlen(text)));
        is_equal(&read, data);
        att_bytes_free(&written);
        att_bytes_free(&read);
    }
}

static void what_is_not_base64_is_refused(void **state)
{
    static const char *const bad[] = {"Z", "Zg", "Zg=", "Z===", "====", "Zg==Zg==", "Zm 9v", "Zm9-", "Zg=g", "Zm9v="};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        att_bytes read = {.ctx = ctx};
        if (att_base64_read(&read, bad[i], strlen(bad[i])))
            fail_msg("\"%s\" is read", bad[i]);
        att_bytes_free(&read);
    }
    att_bytes read = {.ctx = ctx};
    assert_false(att_base64_read(&read, "Zm\0v", 4));
    att_bytes_free(&read);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_of_the_standard_are_written_and_read),
        cmocka_unit_test(what_is_not_base64_is_refused),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
