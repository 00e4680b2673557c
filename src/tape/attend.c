/* Ragged attention by a plan */
#include "tape/tape.h"

enum { INPUTS = 3 + ATT_MAX_PARAMS + ATT_MAX_STAGES };

/* Input i of the operation, or its gradient: q, k, v, then the score's and the modifiers' parameters. */
static att_tensor *operand(int i, att_tensor *const rows[3], att_tensor *score_param, att_tensor *modifier_param)
{
    const int n = i - 3;
    return n < 0 ? rows[i] : n < ATT_MAX_PARAMS ? &score_param[n] : &modifier_param[n - ATT_MAX_PARAMS];
}

/* ---- backward */

typedef struct attend_saved {
    const att_plan *plan;
    att_attention_args args; /* the arguments of the forward call, with out and lse */
} attend_saved;

/* Are all inputs distinct variables? */
static bool all_differ(att_var *const in[INPUTS])
{
    for (int i = 0; i < INPUTS; i++)
        for (int j = 0; in[i] && in[i]->grad && j < i; j++)
            if (in[j] && in[i]->grad == in[j]->grad)
                return false;
    return true;
}

static bool any_begun(att_var *const in[INPUTS])
{
    bool begun = false;
    for (int i = 0; i < INPUTS; i++)
        begun |= in[i] && att_tape_begun(in[i]);
    return begun;
}

static att_status backward(att_tape *t, const att_step *s)
{
    const attend_saved *saved = s->saved;
    att_attention_grads g = {.size = sizeof g, .dout = s->y->value};
    att_tensor *const rows[] = {&g.dq, &g.dk, &g.dv}, *d[INPUTS];
    g.dout.data = s->y->grad;
    const bool direct = all_differ(s->in); /* att_backward does not accept two gradients in one place */
    g.accumulate = direct && any_begun(s->in);
    for (int i = 0; i < INPUTS; i++) {
        att_var *x = s->in[i];
        bool add;
        d[i] = operand(i, rows, g.dscore_param, g.dmodifier_param);
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
    for (int i = 0; !e && !direct && i < INPUTS; i++)
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
    if (a->sequence_ids)
        a->sequence_ids = att_tape_save(t, a->sequence_ids, n * sizeof *a->sequence_ids);
}

/* Adds the variables of params to the args and to the inputs. */
static att_status add_params(att_tape *t, const att_attend_params *params, att_attention_args *a, att_var **in)
{
    att_attend_params p;
    att_status s = att_take_options(&p, sizeof p, params, "att_attend_params");
    for (int i = 3; !s && i < INPUTS; i++) {
        const int n = i - 3 < ATT_MAX_PARAMS ? i - 3 : i - 3 - ATT_MAX_PARAMS;
        const bool of_score = n == i - 3;
        att_tensor *x = operand(i, NULL, a->score_param, a->modifier_param);
        in[i] = of_score ? p.score_param[n] : p.modifier_param[n];
        if (in[i] && (x->data || x->rank))
            s = att_fail(t->ctx, ATT_ERR_ARGUMENT, "%s_param[%d] is given in args and in params",
                         of_score ? "score" : "modifier", n);
        if (in[i])
            *x = in[i]->value;
    }
    return s;
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
    att_var *in[INPUTS] = {q, k, v};
    att_status s = att_take_options(&a, sizeof a, args, "att_attention_args");
    s = s ? s : add_params(t, params, &a, in);
    if (s)
        return att_tape_fail(t, s, "attend: %s", att_error(t->ctx));
    const int64_t tokens = q->value.dim[0], heads = q->value.dim[1];
    att_var *out = att_tape_var(t, 3, (const int64_t[]){tokens, heads, v->value.dim[2]});
    /* The lse is needed by backward, and lets a hook compute attention weights at lower cost. */
    const bool wanted = t->hook || t->record;
    att_var *lse = wanted ? att_tape_var(t, 2, (const int64_t[]){tokens, heads}) : NULL;
    if (!out || (wanted && !lse))
        return NULL;
    a.q = q->value;
    a.k = k->value;
    a.v = v->value;
    a.out = out->value;
    a.lse = lse ? lse->value : (att_tensor){0};
    s = att_forward(plan, &a);
    if (s)
        return att_tape_fail(t, s, "attend: %s", att_error(t->ctx));
    attend_saved saved = {plan, a};
    save_arrays(t, &saved.args);
    const att_step step = {
        .op = &att_operation_attend, .y = out, .in = in, .n_in = INPUTS, .saved = &saved, .saved_bytes = sizeof saved};
    return att_tape_done(t, &step, plan, &a);
}
