/* The input chooses a plan and what is done to a cache of its keys and values: tokens are appended, taken off,
 * sequences become others, memory fails, arguments are wrong. Which tokens are where is written down beside it, and
 * whenever queries attend from the cache, the bits are those of tensors with these tokens, and of the last query alone.
 * What was refused has changed nothing. */
#include "attention_check.h"

enum { TOKENS = 64, MAX_LENGTH = 700 };

/* All tokens that there are: keys [kv_heads, TOKENS, key_dim] and values [kv_heads, TOKENS, value_dim], dense. */
typedef struct tokens {
    array array[2]; /* of k and v */
    att_tensor k, v;
} tokens;

/* The contents of the cache. */
typedef struct book {
    int64_t length[MAX_SEQUENCES];
    unsigned char token[MAX_SEQUENCES][MAX_LENGTH];
} book;

typedef struct trial {
    input *in;
    att_attention_spec spec;
    const att_plan *plan;
    int set;
    int64_t sequences, tq; /* of queries, when they attend */
    att_cache *cache;
    tokens tokens;
    book book;
} trial;

static void make_tokens(trial *t)
{
    const int64_t dims[] = {t->spec.key_dim, t->spec.value_dim};
    att_tensor *const views[] = {&t->tokens.k, &t->tokens.v};
    const bool odd = rarely(t->in);
    for (int i = 0; i < 2; i++) {
        array *a = &t->tokens.array[i];
        att_wrap(views[i], NULL, t->spec.dtype, ATT_DIMS(t->spec.kv_heads, TOKENS, dims[i]), NULL);
        a->view = views[i];
        a->bytes = (size_t)(t->spec.kv_heads * TOKENS * dims[i]) * att_dtype_size(t->spec.dtype);
        a->memory = malloc(a->bytes);
        if (!a->memory)
            abort();
        fill(a, (uint32_t)i * 4096, odd);
        views[i]->data = a->memory;
    }
}

static bool holds(const trial *t, att_status e)
{
    check_error(e);
    for (int64_t b = 0; b < t->sequences; b++)
        fuzz_check(att_cache_length(t->cache, b) == t->book.length[b], "another length");
    return !e;
}

/* ---- changes */

/* Tokens first, first + step, ..., those of sequence b from first + b shift on. */
typedef struct addition {
    bool all;
    int64_t sequence, first, n, step, shift;
} addition;

static att_tensor rows_of(const trial *t, const att_tensor *all, const addition *a)
{
    const int64_t row = all->stride[1];
    const int64_t dim[] = {t->sequences, all->dim[0], a->n, all->dim[2]};
    const int64_t stride[] = {a->shift * row, all->stride[0], a->step * row, 1};
    att_tensor x = {.data = (char *)all->data + a->first * row * (int64_t)att_dtype_size(all->dtype),
                    .dtype = all->dtype,
                    .rank = a->all ? 4 : 3};
    memcpy(x.dim, dim + 4 - x.rank, (size_t)x.rank * sizeof *dim);
    memcpy(x.stride, stride + 4 - x.rank, (size_t)x.rank * sizeof *stride);
    return x;
}

/* Without reading beyond the memory of the tensors: not as f32, which a cache of 16 bits accepts too. */
static void spoil_rows(trial *t, att_tensor *x)
{
    switch (pick(t->in, 5)) {
    case 0:
        x->dim[pick(t->in, 2) ? x->rank - 1 : 0] = odd_number(t->in);
        break;
    case 1:
        x->rank = (int)odd_number(t->in);
        break;
    case 2:
        x->dtype = (att_dtype)pick(t->in, 256);
        if (x->dtype == ATT_F32)
            x->dtype = ATT_I32;
        break;
    case 3:
        x->stride[x->rank - 1] = odd_number(t->in);
        break;
    default:
        x->data = NULL;
    }
}

static int64_t longest_of(const trial *t)
{
    int64_t longest = 0;
    for (int64_t b = 0; b < t->sequences; b++)
        longest = t->book.length[b] > longest ? t->book.length[b] : longest;
    return longest;
}

/* Tokens first, first + step, ... as the offsets state. */
static void append_ragged(trial *t)
{
    input *in = t->in;
    int64_t offsets[MAX_SEQUENCES + 1] = {0};
    addition a = {.step = pick(in, 2), .first = pick(in, TOKENS / 2)};
    const int max = a.step ? TOKENS / 2 / MAX_SEQUENCES : 256;
    int64_t left = MAX_LENGTH - longest_of(t);
    for (int64_t b = 0; b < t->sequences; b++) {
        const int64_t n = pick(in, 3) ? pick(in, max) : 0;
        offsets[b + 1] = offsets[b] + (n < left ? n : left);
        left -= offsets[b + 1] - offsets[b];
    }
    a.n = offsets[t->sequences];
    att_tensor k = rows_of(t, &t->tokens.k, &a), v = rows_of(t, &t->tokens.v, &a), *const x[] = {&k, &v};
    for (int i = 0; i < 2; i++) { /* [kv_heads, tokens, dim] to [tokens, kv_heads, dim] */
        const att_tensor y = *x[i];
        x[i]->dim[0] = y.dim[1], x[i]->dim[1] = y.dim[0];
        x[i]->stride[0] = y.stride[1], x[i]->stride[1] = y.stride[0];
    }
    if (rarely(in))
        spoil_rows(t, pick(in, 2) ? &k : &v);
    else if (rarely(in))
        offsets[pick(in, (int)t->sequences + 1)] = odd_number(in);
    const att_status e = att_cache_append_ragged(t->cache, offsets, &k, &v);
    for (int64_t b = 0; b < t->sequences && !e; b++)
        for (int64_t i = offsets[b]; i < offsets[b + 1]; i++)
            t->book.token[b][t->book.length[b]++] = (unsigned char)(a.first + i * a.step);
    holds(t, e);
}

static void append(trial *t)
{
    input *in = t->in;
    const int kind = pick(in, 4);
    if (kind == 2) {
        append_ragged(t);
        return;
    }
    addition a = {.all = kind % 2, .step = pick(in, 2), .shift = pick(in, 2)};
    a.sequence = a.all ? ATT_ALL_SEQUENCES : rarely(in) ? odd_number(in) : pick(in, (int)t->sequences);
    a.first = pick(in, TOKENS / 2);
    a.n = a.step ? pick(in, TOKENS / 2 - MAX_SEQUENCES) : rarely(in) ? odd_number(in) : 2 * pick(in, 256);
    const int64_t longest = longest_of(t);
    if (a.n > 0 && a.n < MAX_LENGTH && longest + a.n > MAX_LENGTH)
        a.n = MAX_LENGTH - longest;
    att_tensor k = rows_of(t, &t->tokens.k, &a), v = rows_of(t, &t->tokens.v, &a);
    const bool spoiled = rarely(in);
    if (spoiled)
        spoil_rows(t, pick(in, 2) ? &k : &v);
    const att_status e = att_cache_append(t->cache, a.sequence, &k, &v);
    for (int64_t b = 0; b < t->sequences && !e; b++) {
        fuzz_check(a.n >= 0 && longest + a.n <= MAX_LENGTH, "more tokens than there is memory for");
        if (!a.all && b != a.sequence)
            continue;
        for (int64_t i = 0; i < a.n; i++)
            t->book.token[b][t->book.length[b] + i] = (unsigned char)(a.first + (a.all ? b * a.shift : 0) + i * a.step);
        t->book.length[b] += a.n;
    }
    holds(t, e);
}

static void truncate_some(trial *t)
{
    input *in = t->in;
    const int64_t b = rarely(in) ? odd_number(in) : pick(in, (int)t->sequences + 1) - 1;
    const int64_t length = rarely(in) ? odd_number(in) : 3 * pick(in, 256);
    bool sound = b == ATT_ALL_SEQUENCES || (b >= 0 && b < t->sequences);
    for (int64_t i = 0; i < t->sequences; i++)
        if (i == b || b == ATT_ALL_SEQUENCES)
            sound = sound && length >= 0 && length <= t->book.length[i];
    for (int64_t i = 0; i < t->sequences && sound; i++)
        if (i == b || b == ATT_ALL_SEQUENCES)
            t->book.length[i] = length;
    fuzz_check(holds(t, att_cache_truncate(t->cache, b, length)) == sound, "truncated, or not");
}

static void select_some(trial *t, bool failing)
{
    int64_t from[MAX_SEQUENCES];
    const book before = t->book;
    const int64_t n = pick(t->in, MAX_SEQUENCES + 1);
    bool sound = n > 0;
    for (int64_t b = 0; b < n; b++) {
        from[b] = rarely(t->in) ? odd_number(t->in) : pick(t->in, (int)t->sequences);
        sound = sound && from[b] >= 0 && from[b] < t->sequences;
    }
    const att_status e = att_cache_select(t->cache, n, from);
    for (int64_t b = 0; b < n && !e; b++) {
        t->book.length[b] = before.length[from[b]];
        memcpy(t->book.token[b], before.token[from[b]], sizeof before.token[0]);
    }
    t->sequences = e ? t->sequences : n;
    fuzz_check(holds(t, e) == sound || (e && failing), "selected, or not");
}

/* ---- queries */

/* Row i of a head's keys or values that are stored as tokens state, [sequences, kv_heads, longest, dim]. */
static void write_tokens(const trial *t, const att_tensor *from, const att_tensor *to)
{
    const size_t size = att_dtype_size(from->dtype), row = (size_t)from->dim[2] * size;
    for (int64_t b = 0; b < t->sequences; b++)
        for (int64_t h = 0; h < from->dim[0]; h++)
            for (int64_t i = 0; i < t->book.length[b]; i++)
                memcpy((char *)to->data + (size_t)(b * to->stride[0] + h * to->stride[1] + i * to->stride[2]) * size,
                       (char *)from->data + (size_t)(h * TOKENS + t->book.token[b][i]) * row, row);
}

static void make_dense(att_tensor *x) { att_wrap(x, x->data, x->dtype, x->rank, x->dim, NULL); }

/* Queries, tables and parameters for what is in the cache, and keys and values that are the same. */
static void make_call(const trial *t, call *c, bool spoiled)
{
    *c = (call){.in = t->in, .spec = t->spec, .args.size = sizeof c->args, .grads.size = sizeof c->grads};
    int64_t q_lengths[MAX_SEQUENCES];
    c->sequences = t->sequences;
    c->tq = t->tq;
    for (int64_t b = 0; b < t->sequences; b++)
        c->tk = t->book.length[b] > c->tk ? t->book.length[b] : c->tk;
    while (c->sequences * t->spec.heads * c->tq * c->tk * (t->spec.head_dim + t->spec.value_dim) > 1000000)
        c->tq /= 2;
    for (int64_t b = 0; b < t->sequences; b++)
        q_lengths[b] = pick(t->in, (int)c->tq + 1);
    if (pick(t->in, 4) == 0)
        c->args.q_lengths = list_of(c, q_lengths, (size_t)t->sequences * sizeof *q_lengths);
    choose_places(c);
    c->args.k_lengths = list_of(c, t->book.length, (size_t)t->sequences * sizeof *t->book.length);
    choose_operands(c);
    make_dense(&c->args.k);
    make_dense(&c->args.v);
    if (spoiled)
        spoil(c);
    allocate(c);
}

/* Row i alone of all that has a dimension of queries. */
static void one_row(att_tensor *x, int dim, int64_t i)
{
    if (!x->data || x->dim[dim] == 1)
        return;
    x->data = (char *)x->data + i * x->stride[dim] * (int64_t)att_dtype_size(x->dtype);
    x->dim[dim] = 1;
}

static bool same(float a, float b) { return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0; }

/* The last query of a full pass, f32, decoded alone. */
static void check_last(const trial *t, const call *c)
{
    att_attention_args one = c->args;
    const int64_t last = c->tq - 1, heads = t->spec.heads, dim = t->spec.value_dim;
    float *out = malloc((size_t)(t->sequences * heads * dim) * sizeof *out);
    att_tensor whole = c->args.out;
    one_row(&one.q, 2, last);
    att_tensor param[MAX_PARAMS];
    int at = 0;
    memcpy(param, c->param, sizeof param);
    one.param = param;
    for (int i = 0; i < t->spec.score->n_params; i++)
        at += i == 0 || t->spec.score_dim;
    for (int i = 0; i < t->spec.n_stages; i++) {
        const att_stage *s = &t->spec.stage[i];
        const int n = s->mask ? s->mask->n_params : s->modifier->n_params;
        for (int j = 0; j < n; j++, at++) {
            const att_param_kind kind = (s->mask ? s->mask->param : s->modifier->param)[j].kind;
            if (kind == ATT_PARAM_PER_PAIR || kind == ATT_PARAM_PER_QUERY)
                one_row(&param[at], kind == ATT_PARAM_PER_PAIR ? 2 : 1, last);
        }
    }
    att_wrap(&one.out, out, ATT_F32, ATT_DIMS(t->sequences, heads, 1, dim), NULL);
    one.lse = (att_tensor){0};
    fuzz_check(!att_forward(t->plan, &one), "the last query alone is refused");
    one_row(&whole, 2, last);
    for (int64_t b = 0; b < t->sequences; b++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t d = 0; d < dim; d++)
                fuzz_check(same(out[(b * heads + h) * dim + d],
                                ((float *)whole.data)[b * whole.stride[0] + h * whole.stride[1] + d]),
                           "decoded, the last query has other bits");
    free(out);
}

/* The weights of one row are those from tensors. */
static void check_weights(const trial *t, const call *c, const att_plan *plain, const att_attention_args *tensors)
{
    const int64_t b = pick(t->in, (int)t->sequences), head = pick(t->in, (int)t->spec.heads),
                  length = t->book.length[b], rows = c->args.q_lengths ? c->args.q_lengths[b] : c->tq;
    float *w[2] = {calloc((size_t)length + 1, sizeof *w[0]), calloc((size_t)length + 1, sizeof *w[1])};
    if (rows > 0) {
        const int64_t row = pick(t->in, (int)rows);
        fuzz_check(!att_weights(plain, tensors, b, head, row, 1, w[0]) &&
                       !att_weights(t->plan, &c->args, b, head, row, 1, w[1]),
                   "weights are refused");
        for (int64_t j = 0; j < length; j++)
            fuzz_check(same(w[0][j], w[1][j]), "other weights");
    }
    free(w[0]), free(w[1]);
}

/* Returns whether a stage has a number for each query, key or pair. */
static bool has_tables(const trial *t)
{
    for (int i = 0; i < t->spec.n_stages; i++) {
        const att_stage *s = &t->spec.stage[i];
        const int n = s->mask ? s->mask->n_params : s->modifier->n_params;
        for (int j = 0; j < n; j++)
            if ((s->mask ? s->mask->param : s->modifier->param)[j].kind != ATT_PARAM_PER_HEAD)
                return true;
    }
    return false;
}

/* Checks that ragged queries [tokens, heads, dim] get the same results. */
static void check_ragged(const trial *t, const call *c)
{
    int64_t offsets[MAX_SEQUENCES + 1] = {0};
    for (int64_t b = 0; b < t->sequences; b++)
        offsets[b + 1] = offsets[b] + (c->args.q_lengths ? c->args.q_lengths[b] : c->tq);
    const att_tensor *from[] = {&c->args.q, &c->args.out};
    att_attention_args a = c->args;
    att_tensor *to[] = {&a.q, &a.out};
    const int64_t tokens = offsets[t->sequences], heads = t->spec.heads;
    for (int i = 0; i < 2; i++) {
        const size_t size = att_dtype_size(t->spec.dtype);
        att_wrap(to[i], NULL, t->spec.dtype, ATT_DIMS(tokens, heads, from[i]->dim[3]), NULL);
        to[i]->data = calloc((size_t)(tokens * heads * from[i]->dim[3]) + 1, size);
    }
    a.lse = (att_tensor){0};
    a.q_lengths = NULL;
    a.q_offsets = offsets;
    a.n_sequences = t->sequences;
    for (int pass = 0; pass < 2; pass++) {
        const att_tensor *x = from[pass], *y = to[pass];
        const size_t size = att_dtype_size(t->spec.dtype), row = (size_t)x->dim[3] * size;
        for (int64_t b = 0; b < t->sequences; b++)
            for (int64_t h = 0; h < heads; h++)
                for (int64_t i = offsets[b]; i < offsets[b + 1]; i++) {
                    const int64_t at = b * x->stride[0] + h * x->stride[1] + (i - offsets[b]) * x->stride[2];
                    unsigned char *batched = (unsigned char *)x->data + at * (int64_t)size;
                    unsigned char *ragged = (unsigned char *)y->data + (size_t)(i * heads + h) * row;
                    if (pass == 0)
                        memcpy(ragged, batched, row);
                    for (size_t d = 0; pass && d < row; d += size)
                        if (!(is_nan(t->spec.dtype, batched + d) && is_nan(t->spec.dtype, ragged + d)))
                            fuzz_check(memcmp(batched + d, ragged + d, size) == 0, "ragged queries get other bits");
                }
        if (pass == 0)
            fuzz_check(!att_forward(t->plan, &a), "ragged queries are refused");
    }
    free(a.q.data), free(a.out.data);
}

/* From tensors with one thread, then from the cache. */
static void attend(trial *t)
{
    const bool spoiled = rarely(t->in);
    call c;
    att_plan *plain;
    make_call(t, &c, spoiled);
    if (att_plan_new(context_of(t->set, 1), &t->spec, &plain))
        fuzz_check(false, "a plan that was made is refused");
    if (!spoiled)
        write_tokens(t, &t->tokens.k, &c.args.k), write_tokens(t, &t->tokens.v, &c.args.v);
    const att_attention_args tensors = c.args;
    const att_status e = spoiled ? ATT_OK : compute(&c, plain, false);
    copies first = copy(&c);
    for (int i = 0; i < c.n_arrays; i++)
        if (c.arrays[i].forward)
            fill(&c.arrays[i], 77, true);
    if (!spoiled || pick(t->in, 2)) { /* else given beside the cache */
        c.args.k = c.args.v = (att_tensor){0};
        c.args.k_lengths = NULL;
    }
    c.args.cache = t->cache;
    att_plan_info info = {.size = sizeof info};
    check_error(att_plan_describe(t->plan, &c.args, &info));
    const att_status f = compute(&c, t->plan, false);
    fuzz_check(spoiled || !e == !f, "from the cache refused, or only there not");
    if (!spoiled && !e) {
        check_same(&c, &first);
        check_weights(t, &c, plain, &tensors);
        fuzz_check(compute(&c, t->plan, true) == ATT_ERR_UNSUPPORTED, "backward through a cache");
        if (t->spec.dtype == ATT_F32 && t->spec.align == ATT_ALIGN_BOTTOM_RIGHT && !c.args.q_lengths && c.tq > 0)
            check_last(t, &c);
        if (t->spec.dtype != ATT_BF16 && !has_tables(t)) /* weights of bf16 may be rounded where queries are many */
            check_ragged(t, &c);
    }
    drop(&first);
    att_plan_free(plain);
    release(&c);
}

/* ---- all of it */

static void step(trial *t)
{
    const int what = pick(t->in, 8);
    const bool failing = what < 6 && rarely(t->in);
    allocations_left = failing ? 1 + pick(t->in, 4) : 0;
    if (what < 3)
        append(t);
    else if (what < 4)
        truncate_some(t);
    else if (what < 6)
        select_some(t, failing);
    allocations_left = 0;
    if (what >= 6)
        attend(t);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    input in = {data, size};
    call c = {.in = &in, .spec.size = sizeof c.spec};
    trial t = {.in = &in};
    att_plan *plan;
    t.set = pick(&in, MAX_SETS);
    const int threads = 1 + pick(&in, 2);
    choose_stages(&c);
    choose_sizes(&c);
    t.spec = c.spec;
    t.tq = c.tq;
    t.sequences = rarely(&in) ? odd_number(&in) : c.sequences;
    if (att_plan_new(context_of(t.set, threads), &t.spec, &plan))
        return 0;
    t.plan = plan;
    const att_status e = att_cache_new(plan, t.sequences, &t.cache);
    check_error(e);
    fuzz_check(!e || !t.cache, "refused, but with a cache");
    if (!e && t.sequences <= MAX_SEQUENCES) {
        make_tokens(&t);
        for (int steps = 4 + pick(&in, 12); steps > 0; steps--)
            step(&t);
        attend(&t);
    }
    att_cache_free(t.cache);
    att_plan_free(plan);
    free(t.tokens.array[0].memory);
    free(t.tokens.array[1].memory);
    return 0;
}
