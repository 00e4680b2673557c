/* Attention of ragged sequences, by a plan */
#include "tape/tape.h"

/* ---- forward */

att_var *att_attend(att_tape *t, const att_plan *plan, att_var *q, att_var *k, att_var *v,
                    const att_attention_args *args)
{
    if (!q || !k || !v || !att_tape_ready(t))
        return NULL;
    if (!plan)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "attend: plan is NULL");
    if (q->value.rank != 3 || k->value.rank != 3 || v->value.rank != 3)
        return att_tape_fail(t, ATT_ERR_SHAPE, "attend: q is %s, k is %s, v is %s, not [tokens, heads, dim]",
                             att_shape_of(&q->value).text, att_shape_of(&k->value).text, att_shape_of(&v->value).text);
    att_attention_args a;
    att_status s = att_take_options(&a, sizeof a, args, "att_attention_args");
    if (s)
        return att_tape_fail(t, s, "attend: %s", att_error(t->ctx));
    const int64_t tokens = q->value.dim[0], heads = q->value.dim[1];
    att_var *out = att_tape_var(t, 3, (const int64_t[]){tokens, heads, v->value.dim[2]});
    /* Who watches will want weights, which come cheaper with it. */
    att_var *lse = t->watch ? att_tape_var(t, 2, (const int64_t[]){tokens, heads}) : NULL;
    if (!out || (t->watch && !lse))
        return NULL;
    a.q = q->value;
    a.k = k->value;
    a.v = v->value;
    a.out = out->value;
    a.lse = lse ? lse->value : (att_tensor){0};
    s = att_forward(plan, &a);
    if (s)
        return att_tape_fail(t, s, "attend: %s", att_error(t->ctx));
    return att_tape_done(t, "attend", out, plan, &a);
}
