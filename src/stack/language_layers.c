/* Makes the parts of causal language models that all architectures have: layers, the output layer, the plan. */
#include "stack/language_model.h"

void att_language_model_layers(att_language_model *m, const att_nn_layer_config *layer)
{
    att_nn_params *p = m->model.params;
    const int64_t n = m->info.layers;
    m->layer = att_nn_params_alloc(p, (size_t)n * sizeof *m->layer);
    for (int64_t i = 0; m->layer && i < n; i++)
        m->layer[i] = att_nn_encoder_layer_new(p, att_nn_number("layer", i).text, layer);
    m->norm = att_nn_norm_new(p, "norm", layer->norm, layer->width, layer->eps);
}

att_status att_language_model_build_head(att_language_model *m, att_param *embedding)
{
    att_model *base = &m->model;
    const att_language_model_info *i = &m->info;
    if (att_language_architecture_of(m)->without_head)
        return ATT_OK;
    m->head = i->tied ? embedding : att_model_embedding(base, "head", i->vocabulary, i->hidden, -1);
    return i->tied && base->checkpoint ? att_checkpoint_check_tied(base->checkpoint) : ATT_OK;
}

att_status att_language_model_plan(const att_language_model *m, att_dtype dtype, att_plan **out)
{
    const att_language_model_info *c = &m->info;
    const att_stage stage[] = {{.mask = att_mask_causal},
                               {.mask = att_mask_window, .value = {(double)c->window - 1, 0}}};
    const att_attention_spec spec = {.size = sizeof spec,
                                     .heads = c->heads,
                                     .kv_heads = c->kv_heads,
                                     .head_dim = c->head_dim,
                                     .dtype = dtype,
                                     .stage = stage,
                                     .n_stages = c->window ? 2 : 1,
                                     .align = ATT_ALIGN_BOTTOM_RIGHT};
    return att_plan_new(m->model.ctx, &spec, out);
}
