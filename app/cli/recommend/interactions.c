#include "interactions.h"
#include "cli/base/lines.h"
#include "cli/base/progress.h"
#include "log_times.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Prints the library's message, with the options that help. */
static int fail_open(const att_ctx *ctx, const cli_interactions_options *o, att_status s)
{
    const char *message = att_error(ctx);
    const bool format = s == ATT_ERR_FORMAT;
    if (format && (strstr(message, ", of the event;") || strstr(message, "a column of events")))
        return cli_fail("%s: --event-column", message);
    if (format && (strstr(message, ", of the rating;") || strstr(message, "a column of ratings")))
        return cli_fail("%s: --rating-column", message);
    if (format && strstr(message, "the header has no column"))
        return cli_fail("%s: --user-column, --item-column, --time-column. Of a file without a header, with user, item "
                        "and time in this order: --format lines; with others: the numbers of the columns",
                        message);
    if (format && strstr(message, "are named by their numbers"))
        return cli_fail("%s: --user-column, --item-column, --time-column", message);
    static const char *const columns[] = {"user", "item", "time", "event", "rating"};
    for (size_t i = 0; format && i < sizeof columns / sizeof *columns; i++) {
        char two[64];
        snprintf(two, sizeof two, "either may be that of the %s: name one", columns[i]);
        if (strstr(message, two))
            return cli_fail("%s: --%s-column", message, columns[i]);
    }
    if (format && !o->time && (strstr(message, ": time is ") || strstr(message, ": time of ")))
        return cli_fail("%s; --time-column names another column, or \"\": no times", message);
    return cli_status(ctx, s);
}

int cli_interactions_copy_pipe(cli_interactions_options *o)
{
    static cli_copy copy; /* open until the process ends */
    if (o->path && !strcmp(o->path, "-"))
        o->path = "/dev/stdin";
    return cli_copy_pipe(&o->path, &copy);
}

/* A log is read more than once, by a training also when it continues. */
static int check_path(const char *path)
{
    double bytes;
    const int code = strcmp(path, "-") != 0 ? cli_file_check(path, &bytes) : CLI_DONE;
    if (!code && (!strcmp(path, "-") || bytes < 0))
        return cli_fail("--data %s: is not a file; a log is read more than once, which only a file can be: write it "
                        "to one",
                        path);
    return code;
}

/* The events of --event, for one call. */
enum { MAX_EVENTS = 64 };
typedef struct events {
    char *text;
    const char *name[MAX_EVENTS];
    int64_t n;
} events;

static int read_events(const char *text, events *e)
{
    *e = (events){.text = text ? strdup(text) : NULL};
    if (text && !e->text)
        return cli_fail_memory();
    char *rest = e->text;
    for (char *one; rest && (one = strsep(&rest, ","));) {
        if (!*one || e->n == MAX_EVENTS)
            return *one ? cli_misuse("--event has more than %d names", MAX_EVENTS)
                        : cli_misuse("--event \"%s\" has an empty name", text);
        e->name[e->n++] = one;
    }
    return CLI_DONE;
}

/* Checks that the columns of filters go with filters. */
static int check_filters(const cli_interactions_options *o)
{
    if (o->event_column && !o->event)
        return cli_misuse("--event-column %s needs --event NAME", o->event_column);
    if (o->rating_column && isnan(o->min_rating))
        return cli_misuse("--rating-column %s needs --min-rating X", o->rating_column);
    return CLI_DONE;
}

int cli_interactions_open(att_ctx *ctx, cli_interactions *l, const cli_interactions_options *o,
                          const char *const *items, int64_t n_items)
{
    *l = (cli_interactions){.info = {.size = sizeof l->info}, .held = {.size = sizeof l->held}};
    events e;
    int code = read_events(o->event, &e);
    cli_share p = cli_share_of_call("% read", 100);
    const att_interactions_options *read = ATT_OPTIONS(
        att_interactions_options, .format = (att_interactions_format)(o->format + 1), .user = o->user, .item = o->item,
        .time = o->time, .drop_duplicates = o->drop_duplicates, .items = items, .n_items = n_items,
        .skip_bad_lines = o->skip_bad_lines, .events = e.name, .n_events = e.n, .event = o->event_column,
        .by_rating = !isnan(o->min_rating), .min_rating = isnan(o->min_rating) ? 0 : o->min_rating,
        .rating = o->rating_column, .min_count = o->min_count, .progress = cli_share_report, .progress_user = &p);
    if (!code)
        code = check_filters(o);
    if (!code)
        code = check_path(o->path);
    const att_status s = code ? ATT_OK : att_interactions_open(ctx, o->path, read, &l->log);
    cli_share_end(&p);
    free(e.text);
    if (s)
        code = fail_open(ctx, o, s);
    if (!code)
        code = cli_status(ctx, att_interactions_describe(l->log, &l->info));
    return code;
}

/* Refuses options that only a split by time has. */
static int check_other_split(const cli_interactions_options *o)
{
    const bool valid = o->valid_from || o->valid_share > 0;
    const char *point = o->valid_from ? o->valid_from : o->test_from,
               *split = cli_split_name((att_holdout_kind)o->split);
    if (point)
        return cli_misuse("--%s-from %s is for --split time, but here the split is %s", valid ? "valid" : "test", point,
                          split);
    if (o->valid_share > 0 || o->test_share > 0)
        return cli_misuse("--%s-share %g is for --split time, but here the split is %s", valid ? "valid" : "test",
                          valid ? o->valid_share : o->test_share, split);
    if (o->split == ATT_HOLDOUT_NONE && o->held_out_users)
        return cli_misuse("--held-out-users %lld is for a split that holds out actions, but here the split is none",
                          (long long)o->held_out_users);
    if (o->split == ATT_HOLDOUT_NONE && o->min_actions)
        return cli_misuse("--min-actions %lld is for a split that holds out actions, but here the split is none",
                          (long long)o->min_actions);
    if (o->split == ATT_HOLDOUT_LEAVE_ONE_OUT && o->min_actions < 3)
        return cli_misuse("--min-actions %lld is less than 3: of a user's actions one is for validation, one for the "
                          "test and what is before them for training",
                          (long long)o->min_actions);
    return CLI_DONE;
}

/* Two points in time, in the unit of a log: the second one has to be later. */
static int check_points(const cli_interactions_options *o, double valid_from, double test_from)
{
    return valid_from < test_from
               ? CLI_DONE
               : cli_misuse("--valid-from %s is not before --test-from %s", o->valid_from, o->test_from);
}

/* Checks the order of the points in time before the log is read, if both are numbers or both are dates. */
static int check_times(const cli_interactions_options *o)
{
    double valid_from, test_from;
    bool valid_date, test_date;
    int code = cli_time_check("valid-from", o->valid_from);
    if (!code)
        code = cli_time_check("test-from", o->test_from);
    if (code || !o->valid_from || att_interactions_time(o->valid_from, 1, &valid_from, &valid_date) ||
        att_interactions_time(o->test_from, 1, &test_from, &test_date) || valid_date != test_date)
        return code;
    return check_points(o, valid_from, test_from);
}

int cli_interactions_check(const cli_interactions_options *o)
{
    if (o->split != ATT_HOLDOUT_TIME)
        return check_other_split(o);
    if ((o->valid_from || o->test_from) && (o->valid_share > 0 || o->test_share > 0))
        return cli_misuse("--%s does not go with --%s", o->valid_share > 0 ? "valid-share" : "test-share",
                          o->valid_from ? "valid-from" : "test-from");
    if (!o->valid_from != !o->test_from)
        return cli_misuse("--%s needs --%s TIME, too", o->valid_from ? "valid-from" : "test-from",
                          o->valid_from ? "test-from" : "valid-from");
    if (o->valid_share + o->test_share >= 1)
        return cli_misuse("--valid-share %g and --test-share %g leave no action for training", o->valid_share,
                          o->test_share);
    return check_times(o);
}

void cli_interactions_complete(cli_interactions_options *o)
{
    if (o->split < 0)
        o->split = ATT_HOLDOUT_LEAVE_ONE_OUT;
    if (!o->min_actions && o->split != ATT_HOLDOUT_NONE)
        o->min_actions = 3;
    if (o->valid_from && o->test_from && !strcmp(o->valid_from, "0") && !strcmp(o->test_from, "0"))
        o->valid_from = o->test_from = NULL; /* as older versions stored that there are none */
    if (o->split != ATT_HOLDOUT_TIME || o->valid_from || o->test_from)
        return;
    if (o->valid_share == 0)
        o->valid_share = 0.1;
    if (o->test_share == 0)
        o->test_share = 0.1;
}

static bool is_histories(const att_interactions_info *i) { return !strcmp(i->format, "histories"); }

/* Finds the first and the last time of all actions. */
static void find_times(const cli_interactions *l, double *first, double *last)
{
    *first = INFINITY;
    *last = -INFINITY;
    for (int64_t u = 0; l->info.timed && u < l->info.users; u++) {
        const att_history h = att_interactions_history(l->log, u);
        *first = h.count ? fmin(*first, h.times[0]) : *first;
        *last = h.count ? fmax(*last, h.times[h.count - 1]) : *last;
    }
}

/* Reports columns that may have been read in the wrong role. */
static void note_columns(const cli_interactions *l)
{
    const att_interactions_info *i = &l->info;
    double first, last;
    find_times(l, &first, &last);
    const bool positions = i->ties == 0 && last <= (double)i->longest;
    if (i->unused_times)
        cli_note("the column \"%.80s\" seems to have times, but is not read: --time-column %s reads it",
                 i->unused_times, cli_quoted(i->unused_times).text);
    if (i->ratings)
        cli_note("column %lld, from %g to %g, is read as ratings, not as times: --time-column %lld reads it as times",
                 (long long)i->guessed_times, i->lowest_rating, i->highest_rating, (long long)i->guessed_times);
    else if (i->guessed_times && i->time_per_second == 0 && i->unsorted > 0 && !positions)
        cli_note(
            "column %lld is read as times, but these are not dates: if it has ratings or counts, --time-column \"\" "
            "reads none",
            (long long)i->guessed_times);
    if (i->unusual_times > 0)
        cli_note("%lld of %lld times are not in the years 1973 to 2096%s: are all of them times, and in one unit?",
                 (long long)i->unusual_times, (long long)i->actions, cli_time_unit(i->time_per_second));
    if (i->repeated_users > 0)
        cli_note("%lld line%s to a user of an earlier line, as its first id states; where lines have no users, put one "
                 "before each",
                 (long long)i->repeated_users, i->repeated_users == 1 ? " belongs" : "s belong");
    if (i->fields > 0)
        cli_note(
            "each line is read as a user and items, but all have %lld fields: where these are columns, number them, "
            "as by --user-column 1 --item-column 2",
            (long long)i->fields);
}

static void note_rest(const cli_interactions *l)
{
    const att_interactions_info *i = &l->info;
    if (i->heading)
        cli_note("the first line was read as a heading: %.80s", i->heading);
    if (i->missing_user)
        cli_note("%s is read as no user, but as a value that is missing: those actions are left out", i->missing_user);
    cli_skipped_report(i->skipped, i->bad);
    note_columns(l);
}

/* Reads the points in time of the options, in the unit of the log. They are 0 if not given. */
static int read_points(const cli_interactions *l, const cli_interactions_options *o, double *valid_from,
                       double *test_from)
{
    *valid_from = *test_from = 0;
    if (!o->valid_from || !l->info.timed)
        return CLI_DONE;
    int code = cli_time_read("valid-from", o->valid_from, l->info.time_per_second, valid_from);
    if (!code)
        code = cli_time_read("test-from", o->test_from, l->info.time_per_second, test_from);
    return code ? code : check_points(o, *valid_from, *test_from);
}

int cli_interactions_hold_out(att_ctx *ctx, cli_interactions *l, const cli_interactions_options *o)
{
    double valid_from, test_from;
    int code = read_points(l, o, &valid_from, &test_from);
    if (code)
        return code;
    const att_holdout_options *split =
        ATT_OPTIONS(att_holdout_options, .kind = (att_holdout_kind)o->split, .min_actions = o->min_actions,
                    .held_out_users = o->held_out_users, .valid_share = o->valid_share, .test_share = o->test_share,
                    .valid_from = valid_from, .test_from = test_from);
    const att_status s = att_holdout_new(l->log, split, &l->holdout);
    if (s)
        note_rest(l); /* before the error, because its reason may be among the notes */
    code = cli_status(ctx, s);
    if (!code)
        code = cli_status(ctx, att_holdout_describe(l->holdout, &l->held));
    return code;
}

void cli_interactions_close(cli_interactions *l)
{
    att_holdout_free(l->holdout);
    att_interactions_free(l->log);
    *l = (cli_interactions){0};
}

/* Reports the first and the last time of the actions, which shows whether the column is the right one. */
static void report_times(const cli_interactions *l)
{
    double first, last;
    find_times(l, &first, &last);
    char from[CLI_TIME_BYTES], to[CLI_TIME_BYTES];
    const double per_second = l->info.time_per_second;
    fprintf(stderr, "; times %s to %s%s", cli_time_day(first, per_second, from), cli_time_day(last, per_second, to),
            cli_time_unit(per_second));
}

/* Reports what filters left out. */
static void report_filters(const att_interactions_info *i)
{
    if (i->other_events > 0)
        fprintf(stderr, "; %lld of other events left out", (long long)i->other_events);
    if (i->low_ratings > 0)
        fprintf(stderr, "; %lld with a lower rating or none left out", (long long)i->low_ratings);
    if (i->rare_actions > 0)
        fprintf(stderr, "; %lld user%s and %lld item%s with too few actions left out, %lld actions",
                (long long)i->rare_users, i->rare_users == 1 ? "" : "s", (long long)i->rare_items,
                i->rare_items == 1 ? "" : "s", (long long)i->rare_actions);
}

void cli_interactions_report(const cli_interactions *l)
{
    const att_interactions_info *i = &l->info;
    fprintf(stderr, "%lld action%s of %lld user%s with %lld item%s (%s)", (long long)i->actions,
            i->actions == 1 ? "" : "s", (long long)i->users, i->users == 1 ? "" : "s", (long long)i->items,
            i->items == 1 ? "" : "s", i->format);
    if (i->timed)
        report_times(l);
    else
        fputs("; without times: the order is that of the file", stderr);
    if (i->unsorted > 0)
        fprintf(stderr, "; %lld not sorted by time", (long long)i->unsorted);
    if (i->ties > 0)
        fprintf(stderr, "; %lld with the time of the one before, where the order is that of the file",
                (long long)i->ties);
    if (i->duplicates > 0)
        fprintf(stderr, "; %lld duplicate%s", (long long)i->duplicates, i->duplicates == 1 ? "" : "s");
    if (i->guests > 0)
        fprintf(stderr, "; %lld without a user left out", (long long)i->guests);
    report_filters(i);
    fputc('\n', stderr);
    note_rest(l);
}

void cli_interactions_note(const cli_interactions *l, const char *path)
{
    const att_interactions_info *i = &l->info;
    if (!i->timed && !is_histories(i))
        cli_note("%s: without times: the order is that of the file", path);
    if (i->guests > 0)
        cli_note("%s: %lld action%s without a user left out", path, (long long)i->guests, i->guests == 1 ? "" : "s");
    note_rest(l);
}

const char *cli_split_name(att_holdout_kind kind)
{
    static const char *const names[] = {
        [ATT_HOLDOUT_LEAVE_ONE_OUT] = "leave-one-out", [ATT_HOLDOUT_TIME] = "time", [ATT_HOLDOUT_NONE] = "none"};
    return names[kind];
}

int cli_interactions_user(const cli_interactions *l, const char *path, const char *id, int64_t *user)
{
    enum { WORDS = 1 << 12 }; /* ids that may be the nearest */
    *user = att_interactions_find_user(l->log, id);
    if (*user >= 0)
        return CLI_DONE;
    const char *words[WORDS];
    const int n = (int)(l->info.users < WORDS ? l->info.users : WORDS);
    for (int i = 0; i < n; i++)
        words[i] = att_interactions_user(l->log, i);
    cli_hint hint;
    return cli_fail("%s: has no user \"%s\"%s", path, id, cli_did_you_mean(&hint, "", id, words, n, ""));
}
