/* A user-defined score with a parameter w of each head: s(q, k) = -w |q - k|^2 / 2, so near keys have larger weights.
 * The formula alone suffices; its derivative makes it trainable. As s = w (q . k - |q|^2 / 2 - |k|^2 / 2), two
 * functions for tiles let it run on the library's matrix product; files with such functions want -O3. */
#include <attend_extend.h>
#include <stdio.h>

static double difference(const att_pair *p, int64_t d) { return (double)p->query[d] - p->key[d]; }
static double formula(const att_pair *p)
{
    double s = 0;
    for (int64_t d = 0; d < p->dim; d++)
        s -= p->param[0].data[0] * difference(p, d) * difference(p, d) / 2;
    return s;
}
static void derivative(const att_pair *p, double ds, double *dq, double *dk, double *const *dparam)
{
    for (int64_t d = 0; d < p->dim; d++) {
        dq[d] -= ds * p->param[0].data[0] * difference(p, d);
        dk[d] += ds * p->param[0].data[0] * difference(p, d);
        if (dparam[0])
            dparam[0][0] -= ds * difference(p, d) * difference(p, d) / 2;
    }
}
static float half_square(const att_score_row *r) { return r->vectors->dot(r->dim, r->x, r->x) / 2; }
static void half_square_back(const att_score_row *r, float dterm, float *dx)
{
    for (int64_t d = 0; d < r->dim; d++)
        dx[d] += dterm * r->x[d];
}
static void tile(const att_score_tile *t) /* s: from q . k to scores */
{
    const float w = t->param[0].data[0];
    for (int j = 0; j < t->keys; j++)
        for (int64_t i = 0; i < t->columns; i++)
            t->s[j * t->stride + i] = w * (t->s[j * t->stride + i] - t->query_term[i] - t->key_term[j]);
}
static void tile_back(const att_score_tile *t) /* ds: from the gradient of scores to that of q . k */
{
    for (int j = 0; j < t->keys; j++) {
        float *s = t->s + j * t->stride, *ds = t->ds + j * t->stride, w = t->param[0].data[0], k = t->key_term[j];
        for (int64_t i = 0; i < t->columns; i++) {
            s[i] = ds[i] * (s[i] - t->query_term[i] - k);
            ds[i] *= w;
            t->dquery_term[i] -= ds[i];
        }
        if (t->param[0].grad)
            t->param[0].grad[0] += t->vectors->sum(t->queries, s);
        t->dkey_term[j] -= t->vectors->sum(t->queries, ds);
    }
}
static const att_score gaussian = {.size = sizeof(att_score),
                                   .name = "gaussian",
                                   .flags = ATT_STAGE_PRODUCT,
                                   .param = &(const att_param_shape){.name = "w"}, /* [heads or 1] */
                                   .n_params = 1,
                                   .formula = formula,
                                   .derivative = derivative,
                                   .tile = tile,
                                   .tile_back = tile_back,
                                   .term = half_square,
                                   .term_back = half_square_back};
int main(void)
{
    float x[4][2] = {{0, 0}, {0, 1}, {3, 0}, {3, 1}}, w[1] = {1}, out[4][2];
    const att_attention_spec *spec = ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = 2, .score = &gaussian);
    att_tensor width;
    att_attention_args args = {.size = sizeof args, .param = &width, .n_params = 1};
    att_ctx *ctx = NULL;
    att_wrap(&args.q, x, ATT_F32, ATT_DIMS(1, 1, 4, 2), NULL); /* [batch, heads, time, dim] */
    att_wrap(&args.out, out, ATT_F32, ATT_DIMS(1, 1, 4, 2), NULL);
    att_wrap(&width, w, ATT_F32, ATT_DIMS(1), NULL);
    args.k = args.v = args.q;
    const int failed = att_open(&ctx, NULL) || att_verify(ctx, spec) || att_attention(ctx, spec, &args);
    for (int i = 0; i < 4 && !failed; i++)
        printf("%.4f %.4f\n", out[i][0], out[i][1]);
    fprintf(stderr, "%s", failed ? att_error(ctx) : "");
    att_close(ctx);
    return failed;
}
