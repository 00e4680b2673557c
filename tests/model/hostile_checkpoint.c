/* Checkpoints that no training has made are refused, and none like that is saved. */
#include "fixtures/check.h"
#include "fixtures/checkpoint_file.h"
#include "fixtures/tiny_bert.h"
#include "train/training.h"
#include "fixtures/write_files.h"
#include "attend_sentence.h"

#include <math.h>

enum { PAIRS = 3, STEPS = 2 };

static const char *const texts[2 * PAIRS] = {"a b c", "a b d", "e f", "x y z w", "c", "q"};
static const double scores[PAIRS] = {0.9, 0.1, 0.5};

static test_folder model;
static char note[64];

static int set_up(void **state)
{
    (void)state;
    model = tiny_sentence();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    folder_remove(&model);
    return 0;
}

static att_training *open_training(att_ctx *ctx, const char *name, bool resume)
{
    att_training *t = NULL;
    const att_sentence_training_options o = {
        .size = sizeof o, .model = model.path, .pairs = PAIRS, .texts = texts, .scores = scores, .batch = 2};
    const att_training_options common = {.size = sizeof common,
                                         .resume = resume,
                                         .keep = 1,
                                         .note = note,
                                         .note_bytes = sizeof note,
                                         .schedule =
                                             &(const att_schedule){.size = sizeof(att_schedule), .max_rate = 1e-2}};
    if (att_sentence_training_open(ctx, path_in(&model, name), &common, &o, &t))
        assert_null(t);
    return t;
}

static void take_steps(att_training *t, int n)
{
    att_training_report r = {.size = sizeof r};
    for (int i = 0; i < n; i++)
        assert_int_equal(att_training_step(t, &r), ATT_OK);
}

/* ---- a checkpoint, changed */

/* Returns the numbers of the first tensor whose name begins so. */
static void *numbers_of(checkpoint_file *c, const char *name)
{
    const char *key;
    json_t *value;
    json_object_foreach(c->header, key, value)
    {
        if (!strncmp(key, name, strlen(name)))
            return c->bytes + c->data + json_integer_value(json_array_get(json_object_get(value, "data_offsets"), 0));
    }
    fail_msg("no tensor %s", name);
    return NULL;
}

typedef struct change {
    const char *field, *text; /* NULL: no fact is changed */
    const char *tensor;       /* NULL: none is */
    double number;
    const char *says; /* NULL: it is taken */
} change;

static void apply(checkpoint_file *c, const change *x)
{
    if (x->field)
        json_object_set_new(json_object_get(c->header, "__metadata__"), x->field, json_string(x->text));
    if (!x->tensor)
        return;
    if (strcmp(x->tensor, "steps") == 0)
        *(int64_t *)numbers_of(c, x->tensor) = x->number >= 0x1p63 ? INT64_MAX : (int64_t)x->number;
    else
        ((float *)numbers_of(c, x->tensor))[1] = (float)x->number;
}

static const change changes[] = {
    {.says = NULL},
    {"note", "anything", NULL, 0, NULL},
    {"step", "3", NULL, 0, "\"step\" is 3, not that of the file's name"},
    {"step", "-1", NULL, 0, "\"step\" is -1, not"},
    {"step", "9223372036854775807", NULL, 0, "\"step\" is 9223372036854775807, not"},
    {"step", "9223372036854775808", NULL, 0, "which is not a number"},
    {"step", "1e400", NULL, 0, "which is not a number"},
    {"step", "2.0", NULL, 0, "which is not a number"},
    {"step", "", NULL, 0, "which is not a number"},
    {"step", "-0", NULL, 0, "which is not a number"},
    {"step", "nan", NULL, 0, "which is not a number"},
    {"epochs", "9223372036854775807", NULL, 0, "\"epochs\" is 9223372036854775807 and \"batch\" 2, after 2 batches"},
    {"epochs", "-9223372036854775808", NULL, 0, "\"epochs\" is -9223372036854775808"},
    {"epochs", "3", NULL, 0, "\"epochs\" is 3"},
    {"epochs", "0", NULL, 0, "\"epochs\" is 0"},
    {"batch", "9223372036854775807", NULL, 0, "\"batch\" 9223372036854775807"},
    {"batch", "-1", NULL, 0, "\"batch\" -1"},
    {"judged", "3", NULL, 0, "\"judged\" is 3"},
    {"judged", "-9223372036854775808", NULL, 0, "\"judged\" is -9223372036854775808"},
    {"best_step", "2", NULL, 0, "\"best_step\" 2"},
    {"best", "0x7ff8000000000000", NULL, 0, "\"best\" nan"},
    {"best", "0x0000000000000001", NULL, 0, NULL},
    {"best", "0x7fefffffffffffff", NULL, 0, NULL},
    {"best", "NaN", NULL, 0, "which is not a number"},
    {"accumulate", "9223372036854775807", NULL, 0, "\"accumulate\" is 9223372036854775807 but here it is 1"},
    {"clip", "0x7ff0000000000000", NULL, 0, "\"clip\" is inf but here it is 0"},
    {NULL, NULL, "steps", -1, "\"step\" is 2 and the optimizer's \"steps\" -1"},
    {NULL, NULL, "steps", 0x1p63, "and the optimizer's \"steps\" 9223372036854775807"},
    {NULL, NULL, "embeddings", NAN, "has nan at 1"},
    {NULL, NULL, "embeddings", -INFINITY, "has -inf at 1"},
    {NULL, NULL, "embeddings", 1e-45, NULL},
    {NULL, NULL, "moment1.", INFINITY, "\" has inf at 1"},
    {NULL, NULL, "moment1.", -1e30, NULL},
    {NULL, NULL, "moment2.", NAN, "\"moment2."},
    {NULL, NULL, "moment2.", -1e-45, "has -1.4013e-45 at 1"},
    {NULL, NULL, "moment2.", -0.0, NULL},
    {NULL, NULL, "moment2.", 1e-45, NULL},
};

static void what_no_training_has_saved_is_refused(void **state)
{
    (void)state;
    static checkpoint_file c;
    char path[320];
    att_ctx *ctx = check_open("scalar", 1);
    snprintf(note, sizeof note, "mine");
    att_training *t = open_training(ctx, "one", false);
    assert_non_null(t);
    take_steps(t, STEPS);
    assert_int_equal(att_training_save(t), ATT_OK);
    att_training_free(t);
    snprintf(path, sizeof path, "%s/one/checkpoint-0000000002.safetensors", model.path);
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        const change *x = &changes[i];
        checkpoint_read(&c, path);
        apply(&c, x);
        assert_int_equal(mkdir(path_in(&model, "other"), 0777), 0);
        checkpoint_write(&c, path_in(&model, "other/checkpoint-0000000002.safetensors"));
        t = open_training(ctx, "other", true);
        if (x->says && t)
            fail_msg("not refused: %s", x->says);
        if (!x->says && !t)
            fail_msg("change %zu: %s", i, att_error(ctx));
        if (x->says)
            check_message(ctx, x->says);
        if (x->says)
            check_message(ctx, "other/checkpoint-0000000002.safetensors: ");
        else
            take_steps(t, 1);
        att_training_free(t);
        assert_int_equal(unlink(path_in(&model, "other/checkpoint-0000000002.safetensors")), 0);
        assert_int_equal(rmdir(path_in(&model, "other")), 0);
    }
    att_close(ctx);
}

static void a_renamed_checkpoint_or_one_that_is_a_link_is_refused(void **state)
{
    (void)state;
    att_ctx *ctx = check_open("scalar", 1);
    const char *from = path_in(&model, "one/checkpoint-0000000002.safetensors");
    assert_int_equal(rename(from, path_in(&model, "one/checkpoint-0000000009.safetensors")), 0);
    assert_null(open_training(ctx, "one", true));
    check_message(ctx, "checkpoint-0000000009.safetensors: \"step\" is 2, not that of the file's name");
    assert_int_equal(rename(path_in(&model, "one/checkpoint-0000000009.safetensors"), path_in(&model, "far")), 0);
    assert_int_equal(symlink("../far", path_in(&model, "one/checkpoint-0000000002.safetensors")), 0);
    assert_null(open_training(ctx, "one", true));
    check_message(ctx, "checkpoint-0000000002.safetensors: is not a file but a symbolic link");
    assert_int_equal(unlink(path_in(&model, "one/checkpoint-0000000002.safetensors")), 0);
    assert_int_equal(mkfifo(path_in(&model, "one/checkpoint-0000000002.safetensors"), 0666), 0);
    assert_null(open_training(ctx, "one", true));
    check_message(ctx, "checkpoint-0000000002.safetensors: is not a file but something else");
    att_close(ctx);
}

static void the_note_of_a_checkpoint_comes_back(void **state)
{
    (void)state;
    att_ctx *ctx = check_open("scalar", 1);
    snprintf(note, sizeof note, "before");
    att_training *t = open_training(ctx, "noted", false);
    assert_non_null(t);
    take_steps(t, 1);
    snprintf(note, sizeof note, "%063d", 7);
    assert_int_equal(att_training_save(t), ATT_OK);
    att_training_free(t);
    snprintf(note, sizeof note, "other");
    t = open_training(ctx, "noted", true);
    assert_non_null(t);
    att_training_free(t);
    assert_int_equal(strlen(note), 63);
    assert_int_equal(note[62], '7');
    att_close(ctx);
}

/* A moment of NaN makes weights of NaN in the next step. */
static void numbers_that_are_not_finite_are_not_saved_and_the_checkpoint_before_stays(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -1};
    att_ctx *ctx = check_open("scalar", 1);
    for (int i = 0; i < 3; i++) {
        char name[16], saved[64];
        snprintf(name, sizeof name, "nan%d", i);
        snprintf(saved, sizeof saved, "%s/checkpoint-0000000001.safetensors", name);
        static checkpoint_file before, after;
        att_training *t = open_training(ctx, name, false);
        assert_non_null(t);
        take_steps(t, 1);
        assert_int_equal(att_training_save(t), ATT_OK);
        checkpoint_read(&before, path_in(&model, saved));
        ((float *)att_optimizer_moment(t->optimizer, 0, 1)->data)[0] = bad[i];
        take_steps(t, 1);
        assert_int_equal(att_training_save(t), ATT_ERR_ARGUMENT);
        check_message(ctx, ": step 2 is not saved: \"");
        assert_int_equal(att_training_pause(t), ATT_ERR_ARGUMENT);
        if (i != 1) { /* where the mean of squares is infinite, the weight stays */
            assert_int_equal(att_training_write(t, 0, ATT_F32), ATT_ERR_ARGUMENT);
            check_message(ctx, ": the model of step 2 is not written: \"");
            assert_int_equal(att_training_keep_best(t, 1, ATT_F32), ATT_ERR_ARGUMENT);
            assert_int_equal(access(path_in(&model, "nan0/model.safetensors"), F_OK), -1);
        }
        att_training_free(t);
        checkpoint_read(&after, path_in(&model, saved));
        assert_int_equal(before.n, after.n);
        assert_memory_equal(before.bytes, after.bytes, before.n);
        json_decref(before.header);
        json_decref(after.header);
        t = open_training(ctx, name, true);
        assert_non_null(t);
        att_training_free(t);
    }
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_no_training_has_saved_is_refused),
        cmocka_unit_test(a_renamed_checkpoint_or_one_that_is_a_link_is_refused),
        cmocka_unit_test(the_note_of_a_checkpoint_comes_back),
        cmocka_unit_test(numbers_that_are_not_finite_are_not_saved_and_the_checkpoint_before_stays),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
