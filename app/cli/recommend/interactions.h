/* Logs of what users did: the options that state how to read one and which actions are held out, and lists of ids. */
#ifndef CLI_RECOMMEND_INTERACTIONS_H
#define CLI_RECOMMEND_INTERACTIONS_H

#include "cli/base/skipped.h"

#include <attend_recommend.h>

#include <math.h>

typedef struct cli_interactions_options {
    const char *path;
    int format; /* att_interactions_format - 1; -1: any */
    const char *user, *item, *time;
    bool drop_duplicates;
    int64_t skip_bad_lines;
    const char *event, *event_column; /* "purchase,cart" */
    double min_rating;                /* NAN: not given */
    const char *rating_column;
    int64_t min_count;                   /* 0: not given */
    int split;                           /* att_holdout_kind; -1: not given */
    int64_t min_actions, held_out_users; /* 0: not given */
    double valid_share, test_share;      /* 0: not given */
    const char *valid_from, *test_from;  /* times as typed; NULL: not given */
} cli_interactions_options;

/* clang-format off */
/* The rows of a file that is read, path of --data excluded: o is a cli_interactions_options. */
#define CLI_INTERACTIONS_OPTIONS(o)                                                                                  \
    {"format", 0, "lines|movielens|inter|csv|histories", .choice = &(o).format,                                      \
     .help = "format of --data; default: what its first line shows"},                                                \
    {"user-column", 0, "NAME", .text = &(o).user,                                                                    \
     .help = "column of users in CSV or .inter, or its number in a file without a header; default: a usual name, "   \
             "as user_id, customer_id or reviewerID, in letters of either case"},                                    \
    {"item-column", 0, "NAME", .text = &(o).item,                                                                    \
     .help = "column of items; default: a usual name, as item_id, sku, product_id, movieId or asin"},                \
    {"time-column", 0, "NAME", .text = &(o).time,                                                                    \
     .help = "column of times: dates, as 1997-09-20 03:05 or 1997-09-20T03:05:10Z, or numbers, as of seconds or "    \
             "milliseconds since 1970; default: a usual name, as timestamp, date or created_at, if there is one; "   \
             "\"\": no times"},                                                                                      \
    {"drop-duplicates", 0, NULL, .flag = &(o).drop_duplicates,                                                       \
     .help = "drop an action with the user, the item and the time of another one, after the first such one"},        \
    CLI_SKIP_OPTION(&(o).skip_bad_lines, "--data"),                                                                  \
    {"event", 0, "NAME[,NAME...]", .text = &(o).event,                                                               \
     .help = "read only actions with one of these events, such as purchase"},                                        \
    {"event-column", 0, "NAME", .text = &(o).event_column,                                                           \
     .help = "column of events; default: a usual name, as event, event_type, action or behavior"},                   \
    {"min-rating", 0, "X", .number = &(o).min_rating, .min = -1e9, .max = 1e9, .quiet = true,                        \
     .help = "read only actions with a rating of X or more; those without a rating are left out, too"},              \
    {"rating-column", 0, "NAME", .text = &(o).rating_column,                                                         \
     .help = "column of ratings; default: a usual name, as rating, stars or overall, of lines without a heading the " \
             "third"}
/* The rows that state which users and items count, and what is held out. */
#define CLI_HOLDOUT_OPTIONS(o)                                                                                       \
    {"min-count", 0, "N", .integer = &(o).min_count, .min = 1, .max = 1 << 30, .quiet = true,                        \
     .help = "leave out users and items with fewer actions, repeated until all that are left have N with one "       \
             "another (the k-core, as in RecBole)"},                                                                 \
    {"split", 0, "leave-one-out|time|none", .choice = &(o).split,                                                    \
     .help = "hold out each user's last action for the test and the one before for validation; or what is after "    \
             "points in time; or nothing; default: leave-one-out"},                                                  \
    {"min-actions", 0, "N", .integer = &(o).min_actions, .min = 1, .max = 1 << 30, .quiet = true,                              \
     .help = "users with fewer actions are for training only; default: 3"},                                          \
    {"held-out-users", 0, "N", .integer = &(o).held_out_users, .min = 1, .max = INT32_MAX, .quiet = true,            \
     .help = "hold out actions of at most N users, spread evenly over those with --min-actions; the others are for "  \
             "training only; of a large log 100000 give narrow intervals in a fraction of the time; default: all"},    \
    {"valid-share", 0, "SHARE", .number = &(o).valid_share, .max = 0.99, .above_min = true, .quiet = true,                              \
     .help = "--split time: share of the actions from the point of validation to that of the test; default: 0.1"},   \
    {"test-share", 0, "SHARE", .number = &(o).test_share, .max = 0.99, .above_min = true, .quiet = true,                                \
     .help = "--split time: share of the actions after the point of the test; default: 0.1"},                        \
    {"valid-from", 0, "TIME", .text = &(o).valid_from,                                                               \
     .help = "--split time: the point of validation, instead of shares: a date, as 1998-04-01 or "                   \
             "1998-04-01T03:05:10Z, or a number in the unit of the log"},                                            \
    {"test-from", 0, "TIME", .text = &(o).test_from, .help = "--split time: the point of the test"}
/* clang-format on */
#define CLI_INTERACTIONS_DEFAULTS .format = -1, .split = -1, .min_rating = NAN

typedef struct cli_interactions {
    att_interactions *log;
    att_interactions_info info;
    att_holdout *holdout;
    att_holdout_info held;
} cli_interactions;

/* Copies a log from standard input ("-") or another pipe to a file, so that this process can read it more than once.
 * o->path becomes the path of the file. */
int cli_interactions_copy_pipe(cli_interactions_options *o);
/* Reads the log of o. items [n_items], or NULL if n_items is 0: ids that get the first numbers. */
int cli_interactions_open(att_ctx *ctx, cli_interactions *l, const cli_interactions_options *o,
                          const char *const *items, int64_t n_items);
/* Sets options of the split that were not given to their defaults. */
void cli_interactions_complete(cli_interactions_options *o);
/* Checks complete options. Errors: an option belongs to another split, or options do not go together. */
int cli_interactions_check(const cli_interactions_options *o);
/* Splits it by options that are checked. */
int cli_interactions_hold_out(att_ctx *ctx, cli_interactions *l, const cli_interactions_options *o);
void cli_interactions_close(cli_interactions *l);

/* Reports the sizes of the log, and anything unusual about it, on standard error, a line each. */
void cli_interactions_report(const cli_interactions *l);
/* Reports only anything unusual about the log. path: that of the log. */
void cli_interactions_note(const cli_interactions *l, const char *path);
/* "leave-one-out", "time", "none" */
const char *cli_split_name(att_holdout_kind kind);

/* Finds the number of a user; an error names the nearest id. */
int cli_interactions_user(const cli_interactions *l, const char *path, const char *id, int64_t *user);

#endif
