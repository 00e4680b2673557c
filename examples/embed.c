/* How similar are two sentences?
 *
 *     cc embed.c $(pkg-config --cflags --libs attend_model) -o embed
 *     ./embed all-MiniLM-L6-v2 "The cat sleeps." "A kitten naps."
 */
#include <attend_sentence.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: embed MODEL SENTENCE SENTENCE\n");
        return 2;
    }
    att_ctx *ctx = NULL;
    att_model_path folder; /* of the model with this name or path */
    att_sentence *model = NULL;
    att_sentence_info info = {.size = sizeof info};
    float *embedding = NULL; /* [2, info.dim] */
    int failed = 1;

    if (att_open(&ctx, NULL) != ATT_OK || att_model_find(argv[1], &folder) != ATT_OK ||
        att_sentence_open(ctx, folder.text, NULL, &model) != ATT_OK)
        goto done;
    att_sentence_describe(model, &info);
    embedding = malloc(2 * (size_t)info.dim * sizeof *embedding);
    if (!embedding || att_sentence_embed(model, 2, (const char *const *)argv + 2, NULL, NULL, embedding) != ATT_OK)
        goto done;

    float dot = 0; /* the cosine: MiniLM's embeddings have length 1 */
    for (int64_t i = 0; i < info.dim; i++)
        dot += embedding[i] * embedding[info.dim + i];
    printf("%.4f\n", dot);
    failed = 0;
done:
    if (failed)
        fprintf(stderr, "%s\n", att_error(ctx));
    free(embedding);
    att_sentence_free(model);
    att_close(ctx);
    return failed;
}
