/* Trainings whose products are of bf16: the same bits after an interruption and for any number of threads, another
 * compute refused, losses as near to those of f32 as another seed's. */
#include "fixtures/trainings.h"

#include <math.h>

/* Returns the options of a training in mixed precision. */
static att_training_options mixed(void)
{
    att_training_options o = common;
    o.compute = ATT_COMPUTE_BF16;
    return o;
}

/* On other sets each training is refused, with the words of att_compute_choose. */
static bool multiplies_bf16(att_ctx *ctx)
{
    att_compute is;
    char words[256];
    const att_training_options options = mixed();
    if (att_compute_choose(ctx, ATT_COMPUTE_BF16, &is) == ATT_OK)
        return true;
    snprintf(words, sizeof words, "%s", att_error(ctx));
    for (int i = 0; i < KINDS; i++) {
        run r = open_run(ctx, &rows[i], "refused", &options);
        assert_null(r.training);
        assert_string_equal(att_error(ctx), words);
        close_run(&r);
    }
    return false;
}

enum { STEPS = 6 };

static void interruptions_and_threads_change_no_bit(void **state)
{
    (void)state;
    static float whole[MAX_PARAMETERS], usual[MAX_PARAMETERS];
    att_training_options options = mixed();
    att_ctx *ctx = check_open(NULL, 2);
    for (int i = 0; i < KINDS && multiplies_bf16(ctx); i++) {
        run r = open_run(ctx, &rows[i], "f32", &common);
        make_steps(&r, STEPS);
        parameters(&r, usual);
        close_run(&r);
        r = open_run(ctx, &rows[i], "whole", &options);
        make_steps(&r, STEPS);
        const int64_t n = parameters(&r, whole);
        if (are_same(&r, usual, n))
            fail_msg("%s: the parameters are those of f32", rows[i].name);
        close_run(&r);
        for (int part = 0; part < 2; part++) {
            att_ctx *own = check_open(NULL, 1 + 2 * part);
            options.resume = part > 0;
            r = open_run(own, &rows[i], "parts", &options);
            make_steps(&r, STEPS / 2);
            if (part)
                expect_same(&r, whole, n);
            else
                need(att_training_save(r.training));
            close_run(&r);
            att_close(own);
        }
        options.resume = false;
    }
    att_close(ctx);
}

static void resuming_refuses_another_compute(void **state)
{
    (void)state;
    att_training_options options = mixed();
    att_ctx *ctx = check_open(NULL, 1);
    for (int i = 0; i < KINDS && multiplies_bf16(ctx); i++) {
        run r = open_run(ctx, &rows[i], "bf16", &options);
        make_steps(&r, 1);
        need(att_training_save(r.training));
        close_run(&r);
        options.resume = true;
        options.compute = ATT_COMPUTE_F32;
        r = open_run(ctx, &rows[i], "bf16", &options);
        assert_null(r.training);
        assert_non_null(strstr(att_error(ctx), "\"compute\" is \"bf16\" but here it is \"f32\""));
        close_run(&r);
        options = mixed();
    }
    att_close(ctx);
}

/* Returns the mean loss of the first steps. */
static double mean_loss(att_ctx *ctx, const row *row, const char *name, const att_training_options *options)
{
    double sum = 0;
    run r = open_run(ctx, row, name, options);
    for (int i = 0; i < STEPS; i++)
        sum += make_steps(&r, 1).loss / STEPS;
    close_run(&r);
    return sum;
}

/* The seed changes initialization, order and dropout. A change of rounding may change the loss as much as that: the
 * losses of one seed differ by at most the range of three. */
static void losses_are_within_the_range_of_three_seeds(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 2);
    for (int i = 0; i < KINDS && multiplies_bf16(ctx); i++) {
        double exact[3];
        for (int seed = 0; seed < 3; seed++) {
            char name[16];
            att_training_options options = common;
            options.seed = common.seed + (uint64_t)seed;
            snprintf(name, sizeof name, "seed-%d", seed);
            exact[seed] = mean_loss(ctx, &rows[i], name, &options);
        }
        const att_training_options options = mixed();
        const double range = fmax(fmax(exact[0], exact[1]), exact[2]) - fmin(fmin(exact[0], exact[1]), exact[2]);
        const double loss = mean_loss(ctx, &rows[i], "mixed", &options);
        if (!(range > 0) || !(fabs(loss - exact[0]) <= range))
            fail_msg("%s: the loss is %g in f32 and %g in bf16, three seeds have a range of %g", rows[i].name, exact[0],
                     loss, range);
    }
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interruptions_and_threads_change_no_bit),
        cmocka_unit_test(resuming_refuses_another_compute),
        cmocka_unit_test(losses_are_within_the_range_of_three_seeds),
    };
    return cmocka_run_group_tests(tests, write_data, remove_data);
}
