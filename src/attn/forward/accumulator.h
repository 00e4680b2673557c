/* The state of the online softmax of some columns. */
#ifndef ATT_ATTN_ACCUMULATOR_H
#define ATT_ATTN_ACCUMULATOR_H

#include "attn/call/call.h"

/* The running maximum and sum of the softmax, [columns] each, and the output so far, o [value_dim][columns] in tiles.c
 * and [columns][value_dim] in decode.c. */
typedef struct att_accumulator {
    float *max, *sum, *o;
    bool begun; /* o has been written */
} att_accumulator;

/* Adds the sink of a plan that has one: its score, which has no value, joins the softmax of rows that attend to
 * something, maximum and sum [rows]. left [rows] receives the factor of their o. */
void att_add_sink(const att_plan *plan, const att_head_view *view, int rows, float *max, float *sum, float *left);

#endif
