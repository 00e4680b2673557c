/* Searching for texts, of a made-up model: what follows a token is a row of a table. */
#include "decoder/beam_search.h"
#include "fixtures/check.h"
#include "fixtures/context.h"
#include "fixtures/fail_alloc.h"

enum { MOST_TOKENS = 8, MOST_STEPS = 8, MOST_ROWS = 1024, END = 0, START = 1 };

/* Logits [step][token before][token] of sentence 0; those of the others are turned by their numbers. */
typedef struct model {
    int64_t vocabulary;
    float logits[MOST_STEPS][MOST_TOKENS][MOST_TOKENS];
    int64_t rows, sentence[MOST_ROWS], step;
    int64_t selects;
    int64_t fail_step, fail_select; /* this call fails; 0: none */
    att_ctx *ctx;
    att_nn_linear output;
} model;

/* Of the model that is being searched: unit vectors, so that the logits of a row are a column of the weights */
static float unit[MOST_ROWS * MOST_ROWS], weight[MOST_TOKENS * MOST_ROWS];

/* Scores what may follow `before` in a sentence, as step number `step`. */
static float logit(const model *m, int64_t sentence, int64_t step, int32_t before, int64_t token)
{
    return m->logits[step][before][(token + sentence) % m->vocabulary];
}

static att_var *step(void *user, att_tape *t, const int32_t *ids)
{
    model *m = user;
    att_tensor x;
    if (m->step + 1 == m->fail_step)
        return att_tape_fail(t, ATT_ERR_IO, "step %d fails", (int)m->step);
    /* Zeros times what is not finite would reach all rows: where all have the same logits one weight makes them. */
    const int64_t k = m->sentence[m->rows - 1] == 0 && !memcmp(m->logits[m->step][0], m->logits[m->step][1],
                                                               (MOST_TOKENS - 1) * sizeof m->logits[0][0])
                          ? 1
                          : m->rows;
    memset(unit, 0, (size_t)(m->rows * k) * sizeof *unit);
    for (int64_t b = 0; b < m->rows; b++) {
        unit[b * k + b % k] = 1;
        for (int64_t v = 0; v < m->vocabulary; v++)
            weight[v * k + b % k] = logit(m, m->sentence[b], m->step, ids[b], v);
    }
    m->step++;
    att_param_free(m->output.weight);
    m->output.weight = NULL;
    assert_int_equal(att_wrap(&x, weight, ATT_F32, 2, (const int64_t[]){m->vocabulary, k}, NULL), ATT_OK);
    if (att_param_new(m->ctx, &x, &m->output.weight))
        return att_tape_fail(t, ATT_ERR_MEMORY, "%s", att_error(m->ctx));
    assert_int_equal(att_wrap(&x, unit, ATT_F32, 2, (const int64_t[]){m->rows, k}, NULL), ATT_OK);
    return att_input(t, &x);
}

static att_status select_rows(void *user, int64_t n, const int64_t *from)
{
    model *m = user;
    int64_t sentence[MOST_ROWS];
    if (++m->selects == m->fail_select)
        return att_fail(ctx, ATT_ERR_IO, "select %d fails", (int)m->selects);
    assert_in_range(n, 1, MOST_ROWS);
    for (int64_t b = 0; b < n; b++) {
        assert_in_range(from[b], 0, m->rows - 1);
        sentence[b] = m->sentence[from[b]];
        assert_true(b == 0 || sentence[b - 1] <= sentence[b]);
    }
    memcpy(m->sentence, sentence, (size_t)n * sizeof *sentence);
    m->rows = n;
    return ATT_OK;
}

static att_status run(att_ctx *c, model *m, att_search *how, int64_t sentences, att_finished *finished)
{
    const att_generator g = {.user = m, .step = step, .output = &m->output, .select = select_rows};
    how->vocabulary = m->vocabulary;
    how->start = START;
    how->end = END;
    m->step = m->selects = 0;
    m->rows = sentences;
    for (int64_t i = 0; i < sentences; i++)
        m->sentence[i] = i;
    m->ctx = c;
    m->output = (att_nn_linear){0};
    const att_status e = att_search_run(&(const att_model){.ctx = c}, how, &g, sentences, finished);
    att_param_free(m->output.weight);
    return e;
}

static void free_finished(att_ctx *c, att_finished *finished, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        att_free(c, finished[i].ids);
}

static void assert_finished(const att_finished *f, const char *digits)
{
    char text[MOST_STEPS + 1] = "";
    assert_non_null(f->ids);
    for (int64_t i = 0; i < f->count; i++)
        text[i] = (char)('0' + f->ids[i]);
    text[f->count] = 0;
    assert_string_equal(text, digits);
}

static model random_model(int64_t vocabulary, uint64_t seed)
{
    model m = {.vocabulary = vocabulary};
    float *x = &m.logits[0][0][0];
    for (uint64_t i = 0; i < sizeof m.logits / sizeof *x; i++)
        x[i] = 4 * check_uniform(seed, i);
    return m;
}

/* ---- against all texts that there are */

typedef struct text {
    char digits[MOST_STEPS + 1];
    double score;
} text;

typedef struct all_texts {
    const model *m;
    const att_search *how;
    text text[256];
    int n;
} all_texts;

static double log_sum(const model *m, int64_t at, int32_t before)
{
    double sum = 0;
    for (int64_t v = 0; v < m->vocabulary; v++)
        sum += exp((double)logit(m, 0, at, before, v));
    return log(sum);
}

static void add_texts(all_texts *a, text t, int at, int32_t before, double log_probability)
{
    for (int32_t v = 0; v < a->m->vocabulary; v++) {
        const double p = log_probability + (double)logit(a->m, 0, at, before, v) - log_sum(a->m, at, before);
        t.digits[at] = v == END ? 0 : (char)('0' + v);
        t.digits[at + 1] = 0;
        t.score = p / pow(at + 1, a->how->length_penalty);
        if (v == END || at + 1 == a->how->max_tokens)
            a->text[a->n++] = t;
        else
            add_texts(a, t, at + 1, v, p);
    }
}

static int best_first(const void *a, const void *b)
{
    const double x = ((const text *)a)->score, y = ((const text *)b)->score;
    return (x < y) - (x > y);
}

static void a_beam_that_is_wide_enough_finds_all_texts_in_order(void **state)
{
    (void)state;
    static model m;
    static all_texts all;
    static att_finished finished[128];
    for (uint64_t seed = 0; seed < 20; seed++) {
        att_search how = {.beam = 128, .n_best = 128, .max_tokens = 4, .length_penalty = (double)(seed % 4) - 1};
        m = random_model(4, seed);
        all = (all_texts){.m = &m, .how = &how};
        add_texts(&all, (text){"", 0}, 0, START, 0);
        assert_int_equal(all.n, 1 + 3 + 9 + 27 + 81);
        qsort(all.text, (size_t)all.n, sizeof *all.text, best_first);
        assert_int_equal(run(ctx, &m, &how, 1, finished), ATT_OK);
        for (int i = 0; i < all.n; i++) { /* log probabilities are sums of f32's logs */
            assert_finished(&finished[i], all.text[i].digits);
            check_near((float)finished[i].score, all.text[i].score, 1e-5 * fmax(1, fabs(all.text[i].score)), "text %d",
                       i);
        }
        for (int i = all.n; i < 128; i++)
            assert_null(finished[i].ids);
        free_finished(ctx, finished, 128);
    }
}

static void sentences_do_not_change_each_other(void **state)
{
    (void)state;
    enum { SENTENCES = 5, BEST = 3 };
    static model m;
    for (uint64_t seed = 0; seed < 50; seed++) {
        att_search how = {.beam = BEST, .n_best = BEST, .max_tokens = MOST_STEPS, .length_penalty = 1};
        att_finished together[SENTENCES * BEST], alone[BEST];
        m = random_model(5, seed);
        assert_int_equal(run(ctx, &m, &how, SENTENCES, together), ATT_OK);
        for (int i = 0; i < SENTENCES; i++) {
            model one = m;
            for (int s = 0; s < MOST_STEPS; s++)
                for (int32_t a = 0; a < 5; a++)
                    for (int64_t v = 0; v < 5; v++)
                        one.logits[s][a][v] = logit(&m, i, s, a, v);
            assert_int_equal(run(ctx, &one, &how, 1, alone), ATT_OK);
            for (int k = 0; k < BEST; k++) {
                const att_finished *f = &together[i * BEST + k];
                assert_true(!f->ids == !alone[k].ids && f->count == alone[k].count && f->score == alone[k].score);
                if (f->ids)
                    assert_memory_equal(f->ids, alone[k].ids, (size_t)f->count * sizeof *f->ids);
            }
            free_finished(ctx, alone, BEST);
        }
        free_finished(ctx, together, SENTENCES * BEST);
    }
}

/* Without probabilities greedy search goes another way to the same texts. */
static void texts_alone_are_the_same_texts(void **state)
{
    (void)state;
    enum { SENTENCES = 4 };
    static model m;
    const int32_t banned[] = {2, 4};
    for (uint64_t seed = 0; seed < 100; seed++) {
        att_search how = {.beam = 1, .n_best = 1, .max_tokens = 1 + (int64_t)seed % MOST_STEPS, .length_penalty = 1};
        how.banned = banned;
        how.n_banned = (int64_t)seed % 3;
        how.min_tokens = (int64_t)seed % 5;
        how.force_end = seed % 2;
        att_finished with[SENTENCES], without[SENTENCES];
        m = random_model(6, seed);
        assert_int_equal(run(ctx, &m, &how, SENTENCES, with), ATT_OK);
        how.no_scores = true;
        assert_int_equal(run(ctx, &m, &how, SENTENCES, without), ATT_OK);
        for (int i = 0; i < SENTENCES; i++) {
            assert_true(with[i].count == without[i].count && with[i].steps == without[i].steps);
            assert_memory_equal(with[i].ids, without[i].ids, (size_t)with[i].count * sizeof *with[i].ids);
        }
        free_finished(ctx, with, SENTENCES);
        free_finished(ctx, without, SENTENCES);
    }
}

/* ---- edges */

/* Makes a table that is the same at each step and after each token. */
static model plain_model(int64_t vocabulary, const float *logits)
{
    model m = {.vocabulary = vocabulary};
    for (int s = 0; s < MOST_STEPS; s++)
        for (int a = 0; a < MOST_TOKENS; a++)
            memcpy(m.logits[s][a], logits, (size_t)vocabulary * sizeof *logits);
    return m;
}

static void the_first_of_equals_comes_first(void **state)
{
    (void)state;
    static model m;
    att_finished finished[4];
    m = plain_model(4, (const float[]){0, 2, 2, 2});
    att_search how = {.beam = 1, .n_best = 1, .max_tokens = 3, .length_penalty = 1};
    assert_int_equal(run(ctx, &m, &how, 1, finished), ATT_OK);
    assert_finished(&finished[0], "111");
    free_finished(ctx, finished, 1);
    how.beam = how.n_best = 4;
    assert_int_equal(run(ctx, &m, &how, 1, finished), ATT_OK);
    static const char *const expected[] = {"111", "112", "113", "121"};
    for (int i = 0; i < 4; i++)
        assert_finished(&finished[i], expected[i]);
    free_finished(ctx, finished, 4);
}

static void more_beams_than_tokens_find_what_there_is(void **state)
{
    (void)state;
    static model m;
    att_finished finished[10];
    m = plain_model(2, (const float[]){0, 1});
    att_search how = {.beam = 10, .n_best = 10, .max_tokens = 3, .length_penalty = 0};
    assert_int_equal(run(ctx, &m, &how, 1, finished), ATT_OK);
    static const char *const expected[] = {"111", "", "1", "11"};
    for (int i = 0; i < 4; i++)
        assert_finished(&finished[i], expected[i]);
    for (int i = 4; i < 10; i++)
        assert_null(finished[i].ids);
    free_finished(ctx, finished, 10);
    m = plain_model(1, (const float[]){0}); /* the end alone; it starts with what is not a token of it */
    assert_int_equal(run(ctx, &m, &how, 1, finished), ATT_OK);
    assert_finished(&finished[0], "");
    assert_null(finished[1].ids);
    free_finished(ctx, finished, 10);
}

static void lengths_are_kept(void **state)
{
    (void)state;
    static const struct {
        int64_t min_tokens, max_tokens;
        bool force_end;
        const char *finished;
        int64_t steps;
    } cases[] = {
        {0, 8, false, "", 1},
        {1, 8, false, "", 1},
        {2, 8, false, "2", 2},
        {4, 8, true, "222", 4},
        {9, 3, false, "222", 3} /* min beyond max: no end */,
        {9, 3, true, "22", 3},
        {0, 1, false, "", 1},
        {2, 1, false, "2", 1},
        {2, 1, true, "", 1},
    };
    static model m;
    m = plain_model(3, (const float[]){3, 1, 2});
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int beam = 1; beam <= 2; beam++) {
            att_finished finished;
            att_search how = {.beam = beam,
                              .n_best = 1,
                              .min_tokens = cases[i].min_tokens,
                              .max_tokens = cases[i].max_tokens,
                              .force_end = cases[i].force_end,
                              .length_penalty = 0};
            assert_int_equal(run(ctx, &m, &how, 1, &finished), ATT_OK);
            assert_finished(&finished, cases[i].finished);
            assert_int_equal(finished.steps, cases[i].steps);
            free_finished(ctx, &finished, 1);
        }
}

/* With a penalty of 2 the longer text is the better one, which whoever stops early does not find. */
static void early_stopping_stops_as_soon_as_enough_have_ended(void **state)
{
    (void)state;
    static model m;
    att_finished finished[2];
    m = plain_model(3, (const float[]){0, -8, 1});
    att_search how = {.beam = 2, .n_best = 2, .max_tokens = MOST_STEPS, .length_penalty = 2, .early_stopping = true};
    assert_int_equal(run(ctx, &m, &how, 1, finished), ATT_OK);
    assert_finished(&finished[0], "2");
    assert_finished(&finished[1], "");
    assert_int_equal(m.step, 2);
    free_finished(ctx, finished, 2);
    how.early_stopping = false;
    assert_int_equal(run(ctx, &m, &how, 1, finished), ATT_OK);
    assert_finished(&finished[0], "22222222");
    assert_int_equal(m.step, MOST_STEPS);
    free_finished(ctx, finished, 2);
}

static void what_is_banned_is_not_found(void **state)
{
    (void)state;
    static model m;
    att_finished finished;
    const int32_t banned[] = {3, 2};
    m = plain_model(5, (const float[]){0, 1, 2, 300, 1.5f});
    att_search how = {.beam = 1, .n_best = 1, .max_tokens = 2, .length_penalty = 0, .banned = banned, .n_banned = 2};
    assert_int_equal(run(ctx, &m, &how, 1, &finished), ATT_OK);
    assert_finished(&finished, "44");
    assert_true(finished.score == 2 * (1.5 - 300)); /* what is banned has its part of the probability, here all of it */
    free_finished(ctx, &finished, 1);
    how.renormalize = true;
    assert_int_equal(run(ctx, &m, &how, 1, &finished), ATT_OK);
    assert_finished(&finished, "44");
    check_near((float)finished.score, 2 * (1.5 - log(exp(0) + exp(1) + exp(1.5))), 1e-6, "score");
    free_finished(ctx, &finished, 1);
    how.min_tokens = 2; /* the end is banned, too */
    how.max_tokens = 1;
    assert_int_equal(run(ctx, &m, &how, 1, &finished), ATT_OK);
    check_near((float)finished.score, 1.5 - log(exp(1) + exp(1.5)), 1e-6, "score");
    free_finished(ctx, &finished, 1);
}

/* ---- errors */

static void logits_that_are_no_numbers_are_refused(void **state)
{
    (void)state;
    static const struct {
        float logits[3];
        const char *words;
    } wrong[] = {
        {{0, NAN, 1}, "the model's logits after 2 tokens are not numbers"},
        {{NAN, NAN, NAN}, "the model's logits after 2 tokens are not numbers"},
        {{0, 1, INFINITY}, "the model's logits after 2 tokens are not numbers"},
        {{-INFINITY, -INFINITY, -INFINITY}, "after 2 tokens none may follow: all 3 are banned"},
    };
    static model m;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        for (int how_many = 0; how_many <= 3; how_many += how_many ? 2 : 1) { /* 0: one, and no probabilities */
            const int beam = how_many ? how_many : 1;
            att_finished finished[3] = {{0}};
            att_search how = {
                .beam = beam, .n_best = beam, .max_tokens = 5, .length_penalty = 1, .no_scores = !how_many};
            m = plain_model(3, (const float[]){-9, 1, 2});
            for (int a = 0; a < MOST_TOKENS; a++)
                memcpy(m.logits[2][a], wrong[i].logits, sizeof wrong[i].logits);
            assert_int_equal(run(ctx, &m, &how, 1, finished), ATT_ERR_FORMAT);
            assert_string_equal(att_error(ctx), wrong[i].words);
            assert_null(finished[0].ids);
        }
    const int32_t banned[] = {1, 2};
    for (int renormalize = 0; renormalize < 2; renormalize++) {
        att_finished finished = {0};
        att_search how = {.beam = 2,
                          .n_best = 1,
                          .min_tokens = 2,
                          .max_tokens = 5,
                          .banned = banned,
                          .n_banned = 2,
                          .renormalize = renormalize};
        m = plain_model(3, (const float[]){1, 2, 3});
        assert_int_equal(run(ctx, &m, &how, 1, &finished), ATT_ERR_FORMAT);
        assert_string_equal(att_error(ctx), "after 0 tokens none may follow: all 3 are banned");
    }
}

static void logits_without_bound_below_are_none(void **state)
{
    (void)state;
    static model m;
    att_finished finished[2];
    m = plain_model(3, (const float[]){0, -INFINITY, -INFINITY});
    att_search how = {.beam = 2, .n_best = 2, .max_tokens = 5, .length_penalty = 1};
    assert_int_equal(run(ctx, &m, &how, 1, finished), ATT_OK);
    assert_finished(&finished[0], "");
    assert_true(finished[0].score == 0);
    assert_null(finished[1].ids);
    free_finished(ctx, finished, 2);
}

static void a_model_that_fails_ends_the_search(void **state)
{
    (void)state;
    static model m;
    for (int i = 1; i <= 4; i++) {
        att_finished finished[4] = {{0}};
        att_search how = {.beam = 2, .n_best = 2, .max_tokens = MOST_STEPS, .length_penalty = 1};
        m = random_model(5, 1);
        m.fail_step = i % 2 ? i : 0;
        m.fail_select = i % 2 ? 0 : i / 2;
        assert_int_equal(run(ctx, &m, &how, 2, finished), ATT_ERR_IO);
        check_message(ctx, "fails");
        for (int k = 0; k < 4; k++)
            assert_null(finished[k].ids);
    }
}

/* Returns whether the search succeeds if allocation number `at` fails. A beam of 1 has no probabilities. */
static bool survives(model *m, int beam, long at)
{
    fail_alloc a = {.fail_at = at};
    att_ctx *c = NULL;
    att_finished finished[9] = {{0}};
    att_search how = {
        .beam = beam, .n_best = beam, .max_tokens = MOST_STEPS, .length_penalty = 1, .no_scores = beam == 1};
    att_status s = att_open(&c, ATT_OPTIONS(att_config, .n_threads = 1, .allocator = fail_allocator(&a)));
    s = s ? s : run(c, m, &how, 3, finished);
    assert_true(s == ATT_ERR_MEMORY || (s == ATT_OK && a.calls < at));
    assert_true(s || finished[0].ids);
    for (int i = 0; s && i < 9; i++)
        assert_null(finished[i].ids);
    if (c)
        free_finished(c, finished, 9);
    att_close(c);
    assert_int_equal(a.live, 0);
    return s == ATT_OK;
}

static void a_failing_allocation_anywhere_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    static model m;
    m = random_model(5, 2);
    for (int beam = 1; beam <= 3; beam += 2)
        for (long at = 1; !survives(&m, beam, at);)
            at++;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_beam_that_is_wide_enough_finds_all_texts_in_order),
        cmocka_unit_test(sentences_do_not_change_each_other),
        cmocka_unit_test(texts_alone_are_the_same_texts),
        cmocka_unit_test(the_first_of_equals_comes_first),
        cmocka_unit_test(more_beams_than_tokens_find_what_there_is),
        cmocka_unit_test(lengths_are_kept),
        cmocka_unit_test(early_stopping_stops_as_soon_as_enough_have_ended),
        cmocka_unit_test(what_is_banned_is_not_found),
        cmocka_unit_test(logits_that_are_no_numbers_are_refused),
        cmocka_unit_test(logits_without_bound_below_are_none),
        cmocka_unit_test(a_model_that_fails_ends_the_search),
        cmocka_unit_test(a_failing_allocation_anywhere_is_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
