/* Every stage with every other one: score x modifiers x masks x type x instruction set x shape x place. Of all
 * combinations as many are drawn as it takes for every pair of two factors to occur, and that some times. */
// labels: long sets
#include "fixtures/attention_trial.h"

/* ---- how far rounding may lead, to first order
 *
 * A score is off by (2 sqrt(n) + 8) units of its condition, the sum of |x ds/dx| over all numbers x that go into it,
 * which for a dot product is that of the products' magnitudes: a chain of n terms whose roundings are independent.
 * A modifier passes on |m'| of the error, and adds 8 units of |m(s)| + |s m'| + sum |p dm/dp|.
 * Errors of the scores are relative errors of the weights; from there on each quantity below is a product or a sum. */

enum { MOST_DIM = 64 };

typedef struct work {
    trial *t;
    att_plan *plan;                          /* of the same in f32, and */
    att_call call;                           /* its call */
    double rounding, least;                  /* of the type */
    double paired;                           /* rounding of weights where pairs of bf16 are multiplied, forward */
    double *dq, *dk, *param[ATT_MAX_PARAMS]; /* of one pair, magnitudes; of the plan's parameters */
    double *sums[ATT_MAX_PARAMS], *limits[ATT_MAX_PARAMS]; /* the parameters' gradients */
} work;

static void start_work(work *w)
{
    const shape n = shapes[w->t->c->of[SHAPE]];
    w->dq = new_numbers(w->t, n.head_dim);
    w->dk = new_numbers(w->t, n.head_dim);
    for (int i = 0; i < w->plan->params.n; i++) {
        const att_tensor *p = &w->call.param[i];
        const bool given = p->rank && !w->plan->params.list[i].of_mask;
        const bool pairs = w->plan->params.list[i].shape->kind == ATT_PARAM_PER_PAIR;
        w->sums[i] = given ? new_numbers(w->t, check_count(p)) : NULL;
        w->limits[i] = given ? new_numbers(w->t, check_count(p)) : NULL;
        w->param[i] = given && !pairs ? new_numbers(w->t, att_param_count(p)) : NULL;
    }
}

/* The values of one pair's formulas and their derivatives. */
typedef struct walk {
    double s[ATT_MAX_STAGES + 1], error[ATT_MAX_STAGES + 1]; /* of what modifier i is given; the last: the result */
    double slope[ATT_MAX_STAGES], slope_error[ATT_MAX_STAGES];
    double spread; /* sum of |ds/dq| or of |ds/dk|, whichever is greater */
} walk;

static double sum_of(int64_t n, const double *x, const float *weight)
{
    double sum = 0;
    for (int64_t i = 0; x && i < n; i++)
        sum += fabs(x[i] * (weight ? (double)weight[i] : 1));
    return sum;
}

static void clear(double *x, int64_t n)
{
    if (x)
        memset(x, 0, (size_t)n * sizeof *x);
}

static att_pair pair_at(const work *w, const att_head_view *at, int64_t q, int64_t k)
{
    return (att_pair){.size = sizeof(att_pair),
                      .head = &at->head,
                      .q = q,
                      .k = k,
                      .query = (const float *)at->q_row.at + q * at->q_row.stride,
                      .key = (const float *)at->k_row.at + k * at->k_row.stride,
                      .dim = w->plan->spec.head_dim,
                      .key_dim = w->plan->spec.key_dim};
}

/* The magnitudes of a row's derivative by a score on the product: that by q . k times the other row, and that by the
 * row's own term. */
static void add_number_magnitudes(const work *w, const float *x, const float *other, float by_product, float by_number,
                                  double *dx)
{
    const att_score *s = &w->plan->score;
    const int64_t dim = w->plan->spec.head_dim;
    float by_row[MOST_DIM] = {0};
    const att_score_row row = {sizeof row, s->user, x, dim, &w->plan->vectors};
    if (s->term)
        s->term_back(&row, by_number, by_row);
    for (int64_t d = 0; d < dim; d++)
        dx[d] = fabs((double)by_product * other[d]) + fabs((double)by_row[d]);
}

/* They are sums of terms which may cancel: dq, dk and parameters' derivatives become the sums of their magnitudes. */
static void walk_product(const work *w, const att_pair *p)
{
    const att_score *score = &w->plan->score;
    const att_score_row row[2] = {{sizeof *row, score->user, p->query, p->dim, &w->plan->vectors},
                                  {sizeof *row, score->user, p->key, p->dim, &w->plan->vectors}};
    const float number[2] = {score->term ? score->term(&row[0]) : 0, score->term ? score->term(&row[1]) : 0};
    float s = (float)dot_of(p->dim, p->query, p->key), ds = 1, dterm[2] = {0};
    double terms = fabs((double)number[0]) + fabs((double)number[1]);
    for (int64_t d = 0; d < p->dim; d++)
        terms += fabs((double)p->query[d] * p->key[d]);
    att_param_view param[ATT_MAX_PARAMS];
    for (int i = 0; i < score->n_params; i++) {
        param[i] = p->param[i];
        param[i].grad = NULL;
        for (int64_t n = 0; w->param[i] && n < param[i].count; n++)
            w->param[i][n] = fabs(w->param[i][n]) + terms;
    }
    score->tile_back(&(const att_score_tile){.size = sizeof(att_score_tile),
                                             .head = p->head,
                                             .user = p->user,
                                             .queries = 1,
                                             .keys = 1,
                                             .columns = 1,
                                             .param = param,
                                             .s = &s,
                                             .ds = &ds,
                                             .stride = 1,
                                             .vectors = &w->plan->vectors,
                                             .query_term = &number[0],
                                             .key_term = &number[1],
                                             .dquery_term = &dterm[0],
                                             .dkey_term = &dterm[1]});
    add_number_magnitudes(w, p->query, p->key, ds, dterm[0], w->dq);
    add_number_magnitudes(w, p->key, p->query, ds, dterm[1], w->dk);
}

static void walk_score(const work *w, const att_head_view *at, att_pair *p, walk *x)
{
    const att_plan *plan = w->plan;
    p->user = plan->score.user;
    p->param = at->param;
    clear(w->dq, p->dim);
    clear(w->dk, p->key_dim);
    for (int i = 0; i < plan->score.n_params; i++)
        clear(w->param[i], at->param[i].count);
    plan->score.derivative(p, 1, w->dq, w->dk, w->param);
    if (plan->score.flags & ATT_STAGE_PRODUCT)
        walk_product(w, p);
    const double s = plan->score.formula(p), scale = plan->spec.scale;
    double condition = fabs(s) + sum_of(p->dim, w->dq, p->query) + sum_of(p->key_dim, w->dk, p->key);
    for (int i = 0; i < plan->score.n_params; i++)
        condition += sum_of(at->param[i].count, w->param[i], at->param[i].data);
    x->s[0] = scale * s;
    x->error[0] = (2 * sqrt((double)(p->dim + p->key_dim)) + 8) * UNIT * fabs(scale) * condition;
    x->spread = fmax(sum_of(p->dim, w->dq, NULL), sum_of(p->key_dim, w->dk, NULL));
}

static void walk_modifier(const work *w, const att_head_view *at, const att_pair *pair, int i, walk *x)
{
    const att_modifier *m = &w->plan->modifiers.list[i].stage;
    const int n = w->plan->modifiers.list[i].param;
    double *const *magnitude = &w->param[n], *const none[ATT_MAX_PARAMS] = {NULL};
    const double s = x->s[i], e = x->error[i];
    const att_param_view *param = &at->param[n];
    const att_pair p = {.size = sizeof p,
                        .head = &at->head,
                        .user = m->user,
                        .value = w->plan->modifiers.list[i].value,
                        .q = pair->q,
                        .k = pair->k,
                        .param = param};
    const bool pairs = m->n_params && m->param->kind == ATT_PARAM_PER_PAIR;
    if (m->n_params)
        clear(*magnitude, param->count);
    x->s[i + 1] = m->formula ? m->formula(&p, s) : s;
    x->slope[i] = m->derivative ? fabs(m->derivative(&p, s, 1, m->n_params ? magnitude : none)) : 1;
    x->slope_error[i] = 0;
    if (m->derivative)
        x->slope_error[i] =
            fabs(m->derivative(&p, s + e, 0, none) - m->derivative(&p, s - e, 0, none)) + 8 * UNIT * (1 + x->slope[i]);
    const double shift = pairs         ? fabs(x->s[i + 1] - s)
                         : m->n_params ? sum_of(param->count, *magnitude, param->data)
                                       : 0;
    x->error[i + 1] = x->slope[i] * e + 8 * UNIT * (fabs(x->s[i + 1]) + fabs(s) * x->slope[i] + shift);
}

static walk walk_pair(const work *w, const att_head_view *at, int64_t q, int64_t k)
{
    walk x;
    att_pair p = pair_at(w, at, q, k);
    walk_score(w, at, &p, &x);
    for (int i = 0; i < w->plan->modifiers.n; i++)
        walk_modifier(w, at, &p, i, &x);
    return x;
}

/* Returns what dropout makes of a weight of 1. */
static double factor_of(const work *w, const att_head_view *at, int64_t q, int64_t k)
{
    const double p = w->plan->spec.dropout;
    if (p == 0 || att_dropout_keep(&at->dropout, (uint32_t)(at->head.position + q), (uint32_t)k))
        return 1 / (1 - p);
    return 0;
}

/* One row: its definition, and how far each quantity may be off. */
typedef struct row {
    int64_t q;
    double *weights, *weight_error, *out, *out_limit; /* [tk] [tk], relative; [value_dim] */
    double lse, lse_limit;
    const float *dout;
    double dlse, delta, delta_limit;
} row;

static void bound_row(const work *w, const att_head_view *at, row *r)
{
    const float *value = at->v.at;
    const int64_t tk = at->head.tk, value_dim = w->plan->spec.value_dim;
    const double chain = (2 * sqrt((double)tk) + 8) * UNIT;
    double mean = 0, most = w->plan->modifiers.sink >= 0 ? fabs((double)att_sink_of(w->plan, at->param)->data[0]) : 0;
    for (int64_t k = 0; k < tk; k++) {
        r->weight_error[k] = 0;
        if (r->weights[k] == 0)
            continue;
        const walk x = walk_pair(w, at, r->q, k);
        most = fmax(most, fabs(x.s[w->plan->modifiers.n]));
        r->weight_error[k] = x.error[w->plan->modifiers.n];
        mean += r->weights[k] * r->weight_error[k];
    }
    const double exponent = (4 * most + 8) * UNIT; /* rounding on the way into exp, and in it */
    mean += exponent;
    clear(r->out_limit, value_dim);
    for (int64_t k = 0; k < tk; k++) {
        r->weight_error[k] += mean + exponent + chain;
        for (int64_t d = 0; r->weights[k] > 0 && d < value_dim; d++)
            r->out_limit[d] += r->weights[k] * factor_of(w, at, r->q, k) * fabs((double)value[k * at->v.stride + d]) *
                               (r->weight_error[k] + chain + w->paired);
    }
    r->lse_limit = mean + chain + 2 * UNIT * fabs(r->lse);
    r->delta = -r->dlse;
    r->delta_limit = UNIT * fabs(r->dlse);
    for (int64_t d = 0; d < value_dim; d++) {
        const double dout = r->dout[d];
        r->delta += dout * r->out[d];
        r->delta_limit +=
            fabs(dout) *
            (r->out_limit[d] + ((2 * sqrt((double)value_dim) + 4) * UNIT + w->rounding) * fabs(r->out[d]) + w->least);
    }
}

/* Where the limits of one head's gradients are added up. */
typedef struct limits {
    double *dq, *dk, *dv; /* [head_dim] [tk, head_dim] [tk, value_dim] */
    double chain;         /* of the sums over pairs */
} limits;

/* Returns where this head's part of a parameter is in its array of sums or limits. */
static double *part_of(const work *w, const att_param_view *o, int n, double *const *arrays)
{
    return arrays[n] ? arrays[n] + (o->data - (const float *)w->call.param[n].data) : NULL;
}

static void bound_param(const work *w, const att_param_view *o, int n, const double *magnitude, double ds, double error)
{
    double *limit = part_of(w, o, n, w->limits);
    for (int64_t i = 0; limit && magnitude && i < o->count; i++)
        limit[i] += fabs(magnitude[i]) * (error + 16 * UNIT * ds);
}

static void bound_pair(const work *w, const att_head_view *at, const row *r, int64_t k, const limits *l)
{
    const float *value = at->v.at;
    const att_plan *plan = w->plan;
    const int64_t value_dim = plan->spec.value_dim;
    const walk x = walk_pair(w, at, r->q, k);
    const double factor = factor_of(w, at, r->q, k);
    double dp = 0, dp_limit = 0;
    for (int64_t d = 0; d < value_dim; d++) {
        const double term = factor * r->dout[d] * value[k * at->v.stride + d];
        dp += term;
        dp_limit += fabs(term) * (2 * sqrt((double)value_dim) + 4) * UNIT;
        l->dv[k * value_dim + d] +=
            factor * r->weights[k] * fabs((double)r->dout[d]) * (r->weight_error[k] + r->lse_limit + l->chain);
    }
    double ds = r->weights[k] * fabs(dp - r->delta);
    double error = ds * (r->weight_error[k] + r->lse_limit + 4 * UNIT) + r->weights[k] * (dp_limit + r->delta_limit);
    for (int i = plan->modifiers.n - 1; i >= 0; i--) {
        const int n = plan->modifiers.list[i].param;
        const bool given = plan->modifiers.list[i].stage.n_params;
        const att_param_view *o = &at->param[n];
        double *limit = given ? part_of(w, o, n, w->limits) : NULL;
        if (limit && plan->params.list[n].shape->kind == ATT_PARAM_PER_PAIR)
            limit[r->q * o->stride[0] + k * o->stride[1]] += error + l->chain * ds;
        else if (given)
            bound_param(w, o, n, w->param[n], ds, error + l->chain * ds);
        error = error * x.slope[i] + ds * x.slope_error[i];
        ds *= x.slope[i];
    }
    const double scale = fabs((double)plan->spec.scale);
    ds *= scale;
    error = error * scale + (8 * UNIT + l->chain) * ds;
    const double formula = (2 * sqrt((double)plan->spec.head_dim) + 8) * UNIT * ds * x.spread;
    for (int64_t d = 0; d < plan->spec.head_dim; d++) {
        l->dq[d] += fabs(w->dq[d]) * error + formula;
        l->dk[k * plan->spec.key_dim + d] += fabs(w->dk[d]) * error + formula;
    }
    for (int i = 0; i < plan->score.n_params; i++)
        bound_param(w, &at->param[i], i, w->param[i], ds, error);
}

/* ---- a combination against the reference */

static double number_at(att_rows x, int64_t i)
{
    float y;
    if (x.dtype == ATT_F32)
        return ((const float *)x.at)[i];
    const att_kernels *k = att_kernels_of(0);
    (x.dtype == ATT_F16 ? k->vector.from_f16 : k->vector.from_bf16)(1, (const uint16_t *)x.at + i, &y);
    return y;
}

/* x [n, dim] against what is expected +- limit, rounded to its type; weights end at 2^-126, so all around 1e-33 is 0.
 */
static void compare(const work *w, const char *what, int64_t n, int64_t dim, att_rows x, const double *expected,
                    const double *limit)
{
    for (int64_t i = 0; i < n * dim; i++) {
        const double got = number_at(x, i / dim * x.stride + i % dim);
        const double near = limit[i] + 1e-33 + (x.dtype == ATT_F32 ? 0 : w->rounding * fabs(expected[i]) + w->least);
        if (!(fabs(got - expected[i]) <= near))
            fail_msg("%s\n%s, row %d, element %d: %.9g, expected %.9g +- %.2g", name_of(w->t->c), what, (int)(i / dim),
                     (int)(i % dim), got, expected[i], near);
    }
}

static att_rows row_of(att_rows x, int64_t i)
{
    return (att_rows){
        .at = (char *)x.at + i * x.stride * (int64_t)att_dtype_size(x.dtype), .stride = x.stride, .dtype = x.dtype};
}

static void check_row(work *w, const att_head_view *at, row *r, double *dq, double *dk, double *dv, const limits *l)
{
    const att_plan *plan = w->plan;
    r->lse = att_ref_attention_row(plan, at, r->q, r->weights, r->out);
    bound_row(w, at, r);
    const att_rows out = att_call_rows(&w->call, &w->t->args.out, at->head.sequence, at->head.head, false);
    compare(w, "out", 1, plan->spec.value_dim, row_of(out, r->q), r->out, r->out_limit);
    const float lse = at->lse[r->q * at->lse_stride];
    if (isinf(r->lse) ? (double)lse != r->lse : !(fabs(lse - r->lse) <= r->lse_limit))
        fail_msg("%s\nlse of query %d is %.9g, expected %.9g +- %.2g", name_of(w->t->c), (int)r->q, (double)lse, r->lse,
                 r->lse_limit);
    att_ref_grads g = {.dq = dq, .dk = dk, .dv = dv};
    for (int i = 0; i < plan->params.n; i++)
        g.dparam[i] = part_of(w, &at->param[i], i, w->sums);
    att_ref_attention_row_backward(plan, at, r->q, r->weights, r->out, r->dout, (float)r->dlse, &g);
    for (int64_t k = 0; k < at->head.tk; k++)
        if (r->weights[k] > 0)
            bound_pair(w, at, r, k, l);
    if (plan->modifiers.sink >= 0 && r->lse > -INFINITY)
        *part_of(w, att_sink_of(plan, at->param), plan->modifiers.list[plan->modifiers.sink].param, w->limits) +=
            exp(att_sink_of(plan, at->param)->data[0] - r->lse) *
            (fabs(r->delta) * (r->lse_limit + 8 * UNIT + l->chain) + r->delta_limit);
}

/* The query heads that share a key head. */
static void check_key_head(work *w, int64_t sequence, int64_t kv_head)
{
    const att_attention_spec *s = &w->plan->spec;
    const int64_t group = s->heads / s->kv_heads;
    const int first_block = w->t->n_blocks;
    att_head_view at;
    att_call_head(&w->call, sequence, kv_head * group, &at);
    const int64_t tq = at.head.tq, tk = at.head.tk;
    double *dk = new_numbers(w->t, tk * s->key_dim), *dv = new_numbers(w->t, tk * s->value_dim);
    limits l = {.dk = new_numbers(w->t, tk * s->key_dim), .dv = new_numbers(w->t, tk * s->value_dim)};
    l.chain = (2 * sqrt((double)(tk > tq * group ? tk : tq * group)) + 8) * UNIT;
    row r = {.weights = new_numbers(w->t, tk),
             .weight_error = new_numbers(w->t, tk),
             .out = new_numbers(w->t, s->value_dim),
             .out_limit = new_numbers(w->t, s->value_dim)};
    for (int64_t head = kv_head * group; head < (kv_head + 1) * group; head++) {
        double *dq = new_numbers(w->t, tq * s->head_dim), *dq_limit = new_numbers(w->t, tq * s->head_dim);
        att_call_head(&w->call, sequence, head, &at);
        att_tensor dout = w->t->exact.out;
        dout.data = w->t->dout;
        const att_rows douts = att_call_rows(&w->call, &dout, sequence, head, false);
        const float *dlse = att_call_rows(&w->call, &w->t->grads.dlse, sequence, head, false).at;
        for (r.q = 0; r.q < tq; r.q++) {
            r.dout = row_of(douts, r.q).at;
            r.dlse = dlse[r.q * at.lse_stride];
            l.dq = dq_limit + r.q * s->head_dim;
            check_row(w, &at, &r, dq + r.q * s->head_dim, dk, dv, &l);
        }
        compare(w, "dq", tq, s->head_dim, att_call_rows(&w->call, &w->t->grads.dq, sequence, head, false), dq,
                dq_limit);
    }
    compare(w, "dk", tk, s->key_dim, att_call_rows(&w->call, &w->t->grads.dk, sequence, kv_head, true), dk, l.dk);
    compare(w, "dv", tk, s->value_dim, att_call_rows(&w->call, &w->t->grads.dv, sequence, kv_head, true), dv, l.dv);
    while (w->t->n_blocks > first_block)
        free(w->t->block[--w->t->n_blocks]);
}

static bool multiplies_pairs(att_ctx *ctx, const trial *t)
{
    att_plan *plan = plan_of(ctx, &t->spec);
    const bool pairs = plan->bf16_pairs;
    att_plan_free(plan);
    return pairs;
}

static void check_trial(att_ctx *ctx, trial *t)
{
    work w = {.t = t, .rounding = types[t->c->of[TYPE]].rounding, .least = types[t->c->of[TYPE]].least};
    att_attention_spec exact = t->spec;
    exact.dtype = ATT_F32;
    run_trial(ctx, t);
    w.paired = multiplies_pairs(ctx, t) ? 0x1p-8 : 0;
    if (att_plan_new(ctx, &exact, &w.plan) || att_call_check(w.plan, &t->exact, true, &w.call))
        fail_msg("%s\n%s", name_of(t->c), att_error(ctx));
    start_work(&w);
    for (int64_t b = 0; b < w.call.sequences; b++)
        for (int64_t h = 0; h < w.plan->spec.kv_heads; h++)
            check_key_head(&w, b, h);
    for (int i = 0; i < w.plan->params.n; i++) {
        const bool of_score = w.plan->params.list[i].stage < 0;
        const att_tensor *g =
            dparam_of(&t->grads, w.plan->params.list[i].given < 0 ? MOST_PARAMS : w.plan->params.list[i].given);
        if (g->rank)
            compare(&w, of_score ? "a parameter of the score" : "a parameter of a modifier", 1, check_count(g),
                    (att_rows){.at = g->data}, w.sums[i], w.limits[i]);
    }
    att_plan_free(w.plan);
}

/* ---- drawing combinations until every pair has occurred */

enum { TIMES = 4 }; /* or once, where there shall be less */
static unsigned seen[FACTORS][MOST_LEVELS][FACTORS][MOST_LEVELS];

static int new_pairs(const choice *c, bool mark)
{
    int n = 0;
    for (int f = 0; f < FACTORS; f++)
        for (int g = f + 1; g < FACTORS; g++) {
            unsigned *s = &seen[f][c->of[f]][g][c->of[g]];
            n += *s < TIMES / (unsigned)check_step(TIMES);
            *s += mark;
        }
    return n;
}

/* Finds a pair that has not occurred so often -> c */
static bool next_pair(choice *c, int *factor, int *other)
{
    for (int f = 0; f < FACTORS; f++)
        for (int g = f + 1; g < FACTORS; g++)
            for (int i = 0; i < levels(f); i++)
                for (int j = 0; j < levels(g); j++)
                    if (seen[f][i][g][j] < TIMES / (unsigned)check_step(TIMES) && !(is_sink(f, i) && is_sink(g, j))) {
                        c->of[ *factor = f] = i;
                        c->of[ *other = g] = j;
                        return true;
                    }
    return false;
}

/* Finds the best of some combinations that have such a pair. */
static bool draw_choice(uint64_t seed, choice *best)
{
    enum { DRAWS = 40 };
    int most = 0, factor, other;
    choice c;
    if (!next_pair(&c, &factor, &other))
        return false;
    for (int i = 0; i < DRAWS || !most; i++) {
        for (int f = 0; f < FACTORS; f++)
            if (f != factor && f != other)
                c.of[f] = (int)(check_bits(seed, (uint64_t)(i * FACTORS + f)) % (uint64_t)levels(f));
        const int n = possible(&c) ? new_pairs(&c, false) : 0;
        if (n > most) {
            most = n;
            *best = c;
        }
    }
    return true;
}

static void every_pair_of_stages_agrees_with_the_reference_forward_and_backward(void **state)
{
    (void)state;
    att_ctx *ctx[MOST_LEVELS];
    for (int i = 0; i < levels(SET); i++)
        ctx[i] = check_open(att_isa_name(nth_set(i)), 2);
    double all = 1;
    for (int f = 0; f < FACTORS; f++) {
        assert_true(levels(f) <= MOST_LEVELS);
        all *= levels(f);
    }
    int done = 0, pairs = 0;
    for (choice c; draw_choice((uint64_t)done + 1, &c); done++) {
        trial t;
        new_pairs(&c, true);
        make_trial(&t, &c, (uint64_t)done * 1000);
        check_trial(ctx[c.of[SET]], &t);
        trial_free(&t);
    }
    for (int f = 0; f < FACTORS; f++)
        for (int g = f + 1; g < FACTORS; g++)
            for (int i = 0; i < levels(f) * levels(g); i++)
                pairs += seen[f][i / levels(g)][g][i % levels(g)] > 0;
    print_message(
        "%d combinations of %.3g have all %d pairs %d times: %d scores, %d modifiers, %d masks, %d types, %d sets, "
        "%d shapes\n",
        done, all, pairs, TIMES / check_step(TIMES), COUNT(scores), COUNT(modifiers) - 1, COUNT(masks) - 1,
        COUNT(types), levels(SET), COUNT(shapes));
    for (int i = 0; i < levels(SET); i++)
        att_close(ctx[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_of_stages_agrees_with_the_reference_forward_and_backward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
