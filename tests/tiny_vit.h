/* Folders of tiny vision Transformers, written for a test: those of tests/golden/make_vit.py. */
#ifndef TINY_VIT_H
#define TINY_VIT_H

#include "attend_vision.h"
#include "context.h"
#include "golden_text.h"
#include "tiny_model.h"

#define TINY_VIT_GOLDEN "tests/golden/vit.txt"

/* Their names there */
static const char *const tiny_vits[] = {
    "vit",           "vit_oblong",     "vit_model",      "deit",         "deit_distilled",    "dinov2",
    "dinov2_larger", "dinov2_model",   "dinov2_giant",   "registers",    "registers_smaller", "timm_vit",
    "timm_mean",     "timm_deit",      "timm_distilled", "timm_deit3",   "timm_gap",          "timm_reg4",
    "timm_so150m2",  "timm_registers", "timm_no_norm",   "timm_no_norm", "timm_giant",        "own_stem",
    "own_cls",       "own_patches"};
enum { N_VITS = sizeof tiny_vits / sizeof tiny_vits[0] };

static inline const char *tiny_vit_key(const char *name, const char *what)
{
    static char key[80];
    snprintf(key, sizeof key, "%s.%s", name, what);
    return key;
}

/* Puts the tensors of the list that how->model is: NAME:DIMENSIONxDIMENSION ... */
static inline void tiny_put_vit(tiny_file *f)
{
    for (const char *at = f->how->model; *at && *at != '\n';) {
        char name[100];
        int64_t dim[4];
        int rank = 0, used = 0;
        assert_int_equal(sscanf(at, "%99[^:]:%n", name, &used), 1);
        at += used;
        for (char *end; rank == 0 || *at++ == 'x'; at = end)
            dim[rank++] = strtoll(at, &end, 10);
        tiny_put_shape(f, name, rank, dim);
    }
}

/* how or NULL: as it should be */
static inline test_folder tiny_vit_folder(const char *name, const tiny_weights *how)
{
    const test_folder folder = folder_new();
    tiny_weights weights = how ? *how : (tiny_weights){0};
    folder_write(&folder, "config.json", golden_words(TINY_VIT_GOLDEN, tiny_vit_key(name, "config")));
    weights.model = golden_words(TINY_VIT_GOLDEN, tiny_vit_key(name, "tensors"));
    tiny_write_tensors(&folder, &weights, tiny_put_vit);
    return folder;
}

static inline att_vit *tiny_vit_open(const test_folder *folder, bool trainable)
{
    att_vit *m;
    if ((trainable ? att_vit_open_for_training : att_vit_open)(ctx, folder->path, &m))
        fail_msg("%s", att_error(ctx));
    return m;
}

enum { TINY_VIT_PIXELS = 4096, TINY_VIT_NUMBERS = 4096 };

/* Images of the golden file, or others of the same formula */
typedef struct tiny_images {
    float pixel[TINY_VIT_PIXELS];
    att_tensor tensor;
} tiny_images;

static inline void tiny_images_make(tiny_images *x, int64_t n, int64_t height, int64_t width, int64_t channels)
{
    assert_true(n * height * width * channels <= TINY_VIT_PIXELS);
    for (int64_t i = 0; i < n * height * width * channels; i++)
        x->pixel[i] = tiny_number("images", (uint64_t)i);
    assert_int_equal(att_wrap(&x->tensor, x->pixel, ATT_F32, 4, (const int64_t[]){n, height, width, channels}, NULL),
                     ATT_OK);
}

static inline void tiny_images_of(tiny_images *x, const char *name)
{
    double size[4];
    assert_int_equal(golden_line(TINY_VIT_GOLDEN, tiny_vit_key(name, "images"), size, 4), 4);
    tiny_images_make(x, (int64_t)size[0], (int64_t)size[1], (int64_t)size[2], (int64_t)size[3]);
}

/* att_vit_apply, att_vit_features or att_vit_logits */
typedef att_var *(*tiny_vit_function)(att_tape *t, const att_vit *m, att_var *images, const att_vit_options *options);

/* -> out [TINY_VIT_NUMBERS]; the number of results */
static inline int64_t tiny_vit_apply(const att_vit *m, tiny_vit_function f, const att_tensor *images, float *out)
{
    att_tape *t;
    att_tensor y;
    assert_int_equal(att_tape_new(ctx, NULL, &t), ATT_OK);
    if (att_var_value(t, f(t, m, att_input(t, images), NULL), &y))
        fail_msg("%s", att_error(ctx));
    const int64_t n = y.dim[0] * y.dim[1];
    assert_int_equal(y.rank, 2);
    assert_true(n <= TINY_VIT_NUMBERS);
    memcpy(out, y.data, (size_t)n * sizeof *out);
    att_tape_free(t);
    return n;
}

#endif
