/* The interval of a share (Wilson 1927): all shares from which the observed one is at most 1.96 standard errors away,
 * by a normal distribution; and that of a mean of shares. */
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

att_status att_balanced_accuracy(const int64_t *right, const int64_t *n, int64_t classes, att_interval *out)
{
    att_interval share;
    double sum = 0, below = 0, above = 0;
    int64_t counted = 0;
    if (att_require(__func__, ATT_NAMED({"right", right}, {"n", n}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    for (int64_t c = 0; c < classes; c++) {
        if (n[c] == 0)
            continue;
        const att_status e = att_share_interval(right[c], n[c], &share);
        if (e)
            return e;
        sum += share.mean;
        below += (share.mean - share.low) * (share.mean - share.low);
        above += (share.high - share.mean) * (share.high - share.mean);
        counted++;
    }
    if (counted == 0)
        return att_fail(NULL, ATT_ERR_ARGUMENT, "%s: none of the %lld classes has a trial", __func__,
                        (long long)classes);
    const double k = (double)counted, mean = sum / k;
    *out = (att_interval){mean, mean - sqrt(below) / k, mean + sqrt(above) / k};
    return ATT_OK;
}
