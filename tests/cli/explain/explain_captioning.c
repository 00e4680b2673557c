/* attend explain captioning: what it says of a tiny captioner, and what it refuses. Its figures on the model that comes
 * with attend are in explain.sh. */
#include "fixtures/captioner.h"
#include "fixtures/tool.h"
#include "fixtures/trace_rows.h"
#include "attend_caption.h"

static test_folder of_gru, of_transformer; /* $C, $T */

static int setup(void **state)
{
    uint8_t pixels[CAPTIONER_SIDE][CAPTIONER_SIDE][3];
    const att_image image = {CAPTIONER_SIDE, CAPTIONER_SIDE, 3, &pixels[0][0][0]};
    att_image_bytes png;
    assert_int_equal(open_context(state) || tool_setup(state), 0);
    of_gru = captioner_folder(CAPTIONER_GRU, true);
    of_transformer = captioner_folder(CAPTIONER_TRANSFORMER, false);
    setenv("C", of_gru.path, 1);
    setenv("T", of_transformer.path, 1);
    captioner_image(pixels, 0);
    assert_int_equal(att_image_encode_png(ctx, &image, &png), ATT_OK);
    FILE *f = folder_open(&tool_model, "red.png");
    assert_int_equal(fwrite(png.data, 1, png.bytes, f), png.bytes);
    assert_int_equal(fclose(f), 0);
    att_image_bytes_free(ctx, &png);
    return 0;
}

static int teardown(void **state)
{
    folder_remove(&of_gru);
    folder_remove(&of_transformer);
    return tool_teardown(state) || close_context(state);
}

/* Returns how often the page has this text in it, white space aside. */
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
    att_caption_model *m;
    att_image_caption c;
    att_trace *t;
    char part[128], path[4096 + 16];
    assert_int_equal(tool("$A explain captioning -m $C --image red.png >page; grep -c . page"), 0);
    assert_int_equal(lines("the same to six digits"), 1);
    assert_int_equal(lines("the same to five digits"), 4);
    assert_int_equal(lines("they differ"), 0);
    assert_int_equal(lines("&caption); a red square"), 1);
    assert_int_equal(lines("a 1.000 2.000 "), 1); /* sums by columns of a map */
    assert_int_equal(lines("ATT_ERR_SHAPE: b.dim[1] = 12 but a.dim[1] = 8"), 1);
    snprintf(path, sizeof path, "%s/red.png", tool_model.path);
    assert_int_equal(att_image_open(ctx, path, NULL, &image), ATT_OK);
    assert_int_equal(att_caption_model_open(ctx, of_gru.path, NULL, &m), ATT_OK);
    assert_int_equal(att_caption(m, 1, &image, NULL, &c), ATT_OK);
    assert_int_equal(att_caption_trace(m, &image, c.ids, c.count, NULL, &t), ATT_OK);
    float *weights = trace_weights(t, ATT_TRACE_SIDE_CROSS, -1, -1);
    float sum[CAPTIONER_LOCATIONS] = {0};
    for (int64_t i = 0; i < c.count * CAPTIONER_LOCATIONS; i++)
        sum[i % CAPTIONER_LOCATIONS] += weights[i];
    snprintf(part, sizeof part, "row 1 %.2f %.2f row 2 %.2f %.2f", sum[0], sum[1], sum[2], sum[3]);
    assert_int_equal(lines(part), 1);
    free(weights);
    att_trace_free(t);
    att_image_caption_free(ctx, &c);
    att_caption_model_free(m);
    att_image_free(ctx, &image);
}

/* A model without a gate says nothing of one. */
static void a_gate_is_shown_where_there_is_one(void **state)
{
    (void)state;
    const test_folder without = captioner_folder(
        "\"decoder\": \"gru\", \"attention\": \"additive\", \"embedding_size\": 8, \"num_layers\": 1", false);
    setenv("W", without.path, 1);
    assert_int_equal(tool("$A explain captioning -m $C --image red.png >page"), 0);
    assert_int_equal(lines("β_t = σ"), 1);
    assert_int_equal(tool("$A explain captioning -m $W --image red.png >page"), 0);
    assert_int_equal(lines("β"), 0);
    assert_int_equal(lines("the same to six digits"), 1);
    assert_int_equal(lines("the same to five digits"), 4);
    folder_remove(&without);
}

static void it_is_told_in_japanese_and_no_line_is_too_long(void **state)
{
    (void)state;
    assert_int_equal(tool("$A explain captioning -m $C --image red.png --lang ja >page"), 0);
    assert_int_equal(lines("六桁まで一致します"), 1);
    assert_int_equal(lines("五桁まで一致します"), 4);
    assert_int_equal(tool("$A explain captioning -m $C --image red.png >>page; "
                          "LC_ALL=C awk '{ gsub(/[\\200-\\277]/, \"\") } length > 80' page"),
                     0);
    assert_string_equal(tool_out, "");
}

static void the_drawing_has_a_map_of_each_word(void **state)
{
    (void)state;
    assert_int_equal(tool("$A explain captioning -m $C --image red.png --svg c.svg >page && cat c.svg"), 0);
    assert_int_equal(count(tool_out, "<svg "), 1);
    assert_int_equal(count(tool_out, "</svg>"), 1);
    assert_int_equal(count(tool_out, "href=\"data:image/png;base64,"), 2); /* the picture, and under the first word */
    assert_int_equal(count(tool_out, "<use href=\"#picture\""), 2);        /* and under the others */
    assert_has(tool_out, "<title>Captions of a picture: a red square</title>");
    assert_int_equal(tool("$A explain captioning -m $C --image red.png --svg c.svg --lang ja >page && cat c.svg"), 0);
    assert_has(tool_out, ">単語ごとの、2 x 2個の位置への注意</text>");
    assert_has(tool_out, ">モデルが見る画像：8 x 8画素</text>");
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    assert_refused("$A explain captioning -m $T --image red.png", 1,
                   "decoder \"gru\" of 1 layer and attention \"additive\", not \"cnn\", \"transformer\" of 2 and "
                   "\"multi-head\"");
    assert_refused("$A explain captioning -m $C", 2, " needs a picture: --image FILE");
    assert_refused("$A explain captioning -m $C --image none.png", 1, "none.png: No such file or directory");
    assert_refused("$A explain captioning -m $C --image $C/config.json", 1, "config.json");
    assert_refused("$A explain captioning -m nix --image red.png", 1, "\"nix\" is neither a folder nor a model in ");
    assert_refused("$A explain captioning -m $D --image red.png", 1, "is a sentence model: attend embed");
    assert_refused("$A explain captioning -m $C --image red.png --svg none/c.svg", 1, "none/c.svg: No such file");
    assert_refused("$A explain captioning --query 1", 2, "captioning is on a picture");
    assert_refused("$A explain captioning --text a", 2, "captioning is on a picture");
    assert_refused("$A explain vit -m $C --image red.png", 1, "is a captioner: attend caption");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_it_says_is_what_was_computed),
        cmocka_unit_test(a_gate_is_shown_where_there_is_one),
        cmocka_unit_test(it_is_told_in_japanese_and_no_line_is_too_long),
        cmocka_unit_test(the_drawing_has_a_map_of_each_word),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
