/* attend train classify and attend evaluate classify: from labeled images to a vision model, killed on the way or not,
 * and how good it is. */
// labels: trains
#include "fixtures/idx_files.h"
#include "fixtures/stopped.h"

#include "attend_vision.h"

#include <math.h>

#define TRAIN                                                                                                          \
    "$A train classify --data . --config small.json --batch 32 --rate 1e-2 --crop 1 --labels rows,columns,diagonals "  \
    "--threads 2 "

static int set_up(void **state)
{
    (void)state;
    char *golden = realpath("tests/golden/images", NULL);
    assert_non_null(golden);
    setenv("A", ATTEND_TOOL, 1);
    setenv("G", golden, 1);
    free(golden);
    tool_model = folder_new();
    stripes_write(&tool_model, "train", 240, 1);
    stripes_write(&tool_model, "t10k", 60, 2);
    folder_write(&tool_model, "small.json",
                 "{\"model_type\": \"vit\", \"patch_size\": 2, \"hidden_size\": 16, \"num_hidden_layers\": 2, "
                 "\"num_attention_heads\": 2, \"intermediate_size\": 32}");
    return 0;
}

static void stripes_are_learned_and_evaluated(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN "--epochs 80 --flip --average 3 --dtype f16 -o trained"), 0);
    assert_has(tool_err, "228 images of 3 classes; 12 for validation");
    assert_has(tool_err, "step 640, epoch 80: loss ");
    assert_has(tool_err, "of the time waited for images");
    assert_has(tool_err, "the mean of the last checkpoints, up to 3: on validation ");
    assert_has(tool_err, "trained is a model now: attend classify -m trained");
    assert_int_equal(tool("$A plot -y accuracy,loss trained/log.jsonl -o trained.svg"), 0);
    assert_int_equal(tool("$A evaluate classify -m trained --data . --json"), 0);
    json_t *v = line_json(0), *classes = json_object_get(v, "classes"), *confusion = json_object_get(v, "confusion");
    assert_int_equal(number(v, "images"), 60);
    const double right = number(v, "right");
    assert_true(right >= 57 && fabs(number(v, "accuracy") - right / 60) < 1e-7);
    assert_true(number(v, "low") < right / 60 && number(v, "high") >= right / 60);
    assert_null(json_object_get(v, "top5"));
    assert_int_equal(json_array_size(classes), 3);
    assert_string_equal(json_string_value(json_object_get(json_array_get(classes, 1), "label")), "columns");
    double trace = 0, all = 0;
    for (size_t i = 0; i < 9; i++) {
        const double n = json_number_value(json_array_get(json_array_get(confusion, i / 3), i % 3));
        trace += i / 3 == i % 3 ? n : 0;
        all += n;
    }
    assert_true(trace == right && all == 60);
    json_decref(v);
    assert_int_equal(tool("$A evaluate classify -m trained --data . --split train --confusion matrix.svg"), 0);
    assert_has(tool_out, "of 240 images\n");
    assert_has(tool_out, "  1  columns        80   ");
    assert_int_equal(tool("grep -c diagonals matrix.svg"), 0);
}

/* Classifies n black images, which all have the same answer. */
static json_t *evaluate_black(int n, const uint8_t *labels)
{
    static const uint8_t pixels[STRIPES_MAX * STRIPES_SIDE * STRIPES_SIDE];
    test_folder black;
    snprintf(black.path, sizeof black.path, "%.40s/black", tool_model.path);
    mkdir(black.path, 0777);
    idx_write(&black, "t10k", n, STRIPES_SIDE, pixels, labels);
    assert_int_equal(tool("$A evaluate classify -m any --data black --json"), 0);
    return line_json(0);
}

/* Intervals of Newcombe 1998, table I, method 3, to its four digits */
static void the_interval_is_that_of_wilson(void **state)
{
    (void)state;
    static const struct {
        int right, n;
        double low, high;
    } cases[] = {{15, 148, 0.0624, 0.1605}, {0, 20, 0, 0.1611}, {1, 29, 0.0061, 0.1718}};
    uint8_t labels[STRIPES_MAX] = {0};
    assert_int_equal(tool(TRAIN "--epochs 1 -o any"), 0);
    json_t *v = evaluate_black(10, labels);
    const json_t *row = json_array_get(json_object_get(v, "confusion"), 0);
    int answer = 0;
    while (json_number_value(json_array_get(row, (size_t)answer)) < 10)
        answer++;
    json_decref(v);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int k = 0; k < cases[i].n; k++)
            labels[k] = (uint8_t)((answer + (k >= cases[i].right)) % 3);
        v = evaluate_black(cases[i].n, labels);
        assert_int_equal(number(v, "right"), cases[i].right);
        check_near(cases[i].low, number(v, "low"), 5e-5, "low of %d", cases[i].right);
        check_near(cases[i].high, number(v, "high"), 5e-5, "high of %d", cases[i].right);
        json_decref(v);
    }
}

/* The first one of several that are equally good; --json and the note name it, with its interval. */
static void the_best_validated_model_is_kept(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN "--epochs 12 --schedule constant --warmup 0 --rate 0.05 --valid-share 0.3 --json "
                                "-o best && mv best/model.safetensors kept"),
                     0);
    json_t *v = line_json(0);
    const double score = number(v, "accuracy"), step = number(v, "step"), low = number(v, "low");
    assert_true(low < score && score <= number(v, "high") && number(v, "high") <= 100);
    json_decref(v);
    assert_has(tool_err, " with the highest accuracy on validation, ");
    double highest = -1, at = 0;
    assert_int_equal(tool("cat best/log.jsonl"), 0);
    const int lines = count(tool_out, "\n");
    for (int i = 0; i < lines; i++) {
        v = line_json(i);
        assert_true(number(v, "accuracy_low") <= number(v, "accuracy"));
        if (number(v, "accuracy") > highest) {
            highest = number(v, "accuracy");
            at = number(v, "step");
        }
        json_decref(v);
    }
    assert_true(lines == 12 && step == at && fabs(score - highest) < 1e-3);
    char line[256];
    snprintf(line, sizeof line,
             TRAIN "--steps %.0f --schedule constant --warmup 0 --rate 0.05 --valid-share 0.3 -o until && "
                   "cmp until/model.safetensors kept",
             step);
    assert_int_equal(tool(line), 0);
}

static void a_balanced_training_that_is_stopped_has_the_same_bits(void **state)
{
    (void)state;
#define BALANCED TRAIN "--balance --epochs 6 --flip --mixup 0.3 --dropout 0.1 --save-every 3 "
    assert_int_equal(tool(BALANCED "-o through --json"), 0);
    json_t *v = line_json(0);
    assert_true(number(v, "low") < number(v, "balanced_accuracy"));
    json_decref(v);
    assert_has(tool_err, "with the highest balanced accuracy on validation, ");
    assert_int_equal(tool(BALANCED "-o stops --minutes 0.00001 && $A train classify --resume -o stops --minutes 0 && "
                                   "cmp through/model.safetensors stops/model.safetensors"),
                     0);
    assert_int_equal(tool(SAME_LOG("through/log.jsonl", "stops/log.jsonl")), 0);
    assert_int_equal(tool("grep -c '\"balanced_accuracy_low\": ' through/log.jsonl"), 0);
    assert_int_equal(tool(TRAIN "--epochs 6 --flip --mixup 0.3 --dropout 0.1 --save-every 3 -o plain && "
                                "cmp -s through/model.safetensors plain/model.safetensors"),
                     1); /* it has another order */
}

static void wrong_answers_are_listed_the_most_confident_first(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN "--epochs 1 -o weak && $A evaluate classify -m weak --data . --wrong wrong.tsv --json"),
                     0);
    json_t *v = line_json(0);
    const int wrong = (int)(number(v, "images") - number(v, "right"));
    assert_true(number(v, "balanced_low") < number(v, "balanced_accuracy") &&
                number(v, "balanced_accuracy") < number(v, "balanced_high"));
    json_decref(v);
    assert_int_equal(tool("head -n 1 wrong.tsv"), 0);
    assert_string_equal(tool_out, "image\tclass\tanswer\tprobability\n");
    assert_int_equal(
        tool("sed 1d wrong.tsv | LC_ALL=C sort -t \"$(printf '\\t')\" -s -k4,4gr >sorted; sed 1d wrong.tsv "
             "| cmp - sorted && awk -F '\\t' '$2 == $3 || NF != 4 || $4 > 1' sorted | wc -l && wc -l <sorted"),
        0);
    assert_true(wrong > 0 && atoi(tool_out) == 0 && atoi(strchr(tool_out, '\n')) == wrong);
}

static void a_training_that_is_killed_again_and_again_has_the_same_result(void **state)
{
    (void)state;
    assert_kills_change_nothing(TRAIN "--epochs 12 --flip --mixup 0.2 --cutout 2 --dropout 0.1 --save-every 3", 2, 7, 5,
                                100);
    assert_int_equal(tool(SAME_LOG("calm/log.jsonl", "killed/log.jsonl")), 0);
}

static void a_training_that_is_interrupted_is_a_model(void **state)
{
    (void)state;
    uint8_t pixels[64] = {0};
    att_ctx *ctx = check_open(NULL, 1);
    att_image_bytes png;
    assert_int_equal(
        att_image_encode_png(ctx, &(att_image){.height = 8, .width = 8, .channels = 1, .pixels = pixels}, &png),
        ATT_OK);
    FILE *f = folder_open(&tool_model, "black.png");
    fwrite(png.data, 1, png.bytes, f);
    fclose(f);
    att_image_bytes_free(ctx, &png);
    att_close(ctx);
    assert_interrupt_leaves_a_model(TRAIN "--epochs 100000 --save-every 1", "classify", "", "black.png");
}

static void what_cannot_be_trained_on_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int code;
        const char *says;
    } cases[] = {
        {"$A train classify -o x", 2, "--data"},
        {"$A train classify --data nowhere -o x", 1, "nowhere: No such file"},
        {"mkdir -p empty; $A train classify --data empty -o x", 1, "empty has no folders; expected a folder for each"},
        {TRAIN "--preset tiny -o x", 2, "--preset does not go with --config"},
        {TRAIN "--size 9 -o x", 2, "--size does not go with --config"},
        {"$A train classify --data . --size 9 -o x", 2, "--size 9 is not a multiple of 4, the side of a patch"},
        {TRAIN "-m any -o x", 2, "--config does not go with --model"},
        {TRAIN "--crop 8 -o x", 2, "attend: --crop is 8, but the model's images have 8 x 8"},
        {TRAIN "--mixup 1e-309 -o x", 2, "--mixup is 1e-309, expected 0 or at least 0.001"},
        {TRAIN "--labels a,,b -o x", 2, "--labels \"a,,b\" has an empty name"},
        {TRAIN "--labels a,b -o x", 1, "is of class 2, but there are 2 labels"},
        {"mkdir -p single/a single/b; cp $G/rgb.png single/a; cp $G/rgb.png single/b; "
         "$A train classify --data single -o x",
         1,
         "single: each of the 2 classes has at most one image, so none can be held out; use --valid FOLDER, or "
         "--valid-share 0"},
        {"mkdir -p alone/a; cp $G/rgb.png alone/a; $A train classify --data alone -o x", 1,
         "alone has only one class, \"a\"; a training needs two"},
        {"mkdir -p $(printf 'bytes/caf\\351') bytes/b; for i in bytes/*; do cp $G/rgb.png $i/1.png; cp $G/rgb.png "
         "$i/2.png; done; $A train classify --data bytes -o x",
         1, "the name of class 1 is not UTF-8"},
        {TRAIN "--mixup -1 -o x", 2, "--mixup"},
        {"$A train classify --data . -m nothing -o x", 1, "nothing"},
        {"$A train classify --resume -o x", 1, "x: there is no training to continue"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_refused(cases[i].line, cases[i].code, cases[i].says);
        assert_int_equal(tool("test ! -e x"), 0);
    }
}

static void options_are_stored_for_resume(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN "--epochs 2 --mixup 0.5 --save-every 3 -o stored"), 0);
    assert_refused("$A train classify --resume -o stored --mixup 0.2", 2, "--mixup is 0.5 in stored but 0.2 here");
    assert_refused("mkdir other; $A train classify --resume -o stored --data other", 2, " in stored but other here");
    assert_int_equal(tool("$A train classify --resume -o stored"), 0);
    assert_has(tool_err, "stored is a model that has finished its training, and stays as it is");
    assert_refused("$A train embed --resume -o stored", 1, "attend train classify --resume -o stored");
}

static void a_model_learns_on_with_other_classes(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN "--epochs 1 -o first"), 0);
    assert_int_equal(tool("$A train classify --data . -m first --labels a,b,c,d --valid . --epochs 1 -o second"), 0);
    assert_has(tool_err, "240 images of 4 classes; 60 for validation");
    assert_int_equal(tool("grep -c '\"d\"' second/config.json"), 0);
    /* Files that only number their classes: the model's names stay. */
    assert_int_equal(tool("$A train classify --data . -m first --epochs 1 -o third"), 0);
    assert_int_equal(tool("grep -c '\"diagonals\"' third/config.json"), 0);
    assert_refused("$A evaluate classify -m first --data . --split test --confusion /nowhere/x.svg", 1,
                   "/nowhere/x.svg");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stripes_are_learned_and_evaluated),
        cmocka_unit_test(the_interval_is_that_of_wilson),
        cmocka_unit_test(what_cannot_be_trained_on_is_named),
        cmocka_unit_test(options_are_stored_for_resume),
        cmocka_unit_test(a_model_learns_on_with_other_classes),
        cmocka_unit_test(the_best_validated_model_is_kept),
        cmocka_unit_test(a_balanced_training_that_is_stopped_has_the_same_bits),
        cmocka_unit_test(wrong_answers_are_listed_the_most_confident_first),
        cmocka_unit_test(a_training_that_is_interrupted_is_a_model),
        cmocka_unit_test(a_training_that_is_killed_again_and_again_has_the_same_result),
    };
    return cmocka_run_group_tests(tests, set_up, tool_teardown);
}
