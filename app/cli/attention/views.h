/* What is shown of a trace. All return 0, or a code after a message. */
#ifndef CLI_ATTENTION_VIEWS_H
#define CLI_ATTENTION_VIEWS_H

#include "attended.h"

/* Shows the weights of a layer and head: of all tokens, or with --from N of one. (weights.c) */
int attention_show_weights(attended *a);
/* Shows all heads of all layers of a side. (heads.c) */
int attention_show_heads(attended *a);
/* Shows what one weight is made of. (pair.c) */
int attention_show_pair(attended *a);
/* Shows what changes without tokens and heads. (changes.c) */
int attention_show_changes(attended *a);
/* Shows what the model would make of the hidden states of each layer. (lens.c) */
int attention_show_lens(attended *a);

#endif
