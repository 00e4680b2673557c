/* attend train recommend and attend evaluate recommend: from a log to a recommender, killed on the way or not, with a
 * log that grows, and how good it is. */
// labels: trains
#include "fixtures/check.h"
#include "fixtures/stopped.h"

#include <math.h>

/* Items in a ring: after each comes the next one, but for one action in eight, which is anywhere. What is popular says
 * nothing about it. */
enum { RING = 20, USERS = 120, LENGTH = 12 };

#define TRAIN                                                                                                          \
    "$A train recommend --data ring.txt --hidden 16 --layers 1 --max-positions 8 --batch 32 --rate 1e-2 --threads 2 "

/* Users from `first` on; items are numbered up to `ring`. */
static void write_ring(const char *name, int first, int users, int ring)
{
    FILE *f = folder_open(&tool_model, name);
    for (int u = 0; u < users; u++) {
        int item = (int)(check_bits(1, (uint64_t)u) % (uint64_t)ring);
        for (int i = 0; i < LENGTH; i++) {
            const uint64_t bits = check_bits(2, (uint64_t)(u * LENGTH + i));
            item = bits % 8 ? (item + 1) % ring : (int)((bits >> 8) % (uint64_t)ring);
            fprintf(f, "user%d item%d %d\n", first + u, item, i);
        }
    }
    assert_int_equal(fclose(f), 0);
}

static int set_up(void **state)
{
    assert_int_equal(tool_setup(state), 0);
    write_ring("ring.txt", 0, USERS, RING);
    write_ring("more.txt", USERS, USERS, RING + 4);
    folder_write(&tool_model, "texts.tsv", "item0\tThe cat sleeps\nitem1\tA dog runs\nnever\tThe sun is shiny\n");
    return tool("cat ring.txt more.txt >grown.txt");
}

/* Returns the results of an evaluation as JSON, by name. */
static const json_t *result(const json_t *evaluation, const char *name)
{
    const json_t *all = json_object_get(evaluation, "results"), *found = NULL;
    for (size_t i = 0; i < json_array_size(all); i++)
        if (!strcmp(json_string_value(json_object_get(json_array_get(all, i), "name")), name))
            found = json_array_get(all, i);
    assert_non_null(found);
    return found;
}

/* ---- Baselines --------------------------------------------------------------------- */

/* Worked by hand: trained are a b, a b, c, where a and b have 2 actions and c 1 (b, c, a; a, b, c; ...). */
static void the_popular_baseline_is_counted_by_hand(void **state)
{
    (void)state;
    folder_write(&tool_model, "small.txt", "u a 1\nu b 2\nu c 3\nv b 1\nv a 2\nv a 3\nw c 1\nw d 2\nw e 3\nx a 1\n");
    assert_int_equal(tool("$A evaluate recommend -d small.txt -k 3 --json"), 0);
    json_t *v = line_json(0);
    /* Trained: a of u, b of v, c of w, a of x. Order: a 2, b 1, c 1, d 0, e 0. Ranks at the test: u c 3, v a 1, w e 5.
     */
    const json_t *r = result(v, "popularity");
    assert_int_equal(number(v, "cases"), 3);
    assert_int_equal(number(v, "unseen"), 1);
    assert_int_equal(number(v, "repeats"), 1);
    check_near(2.0 / 3, number(r, "hr"), 1e-7, "HR@3");
    check_near((1 + 1 / log2(4)) / 3, number(r, "ndcg"), 1e-7, "NDCG@3");
    check_near((1 + 1.0 / 3) / 3, number(r, "mrr"), 1e-7, "MRR@3");
    check_near(3.0 / 5, number(r, "coverage"), 1e-7, "coverage");
    check_near(4.0 / 3, number(r, "popularity"), 1e-7, "popularity");
    json_decref(v);
    assert_int_equal(tool("$A evaluate recommend -d small.txt -k 3 --json --exclude-seen --leave-out-unseen"), 0);
    v = line_json(0);
    /* u: a and b are not candidates, so c is the first; v has had a, which has no rank. */
    assert_int_equal(number(v, "cases"), 2);
    check_near(0.5, number(result(v, "popularity"), "hr"), 1e-7, "HR@3 without seen items");
    json_decref(v);
}

static void several_cutoffs_are_those_alone(void **state)
{
    (void)state;
    char alone[3][1024];
    for (int i = 0; i < 3; i++) {
        char line[128];
        snprintf(line, sizeof line, "$A evaluate recommend -d ring.txt -k %d 2>/dev/null | grep ^popularity",
                 1 + 4 * i);
        assert_int_equal(tool(line), 0);
        snprintf(alone[i], sizeof alone[i], "%.1000s", tool_out);
    }
    assert_int_equal(tool("$A evaluate recommend -d ring.txt -k 9,1,5"), 0);
    assert_has(tool_out, "HR@9 ");
    for (int i = 0; i < 3; i++)
        assert_has(tool_out, alone[i]);
    assert_int_equal(tool("$A evaluate recommend -d ring.txt -k 9,1 --json"), 0);
    json_t *v = line_json(0);
    assert_int_equal(json_array_size(json_object_get(v, "results")), 6);
    assert_int_equal(number(json_array_get(json_object_get(v, "results"), 1), "k"), 1);
    json_decref(v);
    static const char *const wrong[] = {"0", "", "5,", "5,5", "5 6", "1,2,3,4,5,6,7,8,9", "-1", "x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char line[128];
        snprintf(line, sizeof line, "$A evaluate recommend -d ring.txt -k '%s'", wrong[i]);
        assert_refused(line, 2, "-k: \"");
    }
}

static void the_protocol_is_said_in_full(void **state)
{
    (void)state;
    assert_int_equal(tool("$A evaluate recommend -d small.txt"), 0);
    static const char *const says[] = {"leave-one-out: the last action of each of 3 users with 3 actions or more,\n",
                                       "1 user with fewer is for training only",
                                       "candidates  all 5 items, those of the history, too\n",
                                       "unseen      1 held-out item does not occur in training: counted\n",
                                       "repeats     1 of 3 counted items is in their history\n",
                                       "\npopularity  ",
                                       "\nitem neighbors  "};
    for (size_t i = 0; i < sizeof says / sizeof *says; i++)
        assert_has(tool_out, says[i]);
    assert_has(tool_err, "10 actions of 4 users with 5 items (lines); times 1 to 3\n");
    assert_int_equal(
        tool("$A evaluate recommend -d ring.txt --exclude-seen --candidates outside-training --negatives 5 "
             "--draws 3 --seed 9 --part valid --leave-out-unseen"),
        0);
    assert_has(tool_out, "the last action but one of each of 120 users");
    assert_has(tool_out, "candidates  5 random items, uniform outside the user's training items, with repetition,\n");
    assert_has(tool_out, "without those of the history;\n            mean of 3 draws for each user, seed 9\n");
    assert_has(tool_out, "do not occur in training: not counted\n");
}

/* ---- Training -------------------------------------------------------------------------- */

static void a_pattern_is_learned_that_popularity_does_not_find(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN "--dropout 0.1 --epochs 30 -o trained"), 0);
    assert_has(tool_err, "1440 actions of 120 users with 20 items (lines); times 0 to 11\n");
    assert_has(tool_err, "split leave-one-out: 1200 actions of 120 users for training; 120 for validation and 120 for "
                         "the test, which is not read\n");
    assert_has(tool_err, ", on validation NDCG@10 0.");
    assert_has(tool_err, "attend: trained is the model of step ");
    assert_has(tool_err, "trained is a model now: attend recommend -m trained");
    assert_int_equal(tool("$A evaluate recommend -m trained -d ring.txt -k 1 --json"), 0);
    json_t *v = line_json(0);
    const double hr = number(result(v, "trained"), "hr"), popular = number(result(v, "popularity"), "hr");
    assert_true(hr > 0.6 && popular < 0.2);
    json_decref(v);
    assert_int_equal(tool("$A recommend -m trained -k 1 --json --history item3,item4,item5"), 0);
    v = line_json(0);
    assert_string_equal(json_string_value(json_object_get(json_array_get(json_object_get(v, "items"), 0), "item")),
                        "item6");
    json_decref(v);
    assert_int_equal(tool("$A plot -y ndcg,loss trained -o trained.svg"), 0);
}

static void the_log_begins_with_all_options(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN "--epochs 1 -o logged 2>/dev/null && head -n 1 logged/log.jsonl"), 0);
    json_t *v = line_json(0), *o = json_object_get(v, "options");
    assert_int_equal(number(v, "step"), 0);
    assert_string_equal(json_string_value(json_object_get(v, "command")), "recommend");
    assert_string_equal(json_string_value(json_object_get(o, "hidden")), "16");
    assert_string_equal(json_string_value(json_object_get(o, "loss")), "softmax");
    assert_string_equal(json_string_value(json_object_get(o, "rate")), "0.01");
    json_decref(v);
    assert_int_equal(tool("wc -l <logged/log.jsonl; tail -n 1 logged/log.jsonl | grep -c '\"ndcg\": 0.'"), 0);
    assert_string_equal(tool_out, "2\n1\n");
}

static void all_losses_blocks_and_architectures_train(void **state)
{
    (void)state;
    static const char *const options[] = {
        "--block sasrec --loss binary --with-replacement --beta2 0.98",
        "--block post-norm --loss gbce --negatives 4 --calibration 0.5",
        "--loss sampled-softmax --negatives 8 --schedule cosine --warmup 0.1",
        "--arch bert4rec --mask-share 0.4 --last-mask-share 0.2 --schedule linear",
        "--split time --decay 0.01 --clip 1 --patience 1",
        "--split none --dtype f16",
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        char line[512];
        snprintf(line, sizeof line, "rm -rf any; " TRAIN "--epochs 2 %s -o any && $A recommend -m any --history item1",
                 options[i]);
        if (tool(line))
            fail_msg("%s: %s", options[i], tool_err);
        assert_int_equal(count(tool_out, "\n"), 11);
    }
    assert_int_equal(tool("$A evaluate recommend -m any -d ring.txt >/dev/null"), 0);
    assert_has(tool_err, "any was trained with --split none, so also on the actions that are held out here");
}

/* The evaluation of a model holds out what its training did, unless another split is typed, and then says so. */
static void the_split_is_that_of_the_training(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN "--epochs 1 --split time --test-share 0.2 -o timed && "
                                "$A evaluate recommend -m timed -d ring.txt"),
                     0);
    assert_has(tool_out, "held out    time: the first action of each of ");
    static char timed[sizeof tool_out];
    strcpy(timed, tool_out);
    assert_int_equal(tool("$A evaluate recommend -m timed -d ring.txt --split time --test-share 0.2"), 0);
    assert_string_equal(tool_out, timed);
    assert_int_equal(tool("$A evaluate recommend -m timed -d ring.txt --split leave-one-out"), 0);
    assert_has(tool_out, "held out    leave-one-out: ");
    assert_has(tool_err,
               "attend: timed was trained with --split time, not as here: it may have been trained on actions "
               "that are held out here\n");
    /* Options of a split leave its other settings unchanged. */
    assert_int_equal(tool("$A evaluate recommend -m timed -d ring.txt --min-actions 5"), 0);
    assert_has(tool_out, "held out    time: the first action of each of ");
    assert_has(tool_out, "with fewer than 5 actions are for training only");
    assert_has(tool_err, "timed was trained with --min-actions 3, not as here: ");
    assert_int_equal(tool("$A evaluate recommend -m timed -d ring.txt --valid-share 0.3"), 0);
    assert_has(tool_err, "timed was trained with --valid-share 0.1, not as here: ");
    assert_null(strstr(tool_err, "--test-share"));
    assert_int_equal(tool("$A evaluate recommend -m timed -d ring.txt --valid-from 3 --test-from 5"), 0);
    assert_has(tool_err, "timed was trained with --test-share 0.2, not as here: ");
}

/* So are the users who are held out; a model that was trained on others' last actions is reported. */
static void held_out_users_are_those_of_the_training(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN "--epochs 1 --held-out-users 30 -o some && $A evaluate recommend -m some -d ring.txt"),
                     0);
    assert_has(tool_err, "; 30 for validation and 30 for the test");
    assert_has(tool_out, "held out    leave-one-out: the last action of each of 30 users with 3 actions or more,");
    assert_has(tool_out, "90 more users are for training only, by --held-out-users 30\n");
    assert_int_equal(tool("$A evaluate recommend -m some -d ring.txt --held-out-users 20 --json"), 0);
    assert_has(tool_err, "some was trained with --held-out-users 30, not as here: ");
    json_t *v = line_json(0);
    assert_int_equal(number(json_object_get(v, "training"), "users_not_held_out"), 100);
    json_decref(v);
    assert_int_equal(tool("$A train recommend --data ring.txt -m some --epochs 1 --held-out-users 30 -o again"), 0);
    assert_null(strstr(tool_err, "began with some"));
    assert_int_equal(tool("$A train recommend --data ring.txt -m some --epochs 1 -o more"), 0);
    assert_has(tool_err, "attend: more began with some, which was trained with --split leave-one-out --min-actions 3 "
                         "--held-out-users 30, not as here: ");
}

/* A model that was made from another one knows what that was trained on. */
static void what_the_first_model_was_trained_on_is_reported(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN
                          "--epochs 1 --split none -o all && $A train recommend --data ring.txt -m all --epochs 1 "
                          "-o second && $A train recommend --data ring.txt -m second --epochs 1 -o third"),
                     0);
    assert_has(tool_err,
               "attend: third began with all, which was trained with --split none, so also on the actions that "
               "are held out here\n");
    assert_null(strstr(tool_err, "third began with second"));
    assert_int_equal(tool("rm -r all second; $A evaluate recommend -m third -d ring.txt >/dev/null"), 0);
    assert_has(tool_err, "attend: third began with all, which was trained with --split none, ");
    assert_int_equal(tool(TRAIN "--epochs 1 -o first && $A train recommend --data grown.txt -m first --epochs 1 -o on"),
                     0);
    assert_has(tool_err, "attend: on began with first, which was trained on another log, ");
    assert_int_equal(tool("rm first/training.json; $A train recommend --data ring.txt -m first --epochs 1 -o on2"), 0);
    assert_has(tool_err, "attend: on2 was fine-tuned from first, whose training data is unknown; ");
}

static void items_that_the_model_knows_are_counted(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN "--epochs 1 -o known && $A evaluate recommend -m known -d more.txt --json"), 0);
    json_t *v = line_json(0);
    assert_int_equal(number(v, "log_items"), 24);
    assert_int_equal(number(v, "known_items"), 20);
    assert_int_equal(number(v, "min_actions"), 3);
    assert_int_equal(number(json_object_get(v, "training"), "users"), 120);
    json_decref(v);
    assert_refused("sed s/item/thing/ ring.txt >things; $A evaluate recommend -m known -d things 2>err; code=$?; tail "
                   "-n 1 err >&2; exit $code",
                   1, "things: known knows none of its 20 items; the first is \"thing");
}

/* ---- What stops, and what continues -------------------------------------------------------- */

static void a_training_that_is_killed_again_and_again_has_the_same_result(void **state)
{
    (void)state;
    assert_kills_change_nothing(TRAIN "--epochs 10 --dropout 0.2 --loss binary --with-replacement --save-every 3", 2, 7,
                                5, 100);
    assert_int_equal(tool(SAME_LOG("calm/log.jsonl", "killed/log.jsonl")), 0);
}

static void a_training_that_is_interrupted_is_a_model(void **state)
{
    (void)state;
    assert_interrupt_leaves_a_model(TRAIN "--epochs 100000 --save-every 1", "recommend", "", "--history item1");
}

static void options_are_stored_for_resume(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN "--epochs 2 --dropout 0.5 -o stored"), 0);
    assert_refused("$A train recommend --resume -o stored --dropout 0.2", 2, "--dropout is 0.5 in stored but 0.2 here");
    assert_int_equal(tool("$A train recommend --resume -o stored"), 0);
    assert_has(tool_err, "stored is a model that has finished its training, and stays as it is");
    assert_refused("$A train embed --resume -o stored", 1, "attend train recommend --resume -o stored");
}

static void a_training_without_validation_ends_and_says_so(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN "--min-actions 99 --batch 1024 -o unseen"), 0);
    assert_has(tool_err, "attend: no action is held out for validation, so the model of the last step is written\n");
    assert_has(tool_err, "step 20, epoch 20: ");
    assert_refused("$A evaluate recommend -m unseen -d ring.txt 2>err; code=$?; tail -n 1 err >&2; exit $code", 1,
                   "no action is held out, as no user has 99 actions or more");
    assert_refused("$A evaluate recommend -d ring.txt --split time --min-actions 99 2>err; code=$?; tail -n 1 err >&2; "
                   "exit $code",
                   1, "as no user with 99 actions or more has one from 10 on and one before it");
}

static void an_error_leaves_the_training_as_it_is(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN "--epochs 2 -o safe && cp -r safe copy"), 0);
    static const char *const wrong[] = {"nowhere", "texts.tsv", "grown.txt --item-texts nowhere",
                                        "grown.txt --hidden 32"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char line[256];
        snprintf(line, sizeof line, "$A train recommend --resume -o safe --data %s", wrong[i]);
        assert_true(tool(line) != 0);
        assert_int_equal(tool("diff -r safe copy"), 0);
    }
    assert_int_equal(tool("mkdir -p safe/base/items.json; $A train recommend --resume -o safe --data grown.txt"), 1);
    assert_has(tool_err, "safe/base/items.json");
    assert_int_equal(tool("rm -r safe/base; diff -r safe copy"), 0);
}

static void a_training_goes_on_for_more_epochs(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN "--epochs 2 -o longer && $A train recommend --resume -o longer --epochs 4 && " TRAIN
                                "--epochs 4 -o at_once && cmp longer/model.safetensors at_once/model.safetensors"),
                     0);
    assert_has(tool_err,
               "attend: it was still improving: attend train recommend --resume -o longer --epochs 4 continues\n");
    assert_refused("$A train recommend --resume -o longer --epochs 3", 2,
                   "--epochs is 3 (12 steps) but longer is at step 16\n");
    assert_int_equal(tool(TRAIN "--epochs 2 --schedule linear -o falls"), 0);
    assert_refused("$A train recommend --resume -o falls --epochs 4", 2,
                   "--epochs is 2 in falls but 4 here, where --schedule falls to 0");
}

/* The vectors of the items that it had stay where they are, at a learning rate that changes nothing. */
static void a_log_that_has_grown_adds_items_to_what_is_trained(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN "--epochs 20 --dropout 0.1 -o shop && $A recommend -m shop --vectors before.npy && "
                                "cp -r shop other"),
                     0);
    assert_int_equal(tool("$A train recommend --resume -o shop --data grown.txt"), 0);
    assert_has(tool_err, "grown.txt is not the log of the training in shop: another one begins with the model that is "
                         "there\n");
    assert_has(tool_err, "begins with ");
    assert_has(tool_err, "which has 20 of the items\n");
    assert_int_equal(tool("$A info -m shop | grep -c 'items *24$'"), 0);
    assert_int_equal(tool("head -n 1 shop/log.jsonl | grep -c grown.txt; grep -c '\"step\":0' shop/log.jsonl; mv shop "
                          "moved && $A train recommend --resume -o moved --epochs 21 && mv moved shop"),
                     0);
    assert_string_equal(tool_out, "1\n1\n");
    assert_int_equal(tool("$A evaluate recommend -m shop -d grown.txt -k 1 --json 2>/dev/null"), 0);
    json_t *v = line_json(0);
    assert_true(number(result(v, "shop"), "hr") > 0.4);
    json_decref(v);
    assert_int_equal(tool("$A train recommend -m other --data grown.txt --epochs 0.1 --rate 1e-30 -o new && "
                          "$A recommend -m new --vectors after.npy && tail -c +129 before.npy >b && "
                          "tail -c +129 after.npy | head -c $(wc -c <b) | cmp - b && wc -c <after.npy"),
                     0);
    assert_string_equal(tool_out, "1664\n"); /* 128 + 24 * 16 * 4 */
    assert_int_equal(tool("$A train recommend --resume -o shop"), 0);
    assert_has(tool_err, "shop is a model that has finished its training, and stays as it is");
    assert_refused("cat more.txt >>grown.txt; $A train recommend --resume -o shop", 1,
                   "when the training in shop began; to begin again with the model in that folder, add --data and the");
    assert_int_equal(tool("cp ring.txt grown.txt; cat more.txt >>grown.txt"), 0);
}

/* Whether or not it gets new items, a night that makes nothing better changes no file of the model. */
static void the_model_to_begin_with_stays_where_no_step_is_better(void **state)
{
    (void)state;
    static const char *const logs[] = {"grown.txt", "longer.txt"};
    assert_int_equal(tool("{ cat ring.txt; sed 's/^user/more/' ring.txt; } >longer.txt; " TRAIN
                          "--epochs 12 -o was; rm -rf night; cp -r was night"),
                     0);
    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++) {
        char line[512];
        snprintf(line, sizeof line, "$A train recommend --resume -o night --data %s --rate 1e-30 --epochs 2 --json",
                 logs[i]);
        assert_int_equal(tool(line), 0);
        assert_has(tool_err, "step 0, the model to begin with, on validation NDCG@10 0.");
        assert_has(tool_err, i ? ": night stays unchanged\n" : ": night stays unchanged, without the 4 new items\n");
        assert_null(strstr(tool_err, "is a model now"));
        json_t *v = line_json(0);
        assert_true(json_is_false(json_object_get(v, "improved")));
        assert_true(json_is_true(json_object_get(v, "finished")));
        assert_int_equal(number(v, "step"), 0);
        assert_true(number(v, "steps") > 0 && number(v, "ndcg") > 0.2);
        json_decref(v);
        assert_int_equal(
            tool("for f in config.json items.json model.safetensors; do cmp was/$f night/$f || exit 1; done; "
                 "grep -c '\"step\": 0, .*\"ndcg\"' night/log.jsonl"),
            0);
    }
    assert_int_equal(tool("$A train recommend --resume -o night --data ring.txt --rate 0.01 --json"), 0);
    assert_has(tool_out, "\"improved\": true}\n");
    /* In a new folder there is a model in any case; with texts, the new items are worth having. */
    assert_int_equal(tool("$A train recommend -m was --data grown.txt --rate 1e-30 --epochs 1 -o fresh && "
                          "$A info -m fresh | grep -c 'items *24$'"),
                     0);
    assert_int_equal(
        tool("{ cat texts.tsv; printf 'item22\\tA dog\\n'; } >grown.tsv; " TRAIN
             "--item-texts texts.tsv --text-model $D --content add --epochs 12 -o titles && $A train "
             "recommend --resume -o titles --data grown.txt --item-texts grown.tsv --rate 1e-300 --epochs 1"),
        0);
    assert_has(tool_err, ": titles is that one, with the new items\n");
    assert_int_equal(
        tool("$A info -m titles | grep -c 'items *25$' && $A train recommend --resume -o titles --epochs 2"), 0);
    assert_has(tool_err, ": titles is that one, with the new items\n"); /* when the training continues, too */
}

/* Of the size of the log before, but with other items. */
static void another_log_is_seen_by_its_content(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN "--epochs 1 -o same && cp ring.txt kept && tr m n <kept >ring.txt"), 0);
    assert_refused("$A train recommend --resume -o same", 1, "has the size, but not the content that it had when");
    assert_int_equal(tool("$A train recommend --resume -o same --data ring.txt --epochs 1; mv kept ring.txt"), 0);
    assert_has(tool_err, "1440 actions of 120 users with 40 items (lines); times 0 to 11\n");
}

static void texts_make_items_that_are_in_no_action(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN "--epochs 1 --item-texts texts.tsv --text-model $D --content add -o content"), 0);
    assert_has(tool_err, "1440 actions of 120 users with 21 items (lines); times 0 to 11\n");
    assert_has(tool_err, " numbers; 18 items have none\n");
    assert_int_equal(tool("$A recommend -m content --history never,item3 -k 21 --json"), 0);
    assert_has(tool_out, "{\"item\": \"never\", ");
    assert_string_equal(tool_err, "");
    assert_int_equal(tool(TRAIN "--epochs 1 --item-texts texts.tsv --text-model $D -o start && "
                                "$A evaluate recommend -m start -d ring.txt --item-texts texts.tsv --text-model $D"),
                     0);
    assert_has(tool_out, "\ncontent  ");
    assert_int_equal(tool("{ cat texts.tsv; printf 'item22\\tA dog\\n'; } >grown.tsv; $A train recommend --resume -o "
                          "content --data grown.txt --item-texts grown.tsv --epochs 0.1"),
                     0);
    assert_has(tool_err, " numbers; 3 items have none\n");
    assert_refused("$A train recommend --data grown.txt -m content -o x", 2, "--item-texts FILE is needed: ");
}

/* Needs the files that the test writes. */
static const struct {
    const char *line;
    int code;
    const char *says;
} refused[] = {
    {"$A train recommend -o x", 2, "--data"},
    {"$A train recommend --data nowhere -o x", 1, "nowhere: No such file"},
    {"$A train recommend --data missing.csv -o x", 1, "missing.csv: line 3: "},
    {"$A train recommend --data columns.csv -o x", 1, "columns.csv: line 1: the header has no column \"user_id\""},
    {"$A train recommend --data columns.csv -o x", 1, "name: --user-column, --item-column, --time-column"},
    {"printf 'u;a;1\\nu;b;2\\n' >semi; $A train recommend --data semi -o x", 1, "the header has no column \"user_id\""},
    {"$A train recommend --data . -o x", 1, ".: is a folder, not a file"},
    {"cat ring.txt | $A train recommend --data /dev/stdin -o x", 1, "a log is read more than once"},
    {"printf 'x\\ty\\n' >no.tsv; " TRAIN "--item-texts no.tsv -o x", 1,
     "--item-texts no.tsv: no item of the log has a text there; the first id is \"x\", and that of the log \"item"},
    {"$A train recommend --data columns.csv --user-column who --item-column item -o x", 1, "\"item\""},
    {"$A train recommend --data alone.txt -o x", 1,
     "alone.txt: no user has two or more actions for training, of 2 users with 2 actions"},
    {"printf '' >empty; $A train recommend --data empty -o x", 1, "empty has no action of a user with an item"},
    {TRAIN "--negatives 3 -o x", 2, "--negatives 3 is for another --loss"},
    {TRAIN "--calibration 0.5 -o x", 2, "--calibration 0.5 is for --loss gbce"},
    {TRAIN "--mask-share 0.5 -o x", 2, "--mask-share is for --arch bert4rec"},
    {TRAIN "--test-share 0.2 -o x", 2, "--test-share 0.2 is for --split time, but here the split is leave-one-out"},
    {TRAIN "--content add -o x", 2, "--content needs --item-texts"},
    {TRAIN "-m any -o x", 2, "--hidden does not go with --model"},
    {TRAIN "--heads 3 -o x", 2, "--heads 3 does not divide --hidden 16"},
    {TRAIN "--heads 0 -o x", 2, "--heads: \"0\" is not a whole number from 1"},
    {TRAIN "--negatives 65537 --loss binary -o x", 2, "--negatives: \"65537\" is not a whole number from 1 to 65536"},
    {TRAIN "--arch bert4rec --block sasrec -o x", 2, "--block sasrec is for --arch sasrec"},
    {TRAIN "--min-actions 1 -o x", 2, "--min-actions 1 is less than 3"},
    {TRAIN "--min-actions 4 --split none -o x", 2, "--min-actions 4 is for a split that holds out"},
    {TRAIN "--held-out-users 4 --split none -o x", 2, "--held-out-users 4 is for a split that holds out"},
    {TRAIN "--held-out-users 0 -o x", 2, "--held-out-users: \"0\" is not a whole number from 1"},
    {TRAIN "--split none --patience 2 -o x", 2, "--patience 2 needs a validation: --split leave-one-out or time"},
    {TRAIN "--split time --valid-share 0.7 --test-share 0.7 -o x", 2, "--valid-share 0.7 and --test-share 0.7"},
    {TRAIN "--split time --valid-share 0.7 --test-from 7 -o x", 2, "--valid-share does not go with --test-from"},
    {TRAIN "--split time --test-from 7 -o x", 2, "--test-from needs --valid-from TIME"},
    {TRAIN "--split time --valid-from 5 --test-from 4 -o x", 2, "--valid-from 5 is not before --test-from 4"},
    {"$A train recommend --data ring.txt -m $D -o x", 1, "is a sentence model"},
    {"$A train recommend --resume -o x", 1, "x: there is no training to continue"},
    {"$A evaluate recommend -d ring.txt --draws 3", 2, "--draws needs --candidates"},
    {"$A evaluate recommend -d ring.txt --split none", 2, "--split none holds out nothing"},
    {"$A evaluate recommend -d ring.txt --candidates popularity --negatives 19", 1, "negatives"},
    {"$A evaluate recommend -d alone.txt --json", 1, "alone.txt: no action is held out"},
    {"$A evaluate recommend -d ring.txt -m $D", 1, "is a sentence model"},
};

static void what_cannot_be_trained_on_is_named(void **state)
{
    (void)state;
    folder_write(&tool_model, "missing.csv", "user_id,item_id,timestamp\nu,a,1\nu,b\n");
    folder_write(&tool_model, "columns.csv", "who,what\nu,a\n");
    folder_write(&tool_model, "alone.txt", "u a 1\nv b 1\n");
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        char line[512];
        snprintf(line, sizeof line, "{ %s; } 2>err; code=$?; grep '^attend: ' err >&2; exit $code", refused[i].line);
        assert_refused(line, refused[i].code, refused[i].says);
        assert_int_equal(tool("test ! -e x"), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_popular_baseline_is_counted_by_hand),
        cmocka_unit_test(several_cutoffs_are_those_alone),
        cmocka_unit_test(the_protocol_is_said_in_full),
        cmocka_unit_test(a_pattern_is_learned_that_popularity_does_not_find),
        cmocka_unit_test(the_log_begins_with_all_options),
        cmocka_unit_test(all_losses_blocks_and_architectures_train),
        cmocka_unit_test(the_split_is_that_of_the_training),
        cmocka_unit_test(held_out_users_are_those_of_the_training),
        cmocka_unit_test(what_the_first_model_was_trained_on_is_reported),
        cmocka_unit_test(items_that_the_model_knows_are_counted),
        cmocka_unit_test(options_are_stored_for_resume),
        cmocka_unit_test(a_training_without_validation_ends_and_says_so),
        cmocka_unit_test(an_error_leaves_the_training_as_it_is),
        cmocka_unit_test(a_training_goes_on_for_more_epochs),
        cmocka_unit_test(the_model_to_begin_with_stays_where_no_step_is_better),
        cmocka_unit_test(another_log_is_seen_by_its_content),
        cmocka_unit_test(a_log_that_has_grown_adds_items_to_what_is_trained),
        cmocka_unit_test(texts_make_items_that_are_in_no_action),
        cmocka_unit_test(what_cannot_be_trained_on_is_named),
        cmocka_unit_test(a_training_that_is_interrupted_is_a_model),
        cmocka_unit_test(a_training_that_is_killed_again_and_again_has_the_same_result),
    };
    return cmocka_run_group_tests(tests, set_up, tool_teardown);
}
