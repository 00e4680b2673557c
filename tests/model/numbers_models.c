/* Extreme numbers in the settings of models: the model works, or a sentence names the file. */
#include "fixtures/check.h"
#include "fixtures/context.h"
#include "fixtures/extreme_numbers.h"
#include "fixtures/tiny_bert.h"
#include "fixtures/tiny_marian.h"
#include "attend_sentence.h"

/* Opened, used and closed. */
static bool is_open;

static att_status use_sentence(const char *path)
{
    static const char *const texts[] = {"a b c", "", "a b c d e f g h i j k l m n o p q r"};
    float out[3 * TINY_HIDDEN];
    att_sentence *m;
    att_status s = att_sentence_open(ctx, path, NULL, &m);
    is_open = !s;
    s = s ? s : att_sentence_embed(m, 3, texts, NULL, NULL, out);
    att_sentence_free(m);
    return s;
}

static att_status use_translator(const char *path)
{
    static const char *const texts[] = {"a", "Ein Haus.", ""};
    att_translation out[3];
    att_translator *m;
    att_status s = att_translator_open(ctx, path, NULL, &m);
    is_open = !s;
    s = s ? s : att_translate(m, 3, texts, NULL, NULL, out);
    for (int i = 0; !s && i < 3; i++)
        att_translation_free(ctx, &out[i]);
    att_translator_free(m);
    return s;
}

static int64_t marian_tokens;

static void write_bert(const test_folder *f, const char *key, const char *value) { tiny_write_config(f, key, value); }
static void write_marian(const test_folder *f, const char *key, const char *value)
{
    marian_write_config(f, marian_tokens, key, value);
}
static void write_generation(const test_folder *f, const char *key, const char *value)
{
    marian_write_generation(f, marian_tokens, key, value);
}
static void write_pooling(const test_folder *f, const char *key, const char *value)
{
    char text[640];
    snprintf(text, sizeof text, "{\"word_embedding_dimension\": %s, \"pooling_mode_mean_tokens\": %s}",
             key && key[0] == 'w' ? value : "12", key && key[0] == 'p' ? value : "true");
    folder_write(f, "1_Pooling/config.json", text);
}
static void write_limit(const test_folder *f, const char *key, const char *value)
{
    static const char *const settings[][2] = {{"do_lower_case", "true"}};
    tiny_write_settings(f, "tokenizer_config.json", settings, 1, key, value);
}

static const struct {
    const char *file;
    void (*write)(const test_folder *f, const char *key, const char *value);
    bool translator;
    const char *key[20];
} files[] = {
    {"config.json",
     write_bert,
     false,
     {"vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
      "max_position_embeddings", "type_vocab_size", "layer_norm_eps", "hidden_dropout_prob",
      "attention_probs_dropout_prob"}},
    {"1_Pooling/config.json", write_pooling, false, {"word_embedding_dimension", "pooling_mode_mean_tokens"}},
    {"tokenizer_config.json", write_limit, false, {"model_max_length"}},
    {"config.json",
     write_marian,
     true,
     {"vocab_size", "decoder_vocab_size", "d_model", "encoder_layers", "decoder_layers", "encoder_attention_heads",
      "decoder_attention_heads", "encoder_ffn_dim", "decoder_ffn_dim", "max_position_embeddings", "eos_token_id",
      "pad_token_id", "decoder_start_token_id"}},
    {"generation_config.json",
     write_generation,
     true,
     {"bad_words_ids", "decoder_start_token_id", "eos_token_id", "forced_eos_token_id", "max_length", "num_beams",
      "min_length", "min_new_tokens", "max_new_tokens", "length_penalty", "repetition_penalty", "no_repeat_ngram_size",
      "num_beam_groups", "diversity_penalty", "guidance_scale"}},
};

static void a_model_opens_and_works_or_its_file_is_named(void **state)
{
    (void)state;
    const test_folder sentence = tiny_sentence(), translator = folder_new();
    write_pooling(&sentence, NULL, NULL);
    marian_tokens = write_translator(ctx, &translator);
    assert_int_equal(use_sentence(sentence.path), ATT_OK);
    assert_int_equal(use_translator(translator.path), ATT_OK);
    int opened = 0, refused = 0;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const test_folder *f = files[i].translator ? &translator : &sentence;
        for (int k = 0; files[i].key[k]; k++) {
            for (int n = 0; n < NUMBERS; n += check_step(3)) {
                char value[512];
                snprintf(value, sizeof value, strcmp(files[i].key[k], "bad_words_ids") ? "%s" : "[[%s]]",
                         numbers[n].json);
                files[i].write(f, files[i].key[k], value);
                const att_status s = (files[i].translator ? use_translator : use_sentence)(f->path);
                opened += !s;
                refused += s != ATT_OK;
                if (is_open && isnan(numbers[n].is))
                    fail_msg("%s is taken for %s", numbers[n].json, files[i].key[k]);
                if (s == ATT_ERR_MEMORY)
                    fail_msg("%s = %s: %s", files[i].key[k], value, att_error(ctx));
                if (!is_open && !strstr(att_error(ctx), f->path))
                    fail_msg("%s = %s: no file in: %s", files[i].key[k], value, att_error(ctx));
            }
        }
        files[i].write(f, NULL, NULL);
    }
    assert_true(opened > 50 && refused > 500);
    folder_remove(&sentence);
    folder_remove(&translator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_model_opens_and_works_or_its_file_is_named)};
    return cmocka_run_group_tests(tests, open_context, close_context);
}
