/* Ragged attention by a plan */
#include "attn/call/call.h"
#include "tape/tape.h"

/* A step's inputs are q, k and v, then the parameters that are variables; the others are NULL. */
enum { ROWS = 3, MAX_INPUTS = ROWS + ATT_MAX_PARAMS };

/* ---- backward */

typedef struct attend_saved {
    const att_plan *plan;
    att_attention_args args; /* the arguments of the forward call, with out and lse */
} attend_saved;

/* Returns whether all inputs are distinct variables. */
static bool all_differ(int n, att_var *const *in)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; in[i] && in[i]->grad && j < i; j++)
            if (in[j] && in[i]->grad == in[j]->grad)
                return false;
    return true;
}

static bool any_begun(int n, att_var *const *in)
{
    bool begun = false;
    for (int i = 0; i < n; i++)
        begun |= in[i] && att_tape_begun(in[i]);
    return begun;
}

static att_status backward(att_tape *t, const att_step *s)
{
    const attend_saved *saved = s->saved;
    att_attention_grads g = {.size = sizeof g, .dout = s->y->value};
    att_tensor dparam[ATT_MAX_PARAMS] = {{0}}, *const rows[] = {&g.dq, &g.dk, &g.dv}, *d[MAX_INPUTS];
    g.dparam = dparam;
    g.n_dparams = s->n_in - ROWS;
    g.dout.data = s->y->grad;
    const bool direct = all_differ(s->n_in, s->in); /* att_backward does not accept two gradients in the same memory */
    g.accumulate = direct && any_begun(s->n_in, s->in);
    for (int i = 0; i < s->n_in; i++) {
        att_var *x = s->in[i];
        bool add;
        d[i] = i < ROWS ? rows[i] : &dparam[i - ROWS];
        if (!x || !x->grad)
            continue;
        *d[i] = x->value;
        d[i]->data = !direct        ? att_tape_scratch(t, (size_t)att_count(d[i]))
                     : g.accumulate ? att_tape_grad(x)
                                    : att_tape_grad_for_write(x, &add);
        if (!d[i]->data)
            return ATT_ERR_MEMORY;
    }
    const att_status e = att_backward(saved->plan, &saved->args, &g);
    for (int i = 0; !e && !direct && i < s->n_in; i++)
        att_tape_add_grad(t, s->in[i], d[i]->data);
    return e;
}

const att_operation att_operation_attend = {.name = "attend", .backward = backward};

/* ---- forward */

/* Copies the arrays of the args: the caller may free them before the backward. */
static void save_arrays(att_tape *t, att_attention_args *a)
{
    const size_t n = (size_t)a->n_sequences;
    const int64_t **const offsets[] = {&a->q_offsets, &a->k_offsets};
    for (int i = 0; i < 2; i++)
        if (*offsets[i])
            *offsets[i] = att_tape_save(t, *offsets[i], (n + 1) * sizeof **offsets[i]);
    if (a->q_starts)
        a->q_starts = att_tape_save(t, a->q_starts, n * sizeof *a->q_starts);
    if (a->n_params)
        a->param = att_tape_save(t, a->param, (size_t)a->n_params * sizeof *a->param);
    if (a->sequence_ids)
        a->sequence_ids = att_tape_save(t, a->sequence_ids, n * sizeof *a->sequence_ids);
}

/* Merges args.param and the variables of `params` into param [ATT_MAX_PARAMS], and appends the variables to the inputs.
 */
static att_status add_params(att_tape *t, const att_attend_params *params, att_attention_args *a, att_tensor *param,
                             att_var **in, int *n_in)
{
    att_attend_params p;
    att_status s = att_options_read(&p, sizeof p, params, "att_attend_params");
    if (s)
        return s;
    const int n = p.n_params > a->n_params ? p.n_params : a->n_params;
    if (n > ATT_MAX_PARAMS || p.n_params < 0 || (p.n_params > 0 && !p.param) || (a->n_params > 0 && !a->param))
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "args has %d parameters and params %d, expected pointers and 0..%d",
                        a->n_params, p.n_params, ATT_MAX_PARAMS);
    for (int i = 0; i < n; i++) {
        att_var *v = i < p.n_params ? p.param[i] : NULL;
        param[i] = i < a->n_params ? a->param[i] : (att_tensor){0};
        if (v && (param[i].data || param[i].rank))
            return att_fail(t->ctx, ATT_ERR_ARGUMENT, "param[%d] is given in args and in params", i);
        if (v)
            param[i] = v->value;
        in[ROWS + i] = v;
    }
    a->param = param;
    a->n_params = n > 0 ? n : a->n_params;
    *n_in = ROWS + (n > 0 ? n : 0);
    return ATT_OK;
}

static const att_tensor *rows_of(const att_attention_args *a, int i) { return i == 0 ? &a->q : i == 1 ? &a->k : &a->v; }

/* Calls the tape's before_attend, which may replace the plan and the args, except variables. False: the tape has
 * failed. */
static bool prepare(att_tape *t, const att_plan **plan, att_attention_args *a, att_var *const *in, int n_in)
{
    if (!t->before_attend)
        return true;
    att_fail(t->ctx, ATT_OK, "%s", "");
    const att_status s = t->before_attend(t->hook_user, att_tape_scope_path(t), plan, a);
    const char *sentence = att_error(t->ctx);
    if (s)
        return att_tape_fail(t, s, "attend: before_attend: %s", *sentence ? sentence : att_status_text(s));
    if (!*plan)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "attend: before_attend has made the plan NULL");
    for (int i = 0; i < ROWS; i++)
        if (rows_of(a, i)->data != in[i]->value.data)
            return att_tape_fail(t, ATT_ERR_ARGUMENT, "attend: before_attend has replaced args.%c, a variable's values",
                                 "qkv"[i]);
    for (int i = 0; i < n_in - ROWS; i++)
        if (in[ROWS + i] && (i >= a->n_params || !a->param || a->param[i].data != in[ROWS + i]->value.data))
            return att_tape_fail(t, ATT_ERR_ARGUMENT,
                                 "attend: before_attend has replaced args.param[%d], a variable's values", i);
    return true;
}

att_var *att_attend(att_tape *t, const att_plan *plan, att_var *q, att_var *k, att_var *v,
                    const att_attention_args *args, const att_attend_params *params)
{
    if (!q || !k || !v || !att_tape_ready(t))
        return NULL;
    if (!plan || !args)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "attend: %s is NULL", plan ? "args" : "plan");
    if (q->value.rank != 3 || k->value.rank != 3 || v->value.rank != 3)
        return att_tape_fail(t, ATT_ERR_SHAPE, "attend: q is %s, k is %s, v is %s, not [tokens, heads, dim]",
                             att_shape_of(&q->value).text, att_shape_of(&k->value).text, att_shape_of(&v->value).text);
    att_attention_args a;
    att_tensor param[ATT_MAX_PARAMS];
    att_var *in[MAX_INPUTS] = {q, k, v};
    int n_in = ROWS;
    att_status s = att_options_read(&a, sizeof a, args, "att_attention_args");
    s = s ? s : add_params(t, params, &a, param, in, &n_in);
    if (s)
        return att_tape_fail(t, s, "attend: %s", att_error(t->ctx));
    a.q = q->value, a.k = k->value, a.v = v->value;
    if (!prepare(t, &plan, &a, in, n_in))
        return NULL;
    const int64_t tokens = q->value.dim[0], heads = q->value.dim[1];
    att_var *out = att_tape_var(t, 3, (const int64_t[]){tokens, heads, v->value.dim[2]});
    /* Backward needs the lse, and a hook can compute attention weights faster with it. */
    const bool wanted = t->hook || t->record;
    att_var *lse = wanted ? att_tape_var(t, 2, (const int64_t[]){tokens, heads}) : NULL;
    if (!out || (wanted && !lse))
        return NULL;
    a.out = out->value;
    a.lse = lse ? lse->value : (att_tensor){0};
    s = att_forward(plan, &a);
    if (s)
        return att_tape_fail(t, s, "attend: %s", att_error(t->ctx));
    attend_saved saved = {plan, a};
    save_arrays(t, &saved.args);
    const attend_saved *stays = att_tape_save(t, &saved, sizeof saved); /* a hook may keep the args, too */
    const att_step step = {
        .op = &att_operation_attend, .y = out, .in = in, .n_in = n_in, .saved = stays, .saved_bytes = sizeof saved};
    return stays ? att_tape_done(t, &step, plan, &stays->args) : NULL;
}
