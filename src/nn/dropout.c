/* Dropout layers */
#include "nn/nn.h"

/* Hashes the name: a model has few dropout layers, whose hashes differ. */
uint64_t att_nn_dropout_id(const char *prefix, const char *name)
{
    return prefix && name ? att_fnv64_text(ATT_FNV64_OFFSET, att_nn_join(prefix, name).text) : 0;
}

att_var *att_nn_dropout_apply(att_tape *t, const att_nn_dropout *d, uint64_t dropout_id, att_var *x, att_var *residual)
{
    att_nn_dropout o = {.size = sizeof o};
    if (!att_tape_options_read(t, "dropout", &o, sizeof o, d, "att_nn_dropout"))
        return NULL;
    if (o.p != 0)
        return att_dropout(t, x, residual, o.p, o.seed ^ dropout_id, o.at, o.sequence_ids);
    return residual ? att_add(t, x, residual) : x;
}
