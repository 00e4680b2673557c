/* Parameters by name: loaded or initialized, and memory and plans of layers */
#include "nn/nn.h"
#include "util/shape.h"
#include "util/array.h"
#include "util/pattern.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct entry {
    att_nn_name name;
    att_param *param;
} entry;

/* The header of a layer's memory; blocks form a list. */
typedef union block {
    union block *before;
    char align[64];
} block;

typedef struct plan_entry {
    struct plan_entry *before;
    att_nn_plan_sizes sizes;
    att_plan *plan;
} plan_entry;

struct att_nn_params {
    att_ctx *ctx;
    att_nn_params_config config;
    att_status status; /* the first error */
    char error[512];
    entry **list; /* [count] */
    int64_t count;
    size_t room; /* room of the list */
    block *blocks;
    plan_entry *plans;
};

/* ---- the owner, its first error and its memory */

att_status att_nn_params_new(att_ctx *ctx, const att_nn_params_config *config, att_nn_params **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_nn_params *p = att_calloc(ctx, 1, sizeof *p);
    if (!p)
        return ATT_ERR_MEMORY;
    att_status s = att_options_read(&p->config, sizeof p->config, config, "att_nn_params_config");
    const att_patterns freeze = {p->config.freeze, p->config.n_freeze};
    s = s ? s : att_patterns_valid(ctx, &freeze);
    p->ctx = ctx;
    if (s)
        att_free(ctx, p);
    else
        *out = p;
    return s;
}

void att_nn_params_free(att_nn_params *p)
{
    if (!p)
        return;
    for (plan_entry *e = p->plans; e; e = e->before)
        att_plan_free(e->plan);
    for (int64_t i = 0; i < p->count; i++)
        att_param_free(p->list[i]->param);
    for (block *b = p->blocks, *before; b; b = before) {
        before = b->before;
        att_free(p->ctx, b);
    }
    att_free(p->ctx, p->list);
    att_free(p->ctx, p);
}

/* Records the first error and its sentence, which later errors would replace. */
static void *failed(att_nn_params *p, att_status s)
{
    if (!p->status) {
        p->status = s;
        snprintf(p->error, sizeof p->error, "%s", att_error(p->ctx));
    }
    return NULL;
}

void *att_nn_fail(att_nn_params *p, att_status s, const char *format, ...)
{
    char text[sizeof p->error];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return failed(p, att_fail(p->ctx, s, "%s", text));
}

att_status att_nn_params_status(const att_nn_params *p)
{
    if (att_require(__func__, ATT_NAMED({"p", p})))
        return ATT_ERR_ARGUMENT;
    return p->status ? att_fail(p->ctx, p->status, "%s", p->error) : ATT_OK;
}

bool att_nn_options_read(att_nn_params *p, const char *name, void *dst, size_t dst_size, const void *src,
                         const char *type)
{
    if (!p || p->status)
        return false;
    att_status s = att_require(type, ATT_NAMED({"name", name}, {"config", src}));
    s = s ? s : att_options_read(dst, dst_size, src, type);
    if (s)
        failed(p, s);
    return !s;
}

bool att_nn_check_size(att_nn_params *p, const char *name, const char *what, int64_t size)
{
    enum { MAX_SIZE = 1 << 30 };
    return (size >= 1 && size <= MAX_SIZE) || att_nn_fail(p, ATT_ERR_ARGUMENT, "\"%s\": %s is %lld, expected 1..%d",
                                                          name, what, (long long)size, MAX_SIZE);
}

bool att_nn_params_trainable(const att_nn_params *p) { return p && (p->config.trainable || !p->config.load); }

void *att_nn_params_alloc(att_nn_params *p, size_t bytes)
{
    if (!p || p->status)
        return NULL;
    block *b = bytes <= SIZE_MAX - sizeof *b ? att_calloc(p->ctx, 1, sizeof *b + bytes) : NULL;
    if (!b)
        return failed(p, bytes <= SIZE_MAX - sizeof *b ? ATT_ERR_MEMORY
                                                       : att_fail(p->ctx, ATT_ERR_MEMORY, "no memory for a layer"));
    b->before = p->blocks;
    p->blocks = b;
    return b + 1;
}

char *att_nn_text(att_nn_params *p, const char *text)
{
    char *copy = att_nn_params_alloc(p, strlen(text) + 1);
    return copy ? strcpy(copy, text) : NULL;
}

/* ---- names */

att_nn_name att_nn_join(const char *prefix, const char *name)
{
    att_nn_name n;
    snprintf(n.text, sizeof n.text, "%s.%s", prefix ? prefix : "", name ? name : "");
    return n;
}

att_nn_name att_nn_number(const char *name, int64_t i)
{
    att_nn_name n;
    snprintf(n.text, sizeof n.text, "%s.%lld", name ? name : "", (long long)i);
    return n;
}

/* ---- parameters */

int64_t att_nn_params_count(const att_nn_params *p) { return p ? p->count : 0; }

att_param *att_nn_params_at(const att_nn_params *p, int64_t i, const char **name)
{
    const entry *e = p && i >= 0 && i < p->count ? p->list[i] : NULL;
    if (name)
        *name = e ? e->name.text : NULL;
    return e ? e->param : NULL;
}

att_param *att_nn_params_find(const att_nn_params *p, const char *name)
{
    for (int64_t i = 0; p && name && i < p->count; i++)
        if (!strcmp(p->list[i]->name.text, name))
            return p->list[i]->param;
    return NULL;
}

static const char *name_at(const void *p, int64_t i) { return ((const att_nn_params *)p)->list[i]->name.text; }

att_status att_nn_params_optimize(const att_nn_params *p, att_optimizer *o)
{
    if (att_require(__func__, ATT_NAMED({"p", p}, {"o", o})))
        return ATT_ERR_ARGUMENT;
    if (!att_nn_params_trainable(p))
        return att_fail(p->ctx, ATT_ERR_ARGUMENT,
                        "%s: the parameters are not trainable, as those of a model that was opened for inference",
                        __func__);
    const att_patterns freeze = {p->config.freeze, p->config.n_freeze};
    att_status s = att_patterns_check(p->ctx, &freeze, p->count, name_at, p);
    for (int64_t i = 0; !s && i < p->count; i++)
        s = att_optimizer_add(o, p->list[i]->param, NULL);
    return s;
}

/* Returns whether the shape is dim [rank]; [1, n] becomes [n] if that is wanted. */
static bool fits(att_tensor *x, int rank, const int64_t *dim)
{
    for (; x->rank > rank && x->dim[0] == 1; x->rank--)
        for (int d = 0; d + 1 < x->rank; d++)
            x->dim[d] = x->dim[d + 1], x->stride[d] = x->stride[d + 1];
    return x->rank == rank && !memcmp(x->dim, dim, (size_t)rank * sizeof *dim);
}

static att_status load(att_nn_params *p, const char *name, int rank, const int64_t *dim, att_tensor *value)
{
    *value = (att_tensor){0};
    const att_status s = p->config.load(p->config.user, name, rank, dim, value);
    if (s)
        return s;
    if (!value->data)
        return att_fail(p->ctx, ATT_ERR_ARGUMENT, "\"%s\": load has set no tensor", name);
    if (value->rank < 0 || value->rank > ATT_MAX_RANK || !fits(value, rank, dim))
        return att_fail(p->ctx, ATT_ERR_SHAPE, "\"%s\" is %s but must be %s", name, att_shape_of(value).text,
                        att_shape_show(rank, dim).text);
    if (value->dtype == ATT_I32 || value->dtype == ATT_I64 || value->dtype == ATT_BOOL)
        return att_fail(p->ctx, ATT_ERR_DTYPE, "\"%s\" is %s, not f32, f16, bf16 or quantized", name,
                        att_dtype_name(value->dtype));
    return ATT_OK;
}

static att_status initialize(att_nn_params *p, const char *name, const att_init *init, const att_tensor *value)
{
    const att_init zeros = {.size = sizeof zeros};
    init = init ? init : &zeros;
    return p->config.initialize ? p->config.initialize(p->config.user, name, init, value)
                                : att_initialize(p->ctx, value, init, p->config.seed, name);
}

/* Allocates f32 of this shape, freed with p. */
static att_status own(att_nn_params *p, int rank, const int64_t *dim, att_tensor *value)
{
    att_status s = att_wrap(value, NULL, ATT_F32, rank, dim, NULL);
    size_t bytes = sizeof(float);
    for (int i = 0; i < rank; i++)
        bytes *= (size_t)dim[i]; /* att_wrap has checked the product */
    value->data = s ? NULL : att_nn_params_alloc(p, bytes);
    return s ? s : value->data ? ATT_OK : p->status;
}

static att_status make(att_nn_params *p, entry *e, int rank, const int64_t *dim, const att_init *init, bool own_copy)
{
    const char *name = e->name.text;
    att_tensor value, loaded;
    att_status s = p->config.load ? load(p, name, rank, dim, &loaded) : ATT_OK;
    if (s)
        return s;
    if (p->config.load && !own_copy)
        return att_param_new(p->ctx, &loaded, &e->param);
    s = own(p, rank, dim, &value);
    s = s ? s : p->config.load ? att_tensor_convert(p->ctx, &loaded, &value) : initialize(p, name, init, &value);
    return s ? s : att_param_new(p->ctx, &value, &e->param);
}

/* Returns the parameter of a name that was requested before, a tied weight. */
static att_param *again(att_nn_params *p, const char *name, att_param *param, int rank, const int64_t *dim)
{
    att_tensor value = *att_param_value(param);
    if (fits(&value, rank, dim))
        return param;
    return att_nn_fail(p, ATT_ERR_SHAPE, "\"%s\" is %s, but a second layer needs %s", name, att_shape_of(&value).text,
                       att_shape_show(rank, dim).text);
}

/* Requests a parameter; buffer: as att_nn_buffer. */
static att_param *request(att_nn_params *p, const char *prefix, const char *name, int rank, const int64_t *dim,
                          const att_init *init, bool buffer)
{
    if (!p || p->status)
        return NULL;
    if (att_require("att_nn_params_request", ATT_NAMED({"prefix", prefix}, {"name", name}, {"dim", dim})))
        return failed(p, ATT_ERR_ARGUMENT);
    const att_nn_name whole = att_nn_join(prefix, name);
    if (strlen(prefix) + 1 + strlen(name) >= sizeof whole.text || strlen(prefix) + 1 == sizeof whole.text)
        return att_nn_fail(p, ATT_ERR_ARGUMENT, "\"%s\": the name of a parameter has at most %zu characters",
                           whole.text, sizeof whole.text - 1);
    if (rank < 1 || rank > ATT_MAX_RANK)
        return att_nn_fail(p, ATT_ERR_ARGUMENT, "\"%s\": the rank is %d, expected 1..%d", whole.text, rank,
                           ATT_MAX_RANK);
    att_param *known = att_nn_params_find(p, whole.text);
    if (known)
        return again(p, whole.text, known, rank, dim);
    att_status s = att_grow(p->ctx, &p->list, sizeof *p->list, (size_t)p->count, 1, &p->room);
    entry *e = s ? failed(p, s) : att_nn_params_alloc(p, sizeof *e);
    if (!e)
        return NULL;
    e->name = whole;
    const att_patterns freeze = {p->config.freeze, p->config.n_freeze};
    const bool frozen = att_patterns_match(&freeze, whole.text);
    s = make(p, e, rank, dim, init, att_nn_params_trainable(p) && (buffer || !frozen));
    if (s)
        return failed(p, s);
    att_param_set_frozen(e->param, buffer || frozen);
    att_param_set_weight_decay(e->param, rank > 1);
    p->list[p->count++] = e;
    return e->param;
}

att_param *att_nn_params_request(att_nn_params *p, const char *prefix, const char *name, int rank, const int64_t *dim,
                                 const att_init *init)
{
    return request(p, prefix, name, rank, dim, init, false);
}

att_param *att_nn_buffer(att_nn_params *p, const char *prefix, const char *name, int rank, const int64_t *dim,
                         const att_init *init)
{
    return request(p, prefix, name, rank, dim, init, true);
}

/* ---- plans */

static bool same(const att_nn_plan_sizes *a, const att_nn_plan_sizes *b)
{
    return a->heads == b->heads && a->kv_heads == b->kv_heads && a->head_dim == b->head_dim && a->causal == b->causal &&
           a->window == b->window && !(a->scale < b->scale || a->scale > b->scale) &&
           !(a->dropout < b->dropout || a->dropout > b->dropout);
}

const att_plan *att_nn_plan(att_nn_params *p, const att_nn_plan_sizes *sizes)
{
    for (const plan_entry *e = p->plans; e; e = e->before)
        if (same(&e->sizes, sizes))
            return e->plan;
    plan_entry *e = att_nn_params_alloc(p, sizeof *e);
    if (!e)
        return NULL;
    const double window = (double)sizes->window;
    att_stage stage[2];
    int n = 0;
    if (sizes->causal)
        stage[n++] = (att_stage){.mask = att_mask_causal};
    if (sizes->window)
        stage[n++] = (att_stage){.mask = att_mask_window, .value = {window, window}};
    const att_attention_spec spec = {.size = sizeof spec,
                                     .heads = sizes->heads,
                                     .kv_heads = sizes->kv_heads,
                                     .head_dim = sizes->head_dim,
                                     .scale = sizes->scale,
                                     .stage = stage,
                                     .n_stages = n,
                                     .align = n ? ATT_ALIGN_BOTTOM_RIGHT : ATT_ALIGN_UNSET,
                                     .dropout = sizes->dropout};
    const att_status s = att_plan_new(p->ctx, &spec, &e->plan);
    if (s)
        return failed(p, s);
    e->sizes = *sizes;
    e->before = p->plans;
    p->plans = e;
    return e->plan;
}
