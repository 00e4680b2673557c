/* Captions of many images: how far the calls are, and that they can be stopped. */
#include "fixtures/captioner.h"
#include "fixtures/progress.h"

#include "attend_caption.h"

enum { IMAGES = 70, GRID = CAPTIONER_LOCATIONS * 12 };

static att_caption_model *model;
static att_image images[IMAGES];

static att_status caption(void *unused, att_progress_fn progress, void *user)
{
    (void)unused;
    att_image_caption c[IMAGES];
    float scores[IMAGES];
    const att_status s =
        att_caption(model, IMAGES, images, ATT_OPTIONS(att_caption_options, .progress = progress, .user = user), c);
    for (int i = 0; i < IMAGES; i++) {
        scores[i] = c[i].score;
        assert_true(!s == (c[i].text != NULL));
        att_image_caption_free(ctx, &c[i]);
    }
    progress_result(s, scores, sizeof scores);
    return s;
}

static att_status score(void *unused, att_progress_fn progress, void *user)
{
    (void)unused;
    static double p[IMAGES][CAPTIONER_COLORS];
    const att_status s = att_caption_score(model, IMAGES, images, CAPTIONER_COLORS, captioner_captions,
                                           ATT_OPTIONS(att_call_options, .progress = progress, .user = user), p[0]);
    progress_result(s, p, sizeof p);
    return s;
}

static att_status encode(void *unused, att_progress_fn progress, void *user)
{
    (void)unused;
    static float grids[IMAGES][GRID];
    const att_status s = att_caption_encode(
        model, IMAGES, images, ATT_OPTIONS(att_call_options, .progress = progress, .user = user), grids[0]);
    progress_result(s, grids, sizeof grids);
    return s;
}

static void progress_may_stop_the_calls(void **state)
{
    (void)state;
    static uint8_t pixels[CAPTIONER_COLORS][CAPTIONER_SIDE][CAPTIONER_SIDE][3];
    const test_folder folder = captioner_folder(CAPTIONER_GRU, false);
    captioner_need(att_caption_model_open(ctx, folder.path, NULL, &model));
    for (int i = 0; i < CAPTIONER_COLORS; i++)
        captioner_image(pixels[i], i);
    for (int i = 0; i < IMAGES; i++)
        images[i] = (att_image){CAPTIONER_SIDE, CAPTIONER_SIDE, 3, &pixels[i % CAPTIONER_COLORS][0][0][0]};
    assert_progress(ctx, caption, NULL);
    assert_progress(ctx, score, NULL);
    assert_progress(ctx, encode, NULL);
    att_caption_model_free(model);
    folder_remove(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(progress_may_stop_the_calls)};
    return cmocka_run_group_tests(tests, open_context, close_context);
}
