/* Trainings that freeze a part of the model, each kind: it stays, the rest learns, and a resume has the same bits; in
 * memory the caller's parameters learn again afterwards. */
// labels: trains
#include "fixtures/fail_alloc.h"
#include "fixtures/trainings.h"
#include "train/training.h"

/* The first parameter, which is frozen: its name, numbers and a copy of these, to be freed */
typedef struct first_parameter {
    char name[96];
    att_param *p;
    size_t bytes;
    void *was;
} first_parameter;

static first_parameter first_of(const run *r)
{
    first_parameter f;
    const char *name;
    f.p = att_training_param(r->training, 0, &name);
    snprintf(f.name, sizeof f.name, "%s", name);
    const att_tensor *x = att_param_value(f.p);
    f.bytes = (size_t)(x->dim[0] * x->stride[0]) * 4;
    f.was = malloc(f.bytes);
    memcpy(f.was, x->data, f.bytes);
    return f;
}

static att_training_options freezing(const char *const *pattern)
{
    att_training_options o = common;
    o.freeze = pattern;
    o.n_freeze = 1;
    return o;
}

static void a_frozen_part_stays_and_a_resume_has_the_same_bits(void **state)
{
    (void)state;
    static float whole[MAX_PARAMETERS];
    for (int i = 0; i < ROWS; i++) {
        att_ctx *ctx = check_open(NULL, 2);
        run r = open_run(ctx, &rows[i], "learns", &common);
        assert_non_null(r.training);
        first_parameter f = first_of(&r);
        att_training_info all = {.size = sizeof all}, some = {.size = sizeof some};
        need(att_training_describe(r.training, &all));
        close_run(&r);
        const char *pattern = f.name;
        att_training_options options = freezing(&pattern);
        r = open_run(ctx, &rows[i], "frozen-whole", &options);
        assert_non_null(r.training);
        need(att_training_describe(r.training, &some));
        assert_true(some.frozen > 0 && some.parameters + some.frozen == all.parameters && !all.frozen);
        make_steps(&r, 6);
        const int64_t n = parameters(&r, whole);
        const char *name;
        assert_memory_equal(att_param_value(att_training_param(r.training, 0, &name))->data, f.was, f.bytes);
        assert_null(att_optimizer_moment(r.training->optimizer, 0, 0));
        assert_non_null(att_optimizer_moment(r.training->optimizer, 1, 0));
        close_run(&r);
        for (int part = 0; part < 2; part++) {
            options.resume = part;
            r = open_run(ctx, &rows[i], "frozen-parts", &options);
            assert_non_null(r.training);
            make_steps(&r, 3);
            need(att_training_save(r.training));
            if (part)
                expect_same(&r, whole, n);
            close_run(&r);
        }
        options.n_freeze = 0;
        r = open_run(ctx, &rows[i], "frozen-parts", &options);
        assert_null(r.training);
        check_message(ctx, "\"freeze\" is");
        close_run(&r);
        free(f.was);
        att_close(ctx);
    }
}

static void in_memory_the_callers_parameters_learn_again(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        char name[64];
        att_ctx *ctx = check_open(NULL, 2);
        run r = open_run(ctx, &rows[i], "base", &common);
        assert_non_null(r.training);
        need(att_training_write(r.training, 0, ATT_F32));
        first_parameter f = first_of(&r);
        close_run(&r);
        const char *pattern = f.name;
        const att_training_options options = freezing(&pattern);
        r = open_data(ctx, &rows[i]);
        snprintf(name, sizeof name, "%s-base", rows[i].name);
        need(rows[i].new(&r, path_of(name), &options));
        first_parameter mine = first_of(&r);
        assert_true(att_param_frozen(mine.p));
        make_steps(&r, 2);
        assert_memory_equal(att_param_value(mine.p)->data, mine.was, mine.bytes);
        att_training_free(r.training);
        r.training = NULL;
        assert_false(att_param_frozen(mine.p));
        close_run(&r);
        free(f.was), free(mine.was);
        att_close(ctx);
    }
}

/* It is refused after it has frozen all, or when memory runs out anywhere. */
static void after_a_refused_training_the_callers_parameters_learn(void **state)
{
    (void)state;
    static const char *all = "*", *part = "encoder";
    fail_alloc f = {0};
    att_ctx *ctx = fail_open(&f);
    run r = open_run(ctx, &rows[0], "base", &common);
    assert_non_null(r.training);
    need(att_training_write(r.training, 0, ATT_F32));
    close_run(&r);
    char path[64];
    snprintf(path, sizeof path, "%s-base", rows[0].name);
    const att_training_options refused = freezing(&all), options = freezing(&part);
    r = open_data(ctx, &rows[0]);
    assert_int_equal(rows[0].new(&r, path_of(path), &refused), ATT_ERR_ARGUMENT);
    check_message(ctx, "options.freeze: all ");
    att_training *training = NULL;
    const att_translator_training_options translator = translator_options();
    for (long k = 1; !training; k += check_step(3)) {
        const char *name;
        att_param *p;
        for (int64_t i = 0; (p = att_nn_params_at(att_model_params(r.model), i, &name)); i++)
            if (att_param_frozen(p))
                fail_msg("%s is frozen", name);
        f.fail_at = f.calls + k;
        f.more = 1000000;
        const att_status e = att_translator_training_new(r.model, r.tokenizer, &options, &translator, &training);
        f.fail_at = 0;
        assert_true(e == ATT_OK || e == ATT_ERR_MEMORY);
    }
    att_training_free(training);
    close_run(&r);
    att_close(ctx);
    assert_int_equal(f.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frozen_part_stays_and_a_resume_has_the_same_bits),
        cmocka_unit_test(in_memory_the_callers_parameters_learn_again),
        cmocka_unit_test(after_a_refused_training_the_callers_parameters_learn),
    };
    return cmocka_run_group_tests(tests, write_data, remove_data);
}
