/* attend attention on texts and histories: what is printed is what traces have; wrong options. */
#include "fixtures/context.h"
#include "fixtures/recommender_tool.h"
#include "fixtures/trace_rows.h"
#include "fixtures/translator_tool.h"
#include "attend_language.h"
#include "attend_sentence.h"

#include <math.h>

/* $D: a sentence model; $L: a language model, whose tokens are letters; $T: a translator; $S: a recurrent one; $N: one
 * without attention; $R: a recommender; $W: one of long histories; $B: one of both directions; $Z: a damaged one */
static const char text[] = "bdcab", german[] = "ein haus";

static void write_recurrent(const char *name, const char *variable, att_seq2seq_attention attention)
{
    att_seq2seq *m;
    test_folder f;
    snprintf(f.path, sizeof f.path, "%.40s/%.10s", tool_model.path, name);
    assert_int_equal(mkdir(f.path, 0777), 0);
    const int64_t tokens = write_marian_files(ctx, &f);
    const att_seq2seq_config config = {.size = sizeof config,
                                       .source_vocabulary = tokens,
                                       .target_vocabulary = tokens,
                                       .embedding = 6,
                                       .units = 8,
                                       .layers = 1,
                                       .max_positions = 24,
                                       .pad = tokens - 1,
                                       .start = tokens - 1,
                                       .share = true,
                                       .attention = attention};
    assert_int_equal(att_seq2seq_new(ctx, &config, 1, &m), ATT_OK);
    const att_encoder_decoder_write_options *o =
        ATT_OPTIONS(att_encoder_decoder_write_options, .dtype = ATT_F32, .beam = 1);
    assert_int_equal(att_encoder_decoder_write(att_seq2seq_as_encoder_decoder(m), f.path, o), ATT_OK);
    att_seq2seq_free(m);
    setenv(variable, f.path, 1);
}

static void write_recommender(const char *variable, const char *type, int positions, bool damaged)
{
    att_recommender *m;
    char path[96], settings[256];
    const char *name;
    snprintf(settings, sizeof settings,
             "{\"model_type\": \"attend-%s\", \"hidden_size\": 8, \"num_attention_heads\": 2, "
             "\"max_position_embeddings\": %d}",
             type, positions);
    assert_int_equal(att_recommender_new(ctx, settings, SHOP_ITEMS, shop_ids, NULL, 3, &m), ATT_OK);
    att_param *p;
    for (int64_t k = 0; damaged && (p = att_nn_params_at(att_recommender_params(m), k, &name)); k++) {
        check_fill(att_param_value(p)->data, att_count(att_param_value(p)), 1, 1e30f, 3e38f);
        att_param_invalidate(p);
    }
    snprintf(path, sizeof path, "%s/recommender_%s", tool_model.path, variable);
    assert_int_equal(att_recommender_write(m, path, ATT_F32), ATT_OK);
    att_recommender_free(m);
    setenv(variable, path, 1);
}

static int set_up(void **state)
{
    char *llama = realpath("tests/golden/tiny_llama", NULL);
    assert_int_equal(open_context(state) || translator_setup(state), 0);
    shop_setup();
    setenv("L", llama, 1);
    free(llama);
    write_recurrent("rnn", "S", ATT_SEQ2SEQ_ADDITIVE);
    write_recurrent("plain", "N", ATT_SEQ2SEQ_NONE);
    write_recommender("W", "sasrec", 600, false);
    write_recommender("B", "bert4rec", 5, false);
    write_recommender("Z", "sasrec", 5, true);
    return 0;
}

static int tear_down(void **state) { return tool_teardown(state) || close_context(state); }

/* ---- Traces of the library -------------------------------------------------------- */

typedef struct traced {
    char kind; /* of $D, $L, ... */
    att_any_model *model;
    const att_tokenizer *tokenizer; /* or NULL */
    att_trace *trace;
    int32_t *target;
    int64_t n_target;
} traced;

static void translate(traced *t, const att_translator *m)
{
    const char *texts[] = {german};
    att_translation out;
    assert_int_equal(att_translate(m, 1, texts, NULL, NULL, &out), ATT_OK);
    t->n_target = out.tokens.count;
    t->target = malloc((size_t)(t->n_target + 1) * sizeof *t->target);
    memcpy(t->target, out.tokens.ids, (size_t)t->n_target * sizeof *t->target);
    att_translation_free(ctx, &out);
}

static void trace(traced *t, const att_trace_options *o)
{
    static const int32_t items[] = {0, 1, 7};
    const char kind = t->kind;
    att_trace_free(t->trace);
    const bool history = kind == 'R' || kind == 'B';
    if (kind == 'D')
        assert_int_equal(att_sentence_trace(att_any_model_as(t->model, ATT_SUBJECT_SENTENCE), text, 5, o, &t->trace),
                         ATT_OK);
    else if (kind == 'L')
        assert_int_equal(att_language_trace(att_any_model_as(t->model, ATT_SUBJECT_LANGUAGE), text, 5, o, &t->trace),
                         ATT_OK);
    else if (history)
        assert_int_equal(
            att_recommender_trace(att_any_model_as(t->model, ATT_SUBJECT_RECOMMEND), 3, items, o, &t->trace), ATT_OK);
    else
        assert_int_equal(att_translator_trace(att_any_model_as(t->model, ATT_SUBJECT_TRANSLATE), german, strlen(german),
                                              t->target, t->n_target, o, &t->trace),
                         ATT_OK);
}

static traced open_traced(char kind, const att_trace_options *o)
{
    const char name[] = {kind, '\0'};
    traced t = {.kind = kind};
    if (att_any_model_open(ctx, getenv(name), ATT_SUBJECT_NONE, NULL, &t.model))
        fail_msg("%s", att_error(ctx));
    if (kind == 'T' || kind == 'S')
        translate(&t, att_any_model_as(t.model, ATT_SUBJECT_TRANSLATE));
    if (kind == 'L')
        t.tokenizer = att_text_generator_tokenizer(att_any_model_as(t.model, ATT_SUBJECT_LANGUAGE));
    trace(&t, o);
    return t;
}

static void close_traced(traced *t)
{
    att_trace_free(t->trace);
    att_any_model_free(t->model);
    free(t->target);
}

/* ---- What is run ------------------------------------------------------------------- */

static const char *argument_of(char kind)
{
    return kind == 'R' || kind == 'B' ? "apple,pear,fig" : kind == 'T' || kind == 'S' ? german : text;
}

/* Its line of JSON */
static json_t *run(char kind, const char *options)
{
    char line[256];
    snprintf(line, sizeof line, "$A attention -m $%c --json %s '%s'", kind, options, argument_of(kind));
    if (tool(line))
        fail_msg("%s: %s", line, tool_err);
    return line_json(0);
}

static void refused(const char *line, const char *part) { assert_refused(line, 2, part); }

static double at(const json_t *array, int64_t i) { return json_number_value(json_array_get(array, (size_t)i)); }

static void check_matrix(const json_t *rows, const float *weights, int64_t n, int64_t columns)
{
    assert_int_equal(json_array_size(rows), n);
    for (int64_t i = 0; i < n; i++) {
        const json_t *row = json_array_get(rows, (size_t)i);
        assert_int_equal(json_array_size(row), columns);
        for (int64_t k = 0; k < columns; k++)
            assert_true((float)at(row, k) == weights[i * columns + k]);
    }
}

/* ---- Weights ----------------------------------------------------------------------- */

static void weights_of_all_kinds_and_sides_are_those_of_the_trace(void **state)
{
    (void)state;
    static const struct {
        char kind;
        const char *options;
        att_trace_side side;
        int64_t layer, head;
    } cases[] = {{'D', "", ATT_TRACE_SIDE_ENCODER, 1, 0},
                 {'D', "--side encoder -l 0 -H 2", ATT_TRACE_SIDE_ENCODER, 0, 2},
                 {'L', "", ATT_TRACE_SIDE_DECODER, 1, 0},
                 {'L', "--layer 0 --head 1", ATT_TRACE_SIDE_DECODER, 0, 1},
                 {'T', "", ATT_TRACE_SIDE_CROSS, -1, -1},
                 {'T', "--side cross --layer 0 --head 1", ATT_TRACE_SIDE_CROSS, 0, 1},
                 {'T', "--side encoder", ATT_TRACE_SIDE_ENCODER, -1, -1},
                 {'T', "--side decoder --head 0", ATT_TRACE_SIDE_DECODER, -1, 0},
                 {'S', "", ATT_TRACE_SIDE_CROSS, 0, -1},
                 {'R', "", ATT_TRACE_SIDE_DECODER, -1, -1},
                 {'R', "--head 1", ATT_TRACE_SIDE_DECODER, -1, 1},
                 {'B', "", ATT_TRACE_SIDE_ENCODER, -1, -1},
                 {'B', "--layer 0 --head 1", ATT_TRACE_SIDE_ENCODER, 0, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        traced t = open_traced(cases[i].kind, NULL);
        const att_trace_attention_info a = trace_attention(t.trace, cases[i].side, cases[i].layer);
        float *weights = trace_weights(t.trace, cases[i].side, cases[i].layer, cases[i].head);
        json_t *v = run(cases[i].kind, cases[i].options);
        check_matrix(json_object_get(v, "weights"), weights, a.queries, a.keys);
        assert_int_equal((int64_t)number(v, "layer"), a.layer);
        assert_int_equal(json_is_integer(json_object_get(v, "head")), cases[i].head >= 0);
        const bool cross = cases[i].side == ATT_TRACE_SIDE_CROSS,
                   shifted = cases[i].kind == 'T' && cases[i].side == ATT_TRACE_SIDE_DECODER;
        assert_int_equal(json_array_size(json_object_get(v, cross ? "source" : shifted ? "keys" : "tokens")), a.keys);
        if (cross || shifted)
            assert_int_equal(json_array_size(json_object_get(v, cross ? "target" : "queries")), a.queries);
        free(weights);
        json_decref(v);
        close_traced(&t);
    }
}

static void a_row_is_that_of_the_matrix(void **state)
{
    (void)state;
    json_t *all = run('L', ""), *row = run('L', "--from 3");
    assert_true(json_equal(json_array_get(json_object_get(all, "weights"), 3), json_object_get(row, "weights")));
    assert_int_equal((int)number(row, "from"), 3);
    json_decref(all);
    json_decref(row);
    assert_int_equal(tool("$A attention -m $L --from 0 bdcab"), 0);
    assert_has(tool_out, "Token 0 \"b\" attends to:\n\n  1.0000      0  b\n  0.0000      1  d\n");
    assert_int_equal(tool("$A attention -m $L --from 0 --svg row.svg bdcab >/dev/null && grep -c '<title>b' row.svg"),
                     0);
    assert_string_equal(tool_out, "5\n");
    refused("$A attention -m $L --from 5 bdcab", "--from: the tokens are 0 to 4, not 5");
}

static void a_given_translation_is_the_target(void **state)
{
    (void)state;
    json_t *v = run('T', "--target 'ein haus'"), *own = run('T', "");
    assert_true(json_array_size(json_object_get(v, "target")) > 2);
    assert_false(json_equal(json_object_get(v, "target"), json_object_get(own, "target")));
    assert_string_equal(json_string_value(json_array_get(json_object_get(v, "target"),
                                                         json_array_size(json_object_get(v, "target")) - 1)),
                        "</s>");
    json_decref(v);
    json_decref(own);
    assert_int_equal(tool("$A attention -m $T --side decoder --target 'ein haus' 'ein haus'"), 0);
    assert_has(tool_out, "(start)");
    refused("$A attention -m $L --target a b", "--target is for translators and captioners");
}

/* ---- Heads ------------------------------------------------------------------------- */

static void small_maps_are_the_largest_weights_of_all_heads(void **state)
{
    (void)state;
    static const struct {
        char kind;
        const char *options;
        att_trace_side side;
    } cases[] = {{'L', "--heads", ATT_TRACE_SIDE_DECODER}, {'T', "--heads --side encoder", ATT_TRACE_SIDE_ENCODER}};
    for (size_t i = 0; i < 2; i++) {
        traced t = open_traced(cases[i].kind, NULL);
        const att_trace_attention_info a = trace_attention(t.trace, cases[i].side, 0);
        const int64_t layers = trace_info(t.trace).layers[cases[i].side], size = a.queries * a.keys;
        uint8_t *cells = malloc((size_t)size);
        float largest;
        json_t *v = run(cases[i].kind, cases[i].options), *heads = json_object_get(v, "heads");
        assert_int_equal(json_array_size(heads), layers * a.heads);
        for (int64_t h = 0; h < layers * a.heads; h++) {
            const json_t *head = json_array_get(heads, (size_t)h), *parts = json_object_get(head, "parts");
            assert_int_equal(att_trace_pooled(t.trace, att_trace_find(t.trace, cases[i].side, h / a.heads), h % a.heads,
                                              a.queries, a.keys, cells, &largest),
                             ATT_OK);
            assert_int_equal((int64_t)number(head, "layer") * a.heads + (int64_t)number(head, "head"), h);
            assert_true((float)number(head, "largest") == largest);
            for (int64_t k = 0; k < size; k++)
                assert_int_equal((int)at(json_array_get(parts, (size_t)(k / a.keys)), k % a.keys), cells[k]);
        }
        free(cells);
        json_decref(v);
        close_traced(&t);
    }
    assert_int_equal(tool("$A attention -m $L --heads --svg heads.svg bdcab && grep -c '<image' heads.svg"), 0);
    assert_has(tool_out, "layer 0  ");
    assert_has(tool_out, "\n         0     1     2     3\n");
    assert_has(tool_out, "\n8\n"); /* two layers of four heads */
    assert_int_equal(tool("COLUMNS=20 $A attention -m $L --heads bdcab"), 0);
    assert_has(tool_out, "\n         0     1\nlayer 1");
}

/* ---- One weight -------------------------------------------------------------------- */

static void the_terms_of_a_weight_are_those_of_the_trace(void **state)
{
    (void)state;
    traced t = open_traced('L', NULL);
    const int64_t index = att_trace_find(t.trace, ATT_TRACE_SIDE_DECODER, 1);
    json_t *v = run('L', "--pair 3,1"), *heads = json_object_get(v, "heads");
    assert_string_equal(json_string_value(json_object_get(v, "query")), "a");
    assert_string_equal(json_string_value(json_object_get(v, "key")), "d");
    assert_int_equal(json_array_size(heads), 4);
    for (int64_t h = 0; h < 4; h++) {
        att_trace_pair p = {.size = sizeof p};
        const json_t *head = json_array_get(heads, (size_t)h), *stages = json_object_get(head, "stages");
        double product = 0;
        assert_int_equal(att_trace_pair_of(t.trace, index, h, 3, 1, &p), ATT_OK);
        for (int64_t k = 0; k < p.dim; k++)
            product += at(json_object_get(head, "q"), k) * at(json_object_get(head, "k"), k);
        assert_true(fabs(number(head, "product") - product) < 1e-5 * (1 + fabs(product)));
        assert_true(fabs(number(head, "score") - p.score) < 1e-7 * (1 + fabs(p.score)));
        assert_true(fabs(number(head, "weight") - p.weight) < 1e-8);
        assert_true(fabs(number(head, "log_sum_exp") - p.log_sum_exp) < 1e-7 * (1 + fabs(p.log_sum_exp)));
        assert_true((float)number(head, "value_length") == p.value_length);
        assert_int_equal(json_array_size(stages), p.n_stages);
        for (int i = 0; i < p.n_stages; i++)
            assert_string_equal(json_string_value(json_object_get(json_array_get(stages, (size_t)i), "name")),
                                p.stage[i]);
    }
    json_decref(v);
    close_traced(&t);
}

static void what_masks_a_pair_is_named(void **state)
{
    (void)state;
    json_t *v = run('L', "--pair 1,3 --layer 0 --head 2"), *heads = json_object_get(v, "heads");
    const json_t *head = json_array_get(heads, 0);
    assert_int_equal(json_array_size(heads), 1);
    assert_int_equal((int)number(head, "head"), 2);
    assert_string_equal(json_string_value(json_object_get(head, "masked_by")), "causal");
    assert_true(number(head, "weight") == 0);
    json_decref(v);
    v = run('D', "--pair 1,2 --hide 2");
    assert_string_equal(json_string_value(json_object_get(json_array_get(json_object_get(v, "heads"), 0), "masked_by")),
                        "boolean");
    json_decref(v);
    assert_int_equal(tool("$A attention -m $L --pair 1,3 bdcab"), 0);
    assert_has(tool_out, "Layer 1 of 0 to 1: query 1 \"d\", key 3 \"a\".\n\nhead      q . k     scaled     causal");
    assert_has(tool_out, "     masked  ");
    assert_int_equal(count(tool_out, "\n"), 7);
    assert_int_equal(tool("$A attention -m $S --pair 0,0 'ein haus'"), 0);
    assert_has(tool_out, "additive");
    refused("$A attention -m $L --pair 3 a", "--pair: \"3\" is not Q,K, the numbers of two tokens");
    refused("$A attention -m $L --pair 1,2,3 a", "--pair: \"1,2,3\" is not Q,K");
    refused("$A attention -m $L --pair -1,2 a", "--pair: \"-1,2\" is not Q,K");
    refused("$A attention -m $L --pair 5,0 bdcab", "--pair: the queries are 0 to 4, not 5");
    refused("$A attention -m $L --pair 0,9 bdcab", "--pair: the keys are 0 to 4, not 9");
}

/* ---- Without tokens and heads -------------------------------------------------------- */

/* Of a row of the result: its probabilities, or what it is */
static double *result_row(const traced *t, int64_t row, bool softmax)
{
    const int64_t n = trace_info(t->trace).outputs;
    float *x = trace_output(t->trace, -1), *from = x + row * n;
    double *y = malloc((size_t)n * sizeof *y), max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        max = fmax(max, (double)from[i]);
    for (int64_t i = 0; i < n; i++)
        sum += y[i] = exp((double)from[i] - max);
    for (int64_t i = 0; i < n; i++)
        y[i] = softmax ? y[i] / sum : (double)from[i];
    free(x);
    return y;
}

static void the_next_token_with_and_without_is_that_of_the_traces(void **state)
{
    (void)state;
    static const int64_t hide[] = {1, 3};
    static const att_trace_head zero[] = {{ATT_TRACE_SIDE_DECODER, 0, 2}, {ATT_TRACE_SIDE_DECODER, 1, 0}};
    static const struct {
        const char *options;
        int64_t row;
    } cases[] = {{"--hide 1,3 --zero 0.2,1.0", 4}, {"--hide 1 --hide 3 --zero 0.2 --zero 1.0 --from 3", 3}};
    for (int i = 0; i < 2; i++) {
        traced t = open_traced('L', NULL);
        double *with = result_row(&t, cases[i].row, true);
        trace(&t, ATT_OPTIONS(att_trace_options, .hide = hide, .n_hide = 2, .zero = zero, .n_zero = 2));
        double *without = result_row(&t, cases[i].row, true);
        json_t *v = run('L', cases[i].options), *results = json_object_get(v, "results");
        assert_int_equal(json_array_size(results), 5);
        assert_string_equal(json_string_value(json_object_get(v, "measure")), "probability");
        for (size_t k = 0; k < 5; k++) {
            const json_t *r = json_array_get(results, k);
            const char *name = json_string_value(json_object_get(r, "name"));
            const int32_t id = att_tokenizer_find(t.tokenizer, name, strlen(name));
            assert_true(fabs(number(r, "with") - with[id]) < 1e-6);
            assert_true(fabs(number(r, "without") - without[id]) < 1e-6);
        }
        free(with);
        free(without);
        json_decref(v);
        close_traced(&t);
    }
    assert_int_equal(tool("$A attention -m $L --hide 1 --zero 0.2 bdcab"), 0);
    assert_has(tool_out, "Without token 1 \"d\", layer 0 head 2: probabilities of next tokens.\n\n");
    assert_has(tool_out, "with     without\n");
}

static void a_sentence_changes_by_a_cosine(void **state)
{
    (void)state;
    static const int64_t hide[] = {2};
    traced t = open_traced('D', NULL);
    const int64_t n = trace_info(t.trace).outputs;
    double *with = result_row(&t, 0, false), dot = 0, a = 0, b = 0;
    trace(&t, ATT_OPTIONS(att_trace_options, .hide = hide, .n_hide = 1));
    double *without = result_row(&t, 0, false);
    for (int64_t i = 0; i < n; i++)
        dot += with[i] * without[i], a += with[i] * with[i], b += without[i] * without[i];
    json_t *v = run('D', "--hide 2"), *r = json_array_get(json_object_get(v, "results"), 0);
    assert_string_equal(json_string_value(json_object_get(v, "measure")), "cosine");
    assert_true(fabs(number(r, "without") - dot / sqrt(a * b)) < 1e-6);
    assert_true(number(r, "with") == 1 && number(r, "without") < 0.99999);
    free(with);
    free(without);
    json_decref(v);
    close_traced(&t);
}

static void a_target_changes_by_its_log_probability(void **state)
{
    (void)state;
    static const int64_t hide[] = {0};
    static const char kinds[] = {'T', 'S'};
    for (int i = 0; i < 2; i++) {
        traced t = open_traced(kinds[i], NULL);
        json_t *v = run(kinds[i], "--hide 0"), *results = json_object_get(v, "results");
        double sum[2] = {0};
        for (int without = 0; without < 2; without++) {
            if (without)
                trace(&t, ATT_OPTIONS(att_trace_options, .hide = hide, .n_hide = 1));
            const att_trace_info info = trace_info(t.trace);
            assert_int_equal(json_array_size(results), info.target);
            for (int64_t k = 0; k < info.target; k++) {
                double *row = result_row(&t, k, true);
                const double log_p = log(row[info.target_ids[k]]);
                const json_t *r = json_array_get(results, (size_t)k);
                assert_true(fabs(number(r, without ? "without" : "with") - log_p) < 1e-4);
                sum[without] += log_p;
                free(row);
            }
        }
        assert_true(fabs(number(json_object_get(v, "sum"), "with") - sum[0]) < 1e-3);
        assert_true(fabs(number(json_object_get(v, "sum"), "without") - sum[1]) < 1e-3);
        assert_true(sum[0] != sum[1]);
        json_decref(v);
        close_traced(&t);
    }
    assert_int_equal(tool("$A attention -m $T --zero 0.1 'ein haus'"), 0);
    assert_has(tool_out, "Without layer 0 head 1: log probabilities of the target.\n");
    assert_has(tool_out, "\nsum ");
}

static void a_list_changes_by_its_scores(void **state)
{
    (void)state;
    static const int64_t hide[] = {0};
    traced t = open_traced('R', NULL);
    double *with = result_row(&t, 2, false);
    trace(&t, ATT_OPTIONS(att_trace_options, .hide = hide, .n_hide = 1));
    double *without = result_row(&t, 2, false);
    json_t *v = run('R', "--hide 0"), *results = json_object_get(v, "results");
    assert_int_equal(json_array_size(results), 10);
    for (size_t k = 0; k < 10; k++) {
        const json_t *r = json_array_get(results, k);
        const char *name = json_string_value(json_object_get(r, "name"));
        int64_t item = 0;
        while (strcmp(shop_ids[item], name))
            item++;
        assert_true(fabs(number(r, "with") - with[item]) < 1e-6);
        assert_true(fabs(number(r, "without") - without[item]) < 1e-6);
    }
    free(with);
    free(without);
    json_decref(v);
    close_traced(&t);
}

static void the_mask_is_a_token_of_a_recommender_of_both_directions(void **state)
{
    (void)state;
    assert_int_equal(tool("$A attention -m $B --from 3 apple,pear,fig"), 0);
    assert_has(tool_out, "Token 3 \"[MASK]\" attends to:\n");
    assert_int_equal(tool("$A attention -m $B --hide 0 apple,pear,fig"), 0);
    assert_has(tool_out, "Without token 0 \"apple\": scores of items.\n");
    assert_int_equal(count(tool_out, "\n"), 3 + 10);
    assert_int_equal(tool("$A attention -m $B apple,pear,fig,kiwi,lime,oat"), 0);
    assert_has(tool_err, "attend: of the history the last 4 items are used\n");
}

static void results_that_are_not_finite_are_an_error(void **state)
{
    (void)state;
    assert_refused("$A attention -m $Z --logit-lens apple,pear", 1, "not finite");
    assert_refused("$A attention -m $Z --hide 0 apple,pear", 1, "not finite");
    assert_string_equal(tool_out, "");
}

static void lists_of_tokens_and_heads_are_checked(void **state)
{
    (void)state;
    refused("$A attention -m $L --hide 1,x bdcab", "--hide: \"1,x\" is not a list of whole numbers");
    refused("$A attention -m $L --hide '' bdcab", "--hide: \"\" is not a list");
    refused("$A attention -m $L --hide 1, bdcab", "--hide: \"1,\" is not a list");
    refused("$A attention -m $L --hide 5 bdcab", "--hide: the tokens are 0 to 4, not 5");
    refused("$A attention -m $L --zero 1 bdcab", "--zero: \"1\" is not a list of LAYER.HEAD");
    refused("$A attention -m $L --zero 0.1.2 bdcab", "--zero: \"0.1.2\" is not a list of LAYER.HEAD");
    refused("$A attention -m $L --zero 2.0 bdcab", "--zero: the model has the layers 0 to 1, not 2");
    refused("$A attention -m $L --zero 0.4 bdcab", "--zero: the model has the heads 0 to 3, not 4");
    refused("$A attention -m $D --hide 1 --from 2 'a b'", "--from does not go with --hide");
    refused("$A attention -m $T --zero 0.0 --from 0 'ein haus'", "--from does not go with --zero");
}

/* ---- The logit lens ------------------------------------------------------------------ */

static void each_layer_has_what_it_would_have_next(void **state)
{
    (void)state;
    traced t = open_traced('L', ATT_OPTIONS(att_trace_options, .hidden = true));
    double *last = result_row(&t, 4, true);
    const int64_t n = trace_info(t.trace).outputs;
    float *first = trace_output(t.trace, 0);
    json_t *v = run('L', "--logit-lens"), *layers = json_object_get(v, "layers");
    assert_int_equal(json_array_size(layers), 3);
    const json_t *r = json_array_get(json_object_get(json_array_get(layers, 2), "results"), 0);
    for (int64_t i = 0; i < n; i++)
        assert_true(last[i] <= last[(int)number(r, "id")]);
    assert_true(fabs(number(r, "probability") - last[(int)number(r, "id")]) < 1e-6);
    r = json_array_get(json_object_get(json_array_get(layers, 0), "results"), 0);
    for (int64_t i = 0; i < n; i++)
        assert_true(first[4 * n + i] <= first[4 * n + (int)number(r, "id")]);
    json_t *other = run('L', "--logit-lens --from 1");
    assert_false(json_equal(json_object_get(other, "layers"), layers));
    free(last);
    free(first);
    json_decref(v);
    json_decref(other);
    close_traced(&t);
    assert_int_equal(tool("$A attention -m $L --logit-lens bdcab"), 0);
    assert_has(tool_out, "The tokens of largest probability after each number of layers, next to token 4.\n\nlayers\n");
    assert_int_equal(count(tool_out, "\n"), 6);
    assert_int_equal(tool("$A attention -m $R --logit-lens apple && $A attention -m $T --logit-lens 'ein haus'"), 0);
    refused("$A attention -m $D --logit-lens a", "has no logits, but a vector");
    refused("$A attention -m $S --logit-lens 'ein haus'", "has a recurrent decoder");
    refused("$A attention -m $L --logit-lens --from 5 bdcab", "--from: the tokens are 0 to 4, not 5");
}

/* ---- What does not go together ------------------------------------------------------- */

static void options_that_do_not_go_together_are_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"--heads --layer 1", "--layer does not go with --heads"},
        {"--heads -H 1", "--head does not go with --heads"},
        {"--heads --pair 1,1", "--pair does not go with --heads"},
        {"--heads --logit-lens", "--logit-lens does not go with --heads"},
        {"--pair 1,1 --logit-lens", "--logit-lens does not go with --pair"},
        {"--pair 1,1 --from 1", "--from does not go with --pair"},
        {"--pair 1,1 --svg x.svg", "--svg does not go with --pair"},
        {"--logit-lens --layer 1", "--layer does not go with --logit-lens"},
        {"--logit-lens --svg x.svg", "--svg does not go with --logit-lens"},
        {"--hide 1 --layer 1", "--layer does not go with --hide"},
        {"--zero 1.1 --head 1", "--head does not go with --zero"},
        {"--hide 1 --svg x.svg", "--svg does not go with --hide"},
        {"--side up", "--side: \"up\" is none of encoder|decoder|cross"},
        {"--side cross", "--side cross: "},
        {"--layer 2", "--layer: the model has the layers 0 to 1, not 2"},
        {"--head 4", "--head: the model has the heads 0 to 3, not 4"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[128];
        snprintf(line, sizeof line, "$A attention -m $L %s bdcab", cases[i][0]);
        refused(line, cases[i][1]);
    }
    assert_int_equal(tool("test ! -e x.svg"), 0);
    refused("$A attention -m $L --side encoder bdcab", "does not have it, but decoder");
    assert_refused("$A attention -m $N 'ein haus'", 1, "the model has no attention, but one fixed context of a text");
    assert_refused("$A attention -m $R 'apple,rope'", 1, "the history: the model has no item \"rope\"");
    assert_refused("$A attention -m $R ','", 1, "the history has no item");
}

static void a_long_history_is_shown_by_parts(void **state)
{
    (void)state;
    assert_int_equal(tool("seq 700 | sed 's/.*/apple/' | paste -sd, >history; "
                          "$A attention -m $W --svg long.svg \"$(cat history)\" && grep -c '<title>' long.svg"),
                     0);
    assert_has(tool_err, "attend: of the history the last 600 items are used\n");
    assert_has(tool_out, "The text is long: a cell is the largest weight of up to 10 x 10 tokens; --from N shows a "
                         "token.\n");
    assert_has(tool_out, "\n4097\n"); /* 64 x 64, and that of the picture */
    assert_int_equal(tool("$A attention -m $W --from 599 \"$(cat history)\""), 0);
    assert_has(tool_out, "attends to, the 20 largest of 600 weights:\n");
    assert_int_equal(tool("$A attention -m $W --json \"$(cat history)\" | tr ']' '\\n' | wc -l"), 0);
    assert_string_equal(tool_out, "603\n"); /* the tokens, the rows, what these are in, and the end of the line */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_of_all_kinds_and_sides_are_those_of_the_trace),
        cmocka_unit_test(a_row_is_that_of_the_matrix),
        cmocka_unit_test(a_given_translation_is_the_target),
        cmocka_unit_test(small_maps_are_the_largest_weights_of_all_heads),
        cmocka_unit_test(the_terms_of_a_weight_are_those_of_the_trace),
        cmocka_unit_test(what_masks_a_pair_is_named),
        cmocka_unit_test(the_next_token_with_and_without_is_that_of_the_traces),
        cmocka_unit_test(a_sentence_changes_by_a_cosine),
        cmocka_unit_test(a_target_changes_by_its_log_probability),
        cmocka_unit_test(a_list_changes_by_its_scores),
        cmocka_unit_test(the_mask_is_a_token_of_a_recommender_of_both_directions),
        cmocka_unit_test(results_that_are_not_finite_are_an_error),
        cmocka_unit_test(lists_of_tokens_and_heads_are_checked),
        cmocka_unit_test(each_layer_has_what_it_would_have_next),
        cmocka_unit_test(options_that_do_not_go_together_are_refused),
        cmocka_unit_test(a_long_history_is_shown_by_parts),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
