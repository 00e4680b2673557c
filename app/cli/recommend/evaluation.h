/* An evaluation of recommenders: its protocol, what it found, and how that is printed. */
#ifndef CLI_RECOMMEND_EVALUATION_H
#define CLI_RECOMMEND_EVALUATION_H

#include "interactions.h"
#include "log_times.h"
#include "recommender.h"

/* The protocol, as options state it. */
typedef struct evaluation_protocol {
    int part, candidates;           /* att_holdout_part, att_candidates */
    int64_t negatives, draws, seed; /* negatives and draws 0: the defaults */
    int64_t neighbors;              /* of the baselines */
    double decay, l2;
    bool exclude_seen, leave_out_unseen;
} evaluation_protocol;

enum { EVALUATION_CUTOFFS = 8, EVALUATION_SYSTEMS = 5 };
enum { EVALUATION_RESAMPLED = 100000 }; /* up to as many cases, differences have intervals by resampling */

/* A model or a baseline. */
typedef struct evaluated {
    const char *name;
    att_ranking r[EVALUATION_CUTOFFS];
    int32_t *ranks;                              /* [cases, draws] */
    att_rank_measures minus[EVALUATION_CUTOFFS]; /* of a baseline: the model minus it, with paired intervals */
} evaluated;

typedef struct evaluation {
    att_ctx *ctx;
    const evaluation_protocol *protocol;
    const cli_interactions_options *data;
    const char *model_name; /* NULL: baselines alone */
    cli_recommender m;      /* open if model_name */
    cli_interactions log;
    int64_t log_items, known_items; /* of the log; of these, those that the model has */
    int64_t without_known;          /* histories with none of these */
    att_recommender_info ease;      /* of the baseline; l2 0: there is none */
    int n, n_cutoffs;
    int64_t cutoff[EVALUATION_CUTOFFS];   /* of -k */
    evaluated system[EVALUATION_SYSTEMS]; /* [n]: baselines, then the model */
} evaluation;

/* Returns the number of samples for each case: 1 if candidates are all items. */
int64_t evaluation_draws(const evaluation *e);
/* Returns the point in time from which on actions are held out. */
const char *evaluation_point(const evaluation *e, char text[CLI_TIME_BYTES]);
/* Returns whether differences have intervals by resampling, which takes minutes for a million cases; of more cases they
 * are those of the normal distribution, from which the others then hardly differ. */
static inline bool evaluation_resamples(const evaluation *e)
{
    return e->log.held.cases[e->protocol->part] <= EVALUATION_RESAMPLED;
}
/* Computes the differences between the model, which is the last system, and each baseline. */
int evaluation_compare(evaluation *e);
/* Prints all on standard output. */
int evaluation_print(const evaluation *e, bool json);

#endif
