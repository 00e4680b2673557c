/* Initialization of parameters: random numbers by position, without a state */
#include "attend_learn.h"
#include "attend_util.h"
#include "base/math.h"
#include "kernel/philox.h"
#include "tensor/tensor.h"

#include <math.h>

/* Numbers of one tensor. */
typedef struct init_job {
    float *y; /* [count] */
    int64_t count;
    double (*number)(const struct init_job *j, int64_t i);
    double factor; /* factor of number(j, i) */
    uint64_t seed, stream;
} init_job;

/* ---- distributions */

/* Returns word `which`, of 4, of element i as a number in (0, 1). */
static double uniform(const init_job *j, int64_t i)
{
    uint32_t words[4];
    att_philox(j->seed,
               (const uint32_t[]){(uint32_t)i, (uint32_t)(i >> 32), (uint32_t)j->stream, (uint32_t)(j->stream >> 32)},
               words);
    return ((double)words[0] + 0.5) / 4294967296.0;
}

static double one(const init_job *j, int64_t i)
{
    (void)j, (void)i;
    return 1;
}

static double symmetric(const init_job *j, int64_t i) { return 2 * uniform(j, i) - 1; }

/* Box, Muller 1958 */
static double normal(const init_job *j, int64_t i)
{
    double sine, cosine;
    att_f64_sin_cos(2 * 3.14159265358979323846 * uniform(j, 2 * i + 1), &sine, &cosine);
    return sqrt(-2 * att_f64_log(uniform(j, 2 * i))) * cosine;
}

/* Draws numbers again that are too far from 0, from words that no other element uses. */
static double truncated_normal(const init_job *j, int64_t i)
{
    double x = normal(j, i);
    for (int64_t attempt = 1; fabs(x) > 2; attempt++)
        x = normal(j, i + attempt * j->count);
    return x;
}

/* ---- from the options to a distribution */

typedef enum fan_need { NO_FAN, FAN_IN, BOTH_FANS } fan_need;
typedef struct distribution {
    const char *name;
    double (*number)(const init_job *j, int64_t i);
    fan_need fan;
    double variance; /* times fan / fans: the square of the factor without gain; 0: the factor is value */
    double gain;     /* default */
} distribution;
static const distribution distributions[] = {
    [ATT_INIT_CONSTANT] = {"ATT_INIT_CONSTANT", one, NO_FAN, 0, 0},
    [ATT_INIT_UNIFORM] = {"ATT_INIT_UNIFORM", symmetric, NO_FAN, 0, 0},
    [ATT_INIT_NORMAL] = {"ATT_INIT_NORMAL", normal, NO_FAN, 0, 0},
    [ATT_INIT_TRUNCATED_NORMAL] = {"ATT_INIT_TRUNCATED_NORMAL", truncated_normal, NO_FAN, 0, 0},
    [ATT_INIT_FAN_IN_UNIFORM] = {"ATT_INIT_FAN_IN_UNIFORM", symmetric, FAN_IN, 1, 1},
    [ATT_INIT_XAVIER_UNIFORM] = {"ATT_INIT_XAVIER_UNIFORM", symmetric, BOTH_FANS, 6, 1},
    [ATT_INIT_XAVIER_NORMAL] = {"ATT_INIT_XAVIER_NORMAL", normal, BOTH_FANS, 2, 1},
    [ATT_INIT_KAIMING_UNIFORM] = {"ATT_INIT_KAIMING_UNIFORM", symmetric, FAN_IN, 3, 1.4142135623730951},
    [ATT_INIT_KAIMING_NORMAL] = {"ATT_INIT_KAIMING_NORMAL", normal, FAN_IN, 1, 1.4142135623730951},
};

/* Fills in fans that are not given, from the shape [out, in, ...]. */
static att_status find_fans(att_ctx *ctx, const att_tensor *x, const distribution *d, att_init *o)
{
    if (o->fan_in < 0 || o->fan_out < 0)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "initialize: fan_in is %lld and fan_out %lld, expected at least 0",
                        (long long)o->fan_in, (long long)o->fan_out);
    if (d->fan == NO_FAN || (o->fan_in > 0 && (o->fan_out > 0 || d->fan == FAN_IN)))
        return ATT_OK;
    if (x->rank < 2) {
        return att_fail(ctx, ATT_ERR_SHAPE,
                        "initialize: x is %s, and %s needs [out, in, ...] or init.fan_in and fan_out",
                        att_shape_of(x).text, d->name);
    }
    int64_t field = 1;
    for (int i = 2; i < x->rank; i++)
        field *= x->dim[i];
    o->fan_in = o->fan_in ? o->fan_in : x->dim[1] * field;
    o->fan_out = o->fan_out ? o->fan_out : x->dim[0] * field;
    return ATT_OK;
}

static double factor_of(const att_init *o, const distribution *d)
{
    if (d->variance == 0)
        return o->value;
    const double fans = (double)o->fan_in + (d->fan == BOTH_FANS ? (double)o->fan_out : 0);
    return (o->gain != 0 ? o->gain : d->gain) * sqrt(d->variance / fans);
}

/* ---- */

enum { CHUNK = 4096 };

static void fill(void *arg, int i)
{
    const init_job *j = arg;
    const int64_t first = (int64_t)i * CHUNK;
    for (int64_t n = first; n < att_min(first + CHUNK, j->count); n++)
        j->y[n] = (float)(j->factor * j->number(j, n));
}

att_status att_initialize(att_ctx *ctx, const att_tensor *x, const att_init *init, uint64_t seed, const char *name)
{
    att_init o;
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"x", x}, {"name", name})))
        return ATT_ERR_ARGUMENT;
    att_status e = att_options_read(&o, sizeof o, init, "att_init");
    e = e ? e : att_check_output(ctx, "x", x, ATT_F32, x->rank);
    if (!e && !att_is_dense(x))
        e = att_fail(ctx, ATT_ERR_SHAPE, "initialize: x is not dense");
    if (!e && (unsigned)o.kind >= sizeof distributions / sizeof *distributions)
        e = att_fail(ctx, ATT_ERR_ARGUMENT, "initialize: init.kind is %d, which is not an att_init_kind", (int)o.kind);
    if (e || att_count(x) == 0)
        return e;
    const distribution *d = &distributions[o.kind];
    e = find_fans(ctx, x, d, &o);
    if (e)
        return e;
    const init_job j = {.y = x->data,
                        .count = att_count(x),
                        .number = d->number,
                        .factor = factor_of(&o, d),
                        .seed = seed,
                        .stream = att_fnv64_text(ATT_FNV64_OFFSET, name)};
    if (!isfinite(j.factor) || !isfinite((float)j.factor))
        return att_fail(ctx, ATT_ERR_ARGUMENT, "initialize: init.value is %g and init.gain %g, expected finite numbers",
                        o.value, o.gain);
    att_parallel_for(ctx, (int)att_ceil_div(j.count, CHUNK), fill, (void *)&j);
    return ATT_OK;
}
