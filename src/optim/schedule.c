/* Learning rates, by the step. */
#include "attend_learn.h"

#include <math.h>

static att_status check(const att_schedule *s, int64_t step)
{
    if (!(isfinite(s->peak) && s->peak >= 0))
        return att_fail(NULL, ATT_ERR_ARGUMENT, "schedule.peak is %g, not a rate", s->peak);
    if (s->warmup < 0)
        return att_fail(NULL, ATT_ERR_ARGUMENT, "schedule.warmup is %lld, less than 0", (long long)s->warmup);
    if (step < 0)
        return att_fail(NULL, ATT_ERR_ARGUMENT, "step is %lld, less than 0", (long long)step);
    if ((unsigned)s->kind > ATT_COSINE)
        return att_fail(NULL, ATT_ERR_ARGUMENT, "schedule.kind: %d is none", (int)s->kind);
    if (s->kind == ATT_COSINE && s->steps <= s->warmup)
        return att_fail(NULL, ATT_ERR_ARGUMENT, "schedule.steps is %lld, but must be more than schedule.warmup = %lld",
                        (long long)s->steps, (long long)s->warmup);
    if (s->kind == ATT_COSINE && !(s->least >= 0 && s->least <= s->peak))
        return att_fail(NULL, ATT_ERR_ARGUMENT, "schedule.least is %g, not from 0 to schedule.peak = %g", s->least,
                        s->peak);
    return ATT_OK;
}

static double constant(const att_schedule *s, int64_t step)
{
    (void)step;
    return s->peak;
}

static double inverse_sqrt(const att_schedule *s, int64_t step)
{
    const double from = s->warmup > 0 ? (double)s->warmup : 1;
    return s->peak * sqrt(from / fmax(from, (double)step));
}

static double cosine(const att_schedule *s, int64_t step)
{
    static const double pi = 3.14159265358979323846;
    const double done = (double)(step - s->warmup) / (double)(s->steps - s->warmup);
    return s->least + (s->peak - s->least) / 2 * (1 + cos(pi * fmin(1, done)));
}

static double (*const after_warmup[])(const att_schedule *s, int64_t step) = {
    [ATT_CONSTANT] = constant, [ATT_INVERSE_SQRT] = inverse_sqrt, [ATT_COSINE] = cosine};

att_status att_schedule_rate(const att_schedule *schedule, int64_t step, double *rate)
{
    att_schedule s;
    att_status e = att_take_options(&s, sizeof s, schedule, "att_schedule");
    e = e ? e : check(&s, step);
    if (e)
        return e;
    *rate = step < s.warmup ? s.peak * (double)step / (double)s.warmup : after_warmup[s.kind](&s, step);
    return ATT_OK;
}
