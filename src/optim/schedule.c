/* Learning rates, by the step. */
#include "attend_optimizer.h"
#include "base/base.h"
#include "base/math.h"

#include <math.h>

static double constant(const att_schedule *s, int64_t step)
{
    (void)step;
    return s->max_rate;
}

static double inverse_sqrt(const att_schedule *s, int64_t step)
{
    const double from = s->warmup > 0 ? (double)s->warmup : 1;
    return s->max_rate * sqrt(from / att_fmax(from, (double)step));
}

/* Returns the fraction of the steps from `warmup` to `steps` that is done, at most 1. */
static double done(const att_schedule *s, int64_t step)
{
    return att_fmin(1, (double)(step - s->warmup) / (double)(s->steps - s->warmup));
}

static double half_cosine(const att_schedule *s, int64_t step)
{
    static const double pi = 3.14159265358979323846;
    double sine, cosine;
    att_f64_sin_cos(pi * done(s, step), &sine, &cosine);
    return s->min_rate + (s->max_rate - s->min_rate) / 2 * (1 + cosine);
}

static double linear(const att_schedule *s, int64_t step)
{
    return s->min_rate + (s->max_rate - s->min_rate) * (1 - done(s, step));
}

/* The rate after the warm-up; `ends`: `steps` and `min_rate` are used. */
static const struct {
    double (*rate)(const att_schedule *s, int64_t step);
    bool ends;
} kinds[] = {[ATT_SCHEDULE_CONSTANT] = {constant, false},
             [ATT_SCHEDULE_INVERSE_SQRT] = {inverse_sqrt, false},
             [ATT_SCHEDULE_COSINE] = {half_cosine, true},
             [ATT_SCHEDULE_LINEAR] = {linear, true}};

static att_status check(const att_schedule *s, int64_t step)
{
    if (!(isfinite(s->max_rate) && s->max_rate >= 0))
        return att_fail(NULL, ATT_ERR_ARGUMENT, "schedule.max_rate is %g, not a rate", s->max_rate);
    if (s->warmup < 0)
        return att_fail(NULL, ATT_ERR_ARGUMENT, "schedule.warmup is %lld, less than 0", (long long)s->warmup);
    if (step < 0)
        return att_fail(NULL, ATT_ERR_ARGUMENT, "step is %lld, less than 0", (long long)step);
    if ((unsigned)s->kind > ATT_SCHEDULE_LINEAR)
        return att_fail(NULL, ATT_ERR_ARGUMENT, "schedule.kind is %d, which is not an att_schedule_kind", (int)s->kind);
    if (kinds[s->kind].ends && s->steps <= s->warmup)
        return att_fail(NULL, ATT_ERR_ARGUMENT, "schedule.steps is %lld, but must be more than schedule.warmup = %lld",
                        (long long)s->steps, (long long)s->warmup);
    if (kinds[s->kind].ends && !(s->min_rate >= 0 && s->min_rate <= s->max_rate))
        return att_fail(NULL, ATT_ERR_ARGUMENT, "schedule.min_rate is %g, not from 0 to schedule.max_rate = %g",
                        s->min_rate, s->max_rate);
    return ATT_OK;
}

att_status att_schedule_rate(const att_schedule *schedule, int64_t step, double *rate)
{
    if (att_require(__func__, ATT_NAMED({"schedule", schedule}, {"rate", rate})))
        return ATT_ERR_ARGUMENT;
    att_schedule s;
    att_status e = att_options_read(&s, sizeof s, schedule, "att_schedule");
    e = e ? e : check(&s, step);
    if (e)
        return e;
    *rate = step < s.warmup ? s.max_rate * (double)step / (double)s.warmup : kinds[s.kind].rate(&s, step);
    return ATT_OK;
}
