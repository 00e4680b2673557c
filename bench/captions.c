/* A step of learning of a captioner: images through the network of convolutions, their captions through the decoder,
 * and back; the gradients' norm is clipped, and AdamW updates.
 *
 *   bench_captions FOLDER [IMAGES] [STEPS]   writes a new captioner to FOLDER, then prints the loss of each step and
 *                                            captions a second of the best one, as a JSON line
 *
 * The captioner is the default of `attend train caption` with a gate, with the words of Flickr8k, and without the head
 * that learns word prediction. An image has five captions of 8 to 16 words. There is no dropout, so that others
 * can compute the same losses, and nothing is decoded. */
#include "attend_learn.h"
#include "bench.h"
#include "caption/captioner.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { SIDE = 96, CHANNELS = 3, WORDS = 2537, END = 2538, PER_IMAGE = 5, SHORTEST = 8, LENGTHS = 9 };
static const char settings[] =
    "{\"model_type\": \"attend-captioner\", \"encoder\": \"cnn\", \"image_size\": 96, \"num_channels\": 3, "
    "\"channels\": [32, 64, 128, 256], \"decoder\": \"gru\", \"attention\": \"additive\", \"gate\": true, "
    "\"hidden_size\": 320, \"embedding_size\": 320, \"num_layers\": 1, \"vocab_size\": 2539, \"max_positions\": 64, "
    "\"unk_token_id\": 2537, \"eos_token_id\": 2538}";

typedef struct bench {
    att_ctx *ctx;
    att_captioner *m;
    att_tape *tape;
    att_optimizer *optimizer;
    att_caption_batch batch;
    float *pixels; /* [images, SIDE, SIDE, CHANNELS] */
    int64_t *of_image, *offsets;
    int32_t *words;
} bench;

static void *allocate(size_t n, size_t size)
{
    void *p = calloc(n, size);
    if (!p) {
        fprintf(stderr, "bench_captions: out of memory\n");
        exit(1);
    }
    return p;
}

/* Numbers that bench/peers/captions.py makes, too */
static void fill(bench *b, int64_t images)
{
    const int64_t pixels = images * SIDE * SIDE * CHANNELS, captions = images * PER_IMAGE;
    b->pixels = allocate((size_t)pixels, sizeof *b->pixels);
    b->of_image = allocate((size_t)images + 1, sizeof *b->of_image);
    b->offsets = allocate((size_t)captions + 1, sizeof *b->offsets);
    b->words = allocate((size_t)captions * (SHORTEST + LENGTHS), sizeof *b->words);
    for (int64_t k = 0; k < pixels; k++)
        b->pixels[k] = (float)(k * 7919 % 10007 * 37 % 256) / 255 - 0.5f;
    for (int64_t i = 0; i < images; i++)
        b->of_image[i + 1] = (i + 1) * PER_IMAGE;
    for (int64_t c = 0, n = 0; c < captions; c++) {
        for (int64_t k = 0; k < SHORTEST + c * 7 % LENGTHS; k++, n++)
            b->words[n] = (int32_t)(n * n % 1009 * 31 % WORDS);
        b->words[n++] = END;
        b->offsets[c + 1] = n;
    }
    b->batch = (att_caption_batch){
        .images = images, .captions = captions, .of_image = b->of_image, .words = b->words, .offsets = b->offsets};
}

static void open_bench(bench *b, const char *folder)
{
    att_settings s;
    check(NULL, att_open(&b->ctx, NULL));
    att_settings_parse(&s, b->ctx, "the captioner", settings, strlen(settings));
    check(b->ctx, att_captioner_make(b->ctx, &s, 1, &b->m));
    att_settings_close(&s);
    check(b->ctx, att_captioner_save(b->m, folder, ATT_F32));
    check(b->ctx, att_tape_new(b->ctx, ATT_OPTIONS(att_tape_config, .record = true), &b->tape));
    check(b->ctx, att_optimizer_new(
                      b->ctx, ATT_OPTIONS(att_optimizer_config, .method = ATT_OPTIMIZER_ADAMW, .weight_decay = 0.01),
                      &b->optimizer));
    check(b->ctx, att_nn_params_optimize(att_model_params(&b->m->model), b->optimizer));
}

/* Returns the loss before the update. */
static float train_step(bench *b)
{
    att_tensor images, y;
    check(b->ctx,
          att_wrap(&images, b->pixels, ATT_F32, 4, (const int64_t[]){b->batch.images, SIDE, SIDE, CHANNELS}, NULL));
    att_var *grids = att_captioner_encode(b->tape, b->m, att_constant(b->tape, &images), true);
    att_var *loss = att_captioner_loss(b->tape, b->m, grids, &b->batch);
    check(b->ctx, att_var_value(b->tape, loss, &y));
    const float value = *(const float *)y.data;
    check(b->ctx, att_tape_backward(b->tape, loss, NULL));
    att_tape_reset(b->tape);
    check(b->ctx, att_optimizer_step(b->optimizer, ATT_OPTIONS(att_update, .rate = 1e-3, .clip = 5), NULL));
    return value;
}

int main(int n, char **argument)
{
    bench b = {0};
    if (n < 2 || n > 4)
        return fprintf(stderr, "usage: bench_captions FOLDER [IMAGES] [STEPS]\n"), 2;
    const int64_t images = n > 2 ? atoll(argument[2]) : 32;
    const int steps = n > 3 ? atoi(argument[3]) : 3;
    double best = INFINITY;
    open_bench(&b, argument[1]);
    fill(&b, images);
    printf("{\"threads\":%d,\"isa\":\"%s\",\"images\":%lld,\"words\":%lld,\"losses\":[", att_threads(b.ctx),
           att_isa(b.ctx), (long long)images, (long long)b.offsets[b.batch.captions]);
    for (int i = 0; i < steps; i++) {
        const double start = seconds();
        printf("%s%.7g", i ? "," : "", (double)train_step(&b));
        best = fmin(best, seconds() - start);
    }
    printf("],\"captions_per_second\":%.2f}\n", (double)b.batch.captions / best);
    free(b.pixels);
    free(b.of_image);
    free(b.offsets);
    free(b.words);
    att_optimizer_free(b.optimizer);
    att_tape_free(b.tape);
    att_model_free(b.m);
    att_close(b.ctx);
    return 0;
}
