/* Lists of recommended items: exactly the items with the highest scores, alone or in any batch, for any number of
 * threads; similar items, scores for att_rank. */
#include "fixtures/fail_alloc.h"
#include "fixtures/progress.h"
#include "fixtures/recommend.h"
#include "fixtures/score_order.h"

#include "attend_util.h"

#include <pthread.h>

enum { ITEMS = 1500, HIDDEN = 24, POSITIONS = 8, USERS = 150, LONGEST = 30 };

static char id_text[ITEMS][16];
static const char *ids[ITEMS];
static int32_t items[USERS * LONGEST];
static int64_t offsets[USERS + 1];
static int64_t counts[ITEMS];

/* Histories of 1 to LONGEST items, with repeats; items 40 to 59 have the vectors of items 20 to 39, so that scores
 * are equal. */
static att_recommender *make(att_ctx *of, const char *type)
{
    char settings[200];
    att_recommender *m;
    for (int i = 0; i < ITEMS; i++) {
        snprintf(id_text[i], sizeof id_text[i], "i%d", i);
        ids[i] = id_text[i];
        counts[i] = i * 37 % 101;
    }
    for (int u = 0; u < USERS; u++) {
        offsets[u + 1] = offsets[u] + 1 + u * 7 % LONGEST;
        for (int64_t i = offsets[u]; i < offsets[u + 1]; i++)
            items[i] = (int32_t)((uint64_t)(i * 2654435761) % 64);
    }
    snprintf(settings, sizeof settings,
             "{\"model_type\": \"%s\", \"hidden_size\": %d, \"num_attention_heads\": 2, "
             "\"max_position_embeddings\": %d}",
             type, HIDDEN, POSITIONS);
    if (att_recommender_new(of, settings, ITEMS, ids, NULL, 3, &m))
        fail_msg("%s", att_error(of));
    float *x = att_param_value(att_nn_params_at(att_recommender_params(m), 0, &(const char *){NULL}))->data;
    for (int i = 0; i < (ITEMS + 1) * HIDDEN && i < ITEMS * HIDDEN; i++)
        x[i] = check_uniform(5, (uint64_t)i);
    memcpy(x + 40 * HIDDEN, x + 20 * HIDDEN, 20 * HIDDEN * sizeof *x);
    att_param_invalidate(att_nn_params_at(att_recommender_params(m), 0, &(const char *){NULL}));
    assert_int_equal(att_recommender_set_counts(m, counts), ATT_OK);
    return m;
}

static att_recommendation recommend(const att_recommender *m, int64_t first, int64_t n, const att_recommend_options *o)
{
    int64_t *own = malloc(((size_t)n + 1) * sizeof *own);
    att_recommendation r;
    for (int64_t i = 0; i <= n; i++)
        own[i] = offsets[first + i] - offsets[first];
    if (att_recommend(m, n, items + offsets[first], own, o, &r))
        fail_msg("%s", att_error(ctx));
    free(own);
    return r;
}

/* ---- against sorting all scores */

static bool may_be_listed(const att_recommend_options *o, int u, int32_t item)
{
    return !(o->exclude_seen && is_in(items + offsets[u], offsets[u + 1] - offsets[u], item)) &&
           (!o->n_allow || is_in(o->allow, o->n_allow, item)) && !is_in(o->deny, o->n_deny, item);
}

/* The list of user u by all scores [ITEMS] */
static void check_list(const att_recommendation *r, int u, const att_recommend_options *o, const float *scores)
{
    int32_t order[ITEMS];
    for (int32_t i = 0; i < ITEMS; i++)
        order[i] = i;
    sorted_by = scores;
    qsort(order, ITEMS, sizeof *order, by_score);
    int64_t n = 0;
    for (int i = 0; i < ITEMS && n < r->k; i++)
        if (may_be_listed(o, u, order[i])) {
            if (r->items[u * r->k + n] != order[i])
                fail_msg("user %d: item %d of the list is %d, not %d", u, (int)n, r->items[u * r->k + n], order[i]);
            assert_memory_equal(&r->scores[u * r->k + n], &scores[order[i]], sizeof *scores);
            n++;
        }
    for (; n < r->k; n++) {
        assert_int_equal(r->items[u * r->k + n], -1);
        assert_true(r->scores[u * r->k + n] < -FLT_MAX);
    }
}

static const int32_t few[] = {1499, 3, 21, 41, 7, 700};

static void lists_are_the_highest_scores(void **state)
{
    (void)state;
    static const char *const types[] = {"attend-sasrec", "attend-bert4rec"};
    static int32_t many[ITEMS - 40];
    for (int i = 0; i < ITEMS - 40; i++)
        many[i] = i % 2 ? i : ITEMS - 1 - i;
    const att_recommend_options how[] = {
        {.size = sizeof how[0]},
        {.size = sizeof how[0], .k = 1, .exclude_seen = true},
        {.size = sizeof how[0], .k = 100, .exclude_seen = true, .deny = few, .n_deny = 6},
        {.size = sizeof how[0], .k = 10, .exclude_seen = true, .allow = few, .n_allow = 6, .deny = few, .n_deny = 2},
        {.size = sizeof how[0], .k = 30, .exclude_seen = true, .deny = many, .n_deny = ITEMS - 40},
        {.size = sizeof how[0], .k = ITEMS, .exclude_seen = true},
        {.size = sizeof how[0], .k = 1200, .allow = many, .n_allow = ITEMS - 40, .deny = few, .n_deny = 6},
    };
    float *scores = malloc((size_t)USERS * ITEMS * sizeof *scores);
    for (int type = 0; type < 2; type++) {
        att_recommender *m = make(ctx, types[type]);
        const att_scorer s = att_recommender_scorer(m);
        assert_int_equal(s.score(s.user, items, offsets, USERS, ITEMS, scores), ATT_OK);
        for (size_t h = 0; h < sizeof how / sizeof how[0]; h++) {
            att_recommendation r = recommend(m, 0, USERS, &how[h]);
            assert_int_equal(r.n, USERS);
            assert_int_equal(r.k, how[h].k ? how[h].k : 10);
            for (int u = 0; u < USERS; u += check_step(7)) {
                check_list(&r, u, &how[h], scores + (int64_t)u * ITEMS);
                assert_false(r.by_popular[u]);
            }
            att_recommendation_free(ctx, &r);
        }
        att_recommender_free(m);
    }
    free(scores);
}

/* ---- the same lists in any batch and for any number of threads */

static void a_list_is_the_same_in_any_batch(void **state)
{
    (void)state;
    att_recommender *m = make(ctx, "attend-sasrec");
    const att_recommend_options o = {.size = sizeof o, .k = 20, .exclude_seen = true};
    att_recommendation all = recommend(m, 0, USERS, &o);
    for (int u = 0; u < USERS; u += 13) {
        att_recommendation one = recommend(m, u, 1, &o);
        assert_memory_equal(one.items, all.items + u * 20, 20 * sizeof *one.items);
        assert_memory_equal(one.scores, all.scores + u * 20, 20 * sizeof *one.scores);
        att_recommendation_free(ctx, &one);
    }
    att_ctx *single = check_open(NULL, 1);
    att_recommender *same = make(single, "attend-sasrec");
    att_recommendation again = recommend(same, 0, USERS, &o);
    assert_memory_equal(again.items, all.items, USERS * 20 * sizeof *all.items);
    assert_memory_equal(again.scores, all.scores, USERS * 20 * sizeof *all.scores);
    att_recommendation_free(ctx, &again);
    att_recommender_free(same);
    att_close(single);
    att_recommendation_free(ctx, &all);
    att_recommender_free(m);
}

/* A model that is opened has the lists of the one that was written, though its table is made once. */
static void an_opened_model_has_the_same_lists(void **state)
{
    (void)state;
    static const char *const cases[] = {"pre", "content", "bert4rec"};
    for (int c = 0; c < 3; c++) {
        const att_recommend_options o = {.size = sizeof o, .k = 5, .exclude_seen = true};
        att_recommender *m = tiny_recommender(cases[c]), *opened;
        att_recommendation a, b;
        test_folder folder = folder_new();
        assert_int_equal(att_recommender_write(m, folder.path, 0), ATT_OK);
        assert_int_equal(att_recommender_open(ctx, folder.path, NULL, &opened), ATT_OK);
        assert_int_equal(att_recommend(m, 3, tiny_histories, tiny_offsets, &o, &a), ATT_OK);
        assert_int_equal(att_recommend(opened, 3, tiny_histories, tiny_offsets, &o, &b), ATT_OK);
        assert_memory_equal(a.items, b.items, 15 * sizeof *a.items);
        assert_memory_equal(a.scores, b.scores, 15 * sizeof *a.scores);
        assert_int_equal(a.items[4], -1); /* of 7 items 4 different ones are seen */
        assert_true(a.items[2] >= 0 && a.items[3] == -1);
        att_recommendation_free(ctx, &a);
        att_recommendation_free(ctx, &b);
        att_recommender_free(m);
        att_recommender_free(opened);
        folder_remove(&folder);
    }
}

/* ---- histories that are empty, long, or wrong */

static void empty_histories_get_popular_items(void **state)
{
    (void)state;
    const int64_t ends[] = {0, 0, 3, 3};
    const int32_t one[] = {1, 2, 3};
    const att_recommend_options o = {.size = sizeof o, .k = 3, .deny = few, .n_deny = 6};
    att_recommender *m = make(ctx, "attend-sasrec");
    att_recommendation r;
    float *scores = malloc((size_t)3 * (ITEMS + 1) * sizeof *scores);
    assert_int_equal(att_recommend(m, 3, one, ends, &o, &r), ATT_OK);
    assert_true(r.by_popular[0] && !r.by_popular[1] && r.by_popular[2]);
    for (int i = 0; i < 3; i++) { /* those with count 100 in their order: 37 * 30 = 1110 = 10 * 101 + 100 */
        assert_int_equal(r.items[i], 30 + 101 * i);
        assert_int_equal(r.items[6 + i], 30 + 101 * i);
        assert_true(fabsf(r.scores[i] - 100) < 0.5f);
    }
    att_recommendation_free(ctx, &r);
    const att_scorer s = att_recommender_scorer(m);
    const int32_t unknown[] = {ITEMS, 2, ITEMS}; /* histories: one of unknown items, one with a known item */
    assert_int_equal(s.score(s.user, unknown, (const int64_t[]){0, 1, 3}, 2, ITEMS + 1, scores), ATT_OK);
    assert_true(scores[ITEMS] < -FLT_MAX && scores[2 * ITEMS + 1] < -FLT_MAX);
    assert_true(fabsf(scores[30] - 100) < 0.5f);
    float *known = malloc(ITEMS * sizeof *known);
    assert_int_equal(s.score(s.user, unknown + 1, (const int64_t[]){0, 1}, 1, ITEMS, known), ATT_OK);
    assert_memory_equal(known, scores + ITEMS + 1, ITEMS * sizeof *known);
    att_recommender_free(m);
    m = tiny_recommender("pre");
    assert_int_equal(att_recommend(m, 1, NULL, (const int64_t[]){0, 0}, NULL, &r), ATT_ERR_ARGUMENT);
    assert_non_null(strstr(att_error(ctx), "the model has no counts of its items"));
    att_recommender_free(m);
    free(scores);
    free(known);
}

static void only_the_last_items_count(void **state)
{
    (void)state;
    for (int mask = 0; mask < 2; mask++) {
        att_recommender *m = make(ctx, mask ? "attend-bert4rec" : "attend-sasrec");
        const int64_t used = POSITIONS - mask;
        float all[HIDDEN], last[HIDDEN], fewer[HIDDEN];
        const int32_t *end = items + LONGEST;
        assert_int_equal(att_recommender_embed(m, 1, items, (const int64_t[]){0, LONGEST}, NULL, all), ATT_OK);
        assert_int_equal(att_recommender_embed(m, 1, end - used, (const int64_t[]){0, used}, NULL, last), ATT_OK);
        assert_int_equal(att_recommender_embed(m, 1, end - used + 1, (const int64_t[]){0, used - 1}, NULL, fewer),
                         ATT_OK);
        assert_memory_equal(all, last, sizeof all);
        assert_memory_not_equal(all, fewer, sizeof all);
        att_recommender_free(m);
    }
}

static void wrong_arguments_are_named(void **state)
{
    (void)state;
    att_recommender *m = tiny_recommender("pre");
    att_recommendation r;
    const int32_t bad[] = {0, 7};
    const att_recommend_options deny = {.size = sizeof deny, .deny = bad, .n_deny = 2}, k = {.size = sizeof k, .k = -1};
    assert_int_equal(att_recommend(m, 1, bad, (const int64_t[]){0, 2}, NULL, &r), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(ctx), "items[1] is 7, but the model has items 0 to 6");
    assert_int_equal(att_recommend(m, 1, bad, (const int64_t[]){0, 1}, &deny, &r), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(ctx), "options.deny[1] is 7, but the model has items 0 to 6");
    assert_int_equal(att_recommend(m, 1, bad, (const int64_t[]){0, 1}, &k, &r), ATT_ERR_ARGUMENT);
    assert_int_equal(att_recommend(m, 2, bad, (const int64_t[]){0, 1, 0}, NULL, &r), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(ctx), "offsets[1] is 1, above offsets[2], 0");
    float vector[2 * TINY_HIDDEN];
    assert_int_equal(att_recommender_embed(m, 2, bad, (const int64_t[]){0, 1, 1}, NULL, vector), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(ctx), "history 1 has no item");
    assert_int_equal(att_recommender_similar(m, 7, NULL, &r), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(ctx), "item is 7, but the model has items 0 to 6");
    att_param *p = att_nn_params_at(att_recommender_params(m), 0, &(const char *){NULL});
    ((float *)att_param_value(p)->data)[3] = NAN;
    att_param_invalidate(p);
    for (int64_t many = 0; many < 2; many++) {
        const att_recommend_options o = {.size = sizeof o, .k = many ? 7 : 1};
        assert_int_equal(att_recommend(m, 1, bad, (const int64_t[]){0, 1}, &o, &r), ATT_ERR_ARGUMENT);
        assert_null(r.items);
    }
    att_recommender_free(m);
}

/* ---- similar items, attention */

static void similar_items_are_the_nearest(void **state)
{
    (void)state;
    static float vectors[ITEMS * HIDDEN];
    att_recommender *m = make(ctx, "attend-bert4rec");
    const att_recommend_options o = {.size = sizeof o, .k = 4, .deny = few, .n_deny = 3};
    att_recommendation r;
    assert_int_equal(att_recommender_similar(m, 25, &o, &r), ATT_OK);
    assert_int_equal(att_recommender_vectors(m, vectors), ATT_OK);
    assert_int_equal(r.n, 1);
    assert_int_equal(r.items[0], 45); /* which has the same vector */
    assert_true(fabsf(r.scores[0] - 1) < 1e-6f);
    for (int i = 0; i < 4; i++) {
        double dot = 0, a = 0, b = 0;
        const float *x = vectors + 25 * HIDDEN, *y = vectors + r.items[i] * HIDDEN;
        for (int k = 0; k < HIDDEN; k++) {
            dot += (double)x[k] * (double)y[k];
            a += (double)x[k] * (double)x[k];
            b += (double)y[k] * (double)y[k];
        }
        /* norms and dot are off by some roundings */
        assert_true(fabs(dot / sqrt(a * b) - (double)r.scores[i]) < 16 * FLT_EPSILON);
        assert_true(i == 0 || r.scores[i] <= r.scores[i - 1]);
        assert_true(r.items[i] != 25 && !is_in(few, 3, r.items[i]));
    }
    att_recommendation_free(ctx, &r);
    att_recommender_free(m);
}

/* ---- many threads */

typedef struct client {
    const att_recommender *m;
    att_recommendation list;
    att_status status;
} client;

static void *ask(void *arg)
{
    client *c = arg;
    c->status = att_recommend(c->m, USERS, items, offsets,
                              ATT_OPTIONS(att_recommend_options, .k = 15, .exclude_seen = true), &c->list);
    return NULL;
}

static void many_threads_ask_one_model(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    test_folder folder = folder_new();
    att_recommender *m = make(ctx, "attend-bert4rec"), *opened;
    assert_int_equal(att_recommender_write(m, folder.path, 0), ATT_OK);
    assert_int_equal(att_recommender_open(ctx, folder.path, NULL, &opened), ATT_OK);
    client alone = {.m = m}, all[THREADS];
    pthread_t thread[THREADS];
    ask(&alone);
    assert_int_equal(alone.status, ATT_OK);
    for (int i = 0; i < THREADS; i++) {
        all[i] = (client){.m = opened};
        assert_int_equal(pthread_create(&thread[i], NULL, ask, &all[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(all[i].status, ATT_OK);
        assert_memory_equal(all[i].list.items, alone.list.items, USERS * 15 * sizeof *alone.list.items);
        assert_memory_equal(all[i].list.scores, alone.list.scores, USERS * 15 * sizeof *alone.list.scores);
        att_recommendation_free(ctx, &all[i].list);
    }
    att_recommendation_free(ctx, &alone.list);
    att_recommender_free(m);
    att_recommender_free(opened);
    folder_remove(&folder);
}

/* ---- memory that ends */

static att_status make_and_recommend(att_ctx *of, const char *folder)
{
    static const float vectors[3 * 2] = {1, 2, 3, 4, 5, 6};
    const att_item_content content = {.size = sizeof content, .vectors = vectors, .width = 2, .add = true};
    const int32_t deny[] = {1}, history[] = {0, 2, 0};
    const int64_t of_three[] = {3, 2, 1};
    const att_recommend_options o = {.size = sizeof o, .k = 2, .exclude_seen = true, .deny = deny, .n_deny = 1};
    const int32_t category[] = {0, 1, 0, -1};
    const att_recommend_options reranked = {.size = sizeof reranked,
                                            .k = 3,
                                            .category = category,
                                            .max_per_category = 1,
                                            .diversity = 0.5,
                                            .new_share = 0.5};
    att_recommender *m = NULL;
    att_recommendation r = {0};
    att_trace *t = NULL;
    float weights[8];
    att_status e = att_recommender_new(of, "{\"model_type\": \"attend-bert4rec\", \"hidden_size\": 4}", 3,
                                       tiny_item_ids, &content, 1, &m);
    e = e ? e : att_recommender_set_counts(m, of_three);
    e = e ? e : att_recommender_add_items(m, 1, tiny_item_ids + 3, &content, 1);
    e = e ? e : att_recommender_write(m, folder, 0);
    att_recommender_free(m);
    m = NULL;
    e = e ? e : att_recommender_open(of, folder, NULL, &m);
    e = e ? e : att_recommend(m, 2, history, (const int64_t[]){0, 3, 3}, &o, &r);
    att_recommendation_free(of, &r);
    e = e ? e : att_recommender_similar(m, 1, &o, &r);
    att_recommendation_free(of, &r);
    e = e ? e : att_recommender_similar_items(m, 3, history, &reranked, &r);
    att_recommendation_free(of, &r);
    e = e ? e : att_recommend(m, 2, history, (const int64_t[]){0, 3, 3}, &reranked, &r);
    att_recommendation_free(of, &r);
    e = e ? e : att_recommender_trace(m, 3, history, NULL, &t);
    e = e ? e : att_trace_weights(t, 0, 0, 3, 1, weights);
    e = e ? e : att_trace_output(t, -1, 3, 1, weights);
    att_trace_free(t);
    att_recommender_free(m);
    return e;
}

static void lack_of_memory_is_an_error(void **state)
{
    (void)state;
    att_status e = ATT_ERR_MEMORY;
    test_folder folder = folder_new();
    long n = 1;
    for (; e == ATT_ERR_MEMORY; n += check_step(5)) {
        fail_alloc f = {0};
        att_ctx *of;
        assert_int_equal(att_open(&of, ATT_OPTIONS(att_config, .allocator = fail_allocator(&f), .n_threads = 2)),
                         ATT_OK);
        f.fail_at = f.calls + n;
        e = make_and_recommend(of, folder.path);
        att_close(of);
        assert_int_equal(f.live, 0);
    }
    assert_int_equal(e, ATT_OK);
    assert_true(n > 100);
    folder_remove(&folder);
}

/* More histories than are computed together */
typedef struct many_histories {
    const att_recommender *m;
    int32_t items[600];
    int64_t offsets[301];
    float vectors[300 * TINY_HIDDEN];
} many_histories;

static att_status recommend_in_batches(void *what, att_progress_fn progress, void *user)
{
    const many_histories *x = what;
    att_recommendation r;
    const att_status s =
        att_recommend(x->m, 300, x->items, x->offsets,
                      ATT_OPTIONS(att_recommend_options, .k = 3, .progress = progress, .user = user), &r);
    progress_result(s, r.items, 900 * sizeof *r.items);
    assert_true(!s == (r.items != NULL));
    att_recommendation_free(ctx, &r);
    return s;
}

static att_status embed_in_batches(void *what, att_progress_fn progress, void *user)
{
    many_histories *x = what;
    const att_status s = att_recommender_embed(
        x->m, 300, x->items, x->offsets, ATT_OPTIONS(att_call_options, .progress = progress, .user = user), x->vectors);
    progress_result(s, x->vectors, sizeof x->vectors);
    return s;
}

static void progress_may_stop_the_calls(void **state)
{
    (void)state;
    static many_histories x;
    att_recommender *m = tiny_recommender("pre");
    x.m = m;
    for (int i = 0; i < 600; i++)
        x.items[i] = i * i % TINY_ITEMS;
    for (int i = 0; i <= 300; i++)
        x.offsets[i] = 2 * i;
    assert_progress(ctx, recommend_in_batches, &x);
    assert_progress(ctx, embed_in_batches, &x);
    att_recommender_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_the_highest_scores),       cmocka_unit_test(a_list_is_the_same_in_any_batch),
        cmocka_unit_test(an_opened_model_has_the_same_lists), cmocka_unit_test(empty_histories_get_popular_items),
        cmocka_unit_test(only_the_last_items_count),          cmocka_unit_test(wrong_arguments_are_named),
        cmocka_unit_test(similar_items_are_the_nearest),

        cmocka_unit_test(many_threads_ask_one_model),         cmocka_unit_test(lack_of_memory_is_an_error),
        cmocka_unit_test(progress_may_stop_the_calls),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
