/* Plans of attention by their spec: a plan costs more than a small call. The GIL guards the list. */
#include <stdlib.h>

#include "attention.h"

static void entry_free(plan_of_spec *p)
{
    att_plan_free(p->plan);
    for (int i = 0; i <= ATTENTION_STAGES; i++)
        Py_XDECREF(p->own[i]);
    free(p);
}

/* Drops the plans that were not used for longest and that no call uses. */
static void forget_old(module_plans *plans)
{
    for (plan_of_spec **at = &plans->first; *at && plans->n > MODULE_PLANS;) {
        plan_of_spec **oldest = NULL;
        for (plan_of_spec **p = &plans->first; *p; p = &(*p)->next)
            if (!(*p)->uses)
                oldest = p;
        if (!oldest)
            return;
        plan_of_spec *old = *oldest;
        *oldest = old->next;
        plans->n--;
        entry_free(old);
    }
}

static plan_of_spec *find(module_plans *plans, const attention_key *key)
{
    for (plan_of_spec **at = &plans->first; *at; at = &(*at)->next) {
        plan_of_spec *p = *at;
        if (memcmp(&p->key, key, sizeof *key))
            continue;
        *at = p->next;
        p->next = plans->first;
        plans->first = p;
        return p;
    }
    return NULL;
}

plan_of_spec *plans_enter(module_state *state, module_plans *plans, const attention_call *call)
{
    const attention_key *key = &call->key;
    plan_of_spec *p = find(plans, key);
    if (!p) {
        p = calloc(1, sizeof *p);
        if (!p)
            return (plan_of_spec *)PyErr_NoMemory();
        p->key = *key;
        att_attention_spec spec = key->spec;
        spec.stage = key->stage;
        att_status status = att_plan_new(plans->ctx, &spec, &p->plan);
        if (status != ATT_OK) {
            free(p);
            return (plan_of_spec *)raise_status(state, status);
        }
        for (int i = 0; i <= ATTENTION_STAGES; i++)
            p->own[i] = Py_XNewRef(call->own[i]);
        p->next = plans->first;
        plans->first = p;
        plans->n++;
    }
    p->uses++;
    forget_old(plans);
    return p;
}

void plans_leave(module_plans *plans, plan_of_spec *plan)
{
    plan->uses--;
    forget_old(plans);
}

void plans_free(module_plans *plans)
{
    while (plans->first) {
        plan_of_spec *p = plans->first;
        plans->first = p->next;
        entry_free(p);
    }
    plans->n = 0;
}

int plans_traverse(const module_plans *plans, visitproc visit, void *arg)
{
    for (plan_of_spec *p = plans->first; p; p = p->next)
        for (int i = 0; i <= ATTENTION_STAGES; i++)
            Py_VISIT(p->own[i]);
    return 0;
}
