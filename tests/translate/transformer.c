/* The Transformer of MarianMTModel: logits and searches as transformers has them; token by token; folders that are
 * wrong. */
#include "fixtures/check.h"
#include "fixtures/context.h"
#include "fixtures/fail_alloc.h"
#include "decoder/beam_search.h"
#include "translate/transformer.h"
#include "fixtures/tiny_marian.h"

/* Those of make_tiny_marian.py; targets with a start before them, which is the model's last token. */
static const int32_t sources[] = {5, 9, 11, 7, 0, 0, 3, 29, 28, 1, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 0};
static const int64_t source_offsets[] = {0, 5, 6, 22};
static const int32_t targets[] = {-1, 3, 4, 20, -1, 25, -1, 1, 2, 24, 5, 6, 21, 8};
static const int64_t target_offsets[] = {0, 4, 6, 14};
enum { N = 3, TARGETS = 14 };

static int64_t target_tokens(const att_transformer *m)
{
    att_transformer_info info = {.size = sizeof info};
    assert_int_equal(att_transformer_describe(m, &info), ATT_OK);
    return info.target_vocabulary;
}

/* The targets as the model has them. */
static void fill_targets(const att_transformer *m, int32_t ids[TARGETS])
{
    for (int i = 0; i < TARGETS; i++)
        ids[i] = targets[i] < 0 ? (int32_t)target_tokens(m) - 1 : targets[i];
}

/* Logits of sequences [first, last), all at once -> y [tokens, target_tokens] */
static void decode(att_ctx *c, const att_transformer *m, int first, int last, float *y)
{
    int32_t ids[TARGETS];
    int64_t from[N + 1], to[N + 1];
    att_tape *t;
    att_tensor x;
    fill_targets(m, ids);
    for (int i = first; i <= last; i++) {
        from[i - first] = source_offsets[i] - source_offsets[first];
        to[i - first] = target_offsets[i] - target_offsets[first];
    }
    assert_int_equal(att_tape_new(c, NULL, &t), ATT_OK);
    att_var *s = att_transformer_encode(t, m, sources + source_offsets[first], from, last - first);
    if (att_var_value(t, att_transformer_decode(t, m, s, from, ids + target_offsets[first], to, last - first), &x))
        fail_msg("%s", att_error(c));
    assert_int_equal(x.rank, 2);
    assert_int_equal(x.dim[0], to[last - first]);
    assert_int_equal(x.dim[1], target_tokens(m));
    memcpy(y, x.data, (size_t)(x.dim[0] * x.dim[1]) * sizeof *y);
    att_tape_free(t);
}

/* ---- as transformers has it */

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static int64_t whole_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static bool is_true(const json_t *object, const char *key) { return json_is_true(json_object_get(object, key)); }

/* Is the setting there, and false? */
static bool is_off(const json_t *object, const char *key) { return json_is_false(json_object_get(object, key)); }

/* Makes the folder of a golden line. */
static test_folder golden_folder(const json_t *line)
{
    const json_t *config = json_object_get(line, "config");
    const test_folder f = folder_new();
    json_t *written = json_copy((json_t *)config);
    json_object_set_new(written, "model_type", json_string("marian"));
    FILE *file = folder_open(&f, "config.json");
    assert_int_equal(json_dumpf(written, file, 0), 0);
    assert_int_equal(fclose(file), 0);
    json_decref(written);
    marian_write_weights(&f, NULL,
                         &(const tiny_tables){.tokens = whole_of(config, "vocab_size"),
                                              .target_tokens = whole_of(config, "decoder_vocab_size"),
                                              .output = is_off(config, "tie_word_embeddings"),
                                              .no_bias = is_off(line, "bias")});
    return f;
}

static void check_logits(const att_transformer *m, const json_t *line)
{
    static float y[TARGETS * MARIAN_TOKENS];
    const json_t *rows = json_object_get(line, "logits"), *row;
    const int64_t tokens = target_tokens(m);
    size_t i;
    decode(ctx, m, 0, N, y);
    assert_int_equal(json_array_size(rows), TARGETS);
    json_array_foreach(rows, i, row)
    {
        assert_int_equal(json_array_size(row), tokens);
        for (int64_t k = 0; k < tokens; k++) /* both in f32: hidden states of order 1 through eight norms; each of them
                                              * may double an error, and a sum of 24 products with tables up to 1.5 */
            check_near(y[i * (size_t)tokens + (size_t)k], json_number_value(json_array_get(row, (size_t)k)), 4e-5,
                       "%s: logit %zu, %d", text_of(json_object_get(line, "config"), "activation_function"), i, (int)k);
    }
}

/* Sources [first, last) -> found [last - first][n_best]; frees nothing. */
static att_status search(att_ctx *c, const att_transformer *m, const att_search *how, int first, int last,
                         att_finished *found)
{
    int64_t from[N + 1];
    for (int i = first; i <= last; i++)
        from[i - first] = source_offsets[i] - source_offsets[first];
    att_generator g;
    att_status e = att_transformer_architecture.start((const att_encoder_decoder *)m, sources + source_offsets[first],
                                                      from, last - first, &g);
    e = e ? e : att_search_run(&(const att_model){.ctx = c}, how, &g, last - first, found);
    if (g.free)
        g.free(g.user);
    return e;
}

static void free_found(att_ctx *c, att_finished *found, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        att_free(c, found[i].ids);
}

enum { MOST_BEST = 12, MOST_BANNED = 4, MOST_FORCED = 8 };

static att_search golden_search(const att_transformer *m, const json_t *how, int32_t banned[MOST_BANNED])
{
    const json_t *list = json_object_get(how, "banned");
    for (size_t i = 0; i < json_array_size(list); i++)
        banned[i] = (int32_t)json_integer_value(json_array_get(list, i));
    return (att_search){.vocabulary = target_tokens(m),
                        .beam = whole_of(how, "beam"),
                        .n_best = whole_of(how, "n_best"),
                        .min_tokens = whole_of(how, "min_tokens"),
                        .max_tokens = whole_of(how, "max_tokens"),
                        .length_penalty = json_number_value(json_object_get(how, "length_penalty")),
                        .start = (int32_t)target_tokens(m) - 1,
                        .end = 0,
                        .early_stopping = is_true(how, "early_stopping"),
                        .force_end = is_true(how, "force_end"),
                        .renormalize = is_true(how, "renormalize"),
                        .banned = banned,
                        .n_banned = (int64_t)json_array_size(list)};
}

/* Forced beginnings of the sources; lists or NULL: none */
static void golden_prefixes(const json_t *lists, int32_t prefix[MOST_FORCED], int64_t offsets[N + 1], att_search *s)
{
    int64_t n = 0;
    for (size_t i = 0; i < json_array_size(lists); i++) {
        const json_t *list = json_array_get(lists, i);
        offsets[i] = n;
        for (size_t k = 0; k < json_array_size(list); k++)
            prefix[n++] = (int32_t)json_integer_value(json_array_get(list, k));
    }
    offsets[N] = n;
    s->prefix = prefix;
    s->prefix_offsets = lists ? offsets : NULL;
}

static void check_found(const att_finished *f, const json_t *expected, const char *what)
{
    const json_t *ids = json_object_get(expected, "ids"), *score = json_object_get(expected, "score");
    if (!expected) { /* there is no more */
        assert_null(f->ids);
        return;
    }
    bool same = f->ids && f->count == (int64_t)json_array_size(ids);
    for (int64_t i = 0; same && i < f->count; i++)
        same = f->ids[i] == json_integer_value(json_array_get(ids, (size_t)i));
    if (!same)
        fail_msg("%s: not the ids of transformers", what);
    const double s = json_number_value(score);
    if (json_is_number(score)) /* sums of twelve logs of probabilities, each from logits as far off as above */
        check_near((float)f->score, s, 4e-5 * fmax(1, fabs(s)), "%s: score", what);
}

static void check_searches(const att_transformer *m, const json_t *line)
{
    const json_t *searches = json_object_get(line, "searches"), *one;
    size_t i;
    json_array_foreach(searches, i, one)
    {
        att_finished found[N * MOST_BEST] = {{0}};
        int32_t banned[MOST_BANNED], prefix[MOST_FORCED];
        int64_t prefix_offsets[N + 1];
        const json_t *how = json_object_get(one, "how"), *expected = json_object_get(one, "found");
        att_search s = golden_search(m, how, banned);
        golden_prefixes(json_object_get(one, "prefixes"), prefix, prefix_offsets, &s);
        char *what = json_dumps(how, 0);
        if (search(ctx, m, &s, 0, N, found))
            fail_msg("%s", att_error(ctx));
        for (int k = 0; k < N * s.n_best; k++)
            check_found(&found[k],
                        json_array_get(json_array_get(expected, (size_t)(k / s.n_best)), (size_t)(k % s.n_best)), what);
        free_found(ctx, found, N * s.n_best);
        free(what);
    }
}

/* All lines but the last, which is of texts. */
static void logits_and_searches_are_those_of_transformers(void **state)
{
    (void)state;
    FILE *golden = fopen("tests/golden/tiny_marian.jsonl", "r");
    assert_non_null(golden);
    int models = 0;
    for (json_t *line; (line = json_loadf(golden, JSON_DISABLE_EOF_CHECK, NULL)); json_decref(line)) {
        if (json_object_get(line, "texts"))
            continue;
        const test_folder f = golden_folder(line);
        att_transformer *m = open_model(ctx, &f);
        check_logits(m, line);
        check_searches(m, line);
        att_transformer_free(m);
        folder_remove(&f);
        models++;
    }
    assert_int_equal(models, 5);
    fclose(golden);
}

/* ---- the same bits, whatever way */

/* Logits of what follows ids [rows]. */
static att_var *next_logits(const att_generator *g, att_tape *t, const int32_t *ids)
{
    return att_nn_linear_apply(t, g->output, g->step(g->user, t, ids), ATT_ACTIVATION_IDENTITY, NULL);
}

static void token_by_token_gives_the_bits_of_all_at_once(void **state)
{
    (void)state;
    enum { V = MARIAN_TOKENS };
    const test_folder f = tiny_marian();
    att_transformer *m = open_model(ctx, &f);
    int32_t ids[TARGETS];
    float expected[TARGETS * V];
    fill_targets(m, ids);
    decode(ctx, m, 0, N, expected);
    att_generator s;
    att_tape *t;
    assert_int_equal(
        att_transformer_architecture.start(att_transformer_as_encoder_decoder(m), sources, source_offsets, N, &s),
        ATT_OK);
    assert_int_equal(att_tape_new(ctx, NULL, &t), ATT_OK);
    int64_t sequence[2 * N] = {0, 1, 2}, rows = N; /* which each row is of */
    for (int64_t at = 0; rows > 0; at++) {
        int32_t next[2 * N];
        int64_t from[2 * N], n = 0;
        att_tensor x;
        for (int64_t b = 0; b < rows; b++)
            next[b] = ids[target_offsets[sequence[b]] + at];
        assert_int_equal(att_var_value(t, next_logits(&s, t, next), &x), ATT_OK);
        assert_int_equal(x.dim[0], rows);
        for (int64_t b = 0; b < rows; b++)
            assert_memory_equal((const float *)x.data + b * V, expected + (target_offsets[sequence[b]] + at) * V,
                                V * sizeof *expected);
        att_tape_reset(t);
        for (int64_t b = 0; b < rows; b++) /* those that continue, in the first step twice, and then of one only one */
            for (int k = 0; k < 1 + (at == 0) - (at == 1 && b == 0); k++)
                if (target_offsets[sequence[b]] + at + 1 < target_offsets[sequence[b] + 1])
                    from[n++] = b;
        for (int64_t b = 0; b < n; b++)
            sequence[b] = sequence[from[b]]; /* from[b] is b or more, or they are the same */
        if (n > rows)
            for (int64_t b = n; b-- > 0;)
                sequence[b] = b / 2;
        assert_int_equal(n > 0 ? s.select(s.user, n, from) : ATT_OK, ATT_OK);
        rows = n;
    }
    att_tape_free(t);
    s.free(s.user);
    att_transformer_free(m);
    folder_remove(&f);
}

static void any_threads_and_any_company_give_the_same_bits(void **state)
{
    (void)state;
    enum { V = MARIAN_TOKENS };
    const test_folder f = tiny_marian();
    const att_search how = {.vocabulary = V,
                            .beam = 3,
                            .n_best = 3,
                            .max_tokens = 12,
                            .length_penalty = 1,
                            .start = V - 1,
                            .force_end = true};
    float expected[TARGETS * V], y[TARGETS * V];
    att_finished best[N * 3] = {{0}}, found[N * 3] = {{0}};
    att_ctx *first;
    assert_int_equal(att_open(&first, ATT_OPTIONS(att_config, .n_threads = 1)), ATT_OK);
    att_transformer *model = open_model(first, &f);
    decode(first, model, 0, N, expected);
    assert_int_equal(search(first, model, &how, 0, N, best), ATT_OK);
    for (int threads = 1; threads <= 5; threads += 2) {
        att_ctx *c;
        assert_int_equal(att_open(&c, ATT_OPTIONS(att_config, .n_threads = threads)), ATT_OK);
        att_transformer *m = open_model(c, &f);
        decode(c, m, 0, N, y);
        assert_memory_equal(y, expected, sizeof y);
        for (int i = 0; i < N; i++) {
            decode(c, m, i, i + 1, y);
            assert_memory_equal(y, expected + target_offsets[i] * V,
                                (size_t)(target_offsets[i + 1] - target_offsets[i]) * V * sizeof *y);
            assert_int_equal(search(c, m, &how, i, i + 1, found), ATT_OK);
            for (int k = 0; k < 3; k++) {
                const att_finished *b = &best[i * 3 + k];
                assert_int_equal(found[k].count, b->count);
                assert_memory_equal(found[k].ids, b->ids, (size_t)b->count * sizeof *b->ids);
                assert_true(found[k].score == b->score);
            }
            free_found(c, found, 3);
        }
        att_transformer_free(m);
        att_close(c);
    }
    free_found(first, best, N * 3);
    att_transformer_free(model);
    att_close(first);
    folder_remove(&f);
}

/* A greedy text's score is the sum of its log probabilities, decoded all at once, by its tokens. */
static void a_score_is_what_the_logits_say(void **state)
{
    (void)state;
    enum { V = MARIAN_TOKENS };
    const test_folder f = tiny_marian();
    att_transformer *m = open_model(ctx, &f);
    const att_search how = {
        .vocabulary = V, .beam = 1, .n_best = 1, .max_tokens = 12, .length_penalty = 0.5, .start = V - 1};
    att_finished found;
    assert_int_equal(search(ctx, m, &how, 2, 3, &found), ATT_OK);
    int32_t ids[12] = {V - 1};
    memcpy(ids + 1, found.ids, (size_t)found.count * sizeof *ids);
    assert_in_range(found.count, 3, 11); /* it ends by itself */
    att_tape *t;
    att_tensor x;
    assert_int_equal(att_tape_new(ctx, NULL, &t), ATT_OK);
    const int64_t from[] = {0, 16}, to[] = {0, found.count + 1};
    att_var *s = att_transformer_encode(t, m, sources + source_offsets[2], from, 1);
    assert_int_equal(att_var_value(t, att_transformer_decode(t, m, s, from, ids, to, 1), &x), ATT_OK);
    double sum = 0;
    for (int64_t i = 0; i <= found.count; i++) {
        const float *y = (const float *)x.data + i * V;
        double all = 0;
        for (int v = 0; v < V; v++)
            all += exp((double)y[v]);
        sum += (double)y[i < found.count ? found.ids[i] : 0] - log(all);
    }
    assert_int_equal(found.steps, found.count + 1);
    check_near((float)found.score, sum / sqrt((double)found.steps), 1e-5, "score");
    att_free(ctx, found.ids);
    att_tape_free(t);
    att_transformer_free(m);
    folder_remove(&f);
}

/* ---- folders */

static void positions_and_further_names_of_tables_in_the_file_change_nothing(void **state)
{
    (void)state;
    float expected[TARGETS * MARIAN_TOKENS], y[TARGETS * MARIAN_TOKENS];
    const test_folder f = tiny_marian();
    att_transformer *m = open_model(ctx, &f);
    decode(ctx, m, 0, N, expected);
    att_transformer_free(m);
    marian_write_weights(&f, NULL, &(const tiny_tables){.tokens = MARIAN_TOKENS, .copies = true});
    m = open_model(ctx, &f);
    decode(ctx, m, 0, N, y);
    assert_memory_equal(y, expected, sizeof y);
    att_transformer_free(m);
    folder_remove(&f);
}

static void a_model_describes_itself(void **state)
{
    (void)state;
    const test_folder f = tiny_marian();
    att_transformer *m = open_model(ctx, &f);
    att_transformer_info i = {.size = sizeof i};
    assert_int_equal(att_transformer_describe(m, &i), ATT_OK);
    assert_true(i.source_vocabulary == MARIAN_TOKENS && i.target_vocabulary == MARIAN_TOKENS);
    assert_true(i.hidden == MARIAN_HIDDEN && i.max_positions == MARIAN_POSITIONS);
    assert_true(i.encoder_layers == MARIAN_ENCODER_LAYERS && i.encoder_heads == MARIAN_ENCODER_HEADS);
    assert_true(i.decoder_layers == MARIAN_DECODER_LAYERS && i.decoder_heads == MARIAN_DECODER_HEADS);
    assert_true(i.encoder_intermediate == MARIAN_ENCODER_INNER && i.decoder_intermediate == MARIAN_DECODER_INNER);
    assert_int_equal(att_transformer_describe(m, &(att_transformer_info){0}), ATT_ERR_ARGUMENT);
    att_transformer_free(m);
    folder_remove(&f);
}

/* ---- failing allocations */

/* Opens, searches, closes. */
static att_status everything(const att_config *cfg, const char *folder)
{
    const att_search how = {.vocabulary = MARIAN_TOKENS,
                            .beam = 2,
                            .n_best = 2,
                            .max_tokens = 4,
                            .length_penalty = 1,
                            .start = MARIAN_TOKENS - 1,
                            .force_end = true};
    att_ctx *c = NULL;
    att_transformer *m = NULL;
    att_finished found[N * 2] = {{0}};
    att_status s = att_open(&c, cfg);
    s = s ? s : att_transformer_open(c, folder, NULL, &m);
    s = s ? s : search(c, m, &how, 0, N, found);
    for (int i = 0; i < N * 2; i++)
        assert_true(s ? !found[i].ids : found[i].ids != NULL);
    if (c)
        free_found(c, found, N * 2);
    att_transformer_free(m);
    att_close(c);
    return s;
}

static void a_failing_allocation_anywhere_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    const test_folder f = tiny_marian();
    att_status s = ATT_ERR_MEMORY;
    for (long at = 1; s; at++) {
        fail_alloc a = {.fail_at = at};
        s = everything(ATT_OPTIONS(att_config, .n_threads = 2, .allocator = fail_allocator(&a)), f.path);
        assert_true(s == ATT_ERR_MEMORY || (s == ATT_OK && a.calls < at));
        assert_int_equal(a.live, 0);
    }
    folder_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_and_searches_are_those_of_transformers),
        cmocka_unit_test(token_by_token_gives_the_bits_of_all_at_once),
        cmocka_unit_test(any_threads_and_any_company_give_the_same_bits),
        cmocka_unit_test(a_score_is_what_the_logits_say),
        cmocka_unit_test(positions_and_further_names_of_tables_in_the_file_change_nothing),
        cmocka_unit_test(a_model_describes_itself),
        cmocka_unit_test(a_failing_allocation_anywhere_is_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
