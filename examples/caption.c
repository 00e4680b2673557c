/* What does a model write about a picture, and where does each word come from?
 *
 *     cc caption.c $(pkg-config --cflags --libs attend_model) -o caption
 *     ./caption models/flickr8k-captions dog.jpg
 */
#include <attend_caption.h>
#include <stdio.h>

/* The location that a word has most of, as row and column of the grid */
static void print_location(const att_caption_attention *a, int64_t word)
{
    const int64_t locations = a->grid[0] * a->grid[1];
    const float *weight = a->weights + word * locations;
    int64_t best = 0;
    for (int64_t i = 1; i < locations; i++)
        best = weight[i] > weight[best] ? i : best;
    printf("row %d, column %d: %.4f", (int)(best / a->grid[1]), (int)(best % a->grid[1]), (double)weight[best]);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: caption MODEL IMAGE\n");
        return 2;
    }
    att_ctx *ctx = NULL;
    att_model_path folder; /* of the model with this name or path */
    att_caption_model *model = NULL;
    att_image image = {0};
    att_image_caption caption = {0};
    att_caption_attention attention = {0};
    int failed = 1;

    if (att_open(&ctx, NULL) != ATT_OK || att_model_find(argv[1], &folder) != ATT_OK ||
        att_caption_model_open(ctx, folder.text, NULL, &model) != ATT_OK ||
        att_image_open(ctx, argv[2], NULL, &image) != ATT_OK || att_caption(model, 1, &image, NULL, &caption) != ATT_OK)
        goto done;
    printf("%s\n", caption.text);
    if (att_caption_attend(model, &image, caption.ids, caption.count, &attention) != ATT_OK)
        goto done;
    for (int64_t i = 0; i < caption.count; i++) {
        printf("%-12s ", att_caption_model_word(model, caption.ids[i]));
        print_location(&attention, i);
        printf("\n");
    }
    failed = 0;
done:
    if (failed)
        fprintf(stderr, "%s\n", att_error(ctx));
    att_caption_attention_free(ctx, &attention);
    att_image_caption_free(ctx, &caption);
    att_image_free(ctx, &image);
    att_caption_model_free(model);
    att_close(ctx);
    return failed;
}
