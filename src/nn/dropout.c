/* Dropout layers */
#include "nn/nn.h"
#include "io/util.h"

/* A model has few dropout layers, whose hashes differ. */
uint64_t att_nn_dropout_id(const char *prefix, const char *name)
{
    const att_nn_name whole = att_nn_join(prefix, name);
    uint64_t hash = ATT_FNV64_OFFSET;
    for (const char *c = whole.text; *c; c++)
        hash = att_fnv64(hash, (unsigned char)*c);
    return hash;
}

att_var *att_nn_dropout_apply(att_tape *t, const att_nn_dropout *d, uint64_t dropout_id, att_var *x, att_var *residual)
{
    if (d && d->p > 0)
        return att_dropout(t, x, residual, d->p, d->seed ^ dropout_id, d->at, d->sequence_ids);
    return residual ? att_add(t, x, residual) : x;
}

att_var *att_nn_linear_dropout(att_tape *t, const att_nn_linear *l, att_var *x, att_var *residual,
                               const att_nn_dropout *dropout, uint64_t dropout_id)
{
    if (!dropout || dropout->p == 0)
        return att_nn_linear_apply(t, l, x, ATT_IDENTITY, residual);
    return att_nn_dropout_apply(t, dropout, dropout_id, att_nn_linear_apply(t, l, x, ATT_IDENTITY, NULL), residual);
}
