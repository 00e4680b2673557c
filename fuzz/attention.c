/* The input chooses an attention call: stages, shapes, strides, lengths, types, gradients, sometimes an invalid field
 * or a failing allocation. Each array is exactly as large as its view states, so the address sanitizer detects any
 * access beside it. A refused call must have written nothing; a computed one must have the same bits with two threads,
 * whatever the output contained before, and must not write between the strides. */
#include "attention_check.h"

/* ---- sequences */

/* Offsets or lengths, starts and ids. */
static void choose_sequences(call *c)
{
    input *in = c->in;
    const size_t n = (size_t)c->sequences;
    int64_t q[MAX_SEQUENCES + 1] = {0}, k[MAX_SEQUENCES + 1] = {0};
    c->ragged = pick(in, 2);
    const bool same = pick(in, 2);
    for (size_t b = 0; b < n && c->ragged; b++) {
        q[b + 1] = q[b] + (b == 0 ? c->tq : pick(in, (int)c->tq + 1));
        k[b + 1] = k[b] + (b == 0 ? c->tk : pick(in, (int)c->tk + 1));
    }
    if (c->ragged) {
        c->args.n_sequences = c->sequences;
        c->args.q_offsets = list_of(c, q, (n + 1) * sizeof *q);
        c->args.k_offsets = same ? NULL : list_of(c, k, (n + 1) * sizeof *k);
        c->tk = same ? c->tq : c->tk;
    }
    if (!c->ragged && !same) {
        for (size_t b = 0; b < n; b++) {
            q[b] = pick(in, (int)c->tq + 1);
            k[b] = pick(in, (int)c->tk + 1);
        }
        c->args.q_lengths = list_of(c, q, n * sizeof *q);
        c->args.k_lengths = list_of(c, k, n * sizeof *k);
    }
    choose_places(c);
}

/* ---- properties */

/* Once more with two threads and another content of the output. */
static void check_again(call *c, int set, bool backward)
{
    att_plan *plan;
    if (att_plan_new(context_of(set, 2), &c->spec, &plan))
        return;
    copies first = copy(c);
    for (int i = 0; i < c->n_arrays; i++)
        if (backward ? c->arrays[i].backward : c->arrays[i].forward)
            fill(&c->arrays[i], 77, true);
    if (!compute(c, plan, backward))
        check_same(c, &first);
    drop(&first);
    att_plan_free(plan);
}

static void check_weights(call *c, const att_plan *plan)
{
    input *in = c->in;
    const att_attention_args *a = &c->args;
    const int64_t b = rarely(in) ? odd_number(in) : pick(in, MAX_SEQUENCES);
    const int64_t head = rarely(in) ? odd_number(in) : pick(in, 4);
    const int64_t first = rarely(in) ? odd_number(in) : pick(in, 40),
                  count = rarely(in) ? odd_number(in) : pick(in, 40);
    if (b < 0 || b >= c->sequences) {
        fuzz_check(att_weights(plan, a, b, head, first, count, NULL), "weights of a sequence that does not exist");
        return;
    }
    const int64_t *offsets = a->k_offsets ? a->k_offsets : a->q_offsets;
    const uint64_t apart = offsets ? (uint64_t)offsets[b + 1] - (uint64_t)offsets[b] : 0; /* arbitrary, if the offsets
                                                                                           * are invalid */
    const int64_t tk = offsets ? (int64_t)apart : a->k_lengths ? a->k_lengths[b] : a->k.dim[2];
    if (tk < 0 || tk > 2000)
        return;
    const int64_t rows = count > 0 && count < 4096 ? count : 0;
    float *weights = malloc((size_t)(rows * tk) * sizeof *weights);
    const att_status e = att_weights(plan, a, b, head, first, count, weights);
    check_error(e);
    for (int64_t i = 0; i < rows && !e && !c->odd_values; i++) {
        double sum = 0;
        for (int64_t j = 0; j < tk; j++)
            sum += weights[i * tk + j];
        fuzz_check(!(sum > 1.001), "weights sum to more than 1");
    }
    free(weights);
}

static void run(call *c, const att_plan *plan, int set, bool failing)
{
    enum { LONG = 10000000 }; /* rows that are one and the same make calls of any size */
    att_plan_info info = {.size = sizeof info};
    check_error(att_plan_describe(plan, NULL, &info));
    check_error(att_plan_describe(plan, &c->args, &info));
    if (info.forward.flops > LONG)
        return;
    const att_status e = compute(c, plan, false);
    if (!e && !failing && !c->cut)
        check_again(c, set, false);
    check_weights(c, plan);
    if (!compute(c, plan, true) && !failing && !c->cut && !c->grads.accumulate)
        check_again(c, set, true);
    check_error(att_merge(context_of(set, 1), &c->args.out, &c->args.lse, &c->out2, &c->lse2));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    input in = {data, size};
    call c = {.in = &in, .spec.size = sizeof c.spec, .args.size = sizeof c.args, .grads.size = sizeof c.grads};
    att_plan *plan;
    const int set = pick(&in, MAX_SETS);
    const bool failing = rarely(&in), odd = rarely(&in);
    choose_stages(&c);
    choose_sizes(&c);
    choose_sequences(&c);
    choose_operands(&c);
    if (odd)
        spoil(&c);
    allocate(&c);
    att_ctx *ctx = context_of(set, 1);
    allocations_left = failing ? 1 + pick(&in, 8) : 0;
    const att_status e = att_plan_new(ctx, &c.spec, &plan);
    check_error(e);
    fuzz_check(!e || !plan, "refused, but with a plan");
    if (plan)
        run(&c, plan, set, failing);
    att_plan_free(plan);
    allocations_left = 0;
    release(&c);
    return 0;
}
