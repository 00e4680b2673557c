/* The views of a trace. All functions return 0, or a code after a message. */
#ifndef CLI_ATTENTION_VIEWS_H
#define CLI_ATTENTION_VIEWS_H

#include "attended.h"

/* Shows the weights of a layer and head: of all tokens, or with --from N of one. (weights.c) */
int attention_show_weights(attended *a);
/* Shows all heads of all layers of a side. (heads.c) */
int attention_show_heads(attended *a);
/* Shows the steps to one weight. (pair.c) */
int attention_show_pair(attended *a);
/* Shows the changes of the result without some tokens and heads. (changes.c) */
int attention_show_changes(attended *a);
/* Shows the results that the model would compute if each layer were the last one. (lens.c) */
int attention_show_lens(attended *a);

#endif
