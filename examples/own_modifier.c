/* A user-defined modifier with a parameter of each head, learned: s becomes s / t, t being a temperature. The formula
 * alone suffices; its derivative makes it trainable, and functions for tiles make it fast, in files compiled with -O3.
 * The program learns the temperature at which the first query's output is 1.5. */
#include <attend_extend.h>
#include <stdio.h>

static double formula(const att_pair *p, double s) { return s / p->param[0].data[0]; }

/* d (s / t) / dt = -s / t^2 */
static double derivative(const att_pair *p, double s, double ds, double *const *dparam)
{
    const double t = p->param[0].data[0];
    if (dparam[0])
        dparam[0][0] -= ds * s / (t * t);
    return 1 / t;
}

/* All pairs of a tile: s [keys][columns], a column for each query. */
static void tile(const att_modifier_tile *t)
{
    for (int j = 0; j < t->keys; j++)
        t->vectors->scale(t->columns, 1 / t->param[0].data[0], t->s + j * t->stride, t->s + j * t->stride);
}

static void tile_back(const att_modifier_tile *t)
{
    const float scale = 1 / t->param[0].data[0];
    for (int j = 0; j < t->keys; j++) {
        float *s = t->s + j * t->stride, *ds = t->ds + j * t->stride;
        for (int i = 0; i < t->queries; i++) /* a pair without a gradient, perhaps a masked one, may have NaN */
            s[i] = ds[i] == 0 ? 0 : s[i];
        if (t->param[0].grad)
            t->param[0].grad[0] -= scale * scale * t->vectors->dot(t->queries, s, ds);
        t->vectors->scale(t->columns, scale, ds, ds);
    }
}

static const att_param_shape param = {.name = "t"}; /* [heads or 1] */
static const att_modifier temperature = {.size = sizeof(att_modifier),
                                         .name = "temperature",
                                         .param = &param,
                                         .n_params = 1,
                                         .formula = formula,
                                         .derivative = derivative,
                                         .tile = tile,
                                         .tile_back = tile_back};

int main(void)
{
    float x[4][1] = {{2}, {1}, {0}, {-1}}, t[1] = {1}, dt[1], out[4][1], lse[4], dout[4][1] = {{0}};
    const att_attention_spec *spec =
        ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = 1, .scale = 1, ATT_STAGES({.modifier = &temperature}));
    att_tensor param_t, dparam_t;
    att_attention_args args = {.size = sizeof args, .param = &param_t, .n_params = 1};
    att_attention_grads grads = {.size = sizeof grads, .dparam = &dparam_t, .n_dparams = 1};
    att_ctx *ctx = NULL;
    att_plan *plan = NULL;
    att_wrap(&args.q, x, ATT_F32, ATT_DIMS(1, 1, 4, 1), NULL); /* [batch, heads, time, dim] */
    att_wrap(&args.out, out, ATT_F32, ATT_DIMS(1, 1, 4, 1), NULL);
    att_wrap(&args.lse, lse, ATT_F32, ATT_DIMS(1, 1, 4), NULL);
    att_wrap(&grads.dout, dout, ATT_F32, ATT_DIMS(1, 1, 4, 1), NULL);
    att_wrap(&param_t, t, ATT_F32, ATT_DIMS(1), NULL);
    att_wrap(&dparam_t, dt, ATT_F32, ATT_DIMS(1), NULL);
    args.k = args.v = args.q;
    int failed = att_open(&ctx, NULL) || att_verify(ctx, spec) || att_plan_new(ctx, spec, &plan);
    for (int step = 0; step < 200 && !failed; step++) {
        failed = att_forward(plan, &args);
        dout[0][0] = out[0][0] - 1.5f; /* the derivative of (out - 1.5)^2 / 2 */
        failed = failed || att_backward(plan, &args, &grads);
        t[0] -= dt[0];
    }
    printf("t = %.4f: the first query's output is %.4f\n", t[0], out[0][0]);
    if (failed)
        fprintf(stderr, "%s\n", att_error(ctx));
    att_plan_free(plan);
    att_close(ctx);
    return failed;
}
