/* What the layers share: parts of att_nn_params that are not public. */
#ifndef ATT_NN_H
#define ATT_NN_H

#include "attend_nn.h"
#include "attend_util.h"
#include "util/util.h"

/* att_options_read for a layer `name`; false: p is NULL or has an error */
bool att_nn_options_read(att_nn_params *p, const char *name, void *dst, size_t dst_size, const void *src,
                         const char *type);
/* Is there a layer to apply? Else the tape fails. */
static inline bool att_nn_given(att_tape *t, const char *function, const void *layer)
{
    return att_tape_require(t, function, ATT_NAMED({"l", layer}));
}
/* As att_nn_params_request, of a parameter that has no gradient but is changed by the forward pass of training: frozen
 * for optimizers, and p's own f32 copy wherever p may be trained. NULL after an error. */
att_param *att_nn_buffer(att_nn_params *p, const char *prefix, const char *name, int rank, const int64_t *dim,
                         const att_init *init);
/* Sets the first error of p, unless it has one; returns NULL. */
void *att_nn_fail(att_nn_params *p, att_status s, const char *format, ...) ATT_PRINTF(3, 4);
/* A copy of text that is freed with p; NULL: error */
char *att_nn_text(att_nn_params *p, const char *text);

/* Scaled dot products in f32; owned by p, one for all layers that need the same. NULL: error */
typedef struct att_nn_plan_sizes {
    int64_t heads, kv_heads, head_dim;
    bool causal;
    float dropout;
} att_nn_plan_sizes;
const att_plan *att_nn_plan(att_nn_params *p, const att_nn_plan_sizes *sizes);

/* Positions of `rows` rows, counted from the start of each of n sequences. offsets [n + 1], which must outlive them,
 * states where the sequences start; NULL: all have rows / n. `cache` or NULL: positions count on from its tokens.
 * False: the tape has failed. end frees them; of {0} it does nothing. (positions.c) */
typedef struct att_nn_positions {
    att_positions at;
    int64_t *memory; /* or NULL */
} att_nn_positions;
bool att_nn_positions_begin(att_tape *t, att_nn_positions *p, const int64_t *offsets, int64_t n, int64_t rows,
                            const att_cache *cache);
void att_nn_positions_end(att_tape *t, att_nn_positions *p);

/* Is a size of a layer, called `what` in its config, from 1 to 2^30, so that products of two fit? Else p has an error.
 */
bool att_nn_check_size(att_nn_params *p, const char *name, const char *what, int64_t size);

/* A linear layer whose initialization is chosen; bias NULL: it has none */
const att_nn_linear *att_nn_linear_init(att_nn_params *p, const char *name, int64_t in, int64_t out,
                                        const att_init *weight, const att_init *bias);
/* dropout(x W^T + b) + residual; dropout or NULL, residual or NULL */
att_var *att_nn_linear_dropout(att_tape *t, const att_nn_linear *l, att_var *x, att_var *residual,
                               const att_nn_dropout *dropout, uint64_t dropout_id);

/* ---- what encoder and decoder layers share (sublayer.c) */

/* What surrounds a sublayer: norms, by the order, and layer scale or NULL */
typedef struct att_nn_sublayer {
    att_nn_order order;
    const att_nn_norm *norm, *result_norm;
    att_param *scale;
} att_nn_sublayer;
/* Self-attention, of what the layer is applied to; attention as call has it, without its residual; feed-forward. */
att_var *att_nn_self_attend(att_tape *t, att_nn_sublayer s, const att_nn_attention *l, att_var *x,
                            const att_nn_layer_call *c);
att_var *att_nn_attend(att_tape *t, att_nn_sublayer s, const att_nn_attention *l, att_var *x,
                       att_nn_attention_call call);
att_var *att_nn_feed(att_tape *t, att_nn_sublayer s, const att_nn_feed_forward *l, att_var *x,
                     const att_nn_dropout *dropout);

/* Is the config's order one? Else p has an error. */
bool att_nn_check_layer(att_nn_params *p, const char *name, const att_nn_layer_config *c);
/* prefix.name: norms of the sublayer's argument or of the sum, and of its result; NULL: the order has none */
const att_nn_norm *att_nn_layer_norm(att_nn_params *p, const char *prefix, const char *name,
                                     const att_nn_layer_config *c);
const att_nn_norm *att_nn_layer_result_norm(att_nn_params *p, const char *prefix, const char *name,
                                            const att_nn_layer_config *c);
/* prefix.name of these features, initialized with c->layer_scale; NULL: c->layer_scale is 0 */
att_param *att_nn_layer_scale(att_nn_params *p, const char *prefix, const char *name, const att_nn_layer_config *c);
/* The attention of a layer's config: `given`, else by width, heads and the like. */
const att_nn_attention *att_nn_layer_attention(att_nn_params *p, const char *prefix, const char *name,
                                               const att_nn_layer_config *c, const att_nn_attention_config *given,
                                               bool causal);

#endif
