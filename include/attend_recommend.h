/* attend_recommend.h - sequential recommendation: from a log of what users did, the items that come next.
 *
 * Chapters: 1 Interactions, 2 Splits, 3 Measures, 4 Models, 5 Recommending, 6 Training.
 *
 * Users and items have texts as ids, and numbers from 0, which index the arrays of this header; a history is a list of
 * items, oldest first. Many histories, of any lengths, are concatenated: items [offsets[n]], with offsets [n + 1],
 * ascending from 0. A model is a folder, as in attend_model.h, whose rules for names, files and threads hold here, too.
 * Arguments that may be NULL are marked as in attend.h. */
#ifndef ATTEND_RECOMMEND_H
#define ATTEND_RECOMMEND_H

#include "attend_metric.h"
#include "attend_trace.h"
#include "attend_train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1 Interactions ----------------------------------------------------- */

/* A log: actions, each of a user with an item, at a time. Read-only. */
typedef struct att_interactions att_interactions;

typedef enum att_interactions_format {
    ATT_INTERACTIONS_ANY = 0, /* what the first lines show */
    ATT_INTERACTIONS_LINES,   /* "user item", "user item time" or "user item rating time", separated by tabs, commas or
                               * semicolons, in which case ids may have spaces, or by spaces, which then may divide the
                               * date and the time of day, too; a first line of names is read as a heading. A third
                               * column of few small numbers is one of ratings: see att_interactions_info.ratings. Time
                               * before rating is read, too */
    ATT_INTERACTIONS_MOVIELENS, /* the same, separated by "::" */
    ATT_INTERACTIONS_INTER,     /* RecBole's .inter: tabs, with the header "user_id:token", "item_id:token", ... */
    ATT_INTERACTIONS_CSV,       /* with a header; separated by commas, semicolons or tabs, see att_table (RFC 4180) */
    ATT_INTERACTIONS_HISTORIES  /* a line for each user: "user item item ...", oldest first */
} att_interactions_format;

typedef struct att_interactions_options {
    size_t size;
    att_interactions_format format;
    const char *user, *item; /* [call] names of the columns of CSV, or of .inter without its types, in letters of either
                              * case and with or without blanks, "_" and "-"; or their numbers, from 1, also of lines
                              * and of CSV without a header; or NULL: a usual name, as user_id, customer_id, reviewerID;
                              * item_id, sku, product_id, asin, movieId; two of them are an error */
    const char *time; /* [call] likewise; "": do not read times; or NULL: a usual name, as timestamp, date, created_at,
                       * if there is one */
    bool drop_duplicates;     /* drop an action of a user with an item at a time after the first such one */
    const char *const *items; /* [call] [n_items]: ids of items that get the numbers 0 to n_items - 1, as those of a
                               * model; further items of the log follow */
    int64_t n_items;
    int64_t skip_bad_lines; /* leave out up to as many malformed records, see att_interactions_info.skipped; 0: none */
    att_progress_fn progress; /* [call] in bytes of the file, and of actions in memory in these; or NULL */
    void *progress_user;      /* [call] */
} att_interactions_options;

/* Times are numbers, or dates of ISO 8601: 1997-09-20, 1997-09-20 03:05, 1997-09-20T03:05:10.5+01:00, also with a blank
 * instead of T or before the zone, a comma before the fraction, +0100, Z or UTC, as 19970920T030510Z, or as 1997/9/20
 * 3:05, with "/" or "." and without zeros; without a zone they are in UTC. A column has one of both. Numbers stay as
 * they are; dates become seconds since the beginning of 1970. What unit numbers have is told by their size, of all of a
 * log together: see att_interactions_info.time_per_second. */

/* Reads a file of any size (see att_open_text), in at most 64 bytes a line, and for each user and each
 * item 64 bytes and twice its id. A line has at most 2^20 bytes, so that a longer history needs the format
 * ATT_INTERACTIONS_LINES.
 * Numbers of users and items are in the order of their first lines. Each user's actions are sorted by time; equal
 * times, and files without times, have the order of the file. An action whose user is empty, or NULL, NA,
 * N/A, NaN or None, as programs write what is missing, is that of a guest, left out and counted. options or NULL:
 * defaults. Errors, beyond the skip_bad_lines of the options, name file, line and field: a missing field or column; an
 * empty item, an id that is not UTF-8, has a zero byte or more than 4,096 bytes; a time that is neither a finite number
 * nor a date, a day that does not exist, an integer that a double cannot hold unless it is a time in nanoseconds, which
 * is rounded to 256 of them; lines of different kinds; no action; memory. */
ATT_API att_status att_interactions_open(att_ctx *ctx, const char *path, const att_interactions_options *options,
                                         att_interactions **out);
/* The same of actions in memory: users [n] and items [n] are ids, times [n] or NULL: none. options or NULL: defaults;
 * format and columns are not used. Errors name the action. */
ATT_API att_status att_interactions_new(att_ctx *ctx, int64_t n, const char *const *users, const char *const *items,
                                        const double *times, const att_interactions_options *options,
                                        att_interactions **out);
/* Reads one time as it is in a file, for a log with the time_per_second: the number, or of a date the seconds since
 * 1970 times per_second. is_date or NULL: whether it is one. Errors: as above; a date where per_second is 0. */
ATT_API att_status att_interactions_time(const char *text, double per_second, double *time, bool *is_date);
ATT_API void att_interactions_free(att_interactions *log);

typedef struct att_interactions_info {
    size_t size;
    const char
        *format; /* "lines", "MovieLens", "RecBole .inter", "CSV", "CSV without a header", "histories", "memory" */
    int64_t users, items, actions;
    int64_t longest;    /* actions of a user */
    bool timed;         /* has times */
    int64_t unsorted;   /* actions that are earlier than the user's action before it in the file */
    int64_t ties;       /* actions with the time of the user's action before, where the order is the file's */
    int64_t repeats;    /* actions with an item that the user has had before */
    int64_t duplicates; /* actions with user, item and time of an earlier one; kept, unless drop_duplicates; 0 without
                         * times */
    double time_per_second; /* how many units of the times are a second: 1, 1e3, 1e6 or 1e9, by which the last one is
                             * in the years 1973 to 2096, or 1 of dates; 0: none, or no times */
    int64_t unusual_times;  /* those that in this unit are not in these years */
    int64_t guests;         /* actions without a user, which are left out */
    int64_t skipped;        /* malformed records that were left out */
    const char *bad;        /* the sentence on the first of them, with its line; NULL: none. Valid as long as the log */
    const char *heading;    /* the first record, which in a format without a header was read as one; NULL: none */
    int64_t guessed_times;  /* the number of the column, from 1, that has the times by its place, not by its name; 0:
                             * none */
    bool ratings;           /* that column has few small numbers again and again, in no order: it was read as ratings,
                             * and there are no times */
    double lowest_rating, highest_rating;
    const char *unused_times; /* the name of a column that seems to have times, though it was not read; NULL: none.
                               * Valid as long as the log */
    int64_t repeated_users;   /* ATT_INTERACTIONS_HISTORIES: lines whose user has had a line before */
    const char *missing_user; /* guests are also users of this name, the first one that stands for a missing value, as
                               * NULL, NA and None; NULL: none */
    int64_t fields; /* ATT_INTERACTIONS_HISTORIES that was not asked for: of each line, if all have as many; else 0 */
} att_interactions_info;
ATT_API att_status att_interactions_describe(const att_interactions *log, att_interactions_info *info);
/* Ids, valid as long as the log; NULL: out of range. */
ATT_API const char *att_interactions_user(const att_interactions *log, int64_t user);
ATT_API const char *att_interactions_item(const att_interactions *log, int64_t item);
/* Numbers; -1: no such id. */
ATT_API int64_t att_interactions_find_user(const att_interactions *log, const char *id);
ATT_API int64_t att_interactions_find_item(const att_interactions *log, const char *id);

/* A view of one user's actions, oldest first. */
typedef struct att_history {
    const int32_t *items; /* [count] */
    const double *times;  /* [count]; NULL: the log has none */
    int64_t count;
} att_history;
/* Of user; count 0: out of range. */
ATT_API att_history att_interactions_history(const att_interactions *log, int64_t user);

/* ---- 2 Splits ----------------------------------------------------------- */

/* A log with some actions held out, to be predicted from those of the same user before them. */
typedef struct att_holdout att_holdout;

typedef enum att_holdout_kind {
    ATT_HOLDOUT_LEAVE_ONE_OUT = 0, /* the last action of each user is for the test, the one before for validation */
    ATT_HOLDOUT_TIME, /* by two points in time, the same for all users: actions before the first are for training; each
                       * user's first action from it on, if before the second, is for validation; the first from the
                       * second on for the test. Nothing of the future is trained on (Ji et al. 2023). */
    ATT_HOLDOUT_NONE  /* all actions are for training */
} att_holdout_kind;

typedef enum att_holdout_part { ATT_HOLDOUT_PART_VALID = 0, ATT_HOLDOUT_PART_TEST } att_holdout_part;

typedef struct att_holdout_options {
    size_t size;
    att_holdout_kind kind;
    int64_t min_actions; /* users with fewer are for training only; 0: 3, of ATT_HOLDOUT_LEAVE_ONE_OUT at least 3 */
    double valid_share, test_share; /* ATT_HOLDOUT_TIME: of the log's actions, in (0, 1), from each point on; 0: 0.1 */
    double valid_from,
        test_from; /* or these points in time, the first before the second; both 0: as the shares state */
} att_holdout_options;
/* The log must outlive the result. options or NULL: defaults. Errors: a log without times, shares or points in time
 * that leave no action before or between them. */
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
    int64_t cases[2];             /* of att_holdout_part: held-out actions */
    int64_t unseen[2];            /* of these, with an item that does not occur in training */
    int64_t repeats[2];           /* of these, with an item that the user has had before */
    int64_t train_only;           /* users with fewer than min_actions actions */
    int64_t without_history[2];   /* ATT_HOLDOUT_TIME: users whose first action is of the part; they are not cases */
    double valid_from, test_from; /* ATT_HOLDOUT_TIME */
} att_holdout_info;
ATT_API att_status att_holdout_describe(const att_holdout *h, att_holdout_info *info);
/* A user's actions for training; count 0: none, or out of range. */
ATT_API att_history att_holdout_train(const att_holdout *h, int64_t user);

/* A held-out action, and what the user did before it: at the test, the action for validation is part of it. */
typedef struct att_holdout_case {
    int64_t user;
    att_history history;
    int32_t target; /* item */
} att_holdout_case;
/* Case i of a part, in the order of users. Error: out of range. */
ATT_API att_status att_holdout_get(const att_holdout *h, att_holdout_part part, int64_t i, att_holdout_case *out);

/* ---- 3 Measures --------------------------------------------------------- */

/* What gives each item a score as the next one of a history. */
typedef struct att_scorer {
    /* items [offsets[n]] and offsets [n + 1]: n histories -> scores [n, n_items], of the log's items in their order;
     * NaN is an error, -INFINITY is after all others. */
    att_status (*score)(void *user, const int32_t *items, const int64_t *offsets, int64_t n, int64_t n_items,
                        float *scores);
    void *user;
} att_scorer;

/* What the held-out item is ranked among. Samples are only for comparison with papers: they order models otherwise than
 * all items do (Krichene, Rendle 2020). */
typedef enum att_candidates {
    ATT_CANDIDATES_ALL = 0,          /* all items */
    ATT_CANDIDATES_OUTSIDE_TRAINING, /* uniform outside the user's items for training, with repetition: the held-out
                                      * items can be among them (the protocol of Kang, McAuley 2018) */
    ATT_CANDIDATES_OUTSIDE_HISTORY,  /* uniform, different ones outside all items of the user (Zhou et al. 2020) */
    ATT_CANDIDATES_BY_POPULARITY     /* the same, drawn by their numbers of actions in the log (Sun et al. 2019) */
} att_candidates;

typedef struct att_ranking_options {
    size_t size;
    att_holdout_part part;
    int64_t k;         /* 0: 10 */
    bool exclude_seen; /* items of the history are not candidates; where the held-out one is among them, it has no rank
                        */
    bool leave_out_unseen; /* held-out items that do not occur in training are not counted, only their number is */
    att_candidates candidates;
    int64_t negatives; /* of samples; 0: 100 */
    int64_t draws;     /* of samples, for each user; results are their mean; 0: 5 */
    uint64_t seed;     /* of samples: each depends on it, the user and the number of the draw alone */
    int64_t batch;     /* histories of a call of the scorer, at most; 0: 1024, fewer where scores exceed 64 MiB */
    int32_t *ranks; /* [call] [cases, draws], draws being 1 without samples: from 1; 0: none, or not counted; or NULL */
    att_progress_fn progress; /* [call] or NULL */
    void *user;               /* [call] */
} att_ranking_options;

typedef struct att_ranking {
    size_t size;
    int64_t cases;              /* counted */
    int64_t unseen;             /* held-out items that do not occur in training, counted or not */
    int64_t repeats;            /* counted cases whose item is in the history */
    int64_t k, candidates;      /* candidates: all items, or the sample and the held-out item */
    att_interval hr, ndcg, mrr; /* means over cases: see att_rank_measures */
    double coverage;            /* share of the log's items that are among the k best of all for some user */
    double popularity;          /* mean number of training actions of those k best */
} att_ranking;
/* Ranks the held-out item of each case. Items with equal scores have the order of their numbers, so ranks do not depend
 * on batches or threads. options or NULL: defaults. Errors: no case; a score that is NaN; more negatives than a user
 * has items outside; the scorer's; memory; cancelled. */
ATT_API att_status att_rank(const att_holdout *h, const att_scorer *scorer, const att_ranking_options *options,
                            att_ranking *out);

/* What models have to beat. */
typedef struct att_baseline att_baseline;

typedef enum att_baseline_kind {
    ATT_BASELINE_POPULARITY = 0, /* the number of training actions */
    ATT_BASELINE_NEIGHBORS,      /* item k-nearest neighbors: for each item of the history, the items that most users
                                  * have besides it, by cosine (Sarwar et al. 2001); of each user the last 1,000
                                  * different items count */
    ATT_BASELINE_CONTENT         /* the cosine of an item's vector and the mean of the history's, each of length 1 */
} att_baseline_kind;

typedef struct att_baseline_options {
    size_t size;
    int64_t neighbors;    /* of an item; 0: 100 */
    double decay;         /* in (0, 1]: of the weight of each item of the history for each one after it; 0: 0.6; of a
                           * content baseline: 1 */
    const float *vectors; /* [call] [items, width]: of the log's items, for ATT_BASELINE_CONTENT; zeros: no vector */
    int64_t width;
    att_progress_fn progress; /* [call] in items; or NULL */
    void *user;               /* [call] */
} att_baseline_options;
/* From the actions for training. The hold-out must outlive the result, vectors are copied. options or NULL: defaults.
 * Errors: options out of range; vectors that are missing, not wanted or not finite; memory; cancelled. */
ATT_API att_status att_baseline_new(const att_holdout *h, att_baseline_kind kind, const att_baseline_options *options,
                                    att_baseline **out);
ATT_API void att_baseline_free(att_baseline *b);
/* Valid as long as b. */
ATT_API att_scorer att_baseline_scorer(const att_baseline *b);

/* ---- 4 Models ----------------------------------------------------------- */

/* A Transformer over histories: SASRec (Kang, McAuley 2018), in which an item attends to those before it and each
 * position predicts the next item; or BERT4Rec (Sun et al. 2019), in which all attend to all and a mask after the
 * history is predicted. The score of an item is the product of the last state and the item's vector, which is also the
 * embedding. Positions are counted from the end of a history; of a longer one the last max_positions items count. */
typedef struct att_recommender att_recommender;

typedef enum att_recommender_block {
    ATT_RECOMMENDER_BLOCK_PRE_NORM = 0,
    ATT_RECOMMENDER_BLOCK_POST_NORM,
    ATT_RECOMMENDER_BLOCK_SASREC /* the code of Kang, McAuley: Q = LN(x), K = V = x, residuals to LN(x), no output
                                    projection */
} att_recommender_block;

typedef struct att_recommender_info {
    size_t size;
    const char *type; /* "attend-sasrec", "attend-bert4rec": valid as long as the model */
    int64_t items, hidden, layers, heads, intermediate, max_positions;
    att_recommender_block block;
    int64_t content_width; /* of vectors that are projected and added; 0: none */
} att_recommender_info;

/* Vectors of items that are known from elsewhere, as embeddings of their titles. */
typedef struct att_item_content {
    size_t size;
    const float *vectors; /* [call] [items, width]; zeros: no vector */
    int64_t width;
    bool add; /* projected by a matrix that is learned, and added to the item's own vector, which begins at zero; false:
               * the start of the item's own vector, projected at random if width is not that of the model */
} att_item_content;

/* A folder whose training is replacing the model's files, or was killed then, has no weights for that while: if it has
 * a folder base, with the model that the training began with, that one is opened. options or NULL: defaults. */
ATT_API att_status att_recommender_open(att_ctx *ctx, const char *folder, const att_model_options *options,
                                        att_recommender **out);
/* For training, with f32 weights of its own but for frozen ones, options or NULL: defaults; or a new model of items
 * [n_items], at most 2,097,151 ids, with randomly initialized weights from settings, a JSON text: {"model_type":
 * "attend-sasrec" or "attend-bert4rec", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 1,
 * "intermediate_size": 256, "max_position_embeddings": 50, "block": "pre-norm", "post-norm" or "sasrec", "hidden_act":
 * "gelu" or "relu"}, where all but model_type may be left out; the block of BERT4Rec is then "post-norm", and that of
 * "sasrec" has "relu" and intermediate_size = hidden_size. content or NULL: none. */
ATT_API att_status att_recommender_open_for_training(att_ctx *ctx, const char *folder,
                                                     const att_trainable_options *options, att_recommender **out);
ATT_API att_status att_recommender_new(att_ctx *ctx, const char *settings, int64_t n_items, const char *const *items,
                                       const att_item_content *content, uint64_t seed, att_recommender **out);
ATT_API void att_recommender_free(att_recommender *m);
ATT_API att_status att_recommender_describe(const att_recommender *m, att_recommender_info *info);
ATT_API att_status att_recommender_weights(const att_recommender *m, att_model_weights *weights);
/* Item ids, as those of a log: see att_interactions_options.items. NULL, -1: there is none. */
ATT_API const char *att_recommender_item(const att_recommender *m, int64_t item);
ATT_API int64_t att_recommender_find_item(const att_recommender *m, const char *id);
/* Its parameters: see attend_model.h. */
ATT_API const att_nn_params *att_recommender_params(const att_recommender *m);
/* The number of actions of each item in the training data: counts [items], for histories without a known item. */
ATT_API att_status att_recommender_set_counts(att_recommender *m, const int64_t *counts);
/* Adds items [n_items], ids that the model does not have, to one that was opened for training: their vectors are new,
 * all else stays. content or NULL, as the model was made: vectors of the added items. All parameters are new ones:
 * those that att_recommender_params has given are freed, so optimizers and tapes that refer to them must not be used
 * any more; while a training of the model is open it is an error. */
ATT_API att_status att_recommender_add_items(att_recommender *m, int64_t n_items, const char *const *items,
                                             const att_item_content *content, uint64_t seed);
/* Writes a model that was opened for training: config.json, model.safetensors and items.json, a list of ids. The folder
 * is created if it does not exist. dtype: of the weights; 0: f32. */
ATT_API att_status att_recommender_write(const att_recommender *m, const char *folder, att_dtype dtype);

typedef struct att_recommender_options {
    size_t size;
    float dropout;                /* in training: of embeddings, attention weights and each sublayer's result */
    uint64_t seed;                /* another one for each step */
    const uint32_t *sequence_ids; /* [call] [n], if dropout > 0: identify the histories in the masks */
} att_recommender_options;
/* States after the last norm: n histories, items [offsets[n]], offsets [n + 1], each of 1 to max_positions items ->
 * [offsets[n], hidden]. Of BERT4Rec, item n_items is the mask. options or NULL: no dropout. NULL on error, like all
 * operations. */
ATT_API att_var *att_recommender_apply(att_tape *t, const att_recommender *m, const int32_t *items,
                                       const int64_t *offsets, int64_t n, const att_recommender_options *options);
/* Vectors of all items, with their content: -> [items, hidden]. */
ATT_API att_var *att_recommender_table(att_tape *t, const att_recommender *m);

/* ---- 5 Recommending ----------------------------------------------------- */

typedef struct att_recommend_options {
    size_t size;
    int64_t k;            /* items of a list, at most all; 0: 10 */
    bool exclude_seen;    /* without the items of the history */
    const int32_t *allow; /* [call] [n_allow]: only these items, if n_allow > 0 */
    int64_t n_allow;
    const int32_t *deny; /* [call] [n_deny]: without these, even if they are allowed */
    int64_t n_deny;
    att_progress_fn progress; /* [call] in histories; or NULL */
    void *user;               /* [call] */
} att_recommend_options;

typedef struct att_recommendation { /* att_recommendation_free frees the arrays */
    int64_t n, k;
    int32_t *items;   /* [n, k]: the best first; -1: there are no more */
    float *scores;    /* [n, k] */
    bool *by_popular; /* [n]: the history has no item, so items are by popularity, and scores are counts */
    void *reserved[2];
    int64_t reserved_number[2];
} att_recommendation;
/* The k items with the highest scores of n histories, items [offsets[n]], offsets [n + 1], which training need not have
 * seen; exactly, equal scores in the order of items. Items without a vector are in no list: those that had neither
 * content nor an action in training, in a model that adds content. Each list is the same whatever else is in the call,
 * and for any number of threads. options or NULL: defaults. Errors: an item that the model does not have; a history
 * without items where the model has no counts; memory. */
ATT_API att_status att_recommend(const att_recommender *m, int64_t n, const int32_t *items, const int64_t *offsets,
                                 const att_recommend_options *options, att_recommendation *out);
ATT_API void att_recommendation_free(att_ctx *ctx, att_recommendation *r);
/* The k items nearest to an item by the cosine of their vectors, without itself, scores being cosines: out has n = 1.
 * options or NULL: defaults; exclude_seen has no meaning. Errors: the item has no vector; as above. */
ATT_API att_status att_recommender_similar(const att_recommender *m, int64_t item, const att_recommend_options *options,
                                           att_recommendation *out);
/* Vectors of all items, with their content: -> out [items, hidden]. Error: one is not finite. */
ATT_API att_status att_recommender_vectors(const att_recommender *m, float *out);
/* Vectors of n histories, items [offsets[n]], offsets [n + 1], none empty, whose products with those of items are the
 * scores: -> out [n, hidden]. options or NULL: defaults. Error: one is not finite. */
ATT_API att_status att_recommender_embed(const att_recommender *m, int64_t n, const int32_t *items,
                                         const int64_t *offsets, const att_call_options *options, float *out);
/* A trace (attend_trace.h) of a history, items [n]: its tokens are the last items, as many as there are positions, and
 * of BERT4Rec the mask, whose id is the number of items. SASRec has a decoder's side, BERT4Rec an encoder's. The output
 * of a token is the scores of all items, those of the last one what att_recommend has. options or NULL: defaults.
 * Errors: no item, or one that the model does not know; those of the options; memory. */
ATT_API att_status att_recommender_trace(const att_recommender *m, int64_t n, const int32_t *items,
                                         const att_trace_options *options, att_trace **out);
/* For att_rank, with a log whose first items are the model's: items that the model does not have, or that have no
 * vector, get -INFINITY, and those of histories that it does not have are left out; histories that then are empty get
 * the counts. Valid as long as m. */
ATT_API att_scorer att_recommender_scorer(const att_recommender *m);

/* ---- 6 Training --------------------------------------------------------- */

/* The loss at a position whose next item is known; s(i): the score of item i. */
typedef enum att_item_loss {
    ATT_ITEM_LOSS_SOFTMAX = 0,     /* cross entropy of the softmax over all items */
    ATT_ITEM_LOSS_SAMPLED_SOFTMAX, /* over the item and the negatives */
    ATT_ITEM_LOSS_BINARY, /* -log sigmoid(s(item)) - sum log(1 - sigmoid(s(negative))): Kang, McAuley 2018 with one */
    ATT_ITEM_LOSS_GBCE    /* the same, with sigmoid(s(item))^beta (Petrov, Macdonald 2023) */
} att_item_loss;

/* Training from the histories of a hold-out: minimizes the mean loss over positions with AdamW. SASRec predicts each
 * item but the first of a history; BERT4Rec masked ones. In a model with content, losses are over the items that have
 * training actions, so that others keep the place that their content gives them. Weight decay is of
 * matrices, but not of positions. In the paper beta2 is 0.98. */
typedef struct att_recommender_training_options {
    size_t size;
    const att_holdout *data; /* [object] its first items are the model's */
    int64_t batch;           /* histories; 0: 128 */
    bool with_replacement;   /* histories are drawn at random, as in the paper; false: each once in an epoch */
    att_item_loss loss;
    int64_t negatives;  /* of the three last losses, at each position, uniform outside the user's training items; 0:
                         * 1, of sampled softmax and gBCE 256, or items - 1 if that is less */
    double calibration; /* t of gBCE, in [0, 1]: beta = a (t (1 - 1 / a) + 1 / a), a = negatives / (items - 1), which
                         * must not exceed 1 */
    double mask_share;  /* BERT4Rec: the share of items that are masked, in (0, 1]; 0: 0.2 */
    double last_mask_share; /* BERT4Rec: the share of histories whose last item alone is masked, in [0, 1] */
    float dropout;          /* in [0, 1) */
    /* The following fields are for att_recommender_training_open only. */
    const char *settings;            /* [call] of a new model, as att_recommender_new; NULL: `model` instead */
    const char *model;               /* [call] the folder of a model, which gets the log's further items; or NULL */
    const att_item_content *content; /* [call] of a new model, or of the added items; or NULL */
} att_recommender_training_options;
/* In memory: the model, which was opened for training, must outlive the training, and gets the counts of its items from
 * options.data (att_recommender_set_counts). In a folder, which becomes a model
 * folder. The best model is chosen by att_rank of the validation part and att_training_keep_best. */
ATT_API att_status att_recommender_training_new(att_recommender *m, const att_training_options *common,
                                                const att_recommender_training_options *options, att_training **out);
ATT_API att_status att_recommender_training_open(att_ctx *ctx, const char *folder, const att_training_options *common,
                                                 const att_recommender_training_options *options, att_training **out);
ATT_API const att_recommender *att_training_recommender(const att_training *t); /* NULL for other trainings */

#ifdef __cplusplus
}
#endif
#endif
