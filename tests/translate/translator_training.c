/* Training a translator: that it learns, the same bits whatever the threads, and its folder. */
// labels: long trains
#include "fixtures/check.h"
#include "translate/transformer.h"
#include "fixtures/toy_corpus.h"

/* ---- what is tested */

typedef struct training {
    att_ctx *ctx;
    att_tokenizer *tokenizer;
    att_transformer *model;
    att_training *training;
} training;

static att_status start(training *t, att_ctx *ctx, double rate, float dropout, int64_t accumulate)
{
    char path[256], source[256], target[256], valid_source[256], valid_target[256];
    *t = (training){.ctx = ctx};
    att_status e = att_tokenizer_open(ctx, path_of("", path), &t->tokenizer);
    if (e)
        return e;
    const int64_t vocabulary = att_tokenizer_size(t->tokenizer);
    const att_marian_config c = {.source_vocabulary = vocabulary,
                                 .target_vocabulary = vocabulary,
                                 .hidden = 32,
                                 .max_positions = 64,
                                 .encoder = {2, 4, 64},
                                 .decoder = {2, 4, 64},
                                 .activation = ATT_ACTIVATION_RELU,
                                 .scale_embedding = true,
                                 .share = true,
                                 .tie = true,
                                 .pad = vocabulary - 1,
                                 .start = vocabulary - 1};
    e = att_transformer_new(ctx, &c, 7, &t->model);
    return e ? e
             : att_translator_training_new(
                   att_transformer_as_encoder_decoder(t->model), t->tokenizer,
                   ATT_OPTIONS(att_training_options, .accumulate = accumulate, .clip = 1, .seed = 3,
                               .schedule =
                                   &(const att_schedule){.size = sizeof(att_schedule), .max_rate = rate, .warmup = 20}),
                   ATT_OPTIONS(att_translator_training_options, .source = path_of("train.de", source),
                               .target = path_of("train.en", target), .valid_source = path_of("valid.de", valid_source),
                               .valid_target = path_of("valid.en", valid_target), .batch_tokens = 200,
                               .dropout = dropout, .label_smoothing = 0.1f),
                   &t->training);
}

static void stop(training *t)
{
    att_training_free(t->training);
    att_transformer_free(t->model);
    att_tokenizer_free(t->tokenizer);
}

static att_training_report one_step(training *t)
{
    att_training_report r = {.size = sizeof r};
    if (att_training_step(t->training, &r))
        fail_msg("%s", att_error(t->ctx));
    return r;
}

static double validate(training *t)
{
    double loss;
    assert_int_equal(att_training_validate(t->training, &loss), ATT_OK);
    return loss;
}

/* A model that only knew how frequent tokens are would have log(12) for each word and less for what ends them; this one
 * must know which word it is. */
static void it_learns_to_translate(void **state)
{
    (void)state;
    training t;
    att_ctx *ctx = check_open(NULL, 2);
    assert_int_equal(start(&t, ctx, 3e-3, 0.1f, 1), ATT_OK);
    const double before = validate(&t);
    for (int i = 0; i < 300; i += check_step(10))
        one_step(&t);
    const double after = validate(&t);
    if (!(before > 3 && after < (check_step(10) > 1 ? before : 0.5)))
        fail_msg("loss was %g and is %g", before, after);
    stop(&t);
    att_close(ctx);
}

static void any_number_of_threads_learns_the_same_bits(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 3};
    float *first = NULL;
    for (int n = 0; n < 3; n++) {
        training t;
        att_ctx *ctx = check_open(NULL, threads[n]);
        assert_int_equal(start(&t, ctx, 1e-2, 0.2f, 2), ATT_OK);
        for (int i = 0; i < 4; i++)
            one_step(&t);
        const char *name;
        const att_tensor *w = att_param_value(
            att_nn_params_at(att_encoder_decoder_params(att_transformer_as_encoder_decoder(t.model)), 0, &name));
        const size_t bytes = (size_t)check_count(w) * sizeof(float);
        if (n == 0)
            first = memcpy(malloc(bytes), w->data, bytes);
        assert_memory_equal(first, w->data, bytes);
        const int64_t pad = w->dim[0] - 1;
        for (int64_t d = 0; d < w->dim[1]; d++)
            assert_true(((const float *)w->data)[pad * w->dim[1] + d] == 0);
        stop(&t);
        att_close(ctx);
    }
    free(first);
}

/* ---- a training in a folder */

#define SIZES                                                                                                          \
    "\"encoder_layers\": 1, \"decoder_layers\": 1, \"encoder_ffn_dim\": 32, \"decoder_ffn_dim\": 32, "                 \
    "\"encoder_attention_heads\": 2, \"decoder_attention_heads\": 2"
#define TRANSFORMER "{\"d_model\": 16, " SIZES "}"
#define RNN(attention) "{\"model_type\": \"attend-seq2seq\", \"embedding_size\": 8, \"hidden_size\": 10, " attention "}"

static att_training *open_other(att_ctx *ctx, const char *name, bool resume, int64_t seed, const char *settings,
                                float dropout)
{
    char path[256], source[256], target[256];
    att_training *t = NULL;
    const att_translator_training_options *o = ATT_OPTIONS(
        att_translator_training_options, .vocabulary = 70, .settings = settings, .source = path_of("train.de", source),
        .target = path_of("train.en", target), .batch_tokens = 150, .dropout = dropout);
    const att_training_options *common =
        ATT_OPTIONS(att_training_options, .resume = resume, .keep = 3, .seed = (uint64_t)seed,
                    .schedule = &(const att_schedule){.size = sizeof(att_schedule), .max_rate = 1e-2, .warmup = 3});
    if (att_translator_training_open(ctx, path_of(name, path), common, o, &t))
        assert_null(t);
    return t;
}

static att_training *open_training(att_ctx *ctx, const char *name, bool resume, int64_t seed)
{
    return open_other(ctx, name, resume, seed, TRANSFORMER, 0.1f);
}

static void take_steps(att_training *t, int n)
{
    att_training_report r = {.size = sizeof r};
    for (int i = 0; i < n; i++)
        assert_int_equal(att_training_step(t, &r), ATT_OK);
}

/* Copies all numbers of a model, one after the other. */
static float *weights_of(const att_training *t, size_t *bytes)
{
    float *all = NULL;
    *bytes = 0;
    for (int64_t i = 0; i < att_nn_params_count(att_encoder_decoder_params(att_training_encoder_decoder(t))); i++) {
        const char *name;
        const att_tensor *w =
            att_param_value(att_nn_params_at(att_encoder_decoder_params(att_training_encoder_decoder(t)), i, &name));
        const size_t more = (size_t)check_count(w) * sizeof *all;
        all = realloc(all, *bytes + more);
        memcpy((char *)all + *bytes, w->data, more);
        *bytes += more;
    }
    return all;
}

static void a_training_is_refused_where_it_would_spoil_another(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    assert_null(open_training(ctx, "none", true, 3));
    assert_non_null(strstr(att_error(ctx), "there is no checkpoint to continue from"));
    att_training *t = open_training(ctx, "one", false, 3);
    assert_non_null(t);
    assert_null(open_training(ctx, "one", false, 3));
    assert_non_null(strstr(att_error(ctx), "another training"));
    double loss;
    assert_int_equal(att_training_validate(t, &loss), ATT_ERR_ARGUMENT);
    check_message(ctx, "the training has no files to validate by");
    take_steps(t, 1);
    assert_int_equal(att_training_save(t), ATT_OK);
    att_training_free(t);
    assert_null(open_training(ctx, "one", false, 3));
    assert_non_null(strstr(att_error(ctx), "has checkpoints of a training already"));
    assert_null(open_training(ctx, "one", true, 4));
    assert_non_null(strstr(att_error(ctx), "seed"));
    assert_null(open_other(ctx, "one", true, 3, TRANSFORMER, 0.2f));
    assert_non_null(strstr(att_error(ctx), "dropout"));
    assert_null(open_other(ctx, "one", true, 3, "{\"d_model\": 24, " SIZES "}", 0.1f));
    assert_non_null(strstr(att_error(ctx), "\"d_model\" is 16 but here it is 24"));
    assert_null(open_other(ctx, "one", true, 3, RNN("\"attention\": \"dot\""), 0.1f));
    assert_non_null(strstr(att_error(ctx), "\"model_type\" is \"marian\" but here it is \"attend-seq2seq\""));
    t = open_training(ctx, "one", true, 3);
    assert_non_null(t);
    att_training_free(t);
    att_settings s; /* as they were */
    char path[256];
    att_settings_read(&s, ctx, path_of("one", path), "config.json", true);
    assert_int_equal(att_settings_int(&s, "d_model", 1, 1000), 16);
    att_settings_close(&s);
    att_close(ctx);
}

static void settings_of_a_model_that_cannot_be_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *settings, *file, *says;
    } cases[] = {
        {"{\"d_modell\": 16}", NULL, "the model's settings: \"d_modell\" is not a setting of such a model"},
        {"{\"attention\": \"dot\"}", NULL, "\"attention\" is not a setting of such a model"},
        {"{\"model_type\": \"bart\"}", NULL, "\"model_type\" is \"bart\", which is not supported"},
        {RNN("\"attention\": \"hard\""), NULL, "\"attention\" is \"hard\", which is not supported"},
        {"{\"encoder_attention_heads\": 3}", NULL, "\"encoder_attention_heads\" is 3, which does not divide"},
        {NULL, "[]", "config: is not a JSON object"},
        {NULL, "{\"layers\": 2}", "config: \"layers\" is not a setting of such a model"},
        {NULL, "{\"vocab_size\": 9}", "config: \"vocab_size\" is 9 but here it is 7"},
        {RNN("\"attention\": \"dot\""), "{\"attention\": \"none\"}",
         "config: \"attention\" is \"none\" but here it is \"dot\""},
        {RNN("\"attention\": \"dot\""), "{\"model_type\": \"marian\"}",
         "config: \"model_type\" is \"marian\" but here it is \"attend-seq2seq\""},
    };
    char path[256];
    att_ctx *ctx = check_open(NULL, 1);
    att_encoder_decoder *m;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (cases[i].file)
            folder_write(&folder, "config", cases[i].file);
        assert_true(att_encoder_decoder_new(ctx, cases[i].settings, cases[i].file ? path_of("config", path) : NULL, 7,
                                            1, &m) != ATT_OK);
        assert_null(m);
        check_message(ctx, cases[i].says);
        const att_status early =
            att_encoder_decoder_new(ctx, cases[i].settings, cases[i].file ? path_of("config", path) : NULL, 0, 0, NULL);
        assert_int_equal(early == ATT_OK, strstr(cases[i].says, "but here it is 7") != NULL);
        if (early)
            check_message(ctx, cases[i].says);
    }
    folder_write(&folder, "config", "{\"vocab_size\": 9, \"pad_token_id\": 9}");
    assert_int_equal(att_encoder_decoder_new(ctx, NULL, path_of("config", path), 0, 0, NULL), ATT_ERR_FORMAT);
    check_message(ctx, "config: \"pad_token_id\" is 9");
    assert_int_equal(att_encoder_decoder_new(ctx, NULL, path_of("nowhere", path), 7, 1, &m), ATT_ERR_IO);
    folder_write(&folder, "config", "{\"vocab_size\": 7, \"hidden_size\": 6, \"tie_word_embeddings\": false}");
    att_encoder_decoder_info info = {.size = sizeof info};
    assert_int_equal(
        att_encoder_decoder_new(ctx, "{\"model_type\": \"attend-seq2seq\"}", path_of("config", path), 7, 1, &m),
        ATT_OK);
    assert_int_equal(att_encoder_decoder_describe(m, &info), ATT_OK);
    assert_true(info.target_vocabulary == 7 && info.pad == 6 && info.attention_heads == 1);
    att_model_free(m);
    att_close(ctx);
}

static void check_what_was_trained(const char *name, const char *settings)
{
    char path[256];
    att_ctx *ctx = check_open(NULL, 2);
    att_training *t = open_other(ctx, name, false, 3, settings, 0.1f);
    assert_non_null(t);
    for (int i = 0; i < 4; i++) {
        take_steps(t, 5);
        assert_int_equal(att_training_save(t), ATT_OK);
    }
    size_t bytes;
    float *last = weights_of(t, &bytes);
    assert_int_equal(att_training_write(t, 3, ATT_F32), ATT_OK);
    float *mean = weights_of(t, &bytes);
    assert_memory_not_equal(last, mean, bytes);
    att_translator *m;
    att_translation one;
    const char *text = "eins rot Haus";
    if (att_translator_open(ctx, path_of(name, path), NULL, &m))
        fail_msg("%s", att_error(ctx));
    assert_int_equal(att_translate(m, 1, &text, NULL, NULL, &one), ATT_OK);
    att_translation_free(ctx, &one);
    att_translator_free(m);
    free(last), free(mean);
    att_training_free(t);
    att_close(ctx);
}

static void what_was_trained_is_a_folder_of_a_translator(void **state)
{
    (void)state;
    check_what_was_trained("model", TRANSFORMER);
    check_what_was_trained("recurrent", RNN("\"attention\": \"additive\""));
    check_what_was_trained("fixed", RNN("\"attention\": \"none\""));
}

/* A weight is not a number: the step names it and the operation; with the weight restored, nothing has changed. */
static void a_step_of_numbers_that_are_not_finite_is_none_and_names_the_operation(void **state)
{
    (void)state;
    training t, calm;
    att_ctx *ctx = check_open(NULL, 2);
    att_training_report r = {.size = sizeof r};
    assert_int_equal(start(&t, ctx, 1e-2, 0.1f, 2), ATT_OK);
    assert_int_equal(start(&calm, ctx, 1e-2, 0.1f, 2), ATT_OK);
    one_step(&t), one_step(&calm);
    const char *name = "";
    att_param *p = NULL;
    for (int64_t i = 0; strcmp(name, "decoder.1.feed_forward.inner.bias"); i++)
        assert_non_null(
            p = att_nn_params_at(att_encoder_decoder_params(att_transformer_as_encoder_decoder(t.model)), i, &name));
    float *x = att_param_value(p)->data;
    const float was = x[3];
    x[3] = NAN;
    att_param_invalidate(p);
    assert_int_equal(att_training_step(t.training, &r), ATT_ERR_ARGUMENT);
    check_message(ctx,
                  "step 2 is not taken: its loss is nan; first, decoder/layer.1/feed_forward: linear was given nan: "
                  "number 3 of its parameter 1, [64]");
    x[3] = was;
    att_param_invalidate(p);
    assert_true(one_step(&t).loss == one_step(&calm).loss);
    stop(&t), stop(&calm);
    att_close(ctx);
}

static void options_of_a_folder_are_refused_in_memory(void **state)
{
    (void)state;
    static const struct {
        att_translator_training_options o;
        const char *says;
    } cases[] = {{{.tokenizer = "."}, "options.tokenizer"},
                 {{.vocabulary = 70}, "options.vocabulary"},
                 {{.character_coverage = 1}, "options.character_coverage"},
                 {{.byte_fallback = 1}, "options.byte_fallback"},
                 {{.settings = "{}"}, "options.settings"},
                 {{.config = "c"}, "options.config"}};
    char source[256], target[256], says[80];
    training t;
    att_ctx *ctx = check_open(NULL, 1);
    assert_int_equal(start(&t, ctx, 1e-2, 0, 1), ATT_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        att_training *other;
        att_translator_training_options o = cases[i].o;
        att_training_options common = {.size = sizeof common};
        o.size = sizeof o;
        common.schedule = &(const att_schedule){.size = sizeof(att_schedule), .max_rate = 1e-2};
        o.source = path_of("train.de", source);
        o.target = path_of("train.en", target);
        snprintf(says, sizeof says, "%s is for a training in a folder", cases[i].says);
        assert_int_equal(
            att_translator_training_new(att_transformer_as_encoder_decoder(t.model), t.tokenizer, &common, &o, &other),
            ATT_ERR_ARGUMENT);
        check_message(ctx, says);
        assert_null(other);
    }
    assert_ptr_equal(att_training_encoder_decoder(t.training), att_transformer_as_encoder_decoder(t.model));
    stop(&t);
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_learns_to_translate),
        cmocka_unit_test(any_number_of_threads_learns_the_same_bits),
        cmocka_unit_test(a_training_is_refused_where_it_would_spoil_another),
        cmocka_unit_test(settings_of_a_model_that_cannot_be_are_named),
        cmocka_unit_test(what_was_trained_is_a_folder_of_a_translator),
        cmocka_unit_test(a_step_of_numbers_that_are_not_finite_is_none_and_names_the_operation),
        cmocka_unit_test(options_of_a_folder_are_refused_in_memory),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
