/* A log in memory: the actions of each user in order, one user after another. */
#ifndef ATT_RECOMMEND_INTERACTIONS_H
#define ATT_RECOMMEND_INTERACTIONS_H

#include "io/progress.h"
#include "recommend/log_time.h"
#include "text/ids.h"

#include "attend_recommend.h"

struct att_interactions {
    att_ctx *ctx;
    att_interactions_info info;
    att_ids users, items;
    int64_t *offsets;     /* [users + 1]: the first action of each user */
    int32_t *item;        /* [actions] */
    double *time;         /* [actions]; or NULL */
    att_names info_texts; /* texts of info */
};

/* Actions in the order of a file, before they are sorted. */
typedef struct att_action {
    double time;
    int32_t user, item;
} att_action;

enum { ATT_ACTIONS_OF_BLOCK = 1 << 12 };
typedef struct att_action_block {
    struct att_action_block *next;
    int64_t n;
    att_action actions[ATT_ACTIONS_OF_BLOCK];
} att_action_block;

/* A log that is being read. It has blocks instead of one array that grows, so that it needs no more memory than the
 * actions. */
typedef struct att_log_builder {
    att_interactions *log;
    att_action_block *first, *last;
    bool drop_duplicates;
    const char *const *events; /* [n_events]: the events that are read */
    int64_t n_events;          /* 0: all */
    char other_event[48];      /* the first event that is not read */
    bool by_rating;            /* ratings of min_rating or more are read */
    double min_rating;
    int64_t min_count, known_items; /* of the options */
    att_time_kind times;            /* of a file */
    int64_t guessed;       /* the number of the column, from 1, whose times may be ratings; 0: they are not guessed */
    att_progress progress; /* in bytes of a file, or in actions, and 1 for sorting */
} att_log_builder;

/* Begins a log with the items of the options. */
att_status att_log_builder_init(att_log_builder *b, att_ctx *ctx, const att_interactions_options *options);
void att_log_builder_free(att_log_builder *b);
/* Adds an action. time is not used if the log has no times. */
att_status att_log_builder_add(att_log_builder *b, const att_where *where, att_byte_view user, att_byte_view item,
                               double time);
/* Sorts the actions into *out. label: the name of the log in errors. */
att_status att_log_builder_finish(att_log_builder *b, const char *label, att_interactions **out);

/* Leaves out users and items with fewer than min actions, until all that are left have as many (the k-core), and counts
 * what is left out. The first known_items items keep their numbers. Error: nothing is left. (log_core.c) */
att_status att_log_keep_core(att_interactions *log, int64_t min, int64_t known_items, const char *label);

/* Returns whether the times, in the order of the file, are probably ratings: few small numbers, *low to *high, that
 * occur often and in no order. */
bool att_log_has_ratings(const att_interactions *log, double *low, double *high);

/* Returns actions [begin, end) of the log as a view. */
static inline att_history att_history_of(const att_interactions *log, int64_t begin, int64_t end)
{
    return (att_history){log->item + begin, log->time ? log->time + begin : NULL, end - begin};
}

#endif
