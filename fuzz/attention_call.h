/* An input as a call of attention: stages, sizes, sequences, tensors and their memory. */
#ifndef FUZZ_ATTENTION_CALL_H
#define FUZZ_ATTENTION_CALL_H

#include "att_lists.h"
#include "fuzz.h"
#include "attend_extend.h"
#include "fixtures/product_scores.h"

#include <math.h>

/* ---- the input, byte by byte; after its end, zeros */

typedef struct input {
    const unsigned char *at;
    size_t left;
} input;

static int pick(input *in, int n)
{
    if (in->left == 0)
        return 0;
    in->left--;
    return *in->at++ % n;
}

static bool rarely(input *in) { return pick(in, 8) == 7; }

static int64_t odd_number(input *in)
{
    static const int64_t numbers[] = {0,
                                      -1,
                                      1,
                                      2,
                                      3,
                                      7,
                                      -7,
                                      64,
                                      INT32_MAX,
                                      INT32_MIN,
                                      INT64_MAX,
                                      INT64_MIN,
                                      1LL << 40,
                                      1LL << 62,
                                      1LL << 33,
                                      -(1LL << 40),
                                      INT64_MAX / 2,
                                      INT64_MAX / 8,
                                      1LL << 61,
                                      255};
    return numbers[pick(in, sizeof numbers / sizeof *numbers)];
}

/* ---- contexts: each instruction set here, with one thread and with two; memory of exactly the size asked for */

static long allocations_left; /* until one fails; 0: none does */

enum { MAX_ALLOCATION = 1 << 25 }; /* there is no memory for more at once */

static void *fuzz_alloc(void *user, size_t bytes, size_t alignment)
{
    void *p;
    (void)user;
    const long left = __atomic_load_n(&allocations_left, __ATOMIC_SEQ_CST);
    if (left > 0 && __atomic_sub_fetch(&allocations_left, 1, __ATOMIC_SEQ_CST) == 0)
        return NULL;
    return bytes > MAX_ALLOCATION || posix_memalign(&p, alignment, bytes) ? NULL : p;
}

static void fuzz_free(void *user, void *p)
{
    (void)user;
    free(p);
}

enum { MAX_SETS = 8 };

static att_ctx *context_of(int set, int threads)
{
#define NAME(name) #name,
    static const char *const names[] = {ATT_SET_LIST(NAME)};
    static att_ctx *contexts[MAX_SETS][3];
    static bool opened;
    const int n = sizeof names / sizeof *names;
    for (int i = 0; i < 2 * n && !opened; i++) /* those that this machine does not have stay NULL */
        if (att_open(&contexts[i / 2][1 + i % 2], ATT_OPTIONS(att_config, .n_threads = 1 + i % 2, .isa = names[i / 2],
                                                              .allocator = {fuzz_alloc, fuzz_free, 0})))
            contexts[i / 2][1 + i % 2] = NULL;
    opened = true;
    while (!contexts[set % n][threads])
        set++;
    return contexts[set % n][threads];
}

/* ---- stages: those of the build, and the caller's own, of formulas alone */

static double near(const att_pair *p)
{
    double s = 0;
    for (int64_t d = 0; d < p->dim && d < p->key_dim; d++)
        s -= fabs((double)p->query[d] - p->key[d]) * p->param[0].data[d];
    return s;
}
static void near_derivative(const att_pair *p, double ds, double *dq, double *dk, double *const *dparam)
{
    for (int64_t d = 0; d < p->dim && d < p->key_dim; d++) {
        const double x = (double)p->query[d] - p->key[d], slope = ds * p->param[0].data[d] * (x < 0 ? -1 : 1);
        dq[d] -= slope;
        dk[d] += slope;
        if (dparam[0])
            dparam[0][d] -= ds * fabs(x);
    }
}
static const att_param_shape gains = {.name = "gains", .rows = ATT_EXTENT_HEAD_DIM}, bend = {.name = "bend"};
static const att_score near_score = {.size = sizeof(att_score),
                                     .name = "near",
                                     .param = &gains,
                                     .n_params = 1,
                                     .formula = near,
                                     .derivative = near_derivative};

static double bent(const att_pair *p, double s) { return s + p->param->data[0] * s * s; }
static double bent_derivative(const att_pair *p, double s, double ds, double *const *dparam)
{
    if (dparam[0])
        dparam[0][0] += ds * s * s;
    return 1 + 2 * p->param->data[0] * s;
}
static const att_modifier bent_modifier = {.size = sizeof(att_modifier),
                                           .name = "bent",
                                           .param = &bend,
                                           .n_params = 1,
                                           .formula = bent,
                                           .derivative = bent_derivative};

static double negative(const att_pair *p, double s) { return p->value[0] - s; }
static const att_modifier negative_modifier = {.size = sizeof(att_modifier), .name = "negative", .formula = negative};

static bool scattered(const att_mask_block *b)
{
    return ((b->head->position + b->q) * 7 + b->k * 4 + b->head->head) % 3 != 0;
}
static const att_mask scattered_mask = {.size = sizeof(att_mask), .name = "scattered", .keep = scattered};

static const att_score *const own_score = &near_score, *const product_score = &gaussian_score;
static const att_modifier *const own_modifier = &bent_modifier, *const without_derivative = &negative_modifier;
static const att_mask *const own_mask = &scattered_mask;

#define HANDLE(kind, name) &att_##kind##_##name,
static const att_score *const *const scores[] = {&att_score_dot, ATT_score_LIST(HANDLE) & own_score, &product_score};
static const att_modifier *const *const modifiers[] = {ATT_modifier_LIST(HANDLE) & own_modifier, &without_derivative};
static const att_mask *const *const masks[] = {ATT_mask_LIST(HANDLE) & own_mask};
#define COUNT(x) ((int)(sizeof(x) / sizeof(x)[0]))

/* ---- the call */

enum { MAX_STAGES = 16, MAX_PARAMS = 16, MAX_TENSORS = 48, MAX_LISTS = 8, MAX_SEQUENCES = 4, MAX_BYTES = 1 << 22 };

typedef struct array {
    att_tensor *view;
    unsigned char *memory;
    size_t bytes;
    unsigned char *element; /* [bytes] 1: belongs to an element; NULL if the view is invalid */
    bool forward, backward; /* it writes this */
    bool left_out;
} array;

typedef struct call {
    input *in;
    att_attention_spec spec;
    att_attention_args args;
    att_attention_grads grads;
    att_tensor out2, lse2;
    int64_t sequences, tq, tk; /* tq and tk: of q and k, batched; the longest, ragged */
    bool ragged, odd_values;
    bool cut; /* a struct is that of an older header, so some outputs may not be known */
    array arrays[MAX_TENSORS];
    int n_arrays;
    struct {
        void *memory;
        size_t bytes;
    } lists[MAX_LISTS];
    int n_lists;
    att_stage stage[MAX_STAGES];                      /* the spec's */
    att_tensor param[MAX_PARAMS], dparam[MAX_PARAMS]; /* the args' and the grads' */
} call;

/* Memory of exact size for lengths and the like, so that out-of-bounds reads are detected. */
static void *list_of(call *c, const void *from, size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    if (!p || c->n_lists == MAX_LISTS)
        abort();
    memcpy(p, from, bytes);
    c->lists[c->n_lists].memory = p;
    c->lists[c->n_lists++].bytes = bytes;
    return p;
}

/* A view of these dimensions: dense, permuted, with gaps, reversed or broadcast; its memory is allocated later. */
static void view(call *c, att_tensor *t, att_dtype dtype, int rank, const int64_t *dim, bool forward, bool backward)
{
    *t = (att_tensor){.dtype = dtype, .rank = rank};
    memcpy(t->dim, dim, (size_t)rank * sizeof *dim);
    const int choice = pick(c->in, 32), style = choice < 16 ? 0 : choice - 16, gap = style & 2 ? 1 + pick(c->in, 3) : 0;
    int64_t stride = 1;
    for (int n = 0; n < rank; n++) { /* from the innermost on; style & 1: the others the other way round */
        const int i = n == 0 || !(style & 1) ? rank - 1 - n : n - 1;
        t->stride[i] = stride;
        stride *= dim[i] > 0 ? dim[i] : 1;
        stride += n == 0 || style & 4 ? gap : 0;
    }
    if (rank > 1 && style >= 12)
        t->stride[pick(c->in, rank - 1)] *= forward || backward || style & 1 ? -1 : 0;
    if (c->n_arrays == MAX_TENSORS)
        abort();
    c->arrays[c->n_arrays++] = (array){.view = t, .forward = forward, .backward = backward};
}

/* Dimensions [batch, heads, time, dim] as they are laid out, without the last where dim is 0. */
static void operand(call *c, att_tensor *t, int64_t heads, bool of_keys, int64_t dim, bool forward, bool backward)
{
    const att_dtype dtype = dim ? c->spec.dtype : ATT_F32;
    if (c->ragged) {
        const int64_t *offsets = of_keys && c->args.k_offsets ? c->args.k_offsets : c->args.q_offsets;
        view(c, t, dtype, dim ? 3 : 2, (const int64_t[]){offsets[c->sequences], heads, dim}, forward, backward);
    } else {
        view(c, t, dtype, dim ? 4 : 3, (const int64_t[]){c->sequences, heads, of_keys ? c->tk : c->tq, dim}, forward,
             backward);
    }
}

static void choose_stages(call *c)
{
    input *in = c->in;
    att_attention_spec *s = &c->spec;
    s->score = *scores[pick(in, COUNT(scores))];
    s->stage = c->stage;
    s->n_stages = pick(in, 7);
    for (int i = 0; i < s->n_stages; i++) {
        att_stage *x = &c->stage[i];
        *x = (att_stage){0};
        if (pick(in, 2))
            x->modifier = *modifiers[pick(in, COUNT(modifiers))];
        else
            x->mask = *masks[pick(in, COUNT(masks))];
        if ((x->modifier && (x->modifier->flags & ATT_STAGE_NEEDS_VALUE)) || rarely(in))
            x->value[0] = 0.5 + pick(in, 256);
        for (int side = 0; x->mask == att_mask_window && side < 2; side++)
            x->value[side] = pick(in, 40) - 1;
    }
    s->align = (att_align)(rarely(in) ? 0 : 1 + pick(in, 3));
    s->dropout = pick(in, 4) == 0 ? (float)pick(in, 16) / 16 : 0;
}

static void choose_sizes(call *c)
{
    static const int dims[] = {8, 1, 2, 3, 5, 16, 17, 33, 64, 80};
    static const int times[] = {5, 0, 1, 2, 3, 8, 17, 31, 33, 64, 65, 130, 257, 300, 1030};
    input *in = c->in;
    att_attention_spec *s = &c->spec;
    s->kv_heads = 1 + pick(in, 2);
    s->heads = s->kv_heads * (1 + pick(in, 3));
    s->head_dim = dims[pick(in, COUNT(dims))];
    s->key_dim = pick(in, 4) == 0 ? dims[pick(in, COUNT(dims))] : s->head_dim;
    s->value_dim = dims[pick(in, COUNT(dims))];
    s->score_dim = s->score == att_score_additive && pick(in, 2) ? dims[pick(in, COUNT(dims))] : 0;
    s->dtype = (att_dtype)pick(in, 3);
    c->sequences = rarely(in) ? 0 : 1 + pick(in, MAX_SEQUENCES - 1);
    c->tq = times[pick(in, COUNT(times))];
    c->tk = times[pick(in, COUNT(times))];
    while (c->sequences * s->heads * c->tq * c->tk * (s->head_dim + s->value_dim) > 1000000)
        *(c->tq > 33 ? &c->tq : c->tk > 33 ? &c->tk : &c->sequences) /= 2;
}

/* Starts and ids. */
static void choose_places(call *c)
{
    input *in = c->in;
    const size_t n = (size_t)c->sequences;
    int64_t starts[MAX_SEQUENCES];
    uint32_t ids[MAX_SEQUENCES];
    for (size_t b = 0; b < n; b++) {
        starts[b] = rarely(in) ? odd_number(in) >> 16 : pick(in, 64) - 8;
        ids[b] = (uint32_t)odd_number(in);
    }
    if (c->spec.align == ATT_ALIGN_STARTS)
        c->args.q_starts = list_of(c, starts, n * sizeof *starts);
    if (c->spec.dropout > 0)
        c->args.sequence_ids = list_of(c, ids, n * sizeof *ids);
    c->args.dropout_seed = (uint64_t)odd_number(in);
}

/* A parameter of the score or a stage and, where wanted, its gradient. */
static void param(call *c, const att_param_shape *shape, bool of_mask)
{
    const att_attention_spec *s = &c->spec;
    const int which = pick(c->in, 32), n = c->args.n_params;
    const bool of_keys = shape->kind == ATT_PARAM_PER_KEY;
    const att_extent extents[] = {shape->rows, shape->columns};
    const int64_t extent[] = {[ATT_EXTENT_ANY] = 4 + which,
                              [ATT_EXTENT_HEAD_DIM] = s->head_dim,
                              [ATT_EXTENT_KEY_DIM] = s->key_dim,
                              [ATT_EXTENT_SCORE_DIM] = s->score_dim ? s->score_dim : s->head_dim};
    int64_t dim[4] = {which & 1 ? s->heads : 1, which & 2 ? s->heads : 1, which & 4 ? c->tq : 1, which & 8 ? c->tk : 1};
    int rank = 1;
    if (n == MAX_PARAMS)
        return;
    if (shape->kind == ATT_PARAM_PER_PAIR) {
        dim[0] = which & 1 ? c->sequences : 1;
        rank = 4;
    } else if (shape->kind != ATT_PARAM_PER_HEAD && c->ragged) {
        dim[0] = (of_keys && c->args.k_offsets ? c->args.k_offsets : c->args.q_offsets)[c->sequences];
    } else if (shape->kind != ATT_PARAM_PER_HEAD) {
        dim[0] = which & 1 ? c->sequences : 1;
        dim[1] = of_keys ? c->tk : c->tq;
        rank = 2;
    }
    for (int i = 0; i < 2 && shape->kind == ATT_PARAM_PER_HEAD && extents[i]; i++)
        dim[rank++] = extent[extents[i]];
    view(c, &c->param[n], shape->dtype, rank, dim, false, false);
    if (!of_mask && which & 16)
        view(c, &c->dparam[n], ATT_F32, rank, dim, false, true);
    c->grads.n_dparams = ++c->args.n_params;
}

static void choose_params(call *c)
{
    const att_attention_spec *s = &c->spec;
    c->args.param = c->param;
    c->args.n_params = 0;
    c->grads.dparam = c->dparam;
    for (int i = 0; i < s->score->n_params; i++)
        if (i == 0 || s->score_dim)
            param(c, &s->score->param[i], false);
    for (int i = 0; i < s->n_stages; i++) {
        const att_modifier *m = s->stage[i].modifier;
        const att_mask *mask = s->stage[i].mask;
        for (int n = 0; n < (m ? m->n_params : mask->n_params); n++)
            param(c, m ? &m->param[n] : &mask->param[n], !m);
    }
}

static void choose_operands(call *c)
{
    const att_attention_spec *s = &c->spec;
    att_attention_args *a = &c->args;
    att_attention_grads *g = &c->grads;
    const int wanted = pick(c->in, 64);
    const bool has_lse = pick(c->in, 4) < 3;
    operand(c, &a->q, s->heads, false, s->head_dim, false, false);
    operand(c, &a->k, s->kv_heads, true, s->key_dim, false, false);
    operand(c, &a->v, s->kv_heads, true, s->value_dim, false, false);
    operand(c, &a->out, s->heads, false, s->value_dim, true, false);
    if (has_lse)
        operand(c, &a->lse, s->heads, false, 0, true, false);
    operand(c, &g->dout, s->heads, false, s->value_dim, false, false);
    if (wanted & 1)
        operand(c, &g->dlse, s->heads, false, 0, false, false);
    if (wanted & 2)
        operand(c, &g->dq, s->heads, false, s->head_dim, false, true);
    if (wanted & 4)
        operand(c, &g->dk, s->kv_heads, true, s->key_dim, false, true);
    if (wanted & 8)
        operand(c, &g->dv, s->kv_heads, true, s->value_dim, false, true);
    g->accumulate = wanted & 16;
    choose_params(c);
    operand(c, &c->out2, s->heads, false, s->value_dim, false, false);
    operand(c, &c->lse2, s->heads, false, 0, false, false);
}

/* One thing that is wrong, or at least odd. */
static void spoil(call *c)
{
    input *in = c->in;
    att_attention_spec *s = &c->spec;
    array *a = &c->arrays[pick(in, c->n_arrays)];
    att_tensor *t = a->view;
    int64_t *const numbers[] = {&s->heads, &s->kv_heads, &s->head_dim, &s->key_dim, &s->value_dim, &s->score_dim};
    size_t *const sizes[] = {&s->size, &c->args.size, &c->grads.size};
    float *const floats[] = {&s->scale, &s->dropout};
    int64_t number;
    int which;
    static const float odd_floats[] = {NAN, INFINITY, -INFINITY, -1, 0, 1, 1e38f, 1e-40f, 3e9f};
    switch (pick(in, 11)) {
    case 0:
        t->dim[pick(in, ATT_MAX_RANK)] = odd_number(in);
        break;
    case 1:
        t->stride[pick(in, ATT_MAX_RANK)] = odd_number(in);
        break;
    case 2:
        t->rank = (int)odd_number(in);
        break;
    case 3:
        t->dtype = (att_dtype)pick(in, 256);
        break;
    case 4:
        a->left_out = true;
        break;
    case 5:
        *numbers[pick(in, COUNT(numbers))] = odd_number(in);
        break;
    case 6:
        *floats[pick(in, COUNT(floats))] = odd_floats[pick(in, COUNT(odd_floats))];
        break;
    case 7:
        s->align = (att_align)pick(in, 256);
        break;
    case 8: /* an older header's, or none */
        which = pick(in, COUNT(sizes));
        c->cut = true;
        *sizes[which] = 8 * (size_t)pick(in, (int)(*sizes[which] / 8 + 1)); /* no pointer is cut in two */
        break;
    case 9:
        c->args.n_sequences = pick(in, (int)c->args.n_sequences + 2) - 1;
        break;
    default:
        if (c->n_lists) { /* of offsets, lengths, starts or ids the first */
            which = pick(in, c->n_lists);
            number = odd_number(in);
            memcpy(c->lists[which].memory, &number,
                   c->lists[which].bytes < sizeof number ? c->lists[which].bytes : sizeof number);
        }
    }
}

/* ---- memory */

/* Finds the byte range from the lowest to after the highest element. False: not allocatable. */
static bool range_of(const att_tensor *t, __int128 *low, __int128 *high)
{
    const __int128 size = (__int128)att_dtype_size(t->dtype);
    if (t->rank < 0 || t->rank > ATT_MAX_RANK || size == 0)
        return false;
    *low = 0;
    *high = size;
    bool empty = false;
    for (int i = 0; i < t->rank; i++) {
        if (t->dim[i] < 0)
            return false;
        *(t->stride[i] < 0 ? low : high) += (__int128)(t->dim[i] - 1) * t->stride[i] * size;
        empty = empty || t->dim[i] == 0;
    }
    if (empty)
        *low = *high = 0;
    return *low >= -PTRDIFF_MAX / 2 && *high <= PTRDIFF_MAX / 2;
}

static void mark_elements(array *a, size_t origin)
{
    const att_tensor *t = a->view;
    int64_t index[ATT_MAX_RANK] = {0};
    __int128 at = (__int128)origin; /* strides of dimensions of 1 may be anything */
    const __int128 size = (__int128)att_dtype_size(t->dtype);
    __int128 count = 1;
    for (int i = 0; i < t->rank; i++)
        count *= t->dim[i] < MAX_BYTES ? t->dim[i] : MAX_BYTES;
    if (count == 0 || count > MAX_BYTES)
        return;
    for (int i = t->rank - 1; i != -1;) {
        memset(a->element + (size_t)at, 1, (size_t)size);
        for (i = t->rank - 1; i >= 0; i--) {
            at += t->stride[i] * size;
            if (++index[i] < t->dim[i])
                break;
            at -= t->stride[i] * size * index[i];
            index[i] = 0;
        }
    }
}

static uint32_t mixed(uint32_t x)
{
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

/* Numbers of the view's type: moderate ones, or with some that are huge or not finite. */
static void fill(const array *a, uint32_t seed, bool odd)
{
    static const uint32_t odd_bits[] = {0x7fc00000, 0x7f800000, 0xff800000, 0x7f7fffff, 0, 0x80000000, 1, 0xffffffff};
    const size_t size = att_dtype_size(a->view->dtype);
    for (size_t i = 0; i < a->bytes / (size ? size : 1); i++) {
        const uint32_t x = mixed(seed + (uint32_t)i);
        const float number = (float)(int32_t)x * 0x1p-30f;
        uint32_t bits;
        memcpy(&bits, &number, sizeof bits);
        if (odd && x % 16 == 0)
            bits = odd_bits[x / 16 % 8];
        if (a->view->dtype == ATT_BF16)
            bits >>= 16;
        else if (a->view->dtype == ATT_F16)
            bits = odd ? x >> 16 : x >> 16 & 0xbfff;
        else if (a->view->dtype == ATT_I32 && !odd)
            bits = (uint32_t)i / 8;
        memcpy(a->memory + i * size, &bits, size < sizeof bits ? size : sizeof bits);
    }
}

/* Memory that is too large is NULL, and an impossible size is one byte: both must be refused. */
static void allocate(call *c)
{
    const uint32_t seed = (uint32_t)pick(c->in, 256) << 16;
    c->odd_values = rarely(c->in);
    for (int i = 0; i < c->n_arrays; i++) {
        array *a = &c->arrays[i];
        __int128 low = 0, high = 1;
        const bool sound = range_of(a->view, &low, &high);
        if (a->left_out)
            *a->view = (att_tensor){0};
        if (a->left_out || (sound && high - low > MAX_BYTES))
            continue;
        a->bytes = sound ? (size_t)(high - low) : 1;
        a->memory = malloc(a->bytes);
        if (!a->memory)
            abort();
        a->view->data = a->memory - (sound ? (int64_t)low : 0);
        fill(a, seed + (uint32_t)i * 4096, c->odd_values);
        if (!sound)
            continue;
        a->element = calloc(a->bytes + 1, 1);
        if (!a->element)
            abort();
        mark_elements(a, (size_t)-low);
    }
}

static void release(call *c)
{
    for (int i = 0; i < c->n_arrays; i++) {
        free(c->arrays[i].memory);
        free(c->arrays[i].element);
    }
    for (int i = 0; i < c->n_lists; i++)
        free(c->lists[i].memory);
}

#endif
