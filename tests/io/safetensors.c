/* Safetensors files: what is read, and each way in which one can be wrong. */
#include "attend_model.h"
#include "fixtures/check.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/real_files.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* A file in memory: header and `bytes` of data counting up, the header padded with spaces to a multiple of 8. */
typedef struct image {
    unsigned char *bytes; /* 64-byte aligned */
    size_t size;
} image;

static image build(const char *header, size_t data)
{
    const size_t length = (strlen(header) + 7) / 8 * 8;
    image f = {.size = 8 + length + data};
    assert_int_equal(posix_memalign((void **)&f.bytes, 64, f.size + 1), 0);
    memset(f.bytes, ' ', f.size);
    for (int i = 0; i < 8; i++)
        f.bytes[i] = (unsigned char)(length >> (8 * i));
    memcpy(f.bytes + 8, header, strlen(header));
    for (size_t i = 0; i < data; i++)
        f.bytes[8 + length + i] = (unsigned char)i;
    return f;
}

static att_ctx *open_context(void)
{
    att_ctx *ctx;
    assert_int_equal(att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = 1)), ATT_OK);
    return ctx;
}

static void tensors_of_every_dtype_are_views_into_the_file(void **state)
{
    (void)state;
    static const struct {
        const char *name, *type;
        att_dtype dtype;
    } kinds[] = {{"a", "F32", ATT_F32}, {"b", "F16", ATT_F16}, {"c", "BF16", ATT_BF16},
                 {"d", "I32", ATT_I32}, {"e", "I64", ATT_I64}, {"f", "BOOL", ATT_BOOL}};
    att_ctx *ctx = open_context();
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        char header[200];
        const int bytes = (int)(6 * att_dtype_size(kinds[i].dtype));
        snprintf(header, sizeof header, "{\"%s\":{\"dtype\":\"%s\",\"shape\":[2,3],\"data_offsets\":[0,%d]}}",
                 kinds[i].name, kinds[i].type, bytes);
        const image f = build(header, (size_t)bytes);
        att_safetensors *file;
        att_tensor t;
        assert_int_equal(att_safetensors_from_memory(ctx, "x", f.bytes, f.size, &file), ATT_OK);
        assert_int_equal(att_safetensors_count(file), 1);
        assert_string_equal(att_safetensors_name(file, 0), kinds[i].name);
        assert_null(att_safetensors_name(file, 1));
        assert_int_equal(att_safetensors_get(file, kinds[i].name, &t), ATT_OK);
        assert_ptr_equal(t.data, f.bytes + f.size - bytes);
        assert_int_equal(t.dtype, kinds[i].dtype);
        assert_int_equal(t.rank, 2);
        assert_int_equal(t.dim[0], 2);
        assert_int_equal(t.dim[1], 3);
        att_safetensors_free(file);
        free(f.bytes);
    }
    att_close(ctx);
}

static void tensors_are_found_by_name_and_listed_as_they_lie(void **state)
{
    (void)state;
    const image f = build("{\"__metadata__\":{\"format\":\"pt\"},"
                          "\"z\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]},"
                          "\"none\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[8,8]},"
                          "\"deep\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1],\"data_offsets\":[12,16]},"
                          "\"scalar\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[8,12]}}",
                          16);
    static const char *const order[] = {"z", "none", "scalar", "deep"};
    att_ctx *ctx = open_context();
    att_safetensors *file;
    att_tensor t;
    assert_int_equal(att_safetensors_from_memory(ctx, "x", f.bytes, f.size, &file), ATT_OK);
    assert_int_equal(att_safetensors_count(file), 4);
    for (int i = 0; i < 4; i++)
        assert_string_equal(att_safetensors_name(file, i), order[i]);
    for (int i = 0; i < 4; i++)
        assert_int_equal(att_safetensors_find(file, order[i]), i);
    assert_int_equal(att_safetensors_find(file, "y"), -1);
    assert_int_equal(att_safetensors_find(file, "__metadata__"), -1);
    assert_int_equal(att_safetensors_get(file, NULL, &t), ATT_ERR_ARGUMENT);
    assert_string_equal(att_error(ctx), "att_safetensors_get: name is NULL");
    assert_int_equal(att_safetensors_get(file, "scalar", &t), ATT_OK);
    assert_int_equal(t.rank, 0);
    assert_int_equal(att_safetensors_get(file, "none", &t), ATT_OK);
    assert_int_equal(att_safetensors_get(file, "z", &t), ATT_ERR_DTYPE);
    assert_string_equal(att_error(ctx), "x: tensor \"z\" is U8, which cannot be used here");
    assert_int_equal(att_safetensors_get(file, "deep", &t), ATT_ERR_SHAPE);
    assert_int_equal(att_safetensors_get(file, "y", &t), ATT_ERR_FORMAT);
    assert_string_equal(att_error(ctx), "x: there is no tensor \"y\" among its 4");
    att_safetensors_free(file);
    free(f.bytes);
    att_close(ctx);
}

static void tensors_of_types_that_are_not_ours_are_seen_as_they_lie(void **state)
{
    (void)state;
    const image f = build("{\"__metadata__\":{\"z\":\"1\",\"a\":\"\"},"
                          "\"byte\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                          "\"deep\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1],\"data_offsets\":[1,2]},"
                          "\"double\":{\"dtype\":\"F64\",\"shape\":[1,2],\"data_offsets\":[2,18]},"
                          "\"fours\":{\"dtype\":\"F4\",\"shape\":[4],\"data_offsets\":[18,20]}}",
                          20);
    const double values[2] = {0.1, -1e300};
    memcpy(f.bytes + f.size - 18, values, sizeof values);
    att_ctx *ctx = open_context();
    att_safetensors *file;
    att_safetensors_data d = {.size = sizeof d};
    assert_int_equal(att_safetensors_from_memory(ctx, "x", f.bytes, f.size, &file), ATT_OK);
    assert_int_equal(att_safetensors_get_data(file, "double", &d), ATT_OK);
    assert_string_equal(d.type, "F64");
    assert_true(d.bits == 64 && d.rank == 2 && d.dim[0] == 1 && d.dim[1] == 2);
    assert_int_equal((uintptr_t)d.bytes % sizeof(double), 0);
    assert_memory_equal(d.bytes, values, sizeof values);
    assert_int_equal(att_safetensors_get_data(file, "fours", &d), ATT_OK);
    assert_true(d.bits == 4 && d.bytes == f.bytes + f.size - 2);
    assert_int_equal(att_safetensors_get_data(file, "deep", &d), ATT_ERR_SHAPE);
    assert_int_equal(att_safetensors_get_data(file, "y", &d), ATT_ERR_FORMAT);
    d.size = 0;
    assert_int_equal(att_safetensors_get_data(file, "byte", &d), ATT_ERR_ARGUMENT);
    assert_string_equal(att_safetensors_metadata_key(file, 0), "z");
    assert_string_equal(att_safetensors_metadata_key(file, 1), "a");
    assert_null(att_safetensors_metadata_key(file, 2));
    assert_null(att_safetensors_metadata_key(file, -1));
    att_safetensors_free(file);
    free(f.bytes);
    att_close(ctx);
}

/* The second of two tensors, after one byte and a header of any length, in memory at any address. */
static void tensors_may_begin_at_any_byte(void **state)
{
    static const struct {
        const char *type;
        size_t bytes;
    } kinds[] = {{"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I32", 4}, {"I64", 8}, {"BOOL", 1}};
    (void)state;
    att_ctx *ctx = open_context();
    for (size_t i = 0; i < 8 * sizeof kinds / sizeof kinds[0]; i++)
        for (int shift = 0; shift < 8; shift++) {
            char text[400];
            const size_t bytes = 6 * kinds[i / 8].bytes;
            int n = snprintf(text, sizeof text,
                             "{\"a\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[0,%d]},"
                             "\"b\":{\"dtype\":\"%s\",\"shape\":[2,3],\"data_offsets\":[%d,%zu]}}",
                             shift, shift, kinds[i / 8].type, shift, (size_t)shift + bytes);
            _Alignas(64) unsigned char memory[600];
            unsigned char *file = memory + i % 8, *data = file + 8 + n;
            const uint64_t length = (uint64_t)n;
            memcpy(file, &length, sizeof length);
            memcpy(file + 8, text, length);
            for (size_t k = 0; k < bytes; k++)
                data[(size_t)shift + k] = (unsigned char)(k + 1);
            att_safetensors *f;
            att_tensor t;
            if (att_safetensors_from_memory(ctx, "x", file, 8 + length + (size_t)shift + bytes, &f))
                fail_msg("%s", att_error(ctx));
            assert_int_equal(att_safetensors_get(f, "b", &t), ATT_OK);
            const bool aligned = (uintptr_t)(data + shift) % kinds[i / 8].bytes == 0;
            assert_int_equal(t.data == data + shift, aligned); /* only others are copied */
            assert_int_equal((uintptr_t)t.data % kinds[i / 8].bytes, 0);
            assert_memory_equal(t.data, data + shift, bytes);
            att_safetensors_free(f);
        }
    att_close(ctx);
}

#define A(type, shape, offsets) "{\"a\":{\"dtype\":" type ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
#define TWO(first, second)                                                                                             \
    "{\"a\":{\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":" first "},"                                             \
    "\"b\":{\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":" second "}}"

/* A header that is wrong, the bytes of data behind it, and what the sentence must contain. */
static const struct {
    const char *header;
    size_t data;
    const char *sentence;
} wrongs[] = {
    {"", 0, "the header is not a JSON object"},
    {"[]", 0, "the header is not a JSON object"},
    {"{\"a\":", 0, "the header is not a JSON object"},
    {"{} x", 0, "the header is not a JSON object"},
    {"{\"a\":3}", 0, "tensor \"a\" is not an object"},
    {"{\"__metadata__\":{\"n\":3}}", 0, "\"__metadata__\" is not an object of texts"},
    {A("\"F7\"", "[1]", "[0,4]"), 4, "dtype \"F7\""},
    {A("7", "[1]", "[0,4]"), 4, "dtype \"(no text)\""},
    {A("\"F32\"", "1", "[0,4]"), 4, "no \"shape\" list"},
    {A("\"F32\"", "[-1]", "[0,4]"), 4, "a dimension that is not a whole number from 0 on"},
    {A("\"F32\"", "[1.0]", "[0,4]"), 4, "a dimension that is not a whole number from 0 on"},
    {A("\"F32\"", "[4611686018427387904,4]", "[0,4]"), 4, "product overflows"},
    {A("\"F32\"", "[9223372036854775808]", "[0,4]"), 4, "the header is not a JSON object"},
    {A("\"F32\"", "[1]", "[0]"), 4, "no \"data_offsets\" of two whole numbers"},
    {A("\"F32\"", "[1]", "[0,\"4\"]"), 4, "no \"data_offsets\" of two whole numbers"},
    {A("\"F32\"", "[1]", "[-4,0]"), 4, "lies at bytes [-4, 0) but the file has 4"},
    {A("\"F32\"", "[1]", "[4,0]"), 4, "lies at bytes [4, 0) but the file has 4"},
    {A("\"F32\"", "[2]", "[0,8]"), 4, "lies at bytes [0, 8) but the file has 4"},
    {A("\"F32\"", "[2]", "[0,4]"), 4, "has 4 bytes but its shape needs 8"},
    {A("\"F32\"", "[1]", "[0,4]"), 5, "ends at byte 4 but the file has 5"},
    {A("\"F32\"", "[1]", "[4,8]"), 8, "begins at byte 4, with a gap after the end of \"(the header)\" at 0"},
    {TWO("[0,8]", "[4,12]"), 12, "begins at byte 4, before the end of \"a\" at 8"},
    {TWO("[0,8]", "[12,20]"), 20, "begins at byte 12, with a gap after the end of \"a\" at 8"},
    {A("\"F4\"", "[3]", "[0,1]"), 1, "has numbers of less than a byte that do not fill whole bytes"},
    {A("\"F6_E2M3\"", "[2]", "[0,1]"), 1, "has numbers of less than a byte that do not fill whole bytes"},
    {A("\"F4\"", "[4]", "[0,4]"), 4, "has 4 bytes but its shape needs 2"},
    {"{\"a\":{\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[0,1]},"
     "\"a\":{\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[0,1]}}",
     1, "duplicate"},
};

static void expect(att_ctx *ctx, const void *bytes, size_t size, const char *sentence)
{
    att_safetensors *file = (att_safetensors *)&file;
    if (att_safetensors_from_memory(ctx, "x", bytes, size, &file) != ATT_ERR_FORMAT)
        fail_msg("accepted, expected: %s", sentence);
    assert_null(file);
    check_message(ctx, sentence);
}

static void every_wrong_header_is_refused_with_a_sentence(void **state)
{
    (void)state;
    att_ctx *ctx = open_context();
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        const image f = build(wrongs[i].header, wrongs[i].data);
        expect(ctx, f.bytes, f.size, wrongs[i].sentence);
        free(f.bytes);
    }
    att_close(ctx);
}

static void what_the_package_ignores_in_a_header_is_no_error(void **state)
{
    (void)state;
    static const char *const headers[] = {
        "{\"__metadata__\":null,\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
        "{\"__metadata__\":{},\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
        A("\"F32\"", "[1]", "[0,4],\"more\":1")};
    att_ctx *ctx = open_context();
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        const image f = build(headers[i], 4);
        att_safetensors *file;
        att_tensor t;
        if (att_safetensors_from_memory(ctx, "x", f.bytes, f.size, &file))
            fail_msg("%s: %s", headers[i], att_error(ctx));
        assert_int_equal(att_safetensors_count(file), 1);
        assert_null(att_safetensors_metadata(file, "format"));
        assert_null(att_safetensors_metadata_key(file, 0));
        assert_int_equal(att_safetensors_get(file, "a", &t), ATT_OK);
        att_safetensors_free(file);
        free(f.bytes);
    }
    att_close(ctx);
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    att_ctx *ctx = open_context();
    const image f = build(TWO("[0,8]", "[8,16]"), 16);
    for (size_t size = 0; size < f.size; size++) { /* each in memory of its own, so that a reader outside is caught */
        unsigned char *cut;
        assert_int_equal(posix_memalign((void **)&cut, 64, size + 1), 0);
        memcpy(cut, f.bytes, size);
        expect(ctx, cut, size, "x");
        free(cut);
    }
    free(f.bytes);
    att_close(ctx);
}

static void a_header_length_beyond_the_file_or_the_cap_is_refused(void **state)
{
    (void)state;
    att_ctx *ctx = open_context();
    unsigned char bytes[16] = {0};
    bytes[0] = 9;
    expect(ctx, bytes, sizeof bytes, "the header should have 9 bytes, but the file has 16");
    memset(bytes, 0xff, 8);
    expect(ctx, bytes, sizeof bytes, "the header should have 18446744073709551615 bytes");
    memcpy(bytes, "This is a text.\n", sizeof bytes);
    expect(ctx, bytes, sizeof bytes, "is not a safetensors file: it is a text that begins with \"This is a text. \"");
    att_close(ctx);
}

/* Hundreds of bytes of memory for each of few bytes: 100 MB of these would be 8 GB. */
static void a_header_of_too_many_values_is_refused_before_it_is_taken_in(void **state)
{
    (void)state;
    enum { OBJECTS = 1 << 20 }; /* with the commas before them two values each, and one for each of the brackets */
    static const char start[] = "{\"__metadata__\":[";
    const size_t length = strlen(start);
    char *header = malloc(length + 3 * OBJECTS + 1);
    memcpy(header, start, length);
    for (size_t i = 0; i < OBJECTS; i++)
        memcpy(header + length + 3 * i, "{},", 4);
    att_ctx *ctx = open_context();
    const image f = build(header, 0);
    att_safetensors *file;
    assert_int_equal(att_safetensors_from_memory(ctx, "x", f.bytes, f.size, &file), ATT_ERR_UNSUPPORTED);
    assert_string_equal(att_error(ctx), "x: the header has 2097154 values, the maximum is 2097152");
    free(f.bytes);
    free(header);
    att_close(ctx);
}

static void paths_that_cannot_be_mapped_are_named(void **state)
{
    (void)state;
    att_ctx *ctx = open_context();
    att_safetensors *file;
    char empty[] = "/tmp/attend-empty-XXXXXX";
    const int fd = mkstemp(empty);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(att_safetensors_open(ctx, empty, &file), ATT_ERR_FORMAT);
    check_message(ctx, "is empty");
    unlink(empty);
    assert_int_equal(att_safetensors_open(ctx, empty, &file), ATT_ERR_IO);
    check_message(ctx, empty);
    check_message(ctx, "No such file");
    assert_int_equal(att_error_number(), ENOENT);
    assert_int_equal(att_safetensors_open(ctx, "/tmp", &file), ATT_ERR_IO);
    assert_string_equal(att_error(ctx), "/tmp is not a file");
    assert_int_equal(att_error_number(), 0);
    assert_int_equal(mkfifo(empty, 0600), 0); /* opening does not wait for the writer of a pipe */
    assert_int_equal(att_safetensors_open(ctx, empty, &file), ATT_ERR_IO);
    check_message(ctx, "is not a file");
    unlink(empty);
    att_close(ctx);
}

static void wrong_arguments_are_named(void **state)
{
    (void)state;
    att_ctx *ctx = open_context();
    att_safetensors *file = (att_safetensors *)&file;
    assert_int_equal(att_safetensors_open(ctx, NULL, &file), ATT_ERR_ARGUMENT);
    check_message(ctx, "path is NULL");
    assert_int_equal(att_safetensors_open(ctx, "x", NULL), ATT_ERR_ARGUMENT);
    check_message(ctx, "out is NULL");
    assert_int_equal(att_safetensors_from_memory(ctx, "x", NULL, 8, &file), ATT_ERR_ARGUMENT);
    check_message(ctx, "data is NULL");
    assert_null(file);
    att_close(ctx);
}

static void every_failing_allocation_of_the_context_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    const image f = build(TWO("[0,8]", "[8,16]"), 16);
    att_status s = ATT_ERR_MEMORY;
    for (long n = 1; s != ATT_OK; n++) {
        fail_alloc a = {.fail_at = 0};
        att_ctx *ctx = fail_open(&a);
        att_safetensors *file;
        const long live = a.live;
        a.fail_at = a.calls + n;
        s = att_safetensors_from_memory(ctx, "x", f.bytes, f.size, &file);
        if (s != ATT_OK) {
            assert_int_equal(s, ATT_ERR_MEMORY);
            assert_null(file);
        }
        att_safetensors_free(file);
        assert_int_equal(a.live, live);
        att_close(ctx);
        assert_int_equal(a.live, 0);
    }
    free(f.bytes);
}

static void the_published_model_is_read(void **state)
{
    (void)state;
    char path[4096];
    snprintf(path, sizeof path, "%s/model.safetensors", model_folder("all-MiniLM-L6-v2"));
    att_ctx *ctx = open_context();
    att_safetensors *file;
    att_tensor t;
    assert_int_equal(att_safetensors_open(ctx, path, &file), ATT_OK);
    assert_int_equal(att_safetensors_get(file, "embeddings.word_embeddings.weight", &t), ATT_OK);
    assert_int_equal(t.dtype, ATT_F32);
    assert_int_equal(t.dim[0], 30522);
    assert_int_equal(t.dim[1], 384);
    assert_int_equal(att_safetensors_get(file, "embeddings.position_ids", &t), ATT_OK);
    assert_int_equal(t.dtype, ATT_I64);
    for (int i = 0; i < 512; i++)
        assert_int_equal(((const int64_t *)t.data)[i], i);
    att_safetensors_free(file);
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_of_every_dtype_are_views_into_the_file),
        cmocka_unit_test(tensors_may_begin_at_any_byte),
        cmocka_unit_test(tensors_are_found_by_name_and_listed_as_they_lie),
        cmocka_unit_test(tensors_of_types_that_are_not_ours_are_seen_as_they_lie),
        cmocka_unit_test(every_wrong_header_is_refused_with_a_sentence),
        cmocka_unit_test(what_the_package_ignores_in_a_header_is_no_error),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(a_header_length_beyond_the_file_or_the_cap_is_refused),
        cmocka_unit_test(a_header_of_too_many_values_is_refused_before_it_is_taken_in),
        cmocka_unit_test(paths_that_cannot_be_mapped_are_named),
        cmocka_unit_test(wrong_arguments_are_named),
        cmocka_unit_test(every_failing_allocation_of_the_context_is_an_error_and_leaks_nothing),
        cmocka_unit_test(the_published_model_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
