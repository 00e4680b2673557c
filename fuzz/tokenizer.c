/* The input is a text, and behind it, one section a file, the tokenizer to read it with, in the order of `files`.
 * A text alone is read with a small tokenizer of our own, so that its bytes can be anything. */
#include "fuzz.h"

static const char *const files[] = {"tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json",
                                    NULL};
enum { N_FILES = 4 };

static void clean(void) { fuzz_remove(files); }

static att_tokenizer *open_folder(void)
{
    static bool made;
    att_tokenizer *t;
    if (!made) {
        atexit(clean);
        made = true;
    }
    if (!att_tokenizer_open(fuzz_context(), fuzz_folder(), &t))
        return t;
    fuzz_check(!t, "refused, but with a tokenizer");
    return NULL;
}

/* Opened once: BERT's settings, single letters and some pieces. */
static const att_tokenizer *small_tokenizer(void)
{
    static const char vocabulary[] =
        "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\nd\ne\nun\n##a\n##b\n##able\n##aff\nhello\nworld\n!\n,\n.\n[\n]\n"
        "mask\n\xe6\x97\xa5\n\xe6\x9c\xac\n\xe1\x84\x92\n##\xe1\x85\xa1\n##\xe1\x86\xab\n\xcf\x83\n##\xcf\x83\ni\n";
    static att_tokenizer *t;
    if (!t) {
        for (int i = 0; i < N_FILES; i++)
            fuzz_write(files[i], (fuzz_section){0});
        fuzz_write("tokenizer_config.json", (fuzz_section){(const unsigned char *)"{}", 2});
        fuzz_write("vocab.txt", (fuzz_section){(const unsigned char *)vocabulary, sizeof vocabulary - 1});
        t = open_folder();
        fuzz_check(t != NULL, "the small tokenizer is refused");
    }
    return t;
}

static att_tokens encode(const att_tokenizer *t, fuzz_section text, int64_t max_tokens, bool no_special)
{
    att_tokens tokens;
    const att_status s =
        att_encode(t, (const char *)text.data, text.size,
                   ATT_OPTIONS(att_encode_options, .max_tokens = max_tokens, .no_special = no_special), &tokens);
    fuzz_check(!s, "a text is refused");
    for (int64_t i = 0; i < tokens.count; i++)
        fuzz_check(tokens.ids[i] >= 0 && tokens.ids[i] < att_tokenizer_size(t) &&
                       att_tokenizer_token(t, tokens.ids[i]) != NULL,
                   "an id that no token has");
    return tokens;
}

/* Tokens of the text are cut to a limit, and are otherwise those without one; special ones stay around them. */
static void check_text(const att_tokenizer *t, fuzz_section text)
{
    att_tokens bare = encode(t, text, 0, true), all = encode(t, text, 0, false);
    const int64_t special = all.count - bare.count;
    fuzz_check(special >= 0 && !bare.truncated && !all.truncated, "cut without a limit");
    for (int64_t room = 0; room <= 8; room = 2 * room + 1) {
        const int64_t kept = bare.count < room ? bare.count : room;
        if (special + room > 0) {
            att_tokens cut = encode(t, text, special + room, false);
            fuzz_check(cut.count == special + kept, "not cut to the limit");
            fuzz_check(cut.truncated == (bare.count > room), "truncated is wrong");
            att_tokens_free(t, &cut);
        }
        if (room > 0) {
            att_tokens cut = encode(t, text, room, true);
            fuzz_check(cut.count == kept && !memcmp(cut.ids, bare.ids, (size_t)kept * sizeof *cut.ids),
                       "cut tokens are others");
            att_tokens_free(t, &cut);
        }
    }
    att_tokens_free(t, &bare);
    att_tokens_free(t, &all);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    const att_tokenizer *small = small_tokenizer();
    fuzz_section rest = {data, size};
    if (!memchr(data, FUZZ_SEPARATOR, size)) {
        check_text(small, rest);
        return 0;
    }
    const fuzz_section text = fuzz_next(&rest);
    for (int i = 0; i < N_FILES; i++)
        fuzz_write(files[i], fuzz_next(&rest));
    att_tokenizer *t = open_folder();
    if (t)
        check_text(t, text);
    att_tokenizer_free(t);
    return 0;
}
