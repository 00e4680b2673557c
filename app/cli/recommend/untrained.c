#include "untrained.h"

/* The list after no history has the numbers of actions as scores. */
static const int64_t no_history[] = {0, 0};

void cli_untrained_note(const cli_recommender *m, int32_t item)
{
    const att_recommend_options *one = ATT_OPTIONS(att_recommend_options, .k = 1, .allow = &item, .n_allow = 1);
    att_recommendation r;
    if (m->info.content_width > 0 ||
        att_recommend(m->model, 1, &item, no_history, one, &r)) /* it fails if the model has no counts */
        return;
    if (r.by_popular[0] && r.scores[0] == 0)
        cli_note("%s had no action in training: unless it had a text, its vector and neighbors are random",
                 m->items[item]);
    att_recommendation_free(m->base.ctx, &r);
}

int cli_untrained_check(const cli_recommender *m)
{
    const att_recommend_options *all = ATT_OPTIONS(att_recommend_options, .k = m->info.items);
    att_recommendation r;
    int64_t n = 0;
    const int code = cli_status(m->base.ctx, att_recommend(m->model, 1, NULL, no_history, all, &r));
    if (code)
        return code;
    for (int64_t i = 0; i < r.k && r.items[i] >= 0; i++)
        n += r.scores[i] <= 0;
    if (n == 0)
        cli_note("--new-share has no effect: all items of %s had an action in training; --new FILE lists new ones",
                 m->base.name);
    att_recommendation_free(m->base.ctx, &r);
    return CLI_DONE;
}
