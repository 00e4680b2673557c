/* attend recommend: lists of items, users of a log, similar items, vectors, a drawing; on a model of random weights. */
#include "fixtures/context.h"
#include "fixtures/recommender_tool.h"

#include <math.h>

enum { ITEMS = SHOP_ITEMS, HIDDEN = SHOP_HIDDEN };

static int set_up(void **state)
{
    assert_int_equal(open_context(state) || tool_setup(state), 0);
    shop_setup();
    folder_write(&tool_model, "titles.tsv", "apple\tA red apple\npear\tThe pear\tand more\nfig\tFresh figs\n");
    return tool("mkdir models; ln -s $R models/shop; ln -s $D models/ear");
}

static int tear_down(void **state) { return tool_teardown(state) || close_context(state); }

/* Line `line` of the tool's JSON has the list that the library makes of a history. */
static void assert_list(int line, int64_t n, const int32_t *items, const att_recommend_options *options)
{
    att_recommender *m;
    att_recommendation r;
    const int64_t offsets[] = {0, n};
    json_t *v = line_json(line), *list = json_object_get(v, "items");
    assert_int_equal(att_recommender_open(ctx, getenv("R"), NULL, &m), ATT_OK);
    assert_int_equal(att_recommend(m, 1, items, offsets, options, &r), ATT_OK);
    for (int64_t i = 0; i < r.k; i++) {
        const json_t *item = json_array_get(list, (size_t)i);
        if (r.items[i] < 0) {
            assert_null(item);
            continue;
        }
        assert_string_equal(json_string_value(json_object_get(item, "item")), shop_ids[r.items[i]]);
        assert_true((float)number(item, "score") == r.scores[i]);
    }
    assert_int_equal(json_array_size(list) <= (size_t)r.k, 1);
    assert_int_equal(json_is_true(json_object_get(v, "by_popularity")), r.by_popular[0]);
    att_recommendation_free(ctx, &r);
    att_recommender_free(m);
    json_decref(v);
}

static const int32_t sweet[] = {0, 1, 2}, savoury[] = {3, 4, 5};

/* ---- Lists ---------------------------------------------------------------------- */

static void lists_are_those_of_the_library(void **state)
{
    (void)state;
    const att_recommend_options *four = ATT_OPTIONS(att_recommend_options, .k = 4),
                                *unseen = ATT_OPTIONS(att_recommend_options, .k = ITEMS, .exclude_seen = true);
    assert_int_equal(tool("$A recommend -m $R -k 4 --json --history 'apple,pear,green tea'"), 0);
    assert_list(0, 3, sweet, four);
    assert_int_equal(tool("$A recommend -m $R -k 99 --exclude-seen --json --history 'apple, pear ,green tea' --history "
                          "\"$(printf 'ラーメン\\ta,b\\tsay \"hi\"')\""),
                     0);
    assert_list(0, 3, sweet, unseen);
    assert_list(1, 3, savoury, unseen);
    assert_string_equal(tool_err, "");
}

static void a_list_is_the_same_alone_and_among_others(void **state)
{
    (void)state;
    assert_int_equal(tool("printf 'apple,pear,green tea\\nラーメン\\ta,b\\tsay \"hi\"\\n' >few; "
                          "for i in $(seq 150); do cat few; done >many; "
                          "$A recommend -m $R --json <few >alone && test $(wc -l <alone) = 2 && "
                          "$A recommend -m $R --json -t 3 <many | sort -u >1 && sort alone | diff 1 - && "
                          "ATTEND_MODELS=models $A recommend --json <few | diff alone -"),
                     0);
    assert_refused("$A recommend -m $R few", 2, "few"); /* files are not arguments */
}

static void people_read_a_block_with_texts(void **state)
{
    (void)state;
    float score;
    char id[16];
    assert_int_equal(tool("$A recommend -m $R -k 12 --item-texts titles.tsv --history apple,pear"), 0);
    assert_int_equal(strncmp(tool_out, "apple,pear\n", 11), 0);
    assert_int_equal(count(tool_out, "\n"), 13);
    assert_int_equal(sscanf(tool_out + 11, "%f  %15s", &score, id), 2);
    assert_has(tool_out, "  fig  Fresh figs\n");
    assert_has(tool_out, "  pear  The pear\n");
    assert_has(tool_out, "  lime\n");
    assert_int_equal(tool("$A recommend -m $R --json -k 12 --item-texts titles.tsv --history apple"), 0);
    assert_has(tool_out, "\"text\": \"A red apple\"");
    assert_int_equal(tool("printf 'item_id,price,Title\\napple,3,\"Apples, red\"\\n' >t.csv; $A recommend -m $R -k 12 "
                          "--item-texts t.csv --history pear"),
                     0);
    assert_has(tool_out, "  apple  Apples, red\n");
    assert_string_equal(tool_err, "attend: t.csv: the texts are the column \"Title\"\n");
    assert_int_equal(tool("$A recommend -m $R -k 12 --item-texts t.csv --text-column price --history pear"), 0);
    assert_has(tool_out, "  apple  3\n");
    assert_refused("$A recommend -m $R --item-texts t.csv --text-column cost --history pear", 1,
                   "t.csv: line 1: has no column \"cost\" (--text-column); its first is \"item_id\"");
    assert_refused("$A recommend -m $R --text-column cost --history pear", 2, "--text-column cost needs --item-texts");
    assert_refused("printf 'x\\ty\\n' >no.tsv; $A recommend -m $R --item-texts no.tsv --history pear", 1,
                   "has a text there; the first id is \"x\", and that of the model \"apple\"");
}

/* ---- Histories with nothing known ------------------------------------------------ */

static void unknown_items_are_left_out_and_said(void **state)
{
    (void)state;
    assert_int_equal(tool("$A recommend -m $R -k 4 --json --history 'apple,durian,pear,,green tea,Apple'"), 0);
    assert_list(0, 3, sweet, ATT_OPTIONS(att_recommend_options, .k = 4));
    assert_string_equal(tool_err, "attend: 1 of 1 history has items that the model does not know, which are left "
                                  "out: \"durian\", \"Apple\"\n");
    assert_has(tool_out, "\"unknown\": [\"durian\", \"Apple\"]");
    assert_int_equal(tool("$A recommend -m $R -k 1 --history 'apple pear' --history \"$(printf 'a\\033[1m,')$(seq -s x "
                          "60)\" >/dev/null"),
                     0);
    assert_has(tool_err, "left out: \"apple pear\", \"aU+001B[1m\", \"1x2x3x");
    assert_has(tool_err, "...\"; ids are separated by commas or tabs\n");
    assert_int_equal(tool("$A recommend -m $R -k 1 --history \"$(printf 'a,b\\t')\" >/dev/null"), 0);
    assert_string_equal(tool_err, "");
    assert_refused("printf 'apple\\napple,\\377\\n' | $A recommend -m $R", 1, "standard input: line 2: is not UTF-8");
    assert_refused("printf 'apple\\0pear\\n' | $A recommend -m $R", 1, "standard input: line 1: has a zero byte");
    assert_refused("printf 'apple\\npe\\0r\\n' >zero; $A recommend -m $R --deny zero --history apple", 1,
                   "zero: line 2: has a zero byte");
}

static void an_empty_history_gets_what_is_popular_and_says_so(void **state)
{
    (void)state;
    assert_int_equal(tool("printf 'apple\\n\\ndurian\\n' | $A recommend -m $R -k 3 --json"), 0);
    assert_list(1, 0, sweet, ATT_OPTIONS(att_recommend_options, .k = 3));
    json_t *v = line_json(1), *first = json_array_get(json_object_get(v, "items"), 0);
    assert_string_equal(json_string_value(json_object_get(first, "item")), shop_ids[7]);
    assert_true(json_is_true(json_object_get(v, "by_popularity")) && number(first, "score") == 11);
    json_decref(v);
    assert_has(tool_err,
               "attend: 2 of 3 histories have no item that the model knows: the most popular items are recommended\n");
    assert_int_equal(tool("$A recommend -m $R -k 1 --history '' 2>/dev/null"), 0);
    assert_string_equal(tool_out, " (by popularity)\n        11  fig\n");
}

/* ---- Users ------------------------------------------------------------------------ */

static void users_of_a_log_are_asked_for(void **state)
{
    (void)state;
    static const int32_t ann[] = {2, 1, 0}, bob[] = {3, 4}, dora[] = {7, 7, 8};
    const att_recommend_options *o = ATT_OPTIONS(att_recommend_options, .k = 4);
    assert_int_equal(tool("$A recommend -m $R -k 4 --json -d log.tsv -u dora --user bob -u ann"), 0);
    assert_list(0, 3, dora, o);
    assert_list(1, 2, bob, o);
    assert_list(2, 3, ann, o);
    assert_has(tool_err, "attend: 1 of 3 histories have items that the model does not know, which are left out: "
                         "\"durian\"\n");
    assert_int_equal(tool("$A recommend -m $R -k 4 --json -d log.tsv --all-users 2>/dev/null"), 0);
    assert_int_equal(count(tool_out, "\n"), 4);
    assert_list(0, 3, ann, o);
    assert_list(1, 2, bob, o);
    assert_list(2, 0, bob, o);
    assert_list(3, 3, dora, o);
    assert_refused("$A recommend -m $R -d log.tsv -u dorra", 1,
                   "log.tsv: has no user \"dorra\"; did you mean \"dora\"?");
}

static void all_users_are_a_line_each_in_a_file(void **state)
{
    (void)state;
    assert_int_equal(
        tool("$A recommend -m $R -k 2 -d log.tsv --all-users -o lists.tsv 2>/dev/null && "
             "cut -f 1 lists.tsv | tr '\\n' ' ' && awk -F '\\t' 'NF != 5' lists.tsv && ls | grep -c lists"),
        0);
    assert_string_equal(tool_out, "ann bob carl dora 1\n");
    assert_int_equal(tool("$A recommend -m $R -k 2 -d log.tsv -u ann >one && tail -n +2 one | awk '{print $2}' >ids && "
                          "head -n 1 lists.tsv | cut -f 2,4 | tr '\\t' '\\n' | awk '{print $1}' | diff ids -"),
                     0);
    assert_int_equal(tool("$A recommend -m $R -d log.tsv --all-users >/dev/full"), 1);
}

/* ---- Which items -------------------------------------------------------------------- */

static void lists_keep_to_what_is_allowed(void **state)
{
    (void)state;
    static const int32_t in_stock[] = {7, 1, 9, 2}, out[] = {9};
    assert_int_equal(tool("printf 'fig\\npear\\n\\nlime\\ndurian\\ngreen tea\\n' >stock; echo lime >out; "
                          "$A recommend -m $R -k 5 --json --allow stock --history apple,pear,'green tea' "
                          "--exclude-seen --deny out"),
                     0);
    assert_list(0, 3, sweet,
                ATT_OPTIONS(att_recommend_options, .k = 5, .exclude_seen = true, .allow = in_stock, .n_allow = 4,
                            .deny = out, .n_deny = 1));
    json_t *v = line_json(0);
    assert_int_equal(json_array_size(json_object_get(v, "items")), 1); /* the fig */
    json_decref(v);
    assert_string_equal(tool_err, "attend: --allow stock: 1 of 5 items are not known to the model: \"durian\"\n");
    assert_refused("echo durian >none; $A recommend -m $R --allow none --history apple", 1,
                   "--allow none: has no item that the model knows: \"durian\"");
    assert_refused("$A recommend -m $R --deny nowhere --history apple", 1, "nowhere: No such file");
}

static void similar_items_are_nearest_by_the_cosine(void **state)
{
    (void)state;
    float x[ITEMS][HIDDEN];
    att_recommender *m;
    assert_int_equal(att_recommender_open(ctx, getenv("R"), NULL, &m), ATT_OK);
    assert_int_equal(att_recommender_vectors(m, &x[0][0]), ATT_OK);
    att_recommender_free(m);
    assert_int_equal(tool("$A recommend -m $R --similar apple -k 99 --json"), 0);
    json_t *v = line_json(0), *list = json_object_get(v, "items");
    assert_int_equal(json_array_size(list), ITEMS - 1);
    double before = 2;
    for (size_t i = 0; i < ITEMS - 1; i++) {
        const json_t *item = json_array_get(list, i);
        int k = 0;
        while (strcmp(shop_ids[k], json_string_value(json_object_get(item, "item"))) != 0)
            k++;
        double dot = 0, a = 0, b = 0;
        for (int c = 0; c < HIDDEN; c++) {
            dot += (double)x[0][c] * (double)x[k][c];
            a += (double)x[0][c] * (double)x[0][c];
            b += (double)x[k][c] * (double)x[k][c];
        }
        assert_true(k != 0 && fabs(number(item, "score") - dot / sqrt(a * b)) < 1e-6);
        assert_true(number(item, "score") <= before);
        before = number(item, "score");
    }
    json_decref(v);
    assert_has(tool_err, "attend: apple had no action in training: unless it had a text, its vector and neighbors are "
                         "random\n");
    assert_int_equal(tool("$A recommend -m $R --similar pear"), 0);
    assert_string_equal(tool_err, "");
    assert_refused("$A recommend -m $R --similar Apple", 1, "shop has no item \"Apple\"");
}

static void vectors_are_a_numpy_file(void **state)
{
    (void)state;
    assert_int_equal(tool("$A recommend -m $R --vectors v.npy && head -c 128 v.npy | grep -a -c \"(12, 8)\" && "
                          "wc -c <v.npy"),
                     0);
    assert_string_equal(tool_out, "1\n512\n"); /* 128 + 12 * 8 * 4 */
    assert_refused("$A recommend -m $R --vectors /nowhere/v.npy", 1, "/nowhere/v.npy");
}

/* ---- Attention ----------------------------------------------------------------------- */

static void the_weights_of_past_items_are_drawn(void **state)
{
    (void)state;
    assert_int_equal(tool("$A recommend -m $R -k 1 --item-texts titles.tsv --history "
                          "'kiwi,lime,apple,pear,fig,nut,oat' --history apple --attention why.svg >/dev/null"),
                     0);
    assert_string_equal(tool_err, "attend: why.svg shows the first of 2 histories\n");
    assert_int_equal(tool("cat why.svg"), 0);
    static const char *const parts[] = {"A red apple", "The pear", "Fresh figs",      "nut",
                                        "oat",         "mean",     "layer 1, head 1", "→"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        assert_has(tool_out, parts[i]);
    assert_null(strstr(tool_out, ">kiwi<")); /* only the last five count */
    assert_refused("$A recommend -m $R --history durian --attention why.svg >out; code=$?; test ! -s out && exit $code",
                   1, "--attention: \"durian\" has no item that the model knows, so there is nothing to draw");
}

/* ---- What is refused ------------------------------------------------------------------ */

static void what_cannot_be_recommended_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int code;
        const char *says;
    } cases[] = {
        {"$A recommend -m $R --user ann", 2, "--user needs --data FILE"},
        {"$A recommend -m $R --all-users", 2, "--all-users needs --data FILE"},
        {"$A recommend -m $R --data log.tsv </dev/null", 2, "--data log.tsv needs --user USER or --all-users"},
        {"$A recommend -m $R --data nowhere --all-users", 1, "nowhere"},
        {"$A recommend -m $R --history apple --similar pear", 2, "--similar does not go with --history"},
        {"$A recommend -m $R --similar pear --exclude-seen", 2, "--exclude-seen does not go with --similar"},
        {"$A recommend -m $R --vectors v.npy --attention a.svg", 2, "--attention does not go with --vectors"},
        {"$A recommend -m $R --vectors v.npy --json", 2, "--json does not go with --vectors"},
        {"$A recommend -m $R --history apple --attention /dev/full", 1, "/dev/full: "},
        {"$A recommend -m $R --vectors v.npy -o x", 2, "--output does not go with --vectors"},
        {"$A recommend -m $R -k 0 --history apple", 2, "-k: \"0\" is not a whole number"},
        {"$A recommend -m nothing --history apple", 1, "nothing"},
        {"$A recommend -m $D --history apple", 1, "is a sentence model: attend embed"},
        {"$A embed -m $R", 1, "is a recommender: attend recommend"},
        {"ATTEND_MODELS=nowhere $A recommend --history apple", 2, "no recommender is in the models folder"},
        {"echo apple >t; $A recommend -m $R --item-texts t --history apple", 1, "t: line 1: has no text after"},
        {"printf 'a\\tb\\na\\tc\\n' >t; $A recommend -m $R --item-texts t --history apple", 1,
         "t: line 2: item \"a\" has a text already, in line 1"},
        {"printf 'a\\tb\\n\\tc\\n' >t; $A recommend -m $R --item-texts t --history apple", 1,
         "t: line 2: the item's id is empty"},
        {"printf 'a\\tb\\377\\n' >t; $A recommend -m $R --item-texts t --history apple", 1, "t: line 1: is not UTF-8"},
        {">t; $A recommend -m $R --item-texts t --history apple", 1, "t: has no texts"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_refused(cases[i].line, cases[i].code, cases[i].says);
}

static void info_tells_what_a_model_is(void **state)
{
    (void)state;
    assert_int_equal(tool("ATTEND_MODELS=models $A info -m shop --json | tr -d '\\n'"), 0);
    json_t *v = line_json(0);
    assert_string_equal(json_string_value(json_object_get(v, "kind")), "recommender");
    assert_string_equal(json_string_value(json_object_get(v, "type")), "attend-sasrec");
    assert_string_equal(json_string_value(json_object_get(v, "block")), "pre-norm");
    assert_int_equal(number(v, "items"), ITEMS);
    assert_int_equal(number(v, "max_positions"), SHOP_POSITIONS);
    json_decref(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_those_of_the_library),
        cmocka_unit_test(a_list_is_the_same_alone_and_among_others),
        cmocka_unit_test(people_read_a_block_with_texts),
        cmocka_unit_test(unknown_items_are_left_out_and_said),
        cmocka_unit_test(an_empty_history_gets_what_is_popular_and_says_so),
        cmocka_unit_test(users_of_a_log_are_asked_for),
        cmocka_unit_test(all_users_are_a_line_each_in_a_file),
        cmocka_unit_test(lists_keep_to_what_is_allowed),
        cmocka_unit_test(similar_items_are_nearest_by_the_cosine),
        cmocka_unit_test(vectors_are_a_numpy_file),
        cmocka_unit_test(the_weights_of_past_items_are_drawn),
        cmocka_unit_test(what_cannot_be_recommended_is_named),
        cmocka_unit_test(info_tells_what_a_model_is),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
