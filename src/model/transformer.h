/* Inside translation: the Transformer's parts. Public: att_transformer_open and its neighbours. */
#ifndef ATT_MODEL_TRANSFORMER_H
#define ATT_MODEL_TRANSFORMER_H

#include "model/encoder_decoder.h"
#include "model/marian_config.h"

extern const att_architecture att_transformer_architecture;

/* A new one that learns, its weights by chance. Errors: ctx, config or out is NULL; those of its config.json. */
att_status att_transformer_new(att_ctx *ctx, const att_marian_config *config, uint64_t seed, att_transformer **out);

/* Token by token. A state has rows, translations that grow: one a sentence to begin with. It is of one thread, the
 * model's is of many. */
typedef struct att_transformer_state att_transformer_state;
/* The sources, all one after the other: ids [offsets[n]], offsets [n + 1]. */
att_status att_transformer_start(const att_transformer *m, const int32_t *ids, const int64_t *offsets, int64_t n,
                                 att_transformer_state **out);
void att_transformer_state_free(att_transformer_state *s);
/* ids [rows], which each row goes on with -> logits of what follows, [rows, target vocabulary] */
att_var *att_transformer_step(att_transformer_state *s, att_tape *t, const int32_t *ids);
/* There are now n rows, of which b is what row from[b] was, from [n], in the order of sentences. */
att_status att_transformer_select(att_transformer_state *s, int64_t n, const int64_t *from);

#endif
