#include "result.h"

#include <math.h>

/* Converts logits [n] to log probabilities. */
static void log_softmax(float *x, int64_t n)
{
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        max = fmax(max, (double)x[i]);
    for (int64_t i = 0; i < n; i++)
        sum += exp((double)x[i] - max);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)((double)x[i] - max - log(sum));
}

static void softmax(float *x, int64_t n)
{
    log_softmax(x, n);
    for (int64_t i = 0; i < n; i++)
        x[i] = expf(x[i]);
}

static void each(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(1 / (1 + exp(-(double)x[i])));
}

int attention_result_row(const attended *a, const att_trace *t, int64_t layer, int64_t row, float *out)
{
    static void (*const make[])(float *, int64_t) = {[ATTENTION_RESULT_PROBABILITIES] = softmax,
                                                     [ATTENTION_RESULT_EACH] = each,
                                                     [ATTENTION_RESULT_TARGET] = log_softmax,
                                                     [ATTENTION_RESULT_SCORES] = NULL};
    const attention_result result = a->kind->result(a);
    const int code = cli_status(a->m.base.ctx, att_trace_output(t, layer, row, 1, out));
    if (!code && make[result])
        make[result](out, a->info.outputs);
    for (int64_t i = 0; !code && i < a->info.outputs; i++)
        if (isnan(out[i]) || out[i] == INFINITY)
            return cli_fail("%s: results are not finite: the weights are damaged, or too large", a->m.base.name);
    return code;
}

int64_t attention_largest(const float *x, int64_t n, int64_t max, int64_t *out)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = count;
        if (x[i] == -INFINITY)
            continue;
        for (; at > 0 && x[i] > x[out[at - 1]]; at--)
            if (at < max)
                out[at] = out[at - 1];
        if (at < max)
            out[at] = i;
        count += count < max;
    }
    return count;
}

int attention_result_at(const attended *a, int64_t *row)
{
    *row = a->asked->from >= 0 ? a->asked->from : a->info.output_rows - 1;
    return attention_check_from(a, a->info.output_rows);
}
