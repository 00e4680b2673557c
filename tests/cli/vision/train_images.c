/* The files of a training's images, and of commands that read many: broken ones are all named before a training begins,
 * or left out; changed ones are noticed when it continues. */
// labels: trains
#include "fixtures/caption_colors.h"
#include "fixtures/check.h"
#include "fixtures/tool.h"

#define CLASSIFY "$A train classify --data photos --config vit.json --batch 4 --epochs 3 --valid-share 0 --threads 2 "
#define CAPTION                                                                                                        \
    "$A train caption --data captions.txt --images images --channels 4,6 --image-size 16 --hidden 12 --min-count 1 "   \
    "--batch 4 --presence 0 --epochs 3 --threads 2 "

static int set_up(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    setenv("A", ATTEND_TOOL, 1);
    tool_model = folder_new();
    colors_write(ctx, &tool_model);
    att_close(ctx);
    folder_write(&tool_model, "vit.json",
                 "{\"model_type\": \"vit\", \"image_size\": 16, \"patch_size\": 8, \"hidden_size\": 8, "
                 "\"num_hidden_layers\": 1, \"num_attention_heads\": 1, \"intermediate_size\": 8}");
    return tool(
        "for i in 0 1 2 3 4 5 6 7; do mkdir -p photos/c$((i % 4)) && cp images/$i.png photos/c$((i % 4)); done; "
        "cp -r photos clean; cp -r images clean_images; cp captions.txt clean.txt; echo no image >photos/c1/b.jpg; "
        "head -c 90 images/0.png >photos/c2/cut.png; : >photos/c0/a.webp; cp photos/c1/b.jpg images/b.jpg; "
        "cp photos/c2/cut.png images; printf 'b.jpg#0\\tA red dog.\\ncut.png#0\\tA cat.\\n' >>captions.txt");
}

/* All of them, with their reasons, and no folder. */
static void broken_images_are_named_before_the_start(void **state)
{
    (void)state;
    assert_int_equal(tool(CLASSIFY "-o new"), 1);
    assert_has(tool_err, "attend: photos/c0/a.webp is empty\n");
    assert_has(tool_err, "attend: photos/c1/b.jpg is not an image: ");
    assert_has(tool_err, "attend: photos/c2/cut.png: the PNG file is ");
    assert_has(tool_err, "attend: 3 of 11 images cannot be read; --skip-broken leaves them out\n");
    assert_int_equal(tool(CAPTION "-o new"), 1);
    assert_has(tool_err, "attend: images/b.jpg is not an image: ");
    assert_has(tool_err, "attend: 2 of 14 images cannot be read; --skip-broken leaves them out\n");
    assert_int_equal(tool("ls -d new"), 2);
    assert_int_equal(
        tool("cp -r photos many; i=0; while [ $i -lt 30 ]; do i=$((i + 1)); : >many/c3/z$i.png; done; " CLASSIFY
             "--data many -o new"),
        1);
    assert_int_equal(count(tool_err, "attend: many/"), 33);
    assert_has(tool_err, "attend: 33 of 41 images cannot be read; ");
    assert_refused("mkdir -p none/a none/b; : >none/a/1.png; : >none/b/1.png; " CLASSIFY
                   "--data none --skip-broken -o new 2>err; grep none.of err >&2; exit 1",
                   1, "attend: none of the 2 images can be read\n");
}

static void broken_images_are_left_out_where_that_is_wanted(void **state)
{
    (void)state;
    assert_int_equal(tool(CLASSIFY "--data clean -o whole 2>err && " CLASSIFY "--skip-broken -o rest && "
                                   "cmp whole/model.safetensors rest/model.safetensors"),
                     0);
    assert_has(tool_err, "attend: photos/c1/b.jpg is not an image: ");
    assert_has(tool_err, "attend: 3 of 11 images cannot be read, and are left out\n");
    assert_has(tool_err, "8 images of 4 classes");
    assert_int_equal(tool(CAPTION "--data clean.txt --images clean_images -o plain 2>err && " CAPTION
                                  "--skip-broken -o left && cmp plain/model.safetensors left/model.safetensors && "
                                  "cmp plain/words.json left/words.json"),
                     0); /* words of captions that are left out are not in the vocabulary, either */
    assert_has(tool_err, "attend: 2 of 14 images cannot be read, and are left out\n");
    assert_int_equal(tool(CLASSIFY "--skip-broken --minutes 0.00001 -o once && $A train classify --resume --minutes 0 "
                                   "-o once && cmp rest/model.safetensors once/model.safetensors"),
                     0);
    assert_null(strstr(tool_err, "is not an image: the"));
}

/* Each photo of 8 animals is there twice, under two names. */
static void photos_of_an_animal_are_kept_together(void **state)
{
    (void)state;
#define ANIMALS "$A train classify --config vit.json --batch 4 --steps 1 --valid-share 0.5 --data animals -o any "
    assert_int_equal(tool("for i in 0 1 2 3 4 5 6 7; do d=animals/c$((i % 2))/202$((i % 3)); mkdir -p $d; "
                          "cp images/$i.png $d/A0${i}_a.png; cp images/$i.png $d/A0${i}_b.HEIC; done; "
                          ">animals/c0/notes.txt; >animals/c1/raw.CR2"),
                     0);
    assert_int_equal(tool(ANIMALS "&& rm -r any"), 0);
    assert_has(tool_err, "; 1 .txt, 1 .cr2 passed over; 8 for validation");
    assert_has(tool_err, " for validation, has the pixels of animals/c");
    assert_has(tool_err, " images for validation are in training, too, so that the validation measures too much\n");
    assert_int_equal(tool(ANIMALS "--group 'A\\d+' && rm -r any"), 0);
    assert_null(strstr(tool_err, "has the pixels of"));
    assert_int_equal(tool(ANIMALS "--group '_(a)' && $A train classify --resume --steps 1 -o any && rm -r any"), 0);
    assert_has(tool_err, "attend: --group: 8 of 16 images in animals do not match, and each is a group of its own\n");
    assert_refused(ANIMALS "--group 'A\\d+' --valid animals", 1,
                   "attend: --group: 8 groups of --valid are in --data, too, such as \"A00\"");
    assert_refused(ANIMALS "--group '('", 2, "--group: \"(\" is not a regular expression: missing closing parenthesis");
}

/* Whatever the times of the file say. */
static void a_changed_image_is_noticed_when_the_training_continues(void **state)
{
    (void)state;
    static const struct {
        const char *train, *command, *file;
    } cases[] = {{CLASSIFY "--data clean --valid clean ", "classify", "clean/c1/5.png"},
                 {CAPTION "--data clean.txt --images clean_images ", "caption", "clean_images/5.png"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[1024], says[256];
        snprintf(line, sizeof line, "rm -rf calm part; %s -o calm && %s --minutes 0.00001 -o part && cp -p %s kept",
                 cases[i].train, cases[i].train, cases[i].file);
        assert_int_equal(tool(line), 0);
        static const char *const changes[] = {"cp images/6.png %s", "printf x | dd of=%s bs=1 seek=70 conv=notrunc",
                                              "cp images/6.png %s; touch -r kept %s"};
        for (size_t k = 0; k < sizeof changes / sizeof *changes; k++) {
            snprintf(line, sizeof line, changes[k], cases[i].file, cases[i].file);
            assert_int_equal(tool(line), 0);
            snprintf(line, sizeof line, "$A train %s --resume --minutes 0 -o part", cases[i].command);
            assert_int_equal(tool(line), 1);
            snprintf(says, sizeof says, "/%s has another content than when the training in part began\n",
                     cases[i].file);
            assert_has(tool_err, says);
            assert_has(tool_err, " have changed: begin a new training, or put them back\n");
        }
        snprintf(line, sizeof line,
                 "cp kept %s; touch *.png; $A train %s --resume --minutes 0 -o part && cmp calm/model.safetensors "
                 "part/model.safetensors && ls calm",
                 cases[i].file, cases[i].command);
        assert_int_equal(tool(line), 0);
        assert_has(tool_out, "images.tsv\n");
    }
    assert_refused("sed -i 1d part/images.tsv; sed -i '1s/^/x/' part/images.tsv; $A train caption --resume -o part", 1,
                   "part/images.tsv: line 1 is not one that a training has written");
    assert_int_equal(tool("rm part/images.tsv; $A train caption --resume -o part"), 0); /* as of an older version */
}

/* evaluate classify and embed continue, as classify and search do. */
static void a_broken_image_does_not_end_what_others_are_for(void **state)
{
    (void)state;
    assert_int_equal(
        tool("$A evaluate classify -m whole --data clean --json && cp 1 2 2>/dev/null; $A evaluate classify -m "
             "whole --data clean >whole.txt; $A evaluate classify -m whole --data photos --json"),
        1);
    assert_has(tool_err, "attend: photos/c2/cut.png: the PNG file is ");
    assert_has(tool_err, "attend: 3 of 11 images cannot be read, and are not counted\n");
    assert_has(tool_out, "{\"images\": 8, ");
    assert_has(tool_out, ", \"broken\": 3");
    assert_int_equal(tool("$A evaluate classify -m whole --data photos --skip-broken | grep -v images/s >rest.txt; "
                          "grep -v images/s whole.txt | cmp - rest.txt"),
                     0);
    assert_int_equal(tool("$A embed -m whole photos/c1"), 1);
    assert_int_equal(count(tool_out, "\n"), 2);
    assert_has(tool_err, "attend: photos/c1/b.jpg is not an image: ");
    assert_int_equal(tool("$A embed -m whole photos/c1 -o some.jsonl"), 1);
    assert_int_equal(tool("ls some.jsonl"), 2);
    assert_int_equal(tool("$A embed -m whole --skip-broken --format npy -o some.npy photos/c1 && "
                          "$A embed -m whole --format npy -o all.npy clean/c1 && cmp some.npy all.npy"),
                     0);
    assert_has(tool_err, "attend: 1 of 3 images cannot be read, and has no row\n");
    assert_refused("mkdir -p void/c0; : >void/c0/1.png; $A evaluate classify -m whole --data void 2>err; tail -n 1 err "
                   ">&2; exit 1",
                   1, "attend: void: no image can be read");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_images_are_named_before_the_start),
        cmocka_unit_test(photos_of_an_animal_are_kept_together),
        cmocka_unit_test(broken_images_are_left_out_where_that_is_wanted),
        cmocka_unit_test(a_changed_image_is_noticed_when_the_training_continues),
        cmocka_unit_test(a_broken_image_does_not_end_what_others_are_for),
    };
    return cmocka_run_group_tests(tests, set_up, tool_teardown);
}
