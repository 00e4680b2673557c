/* Traces: describes a pass, lays out its memory, and answers questions about it. */
#include "model/trace.h"
#include "util/util.h"

#include <stdio.h>
#include <string.h>

static const char *const scopes[ATT_TRACE_SIDES] = {"encoder/layer.#/attention", "decoder/layer.#/attention",
                                                    "decoder/layer.#/cross"};
static const char *const side_names[ATT_TRACE_SIDES] = {"encoder", "decoder", "cross-attention"};

/* ---- the table: attention layers in the order of their computation */

static const att_trace_part *part_of(const att_trace *t, att_trace_side side)
{
    for (int i = 0; i < t->pass.parts; i++)
        if (t->pass.part[i].side == side)
            return &t->pass.part[i];
    return NULL;
}

/* Adds the layers. A layer of a decoder has self-attention and then cross-attention, if there is any. */
static void add_layers(att_trace *t)
{
    const att_trace_part *decoder = part_of(t, ATT_TRACE_SIDE_DECODER), *cross = part_of(t, ATT_TRACE_SIDE_CROSS);
    int64_t n = 0;
    for (int i = 0; i < t->pass.parts; i++) {
        const att_trace_part *p = &t->pass.part[i];
        if (p == cross && decoder)
            continue;
        for (int64_t l = 0; l < p->layers; l++) {
            t->layer[n++] = (att_trace_layer){.part = p, .layer = l};
            if (p == decoder && cross)
                t->layer[n++] = (att_trace_layer){.part = cross, .layer = l};
        }
    }
}

/* Writes the names of scopes. False: one is too long. */
static bool name_scopes(att_trace *t)
{
    for (int64_t i = 0; i < t->info.attentions; i++) {
        att_trace_layer *l = &t->layer[i];
        const char *pattern = l->part->scope;
        const int before = (int)strcspn(pattern, "#");
        const int n = pattern[before] ? snprintf(l->scope, sizeof l->scope, "%.*s%lld%s", before, pattern,
                                                 (long long)l->layer, pattern + before + 1)
                                      : snprintf(l->scope, sizeof l->scope, "%s", pattern);
        if (n < 0 || n >= (int)sizeof l->scope)
            return false;
    }
    return true;
}

/* ---- options */

/* Returns the number of tokens to which options.hide applies: those of the source, or of the decoder if there is no
 * source. */
static int64_t hidable(const att_trace *t) { return t->info.source > 0 ? t->info.source : t->info.target; }

static att_status check_layers(const att_trace *t, const att_trace_options *o)
{
    const int64_t *n = t->info.layers, layers = att_max(att_max(n[0], n[1]), n[2]);
    for (int64_t i = 0; i < o->n_layers; i++)
        if (o->layers[i] < 0 || o->layers[i] >= layers)
            return att_fail(t->pass.ctx, ATT_ERR_ARGUMENT,
                            "%s: options.layers[%lld] is %lld, but the layers are 0 to %lld", t->pass.caller,
                            (long long)i, (long long)o->layers[i], (long long)layers - 1);
    return ATT_OK;
}

static att_status check_zero(const att_trace *t, const att_trace_options *o)
{
    for (int64_t i = 0; i < o->n_zero; i++) {
        const att_trace_head *h = &o->zero[i];
        const att_trace_part *p = part_of(t, h->side);
        if ((unsigned)h->side >= ATT_TRACE_SIDES)
            return att_fail(t->pass.ctx, ATT_ERR_ARGUMENT, "%s: options.zero[%lld].side is %d, not one of the three",
                            t->pass.caller, (long long)i, (int)h->side);
        if (!p)
            return att_fail(t->pass.ctx, ATT_ERR_ARGUMENT,
                            "%s: options.zero[%lld].side is %s, which the model does not have", t->pass.caller,
                            (long long)i, side_names[h->side]);
        if (h->layer < 0 || h->layer >= p->layers)
            return att_fail(t->pass.ctx, ATT_ERR_ARGUMENT,
                            "%s: options.zero[%lld].layer is %lld, but the layers are 0 to %lld", t->pass.caller,
                            (long long)i, (long long)h->layer, (long long)p->layers - 1);
        if (h->head < 0 || h->head >= p->heads)
            return att_fail(t->pass.ctx, ATT_ERR_ARGUMENT,
                            "%s: options.zero[%lld].head is %lld, but the heads are 0 to %lld", t->pass.caller,
                            (long long)i, (long long)h->head, (long long)p->heads - 1);
    }
    return ATT_OK;
}

static att_status check_options(const att_trace *t, const att_trace_options *o)
{
    const struct {
        const char *name;
        const void *array;
        int64_t n;
    } arrays[] = {{"layers", o->layers, o->n_layers}, {"hide", o->hide, o->n_hide}, {"zero", o->zero, o->n_zero}};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        if (arrays[i].n < 0 || (arrays[i].n > 0 && !arrays[i].array))
            return att_fail(t->pass.ctx, ATT_ERR_ARGUMENT,
                            arrays[i].n < 0 ? "%s: options.n_%s is %lld, less than 0"
                                            : "%s: options.%s is NULL, but their number is %lld",
                            t->pass.caller, arrays[i].name, (long long)arrays[i].n);
    for (int64_t i = 0; i < o->n_hide; i++)
        if (o->hide[i] < 0 || o->hide[i] >= hidable(t))
            return att_fail(t->pass.ctx, ATT_ERR_ARGUMENT,
                            "%s: options.hide[%lld] is %lld, but the tokens are 0 to %lld", t->pass.caller,
                            (long long)i, (long long)o->hide[i], (long long)hidable(t) - 1);
    const att_status s = check_layers(t, o);
    return s ? s : check_zero(t, o);
}

static bool is_saved(const att_trace_layer *l, const att_trace_options *o)
{
    bool found = o->n_layers == 0;
    for (int64_t i = 0; i < o->n_layers; i++)
        found = found || o->layers[i] == l->layer;
    return found;
}

/* ---- memory: all arrays in one block */

typedef struct block {
    float *at; /* NULL: only counts */
    size_t count;
    bool overflow;
} block;

/* Returns the next a * b * c numbers of 4 bytes; NULL if it only counts, or there are none. */
static void *reserve(block *b, int64_t x, int64_t y, int64_t z)
{
    int64_t n;
    const size_t before = b->count;
    b->overflow = b->overflow || __builtin_mul_overflow(x, y, &n) || __builtin_mul_overflow(n, z, &n) || n < 0 ||
                  __builtin_add_overflow(b->count, (size_t)n, &b->count);
    return b->at && !b->overflow && b->count > before ? b->at + before : NULL;
}

static void lay_out(att_trace *t, const att_trace_options *o, block *b)
{
    const att_trace_info *i = &t->info;
    for (int64_t l = 0; l < i->attentions; l++) {
        att_trace_layer *a = &t->layer[l];
        const att_trace_part *p = a->part;
        a->saved = is_saved(a, o);
        if (!a->saved)
            continue;
        a->q = reserve(b, p->queries, p->heads, p->head_dim);
        a->k = reserve(b, p->keys, p->kv_heads, p->key_dim);
        a->value_length = reserve(b, p->keys, p->kv_heads, 1);
        a->params = reserve(b, p->params, 1, 1);
    }
    for (int s = 0; s < ATT_TRACE_SIDES; s++) {
        const att_trace_part *p = part_of(t, (att_trace_side)s);
        att_trace_states *states = &t->states[s];
        if (!p || !p->hidden)
            continue;
        states->part = p;
        states->first = o->hidden ? 0 : p->layers;
        states->x = reserve(b, p->layers + 1 - states->first, p->queries, p->hidden);
    }
    t->result = t->pass.output ? NULL : reserve(b, i->output_rows, i->outputs, 1);
    t->shown = o->n_hide > 0 ? reserve(b, att_ceil_div(hidable(t), (int64_t)sizeof(float)), 1, 1) : NULL;
}

static void hide(att_trace *t, const att_trace_options *o)
{
    if (t->shown)
        memset(t->shown, 1, (size_t)hidable(t));
    for (int64_t i = 0; t->shown && i < o->n_hide; i++)
        t->shown[o->hide[i]] = 0;
}

/* Copies ids, even if only a description is wanted. */
static att_status copy_ids(att_trace *t)
{
    att_trace_info *i = &t->info;
    const size_t source = i->source_ids ? (size_t)i->source : 0, target = i->target_ids ? (size_t)i->target : 0;
    t->ids = att_alloc(t->pass.ctx, source + target, sizeof *t->ids);
    if (!t->ids)
        return ATT_ERR_MEMORY;
    if (source)
        i->source_ids = memcpy(t->ids, i->source_ids, source * sizeof *t->ids);
    if (target)
        i->target_ids = memcpy(t->ids + source, i->target_ids, target * sizeof *t->ids);
    i->bytes += sizeof *t + (size_t)i->attentions * sizeof *t->layer + (source + target) * sizeof *t->ids;
    return ATT_OK;
}

static att_status allocate(att_trace *t, const att_trace_options *o)
{
    block b = {0};
    size_t bytes;
    lay_out(t, o, &b);
    if (b.overflow || __builtin_mul_overflow(b.count, sizeof *b.at, &bytes) ||
        __builtin_add_overflow(t->info.bytes, bytes, &t->info.bytes))
        return att_fail(t->pass.ctx, ATT_ERR_MEMORY, "%s: this is more memory than can be addressed", t->pass.caller);
    if (t->describe_only)
        return ATT_OK;
    t->numbers = b.at = att_alloc(t->pass.ctx, b.count, sizeof *b.at);
    if (!t->numbers)
        return ATT_ERR_MEMORY;
    b.count = 0;
    lay_out(t, o, &b);
    hide(t, o);
    return ATT_OK;
}

/* ---- make and free */

static att_status fill_in(att_trace *t)
{
    t->info = t->pass.info;
    t->info.size = sizeof t->info;
    for (int i = 0; i < t->pass.parts; i++) {
        att_trace_part *p = &t->pass.part[i];
        p->kv_heads = p->kv_heads ? p->kv_heads : p->heads;
        p->key_dim = p->key_dim ? p->key_dim : p->head_dim;
        p->score = p->score ? p->score : "dot";
        p->scope = p->scope ? p->scope : scopes[p->side];
        t->info.layers[p->side] = p->layers;
        t->info.hidden[p->side] = p->hidden;
        t->info.attentions += p->layers;
    }
    for (int i = 0; i < t->pass.parts; i++) {
        const att_trace_part *p = &t->pass.part[i];
        if (att_trace_hides(t, p) && p->keys > hidable(t) - p->first_key)
            return att_fail(t->pass.ctx, ATT_ERR_UNSUPPORTED, "%s: there are %lld keys of %lld tokens", t->pass.caller,
                            (long long)p->keys, (long long)hidable(t));
    }
    return ATT_OK;
}

static att_status make(att_trace *t, size_t self_bytes, const att_trace_options *options)
{
    att_trace_options o;
    att_status s = att_options_read(&o, sizeof o, options, "att_trace_options");
    if (s)
        return s;
    t->describe_only = o.describe_only;
    s = fill_in(t);
    s = s ? s : check_options(t, &o);
    s = s ? s : copy_ids(t);
    if (s)
        return s;
    t->info.bytes += self_bytes;
    t->layer = att_calloc(t->pass.ctx, (size_t)t->info.attentions, sizeof *t->layer);
    if (!t->layer)
        return ATT_ERR_MEMORY;
    add_layers(t);
    if (!name_scopes(t))
        return att_fail(t->pass.ctx, ATT_ERR_UNSUPPORTED, "%s: the name of a scope is too long", t->pass.caller);
    s = allocate(t, &o);
    return s || t->describe_only ? s : att_trace_record(t, &o);
}

att_status att_trace_make(const att_trace_pass *pass, const void *self, size_t self_bytes,
                          const att_trace_options *options, att_trace **out)
{
    *out = NULL;
    att_trace *t = att_calloc(pass->ctx, 1, sizeof *t);
    void *copy = t ? att_alloc(pass->ctx, self_bytes, 1) : NULL;
    if (!copy) {
        att_free(pass->ctx, t);
        if (pass->free)
            pass->free(self);
        return ATT_ERR_MEMORY;
    }
    t->pass = *pass;
    t->self = memcpy(copy, self, self_bytes);
    const att_status s = make(t, self_bytes, options);
    if (s)
        att_trace_free(t);
    else
        *out = t;
    return s;
}

void att_trace_free(att_trace *t)
{
    if (!t)
        return;
    att_ctx *ctx = t->pass.ctx;
    if (t->pass.free)
        t->pass.free(t->self);
    for (int64_t i = 0; t->layer && i < t->info.attentions; i++)
        att_plan_free(t->layer[i].own);
    att_free(ctx, t->self);
    att_free(ctx, t->ids);
    att_free(ctx, t->layer);
    att_free(ctx, t->numbers);
    att_free(ctx, t);
}

/* ---- what it has */

att_status att_trace_describe(const att_trace *t, att_trace_info *info)
{
    if (att_require(__func__, ATT_NAMED({"t", t}, {"info", info})))
        return ATT_ERR_ARGUMENT;
    return att_info_write(info, &t->info, sizeof t->info, "att_trace_info");
}

att_status att_trace_attention(const att_trace *t, int64_t i, att_trace_attention_info *info)
{
    if (att_require(__func__, ATT_NAMED({"t", t}, {"info", info})) || att_trace_check_attention(__func__, t, i))
        return ATT_ERR_ARGUMENT;
    const att_trace_layer *l = &t->layer[i];
    const att_trace_part *p = l->part;
    const att_trace_attention_info all = {.side = p->side,
                                          .layer = l->layer,
                                          .heads = p->heads,
                                          .kv_heads = p->kv_heads,
                                          .head_dim = p->head_dim,
                                          .key_dim = p->key_dim,
                                          .queries = p->queries,
                                          .keys = p->keys,
                                          .scope = l->scope,
                                          .score = p->score,
                                          .causal = p->causal,
                                          .window = p->windows ? p->windows[l->layer] : p->window,
                                          .recorded = l->saved};
    return att_info_write(info, &all, sizeof all, "att_trace_attention_info");
}

int64_t att_trace_find(const att_trace *t, att_trace_side side, int64_t layer)
{
    if (att_require(__func__, ATT_NAMED({"t", t})) || (unsigned)side >= ATT_TRACE_SIDES || layer < -1)
        return -1;
    return att_trace_index(t, side, layer < 0 ? t->info.layers[side] - 1 : layer);
}
