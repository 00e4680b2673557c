/* Records a pass of a model by the hook of its tape: queries, keys, lengths of values, hidden states. */
#include "model/trace.h"
#include "util/shape.h"

#include <math.h>
#include <string.h>

typedef struct recording {
    att_trace *t;
    att_tape *tape;
    const att_trace_head *zero; /* [n_zero] */
    int64_t n_zero;
    att_tensor param[ATT_TRACE_PARAMS]; /* parameters of the next attention */
} recording;

/* ---- scopes */

static att_trace_layer *find_attention(const att_trace *t, const char *scope)
{
    for (int i = 0; i < t->pass.parts; i++) {
        const int64_t layer = att_trace_layer_of(t->pass.part[i].scope, scope);
        const int64_t at = layer < 0 ? -1 : att_trace_index(t, t->pass.part[i].side, layer);
        if (at >= 0)
            return &t->layer[at];
    }
    return NULL;
}

/* ---- attention */

static bool is_shape(const att_tensor *x, int64_t a, int64_t b, int64_t c)
{
    return x->rank == 3 && x->dim[0] == a && x->dim[1] == b && x->dim[2] == c && x->dtype == ATT_F32;
}

/* Returns whether a call has the shapes of the table. */
static bool fits(const att_trace_layer *l, const att_attention_args *a)
{
    const att_trace_part *p = l->part;
    return a->n_sequences == 1 && is_shape(&a->q, a->q.dim[0], p->heads, p->head_dim) &&
           a->q.dim[0] <= p->queries - l->rows && is_shape(&a->k, p->keys, p->kv_heads, p->key_dim) && a->v.rank == 3 &&
           a->n_params <= ATT_TRACE_PARAMS;
}

/* Copies parameters of stages. False: they have more numbers than the table states. */
static bool copy_params(att_trace_layer *l, const att_attention_args *a)
{
    float *at = l->params;
    int64_t rest = l->part->params;
    l->n_params = a->n_params;
    for (int i = 0; i < a->n_params; i++) {
        att_tensor *p = &l->param[i];
        *p = a->param[i];
        if (!p->data || p->dtype == ATT_BOOL) /* missing, or the mask of hidden tokens, which is the trace's */
            continue;
        const int64_t n = att_elements(p);
        if (p->dtype != ATT_F32 || n > rest)
            return false;
        if (n > 0)
            p->data = memcpy(at, p->data, (size_t)n * sizeof *at);
        at += n;
        rest -= n;
    }
    return rest == 0;
}

static void copy_lengths(const att_tensor *v, float *out)
{
    const float *x = v->data;
    for (int64_t i = 0; i < v->dim[0] * v->dim[1]; i++) {
        double sum = 0;
        for (int64_t j = 0; j < v->dim[2]; j++, x++)
            sum += (double)*x * (double)*x;
        out[i] = (float)sqrt(sum);
    }
}

/* Copies rows; tensors of a tape are dense. */
static void copy_rows(float *out, const att_tensor *x)
{
    if (att_elements(x) > 0)
        memcpy(out, x->data, (size_t)att_elements(x) * sizeof *out);
}

static void zero_head(const att_tensor *y, int64_t head)
{
    float *row = (float *)y->data + head * y->dim[2];
    for (int64_t i = 0; i < y->dim[0]; i++, row += y->dim[1] * y->dim[2])
        memset(row, 0, (size_t)y->dim[2] * sizeof *row);
}

static void record_attention(recording *r, const att_tape_event *e)
{
    const att_attention_args *a = e->args;
    att_trace_layer *l = find_attention(r->t, e->scope);
    if (!l || !fits(l, a)) {
        att_tape_fail(r->tape, ATT_ERR_UNSUPPORTED,
                      l ? "trace: this attention has other shapes than the model's table"
                        : "trace: this attention is not in the model's table");
        return;
    }
    if (l->saved && l->rows == 0) {
        l->plan = e->plan;
        copy_rows(l->k, &a->k);
        copy_lengths(&a->v, l->value_length);
        if (!copy_params(l, a))
            att_tape_fail(r->tape, ATT_ERR_UNSUPPORTED,
                          "trace: parameters of attention are not those of the model's table");
    }
    if (l->saved)
        copy_rows(l->q + l->rows * l->part->heads * l->part->head_dim, &a->q);
    l->rows += a->q.dim[0];
    if (l->rows == l->part->queries && l->own)
        att_plan_trim(l->own); /* no call comes after this one, so its scratch memory is not needed again */
    for (int64_t i = 0; i < r->n_zero; i++)
        if (r->zero[i].side == l->part->side && r->zero[i].layer == l->layer)
            zero_head(e->output, r->zero[i].head);
}

/* ---- hidden tokens */

/* Adds a mask of the keys that options.hide leaves, whose parameter comes after those of the plan. */
static att_status add_mask(recording *r, att_trace_layer *l, const att_plan **plan, att_attention_args *a)
{
    const att_stage mask = {.mask = att_mask_boolean};
    const int64_t shape[] = {1, 1, 1, l->part->keys};
    att_plan_info info = {.size = sizeof info};
    att_status s = att_plan_describe(*plan, NULL, &info);
    if (!s && !l->own)
        s = att_plan_with(*plan, &mask, 1, &l->own);
    if (s)
        return s;
    if (info.n_params >= ATT_TRACE_PARAMS || a->n_params > info.n_params)
        return att_fail(r->t->pass.ctx, ATT_ERR_UNSUPPORTED, "the attention has %d parameters", info.n_params);
    memset(r->param, 0, sizeof r->param);
    if (a->n_params > 0)
        memcpy(r->param, a->param, (size_t)a->n_params * sizeof *r->param);
    *plan = l->own;
    a->param = r->param;
    a->n_params = info.n_params + 1;
    return att_wrap(&r->param[info.n_params], r->t->shown + l->part->first_key, ATT_BOOL, 4, shape, NULL);
}

static att_status before_attend(void *user, const char *scope, const att_plan **plan, att_attention_args *args)
{
    recording *r = user;
    att_trace_layer *l = find_attention(r->t, scope);
    return l && r->t->shown && att_trace_hides(r->t, l->part) ? add_mask(r, l, plan, args) : ATT_OK;
}

/* ---- hidden states */

/* Returns the layer whose hidden states are the result of a scope, 0: the embeddings; -1: there is none. */
static int64_t states_of(const att_trace_part *p, const char *scope)
{
    const bool encoder = p->side == ATT_TRACE_SIDE_ENCODER;
    const int64_t layer = att_trace_layer_of(encoder ? "encoder/layer.#" : "decoder/layer.#", scope);
    if (layer >= 0)
        return layer < p->layers ? layer + 1 : -1;
    return strcmp(scope, encoder ? "encoder/embeddings" : "decoder/embeddings") ? -1 : 0;
}

static void record_states(recording *r, const att_tape_event *e)
{
    for (int side = 0; side < ATT_TRACE_SIDES; side++) {
        att_trace_states *s = &r->t->states[side];
        const int64_t l = s->part ? states_of(s->part, e->scope) : -1,
                      n = s->part ? s->part->queries * s->part->hidden : 0;
        if (l < s->first)
            continue;
        if (att_elements(e->output) != n) {
            att_tape_fail(r->tape, ATT_ERR_UNSUPPORTED, "trace: the hidden states in %s are %lld numbers, not %lld",
                          e->scope, (long long)att_elements(e->output), (long long)n);
            return;
        }
        s->recorded++;
        if (n > 0)
            memcpy(s->x + (l - s->first) * n, e->output->data, (size_t)n * sizeof *s->x);
    }
}

static void hook(void *user, const att_tape_event *e)
{
    if (e->plan)
        record_attention(user, e);
    else if (!strcmp(e->op, "scope"))
        record_states(user, e);
}

/* ---- the pass */

static att_status check_complete(const att_trace *t)
{
    for (int64_t i = 0; i < t->info.attentions; i++)
        if (t->layer[i].rows != t->layer[i].part->queries)
            return att_fail(t->pass.ctx, ATT_ERR_UNSUPPORTED, "%s: the pass had %lld of %lld queries in %s",
                            t->pass.caller, (long long)t->layer[i].rows, (long long)t->layer[i].part->queries,
                            t->layer[i].scope);
    for (int side = 0; side < ATT_TRACE_SIDES; side++) {
        const att_trace_states *s = &t->states[side];
        if (s->part && s->recorded != s->part->layers + 1 - s->first)
            return att_fail(t->pass.ctx, ATT_ERR_UNSUPPORTED, "%s: the pass had hidden states of %lld layers, not %lld",
                            t->pass.caller, (long long)s->recorded, (long long)(s->part->layers + 1 - s->first));
    }
    return ATT_OK;
}

static att_status keep_result(const att_trace *t, const att_tensor *y)
{
    const int64_t n = t->info.output_rows * t->info.outputs;
    if (!t->result)
        return ATT_OK;
    if (att_elements(y) != n)
        return att_fail(t->pass.ctx, ATT_ERR_UNSUPPORTED, "%s: the pass has a result of %lld numbers, not %lld",
                        t->pass.caller, (long long)att_elements(y), (long long)n);
    memcpy(t->result, y->data, (size_t)n * sizeof *t->result);
    return ATT_OK;
}

att_status att_trace_record(att_trace *t, const att_trace_options *options)
{
    recording r = {.t = t, .zero = options->zero, .n_zero = options->n_zero};
    att_tensor y;
    att_status s = att_tape_new(t->pass.ctx,
                                ATT_OPTIONS(att_tape_config, .hook = hook, .hook_user = &r,
                                            .before_attend = before_attend, .compute = t->pass.compute),
                                &r.tape);
    if (s)
        return s;
    s = att_var_value(r.tape, t->pass.apply(t->self, r.tape), &y);
    s = s ? s : keep_result(t, &y);
    att_tape_free(r.tape);
    return s ? s : check_complete(t);
}
