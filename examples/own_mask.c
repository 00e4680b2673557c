/* A user-defined mask: time steps attend within blocks of equal length. `keep` alone suffices; `cover` allows whole
 * tiles to be skipped or computed without a mask, `bits` evaluates a tile at once. */
#include <attend_extend.h>
#include <stdio.h>

static const int64_t length = 3; /* a mask's `user` points to it */

static int64_t block_of(const att_mask_block *b, int64_t time) { return time / *(const int64_t *)b->user; }

static bool keep(const att_mask_block *b) { return block_of(b, b->q) == block_of(b, b->k); }

static att_cover cover(const att_mask_block *b)
{
    const int64_t q = block_of(b, b->q), last_q = block_of(b, b->q + b->queries - 1);
    const int64_t k = block_of(b, b->k), last_k = block_of(b, b->k + b->keys - 1);
    if (k > last_q || last_k < q)
        return ATT_COVER_EMPTY;
    return q == last_q && k == q && last_k == q ? ATT_COVER_FULL : ATT_COVER_PARTIAL;
}

static void bits(const att_mask_block *b, uint64_t *bits)
{
    for (int64_t j = 0; j < b->keys; j++) {
        bits[j] = 0;
        for (int64_t i = 0; i < b->queries; i++)
            bits[j] |= (uint64_t)(block_of(b, b->q + i) == block_of(b, b->k + j)) << i;
    }
}

static const att_mask block_mask = {
    .size = sizeof(att_mask), .name = "block", .user = &length, .keep = keep, .cover = cover, .bits = bits};

int main(void)
{
    float x[6][2] = {{1, 0}, {0, 1}, {1, 1}, {1, 0}, {0, 1}, {2, 2}}, out[6][2], lse[6], dout[6][2] = {{1, 0}},
          dv[6][2];
    const att_attention_spec *spec =
        ATT_OPTIONS(att_attention_spec, .heads = 1, .head_dim = 2, ATT_STAGES({.mask = &block_mask}));
    att_attention_args args = {.size = sizeof args};
    att_attention_grads grads = {.size = sizeof grads};
    att_ctx *ctx = NULL;
    att_plan *plan = NULL;
    att_wrap(&args.q, x, ATT_F32, ATT_DIMS(1, 1, 6, 2), NULL); /* [batch, heads, time, dim] */
    att_wrap(&args.out, out, ATT_F32, ATT_DIMS(1, 1, 6, 2), NULL);
    att_wrap(&args.lse, lse, ATT_F32, ATT_DIMS(1, 1, 6), NULL);
    att_wrap(&grads.dout, dout, ATT_F32, ATT_DIMS(1, 1, 6, 2), NULL);
    att_wrap(&grads.dv, dv, ATT_F32, ATT_DIMS(1, 1, 6, 2), NULL);
    args.k = args.v = args.q;
    const int failed = att_open(&ctx, NULL) || att_verify(ctx, spec) || att_plan_new(ctx, spec, &plan) ||
                       att_forward(plan, &args) || att_backward(plan, &args, &grads);
    for (int i = 0; i < 6 && !failed; i++) /* dv: the weight of each time step in out[0] */
        printf("%.4f %.4f   %.4f\n", out[i][0], out[i][1], dv[i][0]);
    if (failed)
        fprintf(stderr, "%s\n", att_error(ctx));
    att_plan_free(plan);
    att_close(ctx);
    return failed;
}
