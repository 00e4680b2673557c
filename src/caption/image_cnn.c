#include "caption/image_cnn.h"

#include <stdio.h>

static att_nn_name part(int64_t stage, const char *name, int i)
{
    att_nn_name n;
    snprintf(n.text, sizeof n.text, "encoder.%lld.%s%d", (long long)stage, name, i);
    return n;
}

void att_image_cnn_build(att_image_cnn *m, att_nn_params *p, int64_t in, const int64_t *channels, int64_t stages)
{
    m->stages = stages;
    for (int64_t s = 0; s < stages; s++)
        for (int i = 0; i < 2; i++) {
            const att_nn_conv_config conv = {.size = sizeof conv,
                                             .in = i || s ? channels[i ? s : s - 1] : in,
                                             .out = channels[s],
                                             .kernel = {3, 3},
                                             .padding = {1, 1},
                                             .no_bias = true};
            m->stage[s].conv[i] = att_nn_conv_new(p, part(s, "conv", i).text, &conv);
            m->stage[s].norm[i] = att_nn_batch_norm_new(p, part(s, "norm", i).text, channels[s], 0);
        }
}

/* Returns ReLU(BatchNorm(conv(x))). */
static att_var *convolve(att_tape *t, const att_image_cnn_stage *s, int i, att_var *x, bool training)
{
    x = att_nn_batch_norm_apply(t, s->norm[i], att_nn_conv_apply(t, s->conv[i], x),
                                ATT_OPTIONS(att_batch_norm_options, .training = training));
    return att_activate(t, x, ATT_ACTIVATION_RELU);
}

att_var *att_image_cnn_apply(att_tape *t, const att_image_cnn *m, att_var *images, bool training)
{
    const att_pool_options pool = {.size = sizeof pool, .kernel = {2, 2}};
    att_var *x = images;
    for (int64_t s = 0; s < m->stages; s++) {
        x = att_pool2d(t, convolve(t, &m->stage[s], 0, x, training), ATT_POOLING_MAX, &pool);
        x = att_add(t, x, convolve(t, &m->stage[s], 1, x, training));
    }
    return x;
}
