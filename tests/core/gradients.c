/* The gradients of each operation of the tape: against central differences of its reference in double, on every
 * instruction set. An operation without a test here does not compile. */
// labels: long sets
#include "fixtures/attention_reference.h"
#include "fixtures/gradients_conv.h"
#include "fixtures/gradients_function.h"
#include "fixtures/gradients_images.h"
#include "fixtures/gradients_losses.h"
#include "fixtures/gradients_numbers.h"
#include "fixtures/gradients_positions.h"
#include "fixtures/gradients_recurrent.h"
#include "fixtures/gradients_shapes.h"

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
    att_ref_gemm(
        &(const att_ref_gemm_args){
            .m = m, .n = n, .k = k, .a = l[0].x, .lda = k, .b = l[1].x, .stride_n = k, .stride_k = 1, .epilogue = &e},
        y, n);
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
    static const int64_t shapes[][3] = {{1, 1, 1}, {1, 7, 5}, {17, 31, 33}, {97, 5, 65}, {65, 64, 3}, {515, 3, 4}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (int act = ATT_ACTIVATION_IDENTITY; act <= ATT_ACTIVATION_QUICK_GELU; act++) {
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
                            .act = ATT_ACTIVATION_TANH};
    check_problem(shared, "linear, all used twice");
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
    for (int act = ATT_ACTIVATION_IDENTITY; act <= ATT_ACTIVATION_QUICK_GELU; act++)
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

/* ---- embedding_dot */

static att_var *embedding_dot(att_tape *t, const problem *p)
{
    return att_embedding_dot(t, p->var[0], p->weight[1], p->ids, p->n);
}

static void embedding_dot_reference(const problem *p, double *y)
{
    const int64_t rows = p->leaf[0].dim[0], f = p->leaf[0].dim[1];
    for (int64_t i = 0; i < rows * p->n; i++) {
        y[i] = 0;
        for (int64_t d = 0; d < f; d++)
            y[i] += (double)p->leaf[0].x[i / p->n * f + d] * (double)p->leaf[1].x[p->ids[i] * f + d];
    }
}

static void gradients_of_embedding_dot(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{1, 1}, {6, 2}, {4, 3}, {12, 1}, {3, 40}}, features[] = {1, 17, 32, 64, 130};
    int32_t ids[3 * 40] = {3, 3, 0, 1, 2, 3, 0, 0, 0, 4, 1, 2}; /* repeated, in a row and in several */
    for (int i = 12; i < 3 * 40; i++)
        ids[i] = (int32_t)(check_bits(4, (uint64_t)i) % 5);
    for (size_t s = 0; s < 5; s++)
        for (size_t k = 0; k < 5; k++) {
            const int64_t f = features[k];
            const problem p = {
                .build = embedding_dot,
                .reference = embedding_dot_reference,
                .leaf = {{.rank = 2, .dim = {sizes[s][0], f}}, {.rank = 2, .dim = {5, f}, .param = true}},
                /* sums of at most all products, below 1; of f, which grow like sqrt(f) */
                .tolerance = (double)(sizes[s][0] * sizes[s][1]) * FLT_EPSILON,
                .y_tolerance = 2 * sqrt((double)f) * FLT_EPSILON * 4,
                .ids = ids,
                .n = sizes[s][1]};
            check_problem(p, "embedding_dot");
        }
}

/* ---- recompute: of tanh(a + b), beside a */

static att_var *tanh_of_sum(const void *user, att_tape *t, att_var *const *x)
{
    const att_activation *act = user;
    return att_activate(t, att_add(t, x[0], x[1]), *act);
}

static att_var *recompute(att_tape *t, const problem *p)
{
    return att_add(t, att_recompute(t, tanh_of_sum, &p->act, sizeof p->act, p->var, 2), p->var[0]);
}

static void recompute_reference(const problem *p, double *y)
{
    const float *a = p->leaf[0].x, *b = p->leaf[1].x;
    for (int64_t i = 0; i < count_of(&p->leaf[0]); i++)
        y[i] = tanh((double)a[i] + (double)b[i]) + (double)a[i];
}

static void gradients_of_recompute(void **state)
{
    (void)state;
    const problem p = {.build = recompute,
                       .reference = recompute_reference,
                       .leaf = {{.rank = 2, .dim = {5, 7}}, {.rank = 2, .dim = {5, 7}}},
                       .tolerance = 8 * FLT_EPSILON, /* as of activate, and a sum */
                       .act = ATT_ACTIVATION_TANH};
    check_problem(p, "recompute");
}

/* ---- layer_norm */

static att_var *layer_norm(att_tape *t, const problem *p)
{
    return att_layer_norm(t, p->var[0], p->weight[1], p->weight[2], p->eps);
}

static att_var *layer_norm_without_beta(att_tape *t, const problem *p)
{
    return att_layer_norm(t, p->var[0], p->weight[1], NULL, p->eps);
}

static void norm_reference(const problem *p, const float *beta, double *y)
{
    const leaf *l = p->leaf;
    const int64_t f = l[0].dim[1];
    for (int64_t i = 0; i < l[0].dim[0]; i++)
        att_ref_layer_norm(f, l[0].x + i * f, l[1].x, beta, p->eps, y + i * f);
}

static void layer_norm_reference(const problem *p, double *y) { norm_reference(p, p->leaf[2].x, y); }

static void reference_without_beta(const problem *p, double *y) { norm_reference(p, NULL, y); }

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
        problem without = p;
        without.build = layer_norm_without_beta;
        without.reference = reference_without_beta;
        without.leaf[2] = (leaf){0};
        check_problem(without, "layer_norm without beta");
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

static att_var *pool(att_tape *t, const problem *p)
{
    return att_pool(t, p->var[0], p->offsets, p->n, p->kind, p->first);
}

/* The result of a column x of rows `stride` apart, without the first `skip` rows */
static double pool_column(att_pooling kind, const float *x, int64_t stride, int64_t rows, int64_t skip)
{
    double sum = 0, weights = 0, weighted = 0, top = -INFINITY;
    if (skip >= rows)
        return kind == ATT_POOLING_CLS && rows > 0 ? (double)x[0] : 0;
    for (int64_t i = skip; i < rows; i++) {
        sum += (double)x[i * stride];
        weights += (double)(i + 1);
        weighted += (double)(i + 1) * (double)x[i * stride];
        top = fmax(top, (double)x[i * stride]);
    }
    return kind == ATT_POOLING_MEAN            ? sum / (double)(rows - skip)
           : kind == ATT_POOLING_MEAN_SQRT     ? sum / sqrt((double)(rows - skip))
           : kind == ATT_POOLING_WEIGHTED_MEAN ? weighted / weights
           : kind == ATT_POOLING_MAX           ? top
                                               : (double)x[(kind == ATT_POOLING_CLS ? skip : rows - 1) * stride];
}

static void pool_reference(const problem *p, double *y)
{
    const int64_t f = p->leaf[0].dim[1];
    for (int64_t s = 0; s < p->n; s++)
        for (int64_t d = 0; d < f; d++)
            y[s * f + d] = pool_column(p->kind, p->leaf[0].x + p->offsets[s] * f + d, f,
                                       p->offsets[s + 1] - p->offsets[s], p->first);
}

static void gradients_of_pool(void **state)
{
    (void)state;
    static const int64_t offsets[] = {0, 1, 1, 8, 43, 43};
    for (int kind = ATT_POOLING_MEAN; kind <= ATT_POOLING_LAST; kind++)
        for (int64_t skip = 0; skip <= 7; skip += skip < 2 ? 1 : 5) { /* 7: no row of the third one is left */
            const problem p = {.build = pool,
                               .reference = pool_reference,
                               .leaf = {{.rank = 2, .dim = {43, 7}}},
                               .tolerance = 2 * FLT_EPSILON, /* a product */
                               /* 35 products of factors below 1 with numbers below 1, each rounded, and their sums */
                               .y_tolerance = 35 * 3 * (double)FLT_EPSILON,
                               .kind = (att_pooling)kind,
                               .first = skip,
                               .offsets = offsets,
                               .n = 5};
            check_problem(p, "pool");
        }
}

/* ---- attend */

static att_var *attend(att_tape *t, const problem *p)
{
    return att_attend(t, p->plan, p->var[0], p->var[1], p->var[2], p->args, NULL);
}
static att_var *attend_to_itself(att_tape *t, const problem *p)
{
    return att_attend(t, p->plan, p->var[0], p->var[0], p->var[0], p->args, NULL);
}

/* Which leaf is the n-th parameter of a plan, 0: none. Behind q, k and v are the score's, which are parameters, and the
 * modifiers', which are variables; modifiers for which none is left share the last. */
typedef struct stage_leaves {
    int n, of[MOST_PARAMS];
} stage_leaves;

static stage_leaves stage_leaves_of(const problem *p)
{
    stage_leaves l = {0};
    int next = 3;
    for (int i = 0; i < p->plan->params.n; i++)
        if (p->plan->params.list[i].given >= 0)
            l.of[l.n++] = p->leaf[next].rank ? next++ : next - 1;
    return l;
}

static att_var *attend_learning(att_tape *t, const problem *p)
{
    const stage_leaves l = stage_leaves_of(p);
    att_var *param[MOST_PARAMS];
    for (int i = 0; i < l.n; i++)
        param[i] = p->leaf[l.of[i]].param ? att_parameter(t, p->weight[l.of[i]]) : p->var[l.of[i]];
    return att_attend(t, p->plan, p->var[0], p->var[1], p->var[2], p->args,
                      ATT_OPTIONS(att_attend_params, .param = param, .n_params = l.n));
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
    const stage_leaves stages = stage_leaves_of(p);
    for (int i = 0; i < stages.n; i++)
        *param_at(&a, i) = view_of(&l[stages.of[i]]);
    a.out = view(out, ATT_F32, ATT_DIMS(tokens, heads, dim));
    a.lse = view(lse, ATT_F32, ATT_DIMS(tokens, heads));
    const att_call call = call_of(p->plan, &a);
    att_head_view at;
    for (int64_t i = 0; next_site(&call, &i, &at);)
        for (int64_t q = 0; q < at.head.tq; q++)
            att_ref_attention_row(p->plan, &at, q, NULL,
                                  y + ((a.q_offsets[at.head.sequence] + q) * heads + at.head.head) * dim);
    free(out), free(lse);
}

enum { HEADS = 4, DIM = 7, VALUES = 5, TOKENS = 23, KEYS = 19, SEQUENCES = 4, TQ = 13, TK = 7 /* the longest */ };
static const int64_t q_offsets[] = {0, 1, 1, 1 + TQ, TOKENS}, k_offsets[] = {0, 3, 5, 5 + TK, KEYS};

/* Makes the parameters of a stage leaves from the n-th on, and returns where they end. */
static int add_leaf(problem *p, int n, const att_param_shape *shape, bool shared)
{
    enum { BUCKETS = 9, SCORE_DIM = 6 };
    static const int64_t extent[] = {[ATT_EXTENT_ANY] = BUCKETS,
                                     [ATT_EXTENT_HEAD_DIM] = DIM,
                                     [ATT_EXTENT_KEY_DIM] = DIM,
                                     [ATT_EXTENT_SCORE_DIM] = SCORE_DIM};
    const bool pairs = shape->kind == ATT_PARAM_PER_PAIR;
    const att_extent extents[] = {shape->rows, shape->columns};
    leaf l = {.rank = pairs ? 4 : 1, .dim = {shared ? 1 : HEADS}};
    if (pairs)
        memcpy(l.dim, (int64_t[]){shared ? 1 : SEQUENCES, HEADS, shared ? 1 : TQ, TK}, sizeof l.dim);
    for (int i = 0; i < 2 && !pairs && extents[i]; i++)
        l.dim[l.rank++] = extent[extents[i]];
    p->leaf[n] = l;
    return n + 1;
}

static void check_stages(att_attention_spec *s, bool shared, const char *what)
{
    static const att_attention_args args = {
        .size = sizeof args, .n_sequences = SEQUENCES, .q_offsets = q_offsets, .k_offsets = k_offsets};
    problem p = {.build = attend_learning,
                 .reference = attend_reference,
                 .leaf = {{.rank = 3, .dim = {TOKENS, HEADS, DIM}},
                          {.rank = 3, .dim = {KEYS, HEADS, DIM}},
                          {.rank = 3, .dim = {KEYS, HEADS, VALUES}}},
                 /* Gradients of scores, in a row of at most 2 in all, are off as weights are: by the roundings of a
                  * score, of the chains of its projections or of its some 6 functions tanh with 8 ulp each, and by
                  * some more. What they are shared by adds up as many independent ones as there are rows. */
                 .tolerance = 2 * sqrt(TOKENS * HEADS) * (2 * DIM + 6 * 8 + 16) * FLT_EPSILON,
                 .spec = s,
                 .args = &args};
    const att_score *score = s->score;
    int n = 3;
    s->score_dim = score && score->n_params > 1 ? 6 : 0;
    for (int i = 0; score && i < score->n_params; i++) {
        n = add_leaf(&p, n, &score->param[i], shared);
        p.leaf[n - 1].param = true;
    }
    for (int i = 0; i < s->n_stages; i++) {
        const att_modifier *m = s->stage[i].modifier;
        for (int j = 0; m && j < m->n_params && !(i && m == s->stage[i - 1].modifier); j++)
            n = add_leaf(&p, n, &m->param[j], shared);
    }
    check_problem(p, what);
}

static void add_with_value(att_attention_spec *s, const att_modifier *m)
{
    add_modifier(s, m, m->flags & ATT_STAGE_NEEDS_VALUE ? 6.5 : 0);
}

static void gradients_of_parameters_of_stages(void **state)
{
    (void)state;
#define HANDLE(kind, name) &att_##kind##_##name,
    static const att_score *const *const scores[] = {ATT_score_LIST(HANDLE)};
    static const att_modifier *const *const modifiers[] = {ATT_modifier_LIST(HANDLE)};
#undef HANDLE
    const att_attention_spec plain = {
        .size = sizeof plain, .heads = HEADS, .head_dim = DIM, .value_dim = VALUES, .align = ATT_ALIGN_BOTTOM_RIGHT};
    for (int shared = 0; shared < 2; shared++) {
        for (size_t i = 0; i < sizeof scores / sizeof *scores; i++) {
            att_attention_spec s = plain;
            s.score = *scores[i];
            check_stages(&s, shared, s.score->name);
        }
        for (size_t i = 0; i < sizeof modifiers / sizeof *modifiers; i++) {
            att_attention_spec s = plain;
            add_with_value(&s, *modifiers[i]);
            check_stages(&s, shared, (*modifiers[i])->name);
        }
        att_attention_spec all = plain, twice = plain;
        all.score = att_score_additive;
        add_mask(&all, att_mask_causal);
        add_with_value(&all, att_modifier_bias);
        add_with_value(&all, att_modifier_softcap);
        add_with_value(&all, att_modifier_sink);
        add_with_value(&all, att_modifier_relative);
        check_stages(&all, shared, "all at once");
        add_with_value(&twice, att_modifier_alibi);
        add_with_value(&twice, att_modifier_alibi);
        check_stages(&twice, shared, "one variable in two stages");
    }
}

static void gradients_of_attend(void **state)
{
    (void)state;
    static const uint32_t ids[] = {4, 2, 9, 1};
    const att_attention_spec plain = {.size = sizeof plain, .heads = HEADS, .head_dim = DIM, .value_dim = VALUES};
    att_attention_spec grouped = plain, causal = plain, itself = plain;
    grouped.kv_heads = 2;
    add_mask(&causal, att_mask_causal); /* six queries have nothing to attend */
    causal.align = ATT_ALIGN_BOTTOM_RIGHT;
    add_modifier(&causal, att_modifier_softcap, 2);
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
            cmocka_unit_test(gradients_of_parameters_of_stages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
