/* A recommender learns what people bought after what, is written as a folder, and recommends what comes next.
 *
 *     cc recommend.c $(pkg-config --cflags --libs attend_model) -o recommend
 *     ./recommend purchases.txt FOLDER tent camera mat */
#include <attend_recommend.h>
#include <stdio.h>

enum { STEPS = 200, MAX_ITEMS = 50 };

/* Learns from a log, whose lines are "user item item ...", and writes the model. */
static att_status learn(att_ctx *ctx, const char *path, const char *folder)
{
    const att_schedule rate = {.size = sizeof rate, .kind = ATT_SCHEDULE_COSINE, .max_rate = 0.01, .steps = STEPS};
    const att_training_options common = {.size = sizeof common, .schedule = &rate};
    att_recommender_training_options options = {
        .size = sizeof options, .settings = "{\"model_type\": \"attend-sasrec\"}", .dropout = 0.2f};
    att_training_report report = {.size = sizeof report};
    att_interactions *log = NULL;
    att_holdout *data = NULL;
    att_training *t = NULL;
    att_status s = att_interactions_open(ctx, path, NULL, &log);
    s = s ? s : att_holdout_new(log, ATT_OPTIONS(att_holdout_options, .kind = ATT_HOLDOUT_NONE), &data);
    options.data = data;
    s = s ? s : att_recommender_training_open(ctx, folder, &common, &options, &t);
    for (int i = 0; !s && i < STEPS; i++)
        s = att_training_step(t, &report);
    s = s ? s : att_training_write(t, 0, ATT_F32);
    att_training_free(t);
    att_holdout_free(data);
    att_interactions_free(log);
    return s;
}

int main(int n, char **argument)
{
    int32_t items[MAX_ITEMS];
    int64_t offsets[] = {0, 0}; /* one history, so far without items */
    att_ctx *ctx = NULL;
    att_recommender *m = NULL;
    att_recommendation next = {0};
    if (n < 4)
        return fprintf(stderr, "usage: recommend LOG FOLDER ITEM...\n"), 2;
    att_status s = att_open(&ctx, NULL);
    s = s ? s : learn(ctx, argument[1], argument[2]);
    s = s ? s : att_recommender_open(ctx, argument[2], NULL, &m);
    for (int i = 3; i < n && offsets[1] < MAX_ITEMS; i++)
        if (att_recommender_find_item(m, argument[i]) >= 0) /* of others nothing is known */
            items[offsets[1]++] = (int32_t)att_recommender_find_item(m, argument[i]);
    s = s ? s : att_recommend(m, 1, items, offsets, ATT_OPTIONS(att_recommend_options, .k = 3), &next);
    for (int i = 0; !s && i < next.k; i++)
        printf("%8.4f  %s\n", (double)next.scores[i], att_recommender_item(m, next.items[i]));
    if (s)
        fprintf(stderr, "%s\n", att_error(ctx));
    att_recommendation_free(ctx, &next);
    att_recommender_free(m);
    att_close(ctx);
    return s != ATT_OK;
}
