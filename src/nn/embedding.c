/* A vector for each id */
#include "nn/nn.h"

att_nn_embedding att_nn_embedding_load(att_nn_source *s, const char *prefix, int64_t n, int64_t features)
{
    return (att_nn_embedding){.weight = att_nn_matrix(s, prefix, "weight", n, features)};
}

att_var *att_nn_embedding_apply(att_tape *t, const att_nn_embedding *l, const int32_t *ids, int64_t count)
{
    return att_embedding(t, l->weight, ids, count);
}
