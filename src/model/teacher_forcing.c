#include "model/teacher_forcing.h"

int32_t *att_decoder_inputs(att_ctx *ctx, const att_sequence_pairs *p, int64_t start)
{
    int32_t *ids = att_alloc(ctx, (size_t)p->target_offsets[p->n] + 1, sizeof *ids);
    for (int64_t b = 0; ids && b < p->n; b++)
        for (int64_t i = p->target_offsets[b]; i < p->target_offsets[b + 1]; i++)
            ids[i] = i == p->target_offsets[b] ? (int32_t)start : p->target[i - 1];
    return ids;
}

att_var *att_target_loss(att_tape *t, att_var *logits, const att_sequence_pairs *p, const att_loss_options *l,
                         int64_t vocabulary, int64_t pad)
{
    return att_cross_entropy(t, logits, p->target,
                             ATT_OPTIONS(att_cross_entropy_options, .label_smoothing = l->label_smoothing,
                                         .classes = pad == vocabulary - 1 ? vocabulary - 1 : 0, .sum = l->sum,
                                         .count = l->count));
}
