/* A tag in llama.cpp's files states how a text is split into words. The table below has its meaning: regular
 * expressions that split the text one after the other; none: that of GPT-2. */
#include "text/gguf_words.h"

#include <string.h>

#define ENDINGS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define REST " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define BEFORE "[^\\r\\n\\p{L}\\p{N}]?"

static const att_gguf_words all_words[] = {
    {.tags = {"gpt-2", "mpt", "olmo", "jais", "phi-2", "exaone4"}},
    {.tags = {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"}, .digits = true},
    {.tags = {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"},
     .split = {ENDINGS "|" BEFORE "\\p{L}+|\\p{N}{1,3}|" REST},
     .ignore_merges = true,
     .bos = true},
    {.tags = {"dbrx", "smaug-bpe"}, .split = {ENDINGS "|" BEFORE "\\p{L}+|\\p{N}{1,3}|" REST}},
    {.tags = {"qwen2", "deepseek-r1-qwen", "megrez", "stablelm2"},
     .split = {ENDINGS "|" BEFORE "\\p{L}+|\\p{N}|" REST},
     .nfc = true},
    {.tags = {"tekken"},
     .split = {BEFORE UPPER "*" LOWER "+|" BEFORE UPPER "+" LOWER
                            "*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
     .ignore_merges = true,
     .bos = true},
    {.tags = {"default"},
     .split = {"[\\p{P}\\$\\+<=>\\^~\\|]+",
               "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)", "\\p{N}+",
               "[0-9][0-9][0-9]"}},
};

/* Returns the words of a tag. A file without a tag is older than tags; llama.cpp then uses "default". */
const att_gguf_words *att_gguf_words_of(att_gguf *g)
{
    const char *tag = att_gguf_text(g, "tokenizer.ggml.pre", "default");
    for (size_t i = 0; i < sizeof all_words / sizeof all_words[0]; i++)
        for (const char *const *t = all_words[i].tags; *t; t++)
            if (strcmp(*t, tag) == 0)
                return &all_words[i];
    att_gguf_fail(
        g, ATT_ERR_UNSUPPORTED,
        "\"tokenizer.ggml.pre\" is \"%.80s\", a way to split texts into words that is not known; known are gpt-2, "
        "smollm, llama-bpe, qwen2, tekken, default and others that are the same",
        tag);
    return &all_words[0];
}

json_t *att_gguf_byte_level(bool use_regex)
{
    return json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets", 1, "use_regex",
                     use_regex);
}

json_t *att_gguf_pre_tokenizer(const att_gguf_words *w)
{
    if (!w->digits && !w->split[0])
        return att_gguf_byte_level(true);
    json_t *list = json_array();
    if (w->digits)
        json_array_append_new(list, json_pack("{s:s, s:b}", "type", "Digits", "individual_digits", 1));
    for (int i = 0; i < ATT_GGUF_SPLITS && w->split[i]; i++)
        json_array_append_new(list, json_pack("{s:s, s:{s:s}, s:s, s:b}", "type", "Split", "pattern", "Regex",
                                              w->split[i], "behavior", "Isolated", "invert", 0));
    json_array_append_new(list, att_gguf_byte_level(w->digits));
    return json_pack("{s:s, s:o}", "type", "Sequence", "pretokenizers", list);
}

/* ---- the tag of a tokenizer.json */

/* Returns step i of a member that is null, a step or a sequence of steps; NULL: there are only i. */
static const json_t *step_at(const json_t *member, const char *sequence, size_t i)
{
    const json_t *list = json_object_get(member, sequence);
    if (list)
        return json_array_get(list, i);
    return i == 0 && json_is_object(member) ? member : NULL;
}

static bool flag(const json_t *step, const char *key, bool otherwise)
{
    const json_t *value = json_object_get(step, key);
    return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

/* Returns whether two steps split a text in the same way. Settings of offsets do not matter. */
static bool is_same_step(const json_t *a, const json_t *b)
{
    static const struct {
        const char *key;
        bool otherwise;
    } flags[] = {{"add_prefix_space", true}, {"use_regex", true}, {"individual_digits", false}, {"invert", false}};
    static const char *const values[] = {"type", "pattern", "behavior"};
    bool same = true;
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        same &= flag(a, flags[i].key, flags[i].otherwise) == flag(b, flags[i].key, flags[i].otherwise);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        const json_t *x = json_object_get(a, values[i]), *y = json_object_get(b, values[i]);
        same &= x && y ? json_equal(x, y) : x == y;
    }
    return same;
}

static bool is_same(const json_t *a, const json_t *b, const char *sequence)
{
    for (size_t i = 0;; i++) {
        const json_t *x = step_at(a, sequence, i), *y = step_at(b, sequence, i);
        if (!x || !y)
            return x == y;
        if (!is_same_step(x, y))
            return false;
    }
}

static bool has_words(const json_t *tokenizer, const att_gguf_words *w)
{
    json_t *pre = att_gguf_pre_tokenizer(w), *normalizer = w->nfc ? json_pack("{s:s}", "type", "NFC") : json_null();
    const bool same = is_same(json_object_get(tokenizer, "pre_tokenizer"), pre, "pretokenizers") &&
                      is_same(json_object_get(tokenizer, "normalizer"), normalizer, "normalizers") &&
                      flag(json_object_get(tokenizer, "model"), "ignore_merges", false) == w->ignore_merges;
    json_decref(pre);
    json_decref(normalizer);
    return same;
}

const char *att_gguf_words_tag(const json_t *tokenizer)
{
    for (size_t i = 0; i < sizeof all_words / sizeof all_words[0]; i++)
        if (has_words(tokenizer, &all_words[i]))
            return all_words[i].tags[0];
    return NULL;
}
