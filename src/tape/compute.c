/* What linear layers compute in: f32 or bf16. */
#include "simd/isa.h"
#include "tape/tape.h"

static const char *const names[] = {
    [ATT_COMPUTE_F32] = "f32", [ATT_COMPUTE_BF16] = "bf16", [ATT_COMPUTE_AUTO] = "auto"};
enum { COMPUTES = sizeof names / sizeof names[0] };

const char *att_compute_name(att_compute c) { return (unsigned)c < COMPUTES ? names[c] : NULL; }

/* Returns whether products of bf16 are faster than those of f32. */
static bool is_faster(const att_ctx *ctx, const att_bf16_gemm_kernels *k)
{
    return k && (k == &att_kernels_of(ctx->isa)->bf16_gemm_tiles || !att_isa_pairs_are_slow());
}

att_status att_tape_choose_compute(att_ctx *ctx, att_compute wanted, att_compute *out)
{
    const att_bf16_gemm_kernels *k = wanted == ATT_COMPUTE_F32 ? NULL : att_bf16_gemm_of(ctx);
    if (!att_compute_name(wanted))
        return att_fail(ctx, ATT_ERR_ARGUMENT, "compute is %d, expected an att_compute", (int)wanted);
    if (wanted == ATT_COMPUTE_BF16 && !k)
        return att_fail(ctx, ATT_ERR_UNSUPPORTED,
                        "compute is bf16, but instruction set \"%s\" does not multiply it, only avx512bf16 and amx do: "
                        "choose f32 or auto",
                        att_isa_name(ctx->isa));
    const bool bf16 = wanted == ATT_COMPUTE_AUTO ? is_faster(ctx, k) : wanted == ATT_COMPUTE_BF16;
    *out = bf16 ? ATT_COMPUTE_BF16 : ATT_COMPUTE_F32;
    return ATT_OK;
}

att_status att_compute_choose(att_ctx *ctx, att_compute wanted, att_compute *out)
{
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    const att_status s = att_tape_choose_compute(ctx, wanted, out);
    const att_kernels *k = att_kernels_of(ctx->isa);
    if (!s && wanted != ATT_COMPUTE_F32 && k->bf16_gemm_tiles.run && att_bf16_gemm_of(ctx) == &k->bf16_gemm)
        att_note(ctx, "the system refuses AMX tiles to this process: products are computed in vectors of %s",
                 att_compute_name(*out));
    return s;
}

att_compute att_tape_compute(const att_tape *t) { return t && t->bf16 ? ATT_COMPUTE_BF16 : ATT_COMPUTE_F32; }

bool att_tape_in_bf16(const att_tape *t, const att_param *weight)
{
    const att_dtype type = att_param_value(weight)->dtype;
    return t->bf16 && (type == ATT_F32 || type == ATT_F16 || type == ATT_BF16);
}
