/* Types of tensors in .gguf files. */
#include "io/gguf_types.h"
#include "io/gguf_blocks.h"

enum { F32 = 0, F16 = 1, Q4_0 = 2, Q4_1 = 3, Q8_0 = 8, BF16 = 30, BLOCK = 32 };

static const att_gguf_type types[] = {
    {"F32", F32, 1, 4, true},
    {"F16", F16, 1, 2, true},
    {"BF16", BF16, 1, 2, true},
    {"Q8_0", Q8_0, BLOCK, 34, true},
    {"Q4_0", Q4_0, BLOCK, 18, true},
    {"Q4_1", Q4_1, BLOCK, 20, true},
    {"Q5_0", 6, BLOCK, 22, true},
    {"Q5_1", 7, BLOCK, 24, true},
    {"Q8_1", 9, BLOCK, 40, false},
    {"Q2_K", 10, 256, 84, true},
    {"Q3_K", 11, 256, 110, true},
    {"Q4_K", 12, 256, 144, true},
    {"Q5_K", 13, 256, 176, true},
    {"Q6_K", 14, 256, 210, true},
    {"Q8_K", 15, 256, 292, false},
    {"IQ2_XXS", 16, 256, 66, false},
    {"IQ2_XS", 17, 256, 74, false},
    {"IQ3_XXS", 18, 256, 98, false},
    {"IQ1_S", 19, 256, 50, false},
    {"IQ4_NL", 20, BLOCK, 18, true},
    {"IQ3_S", 21, 256, 110, false},
    {"IQ2_S", 22, 256, 82, false},
    {"IQ4_XS", 23, 256, 136, true},
    {"I8", 24, 1, 1, false},
    {"I16", 25, 1, 2, false},
    {"I32", 26, 1, 4, false},
    {"I64", 27, 1, 8, false},
    {"F64", 28, 1, 8, false},
    {"IQ1_M", 29, 256, 56, false},
    {"TQ1_0", 34, 256, 54, false},
    {"TQ2_0", 35, 256, 66, false},
    {"MXFP4", 39, BLOCK, 17, false},
    {"NVFP4", 40, 64, 36, false},
    {"Q4_2", 4, 16, 10, false},
    {"Q4_3", 5, 16, 12, false},
    {"Q4_0_4_4", 31, BLOCK, 18, false},
    {"Q4_0_4_8", 32, BLOCK, 18, false},
    {"Q4_0_8_8", 33, BLOCK, 18, false},
    {"IQ4_NL_4_4", 36, BLOCK, 18, false},
    {"IQ4_NL_4_8", 37, BLOCK, 18, false},
    {"IQ4_NL_8_8", 38, BLOCK, 18, false},
};

const att_gguf_type *att_gguf_type_of(int number)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].number == number)
            return &types[i];
    return NULL;
}

/* Types that tensors have. Tensors of other types are unpacked (gguf_blocks.h), or refused when a file is opened. */
static const struct {
    int type;
    att_dtype dtype;
} dtypes[] = {{F32, ATT_F32}, {F16, ATT_F16}, {BF16, ATT_BF16}, {Q8_0, ATT_Q8_0}, {Q4_0, ATT_Q4_0}, {Q4_1, ATT_Q4_1}};

static att_dtype dtype_of(int type)
{
    size_t i = 0;
    while (dtypes[i].type != type)
        i++;
    return dtypes[i].dtype;
}

int att_gguf_type_number(att_dtype dtype)
{
    size_t i = 0;
    while (dtypes[i].dtype != dtype)
        i++;
    return dtypes[i].type;
}

att_status att_gguf_view(const att_gguf_tensor *t, att_tensor *out)
{
    return att_wrap(out, (void *)(uintptr_t)t->data, dtype_of(t->type), t->rank, t->dim, NULL);
}

att_status att_gguf_floats(att_ctx *ctx, const att_gguf_tensor *t, float *out)
{
    att_tensor from, to;
    if (att_gguf_is_packed(t->type)) {
        const att_gguf_type *type = att_gguf_type_of(t->type);
        att_gguf_unpack(type, t->elements / type->block, t->data, out);
        return ATT_OK;
    }
    att_status s = att_gguf_view(t, &from);
    s = s ? s : att_wrap(&to, out, ATT_F32, t->rank, t->dim, NULL);
    return s ? s : att_tensor_convert(ctx, &from, &to);
}

bool att_gguf_needs_unpacking(const att_gguf_tensor *t) { return att_gguf_is_packed(t->type); }
