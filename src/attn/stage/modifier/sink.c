/* A score that joins the softmax of each row of a head and has no value, so that the weights of a row may sum to less
 * than 1. The forward and backward add it; tiles have nothing to do. */
#include "attn/stage/stage.h"
#include "simd/simd.h"

static const att_param_shape sinks = {.name = "sinks"};

extern const att_modifier ATTEND_ISA(att_modifier_sink);
const att_modifier ATTEND_ISA(att_modifier_sink) = {
    .size = sizeof(att_modifier), .name = "sink", .flags = ATT_STAGE_SINK, .param = &sinks, .n_params = 1};
