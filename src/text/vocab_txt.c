/* The older layout: vocab.txt has a token a line, whose id is the line's number from 0; tokenizer_config.json and
 * special_tokens_map.json say the rest. */
#include "text/tokenizer_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text/utf8.h"

static att_status no_memory(att_ctx *ctx, const char *file)
{
    return att_fail(ctx, ATT_ERR_MEMORY, "%s: out of memory", file);
}

static att_status add_line(att_ctx *ctx, const char *file, json_t *vocab, const char *line, size_t bytes, int number)
{
    const json_t *other = json_object_getn(vocab, line, bytes);
    if (other)
        return att_fail(ctx, ATT_ERR_FORMAT, "%s: lines %d and %d are the same token \"%.80s\"", file,
                        (int)json_integer_value(other) + 1, number + 1, line);
    if (bytes == 0)
        return att_fail(ctx, ATT_ERR_FORMAT, "%s: line %d is empty", file, number + 1);
    if (!att_utf8_valid(line, bytes) || memchr(line, 0, bytes))
        return att_fail(ctx, ATT_ERR_FORMAT, "%s: line %d is not text in UTF-8", file, number + 1);
    if (json_object_setn_new(vocab, line, bytes, json_integer(number)) != 0)
        return no_memory(ctx, file);
    return ATT_OK;
}

static att_status read_lines(att_ctx *ctx, const char *file, json_t *vocab)
{
    FILE *f = fopen(file, "rb");
    if (!f)
        return att_fail(ctx, ATT_ERR_IO, "%s: %s", file, strerror(errno));
    char *line = NULL;
    size_t capacity = 0;
    ssize_t bytes;
    att_status s = ATT_OK;
    errno = 0;
    for (int number = 0; s == ATT_OK && (bytes = getline(&line, &capacity, f)) >= 0; number++) {
        while (bytes > 0 && (line[bytes - 1] == '\n' || line[bytes - 1] == '\r'))
            line[--bytes] = 0;
        s = add_line(ctx, file, vocab, line, (size_t)bytes, number);
    }
    if (s == ATT_OK && errno == ENOMEM)
        s = no_memory(ctx, file);
    else if (s == ATT_OK && ferror(f))
        s = att_fail(ctx, ATT_ERR_IO, "%s: %s", file, strerror(errno));
    free(line);
    fclose(f);
    return s;
}

/* ---- settings */

typedef struct folder_files {
    att_ctx *ctx;
    char vocab_file[ATT_MAX_PATH], config_file[ATT_MAX_PATH], map_file[ATT_MAX_PATH];
    json_t *vocab, *config, *map; /* map: NULL if there is none */
} folder_files;

/* A setting that is true or false, else the default of the class BertTokenizer. */
static att_status get_switch(const folder_files *f, const char *key, bool otherwise, json_t **out)
{
    att_status s = att_json_get(f->ctx, f->config_file, "the file", f->config, key, JSON_TRUE, false, out);
    if (s == ATT_OK && !*out)
        *out = otherwise ? json_true() : json_false();
    return s;
}

/* Settings that would change the ids and that nobody uses. */
static att_status refuse_others(const folder_files *f)
{
    static const char *const classes[] = {"BertTokenizer", "BertTokenizerFast", "DistilBertTokenizer",
                                          "DistilBertTokenizerFast"};
    const json_t *basic = json_object_get(f->config, "do_basic_tokenize");
    const json_t *never = json_object_get(f->config, "never_split");
    const json_t *class = json_object_get(f->config, "tokenizer_class");
    bool known = !class;
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        known |= json_is_string(class) && strcmp(json_string_value(class), classes[i]) == 0;
    const char *key = !known                                            ? "tokenizer_class"
                      : basic && !json_is_true(basic)                   ? "do_basic_tokenize"
                      : json_array_size(never) || json_is_string(never) ? "never_split"
                                                                        : NULL;
    return !key ? ATT_OK
                : att_fail(f->ctx, ATT_ERR_UNSUPPORTED, "%s: %s is %s, which is not supported without tokenizer.json",
                           f->config_file, key, att_json_show(json_object_get(f->config, key)).text);
}

/* The content of a special token, written as a string or as an object, in either file; else the usual one. */
static att_status special_content(const folder_files *f, const char *key, const char *usual, const char **content)
{
    const json_t *value = json_object_get(f->config, key);
    if (!value || json_is_null(value))
        value = json_object_get(f->map, key);
    if (json_is_object(value))
        value = json_object_get(value, "content");
    else if (value && !json_is_string(value) && !json_is_null(value))
        return att_fail(f->ctx, ATT_ERR_FORMAT, "%s: \"%s\" is %s, not a token", f->config_file, key,
                        att_json_show(value).text);
    *content = json_is_string(value) ? json_string_value(value) : usual;
    return ATT_OK;
}

/* An entry of added_tokens. */
static att_status add_token(const folder_files *f, json_t *added, const char *content)
{
    const json_t *id = json_object_get(f->vocab, content);
    if (!id)
        return att_fail(f->ctx, ATT_ERR_FORMAT, "%s: the special token \"%s\" of %s is not there", f->vocab_file,
                        content, f->config_file);
    json_t *entry = json_pack("{s:I, s:s, s:b}", "id", json_integer_value(id), "content", content, "special", 1);
    return json_array_append_new(added, entry) == 0 ? ATT_OK : no_memory(f->ctx, f->vocab_file);
}

static att_status build(const folder_files *f, json_t **out)
{
    static const char *const special[][2] = {{"unk_token", "[UNK]"},
                                             {"cls_token", "[CLS]"},
                                             {"sep_token", "[SEP]"},
                                             {"pad_token", "[PAD]"},
                                             {"mask_token", "[MASK]"}};
    enum { UNK, CLS, SEP, N_SPECIAL = sizeof special / sizeof special[0] };
    const char *token[N_SPECIAL];
    json_t *lower, *cjk, *strip, *more, *value;
    att_status s;
    if ((s = refuse_others(f)) || (s = get_switch(f, "do_lower_case", true, &lower)) ||
        (s = get_switch(f, "tokenize_chinese_chars", true, &cjk)) ||
        (s = att_json_get(f->ctx, f->config_file, "the file", f->config, "strip_accents", JSON_TRUE, false, &strip)) ||
        (s = att_json_get(f->ctx, f->config_file, "the file", f->config, "additional_special_tokens", JSON_ARRAY, false,
                          &more)))
        return s;
    json_t *added = json_array();
    for (int i = 0; i < N_SPECIAL && s == ATT_OK; i++) {
        s = special_content(f, special[i][0], special[i][1], &token[i]);
        if (s == ATT_OK)
            s = add_token(f, added, token[i]);
    }
    size_t i;
    json_array_foreach(more, i, value)
    {
        const json_t *content = json_is_object(value) ? json_object_get(value, "content") : value;
        if (s == ATT_OK && !json_is_string(content))
            s = att_fail(f->ctx, ATT_ERR_FORMAT, "%s: additional_special_tokens has %s, not a token", f->config_file,
                         att_json_show(value).text);
        if (s == ATT_OK)
            s = add_token(f, added, json_string_value(content));
    }
    if (s != ATT_OK) {
        json_decref(added);
        return s;
    }
    *out = json_pack("{s:o, s:{s:s, s:b, s:O, s:O, s:O?}, s:{s:s}, s:{s:s, s:[s, O], s:[s, O]},"
                     " s:{s:s, s:s, s:s, s:i, s:O}}",
                     "added_tokens", added, "normalizer", "type", "BertNormalizer", "clean_text", 1,
                     "handle_chinese_chars", cjk, "lowercase", lower, "strip_accents", strip, "pre_tokenizer", "type",
                     "BertPreTokenizer", "post_processor", "type", "BertProcessing", "cls", token[CLS],
                     json_object_get(f->vocab, token[CLS]), "sep", token[SEP], json_object_get(f->vocab, token[SEP]),
                     "model", "type", "WordPiece", "unk_token", token[UNK], "continuing_subword_prefix", "##",
                     "max_input_chars_per_word", 100, "vocab", f->vocab);
    return *out ? ATT_OK : no_memory(f->ctx, f->vocab_file);
}

att_status att_read_vocab_txt(att_ctx *ctx, const char *folder, json_t **out)
{
    folder_files f = {.ctx = ctx, .vocab = json_object()};
    att_status s;
    *out = NULL;
    if ((s = att_join_path(ctx, folder, "vocab.txt", f.vocab_file)) == ATT_OK &&
        (s = att_join_path(ctx, folder, "tokenizer_config.json", f.config_file)) == ATT_OK &&
        (s = att_join_path(ctx, folder, "special_tokens_map.json", f.map_file)) == ATT_OK &&
        (s = att_read_json(ctx, f.config_file, &f.config)) == ATT_OK && access(f.map_file, F_OK) == 0)
        s = att_read_json(ctx, f.map_file, &f.map);
    if (s == ATT_OK)
        s = f.vocab ? read_lines(ctx, f.vocab_file, f.vocab) : no_memory(ctx, f.vocab_file);
    if (s == ATT_OK)
        s = build(&f, out);
    json_decref(f.vocab);
    json_decref(f.config);
    json_decref(f.map);
    return s;
}
