/* The tool on images: classes, vectors, attention; and models that see them among the others. */
#include "fixtures/vision_tool.h"
#include "fixtures/trace_rows.h"

#include <math.h>

/* $V: a classifier of images of 12 x 12 pixels; $M: one without [CLS]; $B: a model without a classifier. $G: images of
 * all kinds. Three that can be told apart: red.png, dots.png and line.png; the folder `some` has them, `broken` one
 * that is not an image between two of them. */
static test_folder vit, mean;

enum { SIDE = 12, CLASSES = 5, HIDDEN = 16 };

static void make_pixels(uint8_t pixels[SIDE][SIDE][3], int which)
{
    memset(pixels, which == 2 ? 255 : 0, SIDE * SIDE * 3);
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            pixels[y][x][0] = which == 0 ? 200 : pixels[y][x][0];
            if (which == 1 && (x + y) % 3 == 0)
                pixels[y][x][1] = 255;
            if (which == 2 && y == 5)
                pixels[y][x][2] = 0;
        }
}

static void write_images(void)
{
    static const char *const names[] = {"red.png", "dots.png", "line.png"};
    for (int i = 0; i < 3; i++) {
        uint8_t pixels[SIDE][SIDE][3];
        att_image image = {SIDE, SIDE, 3, &pixels[0][0][0]};
        att_image_bytes png;
        make_pixels(pixels, i);
        assert_int_equal(att_image_encode_png(ctx, &image, &png), ATT_OK);
        FILE *f = folder_open(&tool_model, names[i]);
        assert_int_equal(fwrite(png.data, 1, png.bytes, f), png.bytes);
        assert_int_equal(fclose(f), 0);
        att_image_bytes_free(ctx, &png);
    }
}

static int images_setup(void **state)
{
    assert_int_equal(open_context(state) || tool_setup(state), 0);
    vit = vision_setup();
    mean = vision_model("own_patches", "M");
    vision_model("vit_model", "B");
    write_images();
    return tool("mkdir some broken empty models; cp red.png dots.png line.png some; cp red.png broken/a.png; "
                "echo none >broken/b.PNG; cp line.png broken/c.png; echo no image >some/notes.txt; >some/.hidden.png; "
                "ln -s $V models/eye; ln -s $D models/ear");
}

static int images_teardown(void **state) { return tool_teardown(state) || close_context(state); }

/* What the library says of one of the three images */
static void expect(int which, float probability[CLASSES], float embedding[HIDDEN])
{
    uint8_t pixels[SIDE][SIDE][3];
    att_image image = {SIDE, SIDE, 3, &pixels[0][0][0]};
    att_image_model *m;
    make_pixels(pixels, which);
    assert_int_equal(att_image_model_open(ctx, vit.path, NULL, &m), ATT_OK);
    assert_int_equal(att_image_classify(m, 1, &image, NULL, probability), ATT_OK);
    assert_int_equal(att_image_embed(m, 1, &image, NULL, embedding), ATT_OK);
    att_image_model_free(m);
}

/* ---- classify */

static void the_most_probable_classes_come_first(void **state)
{
    (void)state;
    static const char *const paths[] = {"red.png", "dots.png", "line.png"};
    assert_int_equal(tool("$A classify -m $V --json red.png dots.png line.png"), 0);
    assert_int_equal(count(tool_out, "\n"), 3);
    for (int i = 0; i < 3; i++) {
        float expected[CLASSES], embedding[HIDDEN];
        double sum = 0, before = 1;
        json_t *v = line_json(i), *classes = json_object_get(v, "classes");
        assert_string_equal(json_string_value(json_object_get(v, "image")), paths[i]);
        assert_int_equal(json_array_size(classes), CLASSES);
        expect(i, expected, embedding);
        for (size_t k = 0; k < CLASSES; k++) {
            const json_t *c = json_array_get(classes, k);
            const int class = (int)number(c, "class");
            const double p = number(c, "probability");
            char label[16];
            snprintf(label, sizeof label, "LABEL_%d", class);
            assert_string_equal(json_string_value(json_object_get(c, "label")), label);
            assert_true((float)p == expected[class] && p <= before);
            sum += before = p;
        }
        assert_true(fabs(sum - 1) < 1e-6);
        json_decref(v);
    }
}

static void a_line_has_path_labels_and_probabilities(void **state)
{
    (void)state;
    assert_int_equal(tool("$A classify -m $V --top 2 some/ | cut -f 1,2,4 | tr '\\t' ' '"), 0);
    const char *at = tool_out;
    static const char *const paths[] = {"some/dots.png", "some/line.png", "some/red.png"};
    for (int i = 0; i < 3; i++, at = strchr(at, '\n') + 1) {
        char path[32];
        int first, second;
        assert_int_equal(sscanf(at, "%31s LABEL_%d LABEL_%d", path, &first, &second), 3);
        assert_string_equal(path, paths[i]);
        assert_true(first != second);
    }
    assert_string_equal(at, "");
    assert_int_equal(tool("$A classify -m $V --top 99 red.png | tr '\\t' '\\n' | wc -l"), 0);
    assert_string_equal(tool_out, "11\n");
    assert_int_equal(
        tool("$A classify -m $V red.png >1; $A classify -m $V - <red.png | sed 's/^standard input/red.png/' "
             "| cmp 1 -"),
        0);
    assert_int_equal(tool("ATTEND_MODELS=models $A classify -m eye red.png | cmp 1 -"), 0);
}

/* More images than are read at once, on any number of threads */
static void the_same_bits_come_whatever_else_is_asked(void **state)
{
    (void)state;
    assert_int_equal(tool("mkdir many; for i in $(seq -w 70); do cp red.png many/$i.png; done; "
                          "$A classify -m $V many -t 1 >1 && $A classify -m $V many -t 3 | cmp 1 - && "
                          "cut -f 2- 1 | sort -u | wc -l"),
                     0);
    assert_string_equal(tool_out, "1\n");
}

static void a_broken_image_is_told_and_the_others_are_classified(void **state)
{
    (void)state;
    assert_int_equal(tool("$A classify -m $V broken nix.png red.png; echo $?"), 0);
    assert_int_equal(count(tool_err, "\n"), 2);
    assert_has(tool_err, "attend: broken/b.PNG is not an image: ");
    assert_has(tool_err, "attend: nix.png: ");
    assert_int_equal(tool("$A classify -m $V broken nix.png red.png 2>/dev/null | cut -f 1"), 0);
    assert_string_equal(tool_out, "broken/a.png\nbroken/c.png\nred.png\n");
    assert_int_equal(tool("$A classify -m $V broken 2>/dev/null"), 1);
    assert_int_equal(tool("$A classify -m $V --skip-broken broken nix.png red.png | cut -f 1"), 0);
    assert_string_equal(tool_out, "broken/a.png\nbroken/c.png\nred.png\n");
    assert_has(tool_err, "attend: 2 of 5 images cannot be read\n");
    assert_int_equal(tool("mkdir -p years/2020 years/2021; cp red.png years/2020; cp $G/cmyk.jpg years/2021/1.HEIC; "
                          ">years/2021/notes.txt; $A classify -m $V years | cut -f 1"),
                     0);
    assert_string_equal(tool_out, "years/2020/red.png\nyears/2021/1.HEIC\n");
    assert_has(tool_err, "attend: years: 1 .txt passed over\n");
    assert_refused("$A classify -m $V $G/small.gif", 1, "GIF");
    assert_refused("$A classify -m $V - </dev/null", 1, "standard input");
    assert_refused("$A classify -m $V empty", 1,
                   "empty is a folder without images; their names end in .jpg, .jpeg, .png, .webp or .tif");
}

static void transparency_is_dropped_or_has_a_background(void **state)
{
    (void)state;
    assert_int_equal(tool("$A classify -m $V --json $G/rgba.png >1; $A classify -m $V --json -b white $G/rgba.png >2; "
                          "$A classify -m $V --json -b '#ffffff' $G/rgba.png | cmp 2 - && "
                          "$A classify -m $V --json --background FFFFFF $G/rgba.png | cmp 2 - && ! cmp -s 1 2 && "
                          "$A classify -m $V --json -b black $G/rgba.png >3; ! cmp -s 2 3"),
                     0);
    assert_refused("$A classify -m $V -b pink red.png", 2,
                   "--background: \"pink\" is neither #rrggbb nor white, black or gray");
    assert_refused("$A classify -m $V -b '#12345' red.png", 2, "--background: \"#12345\"");
    assert_refused("$A classify -m $V -b '#12345g' red.png", 2, "--background: \"#12345g\"");
}

static void models_that_cannot_classify_are_refused(void **state)
{
    (void)state;
    assert_refused("$A classify -m $B red.png", 1, " has no classifier; attend embed makes vectors of images by it");
    assert_refused("ATTEND_MODELS=models $A classify -m ear red.png", 1,
                   "attend: ear is a sentence model: attend embed\n");
    assert_refused("ATTEND_MODELS=models $A translate -m eye red.png", 1,
                   "attend: eye is a vision model: attend classify\n");
    assert_refused("ATTEND_MODELS=models echo a | $A tokenize -m eye", 1, "eye");
    assert_refused("$A classify -m $V", 2, "IMAGE... is needed");
    assert_refused("$A classify -m $V --layer 0 red.png", 2, "--layer needs --attention FILE");
    assert_refused("$A classify -m $V -a a.svg --layer 2 red.png", 2,
                   "--layer: the model has the layers 0 to 1, not 2");
    assert_refused("$A classify -m $V -a a.svg --layer 1 --head 4 red.png", 2,
                   "--head: the model has the heads 0 to 3, not 4");
    assert_refused("$A classify -m $V -a a.svg --head 1 red.png", 2, "--head needs --layer");
}

/* ---- attention */

/* The map of patches [3][3] that the library says */
static void expect_map(const test_folder *folder, int64_t layer, int64_t head, bool cls, double map[9])
{
    uint8_t pixels[SIDE][SIDE][3];
    att_image image = {SIDE, SIDE, 3, &pixels[0][0][0]};
    att_image_model *m;
    att_trace *t;
    make_pixels(pixels, 1);
    assert_int_equal(att_image_model_open(ctx, folder->path, NULL, &m), ATT_OK);
    assert_int_equal(att_image_trace(m, &image, NULL, &t), ATT_OK);
    const att_trace_info a = trace_info(t);
    const int64_t tokens = a.source;
    assert_int_equal(tokens, a.prefix + 9);
    float *weights = layer < 0 ? malloc((size_t)(tokens * tokens) * sizeof *weights)
                               : trace_weights(t, ATT_TRACE_SIDE_ENCODER, layer, head);
    if (layer < 0)
        assert_int_equal(att_trace_rollout(t, weights), ATT_OK);
    for (int j = 0; j < 9; j++) {
        map[j] = 0;
        for (int64_t i = cls ? 0 : a.prefix; i < (cls ? 1 : tokens); i++)
            map[j] += (double)weights[i * tokens + a.prefix + j] / (cls ? 1 : 9);
    }
    free(weights);
    att_trace_free(t);
    att_image_model_free(m);
}

static void attention_of_an_image_is_a_map_of_its_patches(void **state)
{
    (void)state;
    static const struct {
        const char *options;
        int64_t layer, head;
    } cases[] = {{"", -1, -1}, {"--layer 0", 0, -1}, {"--layer 1 --head 2", 1, 2}};
    for (int cls = 0; cls < 2; cls++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            char line[256];
            double map[9];
            snprintf(line, sizeof line, "$A attention -m $%s %s --json dots.png", cls ? "V" : "M", cases[i].options);
            if (tool(line))
                fail_msg("%s: %s", line, tool_err);
            expect_map(cls ? &vit : &mean, cases[i].layer, cases[i].head, cls, map);
            json_t *v = line_json(0), *weights = json_object_get(v, "weights");
            assert_string_equal(json_string_value(json_object_get(v, "from")), cls ? "[CLS]" : "patches");
            assert_int_equal(json_array_size(weights), 3);
            for (size_t k = 0; k < 9; k++)
                assert_true(fabs(json_number_value(json_array_get(json_array_get(weights, k / 3), k % 3)) - map[k]) <
                            1e-6);
            assert_int_equal(json_is_integer(json_object_get(v, "layer")), cases[i].layer >= 0);
            assert_int_equal(json_is_integer(json_object_get(v, "head")), cases[i].head >= 0);
            json_decref(v);
        }
    assert_int_equal(tool("$A attention -m $V dots.png"), 0);
    assert_has(tool_out, "Rollout over 2 layers, mean of 4 heads: attention of [CLS].\n");
    assert_has(tool_out, " % goes to [CLS], not in the picture.\n");
    assert_has(tool_out, "  1.00");
    assert_int_equal(tool("$A attention -m $M --layer 1 --head 0 dots.png"), 0);
    assert_has(tool_out, "Layer 1, head 0: mean attention of all patches.\n");
    vision_model("registers", "R");
    assert_int_equal(tool("$A attention -m $R dots.png"), 0);
    assert_has(tool_out, " % goes to [CLS] and the registers, not in the picture.\n");
    vision_model("deit_distilled", "S");
    assert_int_equal(tool("$A attention -m $S dots.png"), 0);
    assert_has(tool_out, " % goes to [CLS] and the distillation token, not in the picture.\n");
    assert_refused("$A attention -m $V --layer 2 dots.png", 2, "--layer: the model has the layers 0 to 1, not 2");
    assert_refused("$A attention -m $V nix.png", 1, "nix.png: ");
}

/* The image and its gray copy, both enlarged, nine patches and the bar */
static void the_drawing_has_the_image_and_its_patches(void **state)
{
    (void)state;
    assert_int_equal(tool("$A classify -m $V --attention a.svg dots.png red.png && cat a.svg"), 0);
    assert_has(tool_err, "attend: a.svg shows the first of 2 images\n");
    assert_int_equal(count(tool_out, "href=\"data:image/png;base64,"), 2);
    assert_int_equal(count(tool_out, "<title>row "), 9);
    assert_has(tool_out, ">what the model sees: 12 x 12 pixels</text>");
    assert_has(tool_out, ">dots.png: LABEL_");
    assert_int_equal(tool("$A attention -m $V --svg b.svg dots.png >/dev/null && "
                          "for i in a b; do sed 's/dots.png[^<]*//; s/width=[^ ]* //' $i.svg | grep -v viewBox >$i; "
                          "done; grep '<image' a >a.image; grep '<image' b | cmp a.image -"),
                     0);
    /* What is embedded is a PNG of twice the size of the drawing: 30 for each pixel, 720 of them */
    assert_int_equal(tool("sed -n 's/.*base64,\\([^\"]*\\)\".*/\\1/p' a.svg | head -n 1 | base64 -d >embedded.png"), 0);
    char path[128];
    att_image image;
    snprintf(path, sizeof path, "%s/embedded.png", tool_model.path);
    assert_int_equal(att_image_open(ctx, path, NULL, &image), ATT_OK);
    assert_int_equal(image.height, 720);
    uint8_t pixels[SIDE][SIDE][3];
    make_pixels(pixels, 1);
    for (int64_t y = 0; y < 720; y++)
        for (int64_t x = 0; x < 720; x++)
            assert_memory_equal(image.pixels + 3 * (y * 720 + x), pixels[y / 60][x / 60], 3);
    att_image_free(ctx, &image);
}

/* ---- vectors */

static void embeddings_are_those_of_the_library_of_length_one(void **state)
{
    (void)state;
    assert_int_equal(tool("$A embed -m $V red.png dots.png line.png"), 0);
    for (int i = 0; i < 3; i++) {
        float probability[CLASSES], expected[HIDDEN];
        double length = 0;
        json_t *v = line_json(i), *x = json_object_get(v, "embedding");
        assert_true(json_is_string(json_object_get(v, "image")));
        expect(i, probability, expected);
        for (int k = 0; k < HIDDEN; k++)
            length += (double)expected[k] * (double)expected[k];
        assert_int_equal(json_array_size(x), HIDDEN);
        for (size_t k = 0; k < HIDDEN; k++)
            assert_true(fabs(json_number_value(json_array_get(x, k)) - (double)expected[k] / sqrt(length)) < 1e-7);
        json_decref(v);
    }
}

static void paths_come_as_arguments_lines_texts_and_folders(void **state)
{
    (void)state;
    assert_int_equal(tool("$A embed -m $V some/dots.png some/line.png some/red.png >1 && $A embed -m $V some | cmp 1 - "
                          "&& printf 'some/dots.png\\nsome/line.png\\nsome/red.png\\n' >list && "
                          "$A embed -m $V <list | cmp 1 - && $A embed -m $V -f list | cmp 1 - && "
                          "$A embed -m $V --text some/dots.png --text some/line.png --text some/red.png | cmp 1 -"),
                     0);
    assert_int_equal(tool("$A embed -m $V --format npy -o v.npy some && head -c 128 v.npy | tr -cd ' -~'"), 0);
    assert_has(tool_out, "(3, 16)");
    assert_refused("$A embed -m $V broken >/dev/null", 1, "broken/b.PNG is not an image: ");
    assert_refused("$A embed -m $V --format npy -o w.npy broken", 1, "broken/b.PNG is not an image: ");
    assert_int_equal(tool("test -e w.npy"), 1);
    assert_refused("printf 'red.png\\n\\n' | $A embed -m $V >/dev/null", 1,
                   "the line after \"red.png\" is empty: not the path of an image");
    assert_refused("printf 'red.png\\0x\\n' | $A embed -m $V", 1, "red.png: is followed by a zero byte");
    assert_refused("printf '\\0x\\n' | $A embed -m $V", 1, "a line begins with a zero byte: lines are paths of images");
}

/* With a sentence model: the names of two images have a cosine that means nothing. */
static void images_are_no_text(void **state)
{
    (void)state;
    const char *says = "red.png is an image, but the model reads text: -m needs the name of a vision model";
    assert_refused("$A similarity -m $D red.png some/dots.png", 2, says);
    assert_refused("$A embed -m $D red.png", 2, says);
    assert_refused("$A attention -m $D red.png", 2, says);
    assert_int_equal(tool("$A similarity -m $D red.png.txt none.png"), 0); /* no files */
}

static void paths_are_shown_without_their_common_folder(void **state)
{
    (void)state;
    assert_int_equal(tool("$A similarity -m $V $PWD/some | awk '{ print $2 }'"), 0);
    assert_string_equal(tool_out, "2\ndots.png\nline.png\nred.png\n");
}

static void a_folder_is_searched_by_an_image(void **state)
{
    (void)state;
    assert_int_equal(tool("$A search -m $V -c some --json -k 2 red.png dots.png"), 0);
    static const char *const nearest[] = {"some/red.png", "some/dots.png"};
    for (int i = 0; i < 2; i++) {
        json_t *v = line_json(i), *results = json_object_get(v, "results"), *first = json_array_get(results, 0);
        assert_int_equal(json_array_size(results), 2);
        assert_string_equal(json_string_value(json_object_get(first, "image")), nearest[i]);
        assert_true(number(first, "score") > 1 - 1e-6);
        assert_true(number(json_array_get(results, 1), "score") <= number(first, "score"));
        json_decref(v);
    }
    assert_int_equal(
        tool("$A search -m $V -c some red.png >1 && ls some/*.png >list && $A search -m $V -c list red.png "
             "| cmp 1 - && echo red.png | $A search -m $V -c some | cmp 1 - && "
             "$A search -m $V -c some - <red.png | sed 's/^-$/red.png/' | cmp 1 - && "
             "$A search -m $V -c some -i v.npy red.png | cmp 1 -"),
        0);
}

/* Neither among what is searched nor among the queries; the exit code says that one was broken. */
static void a_broken_image_is_never_found(void **state)
{
    (void)state;
    assert_int_equal(tool("$A search -m $V -c broken red.png >out"), 1);
    assert_int_equal(count(tool_err, "\n"), 1);
    assert_has(tool_err, "attend: broken/b.PNG is not an image: ");
    assert_int_equal(tool("cut -c 11- out"), 0);
    assert_has(tool_out, "1  broken/a.png\n");
    assert_has(tool_out, "3  broken/c.png\n");
    assert_null(strstr(tool_out, "b.PNG"));
    assert_int_equal(tool("$A search -m $V -c some --json broken/b.PNG red.png"), 1);
    assert_int_equal(count(tool_out, "\n"), 1);
    assert_has(tool_out, "{\"query\": \"red.png\", ");
    assert_refused("$A search -m $V -c empty red.png", 1, "empty is a folder without images");
    assert_refused("$A search -m $V -c red.png -i v.npy red.png", 1, "v.npy: has 3 rows, but red.png has 1 images");
}

static void similarity_of_images_is_a_matrix_or_pairs(void **state)
{
    (void)state;
    assert_int_equal(tool("$A similarity -m $V --json red.png dots.png line.png"), 0);
    json_t *v = line_json(0), *rows = json_object_get(v, "similarity");
    assert_int_equal(json_array_size(json_object_get(v, "images")), 3);
    float probability[CLASSES], x[2][HIDDEN];
    expect(0, probability, x[0]);
    expect(1, probability, x[1]);
    double sum[3] = {0};
    for (int i = 0; i < HIDDEN; i++) {
        sum[0] += (double)x[0][i] * (double)x[1][i];
        sum[1] += (double)x[0][i] * (double)x[0][i];
        sum[2] += (double)x[1][i] * (double)x[1][i];
    }
    const double cosine = sum[0] / sqrt(sum[1] * sum[2]);
    assert_true(fabs(json_number_value(json_array_get(json_array_get(rows, 0), 1)) - cosine) < 1e-5);
    json_decref(v);
    assert_int_equal(tool("printf 'red.png\\tdots.png\\nred.png\\tred.png\\n' | $A similarity -m $V -p -"), 0);
    double first, second;
    assert_int_equal(sscanf(tool_out, "%lf\n%lf\n", &first, &second), 2);
    assert_true(fabs(first - cosine) < 1e-5 && fabs(second - 1) < 1e-5);
    assert_int_equal(tool("$A similarity -m $V some >1; ls some/*.png | $A similarity -m $V | cmp 1 -"), 0);
    assert_refused("$A similarity -m $V red.png", 1, "red.png: one image, but two images are needed");
    assert_refused("$A similarity -m $V red.png nix.png", 1, "nix.png: ");
}

/* ---- damaged weights */

/* A weight that is not a number is not answered with a class. */
static void a_damaged_model_gives_no_answers(void **state)
{
    (void)state;
    test_folder damaged;
    const char *name;
    snprintf(damaged.path, sizeof damaged.path, "%.40s/damaged", tool_model.path);
    att_vit *m = tiny_vit_open(&vit, true);
    for (int64_t i = 0; i < att_nn_params_count(att_vit_params(m)); i++) {
        const att_param *p = att_nn_params_at(att_vit_params(m), i, &name);
        if (!strcmp(name, "head.bias"))
            ((float *)att_param_value(p)->data)[3] = NAN;
    }
    assert_int_equal(att_vit_write(m, damaged.path, NULL, 0), ATT_OK);
    att_vit_free(m);
    assert_int_equal(tool("cp $V/preprocessor_config.json damaged"), 0);
    assert_refused("$A classify -m damaged red.png", 1, "damaged: the probabilities of image red.png are not finite");
    assert_int_equal(tool("mkdir -p two/a two/b; cp red.png two/a; cp dots.png two/b"), 0);
    assert_refused("$A evaluate classify -m damaged --data two", 1, "damaged: the probabilities of image 0 are not");
}

/* ---- info */

static void info_tells_what_a_model_is(void **state)
{
    (void)state;
    assert_int_equal(tool("ATTEND_MODELS=models $A info -m eye --json | tr -d '\\n'"), 0);
    json_t *v = line_json(0);
    assert_string_equal(json_string_value(json_object_get(v, "kind")), "vision model");
    assert_string_equal(json_string_value(json_object_get(v, "image")), "12 x 12");
    assert_string_equal(json_string_value(json_object_get(v, "patch")), "4 x 4");
    assert_int_equal(number(v, "classes"), CLASSES);
    assert_int_equal(json_array_size(json_object_get(v, "labels")), CLASSES);
    json_decref(v);
    assert_int_equal(tool("ATTEND_MODELS=models $A info -m ear"), 0);
    assert_has(tool_out, "\nkind                sentence model\n");
    assert_int_equal(tool("$A info -m $M"), 0);
    assert_has(tool_out, "\npooling             mean\n");
    assert_refused("$A info -m empty", 1, "empty: its files do not tell what kind of model it is");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_most_probable_classes_come_first),
        cmocka_unit_test(a_line_has_path_labels_and_probabilities),
        cmocka_unit_test(the_same_bits_come_whatever_else_is_asked),
        cmocka_unit_test(a_broken_image_is_told_and_the_others_are_classified),
        cmocka_unit_test(transparency_is_dropped_or_has_a_background),
        cmocka_unit_test(models_that_cannot_classify_are_refused),
        cmocka_unit_test(attention_of_an_image_is_a_map_of_its_patches),
        cmocka_unit_test(the_drawing_has_the_image_and_its_patches),
        cmocka_unit_test(embeddings_are_those_of_the_library_of_length_one),
        cmocka_unit_test(paths_come_as_arguments_lines_texts_and_folders),
        cmocka_unit_test(images_are_no_text),
        cmocka_unit_test(paths_are_shown_without_their_common_folder),
        cmocka_unit_test(a_folder_is_searched_by_an_image),
        cmocka_unit_test(a_broken_image_is_never_found),
        cmocka_unit_test(similarity_of_images_is_a_matrix_or_pairs),
        cmocka_unit_test(a_damaged_model_gives_no_answers),
        cmocka_unit_test(info_tells_what_a_model_is),
    };
    return cmocka_run_group_tests(tests, images_setup, images_teardown);
}
