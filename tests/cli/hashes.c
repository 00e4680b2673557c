/* SHA-256 and SHA-1 of known texts, whole and in parts of any length. */
#include "fixtures/check.h"

#include "cli/fetch/hash.h"

#include <string.h>

/* NIST's examples, the empty text, and a million letters a (FIPS 180-4, appendix of FIPS 180-2) */
static void known_answers_of_sha256(void **state)
{
    (void)state;
    static const struct {
        const char *text, *hash;
    } known[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqr"
         "stu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        hash h;
        char text[HASH_TEXT];
        hash_begin(&h, HASH_SHA256);
        hash_add(&h, known[i].text, strlen(known[i].text));
        hash_end(&h, text);
        assert_string_equal(text, known[i].hash);
    }
    hash h;
    char text[HASH_TEXT];
    hash_begin(&h, HASH_SHA256);
    for (int i = 0; i < 1000000; i++)
        hash_add(&h, "a", 1);
    hash_end(&h, text);
    assert_string_equal(text, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void known_answers_of_sha1(void **state)
{
    (void)state;
    static const struct {
        const char *text, *hash;
    } known[] = {
        {"", "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
        {"abc", "a9993e364706816aba3e25717850c26c9cd0d89d"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "84983e441c3bd26ebaae4aa1f95129e5e54670f1"},
    };
    hash h;
    char text[HASH_TEXT];
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        hash_begin(&h, HASH_SHA1);
        hash_add(&h, known[i].text, strlen(known[i].text));
        hash_end(&h, text);
        assert_string_equal(text, known[i].hash);
    }
    hash_begin(&h, HASH_SHA1);
    for (int i = 0; i < 1000000; i++)
        hash_add(&h, "a", 1);
    hash_end(&h, text);
    assert_string_equal(text, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

/* Each length around one and two blocks, in two parts at any position, has the hash of the whole. */
static void parts_do_not_matter(void **state)
{
    (void)state;
    char data[130], whole[HASH_TEXT], parts[HASH_TEXT];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(7 * i);
    for (size_t n = 0; n <= sizeof data; n++) {
        hash h;
        hash g;
        hash_begin(&h, HASH_SHA256);
        hash_add(&h, data, n);
        hash_end(&h, whole);
        for (size_t k = 0; k <= n; k++) {
            hash_begin(&h, HASH_SHA256);
            hash_add(&h, data, k);
            hash_add(&h, data + k, n - k);
            hash_end(&h, parts);
            assert_string_equal(parts, whole);
        }
        hash_begin(&g, HASH_SHA1);
        hash_add(&g, data, n);
        hash_end(&g, whole);
        for (size_t k = 0; k <= n; k++) {
            hash_begin(&g, HASH_SHA1);
            hash_add(&g, data, k);
            hash_add(&g, data + k, n - k);
            hash_end(&g, parts);
            assert_string_equal(parts, whole);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers_of_sha256),
        cmocka_unit_test(known_answers_of_sha1),
        cmocka_unit_test(parts_do_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
