/* Gradients of the stages' parameters and tables, if any are wanted. */
#ifndef ATT_ATTN_PARAMS_BACK_H
#define ATT_ATTN_PARAMS_BACK_H

#include "attn/backward/tasks.h"
#include "attn/call/params.h"

/* Returns the order in which tasks add to a gradient that is broadcast over pairs. */
att_add_order att_params_back_order(const att_call *call, const att_attention_grads *g);
/* Return how many numbers one task's partial gradients have, and their sums. */
int64_t att_params_back_count(const att_call *call, const att_attention_grads *g);
int64_t att_params_back_sums(const att_call *call, const att_attention_grads *g);
/* Makes one head's param [n_params] add their gradients to the task's partial ones, or in place. */
void att_params_back_view(const att_call *call, const att_attention_grads *g, const att_head *at, int64_t head_in_group,
                          float *part, att_param_view *param);
/* Clears gradients before the tasks, and adds the partial ones after them: parts [tasks][parts_stride], sums
 * [att_params_back_sums]. */
void att_params_back_clear(const att_call *call, const att_attention_grads *g);
void att_params_back_sum(const att_call *call, const att_attention_grads *g, const att_backward_tasks *tasks,
                         const float *parts, int64_t parts_stride, double *sums);

#endif
