/* Samples of items, among which a held-out item is ranked. */
#ifndef ATT_RECOMMEND_RANKING_SAMPLES_H
#define ATT_RECOMMEND_RANKING_SAMPLES_H

#include "recommend/holdout.h"

typedef struct att_sampler {
    const att_holdout *h;
    att_candidates kind; /* not ATT_CANDIDATES_ALL */
    int64_t negatives;
    uint64_t seed;
    int64_t *up_to; /* [items]: sum of the weights of the items up to each; a weight is the number of actions in the
                     * log, or 1 */
} att_sampler;

att_status att_sampler_init(att_sampler *s, const att_holdout *h, const att_ranking_options *options);
void att_sampler_free(att_sampler *s);
/* Returns the number of words of a set of items, which has one bit for each. */
static inline size_t att_item_set_words(int64_t items) { return (size_t)(items / 64 + 1); }
/* Checks that enough items can be drawn for this case. marked: a set of items as scratch memory, empty before and
 * after. */
att_status att_sampler_check(const att_sampler *s, const att_case *c, uint64_t *marked);
/* Draws the sample of a checked case, for the draw of this number: out [negatives]. marked: as in att_sampler_check. */
void att_sampler_draw(const att_sampler *s, const att_case *c, int64_t draw, uint64_t *marked, int32_t *out);

#endif
