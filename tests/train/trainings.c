/* What all trainings promise, tested for each: the same bits after interruptions and for any number of threads, and in
 * memory as in a folder; options that mean the same in all; a best model and an average; nothing lost where memory runs
 * out; checkpoints of version 0.2. */
// labels: long trains
#include "fixtures/checkpoint_file.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/trainings.h"

#include <math.h>
#include <unistd.h>

static const att_schedule still = {.size = sizeof still};

/* ---- the same bits */

enum { STEPS = 9 }; /* of several epochs of two to seven batches */

static void interruptions_and_threads_change_no_bit(void **state)
{
    (void)state;
    static float start[MAX_PARAMETERS], whole[MAX_PARAMETERS];
    for (int i = 0; i < ROWS; i++) {
        att_training_options options = common;
        options.accumulate = 1 + i % 2;
        att_ctx *ctx = check_open(NULL, 2);
        run r = open_run(ctx, &rows[i], "whole", &options);
        assert_non_null(r.training);
        const int64_t n = parameters(&r, start);
        assert_int_equal(make_steps(&r, STEPS).step, STEPS);
        assert_int_equal(parameters(&r, whole), n);
        assert_false(are_same(&r, start, n));
        close_run(&r);
        att_close(ctx);
        for (int done = 0, next; done < STEPS; done = next) {
            next = done + 4 < STEPS ? done + 4 : STEPS;
            ctx = check_open(NULL, 1 + done % 3);
            options.resume = done > 0;
            r = open_run(ctx, &rows[i], "parts", &options);
            assert_int_equal(att_training_steps(r.training), done);
            make_steps(&r, next - done);
            if (rows[i].evaluate)
                need(rows[i].evaluate(&r)); /* which changes nothing */
            need(done ? att_training_pause(r.training) : att_training_save(r.training));
            if (next == STEPS)
                expect_same(&r, whole, n);
            make_steps(&r, 1); /* which is lost */
            close_run(&r);
            att_close(ctx);
        }
    }
}

/* The folder gets the model with which its training begins. */
static void a_training_in_memory_has_the_bits_of_one_in_a_folder(void **state)
{
    (void)state;
    static float whole[MAX_PARAMETERS];
    for (int i = 0; i < ROWS; i++) {
        char name[64];
        att_ctx *ctx = check_open(NULL, 2);
        run r = open_run(ctx, &rows[i], "begun", &common);
        assert_non_null(r.training);
        need(att_training_write(r.training, 0, ATT_F32));
        make_steps(&r, 5);
        const int64_t n = parameters(&r, whole);
        close_run(&r);
        r = open_data(ctx, &rows[i]);
        snprintf(name, sizeof name, "%s-begun", rows[i].name);
        need(rows[i].new(&r, path_of(name), &common));
        make_steps(&r, 5);
        expect_same(&r, whole, n);
        close_run(&r);
        att_close(ctx);
    }
}

/* ---- options */

/* With a rate of 0 a step of two batches has the losses of two steps of one. */
static void a_step_has_as_many_batches_as_accumulate_says(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    for (int i = 0; i < ROWS; i++) {
        att_training_options options = common;
        options.schedule = &still;
        run one = open_run(ctx, &rows[i], "one", &options);
        options.accumulate = 2;
        run two = open_run(ctx, &rows[i], "two", &options);
        for (int k = 0; k < 2; k++) {
            const att_training_report a = make_steps(&one, 1), b = make_steps(&one, 1), both = make_steps(&two, 1);
            const double sum = a.loss * (double)a.targets + b.loss * (double)b.targets;
            assert_int_equal(both.examples, a.examples + b.examples);
            assert_int_equal(both.sources, a.sources + b.sources);
            assert_int_equal(both.targets, a.targets + b.targets);
            assert_true(a.examples > 0 && a.sources >= a.examples && a.targets > 0);
            /* the loss of a batch is a float, which rounds it by up to 6e-8 of it */
            check_near(sum / (double)both.targets, both.loss, 2e-7 * fabs(both.loss), "%s", rows[i].name);
        }
        close_run(&one);
        close_run(&two);
    }
    att_close(ctx);
}

/* 0 is the default that the header names, and another value makes another model. */
static void options_of_the_optimizer_are_used(void **state)
{
    (void)state;
    static float usual[MAX_PARAMETERS];
    att_ctx *ctx = check_open(NULL, 2);
    for (int i = 0; i < KINDS; i++) {
        const struct {
            const char *name;
            att_training_options o;
            bool same;
        } cases[] = {{"default", {.beta2 = i ? 0.999 : 0.98}, true},
                     {"beta2", {.beta2 = 0.9}, false},
                     {"decay", {.weight_decay = 5}, false},
                     {"clip", {.clip = 1e-6}, false},
                     {"seed", {.seed = 4}, false}};
        run r = open_run(ctx, &rows[i], "usual", &(att_training_options){.size = sizeof common, .schedule = &rates});
        make_steps(&r, 3);
        const int64_t n = parameters(&r, usual);
        close_run(&r);
        for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
            att_training_options o = cases[k].o;
            o.size = sizeof o;
            o.schedule = &rates;
            r = open_run(ctx, &rows[i], cases[k].name, &o);
            make_steps(&r, 3);
            if (are_same(&r, usual, n) != cases[k].same)
                fail_msg("%s: %s", rows[i].name, cases[k].name);
            close_run(&r);
        }
    }
    att_close(ctx);
}

typedef struct wrong {
    att_training_options o;
    const char *says;
    bool without_schedule;
} wrong;

/* Of row i, in memory or in a folder */
static void expect_wrong(run *r, const char *model, const wrong *w)
{
    att_training_options o = w->o;
    o.size = sizeof o;
    o.schedule = w->without_schedule ? NULL : &rates;
    const char *const path = path_of("refused");
    const att_status e = model ? r->row->new (r, model, &o) : r->row->open(r, path, &o);
    assert_null(r->training);
    if (e != ATT_ERR_ARGUMENT || !strstr(att_error(r->ctx), w->says))
        fail_msg("%s: status %d, %s, not: %s", r->row->name, (int)e, att_error(r->ctx), w->says);
    assert_int_equal(access(path, F_OK), -1);
    r->row->free_model(r);
    r->model = r->tokenizer = NULL;
}

static void wrong_options_are_named(void **state)
{
    (void)state;
    static char note[8];
    static const wrong always[] = {{{0}, "options.schedule is NULL", true},
                                   {{.weight_decay = -1}, "options.weight_decay is -1, expected 0 to 1e+06", false},
                                   {{.weight_decay = NAN}, "options.weight_decay is nan", false},
                                   {{.clip = INFINITY}, "options.clip is inf", false},
                                   {{.accumulate = -1}, "options.accumulate is -1", false},
                                   {{.beta2 = 1}, "beta2 is 1", false},
                                   {{.beta2 = -0.5}, "beta2 is -0.5", false}},
                       in_folder[] = {{{.keep = -1}, "keep is -1", false},
                                      {{.note = note}, "options.note has no room", false},
                                      {{.resume = true}, "there is no checkpoint to continue from", false}},
                       in_memory[] = {{{.resume = true}, "options.resume is for a training in a folder", false},
                                      {{.keep = 1}, "options.keep is for a training in a folder", false},
                                      {{.note = note}, "options.note is for a training in a folder", false},
                                      {{.evaluation_id = 1}, "options.evaluation_id is for a training in a", false}};
    att_ctx *ctx = check_open(NULL, 1);
    for (int i = 0; i < KINDS; i++) {
        char model[400];
        snprintf(model, sizeof model, "%s/%s-begun", folder.path, rows[i].name); /* of a test above */
        run r = open_data(ctx, &rows[i]);
        for (size_t k = 0; k < sizeof always / sizeof always[0]; k++) {
            expect_wrong(&r, NULL, &always[k]);
            expect_wrong(&r, model, &always[k]);
        }
        for (size_t k = 0; k < sizeof in_folder / sizeof in_folder[0]; k++)
            expect_wrong(&r, NULL, &in_folder[k]);
        for (size_t k = 0; k < sizeof in_memory / sizeof in_memory[0]; k++)
            expect_wrong(&r, model, &in_memory[k]);
        close_run(&r);
    }
    att_close(ctx);
}

static void a_training_in_memory_has_no_folder(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    for (int i = 0; i < KINDS; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s-begun", rows[i].name);
        run r = open_data(ctx, &rows[i]);
        need(rows[i].new(&r, path_of(name), &common));
        assert_int_equal(att_training_save(r.training), ATT_ERR_ARGUMENT);
        check_message(ctx, "att_training_save: the training has no folder");
        assert_int_equal(att_training_pause(r.training), ATT_ERR_ARGUMENT);
        assert_int_equal(att_training_keep_best(r.training, 1, ATT_F32), ATT_ERR_ARGUMENT);
        check_message(ctx, "att_training_keep_best: the training has no folder");
        assert_int_equal(att_training_write(r.training, 0, ATT_F32), ATT_ERR_ARGUMENT);
        check_message(ctx, "att_training_write: the training has no folder");
        make_steps(&r, 1);
        assert_int_equal(att_training_steps(r.training), 1);
        close_run(&r);
    }
    att_close(ctx);
}

/* ---- folders */

static void a_training_is_refused_where_it_would_spoil_another(void **state)
{
    (void)state;
    const struct {
        att_training_options o;
        const char *says;
    } cases[] = {{{.seed = 1}, "has checkpoints of a training already"},
                 {{.seed = 2, .resume = true}, "\"seed\" is 1 but here it is 2"},
                 {{.seed = 1, .resume = true, .accumulate = 3}, "\"accumulate\" is 1 but here it is 3"},
                 {{.seed = 1, .resume = true, .beta2 = 0.9}, "but here it is 0.9"},
                 {{.seed = 1, .resume = true, .weight_decay = 0.5}, "\"decay\" is 0 but here it is 0.5"},
                 {{.seed = 1, .resume = true, .clip = 2}, "\"clip\" is 0 but here it is 2"},
                 {{.seed = 1, .resume = true, .evaluation_id = 7}, "with other evaluation data"}};
    att_ctx *ctx = check_open(NULL, 1);
    for (int i = 0; i < KINDS; i++) {
        att_training_options o = {.size = sizeof o, .schedule = &rates, .seed = 1};
        run r = open_run(ctx, &rows[i], "other", &o), second = open_run(ctx, &rows[i], "other", &o);
        assert_null(second.training);
        check_message(ctx, "another training");
        close_run(&second);
        make_steps(&r, 1);
        need(att_training_save(r.training));
        close_run(&r);
        for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
            o = cases[k].o;
            o.size = sizeof o;
            o.schedule = &rates;
            r = open_run(ctx, &rows[i], "other", &o);
            assert_null(r.training);
            if (!strstr(att_error(ctx), cases[k].says))
                fail_msg("%s: %s, not: %s", rows[i].name, att_error(ctx), cases[k].says);
            close_run(&r);
        }
    }
    att_close(ctx);
}

/* Returns the file of the weights in the folder NAME of a row -> its bytes */
static size_t read_weights(const row *row, const char *name, char bytes[MAX_FILE])
{
    char path[96];
    snprintf(path, sizeof path, "%s-%s/model.safetensors", row->name, name);
    FILE *f = fopen(path_of(path), "rb");
    assert_non_null(f);
    const size_t n = fread(bytes, 1, MAX_FILE, f);
    fclose(f);
    assert_true(n > 0 && n < MAX_FILE);
    return n;
}

/* Whichever steps come after it, and after an interruption, too. */
static void the_folder_has_the_model_of_the_best_score(void **state)
{
    (void)state;
    static const double scores[] = {0.5, 0.7, NAN, 0.6, 0.7};
    static char best[MAX_FILE], bytes[MAX_FILE];
    att_ctx *ctx = check_open(NULL, 2);
    for (int i = 0; i < KINDS; i++) {
        size_t n = 0;
        att_training_options o = common;
        att_training_info info = {.size = sizeof info};
        o.evaluation_id = 5;
        run r = open_run(ctx, &rows[i], "best", &o);
        for (int k = 0; k < 5; k++) {
            make_steps(&r, 1);
            need(att_training_keep_best(r.training, scores[k], ATT_F32));
            if (k == 1)
                n = read_weights(&rows[i], "best", best);
            if (k != 2)
                continue;
            need(att_training_save(r.training));
            close_run(&r);
            o.resume = true;
            r = open_run(ctx, &rows[i], "best", &o);
        }
        need(att_training_describe(r.training, &info));
        assert_true(info.evaluated == 5 && info.best_step == 2 && info.best == 0.7);
        assert_true(info.examples > 0 && info.parameters > 0 && !info.skipped_empty && !info.skipped_long);
        assert_int_equal(read_weights(&rows[i], "best", bytes), n);
        assert_memory_equal(bytes, best, n);
        need(att_training_write(r.training, 0, ATT_F32));
        read_weights(&rows[i], "best", bytes);
        assert_memory_not_equal(bytes, best, n);
        close_run(&r);
    }
    att_close(ctx);
}

static void an_average_is_the_mean_of_the_newest_checkpoints(void **state)
{
    (void)state;
    static float saved[3][MAX_PARAMETERS];
    att_ctx *ctx = check_open(NULL, 2);
    for (int i = 0; i < KINDS; i++) {
        int64_t n = 0;
        att_training_options o = common;
        o.keep = 3;
        run r = open_run(ctx, &rows[i], "averaged", &o);
        for (int k = 0; k < 3; k++) {
            make_steps(&r, 2);
            need(att_training_save(r.training));
            n = parameters(&r, saved[k]);
        }
        make_steps(&r, 1);
        need(att_training_write(r.training, 2, ATT_F32));
        for (int64_t k = 0; k < n; k++)
            saved[0][k] = (float)(((double)saved[1][k] + (double)saved[2][k]) / 2);
        expect_same(&r, saved[0], n);
        close_run(&r);
    }
    att_close(ctx);
}

/* ---- checkpoints of version 0.2 */

/* It had no beta2 but of recommenders, no weight decay and no score of translators. */
static void a_checkpoint_of_version_0_2_goes_on_with_the_same_bits(void **state)
{
    (void)state;
    static const char *const fields[] = {"decay", "judged_by", "judged", "best_step", "best"};
    static float whole[MAX_PARAMETERS];
    static checkpoint_file c;
    att_ctx *ctx = check_open(NULL, 1);
    for (int i = 0; i < KINDS; i++) {
        char name[96];
        att_training_options o = {.size = sizeof o, .schedule = &rates, .seed = 3};
        run r = open_run(ctx, &rows[i], "old", &o);
        make_steps(&r, 2);
        need(att_training_save(r.training));
        make_steps(&r, 2);
        const int64_t n = parameters(&r, whole);
        close_run(&r);
        snprintf(name, sizeof name, "%s-old/checkpoint-0000000002.safetensors", rows[i].name);
        checkpoint_read(&c, path_of(name));
        json_t *all = json_object_get(c.header, "__metadata__");
        if (i != 4)
            assert_int_equal(json_object_del(all, "beta2"), 0);
        for (size_t k = 0; !rows[i].evaluated && k < sizeof fields / sizeof fields[0]; k++)
            assert_int_equal(json_object_del(all, fields[k]), 0);
        checkpoint_write(&c, path_of(name));
        o.resume = true;
        o.beta2 = 0.9;
        r = open_run(ctx, &rows[i], "old", &o);
        assert_null(r.training);
        check_message(ctx, "\"beta2\"");
        close_run(&r);
        o.beta2 = 0;
        r = open_run(ctx, &rows[i], "old", &o);
        make_steps(&r, 2);
        expect_same(&r, whole, n);
        close_run(&r);
    }
    att_close(ctx);
}

/* ---- out of memory */

/* At many points of the start: no folder is left, and no memory. -> the number of starts that have failed */
static int fail_starts(const row *row, bool in_memory)
{
    char folder_of_model[64], name[64];
    int failed = 0;
    snprintf(folder_of_model, sizeof folder_of_model, "%s-begun", row->name); /* of a test above */
    snprintf(name, sizeof name, "%s-start", row->name);
    for (long k = 1, begun = 0; !begun; k += 1 + k / (check_step(2) > 1 ? 3 : 6)) {
        fail_alloc f = {.more = 1000000};
        att_ctx *ctx = fail_open(&f);
        run r = open_data(ctx, row);
        f.fail_at = f.calls + k;
        const att_status e =
            in_memory ? row->new (&r, path_of(folder_of_model), &common) : row->open(&r, path_of(name), &common);
        f.fail_at = 0;
        begun = r.training != NULL;
        failed += !begun;
        if (e != (begun ? ATT_OK : ATT_ERR_MEMORY))
            fail_msg("%s: status %d, %s", row->name, (int)e, att_error(ctx));
        assert_int_equal(access(path_of(name), F_OK), begun && !in_memory ? 0 : -1);
        close_run(&r);
        att_close(ctx);
        assert_int_equal(f.live, 0);
    }
    return failed;
}

static void a_start_that_runs_out_of_memory_leaves_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS; i++)
        for (int in_memory = 0; in_memory < 2; in_memory++)
            assert_true(fail_starts(&rows[i], in_memory) > 10);
}

/* A step, an evaluation or a checkpoint: nothing has changed, running statistics neither. */
static att_status make_step(run *r)
{
    att_training_report report = {.size = sizeof report};
    return att_training_step(r->training, &report);
}
static att_status evaluate(run *r) { return r->row->evaluate ? r->row->evaluate(r) : ATT_OK; }
static att_status keep_best(run *r)
{
    att_training_info info = {.size = sizeof info};
    const att_status e = att_training_describe(r->training, &info);
    return e ? e : att_training_keep_best(r->training, (double)att_training_steps(r->training), ATT_F32);
}
static att_status save(run *r) { return att_training_save(r->training); }

/* A batch that is read ahead by another thread may still have failed where memory was short: the next step reports
 * that, once. */
static void step_with_memory(run *r)
{
    const att_status e = make_step(r);
    if (e && (e != ATT_ERR_MEMORY || make_step(r)))
        fail_msg("%s: %s", r->row->name, att_error(r->ctx));
}

static void what_runs_out_of_memory_changes_no_bit(void **state)
{
    (void)state;
    static att_status (*const calls[])(run *) = {make_step, evaluate, keep_best, save};
    static float before[MAX_PARAMETERS];
    for (int i = 0; i < ROWS; i++) {
        fail_alloc f = {0};
        att_ctx *ctx = fail_open(&f);
        run r = open_run(ctx, &rows[i], "failing", &common);
        for (int first = 0; first < 8; first += 7) { /* in both phases of captions */
            make_steps(&r, first);
            const int64_t n = parameters(&r, before);
            for (int c = 3; c >= 0; c--) /* the step comes last */
                for (long k = 1, done = 0; !done; k += check_step(7) + k / 20) {
                    f.fail_at = f.calls + k;
                    f.more = 1000000;
                    const att_status e = calls[c](&r);
                    f.fail_at = 0;
                    done = e == ATT_OK;
                    if (!done && e != ATT_ERR_MEMORY)
                        fail_msg("%s: call %d: status %d, %s", rows[i].name, c, (int)e, att_error(ctx));
                    if (!done || c > 0)
                        expect_same(&r, before, n);
                }
            step_with_memory(&r);
        }
        close_run(&r);
        att_close(ctx);
        assert_int_equal(f.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interruptions_and_threads_change_no_bit),
        cmocka_unit_test(a_training_in_memory_has_the_bits_of_one_in_a_folder),
        cmocka_unit_test(a_step_has_as_many_batches_as_accumulate_says),
        cmocka_unit_test(options_of_the_optimizer_are_used),
        cmocka_unit_test(wrong_options_are_named),
        cmocka_unit_test(a_training_in_memory_has_no_folder),
        cmocka_unit_test(a_training_is_refused_where_it_would_spoil_another),
        cmocka_unit_test(the_folder_has_the_model_of_the_best_score),
        cmocka_unit_test(an_average_is_the_mean_of_the_newest_checkpoints),
        cmocka_unit_test(a_checkpoint_of_version_0_2_goes_on_with_the_same_bits),
        cmocka_unit_test(a_start_that_runs_out_of_memory_leaves_nothing),
        cmocka_unit_test(what_runs_out_of_memory_changes_no_bit),
    };
    return cmocka_run_group_tests(tests, write_data, remove_data);
}
