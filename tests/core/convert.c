/* att_tensor_convert: numbers of one view into another. */
#include "fixtures/check.h"

static void numbers_are_rounded_to_nearest_even(void **state)
{
    (void)state;
    static const struct {
        float x;
        uint16_t f16, bf16;
    } known[] = {{1, 0x3c00, 0x3f80},
                 {-2.5f, 0xc100, 0xc020},
                 {1 + 0x1p-11f, 0x3c00, 0x3f80},     /* half way: down to the even one */
                 {1 + 3 * 0x1p-11f, 0x3c02, 0x3f80}, /* half way: up to it */
                 {1 + 3 * 0x1p-8f, 0x3c0c, 0x3f82},  /* half way in bf16 */
                 {65504, 0x7bff, 0x4780},            /* the greatest of f16 */
                 {65520, 0x7c00, 0x4780},            /* rounds to infinity */
                 {0x1p-24f, 0x0001, 0x3380},         /* the least of f16 */
                 {-0.0f, 0x8000, 0x8000},
                 {INFINITY, 0x7c00, 0x7f80}};
    enum { N = sizeof known / sizeof known[0] };
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);) {
        float x[N];
        uint16_t codes[N];
        att_tensor from, to;
        for (int i = 0; i < N; i++)
            x[i] = known[i].x;
        att_wrap(&from, x, ATT_F32, ATT_DIMS(N), NULL);
        att_wrap(&to, codes, ATT_F16, ATT_DIMS(N), NULL);
        assert_int_equal(att_tensor_convert(ctx, &from, &to), ATT_OK);
        for (int i = 0; i < N; i++)
            assert_int_equal(codes[i], known[i].f16);
        to.dtype = ATT_BF16;
        assert_int_equal(att_tensor_convert(ctx, &from, &to), ATT_OK);
        for (int i = 0; i < N; i++)
            assert_int_equal(codes[i], known[i].bf16);
    }
}

/* Small whole numbers, which every type has exactly. */
static void put(void *at, att_dtype type, int value)
{
    const float f = (float)value;
    const uint16_t bf16 = (uint16_t)(check_float_bits(f) >> 16);
    static const uint16_t f16[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600}; /* 0 to 6 */
    const int32_t i32 = value;
    const int64_t i64 = value;
    const uint8_t byte = (uint8_t)value;
    const void *const from[] = {&f, &f16[value], &bf16, &i32, &i64, &byte, [ATT_I8] = &byte};
    memcpy(at, from[type], att_dtype_size(type));
}

/* Element (a, b, c) of [A, B, C], where it lies in one of the layouts: dense, turned, with gaps, backwards. */
enum { A = 3, B = 5, C = 2500, ALL = A * B * C, GAP = 2, N_LAYOUTS = 4 };
static const int64_t strides[N_LAYOUTS][3] = {{B * C, C, 1}, {1, A, A *B}, {B * C * GAP, C *GAP, GAP}, {-B * C, C, -1}};
static const int64_t starts[N_LAYOUTS] = {0, 0, 0, ALL - B *C + C - 1};

static void *at(char *memory, att_dtype type, int layout, int i)
{
    const int64_t *s = strides[layout];
    const int64_t offset = starts[layout] + i / (B * C) * s[0] + i / C % B * s[1] + i % C * s[2];
    return memory + offset * (int64_t)att_dtype_size(type);
}

static void compare(att_ctx *ctx, att_dtype from, int from_layout, att_dtype to, int to_layout)
{
    static _Alignas(8) char x[8 * GAP * ALL], y[8 * GAP * ALL], expected[8 * GAP * ALL];
    att_tensor in, out;
    memset(y, CHECK_CANARY, sizeof y);
    memset(expected, CHECK_CANARY, sizeof expected);
    for (int i = 0; i < ALL; i++) {
        put(at(x, from, from_layout, i), from, i % 7);
        put(at(expected, to, to_layout, i), to, i % 7);
    }
    att_wrap(&in, at(x, from, from_layout, 0), from, ATT_DIMS(A, B, C), strides[from_layout]);
    att_wrap(&out, at(y, to, to_layout, 0), to, ATT_DIMS(A, B, C), strides[to_layout]);
    assert_int_equal(att_tensor_convert(ctx, &in, &out), ATT_OK);
    if (memcmp(y, expected, sizeof y) != 0)
        fail_msg("%s in layout %d to %s in layout %d", att_dtype_name(from), from_layout, att_dtype_name(to),
                 to_layout);
}

static void any_strides_and_types_give_the_same_numbers(void **state)
{
    (void)state;
    static const att_dtype types[] = {ATT_F32, ATT_F16, ATT_BF16, ATT_I32, ATT_I64, ATT_BOOL, ATT_I8};
    enum { N_TYPES = sizeof types / sizeof types[0] };
    for (att_ctx *ctx = NULL; check_next_context(&ctx, 2);)
        for (int i = 0; i < N_TYPES * N_TYPES; i++) {
            const att_dtype from = types[i / N_TYPES], to = types[i % N_TYPES];
            for (int layout = 0; layout < N_LAYOUTS * N_LAYOUTS; layout += check_step(3))
                if (from == to || ((from <= ATT_BF16 || from == ATT_I8) && to <= ATT_BF16))
                    compare(ctx, from, layout / N_LAYOUTS, to, layout % N_LAYOUTS);
        }
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    float x[12];
    att_tensor a, b;
    att_ctx *ctx = check_open("scalar", 1);
    att_wrap(&a, x, ATT_F32, ATT_DIMS(2, 3), NULL);
    att_wrap(&b, x + 6, ATT_F32, ATT_DIMS(3, 2), NULL);
    assert_int_equal(att_tensor_convert(ctx, &a, &b), ATT_ERR_SHAPE);
    check_message(NULL, "out is [3, 2] but x is [2, 3]");
    att_wrap(&b, x + 6, ATT_I32, ATT_DIMS(2, 3), NULL);
    assert_int_equal(att_tensor_convert(ctx, &a, &b), ATT_ERR_DTYPE);
    check_message(NULL, "x is f32 and out is i32");
    att_wrap(&b, x + 6, ATT_I8, ATT_DIMS(2, 3), NULL);
    assert_int_equal(att_tensor_convert(ctx, &a, &b), ATT_ERR_DTYPE);
    check_message(NULL, "x is f32 and out is i8: only f32, f16, bf16 and quantized types can be converted to each "
                        "other, and i8 to them");
    att_wrap(&b, x + 5, ATT_F16, ATT_DIMS(2, 3), NULL);
    assert_int_equal(att_tensor_convert(ctx, &a, &b), ATT_ERR_ARGUMENT);
    check_message(NULL, "overlap");
    att_wrap(&b, x + 6, ATT_F32, ATT_DIMS(2, 3), (const int64_t[]){0, 1});
    assert_int_equal(att_tensor_convert(ctx, &a, &b), ATT_ERR_SHAPE);
    assert_int_equal(att_tensor_convert(ctx, &b, &a), ATT_OK); /* what is only read may repeat */
    assert_int_equal(att_tensor_convert(ctx, &a, NULL), ATT_ERR_ARGUMENT);
    att_wrap(&a, NULL, ATT_F32, ATT_DIMS(0, 3), NULL);
    att_wrap(&b, NULL, ATT_F16, ATT_DIMS(0, 3), NULL);
    assert_int_equal(att_tensor_convert(ctx, &a, &b), ATT_OK);
    att_wrap(&a, x, ATT_F32, 0, NULL, NULL);
    att_wrap(&b, x + 1, ATT_F32, 0, NULL, NULL);
    x[0] = 7;
    assert_int_equal(att_tensor_convert(ctx, &a, &b), ATT_OK);
    assert_true(x[1] == 7);
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_rounded_to_nearest_even),
        cmocka_unit_test(any_strides_and_types_give_the_same_numbers),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
