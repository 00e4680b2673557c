/* What models that learn to translate have in common. */
#ifndef ATT_MODEL_TEACHER_H
#define ATT_MODEL_TEACHER_H

#include "attend_model.h"

/* Each target moved one on, begun with `start`: what a decoder sees before it says the token, [target_offsets[n]]. The
 * caller frees it with att_free. NULL: error set */
int32_t *att_teacher_before(att_ctx *ctx, const att_pairs *p, int64_t start);
/* The cross entropy of targets by logits [target_offsets[n], vocabulary] -> [1]. Padding, where it is the last id, is
 * none that could follow. */
att_var *att_teacher_loss(att_tape *t, att_var *logits, const att_pairs *p, const att_learning *l, int64_t vocabulary,
                          int64_t pad);

#endif
