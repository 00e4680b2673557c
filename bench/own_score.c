/* A caller's own scores on the matrix product beside the built-in cosine, by turns, best of all rounds: cosine again, a
 * Gaussian with a parameter, a polynomial. Prints "fwd: cosine 1.2 ms, own cosine 1.3 ms: 1.08 times" for each, or with
 * --json one object a line. Numbers: rounds, then time steps, heads and head size; else 512, 4 and 32. */
#include "bench.h"
#include <attend_extend.h>
#include <attend_util.h>

#include <math.h>
#include <stdbool.h>
#include <string.h>

static double dot(int64_t n, const float *a, const float *b)
{
    double s = 0;
    for (int64_t d = 0; d < n; d++)
        s += (double)a[d] * b[d];
    return s;
}

/* ---- q . k / |q| |k|, whose numbers are 1 / |x| ------------------------------ */

static double inverse(double length) { return length > 0 ? 1 / length : 0; }

static double cosine(const att_pair *p)
{
    return dot(p->dim, p->query, p->key) * inverse(sqrt(dot(p->dim, p->query, p->query))) *
           inverse(sqrt(dot(p->dim, p->key, p->key)));
}

static void cosine_derivative(const att_pair *p, double ds, double *dq, double *dk, double *const *dparam)
{
    const double q = inverse(sqrt(dot(p->dim, p->query, p->query))), k = inverse(sqrt(dot(p->dim, p->key, p->key)));
    const double s = cosine(p);
    (void)dparam;
    for (int64_t d = 0; d < p->dim; d++) {
        dq[d] += ds * (q * k * p->key[d] - s * q * q * p->query[d]);
        dk[d] += ds * (q * k * p->query[d] - s * k * k * p->key[d]);
    }
}

static float inverse_length(const att_score_row *r)
{
    return (float)inverse(sqrt((double)r->vectors->dot(r->dim, r->x, r->x)));
}

static void inverse_length_back(const att_score_row *r, float dnumber, float *dx)
{
    const float n = inverse_length(r), slope = -dnumber * n * n * n;
    for (int64_t d = 0; d < r->dim; d++)
        dx[d] += slope * r->x[d];
}

static void cosine_tile(const att_score_tile *t)
{
    for (int j = 0; j < t->keys; j++)
        for (int64_t i = 0; i < t->columns; i++)
            t->s[j * t->stride + i] *= t->query_number[i] * t->key_number[j];
}

static void cosine_tile_back(const att_score_tile *t)
{
    for (int j = 0; j < t->keys; j++) {
        float *s = t->s + j * t->stride, *ds = t->ds + j * t->stride;
        const float k = t->key_number[j];
        for (int64_t i = 0; i < t->columns; i++) {
            s[i] *= ds[i];
            t->dquery_number[i] += s[i] * k;
            ds[i] *= t->query_number[i] * k;
        }
        t->dkey_number[j] += t->vectors->dot(t->queries, s, t->query_number);
    }
}

static const att_score own_cosine = {.size = sizeof(att_score),
                                     .name = "own cosine",
                                     .flags = ATT_PRODUCT,
                                     .formula = cosine,
                                     .derivative = cosine_derivative,
                                     .tile = cosine_tile,
                                     .tile_back = cosine_tile_back,
                                     .number = inverse_length,
                                     .number_back = inverse_length_back};

/* ---- -w |q - k|^2 / 2 = w (q . k - |q|^2 / 2 - |k|^2 / 2) -------------------- */

static double half_square_distance(const att_pair *p)
{
    return dot(p->dim, p->query, p->query) / 2 + dot(p->dim, p->key, p->key) / 2 - dot(p->dim, p->query, p->key);
}

static double gaussian(const att_pair *p) { return -p->param[0].data[0] * half_square_distance(p); }

static void gaussian_derivative(const att_pair *p, double ds, double *dq, double *dk, double *const *dparam)
{
    for (int64_t d = 0; d < p->dim; d++) {
        dq[d] -= ds * p->param[0].data[0] * ((double)p->query[d] - p->key[d]);
        dk[d] += ds * p->param[0].data[0] * ((double)p->query[d] - p->key[d]);
    }
    if (dparam[0])
        dparam[0][0] -= ds * half_square_distance(p);
}

static float half_square(const att_score_row *r) { return r->vectors->dot(r->dim, r->x, r->x) / 2; }

static void half_square_back(const att_score_row *r, float dnumber, float *dx)
{
    for (int64_t d = 0; d < r->dim; d++)
        dx[d] += dnumber * r->x[d];
}

static void gaussian_tile(const att_score_tile *t)
{
    const float w = t->param[0].data[0];
    for (int j = 0; j < t->keys; j++)
        for (int64_t i = 0; i < t->columns; i++)
            t->s[j * t->stride + i] = w * (t->s[j * t->stride + i] - t->query_number[i] - t->key_number[j]);
}

static void gaussian_tile_back(const att_score_tile *t)
{
    const float w = t->param[0].data[0];
    for (int j = 0; j < t->keys; j++) {
        float *s = t->s + j * t->stride, *ds = t->ds + j * t->stride;
        const float k = t->key_number[j];
        for (int64_t i = 0; i < t->columns; i++) {
            s[i] = ds[i] * (s[i] - t->query_number[i] - k);
            ds[i] *= w;
            t->dquery_number[i] -= ds[i];
        }
        if (t->param[0].grad)
            t->param[0].grad[0] += t->vectors->sum(t->queries, s);
        t->dkey_number[j] -= t->vectors->sum(t->queries, ds);
    }
}

static const att_param_shape width = {.name = "w"};
static const att_score own_gaussian = {.size = sizeof(att_score),
                                       .name = "own Gaussian",
                                       .flags = ATT_PRODUCT,
                                       .param = &width,
                                       .n_params = 1,
                                       .formula = gaussian,
                                       .derivative = gaussian_derivative,
                                       .tile = gaussian_tile,
                                       .tile_back = gaussian_tile_back,
                                       .number = half_square,
                                       .number_back = half_square_back};

/* ---- (q . k + 1)^3 ----------------------------------------------------------- */

static double polynomial(const att_pair *p)
{
    const double x = dot(p->dim, p->query, p->key) + 1;
    return x * x * x;
}

static void polynomial_derivative(const att_pair *p, double ds, double *dq, double *dk, double *const *dparam)
{
    const double x = dot(p->dim, p->query, p->key) + 1;
    (void)dparam;
    for (int64_t d = 0; d < p->dim; d++) {
        dq[d] += ds * 3 * x * x * p->key[d];
        dk[d] += ds * 3 * x * x * p->query[d];
    }
}

static void polynomial_tile(const att_score_tile *t)
{
    for (int j = 0; j < t->keys; j++)
        for (int64_t i = 0; i < t->columns; i++) {
            const float x = t->s[j * t->stride + i] + 1;
            t->s[j * t->stride + i] = x * x * x;
        }
}

static void polynomial_tile_back(const att_score_tile *t)
{
    for (int j = 0; j < t->keys; j++)
        for (int64_t i = 0; i < t->columns; i++) {
            const float x = t->s[j * t->stride + i] + 1;
            t->ds[j * t->stride + i] *= 3 * x * x;
        }
}

static const att_score own_polynomial = {.size = sizeof(att_score),
                                         .name = "own polynomial",
                                         .flags = ATT_PRODUCT,
                                         .formula = polynomial,
                                         .derivative = polynomial_derivative,
                                         .tile = polynomial_tile,
                                         .tile_back = polynomial_tile_back};

/* ---- All --------------------------------------------------------------------- */

enum { SCORES = 4 };
static const att_score *score_of(int s)
{
    return s == 0 ? att_score_cosine : s == 1 ? &own_cosine : s == 2 ? &own_gaussian : &own_polynomial;
}
enum { Q, K, V, OUT, DOUT, DQ, DK, DV, TENSORS };

typedef struct work {
    att_ctx *ctx;
    int rounds, time, heads, dim;
    bool json;
    float *memory, width, dwidth;
    att_tensor x[TENSORS], lse, w, dw;
    att_plan *plan[SCORES];
    double best[2][SCORES]; /* [pass], seconds */
} work;

static void read_options(int argc, char **argv, work *b)
{
    int *const to[] = {&b->rounds, &b->time, &b->heads, &b->dim};
    for (int i = 1, next = 0; i < argc; i++)
        if (strcmp(argv[i], "--json") == 0)
            b->json = true;
        else if (atoi(argv[i]) > 0 && next < 4)
            *to[next++] = atoi(argv[i]);
}

static void make(work *b)
{
    const size_t rows = (size_t)b->time * (size_t)b->heads, numbers = rows * (size_t)b->dim;
    check(NULL, att_open(&b->ctx, ATT_OPTIONS(att_config, .n_threads = 2)));
    b->memory = att_alloc(b->ctx, TENSORS * numbers + rows, sizeof *b->memory);
    if (!b->memory)
        check(b->ctx, ATT_ERR_MEMORY);
    uint32_t seed = 1;
    for (size_t i = 0; i < TENSORS * numbers; i++) /* lengths of 0.6 */
        b->memory[i] = ((float)((seed = seed * 1664525 + 1013904223) >> 8) / (1 << 23) - 1) / sqrtf((float)b->dim);
    for (int i = 0; i < TENSORS; i++)
        check(b->ctx, att_wrap(&b->x[i], b->memory + (size_t)i * numbers, ATT_F32,
                               ATT_DIMS(1, b->heads, b->time, b->dim), NULL));
    check(b->ctx, att_wrap(&b->lse, b->memory + TENSORS * numbers, ATT_F32, ATT_DIMS(1, b->heads, b->time), NULL));
    check(b->ctx, att_wrap(&b->w, &b->width, ATT_F32, ATT_DIMS(1), NULL));
    check(b->ctx, att_wrap(&b->dw, &b->dwidth, ATT_F32, ATT_DIMS(1), NULL));
    for (int s = 0; s < SCORES; s++) {
        const att_attention_spec *spec =
            ATT_OPTIONS(att_attention_spec, .heads = b->heads, .head_dim = b->dim, .score = score_of(s));
        check(b->ctx, att_verify(b->ctx, spec));
        check(b->ctx, att_plan_new(b->ctx, spec, &b->plan[s]));
    }
}

static void measure(work *b, int s)
{
    const att_tensor *x = b->x;
    const int n = score_of(s)->n_params;
    const att_attention_args args = {.size = sizeof args,
                                     .q = x[Q],
                                     .k = x[K],
                                     .v = x[V],
                                     .out = x[OUT],
                                     .lse = b->lse,
                                     .param = &b->w,
                                     .n_params = n};
    const att_attention_grads grads = {
        .size = sizeof grads, .dout = x[DOUT], .dq = x[DQ], .dk = x[DK], .dv = x[DV], .dparam = &b->dw, .n_dparams = n};
    const double start = seconds();
    check(b->ctx, att_forward(b->plan[s], &args));
    const double middle = seconds();
    check(b->ctx, att_backward(b->plan[s], &args, &grads));
    b->best[0][s] = fmin(b->best[0][s], middle - start);
    b->best[1][s] = fmin(b->best[1][s], seconds() - middle);
}

static void print(const work *b, int pass, int s)
{
    const char *name = score_of(s)->name, *of = pass ? "bwd" : "fwd";
    const double cosine = 1e3 * b->best[pass][0], own = 1e3 * b->best[pass][s];
    if (b->json)
        printf("{\"pass\": \"%s\", \"score\": \"%s\", \"cosine_ms\": %.6g, \"own_ms\": %.6g}\n", of, name, cosine, own);
    else
        printf("%s: cosine %.4g ms, %s %.4g ms: %.2f times\n", of, cosine, name, own, own / cosine);
}

int main(int argc, char **argv)
{
    work b = {.rounds = 20, .time = 512, .heads = 4, .dim = 32, .width = 1};
    read_options(argc, argv, &b);
    make(&b);
    for (int i = 0; i < 2 * SCORES; i++)
        b.best[i / SCORES][i % SCORES] = INFINITY;
    for (int r = 0; r < b.rounds; r++)
        for (int s = 0; s < SCORES; s++)
            measure(&b, s);
    for (int pass = 0; pass < 2; pass++)
        for (int s = 1; s < SCORES; s++)
            print(&b, pass, s);
    for (int s = 0; s < SCORES; s++)
        att_plan_free(b.plan[s]);
    att_free(b.ctx, b.memory);
    att_close(b.ctx);
    return 0;
}
