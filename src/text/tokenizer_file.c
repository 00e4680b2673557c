/* Reads the files of a tokenizer. tokenizer.json is complete; the older layout is first converted to it
 * (vocab_txt.c, pipeline/merges_file.c), so that settings are checked in one place. */
#include "text/tokenizer_file.h"

#include <string.h>

/* Returns whether the tokenizer's class makes BERT's normalizer. */
static bool is_bert_class(att_settings *s, const char *folder)
{
    static const char *const names[] = {"BertTokenizer", "DistilBertTokenizer", "MPNetTokenizer"};
    const att_class_name class = att_tokenizer_class(s, folder);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(names[i], class.text))
            return true;
    return false;
}

/* Checks that tokenizer_config.json agrees with the settings that it repeats, because programs read one or the other.
 * Classes of BERT have their own defaults for missing keys; PreTrainedTokenizerFast does not read these settings. */
static att_status check_config(att_ctx *ctx, const char *folder, const att_bert_settings *b)
{
    att_settings s;
    att_settings_read(&s, ctx, folder, "tokenizer_config.json", false);
    const bool bert = is_bert_class(&s, folder);
    const bool lower = att_settings_bool(&s, "do_lower_case", bert || b->lowercase);
    const struct {
        const char *key;
        bool value, missing;
    } repeated[] = {{"do_lower_case", b->lowercase, bert || b->lowercase},
                    {"strip_accents", b->strip_accents, bert ? lower : b->strip_accents},
                    {"tokenize_chinese_chars", b->handle_chinese_chars, bert || b->handle_chinese_chars}};
    const bool read = strcmp(att_settings_text(&s, "tokenizer_class", ""), "PreTrainedTokenizerFast") != 0;
    for (size_t i = 0; read && i < sizeof repeated / sizeof repeated[0]; i++)
        if (att_settings_bool(&s, repeated[i].key, repeated[i].missing) != repeated[i].value)
            att_settings_fail(&s, ATT_ERR_UNSUPPORTED,
                              "\"%s\" is %s%s, but the normalizer in tokenizer.json has the opposite", repeated[i].key,
                              att_settings_has(&s, repeated[i].key) ? "" : "missing, which for BertTokenizer is ",
                              repeated[i].value ? "false" : "true");
    att_settings_close(&s);
    return s.status;
}

att_status att_tokenizer_files_read(att_text_file *f, att_ctx *ctx, const char *folder, att_token_list *list,
                                    att_settings *settings)
{
    char merges[ATT_MAX_PATH];
    att_status s = att_text_file_read(f, ctx, folder, "tokenizer.json", false);
    if (!s && f->text) {
        s = att_read_vocab_json(f, list, settings);
        return s ? s : att_tokenizer_config_apply(ctx, folder, list, settings->root);
    }
    if (s)
        return s;
    s = att_text_file_read(f, ctx, folder, "vocab.txt", false);
    if (s || f->text)
        return s ? s : att_read_vocab_txt(f, folder, list, settings);
    s = att_join_path(ctx, folder, "merges.txt", merges);
    if (!s && att_is_file(merges))
        s = att_text_file_read(f, ctx, folder, "vocab.json", true);
    if (s || f->text)
        return s ? s : att_read_merges(f, folder, list, settings);
    s = att_text_file_read(f, ctx, folder, "sentencepiece.bpe.model", false);
    if (s || f->text)
        return s ? s : att_read_fairseq(f, folder, list, settings);
    return att_fail(ctx, ATT_ERR_IO,
                    "%s: there is neither tokenizer.json nor vocab.txt, merges.txt, sentencepiece.bpe.model or "
                    "source.spm",
                    folder);
}

/* "truncation" of tokenizer.json: *max_tokens 0: none */
static void read_truncation(att_settings *s, int64_t *max_tokens, bool *left)
{
    static const char *const sides[] = {"Right", "Left"};
    *max_tokens = 0;
    *left = false;
    if (!att_settings_has(s, "truncation"))
        return;
    const att_settings_scope file = att_settings_enter(s, "truncation");
    *max_tokens = att_settings_int(s, "max_length", 1, INT64_MAX);
    *left = att_settings_choice(s, "direction", sides, 2, "Right or Left") == 1;
    if (att_settings_has(s, "strategy") && !strcmp(att_settings_text(s, "strategy", ""), "OnlySecond"))
        att_settings_unsupported(s, "strategy", "LongestFirst or OnlyFirst");
    att_settings_leave(s, file);
}

att_status att_json_tokenizer_open(att_ctx *ctx, const char *folder, att_tokenizer **out)
{
    att_text_file f;
    att_token_list list = {.ctx = ctx};
    att_settings settings = {.ctx = ctx};
    att_tokenizer *t = NULL;
    att_status s = att_tokenizer_files_read(&f, ctx, folder, &list, &settings);
    s = s ? s : att_pipeline_read(&settings, &list, &t);
    if (!s && att_pipeline_bert(t))
        s = check_config(ctx, folder, att_pipeline_bert(t));
    s = s ? s : att_truncation_side(ctx, folder, settings.root, &t->truncate_left);
    if (!s)
        *out = t;
    else
        att_tokenizer_free(t);
    att_settings_close(&settings);
    att_token_list_free(&list);
    att_text_file_free(&f);
    return s;
}

att_status att_bare_tokenizer_open(att_ctx *ctx, const char *folder, int64_t *max_tokens, att_tokenizer **out)
{
    att_text_file f;
    att_token_list list = {.ctx = ctx};
    att_settings settings = {.ctx = ctx};
    att_tokenizer *t = NULL;
    att_status s = att_text_file_read(&f, ctx, folder, "tokenizer.json", true);
    s = s ? s : att_read_vocab_json(&f, &list, &settings);
    s = s ? s : att_pipeline_read(&settings, &list, &t);
    if (!s)
        read_truncation(&settings, max_tokens, &t->truncate_left);
    s = s ? s : settings.status;
    if (s)
        att_tokenizer_free(t);
    *out = s ? NULL : t;
    att_settings_close(&settings);
    att_token_list_free(&list);
    att_text_file_free(&f);
    return s;
}
