/* Batches of augmented images: each change is what it is called, each is as often as it is said to be, and none depends
 * on what else was asked for. */
// labels: threads
#include "fixtures/check.h"
#include "fixtures/idx_files.h"

#include "attend_util.h"
#include "vision/image_batches.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>

enum { SIDE = 8, IMAGES = 24, PIXELS = SIDE * SIDE };

static att_ctx *ctx;
static test_folder folder;
static att_image_set *set;
static att_image_source from;
static att_vit *model;
static att_image_input input;
static uint32_t order[IMAGES];

/* No pixel is 0, so those of padding are known; 100 is a level that normalizes to no other's. */
static uint8_t level(int64_t image, int64_t y, int64_t x) { return (uint8_t)(1 + (37 * image + 11 * y + 3 * x) % 250); }

static int set_up(void **state)
{
    (void)state;
    static uint8_t pixels[IMAGES * PIXELS], labels[IMAGES];
    ctx = check_open(NULL, 2);
    folder = folder_new();
    for (int i = 0; i < IMAGES * PIXELS; i++)
        pixels[i] = level(i / PIXELS, i / SIDE % SIDE, i % SIDE);
    for (int i = 0; i < IMAGES; i++) {
        labels[i] = (uint8_t)(i % 5);
        order[i] = (uint32_t)(7 * i % IMAGES);
    }
    idx_write(&folder, "train", IMAGES, SIDE, pixels, labels);
    assert_int_equal(att_image_set_open(ctx, folder.path, ATT_IMAGE_SPLIT_TRAIN, NULL, 0, &set), ATT_OK);
    from = att_image_source_of_set(set);
    if (att_vit_new(ctx,
                    "{\"model_type\": \"vit\", \"image_size\": 8, \"patch_size\": 4, \"num_channels\": 1, "
                    "\"num_labels\": 5, \"hidden_size\": 8, \"num_hidden_layers\": 1, \"num_attention_heads\": 2, "
                    "\"intermediate_size\": 8}",
                    1, &model))
        fail_msg("%s", att_error(ctx));
    assert_int_equal(att_image_input_make(ctx, model, NULL, &input), ATT_OK);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    att_image_input_free(&input);
    att_vit_free(model);
    att_image_set_free(set);
    att_close(ctx);
    folder_remove(&folder);
    return 0;
}

/* Normalizes a level as `transformers` does, which scales in double. */
static float value(uint8_t x) { return ((float)(x / 255.0) - 0.5f) / 0.5f; }

static att_image_batches *make(const att_augmentation *how)
{
    att_image_batches *b;
    assert_int_equal(att_image_batches_new(ctx, &input, &from, how, IMAGES, &b), ATT_OK);
    return b;
}

/* Makes one batch of all images. */
static const att_image_batch *batch_of(att_image_batches *b, int64_t epoch, int64_t next)
{
    const att_image_batch *out = NULL;
    double waited = -1;
    const att_image_choice now = {.epoch = epoch, .images = order, .n = IMAGES, .last = IMAGES},
                           after = {.epoch = next, .images = order, .n = IMAGES, .last = next < 0 ? 0 : IMAGES};
    if (att_image_batches_get(b, &now, &after, &out, &waited))
        fail_msg("%s", att_error(ctx));
    assert_true(waited >= 0);
    assert_int_equal(out->n, IMAGES);
    return out;
}

static void without_changes_images_are_normalized(void **state)
{
    (void)state;
    att_image_batches *b = make(&(att_augmentation){.seed = 1});
    const att_image_batch *x = batch_of(b, 0, 1);
    for (int i = 0; i < IMAGES; i++) {
        assert_int_equal(x->images[i], order[i]);
        assert_int_equal(x->classes[i], order[i] % 5);
        assert_int_equal(x->partners[i], order[IMAGES - 1 - i] % 5);
        for (int k = 0; k < PIXELS; k++)
            assert_true(x->pixels[i * PIXELS + k] == value(level(order[i], k / SIDE, k % SIDE)));
    }
    assert_true(x->share == 1);
    att_image_batches_free(b);
}

/* Is it the image, shifted and flipped in this way? */
static bool is_shifted(const float *x, int64_t image, int64_t down, int64_t right, bool flip)
{
    for (int64_t y = 0; y < SIDE; y++)
        for (int64_t k = 0; k < SIDE; k++) {
            const int64_t from_y = y + down, from_x = (flip ? SIDE - 1 - k : k) + right;
            const bool inside = from_y >= 0 && from_y < SIDE && from_x >= 0 && from_x < SIDE;
            if (x[y * SIDE + k] != value(inside ? level(image, from_y, from_x) : 0))
                return false;
        }
    return true;
}

/* Each image is one of all shifts, and each of these occurs about as often as it should. */
static void crops_and_flips_are_even(void **state)
{
    (void)state;
    enum { CROP = 2, SHIFTS = 2 * CROP + 1, EPOCHS = 100, CASES = 2 * SHIFTS * SHIFTS };
    int count[CASES] = {0};
    att_image_batches *b = make(&(att_augmentation){.seed = 5, .crop = CROP, .flip = true});
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        const att_image_batch *x = batch_of(b, epoch, epoch + 1);
        for (int i = 0; i < IMAGES; i++) {
            int found = -1;
            for (int c = 0; c < CASES; c++)
                if (is_shifted(x->pixels + i * PIXELS, order[i], c / 2 / SHIFTS - CROP, c / 2 % SHIFTS - CROP, c % 2))
                    found = c;
            assert_true(found >= 0);
            count[found]++;
        }
    }
    const double mean = EPOCHS * IMAGES / (double)CASES; /* 48; five standard deviations of a binomial count */
    for (int c = 0; c < CASES; c++)
        check_near(mean, count[c], 5 * sqrt(mean), "case %d", c);
    att_image_batches_free(b);
}

/* A square of 0, the mean; at the borders a part of it. Its center is anywhere. */
static void cutout_erases_a_square(void **state)
{
    (void)state;
    enum { CUT = 4 };
    int center_rows[SIDE] = {0};
    att_image_batches *b = make(&(att_augmentation){.seed = 2, .cutout = CUT});
    for (int epoch = 0; epoch < 100; epoch++) {
        const att_image_batch *x = batch_of(b, epoch, epoch + 1);
        for (int i = 0; i < IMAGES; i++) {
            int top = SIDE, left = SIDE, bottom = -1, right = -1, erased = 0;
            for (int k = 0; k < PIXELS; k++) {
                const float is = x->pixels[i * PIXELS + k];
                if (is == value(level(order[i], k / SIDE, k % SIDE)))
                    continue;
                assert_true(is == 0);
                erased++;
                top = k / SIDE < top ? k / SIDE : top;
                left = k % SIDE < left ? k % SIDE : left;
                bottom = k / SIDE;
                right = k % SIDE > right ? k % SIDE : right;
            }
            assert_int_equal(erased, (bottom - top + 1) * (right - left + 1));
            assert_true(bottom - top < CUT && right - left < CUT);
            assert_true(bottom - top + 1 == CUT || top == 0 || bottom == SIDE - 1);
            center_rows[top == 0 ? bottom - 1 : top + CUT / 2]++;
        }
    }
    for (int y = 0; y < SIDE; y++) /* of 2400 */
        check_near(300, center_rows[y], 5 * sqrt(300), "row %d", y);
    att_image_batches_free(b);
}

static void mixup_mixes_pairs(void **state)
{
    (void)state;
    att_image_batches *b = make(&(att_augmentation){.seed = 3, .mixup = 0.4});
    float last = -1;
    for (int epoch = 0; epoch < 10; epoch++) {
        const att_image_batch *x = batch_of(b, epoch, epoch + 1);
        assert_true(x->share > 0 && x->share < 1 && x->share != last);
        assert_true(x->share == (float)att_mixup_share(0.4, 3, epoch, 0));
        last = x->share;
        for (int i = 0; i < IMAGES; i++)
            for (int k = 0; k < PIXELS; k++) {
                const double own = (double)value(level(order[i], k / SIDE, k % SIDE)),
                             other = (double)value(level(order[IMAGES - 1 - i], k / SIDE, k % SIDE)),
                             share = (double)x->share;
                check_near(share * own + (1 - share) * other, (double)x->pixels[i * PIXELS + k], 2e-7, "pixel %d", k);
            }
    }
    att_image_batches_free(b);
}

/* The moments of the beta distribution, within five standard deviations of their estimates. */
static void shares_have_the_moments_of_the_beta_distribution(void **state)
{
    (void)state;
    enum { N = 20000 };
    static const double alphas[] = {ATT_MIN_MIXUP, 0.05, 0.2, 0.4, 1, 1.5, 2, 8, 100};
    for (size_t i = 0; i < sizeof alphas / sizeof alphas[0]; i++) {
        const double a = alphas[i], variance = 0.25 / (2 * a + 1), fourth = 3 * variance * 0.25 / (2 * a + 3);
        double sum = 0, squares = 0;
        for (int k = 0; k < N; k++) {
            const double x = att_mixup_share(a, 11, k / 100, k % 100) - 0.5;
            assert_true(fabs(x) <= 0.5);
            sum += x;
            squares += x * x;
        }
        check_near(0, sum / N, 5 * sqrt(variance / N), "mean of alpha %g", a);
        check_near(variance, squares / N, 5 * sqrt((fourth - variance * variance) / N), "variance of alpha %g", a);
    }
}

/* Neither whether it was made ahead nor what was asked for before. */
static void a_batch_depends_on_its_number_alone(void **state)
{
    (void)state;
    static const att_augmentation how = {.seed = 9, .crop = 1, .flip = true, .cutout = 3, .mixup = 0.5};
    static const int asked[][2] = {{3, 5}, {4, -1}, {5, 5}, {5, 6}, {6, -1}, {0, 1}};
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        att_image_batches *a = make(&how), *b = make(&how);
        batch_of(a, asked[i][0], asked[i][1]);
        const att_image_batch *x = batch_of(a, 5, -1), *y = batch_of(b, 5, 0);
        assert_memory_equal(x->pixels, y->pixels, IMAGES * PIXELS * sizeof(float));
        assert_true(x->share == y->share);
        att_image_batches_free(a);
        att_image_batches_free(b);
    }
    att_image_batches *a = make(&how), *b = make(&(att_augmentation){.seed = 10, .crop = 1, .flip = true});
    assert_memory_not_equal(batch_of(a, 5, -1)->pixels, batch_of(b, 5, -1)->pixels, IMAGES * PIXELS * sizeof(float));
    assert_memory_not_equal(batch_of(a, 5, -1)->pixels, batch_of(a, 4, -1)->pixels, IMAGES * PIXELS * sizeof(float));
    att_image_batches_free(a);
    att_image_batches_free(b);
}

/* Nor whether there is a thread. */
static void without_a_thread_batches_are_made_when_they_are_needed(void **state)
{
    (void)state;
    static const att_augmentation how = {.seed = 9, .crop = 1, .flip = true};
    att_image_batches *a = make(&how), *b = make(&how);
    pthread_attr_t usual, huge;
    assert_int_equal(pthread_getattr_default_np(&usual), 0);
    assert_int_equal(pthread_attr_init(&huge), 0);
    assert_int_equal(pthread_attr_setstacksize(&huge, (size_t)1 << 47), 0); /* more than there are addresses */
    for (int epoch = 0; epoch < 3; epoch++) {
        assert_int_equal(pthread_setattr_default_np(&huge), 0);
        const att_image_batch *x = batch_of(a, epoch, epoch + 1);
        assert_int_equal(pthread_setattr_default_np(&usual), 0);
        assert_memory_equal(x->pixels, batch_of(b, epoch, epoch + 1)->pixels, IMAGES * PIXELS * sizeof(float));
    }
    pthread_attr_destroy(&huge);
    pthread_attr_destroy(&usual);
    att_image_batches_free(a);
    att_image_batches_free(b);
}

/* ---- the thread */

/* An allocator that notes what the thread has which calls it, if it is not the test's own. */
typedef struct noted {
    pthread_t own;
    int threads;
    size_t stack;
    sigset_t blocked;
} noted;

static void *note(void *user, size_t bytes, size_t alignment)
{
    noted *n = user;
    void *p;
    pthread_attr_t attributes;
    if (!pthread_equal(pthread_self(), n->own) && !pthread_getattr_np(pthread_self(), &attributes)) {
        n->threads++;
        pthread_attr_getstacksize(&attributes, &n->stack);
        pthread_attr_destroy(&attributes);
        pthread_sigmask(SIG_SETMASK, NULL, &n->blocked);
    }
    return posix_memalign(&p, alignment, bytes) ? NULL : p;
}

static void release(void *user, void *p)
{
    (void)user;
    free(p);
}

/* A host may have made the usual stack of threads small, and have handlers of faults. */
static void the_thread_is_as_those_of_the_library(void **state)
{
    (void)state;
    static const att_augmentation how = {.seed = 1};
    noted n = {.own = pthread_self()};
    pthread_attr_t usual, small;
    att_ctx *own;
    att_image_batches *b;
    assert_int_equal(
        att_open(&own, ATT_OPTIONS(att_config, .n_threads = 1, .allocator = (att_allocator){note, release, &n})),
        ATT_OK);
    assert_int_equal(pthread_getattr_default_np(&usual), 0);
    assert_int_equal(pthread_attr_init(&small), 0);
    assert_int_equal(pthread_attr_setstacksize(&small, (size_t)1 << 18), 0);
    assert_int_equal(att_image_batches_new(own, &input, &from, &how, IMAGES, &b), ATT_OK);
    assert_int_equal(pthread_setattr_default_np(&small), 0);
    batch_of(b, 0, 1);
    batch_of(b, 1, -1);
    assert_int_equal(pthread_setattr_default_np(&usual), 0);
    assert_true(n.threads > 0);
    assert_true(n.stack >= (size_t)1 << 20);
    assert_true(sigismember(&n.blocked, SIGTERM) && sigismember(&n.blocked, SIGINT));
    assert_false(sigismember(&n.blocked, SIGSEGV) || sigismember(&n.blocked, SIGBUS));
    att_image_batches_free(b);
    att_close(own);
    pthread_attr_destroy(&small);
    pthread_attr_destroy(&usual);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_changes_images_are_normalized),
        cmocka_unit_test(crops_and_flips_are_even),
        cmocka_unit_test(cutout_erases_a_square),
        cmocka_unit_test(mixup_mixes_pairs),
        cmocka_unit_test(shares_have_the_moments_of_the_beta_distribution),
        cmocka_unit_test(a_batch_depends_on_its_number_alone),
        cmocka_unit_test(without_a_thread_batches_are_made_when_they_are_needed),
        cmocka_unit_test(the_thread_is_as_those_of_the_library),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
