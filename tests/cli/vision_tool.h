/* For tests of the tool on images: tiny models, in the folder of tool.h. */
#ifndef VISION_TOOL_H
#define VISION_TOOL_H

#include "tiny_vit.h"
#include "tool.h"

/* The tiny model of this name (tests/golden/make_vit.py), for images of 12 x 12 pixels, in a folder that the variable
 * names. */
static inline test_folder vision_model(const char *name, const char *variable)
{
    const test_folder made = tiny_vit_folder(name, NULL);
    test_folder f;
    folder_write(&made, "preprocessor_config.json",
                 "{\"image_processor_type\": \"ViTImageProcessor\", \"size\": {\"height\": 12, \"width\": 12}, "
                 "\"resample\": 2, \"do_resize\": true, \"do_rescale\": true, \"do_normalize\": true, "
                 "\"image_mean\": [0.5, 0.5, 0.5], \"image_std\": [0.5, 0.5, 0.5]}");
    snprintf(f.path, sizeof f.path, "%.30s/%.20s", tool_model.path, name);
    assert_int_equal(rename(made.path, f.path), 0);
    setenv(variable, f.path, 1);
    return f;
}

/* The classifier $V, an image dot.png, and $G, the folder of golden images */
static inline test_folder vision_setup(void)
{
    char *golden = realpath("tests/golden/images", NULL);
    assert_non_null(golden);
    setenv("G", golden, 1);
    free(golden);
    assert_int_equal(tool("cp $G/rgb.png dot.png"), 0);
    return vision_model("vit", "V");
}

#endif
