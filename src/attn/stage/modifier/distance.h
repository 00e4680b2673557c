/* Shared by modifiers that add a number for each distance, key position - query position.
 *
 * The pairs of a tile have only columns + keys - 1 distances, one for each diagonal. Diagonals are counted from that of
 * the last key with the first query: query i and key j are on diagonal keys - 1 - j + i, so neighboring queries are
 * neighbors there too. */
#ifndef ATT_ATTN_MODIFIER_DISTANCE_H
#define ATT_ATTN_MODIFIER_DISTANCE_H

#include "attn/stage/stage.h"
#include "simd/simd.h"

#include <string.h>

enum { MAX_DIAGONALS = ATT_KEY_BLOCK + ATT_MAX_Q_TILE };

static inline int64_t distance_of_pair(const att_pair *p) { return p->k - p->q - p->head->position; }

/* Returns the distance of diagonal 0; that of diagonal n is n less. */
static inline int64_t first_distance(const att_modifier_tile *t)
{
    return t->k + t->keys - 1 - t->q - t->head->position;
}

/* Return how many diagonals the whole tile has, and how many of them have a pair. */
static inline int all_diagonals(const att_modifier_tile *t) { return (int)t->columns + t->keys - 1; }
static inline int used_diagonals(const att_modifier_tile *t) { return t->queries + t->keys - 1; }

/* Adds x [all_diagonals] to s. */
ATT_INLINE void add_diagonals(const att_modifier_tile *t, const float *x)
{
    for (int j = 0; j < t->keys; j++)
        for (int i = 0; i < t->queries; i += ATT_LANES) {
            float *s = t->s + j * t->stride + i;
            v_store(s, v_add(v_load(s), v_load(x + t->keys - 1 - j + i)));
        }
}

/* Computes y [MAX_DIAGONALS], the sums of ds along the diagonals, in descending order of keys. */
ATT_INLINE void sum_diagonals(const att_modifier_tile *t, float *y)
{
    memset(y, 0, MAX_DIAGONALS * sizeof *y);
    for (int j = t->keys - 1; j >= 0; j--)
        for (int i = 0; i < t->queries; i += ATT_LANES) {
            const int n = t->queries - i < ATT_LANES ? t->queries - i : ATT_LANES;
            float *sum = y + t->keys - 1 - j + i;
            v_store(sum, v_add(v_load(sum), v_load_n(t->ds + j * t->stride + i, n)));
        }
}

#endif
