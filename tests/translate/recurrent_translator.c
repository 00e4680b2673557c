/* A translator's folder with a recurrent model: translations, alignments, what is refused. */
#include "fixtures/check.h"
#include "fixtures/context.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/marian_files.h"
#include "fixtures/trace_rows.h"
#include "translate/encoder_decoder.h"

enum { POSITIONS = 24, KINDS = 8 };

static test_folder folder; /* with the text, and the model of the last write_model */
static int64_t tokens;

static int set_up(void **state)
{
    const int failed = open_context(state);
    folder = folder_new();
    tokens = write_marian_files(ctx, &folder);
    return failed;
}

static int tear_down(void **state)
{
    folder_remove(&folder);
    return close_context(state);
}

/* GRU and LSTM, of each attention. */
static att_seq2seq_config kind_of(int i)
{
    return (att_seq2seq_config){.size = sizeof(att_seq2seq_config),
                                .source_vocabulary = tokens,
                                .target_vocabulary = tokens,
                                .embedding = 6,
                                .units = 8,
                                .layers = 1 + i % 2,
                                .max_positions = POSITIONS,
                                .pad = tokens - 1,
                                .start = tokens - 1,
                                .lstm = i % 2,
                                .bidirectional = i % 3 == 0,
                                .scale_embedding = true,
                                .share = true,
                                .tie = i % 2,
                                .attention = (att_seq2seq_attention)(i / 2)};
}

/* With large weights, so that what is likely depends on all of them. */
static att_seq2seq *write_model(int kind, att_dtype dtype)
{
    const att_seq2seq_config config = kind_of(kind);
    att_seq2seq *m;
    if (att_seq2seq_new(ctx, &config, 1, &m))
        fail_msg("%s", att_error(ctx));
    for (int64_t i = 0; i < att_nn_params_count(att_encoder_decoder_params(att_seq2seq_as_encoder_decoder(m))); i++) {
        const char *name;
        att_param *p = att_nn_params_at(att_encoder_decoder_params(att_seq2seq_as_encoder_decoder(m)), i, &name);
        check_fill(att_param_value(p)->data, att_count(att_param_value(p)), (uint64_t)(40 * kind + i), 0, 1.5f);
        att_param_invalidate(p);
    }
    const att_encoder_decoder_write_options *o =
        ATT_OPTIONS(att_encoder_decoder_write_options, .dtype = dtype, .beam = 2);
    assert_int_equal(att_encoder_decoder_write(att_seq2seq_as_encoder_decoder(m), folder.path, o), ATT_OK);
    return m;
}

static att_translator *open_translator(att_ctx *c)
{
    att_translator *m;
    if (att_translator_open(c, folder.path, NULL, &m))
        fail_msg("%s", att_error(c));
    return m;
}

/* ---- what is found */

/* Finds the most probable token of a row of logits, without <pad>. */
static int32_t likeliest(const float *row)
{
    int32_t best = 0;
    for (int32_t v = 1; v < tokens - 1; v++)
        best = row[v] > row[best] ? v : best;
    return best;
}

/* Token by token and batched, each but the first `forced` is the likeliest by what the model says of the whole, as when
 * it learns. */
static void check_greedy(const att_translator *m, const char *text, const att_translation *found, int64_t forced)
{
    att_tokens source;
    att_tape *t;
    att_tensor logits;
    int32_t target[POSITIONS] = {0}; /* ends with the end */
    assert_int_equal(att_tokenize(att_translator_tokenizer(m), text, strlen(text), NULL, &source), ATT_OK);
    assert_int_equal(att_tape_new(ctx, NULL, &t), ATT_OK);
    const int64_t n = found->tokens.count + 1, from[] = {0, source.count}, to[] = {0, n};
    assert_true(n <= POSITIONS);
    memcpy(target, found->tokens.ids, (size_t)(n - 1) * sizeof *target);
    const att_sequence_pairs pair = {.size = sizeof pair,
                                     .n = 1,
                                     .source = source.ids,
                                     .source_offsets = from,
                                     .target = target,
                                     .target_offsets = to};
    if (att_var_value(t, att_encoder_decoder_logits(t, att_translator_model(m), &pair, NULL), &logits))
        fail_msg("%s", att_error(ctx));
    for (int64_t i = forced; i < n; i++)
        if (i + 2 < POSITIONS) /* the last of 23, beside the start, is forced to be the end */
            assert_int_equal(likeliest((const float *)logits.data + i * tokens), target[i]);
    att_tape_free(t);
    att_tokens_free(ctx, &source);
}

static const char *const texts[] = {"Ein Hund", "the table is running in the snow", "a", "China und Schnee", ""};
enum { TEXTS = sizeof texts / sizeof texts[0] };

static void translations_are_the_likeliest_as_the_model_was_taught(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++)
        for (int half = 0; half < 2; half++) {
            att_seq2seq_free(write_model(kind, half ? ATT_F16 : 0));
            att_translator *m = open_translator(ctx);
            att_translation out[TEXTS];
            if (att_translate(m, TEXTS, texts, NULL, ATT_OPTIONS(att_translate_options, .beam = 1), out))
                fail_msg("%s", att_error(ctx));
            for (int i = 0; i < TEXTS; i++) {
                if (*texts[i])
                    check_greedy(m, texts[i], &out[i], 0);
                else
                    assert_int_equal(out[i].text.bytes, 0);
                att_translation_free(ctx, &out[i]);
            }
            att_translator_free(m);
        }
}

static void what_follows_a_forced_beginning_is_the_likeliest(void **state)
{
    (void)state;
    static const int32_t prefix[] = {5, 7, 9, 11, 4, 6};
    static const int64_t offsets[TEXTS + 1] = {0, 2, 2, 5, 6, 6};
    const att_translate_options *o =
        ATT_OPTIONS(att_translate_options, .beam = 1, .prefix_ids = prefix, .prefix_offsets = offsets);
    for (int kind = 0; kind < KINDS; kind++) {
        att_seq2seq_free(write_model(kind, 0));
        att_translator *m = open_translator(ctx);
        att_translation out[TEXTS];
        if (att_translate(m, TEXTS, texts, NULL, o, out))
            fail_msg("%s", att_error(ctx));
        for (int i = 0; i < TEXTS; i++) {
            const int64_t forced = offsets[i + 1] - offsets[i];
            assert_in_range(out[i].tokens.count, forced, POSITIONS - 1);
            assert_memory_equal(out[i].tokens.ids, prefix + offsets[i], (size_t)forced * sizeof *prefix);
            if (*texts[i])
                check_greedy(m, texts[i], &out[i], forced);
            att_translation_free(ctx, &out[i]);
        }
        att_translator_free(m);
    }
}

static void beams_are_the_same_alone_and_in_company(void **state)
{
    (void)state;
    const att_translate_options *o = ATT_OPTIONS(att_translate_options, .beam = 3, .n_best = 2, .max_tokens = 7);
    for (int kind = 0; kind < KINDS; kind++) {
        att_translation all[2 * TEXTS], one[2];
        att_seq2seq_free(write_model(kind, 0));
        att_translator *m = open_translator(ctx);
        assert_int_equal(att_translate(m, TEXTS, texts, NULL, o, all), ATT_OK);
        for (int i = 0; i < TEXTS; i++) {
            assert_int_equal(att_translate(m, 1, &texts[i], NULL, o, one), ATT_OK);
            for (int k = 0; k < 2; k++) {
                const att_translation *a = &all[2 * i + k];
                assert_int_equal(a->tokens.count, one[k].tokens.count);
                assert_memory_equal(a->tokens.ids, one[k].tokens.ids, (size_t)a->tokens.count * sizeof(int32_t));
                assert_true(a->score == one[k].score);
                att_translation_free(ctx, &one[k]);
                att_translation_free(ctx, &all[2 * i + k]);
            }
        }
        att_translator_free(m);
    }
}

static void a_model_says_what_it_is(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        att_seq2seq_free(write_model(kind, 0));
        att_translator *m = open_translator(ctx);
        att_encoder_decoder_info info = {.size = sizeof info};
        assert_int_equal(att_encoder_decoder_describe(att_translator_model(m), &info), ATT_OK);
        assert_string_equal(info.architecture, "rnn");
        assert_int_equal(info.max_positions, POSITIONS);
        assert_true(info.source_vocabulary == tokens && info.target_vocabulary == tokens);
        assert_true(info.pad == tokens - 1 && info.start == tokens - 1 && info.eos == 0);
        assert_true(info.attention_layers == (kind >= 2) && info.attention_heads == (kind >= 2));
        assert_true(att_nn_params_count(att_translator_params(m)) > 0);
        assert_false(att_nn_params_trainable(att_translator_params(m)));
        att_translator_free(m);
    }
}

/* ---- alignment */

static att_trace *trace(const att_translator *m, const char *text, const int32_t *target, int64_t n,
                        const att_trace_options *o)
{
    att_trace *t;
    if (att_translator_trace(m, text, strlen(text), target, n, o, &t))
        fail_msg("%s", att_error(ctx));
    return t;
}

static void rows_of_an_alignment_sum_to_one_and_do_not_see_what_comes_later(void **state)
{
    (void)state;
    static const int32_t ids[] = {5, 6, 7};
    for (int kind = 2; kind < KINDS; kind++) {
        att_seq2seq_free(write_model(kind, 0));
        att_translator *m = open_translator(ctx);
        att_trace *t = trace(m, texts[1], ids, 3, NULL), *u = trace(m, texts[1], ids, 2, NULL);
        float *a = trace_weights(t, ATT_TRACE_SIDE_CROSS, -1, -1), *b = trace_weights(u, ATT_TRACE_SIDE_CROSS, 0, 0);
        const int64_t columns = trace_info(t).source, rows = trace_info(t).target;
        assert_true(rows == 4 && trace_info(t).attentions == 1);
        for (int64_t i = 0; i < rows; i++) {
            double sum = 0;
            for (int64_t k = 0; k < columns; k++) {
                assert_true(a[i * columns + k] >= 0);
                sum += (double)a[i * columns + k];
            }
            check_near((float)sum, 1, 1e-6 * (double)columns, "kind %d, row %d", kind, (int)i);
        }
        assert_memory_equal(a, b, (size_t)(3 * columns) * sizeof *a);
        assert_memory_not_equal(a, a + columns, (size_t)columns * sizeof *a);
        free(a), free(b);
        att_trace_free(t);
        att_trace_free(u);
        att_translator_free(m);
    }
}

/* A hidden token gets nothing, the others more; without its one head the model hears nothing of the source. */
static void tokens_are_hidden_and_the_head_is_zeroed(void **state)
{
    (void)state;
    static const int32_t ids[] = {5, 6, 7};
    static const int64_t first[] = {0};
    static const att_trace_head head[] = {{ATT_TRACE_SIDE_CROSS, 0, 0}};
    for (int kind = 2; kind < KINDS; kind++) {
        att_seq2seq_free(write_model(kind, 0));
        att_translator *m = open_translator(ctx);
        att_trace *t[] = {trace(m, texts[1], ids, 3, NULL),
                          trace(m, texts[1], ids, 3, ATT_OPTIONS(att_trace_options, .hide = first, .n_hide = 1)),
                          trace(m, texts[1], ids, 3, ATT_OPTIONS(att_trace_options, .zero = head, .n_zero = 1))};
        const att_trace_info info = trace_info(t[0]);
        const size_t bytes = (size_t)(info.output_rows * info.outputs) * sizeof(float);
        float *logits[] = {trace_output(t[0], -1), trace_output(t[1], -1), trace_output(t[2], -1)},
              *w = trace_weights(t[1], ATT_TRACE_SIDE_CROSS, 0, 0);
        assert_memory_not_equal(logits[0], logits[1], bytes);
        assert_memory_not_equal(logits[0], logits[2], bytes);
        trace_check_rows(w, info.target, info.source);
        for (int64_t i = 0; i < info.target; i++)
            assert_true(w[i * info.source] <= 0);
        for (int i = 0; i < 3; i++) {
            free(logits[i]);
            att_trace_free(t[i]);
        }
        free(w);
        att_translator_free(m);
    }
}

static void what_cannot_be_is_named(void **state)
{
    (void)state;
    att_trace *a;
    att_translation out;
    att_seq2seq_free(write_model(0, 0));
    att_translator *m = open_translator(ctx);
    assert_int_equal(att_translator_trace(m, "a", 1, NULL, 0, NULL, &a), ATT_ERR_UNSUPPORTED);
    assert_null(a);
    check_message(ctx, "there is no alignment: the model has no attention, but one fixed context of a text");
    const char *text = "a b c d e f g h i j k l m n o p q r s t u v w x y z";
    assert_int_equal(att_translate(m, 1, &text, NULL, NULL, &out), ATT_ERR_ARGUMENT);
    check_message(ctx, "24");
    att_translator_free(m);
    att_seq2seq_free(write_model(2, 0));
    m = open_translator(ctx);
    a = trace(m, "a", NULL, 0, NULL);
    assert_int_equal(att_trace_find(a, ATT_TRACE_SIDE_CROSS, 1), -1);
    assert_int_equal(att_trace_find(a, ATT_TRACE_SIDE_DECODER, 0), -1);
    assert_int_equal(att_trace_weights(a, 1, -1, 0, 1, (float[POSITIONS]){0}), ATT_ERR_ARGUMENT);
    check_message(ctx, "i is 1, but the attentions are 0 to 0");
    assert_int_equal(att_trace_output(a, 0, 0, 1, (float[POSITIONS]){0}), ATT_ERR_ARGUMENT);
    att_trace_free(a);
    att_translator_free(m);
    assert_int_equal(
        att_translator_open(ctx, folder.path, ATT_OPTIONS(att_model_options, .weights = ATT_WEIGHT_TYPE_INT8), &m),
        ATT_ERR_UNSUPPORTED);
    check_message(ctx, "recurrent layers have no products of int8 or int4 weights, expected f32, f16 or bf16");
    folder_write(&folder, "config.json", "{\"model_type\": \"bart\"}");
    assert_int_equal(att_translator_open(ctx, folder.path, NULL, &m), ATT_ERR_UNSUPPORTED);
    check_message(ctx,
                  "config.json: \"model_type\" is \"bart\", which is not supported; one of marian and attend-seq2seq");
    folder_write(&folder, "config.json", "{}");
    assert_int_equal(att_translator_open(ctx, folder.path, NULL, &m), ATT_ERR_FORMAT);
    check_message(ctx, "config.json: there is no \"model_type\"");
}

/* ---- memory */

static att_status everything(att_ctx *c)
{
    att_translator *m = NULL;
    att_translation out[2];
    att_trace *a;
    att_status s = att_translator_open(c, folder.path, NULL, &m);
    s = s ? s : att_translate(m, 1, texts, NULL, ATT_OPTIONS(att_translate_options, .n_best = 2), out);
    if (!s) {
        s = att_translator_trace(m, texts[0], strlen(texts[0]), NULL, 0, NULL, &a);
        s = s ? s : att_trace_weights(a, 0, -1, 0, 1, (float[POSITIONS]){0});
        att_trace_free(a);
        att_translation_free(c, &out[0]);
        att_translation_free(c, &out[1]);
    }
    att_translator_free(m);
    return s;
}

static void a_failing_allocation_anywhere_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    att_status s = ATT_ERR_MEMORY;
    att_seq2seq_free(write_model(3, 0));
    for (long at = 1; s; at++) {
        fail_alloc f = {.fail_at = at};
        att_ctx *c;
        s = att_open(&c, ATT_OPTIONS(att_config, .n_threads = 1, .allocator = fail_allocator(&f)));
        if (!s) {
            s = everything(c);
            att_close(c);
        }
        assert_true(s == ATT_ERR_MEMORY || (s == ATT_OK && f.calls < at));
        assert_int_equal(f.live, 0);
    }
}

/* Trains a new model by settings and a file of more, of either architecture, on a pair, and writes it. */
static att_status new_model(att_ctx *c, const char *settings, const char *path)
{
    static const int32_t ids[] = {1, 2, 0};
    static const int64_t offsets[] = {0, 3};
    const att_sequence_pairs pair = {.size = sizeof pair,
                                     .n = 1,
                                     .source = ids,
                                     .source_offsets = offsets,
                                     .target = ids,
                                     .target_offsets = offsets};
    att_encoder_decoder *m = NULL;
    att_tape *t = NULL;
    att_status s = att_encoder_decoder_new(c, settings, path, 5, 1, &m);
    s = s ? s : att_tape_new(c, ATT_OPTIONS(att_tape_config, .record = true), &t);
    att_var *loss = s ? NULL : att_encoder_decoder_loss(t, m, &pair, NULL);
    s = s ? s : att_tape_backward(t, loss, NULL);
    att_tape_free(t);
    s = s ? s : att_encoder_decoder_write(m, folder.path, NULL);
    att_model_free(m);
    return s;
}

static void a_new_model_is_made_and_written_or_leaks_nothing(void **state)
{
    (void)state;
    static const char *const given[][2] = {
        {"{\"model_type\": \"attend-seq2seq\", \"embedding_size\": 4, \"num_layers\": 2}", "{\"hidden_size\": 6}"},
        {"{\"d_model\": 8, \"encoder_layers\": 1, \"decoder_layers\": 1}",
         "{\"encoder_ffn_dim\": 6, \"decoder_ffn_dim\": 6}"}};
    char path[256];
    snprintf(path, sizeof path, "%s/sizes.json", folder.path);
    for (int i = 0; i < 2; i++) {
        att_status s = ATT_ERR_MEMORY;
        folder_write(&folder, "sizes.json", given[i][1]);
        for (long at = 1; s; at++) {
            fail_alloc f = {0};
            att_ctx *c = fail_open(&f);
            f.fail_at = f.calls + at;
            s = new_model(c, given[i][0], path);
            if (s && s != ATT_ERR_MEMORY)
                fail_msg("failing at %ld: %s", at, att_error(c));
            att_close(c);
            assert_int_equal(f.live, 0);
            assert_true(at < 2000);
        }
        att_encoder_decoder *m;
        assert_int_equal(att_encoder_decoder_open(ctx, folder.path, NULL, &m), ATT_OK);
        att_model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(translations_are_the_likeliest_as_the_model_was_taught),
        cmocka_unit_test(what_follows_a_forced_beginning_is_the_likeliest),
        cmocka_unit_test(beams_are_the_same_alone_and_in_company),
        cmocka_unit_test(a_model_says_what_it_is),
        cmocka_unit_test(rows_of_an_alignment_sum_to_one_and_do_not_see_what_comes_later),
        cmocka_unit_test(tokens_are_hidden_and_the_head_is_zeroed),
        cmocka_unit_test(what_cannot_be_is_named),
        cmocka_unit_test(a_new_model_is_made_and_written_or_leaks_nothing),
        cmocka_unit_test(a_failing_allocation_anywhere_is_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
