/* Teacher forcing: the decoder is given the target instead of its own output (Williams, Zipser 1989). */
#ifndef ATT_MODEL_TEACHER_FORCING_H
#define ATT_MODEL_TEACHER_FORCING_H

#include "attend_model.h"

/* The decoder's inputs, [target_offsets[n]]: each target shifted right by one token, `start` first. Free with att_free.
 * NULL: error set */
int32_t *att_decoder_inputs(att_ctx *ctx, const att_sequence_pairs *p, int64_t start);
/* Cross entropy of targets given logits [target_offsets[n], vocabulary] -> [1]. Padding, if it is the last id, is not a
 * class. */
att_var *att_target_loss(att_tape *t, att_var *logits, const att_sequence_pairs *p, const att_loss_options *l,
                         int64_t vocabulary, int64_t pad);

#endif
