/* A vision Transformer as a program that links the library gets it.
 *
 *   bench_vision FOLDER [THREADS] [BATCH] [ROUNDS] [COMPUTE]  images a second, as a JSON line
 *   bench_vision train SETTINGS [BATCH] [ROUNDS] [COMPUTE]    images a second of training steps
 *   bench_vision FOLDER logits N HEIGHT WIDTH < PIXELS        f32, of images, f32 [N, HEIGHT, WIDTH, channels]
 *
 * SETTINGS of a new model are JSON as in config.json. Without a classifier, logits are features. */
#include "attend_vision.h"
#include "bench.h"

#include <math.h>
#include <string.h>

typedef struct bench {
    att_ctx *ctx;
    att_vit *m;
    att_vit_info info;
    att_tape *t;
    float *pixels;
} bench;

/* n images of these sides -> result */
static void apply(bench *b, int64_t n, int64_t height, int64_t width, att_tensor *result)
{
    att_tensor images;
    check(b->ctx,
          att_wrap(&images, b->pixels, ATT_F32, 4, (const int64_t[]){n, height, width, b->info.channels}, NULL));
    att_var *x = att_input(b->t, &images);
    check(b->ctx,
          att_var_value(b->t,
                        b->info.classes ? att_vit_logits(b->t, b->m, x, NULL) : att_vit_features(b->t, b->m, x, NULL),
                        result));
}

static float *allocate(size_t n)
{
    float *x = malloc(n * sizeof *x);
    if (!x) {
        fprintf(stderr, "bench_vision: out of memory\n");
        exit(1);
    }
    return x;
}

/* Pixels in [-0.5, 0.5], whose values cost nothing */
static void fill_pixels(bench *b, int64_t batch)
{
    const att_vit_info *i = &b->info;
    const int64_t n = batch * i->image[0] * i->image[1] * i->channels;
    b->pixels = allocate((size_t)n);
    for (int64_t k = 0; k < n; k++)
        b->pixels[k] = (float)(k * 37 % 256) / 255 - 0.5f;
}

static void report(const bench *b, int64_t batch, double best)
{
    printf("{\"threads\":%d,\"isa\":\"%s\",\"batch\":%lld,\"images_per_second\":%.3f}\n", att_threads(b->ctx),
           att_isa(b->ctx), (long long)batch, (double)batch / best);
}

static void time_all(bench *b, int64_t batch, int rounds)
{
    double best = INFINITY;
    att_tensor y;
    fill_pixels(b, batch);
    for (int r = 0; r < rounds; r++) {
        const double start = seconds();
        apply(b, batch, b->info.image[0], b->info.image[1], &y);
        best = fmin(best, seconds() - start);
        att_tape_reset(b->t);
    }
    report(b, batch, best);
}

/* Forward, backward and AdamW's update */
static void train_step(bench *b, att_optimizer *o, int64_t batch, const int32_t *classes)
{
    const att_vit_info *i = &b->info;
    const int64_t dim[] = {batch, i->image[0], i->image[1], i->channels};
    att_tensor images;
    check(b->ctx, att_wrap(&images, b->pixels, ATT_F32, 4, dim, NULL));
    att_var *logits = att_vit_logits(b->t, b->m, att_constant(b->t, &images), NULL);
    check(b->ctx, att_tape_backward(b->t, att_cross_entropy(b->t, logits, classes, NULL), NULL));
    att_tape_reset(b->t);
    check(b->ctx, att_optimizer_step(o, ATT_OPTIONS(att_update, .rate = 1e-3, .clip = 1), NULL));
}

static void time_steps(bench *b, int64_t batch, int rounds)
{
    att_optimizer *o;
    int32_t *classes = (int32_t *)allocate((size_t)batch);
    double best = INFINITY;
    fill_pixels(b, batch);
    for (int64_t k = 0; k < batch; k++)
        classes[k] = (int32_t)(k % b->info.classes);
    check(b->ctx, att_optimizer_new(b->ctx, ATT_OPTIONS(att_optimizer_config, .method = ATT_OPTIMIZER_ADAMW), &o));
    for (int64_t k = 0; k < att_nn_params_count(att_vit_params(b->m)); k++)
        check(b->ctx, att_optimizer_add(o, att_nn_params_at(att_vit_params(b->m), k, NULL), NULL));
    for (int r = 0; r < rounds; r++) {
        const double start = seconds();
        train_step(b, o, batch, classes);
        best = fmin(best, seconds() - start);
    }
    report(b, batch, best);
    att_optimizer_free(o);
    free(classes);
}

static int write_logits(bench *b, int64_t n, int64_t height, int64_t width)
{
    const size_t pixels = (size_t)(n * height * width * b->info.channels);
    att_tensor y;
    b->pixels = allocate(pixels);
    if (fread(b->pixels, sizeof(float), pixels, stdin) != pixels)
        return fprintf(stderr, "bench_vision: standard input has less than %zu pixels\n", pixels), 1;
    apply(b, n, height, width, &y);
    const size_t count = (size_t)(y.dim[0] * y.dim[1]);
    return fwrite(y.data, sizeof(float), count, stdout) != count || fflush(stdout);
}

/* FOLDER [THREADS] [BATCH] [ROUNDS] [COMPUTE] or FOLDER logits N HEIGHT WIDTH */
static int infer(bench *b, int n, char **argument)
{
    const bool logits = n == 6 && !strcmp(argument[2], "logits");
    const att_compute compute = compute_of(n > 5 && !logits ? argument[5] : NULL);
    int bad = 0;
    check(NULL, att_open(&b->ctx, ATT_OPTIONS(att_config, .n_threads = n > 2 && !logits ? atoi(argument[2]) : 0)));
    check(b->ctx, att_vit_open(b->ctx, argument[1], ATT_OPTIONS(att_model_options, .compute = compute), &b->m));
    check(b->ctx, att_vit_describe(b->m, &b->info));
    check(b->ctx, att_tape_new(b->ctx, ATT_OPTIONS(att_tape_config, .compute = compute), &b->t));
    if (logits)
        bad = write_logits(b, atoll(argument[3]), atoll(argument[4]), atoll(argument[5]));
    else
        time_all(b, n > 3 ? atoll(argument[3]) : 8, n > 4 ? atoi(argument[4]) : 3);
    return bad;
}

/* train SETTINGS [BATCH] [ROUNDS] [COMPUTE] */
static int train(bench *b, int n, char **argument)
{
    check(NULL, att_open(&b->ctx, NULL));
    check(b->ctx, att_vit_new(b->ctx, argument[2], 1, &b->m));
    check(b->ctx, att_vit_describe(b->m, &b->info));
    check(b->ctx,
          att_tape_new(b->ctx,
                       ATT_OPTIONS(att_tape_config, .record = true, .compute = compute_of(n > 5 ? argument[5] : NULL)),
                       &b->t));
    time_steps(b, n > 3 ? atoll(argument[3]) : 128, n > 4 ? atoi(argument[4]) : 3);
    return 0;
}

int main(int n, char **argument)
{
    bench b = {.info = {.size = sizeof b.info}};
    const bool logits = n == 6 && !strcmp(argument[2], "logits"), steps = n > 2 && !strcmp(argument[1], "train");
    if (n < 2 || (n > 6 && !logits))
        return fprintf(stderr, "usage: bench_vision FOLDER [THREADS] [BATCH] [ROUNDS] [COMPUTE] | train SETTINGS "
                               "[BATCH] [ROUNDS] [COMPUTE] "
                               "| FOLDER logits N HEIGHT WIDTH\n"),
               2;
    const int bad = steps ? train(&b, n, argument) : infer(&b, n, argument);
    free(b.pixels);
    att_tape_free(b.t);
    att_vit_free(b.m);
    att_close(b.ctx);
    return bad;
}
