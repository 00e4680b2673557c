/* The tile function of every score that is the dot product of its transformed rows. */
#ifndef ATT_ATTN_SCORE_DOT_H
#define ATT_ATTN_SCORE_DOT_H

#include "attn/stage/stage.h"
#include "simd/simd.h"

void ATTEND_ISA(att_dot_tile)(const att_score_tile *t);

#endif
