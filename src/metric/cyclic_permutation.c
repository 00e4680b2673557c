/* A random permutation that is one cycle: captions of other images as a control. */
#include "attend_metric.h"

#include "attend_util.h"

att_status att_cyclic_permutation(uint64_t seed, int64_t n, int64_t *x)
{
    if (att_require(__func__, ATT_NAMED({"x", x})))
        return ATT_ERR_ARGUMENT;
    if (n < 1 || n > INT32_MAX)
        return att_fail(NULL, ATT_ERR_ARGUMENT, "%s: n is %lld, but must be 1 to %d", __func__, (long long)n,
                        INT32_MAX);
    for (int64_t i = 0; i < n; i++)
        x[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        uint32_t words[4];
        att_random(seed, (const uint32_t[]){(uint32_t)i, 0, 0, 0}, words);
        const int64_t k = (int64_t)((uint64_t)words[0] * (uint64_t)i >> 32), other = x[k]; /* k < i: one cycle */
        x[k] = x[i];
        x[i] = other;
    }
    return ATT_OK;
}
