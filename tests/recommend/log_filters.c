/* Filters of logs: events, ratings, and the k-core; what they count, and what is refused. Logs that a function
 * describes. */
#include "fixtures/interactions.h"

#define OPEN(text, ...) open_text(text, ATT_OPTIONS(att_interactions_options, __VA_ARGS__))

static att_status try_text(const char *text, const att_interactions_options *o, att_interactions **log)
{
    char path[128];
    test_folder folder = folder_new();
    folder_write(&folder, "log", text);
    snprintf(path, sizeof path, "%s/log", folder.path);
    const att_status s = att_interactions_open(ctx, path, o, log);
    folder_remove(&folder);
    return s;
}

static att_interactions *open_text(const char *text, const att_interactions_options *o)
{
    att_interactions *log;
    if (try_text(text, o, &log))
        fail_msg("%s", att_error(ctx));
    return log;
}

static const char shop[] = "user_id,item_id,event_type,rating,timestamp\n"
                           "u,a,view,,1\nu,b,purchase,5,2\nu,c,Purchase,4,3\nu,d,cart,3.5,4\nv,a,purchase,2,5\n";
static const char *const events[] = {"purchase", "cart"};

static void events_are_read_that_are_named(void **state)
{
    (void)state;
    att_interactions *log = OPEN(shop, .events = events, .n_events = 2);
    const att_interactions_info i = describe_log(log);
    assert_string_equal(history_text(log, "u"), "b@2,d@4");
    assert_string_equal(history_text(log, "v"), "a@5");
    assert_true(i.actions == 3 && i.other_events == 2 && i.low_ratings == 0); /* "Purchase" is another one */
    att_interactions_free(log);
    log = OPEN("u a buy\nu b view\nu c buy\n", .events = (const char *const[]){"buy"}, .n_events = 1, .user = "1",
               .item = "2", .event = "3");
    assert_string_equal(history_text(log, "u"), "a,c");
    att_interactions_free(log);
}

static void ratings_are_compared_as_numbers(void **state)
{
    (void)state;
    att_interactions *log = OPEN(shop, .by_rating = true, .min_rating = 3.5);
    assert_string_equal(history_text(log, "u"), "b@2,c@3,d@4");
    att_interactions_info i = describe_log(log);
    assert_true(i.users == 1 && i.low_ratings == 2); /* a has none, and 2 */
    att_interactions_free(log);
    log = OPEN(shop, .events = events, .n_events = 2, .by_rating = true, .min_rating = 4);
    i = describe_log(log);
    assert_true(i.actions == 1 && i.other_events == 2 && i.low_ratings == 2);
    att_interactions_free(log);
    static const char *const lines[] = {"u a 4 1000000003\nu b 3 1000000001\nu c 5 1000000002\n",
                                        "u::a::4::1000000003\nu::b::3::1000000001\nu::c::5::1000000002\n",
                                        "u a 1000000003 4\nu b 1000000001 3\nu c 1000000002 5\n"};
    for (size_t k = 0; k < sizeof lines / sizeof lines[0]; k++) {
        log = OPEN(lines[k], .by_rating = true, .min_rating = 4);
        assert_string_equal(history_text(log, "u"), "c@1000000002,a@1000000003");
        att_interactions_free(log);
    }
    log = OPEN("u a 4\nu b 3\nu c 5\nv a -1\n", .by_rating = true, .min_rating = 4); /* without times */
    assert_string_equal(history_text(log, "u"), "a,c");
    assert_false(describe_log(log).timed);
    att_interactions_free(log);
}

/* By hand: x has one action and goes; then w has one left and goes; then c has one left and goes. u: a b, v: a b. */
static void a_core_is_found_by_repeating(void **state)
{
    (void)state;
    att_interactions *log = OPEN("u a 1\nu b 2\nu c 3\nv b 1\nv a 2\nw c 1\nw x 2\n", .min_count = 2);
    const att_interactions_info i = describe_log(log);
    assert_string_equal(history_text(log, "u"), "a@1,b@2");
    assert_string_equal(history_text(log, "v"), "b@1,a@2");
    assert_true(i.users == 2 && i.items == 2 && i.actions == 4 && i.longest == 2);
    assert_true(i.rare_users == 1 && i.rare_items == 2 && i.rare_actions == 3);
    assert_int_equal(att_interactions_find_user(log, "w"), -1);
    assert_int_equal(att_interactions_find_item(log, "x"), -1);
    att_interactions_free(log);
}

/* Dropped duplicates do not count: u has a once. Repeats and ties are those of what is left. */
static void a_core_counts_what_is_left(void **state)
{
    (void)state;
    static const char text[] = "u a 1\nu a 1\nu b 1\nu b 2\nv b 1\nv b 3\n";
    att_interactions *log = OPEN(text, .min_count = 2);
    att_interactions_info i = describe_log(log);
    assert_true(i.actions == 6 && i.duplicates == 1 && i.repeats == 3 && i.rare_actions == 0);
    att_interactions_free(log);
    log = OPEN(text, .min_count = 2, .drop_duplicates = true);
    i = describe_log(log);
    assert_string_equal(history_text(log, "u"), "b@1,b@2");
    assert_true(i.actions == 4 && i.duplicates == 1 && i.repeats == 2 && i.ties == 0 && i.rare_actions == 1);
    att_interactions_free(log);
}

static void known_items_keep_their_numbers(void **state)
{
    (void)state;
    static const char *const known[] = {"none", "x", "a"};
    att_interactions *log = OPEN("u a 1\nu b 2\nv b 1\nv a 2\nv x 3\n", .min_count = 2, .items = known, .n_items = 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(att_interactions_find_item(log, known[i]), i);
    assert_string_equal(history_text(log, "v"), "b@1,a@2");
    assert_true(describe_log(log).items == 4 && describe_log(log).rare_items == 2);
    att_interactions_free(log);
}

static void assert_refused(const char *text, const char *says, const att_interactions_options *o)
{
    att_interactions *log;
    if (!try_text(text, o, &log) || log)
        fail_msg("accepted, instead of: %s", says);
    check_message(ctx, says);
}
#define REFUSED(text, says, ...) assert_refused(text, says, ATT_OPTIONS(att_interactions_options, __VA_ARGS__))

static void what_cannot_be_filtered_is_refused(void **state)
{
    (void)state;
    static const char *const other[] = {"like"}, *const none[] = {NULL};
    att_interactions *log;
    REFUSED(shop, "no action is left: 5 have other events; the first is \"view\"", .events = other, .n_events = 1);
    REFUSED(shop, "no action is left: 0 have other events, 5 a lower rating or none", .by_rating = true,
            .min_rating = 6);
    REFUSED(shop, "no users and items are left that have 3 actions or more", .min_count = 3);
    REFUSED(shop, "the header has no column \"kind\", of the event", .events = events, .n_events = 2, .event = "kind");
    REFUSED("user_id,item_id\nu,a\n", "the header has no column \"event\", of the event", .events = events,
            .n_events = 2);
    REFUSED("u a 1000000003\nu b 1000000001\n", "without a column of ratings", .by_rating = true);
    REFUSED("u a b c d e\nv a c d e\n", "the format is histories, without a column of events", .events = events,
            .n_events = 2, .format = ATT_INTERACTIONS_HISTORIES);
    REFUSED("user_id,item_id,rating\nu,a,good\n", "line 2: rating is \"good\", not a number", .by_rating = true);
    REFUSED(shop, "column 3 would be both that of the item and of the event", .item = "event_type", .events = events,
            .n_events = 2);
    REFUSED(shop, "min_count is -1", .min_count = -1);
    REFUSED(shop, "min_rating nan", .by_rating = true, .min_rating = NAN);
    REFUSED(shop, "n_events is 1, but events is NULL", .n_events = 1);
    REFUSED(shop, "events[0] is NULL", .events = none, .n_events = 1);
    assert_int_equal(att_interactions_new(ctx, 1, events, events, NULL,
                                          ATT_OPTIONS(att_interactions_options, .by_rating = true), &log),
                     ATT_ERR_ARGUMENT);
    check_message(ctx, "events and ratings are for files, not for arrays");
}

static att_status get_part(void *user, int64_t i, att_byte_view *user_id, att_byte_view *item_id, double *time)
{
    static const char ids[] = "abaaxyzw";
    *user_id = (att_byte_view){ids + i, 1}; /* without a zero byte */
    *item_id = (att_byte_view){ids + 4 + i, 1};
    *time = i < 3 ? (double)(i + 2) : INFINITY;
    return i == *(const int64_t *)user ? ATT_ERR_SYSTEM : ATT_OK;
}

static void actions_may_come_from_a_function(void **state)
{
    (void)state;
    int64_t fails = -1;
    att_interactions *log;
    att_interaction_source source = {.size = sizeof source, .n = 4, .get = get_part, .user = &fails};
    assert_int_equal(att_interactions_read(ctx, &source, NULL, &log), ATT_OK);
    assert_string_equal(history_text(log, "a"), "x,z,w");
    att_interactions_free(log);
    source.timed = true;
    assert_int_equal(att_interactions_read(ctx, &source, NULL, &log), ATT_ERR_ARGUMENT);
    check_message(ctx, "action 3: time is inf");
    source.n = 3;
    assert_int_equal(att_interactions_read(ctx, &source, NULL, &log), ATT_OK);
    assert_string_equal(history_text(log, "a"), "x@2,z@4");
    att_interactions_free(log);
    fails = 1;
    assert_int_equal(att_interactions_read(ctx, &source, NULL, &log), ATT_ERR_SYSTEM);
    assert_null(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_read_that_are_named),   cmocka_unit_test(ratings_are_compared_as_numbers),
        cmocka_unit_test(a_core_is_found_by_repeating),     cmocka_unit_test(a_core_counts_what_is_left),
        cmocka_unit_test(known_items_keep_their_numbers),   cmocka_unit_test(what_cannot_be_filtered_is_refused),
        cmocka_unit_test(actions_may_come_from_a_function),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
