/* Combinations of all stages: the lists of the build, and operands and parameters for any choice of them. Scores,
 * modifiers and masks come from the build, so a new file is in here at once; one of a caller's own is a line more. */
#ifndef ATTENTION_TRIAL_H
#define ATTENTION_TRIAL_H

#include "attention_help.h"
#include "att_lists.h"
#include "attn/reference.h"
#include "product_scores.h"
#include "simd/isa.h"

#include <math.h>

#define UNIT 0x1p-24 /* what rounding to f32 changes at most, relative */

/* ---- stages of a caller's own: formulas, nothing else */

/* -1/2 sum of gain (q - k)^2 */
static inline double bell(const att_pair *p)
{
    double s = 0;
    for (int64_t d = 0; d < p->dim && d < p->key_dim; d++)
        s -= 0.5 * p->param[0].data[d] * pow((double)p->query[d] - p->key[d], 2);
    return s;
}
static inline void bell_derivative(const att_pair *p, double ds, double *dq, double *dk, double *const *dparam)
{
    for (int64_t d = 0; d < p->dim && d < p->key_dim; d++) {
        const double gain = p->param[0].data[d], x = (double)p->query[d] - p->key[d];
        dq[d] -= ds * gain * x;
        dk[d] += ds * gain * x;
        if (dparam[0])
            dparam[0][d] -= ds * 0.5 * x * x;
    }
}
static const att_param_shape gains = {.name = "gains", .rows = ATT_HEAD_DIM};
static const att_score bell_score = {.size = sizeof(att_score),
                                     .name = "bell",
                                     .param = &gains,
                                     .n_params = 1,
                                     .formula = bell,
                                     .derivative = bell_derivative};
static const att_score *const own_score = &bell_score;

/* sum of gain q k: bilinear, so a scale comes with the queries of the tile; back it goes by its derivative */
static inline double weighted(const att_pair *p)
{
    double s = 0;
    for (int64_t d = 0; d < p->dim && d < p->key_dim; d++)
        s += (double)p->param[0].data[d] * p->query[d] * p->key[d];
    return s;
}
static inline void weighted_derivative(const att_pair *p, double ds, double *dq, double *dk, double *const *dparam)
{
    for (int64_t d = 0; d < p->dim && d < p->key_dim; d++) {
        dq[d] += ds * p->param[0].data[d] * p->key[d];
        dk[d] += ds * p->param[0].data[d] * p->query[d];
        if (dparam[0])
            dparam[0][d] += ds * p->query[d] * p->key[d];
    }
}
static inline void weighted_tile(const att_score_tile *t)
{
    for (int j = 0; j < t->keys; j++)
        for (int i = 0; i < t->queries; i++) {
            float s = 0;
            for (int64_t d = 0; d < t->dim && d < t->key_dim; d++)
                s += t->param[0].data[d] * t->query[d * t->columns + i] * t->key[j * t->key_stride + d];
            t->s[j * t->stride + i] = s;
        }
}
static const att_score weighted_score = {.size = sizeof(att_score),
                                         .name = "weighted",
                                         .flags = ATT_BILINEAR,
                                         .param = &gains,
                                         .n_params = 1,
                                         .formula = weighted,
                                         .derivative = weighted_derivative,
                                         .tile = weighted_tile};
static const att_score *const own_tiled_score = &weighted_score;
static const att_score *const own_products[] = {&gaussian_score, &polynomial_score, &cosine_score};

/* A modifier is not told what is in the query and the key. */
static inline double wave(const att_pair *p, double s)
{
    return p->query || p->key || p->dim || p->key_dim ? (double)NAN : s + p->param->data[0] * sin(s);
}
static inline double wave_derivative(const att_pair *p, double s, double ds, double *const *dparam)
{
    if (dparam[0])
        dparam[0][0] += ds * sin(s);
    return 1 + p->param->data[0] * cos(s);
}
static const att_param_shape heights = {.name = "heights"};
static const att_modifier wave_modifier = {.size = sizeof(att_modifier),
                                           .name = "wave",
                                           .param = &heights,
                                           .n_params = 1,
                                           .formula = wave,
                                           .derivative = wave_derivative};
static const att_modifier *const own_modifier = &wave_modifier, *const no_modifier = NULL;

/* Scattered pairs; `user` says how many are left out. */
static inline bool scattered(const att_mask_block *b)
{
    return (b->q * 7 + b->k * 3 + b->head->head) % *(const int *)b->user != 0;
}
static const int one_of = 3;
static const att_mask scattered_mask = {
    .size = sizeof(att_mask), .name = "scattered", .user = &one_of, .keep = scattered};
static const att_mask *const own_mask = &scattered_mask, *const no_mask = NULL;

/* Every other `user` keys, and for whole tiles too. */
static inline bool is_striped(const att_mask_block *b, int64_t k) { return k / *(const int *)b->user % 2 == 0; }
static inline bool striped(const att_mask_block *b) { return is_striped(b, b->k); }
static inline att_cover striped_cover(const att_mask_block *b)
{
    if (b->k / *(const int *)b->user != (b->k + b->keys - 1) / *(const int *)b->user)
        return ATT_PARTIAL;
    return striped(b) ? ATT_FULL : ATT_EMPTY;
}
static inline void striped_bits(const att_mask_block *b, uint64_t *bits)
{
    for (int64_t j = 0; j < b->keys; j++)
        bits[j] = is_striped(b, b->k + j) ? ~UINT64_C(0) : 0;
}
static const int stripe = 40;
static const att_mask striped_mask = {.size = sizeof(att_mask),
                                      .name = "striped",
                                      .user = &stripe,
                                      .keep = striped,
                                      .cover = striped_cover,
                                      .bits = striped_bits};
static const att_mask *const own_tiled_mask = &striped_mask;

/* ---- factors */

#define HANDLE(kind, name) &att_##kind##_##name,
static const att_score *const *const scores[] = {ATT_score_LIST(HANDLE) & own_score, &own_tiled_score, &own_products[0],
                                                 &own_products[1], &own_products[2]};
static const att_modifier *const *const modifiers[] = {&no_modifier, ATT_modifier_LIST(HANDLE) & own_modifier};
static const att_mask *const *const masks[] = {&no_mask, ATT_mask_LIST(HANDLE) & own_mask, &own_tiled_mask};
static const struct {
    att_dtype dtype;
    double rounding, least; /* to nearest: relative, and absolute for the smallest numbers */
} types[] = {{ATT_F32, 0, 0}, {ATT_F16, 0x1p-11, 0x1p-25}, {ATT_BF16, 0x1p-8, 0}};
static const float dropouts[] = {0, 0.25f};
static const shape shapes[] = {{1, 1, 1, 1, 1, 1, 1},     {2, 4, 2, 5, 7, 3, 2},     {1, 2, 2, 33, 65, 16, 8},
                               {2, 2, 1, 31, 70, 45, 51}, {1, 1, 1, 133, 261, 8, 5}, {1, 2, 1, 3, 1030, 5, 9},
                               {3, 2, 2, 19, 1, 17, 33},  {1, 1, 1, 5, 7, 6, 4}};
enum { SMALL_SHAPE = 7 };
enum { TOP_LEFT, LENGTHS_BOTTOM_RIGHT, STARTS, RAGGED, PLACES };
static const char *const places[] = {"top left", "bottom right with lengths", "starts", "ragged"};

#define COUNT(x) ((int)(sizeof(x) / sizeof(x)[0]))
enum { SCORE, MODIFIER_1, MODIFIER_2, MODIFIER_3, MASK_1, MASK_2, DROPS, TYPE, SET, SHAPE, PLACE, SHARED, FACTORS };
enum { MOST_LEVELS = 32 };

typedef struct choice {
    int of[FACTORS];
} choice;

static inline int nth_set(int n)
{
    int isa = -1;
    while (check_next_isa(&isa) && n-- > 0)
        ;
    return isa;
}

static inline int levels(int factor)
{
    static const int counts[FACTORS] = {[SCORE] = COUNT(scores),
                                        [MODIFIER_1] = COUNT(modifiers),
                                        [MODIFIER_2] = COUNT(modifiers),
                                        [MODIFIER_3] = COUNT(modifiers),
                                        [MASK_1] = COUNT(masks),
                                        [MASK_2] = COUNT(masks),
                                        [DROPS] = COUNT(dropouts),
                                        [TYPE] = COUNT(types),
                                        [SHAPE] = COUNT(shapes),
                                        [PLACE] = PLACES,
                                        [SHARED] = 2};
    int sets = 0;
    for (int isa = -1; factor == SET && check_next_isa(&isa);)
        sets++;
    return factor == SET ? sets : counts[factor];
}

static inline bool is_sink(int factor, int level)
{
    return factor >= MODIFIER_1 && factor <= MODIFIER_3 && *modifiers[level] && ((*modifiers[level])->flags & ATT_SINK);
}

/* A spec has one sink at most. */
static inline bool possible(const choice *c)
{
    return is_sink(MODIFIER_1, c->of[MODIFIER_1]) + is_sink(MODIFIER_2, c->of[MODIFIER_2]) +
               is_sink(MODIFIER_3, c->of[MODIFIER_3]) <=
           1;
}

/* A random combination. */
static inline choice any_choice(uint64_t seed)
{
    choice c;
    uint64_t i = 0;
    do
        for (int f = 0; f < FACTORS; f++)
            c.of[f] = (int)(check_bits(seed, i++) % (uint64_t)levels(f));
    while (!possible(&c));
    return c;
}

static inline const char *name_of(const choice *c)
{
    static char text[256];
    const shape n = shapes[c->of[SHAPE]];
    int used = snprintf(text, sizeof text, "%s", (*scores[c->of[SCORE]])->name);
    for (int f = MODIFIER_1; f <= MODIFIER_3; f++)
        if (*modifiers[c->of[f]])
            used += snprintf(text + used, sizeof text - (size_t)used, ", %s", (*modifiers[c->of[f]])->name);
    for (int f = MASK_1; f <= MASK_2; f++)
        if (*masks[c->of[f]])
            used += snprintf(text + used, sizeof text - (size_t)used, ", %s", (*masks[c->of[f]])->name);
    snprintf(text + used, sizeof text - (size_t)used, ", %s, %s, B%d H%d/%d T%dx%d D%d/%d, %s, parameters %s",
             att_dtype_name(types[c->of[TYPE]].dtype), att_isa_name(nth_set(c->of[SET])), (int)n.batch, (int)n.heads,
             (int)n.kv_heads, (int)n.tq, (int)n.tk, (int)n.head_dim, (int)n.value_dim, places[c->of[PLACE]],
             c->of[SHARED] ? "shared by heads" : "of each head");
    return text;
}

/* ---- one combination: operands and parameters of the shapes that the stages declare */

enum { ANY_EXTENT = 13, MOST_BLOCKS = 64, MOST_SEQUENCES = 3 };

typedef struct trial {
    const choice *c;
    uint64_t seed;
    att_attention_spec spec;
    att_attention_args args, exact; /* exact: the same numbers in f32 */
    att_attention_grads grads;
    float *dout; /* exact */
    uint32_t sequence_ids[MOST_SEQUENCES];
    int64_t q_offsets[MOST_SEQUENCES + 1], k_offsets[MOST_SEQUENCES + 1]; /* of the sequences, ragged or not */
    int64_t q_lengths[MOST_SEQUENCES], k_lengths[MOST_SEQUENCES], starts[MOST_SEQUENCES];
    void *block[MOST_BLOCKS];
    int n_blocks;
} trial;

static inline void *hold(trial *t, void *block)
{
    assert_true(t->n_blocks < MOST_BLOCKS);
    return t->block[t->n_blocks++] = block;
}

static inline void drop_trial(trial *t)
{
    for (int i = 0; i < t->n_blocks; i++)
        free(t->block[i]);
}

/* New numbers in [-1, 1) in the shape of the tensor. */
static inline void fill(trial *t, att_tensor *x) { x->data = hold(t, check_numbers(check_count(x), t->seed++)); }

static inline void make_tensor(trial *t, att_tensor *x, int rank, const int64_t *dim)
{
    assert_int_equal(att_wrap(x, &t->seed, ATT_F32, rank, dim, NULL), ATT_OK);
    fill(t, x);
}

static inline void make_rows(trial *t, att_tensor *x, int64_t heads, int64_t time, int64_t tokens, int64_t dim)
{
    if (t->c->of[PLACE] == RAGGED)
        make_tensor(t, x, ATT_DIMS(tokens, heads, dim));
    else
        make_tensor(t, x, ATT_DIMS(shapes[t->c->of[SHAPE]].batch, heads, time, dim));
}

static inline void make_like(trial *t, att_tensor *x, const att_tensor *like)
{
    *x = *like;
    if (like->rank)
        fill(t, x);
}

static inline void make_param(trial *t, const att_param_shape *param)
{
    const shape n = shapes[t->c->of[SHAPE]];
    const bool shared = t->c->of[SHARED];
    const int64_t size[] = {[ATT_NONE] = 1,
                            [ATT_ANY] = ANY_EXTENT,
                            [ATT_HEAD_DIM] = n.head_dim,
                            [ATT_KEY_DIM] = n.head_dim,
                            [ATT_SCORE_DIM] = n.head_dim};
    const int64_t dim[3] = {shared ? 1 : n.heads, size[param->rows], size[param->columns]};
    if (param->rows == ATT_SCORE_DIM && param->columns != ATT_NONE) /* a projection, without spec.score_dim */
        return;
    att_tensor *x = param_at(&t->args, t->args.n_params);
    if (param->kind == ATT_PER_PAIR)
        make_tensor(t, x, ATT_DIMS(shared ? 1 : n.batch, n.heads, shared ? 1 : n.tq, n.tk));
    else
        make_tensor(t, x, param->rows == ATT_NONE ? 1 : param->columns == ATT_NONE ? 2 : 3, dim);
}

static inline uint64_t draw(trial *t) { return check_bits(t->seed++, 0); }

/* Ids of time steps: ascending, or of three documents in any order. */
static inline void make_ids(trial *t, att_tensor *x, int64_t time, int64_t tokens, bool ascend)
{
    const bool ragged = t->c->of[PLACE] == RAGGED;
    const int64_t n = ragged ? tokens : time;
    int32_t *ids = hold(t, malloc((size_t)(n + 1) * sizeof *ids));
    for (int64_t i = 0; i < n; i++)
        ids[i] = ascend ? (int32_t)(i * 3 / n) : (int32_t)(draw(t) % 3);
    if (ragged)
        att_wrap(x, ids, ATT_I32, ATT_DIMS(n), NULL);
    else
        att_wrap(x, ids, ATT_I32, ATT_DIMS(1, n), NULL);
}

static inline void add_trial_mask(trial *t, const att_mask *m)
{
    static const int64_t windows[][2] = {{3, 0}, {0, 5}, {-1, 2}, {7, -1}, {40, 3}, {300, 300}};
    const shape n = shapes[t->c->of[SHAPE]];
    if (m == att_mask_window) {
        const int64_t *window = windows[draw(t) % COUNT(windows)];
        add_window(&t->spec, window[0], window[1]);
        return;
    }
    add_mask(&t->spec, m);
    if (m == att_mask_document) {
        const bool ascend = draw(t) % 2;
        make_ids(t, param_at(&t->args, t->args.n_params), n.tq, t->q_offsets[n.batch], ascend);
        make_ids(t, param_at(&t->args, t->args.n_params), n.tk, t->k_offsets[n.batch], ascend);
    }
    if (m == att_mask_boolean) {
        uint8_t *table = hold(t, malloc((size_t)(n.batch * n.tq * n.tk)));
        for (int64_t i = 0; i < n.batch * n.tq * n.tk; i++)
            table[i] = draw(t) % 4 != 0;
        att_wrap(param_at(&t->args, t->args.n_params), table, ATT_BOOL, ATT_DIMS(n.batch, 1, n.tq, n.tk), NULL);
    }
}

/* The sequences' lengths and places: the first is as long as there is room for. */
static inline void set_sequences(trial *t)
{
    const shape n = shapes[t->c->of[SHAPE]];
    const int place = t->c->of[PLACE];
    static const att_align aligns[] = {ATT_ALIGN_TOP_LEFT, ATT_ALIGN_BOTTOM_RIGHT, ATT_ALIGN_STARTS,
                                       ATT_ALIGN_BOTTOM_RIGHT};
    t->spec.align = aligns[place];
    for (int64_t b = 0; b < n.batch; b++) {
        t->q_lengths[b] = b == 2 ? 0 : n.tq - b * n.tq / 3;
        t->k_lengths[b] = n.tk - b * n.tk / 2;
        t->starts[b] = 5 * b - 2;
        t->sequence_ids[b] = (uint32_t)(7 * b);
        t->q_offsets[b + 1] = t->q_offsets[b] + t->q_lengths[b];
        t->k_offsets[b + 1] = t->k_offsets[b] + t->k_lengths[b];
    }
    if (place == LENGTHS_BOTTOM_RIGHT) {
        t->args.q_lengths = t->q_lengths;
        t->args.k_lengths = t->k_lengths;
    }
    t->args.dropout_seed = 42;
    t->args.sequence_ids = t->spec.dropout > 0 ? t->sequence_ids : NULL;
    if (place == STARTS)
        t->args.q_starts = t->starts;
    if (place == RAGGED) {
        t->args.n_sequences = n.batch;
        t->args.q_offsets = t->q_offsets;
        t->args.k_offsets = t->k_offsets;
    }
}

/* Masks lie between the modifiers. */
static inline void set_stages(trial *t)
{
    static const int order[] = {MASK_1, MODIFIER_1, MODIFIER_2, MASK_2, MODIFIER_3};
    const choice *c = t->c;
    t->spec.score = *scores[c->of[SCORE]];
    t->spec.scale = t->c->of[SHAPE] % 2 ? 0.6f : 0; /* given, or the score's own */
    for (int i = 0; i < t->spec.score->n_params; i++)
        make_param(t, &t->spec.score->param[i]);
    for (int n = 0; n < COUNT(order); n++) {
        const int f = order[n];
        const bool is_mask = f == MASK_1 || f == MASK_2;
        const att_modifier *m = is_mask ? NULL : *modifiers[c->of[f]];
        if (m)
            add_modifier(&t->spec, m, m->flags & ATT_NEEDS_VALUE ? 6.5 : 0);
        for (int i = 0; m && i < m->n_params; i++)
            make_param(t, &m->param[i]);
        if (is_mask && *masks[c->of[f]] && !(f == MASK_2 && c->of[MASK_1] == c->of[MASK_2]))
            add_trial_mask(t, *masks[c->of[f]]);
    }
}

static inline int params_of_stage(const att_stage *s) { return s->mask ? s->mask->n_params : s->modifier->n_params; }
/* Where in the args the parameters of the stages begin. */
static inline int first_stage_param(const trial *t)
{
    int n = t->args.n_params;
    for (int i = 0; i < t->spec.n_stages; i++)
        n -= params_of_stage(&t->spec.stage[i]);
    return n;
}

/* Rounds the numbers of an f32 tensor to the type, and turns x into a tensor of that type with the same numbers. */
static inline void round_to(trial *t, att_tensor *x, att_dtype dtype)
{
    const att_kernels *k = att_kernels_of(0);
    const int64_t n = check_count(x);
    uint16_t *y = hold(t, malloc((size_t)(n + 1) * sizeof *y));
    (dtype == ATT_F16 ? k->vector.to_f16 : k->vector.to_bf16)(n, x->data, y);
    (dtype == ATT_F16 ? k->vector.from_f16 : k->vector.from_bf16)(n, y, x->data);
    x->data = y;
    x->dtype = dtype;
}

/* From here on, exact has the numbers in f32, and args and grads are of the type. */
static inline void set_type(trial *t)
{
    const att_dtype dtype = types[t->c->of[TYPE]].dtype;
    att_tensor *const x[] = {&t->args.q,     &t->args.k,   &t->args.v,   &t->args.out,
                             &t->grads.dout, &t->grads.dq, &t->grads.dk, &t->grads.dv};
    t->exact = t->args;
    t->dout = t->grads.dout.data;
    t->spec.dtype = dtype;
    for (int i = 0; dtype != ATT_F32 && i < COUNT(x); i++)
        round_to(t, x[i], dtype);
}

static inline void make_trial(trial *t, const choice *c, uint64_t seed)
{
    const shape n = shapes[c->of[SHAPE]];
    *t = (trial){.c = c, .seed = seed, .args.size = sizeof t->args, .grads.size = sizeof t->grads};
    t->spec = spec_of(n);
    t->spec.dropout = dropouts[c->of[DROPS]];
    set_sequences(t);
    const int64_t q_tokens = t->q_offsets[n.batch], k_tokens = t->k_offsets[n.batch];
    make_rows(t, &t->args.q, n.heads, n.tq, q_tokens, n.head_dim);
    make_rows(t, &t->args.k, n.kv_heads, n.tk, k_tokens, n.head_dim);
    make_rows(t, &t->args.v, n.kv_heads, n.tk, k_tokens, n.value_dim);
    make_rows(t, &t->args.out, n.heads, n.tq, q_tokens, n.value_dim);
    if (c->of[PLACE] == RAGGED)
        make_tensor(t, &t->args.lse, ATT_DIMS(q_tokens, n.heads));
    else
        make_tensor(t, &t->args.lse, ATT_DIMS(n.batch, n.heads, n.tq));
    set_stages(t);
    const struct {
        att_tensor *x, *like;
    } pairs[] = {{&t->grads.dout, &t->args.out},
                 {&t->grads.dlse, &t->args.lse},
                 {&t->grads.dq, &t->args.q},
                 {&t->grads.dk, &t->args.k},
                 {&t->grads.dv, &t->args.v}};
    for (int i = 0; i < COUNT(pairs); i++)
        make_like(t, pairs[i].x, pairs[i].like);
    for (int i = 0; i < t->args.n_params; i++)
        if (t->args.param[i].dtype == ATT_F32)
            make_like(t, dparam_at(&t->grads, i), &t->args.param[i]);
    set_type(t);
}

/* Forward and backward. */
static inline void run_trial(att_ctx *ctx, const trial *t)
{
    att_plan *plan;
    if (att_plan_new(ctx, &t->spec, &plan) || att_forward(plan, &t->args) || att_backward(plan, &t->args, &t->grads))
        fail_msg("%s\n%s", name_of(t->c), att_error(ctx));
    att_plan_free(plan);
}

static inline double *new_numbers(trial *t, int64_t n) { return hold(t, calloc((size_t)n + 1, sizeof(double))); }

#endif
