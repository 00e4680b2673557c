/* The .gguf reader: values and dequantized tensors as the `gguf` package has them, damaged files. */
#include "fixtures/check.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/tokenizer.h"

#include "io/gguf.h"

#include <stdlib.h>

enum { LARGEST = 1 << 16, N_TENSORS = 6, ELEMENTS = 3 * 64 };

/* tests/golden/tiny.gguf, 8-byte aligned */
static size_t read_golden(unsigned char *to)
{
    FILE *f = fopen("tests/golden/tiny.gguf", "rb");
    assert_non_null(f);
    const size_t n = fread(to, 1, LARGEST, f);
    fclose(f);
    assert_true(n > 1000 && n < LARGEST);
    return n;
}

static void values_are_those_that_were_written(void **state)
{
    (void)state;
    static const double numbers[] = {0.5, -1.5, 3};
    att_gguf *g;
    att_byte_view text[4];
    double x[3];
    if (att_gguf_open(ctx, "tests/golden/tiny.gguf", &g))
        fail_msg("%s", att_error(ctx));
    assert_int_equal(att_gguf_int(g, "a.u8", 0, 255), 200);
    assert_int_equal(att_gguf_int(g, "a.i8", -128, 0), -100);
    assert_int_equal(att_gguf_int(g, "a.u16", 0, 1 << 16), 60000);
    assert_int_equal(att_gguf_int(g, "a.i16", -(1 << 15), 0), -30000);
    assert_int_equal(att_gguf_int(g, "a.u32", 0, INT64_MAX), 4000000000);
    assert_int_equal(att_gguf_int(g, "a.i32", INT32_MIN, 0), -2000000000);
    assert_int_equal(att_gguf_int(g, "a.u64", 0, INT64_MAX), INT64_C(1) << 40);
    assert_int_equal(att_gguf_int(g, "a.i64", INT64_MIN, 0), -(INT64_C(1) << 40));
    assert_true(att_gguf_number(g, "a.f32", 0) == (double)0.1f);
    assert_true(att_gguf_number(g, "a.f64", 0) == 0.1);
    assert_true(att_gguf_number(g, "a.f65", 7) == 7);
    assert_true(att_gguf_bool(g, "a.yes", false));
    assert_false(att_gguf_bool(g, "a.no", true));
    assert_true(att_gguf_bool(g, "a.perhaps", true));
    assert_string_equal(att_gguf_text(g, "a.text", NULL), "\xE5\xA4\xA9\xE6\xB0\x97 fine");
    assert_string_equal(att_gguf_text(g, "a.no_text", "x"), "x");
    assert_int_equal(att_gguf_texts(g, "a.texts"), 4);
    att_gguf_get_texts(g, "a.texts", text, 4);
    assert_int_equal(text[1].bytes, 0);
    assert_memory_equal(text[2].data,
                        "\xE2\x96\x81"
                        "a",
                        4);
    assert_int_equal(att_gguf_numbers(g, "a.numbers"), 3);
    att_gguf_get_numbers(g, "a.numbers", x, 3);
    assert_memory_equal(x, numbers, sizeof numbers);
    att_gguf_get_numbers(g, "a.ints", x, 3);
    assert_true(x[0] == 1 && x[1] == -2 && x[2] == 3);
    assert_int_equal(att_gguf_error(g), ATT_OK);
    assert_int_equal(att_gguf_int(g, "a.text", 0, 9), 0);
    check_message(ctx, "\"a.text\" is of type string, not a number");
    assert_int_equal(att_gguf_error(g), ATT_ERR_FORMAT);
    att_gguf_free(g);
}

static void a_text_with_a_zero_byte_is_refused_only_where_it_is_read(void **state)
{
    (void)state;
    static _Alignas(8) unsigned char file[LARGEST];
    const size_t bytes = read_golden(file);
    att_gguf *g;
    unsigned char *fine = memmem(file, bytes, " fine", 5), *key = memmem(file, bytes, "a.text", 6);
    assert_true(fine && key);
    *fine = 0;
    assert_int_equal(att_gguf_from_memory(ctx, "zero.gguf", file, bytes, &g), ATT_OK);
    assert_int_equal(att_gguf_int(g, "a.u8", 0, 255), 200);
    assert_int_equal(att_gguf_error(g), ATT_OK);
    att_gguf_text(g, "a.text", NULL);
    assert_int_equal(att_gguf_error(g), ATT_ERR_FORMAT);
    check_message(ctx, "zero.gguf: \"a.text\" has a zero byte (NUL)");
    att_gguf_free(g);
    key[1] = 0;
    assert_int_equal(att_gguf_from_memory(ctx, "zero.gguf", file, bytes, &g), ATT_ERR_FORMAT);
    check_message(ctx, "a key before byte");
}

/* Reads the tensor's numbers, dequantized -> out [elements] */
static att_status read_floats(att_ctx *c, const att_gguf_tensor *t, float *out)
{
    att_tensor from, to;
    att_status s = att_gguf_view(t, &from);
    s = s ? s : att_wrap(&to, out, ATT_F32, t->rank, t->dim, NULL);
    return s ? s : att_tensor_convert(c, &from, &to);
}

static void tensors_are_dequantized_as_in_the_reference(void **state)
{
    (void)state;
    static float want[N_TENSORS * ELEMENTS], x[ELEMENTS];
    FILE *f = fopen("tests/golden/tiny_gguf.f32", "rb");
    assert_non_null(f);
    assert_int_equal(fread(want, sizeof *want, N_TENSORS * ELEMENTS, f), N_TENSORS * ELEMENTS);
    fclose(f);
    att_gguf *g;
    assert_int_equal(att_gguf_open(ctx, "tests/golden/tiny.gguf", &g), ATT_OK);
    assert_int_equal(att_gguf_count(g), N_TENSORS);
    for (int i = 0; i < N_TENSORS; i++) {
        const att_gguf_tensor *t = att_gguf_at(g, i);
        assert_int_equal(t->rank, 2);
        assert_true(t->dim[0] == 3 && t->dim[1] == 64 && t->elements == ELEMENTS);
        assert_ptr_equal(att_gguf_find(g, t->name), t);
        assert_int_equal(read_floats(ctx, t, x), ATT_OK);
        if (memcmp(x, want + i * ELEMENTS, sizeof x) != 0)
            fail_msg("%s: not as in tests/golden/tiny_gguf.f32", t->name);
    }
    assert_null(att_gguf_find(g, "w.none"));
    att_gguf_free(g);
}

/* What a damaged file may do: be refused with a sentence that names it, or be read. */
static void open_damaged(const unsigned char *file, size_t bytes)
{
    static float x[1 << 16];
    att_gguf *g;
    if (att_gguf_from_memory(ctx, "damaged.gguf", file, bytes, &g)) {
        check_message(ctx, "damaged.gguf");
        assert_null(g);
        return;
    }
    for (int64_t i = 0; i < att_gguf_count(g); i++) {
        const att_gguf_tensor *t = att_gguf_at(g, i);
        if (t->elements <= 1 << 16)
            read_floats(ctx, t, x);
    }
    att_byte_view text[8];
    double number[8];
    att_gguf_get_texts(g, "a.texts", text, 8);
    att_gguf_get_numbers(g, "a.numbers", number, 8);
    att_gguf_int(g, "a.u8", 0, 255);
    att_gguf_free(g);
}

static void damaged_files_are_refused_or_read(void **state)
{
    (void)state;
    static _Alignas(8) unsigned char file[LARGEST], damaged[LARGEST];
    const size_t n = read_golden(file);
    uint64_t random = 1;
    for (size_t i = 0; i < n; i += (size_t)check_step(3)) /* cut */
        open_damaged(file, i);
    for (int i = 0; i < 100000; i += check_step(10)) {
        memcpy(damaged, file, n);
        for (int k = 0; k <= i % 3; k++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
            damaged[(random >> 33) % 1600 % n] = (unsigned char)(random >> 20);
        }
        open_damaged(damaged, n);
    }
}

static void what_is_wrong_is_said(void **state)
{
    (void)state;
    static _Alignas(8) unsigned char file[LARGEST];
    const size_t n = read_golden(file);
    att_gguf *g;
    assert_int_equal(att_gguf_from_memory(ctx, "m.gguf", "PK\3\4abcd", 8, &g), ATT_ERR_FORMAT);
    check_message(ctx, "m.gguf: is not a GGUF file");
    file[4] = 9;
    assert_int_equal(att_gguf_from_memory(ctx, "m.gguf", file, n, &g), ATT_ERR_UNSUPPORTED);
    check_message(ctx, "version 9");
    file[4] = 3;
    unsigned char *name = memmem(file, n, "w.Q4_1", 6);
    assert_non_null(name);
    name[6 + 4 + 16] = 15; /* its type */
    assert_int_equal(att_gguf_from_memory(ctx, "m.gguf", file, n, &g), ATT_ERR_UNSUPPORTED);
    check_message(ctx, "tensor \"w.Q4_1\" has type Q8_K, which is not supported");
    name[6 + 4 + 16] = 3;
    name[5] = '0';
    assert_int_equal(att_gguf_from_memory(ctx, "m.gguf", file, n, &g), ATT_ERR_FORMAT);
    check_message(ctx, "tensor \"w.Q4_0\" occurs twice");
}

static void every_failing_allocation_gives_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    att_status s = ATT_ERR_MEMORY;
    for (long n = 2; s != ATT_OK; n++) { /* the first is the context's own */
        fail_alloc f = {.fail_at = n};
        att_ctx *failing;
        if (att_open(&failing, ATT_OPTIONS(att_config, .n_threads = 1, .allocator = fail_allocator(&f))))
            continue;
        att_gguf *g;
        s = att_gguf_open(failing, "tests/golden/tiny.gguf", &g);
        assert_true(s == ATT_OK || s == ATT_ERR_MEMORY);
        att_gguf_free(g);
        att_close(failing);
        assert_int_equal(f.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_those_that_were_written),
        cmocka_unit_test(a_text_with_a_zero_byte_is_refused_only_where_it_is_read),
        cmocka_unit_test(tensors_are_dequantized_as_in_the_reference),
        cmocka_unit_test(damaged_files_are_refused_or_read),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(every_failing_allocation_gives_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
