/* The interval of a share (Wilson 1927): all shares from which the observed one is at most 1.96 standard errors away,
 * by a normal distribution. */
#include "attend_metric.h"

#include "attend_util.h"

#include <math.h>

att_status att_share_interval(int64_t successes, int64_t n, att_interval *out)
{
    if (att_require(__func__, ATT_NAMED({"out", out})))
        return ATT_ERR_ARGUMENT;
    if (n < 1 || successes < 0 || successes > n)
        return att_fail(NULL, ATT_ERR_ARGUMENT, "%s: successes is %lld of n %lld, but must be 0 to n, and n 1 or more",
                        __func__, (long long)successes, (long long)n);
    const double p = (double)successes / (double)n, square = 1.96 * 1.96 / (double)n;
    const double middle = (p + square / 2) / (1 + square);
    const double half = sqrt(p * (1 - p) * square + square * square / 4) / (1 + square);
    *out = (att_interval){p, successes > 0 ? middle - half : 0, successes < n ? middle + half : 1};
    return ATT_OK;
}
