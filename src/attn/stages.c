/* The public handles of the stages that the build found, with their version for each instruction set. */
#include "attn/stage.h"
#include "att_lists.h"

#define DECLARE(kind, name, isa) extern const att_##kind att_##kind##_##name##_##isa;
#define SET(isa) ATT_score_LIST(DECLARE, isa) ATT_modifier_LIST(DECLARE, isa)
ATT_SET_LIST(SET)
#undef SET

#include "att_stages.h"
