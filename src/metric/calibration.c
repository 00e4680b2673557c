/* Calibration: whether answers are correct as often as their probabilities state. */
#include "attend_metric.h"

#include "attend_util.h"

#include <math.h>

/* Counts the answers whose confidence is in one part of [0, 1]. */
typedef struct bin {
    int64_t right;
    double confidence; /* sum of the confidences */
} bin;

att_status att_calibration_error(att_ctx *ctx, const float *confidence, const bool *right, int64_t n, int64_t bins,
                                 double *error)
{
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"confidence", confidence}, {"right", right}, {"error", error})))
        return ATT_ERR_ARGUMENT;
    if (n < 1 || n > INT32_MAX || bins < 1 || bins > INT32_MAX)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "%s: n is %lld and bins is %lld, but both must be 1 to %d", __func__,
                        (long long)n, (long long)bins, INT32_MAX);
    for (int64_t i = 0; i < n; i++)
        if (!(confidence[i] >= 0 && confidence[i] <= 1))
            return att_fail(ctx, ATT_ERR_ARGUMENT, "%s: confidence[%lld] is %g, but must be from 0 to 1", __func__,
                            (long long)i, (double)confidence[i]);
    bin *of = att_calloc(ctx, (size_t)bins, sizeof *of);
    if (!of)
        return ATT_ERR_MEMORY;
    for (int64_t i = 0; i < n; i++) {
        bin *b = &of[(int64_t)fmin((double)(bins - 1), (double)confidence[i] * (double)bins)];
        b->right += right[i];
        b->confidence += (double)confidence[i];
    }
    double sum = 0;
    for (int64_t i = 0; i < bins; i++)
        sum += fabs((double)of[i].right - of[i].confidence);
    att_free(ctx, of);
    *error = sum / (double)n;
    return ATT_OK;
}
