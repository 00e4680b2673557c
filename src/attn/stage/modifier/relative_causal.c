/* Relative positions of T5's decoder: buckets are for keys before the query. */
#define RELATIVE att_modifier_relative_causal
#define RELATIVE_NAME "relative_causal"
enum { BOTH = 0 };
#include "attn/stage/modifier/relative.h"
