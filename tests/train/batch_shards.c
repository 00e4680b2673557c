/* A training step in halves: gradients of shards of a batch, their sum by a tree, and the update, for all trainings
 * whose loss is a sum over rows. */
// labels: trains
#include "fixtures/fail_alloc.h"
#include "fixtures/trainings.h"

#include <math.h>
#include <unistd.h>

static const row further[] = {{"predicting", PREDICTING_VIT, 1, CAPTION}, {"idle", PREDICTING_VIT, 0, CAPTION}};
enum { ALL = ROWS + sizeof further / sizeof further[0], STEPS = 4, MAX_SHARDS = 8 };

static const row *row_at(int i) { return i < ROWS ? &rows[i] : &further[i - ROWS]; }

/* Does batch normalization couple the images of a batch? Or the loss its texts? */
static bool is_cnn(const row *r) { return !strcmp(r->name, "captions"); }
static bool is_coupled(const row *r) { return is_cnn(r) || !strncmp(r->name, "ranking", 7); }

static run open_shards(att_ctx *ctx, const row *row, const char *name, int64_t shards)
{
    att_training_options o = common;
    o.shards = shards;
    o.accumulate = 1 + !strcmp(row->name, "images");
    run r = open_run(ctx, row, name, &o);
    if (!r.training)
        fail_msg("%s: %s", row->name, att_error(ctx));
    return r;
}

static int64_t count_of(const run *r)
{
    att_training_info info = {.size = sizeof info};
    need(att_training_describe(r->training, &info));
    assert_true(info.parameters > 0 && info.parameters <= MAX_PARAMETERS);
    return info.parameters;
}

static att_training_part gradients(const run *r, int64_t shard, float *g)
{
    att_training_part part = {.size = sizeof part};
    if (att_training_gradients(r->training, shard, g, &part))
        fail_msg("%s, shard %lld: %s", r->row->name, (long long)shard, att_error(r->ctx));
    return part;
}

static att_training_report apply(const run *r, const float *g, const att_training_part *sum)
{
    att_training_report report = {.size = sizeof report};
    if (att_training_apply(r->training, g, sum, &report))
        fail_msg("%s: %s", r->row->name, att_error(r->ctx));
    return report;
}

static void same_reports(const row *row, const att_training_report *a, const att_training_report *b)
{
    if (memcmp(a, b, sizeof *a) != 0)
        fail_msg("%s: the reports differ: losses %.9g and %.9g, norms %.9g and %.9g, of %d and %d targets", row->name,
                 a->loss, b->loss, a->norm, b->norm, (int)a->targets, (int)b->targets);
}

/* ---- halves of a step */

/* Every third parameter */
static void freeze(const run *r, bool frozen)
{
    const char *name;
    att_param *p;
    for (int64_t i = 0; (p = att_training_param(r->training, i, &name)); i += 3)
        att_param_set_frozen(p, frozen);
}

/* Also while some parameters are frozen */
static void halves_of_a_whole_step_have_its_bits(void **state)
{
    (void)state;
    static float whole[MAX_PARAMETERS], g[MAX_PARAMETERS];
    att_ctx *ctx = check_open(NULL, 2);
    for (int i = 0; i < ALL; i++) {
        if (is_cnn(row_at(i)))
            continue;
        run one = open_shards(ctx, row_at(i), "step", 0), two = open_shards(ctx, row_at(i), "halves", 1);
        for (int k = 0; k < STEPS; k++) {
            freeze(&one, k == 1);
            freeze(&two, k == 1);
            const att_training_part part = gradients(&two, 0, g);
            const att_training_report a = make_steps(&one, 1), b = k == 2 ? make_steps(&two, 1) : apply(&two, g, &part);
            same_reports(one.row, &a, &b);
            if (k == 1)
                need(att_training_save(one.training)); /* with the moments and values of all */
        }
        const int64_t n = parameters(&one, whole);
        expect_same(&two, whole, n);
        close_run(&one);
        att_training_options o = common;
        o.accumulate = 1 + !strcmp(row_at(i)->name, "images");
        o.resume = true;
        one = open_run(ctx, row_at(i), "step", &o);
        assert_int_equal(make_steps(&one, STEPS - 2).step, STEPS);
        expect_same(&one, whole, n);
        close_run(&one);
        close_run(&two);
    }
    att_close(ctx);
}

/* Each gradient is a sum over the rows of a batch, up to 250 tokens, of products; both ways to sum it are off by up to
 * as many roundings of the largest partial sum. Those of cosines, and of captions, are scaled differently, too. */
static void gradients_of_all_shards_sum_to_those_of_the_batch(void **state)
{
    (void)state;
    static float whole[MAX_PARAMETERS], g[MAX_PARAMETERS];
    static double sum[MAX_PARAMETERS];
    att_ctx *ctx = check_open(NULL, 2);
    for (int i = 0; i < ALL; i++)
        for (int64_t shards = 2; !is_coupled(row_at(i)) && shards <= 7; shards += 5) {
            run one = open_shards(ctx, row_at(i), "whole", 0), all = open_shards(ctx, row_at(i), "shards", shards);
            const att_training_part batch = gradients(&one, 0, whole);
            att_training_part parts = {.size = sizeof parts};
            const int64_t n = count_of(&one);
            double largest = 0;
            memset(sum, 0, sizeof sum);
            for (int64_t s = 0; s < shards; s++) {
                const att_training_part part = gradients(&all, s, g);
                parts.loss += part.loss;
                parts.targets += part.targets;
                parts.examples += part.examples;
                parts.sources += part.sources;
                for (int64_t k = 0; k < n; k++) {
                    sum[k] += (double)g[k];
                    largest = fmax(largest, fabs((double)g[k]));
                    assert_true(part.examples > 0 || g[k] == 0);
                }
            }
            assert_int_equal(parts.targets, batch.targets);
            assert_int_equal(parts.examples, batch.examples);
            assert_int_equal(parts.sources, batch.sources);
            check_near(batch.loss, (float)parts.loss, 250 * FLT_EPSILON * fabs(batch.loss), "%s: loss", one.row->name);
            for (int64_t k = 0; k < n; k++)
                check_near(sum[k], whole[k], 250 * FLT_EPSILON * largest, "%s, %d shards: %d", one.row->name,
                           (int)shards, (int)k);
            close_run(&one);
            close_run(&all);
        }
    att_close(ctx);
}

/* ---- the tree */

static float memory[MAX_SHARDS][MAX_PARAMETERS];

/* Level by level, as attend_train.h has it: the sum in memory[0] and part[0] */
static void sum_by_the_tree(const run *r, int shards, att_training_part *part)
{
    for (int width = 1; width < shards; width *= 2)
        for (int s = 0; s + width < shards; s += 2 * width)
            need(att_training_add(r->training, memory[s], &part[s], memory[s + width], &part[s + width]));
}

/* With an odd number, and with more shards than rows, too. */
static void one_two_and_four_callers_get_the_bits_of_a_step(void **state)
{
    (void)state;
    static const int number[] = {8, 5};
    static float whole[MAX_PARAMETERS];
    for (int i = 0; i < ALL; i++)
        for (int k = 0; !is_coupled(row_at(i)) && k < 2; k++) {
            const int shards = number[k];
            att_ctx *ctx = check_open(NULL, 1);
            run alone = open_shards(ctx, row_at(i), k ? "alone5" : "alone", shards);
            att_training_report expected[STEPS];
            for (int step = 0; step < STEPS; step++)
                expected[step] = make_steps(&alone, 1);
            const int64_t n = parameters(&alone, whole);
            close_run(&alone);
            for (int callers = 1; callers <= (k ? 1 : 4); callers *= 2) {
                run r[4];
                for (int c = 0; c < callers; c++) {
                    char name[32];
                    snprintf(name, sizeof name, "caller%d-%d-%d", shards, callers, c);
                    r[c] = open_shards(ctx, row_at(i), name, shards);
                }
                for (int step = 0; step < STEPS; step++) {
                    att_training_part part[MAX_SHARDS];
                    for (int s = 0; s < shards; s++)
                        part[s] = gradients(&r[s * callers / shards], s, memory[s]);
                    sum_by_the_tree(&r[0], shards, part);
                    for (int c = 0; c < callers; c++) {
                        const att_training_report report = apply(&r[c], memory[0], &part[0]);
                        same_reports(r[c].row, &report, &expected[step]);
                    }
                }
                for (int c = 0; c < callers; c++) {
                    expect_same(&r[c], whole, n);
                    close_run(&r[c]);
                }
            }
            att_close(ctx);
        }
}

/* In any order and any number of times, which changes nothing but what is read ahead. */
static void gradients_depend_on_nothing_that_was_asked_for_before(void **state)
{
    (void)state;
    static const int order[] = {2, 0, 3, 3, 1, 2, 0};
    static float first[4][MAX_PARAMETERS], g[MAX_PARAMETERS], whole[MAX_PARAMETERS];
    att_ctx *ctx = check_open(NULL, 2);
    for (int i = 0; i < ALL; i++) {
        if (is_coupled(row_at(i)))
            continue;
        run r = open_shards(ctx, row_at(i), "ordered", 4), calm = open_shards(ctx, row_at(i), "calm", 4);
        const size_t bytes = (size_t)count_of(&r) * sizeof *g;
        for (int step = 0; step < STEPS; step++) {
            for (int s = 0; s < 4; s++)
                gradients(&calm, s, first[s]);
            for (size_t k = 0; k < sizeof order / sizeof *order; k++) {
                gradients(&r, order[k], g);
                assert_memory_equal(g, first[order[k]], bytes);
            }
            const att_training_report a = make_steps(&r, 1), b = make_steps(&calm, 1);
            same_reports(r.row, &a, &b);
        }
        expect_same(&r, whole, parameters(&calm, whole));
        close_run(&r);
        close_run(&calm);
    }
    att_close(ctx);
}

/* ---- the setting */

static void the_number_of_shards_belongs_to_a_checkpoint(void **state)
{
    (void)state;
    static const struct {
        int64_t saved, now;
        const char *problem;
    } cases[] = {{4, 4, NULL},
                 {4, 0, "\"shards\" is 4 but here it is 1"},
                 {4, 8, "\"shards\" is 4 but here it is 8"},
                 {0, 2, "\"shards\" is 1 but here it is 2"},
                 {1, 0, NULL}};
    static float whole[MAX_PARAMETERS];
    att_ctx *ctx = check_open(NULL, 2);
    for (int i = 0; i < KINDS; i++)
        for (size_t k = 0; !is_coupled(&rows[i]) && k < sizeof cases / sizeof *cases; k++) {
            char name[32];
            snprintf(name, sizeof name, "saved%zu", k);
            att_training_options o = common;
            o.shards = cases[k].saved;
            run r = open_run(ctx, &rows[i], name, &o);
            make_steps(&r, 2);
            need(att_training_save(r.training));
            make_steps(&r, 2);
            const int64_t n = parameters(&r, whole);
            close_run(&r);
            o.resume = true;
            o.shards = cases[k].now;
            r = open_run(ctx, &rows[i], name, &o);
            if (cases[k].problem) {
                assert_null(r.training);
                check_message(ctx, cases[k].problem);
            } else {
                make_steps(&r, 2);
                expect_same(&r, whole, n);
            }
            close_run(&r);
        }
    att_close(ctx);
}

/* ---- what is refused */

static void wrong_numbers_of_shards_are_refused(void **state)
{
    (void)state;
    static const int64_t number[] = {-1, 65537, INT64_MIN, INT64_MAX};
    att_ctx *ctx = check_open(NULL, 1);
    for (int i = 0; i < 4; i++) {
        att_training_options o = common;
        o.shards = number[i];
        run r = open_run(ctx, &rows[0], "refused", &o);
        assert_null(r.training);
        check_message(ctx, "options.shards is ");
        check_message(ctx, "expected 0 to 65536");
        close_run(&r);
    }
    run r = open_shards(ctx, &rows[0], "few", 3);
    att_training_part part = {.size = sizeof part};
    static const int64_t shard[] = {-1, 3, INT64_MIN, INT64_MAX};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(att_training_gradients(r.training, shard[i], memory[0], &part), ATT_ERR_ARGUMENT);
        check_message(ctx, "expected 0 to 2, one less than options.shards");
    }
    close_run(&r);
    att_close(ctx);
}

static void what_couples_a_batch_is_refused_by_name(void **state)
{
    (void)state;
    static float g[MAX_PARAMETERS];
    att_ctx *ctx = check_open(NULL, 1);
    for (int i = 0; i < ROWS; i++) {
        if (!is_coupled(&rows[i]))
            continue;
        char path[64];
        snprintf(path, sizeof path, "%s-one", rows[i].name);
        att_training_options o = common;
        o.shards = 2;
        run r = open_run(ctx, &rows[i], "refused", &o), one = open_shards(ctx, &rows[i], "one", 1);
        assert_null(r.training);
        const char *what = is_cnn(&rows[i]) ? "batch normalization" : "the multiple negatives ranking loss";
        for (int in_memory = 0; in_memory < 2; in_memory++) {
            if (in_memory) {
                need(att_training_write(one.training, 0, ATT_F32));
                assert_int_equal(rows[i].new(&r, path_of(path), &o), ATT_ERR_ARGUMENT);
            } else {
                rows[i].open(&r, path_of("refused"), &o);
            }
            check_message(ctx, "options.shards is 2, but ");
            check_message(ctx, what);
            check_message(ctx, ": set it to 0, or ");
        }
        assert_int_equal(access(path_of("refused"), F_OK), -1);
        att_training_part part = {.size = sizeof part};
        att_training_report report = {.size = sizeof report};
        if (is_cnn(&rows[i])) { /* its running statistics would not be those of a step */
            assert_int_equal(att_training_gradients(one.training, 0, g, &part), ATT_ERR_ARGUMENT);
            check_message(ctx, "att_training_gradients: batch normalization, ");
            assert_int_equal(att_training_apply(one.training, g, &part, &report), ATT_ERR_ARGUMENT);
            check_message(ctx, "running statistics: call att_training_step, or ");
        }
        close_run(&one);
        close_run(&r);
    }
    att_close(ctx);
}

/* Gradients, a sum or counts that are wrong; then the right ones have the bits of a step. */
static void a_wrong_sum_is_refused_and_nothing_changes(void **state)
{
    (void)state;
    static float before[MAX_PARAMETERS], whole[MAX_PARAMETERS], g[MAX_PARAMETERS];
    att_ctx *ctx = check_open(NULL, 2);
    for (int i = 0; i < KINDS; i++) {
        if (is_coupled(&rows[i]))
            continue;
        run r = open_shards(ctx, &rows[i], "wrong", 1), calm = open_shards(ctx, &rows[i], "right", 1);
        make_steps(&r, 1);
        make_steps(&calm, 1);
        const int64_t n = parameters(&r, before), last = count_of(&r) - 1;
        const att_training_part part = gradients(&r, 0, g);
        att_training_report report = {.size = sizeof report};
        for (int k = 0; k < 7; k++) {
            att_training_part sum = part;
            const float was = g[last];
            g[last] = k == 0 ? NAN : k == 1 ? -INFINITY : was;
            sum.loss = k == 2 ? (double)INFINITY : k == 3 ? (double)NAN : sum.loss;
            sum.targets = k == 4 ? -1 : sum.targets;
            sum.examples = k == 5 ? INT64_MIN : sum.examples;
            sum.sources = k == 6 ? -7 : sum.sources;
            assert_int_equal(att_training_apply(r.training, g, &sum, &report), ATT_ERR_ARGUMENT);
            check_message(ctx, k < 2    ? "step 2 is not taken: its gradients' norm is "
                               : k == 2 ? "step 2 is not taken: its loss is inf"
                               : k == 3 ? "step 2 is not taken: its loss is nan"
                                        : "expected 0 or more");
            g[last] = was;
            expect_same(&r, before, n);
            assert_int_equal(att_training_steps(r.training), 1);
        }
        const att_training_report a = apply(&r, g, &part), b = make_steps(&calm, 1);
        same_reports(r.row, &a, &b);
        expect_same(&r, whole, parameters(&calm, whole));
        close_run(&r);
        close_run(&calm);
    }
    att_close(ctx);
}

static void counts_that_overflow_are_refused(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    run r = open_shards(ctx, &rows[1], "counts", 2);
    for (int k = 0; k < 4; k++) {
        att_training_part a = {.size = sizeof a, .targets = 1, .examples = 1, .sources = 1}, b = a;
        *(k == 0 ? &b.targets : k == 1 ? &b.examples : &b.sources) = k < 3 ? INT64_MAX : -1;
        assert_int_equal(att_training_add(r.training, memory[0], &a, memory[1], &b), ATT_ERR_ARGUMENT);
        check_message(ctx, "negative or too many");
        assert_true(a.targets == 1 && a.examples == 1 && a.sources == 1);
    }
    close_run(&r);
    att_close(ctx);
}

/* Names the step and the operation, of the shard that has it; the training continues with the same bits. */
static void a_loss_that_is_not_finite_is_named(void **state)
{
    (void)state;
    static float whole[MAX_PARAMETERS], g[MAX_PARAMETERS];
    att_ctx *ctx = check_open(NULL, 2);
    run r = open_shards(ctx, &rows[0], "infinite", 2), calm = open_shards(ctx, &rows[0], "finite", 2);
    make_steps(&r, 1);
    make_steps(&calm, 1);
    const char *name = "";
    att_param *p = NULL;
    for (int64_t i = 0; strcmp(name, "decoder.0.feed_forward.inner.bias"); i++)
        assert_non_null(p = att_training_param(r.training, i, &name));
    float *x = att_param_value(p)->data;
    const float was = x[3];
    x[3] = NAN;
    att_param_invalidate(p);
    att_training_part part = {.size = sizeof part};
    att_training_report report = {.size = sizeof report};
    for (int k = 0; k < 2; k++) {
        assert_int_equal(k ? att_training_step(r.training, &report) : att_training_gradients(r.training, 1, g, &part),
                         ATT_ERR_ARGUMENT);
        check_message(ctx, "step 2 is not taken: its loss is nan; first, decoder/layer.0/feed_forward: linear was ");
    }
    x[3] = was;
    att_param_invalidate(p);
    const att_training_report a = make_steps(&r, 1), b = make_steps(&calm, 1);
    same_reports(r.row, &a, &b);
    expect_same(&r, whole, parameters(&calm, whole));
    close_run(&r);
    close_run(&calm);
    att_close(ctx);
}

/* ---- out of memory, cancelled */

typedef struct half {
    att_training_part part;
    att_training_report report;
} half;
static att_status get_gradients(run *r, half *h) { return att_training_gradients(r->training, 1, memory[1], &h->part); }
static att_status apply_them(run *r, half *h)
{
    return att_training_apply(r->training, memory[1], &h->part, &h->report);
}
static att_status make_step(run *r, half *h) { return att_training_step(r->training, &h->report); }

static void what_runs_out_of_memory_or_is_cancelled_changes_no_bit(void **state)
{
    (void)state;
    static att_status (*const calls[])(run *, half *) = {get_gradients, apply_them, make_step};
    static float before[MAX_PARAMETERS];
    volatile int flag = 0;
    for (int i = 0; i < KINDS; i++) {
        if (is_coupled(&rows[i]))
            continue;
        fail_alloc f = {0};
        att_ctx *ctx = fail_open(&f);
        run r = open_shards(ctx, &rows[i], "failing", 3);
        half h = {.part.size = sizeof h.part, .report.size = sizeof h.report};
        att_cancel_by(&flag);
        for (int c = 0; c < 3; c++) {
            const int64_t n = parameters(&r, before), steps = att_training_steps(r.training);
            flag = 1;
            const att_status cancelled = c == 1 ? ATT_ERR_CANCELLED : calls[c](&r, &h); /* an update is short */
            flag = 0;
            assert_int_equal(cancelled, ATT_ERR_CANCELLED);
            for (long k = 1, done = 0; !done; k += check_step(3) + k / 20) {
                expect_same(&r, before, n);
                assert_int_equal(att_training_steps(r.training), steps);
                f.fail_at = f.calls + k;
                f.more = 1000000;
                const att_status e = calls[c](&r, &h);
                f.fail_at = 0;
                done = e == ATT_OK;
                if (!done && e != ATT_ERR_MEMORY)
                    fail_msg("%s: call %d: status %d, %s", rows[i].name, c, (int)e, att_error(ctx));
            }
        }
        att_cancel_by(NULL);
        close_run(&r);
        att_close(ctx);
        assert_int_equal(f.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_of_a_whole_step_have_its_bits),
        cmocka_unit_test(gradients_of_all_shards_sum_to_those_of_the_batch),
        cmocka_unit_test(one_two_and_four_callers_get_the_bits_of_a_step),
        cmocka_unit_test(gradients_depend_on_nothing_that_was_asked_for_before),
        cmocka_unit_test(the_number_of_shards_belongs_to_a_checkpoint),
        cmocka_unit_test(wrong_numbers_of_shards_are_refused),
        cmocka_unit_test(what_couples_a_batch_is_refused_by_name),
        cmocka_unit_test(a_wrong_sum_is_refused_and_nothing_changes),
        cmocka_unit_test(counts_that_overflow_are_refused),
        cmocka_unit_test(a_loss_that_is_not_finite_is_named),
        cmocka_unit_test(what_runs_out_of_memory_or_is_cancelled_changes_no_bit),
    };
    return cmocka_run_group_tests(tests, write_data, remove_data);
}
