/* A call of attention as Python gives it. */
#ifndef ATT_PYTHON_ATTENTION_H
#define ATT_PYTHON_ATTENTION_H

#include "module.h"

enum { ATTENTION_STAGES = 16, ATTENTION_PARAMETERS = 16 };

/* The arguments of scaled_dot_product_attention that are not operands, as they were given; borrowed */
typedef struct attention_options {
    PyObject *attn_mask, *scale, *window, *alibi, *softcap, *lengths, *align, *seed, *score_params, *score_dim, *stages;
    double dropout_p;
    int is_causal, enable_gqa;
    PyObject *score; /* a name or an own one */
} attention_options;

/* Of which a plan is made; compared byte by byte, so padding is zero, too */
typedef struct attention_key {
    att_attention_spec spec; /* spec.stage is set when the plan is made */
    att_stage stage[ATTENTION_STAGES];
} attention_key;

typedef struct attention_call {
    attention_key key;
    att_attention_args args;
    int rank;                /* of the operands as given: 2, 3 or 4 */
    tensor_argument q, k, v; /* of rank 4 */
    tensor_argument given[ATTENTION_PARAMETERS];
    att_tensor param[ATTENTION_PARAMETERS];
    int n_given;
    int64_t *lengths;                    /* [B] or NULL */
    uint32_t *ids;                       /* of sequences, for dropout [B] or NULL */
    PyObject *own[ATTENTION_STAGES + 1]; /* scores, modifiers and masks of the caller's, borrowed, or NULL */
} attention_call;

/* Reads operands and options into a call, which attention_call_release releases in any case. false with an exception */
bool attention_call_read(module_state *state, PyObject *const operands[3], const attention_options *options,
                         attention_call *call);
void attention_call_release(attention_call *call);
/* One more operand, in the shape of the call: rank 4. lse: rank 3 */
bool attention_operand(module_state *state, PyObject *object, const char *name, tensor_use use,
                       const attention_call *call, bool lse, tensor_argument *out);
/* Runs a call without the GIL, with a plan of its key. false with an exception */
bool attention_run_forward(module_state *state, module_plans *plans, attention_call *call);
bool attention_run_backward(module_state *state, module_plans *plans, attention_call *call,
                            const att_attention_grads *grads);

/* ---- plans (plans.c): kept by their key, which other threads may use at the same time */
typedef struct plan_of_spec {
    attention_key key;
    att_plan *plan;
    PyObject *own[ATTENTION_STAGES + 1]; /* to which it points, or NULL */
    int uses;                            /* calls that run */
    struct plan_of_spec *next;
} plan_of_spec;

/* A plan of the call's key, until plans_leave. NULL with an exception */
plan_of_spec *plans_enter(module_state *state, module_plans *plans, const attention_call *call);
void plans_leave(module_plans *plans, plan_of_spec *plan);
void plans_free(module_plans *plans);
int plans_traverse(const module_plans *plans, visitproc visit, void *arg);

#endif
