/* Types of tensors in .gguf files. */
#include "io/gguf_types.h"

/* Types of tensors first, then others, which are refused when a file is opened. */
static const att_gguf_type types[] = {
    {"F32", 0, true, ATT_F32},
    {"F16", 1, true, ATT_F16},
    {"BF16", 30, true, ATT_BF16},
    {"Q8_0", 8, true, ATT_Q8_0},
    {"Q4_0", 2, true, ATT_Q4_0},
    {"Q4_1", 3, true, ATT_Q4_1},
    {"Q5_0", 6, true, ATT_Q5_0},
    {"Q5_1", 7, true, ATT_Q5_1},
    {"Q2_K", 10, true, ATT_Q2_K},
    {"Q3_K", 11, true, ATT_Q3_K},
    {"Q4_K", 12, true, ATT_Q4_K},
    {"Q5_K", 13, true, ATT_Q5_K},
    {"Q6_K", 14, true, ATT_Q6_K},
    {"IQ4_NL", 20, true, ATT_IQ4_NL},
    {"IQ4_XS", 23, true, ATT_IQ4_XS},
    {"Q8_1", 9, false, 0},
    {"Q8_K", 15, false, 0},
    {"IQ2_XXS", 16, false, 0},
    {"IQ2_XS", 17, false, 0},
    {"IQ3_XXS", 18, false, 0},
    {"IQ1_S", 19, false, 0},
    {"IQ3_S", 21, false, 0},
    {"IQ2_S", 22, false, 0},
    {"I8", 24, false, 0},
    {"I16", 25, false, 0},
    {"I32", 26, false, 0},
    {"I64", 27, false, 0},
    {"F64", 28, false, 0},
    {"IQ1_M", 29, false, 0},
    {"TQ1_0", 34, false, 0},
    {"TQ2_0", 35, false, 0},
    {"MXFP4", 39, false, 0},
    {"NVFP4", 40, false, 0},
    {"Q4_2", 4, false, 0},
    {"Q4_3", 5, false, 0},
    {"Q4_0_4_4", 31, false, 0},
    {"Q4_0_4_8", 32, false, 0},
    {"Q4_0_8_8", 33, false, 0},
    {"IQ4_NL_4_4", 36, false, 0},
    {"IQ4_NL_4_8", 37, false, 0},
    {"IQ4_NL_8_8", 38, false, 0},
};

const att_gguf_type *att_gguf_type_of(int number)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].number == number)
            return &types[i];
    return NULL;
}

int att_gguf_type_number(att_dtype dtype)
{
    size_t i = 0;
    while (types[i].dtype != dtype)
        i++;
    return types[i].number;
}

att_status att_gguf_view(const att_gguf_tensor *t, att_tensor *out)
{
    return att_wrap(out, (void *)(uintptr_t)t->data, att_gguf_type_of(t->type)->dtype, t->rank, t->dim, NULL);
}
