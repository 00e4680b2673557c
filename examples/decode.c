/* Incremental decoding: causal layers are applied to a prompt and then to one token after the other, with a cache of
 * keys and values, and give the same bits as one pass over all tokens.
 *
 *     cc decode.c $(pkg-config --cflags --libs attend) -o decode */
#include <attend_nn.h>
#include <stdio.h>
#include <string.h>

enum { LAYERS = 2, WIDTH = 32, TOKENS = 12, PROMPT = 5 };

static const att_nn_encoder_layer *layer[LAYERS];
static att_cache *cache[LAYERS]; /* of the tokens so far, one for each layer */

static att_status make(att_ctx *ctx, att_nn_params **params)
{
    const att_rotary_options rotary = {.size = sizeof rotary};
    const att_nn_attention_config attention = {
        .size = sizeof attention, .width = WIDTH, .heads = 4, .kv_heads = 2, .causal = true, .rotary = &rotary};
    const att_nn_layer_config c = {.size = sizeof c,
                                   .width = WIDTH,
                                   .intermediate = 64,
                                   .activation = ATT_ACTIVATION_SILU,
                                   .gated = true,
                                   .no_bias = true,
                                   .order = ATT_NN_ORDER_PRE_NORM,
                                   .norm = ATT_NN_NORM_RMS,
                                   .attention = &attention};
    att_status s = att_nn_params_new(ctx, NULL, params);
    for (int i = 0; !s && i < LAYERS; i++)
        layer[i] = att_nn_encoder_layer_new(*params, att_nn_number("layer", i).text, &c);
    s = s ? s : att_nn_params_status(*params);
    for (int i = 0; !s && i < LAYERS; i++)
        s = att_cache_new(layer[i]->attention->plan, 1, &cache[i]);
    return s;
}

/* Applies all layers to tokens x [n, WIDTH] -> y [n, WIDTH]; cached: after those that are in the caches. */
static att_status apply(att_tape *t, int n, float *x, bool cached, float *y)
{
    att_tensor in, out;
    att_wrap(&in, x, ATT_F32, ATT_DIMS(n, WIDTH), NULL);
    att_var *v = att_constant(t, &in);
    for (int i = 0; i < LAYERS; i++)
        v = att_nn_encoder_layer_apply(t, layer[i], v,
                                       ATT_OPTIONS(att_nn_layer_call, .cache = cached ? cache[i] : NULL));
    const att_status s = att_var_value(t, v, &out);
    if (!s)
        memcpy(y, out.data, (size_t)n * WIDTH * sizeof *y);
    att_tape_reset(t);
    return s;
}

int main(void)
{
    float x[TOKENS][WIDTH], whole[TOKENS][WIDTH], y[TOKENS][WIDTH];
    for (int i = 0; i < TOKENS * WIDTH; i++)
        x[i / WIDTH][i % WIDTH] = (float)(i % 13) / 7 - (float)(i % 5) / 3;
    att_ctx *ctx = NULL;
    att_nn_params *params = NULL;
    att_tape *t = NULL;
    bool failed = att_open(&ctx, NULL) || make(ctx, &params) || att_tape_new(ctx, NULL, &t) ||
                  apply(t, TOKENS, x[0], false, whole[0]);
    for (int i = 0, n = PROMPT; !failed && i < TOKENS; i += n, n = 1)
        failed = apply(t, n, x[i], true, y[i]);
    if (failed)
        fprintf(stderr, "%s\n", att_error(ctx));
    else
        printf("a prompt of %d tokens, then %d one by one, %lld in the cache: %s bits as in one pass\n", PROMPT,
               TOKENS - PROMPT, (long long)att_cache_length(cache[0], 0),
               memcmp(whole, y, sizeof y) ? "other" : "the same");
    for (int i = 0; i < LAYERS; i++)
        att_cache_free(cache[i]);
    att_tape_free(t);
    att_nn_params_free(params);
    att_close(ctx);
    return failed;
}
