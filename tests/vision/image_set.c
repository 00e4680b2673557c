/* Sets of labeled images: each format is read as its authors describe it, and what is damaged, truncated or hostile is
 * refused with a sentence. */
#include "fixtures/check.h"
#include "fixtures/folder.h"
#include "fixtures/real_files.h"

#include "attend_util.h"
#include "attend_vision.h"

#include <string.h>
#include <unistd.h>
#include <zlib.h>

static att_ctx *ctx;
static test_folder folder;

static int set_up(void **state)
{
    (void)state;
    ctx = check_open(NULL, 2);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    att_close(ctx);
    return 0;
}

static int new_folder(void **state)
{
    (void)state;
    folder = folder_new();
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    folder_remove(&folder);
    return 0;
}

static void write_file(const char *name, const void *data, size_t n)
{
    FILE *f = folder_open(&folder, name);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void write_packed(const char *name, const void *data, size_t n)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder.path, name);
    gzFile f = gzopen(path, "wb");
    assert_int_equal(gzwrite(f, data, (unsigned)n), (int)n);
    assert_int_equal(gzclose(f), Z_OK);
}

static att_image_set *open_set(const char *path, att_image_split split, const char *const *labels, int64_t n)
{
    att_image_set *s;
    if (att_image_set_open(ctx, path, split, labels, n, &s))
        fail_msg("%s", att_error(ctx));
    return s;
}

static att_image_set_info describe(const att_image_set *s)
{
    att_image_set_info info = {.size = sizeof info};
    assert_int_equal(att_image_set_describe(s, &info), ATT_OK);
    return info;
}

static void assert_labeled_refused(att_image_split split, const char *const *labels, int64_t n, const char *says)
{
    att_image_set *s;
    if (!att_image_set_open(ctx, folder.path, split, labels, n, &s) || s || !strstr(att_error(ctx), says))
        fail_msg("%s: expected %s", att_error(ctx), says);
}

static void assert_refused(att_image_split split, const char *says) { assert_labeled_refused(split, NULL, 0, says); }

static void assert_pixels(const att_image_set *s, int64_t i, int64_t height, int64_t width, int64_t channels,
                          const uint8_t *pixels)
{
    att_image image;
    assert_int_equal(att_image_set_read(s, i, &image), ATT_OK);
    assert_int_equal(image.height, height);
    assert_int_equal(image.width, width);
    assert_int_equal(image.channels, channels);
    assert_memory_equal(image.pixels, pixels, (size_t)(height * width * channels));
    att_image_free(ctx, &image);
}

/* ---- IDX */

enum { IDX_HEADER = 16, IDX_BYTES = IDX_HEADER + 3 * 2 * 4 };
static unsigned char idx_images[IDX_BYTES] = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 4};
static const unsigned char idx_labels[] = {0, 0, 8, 1, 0, 0, 0, 3, 2, 0, 5};

static void write_idx(const char *part)
{
    char name[64];
    for (int i = IDX_HEADER; i < IDX_BYTES; i++)
        idx_images[i] = (unsigned char)(7 * i);
    snprintf(name, sizeof name, "%s-images-idx3-ubyte", part);
    write_file(name, idx_images, sizeof idx_images);
    snprintf(name, sizeof name, "%s-labels-idx1-ubyte", part);
    write_file(name, idx_labels, sizeof idx_labels);
}

static void assert_idx(att_image_split split)
{
    att_image_set *s = open_set(folder.path, split, NULL, 0);
    const att_image_set_info info = describe(s);
    assert_string_equal(info.format, "idx");
    assert_int_equal(info.images, 3);
    assert_int_equal(info.classes, 6);
    assert_int_equal(info.height, 2);
    assert_int_equal(info.width, 4);
    assert_int_equal(info.channels, 1);
    for (int64_t i = 0; i < 3; i++) {
        assert_int_equal(att_image_set_class(s, i), idx_labels[8 + i]);
        assert_pixels(s, i, 2, 4, 1, idx_images + IDX_HEADER + 8 * i);
    }
    assert_string_equal(att_image_set_label(s, 5), "5");
    att_image_set_free(s);
}

static void idx_files_are_read(void **state)
{
    (void)state;
    write_idx("train");
    write_idx("t10k");
    assert_idx(ATT_IMAGE_SPLIT_TRAIN);
    assert_idx(ATT_IMAGE_SPLIT_TEST);
}

static void packed_idx_files_are_read(void **state)
{
    (void)state;
    write_idx("train"); /* sets idx_images */
    write_packed("t10k-images-idx3-ubyte.gz", idx_images, sizeof idx_images);
    write_packed("t10k-labels-idx1-ubyte.gz", idx_labels, sizeof idx_labels);
    assert_idx(ATT_IMAGE_SPLIT_TEST);
    write_packed("train-images-idx3-ubyte.gz", idx_labels, sizeof idx_labels); /* is not read: there is a plain one */
    assert_idx(ATT_IMAGE_SPLIT_TRAIN);
}

static void labels_of_the_caller_name_idx_classes(void **state)
{
    (void)state;
    static const char *const names[] = {"shirt", "shoe", "bag", "coat", "dress", "boot", "hat"};
    write_idx("train");
    att_image_set *s = open_set(folder.path, ATT_IMAGE_SPLIT_TRAIN, names, 7);
    assert_int_equal(describe(s).classes, 7);
    assert_string_equal(att_image_set_label(s, att_image_set_class(s, 0)), "bag");
    att_image_set_free(s);
    assert_labeled_refused(ATT_IMAGE_SPLIT_TRAIN, names, 5, "image 2 is of class 5, but there are 5 labels");
}

/* Each byte of a header, changed, is an error that names the file. */
static void hostile_idx_headers_are_refused(void **state)
{
    (void)state;
    write_idx("train");
    for (int i = 0; i < IDX_HEADER; i++)
        for (int value = 1; value < 256; value <<= 1) {
            idx_images[i] ^= (unsigned char)value;
            write_file("train-images-idx3-ubyte", idx_images, sizeof idx_images);
            idx_images[i] ^= (unsigned char)value;
            assert_refused(ATT_IMAGE_SPLIT_TRAIN, "train-images-idx3-ubyte");
        }
}

static void idx_sizes_are_checked_before_memory_is_allocated(void **state)
{
    (void)state;
    static const unsigned char claims[] = {0, 0, 8, 3, 255, 255, 255, 255, 0, 0, 128, 0, 0, 0, 128, 0, 1, 2, 3},
                               wide[] = {0, 0, 8, 3, 0, 0, 0, 1, 255, 255, 255, 255, 255, 255, 255, 255},
                               none[] = {0, 0, 8, 3, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 4};
    write_idx("train");
    write_file("train-images-idx3-ubyte", claims, sizeof claims);
    assert_refused(ATT_IMAGE_SPLIT_TRAIN, "has 3 bytes after its header, which states 4611686017353646080");
    write_file("train-images-idx3-ubyte", wide, sizeof wide);
    assert_refused(ATT_IMAGE_SPLIT_TRAIN, "dimension 1 is 4294967295, expected 1 to 32768");
    write_file("train-images-idx3-ubyte", none, sizeof none);
    assert_refused(ATT_IMAGE_SPLIT_TRAIN, "dimension 0 is 0");
    write_file("train-images-idx3-ubyte", idx_images, 15);
    assert_refused(ATT_IMAGE_SPLIT_TRAIN, "has 15 bytes, fewer than the 16 of an IDX header");
    write_file("train-images-idx3-ubyte", idx_images, sizeof idx_images - 1);
    assert_refused(ATT_IMAGE_SPLIT_TRAIN, "has 23 bytes after its header, which states 24");
}

static void idx_labels_must_fit_the_images(void **state)
{
    (void)state;
    static const unsigned char two[] = {0, 0, 8, 1, 0, 0, 0, 2, 2, 0};
    write_idx("train");
    write_file("train-labels-idx1-ubyte", two, sizeof two);
    assert_refused(ATT_IMAGE_SPLIT_TRAIN, "has 2 labels, but there are 3 images");
    write_file("train-labels-idx1-ubyte", idx_images, sizeof idx_images);
    assert_refused(ATT_IMAGE_SPLIT_TRAIN, "begins with the bytes 00 00 08 03, expected 00 00 08 01");
    char path[256];
    snprintf(path, sizeof path, "%s/train-labels-idx1-ubyte", folder.path);
    unlink(path);
    assert_refused(ATT_IMAGE_SPLIT_TRAIN, "train-labels-idx1-ubyte: No such file");
    assert_int_equal(mkdir(path, 0700), 0);
    assert_refused(ATT_IMAGE_SPLIT_TRAIN, "train-labels-idx1-ubyte is not a file");
    assert_refused(ATT_IMAGE_SPLIT_TEST, "t10k-images-idx3-ubyte: No such file");
}

/* The first labels of MNIST's training set, as its authors print them, and the number of images of each digit. */
static void mnist_is_read(void **state)
{
    (void)state;
    static const int first[] = {5, 0, 4, 1, 9, 2, 1, 3, 1, 4},
                     counts[] = {980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009};
    const char *path = data_file("mnist");
    if (!path) {
        print_message("skipped: $ATTEND_DATA/mnist is missing\n");
        skip();
    }
    att_image_set *train = open_set(path, ATT_IMAGE_SPLIT_TRAIN, NULL, 0),
                  *test = open_set(path, ATT_IMAGE_SPLIT_TEST, NULL, 0);
    assert_int_equal(describe(train).images, 60000);
    assert_int_equal(describe(train).classes, 10);
    for (int i = 0; i < 10; i++)
        assert_int_equal(att_image_set_class(train, i), first[i]);
    int count[10] = {0};
    for (int64_t i = 0; i < 10000; i++)
        count[att_image_set_class(test, i)]++;
    assert_memory_equal(count, counts, sizeof count);
    att_image_set_free(train);
    att_image_set_free(test);
}

/* ---- CIFAR-10 */

enum { RECORD = 3073 };

static void write_cifar(const char *name, int images, int first_label)
{
    static uint8_t record[RECORD];
    FILE *f = folder_open(&folder, name);
    for (int i = 0; i < images; i++) {
        record[0] = (uint8_t)(first_label + i);
        for (int k = 0; k < RECORD - 1; k++)
            record[1 + k] = (uint8_t)(k / 1024 * 50 + k % 32 + i);
        assert_int_equal(fwrite(record, 1, RECORD, f), RECORD);
    }
    assert_int_equal(fclose(f), 0);
}

static void write_batches(void)
{
    char name[32];
    for (int i = 1; i <= 5; i++) {
        snprintf(name, sizeof name, "data_batch_%d.bin", i);
        write_cifar(name, 2, i);
    }
    write_cifar("test_batch.bin", 3, 7);
    folder_write(&folder, "batches.meta.txt",
                 "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n");
}

static void cifar_batches_are_read(void **state)
{
    (void)state;
    static uint8_t pixels[32 * 32 * 3];
    write_batches();
    att_image_set *s = open_set(folder.path, ATT_IMAGE_SPLIT_TRAIN, NULL, 0);
    const att_image_set_info info = describe(s);
    assert_string_equal(info.format, "cifar-10");
    assert_int_equal(info.images, 10);
    assert_int_equal(info.classes, 10);
    assert_string_equal(att_image_set_label(s, 9), "truck");
    assert_int_equal(att_image_set_class(s, 9), 6); /* of batch 5, image 1 */
    for (int i = 0; i < 32 * 32 * 3; i++)
        pixels[i] = (uint8_t)(i % 3 * 50 + i / 3 % 32 + 1);
    assert_pixels(s, 9, 32, 32, 3, pixels);
    att_image_set_free(s);
    s = open_set(folder.path, ATT_IMAGE_SPLIT_TEST, NULL, 0);
    assert_int_equal(describe(s).images, 3);
    assert_int_equal(att_image_set_class(s, 2), 9);
    att_image_set_free(s);
}

/* A model's classes may be in another order. */
static void cifar_classes_follow_the_callers_labels(void **state)
{
    (void)state;
    static const char *const names[] = {"truck", "ship", "horse",      "frog",     "dog", "deer",
                                        "cat",   "bird", "automobile", "airplane", "owl"};
    write_batches();
    att_image_set *s = open_set(folder.path, ATT_IMAGE_SPLIT_TEST, names, 11);
    assert_int_equal(describe(s).classes, 11);
    assert_string_equal(att_image_set_label(s, att_image_set_class(s, 0)), "horse");
    att_image_set_free(s);
    assert_labeled_refused(ATT_IMAGE_SPLIT_TEST, names, 9,
                           "has the class \"airplane\", which is not one of the 9 labels");
}

static void damaged_cifar_batches_are_refused(void **state)
{
    (void)state;
    write_batches();
    write_file("data_batch_2.bin", "1234", 4);
    assert_refused(ATT_IMAGE_SPLIT_TRAIN, "data_batch_2.bin has 4 bytes, expected 3073 for each image");
    write_file("data_batch_2.bin", "", 0);
    assert_refused(ATT_IMAGE_SPLIT_TRAIN, "data_batch_2.bin has 0 bytes");
    write_cifar("data_batch_2.bin", 2, 9);
    assert_refused(ATT_IMAGE_SPLIT_TRAIN, "data_batch_2.bin has the label 10, expected 0 to 9");
    folder_write(&folder, "batches.meta.txt", "cat\ndog\n");
    assert_refused(ATT_IMAGE_SPLIT_TEST, "batches.meta.txt has 2 names of classes, expected 10");
}

/* ---- folders */

/* A PNG file of one gray level. */
static void write_png(const char *name, uint8_t level)
{
    uint8_t pixels[] = {level, level, level, level, level, level};
    att_image_bytes png;
    assert_int_equal(
        att_image_encode_png(ctx, &(att_image){.height = 2, .width = 3, .channels = 1, .pixels = pixels}, &png),
        ATT_OK);
    write_file(name, png.data, png.bytes);
    att_image_bytes_free(ctx, &png);
}

static void folders_are_read_in_the_order_of_bytes(void **state)
{
    (void)state;
    static const char *const expected[] = {"Zebra/1.png", "cat/B.PNG", "cat/a.png", "cat/more/c.png", "dog/1.png"};
    for (int i = 4; i >= 0; i--)
        write_png(expected[i], (uint8_t)(10 * i));
    folder_write(&folder, "README", "about this");
    folder_write(&folder, "cat/notes.txt", "");
    folder_write(&folder, "cat/.a.png", "a hidden file");
    att_image_set *s = open_set(folder.path, ATT_IMAGE_SPLIT_TEST, NULL, 0);
    const att_image_set_info info = describe(s);
    assert_string_equal(info.format, "folders");
    assert_int_equal(info.images, 5);
    assert_int_equal(info.classes, 3);
    assert_int_equal(info.height, 0);
    assert_int_equal(info.ignored, 2);
    for (int i = 0; i < 5; i++) {
        char path[256];
        uint8_t pixels[2 * 3 * 3];
        snprintf(path, sizeof path, "%s/%s", folder.path, expected[i]);
        assert_string_equal(att_image_set_path(s, i), path);
        memset(pixels, 10 * i, sizeof pixels);
        assert_pixels(s, i, 2, 3, 3, pixels);
    }
    assert_string_equal(att_image_set_label(s, 0), "Zebra");
    assert_int_equal(att_image_set_class(s, 4), 2);
    assert_null(att_image_set_path(s, 5));
    assert_null(att_image_set_label(s, 3));
    assert_int_equal(att_image_set_class(s, 5), -1);
    att_image_set_free(s);
}

static void parts_are_told_from_classes(void **state)
{
    (void)state;
    att_image_set *s;
    write_png("train/1.png", 1); /* a class of pictures of trains */
    write_png("test/1.png", 1);
    s = open_set(folder.path, ATT_IMAGE_SPLIT_TEST, NULL, 0);
    assert_int_equal(describe(s).classes, 2);
    att_image_set_free(s);
    write_png("train/cat/1.png", 1);
    write_png("train/dog/1.png", 1);
    write_png("train/dog/2.png", 1);
    write_png("test/dog/1.png", 1);
    s = open_set(folder.path, ATT_IMAGE_SPLIT_TRAIN, NULL, 0);
    assert_int_equal(describe(s).images, 3);
    assert_int_equal(describe(s).ignored, 1);
    att_image_set_free(s);
    s = open_set(folder.path, ATT_IMAGE_SPLIT_TEST, (const char *const[]){"cat", "dog"}, 2);
    assert_int_equal(describe(s).images, 1);
    assert_int_equal(att_image_set_class(s, 0), 1);
    att_image_set_free(s);
}

/* Not one class, "val", of all images */
static void a_part_without_its_other_one_is_no_class(void **state)
{
    (void)state;
    write_png("val/cat/1.png", 1);
    write_png("val/dog/1.png", 1);
    folder_write(&folder, "README", "about this");
    assert_refused(ATT_IMAGE_SPLIT_TRAIN, "has a part to test, but none to learn from: train");
    att_image_set *s = open_set(folder.path, ATT_IMAGE_SPLIT_TEST, NULL, 0);
    assert_int_equal(describe(s).classes, 2);
    att_image_set_free(s);
    write_png("owl/1.png", 1); /* beside classes it is one of them */
    s = open_set(folder.path, ATT_IMAGE_SPLIT_TRAIN, NULL, 0);
    assert_int_equal(describe(s).classes, 2);
    assert_string_equal(att_image_set_label(s, 1), "val");
    att_image_set_free(s);
}

static void other_names_of_the_test_part(void **state)
{
    (void)state;
    write_png("train/cat/1.png", 1);
    assert_refused(ATT_IMAGE_SPLIT_TEST, "has a part train, but none to test: test, val, valid or validation");
    write_png("validation/cat/1.png", 1);
    write_png("validation/cat/2.png", 1);
    att_image_set *s = open_set(folder.path, ATT_IMAGE_SPLIT_TEST, NULL, 0);
    assert_int_equal(describe(s).images, 2);
    att_image_set_free(s);
}

static void link_to(const char *target, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder.path, name);
    assert_int_equal(symlink(target, path), 0);
}

/* 12^6 paths lead to the last of seven folders, which two classes share. */
static void a_folder_counts_once_in_a_class_however_many_links_lead_to_it(void **state)
{
    enum { LEVELS = 7, LINKS = 12 };
    (void)state;
    char name[128], target[64];
    for (int level = 1; level <= LEVELS; level++) {
        snprintf(name, sizeof name, "cat/%d/%d.png", level, level);
        write_png(name, 1);
        for (int i = 0; i < LINKS && level < LEVELS; i++) {
            snprintf(name, sizeof name, "cat/%d/link%d", level, i);
            snprintf(target, sizeof target, "../%d", level + 1);
            link_to(target, name);
        }
    }
    write_png("dog/1.png", 1);
    link_to("../cat/1", "dog/too");
    att_image_set *s = open_set(folder.path, ATT_IMAGE_SPLIT_TRAIN, NULL, 0);
    assert_int_equal(describe(s).images, LEVELS + 1 + LEVELS);
    att_image_set_free(s);
    link_to("../../cat", "cat/7/up");
    assert_refused(ATT_IMAGE_SPLIT_TRAIN, "up is a link to a folder above it");
}

static void links_are_followed_with_care(void **state)
{
    (void)state;
    write_png("cat/1.png", 1);
    link_to("cat", "dog");
    link_to("1.png", "cat/2.png");
    att_image_set *s = open_set(folder.path, ATT_IMAGE_SPLIT_TRAIN, NULL, 0);
    assert_int_equal(describe(s).classes, 2);
    assert_int_equal(describe(s).images, 4);
    att_image_set_free(s);
    link_to("..", "cat/up");
    assert_refused(ATT_IMAGE_SPLIT_TRAIN, "cat/up is a link to a folder above it");
}

static void folders_without_images_are_refused(void **state)
{
    (void)state;
    assert_refused(ATT_IMAGE_SPLIT_TRAIN,
                   "has no folders; expected a folder for each class, with images (.jpg, .jpeg, .png");
    folder_write(&folder, "cat/notes.txt", "");
    assert_refused(ATT_IMAGE_SPLIT_TRAIN, "cat has no images (passed over: 1 .txt); expected a folder for each class");
    write_png("cat/1.png", 1);
    assert_labeled_refused(ATT_IMAGE_SPLIT_TRAIN, (const char *const[]){"dog", "owl"}, 2,
                           "has the class \"cat\", which is not one of the 2 labels: \"dog\", ...");
}

static void a_broken_image_is_an_error_when_it_is_read(void **state)
{
    (void)state;
    write_file("cat/1.png", "\x89PNG\r\n\x1a\n broken", 16);
    att_image_set *s = open_set(folder.path, ATT_IMAGE_SPLIT_TRAIN, NULL, 0);
    att_image image;
    assert_int_not_equal(att_image_set_read(s, 0, &image), ATT_OK);
    assert_null(image.pixels);
    assert_non_null(strstr(att_error(ctx), "cat/1.png"));
    att_image_set_free(s);
}

/* ---- holding out */

/* Of 1, 2, 3 and 40 images of a class, a share moves the nearest number, but not all and not none. */
static void each_class_is_held_out(void **state)
{
    (void)state;
    static const int images[] = {1, 2, 3, 40};
    static const struct {
        double share;
        int moved[4];
    } cases[] = {{0.05, {0, 1, 1, 2}}, {0.5, {0, 1, 2, 20}}, {0.9, {0, 1, 2, 36}}};
    char name[64];
    for (int c = 0; c < 4; c++)
        for (int i = 0; i < images[c]; i++) {
            snprintf(name, sizeof name, "class%d/%02d.png", c, i);
            write_png(name, (uint8_t)i);
        }
    for (int k = 0; k < 3; k++)
        for (uint64_t seed = 1; seed < 20; seed++) {
            att_image_set *s = open_set(folder.path, ATT_IMAGE_SPLIT_TRAIN, NULL, 0), *held;
            if (att_image_set_hold_out(s, cases[k].share, seed, &held))
                fail_msg("%s", att_error(ctx));
            int moved[4] = {0};
            for (int64_t i = 0; i < describe(held).images; i++)
                moved[att_image_set_class(held, i)]++;
            assert_memory_equal(moved, cases[k].moved, sizeof moved);
            assert_int_equal(describe(held).images + describe(s).images, 46);
            att_image_set_free(held);
            att_image_set_free(s);
        }
}

static void single_images_cannot_be_held_out(void **state)
{
    (void)state;
    att_image_set *held;
    write_png("cat/1.png", 1);
    write_png("dog/1.png", 1);
    att_image_set *s = open_set(folder.path, ATT_IMAGE_SPLIT_TRAIN, NULL, 0);
    assert_int_equal(att_image_set_hold_out(s, 0.9, 1, &held), ATT_ERR_ARGUMENT);
    check_message(ctx, "each of the 2 classes has at most one image, so none can be held out");
    assert_int_equal(att_image_set_hold_out(s, 1, 1, &held), ATT_ERR_ARGUMENT);
    check_message(ctx, "share is 1, not in (0, 1)");
    assert_int_equal(describe(s).images, 2);
    att_image_set_free(s);
}

static void opening_is_cancelled(void **state)
{
    (void)state;
    static const char *const read_first[] = {"/cat: cancelled", "/data_batch_1.bin: cancelled",
                                             "idx3-ubyte: cancelled"};
    for (int i = 0; i < 3; i++) {
        volatile int flag = 1;
        att_image_set *s;
        i == 0 ? write_png("cat/1.png", 1) : i == 1 ? write_batches() : write_idx("train");
        att_cancel_by(&flag);
        assert_int_equal(att_image_set_open(ctx, folder.path, ATT_IMAGE_SPLIT_TRAIN, NULL, 0, &s), ATT_ERR_CANCELLED);
        att_cancel_by(NULL);
        check_message(ctx, read_first[i]);
    }
}

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    att_image_set *s;
    write_idx("train");
    assert_labeled_refused(ATT_IMAGE_SPLIT_TRAIN, (const char *const[]){"a", NULL}, 2, "labels[1] is NULL");
    assert_refused((att_image_split)2, "split is 2");
    char path[256];
    snprintf(path, sizeof path, "%s/train-images-idx3-ubyte", folder.path);
    assert_int_equal(att_image_set_open(ctx, path, ATT_IMAGE_SPLIT_TRAIN, NULL, 0, &s), ATT_ERR_IO);
    assert_non_null(strstr(att_error(ctx), "is not a folder; expected one with"));
    assert_int_equal(att_image_set_open(ctx, "/nowhere", ATT_IMAGE_SPLIT_TRAIN, NULL, 0, &s), ATT_ERR_IO);
    assert_non_null(strstr(att_error(ctx), "/nowhere: No such file"));
    s = open_set(folder.path, ATT_IMAGE_SPLIT_TRAIN, NULL, 0);
    att_image image;
    assert_int_equal(att_image_set_read(s, 3, &image), ATT_ERR_ARGUMENT);
    assert_non_null(strstr(att_error(ctx), "i is 3, but there are 3 images"));
    att_image_set_free(s);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, new_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(idx_files_are_read),
        IN_FOLDER(packed_idx_files_are_read),
        IN_FOLDER(labels_of_the_caller_name_idx_classes),
        IN_FOLDER(hostile_idx_headers_are_refused),
        IN_FOLDER(idx_sizes_are_checked_before_memory_is_allocated),
        IN_FOLDER(idx_labels_must_fit_the_images),
        cmocka_unit_test(mnist_is_read),
        IN_FOLDER(cifar_batches_are_read),
        IN_FOLDER(cifar_classes_follow_the_callers_labels),
        IN_FOLDER(damaged_cifar_batches_are_refused),
        IN_FOLDER(folders_are_read_in_the_order_of_bytes),
        IN_FOLDER(parts_are_told_from_classes),
        IN_FOLDER(a_part_without_its_other_one_is_no_class),
        IN_FOLDER(other_names_of_the_test_part),
        IN_FOLDER(a_folder_counts_once_in_a_class_however_many_links_lead_to_it),
        IN_FOLDER(links_are_followed_with_care),
        IN_FOLDER(folders_without_images_are_refused),
        IN_FOLDER(a_broken_image_is_an_error_when_it_is_read),
        IN_FOLDER(each_class_is_held_out),
        IN_FOLDER(single_images_cannot_be_held_out),
        IN_FOLDER(wrong_arguments_are_refused),
        IN_FOLDER(opening_is_cancelled),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
