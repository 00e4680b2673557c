/* Hidden states of a trace, and the model's output for them. */
#include "io/cancelled.h"
#include "model/trace.h"
#include "util/shape.h"
#include "util/util.h"

#include <string.h>

enum { BLOCK = 64 }; /* rows of results, which may be as wide as a vocabulary, that are computed at once */

/* Returns the hidden states of a layer, -1: the last, [queries, hidden]; NULL: an error of the caller. */
static const float *states_of(const char *caller, const att_trace *t, att_trace_side side, int64_t layer)
{
    const att_trace_states *s = (unsigned)side < ATT_TRACE_SIDES ? &t->states[side] : NULL;
    if (!s || !s->part) {
        att_fail(t->pass.ctx, ATT_ERR_ARGUMENT, "%s: this side of the model has no hidden states", caller);
        return NULL;
    }
    const att_trace_part *p = s->part;
    const int64_t l = layer == -1 ? p->layers : layer;
    if (l >= s->first && l <= p->layers)
        return s->x + (l - s->first) * p->queries * p->hidden;
    if (l < 0 || l > p->layers)
        att_fail(t->pass.ctx, ATT_ERR_ARGUMENT, "%s: layer is %lld, but hidden states are those of 0 to %lld", caller,
                 (long long)layer, (long long)p->layers);
    else
        att_fail(t->pass.ctx, ATT_ERR_ARGUMENT,
                 "%s: the hidden states of layer %lld were not kept, because options.hidden was false", caller,
                 (long long)layer);
    return NULL;
}

att_status att_trace_hidden(const att_trace *t, att_trace_side side, int64_t layer, int64_t first, int64_t count,
                            float *out)
{
    att_status s = att_trace_ready(__func__, t);
    const float *x = s ? NULL : states_of(__func__, t, side, layer);
    if (!x)
        return ATT_ERR_ARGUMENT;
    const att_trace_part *p = t->states[side].part;
    s = att_trace_check_rows(__func__, t, first, count, p->queries, out);
    if (!s && count > 0)
        memcpy(out, x + first * p->hidden, (size_t)(count * p->hidden) * sizeof *out);
    return s;
}

/* Computes rows [first, first + count) of the model's output for x [rows, hidden] -> out [count, outputs]; all rows if
 * the output is a whole. */
static att_status compute(const att_trace *t, att_tape *tape, const float *x, int64_t rows, int64_t hidden,
                          int64_t first, int64_t count, float *out)
{
    const att_trace_pass *p = &t->pass;
    const int64_t outputs = t->info.outputs;
    att_tensor in, y;
    att_status s = att_wrap(&in, (void *)(uintptr_t)x, ATT_F32, 2, (const int64_t[]){rows, hidden}, NULL);
    s = s ? s : att_var_value(tape, p->output(t->self, tape, att_constant(tape, &in)), &y);
    if (!s && att_elements(&y) != (p->whole ? t->info.output_rows : rows) * outputs)
        s = att_fail(p->ctx, ATT_ERR_UNSUPPORTED, "%s: the output layer made %lld numbers of %lld rows", p->caller,
                     (long long)att_elements(&y), (long long)rows);
    if (!s)
        memcpy(out, (const float *)y.data + (p->whole ? first * outputs : 0), (size_t)(count * outputs) * sizeof *out);
    att_tape_reset(tape);
    return s;
}

static att_status output_of(const att_trace *t, const float *x, int64_t first, int64_t count, float *out)
{
    const att_trace_part *p = t->states[t->pass.output_side].part;
    const bool whole = t->pass.whole;
    att_tape *tape;
    att_status s = att_tape_new(t->pass.ctx, ATT_OPTIONS(att_tape_config, .compute = t->pass.compute), &tape);
    if (s)
        return s;
    if (whole)
        s = compute(t, tape, x, p->queries, p->hidden, first, count, out);
    for (int64_t i = 0; !s && !whole && i < count; i += BLOCK) {
        const int64_t n = att_min(BLOCK, count - i);
        s = compute(t, tape, x + (first + i) * p->hidden, n, p->hidden, 0, n, out + i * t->info.outputs);
    }
    att_tape_free(tape);
    return s;
}

att_status att_trace_output(const att_trace *t, int64_t layer, int64_t first, int64_t count, float *out)
{
    att_status s = att_trace_ready(__func__, t);
    if (s)
        return s;
    const att_trace_info *i = &t->info;
    if (i->outputs == 0 || (!t->pass.output && layer != -1))
        return att_fail(t->pass.ctx, ATT_ERR_ARGUMENT,
                        i->outputs ? "%s: layer is %lld, but this model has an output only of layer -1"
                                   : "%s: layer is %lld, but the model has no output layer",
                        __func__, (long long)layer);
    const float *x = t->pass.output ? states_of(__func__, t, t->pass.output_side, layer) : t->result;
    if (!x && t->pass.output)
        return ATT_ERR_ARGUMENT;
    s = att_trace_check_rows(__func__, t, first, count, i->output_rows, out);
    if (s || count == 0)
        return s;
    if (t->pass.output)
        return output_of(t, x, first, count, out);
    memcpy(out, x + first * i->outputs, (size_t)(count * i->outputs) * sizeof *out);
    return ATT_OK;
}
