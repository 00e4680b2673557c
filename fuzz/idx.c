/* The input is a byte, the bytes of an IDX file of labels, as many as that states, and an IDX file of images; both
 * plain or packed by gzip. What is accepted must be readable to its end. */
#include "fuzz.h"

#include "attend_vision.h"

static void read_images(const att_image_set *s)
{
    att_image_set_info info = {.size = sizeof info};
    fuzz_check(!att_image_set_describe(s, &info), "an image set without a description");
    for (int64_t i = 0; i < info.images; i++) {
        att_image image;
        const int32_t class = att_image_set_class(s, i);
        fuzz_check(class >= 0 && class < info.classes && att_image_set_label(s, class), "a class without a label");
        fuzz_check(!att_image_set_read(s, i, &image), "an image that cannot be read");
        volatile uint8_t last = image.pixels[image.height * image.width * image.channels - 1];
        (void)last;
        att_image_free(fuzz_context(), &image);
    }
}

static void remove_files(void)
{
    static const char *const names[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", NULL};
    fuzz_remove(names);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    static bool registered;
    att_image_set *s;
    if (!registered)
        registered = !atexit(remove_files);
    if (size < 2 || size - 1 <= data[0])
        return 0;
    fuzz_write("train-labels-idx1-ubyte", (fuzz_section){data + 1, data[0]});
    fuzz_write("train-images-idx3-ubyte", (fuzz_section){data + 1 + data[0], size - 1 - data[0]});
    if (!att_image_set_open(fuzz_context(), fuzz_folder(), ATT_IMAGE_SPLIT_TRAIN, NULL, 0, &s))
        read_images(s);
    else
        fuzz_check(!s, "refused, but with a set");
    att_image_set_free(s);
    return 0;
}
