/* What is on a picture?
 *
 *     cc classify.c $(pkg-config --cflags --libs attend_model) -o classify
 *     ./classify vit-base-patch16-224 cat.jpg
 */
#include <attend_vision.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: classify MODEL IMAGE\n");
        return 2;
    }
    att_ctx *ctx = NULL;
    att_model_path folder; /* of the model with this name or path */
    att_image_model *model = NULL;
    att_image image = {0};
    att_vit_info info = {.size = sizeof info};
    float *probability = NULL; /* [info.classes] */
    int failed = 1;

    if (att_open(&ctx, NULL) != ATT_OK || att_model_find(argv[1], &folder) != ATT_OK ||
        att_image_model_open(ctx, folder.text, NULL, &model) != ATT_OK ||
        att_image_open(ctx, argv[2], NULL, &image) != ATT_OK)
        goto done;
    att_vit_describe(att_image_model_vit(model), &info);
    probability = malloc((size_t)(info.classes + 1) * sizeof *probability);
    if (!probability || att_image_classify(model, 1, &image, NULL, probability) != ATT_OK)
        goto done;

    int64_t best = 0;
    for (int64_t i = 1; i < info.classes; i++)
        best = probability[i] > probability[best] ? i : best;
    printf("%s %.4f\n", att_image_model_label(model, best), probability[best]);
    failed = 0;
done:
    if (failed)
        fprintf(stderr, "%s\n", att_error(ctx));
    free(probability);
    att_image_free(ctx, &image);
    att_image_model_free(model);
    att_close(ctx);
    return failed;
}
