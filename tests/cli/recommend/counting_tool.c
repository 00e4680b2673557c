/* attend on recommenders that count: trained, evaluated beside baselines with paired intervals, asked for lists, made
 * again of a log that has grown; what they refuse. */
#include "fixtures/check.h"
#include "fixtures/tool.h"

static const char *const archs[] = {"popularity", "neighbors", "ease"};
static const char *const rows[] = {"popularity", "item neighbors", "EASE"}; /* the same as baselines */
enum { ARCHS = sizeof archs / sizeof archs[0] };

static int tool_of(const char *line, const char *arch)
{
    char text[256];
    snprintf(text, sizeof text, line, arch, arch);
    return tool(text);
}

/* Of 60 users each has a run of items in a ring, so that neighbors in the ring have common users. */
static int set_up(void **state)
{
    enum { USERS = 60, RING = 15 };
    assert_int_equal(tool_setup(state), 0);
    FILE *f = folder_open(&tool_model, "log.tsv"), *more = folder_open(&tool_model, "grown.tsv");
    for (int u = 0; u < USERS; u++)
        for (int i = 0; i < 4 + u % 3; i++) {
            fprintf(f, "u%d\ti%d\t%d\n", u, (7 * u + i) % RING, i);
            fprintf(more, "u%d\ti%d\t%d\n", u, (7 * u + i) % RING, i);
        }
    fprintf(more, "v\tnew\t1\nv\ti3\t2\nv\ti4\t3\nv\ti5\t4\n");
    assert_int_equal(fclose(f) | fclose(more), 0);
    for (int i = 0; i < ARCHS; i++)
        assert_int_equal(tool_of("$A train recommend -d log.tsv --arch %s -o %s", archs[i]), 0);
    return 0;
}

/* Returns the element of an array of objects that has this name. */
static const json_t *named(const json_t *object, const char *array, const char *name)
{
    const json_t *all = json_object_get(object, array);
    for (size_t i = 0; i < json_array_size(all); i++)
        if (!strcmp(json_string_value(json_object_get(json_array_get(all, i), "name")), name))
            return json_array_get(all, i);
    fail_msg("%s has no %s", array, name);
    return NULL;
}

static void a_model_is_measured_as_its_baseline_is(void **state)
{
    (void)state;
    for (int i = 0; i < ARCHS; i++) {
        assert_int_equal(tool_of("$A evaluate recommend -m %s -d log.tsv --exclude-seen -k 3 --json", archs[i]), 0);
        json_t *v = line_json(0);
        const json_t *row = named(v, "results", rows[i]), *model = named(v, "results", archs[i]),
                     *same = named(v, "differences", rows[i]);
        for (const char *const *key = (const char *const[]){"hr", "ndcg", "mrr", "coverage", NULL}; *key; key++)
            assert_true(number(row, *key) == number(model, *key));
        assert_true(number(same, "ndcg") == 0 && number(same, "ndcg_low") == 0 && number(same, "ndcg_high") == 0);
        json_decref(v);
    }
}

/* The mean of paired differences is the difference of means; with more users who differ the interval excludes 0. */
static void differences_are_paired(void **state)
{
    (void)state;
    assert_int_equal(tool("$A evaluate recommend -m neighbors -d log.tsv --exclude-seen -k 2,5 --json"), 0);
    json_t *v = line_json(0);
    const json_t *all = json_object_get(v, "differences");
    assert_int_equal(json_array_size(all), 2 * ARCHS);
    for (size_t i = 0; i < 2; i++) { /* those of popularity, which is first */
        const json_t *d = json_array_get(all, i), *results = json_object_get(v, "results"),
                     *a = json_array_get(results, 2 * ARCHS + i), *b = json_array_get(results, i);
        assert_true(number(d, "k") == (i ? 5 : 2) && number(b, "k") == number(d, "k"));
        for (const char *const *key = (const char *const[]){"hr", "ndcg", "mrr", NULL}; *key; key++) {
            char low[16], high[16];
            snprintf(low, sizeof low, "%s_low", *key);
            snprintf(high, sizeof high, "%s_high", *key);
            check_near(number(a, *key) - number(b, *key), number(d, *key), 1e-7, *key); /* of eight digits */
            assert_true(number(d, low) > 0 && number(d, low) < number(d, *key) && number(d, *key) < number(d, high));
        }
    }
    json_decref(v);
    assert_int_equal(tool("$A evaluate recommend -m neighbors -d log.tsv --exclude-seen -k 2"), 0);
    assert_has(tool_out, "\nneighbors minus\n");
    assert_has(tool_out, "\nitem neighbors   +0.0000 +0.0000 to +0.0000  ");
    assert_int_equal(tool("$A evaluate recommend -d log.tsv"), 0);
    assert_true(!strstr(tool_out, "minus"));
}

/* With held-out items that are not counted, the differences are of the counted ones alone. */
static void differences_leave_out_what_is_not_counted(void **state)
{
    (void)state;
    assert_int_equal(tool("sed '$a\\w\\ti1\\t1\\nw\\ti2\\t2\\nw\\ti3\\t3\\nw\\tunseen\\t4' log.tsv >unseen.tsv && $A "
                          "evaluate recommend -m "
                          "neighbors -d unseen.tsv --leave-out-unseen -k 3 --json 2>/dev/null"),
                     0);
    json_t *v = line_json(0);
    const json_t *d = named(v, "differences", "popularity");
    assert_true(number(v, "unseen") == 1 && number(v, "cases") == 60);
    check_near(number(named(v, "results", "neighbors"), "hr") - number(named(v, "results", "popularity"), "hr"),
               number(d, "hr"), 1e-7, "HR@3");
    json_decref(v);
}

static void lists_are_made_as_by_any_model(void **state)
{
    (void)state;
    for (int i = 0; i < ARCHS; i++) {
        assert_int_equal(tool_of("echo i3,i4 | $A recommend -m %s -k 2 --json --exclude-seen", archs[i]), 0);
        json_t *v = line_json(0);
        const json_t *first = json_array_get(json_object_get(v, "items"), 0);
        const char *item = json_string_value(json_object_get(first, "item"));
        assert_true(i == 0 || !strcmp(item, "i5") || !strcmp(item, "i2"));
        json_decref(v);
        assert_int_equal(tool_of("$A recommend -m %s -d log.tsv --all-users -k 2 2>/dev/null | wc -l", archs[i]), 0);
        assert_has(tool_out, "60\n");
        assert_int_equal(tool_of("$A recommend -m %s --history unknown -k 1", archs[i]), 0);
        assert_has(tool_out, "unknown (by popularity)\n");
        assert_int_equal(tool_of("echo i9 >allowed && $A recommend -m %s --history i1 --allow allowed", archs[i]), 0);
        assert_has(tool_out, "  i9\n");
    }
    assert_int_equal(tool("$A recommend -m neighbors --similar i3 -k 1"), 0);
    assert_int_equal(tool("$A recommend -m ease --similar i3 -k 1"), 0);
    assert_refused("$A recommend -m popularity --similar i3", 1, "attend-popularity has no similar items");
    assert_refused("$A recommend -m ease --vectors x.npy", 1, "attend-ease has no vectors of items");
    assert_refused("$A recommend -m ease --history i3 --attention x.svg", 1, "attend-ease has no attention");
    assert_refused("$A attention -m neighbors i3,i4", 1, "attend-neighbors has no attention");
    assert_int_equal(tool("$A info -m ease"), 0);
    assert_has(tool_out, "\ntype                attend-ease\n");
    assert_true(!strstr(tool_out, "layers"));
}

static void a_grown_log_is_counted_again(void **state)
{
    (void)state;
    assert_int_equal(tool("cp -r neighbors nightly && $A train recommend --resume -o nightly -d grown.tsv"), 0);
    assert_has(tool_err, "nightly is a model of neighbors");
    assert_int_equal(
        tool("$A recommend -m nightly --history new -k 1 && $A evaluate recommend -m nightly -d grown.tsv"), 0);
    assert_has(tool_out, "knows 16 of the log's 16 items");
    assert_refused("$A train recommend --resume -o nightly", 1, "has finished and kept no checkpoint");
    assert_refused("$A train recommend --resume -o nightly -d log.tsv --arch ease", 2,
                   "--arch is neighbors in nightly");
}

static void options_of_trainings_are_refused(void **state)
{
    (void)state;
    static const char *const lines[] = {"--arch ease --epochs 3",   "--arch neighbors --hidden 8",
                                        "--arch neighbors --l2 3",  "--arch popularity --neighbors 3",
                                        "--arch ease --patience 2", "--arch popularity --history-decay 0.5"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char line[128];
        snprintf(line, sizeof line, "$A train recommend -d log.tsv -o none %s", lines[i]);
        assert_refused(line, 2, " does not go with --arch ");
        assert_int_equal(tool("test ! -e none"), 0);
    }
    assert_refused("$A train recommend -d log.tsv -o none --arch ease --refit", 2, "; --split none counts all of them");
    assert_refused("$A train recommend -d log.tsv -o none --l2 3", 2, "--l2 is for --arch ease");
    assert_refused("$A train recommend -d log.tsv -o none -m ease", 1, "attend-ease");
}

/* Filters are those of the training, without typing them again; the k-core is not applied to whoever asks for a list.
 */
static void filters_are_kept_with_the_model(void **state)
{
    (void)state;
    folder_write(&tool_model, "events.csv",
                 "user,item,event,rating\nu,a,buy,5\nu,b,buy,4\nu,c,view,5\nu,d,buy,1\nu,e,buy,4\nu,f,sell,4\nv,a,buy,"
                 "5\nv,b,buy,5\n"
                 "v,c,view,1\nv,e,buy,5\nv,f,buy,5\nw,a,buy,5\n");
    assert_int_equal(tool("$A train recommend -d events.csv --arch neighbors --event buy,sell --min-rating 4 "
                          "--min-count 2 -o filtered"),
                     0);
    assert_has(tool_err, "8 actions of 2 users with 4 items (CSV)");
    assert_has(tool_err,
               "; 2 of other events left out; 1 with a lower rating or none left out; 1 user and 0 items with "
               "too few actions left out, 1 actions\n");
    assert_int_equal(tool("$A evaluate recommend -m filtered -d events.csv --json"), 0);
    json_t *v = line_json(0);
    assert_true(number(v, "other_events") == 2 && number(v, "low_ratings") == 1 && number(v, "rare_users") == 1);
    assert_true(number(v, "items") == 4 && number(v, "cases") == 2);
    json_decref(v);
    assert_true(!strstr(tool_err, "attend: "));
    assert_int_equal(tool("$A recommend -m filtered -d events.csv --user w -k 1 --exclude-seen"), 0);
    assert_has(tool_out, "  b\n"); /* w has one action, u and v bought b and e after a */
    assert_true(!strstr(tool_err, "not know"));
    assert_int_equal(tool("$A evaluate recommend -m filtered -d events.csv --min-rating 1 --min-count 1"), 0);
    assert_has(tool_err, "filtered was trained with --min-rating 4\n");
    assert_has(tool_err, "filtered was trained with --min-count 2\n");
    assert_refused("$A evaluate recommend -d log.tsv --event-column x", 2, "--event-column x needs --event NAME");
    assert_refused("$A evaluate recommend -d log.tsv --rating-column x", 2, "--rating-column x needs --min-rating X");
    assert_refused("$A evaluate recommend -d log.tsv --event a,,b", 2, "--event \"a,,b\" has an empty name");
    assert_refused("$A evaluate recommend -d events.csv --event buy --event-column kind", 1, ": --event-column\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_measured_as_its_baseline_is),
        cmocka_unit_test(differences_are_paired),
        cmocka_unit_test(differences_leave_out_what_is_not_counted),
        cmocka_unit_test(lists_are_made_as_by_any_model),
        cmocka_unit_test(a_grown_log_is_counted_again),
        cmocka_unit_test(options_of_trainings_are_refused),
        cmocka_unit_test(filters_are_kept_with_the_model),
    };
    return cmocka_run_group_tests(tests, set_up, tool_teardown);
}
