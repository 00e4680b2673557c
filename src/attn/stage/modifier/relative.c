/* Relative positions, keys before and after the query have buckets of their own: T5's encoder. */
#define RELATIVE att_modifier_relative
#define RELATIVE_NAME "relative"
enum { BOTH = 1 };
#include "attn/stage/modifier/relative.h"
