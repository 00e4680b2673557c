/* Positions of rows for rotary encoding: by offsets, after the tokens of a cache */
#include "nn/nn.h"

bool att_nn_positions_begin(att_tape *t, att_nn_positions *p, const int64_t *offsets, int64_t n, int64_t rows,
                            const att_cache *cache)
{
    *p = (att_nn_positions){.at = {.size = sizeof p->at, .offsets = offsets, .n = n}};
    if (!cache)
        return true;
    n = att_cache_sequences(cache);
    int64_t *starts = att_alloc(att_tape_ctx(t), 2 * (size_t)n + 1, sizeof *starts);
    if (!starts)
        return att_tape_fail(t, ATT_ERR_MEMORY, "%s", att_error(NULL));
    int64_t *equal = starts + n;
    for (int64_t b = 0; b < n; b++) {
        starts[b] = att_cache_length(cache, b);
        equal[b] = rows / n * b;
    }
    equal[n] = rows;
    p->memory = starts;
    p->at.starts = starts;
    p->at.offsets = offsets ? offsets : equal;
    p->at.n = n;
    return true;
}

void att_nn_positions_end(att_tape *t, att_nn_positions *p) { att_free(att_tape_ctx(t), p->memory); }
