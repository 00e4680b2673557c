/* The definition of attention in double: what att_pair_describe tells, and what the tests hold everything else against.
 */
#ifndef ATT_ATTN_REFERENCE_H
#define ATT_ATTN_REFERENCE_H

#include "attn/call/call.h"

/* A view of rows of f32 that have not been transformed, one row at a time. The first of the plan's masks that leaves
 * the pair out, or -1. */
int att_ref_masked_by(const att_plan *plan, const att_head_view *view, int64_t q, int64_t k);
/* s[0]: the score, scaled; s[m + 1]: what modifier m makes of s[m]. Masks are left out. */
void att_ref_scores(const att_plan *plan, const att_head_view *view, int64_t q, int64_t k, double *s);
/* weights [tk] or NULL,
 * out [value_dim] or NULL; returns the row's log-sum-exp. */
double att_ref_attention_row(const att_plan *plan, const att_head_view *view, int64_t q, double *weights, double *out);
/* Gradients of one row's sum(dout * out) + dlse lse: adds to dq [head_dim], dk [tk, key_dim], dv [tk, value_dim], and
 * to the parameters' dparam[i], where not NULL; weights [tk] and out [value_dim] are those of
 * the row. */
typedef struct att_ref_grads {
    double *dq, *dk, *dv;
    double *dparam[ATT_MAX_PARAMS]; /* of the plan's parameters */
} att_ref_grads;
void att_ref_attention_row_backward(const att_plan *plan, const att_head_view *view, int64_t q, const double *weights,
                                    const double *out, const float *dout, float dlse, const att_ref_grads *g);

#endif
