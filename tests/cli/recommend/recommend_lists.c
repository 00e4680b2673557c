/* attend recommend: lists for all users and items at once, limits of categories, diversity, new items, vectors of
 * users; on a model of random weights. */
#include "fixtures/context.h"
#include "fixtures/recommender_tool.h"

enum { ITEMS = SHOP_ITEMS, HIDDEN = SHOP_HIDDEN };

static att_recommender *m;

static int set_up(void **state)
{
    assert_int_equal(open_context(state) || tool_setup(state), 0);
    shop_setup();
    folder_write(
        &tool_model, "products.csv",
        "ID,SKU,Name,Categories\n1,apple,A red apple,fruit\n2,pear,The pear,fruit\n3,fig,\"Figs, fresh\",fruit\n"
        "4,green tea,Green tea,drinks\n5,lime,Lime,fruit\n6,nut,Nut,\n7,oat,Oats,cereals\n8,plum,Plum,fruit\n"
        "9,kiwi,Kiwi,fruit\n");
    assert_int_equal(att_recommender_open(ctx, getenv("R"), NULL, &m), ATT_OK);
    return 0;
}

static int tear_down(void **state)
{
    att_recommender_free(m);
    return tool_teardown(state) || close_context(state);
}

/* The tool's list of items after "apple,pear" is that of the library. */
static void assert_listed(const att_recommend_options *options)
{
    static const int32_t history[] = {0, 1};
    att_recommendation r;
    json_t *v = line_json(0), *list = json_object_get(v, "items");
    assert_int_equal(att_recommend(m, 1, history, (const int64_t[]){0, 2}, options, &r), ATT_OK);
    int64_t n = 0;
    for (; n < r.k && r.items[n] >= 0; n++)
        assert_string_equal(json_string_value(json_object_get(json_array_get(list, (size_t)n), "item")),
                            shop_ids[r.items[n]]);
    assert_int_equal(json_array_size(list), n);
    att_recommendation_free(ctx, &r);
    json_decref(v);
}

/* ---- lists of all users and items ------------------------------------------------- */

static void lines_have_titles_where_there_are_some(void **state)
{
    (void)state;
    assert_int_equal(tool("$A recommend -m $R -k 12 -d log.tsv --all-users --item-texts products.csv --id-column SKU "
                          "2>/dev/null | head -n 1 | tr '\\t' '\\n' >line; awk 'END { print NR }' line; "
                          "awk 'NR > 1 && NR % 3 == 2 { id = $0 } NR > 1 && NR % 3 == 1 { print id \": \" $0 }' line"),
                     0);
    assert_int_equal(strncmp(tool_out, "37\n", 3), 0);
    assert_has(tool_out, "\nfig: Figs, fresh\n");
    assert_has(tool_out, "\nnut: Nut\n");
    assert_has(tool_out, "\nラーメン: \n"); /* has no title */
}

static void all_items_have_the_lists_of_each(void **state)
{
    (void)state;
    assert_int_equal(
        tool("$A recommend -m $R -k 3 --all-items --json >all && cut -d '\"' -f 4 all | wc -l && "
             "for i in apple 'green tea' oat; do $A recommend -m $R -k 3 --json -s \"$i\" 2>/dev/null; done "
             ">some && grep -c -F -f some all"),
        0);
    assert_string_equal(tool_out, "12\n3\n");
    assert_string_equal(tool_err, "");
    assert_int_equal(tool("$A recommend -m $R -k 2 --all-items -o similar.tsv && awk -F '\\t' 'NF != 5' similar.tsv && "
                          "cut -f 1 similar.tsv | tail -n 1"),
                     0);
    assert_string_equal(tool_out, "oat\n");
}

/* ---- which items --------------------------------------------------------------------- */

static void a_category_has_at_most_so_many(void **state)
{
    (void)state;
    /* fruit 0, drinks 1, cereals 2; others have none */
    static const int32_t category[ITEMS] = {0, 0, 1, -1, -1, -1, 0, 0, 0, 0, -1, 2};
    const att_recommend_options *two =
        ATT_OPTIONS(att_recommend_options, .k = 8, .category = category, .max_per_category = 2);
    assert_int_equal(tool("$A recommend -m $R -k 8 --json --history apple,pear --max-per-category 2 --id-column SKU "
                          "--categories products.csv"),
                     0);
    assert_listed(two);
    assert_has(tool_err, "attend: products.csv: the categories are the column \"Categories\"\n");
    assert_has(tool_err, "/shop have no category, which --max-per-category does not limit\n");
    assert_has(tool_err, "attend: products.csv: 4 of 12 items of ");
    assert_int_equal(tool("$A recommend -m $R -k 8 --json --history apple,pear --max-per-category 2 --id-column SKU "
                          "--item-texts products.csv --category-column categories 2>/dev/null"),
                     0);
    assert_listed(two);
    assert_int_equal(
        tool("printf 'apple\\tfruit\\npear\\tfruit\\nfig\\tfruit\\nlime\\tfruit\\nplum\\tfruit\\nkiwi\\tfruit"
             "\\n' >c.tsv; $A recommend -m $R -k 8 --json --history apple,pear --max-per-category 2 "
             "--categories c.tsv 2>/dev/null"),
        0);
    static const int32_t fruit[ITEMS] = {0, 0, -1, -1, -1, -1, 0, 0, 0, 0, -1, -1};
    assert_listed(ATT_OPTIONS(att_recommend_options, .k = 8, .category = fruit, .max_per_category = 2));
}

static void lists_are_diverse(void **state)
{
    (void)state;
    assert_int_equal(tool("$A recommend -m $R -k 5 --json --history apple,pear --diversity 0.8"), 0);
    assert_listed(ATT_OPTIONS(att_recommend_options, .k = 5, .diversity = 0.8));
}

static void new_items_get_their_share(void **state)
{
    (void)state;
    static const int32_t some[] = {10, 11};
    assert_int_equal(tool("printf 'nut\\noat\\n' >new; $A recommend -m $R -k 4 --json --history apple,pear --new-share "
                          "0.5 --new new"),
                     0);
    assert_listed(ATT_OPTIONS(att_recommend_options, .k = 4, .new_share = 0.5, .new_items = some, .n_new_items = 2));
    json_t *v = line_json(0), *list = json_object_get(v, "items");
    int n = 0;
    for (size_t i = 0; i < 4; i++) {
        const char *id = json_string_value(json_object_get(json_array_get(list, i), "item"));
        n += !strcmp(id, "nut") || !strcmp(id, "oat");
    }
    assert_int_equal(n, 2);
    json_decref(v);
    /* the apple alone had no action */
    assert_int_equal(tool("$A recommend -m $R -k 4 --json --history apple,pear --new-share 0.25"), 0);
    assert_listed(ATT_OPTIONS(att_recommend_options, .k = 4, .new_share = 0.25));
    assert_string_equal(tool_err, "");
}

/* ---- vectors -------------------------------------------------------------------------- */

static void users_and_histories_have_vectors(void **state)
{
    (void)state;
    static const int32_t history[] = {2, 1, 0};
    float x[HIDDEN], items[ITEMS * HIDDEN];
    assert_int_equal(att_recommender_embed(m, 1, history, (const int64_t[]){0, 3}, NULL, x), ATT_OK);
    assert_int_equal(att_recommender_vectors(m, items), ATT_OK);
    assert_int_equal(tool("$A recommend -m $R -d log.tsv --all-users --vectors v --vector-format jsonl && cat v"), 0);
    json_t *v = line_json(0), *row = json_object_get(v, "embedding");
    assert_string_equal(json_string_value(json_object_get(v, "user_id")), "ann");
    assert_int_equal(json_array_size(row), HIDDEN);
    for (size_t i = 0; i < HIDDEN; i++)
        assert_true((float)json_number_value(json_array_get(row, i)) == x[i]);
    json_decref(v);
    assert_has(tool_out, "{\"user_id\": \"carl\", \"embedding\": [0,0,0,0,0,0,0,0]}\n");
    assert_has(tool_err, "attend: v: 1 of 4 histories has no item that the model knows: zeros\n");
    assert_int_equal(tool("$A recommend -m $R --history 'green tea,pear,apple' --history fig --vectors v "
                          "--vector-format tsv && head -n 1 v | cut -f 8; wc -l <v"),
                     0);
    assert_true(strtof(tool_out, NULL) == x[HIDDEN - 1]);
    assert_has(tool_out, "\n2\n");
    assert_int_equal(tool("$A recommend -m $R --vectors v --vector-format pgvector && grep -c '^[0-9]' v; head -n 1 v"),
                     0);
    assert_has(tool_out, "12\n-- The nearest: SELECT id, item_id FROM items ORDER BY embedding <#> ");
    assert_int_equal(tool("$A recommend -m $R -d log.tsv -u ann -u dora --vectors v && wc -c <v"), 0);
    assert_string_equal(tool_out, "192\n"); /* 128 + 2 * 8 * 4 */
}

/* ---- the picture ---------------------------------------------------------------------- */

static void a_long_title_has_lines(void **state)
{
    (void)state;
    assert_int_equal(tool("h=apple; for i in $(seq 30); do h=$h,pear,fig,lime; done; $A recommend -m $R -k 1 --history "
                          "$h --attention why.svg >/dev/null && grep -c 'font-weight=\"600\"' why.svg"),
                     0);
    assert_string_equal(tool_out, "2\n"); /* 120 bytes of the history, and the item */
}

/* ---- what is refused -------------------------------------------------------------------- */

static void options_that_do_not_go_together_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int code;
        const char *says;
    } cases[] = {
        {"--all-items --similar apple", 2, "--all-items does not go with --similar"},
        {"--all-items --exclude-seen", 2, "--exclude-seen does not go with --all-items, where there is no history"},
        {"--all-items --vectors v", 2, "--vectors does not go with --all-items"},
        {"--history apple --vectors v --new-share 0.1", 2,
         "--new-share does not go with --vectors v, which has no lists"},
        {"--vectors v --diversity 0.1", 2, "--diversity does not go with --vectors v"},
        {"--vectors v --vector-format sqlite-vec", 2, "sqlite-vec does not compare by dot products"},
        {"--history apple --vector-format tsv", 2, "--vector-format tsv needs --vectors FILE"},
        {"--history apple --max-per-category 2", 2, "--max-per-category 2 needs --categories FILE, or --item-texts"},
        {"--history apple --categories c", 2, "--categories c needs --max-per-category N"},
        {"--history apple --item-texts products.csv --category-column x", 2, "x needs --max-per-category N"},
        {"--history apple --new new", 2, "--new new needs --new-share SHARE"},
        {"--history apple --id-column SKU", 2, "--id-column SKU needs --item-texts FILE or --categories FILE"},
        {"--history apple --new-share 2", 2, "--new-share: \"2\" is not a number from 0 to 1"},
        {"--history apple --max-per-category 1 --id-column ean --categories products.csv", 1,
         "products.csv: line 1: has no column \"ean\" (--id-column); its first is \"ID\""},
        {"--history apple --max-per-category 1 --categories two.tsv", 1,
         "shop has a category there; the first id is \"ham\", and that of the model \"apple\""},
        {"--history apple --max-per-category 1 --categories three.csv", 1,
         "three.csv: line 1: has no column \"category\"; --category-column NAME states which has the categories"},
    };
    folder_write(&tool_model, "two.tsv", "ham\tmeat\n");
    folder_write(&tool_model, "three.csv", "sku,name,price\napple,An apple,1\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[300];
        snprintf(line, sizeof line, "$A recommend -m $R %s", cases[i].line);
        assert_refused(line, cases[i].code, cases[i].says);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_have_titles_where_there_are_some),
        cmocka_unit_test(all_items_have_the_lists_of_each),
        cmocka_unit_test(a_category_has_at_most_so_many),
        cmocka_unit_test(lists_are_diverse),
        cmocka_unit_test(new_items_get_their_share),
        cmocka_unit_test(users_and_histories_have_vectors),
        cmocka_unit_test(a_long_title_has_lines),
        cmocka_unit_test(options_that_do_not_go_together_are_named),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
