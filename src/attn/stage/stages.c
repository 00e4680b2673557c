/* The public handles of the stages that the build found, with their version for each instruction set. */
#include "attn/stage/stage.h"

#include "att_stages.h"
