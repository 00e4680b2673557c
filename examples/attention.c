/* Attention on your own arrays: three words, each attends to all three.
 *
 *     cc attention.c $(pkg-config --cflags --libs attend) -o attention
 */
#include <attend.h>
#include <stdio.h>

int main(void)
{
    float words[3][3] = {{0.34f, 0.22f, 0.54f}, {0.53f, 0.34f, 0.98f}, {0.29f, 0.54f, 0.93f}}; /* Hello shiny sun */
    float context[3][3];
    att_attention_args args = {.size = sizeof args};
    att_wrap(&args.q, words, ATT_F32, ATT_DIMS(1, 1, 3, 3), NULL); /* [batch, heads, time, dim] */
    args.k = args.v = args.q;
    att_wrap(&args.out, context, ATT_F32, ATT_DIMS(1, 1, 3, 3), NULL);

    att_ctx *ctx = NULL;
    att_status status = att_open(&ctx, NULL);
    if (status == ATT_OK)
        status = att_attention(ctx, ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = 3, .scale = 1), &args);
    if (status != ATT_OK)
        fprintf(stderr, "%s\n", att_error(ctx));
    for (int i = 0; status == ATT_OK && i < 3; i++)
        printf("%.4f %.4f %.4f\n", context[i][0], context[i][1], context[i][2]);
    att_close(ctx);
    return status != ATT_OK;
}
