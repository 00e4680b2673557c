/* A Transformer of one's own learns whether the first token of a text comes again; its weights are written and read.
 *     cc train_classifier.c $(pkg-config --cflags --libs attend_model) -o train_classifier */
#include <attend_model.h>
#include <stdio.h>

enum { TOKENS = 10, LENGTH = 8, TEXTS = 128, WIDTH = 32, LAYERS = 2, STEPS = 200, HELD_OUT = 1000 };

static const att_nn_embedding *token, *position;
static const att_nn_encoder_layer *layer[LAYERS];
static const att_nn_linear *output;

/* Makes the model, with weights of a file or, if it is NULL, random ones. */
static att_status make(att_ctx *ctx, att_safetensors *file, att_nn_params **p)
{
    const att_nn_params_config from = {.size = sizeof from, .load = file ? att_safetensors_load : NULL, .user = file};
    const att_nn_layer_config c = {.size = sizeof c, .width = WIDTH, .heads = 4, .intermediate = 64};
    const att_status s = att_nn_params_new(ctx, &from, p);
    token = att_nn_embedding_new(*p, "token", TOKENS, WIDTH);
    position = att_nn_embedding_new(*p, "position", LENGTH, WIDTH);
    for (int i = 0; i < LAYERS; i++)
        layer[i] = att_nn_encoder_layer_new(*p, att_nn_number("layer", i).text, &c);
    output = att_nn_linear_new(*p, "output", WIDTH, 2, NULL);
    return s ? s : att_nn_params_status(*p); /* the first error of all these */
}

/* Makes a training step on a batch of random texts or, if o is NULL, counts how many are classified correctly. */
static att_status step(att_tape *t, uint32_t seed, att_optimizer *o)
{
    int32_t ids[TEXTS * LENGTH], classes[TEXTS] = {0}, right = 0;
    int64_t offsets[TEXTS + 1] = {0};
    for (int i = 0; i < TEXTS * LENGTH; i++) {
        ids[i] = (int32_t)((seed = seed * 1664525 + 1013904223) >> 16) % TOKENS;
        classes[i / LENGTH] |= i % LENGTH > 0 && ids[i] == ids[i - i % LENGTH];
        offsets[i / LENGTH + 1] = i + 1;
    }
    const att_attention_args args = {.size = sizeof args, .n_sequences = TEXTS, .q_offsets = offsets};
    att_var *x = att_nn_embedding_apply(t, token, ids, TEXTS * LENGTH);
    x = att_learned_positions(t, x, position->weight, ATT_OPTIONS(att_positions, .offsets = offsets, .n = TEXTS));
    for (int i = 0; i < LAYERS; i++)
        x = att_nn_encoder_layer_apply(t, layer[i], x, ATT_OPTIONS(att_nn_layer_call, .args = &args));
    x = att_nn_linear_apply(t, output, att_pool(t, x, offsets, TEXTS, ATT_POOLING_CLS, 0), ATT_ACTIVATION_IDENTITY,
                            NULL);
    att_tensor logits; /* [TEXTS, 2] */
    att_status s = att_var_value(t, x, &logits);
    for (int i = 0; !s && i < TEXTS; i++)
        right += (((float *)logits.data)[2 * i] < ((float *)logits.data)[2 * i + 1]) == classes[i];
    if (!s && !o)
        printf("%d of %d texts right\n", right, TEXTS);
    s = s || !o ? s : att_tape_backward(t, att_cross_entropy(t, x, classes, NULL), NULL);
    s = s || !o ? s : att_optimizer_step(o, ATT_OPTIONS(att_update, .rate = 2e-3, .clip = 1), NULL);
    att_tape_reset(t);
    return s;
}

int main(void)
{
    att_ctx *ctx = NULL;
    att_nn_params *params = NULL, *read = NULL;
    att_tape *t = NULL;
    att_optimizer *o = NULL;
    att_safetensors *file = NULL;
    bool failed = att_open(&ctx, NULL) || make(ctx, NULL, &params) ||
                  att_tape_new(ctx, ATT_OPTIONS(att_tape_config, .record = true), &t) ||
                  att_optimizer_new(ctx, ATT_OPTIONS(att_optimizer_config, .weight_decay = 0.01), &o) ||
                  att_nn_params_optimize(params, o);
    for (uint32_t i = 0; !failed && i < STEPS; i++)
        failed = step(t, i, o);
    failed = failed || step(t, HELD_OUT, NULL) || att_safetensors_write_params(ctx, "own.safetensors", params, NULL) ||
             att_safetensors_open(ctx, "own.safetensors", &file) || make(ctx, file, &read) || step(t, HELD_OUT, NULL);
    if (failed)
        fprintf(stderr, "%s\n", att_error(ctx));
    att_optimizer_free(o);
    att_tape_free(t);
    att_nn_params_free(params);
    att_nn_params_free(read);
    att_safetensors_free(file);
    att_close(ctx);
    return failed;
}
