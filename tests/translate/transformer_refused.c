/* What the Transformer refuses: settings, tensors and sequences that do not fit, each named. */
#include "fixtures/check.h"
#include "fixtures/context.h"
#include "translate/transformer.h"
#include "fixtures/tiny_marian.h"

static const int32_t sources[] = {5, 9, 11, 7, 0, 0};

/* Opening fails with this status and a sentence that names the file and has these words. */
static void assert_refused(const test_folder *f, att_status expected, const char *file, const char *words)
{
    att_transformer *m = (att_transformer *)&m;
    const att_status s = att_transformer_open(ctx, f->path, NULL, &m);
    assert_null(m);
    check_file_refused(ctx, s, expected, file, words);
}

static void wrong_settings_are_named_with_their_values(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value;
        att_status status;
        const char *words;
    } wrong[] = {
        {"model_type", "\"bart\"", ATT_ERR_UNSUPPORTED, "\"model_type\" is \"bart\""},
        {"model_type", NULL, ATT_ERR_FORMAT, "there is no \"model_type\""},
        {"is_encoder_decoder", "false", ATT_ERR_UNSUPPORTED, "\"is_encoder_decoder\" is false"},
        {"normalize_before", "true", ATT_ERR_UNSUPPORTED, "\"normalize_before\" is true"},
        {"normalize_embedding", "true", ATT_ERR_UNSUPPORTED, "\"normalize_embedding\" is true"},
        {"add_final_layer_norm", "true", ATT_ERR_UNSUPPORTED, "\"add_final_layer_norm\" is true"},
        {"static_position_embeddings", "false", ATT_ERR_UNSUPPORTED, "\"static_position_embeddings\" is false"},
        {"quantization_config", "{\"bits\": 4}", ATT_ERR_UNSUPPORTED, "\"quantization_config\""},
        {"vocab_size", NULL, ATT_ERR_FORMAT, "there is no \"vocab_size\""},
        {"vocab_size", "99999999999", ATT_ERR_FORMAT, "\"vocab_size\" is 99999999999, not in [1, 134217728]"},
        {"vocab_size", "31", ATT_ERR_SHAPE, "\"model.shared.weight\" is [30, 24] but by config.json it is [31, 24]"},
        {"decoder_vocab_size", "31", ATT_ERR_FORMAT,
         "\"share_encoder_decoder_embeddings\" is true, but \"vocab_size\" is 30 and \"decoder_vocab_size\" 31"},
        {"decoder_vocab_size", "0", ATT_ERR_FORMAT, "\"decoder_vocab_size\" is 0, not in [1, "},
        {"share_encoder_decoder_embeddings", "false", ATT_ERR_FORMAT, "there is no tensor \"encoder.embed_tokens."},
        {"tie_word_embeddings", "false", ATT_ERR_FORMAT, "there is no tensor \"lm_head.weight\""},
        {"tie_word_embeddings", "1", ATT_ERR_FORMAT, "\"tie_word_embeddings\" is 1, not true or false"},
        {"d_model", "0", ATT_ERR_FORMAT, "\"d_model\" is 0, not in [2, 65536]"},
        {"d_model", "27", ATT_ERR_FORMAT, "\"decoder_attention_heads\" is 4, which does not divide \"d_model\", 27"},
        {"d_model", "\"24\"", ATT_ERR_FORMAT, "\"d_model\" is \"24\", not a whole number"},
        {"encoder_layers", "0", ATT_ERR_FORMAT, "\"encoder_layers\" is 0, not in [1, 1024]"},
        {"decoder_layers", "4", ATT_ERR_FORMAT, "there is no tensor \"decoder.layers.3."},
        {"decoder_layers", "2.5", ATT_ERR_FORMAT, "\"decoder_layers\" is 2.5, not a whole number"},
        {"encoder_attention_heads", "5", ATT_ERR_FORMAT,
         "\"encoder_attention_heads\" is 5, which does not divide \"d_model\", 24"},
        {"encoder_ffn_dim", "21", ATT_ERR_SHAPE, "is [20, 24] but by config.json it is [21, 24]"},
        {"decoder_ffn_dim", NULL, ATT_ERR_FORMAT, "there is no \"decoder_ffn_dim\""},
        {"max_position_embeddings", "-1", ATT_ERR_FORMAT, "\"max_position_embeddings\" is -1, not in [1, 1048576]"},
        {"activation_function", "\"mish\"", ATT_ERR_UNSUPPORTED, "\"activation_function\" is \"mish\""},
        {"scale_embedding", "\"yes\"", ATT_ERR_FORMAT, "\"scale_embedding\" is \"yes\", not true or false"},
        {"eos_token_id", "30", ATT_ERR_FORMAT, "\"eos_token_id\" is 30, not in [0, 29]"},
        {"pad_token_id", "-1", ATT_ERR_FORMAT, "\"pad_token_id\" is -1, not in [0, 29]"},
        {"decoder_start_token_id", NULL, ATT_ERR_FORMAT, "there is no \"decoder_start_token_id\""},
    };
    const test_folder f = tiny_marian();
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        marian_write_config(&f, MARIAN_TOKENS, wrong[i].key, wrong[i].value);
        assert_refused(&f, wrong[i].status, f.path, wrong[i].words);
    }
    folder_remove(&f);
}

static void an_odd_size_has_no_positions(void **state)
{
    (void)state;
    const test_folder f = folder_new();
    folder_write(&f, "config.json",
                 "{\"model_type\": \"marian\", \"vocab_size\": 9, \"d_model\": 3, \"max_position_embeddings\": 4, "
                 "\"encoder_layers\": 1, \"decoder_layers\": 1, \"encoder_attention_heads\": 1, "
                 "\"decoder_attention_heads\": 1, \"encoder_ffn_dim\": 1, \"decoder_ffn_dim\": 1, "
                 "\"pad_token_id\": 0, \"eos_token_id\": 0, \"decoder_start_token_id\": 0}");
    assert_refused(&f, ATT_ERR_UNSUPPORTED, "config.json", "\"d_model\" is 3, but sine and cosine positions take two");
    folder_remove(&f);
}

static void tensors_that_do_not_fit_are_named(void **state)
{
    (void)state;
    const test_folder f = tiny_marian();
    marian_write_weights(&f, &(const tiny_weights){.without = "model.decoder.layers.2.encoder_attn.k_proj.bias"}, NULL);
    assert_refused(&f, ATT_ERR_FORMAT, "model.safetensors",
                   "there is no tensor \"decoder.layers.2.encoder_attn.k_proj.bias\"");
    marian_write_weights(&f, &(const tiny_weights){.wider = "final_logits_bias"}, NULL);
    assert_refused(&f, ATT_ERR_SHAPE, "model.safetensors",
                   "tensor \"final_logits_bias\" is [31] but by config.json it is [30]");
    tiny_delete(&f, "model.safetensors");
    assert_refused(&f, ATT_ERR_IO, f.path, "there is no model.safetensors");
    tiny_delete(&f, "config.json");
    assert_refused(&f, ATT_ERR_IO, "config.json", "No such file");
    folder_remove(&f);
    att_transformer *m;
    assert_int_equal(att_transformer_open(ctx, NULL, NULL, &m), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(ctx), "att_transformer_open: folder is NULL");
}

static const struct {
    int32_t ids[17];
    int64_t offsets[3], n;
    const char *source, *target; /* what is said of it as one or the other */
} wrong[] = {
    {{0},
     {0, 17},
     1,
     "source: sequence 0 has 17 tokens but the model has 16 positions",
     "target: sequence 0 has 17 tokens but the model has 16 positions"},
    {{1, 30},
     {0, 2},
     1,
     "encoder/embeddings: embedding: ids[1] = 30 but the table has 30 rows",
     "decoder/embeddings: embedding: ids[1] = 30 but the table has 30 rows"},
    {{1, 2},
     {0, 2, INT64_MIN},
     2,
     "source: offsets[1] = 2 is above offsets[2] = -9223372036854775808",
     "target: offsets[1] = 2 is above offsets[2] = -9223372036854775808"},
    {{1, 2},
     {1, 2},
     1,
     "source: n = 1 sequences need ids, and offsets from 0",
     "target: n = 1 sequences need ids, and offsets from 0"},
    {{1, 2},
     {0, 5, 3},
     2,
     "source: offsets[1] = 5 is above offsets[2] = 3",
     "target: offsets[1] = 5 is above offsets[2] = 3"},
};

static void sequences_that_do_not_fit_are_named(void **state)
{
    (void)state;
    const test_folder f = tiny_marian();
    att_transformer *m = open_model(ctx, &f);
    att_tape *t;
    att_tensor x;
    assert_int_equal(att_tape_new(ctx, NULL, &t), ATT_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        att_tape_reset(t);
        att_var *y = att_transformer_encode(t, m, wrong[i].ids, wrong[i].offsets, wrong[i].n);
        assert_int_equal(att_var_value(t, y, &x), ATT_ERR_ARGUMENT);
        assert_string_equal(att_error(ctx), wrong[i].source);
        att_generator g = {.user = &g};
        assert_int_equal(att_transformer_architecture.start(att_transformer_as_encoder_decoder(m), wrong[i].ids,
                                                            wrong[i].offsets, wrong[i].n, &g),
                         ATT_ERR_ARGUMENT);
        assert_true(!g.user && !g.free);
        att_tape_reset(t);
        y = att_transformer_encode(t, m, sources, (const int64_t[]){0, 5, 5}, wrong[i].n);
        y = att_transformer_decode(t, m, y, (const int64_t[]){0, 5, 5}, wrong[i].ids, wrong[i].offsets, wrong[i].n);
        assert_int_equal(att_var_value(t, y, &x), ATT_ERR_ARGUMENT);
        assert_string_equal(att_error(ctx), wrong[i].target);
        if (i == 1) /* a decoder's inputs are without the last token */
            continue;
        att_tape_reset(t);
        const att_sequence_pairs p = {.size = sizeof p,
                                      .n = wrong[i].n,
                                      .source = sources,
                                      .source_offsets = (const int64_t[]){0, 5, 5},
                                      .target = wrong[i].ids,
                                      .target_offsets = wrong[i].offsets};
        y = att_encoder_decoder_logits(t, att_transformer_as_encoder_decoder(m), &p, NULL);
        assert_int_equal(att_var_value(t, y, &x), ATT_ERR_ARGUMENT);
        assert_string_equal(att_error(ctx), wrong[i].target);
    }
    att_tape_reset(t);
    const att_encoder_decoder *as = att_transformer_as_encoder_decoder(m);
    assert_null(att_encoder_decoder_loss(t, as, &(const att_sequence_pairs){0}, NULL));
    check_message(ctx, "att_sequence_pairs: its field size is 0");
    att_tape_reset(t);
    att_var *y = att_transformer_encode(t, m, sources, (const int64_t[]){0, 5}, 1);
    y = att_transformer_decode(t, m, y, (const int64_t[]){0, 6}, sources, (const int64_t[]){0, 2}, 1);
    if (att_var_value(t, y, &x) != ATT_ERR_SHAPE)
        fail_msg("%s", att_error(ctx));
    check_message(ctx, "decoder/layer.0/cross: attend: k_offsets[1] = 6");
    att_tape_free(t);
    att_transformer_free(m);
    folder_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_settings_are_named_with_their_values),
        cmocka_unit_test(an_odd_size_has_no_positions),
        cmocka_unit_test(tensors_that_do_not_fit_are_named),
        cmocka_unit_test(sequences_that_do_not_fit_are_named),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
