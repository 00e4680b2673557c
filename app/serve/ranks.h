/* Scores in descending order. */
#ifndef SERVE_RANKS_H
#define SERVE_RANKS_H

#include <stdint.h>

typedef struct serve_rank {
    int64_t index;
    float score;
} serve_rank;

/* Returns scores [n] in descending order, equal ones in the given order, malloc'd; NULL: out of memory. */
serve_rank *serve_ranks(const float *scores, int64_t n);

#endif
