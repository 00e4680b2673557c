/* Sequential recommendation as a program that links the library gets it.
 *
 *   bench_recommend epoch LOG [ROUNDS]                  histories a second of an epoch with the model, the loss and the
 *                                                       settings of Kang, McAuley 2018, as a JSON line
 *   bench_recommend top ITEMS HIDDEN HISTORIES [ROUNDS] milliseconds for the 100 best items of each history
 */
#include "attend_recommend.h"
#include "bench.h"

#include <math.h>
#include <string.h>

static const char paper[] = "{\"model_type\": \"attend-sasrec\", \"hidden_size\": 50, \"num_hidden_layers\": 2, "
                            "\"num_attention_heads\": 1, \"intermediate_size\": 50, \"max_position_embeddings\": 50, "
                            "\"block\": \"sasrec\", \"hidden_act\": \"relu\"}";

static void *allocate(size_t bytes)
{
    void *p = malloc(bytes);
    if (!p) {
        fprintf(stderr, "bench_recommend: out of memory\n");
        exit(1);
    }
    return p;
}

/* ---- training */

/* Runs the steps of an epoch, and returns the mean of their losses; report: of the last step. */
static double run_epoch(att_ctx *ctx, att_training *t, att_training_report *report)
{
    double loss = 0;
    int64_t steps = 0;
    do {
        check(ctx, att_training_step(t, report));
        loss += report->loss;
        steps++;
    } while (report->steps_left > 0);
    return loss / (double)steps;
}

static int time_epochs(const char *path, int rounds)
{
    att_ctx *ctx;
    att_interactions *log;
    att_holdout *h;
    att_recommender *m;
    att_training *t;
    att_holdout_info info = {.size = sizeof info};
    att_interactions_info all = {.size = sizeof all};
    att_training_report report = {.size = sizeof report};
    att_training_info data = {.size = sizeof data}; /* its examples are histories that are trained on */
    double best = INFINITY, loss = 0;
    check(NULL, att_open(&ctx, NULL));
    check(ctx, att_interactions_open(ctx, path, NULL, &log));
    check(ctx, att_interactions_describe(log, &all));
    check(ctx, att_holdout_new(log, NULL, &h));
    check(ctx, att_holdout_describe(h, &info));
    const char **ids = allocate((size_t)all.items * sizeof *ids);
    for (int64_t i = 0; i < all.items; i++)
        ids[i] = att_interactions_item(log, i);
    check(ctx, att_recommender_new(ctx, paper, all.items, ids, NULL, 1, &m));
    const att_schedule schedule = {.size = sizeof schedule, .kind = ATT_SCHEDULE_CONSTANT, .max_rate = 1e-3};
    check(ctx, att_recommender_training_new(
                   m, ATT_OPTIONS(att_training_options, .schedule = &schedule, .beta2 = 0.98, .seed = 1),
                   ATT_OPTIONS(att_recommender_training_options, .data = h, .batch = 128, .loss = ATT_ITEM_LOSS_BINARY,
                               .negatives = 1, .dropout = 0.5f),
                   &t));
    check(ctx, att_training_describe(t, &data));
    for (int r = 0; r < rounds; r++) {
        const double start = seconds();
        loss = run_epoch(ctx, t, &report);
        best = fmin(best, seconds() - start);
    }
    printf("{\"threads\":%d,\"isa\":\"%s\",\"histories\":%lld,\"positions\":%lld,\"histories_per_second\":%.1f,"
           "\"loss\":%.4f}\n",
           att_threads(ctx), att_isa(ctx), (long long)data.examples, (long long)info.positions,
           (double)data.examples / best, loss);
    att_training_free(t);
    att_recommender_free(m);
    att_holdout_free(h);
    att_interactions_free(log);
    free(ids);
    att_close(ctx);
    return 0;
}

/* ---- the best of many items */

enum { ID = 24 };

static att_recommender *many_items(att_ctx *ctx, int64_t n, int64_t hidden)
{
    char settings[256];
    att_recommender *m;
    char(*text)[ID] = allocate((size_t)n * sizeof *text);
    const char **ids = allocate((size_t)n * sizeof *ids);
    for (int64_t i = 0; i < n; i++) {
        snprintf(text[i], sizeof text[i], "%lld", (long long)i);
        ids[i] = text[i];
    }
    snprintf(settings, sizeof settings,
             "{\"model_type\": \"attend-sasrec\", \"hidden_size\": %lld, \"num_hidden_layers\": 1, "
             "\"num_attention_heads\": 1, \"intermediate_size\": %lld, \"max_position_embeddings\": 50}",
             (long long)hidden, (long long)hidden);
    check(ctx, att_recommender_new(ctx, settings, n, ids, NULL, 1, &m));
    free(ids);
    free(text);
    return m;
}

static void wrong(const char *what, int64_t rank)
{
    fprintf(stderr, "bench_recommend: number %lld of the first list %s\n", (long long)rank + 1, what);
    exit(1);
}

/* The first list must be that of the best, in order, by the products of vectors, in double: no other item is above its
 * last one. */
static void verify(att_ctx *ctx, const att_recommender *m, int64_t n, int64_t hidden, const att_recommendation *r)
{
    float *vectors = allocate((size_t)(n * hidden) * sizeof *vectors),
          *state = allocate((size_t)hidden * sizeof *state);
    double *scores = allocate((size_t)n * sizeof *scores);
    const double rounding = 1e-5 * fabs((double)r->scores[0]);
    check(ctx, att_recommender_vectors(m, vectors));
    check(ctx, att_recommender_embed(m, 1, (const int32_t[]){0}, (const int64_t[]){0, 1}, NULL, state));
    for (int64_t i = 0; i < n; i++) {
        scores[i] = 0;
        for (int64_t d = 0; d < hidden; d++)
            scores[i] += (double)state[d] * (double)vectors[i * hidden + d];
    }
    for (int64_t k = 0; k < r->k; k++) {
        double *score = &scores[r->items[k]];
        if (!(fabs(*score - (double)r->scores[k]) <= rounding))
            wrong("has another score, or is listed twice", k);
        if (k > 0 && !(r->scores[k] <= r->scores[k - 1]))
            wrong("is above the one before", k);
        *score = (double)-INFINITY;
    }
    for (int64_t i = 0; i < n; i++)
        if (scores[i] > (double)r->scores[r->k - 1] + rounding)
            wrong("is below an item that is not listed", r->k - 1);
    free(scores);
    free(state);
    free(vectors);
}

static int time_top(int64_t n, int64_t hidden, int64_t histories, int rounds)
{
    att_ctx *ctx;
    double best = INFINITY;
    check(NULL, att_open(&ctx, NULL));
    att_recommender *m = many_items(ctx, n, hidden);
    int32_t *items = allocate((size_t)histories * sizeof *items);
    int64_t *offsets = allocate((size_t)(histories + 1) * sizeof *offsets);
    for (int64_t i = 0; i < histories; i++) {
        items[i] = (int32_t)(i * 977 % n);
        offsets[i] = i;
    }
    offsets[histories] = histories;
    for (int r = 0; r < rounds; r++) {
        att_recommendation found;
        const double start = seconds();
        check(ctx, att_recommend(m, histories, items, offsets, ATT_OPTIONS(att_recommend_options, .k = 100), &found));
        best = fmin(best, seconds() - start);
        if (!r)
            verify(ctx, m, n, hidden, &found);
        att_recommendation_free(ctx, &found);
    }
    printf("{\"threads\":%d,\"isa\":\"%s\",\"items\":%lld,\"hidden\":%lld,\"histories\":%lld,\"milliseconds\":%.3f}\n",
           att_threads(ctx), att_isa(ctx), (long long)n, (long long)hidden, (long long)histories, 1e3 * best);
    free(offsets);
    free(items);
    att_recommender_free(m);
    att_close(ctx);
    return 0;
}

int main(int n, char **argument)
{
    if (n >= 3 && n <= 4 && !strcmp(argument[1], "epoch"))
        return time_epochs(argument[2], n > 3 ? atoi(argument[3]) : 2);
    if (n >= 5 && n <= 6 && !strcmp(argument[1], "top"))
        return time_top(atoll(argument[2]), atoll(argument[3]), atoll(argument[4]), n > 5 ? atoi(argument[5]) : 5);
    fprintf(stderr, "usage: bench_recommend epoch LOG [ROUNDS] | top ITEMS HIDDEN HISTORIES [ROUNDS]\n");
    return 2;
}
