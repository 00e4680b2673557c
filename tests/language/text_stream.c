/* The text of tokens as they come: whole characters, no beginning of a stop string. */
#include "language/text_stream.h"
#include "fixtures/check.h"
#include "text/utf8.h"
#include "fixtures/tokenizer.h"

/* Bytes of "a", " ", "é", "€" and an emoji in the letters of byte-level BPE; a special token. */
static const char *const byte_level =
    "{\"added_tokens\": [{\"id\": 10, \"content\": \"<end>\", \"special\": true, \"normalized\": false, "
    "\"single_word\": false, \"lstrip\": false, \"rstrip\": false}], \"pre_tokenizer\": {\"type\": \"ByteLevel\", "
    "\"add_prefix_space\": false, \"trim_offsets\": true, \"use_regex\": true}, \"decoder\": {\"type\": "
    "\"ByteLevel\"}, "
    "\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"\u0120\": 1, \"\u00c3\": 2, \"\u00a9\": 3, \"\u00e2\": 4, "
    "\"\u0124\": 5, \"\u00ac\": 6, \"\u00f0\": 7, \"\u0141\": 8, \"b\": 9}, \"merges\": []}}";

/* As Llama 2: words begin with U+2581, other characters are bytes, the first space of a text is stripped. */
static const char *const byte_fallback =
    "{\"added_tokens\": [{\"id\": 0, \"content\": \"<s>\", \"special\": true, \"normalized\": false, \"single_word\": "
    "false, \"lstrip\": false, \"rstrip\": false}], \"decoder\": {\"type\": \"Sequence\", \"decoders\": [{\"type\": "
    "\"Replace\", \"pattern\": {\"String\": \"\u2581\"}, \"content\": \" \"}, {\"type\": \"ByteFallback\"}, {\"type\": "
    "\"Fuse\"}, {\"type\": \"Strip\", \"content\": \" \", \"start\": 1, \"stop\": 0}]}, \"model\": {\"type\": \"BPE\", "
    "\"byte_fallback\": true, \"vocab\": {\"<s>\": 0, \"\u2581\": 1, \"a\": 2, \"b\": 3, \"<0xC3>\": 4, \"<0xA9>\": 5, "
    "\"<0xE2>\": 6, \"<0x82>\": 7, \"<0xAC>\": 8}, \"merges\": []}}";

static att_tokenizer *open_tokenizer(const char *json)
{
    att_tokenizer *t;
    write_file("tokenizer.json", json);
    if (att_tokenizer_open(ctx, folder.path, &t))
        fail_msg("%s", att_error(ctx));
    return t;
}

/* Pieces of ids [n] after prompt [n_prompt] to out [1000], zero-terminated, with a bar after each; each is UTF-8. */
static void stream(const att_tokenizer *t, const char *const *stop, int n_stop, const int32_t *prompt, int n_prompt,
                   const int32_t *ids, int n, char *out)
{
    att_text_stream s = {.stop = stop, .n_stop = n_stop};
    *out = 0;
    att_text_stream_begin(&s, ctx, t, prompt, n_prompt);
    for (int i = 0; i < n && !s.stopped; i++) {
        assert_int_equal(att_text_stream_add(&s, ids[i], i == n - 1), ATT_OK);
        const char *text = s.text.data ? s.text.data + s.sent : "";
        assert_true(att_utf8_valid(text, s.ready - s.sent));
        sprintf(out + strlen(out), "%.*s|", (int)(s.ready - s.sent), text);
        s.sent = s.ready;
    }
    att_text_stream_free(&s);
}

#define STREAM(t, prompt, ids, text, ...)                                                                              \
    do {                                                                                                               \
        const int32_t before[] = prompt, id[] = ids;                                                                   \
        const char *const stops[] = {__VA_ARGS__, NULL};                                                               \
        char is[1000];                                                                                                 \
        stream(t, stops, (int)(sizeof stops / sizeof *stops) - 1, before + 1, (int)(sizeof before / 4) - 1, id,        \
               (int)(sizeof id / 4), is);                                                                              \
        assert_string_equal(is, text);                                                                                 \
    } while (0)
#define IDS(...)                                                                                                       \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

static void pieces_are_whole_characters(void **state)
{
    (void)state;
    att_tokenizer *t = open_tokenizer(byte_level);
    STREAM(t, IDS(-1), IDS(0, 2, 3, 0), "a||\u00e9|a|", "z");
    STREAM(t, IDS(-1), IDS(4, 5, 6, 10, 0), "||\u20ac||a|", "z");
    STREAM(t, IDS(-1), IDS(2, 0, 4, 5), "|\ufffda||\ufffd|", "z"); /* broken; broken at the end */
    STREAM(t, IDS(-1, 0, 2), IDS(3, 0), "\u00e9|a|", "z");         /* the prompt ends in the middle of one */
    STREAM(t, IDS(-1, 0), IDS(1, 0, 25, -1), " |a|||", "z");       /* ids without a token have no text */
    att_tokenizer_free(t);
}

static void the_first_piece_continues_the_prompt(void **state)
{
    (void)state;
    att_tokenizer *t = open_tokenizer(byte_fallback);
    STREAM(t, IDS(-1, 0, 2), IDS(1, 2, 1, 3), " |a| |b|", "z");
    STREAM(t, IDS(-1, 0), IDS(1, 2, 1, 3), "|a| |b|", "z"); /* the first space of the text is stripped */
    STREAM(t, IDS(-1, 2), IDS(6, 7, 8, 4, 5), "||\u20ac||\u00e9|", "z");
    att_tokenizer_free(t);
}

static void no_piece_has_a_stop_string_or_its_beginning(void **state)
{
    (void)state;
    att_tokenizer *t = open_tokenizer(byte_level);
    STREAM(t, IDS(-1), IDS(0, 9, 9, 0, 9), "a|||", "bb");
    STREAM(t, IDS(-1), IDS(0, 9, 0, 9), "a||ba|b|", "bb");        /* the last piece has the rest */
    STREAM(t, IDS(-1), IDS(0, 9, 0, 9, 0), "||a|", "abab", "ba"); /* the first that is complete */
    STREAM(t, IDS(-1), IDS(9, 0, 9, 0, 9, 1), "|||b|||", "babb ", "abab ");
    STREAM(t, IDS(-1), IDS(0, 4, 5, 6, 0), "a||||", "\u20ac");
    STREAM(t, IDS(-1), IDS(4, 5, 6, 2, 3), "||||\u20ac\u00e9|", "\u20aca");
    STREAM(t, IDS(-1, 0), IDS(9, 0), "b|a|", "ab"); /* what begins in the prompt is none */
    att_tokenizer_free(t);
}

/* Random tokens: the pieces are the text of all of them. */
static void pieces_are_the_text(void **state)
{
    (void)state;
    uint32_t random = 1;
    att_tokenizer *t = open_tokenizer(byte_level);
    for (int k = 0; k < 2000; k++) {
        int32_t ids[30];
        char pieces[1000], joined[1000];
        att_text text;
        const int n = 1 + k % 30;
        for (int i = 0; i < n; i++)
            ids[i] = (int32_t)((random = random * 1664525 + 1013904223) >> 16) % 11;
        stream(t, NULL, 0, NULL, 0, ids, n, pieces);
        size_t bytes = 0;
        for (const char *c = pieces; *c; c++)
            if (*c != '|')
                joined[bytes++] = *c;
        joined[bytes] = 0;
        assert_int_equal(att_detokenize(t, ids, n, &text), ATT_OK);
        assert_string_equal(joined, text.text);
        att_text_free(ctx, &text);
    }
    att_tokenizer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_whole_characters),
        cmocka_unit_test(the_first_piece_continues_the_prompt),
        cmocka_unit_test(no_piece_has_a_stop_string_or_its_beginning),
        cmocka_unit_test(pieces_are_the_text),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
