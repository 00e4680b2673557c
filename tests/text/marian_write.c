/* Marian's folder, written: what is in it, that it is read again, and that what fails leaves what was there. */
#include "fixtures/check.h"
#include "fixtures/fail_alloc.h"
#include "translate/transformer.h"
#include "fixtures/write_files.h"

#include <jansson.h>

static const att_marian_config small = {.source_vocabulary = 20,
                                        .target_vocabulary = 20,
                                        .hidden = 8,
                                        .max_positions = 32,
                                        .encoder = {1, 2, 16},
                                        .decoder = {2, 4, 24},
                                        .activation = ATT_ACTIVATION_SILU,
                                        .scale_embedding = true,
                                        .share = true,
                                        .tie = true,
                                        .pad = 19,
                                        .eos = 0,
                                        .start = 19};

static att_transformer *make(att_ctx *ctx, const att_marian_config *c)
{
    att_transformer *m;
    if (att_transformer_new(ctx, c, 7, &m))
        fail_msg("%s", att_error(ctx));
    return m;
}

static json_t *json_in(const test_folder *f, const char *name)
{
    json_error_t e;
    json_t *root = json_load_file(path_in(f, name), 0, &e);
    if (!root)
        fail_msg("%s: %s", name, e.text);
    return root;
}

/* ---- settings */

static void write_settings(att_ctx *ctx, const test_folder *f, const att_marian_config *c, int64_t beam)
{
    att_transformer *m = make(ctx, c);
    assert_int_equal(att_encoder_decoder_write_settings(att_transformer_as_encoder_decoder(m), f->path, beam), ATT_OK);
    att_transformer_free(m);
}

static void settings_are_those_of_the_class(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    const test_folder f = folder_new();
    write_settings(ctx, &f, &small, 5);
    json_t *is = json_in(&f, "config.json");
    json_t *expected = json_pack(
        "{s:[s], s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:b, s:b, s:b,"
        " s:b, s:b, s:b, s:b, s:b}",
        "architectures", "MarianMTModel", "model_type", "marian", "dtype", "float32", "activation_function", "swish",
        "vocab_size", 20, "decoder_vocab_size", 20, "d_model", 8, "max_position_embeddings", 32, "encoder_layers", 1,
        "encoder_attention_heads", 2, "encoder_ffn_dim", 16, "decoder_layers", 2, "decoder_attention_heads", 4,
        "decoder_ffn_dim", 24, "pad_token_id", 19, "eos_token_id", 0, "forced_eos_token_id", 0,
        "decoder_start_token_id", 19, "is_encoder_decoder", 1, "scale_embedding", 1, "share_encoder_decoder_embeddings",
        1, "tie_word_embeddings", 1, "static_position_embeddings", 1, "normalize_before", 0, "normalize_embedding", 0,
        "add_final_layer_norm", 0);
    assert_non_null(expected);
    assert_true(json_equal(is, expected));
    json_decref(expected);
    json_decref(is);
    is = json_in(&f, "generation_config.json");
    expected = json_pack("{s:[[i]], s:i, s:i, s:i, s:i, s:i, s:i, s:b}", "bad_words_ids", 19, "decoder_start_token_id",
                         19, "eos_token_id", 0, "forced_eos_token_id", 0, "pad_token_id", 19, "max_length", 32,
                         "num_beams", 5, "renormalize_logits", 1);
    assert_true(json_equal(is, expected));
    json_decref(expected);
    json_decref(is);
    assert_int_equal(files_in(&f), 2);
    folder_remove(&f);
    att_close(ctx);
}

static void settings_are_read_again(void **state)
{
    (void)state;
    static const att_activation activations[] = {ATT_ACTIVATION_SILU, ATT_ACTIVATION_RELU, ATT_ACTIVATION_GELU_ERF,
                                                 ATT_ACTIVATION_GELU_TANH, ATT_ACTIVATION_TANH};
    att_ctx *ctx = check_open(NULL, 1);
    const test_folder f = folder_new();
    for (int i = 0; i < 5; i++) {
        att_marian_config c = small, is;
        memset(&is, 0x55, sizeof is);
        c.activation = activations[i];
        c.scale_embedding = i & 1;
        c.share = c.tie = i & 2;
        c.target_vocabulary += c.share ? 0 : 3;
        write_settings(ctx, &f, &c, 1);
        att_settings s;
        att_settings_read(&s, ctx, f.path, "config.json", true);
        att_marian_config_read(&s, &is);
        att_settings_close(&s);
        assert_int_equal(s.status, ATT_OK);
        assert_int_equal(is.activation, c.activation);
        assert_int_equal(is.scale_embedding, c.scale_embedding);
        assert_int_equal(is.share, c.share);
        assert_int_equal(is.tie, c.tie);
        assert_int_equal(is.target_vocabulary, c.target_vocabulary);
        assert_memory_equal(&is.encoder, &c.encoder, sizeof c.encoder);
        assert_memory_equal(&is.decoder, &c.decoder, sizeof c.decoder);
        assert_int_equal(is.source_vocabulary, 20);
        assert_int_equal(is.hidden, 8);
        assert_int_equal(is.max_positions, 32);
        assert_true(is.pad == 19 && is.eos == 0 && is.start == 19);
    }
    folder_remove(&f);
    att_close(ctx);
}

static void a_model_of_settings_that_could_not_be_read_again_is_not_made(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    att_transformer *m;
    att_marian_config c = small;
    c.pad = 20;
    assert_int_equal(att_transformer_new(ctx, &c, 1, &m), ATT_ERR_FORMAT);
    check_message(ctx, "transformer: \"pad_token_id\" is 20, not in [0, 19]");
    c = small;
    c.activation = ATT_ACTIVATION_SIGMOID;
    assert_int_equal(att_transformer_new(ctx, &c, 1, &m), ATT_ERR_UNSUPPORTED);
    check_message(ctx, "\"activation_function\" is \"none\"");
    assert_null(m);
    att_close(ctx);
}

static void a_new_model_wants_a_context_settings_and_a_place_to_be(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    static const struct {
        bool ctx, config, out;
        const char *says;
    } cases[] = {{false, true, true, "att_transformer_new: ctx is NULL"},
                 {true, false, true, "att_transformer_new: config is NULL"},
                 {true, true, false, "att_transformer_new: out is NULL"}};
    for (int i = 0; i < 3; i++) {
        att_transformer *m = make(ctx, &small), *was = m;
        assert_int_equal(att_transformer_new(cases[i].ctx ? ctx : NULL, cases[i].config ? &small : NULL, 1,
                                             cases[i].out ? &m : NULL),
                         ATT_ERR_ARGUMENT);
        check_message(ctx, cases[i].says);
        assert_ptr_equal(m, cases[i].out ? NULL : was);
        att_transformer_free(was);
    }
    att_close(ctx);
}

/* ---- weights */

/* Logits of a short text, [4, 20], to be freed. */
static float *logits(att_ctx *ctx, const att_transformer *m)
{
    static const int32_t source[] = {3, 4, 5, 0}, target[] = {19, 7, 8, 9};
    static const int64_t offsets[] = {0, 4};
    att_tape *t;
    att_tensor out;
    assert_int_equal(att_tape_new(ctx, NULL, &t), ATT_OK);
    att_var *memory = att_transformer_encode(t, m, source, offsets, 1);
    if (att_var_value(t, att_transformer_decode(t, m, memory, offsets, target, offsets, 1), &out))
        fail_msg("%s", att_error(ctx));
    float *copy = malloc(80 * sizeof *copy);
    memcpy(copy, out.data, 80 * sizeof *copy);
    att_tape_free(t);
    return copy;
}

static void a_model_is_the_same_when_it_is_read_again(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    for (int apart = 0; apart < 2; apart++) {
        const test_folder f = folder_new();
        att_marian_config c = small;
        c.share = c.tie = !apart;
        att_transformer *m = make(ctx, &c), *again, *learning;
        for (int64_t i = 0; i < att_nn_params_count(att_encoder_decoder_params(att_transformer_as_encoder_decoder(m)));
             i++) { /* biases, too, are then not all the same */
            const char *name;
            const att_tensor *value = att_param_value(
                att_nn_params_at(att_encoder_decoder_params(att_transformer_as_encoder_decoder(m)), i, &name));
            if (value->rank == 1)
                check_fill(value->data, value->dim[0], (uint64_t)i, 0.5f, 0.25f);
        }
        assert_int_equal(
            att_encoder_decoder_write(att_transformer_as_encoder_decoder(m), path_in(&f, "new/model"), NULL), ATT_OK);
        if (att_transformer_open(ctx, path_in(&f, "new/model"), NULL, &again))
            fail_msg("%s", att_error(ctx));
        float *x = logits(ctx, m), *y = logits(ctx, again);
        assert_memory_equal(x, y, 80 * sizeof *x);
        free(y);
        att_transformer_free(again);
        assert_int_equal(att_transformer_open_for_training(ctx, path_in(&f, "new/model"), NULL, &learning), ATT_OK);
        assert_int_equal(att_nn_params_count(att_encoder_decoder_params(att_transformer_as_encoder_decoder(learning))),
                         att_nn_params_count(att_encoder_decoder_params(att_transformer_as_encoder_decoder(m))));
        y = logits(ctx, learning);
        assert_memory_equal(x, y, 80 * sizeof *x);
        free(y);
        free(x);
        att_transformer_free(learning);
        att_transformer_free(m);
        folder_remove(&f);
    }
    att_close(ctx);
}

static void weights_have_the_names_and_shapes_of_the_class(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int rank;
        int64_t dim[2];
    } some[] = {{"final_logits_bias", 2, {1, 20}},
                {"model.shared.weight", 2, {20, 8}},
                {"model.encoder.layers.0.self_attn.q_proj.weight", 2, {8, 8}},
                {"model.encoder.layers.0.fc1.bias", 1, {16}},
                {"model.decoder.layers.1.encoder_attn_layer_norm.weight", 1, {8}},
                {"model.decoder.layers.1.fc2.weight", 2, {8, 24}}};
    att_ctx *ctx = check_open(NULL, 1);
    const test_folder f = folder_new();
    att_transformer *m = make(ctx, &small), *again;
    att_safetensors *file;
    assert_int_equal(
        att_encoder_decoder_write(att_transformer_as_encoder_decoder(m), f.path,
                                  ATT_OPTIONS(att_encoder_decoder_write_options, .dtype = ATT_F16, .beam = 2)),
        ATT_OK);
    assert_int_equal(att_safetensors_open(ctx, path_in(&f, "model.safetensors"), &file), ATT_OK);
    assert_int_equal(att_safetensors_count(file), 2 + 16 + 2 * 26);
    assert_string_equal(att_safetensors_metadata(file, "format"), "pt");
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
        att_tensor t;
        if (att_safetensors_get(file, some[i].name, &t))
            fail_msg("%s", att_error(ctx));
        assert_int_equal(t.dtype, ATT_F16);
        assert_int_equal(t.rank, some[i].rank);
        assert_memory_equal(t.dim, some[i].dim, (size_t)t.rank * sizeof t.dim[0]);
    }
    att_safetensors_free(file);
    json_t *search = json_in(&f, "generation_config.json");
    assert_int_equal(json_integer_value(json_object_get(search, "num_beams")), 2);
    json_decref(search);
    assert_int_equal(att_transformer_open(ctx, f.path, NULL, &again), ATT_OK);
    assert_int_equal(att_encoder_decoder_write(att_transformer_as_encoder_decoder(again), f.path, NULL),
                     ATT_ERR_ARGUMENT);
    check_message(ctx, "is not trainable");
    assert_int_equal(att_encoder_decoder_write(att_transformer_as_encoder_decoder(m), NULL, NULL), ATT_ERR_ARGUMENT);
    assert_int_equal(att_encoder_decoder_write(att_transformer_as_encoder_decoder(m), f.path,
                                               ATT_OPTIONS(att_encoder_decoder_write_options, .beam = -1)),
                     ATT_ERR_ARGUMENT);
    att_transformer_free(again);
    att_transformer_free(m);
    folder_remove(&f);
    att_close(ctx);
}

/* ---- text */

typedef struct model_file {
    char bytes[1 << 16];
    size_t n;
} model_file;

static const model_file *golden(const char *name)
{
    static model_file files[2];
    model_file *m = &files[!strcmp(name, "bpe.spm")];
    char path[64];
    snprintf(path, sizeof path, "tests/golden/%s", name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    m->n = fread(m->bytes, 1, sizeof m->bytes, f);
    assert_true(m->n < sizeof m->bytes);
    fclose(f);
    return m;
}

static void a_vocabulary_has_the_pieces_of_both_models_once(void **state)
{
    (void)state;
    const model_file *source = golden("unigram.spm"), *target = golden("bpe.spm");
    att_ctx *ctx = check_open(NULL, 1);
    const test_folder f = folder_new();
    const att_marian_tokenizer_files text = {.size = sizeof text,
                                             .source = source->bytes,
                                             .source_bytes = source->n,
                                             .target = target->bytes,
                                             .target_bytes = target->n,
                                             .source_language = "de"};
    int64_t size;
    att_tokenizer *t, *side[2];
    assert_int_equal(att_marian_tokenizer_write(ctx, f.path, &text, &size), ATT_OK);
    file_has(&f, "source.spm", source->bytes, source->n);
    file_has(&f, "target.spm", target->bytes, target->n);
    if (att_tokenizer_open(ctx, f.path, &t))
        fail_msg("%s", att_error(ctx));
    assert_int_equal(att_tokenizer_size(t), size);
    assert_string_equal(att_tokenizer_token(t, 0), "</s>");
    assert_string_equal(att_tokenizer_token(t, 1), "<unk>");
    assert_string_equal(att_tokenizer_token(t, (int32_t)size - 1), "<pad>");
    assert_int_equal(att_tokenizer_open(ctx, path_in(&f, "source.spm"), &side[0]), ATT_OK);
    assert_int_equal(att_tokenizer_open(ctx, path_in(&f, "target.spm"), &side[1]), ATT_OK);
    int32_t next = 2; /* ids go up with the pieces, source first */
    for (int s = 0; s < 2; s++)
        for (int32_t i = 0; i < att_tokenizer_size(side[s]); i++)
            next += next < size - 1 && !strcmp(att_tokenizer_token(side[s], i), att_tokenizer_token(t, next));
    assert_int_equal(next, size - 1);
    json_t *vocabulary = json_in(&f, "vocab.json"), *settings = json_in(&f, "tokenizer_config.json");
    assert_int_equal(json_object_size(vocabulary), size);
    assert_null(json_object_get(vocabulary, "<s>"));
    assert_string_equal(json_string_value(json_object_get(settings, "source_lang")), "de");
    assert_null(json_object_get(settings, "target_lang"));
    json_decref(settings);
    json_decref(vocabulary);
    for (int s = 0; s < 2; s++) { /* the pieces of a text are found in the vocabulary */
        static const char line[] = "two young people";
        att_tokens pieces, tokens;
        assert_int_equal(att_tokenize(side[s], line, sizeof line - 1, NULL, &pieces), ATT_OK);
        assert_int_equal(
            att_tokenize(t, line, sizeof line - 1, ATT_OPTIONS(att_tokenize_options, .target = s), &tokens), ATT_OK);
        assert_int_equal(tokens.count, pieces.count + 1);
        for (int64_t i = 0; i < pieces.count; i++)
            assert_string_equal(att_tokenizer_token(t, tokens.ids[i]), att_tokenizer_token(side[s], pieces.ids[i]));
        att_tokens_free(ctx, &pieces);
        att_tokens_free(ctx, &tokens);
        att_tokenizer_free(side[s]);
    }
    att_tokenizer_free(t);
    folder_remove(&f);
    att_close(ctx);
}

static void one_model_may_be_both(void **state)
{
    (void)state;
    const model_file *source = golden("bpe.spm");
    att_ctx *ctx = check_open(NULL, 1);
    const test_folder f = folder_new();
    att_marian_tokenizer_files text = {.size = sizeof text, .source = source->bytes, .source_bytes = source->n};
    att_tokenizer *t;
    assert_int_equal(att_marian_tokenizer_write(ctx, path_in(&f, "new"), &text, NULL), ATT_OK);
    assert_int_equal(att_tokenizer_open(ctx, path_in(&f, "new"), &t), ATT_OK);
    att_tokenizer_free(t);
    file_has(&f, "new/target.spm", source->bytes, source->n);
    text.target = "no model";
    text.target_bytes = 8;
    assert_int_equal(att_marian_tokenizer_write(ctx, path_in(&f, "other"), &text, NULL), ATT_ERR_FORMAT);
    check_message(ctx, "target.spm: ");
    assert_int_equal(files_in(&f), 1);
    text.source = NULL;
    assert_int_equal(att_marian_tokenizer_write(ctx, f.path, &text, NULL), ATT_ERR_ARGUMENT);
    folder_remove(&f);
    att_close(ctx);
}

/* ---- what fails */

static void every_failing_allocation_leaves_whole_files(void **state)
{
    (void)state;
    const model_file *source = golden("bpe.spm");
    const att_marian_tokenizer_files text = {.size = sizeof text, .source = source->bytes, .source_bytes = source->n};
    att_status s = ATT_ERR_MEMORY;
    const test_folder f = folder_new();
    for (long n = 1; s; n++) {
        fail_alloc a = {.fail_at = 0};
        att_ctx *ctx = fail_open(&a);
        att_transformer *m = make(ctx, &small), *again;
        att_tokenizer *t;
        const long live = a.live;
        a.fail_at = a.calls + n;
        s = att_marian_tokenizer_write(ctx, f.path, &text, NULL);
        s = s ? s : att_encoder_decoder_write(att_transformer_as_encoder_decoder(m), f.path, NULL);
        assert_true(s == ATT_OK || s == ATT_ERR_MEMORY);
        assert_int_equal(a.live, live);
        a.fail_at = 0;
        if (!access(path_in(&f, "vocab.json"), F_OK)) { /* the last of them */
            assert_int_equal(att_tokenizer_open(ctx, f.path, &t), ATT_OK);
            att_tokenizer_free(t);
        }
        if (!access(path_in(&f, "model.safetensors"), F_OK)) {
            assert_int_equal(att_transformer_open(ctx, f.path, NULL, &again), ATT_OK);
            att_transformer_free(again);
        }
        att_transformer_free(m);
        att_close(ctx);
    }
    assert_int_equal(files_in(&f), 7);
    folder_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_are_those_of_the_class),
        cmocka_unit_test(settings_are_read_again),
        cmocka_unit_test(a_model_of_settings_that_could_not_be_read_again_is_not_made),
        cmocka_unit_test(a_new_model_wants_a_context_settings_and_a_place_to_be),
        cmocka_unit_test(a_model_is_the_same_when_it_is_read_again),
        cmocka_unit_test(weights_have_the_names_and_shapes_of_the_class),
        cmocka_unit_test(a_vocabulary_has_the_pieces_of_both_models_once),
        cmocka_unit_test(one_model_may_be_both),
        cmocka_unit_test(every_failing_allocation_leaves_whole_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
