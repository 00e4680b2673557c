/* Forward on bf16 where the machine multiplies pairs of them: rows as words of two numbers (see kernel/bf16.c). */
#include "attn/attn.h"

#include <string.h>

bool att_words_usable(const att_plan *plan)
{
    bool usable = plan->spec.dtype == ATT_BF16 && plan->kernels->word_scores && (plan->score->flags & ATT_DOT) &&
                  plan->score->tile && !plan->prologue;
    for (int i = 0; i < plan->n_modifiers; i++) /* pair by pair, rows are read as floats */
        usable = usable && (plan->modifier[i]->tile || !plan->modifier[i]->formula);
    return usable;
}

int64_t att_words_in(int64_t dim) { return (dim + 1) / 2; }

static const uint16_t *row_at(const att_rows *r, int64_t row) { return (const uint16_t *)r->at + row * r->stride; }

/* Row i of a block, of a cache's panels too. */
static void take_row(const att_rows *block, int64_t i, int64_t dim, uint16_t *row)
{
    if (!block->panel) {
        memcpy(row, row_at(block, i), (size_t)dim * sizeof *row);
        return;
    }
    const uint16_t *lane = (const uint16_t *)block->at + i / block->panel * block->panel * dim + i % block->panel;
    for (int64_t d = 0; d < dim; d++)
        row[d] = lane[d * block->panel];
}

att_floats att_words_of_rows(const att_rows *r, int64_t first, int64_t n, int64_t dim, float *buffer)
{
    const int64_t words = att_words_in(dim);
    const att_rows block = att_rows_block(r, first);
    for (int64_t i = 0; i < n; i++) {
        uint16_t *row = (uint16_t *)(void *)(buffer + i * words);
        take_row(&block, i, dim, row);
        if (dim % 2)
            row[dim] = 0;
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

void att_words_of_values(const att_plan *plan, const att_rows *v, int64_t first, int keys, float *words,
                         att_clean *unclean)
{
    const int64_t dim = plan->spec.value_dim;
    const att_rows block = att_rows_block(v, first);
    unclean->n_unclean = 0;
    for (int k = 0; k < keys; k += 2) {
        const uint16_t *row[2] = {row_at(&block, k), k + 1 < keys ? row_at(&block, k + 1) : NULL};
        if (plan->kernels->words_of_rows(dim, row[0], row[1], words + k / 2 * dim))
            continue;
        for (int i = 0; i < 2; i++)
            if (row[i] && !finite(row[i], dim)) {
                unclean->unclean[unclean->n_unclean++] = k + i;
                row[i] = NULL;
            }
        plan->kernels->words_of_rows(dim, row[0], row[1], words + k / 2 * dim);
    }
}
