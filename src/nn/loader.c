/* Loaders: parameter names and the first error. */
#include "nn/nn.h"

#include <stdio.h>

att_nn_name att_nn_join(const char *prefix, const char *name)
{
    att_nn_name n;
    snprintf(n.text, sizeof n.text, "%s.%s", prefix, name);
    return n;
}

att_nn_name att_nn_number(const char *name, int64_t i)
{
    att_nn_name n;
    snprintf(n.text, sizeof n.text, "%s.%lld", name, (long long)i);
    return n;
}

att_param *att_nn_param(att_nn_loader *s, const char *prefix, const char *name, int rank, const int64_t *dim)
{
    att_param *p = NULL;
    if (!s->status)
        s->status = s->get(s, att_nn_join(prefix, name).text, rank, dim, &p);
    return p;
}

att_param *att_nn_vector(att_nn_loader *s, const char *prefix, const char *name, int64_t n)
{
    return att_nn_param(s, prefix, name, 1, &n);
}

att_param *att_nn_matrix(att_nn_loader *s, const char *prefix, const char *name, int64_t rows, int64_t columns)
{
    return att_nn_param(s, prefix, name, 2, (const int64_t[]){rows, columns});
}
