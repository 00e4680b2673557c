/* Makes models that count. */
#include "recommend/counting.h"

static att_status count(att_recommender *m, const att_holdout *h, att_progress *p)
{
    const att_counting_kind *k = m->architecture->counting;
    att_item_users x;
    att_status e = att_recommender_set_counts(m, h->counts);
    if (e || !k->count)
        return e;
    e = att_item_users_find(h, &x);
    e = e ? e : k->count(m, &x, p);
    att_item_users_free(&x);
    return e;
}

att_status att_recommender_fit(const att_holdout *data, const char *settings, const att_call_options *options,
                               att_recommender **out)
{
    att_progress p;
    att_recommender *m = NULL;
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"data", data}, {"settings", settings}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_status e = att_progress_of(&p, data->ctx, __func__, options, 0);
    e = e ? e : att_recommender_make(data->ctx, settings, data->log->info.items, 0, 0, &m);
    if (!e && !m->architecture->counting)
        e = att_fail(data->ctx, ATT_ERR_ARGUMENT, "%s is trained, not counted: att_recommender_training_open",
                     m->config.info.type);
    e = e ? e : att_item_ids_copy(&m->ids, &data->log->items);
    e = e ? e : count(m, data, &p);
    e = e ? e : att_progress_end(&p);
    if (e)
        att_recommender_free(m);
    else
        *out = m;
    return e;
}
