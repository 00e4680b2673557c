/* Checks that the functions of a stage agree. Its formula is the definition, with which the other functions are
 * compared on random tiles of odd sizes, with every instruction set of this machine. */
#include "attn/verify.h"
#include "simd/isa.h"

/* Selects the n-th tile of a set with this size of a query tile. */
static void set_tile(att_verify_check *c, int n)
{
    const int panel = c->kernels->q_tile;
    const struct {
        int q0, queries, k0, keys;
    } tiles[] = {{3, panel - 1, 41, ATT_VERIFY_KEYS}, {0, 1, 0, 1}, {19, panel, 256, 8}, {55, 2, 17, 32}};
    c->block.q0 = tiles[n].q0;
    c->block.queries = tiles[n].queries;
    c->block.k0 = tiles[n].k0;
    c->block.keys = tiles[n].keys;
}
enum { TILES = 4 };

/* Checks stage i, where 0 is the score, on one tile. */
static att_status check_stage(const att_plan *plan, int isa, int i, int tile)
{
    const att_kernels *k = att_kernels_of(isa);
    att_verify_check c = {.ctx = plan->ctx,
                          .spec = &plan->spec,
                          .kernels = k,
                          .isa = att_isa_name(isa),
                          .any = ATT_VERIFY_ANY_EXTENT,
                          .random = (uint64_t)tile};
    att_status e = ATT_OK;
    c.vectors = att_vectors_of(k);
    c.block.head = att_verify_head_at(&plan->spec, tile % 2);
    set_tile(&c, tile);
    att_arena_init(&c.memory, plan->ctx);
    if (i == 0) {
        const att_builtin_score *builtin =
            att_builtin_score_of(plan->spec.score ? plan->spec.score : att_score_dot, isa);
        e = att_verify_score(&c, builtin ? &builtin->score : &plan->score, builtin && builtin->transforms);
    } else {
        const att_plan_modifier *of = &plan->modifiers.list[i - 1];
        const att_modifier *builtin = att_builtin_modifier_of(of->given, isa), *m = builtin ? builtin : &of->stage;
        e = att_verify_modifier(&c, m, of->value);
    }
    att_arena_free(&c.memory);
    return e;
}

att_status att_verify(att_ctx *ctx, const att_attention_spec *spec)
{
    att_plan *plan;
    att_status e = att_plan_new(ctx, spec, &plan);
    if (e)
        return e;
    for (int i = 0; !e && i <= plan->modifiers.n; i++)
        for (int isa = 0; !e && isa < att_isa_count(); isa++)
            for (int tile = 0; !e && tile < TILES && att_isa_usable(isa); tile++)
                e = check_stage(plan, isa, i, tile);
    for (int i = 0; !e && i < plan->masks.n; i++)
        e = att_verify_mask(plan, i);
    att_plan_free(plan);
    return e;
}
