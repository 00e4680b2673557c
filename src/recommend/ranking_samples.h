/* Samples of items that a held-out one is ranked among. */
#ifndef ATT_RECOMMEND_RANKING_SAMPLES_H
#define ATT_RECOMMEND_RANKING_SAMPLES_H

#include "recommend/holdout.h"

typedef struct att_sampler {
    const att_holdout *h;
    att_candidates kind; /* not ATT_CANDIDATES_ALL */
    int64_t negatives;
    uint64_t seed;
    int64_t *up_to; /* [items]: sum of the weights of the items up to each: actions in the log, or 1 */
} att_sampler;

att_status att_sampler_init(att_sampler *s, const att_holdout *h, const att_ranking_options *options);
void att_sampler_free(att_sampler *s);
/* Words of a set of items, one bit each. */
static inline size_t att_item_set_words(int64_t items) { return (size_t)(items / 64 + 1); }
/* Can as many be drawn for this case? marked: a set of items, empty, and again afterwards. */
att_status att_sampler_check(const att_sampler *s, const att_case *c, uint64_t *marked);
/* Draws the sample of a case, which has been checked, with the number of a draw -> out [negatives]. marked: as
 * above. */
void att_sampler_draw(const att_sampler *s, const att_case *c, int64_t draw, uint64_t *marked, int32_t *out);

#endif
