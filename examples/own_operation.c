/* A user-defined operation with its gradient: the Huber loss (Huber 1964; PyTorch's huber_loss), the mean of
 * d^2 / 2 where |d| <= delta and delta (|d| - delta / 2) elsewhere, d = x - target. It fits a line to points, nearly
 * independent of the one that is far off. */
#include <attend_optimizer.h>
#include <math.h>
#include <stdio.h>

/* x: values and targets of one shape -> y [1]; user: delta */
static att_status huber(const void *user, const att_tensor *x, const att_tensor *y)
{
    const float *value = x[0].data, *target = x[1].data, delta = *(const float *)user;
    float sum = 0;
    for (int64_t i = 0; i < x[0].dim[0]; i++) {
        const float d = fabsf(value[i] - target[i]);
        sum += d <= delta ? d * d / 2 : delta * (d - delta / 2);
    }
    *(float *)y->data = sum / (float)x[0].dim[0];
    return ATT_OK;
}

/* Adds to the gradients; that of a constant, such as the targets, is not wanted. */
static att_status huber_back(const void *user, const att_tensor *x, const att_tensor *y, const att_tensor *dy,
                             const att_tensor *dx)
{
    (void)y;
    const float *value = x[0].data, *target = x[1].data, delta = *(const float *)user;
    float *dvalue = dx[0].data, *dtarget = dx[1].data;
    for (int64_t i = 0; i < x[0].dim[0]; i++) {
        const float d = fmaxf(-delta, fminf(value[i] - target[i], delta));
        const float slope = *(float *)dy->data * d / (float)x[0].dim[0];
        if (dvalue)
            dvalue[i] += slope;
        if (dtarget)
            dtarget[i] -= slope;
    }
    return ATT_OK;
}

static const att_function huber_loss = {
    .size = sizeof(att_function), .name = "huber", .forward = huber, .backward = huber_back};

int main(void)
{
    float x[8][1] = {{-2}, {-1.5f}, {-1}, {-0.5f}, {0.5f}, {1}, {1.5f}, {2}};
    float y[8][1] = {{-3}, {-2}, {-1}, {0}, {2}, {3}, {4}, {-9}}; /* 2 x + 1, but for the last */
    float weight[1][1] = {{0}}, bias[1] = {0}, delta = 0.1f;
    att_tensor points[2], view; /* x, y */
    att_ctx *ctx = NULL;
    att_tape *t = NULL;
    att_param *w = NULL, *b = NULL;
    att_optimizer *o = NULL;
    att_wrap(&points[0], x, ATT_F32, ATT_DIMS(8, 1), NULL);
    att_wrap(&points[1], y, ATT_F32, ATT_DIMS(8, 1), NULL);
    int failed = att_open(&ctx, NULL) || att_verify_function(ctx, &huber_loss, &delta, points, 2, ATT_DIMS(1)) ||
                 att_wrap(&view, weight, ATT_F32, ATT_DIMS(1, 1), NULL) || att_param_new(ctx, &view, &w) ||
                 att_wrap(&view, bias, ATT_F32, ATT_DIMS(1), NULL) || att_param_new(ctx, &view, &b) ||
                 att_tape_new(ctx, ATT_OPTIONS(att_tape_config, .record = true), &t) ||
                 att_optimizer_new(ctx, NULL, &o) || att_optimizer_add(o, w, NULL) || att_optimizer_add(o, b, NULL);
    for (int step = 0; !failed && step < 500; step++) {
        att_var *line = att_linear(t, att_constant(t, &points[0]), w, b, ATT_ACTIVATION_IDENTITY, NULL);
        att_var *const of[] = {line, att_constant(t, &points[1])};
        att_var *loss = att_apply(t, &huber_loss, &delta, sizeof delta, of, 2, ATT_DIMS(1));
        failed = att_tape_backward(t, loss, NULL) ||
                 att_optimizer_step(o, ATT_OPTIONS(att_update, .rate = 0.02 * (500 - step) / 500), NULL);
        att_tape_reset(t);
    }
    if (failed)
        fprintf(stderr, "%s\n", att_error(ctx));
    else
        printf("y = %.1f x + %.1f\n", weight[0][0], bias[0]);
    att_optimizer_free(o);
    att_tape_free(t);
    att_param_free(w);
    att_param_free(b);
    att_close(ctx);
    return failed;
}
