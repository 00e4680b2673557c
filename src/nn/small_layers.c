/* Linear layers, norms, embeddings, convolutions */
#include "nn/nn.h"

/* ---- linear */

static att_param *vector(att_nn_params *p, const char *name, const char *part, int64_t n, const att_init *init)
{
    return att_nn_params_request(p, name, part, 1, &n, init);
}

const att_nn_linear *att_nn_linear_init(att_nn_params *p, const char *name, int64_t in, int64_t out,
                                        const att_init *weight, const att_init *bias)
{
    att_nn_linear *l = att_nn_params_alloc(p, sizeof *l);
    if (!l)
        return NULL;
    l->weight = att_nn_params_request(p, name, "weight", 2, (const int64_t[]){out, in}, weight);
    l->bias = bias ? vector(p, name, "bias", out, bias) : NULL;
    return l->weight && (l->bias || !bias) ? l : NULL;
}

const att_nn_linear *att_nn_linear_new(att_nn_params *p, const char *name, int64_t in, int64_t out,
                                       const att_nn_linear_options *options)
{
    att_nn_linear_options o;
    options = options ? options : ATT_OPTIONS(att_nn_linear_options, .no_bias = false);
    if (!att_nn_options_read(p, name, &o, sizeof o, options, "att_nn_linear_options"))
        return NULL;
    const att_init init = {.size = sizeof init, .kind = ATT_INIT_FAN_IN_UNIFORM, .fan_in = in};
    return att_nn_linear_init(p, name, in, out, &init, o.no_bias ? NULL : &init);
}

att_var *att_nn_linear_apply(att_tape *t, const att_nn_linear *l, att_var *x, att_activation f, att_var *residual)
{
    return att_nn_given(t, __func__, l) ? att_linear(t, x, l->weight, l->bias, f, residual) : NULL;
}

att_var *att_nn_linear_dropout(att_tape *t, const att_nn_linear *l, att_var *x, att_var *residual,
                               const att_nn_dropout *dropout, uint64_t dropout_id)
{
    if (!dropout || dropout->p == 0)
        return att_nn_linear_apply(t, l, x, ATT_ACTIVATION_IDENTITY, residual);
    return att_nn_dropout_apply(t, dropout, dropout_id, att_nn_linear_apply(t, l, x, ATT_ACTIVATION_IDENTITY, NULL),
                                residual);
}

/* ---- norms */

const att_nn_norm *att_nn_norm_new(att_nn_params *p, const char *name, att_nn_norm_kind kind, int64_t features,
                                   float eps)
{
    const att_init ones = {.size = sizeof ones, .value = 1}, zeros = {.size = sizeof zeros};
    att_nn_norm *l = att_nn_params_alloc(p, sizeof *l);
    if (!l)
        return NULL;
    if ((unsigned)kind > ATT_NN_NORM_LAYER_NO_BIAS)
        return att_nn_fail(p, ATT_ERR_ARGUMENT, "\"%s\": %d is not an att_nn_norm_kind", name, (int)kind);
    if (!(eps >= 0))
        return att_nn_fail(p, ATT_ERR_ARGUMENT, "\"%s\": eps is %g, expected at least 0", name, (double)eps);
    *l = (att_nn_norm){.kind = kind, .eps = eps > 0 ? eps : 1e-5f};
    l->weight = vector(p, name, "weight", features, &ones);
    l->bias = kind == ATT_NN_NORM_LAYER ? vector(p, name, "bias", features, &zeros) : NULL;
    return l->weight && (l->bias || kind != ATT_NN_NORM_LAYER) ? l : NULL;
}

att_var *att_nn_norm_apply(att_tape *t, const att_nn_norm *l, att_var *x)
{
    if (!att_nn_given(t, __func__, l))
        return NULL;
    return l->kind == ATT_NN_NORM_RMS ? att_rms_norm(t, x, l->weight, l->eps)
                                      : att_layer_norm(t, x, l->weight, l->bias, l->eps);
}

/* ---- embeddings */

const att_nn_embedding *att_nn_embedding_new(att_nn_params *p, const char *name, int64_t n, int64_t features)
{
    const att_init init = {.size = sizeof init, .kind = ATT_INIT_NORMAL, .value = 1};
    att_nn_embedding *l = att_nn_params_alloc(p, sizeof *l);
    if (!l)
        return NULL;
    l->weight = att_nn_params_request(p, name, "weight", 2, (const int64_t[]){n, features}, &init);
    return l->weight ? l : NULL;
}

att_var *att_nn_embedding_apply(att_tape *t, const att_nn_embedding *l, const int32_t *ids, int64_t tokens)
{
    return att_nn_given(t, __func__, l) ? att_embedding(t, l->weight, ids, tokens) : NULL;
}
