/* Sampling: tokens come as often as transformers' logits processors and OpenAI's penalties say. */
#include "language/sampling.h"
#include "fixtures/check.h"
#include "fixtures/context.h"

enum { VOCABULARY = 24, CASES = 28, DRAWS = 20000 };

typedef struct golden {
    att_sampling s;
    int n_seen, seen[8];
    int n_generated; /* the last ones of seen */
    att_logit_bias bias[8];
    float logits[VOCABULARY];
    double probability[VOCABULARY];
} golden;

static void read_golden(FILE *f, golden *g)
{
    int top_k, n_bias;
    g->s = (att_sampling){.size = sizeof g->s, .sample = true};
    assert_int_equal(fscanf(f, "%f %d %f %f %f %d", &g->s.temperature, &top_k, &g->s.top_p, &g->s.min_p,
                            &g->s.repetition_penalty, &g->n_seen),
                     6);
    g->s.top_k = top_k;
    for (int i = 0; i < g->n_seen; i++)
        assert_int_equal(fscanf(f, "%d", &g->seen[i]), 1);
    assert_int_equal(
        fscanf(f, "%f %f %d %d", &g->s.presence_penalty, &g->s.frequency_penalty, &g->n_generated, &n_bias), 4);
    for (int i = 0; i < n_bias; i++)
        assert_int_equal(fscanf(f, "%d %f", &g->bias[i].id, &g->bias[i].bias), 2);
    g->s.bias = g->bias;
    g->s.n_bias = n_bias;
    for (int i = 0; i < VOCABULARY; i++)
        assert_int_equal(fscanf(f, "%f", &g->logits[i]), 1);
    for (int i = 0; i < VOCABULARY; i++)
        assert_int_equal(fscanf(f, "%lf", &g->probability[i]), 1);
    assert_int_equal(att_sampling_complete(ctx, "a test", VOCABULARY, &g->s), ATT_OK);
}

static int32_t choose(const att_sampler *s, const golden *g, int64_t sequence, int64_t position)
{
    float row[VOCABULARY], weight[VOCABULARY];
    att_candidate order[VOCABULARY];
    uint64_t seen = 0;
    att_sampler_scratch scratch = {row, weight, order};
    for (int i = 0; i < g->n_seen; i++)
        seen |= UINT64_C(1) << g->seen[i];
    const att_sampler_position at = {sequence, position, &seen, g->seen + g->n_seen - g->n_generated, g->n_generated};
    return att_sampler_choose(s, g->logits, &at, &scratch);
}

/* Within five standard deviations, and nothing that the processors removed */
static void tokens_are_as_frequent_as_in_transformers(void **state)
{
    (void)state;
    FILE *f = fopen("tests/golden/sampling.txt", "r");
    assert_non_null(f);
    for (int k = 0; k < CASES; k++) {
        golden g;
        int count[VOCABULARY] = {0};
        read_golden(f, &g);
        const att_sampler s = {.s = g.s, .seed = 7, .vocabulary = VOCABULARY};
        for (int i = 0; i < DRAWS; i++)
            count[choose(&s, &g, i % 3, i)]++;
        for (int i = 0; i < VOCABULARY; i++) {
            const double p = g.probability[i], deviation = sqrt(DRAWS * p * (1 - p));
            if (!(fabs(count[i] - DRAWS * p) <= 5 * deviation + 1e-3))
                fail_msg("case %d: token %d came %d times of %d, its probability is %g", k, i, count[i], DRAWS, p);
        }
        att_sampler greedy = s;
        greedy.s.sample = false;
        int32_t best = choose(&greedy, &g, 0, 0);
        for (int i = 0; i < VOCABULARY; i++)
            assert_true(g.probability[i] <= g.probability[best]);
    }
    fclose(f);
}

/* Of the token that was chosen, and of the most probable ones; equal ones by id */
static void log_probabilities_are_those_of_the_model(void **state)
{
    (void)state;
    FILE *f = fopen("tests/golden/sampling.txt", "r");
    assert_non_null(f);
    for (int k = 0; k < CASES; k++) {
        golden g;
        float own[2] = {0}, highest[2 * VOCABULARY];
        int32_t ids[2 * VOCABULARY];
        att_candidate order[VOCABULARY];
        double sum = 0;
        read_golden(f, &g);
        const int top = k % (VOCABULARY + 1);
        const att_sampler s = {.s = g.s, .seed = 7, .vocabulary = VOCABULARY, .top = top};
        for (int i = 0; i < VOCABULARY; i++)
            sum += exp((double)g.logits[i]);
        const int32_t id = choose(&s, &g, 0, k);
        assert_true(att_sampler_score(&s, g.logits, id, &(att_sampler_scratch){.order = order},
                                      &(att_token_scores){own, ids, highest}, 1));
        assert_true(fabs((double)own[1] - ((double)g.logits[id] - log(sum))) < 1e-5);
        assert_true(own[0] == 0);
        for (int i = 0; i < top; i++) {
            const float logit = g.logits[ids[top + i]];
            int before = 0;
            for (int other = 0; other < VOCABULARY; other++)
                before += g.logits[other] > logit || (g.logits[other] == logit && other < ids[top + i]);
            assert_int_equal(before, i);
            assert_true(fabs((double)highest[top + i] - ((double)logit - log(sum))) < 1e-5);
        }
    }
    fclose(f);
}

/* The same for the same seed, sequence and position; another one, for some position, where one of them differs. */
static void a_token_depends_on_seed_sequence_and_position(void **state)
{
    (void)state;
    golden g = {.s = {.sample = true}};
    int differ[3] = {0};
    assert_int_equal(att_sampling_complete(ctx, "a test", VOCABULARY, &g.s), ATT_OK);
    for (int64_t i = 0; i < 20; i++) {
        const att_sampler s = {.s = g.s, .seed = 7, .vocabulary = VOCABULARY};
        att_sampler other = s;
        other.seed = 8;
        const int32_t id = choose(&s, &g, 1, i);
        assert_int_equal(choose(&s, &g, 1, i), id);
        differ[0] += choose(&other, &g, 1, i) != id;
        differ[1] += choose(&s, &g, (int64_t)1 << 32 | 1, i) != id;
        differ[2] += choose(&s, &g, 1, i | (int64_t)1 << 32) != id;
    }
    assert_true(differ[0] > 0 && differ[1] > 0 && differ[2] > 0);
}

static void biases_of_a_repeated_id_are_added(void **state)
{
    (void)state;
    golden g = {.s = {.n_bias = 3}, .bias = {{4, 1}, {7, 1.5f}, {4, 1}}};
    g.s.bias = g.bias;
    assert_int_equal(att_sampling_complete(ctx, "a test", VOCABULARY, &g.s), ATT_OK);
    const att_sampler s = {.s = g.s, .vocabulary = VOCABULARY};
    assert_int_equal(choose(&s, &g, 0, 0), 4);
}

static void logits_that_are_not_finite_give_no_token(void **state)
{
    (void)state;
    golden g = {.s = {.sample = true}};
    assert_int_equal(att_sampling_complete(ctx, "a test", VOCABULARY, &g.s), ATT_OK);
    const att_sampler s = {.s = g.s, .vocabulary = VOCABULARY};
    for (int i = 0; i < VOCABULARY; i++)
        g.logits[i] = -INFINITY;
    g.logits[5] = 0; /* a mask is none */
    assert_int_equal(choose(&s, &g, 0, 0), 5);
    g.logits[6] = NAN;
    assert_int_equal(choose(&s, &g, 0, 0), -1);
    g.logits[6] = 0;
    g.logits[5] = INFINITY;
    assert_int_equal(choose(&s, &g, 0, 0), -1);
    for (int i = 0; i < VOCABULARY; i++)
        g.logits[i] = NAN;
    assert_int_equal(choose(&s, &g, 0, 0), -1);
}

static void values_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    const struct {
        att_sampling s;
        const char *says;
    } wrong[] = {
        {{.temperature = -1}, "a test: temperature is -1, not in [1e-6, 1e6]"},
        {{.temperature = INFINITY}, "temperature is inf"},
        {{.temperature = NAN}, "temperature is nan"},
        {{.temperature = 1e-9f}, "temperature is 1e-09"},
        {{.top_k = -1}, "top_k is -1, not at least 0"},
        {{.top_p = 1.5f}, "top_p is 1.5, not in [0, 1]"},
        {{.min_p = -0.5f}, "min_p is -0.5, not in [0, 1]"},
        {{.repetition_penalty = -2}, "repetition_penalty is -2, not in [1e-3, 1e3]"},
        {{.presence_penalty = 2.5f}, "a test: presence_penalty is 2.5, not in [-2, 2]"},
        {{.frequency_penalty = -INFINITY}, "frequency_penalty is -inf, not in [-2, 2]"},
        {{.frequency_penalty = NAN}, "frequency_penalty is nan"},
        {{.n_bias = 1}, "a test: bias is NULL, but n_bias is 1"},
        {{.n_bias = -1}, "n_bias is -1, not in [0, 23]"},
        {{.bias = &(const att_logit_bias){0, 0}, .n_bias = 24}, "n_bias is 24, not in [0, 23]"},
        {{.bias = &(const att_logit_bias){24, 0}, .n_bias = 1}, "bias[0].id is 24, but the model's are 0 to 23"},
        {{.bias = &(const att_logit_bias){-1, 0}, .n_bias = 1}, "bias[0].id is -1"},
        {{.bias = &(const att_logit_bias){0, 101}, .n_bias = 1},
         "bias[0].bias is 101, neither -infinity nor in [-100, 100]"},
        {{.bias = &(const att_logit_bias){0, INFINITY}, .n_bias = 1}, "bias[0].bias is inf"},
        {{.bias = &(const att_logit_bias){0, NAN}, .n_bias = 1}, "bias[0].bias is nan"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        att_sampling s = wrong[i].s;
        assert_int_equal(att_sampling_complete(ctx, "a test", VOCABULARY, &s), ATT_ERR_ARGUMENT);
        check_message(ctx, wrong[i].says);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_as_frequent_as_in_transformers),
        cmocka_unit_test(log_probabilities_are_those_of_the_model),
        cmocka_unit_test(a_token_depends_on_seed_sequence_and_position),
        cmocka_unit_test(biases_of_a_repeated_id_are_added),
        cmocka_unit_test(logits_that_are_not_finite_give_no_token),
        cmocka_unit_test(values_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
