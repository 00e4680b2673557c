/* The definition of attention in double, which att_pair_describe reports and with which tests compare everything else.
 */
#ifndef ATT_ATTN_REFERENCE_H
#define ATT_ATTN_REFERENCE_H

#include "attn/call/call.h"

/* These functions take a view of rows of f32 that have not been transformed, one row at a time. att_ref_masked_by
 * returns the first of the plan's masks that excludes the pair, or -1. */
int att_ref_masked_by(const att_plan *plan, const att_head_view *view, int64_t q, int64_t k);
/* Computes s[0], the scaled score, and s[m + 1], the result of modifier m for s[m], without masks. */
void att_ref_scores(const att_plan *plan, const att_head_view *view, int64_t q, int64_t k, double *s);
/* Computes weights [tk] or NULL and out [value_dim] or NULL; returns the row's log-sum-exp. */
double att_ref_attention_row(const att_plan *plan, const att_head_view *view, int64_t q, double *weights, double *out);
/* Gradients of one row's sum(dout * out) + dlse lse, which are added to dq [head_dim], dk [tk, key_dim], dv [tk,
 * value_dim], and to the parameters' dparam[i] that are not NULL; weights [tk] and out [value_dim] are those of the
 * row. */
typedef struct att_ref_grads {
    double *dq, *dk, *dv;
    double *dparam[ATT_MAX_PARAMS]; /* of the plan's parameters */
} att_ref_grads;
void att_ref_attention_row_backward(const att_plan *plan, const att_head_view *view, int64_t q, const double *weights,
                                    const double *out, const float *dout, float dlse, const att_ref_grads *g);

#endif
