/* attend train caption: from captioned images to a captioner, killed on the way or not. */
// labels: trains
#include "fixtures/caption_colors.h"
#include "fixtures/stopped.h"

#define DATA "--data captions.txt --images images "
#define SIZES                                                                                                          \
    "--channels 4,6 --image-size 16 --hidden 12 --embedding 6 --min-count 1 --batch 3 --rate 1e-2 --threads 2 "
#define LISTS "--train-list train.txt --valid-list valid.txt "
#define TRAIN "$A train caption " DATA LISTS SIZES

static int set_up(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    setenv("A", ATTEND_TOOL, 1);
    tool_model = folder_new();
    colors_write(ctx, &tool_model);
    att_close(ctx);
    return 0;
}

static void colors_are_learned(void **state)
{
    (void)state;
    assert_int_equal(
        tool(TRAIN "--gate --doubly-stochastic 0.1 --dropout 0 --epochs 50 --presence-epochs 5 -o trained"), 0);
    assert_has(tool_err, "8 images with 16 captions (Flickr8k.token); 4 with 8 for validation");
    assert_has(tool_err, "step 15, epoch 5: presence ");
    assert_has(tool_err, ": presence ");
    assert_has(tool_err, "step 150, epoch 50: loss ");
    assert_has(tool_err, ", CIDEr-D of greedy captions ");
    assert_has(tool_err, "% of the time waited for images");
    assert_has(tool_err, "with the lowest loss per word on validation, 0.");
    assert_has(tool_err, "trained is a model now: attend caption -m trained");
    assert_int_equal(tool("$A caption -m trained images/8.png images/11.png"), 0);
    assert_has(tool_out, "red");
    assert_has(tool_out, "yellow");
    assert_int_equal(tool("$A plot -y loss,valid_loss trained/log.jsonl -o trained.svg && ls trained"), 0);
    assert_has(tool_out, "config.json\n");
    assert_has(tool_out, "preprocessor_config.json\n");
    assert_has(tool_out, "words.json\n");
    assert_int_equal(tool("grep -c '\"presence\": 5' trained/config.json"), 0); /* colors and "square" */
}

static void a_model_in_half_precision_works(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN "--gate --dtype f16 --epochs 2 -o half && $A caption -m half images/8.png"), 0);
    assert_has(tool_out, "images/8.png\t");
}

static void other_decoders_learn(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN "--decoder lstm --attention none --crop 1 --flip --epochs 2 -o lstm"), 0);
    assert_int_equal(tool("grep -c '\"attention\": \"none\"' lstm/config.json"), 0);
    assert_int_equal(tool("$A train caption " DATA "--train-list train.txt --channels 4,6 --image-size 16 --hidden 12 "
                          "--min-count 1 --decoder transformer --heads 2 --presence 0 --epochs 2 -o transformer"),
                     0);
    assert_has(tool_err, "there is no --valid-list for validation, so the model of the last step is written");
    assert_int_equal(tool("grep -c '\"intermediate_size\": 48' transformer/config.json"), 0);
}

static void an_encoder_is_copied_and_stays_as_it_is(void **state)
{
    (void)state;
    assert_int_equal(tool("for i in 0 4; do mkdir -p classes/$i && cp images/$i.png images/$((i+1)).png classes/$i; "
                          "done; echo '{\"model_type\": \"vit\", \"image_size\": 8, \"patch_size\": 4, "
                          "\"hidden_size\": 12, \"num_hidden_layers\": 1, \"num_attention_heads\": 2, "
                          "\"intermediate_size\": 8}' >vit.json; $A train classify --data classes --config vit.json "
                          "--valid-share 0 --epochs 1 -o vit"),
                     0);
    assert_int_equal(tool("$A train caption " DATA LISTS "--encoder ./vit --hidden 12 --min-count 1 --batch 3 "
                          "--epochs 3 -o frozen"),
                     0);
    assert_int_equal(tool("cmp vit/model.safetensors frozen/encoder/model.safetensors && "
                          "cmp vit/preprocessor_config.json frozen/encoder/preprocessor_config.json && "
                          "test ! -e frozen/preprocessor_config.json && grep -c '\"encoder_hidden_size\": 12' "
                          "frozen/config.json"),
                     0);
    assert_int_equal(tool("mv vit moved && $A train caption --resume -o frozen && $A caption -m frozen images/8.png"),
                     0);
    assert_int_equal(tool("mv moved vit && rm vit/checkpoint* vit/training.json && cp vit/model.safetensors ."), 0);
    assert_refused("$A train caption " DATA "--encoder ./vit --hidden 12 --min-count 1 -o vit", 1,
                   "vit: is the model's own folder; a training needs another one");
    assert_int_equal(tool("cmp vit/model.safetensors model.safetensors"), 0);
    assert_refused("$A train caption " DATA SIZES "--encoder ./vit -o x", 2, "--channels does not go with --encoder");
    assert_refused("$A train caption " DATA "--encoder ./vit --min-count 1 --encoder-memory 1e-6 -o x", 2,
                   "--encoder-memory leaves 1e-06 GB, but the encoder's features of 12 images, 2 x 2 locations of 12");
    assert_refused("$A train caption " DATA "--encoder ./lstm --min-count 1 -o x", 1, "lstm");
}

static void a_training_that_is_killed_again_and_again_has_the_same_result(void **state)
{
    (void)state;
    assert_kills_change_nothing(TRAIN
                                "--gate --dropout 0.1 --crop 1 --flip --presence-weight 0.1 --captions-per-image 1 "
                                "--epochs 25 --save-every 2",
                                2, 7, 5, 100);
    assert_int_equal(tool(SAME_LOG("calm/log.jsonl", "killed/log.jsonl")), 0);
}

static void a_training_that_is_interrupted_is_a_model(void **state)
{
    (void)state;
    assert_interrupt_leaves_a_model(TRAIN "--epochs 100000 --save-every 1 --presence-epochs 0", "caption", "",
                                    "images/0.png");
    assert_int_equal(tool("rm -rf stopped; { await 'ls stopped/checkpoint-*'; kill -TERM $$; } & exec " TRAIN
                          "--epochs 100000 --save-every 1 --presence-epochs 99999 -o stopped"),
                     143);
    assert_has(tool_err, "; only word prediction has been trained, so there is no model yet; attend train caption "
                         "--resume -o stopped continues\n");
    assert_null(strstr(tool_err, "uses the model so far"));
    assert_refused(
        "$A caption -m stopped images/0.png", 1,
        "stopped has a training that has not trained captions yet: attend train caption --resume -o stopped\n");
}

/* Word prediction has its share of the time, words the rest; without a word there is no model. */
static void both_phases_share_the_minutes(void **state)
{
    (void)state;
#define LONG TRAIN "--epochs 100000 --presence-epochs 40000 --validate-every 1000000 "
    assert_int_equal(tool(LONG "--minutes 0.01 -o shared"), 0);
    assert_has(tool_err, "at this speed, --minutes 0.01 ends after about ");
    const char *share = strstr(tool_err, "word prediction has had its share of --minutes: from step ");
    assert_non_null(share);
    const long first = strtol(strstr(share, "step ") + 5, NULL, 10);
    const char *last = strstr(share, "\nstep ");
    assert_non_null(last);
    const long steps = strtol(last + 6, NULL, 10);
    if (!(first > 1 && steps > first))
        fail_msg("words from step %ld of %ld", first, steps);
    assert_has(last, ": loss "); /* of words alone */
    assert_int_equal(tool("$A caption -m shared images/0.png"), 0);
    assert_int_equal(tool(LONG "--minutes 0.0000001 -o brief"), 1);
    assert_has(tool_err, "attend: --minutes 1e-07 ended after step ");
    assert_has(tool_err, "; only word prediction has been trained, so there is no model yet; attend train caption "
                         "--resume -o brief --minutes 2e-07 continues\n");
    assert_refused("$A caption -m brief images/0.png", 1, "brief has a training that has not trained captions yet: ");
    assert_int_equal(tool("$A train caption --resume -o brief --minutes 0.005 && $A caption -m brief images/0.png"), 0);
    /* The phases of a checkpoint are continued. */
    assert_int_equal(
        tool("cp -r shared more; $A train caption --resume -o more --minutes 0.012; grep -c '\"presence\":' "
             "more/log.jsonl"),
        1);
}

static void what_cannot_be_trained_on_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int code;
        const char *says;
    } cases[] = {
        {"$A train caption -o x", 2, "--data"},
        {"$A train caption " DATA "-o x --min-count 99", 1, "no word is in the captions 99 times or more"},
        {"$A train caption --data nothing --images images -o x", 1, "nothing: No such file"},
        {"$A train caption --data captions.txt --images nowhere -o x", 1, "nowhere"},
        {"$A train caption " DATA "--valid-list valid.txt -o x", 2,
         "--valid-list needs --train-list, or its images would be trained on"},
        {"$A train caption " DATA "--train-list train.txt --valid-list train.txt -o x", 1,
         "images/0.png is in both lists, train.txt and train.txt"},
        {"echo 77.png >other.txt; $A train caption " DATA "--train-list other.txt -o x", 1, "77.png"},
        {TRAIN "--channels 4,,6 -o x", 2, "--channels \"4,,6\" is not a list of numbers, 1 to 65536, with commas"},
        {TRAIN "--channels 4,6, -o x", 2, "--channels \"4,6,\" is not a list"},
        {TRAIN "--channels 99999 -o x", 2, "--channels \"99999\" is not a list of numbers, 1 to 65536"},
        {TRAIN "--image-size 18 -o x", 2, "--image-size 18 is not a multiple of 4, as 2 stages (--channels) need it"},
        {TRAIN "--image-size 4096 -o x", 1, "a grid of 1024 x 1024 has 1048576 locations"},
        {TRAIN "--image-size 4 --batch 7 -o x", 2, "--batch is 7: of 8 images the last would be alone"},
        {TRAIN "--layers 17 -o x", 2, "--layers 17 is more than the 16"},
        {"$A train caption " DATA "--decoder transformer --hidden 10 -o x", 2,
         "--hidden 10 cannot be shared by 4 heads"},
        {TRAIN "--epochs 3 --presence-epochs 3 -o x", 2, "--presence-epochs 3 of --epochs 3 leave none"},
        {"sed 's/\t.*/\tof the/' captions.txt >of.txt; $A train caption --data of.txt --images images --min-count 1 -o "
         "x",
         1, "\"presence\" is 300, but of the 4 words"},
        {TRAIN "--crop 16 -o x", 2, "attend: --crop is 16, but the model's images have 16 x 16"},
        {TRAIN "--attention none --gate -o x", 2, "--gate does not go with --attention none"},
        {TRAIN "--attention none --doubly-stochastic 1 -o x", 2, "--doubly-stochastic does not go with"},
        {TRAIN "--decoder transformer -o x", 2, "--embedding is for --decoder gru and lstm"},
        {TRAIN "--heads 2 -o x", 2, "--heads is for --decoder transformer"},
        {TRAIN "--presence 0 --presence-weight 1 -o x", 2, "--presence-weight does not go with --presence 0"},
        {TRAIN "--encoder nothing -o x", 2, "--channels does not go with --encoder"},
        {"$A train caption " DATA "--encoder nothing -o x", 1, "nothing"},
        {"$A train caption --resume -o x", 1, "x: there is no training to continue"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_refused(cases[i].line, cases[i].code, cases[i].says);
        assert_int_equal(tool("test ! -e x"), 0);
    }
}

static void images_and_captions_alone_are_counted(void **state)
{
    (void)state;
    assert_int_equal(tool("mkdir some && cp images/*.png some && mv some/3.png some/alone.png && $A train caption "
                          "--data captions.txt --images some --epochs 1 " SIZES "-o some-model"),
                     0);
    assert_has(tool_err, "11 images with 22 captions");
    assert_has(tool_err, "1 image with captions is not in some, and left out");
    assert_has(tool_err, "1 image is in some without a caption, and left out");
}

static void options_are_stored_for_resume(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN "--epochs 2 -o stored"), 0);
    assert_refused("$A train caption --resume -o stored --dropout 0.2", 2, "--dropout is 0.3 in stored but 0.2 here");
    assert_int_equal(tool("$A train caption --resume -o stored"), 0);
    assert_has(tool_err, "stored is a model that has finished its training, and stays as it is");
    assert_refused("$A train classify --resume -o stored", 1, "attend train caption --resume -o stored");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(colors_are_learned),
        cmocka_unit_test(a_model_in_half_precision_works),
        cmocka_unit_test(other_decoders_learn),
        cmocka_unit_test(an_encoder_is_copied_and_stays_as_it_is),
        cmocka_unit_test(what_cannot_be_trained_on_is_named),
        cmocka_unit_test(images_and_captions_alone_are_counted),
        cmocka_unit_test(options_are_stored_for_resume),
        cmocka_unit_test(a_training_that_is_interrupted_is_a_model),
        cmocka_unit_test(both_phases_share_the_minutes),
        cmocka_unit_test(a_training_that_is_killed_again_and_again_has_the_same_result),
    };
    return cmocka_run_group_tests(tests, set_up, tool_teardown);
}
