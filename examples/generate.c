/* A published language model (a folder of GPT-2, Llama, Mistral, Qwen3 or the like with config.json, model.safetensors
 * and tokenizer.json) continues a text, token by token: the most probable one each time.
 *
 *     cc generate.c $(pkg-config --cflags --libs attend_model) -o generate && ./generate FOLDER "The capital of France
 * is"
 */
#include <attend_language.h>
#include <stdio.h>
#include <string.h>

/* The most probable token after ids [n], which follow what the state has. */
static att_status next_token(att_tape *t, const att_language_model *m, att_language_state *state, const int32_t *ids,
                             int64_t n, int32_t *next)
{
    const int64_t offsets[] = {0, n};
    att_tensor logits;
    const att_status s = att_var_value(t, att_language_model_apply(t, m, ids, offsets, 1, state, true), &logits);
    *next = 0;
    for (int64_t i = 1; !s && i < logits.dim[1]; i++)
        if (((float *)logits.data)[i] > ((float *)logits.data)[*next])
            *next = (int32_t)i;
    att_tape_reset(t);
    return s;
}

int main(int n, char **argument)
{
    enum { MORE = 24 };
    att_ctx *ctx = NULL;
    att_tokenizer *tokenizer = NULL;
    att_language_model *m = NULL;
    att_language_state *state = NULL;
    att_tape *t = NULL;
    att_tokens prompt = {0};
    att_text text = {0};
    int32_t more[MORE], *ids = NULL;
    if (n != 3)
        return fprintf(stderr, "usage: generate FOLDER TEXT\n"), 2;
    att_status s = att_open(&ctx, NULL);
    s = s ? s : att_tokenizer_open(ctx, argument[1], &tokenizer);
    s = s ? s : att_language_model_open(ctx, argument[1], &m);
    s = s ? s : att_language_state_new(m, 1, ATT_F32, &state);
    s = s ? s : att_tape_new(ctx, NULL, &t);
    s = s ? s : att_encode(tokenizer, argument[2], strlen(argument[2]), NULL, &prompt);
    ids = prompt.ids;
    for (int i = 0; !s && i < MORE; i++, ids = &more[i - 1])
        s = next_token(t, m, state, ids, i ? 1 : prompt.count, &more[i]);
    s = s ? s : att_detokenize(tokenizer, more, MORE, &text);
    if (s)
        fprintf(stderr, "%s\n", att_error(ctx));
    else
        printf("%s%s\n", argument[2], text.text);
    att_text_free(tokenizer, &text);
    att_tokens_free(tokenizer, &prompt);
    att_tape_free(t);
    att_language_state_free(state);
    att_language_model_free(m);
    att_tokenizer_free(tokenizer);
    att_close(ctx);
    return s != ATT_OK;
}
