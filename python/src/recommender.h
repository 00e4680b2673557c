/* Logs of actions, and models that recommend. */
#ifndef ATT_PYTHON_RECOMMENDER_H
#define ATT_PYTHON_RECOMMENDER_H

#include "attend_recommend.h"
#include "module.h"

/* attend._attend.Log: a log, with what is held out of it (log.c) */
typedef struct interaction_log {
    PyObject_HEAD att_interactions *log;
    att_holdout *holdout;
    att_interactions_info info;
    att_holdout_info held;
    bool integer_users, integer_items; /* their ids are integers, else texts */
} interaction_log;

/* An id as Python has it. integer: as a number, if it is one as this is written without a leading zero or sign +. NULL
 * with an exception */
PyObject *id_object(const char *id, bool integer);

/* The log of an argument. NULL with an exception: it is something else */
interaction_log *log_of(module_state *state, PyObject *object);
/* Ranks what is held out of a log: {"ndcg": mean, ...}. options: a dict of att_ranking_options. NULL with an exception
 */
PyObject *log_rank(module_state *state, const interaction_log *l, const att_scorer *scorer, PyObject *options);

/* The model of attend._attend.Recommender (recommender.c). NULL with an exception: it is something else */
const att_recommender *recommender_of(module_state *state, PyObject *object);

#endif
