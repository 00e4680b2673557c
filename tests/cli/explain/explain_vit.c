/* attend explain vit: what it says of a tiny vision Transformer, and what it refuses. Its figures on the model that
 * comes with attend are in explain.sh. */
#include "fixtures/tiny_vit.h"
#include "fixtures/tool.h"

static test_folder of_class; /* ViTForImageClassification: $V */

#define SQUARE "\"size\": {\"height\": 12, \"width\": 12}"
#define OBLONG "\"size\": {\"height\": 8, \"width\": 12}, \"image_mean\": [0.5], \"image_std\": [0.5]"

/* Makes a folder for att_image_model_open, in the environment as $name. */
static test_folder vision_folder(const char *name, const char *tiny, const char *size)
{
    const test_folder f = tiny_vit_folder(tiny, NULL);
    char text[160];
    snprintf(text, sizeof text, "{\"image_processor_type\": \"ViTImageProcessor\", %s}", size);
    folder_write(&f, "preprocessor_config.json", text);
    setenv(name, f.path, 1);
    return f;
}

static int setup(void **state)
{
    char image[4096 + 64];
    assert_int_equal(tool_setup(state), 0);
    open_context(state);
    of_class = vision_folder("V", "vit", SQUARE);
    assert_non_null(getcwd(image, 4096));
    strcat(image, "/tests/golden/images/rgb.png");
    setenv("I", image, 1);
    return 0;
}

static int teardown(void **state)
{
    folder_remove(&of_class);
    close_context(state);
    return tool_teardown(state);
}

/* Returns how often a line of the page has this text in it, white space aside. */
static int lines(const char *part)
{
    char line[512];
    snprintf(line, sizeof line, "tr -s ' \\n' ' ' <page | grep -oF -- '%s' | wc -l", part);
    tool(line);
    return atoi(tool_out);
}

static void what_it_says_is_what_was_computed(void **state)
{
    (void)state;
    att_image image;
    att_image_model *m;
    float p[5];
    char part[96];
    int best = 0;
    assert_int_equal(tool("$A explain vit -m $V --image $I >page"), 0);
    assert_int_equal(lines("the same to six digits"), 3);
    assert_int_equal(lines("they differ"), 0);
    assert_int_equal(lines("k = h W^q max |S_ij - S_ji| 0.00"), 1);
    assert_int_equal(lines("[SA_1, ..., SA_K] W^O (N + 1) x D 10 x 16"), 1);
    assert_int_equal(att_image_open(ctx, getenv("I"), NULL, &image), ATT_OK);
    assert_int_equal(att_image_model_open(ctx, of_class.path, NULL, &m), ATT_OK);
    assert_int_equal(att_image_classify(m, 1, &image, NULL, p), ATT_OK);
    for (int i = 0; i < 5; i++)
        best = p[i] > p[best] ? i : best;
    snprintf(part, sizeof part, "image, NULL, probability); LABEL_%d %.1f %% LABEL_", best, 100 * p[best]);
    assert_int_equal(lines(part), 1);
    snprintf(part, sizeof part, "right LABEL_%d %.1f %% %.1f %%", best, 100 * p[best], 100 * p[best]);
    assert_int_equal(lines(part), 1);
    att_image_model_free(m);
    att_image_free(ctx, &image);
}

static void it_is_told_in_japanese_and_no_line_is_too_long(void **state)
{
    (void)state;
    assert_int_equal(tool("$A explain vit -m $V --image $I --lang ja >page"), 0);
    assert_int_equal(lines("六桁まで一致します"), 3);
    assert_int_equal(tool("$A explain vit -m $V --image $I >>page; "
                          "LC_ALL=C awk '{ gsub(/[\\200-\\277]/, \"\") } length > 80' page"),
                     0);
    assert_string_equal(tool_out, "");
}

static void the_drawing_has_the_picture_its_patches_and_two_maps(void **state)
{
    (void)state;
    assert_int_equal(tool("$A explain vit -m $V --image $I --svg v.svg >page && cat v.svg"), 0);
    assert_int_equal(count(tool_out, "<svg "), 1);
    assert_int_equal(count(tool_out, "</svg>"), 1);
    assert_has(tool_out, "<title>The Vision Transformer</title>");
    assert_has(tool_out, ">Its patches</text>");
    assert_has(tool_out, ">[CLS]: layer 1, mean of heads</text>");
    assert_int_equal(count(tool_out, "<title>9: "), 2); /* the last patch */
    assert_int_equal(count(tool_out, "<title>10: "), 0);
    assert_int_equal(tool("$A explain vit -m $V --image $I --svg v.svg --lang ja >page && cat v.svg"), 0);
    assert_has(tool_out, ">[CLS]：層1、ヘッドの平均</text>");
}

/* 14 x 14 pixels in patches of 4 x 4: the last two rows and columns are in none. */
static void what_is_left_of_an_image_is_in_no_patch(void **state)
{
    (void)state;
    const test_folder large = vision_folder("L", "vit", "\"size\": {\"height\": 14, \"width\": 14}");
    assert_int_equal(tool("sed -i 's/\"image_size\": 12/\"image_size\": 14/' $L/config.json; "
                          "$A explain vit -m $L --image $I >page"),
                     0);
    assert_int_equal(lines("9 patches of 4 x 4"), 1);
    /* of the first row of patches: 14 columns of the image, then three patches of 4 */
    assert_int_equal(tool("LC_ALL=C.UTF-8 grep -cE '^ *[·░▒▓█]{14}    [·░▒▓█]{4} [·░▒▓█]{4} [·░▒▓█]{4}$' page"), 0);
    assert_string_equal(tool_out, "5\n");
    folder_remove(&large);
}

static void the_model_that_comes_along_is_the_default(void **state)
{
    (void)state;
    if (tool("$A info | grep -q fashion-mnist"))
        skip(); /* not in this tree */
    assert_int_equal(tool("$A explain vit >page"), 0);
    assert_int_equal(lines("the same to six digits"), 3);
    assert_int_equal(lines("right Ankle boot"), 1);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    const test_folder timm = vision_folder("TIMM", "timm_vit", SQUARE),
                      oblong = vision_folder("OBLONG", "vit_oblong", OBLONG);
    const test_folder features = vision_folder("FEATURES", "vit_model", SQUARE);
    const char *classes = "the chapter reads models of the class ViTForImageClassification";
    assert_refused("$A explain vit -m $TIMM --image $I", 1, classes);
    assert_refused("$A explain vit -m $FEATURES --image $I", 1, classes);
    assert_refused("$A explain vit -m $OBLONG --image $I", 1, "hidden_act is not \"gelu\"");
    assert_refused("$A explain vit -m $V", 2, " needs a picture: --image FILE");
    assert_refused("$A explain vit -m $V --image none.png", 1, "none.png: No such file or directory");
    assert_refused("$A explain vit -m $V --image $V/config.json", 1, "config.json");
    assert_refused("$A explain vit -m nix --image $I", 1, "\"nix\" is neither a folder nor a model in ");
    assert_refused("$A explain vit -m $D --image $I", 1, "is a sentence model: attend embed");
    assert_refused("$A explain vit -m $V --image $I --svg none/v.svg", 1, "none/v.svg: No such file or directory");
    assert_refused("$A explain vit --query 1", 2, "vit is on a picture");
    assert_refused("$A explain vit --text a", 2, "vit is on a picture");
    assert_refused("$A explain softmax --image $I", 2, "softmax is on vectors");
    assert_refused("$A explain three-uses --image $I", 2, "three-uses is on a sentence");
    folder_remove(&timm);
    folder_remove(&oblong);
    folder_remove(&features);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_it_says_is_what_was_computed),
        cmocka_unit_test(it_is_told_in_japanese_and_no_line_is_too_long),
        cmocka_unit_test(the_drawing_has_the_picture_its_patches_and_two_maps),
        cmocka_unit_test(what_is_left_of_an_image_is_in_no_patch),
        cmocka_unit_test(the_model_that_comes_along_is_the_default),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
