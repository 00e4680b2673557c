/* The gradients of each operation of the tape: against central differences of its reference in double, on every
 * instruction set. An operation without a test here does not compile. */
#include "attention_reference.h"
#include "tape_help.h"

/* Numbers are multiples of this, so that x + STEP and x - STEP are floats. The references are of order 1 to 100 and
 * exact to some 1e-15, so a difference over 2 STEP is to 1e-8, less than one rounding of a float of order 1; what it
 * cuts off is STEP^2 / 6 times a third derivative of at most 1000 (layer_norm): 3e-9. */
#define STEP 0x1p-18f

enum { MOST = 5 };

/* What a number may be changed in: a variable or, `param`, a parameter. */
typedef struct leaf {
    int rank;
    int64_t dim[3];
    bool param;
    float *x;
    double *expected; /* its gradient */
} leaf;

typedef struct problem problem;
struct problem {
    att_var *(*build)(att_tape *t, const problem *p);
    void (*reference)(const problem *p, double *y);
    leaf leaf[MOST]; /* up to one of rank 0 */
    float spread;    /* numbers in [-spread, spread); 0: 1 */
    double tolerance;
    /* what the operation is given beside them */
    att_activation act;
    att_pooling kind;
    float eps;
    const int64_t *offsets;
    const int32_t *ids;
    int64_t n;
    const att_attention_spec *spec;
    const att_plan *plan;
    const att_attention_args *args;
    /* in a run */
    att_var *var[MOST];
    att_param *weight[MOST];
};

static int64_t count_of(const leaf *l)
{
    int64_t n = 1;
    for (int i = 0; i < l->rank; i++)
        n *= l->dim[i];
    return n;
}

static att_tensor view_of(const leaf *l) { return view(l->x, ATT_F32, l->rank, l->dim); }

/* Numbers, and those of the loss: sum of slope times y. */
static void fill(problem *p)
{
    const float spread = p->spread ? p->spread : 1;
    for (int i = 0; i < MOST && p->leaf[i].rank; i++) {
        leaf *l = &p->leaf[i];
        const int64_t n = count_of(l);
        l->x = check_numbers(n, (uint64_t)i + 1);
        l->expected = malloc((size_t)(n + 1) * sizeof *l->expected);
        for (int64_t j = 0; j < n; j++)
            l->x[j] = roundf(l->x[j] * spread / STEP) * STEP;
    }
}

static void drop_problem(problem *p)
{
    for (int i = 0; i < MOST && p->leaf[i].rank; i++)
        free(p->leaf[i].x), free(p->leaf[i].expected);
}

static float slope(int64_t i) { return check_uniform(99, (uint64_t)i); }

/* Of large leaves only some numbers. */
static int64_t stride_of(const leaf *l) { return count_of(l) > 300 ? count_of(l) / 150 : 1; }

static void differences(problem *p, int64_t n_y)
{
    double *above = malloc((size_t)(n_y + 1) * sizeof *above), *below = malloc((size_t)(n_y + 1) * sizeof *below);
    for (int i = 0; i < MOST && p->leaf[i].rank; i++) {
        leaf *l = &p->leaf[i];
        for (int64_t j = 0; j < count_of(l); j += stride_of(l)) {
            const float x = l->x[j];
            l->x[j] = x + STEP;
            p->reference(p, above);
            l->x[j] = x - STEP;
            p->reference(p, below);
            l->x[j] = x;
            double sum = 0;
            for (int64_t o = 0; o < n_y; o++)
                sum += (double)slope(o) * (above[o] - below[o]);
            l->expected[j] = sum / (2 * (double)STEP);
        }
    }
    free(above), free(below);
}

/* Its variables and parameters on a tape, and what is made of them. */
static att_var *build(att_ctx *ctx, att_tape *t, problem *p)
{
    for (int i = 0; i < MOST && p->leaf[i].rank; i++) {
        const att_tensor x = view_of(&p->leaf[i]);
        if (p->leaf[i].param)
            assert_int_equal(att_param_new(ctx, &x, &p->weight[i]), ATT_OK);
        else
            p->var[i] = att_input(t, &x);
    }
    return p->build(t, p);
}

static void check_leaf(att_ctx *ctx, att_tape *t, const problem *p, int i, const char *what)
{
    const leaf *l = &p->leaf[i];
    att_tensor grad;
    if (l->param)
        grad = *att_param_grad(p->weight[i]);
    else if (att_grad(t, p->var[i], &grad))
        fail_msg("%s", att_error(ctx));
    assert_int_equal(grad.rank, l->rank);
    assert_memory_equal(grad.dim, l->dim, (size_t)l->rank * sizeof *l->dim);
    for (int64_t j = 0; j < count_of(l); j += stride_of(l))
        check_near(l->expected[j], ((const float *)grad.data)[j], p->tolerance, "%s %s: gradient [%d] of leaf %d",
                   att_isa(ctx), what, (int)j, i);
}

static void check_on(att_ctx *ctx, problem *p, const char *what, bool first)
{
    att_tape *t = recording_tape(ctx), *plain = new_tape(ctx);
    att_plan *plan = NULL;
    if (p->spec && att_plan_new(ctx, p->spec, &plan))
        fail_msg("%s", att_error(ctx));
    p->plan = plan;
    att_var *y = build(ctx, t, p);
    att_tensor value, without, dy;
    if (att_read(t, y, &value))
        fail_msg("%s", att_error(ctx));
    const int64_t n = att_count(&value);
    if (first)
        differences(p, n);
    float *slopes = check_numbers(n, 99);
    dy = value;
    dy.data = slopes;
    if (att_tape_backward(t, y, &dy))
        fail_msg("%s", att_error(ctx));
    for (int i = 0; i < MOST && p->leaf[i].rank; i++)
        check_leaf(ctx, t, p, i, what);
    for (int i = 0; i < MOST && p->leaf[i].rank; i++)
        att_param_free(p->weight[i]);
    assert_int_equal(att_read(plain, build(ctx, plain, p), &without), ATT_OK);
    assert_memory_equal(without.data, value.data, (size_t)n * sizeof(float)); /* recording changes no bit */
    for (int i = 0; i < MOST && p->leaf[i].rank; i++)
        att_param_free(p->weight[i]);
    att_tape_free(plain);
    att_tape_free(t);
    att_plan_free(plan);
    free(slopes);
}

static void check_problem(problem p, const char *what)
{
    fill(&p);
    bool first = true; /* the reference is the same for all sets */
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2); first = false)
        check_on(ctx, &p, what, first);
    drop_problem(&p);
}

/* ---- linear */

static att_var *linear(att_tape *t, const problem *p)
{
    return att_linear(t, p->var[0], p->weight[1], p->weight[2], p->act, p->var[3]);
}

static void linear_reference(const problem *p, double *y)
{
    const leaf *l = p->leaf;
    const int64_t m = l[0].dim[0], k = l[0].dim[1], n = l[1].dim[0];
    const att_epilogue e = {.bias = l[2].x, .residual = l[3].x, .residual_stride = n, .activation = (int)p->act};
    att_ref_gemm(m, n, k, l[0].x, k, l[1].x, k, 1, &e, y, n);
}

static att_var *bare_linear(att_tape *t, const problem *p)
{
    return att_linear(t, p->var[0], p->weight[1], NULL, p->act, NULL);
}

/* x is the residual, too, and both layers have one weight and bias: x + f(x w + b), then once more. */
static att_var *shared_linear(att_tape *t, const problem *p)
{
    att_var *h = att_linear(t, p->var[0], p->weight[1], p->weight[2], p->act, p->var[0]);
    return att_linear(t, h, p->weight[1], p->weight[2], p->act, h);
}

static void shared_linear_reference(const problem *p, double *y)
{
    const int64_t m = p->leaf[0].dim[0], n = p->leaf[0].dim[1];
    double *x = malloc((size_t)(m * n) * sizeof *x);
    for (int64_t i = 0; i < m * n; i++)
        x[i] = (double)p->leaf[0].x[i];
    for (int layer = 0; layer < 2; layer++) {
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                double z = (double)p->leaf[2].x[j];
                for (int64_t d = 0; d < n; d++)
                    z += x[i * n + d] * (double)p->leaf[1].x[j * n + d];
                y[i * n + j] = x[i * n + j] + att_ref_activate((int)p->act, z);
            }
        memcpy(x, y, (size_t)(m * n) * sizeof *x);
    }
    free(x);
}

static void gradients_of_linear(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{1, 1, 1}, {1, 7, 5}, {17, 31, 33}, {97, 5, 65}, {65, 64, 3}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (int act = ATT_IDENTITY; act <= ATT_TANH; act++) {
            const int64_t m = shapes[s][0], k = shapes[s][1], n = shapes[s][2];
            /* Sums of up to `terms` numbers, each of order 1/2 and rounded as it is added. z is off by some k / 4
             * roundings, and with it f'(z), whose slope is at most 1.2. */
            const int64_t terms = m > n ? m : n;
            problem p = {.build = linear,
                         .reference = linear_reference,
                         .leaf = {{.rank = 2, .dim = {m, k}},
                                  {.rank = 2, .dim = {n, k}, .param = true},
                                  {.rank = 1, .dim = {n}, .param = true},
                                  {.rank = 2, .dim = {m, n}}},
                         .tolerance = (double)(terms + k + 8) * FLT_EPSILON,
                         .act = (att_activation)act};
            check_problem(p, "linear");
            p.build = bare_linear;
            memset(&p.leaf[2], 0, 2 * sizeof p.leaf[2]);
            check_problem(p, "linear without bias and residual");
        }
    const problem shared = {.build = shared_linear,
                            .reference = shared_linear_reference,
                            .leaf = {{.rank = 2, .dim = {5, 7}},
                                     {.rank = 2, .dim = {7, 7}, .param = true},
                                     {.rank = 1, .dim = {7}, .param = true}},
                            /* two layers of sums of 7: gradients of up to (1 + 7/2)^2 = 20, 2 (7 + 7 + 8) roundings */
                            .tolerance = 20 * 44 * FLT_EPSILON,
                            .act = ATT_TANH};
    check_problem(shared, "linear, all used twice");
}

/* ---- add */

static att_var *add(att_tape *t, const problem *p) { return att_add(t, p->var[0], p->var[1]); }
static att_var *twice(att_tape *t, const problem *p) { return att_add(t, p->var[0], p->var[0]); }

static void add_reference(const problem *p, double *y)
{
    const leaf *a = &p->leaf[0], *b = p->leaf[1].rank ? &p->leaf[1] : a;
    for (int64_t i = 0; i < count_of(a); i++)
        y[i] = (double)a->x[i] + (double)b->x[i];
}

static void gradients_of_add(void **state)
{
    (void)state;
    problem p = {.build = add,
                 .reference = add_reference,
                 .leaf = {{.rank = 3, .dim = {3, 5, 7}}, {.rank = 3, .dim = {3, 5, 7}}},
                 .tolerance = 2 * FLT_EPSILON}; /* sums of two at most */
    check_problem(p, "add");
    p.build = twice;
    p.leaf[1].rank = 0;
    check_problem(p, "a + a");
}

/* ---- activate */

static att_var *activate(att_tape *t, const problem *p) { return att_activate(t, p->var[0], p->act); }

static void activate_reference(const problem *p, double *y)
{
    for (int64_t i = 0; i < count_of(&p->leaf[0]); i++)
        y[i] = att_ref_activate((int)p->act, (double)p->leaf[0].x[i]);
}

static void gradients_of_activate(void **state)
{
    (void)state;
    for (int act = ATT_IDENTITY; act <= ATT_TANH; act++)
        for (float spread = 1; spread < 20; spread += 14) {
            const problem p = {.build = activate,
                               .reference = activate_reference,
                               .leaf = {{.rank = 2, .dim = {41, 7}}},
                               .spread = spread,
                               /* slopes below 1.2, of functions with errors of some ulp */
                               .tolerance = 8 * FLT_EPSILON,
                               .act = (att_activation)act};
            check_problem(p, "activate");
        }
}

/* ---- embedding */

static att_var *embedding(att_tape *t, const problem *p) { return att_embedding(t, p->weight[0], p->ids, p->n); }

static void embedding_reference(const problem *p, double *y)
{
    const int64_t f = p->leaf[0].dim[1];
    for (int64_t i = 0; i < p->n; i++)
        for (int64_t d = 0; d < f; d++)
            y[i * f + d] = (double)p->leaf[0].x[p->ids[i] * f + d];
}

static void gradients_of_embedding(void **state)
{
    (void)state;
    static const int32_t ids[] = {4, 0, 4, 2, 4, 4, 0}; /* 1 and 3 are not there */
    static const int64_t features[] = {1, 7, 65};
    for (int i = 0; i < 3; i++) {
        const problem p = {.build = embedding,
                           .reference = embedding_reference,
                           .leaf = {{.rank = 2, .dim = {5, features[i]}, .param = true}},
                           .tolerance = 8 * FLT_EPSILON, /* sums of 4 */
                           .ids = ids,
                           .n = 7};
        check_problem(p, "embedding");
    }
}

/* ---- heads */

static att_var *split_heads(att_tape *t, const problem *p) { return att_split_heads(t, p->var[0], 3); }
static att_var *merge_heads(att_tape *t, const problem *p) { return att_merge_heads(t, p->var[0]); }

/* A variable that is used beside a view of it. */
static att_var *view_and_variable(att_tape *t, const problem *p)
{
    att_var *merged = att_merge_heads(t, att_split_heads(t, p->var[0], 3));
    return att_add(t, att_activate(t, merged, ATT_TANH), p->var[0]);
}

static void same_reference(const problem *p, double *y)
{
    for (int64_t i = 0; i < count_of(&p->leaf[0]); i++)
        y[i] = (double)p->leaf[0].x[i];
}

static void view_and_variable_reference(const problem *p, double *y)
{
    for (int64_t i = 0; i < count_of(&p->leaf[0]); i++)
        y[i] = tanh((double)p->leaf[0].x[i]) + (double)p->leaf[0].x[i];
}

static void gradients_of_split_heads(void **state)
{
    (void)state;
    problem p = {.build = split_heads,
                 .reference = same_reference,
                 .leaf = {{.rank = 2, .dim = {5, 21}}},
                 .tolerance = FLT_EPSILON};
    check_problem(p, "split_heads");
    p.build = view_and_variable;
    p.reference = view_and_variable_reference;
    p.tolerance = 8 * FLT_EPSILON;
    check_problem(p, "a variable and its view");
}

static void gradients_of_merge_heads(void **state)
{
    (void)state;
    const problem p = {.build = merge_heads,
                       .reference = same_reference,
                       .leaf = {{.rank = 3, .dim = {5, 3, 7}}},
                       .tolerance = FLT_EPSILON};
    check_problem(p, "merge_heads");
}

/* ---- layer_norm */

static att_var *layer_norm(att_tape *t, const problem *p)
{
    return att_layer_norm(t, p->var[0], p->weight[1], p->weight[2], p->eps);
}

static void layer_norm_reference(const problem *p, double *y)
{
    const leaf *l = p->leaf;
    const int64_t f = l[0].dim[1];
    for (int64_t i = 0; i < l[0].dim[0]; i++)
        att_ref_layer_norm(f, l[0].x + i * f, l[1].x, l[2].x, p->eps, y + i * f);
}

static void gradients_of_layer_norm(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{1, 1}, {1, 17}, {65, 3}, {129, 7}, {3, 97}, {2, 383}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        const int64_t rows = shapes[s][0], f = shapes[s][1];
        const problem p = {.build = layer_norm,
                           .reference = layer_norm_reference,
                           .leaf = {{.rank = 2, .dim = {rows, f}},
                                    {.rank = 1, .dim = {f}, .param = true},
                                    {.rank = 1, .dim = {f}, .param = true}},
                           /* dx: 1 / sqrt(eps) = 10 at most times a number of order 1, made of some ten roundings and
                            * of sums in lanes; dgamma and dbeta: sums of rows of numbers of order 1 */
                           .tolerance = (double)(100 + rows) * FLT_EPSILON,
                           .eps = 0.01f};
        check_problem(p, "layer_norm");
    }
}

/* ---- normalize */

static att_var *normalize(att_tape *t, const problem *p) { return att_normalize(t, p->var[0], p->eps); }

static void normalize_reference(const problem *p, double *y)
{
    const int64_t f = p->leaf[0].dim[1];
    for (int64_t i = 0; i < p->leaf[0].dim[0]; i++)
        att_ref_normalize(f, p->leaf[0].x + i * f, p->eps, y + i * f);
}

static void gradients_of_normalize(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{1, 1}, {1, 17}, {13, 31}, {2, 257}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (float eps = 1e-12f; eps < 200; eps *= 1e14f) { /* by the length, by eps */
            const problem p = {.build = normalize,
                               .reference = normalize_reference,
                               .leaf = {{.rank = 2, .dim = {shapes[s][0], shapes[s][1]}}},
                               .tolerance = 8 * FLT_EPSILON, /* of order 1 / length, rounded once */
                               .eps = eps};
            check_problem(p, "normalize");
        }
}

/* ---- pool */

static att_var *pool(att_tape *t, const problem *p) { return att_pool(t, p->var[0], p->offsets, p->n, p->kind); }

static void pool_reference(const problem *p, double *y)
{
    const int64_t f = p->leaf[0].dim[1];
    for (int64_t s = 0; s < p->n; s++)
        for (int64_t d = 0; d < f; d++) {
            const float *x = p->leaf[0].x + p->offsets[s] * f + d;
            const int64_t rows = p->offsets[s + 1] - p->offsets[s];
            double sum = 0, top = rows ? (double)x[0] : 0;
            for (int64_t i = 0; i < rows; i++) {
                sum += (double)x[i * f] / (double)rows;
                top = fmax(top, (double)x[i * f]);
            }
            y[s * f + d] = p->kind == ATT_POOL_MEAN ? sum : p->kind == ATT_POOL_MAX ? top : rows ? (double)x[0] : 0;
        }
}

static void gradients_of_pool(void **state)
{
    (void)state;
    static const int64_t offsets[] = {0, 1, 1, 8, 43, 43};
    for (int kind = ATT_POOL_MEAN; kind <= ATT_POOL_MAX; kind++) {
        const problem p = {.build = pool,
                           .reference = pool_reference,
                           .leaf = {{.rank = 2, .dim = {43, 7}}},
                           .tolerance = 2 * FLT_EPSILON, /* a product */
                           .kind = (att_pooling)kind,
                           .offsets = offsets,
                           .n = 5};
        check_problem(p, "pool");
    }
}

/* ---- attend */

static att_var *attend(att_tape *t, const problem *p)
{
    return att_attend(t, p->plan, p->var[0], p->var[1], p->var[2], p->args);
}
static att_var *attend_to_itself(att_tape *t, const problem *p)
{
    return att_attend(t, p->plan, p->var[0], p->var[0], p->var[0], p->args);
}

static void attend_reference(const problem *p, double *y)
{
    const leaf *l = p->leaf;
    const int k = l[1].rank ? 1 : 0, v = l[2].rank ? 2 : 0;
    const int64_t tokens = l[0].dim[0], heads = l[0].dim[1], dim = l[v].dim[2];
    att_attention_args a = *p->args;
    float *out = malloc((size_t)(tokens * heads * dim) * sizeof *out),
          *lse = malloc((size_t)(tokens * heads) * sizeof *lse);
    a.q = view_of(&l[0]), a.k = view_of(&l[k]), a.v = view_of(&l[v]);
    a.out = view(out, ATT_F32, ATT_DIMS(tokens, heads, dim));
    a.lse = view(lse, ATT_F32, ATT_DIMS(tokens, heads));
    const att_call call = call_of(p->plan, &a);
    att_site at;
    for (int64_t i = 0; next_site(&call, &i, &at);)
        for (int64_t q = 0; q < at.place.tq; q++)
            att_ref_attention_row(p->plan, &at, q, NULL,
                                  y + ((a.q_offsets[at.place.sequence] + q) * heads + at.place.head) * dim);
    free(out), free(lse);
}

static void gradients_of_attend(void **state)
{
    (void)state;
    enum { HEADS = 4, DIM = 7, VALUES = 5, TOKENS = 23, KEYS = 19 };
    static const int64_t q_offsets[] = {0, 1, 1, 14, TOKENS}, k_offsets[] = {0, 3, 5, 12, KEYS}; /* 13 of 7 keys */
    static const uint32_t ids[] = {4, 2, 9, 1};
    const att_attention_spec plain = {.size = sizeof plain, .heads = HEADS, .head_dim = DIM, .value_dim = VALUES};
    att_attention_spec grouped = plain, causal = plain, itself = plain;
    grouped.kv_heads = 2;
    causal.mask[0] = &att_mask_causal; /* six queries have nothing to attend */
    causal.align = ATT_ALIGN_BOTTOM_RIGHT;
    causal.modifier[0] = &att_modifier_softcap;
    causal.modifier_value[0] = 2;
    causal.dropout = 0.25f;
    itself.value_dim = DIM;
    const att_attention_args args = {.size = sizeof args,
                                     .n_sequences = 4,
                                     .q_offsets = q_offsets,
                                     .k_offsets = k_offsets,
                                     .dropout_seed = 5,
                                     .sequence_ids = ids};
    const att_attention_spec *const specs[] = {&plain, &grouped, &causal};
    for (int i = 0; i < 3; i++) {
        const int64_t kv_heads = specs[i]->kv_heads ? specs[i]->kv_heads : HEADS;
        const problem p = {.build = attend,
                           .reference = attend_reference,
                           .leaf = {{.rank = 3, .dim = {TOKENS, HEADS, DIM}},
                                    {.rank = 3, .dim = {KEYS, kv_heads, DIM}},
                                    {.rank = 3, .dim = {KEYS, kv_heads, VALUES}}},
                           /* sums over at most 2 * 13 queries or 7 keys of numbers below 1, which come from weights
                            * that are off by the roundings of a score's 7 products and of some functions */
                           .tolerance = 2 * (26 + DIM + 16) * FLT_EPSILON,
                           .spec = specs[i],
                           .args = &args};
        check_problem(p, "attend");
    }
    att_attention_args own = args;
    own.k_offsets = NULL;
    const problem p = {.build = attend_to_itself,
                       .reference = attend_reference,
                       .leaf = {{.rank = 3, .dim = {TOKENS, HEADS, DIM}}},
                       .tolerance = 2 * 3 * (13 + DIM + 16) * FLT_EPSILON, /* three of these */
                       .spec = &itself,
                       .args = &own};
    check_problem(p, "attend, all of one variable");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test(gradients_of_##name),
        ATT_OPERATION_LIST(TEST)
#undef TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
