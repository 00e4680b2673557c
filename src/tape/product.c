/* The matrix product for operations and backwards. */
#include "tape/tape.h"

att_status att_tape_product(att_tape *t, const att_matmul_args *args)
{
    const size_t mark = att_arena_mark(&t->arena);
    float *scratch = att_tape_scratch(t, att_matmul_scratch(t->ctx, args));
    if (scratch)
        att_matmul_strided(t->ctx, args, scratch);
    att_arena_release(&t->arena, mark);
    return scratch ? ATT_OK : ATT_ERR_MEMORY;
}
