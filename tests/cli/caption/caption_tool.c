/* The tool on captions: what is printed and drawn, and how good it is. */
#include "attend_metric.h"
#include "fixtures/captioner.h"
#include "fixtures/tool.h"
#include "fixtures/trace_rows.h"
#include "attend_caption.h"

#include <math.h>

/* $C: a captioner that names colors, with attention; $T: a Transformer; $N: one without attention. Images red.png,
 * green.png and blue.png; the folder `some` has them twice, `captions` two captions of each. */
static const char *const colors[] = {"red", "green", "blue"};

static void write_image(const char *name, int color)
{
    uint8_t pixels[CAPTIONER_SIDE][CAPTIONER_SIDE][3];
    att_image image = {CAPTIONER_SIDE, CAPTIONER_SIDE, 3, &pixels[0][0][0]};
    att_image_bytes png;
    captioner_image(pixels, color);
    assert_int_equal(att_image_encode_png(ctx, &image, &png), ATT_OK);
    FILE *f = folder_open(&tool_model, name);
    assert_int_equal(fwrite(png.data, 1, png.bytes, f), png.bytes);
    assert_int_equal(fclose(f), 0);
    att_image_bytes_free(ctx, &png);
}

static void place(const char *variable, const char *decoder, bool taught)
{
    const test_folder made = captioner_folder(decoder, taught);
    char path[128];
    snprintf(path, sizeof path, "%.60s/captioner_%.8s", tool_model.path, variable);
    assert_int_equal(rename(made.path, path), 0);
    setenv(variable, path, 1);
}

static int captions_setup(void **state)
{
    assert_int_equal(open_context(state) || tool_setup(state), 0);
    place("C", CAPTIONER_GRU, true);
    place("T", CAPTIONER_TRANSFORMER, true);
    place("N", CAPTIONER_LSTM, false);
    FILE *captions = folder_open(&tool_model, "captions"), *perfect = folder_open(&tool_model, "perfect");
    for (int i = 0; i < 6; i++) {
        char name[32];
        snprintf(name, sizeof name, "some/%s%d.png", colors[i % 3], i / 3);
        write_image(name, i % 3);
        fprintf(captions, "%s#0\t%s.\n%s#1\tThe %s thing!\n", name + 5, captioner_captions[i % 3], name + 5,
                colors[i % 3]);
        fprintf(perfect, "%s\t%s\n", name + 5, captioner_captions[i % 3]);
    }
    fclose(captions);
    fclose(perfect);
    return tool("for i in red green blue; do cp some/${i}0.png $i.png; done; mkdir models empty broken; "
                "ln -s $C models/colors; ln -s $D models/ear; cp red.png broken/a.png; echo none >broken/b.PNG; "
                "cp blue.png broken/c.png; printf 'red0.png\\ngreen0.png\\nblue0.png\\n' >list");
}

static int captions_teardown(void **state) { return tool_teardown(state) || close_context(state); }

/* ---- caption */

static void an_image_gets_a_line_with_its_caption(void **state)
{
    (void)state;
    static const char *const models[] = {"C", "T"};
    for (int i = 0; i < 2; i++) {
        char line[64];
        snprintf(line, sizeof line, "$A caption -m $%s red.png green.png blue.png", models[i]);
        assert_int_equal(tool(line), 0);
        assert_string_equal(tool_out, "red.png\ta red square\ngreen.png\ta green one\nblue.png\ta square of blue\n");
        assert_string_equal(tool_err, "");
    }
    assert_int_equal(tool("$A caption -m $C - <green.png"), 0);
    assert_string_equal(tool_out, "standard input\ta green one\n");
    assert_int_equal(tool("$A caption -m $C --beam 1 some | cut -f 1 | tr '\\n' ' '"), 0);
    assert_string_equal(tool_out, "some/blue0.png some/blue1.png some/green0.png some/green1.png some/red0.png "
                                  "some/red1.png ");
    assert_int_equal(tool("$A caption -m $C --max-words 2 red.png"), 0);
    assert_string_equal(tool_out, "red.png\ta red\n");
}

static void the_best_captions_have_scores(void **state)
{
    (void)state;
    assert_int_equal(tool("$A caption -m $C --json -n 3 red.png blue.png"), 0);
    assert_int_equal(count(tool_out, "\n"), 2);
    for (int i = 0; i < 2; i++) {
        json_t *v = line_json(i), *all = json_object_get(v, "captions");
        double before = 0;
        assert_int_equal(json_array_size(all), 3);
        assert_string_equal(json_string_value(json_object_get(json_array_get(all, 0), "text")),
                            captioner_captions[2 * i]);
        assert_string_equal(json_string_value(json_array_get(json_object_get(json_array_get(all, 0), "words"), 1)),
                            i ? "square" : "red");
        for (size_t k = 0; k < 3; k++) {
            const double score = number(json_array_get(all, k), "score");
            assert_true(score <= before);
            before = score;
        }
        json_decref(v);
    }
    assert_int_equal(tool("$A caption -m $C -n 3 red.png | cut -f 1 | uniq -c"), 0);
    assert_has(tool_out, "3 red.png\n");
}

static void a_broken_image_is_told_and_the_others_are_captioned(void **state)
{
    (void)state;
    assert_int_equal(tool("$A caption -m $C broken nix.png"), 1);
    assert_string_equal(tool_out, "broken/a.png\ta red square\nbroken/c.png\ta square of blue\n");
    assert_int_equal(count(tool_err, "\n"), 2);
    assert_has(tool_err, "attend: broken/b.PNG is not an image: ");
    assert_has(tool_err, "attend: nix.png: ");
    assert_refused("$A caption -m $C empty", 1, "empty is a folder without images");
}

/* The image, and its pale copy, for each of three words, each with 2 x 2 locations. */
static void each_word_has_a_small_map(void **state)
{
    (void)state;
    assert_int_equal(tool("$A caption -m $C --attention a.svg red.png blue.png && cat a.svg"), 0);
    assert_has(tool_err, "attend: a.svg shows the first of 2 images\n");
    assert_int_equal(count(tool_out, "href=\"data:image/png;base64,"), 2);
    assert_int_equal(count(tool_out, "<use href=\"#picture\""), 2);
    assert_int_equal(count(tool_out, "<title>row "), 12);
    static const char *const texts[] = {"<title>red.png: a red square</title>",
                                        ">red.png</text>",
                                        ">a red square</text>",
                                        ">a</text>",
                                        ">red</text>",
                                        ">square</text>",
                                        ">Attention to 2 x 2 locations before each word</text>",
                                        ">what the model sees: 8 x 8 pixels</text>"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_has(tool_out, texts[i]);
    assert_int_equal(tool("$A caption -m $T -a b.svg blue.png && cat b.svg"), 0);
    assert_has(tool_out, "before each word: layer 1, mean of all heads</text>");
    assert_int_equal(count(tool_out, "<title>row "), 16);
}

/* The numbers under the colors are the library's. */
static void the_map_has_the_weights_of_the_word(void **state)
{
    (void)state;
    char path[128], expected[1024];
    att_caption_model *m;
    att_image image;
    att_image_caption c;
    att_trace *t;
    snprintf(path, sizeof path, "%s/red.png", tool_model.path);
    captioner_need(att_caption_model_open(ctx, getenv("C"), NULL, &m));
    captioner_need(att_image_open(ctx, path, NULL, &image));
    captioner_need(att_caption(m, 1, &image, NULL, &c));
    captioner_need(att_caption_trace(m, &image, c.ids, c.count, NULL, &t));
    float *weights = trace_weights(t, ATT_TRACE_SIDE_CROSS, -1, -1);
    assert_int_equal(tool("$A caption -m $C --attention a.svg red.png >/dev/null && grep -o '<title>row[^<]*' a.svg"),
                     0);
    char *end = expected;
    for (int i = 0; i < 3 * CAPTIONER_LOCATIONS; i++)
        end += sprintf(end, "<title>row %d, column %d: %.4f\n", i / 2 % 2, i % 2, (double)weights[i]);
    assert_string_equal(tool_out, expected);
    free(weights);
    att_trace_free(t);
    att_image_caption_free(ctx, &c);
    att_image_free(ctx, &image);
    att_caption_model_free(m);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    assert_refused("$A caption -m $C", 2, "IMAGE... is needed");
    assert_refused("$A caption -m $C -n 6 red.png", 2, "--nbest: 6 captions need --beam 6 or more, not 5");
    assert_refused("$A caption -m $C --max-words 7 red.png", 2, "writes captions of up to 6 words, not 7");
    assert_refused("$A caption -m $C -a - red.png", 2, "--attention - would be mixed with the captions: name a file");
    assert_refused("$A caption -m $N -a a.svg red.png", 1,
                   "has no attention to draw: all words come from one context vector of the image");
    assert_refused("ATTEND_MODELS=models $A caption -m ear red.png", 1,
                   "attend: ear is a sentence model: attend embed\n");
    assert_refused("ATTEND_MODELS=models $A classify -m colors red.png", 1,
                   "attend: colors is a captioner: attend caption\n");
    assert_refused("$A caption -m $C -b pink red.png", 2, "--background: \"pink\"");
}

static void info_tells_what_a_captioner_is(void **state)
{
    (void)state;
    assert_int_equal(tool("$A info -m $C --json"), 0);
    json_t *v = json_loads(tool_out, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(v, "kind")), "captioner");
    assert_string_equal(json_string_value(json_object_get(v, "attention")), "additive, with a gate");
    assert_string_equal(json_string_value(json_object_get(v, "grid")), "2 x 2");
    assert_int_equal(number(v, "words"), 7);
    json_decref(v);
}

/* ---- evaluate */

#define EVALUATE "$A evaluate caption -m $C --images some "

static void perfect_captions_have_perfect_scores(void **state)
{
    (void)state;
    assert_int_equal(tool(EVALUATE "--data perfect --json --retrieval"), 0);
    json_t *v = line_json(0), *model = json_object_get(v, "model"), *found = json_object_get(v, "retrieval");
    for (size_t i = 0; i < 4; i++)
        assert_true(fabs(json_number_value(json_array_get(json_object_get(model, "bleu"), i)) - 100) < 1e-9);
    assert_int_equal(number(v, "images"), 6);
    assert_int_equal(number(v, "references"), 6);
    assert_int_equal(number(v, "distinct"), 3);
    assert_true(fabs(number(v, "mean_words") - 10.0 / 3) < 1e-6);
    assert_true(number(model, "cider") > 5);
    /* Of two images that have the same caption, the second one is second. */
    assert_true(fabs(number(found, "recall@1") - 0.5) < 1e-9);
    assert_true(fabs(number(found, "recall@5") - 1) < 1e-9);
    assert_true(fabs(number(found, "median_rank") - 1.5) < 1e-9);
    json_decref(v);
}

static void captions_without_a_word_are_left_out_and_said(void **state)
{
    (void)state;
    assert_int_equal(
        tool("{ cat captions; printf 'red0.png#2\\t\\nblue1.png#2\\t \\n'; } >blank; " EVALUATE "-d blank --json"), 0);
    assert_has(tool_err, "blank: 2 captions without a word, left out");
    json_t *v = line_json(0);
    assert_int_equal(number(v, "references"), 12);
    json_decref(v);
}

/* Controls are as near as the library says that they are, and their captions those of other images. */
static void the_controls_are_worse(void **state)
{
    (void)state;
    assert_int_equal(tool(EVALUATE "-d captions --json"), 0);
    json_t *v = line_json(0), *model = json_object_get(v, "model"), *constant = json_object_get(v, "constant"),
           *shuffled = json_object_get(v, "shuffled");
    assert_int_equal(number(v, "references"), 12);
    assert_null(json_object_get(v, "retrieval"));
    const double cider = number(model, "cider");
    assert_true(cider > number(constant, "cider") && cider > number(shuffled, "cider"));
    assert_int_equal(number(constant, "candidates"), 3);
    assert_true(fabs(json_number_value(json_array_get(json_object_get(shuffled, "cider_difference"), 0)) -
                     (cider - number(shuffled, "cider"))) < 1e-6);
    /* The best constant is what the library says of each */
    static const char *const texts[] = {"a red square", "a green one", "a square of blue"};
    double best = -1, mean;
    const char *references[12], *all[6];
    char thing[3][32];
    const int64_t offsets[] = {0, 2, 4, 6, 8, 10, 12};
    for (int i = 0; i < 6; i++) {
        snprintf(thing[i % 3], sizeof thing[0], "the %s thing", colors[i % 3]);
        references[2 * i] = captioner_captions[i % 3];
        references[2 * i + 1] = thing[i % 3];
    }
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < 6; i++)
            all[i] = texts[k];
        captioner_need(att_cider(ctx, all, 6, references, offsets, NULL, &mean));
        best = fmax(best, mean);
    }
    assert_true(fabs(best - number(constant, "cider")) < 1e-6);
    json_decref(v);
    assert_int_equal(tool(EVALUATE "-d captions --train-list list --json"), 0);
    v = line_json(0);
    assert_int_equal(number(json_object_get(v, "constant"), "candidates"), 9);
    json_decref(v);
}

/* Three kinds of images, each with a caption of its own: who tells the kinds apart needs no more. The classifier does,
 * and so reaches what the references themselves would choose, and the model. */
static void kinds_of_images_are_told_apart_by_the_encoder(void **state)
{
    (void)state;
    assert_int_equal(tool(EVALUATE "-d perfect --train-list list --json"), 0);
    json_t *v = line_json(0), *four = json_object_get(v, "four"), *texts = json_object_get(four, "captions");
    const double cider = number(json_object_get(v, "model"), "cider");
    assert_int_equal(json_array_size(texts), 3); /* a fourth one would raise nothing */
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(number(json_array_get(texts, i), "images"), 2);
    assert_true(fabs(number(four, "cider") - cider) < 1e-6);
    assert_true(fabs(number(json_object_get(v, "best_of_four"), "cider") - cider) < 1e-6);
    assert_true(number(json_object_get(v, "constant"), "cider") < cider - 1);
    json_t *difference = json_object_get(four, "cider_difference");
    for (size_t i = 0; i < 3; i++)
        assert_true(fabs(json_number_value(json_array_get(difference, i))) < 1e-9);
    assert_int_equal(number(four, "chosen_on"), 3);
    assert_int_equal(number(four, "learnt_from"), 3);
    json_decref(v);
    assert_int_equal(tool(EVALUATE "-d perfect --json"), 0);
    assert_null(strstr(tool_out, "four"));
}

/* Three kinds that the encoder sees, with more captions than that: each kind gets the caption that most of its images
 * have. */
static void the_commonest_captions_of_a_kind_are_chosen(void **state)
{
    (void)state;
    assert_int_equal(tool("rm -rf kinds; mkdir kinds; for c in red green blue; do for i in 0 1 2 3 4 5; do "
                          "cp $c.png kinds/$c$i.png; done; done; "
                          "for i in 0 1 2 3; do printf 'red%d.png\tone two three four\ngreen%d.png\tfive six seven "
                          "eight\nblue%d.png\tnine ten eleven twelve\n' $i $i $i; done >odd; "
                          "for i in 4 5; do printf 'red%d.png\tan odd red thing\ngreen%d.png\tgreen leaves fall "
                          "down\nblue%d.png\tblue %d waves here\n' $i $i $i $i; done >>odd"),
                     0);
    assert_int_equal(tool("ls kinds >all; $A evaluate caption -m $C -i kinds -d odd --train-list all --json"), 0);
    json_t *v = line_json(0), *four = json_object_get(v, "four"), *texts = json_object_get(four, "captions");
    static const char *const expected[] = {"five six seven eight", "nine ten eleven twelve", "one two three four"};
    assert_int_equal(json_array_size(texts), 4);
    for (size_t k = 0; k < 3; k++) {
        bool found = false;
        for (size_t i = 0; i < 4; i++) {
            json_t *one = json_array_get(texts, i);
            if (!strcmp(json_string_value(json_object_get(one, "text")), expected[k])) {
                assert_int_equal(number(one, "images"), 6);
                found = true;
            }
        }
        assert_true(found);
    }
    /* The fourth is right for two images more, which nothing tells from their kind */
    assert_true(number(json_object_get(v, "best_of_four"), "cider") > number(four, "cider") + 0.1);
    json_decref(v);
}

/* Each image is in one row, and the rows' CIDEr-D is that of all. */
static void scores_have_a_row_for_each_length(void **state)
{
    (void)state;
    assert_int_equal(
        tool("i=0; for c in red0 green0 blue0 red1 green1 blue1; do i=$((i+1)); case $i in "
             "[12]) t='a thing';; [345]) t='a thing of seven or eight words';; *) t='a red b c d e f g h';; "
             "esac; printf '%s.png\t%s\n' $c \"$t\"; done >lengths"),
        0);
    assert_int_equal(tool(EVALUATE "-d lengths --by-length --json"), 0);
    json_t *v = line_json(0), *rows = json_object_get(v, "by_length");
    static const int images[] = {2, 3, 1}, from[] = {0, 6, 8};
    static const double length[] = {2, 7, 9};
    double sum = 0;
    assert_int_equal(json_array_size(rows), 3);
    for (size_t i = 0; i < 3; i++) {
        json_t *row = json_array_get(rows, i), *cider = json_object_get(row, "cider_interval");
        assert_int_equal(number(row, "images"), images[i]);
        assert_int_equal(number(row, "from"), from[i]);
        assert_true(fabs(number(row, "length") - length[i]) < 1e-9);
        assert_true(json_number_value(json_array_get(cider, 1)) <= json_number_value(json_array_get(cider, 0)) + 1e-9);
        assert_true(json_number_value(json_array_get(cider, 2)) >= json_number_value(json_array_get(cider, 0)) - 1e-9);
        sum += images[i] * json_number_value(json_array_get(cider, 0)) / 6;
    }
    assert_true(fabs(sum - number(json_object_get(v, "model"), "cider")) < 1e-6);
    json_decref(v);
    assert_int_equal(tool(EVALUATE "-d lengths --by-length"), 0);
    assert_has(tool_out, "\n     0-6        2  ");
    assert_has(tool_out, "\n    8-10        1  ");
}

static void the_protocol_is_printed(void **state)
{
    (void)state;
    assert_int_equal(tool(EVALUATE "-d captions --list list -r"), 0);
    static const char *const parts[] = {
        "3 images with 6 captions; beam 5, length penalty 1\n",
        "3 distinct captions, of 3.33 words on average; ",
        "           BLEU-1  BLEU-2  BLEU-3  BLEU-4  CIDEr-D\nmodel    ",
        "\nshuffled ",
        "\nconstant ",
        "\n95 % intervals\nmodel  ",
        "\nover shuffled  BLEU-4 ",
        "for all,\nthe best by CIDEr-D on these images of 3 captions that the model writes\n",
        "lower case, without punctuation",
        "\nrecall@1    100.00 %  (at random 33.33 %)\n",
        "median rank 1 of 3\n"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        assert_has(tool_out, parts[i]);
    assert_int_equal(tool(EVALUATE "-d captions --train-list list"), 0);
    static const char *const constants[] = {"\nfour      ", "\nbest      ", "\nover four      BLEU-4 ",
                                            "encoder's features (3 training images);\n",
                                            "greedily by CIDEr-D on 3 training images\n"};
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        assert_has(tool_out, constants[i]);
    assert_int_equal(tool("for i in 1 2; do " EVALUATE "-d captions --train-list list --by-length --json -t $i | "
                          "sed 's/\"seconds[^,]*//' >$i; done; cmp 1 2"),
                     0);
}

static void what_leaves_nothing_is_refused(void **state)
{
    (void)state;
    assert_refused(EVALUATE, 2, "--data");
    assert_refused("$A evaluate caption -m $C -d captions", 2, "--images");
    assert_refused(EVALUATE "-d nix", 1, "nix: ");
    assert_refused(EVALUATE "-d captions --max-words 99", 2, "writes captions of up to 6 words, not 99");
    assert_refused("echo red0.png >one; " EVALUATE "-d captions --list one", 1,
                   "one: one image, but two or more are needed: each is compared with others");
    assert_refused("echo none.png >none; " EVALUATE "-d captions --list none", 1,
                   "the image \"none.png\" has no caption in captions");
    assert_refused("$A evaluate caption -m $C -d captions -i empty", 1, "none of the 6 images");
    assert_refused("$A evaluate caption -m $D -d captions -i some", 1, " is a sentence model: attend embed");
    assert_int_equal(
        tool("mkdir bad; cp some/* bad; echo none >bad/red0.png; $A evaluate caption -m $C -d captions -i bad"), 1);
    assert_has(tool_err, "attend: bad/red0.png is not an image: ");
    assert_has(tool_err, " images cannot be read; --skip-broken leaves them out\n");
    assert_int_equal(tool("$A evaluate caption -m $C -d captions -i bad --skip-broken"), 0);
    assert_has(tool_err, " images cannot be read, and is left out\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_image_gets_a_line_with_its_caption),
        cmocka_unit_test(the_best_captions_have_scores),
        cmocka_unit_test(a_broken_image_is_told_and_the_others_are_captioned),
        cmocka_unit_test(each_word_has_a_small_map),
        cmocka_unit_test(the_map_has_the_weights_of_the_word),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(info_tells_what_a_captioner_is),
        cmocka_unit_test(perfect_captions_have_perfect_scores),
        cmocka_unit_test(captions_without_a_word_are_left_out_and_said),
        cmocka_unit_test(the_controls_are_worse),
        cmocka_unit_test(kinds_of_images_are_told_apart_by_the_encoder),
        cmocka_unit_test(the_commonest_captions_of_a_kind_are_chosen),
        cmocka_unit_test(scores_have_a_row_for_each_length),
        cmocka_unit_test(the_protocol_is_printed),
        cmocka_unit_test(what_leaves_nothing_is_refused),
    };
    return cmocka_run_group_tests(tests, captions_setup, captions_teardown);
}
