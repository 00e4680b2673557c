/* A sink, whose score takes part in the softmax without a value. */
#include "attn/forward/accumulator.h"
#include "base/math.h"

void att_add_sink(const att_plan *plan, const att_head_view *at, int rows, float *max, float *sum, float *left)
{
    for (int i = 0; i < rows; i++) {
        left[i] = 1;
        if (sum[i] == 0)
            continue;
        const double sink = (double)att_sink_of(plan, at->param)->data[0];
        const double before = max[i], after = att_fmax(before, sink);
        left[i] = (float)att_f64_exp(before - after);
        sum[i] = sum[i] * left[i] + (float)att_f64_exp(sink - after);
        max[i] = (float)after;
    }
}
