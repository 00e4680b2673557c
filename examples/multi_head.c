/* Multi-head attention as a layer (PyTorch's MultiheadAttention): two sentences of different lengths in one batch,
 * without padding, causal, with gradients.
 *
 *     cc multi_head.c $(pkg-config --cflags --libs attend) -o multi_head */
#include <attend_nn.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH = 8, HEADS = 2, TOKENS = 5 };

/* Sentence 0 is rows 0 to 2 of x [TOKENS, WIDTH], sentence 1 is rows 3 and 4. */
static const int64_t offsets[] = {0, 3, TOKENS};

static void print_gradients(const att_nn_params *params)
{
    for (int64_t i = 0; i < att_nn_params_count(params); i++) {
        const char *name;
        const att_tensor *g = att_param_grad(att_nn_params_at(params, i, &name));
        const float *first = g->data;
        printf("%-24s %d x %d  %7.4f %7.4f ...\n", name, (int)g->dim[0], g->rank > 1 ? (int)g->dim[1] : 1,
               (double)first[0], (double)first[1]);
    }
}

/* Computes the batch, the second sentence alone, and gradients. */
static att_status apply(att_tape *t, const att_nn_attention *layer, const att_nn_params *params, const att_tensor *x)
{
    const att_attention_args args = {.size = sizeof args, .n_sequences = 2, .q_offsets = offsets};
    att_var *in = att_input(t, x);
    att_var *y = att_nn_attention_apply(t, layer, in, ATT_OPTIONS(att_nn_attention_call, .args = &args));
    att_var *second = att_slice(t, in, 0, offsets[1], offsets[2] - offsets[1]);
    att_var *alone = att_nn_attention_apply(t, layer, second, NULL); /* one sentence needs no offsets */
    att_tensor batch, one;
    att_status s = att_var_value(t, y, &batch);
    s = s ? s : att_var_value(t, alone, &one);
    s = s ? s : att_tape_backward(t, y, NULL); /* of the sum of y */
    if (s)
        return s;
    const float *rows = (const float *)batch.data + offsets[1] * WIDTH;
    printf("sentence 1 has %s bits alone\n", memcmp(rows, one.data, 2 * WIDTH * sizeof *rows) ? "other" : "the same");
    print_gradients(params);
    return s;
}

int main(void)
{
    float numbers[TOKENS * WIDTH];
    for (int i = 0; i < TOKENS * WIDTH; i++)
        numbers[i] = (float)(i % 7) / 7 - (float)(i % 3) / 3;
    att_ctx *ctx = NULL;
    att_nn_params *params = NULL;
    att_tape *t = NULL;
    att_tensor x;
    bool failed = att_open(&ctx, NULL) || att_nn_params_new(ctx, NULL, &params) ||
                  att_tape_new(ctx, ATT_OPTIONS(att_tape_config, .record = true), &t) ||
                  att_wrap(&x, numbers, ATT_F32, ATT_DIMS(TOKENS, WIDTH), NULL);
    const att_nn_attention *layer = att_nn_attention_new(
        params, "attention", ATT_OPTIONS(att_nn_attention_config, .width = WIDTH, .heads = HEADS, .causal = true));
    failed = failed || att_nn_params_status(params) || apply(t, layer, params, &x);
    if (failed)
        fprintf(stderr, "%s\n", att_error(ctx));
    att_tape_free(t);
    att_nn_params_free(params);
    att_close(ctx);
    return failed;
}
