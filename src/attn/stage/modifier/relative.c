/* Relative positions of T5's encoder: keys before and after the query have separate buckets. */
#define RELATIVE att_modifier_relative
#define RELATIVE_NAME "relative"
enum { BOTH = 1 };
#include "attn/stage/modifier/relative.h"
