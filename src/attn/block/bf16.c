/* Forward on bf16 if the machine multiplies pairs of them: rows are words of two numbers (see kernel/bf16.c). */
#include "attn/block/block.h"

#include <string.h>

int64_t att_bf16_pairs_in(int64_t dim) { return (dim + 1) / 2; }

/* Writes the words of a panel of keys as rows: kernels make [words][panel], which is then transposed. */
static void transpose_panel(const att_kernels *k, const uint16_t *packed, int64_t rows, int64_t dim, float *buffer)
{
    const int64_t panel = k->q_tile, words = att_bf16_pairs_in(dim);
    float packed_q[ATT_MAX_Q_TILE * ATT_MAX_Q_TILE], back[ATT_MAX_Q_TILE * ATT_MAX_Q_TILE];
    for (int64_t first = 0; first < words; first += panel) {
        const int64_t n = words - first < panel ? words - first : panel;
        for (int64_t w = 0; w < n; w++) {
            const uint16_t *even = packed + 2 * (first + w) * panel;
            k->bf16.interleave(panel, even, 2 * (first + w) + 1 < dim ? even + panel : NULL, packed_q + w * panel);
        }
        k->bf16.pack(n, panel, packed_q, panel, back);
        for (int64_t i = 0; i < rows; i++)
            memcpy(buffer + i * words + first, back + i * panel, (size_t)n * sizeof *back);
    }
}

/* Returns whether rows can be read in place. Whole tiles can; the rest is read as floats, which bf16 rows are not. */
static bool lie_as_words(const att_kernels *k, const att_rows *block, int64_t n, int64_t dim)
{
    enum { EDGE = 16 }; /* rows of a tile, and words of its rows */
    return k->bf16.pack_values && !block->panel && !block->copy && n % EDGE == 0 && dim % (2 * EDGE) == 0 &&
           block->stride % 2 == 0 && (uintptr_t)block->at % sizeof(float) == 0;
}

att_floats att_bf16_pack_rows(const att_kernels *k, const att_rows *r, int64_t first, int64_t n, int64_t dim,
                              float *buffer)
{
    const int64_t words = att_bf16_pairs_in(dim);
    const att_rows block = att_rows_block(r, first);
    const int64_t packed = att_rows_packed(&block, n);
    if (lie_as_words(k, &block, n, dim))
        return (att_floats){block.at, block.stride / 2};
    for (int64_t i = 0; i < packed; i += block.panel)
        transpose_panel(k, att_row_at(&block, i), packed - i < block.panel ? packed - i : block.panel, dim,
                        buffer + i * words);
    for (int64_t i = packed; i < n; i++) {
        buffer[i * words + words - 1] = 0; /* if dim is odd, half of the word is unused */
        memcpy(buffer + i * words, att_row_at(&block, i), (size_t)dim * sizeof(uint16_t));
    }
    return (att_floats){buffer, words};
}

static bool finite(const uint16_t *x, int64_t n)
{
    bool all = true;
    for (int64_t i = 0; i < n; i++)
        all = all && (x[i] & 0x7f80) != 0x7f80;
    return all;
}

void att_bf16_pack_values(const att_plan *plan, const att_rows *v, int64_t first, int keys, float *words,
                          att_finite_ranges *nonfinite)
{
    const int64_t dim = plan->spec.value_dim;
    const att_rows block = att_rows_block(v, first);
    nonfinite->n_nonfinite = 0;
    for (int k = 0; k < keys; k += 2) {
        const uint16_t *row[2] = {att_row_at(&block, k), k + 1 < keys ? att_row_at(&block, k + 1) : NULL};
        if (plan->kernels->bf16.interleave(dim, row[0], row[1], words + k / 2 * dim))
            continue;
        for (int i = 0; i < 2; i++)
            if (row[i] && !finite(row[i], dim)) {
                nonfinite->nonfinite[nonfinite->n_nonfinite++] = k + i;
                row[i] = NULL;
            }
        plan->kernels->bf16.interleave(dim, row[0], row[1], words + k / 2 * dim);
    }
    if (plan->kernels->bf16.pack_values)
        plan->kernels->bf16.pack_values(keys, dim, words);
}
