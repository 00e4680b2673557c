/* Reads the settings of tokenizer.json. */
#include <string.h>

#include "text/pipeline/pipeline.h"

/* Unigram's vocabulary is a list, whose indexes are the ids. */
static void list_unigram(att_settings *s, att_token_list *list)
{
    const json_t *vocab = att_settings_list(s, "vocab", true);
    for (size_t i = 0; !s->status && i < json_array_size(vocab); i++) {
        const json_t *text = json_array_get(json_array_get(vocab, i), 0);
        if (i >= ATT_MAX_VOCABULARY)
            att_settings_fail(s, ATT_ERR_UNSUPPORTED, "\"%svocab\" has more than %d tokens", s->within,
                              ATT_MAX_VOCABULARY);
        else if (json_string_length(text) > 0)
            s->status = att_token_list_add(
                list, (att_trie_entry){json_string_value(text), json_string_length(text), (int32_t)i});
        else if (!json_is_string(text))
            att_settings_fail(s, ATT_ERR_FORMAT, "\"%svocab\" has %s, not a token and its score", s->within,
                              att_json_show(json_array_get(vocab, i)).text);
    }
}

static void read_added(att_settings *s, att_pipeline *t)
{
    const json_t *items = att_settings_list(s, "added_tokens", false);
    for (size_t i = 0; !s->status && i < json_array_size(items); i++)
        att_added_token_read(s, json_array_get(items, i), &t->added);
}

/* Fills the vocabulary with the tokens of `list`, and with added tokens that it does not have. */
static void fill_vocabulary(att_settings *s, const att_token_list *list, att_pipeline *t)
{
    att_token_list more = {.ctx = s->ctx};
    att_vocabulary *v = &t->vocabulary;
    for (size_t i = 0; !s->status && i < t->added.count; i++) {
        const att_added_token *a = &t->added.token[i];
        s->status = att_token_list_add(&more, (att_trie_entry){a->text, a->bytes, a->id});
    }
    att_token_list_fill(list, &more, s, v);
    att_token_list_set_added(&more, s, v);
    att_token_list_free(&more);
}

static void read_model(att_settings *s, const att_token_list *list, att_pipeline *t)
{
    static const att_subword_model *const models[] = {&att_bpe_model, &att_unigram_model, &att_wordpiece_model,
                                                      &att_wordlevel_model};
    const att_settings_scope before = att_settings_enter(s, "model");
    const char *type = att_settings_text(s, "type", NULL);
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
        if (strcmp(type, models[i]->name) == 0)
            t->model = models[i];
    if (!t->model)
        att_settings_unsupported(s, "type", "BPE, Unigram, WordPiece or WordLevel");
    att_token_list tokens = {.ctx = s->ctx};
    if (t->model == &att_unigram_model)
        list_unigram(s, &tokens);
    else if (t->model == &att_wordpiece_model || t->model == &att_wordlevel_model)
        att_settings_leave(s, att_settings_enter(s, "vocab")); /* it was replaced by {}, but must have been an object */
    t->unigram.written = list->score;
    t->unigram.n_written = list->scores;
    if (!s->status)
        fill_vocabulary(s, t->model == &att_unigram_model ? &tokens : list, t);
    att_token_list_free(&tokens);
    if (!s->status)
        t->model->read(s, t);
    att_settings_leave(s, before);
}

static int32_t find_text(const att_pipeline *t, const json_t *text)
{
    return att_tokenizer_find(&t->base, json_string_value(text), json_string_length(text));
}

/* Reads what tokenizer_config.json states about special tokens; the model and "padding" state it as well. */
static void read_config(att_settings *s, att_pipeline *t)
{
    const json_t *config = att_settings_get(s, ATT_CONFIG_KEY);
    int32_t *special = t->base.special;
    for (int i = 0; i < ATT_TOKENS; i++)
        special[i] = find_text(t, json_object_get(config, att_special_keys[i]));
    if (special[ATT_TOKEN_UNK] == ATT_NO_ID)
        special[ATT_TOKEN_UNK] = t->vocabulary.unknown;
    if (special[ATT_TOKEN_PAD] == ATT_NO_ID)
        special[ATT_TOKEN_PAD] = find_text(t, json_object_get(att_settings_get(s, "padding"), "pad_token"));
    t->clean_up = json_is_true(json_object_get(config, "clean_up_tokenization_spaces"));
}

/* Returns whether the "type" of this object is `type`. */
static bool has_type(const att_settings *s, const char *key, const char *type)
{
    const char *is = json_string_value(json_object_get(att_settings_get(s, key), "type"));
    return is && strcmp(is, type) == 0;
}

/* Returns whether the tokenizer is BERT's, with added tokens that are found before anything else. The pipeline reads
 * bytes that are not UTF-8 as U+FFFD, but the search in one pass does not. */
static bool is_bert(const att_settings *s, const att_pipeline *t)
{
    static const char replacement[] = "\xEF\xBF\xBD";
    for (size_t i = 0; i < t->added.count; i++) {
        const att_added_token *a = &t->added.token[i];
        if (a->normalized || a->single_word || memmem(a->text, a->bytes, replacement, 3))
            return false;
    }
    return has_type(s, "model", "WordPiece") && has_type(s, "normalizer", "BertNormalizer") &&
           has_type(s, "pre_tokenizer", "BertPreTokenizer");
}

static void read_bert(const att_settings *s, att_pipeline *t)
{
    t->one_pass = is_bert(s, t);
    if (!t->one_pass)
        return;
    const att_step *n = &t->normalizers.step[0];
    t->bert = (att_bert_settings){.clean_text = n->clean,
                                  .handle_chinese_chars = n->ideographs,
                                  .strip_accents = n->accents,
                                  .lowercase = n->lowercase,
                                  .max_word = t->max_word};
}

void att_pipeline_read_settings(att_settings *s, const att_token_list *list, att_pipeline *t)
{
    read_added(s, t);
    read_model(s, list, t);
    att_steps_read(s, "normalizer", "normalizers", att_normalizer_types, &t->normalizers);
    att_steps_read(s, "pre_tokenizer", "pretokenizers", att_pre_tokenizer_types, &t->pre_tokenizers);
    att_steps_read(s, "decoder", "decoders", att_decoder_types, &t->decoders);
    att_post_processor_read(s, &t->vocabulary, &t->post);
    t->base.single = t->post.single;
    t->base.pair = t->post.pair;
    t->base.plain_pair = t->post.plain_pair;
    t->base.size = t->vocabulary.size;
    if (!s->status)
        s->status = att_added_tokens_finish(&t->added, &t->normalizers);
    if (s->status)
        return;
    read_bert(s, t);
    read_config(s, t);
}
