/* What does a model write about a picture, and where does each word come from?
 *
 *     cc caption.c $(pkg-config --cflags --libs attend_model) -o caption
 *     ./caption models/flickr8k-captions dog.jpg
 */
#include <attend_caption.h>
#include <stdio.h>
#include <stdlib.h>

/* The location that a word has most of, as row and column of the grid */
static void print_location(const float *weight, const int64_t grid[2])
{
    int64_t best = 0;
    for (int64_t i = 1; i < grid[0] * grid[1]; i++)
        best = weight[i] > weight[best] ? i : best;
    printf("row %d, column %d: %.4f", (int)(best / grid[1]), (int)(best % grid[1]), (double)weight[best]);
}

/* Finds the attention of each word: the last layer's, averaged over its heads. weight [locations] */
static att_status print_words(const att_caption_model *model, const att_image_caption *caption, const att_trace *trace,
                              const int64_t grid[2], float *weight)
{
    const int64_t cross = att_trace_find(trace, ATT_TRACE_SIDE_CROSS, -1);
    att_status s = ATT_OK;
    for (int64_t i = 0; i < caption->count && s == ATT_OK; i++) {
        s = att_trace_weights(trace, cross, -1, i, 1, weight);
        if (s != ATT_OK)
            break;
        printf("%-12s ", att_caption_model_word(model, caption->ids[i]));
        print_location(weight, grid);
        printf("\n");
    }
    return s;
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
    att_trace *trace = NULL;
    att_trace_info info = {.size = sizeof info};
    float *weight = NULL;
    int failed = 1;

    if (att_open(&ctx, NULL) != ATT_OK || att_model_find(argv[1], &folder) != ATT_OK ||
        att_caption_model_open(ctx, folder.text, NULL, &model) != ATT_OK ||
        att_image_open(ctx, argv[2], NULL, &image) != ATT_OK || att_caption(model, 1, &image, NULL, &caption) != ATT_OK)
        goto done;
    printf("%s\n", caption.text);
    if (att_caption_trace(model, &image, caption.ids, caption.count, NULL, &trace) != ATT_OK ||
        att_trace_describe(trace, &info) != ATT_OK)
        goto done;
    weight = malloc((size_t)(info.grid[0] * info.grid[1]) * sizeof *weight);
    if (!weight || print_words(model, &caption, trace, info.grid, weight) != ATT_OK)
        goto done;
    failed = 0;
done:
    if (failed)
        fprintf(stderr, "%s\n", att_error(ctx));
    free(weight);
    att_trace_free(trace);
    att_image_caption_free(ctx, &caption);
    att_image_free(ctx, &image);
    att_caption_model_free(model);
    att_close(ctx);
    return failed;
}
