/* Lists whose positions depend on each other, against filling them position by position from the whole ranking: a limit
 * for each category, maximal marginal relevance, positions for new items; and similar items of many items at once. */
#include "fixtures/recommend.h"
#include "fixtures/score_order.h"

#include "attend_util.h"

enum { ITEMS = 300, HIDDEN = 12, USERS = 24, CATEGORIES = 7 };

static char id_text[ITEMS][16];
static const char *ids[ITEMS];
static int32_t items[USERS * 16], category[ITEMS];
static int64_t offsets[USERS + 1], counts[ITEMS];
static float vectors[ITEMS * HIDDEN];

/* Items 40 to 59 have the vectors of 20 to 39, so that values are equal; every 11th item has no action in training, and
 * every 10th no category. */
static att_recommender *make(void)
{
    att_recommender *m;
    for (int i = 0; i < ITEMS; i++) {
        snprintf(id_text[i], sizeof id_text[i], "i%d", i);
        ids[i] = id_text[i];
        counts[i] = i % 11 ? 1 + i * 37 % 101 : 0;
        category[i] =
            i % 10 ? (int32_t)(check_uniform(1, (uint64_t)i) * check_uniform(2, (uint64_t)i) * CATEGORIES) : -1;
        category[i] = category[i] < -1 ? -1 - category[i] : category[i];
    }
    for (int u = 0; u < USERS; u++) {
        offsets[u + 1] = offsets[u] + 1 + u * 7 % 16;
        for (int64_t i = offsets[u]; i < offsets[u + 1]; i++)
            items[i] = (int32_t)((uint64_t)(i * 2654435761) % ITEMS);
    }
    if (att_recommender_new(ctx,
                            "{\"model_type\": \"attend-sasrec\", \"hidden_size\": 12, \"num_attention_heads\": 2, "
                            "\"max_position_embeddings\": 8}",
                            ITEMS, ids, NULL, 3, &m))
        fail_msg("%s", att_error(ctx));
    att_param *p = att_nn_params_at(att_recommender_params(m), 0, &(const char *){NULL});
    float *x = att_param_value(p)->data;
    for (int i = 0; i < ITEMS * HIDDEN; i++)
        x[i] = check_uniform(5, (uint64_t)i);
    memcpy(x + 40 * HIDDEN, x + 20 * HIDDEN, 20 * HIDDEN * sizeof *x);
    att_param_invalidate(p);
    assert_int_equal(att_recommender_set_counts(m, counts), ATT_OK);
    assert_int_equal(att_recommender_vectors(m, vectors), ATT_OK);
    return m;
}

/* ---- the reference: positions one by one, from the ranking of all items */

static bool is_new(const att_recommend_options *o, int32_t item)
{
    return o->n_new_items ? is_in(o->new_items, o->n_new_items, item) : counts[item] == 0;
}

/* Returns how many items of the list have the category of this one. */
static int64_t like(const int32_t *list, int64_t n, int32_t item)
{
    int64_t all = 0;
    for (int64_t i = 0; i < n; i++)
        all += category[list[i]] == category[item];
    return category[item] < 0 ? 0 : all;
}

/* Returns the length of the pool: `least`, and more until k items of it keep to the limit. */
static int64_t pool_of(const att_recommend_options *o, const int32_t *order, int64_t n, int64_t least)
{
    int32_t kept[ITEMS];
    int64_t n_kept = 0, i = 0;
    for (; i < n && (i < least || n_kept < o->k); i++)
        if (!o->max_per_category || like(kept, n_kept, order[i]) < o->max_per_category)
            kept[n_kept++] = order[i];
    return i;
}

static double cosine(int32_t a, int32_t b)
{
    double ab = 0, aa = 0, bb = 0;
    for (int d = 0; d < HIDDEN; d++) {
        const double x = (double)vectors[a * HIDDEN + d], y = (double)vectors[b * HIDDEN + d];
        ab += x * y;
        aa += x * x;
        bb += y * y;
    }
    return ab / sqrt(aa * bb);
}

typedef struct ranking {
    const att_recommend_options *o;
    const float *scores; /* [ITEMS] */
    int32_t order[ITEMS];
    int64_t n, pool;
} ranking;

static double value_of(const ranking *r, int32_t item, const int32_t *list, int64_t n)
{
    const double low = (double)r->scores[r->order[r->pool - 1]], high = (double)r->scores[r->order[0]];
    double most = -1;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, cosine(item, list[i]));
    if (r->o->diversity <= 0)
        return (double)r->scores[item];
    return (1 - r->o->diversity) * ((double)r->scores[item] - low) / (high - low) -
           r->o->diversity * (n > 0 ? most : 0);
}

/* Returns the best item for the next position of a list of n; -1: there is none. new_pool: new items up to this
 * position of the ranking are considered; 0: any item of the pool is. */
static int32_t next_of(const ranking *r, const int32_t *list, int64_t n, int64_t new_pool)
{
    int32_t best = -1;
    double highest = 0;
    for (int64_t i = 0; i < r->n; i++) {
        const int32_t item = r->order[i];
        if (is_in(list, n, item) || i >= (new_pool > r->pool ? new_pool : r->pool) || (new_pool && !is_new(r->o, item)))
            continue;
        if (r->o->max_per_category && like(list, n, item) >= r->o->max_per_category)
            continue;
        /* equal vectors have equal values but for roundings, and then the first is taken */
        const double value = value_of(r, item, list, n);
        if (best < 0 || value > highest + 1e-12) {
            best = item;
            highest = value;
        }
    }
    return best;
}

static void fill(ranking *r, int32_t *list)
{
    const att_recommend_options *o = r->o;
    const int64_t own = o->diversity_pool ? o->diversity_pool : 10 * o->k, least = own > o->k ? own : o->k;
    int32_t fresh[ITEMS];
    int64_t n_fresh = 0, n_new = 0, at = 0;
    sorted_by = r->scores;
    qsort(r->order, (size_t)r->n, sizeof *r->order, by_score);
    r->pool = o->diversity > 0 ? pool_of(o, r->order, r->n, least) : r->n;
    for (int64_t i = 0; i < r->n; i++)
        if (is_new(o, r->order[i]))
            fresh[n_fresh++] = r->order[i];
    n_fresh = o->diversity > 0 ? pool_of(o, fresh, n_fresh, least) : n_fresh;
    while (n_fresh > 0 && r->order[at] != fresh[n_fresh - 1])
        at++;
    for (int64_t i = 0; i < o->k; i++) {
        const bool for_new = n_new < (int64_t)floor((double)(i + 1) * o->new_share + 1e-9);
        list[i] = for_new && n_fresh > 0 ? next_of(r, list, i, at + 1) : -1;
        if (list[i] < 0)
            list[i] = next_of(r, list, i, 0);
        if (list[i] < 0) {
            for (; i < o->k; i++)
                list[i] = -1;
            return;
        }
        n_new += is_new(o, list[i]);
    }
}

/* Compares a list with the reference. history [n]: items that are left out. */
static void check_list(const att_recommend_options *o, const float *scores, const int32_t *history, int64_t n,
                       const int32_t *list)
{
    ranking r = {.o = o, .scores = scores};
    int32_t expected[ITEMS];
    for (int32_t i = 0; i < ITEMS; i++)
        if (!is_in(history, n, i) && (!o->n_allow || is_in(o->allow, o->n_allow, i)) && !is_in(o->deny, o->n_deny, i))
            r.order[r.n++] = i;
    fill(&r, expected);
    for (int64_t i = 0; i < o->k; i++)
        if (list[i] != expected[i])
            fail_msg("k %d, limit %d, diversity %g of %d, new %g: position %d has item %d, not %d", (int)o->k,
                     (int)o->max_per_category, o->diversity, (int)o->diversity_pool, o->new_share, (int)i, list[i],
                     expected[i]);
}

/* ---- lists of histories */

static const int32_t some[] = {1, 2, 3, 50, 51, 52, 53, 299}, allowed[] = {7, 9, 20, 22, 40, 41, 44, 110, 121, 290};

static const att_recommend_options cases[] = {
    {.k = 10, .max_per_category = 1},
    {.k = 10, .max_per_category = 3, .exclude_seen = true},
    {.k = 120, .max_per_category = 12, .exclude_seen = true, .deny = some, .n_deny = 8},
    {.k = ITEMS, .max_per_category = 2},
    {.k = 10, .diversity = 0.3},
    {.k = 10, .diversity = 0.7, .diversity_pool = 15, .exclude_seen = true},
    {.k = 12, .diversity = 1, .diversity_pool = ITEMS},
    {.k = 20, .diversity = 0.5, .diversity_pool = 3},
    {.k = 10, .new_share = 0.1},
    {.k = 10, .new_share = 0.25, .exclude_seen = true, .new_items = some, .n_new_items = 8, .deny = some, .n_deny = 2},
    {.k = 10, .new_share = 1, .new_items = some, .n_new_items = 8},
    {.k = 8, .allow = allowed, .n_allow = 10, .max_per_category = 1, .new_share = 0.5},
    {.k = 10, .max_per_category = 1, .diversity = 0.4, .new_share = 0.3, .exclude_seen = true},
    {.k = 25, .max_per_category = 4, .diversity = 0.9, .diversity_pool = 30, .new_share = 0.2},
};
enum { CASES = sizeof cases / sizeof *cases };

static att_recommend_options case_of(int i)
{
    att_recommend_options o = cases[i];
    o.size = sizeof o;
    o.category = category;
    return o;
}

static void lists_are_those_filled_position_by_position(void **state)
{
    (void)state;
    static float scores[USERS * ITEMS];
    att_recommender *m = make();
    const att_scorer s = att_recommender_scorer(m);
    assert_int_equal(s.score(s.user, items, offsets, USERS, ITEMS, scores), ATT_OK);
    for (int i = 0; i < CASES; i++) {
        const att_recommend_options o = case_of(i);
        att_recommendation r;
        if (att_recommend(m, USERS, items, offsets, &o, &r))
            fail_msg("%s", att_error(ctx));
        assert_int_equal(r.k, o.k);
        for (int u = 0; u < USERS; u += check_step(5)) {
            const int64_t seen = o.exclude_seen ? offsets[u + 1] - offsets[u] : 0;
            check_list(&o, scores + u * ITEMS, items + offsets[u], seen, r.items + u * o.k);
            for (int64_t k = 0; k < o.k && r.items[u * o.k + k] >= 0; k++)
                assert_memory_equal(&r.scores[u * o.k + k], &scores[u * ITEMS + r.items[u * o.k + k]], sizeof(float));
        }
        att_recommendation_free(ctx, &r);
    }
    att_recommender_free(m);
}

/* Of all lists with at most `most` items of a category none has a higher sum: it has each category's best, and of these
 * the best (a matroid's greedy basis). */
static void a_limit_of_categories_has_the_highest_sum(void **state)
{
    (void)state;
    static float scores[ITEMS];
    att_recommender *m = make();
    const att_scorer s = att_recommender_scorer(m);
    const att_recommend_options o = {
        .size = sizeof o, .k = 15, .category = category, .max_per_category = 2, .exclude_seen = false};
    for (int u = 0; u < USERS; u += 5) {
        const int64_t own[] = {0, offsets[u + 1] - offsets[u]};
        int32_t order[ITEMS], kept[ITEMS];
        int64_t n = 0;
        double sum = 0, highest = 0;
        att_recommendation r;
        assert_int_equal(s.score(s.user, items + offsets[u], own, 1, ITEMS, scores), ATT_OK);
        assert_int_equal(att_recommend(m, 1, items + offsets[u], own, &o, &r), ATT_OK);
        sorted_by = scores;
        for (int32_t c = -1; c < CATEGORIES; c++) {
            int64_t in = 0;
            for (int32_t i = 0; i < ITEMS; i++)
                if (category[i] == c)
                    order[in++] = i;
            qsort(order, (size_t)in, sizeof *order, by_score);
            for (int64_t i = 0; i < in && (c < 0 || i < 2); i++)
                kept[n++] = order[i];
        }
        qsort(kept, (size_t)n, sizeof *kept, by_score);
        for (int i = 0; i < 15; i++) {
            sum += (double)r.scores[i];
            highest += (double)scores[kept[i]];
        }
        assert_true(fabs(sum - highest) < 1e-12 * fabs(highest) + 1e-12);
        att_recommendation_free(ctx, &r);
    }
    att_recommender_free(m);
}

static void a_list_is_the_same_alone_and_by_popularity_too(void **state)
{
    (void)state;
    static float by_count[ITEMS];
    att_recommender *m = make();
    att_recommendation all, one;
    for (int i = 0; i < ITEMS; i++)
        by_count[i] = (float)counts[i];
    for (int i = 0; i < CASES; i++) {
        const att_recommend_options o = case_of(i);
        const int64_t none[] = {0, 0, 3, 3};
        assert_int_equal(att_recommend(m, USERS, items, offsets, &o, &all), ATT_OK);
        const int64_t own[] = {0, offsets[9] - offsets[8]};
        assert_int_equal(att_recommend(m, 1, items + offsets[8], own, &o, &one), ATT_OK);
        assert_memory_equal(one.items, all.items + 8 * o.k, (size_t)o.k * sizeof *one.items);
        att_recommendation_free(ctx, &one);
        att_recommendation_free(ctx, &all);
        assert_int_equal(att_recommend(m, 3, items, none, &o, &all), ATT_OK);
        assert_true(all.by_popular[0] && all.by_popular[2]);
        check_list(&o, by_count, NULL, 0, all.items);
        check_list(&o, by_count, NULL, 0, all.items + 2 * o.k);
        att_recommendation_free(ctx, &all);
    }
    att_recommender_free(m);
}

/* ---- similar items */

static void similar_items_of_many_are_those_of_each(void **state)
{
    (void)state;
    att_recommender *m = make();
    int32_t asked[ITEMS];
    att_recommendation all, one;
    for (int i = 0; i < ITEMS; i++)
        asked[i] = ITEMS - 1 - i;
    for (int i = -1; i < CASES; i += 4) {
        const att_recommend_options o =
            i < 0 ? (att_recommend_options){.size = sizeof o, .k = 7, .deny = some, .n_deny = 8} : case_of(i);
        assert_int_equal(att_recommender_similar_items(m, ITEMS, asked, &o, &all), ATT_OK);
        assert_int_equal(all.n, ITEMS);
        for (int k = 0; k < ITEMS; k += 37) {
            assert_int_equal(att_recommender_similar(m, asked[k], &o, &one), ATT_OK);
            assert_memory_equal(one.items, all.items + k * o.k, (size_t)o.k * sizeof *one.items);
            assert_memory_equal(one.scores, all.scores + k * o.k, (size_t)o.k * sizeof *one.scores);
            for (int64_t c = 0; c < o.k && one.items[c] >= 0; c++) /* norms and dot are off by some roundings */
                assert_true(fabs(cosine(asked[k], one.items[c]) - (double)one.scores[c]) < 16 * FLT_EPSILON);
            att_recommendation_free(ctx, &one);
        }
        att_recommendation_free(ctx, &all);
    }
    att_recommender_free(m);
}

static void an_item_without_a_vector_has_no_similar_ones(void **state)
{
    (void)state;
    static const float content[3 * 2] = {1, 2, 0, 0, 2, 1};
    static const char *const names[] = {"a", "b", "c"};
    static const int32_t asked[] = {0, 1, 2};
    const att_item_content added = {.size = sizeof added, .vectors = content, .width = 2, .add = true};
    att_recommender *m;
    att_recommendation r;
    assert_int_equal(
        att_recommender_new(ctx, "{\"model_type\": \"attend-sasrec\", \"hidden_size\": 4}", 3, names, &added, 1, &m),
        ATT_OK);
    assert_int_equal(att_recommender_similar_items(m, 3, asked, ATT_OPTIONS(att_recommend_options, .k = 2), &r),
                     ATT_OK);
    assert_true(r.items[0] == 2 && r.items[1] == -1 && r.items[2] == -1 && r.items[3] == -1 && r.items[4] == 0);
    att_recommendation_free(ctx, &r);
    assert_int_equal(att_recommender_similar_items(m, 0, asked, NULL, &r), ATT_OK);
    att_recommendation_free(ctx, &r);
    assert_int_equal(att_recommender_similar_items(m, 1, (const int32_t[]){3}, NULL, &r), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(ctx), "items[0] is 3, but the model has items 0 to 2");
    assert_int_equal(att_recommender_similar_items(m, -1, asked, NULL, &r), ATT_ERR_ARGUMENT);
    att_recommender_free(m);
}

/* ---- wrong options */

static void wrong_options_are_named(void **state)
{
    (void)state;
    static int32_t wrong[ITEMS] = {0, -2};
    static const struct {
        att_recommend_options o;
        const char *says;
    } all[] = {
        {{.max_per_category = -1}, "options.max_per_category is -1, less than 0"},
        {{.max_per_category = 2}, "options.max_per_category is 2 without options.category"},
        {{.max_per_category = 2, .category = wrong}, "options.category[1] is -2, not from -1 to 299"},
        {{.diversity = 1.5}, "options.diversity is 1.5, not from 0 to 1"},
        {{.diversity = NAN}, "options.diversity is nan, not from 0 to 1"},
        {{.diversity_pool = -3}, "options.diversity_pool is -3, less than 0"},
        {{.new_share = -0.5}, "options.new_share is -0.5, not from 0 to 1"},
        {{.new_items = wrong, .n_new_items = 2}, "options.new_items[1] is -2, but the model has items 0 to 299"},
        {{.n_new_items = 2}, "options.n_new_items is 2 with no options.new_items"},
    };
    att_recommender *m = make();
    att_recommendation r;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        att_recommend_options o = all[i].o;
        o.size = sizeof o;
        assert_int_equal(att_recommend(m, USERS, items, offsets, &o, &r), ATT_ERR_ARGUMENT);
        assert_string_equal(att_error(ctx), all[i].says);
        assert_null(r.items);
    }
    att_recommender_free(m);
    m = tiny_recommender("pre");
    assert_int_equal(att_recommend(m, 1, (const int32_t[]){1}, (const int64_t[]){0, 1},
                                   ATT_OPTIONS(att_recommend_options, .new_share = 0.1), &r),
                     ATT_ERR_ARGUMENT);
    assert_non_null(strstr(att_error(ctx), "but the model has no counts of its items"));
    att_recommender_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_those_filled_position_by_position),
        cmocka_unit_test(a_limit_of_categories_has_the_highest_sum),
        cmocka_unit_test(a_list_is_the_same_alone_and_by_popularity_too),
        cmocka_unit_test(similar_items_of_many_are_those_of_each),
        cmocka_unit_test(an_item_without_a_vector_has_no_similar_ones),
        cmocka_unit_test(wrong_options_are_named),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
