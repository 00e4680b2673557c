/* A published language model (a folder of GPT-2, Llama, Qwen3 or the like with config.json, model.safetensors and
 * tokenizer.json) continues a text; each piece is printed when it is there.
 *
 *     cc generate.c $(pkg-config --cflags --libs attend_model) -o generate && ./generate FOLDER "The capital of France
 * is"
 */
#include <attend_language.h>
#include <stdio.h>
#include <string.h>

static bool print(void *user, const att_generated_token *token)
{
    (void)user;
    fwrite(token->text, 1, token->bytes, stdout);
    return fflush(stdout) == 0; /* false ends the text */
}

int main(int n, char **argument)
{
    att_ctx *ctx = NULL;
    att_text_generator *g = NULL;
    att_tokens prompt = {0};
    att_generated text = {0};
    if (n != 3)
        return fprintf(stderr, "usage: generate FOLDER TEXT\n"), 2;
    att_status s = att_open(&ctx, NULL);
    s = s ? s : att_text_generator_open(ctx, argument[1], NULL, &g);
    s = s ? s : att_tokenize(att_text_generator_tokenizer(g), argument[2], strlen(argument[2]), NULL, &prompt);
    if (!s) {
        const int64_t offsets[] = {0, prompt.count};
        printf("%s", argument[2]);
        s = att_generate(g, 1, prompt.ids, offsets, ATT_OPTIONS(att_generate_options, .max_tokens = 24, .token = print),
                         &text);
        printf("\n");
    }
    if (s)
        fprintf(stderr, "%s\n", att_error(ctx));
    att_generated_free(ctx, &text);
    att_tokens_free(ctx, &prompt);
    att_text_generator_free(g);
    att_close(ctx);
    return s != ATT_OK;
}
