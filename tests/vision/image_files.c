/* Images in folders: which files are images, which belong together, and what classes of unequal sizes get in an epoch.
 */
#include "fixtures/check.h"
#include "fixtures/folder_context.h"
#include "vision/image_order.h"

#include "attend_vision.h"

#include <string.h>
#include <unistd.h>

static void write_image(const char *name, uint8_t level)
{
    uint8_t pixels[] = {level};
    att_image_bytes png;
    assert_int_equal(
        att_image_encode_png(ctx, &(att_image){.height = 1, .width = 1, .channels = 1, .pixels = pixels}, &png),
        ATT_OK);
    FILE *f = folder_open(&folder, name);
    assert_int_equal(fwrite(png.data, 1, png.bytes, f), png.bytes);
    assert_int_equal(fclose(f), 0);
    att_image_bytes_free(ctx, &png);
}

/* ---- which files are images */

static void images_of_all_folders_are_listed_and_the_others_counted_by_kind(void **state)
{
    (void)state;
    static const char *const expected[] = {"2020/IMG_1.HEIC", "2020/b.png", "2021/deep/er/no_end", "a.jpg"};
    write_image("2020/b.png", 1);
    write_image("2020/IMG_1.HEIC", 2); /* by its content */
    write_image("2021/deep/er/no_end", 3);
    write_image("a.png_original", 4); /* a backup of exiftool */
    write_image(".hidden/c.png", 5);
    folder_write(&folder, "a.jpg", "not an image, which is known when it is decoded");
    folder_write(&folder, "2020/IMG_2.HEIC", "....ftypheic");
    folder_write(&folder, "2020/IMG_3.heic", "....ftypheic");
    folder_write(&folder, "2020/raw.NEF", "II*\0");
    folder_write(&folder, "notes.txt", "");
    folder_write(&folder, "2021/more.txt", "");
    folder_write(&folder, "2021/third.TXT", "");
    folder_write(&folder, "2021/README", "");
    folder_write(&folder, "2021/end. of a name", "");
    assert_int_equal(mkfifo(path_of("pipe.txt"), 0600), 0); /* which is not read */
    att_image_files *f;
    char path[256];
    snprintf(path, sizeof path, "%s//", folder.path);
    assert_int_equal(att_image_files_open(ctx, path, &f), ATT_OK);
    assert_int_equal(att_image_files_count(f), 4);
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", folder.path, expected[i]);
        assert_string_equal(att_image_files_path(f, i), path);
    }
    assert_null(att_image_files_path(f, 4));
    assert_null(att_image_files_path(f, -1));
    assert_string_equal(att_image_files_passed_over(f), "4 .txt, 2 .heic, 1 .nef, 3 others");
    att_image_files_free(f);
    assert_int_equal(symlink("..", path_of("2020/up")), 0);
    assert_int_equal(att_image_files_open(ctx, folder.path, &f), ATT_ERR_FORMAT);
    check_message(ctx, "2020/up is a link to a folder above it");
    assert_int_equal(att_image_files_open(ctx, path_of("nowhere"), &f), ATT_ERR_IO);
    check_message(ctx, "nowhere: No such file");
}

static void a_set_has_the_images_that_a_list_of_files_has(void **state)
{
    (void)state;
    att_image_set *s;
    att_image_set_info info = {.size = sizeof info};
    write_image("cat/2020/1.png", 1);
    write_image("cat/2020/2.heic", 1);
    write_image("dog/1.png", 1);
    folder_write(&folder, "dog/1.txt", "");
    folder_write(&folder, "list.csv", "");
    assert_int_equal(att_image_set_open(ctx, folder.path, ATT_IMAGE_SPLIT_TRAIN, NULL, 0, &s), ATT_OK);
    assert_int_equal(att_image_set_describe(s, &info), ATT_OK);
    assert_int_equal(info.images, 3);
    assert_int_equal(info.ignored, 2);
    assert_string_equal(info.passed_over, "1 .txt, 1 .csv");
    att_image_set_free(s);
}

/* ---- groups */

static const char *after_name(const att_image_set *s, int64_t i) { return strrchr(att_image_set_path(s, i), '/') + 1; }

/* 40 animals of two classes with 1 to 5 photos each: cat_A07_2.png */
static att_image_set *open_animals(void)
{
    att_image_set *s;
    for (int animal = 0; animal < 40; animal++)
        for (int photo = 0; photo < 1 + animal % 5; photo++) {
            char name[64];
            const char *class = animal % 4 ? "cat" : "toad";
            snprintf(name, sizeof name, "%s/%d/%s_A%02d_%d.png", class, 2020 + photo % 2, class, animal, photo);
            write_image(name, (uint8_t)animal);
        }
    assert_int_equal(att_image_set_open(ctx, folder.path, ATT_IMAGE_SPLIT_TRAIN, NULL, 0, &s), ATT_OK);
    return s;
}

static int64_t images_of(const att_image_set *s)
{
    att_image_set_info info = {.size = sizeof info};
    assert_int_equal(att_image_set_describe(s, &info), ATT_OK);
    return info.images;
}

static int animal_of(const att_image_set *s, int64_t i)
{
    int animal = -1;
    assert_int_equal(sscanf(strstr(after_name(s, i), "_A"), "_A%d", &animal), 1);
    return animal;
}

static void photos_of_an_animal_stay_together(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        att_image_set *s = open_animals(), *held;
        const int64_t all = images_of(s);
        int64_t alone = -1, classes[2] = {0};
        bool in[2][40] = {{false}};
        assert_int_equal(att_image_set_group(s, "_(A\\d+)_", &alone), ATT_OK);
        assert_int_equal(alone, 0);
        assert_int_equal(att_image_set_hold_out(s, 0.25, seed, &held), ATT_OK);
        assert_int_equal(images_of(s) + images_of(held), all);
        for (int part = 0; part < 2; part++)
            for (int64_t i = 0; i < images_of(part ? held : s); i++) {
                const att_image_set *of = part ? held : s;
                char name[8];
                in[part][animal_of(of, i)] = true;
                snprintf(name, sizeof name, "A%02d", animal_of(of, i));
                assert_string_equal(att_image_set_group_of(of, i), name);
                classes[att_image_set_class(of, i)] += part;
            }
        for (int animal = 0; animal < 40; animal++)
            assert_true(in[0][animal] != in[1][animal]);
        /* The greedy choice ends when no group brings the shares nearer, so each is at most half the largest group, of
         * 5 photos, from 90 * 0.25 cats and 30 * 0.25 toads. */
        assert_true(llabs(2 * classes[0] - 45) <= 5 && llabs(2 * classes[1] - 15) <= 5);
        att_image_set_free(held);
        att_image_set_free(s);
    }
}

static void groups_are_folders_or_matches(void **state)
{
    (void)state;
    att_image_set *s = open_animals(), *held;
    char expected[256];
    int64_t alone = -1;
    assert_null(att_image_set_group_of(s, 0));
    assert_int_equal(att_image_set_group(s, "folder", &alone), ATT_OK);
    snprintf(expected, sizeof expected, "%s/cat/2020", folder.path);
    assert_string_equal(att_image_set_group_of(s, 0), expected);
    assert_int_equal(att_image_set_group(s, "^[a-z]+/\\d+", NULL), ATT_OK); /* a whole match */
    assert_string_equal(att_image_set_group_of(s, 0), "cat/2020");
    assert_int_equal(att_image_set_group(s, "toad_(A\\d+)", &alone), ATT_OK);
    assert_int_equal(alone, 90);
    assert_string_equal(att_image_set_group_of(s, 0), att_image_set_path(s, 0));
    assert_int_equal(att_image_set_group(s, "_(A\\d+", &alone), ATT_ERR_ARGUMENT);
    check_message(ctx, "\"_(A\\d+\" is not a regular expression: missing closing parenthesis");
    assert_int_equal(att_image_set_group(s, "frog", &alone), ATT_ERR_ARGUMENT);
    check_message(ctx, "\"frog\" matches no image; the first is \"cat/2020/cat_A01_0.png\"");
    assert_null(att_image_set_group_of(s, 0));
    assert_int_equal(att_image_set_group(s, "(a*)*b(?<!a)", &alone), ATT_ERR_ARGUMENT); /* in bounded time */
    assert_int_equal(att_image_set_group(s, "^[a-z]+", NULL),
                     ATT_OK); /* a group of each class, which cannot be held out */
    assert_int_equal(att_image_set_hold_out(s, 0.25, 1, &held), ATT_ERR_ARGUMENT);
    check_message(ctx, "no group of images can be held out");
    att_image_set_free(s);
}

/* ---- balanced epochs */

/* Three classes of 2, 7 and 31 images, and a fourth without any, 40 images an epoch: 13 or 14 of each class. After
 * several epochs each image of a class was drawn as often as any other, or once more. */
static void each_class_gets_as_many_images_of_an_epoch(void **state)
{
    enum { IMAGES = 40, CLASSES = 4, EPOCHS = 9 };
    (void)state;
    int32_t class[IMAGES];
    int drawn[IMAGES] = {0}, sizes[CLASSES] = {2, 7, 0, 31}, repeated = 0;
    for (int i = 0; i < IMAGES; i++)
        class[i] = i % 20 == 3 ? 0 : i % 6 == 1 && i < 38 ? 1 : 3;
    int counts[CLASSES] = {0};
    for (int i = 0; i < IMAGES; i++)
        counts[class[i]]++;
    for (int c = 0; c < CLASSES; c++)
        sizes[c] = counts[c];
    att_image_order o, again;
    assert_int_equal(att_image_order_make(ctx, IMAGES, 8, 7, &o), ATT_OK);
    assert_int_equal(att_image_order_balance(&o, class, CLASSES), ATT_OK);
    assert_int_equal(att_image_order_make(ctx, IMAGES, 8, 7, &again), ATT_OK);
    assert_int_equal(att_image_order_balance(&again, class, CLASSES), ATT_OK);
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        int of[CLASSES] = {0}, here[IMAGES] = {0};
        assert_int_equal(att_image_order_begin(&o, epoch), IMAGES / 8);
        for (int i = 0; i < IMAGES; i++) {
            of[class[o.order[i]]]++;
            drawn[o.order[i]]++;
            here[o.order[i]]++;
        }
        for (int c = 0; c < CLASSES; c++)
            assert_true(sizes[c] == 0 ? of[c] == 0 : of[c] == 13 || of[c] == 14);
        for (int i = 0; i < IMAGES; i++)
            repeated += here[i] > 1;
        for (int c = 0, low, high; c < CLASSES; c++) {
            low = INT32_MAX, high = 0;
            for (int i = 0; i < IMAGES; i++)
                if (class[i] == c) {
                    low = drawn[i] < low ? drawn[i] : low;
                    high = drawn[i] > high ? drawn[i] : high;
                }
            assert_true(sizes[c] == 0 || high - low <= 1);
        }
        assert_int_equal(att_image_order_begin(&again, epoch), IMAGES / 8); /* whatever was drawn before */
        assert_memory_equal(o.order, again.order, sizeof(uint32_t) * IMAGES);
        assert_int_equal(att_image_order_begin(&again, EPOCHS - epoch), IMAGES / 8);
    }
    assert_true(repeated > 0);
    att_image_order_free(&o);
    att_image_order_free(&again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(images_of_all_folders_are_listed_and_the_others_counted_by_kind, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_set_has_the_images_that_a_list_of_files_has, set_up, tear_down),
        cmocka_unit_test_setup_teardown(photos_of_an_animal_stay_together, set_up, tear_down),
        cmocka_unit_test_setup_teardown(groups_are_folders_or_matches, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_class_gets_as_many_images_of_an_epoch, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
