/* A score that joins the softmax of each row of a head and has no value: rows may attend less than 1 in all. The
 * drivers add it; there is nothing to do for a tile. */
#include "attn/stage/stage.h"
#include "simd/simd.h"

extern const att_modifier ATT_ISA(att_modifier_sink);
const att_modifier ATT_ISA(att_modifier_sink) = {.name = "sink", .flags = ATT_SINK, .param = {.name = "sinks"}};
