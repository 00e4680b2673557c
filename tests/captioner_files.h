/* Folders of tiny captioners, written for a test: with random weights, or with some that have learnt to name colours.
 */
#ifndef CAPTIONER_FILES_H
#define CAPTIONER_FILES_H

#include "context.h"
#include "folder.h"
#include "image/processor.h"
#include "model/captioner.h"
#include "text/words.h"

#include <string.h>

/* Its images are of 8 x 8 pixels, its grid has 2 x 2 places; it knows 7 words, "a" first. */
enum { CAPTIONER_SIDE = 8, CAPTIONER_PLACES = 4, CAPTIONER_WORDS = 7, CAPTIONER_COLOURS = 3, CAPTIONER_POSITIONS = 6 };
#define CAPTIONER_CNN                                                                                                  \
    "\"encoder\": \"cnn\", \"image_size\": 8, \"num_channels\": 3, \"channels\": [8, 12], \"presence\": 0, "
#define CAPTIONER_GRU                                                                                                  \
    "\"decoder\": \"gru\", \"attention\": \"additive\", \"gate\": true, \"embedding_size\": 8, \"num_layers\": 1"
#define CAPTIONER_LSTM "\"decoder\": \"lstm\", \"attention\": \"none\", \"embedding_size\": 8, \"num_layers\": 2"
#define CAPTIONER_TRANSFORMER                                                                                          \
    "\"decoder\": \"transformer\", \"num_layers\": 2, \"num_attention_heads\": 2, \"intermediate_size\": 10"

static const char *const captioner_captions[CAPTIONER_COLOURS] = {"a red square", "a green one", "a square of blue"};

static inline void captioner_need(att_status s)
{
    if (s)
        fail_msg("%s", att_error(ctx));
}

static inline att_words captioner_words(void)
{
    att_words w;
    att_word_counts counts;
    att_word_counts_init(&counts, ctx);
    for (int i = 0; i < CAPTIONER_COLOURS; i++)
        captioner_need(att_word_counts_add(&counts, captioner_captions[i]));
    captioner_need(att_words_make(&w, &counts, 1, 0));
    assert_int_equal(att_words_unknown(&w), CAPTIONER_WORDS);
    att_word_counts_free(&counts);
    return w;
}

/* Red, green or blue, with some noise */
static inline void captioner_image(uint8_t pixels[CAPTIONER_SIDE][CAPTIONER_SIDE][3], int colour)
{
    for (int y = 0; y < CAPTIONER_SIDE; y++)
        for (int x = 0; x < CAPTIONER_SIDE; x++)
            for (int c = 0; c < 3; c++)
                pixels[y][x][c] = (uint8_t)((c == colour ? 200 : 10) + (7 * y + 5 * x + 3 * c) % 20);
}

/* The settings of a captioner with this encoder and decoder, parts of a JSON text */
static inline att_captioner *captioner_make(const char *encoder, const char *decoder)
{
    char text[600];
    att_captioner *m;
    att_settings s;
    snprintf(text, sizeof text,
             "{\"model_type\": \"attend-captioner\", %s%s, \"hidden_size\": 8, \"vocab_size\": %d, "
             "\"max_positions\": %d, \"unk_token_id\": %d, \"eos_token_id\": %d}",
             encoder, decoder, CAPTIONER_WORDS + 2, CAPTIONER_POSITIONS, CAPTIONER_WORDS, CAPTIONER_WORDS + 1);
    att_settings_parse(&s, ctx, "the model's settings", text, strlen(text));
    captioner_need(att_captioner_make(ctx, &s, 3, &m));
    att_settings_close(&s);
    return m;
}

static inline att_image_processor_config captioner_processor(void)
{
    att_image_processor_config c = {.info = {.size = sizeof c.info,
                                             .height = CAPTIONER_SIDE,
                                             .width = CAPTIONER_SIDE,
                                             .channels = 3,
                                             .filter = ATT_FILTER_BILINEAR,
                                             .mean = {0.5f, 0.5f, 0.5f},
                                             .deviation = {0.5f, 0.5f, 0.5f},
                                             .rescale = (float)(1.0 / 255)},
                                    .rescale = 1.0 / 255,
                                    .resized = true,
                                    .size = {CAPTIONER_SIDE, CAPTIONER_SIDE, 0}};
    return c;
}

/* ---- learning */

/* What is learnt: an image of each colour, and its caption */
typedef struct captioner_lesson {
    float pixels[CAPTIONER_COLOURS * CAPTIONER_SIDE * CAPTIONER_SIDE * 3];
    int32_t words[CAPTIONER_COLOURS * CAPTIONER_POSITIONS];
    int64_t offsets[CAPTIONER_COLOURS + 1];
} captioner_lesson;

static inline void captioner_lesson_make(captioner_lesson *l)
{
    att_words w = captioner_words();
    att_image_processor *p;
    const att_image_processor_config config = captioner_processor();
    captioner_need(att_image_processor_make(ctx, &config, &p));
    l->offsets[0] = 0;
    for (int i = 0; i < CAPTIONER_COLOURS; i++) {
        uint8_t pixels[CAPTIONER_SIDE][CAPTIONER_SIDE][3];
        const att_image image = {CAPTIONER_SIDE, CAPTIONER_SIDE, 3, &pixels[0][0][0]};
        int64_t n = l->offsets[i];
        captioner_image(pixels, i);
        captioner_need(att_image_processor_apply(p, &image, l->pixels + i * CAPTIONER_SIDE * CAPTIONER_SIDE * 3));
        n += att_words_encode(&w, captioner_captions[i], l->words + n, CAPTIONER_POSITIONS);
        l->words[n++] = att_words_end(&w);
        l->offsets[i + 1] = n;
    }
    att_image_processor_free(p);
    att_words_free(&w);
}

/* A model with convolutions learns to name the colours, in some tenths of a second. */
static inline void captioner_teach(att_captioner *m)
{
    static captioner_lesson l;
    static const int64_t of_image[CAPTIONER_COLOURS + 1] = {0, 1, 2, 3};
    captioner_lesson_make(&l);
    const att_caption_batch b = {.images = CAPTIONER_COLOURS,
                                 .captions = CAPTIONER_COLOURS,
                                 .of_image = of_image,
                                 .words = l.words,
                                 .offsets = l.offsets};
    att_optimizer *o;
    att_tape *t;
    att_tensor v;
    const char *name;
    att_param *p;
    captioner_need(att_optimizer_new(ctx, ATT_OPTIONS(att_optimizer_config, .beta2 = 0.98, .eps = 1e-9), &o));
    for (int64_t k = 0; (p = att_nn_params_at(att_model_params(&m->model), k, &name)); k++)
        if (!strstr(name, "running_"))
            captioner_need(att_optimizer_add(o, p, NULL));
    captioner_need(att_tape_new(ctx, ATT_OPTIONS(att_tape_config, .record = true), &t));
    captioner_need(
        att_wrap(&v, l.pixels, ATT_F32, ATT_DIMS(CAPTIONER_COLOURS, CAPTIONER_SIDE, CAPTIONER_SIDE, 3), NULL));
    for (int step = 0; step < 150; step++) {
        att_var *grids = att_captioner_encode(t, m, att_constant(t, &v), true);
        captioner_need(att_tape_backward(t, att_captioner_loss(t, m, grids, &b), NULL));
        att_tape_reset(t);
        captioner_need(att_optimizer_step(o, ATT_OPTIONS(att_update, .rate = 0.01), NULL));
    }
    att_optimizer_free(o);
    att_tape_free(t);
}

/* ---- folders */

/* The folder of a captioner with convolutions and this decoder */
static inline test_folder captioner_folder(const char *decoder, bool taught)
{
    const test_folder f = folder_new();
    const att_image_processor_config config = captioner_processor();
    att_captioner *m = captioner_make(CAPTIONER_CNN, decoder);
    att_words w = captioner_words();
    if (taught)
        captioner_teach(m);
    captioner_need(att_captioner_save(m, f.path, 0));
    captioner_need(att_words_write(&w, f.path));
    captioner_need(att_image_processor_write(ctx, f.path, &config));
    att_words_free(&w);
    att_model_free(m);
    return f;
}

#endif
