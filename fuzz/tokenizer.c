/* The input is a text and, after it, one section per file, a tokenizer, in the order of `files`. A text alone is
 * tokenized with a small valid tokenizer, so that its bytes can be arbitrary. */
#include "fuzz_text.h"

static const char *const files[] = {"tokenizer.json",
                                    "tokenizer_config.json",
                                    "vocab.txt",
                                    "special_tokens_map.json",
                                    "vocab.json",
                                    "merges.txt",
                                    NULL};
enum { N_FILES = 6 };

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

/* Returns whether the text can be tokenized. A regular expression may take too many steps, and a vocabulary may have no
 * unknown token. */
static bool reads(const att_tokenizer *t, fuzz_section text)
{
    att_tokens tokens;
    const att_status s = att_tokenize(t, (const char *)text.data, text.size, NULL, &tokens);
    fuzz_check(!s || s == ATT_ERR_UNSUPPORTED || s == ATT_ERR_FORMAT, "a text is refused in another way");
    att_tokens_free(fuzz_context(), &tokens);
    return !s;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    const att_tokenizer *small = small_tokenizer();
    fuzz_section rest = {data, size};
    if (!memchr(data, FUZZ_SEPARATOR, size)) {
        fuzz_check_text(small, rest);
        return 0;
    }
    const fuzz_section text = fuzz_next(&rest);
    for (int i = 0; i < N_FILES; i++)
        fuzz_write(files[i], fuzz_next(&rest));
    att_tokenizer *t = open_folder();
    if (t && reads(t, text))
        fuzz_check_text(t, text);
    att_tokenizer_free(t);
    return 0;
}
