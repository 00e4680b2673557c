/* Captioners of folders: what they say of images, alone, in company, on any threads and without memory; how probable a
 * caption is. */
// labels: threads
#include "fixtures/caption_models.h"
#include "fixtures/check.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/trace_rows.h"
#include "attend_caption.h"

#include <pthread.h>

static void check_same(const att_image_caption *a, const att_image_caption *b)
{
    assert_string_equal(a->text, b->text);
    assert_int_equal(a->count, b->count);
    assert_memory_equal(a->ids, b->ids, (size_t)a->count * sizeof *a->ids);
    assert_memory_equal(&a->score, &b->score, sizeof a->score);
}

static void free_captions(att_ctx *ctx, att_image_caption *c, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        att_image_caption_free(ctx, &c[i]);
}

/* ---- captions */

static void a_model_that_has_learned_colors_names_them(void **state)
{
    (void)state;
    att_image images[IMAGES];
    make_images(images);
    for (int kind = 0; kind < KINDS; kind++) {
        const test_folder folder = captioner_folder(decoders[kind], true);
        att_caption_model *m = open_model(&folder);
        att_image_caption c[IMAGES];
        for (int64_t beam = 0; beam <= 1; beam++) {
            captioner_need(att_caption(m, IMAGES, images, ATT_OPTIONS(att_caption_options, .beam = beam), c));
            for (int i = 0; i < IMAGES; i++)
                assert_string_equal(c[i].text, captioner_captions[i % 3]);
            free_captions(ctx, c, IMAGES);
        }
        att_caption_model_free(m);
        folder_remove(&folder);
    }
    free_images(images);
}

static void the_model_says_what_it_is(void **state)
{
    (void)state;
    const test_folder folder = captioner_folder(CAPTIONER_GRU, false);
    att_caption_model *m = open_model(&folder);
    att_caption_model_info i = {.size = sizeof i};
    captioner_need(att_caption_model_describe(m, &i));
    assert_string_equal(i.encoder, "cnn");
    assert_string_equal(i.decoder, "gru");
    assert_string_equal(i.attention, "additive");
    assert_true(i.gate && i.image[0] == 8 && i.image[1] == 8 && i.channels == 3 && i.grid[0] == 2 && i.grid[1] == 2);
    assert_true(i.features == 12 && i.hidden == 8 && i.layers == 1 && i.words == 7 && i.max_words == 6);
    assert_string_equal(att_caption_model_word(m, 0), "a");
    assert_null(att_caption_model_word(m, 7));
    assert_null(att_caption_model_word(m, -1));
    att_caption_model_free(m);
    folder_remove(&folder);
}

/* Ids of the text, no <unk> or end among them, one word or more; scores fall. */
static void check_captions(const att_caption_model *m, const att_image_caption *c, int64_t best, int64_t max_words)
{
    for (int64_t k = 0; k < best; k++) {
        char text[128] = "";
        assert_non_null(c[k].text);
        assert_true(c[k].count >= 1 && c[k].count <= max_words);
        for (int64_t i = 0; i < c[k].count; i++) {
            assert_non_null(att_caption_model_word(m, c[k].ids[i]));
            strcat(strcat(text, i ? " " : ""), att_caption_model_word(m, c[k].ids[i]));
        }
        assert_string_equal(c[k].text, text);
        assert_true(k == 0 || c[k].score <= c[k - 1].score);
    }
}

/* With random weights, <unk> and the end are as probable as any word. */
static void options_are_kept_and_unknown_words_never_written(void **state)
{
    (void)state;
    att_image images[IMAGES];
    make_images(images);
    for (int kind = 0; kind < KINDS; kind++) {
        const test_folder folder = captioner_folder(decoders[kind], false);
        att_caption_model *m = open_model(&folder);
        att_image_caption c[IMAGES * 4];
        captioner_need(att_caption(m, IMAGES, images, ATT_OPTIONS(att_caption_options, .beam = 20, .n_best = 4), c));
        for (int i = 0; i < IMAGES; i++)
            check_captions(m, c + 4 * i, 4, CAPTIONER_POSITIONS);
        free_captions(ctx, c, IMAGES * 4);
        captioner_need(
            att_caption(m, IMAGES, images,
                        ATT_OPTIONS(att_caption_options, .max_words = 2, .length_penalty = &(const float){5}), c));
        for (int i = 0; i < IMAGES; i++)
            check_captions(m, &c[i], 1, 2);
        free_captions(ctx, c, IMAGES);
        captioner_need(att_caption(m, 1, images, ATT_OPTIONS(att_caption_options, .beam = 1, .no_scores = true), c));
        assert_true(isnan(c->score));
        free_captions(ctx, c, 1);
        att_caption_model_free(m);
        folder_remove(&folder);
    }
    free_images(images);
}

/* More images than one batch has */
static void an_image_has_the_same_caption_in_any_company(void **state)
{
    (void)state;
    enum { MANY = 60 };
    att_image images[IMAGES], many[MANY];
    make_images(images);
    for (int i = 0; i < MANY; i++)
        many[i] = images[i % IMAGES];
    for (int kind = 0; kind < KINDS; kind++) {
        const test_folder folder = captioner_folder(decoders[kind], false);
        att_caption_model *m = open_model(&folder);
        att_image_caption all[MANY], one;
        captioner_need(att_caption(m, MANY, many, NULL, all));
        for (int i = 0; i < MANY; i++) {
            check_same(&all[i], &all[i % IMAGES]);
            if (i < IMAGES) {
                captioner_need(att_caption(m, 1, &images[i], NULL, &one));
                check_same(&all[i], &one);
                att_image_caption_free(ctx, &one);
            }
        }
        free_captions(ctx, all, MANY);
        att_caption_model_free(m);
        folder_remove(&folder);
    }
    free_images(images);
}

/* ---- the encoder's grids */

enum { FEATURES = 12, GRID = CAPTIONER_LOCATIONS * FEATURES };

/* The network of convolutions on what the preprocessing makes; each image alone and in a batch of other sizes */
static void the_grid_is_what_the_network_makes_of_an_image(void **state)
{
    (void)state;
    att_image images[IMAGES];
    make_images(images);
    const test_folder folder = captioner_folder(CAPTIONER_GRU, false);
    att_caption_model *m = open_model(&folder);
    att_captioner *c;
    att_image_processor *processor;
    att_tape *t;
    float all[IMAGES][GRID], one[GRID], pixels[CAPTIONER_SIDE * CAPTIONER_SIDE * 3];
    captioner_need(att_caption_encode(m, IMAGES, images, NULL, &all[0][0]));
    captioner_need(att_captioner_load(ctx, folder.path, NULL, &c));
    captioner_need(att_image_processor_open(ctx, folder.path, &processor));
    captioner_need(att_tape_new(ctx, NULL, &t));
    for (int i = 0; i < IMAGES; i++) {
        att_tensor x, y;
        captioner_need(att_caption_encode(m, 1, &images[i], NULL, one));
        assert_memory_equal(one, all[i], sizeof one);
        captioner_need(att_image_processor_apply(processor, &images[i], pixels));
        captioner_need(att_wrap(&x, pixels, ATT_F32, ATT_DIMS(1, CAPTIONER_SIDE, CAPTIONER_SIDE, 3), NULL));
        captioner_need(att_var_value(t, att_captioner_encode(t, c, att_input(t, &x), false), &y));
        assert_true(y.dim[0] == CAPTIONER_LOCATIONS && y.dim[1] == FEATURES);
        assert_memory_equal(one, y.data, sizeof one);
        assert_true(i == 0 || memcmp(all[i], all[0], sizeof one) != 0);
        att_tape_reset(t);
    }
    att_tape_free(t);
    att_image_processor_free(processor);
    att_model_free(c);
    att_caption_model_free(m);
    folder_remove(&folder);
    free_images(images);
}

/* ---- log probabilities */

/* The score of a search is the log probability, where nothing is divided by the length. */
static void scores_of_captions_are_their_log_probabilities(void **state)
{
    (void)state;
    att_image images[IMAGES];
    make_images(images);
    for (int kind = 0; kind < KINDS; kind++) {
        const test_folder folder = captioner_folder(decoders[kind], true);
        att_caption_model *m = open_model(&folder);
        att_image_caption c[IMAGES];
        const char *texts[IMAGES];
        double all[IMAGES][IMAGES], one;
        captioner_need(
            att_caption(m, IMAGES, images, ATT_OPTIONS(att_caption_options, .length_penalty = &(const float){0}), c));
        for (int i = 0; i < IMAGES; i++)
            texts[i] = c[i].text;
        captioner_need(att_caption_score(m, IMAGES, images, IMAGES, texts, NULL, &all[0][0]));
        for (int i = 0; i < IMAGES; i++) {
            check_near((double)c[i].score, (float)all[i][i], 1e-5, "decoder %d, image %d", kind, i);
            for (int k = 0; k < IMAGES; k++) /* captions of other colors are less probable */
                assert_true(k % 3 == i % 3 || all[i][k] < all[i][i] - 1);
            captioner_need(att_caption_score(m, 1, &images[i], 1, &texts[2], NULL, &one));
            assert_memory_equal(&one, &all[i][2], sizeof one);
        }
        free_captions(ctx, c, IMAGES);
        att_caption_model_free(m);
        folder_remove(&folder);
    }
    free_images(images);
}

static void captions_may_be_as_typed_with_words_that_are_not_known(void **state)
{
    (void)state;
    static const char *const texts[] = {"a red square", "  A red, SQUARE!\n", "a zebra", "",
                                        "a a a a a a",  "a a a a a a a a"};
    att_image images[IMAGES];
    make_images(images);
    const test_folder folder = captioner_folder(CAPTIONER_GRU, true);
    att_caption_model *m = open_model(&folder);
    double p[6];
    captioner_need(att_caption_score(m, 1, images, 6, texts, NULL, p));
    assert_true(p[0] > -1 && p[0] < 0);
    assert_memory_equal(&p[0], &p[1], sizeof p[0]);
    assert_true(p[2] < 0 && p[3] < 0 && isfinite(p[2]) && isfinite(p[3]));
    assert_memory_equal(&p[4], &p[5], sizeof p[4]); /* six words of a caption count */
    att_caption_model_free(m);
    folder_remove(&folder);
    free_images(images);
}

/* ---- what is refused */

static void check_refused(const test_folder *folder, att_status expected, const char *says)
{
    att_caption_model *m;
    assert_int_equal(att_caption_model_open(ctx, folder->path, NULL, &m), expected);
    assert_null(m);
    check_message(ctx, says);
    folder_remove(folder);
}

static void folders_whose_parts_do_not_fit_are_refused(void **state)
{
    (void)state;
    test_folder f = captioner_folder(CAPTIONER_GRU, false);
    folder_write(&f, "words.json", "{\"words\": [\"a\", \"dog\"], \"min_count\": 1}");
    check_refused(&f, ATT_ERR_FORMAT,
                  "words.json has 2 words, then <unk> 2 and the end 3, but config.json has "
                  "\"vocab_size\" 9, \"unk_token_id\" 7 and \"eos_token_id\" 8");
    f = captioner_folder(CAPTIONER_GRU, false);
    folder_write(&f, "preprocessor_config.json",
                 "{\"image_processor_type\": \"ViTImageProcessor\", \"size\": {\"height\": 9, \"width\": 8}}");
    check_refused(&f, ATT_ERR_FORMAT,
                  "preprocessing makes images of 9 x 8 x 3 (height, width, channels), but the model "
                  "has 8 x 8 x 3");
    f = vit_folder("\"encoder\": \"vit\", \"grid\": [3, 4], \"encoder_hidden_size\": 16, ", CAPTIONER_TRANSFORMER);
    check_refused(&f, ATT_ERR_FORMAT,
                  "encoder makes 3 x 3 locations of 16 numbers, but config.json states 3 x 4 locations of 16");
    f = tiny_vit_folder("vit", NULL);
    check_refused(&f, ATT_ERR_UNSUPPORTED, "\"model_type\" is \"vit\"");
    f = folder_new();
    check_refused(&f, ATT_ERR_IO, "config.json");
}

static void options_out_of_range_are_refused(void **state)
{
    (void)state;
    att_image images[IMAGES];
    att_image_caption c[6];
    double p;
    make_images(images);
    const test_folder folder = captioner_folder(CAPTIONER_GRU, false);
    att_caption_model *m = open_model(&folder);
    const struct {
        att_caption_options o;
        const char *says;
    } cases[] = {{{.beam = 1025}, "options.beam is 1025, not in [0, 1024]"},
                 {{.beam = -1}, "options.beam is -1"},
                 {{.n_best = 6}, "options.n_best is 6, not in [0, 5]"},
                 {{.beam = 2, .n_best = 3}, "options.n_best is 3, not in [0, 2]"},
                 {{.max_words = 7}, "options.max_words is 7, not in [0, 6]"},
                 {{.length_penalty = &(const float){NAN}}, "options.length_penalty is nan"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_caption_options o = cases[i].o;
        o.size = sizeof o;
        assert_int_equal(att_caption(m, 1, images, &o, c), ATT_ERR_ARGUMENT);
        check_message(ctx, cases[i].says);
    }
    assert_int_equal(att_caption(m, -1, images, NULL, c), ATT_ERR_ARGUMENT);
    assert_int_equal(att_caption_score(m, 1, images, -1, NULL, NULL, &p), ATT_ERR_ARGUMENT);
    assert_int_equal(att_caption_score(m, 1, images, 1, (const char *const[]){NULL}, NULL, &p), ATT_ERR_ARGUMENT);
    check_message(ctx, "att_caption_score: captions");
    assert_int_equal(att_caption_encode(m, -1, images, NULL, NULL), ATT_ERR_ARGUMENT);
    check_message(ctx, "att_caption_encode: n is -1, expected 0 or more");
    assert_int_equal(att_caption_encode(m, 0, NULL, NULL, NULL), ATT_OK);
    assert_int_equal(att_caption(m, 0, NULL, NULL, NULL), ATT_OK);
    assert_int_equal(att_caption_score(m, 1, images, 0, NULL, NULL, &p), ATT_OK);
    att_caption_model_free(m);
    folder_remove(&folder);
    free_images(images);
}

/* ---- threads and memory */

typedef struct use {
    att_ctx *ctx;
    const att_caption_model *m;
    const att_image *images;
    att_image_caption captions[IMAGES];
    double p[IMAGES];
    float weights[2 * CAPTIONER_LOCATIONS], grids[IMAGES * GRID];
    att_status status;
} use;

static void *use_model(void *arg)
{
    static const char *const text = "a green one";
    use *u = arg;
    att_trace *t = NULL;
    u->status = att_caption(u->m, IMAGES, u->images, NULL, u->captions);
    u->status = u->status ? u->status : att_caption_score(u->m, IMAGES, u->images, 1, &text, NULL, u->p);
    u->status = u->status ? u->status : att_caption_encode(u->m, IMAGES, u->images, NULL, u->grids);
    u->status = u->status ? u->status : att_caption_trace(u->m, u->images, (const int32_t[]){0, 1}, 2, NULL, &t);
    u->status = u->status ? u->status : att_trace_weights(t, 0, -1, 0, 2, u->weights);
    att_trace_free(t);
    return NULL;
}

static void check_same_use(const use *a, const use *b)
{
    assert_int_equal(b->status, ATT_OK);
    for (int i = 0; i < IMAGES; i++)
        check_same(&a->captions[i], &b->captions[i]);
    assert_memory_equal(a->p, b->p, sizeof a->p);
    assert_memory_equal(a->grids, b->grids, sizeof a->grids);
    assert_memory_equal(a->weights, b->weights, sizeof a->weights);
}

static void threads_share_a_model_and_their_number_changes_no_bit(void **state)
{
    (void)state;
    att_image images[IMAGES];
    make_images(images);
    for (int kind = 0; kind < KINDS; kind += 2) {
        const test_folder folder = captioner_folder(decoders[kind], false);
        att_caption_model *m = open_model(&folder), *other;
        use uses[3] = {{.ctx = ctx, .m = m, .images = images}, {.ctx = ctx, .m = m, .images = images}};
        pthread_t thread[2];
        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&thread[i], NULL, use_model, &uses[i]), 0);
        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_join(thread[i], NULL), 0);
        att_ctx *alone;
        assert_int_equal(att_open(&alone, ATT_OPTIONS(att_config, .n_threads = 1)), ATT_OK);
        assert_int_equal(att_caption_model_open(alone, folder.path, NULL, &other), ATT_OK);
        uses[2] = (use){.ctx = alone, .m = other, .images = images};
        use_model(&uses[2]);
        assert_int_equal(uses[0].status, ATT_OK);
        check_same_use(&uses[0], &uses[1]);
        check_same_use(&uses[0], &uses[2]);
        for (int i = 0; i < 3; i++)
            free_captions(uses[i].ctx, uses[i].captions, IMAGES);
        att_caption_model_free(other);
        att_close(alone);
        att_caption_model_free(m);
        folder_remove(&folder);
    }
    free_images(images);
}

/* Opens and uses a model; f's memory. Nothing is left after an error. */
static att_status compute(const test_folder *folder, const att_image *images, fail_alloc *f)
{
    att_ctx *poor;
    att_caption_model *m = NULL;
    att_status s = att_open(&poor, ATT_OPTIONS(att_config, .n_threads = 1, .allocator = fail_allocator(f)));
    if (s)
        return s;
    s = att_caption_model_open(poor, folder->path, NULL, &m);
    if (!s) {
        use u = {.ctx = poor, .m = m, .images = images};
        use_model(&u);
        s = u.status;
        free_captions(poor, u.captions, IMAGES);
    }
    att_caption_model_free(m);
    att_close(poor);
    assert_int_equal(f->live, 0);
    return s;
}

static void memory_may_run_out_anywhere(void **state)
{
    (void)state;
    att_image images[IMAGES];
    make_images(images);
    const test_folder folder = captioner_folder(CAPTIONER_GRU, false);
    fail_alloc enough = {0};
    assert_int_equal(compute(&folder, images, &enough), ATT_OK);
    for (long i = 1; i <= enough.calls; i += 1 + i / 50) {
        fail_alloc f = {.fail_at = i};
        const att_status s = compute(&folder, images, &f);
        assert_true(s == ATT_ERR_MEMORY || s == ATT_OK);
    }
    folder_remove(&folder);
    free_images(images);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_that_has_learned_colors_names_them),
        cmocka_unit_test(the_model_says_what_it_is),
        cmocka_unit_test(options_are_kept_and_unknown_words_never_written),
        cmocka_unit_test(an_image_has_the_same_caption_in_any_company),
        cmocka_unit_test(the_grid_is_what_the_network_makes_of_an_image),
        cmocka_unit_test(scores_of_captions_are_their_log_probabilities),
        cmocka_unit_test(captions_may_be_as_typed_with_words_that_are_not_known),
        cmocka_unit_test(folders_whose_parts_do_not_fit_are_refused),
        cmocka_unit_test(options_out_of_range_are_refused),
        cmocka_unit_test(threads_share_a_model_and_their_number_changes_no_bit),
        cmocka_unit_test(memory_may_run_out_anywhere),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
