/* SASRec and BERT4Rec against PyTorch, transformers and the code of SASRec's authors: states, losses, gradients; their
 * folders; further items; content. */
#include "fixtures/recommend.h"
#include "util/util.h"
#include "recommend/recommend_loss.h"

#include "attend_util.h"

static const char *const cases[] = {"pre", "post", "kang", "content", "bert4rec", "bert4rec_pre"};
enum { CASES = sizeof cases / sizeof cases[0], MOST = 256 };

static att_tape *new_tape(bool record)
{
    att_tape *t;
    assert_int_equal(att_tape_new(ctx, ATT_OPTIONS(att_tape_config, .record = record), &t), ATT_OK);
    return t;
}

/* Within 1e-5 of the largest expected number: that is some 80 roundings, and each number passes through two layers,
 * whose sums have up to 24 products. */
static void check_close(const char *what, const double *expected, const float *x, int n)
{
    double largest = 0;
    for (int i = 0; i < n; i++)
        largest = fmax(largest, fabs(expected[i]));
    for (int i = 0; i < n; i++)
        if (!(fabs((double)x[i] - expected[i]) <= 1e-5 * fmax(largest, 1)))
            fail_msg("%s: number %d is %.9g, not %.9g", what, i, (double)x[i], expected[i]);
}

/* ---- values and gradients */

static void states_are_those_of_pytorch(void **state)
{
    (void)state;
    for (int c = 0; c < CASES; c++) {
        double expected[MOST];
        att_tensor x;
        att_recommender *m = tiny_recommender(cases[c]);
        att_tape *t = new_tape(false);
        att_var *y = att_recommender_apply(t, m, tiny_inputs(cases[c]), tiny_offsets, TINY_HISTORIES, NULL);
        if (att_var_value(t, y, &x))
            fail_msg("%s: %s", cases[c], att_error(ctx));
        const int n = golden_line(RECOMMEND_GOLDEN, tiny_key(cases[c], "states"), expected, MOST);
        assert_int_equal(n, TINY_TOKENS * TINY_HIDDEN);
        assert_int_equal(x.dim[0] * x.dim[1], n);
        check_close(cases[c], expected, x.data, n);
        att_tape_free(t);
        att_recommender_free(m);
    }
}

static void check_gradients(const att_recommender *m, const char *loss)
{
    double expected[MOST];
    const char *name;
    const att_param *p;
    for (int64_t i = 0; (p = att_nn_params_at(att_recommender_params(m), i, &name)); i++) {
        const att_tensor *g = att_param_grad(p);
        char key[160];
        snprintf(key, sizeof key, "%s.%s", loss, name);
        if (!strcmp(name, "content.vectors")) {
            assert_null(g->data); /* it is not trained */
            continue;
        }
        if (!g->data)
            fail_msg("%s has no gradient", key);
        const int n = golden_line(RECOMMEND_GOLDEN, key, expected, MOST);
        assert_int_equal(g->dim[0] * g->stride[0], n);
        check_close(key, expected, g->data, n);
    }
}

static void check_loss(const char *name, const char *loss_name, const att_item_loss_config *config)
{
    int32_t targets[TINY_TOKENS], candidates[TINY_TOKENS][3];
    char key[64];
    double expected[1];
    att_tensor y;
    snprintf(key, sizeof key, "%s.%s", name, loss_name);
    for (int i = 0; i < TINY_TOKENS; i++) {
        targets[i] = candidates[i][0] = (3 * i + 1) % TINY_ITEMS;
        candidates[i][1] = (targets[i] + 1) % TINY_ITEMS;
        candidates[i][2] = (targets[i] + 3) % TINY_ITEMS;
    }
    const att_item_targets wanted = {TINY_TOKENS, targets, &candidates[0][0]};
    att_recommender *m = tiny_recommender(name);
    att_tape *t = new_tape(true);
    att_var *x = att_recommender_apply(t, m, tiny_inputs(name), tiny_offsets, TINY_HISTORIES, NULL);
    att_var *loss = att_item_loss_apply(t, m, config, x, &wanted);
    if (att_var_value(t, loss, &y) || att_tape_backward(t, loss, NULL))
        fail_msg("%s: %s", key, att_error(ctx));
    assert_int_equal(golden_line(RECOMMEND_GOLDEN, key, expected, 1), 1);
    check_close(key, expected, y.data, 1);
    check_gradients(m, key);
    att_tape_free(t);
    att_recommender_free(m);
}

static void losses_and_gradients_are_those_of_pytorch(void **state)
{
    (void)state;
    const att_item_loss_config losses[] = {
        {.loss = ATT_ITEM_LOSS_SOFTMAX},
        {.loss = ATT_ITEM_LOSS_SAMPLED_SOFTMAX, .negatives = 2},
        {.loss = ATT_ITEM_LOSS_BINARY, .negatives = 2},
        {.loss = ATT_ITEM_LOSS_GBCE, .negatives = 2, .beta = att_gbce_beta(0.75, 2, TINY_ITEMS)},
    };
    static const char *const names[] = {"softmax", "sampled", "binary", "gbce"};
    for (int c = 0; c < CASES; c++)
        for (int l = 0; l < 4; l++)
            if (l == 0 || !strcmp(cases[c], "pre") || !strcmp(cases[c], "content"))
                check_loss(cases[c], names[l], &losses[l]);
}

/* t 0: plain binary cross entropy; t 1: as for all items (Petrov, Macdonald 2023, section 5) */
static void gbce_is_calibrated(void **state)
{
    (void)state;
    assert_true(fabs(att_gbce_beta(0, 256, 12101) - 1) < 1e-12);
    assert_true(fabs(att_gbce_beta(1, 256, 12101) - 256.0 / 12100) < 1e-12);
}

/* ---- one history in any batch, with dropout as well */

/* States of histories [first, first + n) -> out, and their number */
static int64_t apply(const att_recommender *m, const char *name, int first, int n, float dropout, float *out)
{
    static const uint32_t ids[] = {7, 8, 9};
    int64_t offsets[TINY_HISTORIES + 1];
    for (int i = 0; i <= n; i++)
        offsets[i] = tiny_offsets[first + i] - tiny_offsets[first];
    const att_recommender_options o = {.size = sizeof o, .dropout = dropout, .seed = 3, .sequence_ids = ids + first};
    att_tape *t = new_tape(false);
    att_tensor x;
    if (att_var_value(t, att_recommender_apply(t, m, tiny_inputs(name) + tiny_offsets[first], offsets, n, &o), &x))
        fail_msg("%s", att_error(ctx));
    memcpy(out, x.data, (size_t)(offsets[n] * TINY_HIDDEN) * sizeof *out);
    att_tape_free(t);
    return offsets[n] * TINY_HIDDEN;
}

static void a_history_has_the_same_states_in_any_batch(void **state)
{
    (void)state;
    for (int c = 0; c < CASES; c++)
        for (int dropped = 0; dropped < 2; dropped++) {
            att_recommender *m = tiny_recommender(cases[c]);
            const float dropout = dropped ? 0.5f : 0;
            float all[TINY_TOKENS * TINY_HIDDEN], plain[TINY_TOKENS * TINY_HIDDEN], one[TINY_TOKENS * TINY_HIDDEN];
            apply(m, cases[c], 0, TINY_HISTORIES, dropout, all);
            apply(m, cases[c], 0, TINY_HISTORIES, 0, plain);
            assert_true(!memcmp(all, plain, sizeof all) == !dropped);
            for (int i = 0; i < TINY_HISTORIES; i++) {
                const int64_t n = apply(m, cases[c], i, 1, dropout, one);
                assert_memory_equal(one, all + tiny_offsets[i] * TINY_HIDDEN, (size_t)n * sizeof *one);
            }
            att_recommender_free(m);
        }
}

/* ---- folders */

static void check_same(const att_recommender *a, const att_recommender *b)
{
    att_recommender_info x = {.size = sizeof x}, y = {.size = sizeof y};
    assert_int_equal(att_recommender_describe(a, &x), ATT_OK);
    assert_int_equal(att_recommender_describe(b, &y), ATT_OK);
    assert_memory_equal(&x, &y, sizeof x);
    for (int64_t i = 0; i <= x.items; i++) {
        const char *id = att_recommender_item(a, i);
        assert_true(i == x.items ? !id : !strcmp(id, att_recommender_item(b, i)));
        assert_int_equal(att_recommender_find_item(b, i == x.items ? "none" : id), i == x.items ? -1 : i);
    }
}

static void a_model_is_written_and_opened(void **state)
{
    (void)state;
    static const int64_t counts[TINY_ITEMS] = {5, 0, 1, INT64_C(1) << 40};
    for (int c = 0; c < CASES; c++)
        for (int trainable = 0; trainable < 2; trainable++) {
            float written[TINY_TOKENS * TINY_HIDDEN], read[TINY_TOKENS * TINY_HIDDEN];
            test_folder folder = folder_new();
            att_recommender *m = tiny_recommender(cases[c]), *again;
            assert_int_equal(att_recommender_set_counts(m, counts), ATT_OK);
            if (att_recommender_write(m, folder.path, 0))
                fail_msg("%s", att_error(ctx));
            if (trainable ? att_recommender_open_for_training(ctx, folder.path, NULL, &again)
                          : att_recommender_open(ctx, folder.path, NULL, &again))
                fail_msg("%s", att_error(ctx));
            apply(m, cases[c], 0, TINY_HISTORIES, 0, written);
            apply(again, cases[c], 0, TINY_HISTORIES, 0, read);
            assert_memory_equal(written, read, sizeof read);
            check_same(m, again);
            assert_int_equal(att_nn_params_trainable(att_recommender_params(again)), trainable);
            assert_int_equal(att_nn_params_count(att_recommender_params(again)),
                             att_nn_params_count(att_recommender_params(m)));
            assert_int_equal(att_recommender_write(again, folder.path, 0), trainable ? ATT_OK : ATT_ERR_ARGUMENT);
            att_recommender_free(m);
            att_recommender_free(again);
            folder_remove(&folder);
        }
}

static void check_refused(const test_folder *folder, const char *words)
{
    att_recommender *m;
    const att_status s = att_recommender_open(ctx, folder->path, NULL, &m);
    if (!s || m || !strstr(att_error(ctx), words))
        fail_msg("expected \"%s\", got status %d: %s", words, s, att_error(ctx));
}

static void damaged_folders_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *file, *text, *words;
    } wrong[] = {
        {"items.json", "[\"a\", \"b\"]", "items.json: has 2 items, but by config.json there are 7"},
        {"items.json", "[\"a\", \"b\", \"c\", \"d\", \"e\", \"f\", \"a\"]", "items 0 and 6 have the same id \"a\""},
        {"items.json", "[\"a\", \"b\", \"c\", \"d\", \"e\", \"f\", \"\"]", "the id of item 6 has 0 bytes"},
        {"items.json", "[\"a\", \"b\", \"c\", \"d\", \"e\", \"f\", 7]", "item 6 is 7"},
        {"items.json", "{}", "is not a list"},
        {"config.json", "{\"model_type\": \"attend-sasrec\", \"num_items\": 7, \"hidden_size\": 0}", "hidden_size"},
        {"config.json", "{\"model_type\": \"attend-sasrec\", \"num_items\": 7, \"hidden\": 4}", "\"hidden\""},
        {"config.json", "{\"model_type\": \"attend-sasrec\"}", "num_items"},
        {"config.json", "{\"model_type\": \"bert\", \"num_items\": 7}", "one of attend-sasrec, attend-bert4rec"},
        {"config.json", "{\"model_type\": \"attend-sasrec\", \"num_items\": 7, \"num_attention_heads\": 3}",
         "does not divide \"hidden_size\", 64"},
        {"config.json", "{\"model_type\": \"attend-bert4rec\", \"num_items\": 7, \"block\": \"sasrec\"}",
         "\"block\" is \"sasrec\", which is not supported"},
        {"config.json", "{\"model_type\": \"attend-sasrec\", \"num_items\": 7}", "item.weight"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        test_folder folder = folder_new();
        att_recommender *m = tiny_recommender("pre");
        assert_int_equal(att_recommender_write(m, folder.path, 0), ATT_OK);
        tiny_delete(&folder, wrong[i].file);
        check_refused(&folder, wrong[i].file);
        folder_write(&folder, wrong[i].file, wrong[i].text);
        check_refused(&folder, wrong[i].words);
        att_recommender_free(m);
        folder_remove(&folder);
    }
}

/* 1,025 items whose hashes begin at the same slot of the table that they need */
static void ids_that_were_made_to_collide_are_refused(void **state)
{
    (void)state;
    enum { SLOTS = 4096, IDS = 1025 };
    static char names[IDS][16];
    static const char *ids[IDS];
    att_recommender *m;
    test_folder folder = folder_new();
    for (int i = 0; i < IDS; i++) {
        snprintf(names[i], sizeof names[i], "i%d", i);
        ids[i] = names[i];
    }
    assert_int_equal(
        att_recommender_new(ctx, "{\"model_type\": \"attend-sasrec\", \"hidden_size\": 2}", IDS, ids, NULL, 1, &m),
        ATT_OK);
    assert_int_equal(att_recommender_write(m, folder.path, 0), ATT_OK);
    att_recommender_free(m);
    FILE *f = folder_open(&folder, "items.json");
    for (uint32_t id = 0, n = 0; n < IDS; id++) {
        char text[16];
        const int bytes = snprintf(text, sizeof text, "%u", (unsigned)id);
        const uint32_t hash = att_fnv32_bytes(ATT_FNV32_OFFSET, text, (size_t)bytes);
        if (((hash ^ hash >> 15) & (SLOTS - 1)) != 7)
            continue;
        fprintf(f, "%s\"%s\"", n++ ? ", " : "[", text);
    }
    fprintf(f, "]");
    assert_int_equal(fclose(f), 0);
    check_refused(&folder, "items.json: item 1024: its id collides with 1024 other ids");
    folder_remove(&folder);
}

static void wrong_arguments_are_named(void **state)
{
    (void)state;
    static const char sasrec[] = "{\"model_type\": \"attend-sasrec\"}";
    static const char *const twice[] = {"a", "b", "a"}, *const bad[] = {"a\xff"};
    att_recommender *m;
    assert_int_equal(att_recommender_new(ctx, sasrec, 0, twice, NULL, 0, &m), ATT_ERR_ARGUMENT);
    assert_non_null(strstr(att_error(ctx), "n_items is 0"));
    assert_int_equal(att_recommender_new(ctx, sasrec, 3, twice, NULL, 0, &m), ATT_ERR_ARGUMENT);
    assert_non_null(strstr(att_error(ctx), "items 0 and 2 have the same id \"a\""));
    assert_int_equal(att_recommender_new(ctx, sasrec, 1, bad, NULL, 0, &m), ATT_ERR_ARGUMENT);
    assert_non_null(strstr(att_error(ctx), "the id of item 0 is not UTF-8"));
    const float nan_vector[] = {1, NAN};
    const att_item_content content = {.size = sizeof content, .vectors = nan_vector, .width = 2};
    assert_int_equal(att_recommender_new(ctx, sasrec, 1, twice, &content, 0, &m), ATT_ERR_ARGUMENT);
    assert_non_null(strstr(att_error(ctx), "content.vectors has nan for item 0 at 1"));
    m = tiny_recommender("pre");
    att_tape *t = new_tape(false);
    att_tensor x;
    assert_null(att_recommender_apply(t, m, tiny_histories, (const int64_t[]){0, 2, 2}, 2, NULL));
    assert_int_equal(att_var_value(t, NULL, &x), ATT_ERR_ARGUMENT);
    assert_non_null(strstr(att_error(ctx), "history 1 has no item"));
    att_tape_reset(t);
    assert_null(att_recommender_apply(t, m, tiny_histories, (const int64_t[]){0, 7}, 1, NULL));
    assert_int_equal(att_var_value(t, NULL, &x), ATT_ERR_ARGUMENT);
    assert_non_null(strstr(att_error(ctx), "has 7 tokens but the model has 6 positions"));
    att_tape_free(t);
    att_recommender_free(m);
}

/* ---- further items */

static void vectors_of(const att_recommender *m, float *out)
{
    if (att_recommender_vectors(m, out))
        fail_msg("%s", att_error(ctx));
}

static void further_items_leave_what_is_trained(void **state)
{
    (void)state;
    static const float content[] = {1, 2, 3, 0, 0, 0};
    const att_item_content add = {.size = sizeof add, .vectors = content, .width = TINY_CONTENT, .add = true};
    for (int c = 0; c < CASES; c++) {
        const bool has_content = !strcmp(cases[c], "content");
        float before[TINY_TOKENS * TINY_HIDDEN], after[TINY_TOKENS * TINY_HIDDEN];
        float was[TINY_ITEMS * TINY_HIDDEN], vectors[(TINY_ITEMS + 2) * TINY_HIDDEN];
        att_recommender_info info = {.size = sizeof info};
        att_recommender *m = tiny_recommender(cases[c]);
        apply(m, cases[c], 0, TINY_HISTORIES, 0, before);
        vectors_of(m, was);
        if (att_recommender_add_items(m, 2, tiny_item_ids + TINY_ITEMS, has_content ? &add : NULL, 5))
            fail_msg("%s", att_error(ctx));
        att_recommender_describe(m, &info);
        assert_int_equal(info.items, TINY_ITEMS + 2);
        assert_int_equal(att_recommender_find_item(m, "newer"), TINY_ITEMS + 1);
        vectors_of(m, vectors);
        assert_memory_equal(was, vectors, sizeof was);
        /* the mask is now item 9: histories without one */
        if (!tiny_has_mask(cases[c])) {
            apply(m, cases[c], 0, TINY_HISTORIES, 0, after);
            assert_memory_equal(before, after, sizeof after);
        }
        const float *one = vectors + TINY_ITEMS * TINY_HIDDEN, *two = one + TINY_HIDDEN;
        for (int i = 0; i < TINY_HIDDEN; i++)
            assert_true((one[i] < 0 || one[i] > 0) && (two[i] < 0 || two[i] > 0) == !has_content);
        assert_int_equal(att_recommender_add_items(m, 1, tiny_item_ids, has_content ? &add : NULL, 5),
                         ATT_ERR_ARGUMENT);
        assert_non_null(strstr(att_error(ctx), "items 0 and 9 have the same id \"bread\""));
        vectors_of(m, vectors);
        assert_memory_equal(was, vectors, sizeof was);
        att_recommender_free(m);
    }
}

/* BERT4Rec's mask stays the last row: lists are the same as long as new items are not among them. */
static void the_mask_stays_the_mask(void **state)
{
    (void)state;
    float before[TINY_HISTORIES * TINY_HIDDEN], after[TINY_HISTORIES * TINY_HIDDEN];
    att_recommender *m = tiny_recommender("bert4rec");
    assert_int_equal(att_recommender_embed(m, TINY_HISTORIES, tiny_histories, tiny_offsets, NULL, before), ATT_OK);
    assert_int_equal(att_recommender_add_items(m, 2, tiny_item_ids + TINY_ITEMS, NULL, 5), ATT_OK);
    assert_int_equal(att_recommender_embed(m, TINY_HISTORIES, tiny_histories, tiny_offsets, NULL, after), ATT_OK);
    assert_memory_equal(before, after, sizeof after);
    att_recommender_free(m);
}

/* ---- content as the start of items' vectors */

static void content_is_the_start_of_vectors(void **state)
{
    (void)state;
    static const char settings[] = "{\"model_type\": \"attend-sasrec\", \"hidden_size\": 256}";
    enum { HIDDEN = 256, WIDE = 32 };
    static float vectors[3 * WIDE], wide[3 * HIDDEN], out[3 * HIDDEN], random[3 * HIDDEN];
    for (int i = 0; i < 2 * WIDE; i++) /* two, nearly orthogonal; the third item has none */
        vectors[i] = i % 2 == i / WIDE ? 0.25f : 0;
    att_item_content content = {.size = sizeof content, .vectors = vectors, .width = WIDE};
    att_recommender *m;
    assert_int_equal(att_recommender_new(ctx, settings, 3, tiny_item_ids, &content, 1, &m), ATT_OK);
    vectors_of(m, out);
    att_recommender_free(m);
    assert_int_equal(att_recommender_new(ctx, settings, 3, tiny_item_ids, NULL, 1, &m), ATT_OK);
    vectors_of(m, random);
    att_recommender_free(m);
    assert_memory_equal(out + 2 * HIDDEN, random + 2 * HIDDEN, HIDDEN * sizeof *out);
    double dot[3] = {0};
    for (int i = 0; i < HIDDEN; i++) {
        dot[0] += (double)out[i] * (double)out[i];
        dot[1] += (double)out[HIDDEN + i] * (double)out[HIDDEN + i];
        dot[2] += (double)out[i] * (double)out[HIDDEN + i];
    }
    /* of length 1 and orthogonal, to five standard errors: sqrt(2 / 256) and sqrt(1 / 256) */
    assert_true(fabs(dot[0] - 1) < 0.45 && fabs(dot[1] - 1) < 0.45 && fabs(dot[2]) < 0.32);
    for (int i = 0; i < 3 * HIDDEN; i++)
        wide[i] = (float)i / 7;
    wide[0] = 1;
    content = (att_item_content){.size = sizeof content, .vectors = wide, .width = HIDDEN};
    assert_int_equal(att_recommender_new(ctx, settings, 3, tiny_item_ids, &content, 1, &m), ATT_OK);
    vectors_of(m, out);
    assert_memory_equal(out, wide, sizeof out);
    att_recommender_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_are_those_of_pytorch),
        cmocka_unit_test(losses_and_gradients_are_those_of_pytorch),
        cmocka_unit_test(gbce_is_calibrated),
        cmocka_unit_test(a_history_has_the_same_states_in_any_batch),
        cmocka_unit_test(a_model_is_written_and_opened),
        cmocka_unit_test(damaged_folders_are_refused),
        cmocka_unit_test(ids_that_were_made_to_collide_are_refused),
        cmocka_unit_test(wrong_arguments_are_named),
        cmocka_unit_test(further_items_leave_what_is_trained),
        cmocka_unit_test(the_mask_stays_the_mask),
        cmocka_unit_test(content_is_the_start_of_vectors),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
