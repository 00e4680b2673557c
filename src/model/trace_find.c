/* Finds layers in the table of a trace's pass. */
#include "model/trace.h"

#include <string.h>

int64_t att_trace_layer_of(const char *pattern, const char *scope)
{
    const size_t before = strcspn(pattern, "#");
    int64_t layer = 0;
    if (strncmp(pattern, scope, before) != 0)
        return -1;
    if (!pattern[before])
        return scope[before] ? -1 : 0;
    const char *at = scope + before;
    if (*at < '0' || *at > '9')
        return -1;
    for (; *at >= '0' && *at <= '9' && layer < INT32_MAX; at++)
        layer = 10 * layer + (*at - '0');
    return strcmp(at, pattern + before + 1) ? -1 : layer;
}

int64_t att_trace_index(const att_trace *t, att_trace_side side, int64_t layer)
{
    for (int64_t i = 0; i < t->info.attentions; i++)
        if (t->layer[i].part->side == side && t->layer[i].layer == layer)
            return i;
    return -1;
}

att_status att_trace_check_attention(const char *caller, const att_trace *t, int64_t i)
{
    return i >= 0 && i < t->info.attentions
               ? ATT_OK
               : att_fail(t->pass.ctx, ATT_ERR_ARGUMENT, "%s: i is %lld, but the attentions are 0 to %lld", caller,
                          (long long)i, (long long)t->info.attentions - 1);
}

bool att_trace_hides(const att_trace *t, const att_trace_part *part)
{
    return part->side != ATT_TRACE_SIDE_DECODER || t->info.source == 0;
}
