/* Declarations that layers share: parts of att_nn_params that are not public. */
#ifndef ATT_NN_H
#define ATT_NN_H

#include "attend_nn.h"
#include "attend_util.h"
#include "util/util.h"

/* Reads options of a layer `name`, as att_options_read does; false: p is NULL or has an error. */
bool att_nn_options_read(att_nn_params *p, const char *name, void *dst, size_t dst_size, const void *src,
                         const char *type);
/* Returns whether there is a layer to apply; if not, the tape fails. */
static inline bool att_nn_given(att_tape *t, const char *function, const void *layer)
{
    return att_tape_require(t, function, ATT_NAMED({"l", layer}));
}
/* Requests a parameter that has no gradient but that the forward pass of training changes: it is frozen for optimizers,
 * and p's own f32 copy if p is trainable. Otherwise as att_nn_params_request. NULL after an error. */
att_param *att_nn_buffer(att_nn_params *p, const char *prefix, const char *name, int rank, const int64_t *dim,
                         const att_init *init);
/* Sets the first error of p, unless it has one; returns NULL. */
void *att_nn_fail(att_nn_params *p, att_status s, const char *format, ...) ATT_PRINTF(3, 4);
/* Returns a copy of text that is freed with p; NULL: error. */
char *att_nn_text(att_nn_params *p, const char *text);

/* A plan of scaled dot products in f32, owned by p and shared by all layers of these sizes. NULL: error. */
typedef struct att_nn_plan_sizes {
    int64_t heads, kv_heads, head_dim;
    bool causal;
    int64_t window; /* positions before and after the query's; 0: all */
    float scale;    /* 0: 1 / sqrt(head_dim) */
    float dropout;
} att_nn_plan_sizes;
const att_plan *att_nn_plan(att_nn_params *p, const att_nn_plan_sizes *sizes);

/* Positions of `rows` rows, counted from the start of each of n sequences. offsets [n + 1], which must outlive them,
 * states where the sequences start; NULL: all have rows / n. cache or NULL: positions continue after its tokens. False:
 * the tape has failed. att_nn_positions_end frees them; for {0} it does nothing. (positions.c) */
typedef struct att_nn_positions {
    att_positions at;
    int64_t *memory; /* or NULL */
} att_nn_positions;
bool att_nn_positions_begin(att_tape *t, att_nn_positions *p, const int64_t *offsets, int64_t n, int64_t rows,
                            const att_cache *cache);
void att_nn_positions_end(att_tape *t, att_nn_positions *p);

/* Checks that a size of a layer, called `what` in its config, is from 1 to 2^30, so that products of two fit; if not, p
 * has an error.
 */
bool att_nn_check_size(att_nn_params *p, const char *name, const char *what, int64_t size);

/* Makes a linear layer with the given initialization; bias NULL: it has none. */
const att_nn_linear *att_nn_linear_init(att_nn_params *p, const char *name, int64_t in, int64_t out,
                                        const att_init *weight, const att_init *bias);
/* Computes dropout(x W^T + b) + residual; dropout or NULL, residual or NULL. */
att_var *att_nn_linear_dropout(att_tape *t, const att_nn_linear *l, att_var *x, att_var *residual,
                               const att_nn_dropout *dropout, uint64_t dropout_id);

/* ---- what encoder and decoder layers share (sublayer.c) */

/* The parts around a sublayer: norms, by the order, and layer scale or NULL. */
typedef struct att_nn_sublayer {
    att_nn_order order;
    const att_nn_norm *norm, *result_norm;
    att_param *scale;
} att_nn_sublayer;
/* Apply sublayers: self-attention of the layer's x, attention as `call` describes it (without its residual), and the
 * feed-forward network. */
att_var *att_nn_self_attend(att_tape *t, att_nn_sublayer s, const att_nn_attention *l, att_var *x,
                            const att_nn_layer_call *c);
att_var *att_nn_attend(att_tape *t, att_nn_sublayer s, const att_nn_attention *l, att_var *x,
                       att_nn_attention_call call);
att_var *att_nn_feed(att_tape *t, att_nn_sublayer s, const att_nn_feed_forward *l, att_var *x,
                     const att_nn_dropout *dropout);

/* Checks that the config's order exists; if not, p has an error. */
bool att_nn_check_layer(att_nn_params *p, const char *name, const att_nn_layer_config *c);
/* Make the norms prefix.name: of the sublayer's argument or of the sum, and of its result; NULL: the order has none. */
const att_nn_norm *att_nn_layer_norm(att_nn_params *p, const char *prefix, const char *name,
                                     const att_nn_layer_config *c);
const att_nn_norm *att_nn_layer_result_norm(att_nn_params *p, const char *prefix, const char *name,
                                            const att_nn_layer_config *c);
/* Makes the parameter prefix.name of these features, initialized with c->layer_scale; NULL: c->layer_scale is 0. */
att_param *att_nn_layer_scale(att_nn_params *p, const char *prefix, const char *name, const att_nn_layer_config *c);
/* Makes the attention of a layer's config: from `given`, or otherwise from width, heads and so on. */
const att_nn_attention *att_nn_layer_attention(att_nn_params *p, const char *prefix, const char *name,
                                               const att_nn_layer_config *c, const att_nn_attention_config *given,
                                               bool causal);

#endif
