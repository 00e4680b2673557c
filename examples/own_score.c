/* A user-defined score: s(q, k) = -|q - k|^2 / 2, so near keys have larger weights, as in a Gaussian kernel. The
 * formula alone suffices; its derivative makes it trainable, a function for tiles makes it fast. */
#include <attend_extend.h>
#include <stdio.h>

static double nearness(const att_pair *p)
{
    double s = 0;
    for (int64_t d = 0; d < p->dim; d++)
        s -= 0.5 * ((double)p->query[d] - p->key[d]) * ((double)p->query[d] - p->key[d]);
    return s;
}

static void derivative(const att_pair *p, double ds, double *dq, double *dk, double *const *dparam)
{
    (void)dparam; /* no parameters */
    for (int64_t d = 0; d < p->dim; d++) {
        dq[d] -= ds * ((double)p->query[d] - p->key[d]);
        dk[d] += ds * ((double)p->query[d] - p->key[d]);
    }
}

/* All pairs of a tile: s [keys][columns], a column for each query; query [dim][columns] has the same layout. */
static void tile(const att_score_tile *t)
{
    for (int j = 0; j < t->keys; j++)
        for (int64_t d = 0; d < t->dim; d++)
            for (int64_t i = 0; i < t->columns; i++) {
                const float x = t->query[d * t->columns + i] - t->key[j * t->key_stride + d];
                t->s[j * t->stride + i] = (d ? t->s[j * t->stride + i] : 0) - 0.5f * x * x;
            }
}

static const att_score near_score = {
    .size = sizeof(att_score), .name = "near", .formula = nearness, .derivative = derivative, .tile = tile};

int main(void)
{
    float x[4][2] = {{0, 0}, {0, 1}, {3, 0}, {3, 1}}, out[4][2], lse[4], dout[4][2] = {{1, 0}}, dq[4][2];
    const att_attention_spec *spec = ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = 2, .score = &near_score);
    att_attention_args args = {.size = sizeof args};
    att_attention_grads grads = {.size = sizeof grads};
    att_ctx *ctx = NULL;
    att_plan *plan = NULL;
    att_wrap(&args.q, x, ATT_F32, ATT_DIMS(1, 1, 4, 2), NULL); /* [batch, heads, time, dim] */
    att_wrap(&args.out, out, ATT_F32, ATT_DIMS(1, 1, 4, 2), NULL);
    att_wrap(&args.lse, lse, ATT_F32, ATT_DIMS(1, 1, 4), NULL);
    att_wrap(&grads.dout, dout, ATT_F32, ATT_DIMS(1, 1, 4, 2), NULL);
    att_wrap(&grads.dq, dq, ATT_F32, ATT_DIMS(1, 1, 4, 2), NULL);
    args.k = args.v = args.q;
    const int failed = att_open(&ctx, NULL) || att_verify(ctx, spec) || att_plan_new(ctx, spec, &plan) ||
                       att_forward(plan, &args) || att_backward(plan, &args, &grads);
    for (int i = 0; i < 4 && !failed; i++) /* dq: the derivative of out[0][0] */
        printf("%.4f %.4f   %.4f %.4f\n", out[i][0], out[i][1], dq[i][0], dq[i][1]);
    if (failed)
        fprintf(stderr, "%s\n", att_error(ctx));
    att_plan_free(plan);
    att_close(ctx);
    return failed;
}
