/* The memory of a model's weights. */
#include "model/model.h"
#include "util/shape.h"

static att_memory memory_of(const att_model *m, const att_param *p)
{
    return m->checkpoint ? att_checkpoint_memory(m->checkpoint, att_param_value(p)->data) : ATT_MEMORY_OTHER;
}

void att_model_set_mapped(const att_model *m, att_param *p)
{
    att_param_set_mapped(p, memory_of(m, p) == ATT_MEMORY_MAPPED);
}

void att_model_weights_add(const att_model *m, att_model_weights *sum)
{
    sum->compute = m->options.compute;
    for (int i = 0; i < ATT_MAX_DTYPES; i++) {
        sum->stored[i] += m->weights.stored[i];
        sum->used[i] += m->weights.used[i];
    }
    for (int64_t i = 0; i < att_nn_params_count(m->params); i++) {
        const att_param *p = att_nn_params_at(m->params, i, NULL);
        const att_tensor *x = att_param_value(p);
        const int64_t bytes = att_dtype_bytes(x->dtype, att_elements(x)), copies = (int64_t)att_param_copies(p);
        const att_memory memory = memory_of(m, p);
        sum->packed += copies;
        sum->own += memory == ATT_MEMORY_OTHER || memory == ATT_MEMORY_COPIED ? bytes : 0;
        sum->mapped += memory == ATT_MEMORY_MAPPED && !copies ? bytes : 0;
    }
}
