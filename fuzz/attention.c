/* The input chooses a whole attention call: stages, shapes, strides, lengths, types, gradients, and now and then a
 * field that is wrong, or an allocation that fails. Each array is exactly as large as its view says, so that the
 * address sanitizer sees what is read or written beside it. What was refused has written nothing; what was computed has
 * the same bits with two threads, whatever was in the output before, and has left what lies between the strides alone.
 */
#include "attention_call.h"

/* ---- what must hold */

typedef struct copies {
    unsigned char *of[MOST_TENSORS];
} copies;

static copies copy(const call *c)
{
    copies x = {{NULL}};
    for (int i = 0; i < c->n_arrays; i++)
        if (c->arrays[i].memory) {
            x.of[i] = malloc(c->arrays[i].bytes + 1);
            if (!x.of[i])
                abort();
            memcpy(x.of[i], c->arrays[i].memory, c->arrays[i].bytes);
        }
    return x;
}

static void drop(copies *x)
{
    for (int i = 0; i < MOST_TENSORS; i++)
        free(x->of[i]);
}

/* What is not written, by a forward or a backward call, has not changed; and nothing at all after an error. */
static void check_untouched(const call *c, const copies *before, bool backward, bool failed)
{
    for (int i = 0; i < c->n_arrays; i++) {
        const array *a = &c->arrays[i];
        const bool written = (backward ? a->backward : a->forward) && !failed;
        for (size_t j = 0; j < a->bytes; j++)
            if (!(written && a->element && a->element[j]))
                fuzz_check(a->memory[j] == before->of[i][j], failed ? "refused, but written" : "written beside it");
    }
}

static void check_same(const call *c, const copies *x)
{
    for (int i = 0; i < c->n_arrays; i++)
        if ((c->arrays[i].forward || c->arrays[i].backward) && c->arrays[i].element)
            for (size_t j = 0; j < c->arrays[i].bytes; j++)
                fuzz_check(!c->arrays[i].element[j] || c->arrays[i].memory[j] == x->of[i][j], "other bits");
}

static void check_error(att_status e) { fuzz_check(!e || *att_error(NULL), "an error without a sentence"); }

/* A call on one context. Returns the first error. */
static att_status compute(const call *c, const att_plan *plan, bool backward)
{
    copies before = copy(c);
    const att_status e = backward ? att_backward(plan, &c->args, &c->grads) : att_forward(plan, &c->args);
    check_error(e);
    check_untouched(c, &before, backward, e != ATT_OK);
    drop(&before);
    return e;
}

/* Once more with two threads, on top of something else. */
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
    const int64_t b = rarely(in) ? odd_number(in) : pick(in, MOST_SEQUENCES);
    const int64_t head = rarely(in) ? odd_number(in) : pick(in, 4);
    const int64_t first = rarely(in) ? odd_number(in) : pick(in, 40),
                  count = rarely(in) ? odd_number(in) : pick(in, 40);
    if (b < 0 || b >= c->sequences) {
        fuzz_check(att_weights(plan, a, b, head, first, count, NULL), "weights of a sequence that is not there");
        return;
    }
    const int64_t *offsets = a->k_offsets ? a->k_offsets : a->q_offsets;
    const int64_t tk = offsets ? offsets[b + 1] - offsets[b] : a->k_lengths ? a->k_lengths[b] : a->k.dim[2];
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
    att_plan_info info = {.size = sizeof info};
    check_error(att_plan_describe(plan, NULL, &info));
    check_error(att_plan_describe(plan, &c->args, &info));
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
    const int set = pick(&in, MOST_SETS);
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
