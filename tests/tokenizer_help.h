/* For tests of the tokenizer: a folder that they write its files to, and a small vocabulary. */
#ifndef TOKENIZER_HELP_H
#define TOKENIZER_HELP_H

#include "attend_model.h"
#include "context.h"
#include "folder.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- the context and the folder of all tests of a program */

static test_folder folder;

static inline int set_up(void **state)
{
    folder = folder_new();
    return open_context(state);
}

static inline int tear_down(void **state)
{
    folder_remove(&folder);
    return close_context(state);
}

static inline void write_file(const char *name, const char *text) { folder_write(&folder, name, text); }

static inline void remove_file(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder.path, name);
    unlink(path);
}

static inline void remove_all(void)
{
    static const char *const names[] = {"tokenizer.json",          "vocab.txt",  "tokenizer_config.json",
                                        "special_tokens_map.json", "vocab.json", "merges.txt",
                                        "added_tokens.json"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        remove_file(names[i]);
}

/* ---- a small vocabulary */

/* clang-format off */
#define ADDED "[{\"id\":0,\"content\":\"[PAD]\",\"special\":true,\"normalized\":false}," \
              "{\"id\":1,\"content\":\"[UNK]\",\"special\":true,\"normalized\":false}," \
              "{\"id\":2,\"content\":\"[CLS]\",\"special\":true,\"normalized\":false}," \
              "{\"id\":3,\"content\":\"[SEP]\",\"special\":true,\"normalized\":false}," \
              "{\"id\":4,\"content\":\"[MASK]\",\"special\":true,\"normalized\":false,\"lstrip\":true}," \
              "{\"id\":60,\"content\":\"[MASKED]\",\"special\":true,\"normalized\":false}]"
#define NORMALIZER "{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":true," \
                   "\"strip_accents\":null,\"lowercase\":true}"
#define PRE_TOKENIZER "{\"type\":\"BertPreTokenizer\"}"
#define POST "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"[CLS]\",\"type_id\":0}}," \
             "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},{\"SpecialToken\":{\"id\":\"[SEP]\",\"type_id\":0}}]," \
             "\"pair\":[],\"special_tokens\":{\"[CLS]\":{\"id\":\"[CLS]\",\"ids\":[2],\"tokens\":[\"[CLS]\"]}," \
             "\"[SEP]\":{\"id\":\"[SEP]\",\"ids\":[3],\"tokens\":[\"[SEP]\"]}}}"
#define VOCAB "\"[PAD]\":0,\"[UNK]\":1,\"[CLS]\":2,\"[SEP]\":3,\"[MASK]\":4,\"un\":5,\"##aff\":6,\"##able\":7," \
              "\"hello\":8,\"world\":9,\"!\":10,\",\":11,\"uber\":12,\"##s\":13,\"a\":14,\"##a\":15,\"b\":16,\"##b\":17," \
              "\"[\":18,\"]\":19,\"mask\":20,\"\\u65e5\":21,\"\\u672c\":22,\"\\u1112\":23,\"##\\u1161\":24," \
              "\"##\\u11ab\":25,\"i\":26,\"\\ud83d\\ude00\":27,\"\\u03c3\":28,\"##\\u03c3\":29,\"unaff\":30,\";\":31," \
              "\"\\u00fcber\":32,\"##ed\":33,\"\\\"\":34,\"Hello\":35,\"\\ufb01\":36,\"k\":37,\"\\u0378\":38"
#define MODEL_BEFORE "{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"##\"," \
                     "\"max_input_chars_per_word\":100,\"vocab\":{"
#define MODEL MODEL_BEFORE VOCAB "}}"
#define TOKENIZER(added, normalizer, pre, post, model) \
    "{\"version\":\"1.0\",\"truncation\":{\"max_length\":3},\"padding\":{\"strategy\":{\"Fixed\":9}},\"added_tokens\":" \
    added ",\"normalizer\":" normalizer ",\"pre_tokenizer\":" pre ",\"post_processor\":" post ",\"model\":" model "}"
#define SMALL TOKENIZER(ADDED, NORMALIZER, PRE_TOKENIZER, POST, MODEL)
/* clang-format on */

static inline att_tokenizer *open_text(const char *tokenizer_json)
{
    att_tokenizer *t;
    remove_all();
    write_file("tokenizer.json", tokenizer_json);
    if (att_tokenizer_open(ctx, folder.path, &t) != ATT_OK)
        fail_msg("%s", att_error(ctx));
    return t;
}

/* The tokens of a text with a space between them. */
static inline const char *tokens_of(const att_tokenizer *t, const char *text, size_t bytes,
                                    const att_encode_options *opt)
{
    static char out[4096];
    att_tokens tokens;
    if (att_encode(t, text, bytes, opt, &tokens) != ATT_OK)
        fail_msg("%s", att_error(ctx));
    size_t n = 0;
    out[0] = 0;
    for (int64_t i = 0; i < tokens.count; i++)
        n += (size_t)snprintf(out + n, sizeof out - n, "%s%s", i ? " " : "", att_tokenizer_token(t, tokens.ids[i]));
    assert_true(n < sizeof out);
    att_tokens_free(t, &tokens);
    assert_null(tokens.ids);
    return out;
}

static inline void add_unknown(void *user, const char *text, size_t bytes)
{
    char *list = user;
    const size_t n = strlen(list);
    snprintf(list + n, 256 - n, "%s%.*s", n ? " " : "", (int)bytes, text);
}

/* What becomes the unknown token, with a space between. */
static inline const char *unknown_of(const att_tokenizer *t, const char *text)
{
    static char list[256];
    att_tokens tokens;
    list[0] = 0;
    assert_int_equal(att_encode(t, text, strlen(text),
                                ATT_OPTIONS(att_encode_options, .unknown = add_unknown, .user = list), &tokens),
                     ATT_OK);
    att_tokens_free(t, &tokens);
    return list;
}

#define PLAIN ATT_OPTIONS(att_encode_options, .no_special = true)

#endif
