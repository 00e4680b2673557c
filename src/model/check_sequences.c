/* Checks of sequences passed by the caller */
#include "model/check_sequences.h"

bool att_sequences_fit(att_tape *t, const char *what, const int32_t *ids, const int64_t *offsets, int64_t n,
                       int64_t max_positions)
{
    if (!att_tape_require(t, what, ATT_NAMED({"offsets", offsets})))
        return false;
    bool good = n >= 0 && offsets[0] == 0;
    if (!good)
        att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: n = %lld sequences need ids, and offsets from 0", what, (long long)n);
    good = good && (offsets[n] == 0 || att_tape_require(t, what, ATT_NAMED({"ids", ids})));
    for (int64_t i = 0; good && i < n; i++) {
        const bool ascends = offsets[i] <= offsets[i + 1];
        const int64_t length = ascends ? offsets[i + 1] - offsets[i] : 0;
        good = ascends && length <= max_positions;
        if (!ascends)
            att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: offsets[%lld] = %lld is above offsets[%lld] = %lld", what,
                          (long long)i, (long long)offsets[i], (long long)i + 1, (long long)offsets[i + 1]);
        else if (!good)
            att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: sequence %lld has %lld tokens but the model has %lld positions",
                          what, (long long)i, (long long)length, (long long)max_positions);
    }
    return good;
}
