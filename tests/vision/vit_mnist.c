/* A small vision Transformer that others have trained on MNIST, after its names are mapped: it reads 97.9 % of the test
 * set. Skipped where its weights or the images are absent. */
// labels: trains
#include "attend_vision.h"
#include "fixtures/context.h"
#include "fixtures/folder.h"
#include "fixtures/real_files.h"

#include <math.h>

enum { HIDDEN = 64, LAYERS = 6, HEADS = 8, SIDE = 28, CLASSES = 10, BATCH = 200 };

/* Its settings, as those of timm; the classifier has two layers, which the test applies. */
static const char config[] =
    "{\"architecture\": \"vit_tiny_patch16_224\", \"num_classes\": 0, \"pretrained_cfg\": {\"input_size\": [1, 28, "
    "28]},"
    " \"model_args\": {\"embed_dim\": 64, \"depth\": 6, \"num_heads\": 8, \"mlp_ratio\": 2, \"patch_size\": 7,"
    " \"qkv_bias\": false, \"final_norm\": false}}";

/* Names of timm and of the file; '*' is a layer's number. */
static const char *const names[][2] = {
    {"cls_token", "cls_token"},
    {"pos_embed", "pos_embedding"},
    {"patch_embed.proj.weight", "patch_to_embedding.weight"},
    {"patch_embed.proj.bias", "patch_to_embedding.bias"},
    {"blocks.*.norm1.weight", "transformer.layers.*.0.fn.norm.weight"},
    {"blocks.*.norm1.bias", "transformer.layers.*.0.fn.norm.bias"},
    {"blocks.*.attn.qkv.weight", "transformer.layers.*.0.fn.fn.to_qkv.weight"},
    {"blocks.*.attn.proj.weight", "transformer.layers.*.0.fn.fn.to_out.weight"},
    {"blocks.*.attn.proj.bias", "transformer.layers.*.0.fn.fn.to_out.bias"},
    {"blocks.*.norm2.weight", "transformer.layers.*.1.fn.norm.weight"},
    {"blocks.*.norm2.bias", "transformer.layers.*.1.fn.norm.bias"},
    {"blocks.*.mlp.fc1.weight", "transformer.layers.*.1.fn.fn.net.0.weight"},
    {"blocks.*.mlp.fc1.bias", "transformer.layers.*.1.fn.fn.net.0.bias"},
    {"blocks.*.mlp.fc2.weight", "transformer.layers.*.1.fn.fn.net.2.weight"},
    {"blocks.*.mlp.fc2.bias", "transformer.layers.*.1.fn.fn.net.2.bias"},
};
enum { NAMES = sizeof names / sizeof names[0], MAX_TENSORS = NAMES * LAYERS };

static void check(att_status s)
{
    if (s)
        fail_msg("%s", att_error(ctx));
}

/* Writes the name with a number instead of '*'; false: it has none. */
static bool numbered(char out[100], const char *name, int number)
{
    const char *star = strchr(name, '*');
    snprintf(out, 100, "%.*s%d%s", star ? (int)(star - name) : 0, name, number, star ? star + 1 : "");
    if (!star)
        snprintf(out, 100, "%s", name);
    return star != NULL;
}

/* Its scores are divided by the root of the whole width instead of a head's: queries carry the quotient. */
static void scale_queries(att_tensor *qkv, float *copy)
{
    const int64_t all = qkv->dim[0] * qkv->dim[1];
    const float *x = qkv->data, factor = sqrtf((float)(HIDDEN / HEADS)) / sqrtf((float)HIDDEN);
    for (int64_t i = 0; i < all; i++)
        copy[i] = i < all / 3 ? x[i] * factor : x[i];
    qkv->data = copy;
}

static test_folder map_names(const att_safetensors *file)
{
    static float copies[LAYERS][3 * HIDDEN * HIDDEN];
    static char name[MAX_TENSORS][100];
    static const char *list[MAX_TENSORS];
    static att_tensor tensor[MAX_TENSORS];
    const test_folder folder = folder_new();
    char theirs[100], path[128];
    int n = 0;
    for (int i = 0; i < NAMES; i++)
        for (int layer = 0; layer < LAYERS; layer++, n++) {
            numbered(theirs, names[i][1], layer);
            list[n] = name[n];
            check(att_safetensors_get(file, theirs, &tensor[n]));
            if (strstr(names[i][0], "qkv"))
                scale_queries(&tensor[n], copies[layer]);
            if (strstr(names[i][0], "patch_embed.proj.weight")) /* pixels of a patch, by rows */
                check(att_wrap(&tensor[n], tensor[n].data, ATT_F32, 4, (const int64_t[]){HIDDEN, 1, 7, 7}, NULL));
            if (!numbered(name[n], names[i][0], layer))
                layer = LAYERS;
        }
    folder_write(&folder, "config.json", config);
    snprintf(path, sizeof path, "%s/model.safetensors", folder.path);
    check(att_safetensors_write(ctx, path, n, list, tensor, NULL));
    return folder;
}

/* Images [first, first + BATCH) -> x, normalized by the mean and deviation of MNIST's pixels */
static void read_batch(const att_image_set *set, int64_t first, float *x)
{
    for (int64_t i = 0; i < BATCH; i++) {
        att_image image;
        check(att_image_set_read(set, first + i, &image));
        assert_int_equal(image.channels, 1);
        for (int p = 0; p < SIDE * SIDE; p++)
            x[i * SIDE * SIDE + p] = ((float)image.pixels[p] / 255 - 0.1307f) / 0.3081f;
        att_image_free(ctx, &image);
    }
}

static int64_t right_answers(const att_vit *m, att_param *const head[4], const att_image_set *set)
{
    static float x[BATCH * SIDE * SIDE];
    att_image_set_info info = {.size = sizeof info};
    att_tensor images, y;
    att_tape *t;
    int64_t right = 0;
    check(att_image_set_describe(set, &info));
    assert_int_equal(info.images, 10000);
    check(att_wrap(&images, x, ATT_F32, 4, (const int64_t[]){BATCH, SIDE, SIDE, 1}, NULL));
    check(att_tape_new(ctx, NULL, &t));
    for (int64_t first = 0; first < info.images; first += BATCH) {
        read_batch(set, first, x);
        att_var *h = att_vit_features(t, m, att_input(t, &images), NULL);
        h = att_linear(t, h, head[0], head[1], ATT_ACTIVATION_GELU_ERF, NULL);
        check(att_var_value(t, att_linear(t, h, head[2], head[3], ATT_ACTIVATION_IDENTITY, NULL), &y));
        for (int64_t i = 0; i < BATCH; i++) {
            const float *logits = (const float *)y.data + i * CLASSES;
            int best = 0;
            for (int c = 1; c < CLASSES; c++)
                best = logits[c] > logits[best] ? c : best;
            right += best == att_image_set_class(set, first + i);
        }
        att_tape_reset(t);
    }
    att_tape_free(t);
    return right;
}

static void it_reads_979_of_1000_digits(void **state)
{
    (void)state;
    static const char *const head_names[] = {"mlp_head.0.weight", "mlp_head.0.bias", "mlp_head.2.weight",
                                             "mlp_head.2.bias"};
    char digits[MAX_FILE_NAME];
    att_param *head[4];
    att_safetensors *file;
    att_image_set *set;
    att_tensor value;
    att_vit *m;
    const char *path = data_file("mnist");
    snprintf(digits, sizeof digits, "%s", path ? path : "");
    path = data_file("models/vit_small/vit_mnist.safetensors");
    if (!path || !*digits) {
        print_message("skipped: there is no mnist or models/vit_small/vit_mnist.safetensors in ATTEND_DATA\n");
        skip();
    }
    check(att_safetensors_open(ctx, path, &file));
    check(att_image_set_open(ctx, digits, ATT_IMAGE_SPLIT_TEST, NULL, 0, &set));
    const test_folder folder = map_names(file);
    check(att_vit_open(ctx, folder.path, NULL, &m));
    for (int i = 0; i < 4; i++) {
        check(att_safetensors_get(file, head_names[i], &value));
        check(att_param_new(ctx, &value, &head[i]));
    }
    const int64_t right = right_answers(m, head, set);
    print_message("%lld of 10000 digits\n", (long long)right);
    assert_in_range(right, 9780, 9800);
    for (int i = 0; i < 4; i++)
        att_param_free(head[i]);
    att_vit_free(m);
    folder_remove(&folder);
    att_image_set_free(set);
    att_safetensors_free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_reads_979_of_1000_digits)};
    return cmocka_run_group_tests(tests, open_context, close_context);
}
