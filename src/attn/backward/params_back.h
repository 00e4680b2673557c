/* Gradients of the stages' parameters and tables, where any are wanted. */
#ifndef ATT_ATTN_PARAMS_BACK_H
#define ATT_ATTN_PARAMS_BACK_H

#include "attn/backward/tasks.h"
#include "attn/call/params.h"

/* In what order tasks add to what is broadcast over pairs. */
att_add_order att_params_back_order(const att_call *call, const att_attention_grads *g);
/* Numbers of one task's part, and of the sum of all. */
int64_t att_params_back_count(const att_call *call, const att_attention_grads *g);
int64_t att_params_back_sums(const att_call *call, const att_attention_grads *g);
/* Lets one head's param [n_params] add their gradients to the task's part, or in place. */
void att_params_back_view(const att_call *call, const att_attention_grads *g, const att_head *at, int64_t head_in_group,
                          float *part, att_param_view *param);
/* Before the tasks, and after them: parts [tasks][parts_stride], sums [att_params_back_sums]. */
void att_params_back_clear(const att_call *call, const att_attention_grads *g);
void att_params_back_sum(const att_call *call, const att_attention_grads *g, const att_backward_tasks *tasks,
                         const float *parts, int64_t parts_stride, double *sums);

#endif
