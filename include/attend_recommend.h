/* attend_recommend.h - sequential recommendation: predicts the next items of users from a log of their actions.
 *
 * Chapters: 1 Interactions, 2 Splits, 3 Measures, 4 Models, 5 Recommending, 6 Training.
 *
 * Users and items have texts as ids, and numbers from 0, which index the arrays of this header. A history is a list of
 * items, oldest first. Histories of any lengths are concatenated: items [offsets[n]], with offsets [n + 1], ascending
 * from 0. A model is a folder. attend_model.h has the rules for names, files and threads, attend.h those for arguments
 * that may be NULL. */
#ifndef ATTEND_RECOMMEND_H
#define ATTEND_RECOMMEND_H

#include "attend_metric.h"
#include "attend_text.h"
#include "attend_trace.h"
#include "attend_train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1 Interactions ----------------------------------------------------- */

/* A log of actions, each of a user with an item at a time. Read-only. */
typedef struct att_interactions att_interactions;

typedef enum att_interactions_format {
    ATT_INTERACTIONS_ANY = 0,   /* the format that the first lines show */
    ATT_INTERACTIONS_LINES,     /* "user item", "user item time" or "user item rating time" (or time before rating),
                                 * separated by tabs, commas or semicolons, and then ids may have spaces; or separated by
                                 * spaces, which then may also separate date and time of day. A first line of names is
                                 * read as a heading. A third column with few small numbers is read as ratings: see
                                 * att_interactions_info.ratings */
    ATT_INTERACTIONS_MOVIELENS, /* lines with "::" as separator */
    ATT_INTERACTIONS_INTER,     /* RecBole's .inter: tabs, with the header "user_id:token", "item_id:token", ... */
    ATT_INTERACTIONS_CSV,       /* CSV with a header, separated by commas, semicolons or tabs, see att_table (RFC
                                 * 4180) */
    ATT_INTERACTIONS_HISTORIES  /* a line for each user: "user item item ...", oldest first */
} att_interactions_format;

typedef struct att_interactions_options {
    size_t size;
    att_interactions_format format;
    const char *user, *item; /* [call] names of the columns of CSV or .inter (without types), in letters of either case
                              * and with or without blanks, "_" and "-"; or their numbers, from 1, which lines and CSV
                              * without a header have, too; or NULL: a usual name, such as user_id, customer_id,
                              * reviewerID; item_id, sku, product_id, asin, movieId; two such columns are an error */
    const char *time;     /* [call] name or number of the column of times; "": do not read times; or NULL: a usual name,
                           * such as timestamp, date, created_at, if there is one */
    bool drop_duplicates; /* drop an action that repeats user, item and time of an earlier one */
    const char *const *items; /* [call] [n_items]: ids of items that get the numbers 0 to n_items - 1, such as those of
                               * a model; further items of the log follow */
    int64_t n_items;
    int64_t skip_bad_lines;   /* leave out up to this many malformed records, see att_interactions_info.skipped; 0:
                               * none */
    att_progress_fn progress; /* [call] counts bytes of the file, or actions in memory; or NULL */
    void *progress_user;      /* [call] */
    /* Filters. What they leave out is counted in att_interactions_info. */
    const char *const *events; /* [call] [n_events]: of a file: read only actions with one of these events, such as
                                * "purchase" */
    int64_t n_events;          /* 0: all actions */
    const char *event;         /* [call] name or number of the column of events; or NULL: a usual name, such as event,
                                * event_type, action; not used without events */
    bool by_rating; /* of a file: read only actions with a rating of min_rating or more; those without are left out */
    double min_rating;
    const char *rating; /* [call] name or number of the column of ratings; or NULL: a usual name, such as rating, stars,
                         * score, and of lines without a heading the third field; not used without by_rating */
    int64_t min_count;  /* leave out users and items with fewer actions, repeatedly, until all that are left have this
                         * many with one another: the k-core, as in RecBole; 0: none. Duplicates that are dropped do not
                         * count. `items` keep their numbers */
} att_interactions_options;

/* Times are numbers or dates of ISO 8601; a column has only one of these. Dates are written as 1997-09-20, 1997-09-20
 * 03:05 or 1997-09-20T03:05:10.5+01:00, also with a blank instead of T or before the zone, a comma before the fraction,
 * and +0100, Z or UTC as zone; as 19970920T030510Z; or as 1997/9/20 3:05, with "/" or "." and without leading zeros.
 * Without a zone they are in UTC. Dates become seconds since the beginning of 1970; numbers are not changed. The unit
 * of numbers is inferred from the size of all of them: see att_interactions_info.time_per_second. */

/* Reads a file of any size (see att_open_text). It needs at most 64 bytes of memory a line, and for each user and each
 * item 64 bytes and twice its id. A line has at most 2^20 bytes; users with longer histories need the format
 * ATT_INTERACTIONS_LINES. Users and items are numbered in the order of their first lines. Each user's actions are
 * sorted by time; those with equal times, or without times, keep the order of the file. Actions whose user is empty, or
 * NULL, NA, N/A, NaN or None, which programs write for missing values, belong to guests and are left out and counted.
 * options or NULL: defaults. Malformed lines beyond skip_bad_lines are errors, which name file, line and field: a
 * missing field or column; an empty item; an id that is not UTF-8, has a zero byte or more than 4,096 bytes; a time
 * that is neither a finite number nor a date; a day that does not exist; an integer that a double cannot hold, unless
 * it is a time in nanoseconds, which is rounded to a multiple of 256; lines of different kinds; a rating that
 * is not a number. Other errors: no action, or none that filters leave; out of memory. */
ATT_API att_status att_interactions_open(att_ctx *ctx, const char *path, const att_interactions_options *options,
                                         att_interactions **out);
/* Makes a log of actions in memory: users [n] and items [n] are ids, times [n] or NULL: none. options or NULL:
 * defaults; format and columns are not used. Errors name the action. */
ATT_API att_status att_interactions_new(att_ctx *ctx, int64_t n, const char *const *users, const char *const *items,
                                        const double *times, const att_interactions_options *options,
                                        att_interactions **out);
/* A function that sets the ids of action i, which are valid until the next call and need no zero byte at the end, and
 * if there are times its time. Actions are read once each, in their order. An error ends the call, which returns it. */
typedef att_status (*att_interaction_fn)(void *user, int64_t i, att_byte_view *user_id, att_byte_view *item_id,
                                         double *time);
/* Actions that a function describes, so that no array of all is needed, such as those of a data frame. */
typedef struct att_interaction_source {
    size_t size;
    int64_t n;              /* actions */
    bool timed;             /* they have times */
    att_interaction_fn get; /* [call] */
    void *user;             /* [call] */
} att_interaction_source;
/* Makes a log as att_interactions_new does, with the memory of att_interactions_open. options or NULL: defaults. */
ATT_API att_status att_interactions_read(att_ctx *ctx, const att_interaction_source *source,
                                         const att_interactions_options *options, att_interactions **out);
/* Reads one time as written in a file, for a log with time_per_second = per_second: *time is the number, or for a date
 * the seconds since 1970 times per_second. is_date or NULL: receives whether it is a date. Errors: those of times in
 * att_interactions_open; a date if per_second is 0. */
ATT_API att_status att_interactions_time(const char *text, double per_second, double *time, bool *is_date);
ATT_API void att_interactions_free(att_interactions *log);

typedef struct att_interactions_info {
    size_t size;
    const char
        *format; /* "lines", "MovieLens", "RecBole .inter", "CSV", "CSV without a header", "histories", "memory" */
    int64_t users, items, actions;
    int64_t longest;    /* actions of a user */
    bool timed;         /* has times */
    int64_t unsorted;   /* actions that are earlier than the same user's preceding action in the file */
    int64_t ties;       /* actions with the same time as the user's preceding action, which keep the file's order */
    int64_t repeats;    /* actions with an item that the user has had before */
    int64_t duplicates; /* actions that repeat user, item and time of an earlier one; kept, unless drop_duplicates; 0
                         * without times */
    double time_per_second; /* units of time in a second: 1 for dates; for numbers 1, 1e3, 1e6 or 1e9, so that the last
                             * time is in the years 1973 to 2096; 0: none fits, or no times */
    int64_t unusual_times;  /* times that are not in these years, in this unit */
    int64_t guests;         /* actions without a user, which are left out */
    int64_t skipped;        /* malformed records that were left out */
    const char *bad;        /* the error sentence of the first of them, with its line; NULL: none. Valid as long as the
                             * log */
    const char *heading;    /* the first record, if it was read as a header in a format that has none; otherwise NULL */
    int64_t guessed_times;  /* the number, from 1, of the column that was read as times because of its position, not its
                             * name; 0: none */
    bool ratings;           /* that column repeats few small numbers in no order: it was read as ratings, and there are
                             * no times */
    double lowest_rating, highest_rating;
    const char *unused_times; /* the name of a column that seems to have times but was not read; NULL: none. Valid as
                               * long as the log */
    int64_t repeated_users;   /* ATT_INTERACTIONS_HISTORIES: lines whose user has an earlier line */
    const char *missing_user; /* the first name that was read as a missing user, such as NULL, NA or None; NULL: none */
    int64_t fields; /* if ATT_INTERACTIONS_HISTORIES was recognized, not requested: fields of each line if all have the
                     * same number; else 0 */
    /* What filters left out */
    int64_t other_events, low_ratings;            /* actions; low_ratings: also those without a rating */
    int64_t rare_users, rare_items, rare_actions; /* by min_count: users, items, and their actions */
} att_interactions_info;
ATT_API att_status att_interactions_describe(const att_interactions *log, att_interactions_info *info);
/* Return ids, valid as long as the log; NULL: out of range. */
ATT_API const char *att_interactions_user(const att_interactions *log, int64_t user);
ATT_API const char *att_interactions_item(const att_interactions *log, int64_t item);
/* Return numbers of ids; -1: no such id. */
ATT_API int64_t att_interactions_find_user(const att_interactions *log, const char *id);
ATT_API int64_t att_interactions_find_item(const att_interactions *log, const char *id);

/* A view of one user's actions, oldest first. */
typedef struct att_history {
    const int32_t *items; /* [count] */
    const double *times;  /* [count]; NULL: the log has none */
    int64_t count;
} att_history;
/* Returns a user's history; count 0: out of range. */
ATT_API att_history att_interactions_history(const att_interactions *log, int64_t user);

/* ---- 2 Splits ----------------------------------------------------------- */

/* A log with some actions held out, which are to be predicted from the same user's earlier actions. */
typedef struct att_holdout att_holdout;

typedef enum att_holdout_kind {
    ATT_HOLDOUT_LEAVE_ONE_OUT = 0, /* the last action of each user is for the test, the one before for validation */
    ATT_HOLDOUT_TIME, /* by two points in time, the same for all users: actions before the first are for training. Each
                       * user's first action between the two is for validation, and the first after the second for the
                       * test. Training uses nothing from the future (Ji et al. 2023) */
    ATT_HOLDOUT_NONE  /* all actions are for training */
} att_holdout_kind;

typedef enum att_holdout_part { ATT_HOLDOUT_PART_VALID = 0, ATT_HOLDOUT_PART_TEST } att_holdout_part;

typedef struct att_holdout_options {
    size_t size;
    att_holdout_kind kind;
    int64_t min_actions;            /* users with fewer are for training only; 0: 3, which is the minimum for
                                     * ATT_HOLDOUT_LEAVE_ONE_OUT */
    double valid_share, test_share; /* ATT_HOLDOUT_TIME: shares of the log's actions, in (0, 1), for validation and
                                     * test; 0: 0.1 */
    double valid_from,
        test_from; /* instead of shares, the two points in time, the first before the second; both 0: shares are used */
    int64_t held_out_users; /* the most users of whom actions are held out, spread evenly over those with
                             * min_actions or more; the others are for training only; 0: all. Ranking 100,000 users
                             * gives intervals of some thousandths, and of a large log takes a fraction of the time */
} att_holdout_options;
/* Splits a log, which must outlive the result. options or NULL: defaults. Errors of ATT_HOLDOUT_TIME: a log without
 * times; shares or points in time that leave no action before or between the points. */
ATT_API att_status att_holdout_new(const att_interactions *log, const att_holdout_options *options, att_holdout **out);
ATT_API void att_holdout_free(att_holdout *h);
ATT_API const att_interactions *att_holdout_log(const att_holdout *h);

typedef struct att_holdout_info {
    size_t size;
    att_holdout_kind kind;
    int64_t users;                /* with an action for training */
    int64_t actions;              /* for training */
    int64_t items;                /* that occur among these */
    int64_t positions;            /* actions to be predicted in training: without each user's first */
    int64_t cases[2];             /* held-out actions of each att_holdout_part */
    int64_t unseen[2];            /* of these, with an item that does not occur in training */
    int64_t repeats[2];           /* of these, with an item that the user has had before */
    int64_t train_only;           /* users with fewer than min_actions actions */
    int64_t without_history[2];   /* ATT_HOLDOUT_TIME: users whose first action is of the part; they are not cases */
    double valid_from, test_from; /* ATT_HOLDOUT_TIME */
    int64_t not_held_out;         /* users with min_actions or more beyond the held_out_users */
} att_holdout_info;
ATT_API att_status att_holdout_describe(const att_holdout *h, att_holdout_info *info);
/* Returns a user's actions for training; count 0: none, or out of range. */
ATT_API att_history att_holdout_train(const att_holdout *h, int64_t user);

/* A held-out action, and the user's history before it, which for the test includes the action for validation. */
typedef struct att_holdout_case {
    int64_t user;
    att_history history;
    int32_t target; /* item */
} att_holdout_case;
/* Returns case i of a part, in the order of users. Error: out of range. */
ATT_API att_status att_holdout_get(const att_holdout *h, att_holdout_part part, int64_t i, att_holdout_case *out);

/* ---- 3 Measures --------------------------------------------------------- */

/* Scores each item as the next one of a history. */
typedef struct att_scorer {
    /* Computes scores of n histories, items [offsets[n]] and offsets [n + 1] -> scores [n, n_items], of the log's items
     * in their order. NaN is an error; -INFINITY ranks after all others. */
    att_status (*score)(void *user, const int32_t *items, const int64_t *offsets, int64_t n, int64_t n_items,
                        float *scores);
    void *user;
} att_scorer;

/* The items among which the held-out item is ranked. Samples are only for comparison with papers: they may rank models
 * differently than all items do (Krichene, Rendle 2020). */
typedef enum att_candidates {
    ATT_CANDIDATES_ALL = 0,          /* all items */
    ATT_CANDIDATES_OUTSIDE_TRAINING, /* uniform samples outside the user's training items, with repetition; held-out
                                      * items can be among them (the protocol of Kang, McAuley 2018) */
    ATT_CANDIDATES_OUTSIDE_HISTORY,  /* uniform samples without repetition outside all items of the user (Zhou et al.
                                      * 2020) */
    ATT_CANDIDATES_BY_POPULARITY     /* samples without repetition outside all items of the user, drawn by their numbers
                                      * of actions in the log (Sun et al. 2019) */
} att_candidates;

typedef struct att_ranking_options {
    size_t size;
    att_holdout_part part;
    int64_t k;         /* 0: 10 */
    bool exclude_seen; /* items of the history are not candidates; if the held-out item is one of them, it has no rank
                        */
    bool leave_out_unseen; /* leave out cases whose held-out item does not occur in training; only their number is
                            * reported */
    att_candidates candidates;
    int64_t negatives; /* size of a sample; 0: 100 */
    int64_t draws;     /* number of samples for each user, over which results are averaged; 0: 5 */
    uint64_t seed;     /* of samples: each depends only on the seed, the user and the number of the draw */
    int64_t batch;     /* maximum number of histories in a call of the scorer; 0: 1024, or fewer if scores exceed 64
                        * MiB */
    int32_t *ranks;    /* [call] [cases, draws], where draws is 1 without samples: receives ranks from 1; 0: no rank, or
                        * not counted; or NULL */
    att_progress_fn progress; /* [call] or NULL */
    void *user;               /* [call] */
} att_ranking_options;

typedef struct att_ranking {
    size_t size;
    int64_t cases;              /* number of cases that are counted */
    int64_t unseen;             /* held-out items that do not occur in training, counted or not */
    int64_t repeats;            /* counted cases whose item is in the history */
    int64_t k, candidates;      /* candidates: number of items, or of a sample with the held-out item */
    att_interval hr, ndcg, mrr; /* means over cases: see att_rank_measures */
    double coverage;            /* share of the log's items that are among the k best items of some user */
    double popularity;          /* mean number of training actions of the k best items */
} att_ranking;
/* Ranks the held-out item of each case. Items with equal scores have the order of their numbers, so ranks do not depend
 * on batches or threads. options or NULL: defaults. Errors: no case; a score that is NaN; more negatives than there are
 * items outside a user's own; those of the scorer; out of memory; cancelled. */
ATT_API att_status att_rank(const att_holdout *h, const att_scorer *scorer, const att_ranking_options *options,
                            att_ranking *out);

/* A simple recommender that models are compared with. Popularity and neighbors score as the models of
 * att_recommender_fit do. */
typedef struct att_baseline att_baseline;

typedef enum att_baseline_kind {
    ATT_BASELINE_POPULARITY = 0, /* the number of training actions */
    ATT_BASELINE_NEIGHBORS,      /* item k-nearest neighbors: for each item of the history, the items that most often
                                  * occur with it in users' histories, by cosine (Sarwar et al. 2001); each user's last
                                  * 1,000 different items count */
    ATT_BASELINE_CONTENT         /* the cosine of an item's vector and the mean of the normalized vectors of the
                                  * history */
} att_baseline_kind;

typedef struct att_baseline_options {
    size_t size;
    int64_t neighbors;    /* of an item; 0: 100 */
    double decay;         /* in (0, 1]: factor of the weight of each item of the history for each item after it; 0: 0.6,
                           * or 1 for ATT_BASELINE_CONTENT */
    const float *vectors; /* [call] [items, width]: vectors of the log's items, for ATT_BASELINE_CONTENT; zeros: no
                           * vector */
    int64_t width;
    att_progress_fn progress; /* [call] counts items; or NULL */
    void *user;               /* [call] */
} att_baseline_options;
/* Makes a baseline from the training actions. The hold-out must outlive the result; vectors are copied. options or
 * NULL: defaults. Errors: options out of range; vectors that are missing, not needed or not finite; out of memory;
 * cancelled. */
ATT_API att_status att_baseline_new(const att_holdout *h, att_baseline_kind kind, const att_baseline_options *options,
                                    att_baseline **out);
ATT_API void att_baseline_free(att_baseline *b);
/* Returns the scorer of a baseline, valid as long as b. */
ATT_API att_scorer att_baseline_scorer(const att_baseline *b);

/* ---- 4 Models ----------------------------------------------------------- */

/* A Transformer over histories: SASRec (Kang, McAuley 2018), in which an item attends to those before it and each
 * position predicts the next item; or BERT4Rec (Sun et al. 2019), in which all items attend to all and a mask after the
 * history is predicted. The score of an item is the dot product of the last state and the item's vector, which is also
 * its embedding. Positions are counted from the end of a history; only the last max_positions items are used.
 *
 * Or a model that counts the actions of a log and is not trained (att_recommender_fit): item k-nearest neighbors, EASE
 * or popularity. It is written, opened and measured like the others, and recommends, but has no vectors of items and
 * does not attend: att_recommender_apply, _table, _vectors, _embed, _trace, _add_items, _open_for_training and
 * trainings fail with ATT_ERR_UNSUPPORTED. */
typedef struct att_recommender att_recommender;

typedef enum att_recommender_block {
    ATT_RECOMMENDER_BLOCK_PRE_NORM = 0,
    ATT_RECOMMENDER_BLOCK_POST_NORM,
    ATT_RECOMMENDER_BLOCK_SASREC /* as in the code of Kang, McAuley: Q = LN(x), K = V = x, residuals to LN(x), no output
                                  * projection */
} att_recommender_block;

typedef struct att_recommender_info {
    size_t size;
    const char *type; /* "attend-sasrec", "attend-bert4rec", "attend-neighbors", "attend-ease", "attend-popularity":
                       * valid as long as the model */
    int64_t items, hidden, layers, heads, intermediate, max_positions; /* of a model that counts: all 0 but items */
    att_recommender_block block;
    int64_t content_width; /* width of content vectors that are projected and added; 0: none */
    /* Settings of a model that counts; 0: it has no such setting. */
    int64_t neighbors; /* of an item */
    double decay;      /* factor of the weight of each item of the history for each item after it */
    double l2;         /* regularization of EASE */
} att_recommender_info;

/* Vectors of items from another source, such as embeddings of their titles. */
typedef struct att_item_content {
    size_t size;
    const float *vectors; /* [call] [items, width]; zeros: no vector */
    int64_t width;
    bool add; /* project the vectors by a trained matrix and add them to the items' own vectors, which begin as zeros;
               * false: they initialize the items' own vectors, projected at random if width is not that of the model */
} att_item_content;

/* Opens a model for inference. While a training replaces the files of a folder, or if it was killed then, the folder
 * has no weights; if it has a folder base/ with the model that the training began with, that model is opened instead.
 * options or NULL: defaults. */
ATT_API att_status att_recommender_open(att_ctx *ctx, const char *folder, const att_model_options *options,
                                        att_recommender **out);
/* att_recommender_open_for_training opens a model for training: its weights are f32 copies, except frozen ones. options
 * or NULL: defaults. att_recommender_new makes a model of items [n_items], at most 2,097,151 ids, with randomly
 * initialized weights from settings, a JSON text: {"model_type": "attend-sasrec" or "attend-bert4rec", "hidden_size":
 * 64, "num_hidden_layers": 2, "num_attention_heads": 1, "intermediate_size": 256, "max_position_embeddings": 50,
 * "block": "pre-norm", "post-norm" or "sasrec", "hidden_act": "gelu" or "relu"}. All except model_type may be left out.
 * Without "block" BERT4Rec has "post-norm"; the block "sasrec" has "relu" and intermediate_size = hidden_size by
 * default. content or NULL: none. */
ATT_API att_status att_recommender_open_for_training(att_ctx *ctx, const char *folder,
                                                     const att_trainable_options *options, att_recommender **out);
ATT_API att_status att_recommender_new(att_ctx *ctx, const char *settings, int64_t n_items, const char *const *items,
                                       const att_item_content *content, uint64_t seed, att_recommender **out);
/* Makes a model that counts the training actions of a hold-out, whose items it gets, with settings, a JSON text; all
 * except model_type may be left out:
 *   {"model_type": "attend-neighbors", "neighbors": 100, "decay": 0.6}: item k-nearest neighbors. The similarity of two
 *     items is the cosine of the sets of their users (Sarwar et al. 2001); a score is the sum of similarities to the
 *     items of the history, where an item weighs `decay` times the one after it. Other items have negative scores, in
 *     the order of popularity.
 *   {"model_type": "attend-ease", "l2": 500, "decay": 0.8}: the linear model of Steck 2019 in closed form. X [users,
 *     items] is 1 if a user has an item, P the inverse of X^T X + l2 I, and the weights are B[i, j] = -P[i, j] / P[j,
 *     j]. A score is the sum of B[i, j] over the items i of the history. Each counts once, at its last place; `decay`
 * is as for neighbors, and 1 in the paper. It needs items^2 floats, in memory and on the disk, and time for items^3
 *     multiply-adds; at most 32,768 items. Items without an action are not recommended.
 *   {"model_type": "attend-popularity"}: the number of training actions.
 * Each user's last 1,000 different items count. The model has no parameter that is trained. options or NULL: defaults;
 * progress counts items. Errors: settings; too many items; l2 too small for single precision; out of memory; cancelled.
 */
ATT_API att_status att_recommender_fit(const att_holdout *data, const char *settings, const att_call_options *options,
                                       att_recommender **out);
ATT_API void att_recommender_free(att_recommender *m);
ATT_API att_status att_recommender_describe(const att_recommender *m, att_recommender_info *info);
ATT_API att_status att_recommender_weights(const att_recommender *m, att_model_weights *weights);
/* Return item ids and their numbers: see att_interactions_options.items. NULL or -1: there is none. */
ATT_API const char *att_recommender_item(const att_recommender *m, int64_t item);
ATT_API int64_t att_recommender_find_item(const att_recommender *m, const char *id);
/* Returns the model's parameters: see attend_model.h. */
ATT_API const att_nn_params *att_recommender_params(const att_recommender *m);
/* Sets the number of actions of each item in the training data: counts [items], by which items are recommended for
 * histories without a known item. */
ATT_API att_status att_recommender_set_counts(att_recommender *m, const int64_t *counts);
/* Adds items [n_items], ids that the model does not have, to a model that was opened for training. Their vectors are
 * new; everything else keeps its values. content or NULL, as when the model was made: vectors of the added items. All
 * parameters become new objects and the old ones are freed, so optimizers and tapes that refer to these must not be
 * used afterwards. Error: a training of the model is open. */
ATT_API att_status att_recommender_add_items(att_recommender *m, int64_t n_items, const char *const *items,
                                             const att_item_content *content, uint64_t seed);
/* Writes a model that was opened for training, made or fitted: config.json, model.safetensors and items.json, a list of
 * ids. The folder is created if it does not exist. A model that is there is replaced such that a process that is
 * killed, or opens the folder meanwhile, never finds files of both. dtype is that of the weights; 0: f32. */
ATT_API att_status att_recommender_write(const att_recommender *m, const char *folder, att_dtype dtype);

typedef struct att_recommender_options {
    size_t size;
    float dropout;                /* in training: of embeddings, attention weights and each sublayer's result */
    uint64_t seed;                /* a different one for each step */
    const uint32_t *sequence_ids; /* [call] [n], if dropout > 0: identify the histories in the masks */
} att_recommender_options;
/* Computes states after the last norm: n histories, items [offsets[n]], offsets [n + 1], each of 1 to max_positions
 * items -> [offsets[n], hidden]. For BERT4Rec, item n_items is the mask. options or NULL: no dropout. Returns NULL on
 * error, like all operations. */
ATT_API att_var *att_recommender_apply(att_tape *t, const att_recommender *m, const int32_t *items,
                                       const int64_t *offsets, int64_t n, const att_recommender_options *options);
/* Computes the vectors of all items, including their content -> [items, hidden]. */
ATT_API att_var *att_recommender_table(att_tape *t, const att_recommender *m);

/* ---- 5 Recommending ----------------------------------------------------- */

typedef struct att_recommend_options {
    size_t size;
    int64_t k;            /* length of a list, at most the number of items; 0: 10 */
    bool exclude_seen;    /* leave out the items of the history */
    const int32_t *allow; /* [call] [n_allow]: if n_allow > 0, recommend only these items */
    int64_t n_allow;
    const int32_t *deny; /* [call] [n_deny]: never recommend these, even if they are allowed */
    int64_t n_deny;
    att_progress_fn progress; /* [call] counts histories; or NULL */
    void *user;               /* [call] */
    /* How the positions of a list depend on each other: see below. */
    const int32_t *category;  /* [call] [items], if max_per_category > 0: each item's, 0 to items - 1; -1: none */
    int64_t max_per_category; /* items of a category in a list; 0: no limit */
    double diversity;         /* 1 - lambda of maximal marginal relevance, in [0, 1]; 0: off */
    int64_t diversity_pool;   /* items among which it chooses, at least k; 0: 10 k */
    double new_share;         /* share of positions, in [0, 1], that new items have at least; 0: none. Not for
                               * EASE, which has no scores of new items */
    const int32_t *new_items; /* [call] [n_new_items]: these; n_new_items 0: all without an action in training */
    int64_t n_new_items;
} att_recommend_options;

/* A list is filled position by position. The ranking has the items that may be listed, by their scores, equal ones in
 * the order of items. Each position takes the item with the highest value among those whose category has fewer than
 * max_per_category items in the list; of equal values the first in the ranking. Position i, from 1, takes only new
 * items if the list has fewer than floor(i new_share) of them and one may be. Without diversity the value is the score;
 * a list with only a limit of categories has the highest sum of scores of all such lists.
 *
 * With diversity, an item's value is (1 - diversity) r - diversity c: maximal marginal relevance (Carbonell, Goldstein
 * 1998), with r = (score - lowest) / (highest - lowest), 0 if these are equal, and c = the largest cosine of its vector
 * and that of an item in the list, 0 in an empty list. Only the first diversity_pool items of the ranking are
 * considered (lowest and highest are theirs), and for positions of new items also the first diversity_pool new ones;
 * more, if the limit of categories would otherwise leave positions empty. */

typedef struct att_recommendation { /* att_recommendation_free frees the arrays */
    int64_t n, k;
    int32_t *items;   /* [n, k]: the best first; -1: there are no more */
    float *scores;    /* [n, k] */
    bool *by_popular; /* [n]: whether items are ranked by popularity, because the history has no item; scores are then
                       * counts */
    void *reserved[2];
    int64_t reserved_number[2];
} att_recommendation;
/* Finds the k items with the highest scores for n histories, items [offsets[n]], offsets [n + 1], which need not be in
 * the training data. The search is exact; equal scores are in the order of items. Lists do not include items without a
 * vector: in a model that adds content, those that had neither content nor an action in training. Each list is the same
 * whatever else is in the call, and for any number of threads. options or NULL: defaults. Errors: an item that the
 * model does not have; a history without items if the model has no counts; out of memory. */
ATT_API att_status att_recommend(const att_recommender *m, int64_t n, const int32_t *items, const int64_t *offsets,
                                 const att_recommend_options *options, att_recommendation *out);
ATT_API void att_recommendation_free(att_ctx *ctx, att_recommendation *r);
/* Finds the k items most similar to an item by the cosine of their vectors, without the item itself. out has n = 1, and
 * scores are cosines. Of item neighbors the cosine is that of the sets of users, of EASE the score is the weight
 * B[item, other]. options or NULL: defaults; exclude_seen is ignored. Errors: the item has no vector, or no action in a
 * model that counts; the model is one of popularity; those of att_recommend. */
ATT_API att_status att_recommender_similar(const att_recommender *m, int64_t item, const att_recommend_options *options,
                                           att_recommendation *out);
/* Finds for each of items [n] what att_recommender_similar finds for one: out has n lists. The list of an item without
 * a vector is empty. Memory beyond the lists: a copy of the vectors of all items, and at most 64 MiB. options or NULL:
 * defaults. Errors: those of att_recommender_similar, but not that an item has no vector. */
ATT_API att_status att_recommender_similar_items(const att_recommender *m, int64_t n, const int32_t *items,
                                                 const att_recommend_options *options, att_recommendation *out);
/* Computes the vectors of all items, including their content -> out [items, hidden]. Error: a vector is not finite. */
ATT_API att_status att_recommender_vectors(const att_recommender *m, float *out);
/* Computes vectors of n histories, items [offsets[n]], offsets [n + 1], none empty -> out [n, hidden]. Their dot
 * products with the vectors of items are the scores. options or NULL: defaults. Error: a vector is not finite. */
ATT_API att_status att_recommender_embed(const att_recommender *m, int64_t n, const int32_t *items,
                                         const int64_t *offsets, const att_call_options *options, float *out);
/* Traces one pass of the model (attend_trace.h) for a history, items [n]. The tokens are the last items, up to the
 * number of positions, and for BERT4Rec the mask, whose id is the number of items. SASRec has a decoder's side,
 * BERT4Rec an encoder's. The output of a token is the scores of all items; att_recommend uses those of the last token.
 * options or NULL: defaults. Errors: no item, or one that the model does not have; those of the options; out of
 * memory. */
ATT_API att_status att_recommender_trace(const att_recommender *m, int64_t n, const int32_t *items,
                                         const att_trace_options *options, att_trace **out);
/* Returns a scorer for att_rank, valid as long as m, with a log whose first items are the model's. Items that the model
 * does not have, or that have no vector, get the score -INFINITY. Histories are used without items that the model does
 * not have; if one is then empty, its scores are the counts. */
ATT_API att_scorer att_recommender_scorer(const att_recommender *m);

/* ---- 6 Training --------------------------------------------------------- */

/* The loss at a position whose next item is known; s(i): the score of item i. */
typedef enum att_item_loss {
    ATT_ITEM_LOSS_SOFTMAX = 0,     /* cross entropy of the softmax over all items */
    ATT_ITEM_LOSS_SAMPLED_SOFTMAX, /* cross entropy of the softmax over the item and the negatives */
    ATT_ITEM_LOSS_BINARY, /* -log sigmoid(s(item)) - sum log(1 - sigmoid(s(negative))); Kang, McAuley 2018 with one
                           * negative */
    ATT_ITEM_LOSS_GBCE    /* as ATT_ITEM_LOSS_BINARY, with sigmoid(s(item))^beta (Petrov, Macdonald 2023) */
} att_item_loss;

/* Training from the histories of a hold-out: it minimizes the mean loss over positions with AdamW. SASRec predicts each
 * item of a history except the first, BERT4Rec masked items. In a model with content, losses are over the items that
 * have training actions, so that vectors of other items remain those of their content. Weight decay applies to
 * matrices, but not to positions. In the paper beta2 is 0.98. */
typedef struct att_recommender_training_options {
    size_t size;
    const att_holdout *data; /* [object] its first items are the model's */
    int64_t batch;           /* histories; 0: 128 */
    bool with_replacement;   /* draw histories at random, as in the paper; false: each history once in an epoch */
    att_item_loss loss;
    int64_t negatives;  /* of the last three losses: negatives at each position, uniform outside the user's training
                         * items; 0: 1, or for sampled softmax and gBCE 256 (at most items - 1) */
    double calibration; /* t of gBCE, in [0, 1]: beta = a (t (1 - 1 / a) + 1 / a), a = negatives / (items - 1), which
                         * must not exceed 1 */
    double mask_share;  /* BERT4Rec: the share of items that are masked, in (0, 1]; 0: 0.2 */
    double last_mask_share; /* BERT4Rec: the share of histories whose last item alone is masked, in [0, 1] */
    float dropout;          /* in [0, 1) */
    /* The following fields are for att_recommender_training_open only. */
    const char *settings;            /* [call] settings of a new model, as in att_recommender_new; NULL: `model` is
                                      * used */
    const char *model;               /* [call] the folder of a model, to which the log's further items are added; or
                                      * NULL */
    const att_item_content *content; /* [call] content of a new model, or of the added items; or NULL */
} att_recommender_training_options;
/* att_recommender_training_new trains a model in memory, which was opened for training and must outlive the training.
 * It sets the counts of the model's items from options.data (att_recommender_set_counts). att_recommender_training_open
 * trains in a folder, which becomes a model folder. To choose the best model, use att_rank on the validation part and
 * att_training_keep_best. */
ATT_API att_status att_recommender_training_new(att_recommender *m, const att_training_options *common,
                                                const att_recommender_training_options *options, att_training **out);
ATT_API att_status att_recommender_training_open(att_ctx *ctx, const char *folder, const att_training_options *common,
                                                 const att_recommender_training_options *options, att_training **out);
ATT_API const att_recommender *att_training_recommender(const att_training *t); /* NULL for other trainings */

#ifdef __cplusplus
}
#endif
#endif
