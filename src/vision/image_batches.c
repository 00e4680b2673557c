#include "vision/image_batches.h"
#include "util/clock.h"
#include "util/util.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* The last words of the counters of random numbers. The counter for the order of images (att_permutation) has 0
 * there. */
enum { RANDOM_CHANGES = 1, RANDOM_SHARE };

typedef struct maker {
    att_image_batch batch; /* n 0: there is no batch */
    uint32_t *images;      /* [all]: of the whole batch */
    int64_t all;
    att_status status;
    char why[512]; /* the message of a status that is not ATT_OK, copied because the thread owns it */
    int number;    /* the status's att_error_number */
} maker;

struct att_image_batches {
    att_ctx *ctx;
    const att_image_input *in;
    att_image_source from;
    att_augmentation how;
    maker maker[2]; /* of the current batch and of the next one */
    int next;       /* index */
    bool running;   /* the thread makes the next one */
    pthread_t thread;
};

/* ---- random changes */

/* Returns a number from 0 to n - 1, made from a random word. */
static int64_t below(uint32_t word, int64_t n) { return (int64_t)((uint64_t)word * (uint64_t)n >> 32); }

/* Pads the image with zeros and crops it, which shifts it, and flips it. */
static void shift_and_flip(const att_image *image, int64_t down, int64_t right, bool flip, uint8_t *out)
{
    const int64_t height = image->height, width = image->width, channels = image->channels;
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++, out += channels) {
            const int64_t from_y = y + down, from_x = (flip ? width - 1 - x : x) + right;
            if (from_y < 0 || from_y >= height || from_x < 0 || from_x >= width)
                memset(out, 0, (size_t)channels);
            else
                memcpy(out, image->pixels + (from_y * width + from_x) * channels, (size_t)channels);
        }
}

/* Sets a square, whose center is anywhere in the image, to 0. */
static void erase_square(const att_image_input *in, int64_t side, uint32_t word, float *pixels)
{
    const int64_t top = below(word << 16, in->info.height) - side / 2,
                  left = below(word & UINT32_C(0xffff0000), in->info.width) - side / 2;
    for (int64_t y = att_max(top, 0); y < att_min(top + side, in->info.height); y++)
        for (int64_t x = att_max(left, 0); x < att_min(left + side, in->info.width); x++)
            memset(pixels + (y * in->info.width + x) * in->info.channels, 0,
                   (size_t)in->info.channels * sizeof *pixels);
}

/* An image of a batch. */
typedef struct position {
    uint32_t number; /* of the image */
    uint32_t at;     /* its position in the epoch, from 1, if images repeat in an epoch; otherwise 0 */
    int64_t epoch;
} position;

static position position_of(const att_image_batches *b, const maker *m, int64_t row)
{
    const int64_t at = b->how.repeats ? 1 + m->batch.batch * b->how.repeats + row : 0;
    return (position){m->images[row], (uint32_t)at, m->batch.epoch};
}

/* Augments the image at a position. scratch: memory for one image. */
static void augment(const att_image_batches *b, const position *p, const att_image *image, att_image *scratch,
                    float *pixels)
{
    const att_augmentation *a = &b->how;
    const int64_t shifts = 2 * a->crop + 1;
    uint32_t r[4];
    att_random(a->seed, (const uint32_t[]){p->number, (uint32_t)p->epoch, p->at, RANDOM_CHANGES}, r);
    shift_and_flip(image, below(r[0], shifts) - a->crop, below(r[1], shifts) - a->crop, a->flip && r[2] >> 31,
                   scratch->pixels);
    att_image_processor_normalize(b->in->processor, scratch, pixels);
    if (a->cutout)
        erase_square(b->in, a->cutout, r[3], pixels);
}

static att_status make_image(const att_image_batches *b, position p, att_image *scratch, float *pixels)
{
    att_image image;
    if (att_cancelled(b->ctx))
        return att_fail(b->ctx, ATT_ERR_CANCELLED, "the training was cancelled");
    const att_status e = att_image_input_read(b->in, &b->from, p.number, &image);
    if (e)
        return e;
    augment(b, &p, &image, scratch, pixels);
    att_image_free(b->ctx, &image);
    return ATT_OK;
}

/* ---- mixup */

/* Uses algorithm BA of Cheng 1978 with both parameters alpha. The beta variate W / (alpha + W) is a sigmoid of v, so
 * that logarithms cannot overflow. */
double att_mixup_share(double alpha, uint64_t seed, int64_t epoch, int64_t batch)
{
    const double beta = alpha <= 1 ? 1 / alpha : 1 / sqrt(alpha), gamma = alpha + 1 / beta;
    for (uint32_t trial = 0;; trial++) {
        uint32_t r[4];
        att_random(seed, (const uint32_t[]){(uint32_t)batch, (uint32_t)epoch, trial, RANDOM_SHARE}, r);
        const double u = (r[0] + 0.5) * 0x1p-32, w = (r[1] + 0.5) * 0x1p-32;
        const double v = beta * log(u / (1 - u)), softplus = fmax(v, 0) + log1p(exp(-fabs(v)));
        if (2 * alpha * (log(2) - softplus) + gamma * v - log(4) >= log(u * u * w))
            return 1 / (1 + exp(-v));
    }
}

/* Sets x to share x + (1 - share) y and y to share y + (1 - share) x; both [n]. */
static void mix_two(float share, int64_t n, float *x, float *y)
{
    for (int64_t k = 0; k < n; k++) {
        const float was = x[k];
        x[k] = share * was + (1 - share) * y[k];
        y[k] = share * y[k] + (1 - share) * was;
    }
}

/* Mixes each image with its partner, which has the same position counted from the end of the whole batch:
 * share * image + (1 - share) * partner. The image in the middle is its own partner. other: memory for a partner that
 * is not among the rows. */
static att_status mix(const att_image_batches *b, const maker *m, att_image *scratch, float *other)
{
    const att_image_batch *batch = &m->batch;
    const int64_t elements = att_image_input_values(b->in);
    att_status e = ATT_OK;
    for (int64_t i = 0; !e && i < batch->n; i++) {
        const int64_t row = batch->first + i, partner = m->all - 1 - row, at = partner - batch->first;
        float *x = batch->pixels + i * elements;
        if (at >= 0 && at < batch->n) {
            if (row < partner)
                mix_two(batch->share, elements, x, batch->pixels + at * elements);
            continue;
        }
        e = make_image(b, position_of(b, m, partner), scratch, other);
        if (!e)
            mix_two(batch->share, elements, x, other);
    }
    return e;
}

/* ---- making a batch */

static att_status make_images(const att_image_batches *b, maker *m)
{
    const att_image_input *in = b->in;
    const int64_t elements = att_image_input_values(in);
    const bool mixes = b->how.mixup > 0;
    att_image_batch *batch = &m->batch;
    att_image scratch = {.height = in->info.height, .width = in->info.width, .channels = in->info.channels};
    scratch.pixels = att_alloc(b->ctx, (size_t)elements, 1);
    float *other = mixes && batch->n < m->all ? att_alloc(b->ctx, (size_t)elements, sizeof *other) : NULL;
    att_status e = scratch.pixels && (other || !mixes || batch->n == m->all) ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t i = 0; !e && i < batch->n; i++)
        e = make_image(b, position_of(b, m, batch->first + i), &scratch, batch->pixels + i * elements);
    if (mixes)
        batch->share = (float)att_mixup_share(b->how.mixup, b->how.seed, batch->epoch, batch->batch);
    if (mixes && !e)
        e = mix(b, m, &scratch, other);
    att_free(b->ctx, other);
    att_free(b->ctx, scratch.pixels);
    return e;
}

static int32_t class_of(const att_image_batches *b, uint32_t image)
{
    return b->from.classes ? b->from.classes[image] : 0;
}

static void make(const att_image_batches *b, maker *m)
{
    att_image_batch *batch = &m->batch;
    batch->share = 1;
    for (int64_t i = 0; i < batch->n; i++) {
        batch->classes[i] = class_of(b, batch->images[i]);
        batch->partners[i] = class_of(b, m->images[m->all - 1 - batch->first - i]);
    }
    m->status = make_images(b, m);
    if (m->status) {
        snprintf(m->why, sizeof m->why, "%s", att_error(b->ctx));
        m->number = att_error_number();
    }
}

/* ---- the thread */

static void *run(void *arg)
{
    att_image_batches *b = arg;
    make(b, &b->maker[b->next]);
    return NULL;
}

static void choose(maker *m, const att_image_choice *c)
{
    m->batch.epoch = c->epoch;
    m->batch.batch = c->batch;
    m->batch.first = c->first;
    m->batch.n = c->last - c->first;
    m->batch.images = m->images + c->first;
    m->all = c->n;
    if (c->n)
        memcpy(m->images, c->images, (size_t)c->n * sizeof *c->images);
}

/* Starts a thread in the same way as the threads of the compute pool. Its stack is large enough, whatever the host's
 * default is. It blocks all signals except those that a thread raises itself, so that the program's threads get them;
 * the new thread inherits the mask. */
static bool start_thread(pthread_t *thread, void *arg)
{
    enum { STACK = 1 << 20 };
    static const int faults[] = {SIGBUS, SIGFPE, SIGILL, SIGSEGV};
    size_t usual;
    sigset_t all, before;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes))
        return false;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&all, faults[i]);
    bool started = !pthread_attr_getstacksize(&attributes, &usual) &&
                   (usual >= STACK || !pthread_attr_setstacksize(&attributes, STACK)) &&
                   !pthread_sigmask(SIG_SETMASK, &all, &before);
    if (started) {
        started = !pthread_create(thread, &attributes, run, arg);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_attr_destroy(&attributes);
    return started;
}

/* Begins to make the next batch. Without a thread the batch is made when it is requested. */
static void start(att_image_batches *b, const att_image_choice *next)
{
    maker *m = &b->maker[b->next];
    choose(m, next);
    b->running = m->batch.n && start_thread(&b->thread, b);
    if (!b->running)
        m->batch.n = 0;
}

static void finish(att_image_batches *b)
{
    if (b->running)
        pthread_join(b->thread, NULL);
    b->running = false;
}

static bool has(const maker *m, const att_image_choice *c)
{
    const att_image_batch *b = &m->batch;
    return b->epoch == c->epoch && b->batch == c->batch && b->first == c->first && b->n == c->last - c->first &&
           m->all == c->n && !memcmp(m->images, c->images, (size_t)c->n * sizeof *c->images);
}

att_status att_image_batches_get(att_image_batches *b, const att_image_choice *now, const att_image_choice *next,
                                 const att_image_batch **out, double *waited)
{
    const double begin = att_seconds();
    finish(b);
    maker *m = &b->maker[b->next];
    if (!has(m, now)) {
        choose(m, now);
        make(b, m);
    }
    *waited = att_seconds() - begin;
    m->batch.n = m->status ? 0 : m->batch.n; /* an error is reported once: the next call tries again */
    if (m->status) {
        errno = m->number;
        return att_fail_text(b->ctx, m->status, m->why);
    }
    b->next = !b->next;
    start(b, next);
    *out = &m->batch;
    return ATT_OK;
}

/* ---- construction */

att_status att_image_batches_new(att_ctx *ctx, const att_image_input *in, const att_image_source *from,
                                 const att_augmentation *how, int64_t max, att_image_batches **out)
{
    att_image_batches *b = att_calloc(ctx, 1, sizeof *b);
    *out = NULL;
    if (!b)
        return ATT_ERR_MEMORY;
    b->ctx = ctx;
    b->in = in;
    b->from = *from;
    b->how = *how;
    bool ok = true;
    for (int i = 0; ok && i < 2; i++) {
        att_image_batch *x = &b->maker[i].batch;
        x->pixels = att_alloc(ctx, (size_t)max, (size_t)att_image_input_values(in) * sizeof *x->pixels);
        b->maker[i].images = att_alloc(ctx, (size_t)max, sizeof *x->images);
        x->classes = att_alloc(ctx, (size_t)max, sizeof *x->classes);
        x->partners = att_alloc(ctx, (size_t)max, sizeof *x->partners);
        ok = x->pixels && b->maker[i].images && x->classes && x->partners;
    }
    if (!ok) {
        att_image_batches_free(b);
        return ATT_ERR_MEMORY;
    }
    *out = b;
    return ATT_OK;
}

void att_image_batches_free(att_image_batches *b)
{
    if (!b)
        return;
    finish(b);
    for (int i = 0; i < 2; i++) {
        att_image_batch *x = &b->maker[i].batch;
        void *const all[] = {x->pixels, b->maker[i].images, x->classes, x->partners};
        for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
            att_free(b->ctx, all[k]);
    }
    att_free(b->ctx, b);
}
