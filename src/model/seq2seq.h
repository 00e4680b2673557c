/* Inside translation: seq2seq token by token. Public: att_seq2seq_open and its neighbours. */
#ifndef ATT_MODEL_SEQ2SEQ_H
#define ATT_MODEL_SEQ2SEQ_H

#include "attend_model.h"

/* A state has rows, translations that grow: one a sentence to begin with. It is of one thread, the model of many. */
typedef struct att_seq2seq_state att_seq2seq_state;
/* The sources, all one after the other: ids [offsets[n]], offsets [n + 1]. */
att_status att_seq2seq_start(const att_seq2seq *m, const int32_t *ids, const int64_t *offsets, int64_t n,
                             att_seq2seq_state **out);
void att_seq2seq_state_free(att_seq2seq_state *s);
/* ids [rows], which each row goes on with -> logits of what follows, [rows, target vocabulary] */
att_var *att_seq2seq_step(att_seq2seq_state *s, att_tape *t, const int32_t *ids);
/* There are now n rows, of which b is what row from[b] was, from [n], in the order of sentences. */
att_status att_seq2seq_select(att_seq2seq_state *s, int64_t n, const int64_t *from);

#endif
