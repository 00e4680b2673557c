/* attend_optimizer.h - optimizers of parameters, learning rate schedules, the mean of checkpoints: torch.optim.
 *
 * Only one thread at a time may use an att_optimizer. attend.h states how arguments that may be NULL are marked. */
#ifndef ATTEND_OPTIMIZER_H
#define ATTEND_OPTIMIZER_H

#include "attend_learn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Add each parameter once. Each step then updates all parameters from their accumulated gradients:
 *
 *     att_optimizer_new(ctx, ATT_OPTIONS(att_optimizer_config, .beta2 = 0.98, .eps = 1e-9), &o);
 *     att_optimizer_add(o, weight, NULL);
 *     att_optimizer_add(o, bias, ATT_OPTIONS(att_param_options, .no_weight_decay = true));
 *     for (int64_t step = 1; step <= steps; step++) {
 *         for (int i = 0; i < n; i++) {                             // n batches a step: gradients accumulate
 *             att_tape_backward(t, loss(t, next_batch()), NULL);
 *             att_tape_reset(t);
 *         }
 *         att_schedule_rate(&schedule, step, &rate);
 *         att_optimizer_step(o, ATT_OPTIONS(att_update, .rate = rate, .scale = 1.0 / n, .clip = 1), &norm);
 *     }
 *
 * Other threads must not use the parameters during a step. */

typedef struct att_optimizer att_optimizer;

typedef enum att_optimizer_method {
    ATT_OPTIMIZER_ADAMW = 0, /* Adam with decoupled decay: x -= rate weight_decay x   (Loshchilov, Hutter 2019) */
    ATT_OPTIMIZER_ADAM,      /* weight_decay x is added to the gradient               (Kingma, Ba 2015) */
    ATT_OPTIMIZER_SGD        /* decay as for Adam; m = momentum m + gradient, x -= rate m   (PyTorch's SGD) */
} att_optimizer_method;

typedef struct att_optimizer_config {
    size_t size;
    att_optimizer_method method;
    double beta1, beta2, eps; /* Adam, AdamW; 0: 0.9, 0.999, 1e-8. Vaswani et al. 2017: 0.9, 0.98, 1e-9 */
    double momentum;          /* of ATT_OPTIMIZER_SGD */
    double weight_decay;      /* 0: none */
} att_optimizer_config;

/* Options of one parameter. */
typedef struct att_param_options {
    size_t size;
    bool no_weight_decay;       /* no weight decay, even if att_param_weight_decay is true */
    const int64_t *frozen_rows; /* [call] [n_frozen_rows], ascending: rows of the first dimension that are frozen */
    int64_t n_frozen_rows;
} att_param_options;

/* Makes an optimizer. Moments begin as zeros. config or NULL: defaults. Errors name the field. */
ATT_API att_status att_optimizer_new(att_ctx *ctx, const att_optimizer_config *config, att_optimizer **out);
ATT_API void att_optimizer_free(att_optimizer *o);
/* Adds a parameter, which must outlive o: f32, dense, with writable data. Parameters are numbered from 0 in the order
 * of these calls. A frozen parameter (att_param_set_frozen) may have any type and be read-only. It gets a number but no
 * moments, and is never updated, even if it is no longer frozen later. A parameter that is frozen after this call has
 * no gradient, so steps do not change it or its moments until it is trained again. options or NULL: defaults. Errors:
 * another type; strides; a parameter that was added before; rows out of range. */
ATT_API att_status att_optimizer_add(att_optimizer *o, att_param *param, const att_param_options *options);

typedef struct att_update {
    size_t size;
    double rate;  /* learning rate */
    double scale; /* factor of gradients: 1 / batches or 1 / tokens if they were accumulated; 0: 1 */
    double clip;  /* max norm: longer gradients are scaled down to it (Pascanu et al. 2013); 0: none */
} att_update;
/* Updates all parameters that have a gradient, then clears the gradients and invalidates packed copies. norm or NULL:
 * receives the Euclidean norm of all scaled gradients, before clipping. The bits are the same for any number of
 * threads. Errors: an invalid rate; no gradient at all; a gradient that is not finite (the message names it, and norm
 * is not finite either). After an error parameters and gradients are unchanged. */
ATT_API att_status att_optimizer_step(att_optimizer *o, const att_update *update, double *norm);

/* Returns the gradients of all trained parameters (those not frozen when they were added) as one buffer: *data
 * [*count], in the order of att_optimizer_add, each dense. Frozen rows are included, but the step ignores them. Between
 * backward and step the caller may read, change or overwrite the gradients, for example by a sum over machines:
 *
 *     att_tape_backward(t, loss, NULL);
 *     att_optimizer_gradients(o, &gradients, &n);
 *     exchange(gradients, n);
 *     att_optimizer_step(o, &update, NULL);
 *
 * The first call makes the buffer, copies existing gradients into it and frees their memory. From then on backward
 * writes into the buffer, the step reads it, and att_param_grad is a view of it. A later call returns the same buffer,
 * unless parameters were added meanwhile: then it makes a larger one and frees the old one. Each call sets the gradient
 * of a parameter that has none to zeros, so that the next step updates that parameter, too (its moments and weight
 * decay). The step and att_param_zero_grad set the buffer to zero, and parameters then have no gradient until the next
 * backward or call. A backward that fails leaves the buffer unchanged. The buffer belongs to o: after
 * att_optimizer_free parameters have no gradients. If two optimizers have a parameter, its gradient is in the buffer of
 * the last call. */
ATT_API att_status att_optimizer_gradients(att_optimizer *o, float **data, int64_t *count);

/* These return the optimizer's state, for checkpoints, as views that may be read and written between steps. A run whose
 * state and parameters are restored continues with the same bits. */
ATT_API att_tensor *att_optimizer_steps(att_optimizer *o); /* i64 [1]: number of steps so far */
/* Returns moment k of a parameter, in its shape, f32, dense: Adam's m (0) and v (1), or SGD's momentum (0). NULL if
 * there is none. Valid until the next att_optimizer_add. */
ATT_API att_tensor *att_optimizer_moment(att_optimizer *o, int64_t param, int k);

/* Learning rate schedules: the rate rises linearly from 0 to `max_rate` in `warmup` steps. Each kind states how it
 * continues. */
typedef enum att_schedule_kind {
    ATT_SCHEDULE_CONSTANT = 0, /* constant */
    ATT_SCHEDULE_INVERSE_SQRT, /* max_rate sqrt(warmup / step); with max_rate = 1 / sqrt(d_model warmup) it is eq. 3 of
                                * Vaswani et al. 2017 */
    ATT_SCHEDULE_COSINE, /* falls by half a cosine to `min_rate` at `steps`, then constant (Loshchilov, Hutter 2017) */
    ATT_SCHEDULE_LINEAR  /* falls linearly to `min_rate` at `steps`, then constant */
} att_schedule_kind;

typedef struct att_schedule {
    size_t size;
    att_schedule_kind kind;
    double max_rate;
    int64_t warmup;  /* steps; 0: none */
    int64_t steps;   /* ATT_SCHEDULE_COSINE, ATT_SCHEDULE_LINEAR: all steps, warmup included */
    double min_rate; /* ATT_SCHEDULE_COSINE, ATT_SCHEDULE_LINEAR */
} att_schedule;
/* Computes the learning rate of a step; the first step is 1. */
ATT_API att_status att_schedule_rate(const att_schedule *schedule, int64_t step, double *rate);

/* Averages checkpoints (Vaswani et al. 2017, section 6.1): out = the mean of x [n], the same parameter in n
 * checkpoints, summed in double. x: f32, f16 or bf16, dense, in out's shape. out: f32, dense; it may be one of x but
 * must not overlap with them otherwise. */
ATT_API att_status att_average(att_ctx *ctx, const att_tensor *x, int64_t n, const att_tensor *out);

#ifdef __cplusplus
}
#endif
#endif
