/* Writing safetensors: what is written is read again, and whatever fails leaves the old file. */
#include "attend_model.h"
#include "fixtures/check.h"
#include "fixtures/fail_alloc.h"
#include "io/atomic_write.h"
#include "fixtures/write_files.h"

#include <errno.h>
#include <sys/stat.h>

enum { MOST = 16 };

/* Tensors to write. */
typedef struct set {
    int64_t n;
    const char *names[MOST];
    att_tensor tensors[MOST];
} set;

static void add(set *s, const char *name, void *data, att_dtype dtype, int rank, const int64_t *dim,
                const int64_t *stride)
{
    s->names[s->n] = name;
    assert_int_equal(att_wrap(&s->tensors[s->n], data, dtype, rank, dim, stride), ATT_OK);
    s->n++;
}

static att_status write_set(att_ctx *ctx, const test_folder *f, const set *s, const att_safetensors_options *o)
{
    return att_safetensors_write(ctx, path_in(f, "x"), s->n, s->names, s->tensors, o);
}

static att_safetensors *open_written(att_ctx *ctx, const test_folder *f)
{
    att_safetensors *file;
    if (att_safetensors_open(ctx, path_in(f, "x"), &file))
        fail_msg("%s", att_error(ctx));
    return file;
}

static void the_bytes_are_those_of_the_format(void **state)
{
    (void)state;
    static const char header[] = "{\"__metadata__\":{\"format\":\"pt\",\"\xC3\xA4\":\"\\\"\\n\"},"
                                 "\"n\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
                                 "\"a\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[8,16]},"
                                 "\"z\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[16,16]},"
                                 "\"b\":{\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[16,19]}}";
    static const unsigned char numbers[] = {8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0, 1, 0, 1};
    enum { TEXT = (sizeof header - 1 + 7) / 8 * 8 };
    char expected[8 + TEXT + sizeof numbers] = {(char)(TEXT % 256), TEXT / 256};
    memset(expected + 8, ' ', TEXT);
    memcpy(expected + 8, header, sizeof header - 1);
    memcpy(expected + 8 + TEXT, numbers, sizeof numbers);
    static const char *const metadata[] = {"format", "pt", "\xC3\xA4", "\"\n"};
    float a[] = {1, -2.5f};
    int64_t n = 0x0102030405060708;
    unsigned char b[] = {1, 0, 255}; /* whatever is not 0 is true */
    set s = {0};
    add(&s, "z", NULL, ATT_F32, ATT_DIMS(0), NULL);
    add(&s, "b", b, ATT_BOOL, ATT_DIMS(3), NULL);
    add(&s, "a", a, ATT_F32, ATT_DIMS(2, 1), NULL);
    add(&s, "n", &n, ATT_I64, 0, NULL, NULL);
    att_ctx *ctx = check_open(NULL, 1);
    const test_folder f = folder_new();
    assert_int_equal(
        write_set(ctx, &f, &s, ATT_OPTIONS(att_safetensors_options, .metadata = metadata, .n_metadata = 2)), ATT_OK);
    file_has(&f, "x", expected, sizeof expected);
    att_safetensors *file = open_written(ctx, &f);
    assert_string_equal(att_safetensors_metadata(file, "format"), "pt");
    assert_string_equal(att_safetensors_metadata(file, "\xC3\xA4"), "\"\n");
    assert_null(att_safetensors_metadata(file, "n"));
    assert_null(att_safetensors_metadata(file, NULL));
    att_safetensors_free(file);
    assert_int_equal(write_set(ctx, &f, &(set){0}, NULL), ATT_OK);
    file_has(&f, "x", "\x08\0\0\0\0\0\0\0{}      ", 16);
    assert_int_equal(files_in(&f), 1);
    folder_remove(&f);
    att_close(ctx);
}

/* Larger than what is made dense at once, also in one row, and turned. */
static void tensors_of_any_size_and_strides_are_written_dense(void **state)
{
    (void)state;
    enum { LONG = 2500000, WIDE = 300, HIGH = 7001 };
    float *x = check_numbers(2 * LONG, 1);
    set s = {0};
    add(&s, "turned", x, ATT_F32, ATT_DIMS(WIDE, HIGH), (const int64_t[]){1, WIDE});
    add(&s, "long", x, ATT_F32, ATT_DIMS(2, LONG), (const int64_t[]){1, 2});
    add(&s, "repeated", x, ATT_F32, ATT_DIMS(3, 2, 2), (const int64_t[]){0, 5, 1});
    add(&s, "dense", x, ATT_F32, ATT_DIMS(2, LONG), NULL);
    att_ctx *ctx = check_open(NULL, 2);
    const test_folder f = folder_new();
    assert_int_equal(write_set(ctx, &f, &s, NULL), ATT_OK);
    att_safetensors *file = open_written(ctx, &f);
    att_tensor t[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(att_safetensors_get(file, s.names[i], &t[i]), ATT_OK);
    const float *turned = t[0].data, *row = t[1].data, *repeated = t[2].data;
    for (int64_t i = 0; i < WIDE * HIGH; i++)
        assert_true(turned[i] == x[i / HIGH + i % HIGH * WIDE]);
    for (int64_t i = 0; i < 2 * LONG; i++)
        assert_true(row[i] == x[i / LONG + i % LONG * 2]);
    for (int i = 0; i < 12; i++)
        assert_true(repeated[i] == x[i / 2 % 2 * 5 + i % 2]);
    assert_memory_equal(t[3].data, x, 2 * LONG * sizeof *x);
    att_safetensors_free(file);
    folder_remove(&f);
    att_close(ctx);
    free(x);
}

static void numbers_may_be_written_as_f16_or_bf16(void **state)
{
    (void)state;
    float x[] = {1, -2.5f, 0x1p-24f, 3};
    static const uint16_t codes[2][4] = {{0x3c00, 0xc100, 1, 0x4200}, {0x3f80, 0xc020, 0x3380, 0x4040}};
    int32_t ids[] = {4, 5};
    uint16_t half[] = {0x3c00};
    set s = {0};
    add(&s, "x", x, ATT_F32, ATT_DIMS(2, 2), NULL);
    add(&s, "ids", ids, ATT_I32, ATT_DIMS(2), NULL);
    add(&s, "half", half, ATT_F16, ATT_DIMS(1), NULL);
    att_ctx *ctx = check_open(NULL, 1);
    const test_folder f = folder_new();
    for (int type = ATT_F16; type <= ATT_BF16; type++) {
        att_tensor t;
        assert_int_equal(write_set(ctx, &f, &s, ATT_OPTIONS(att_safetensors_options, .dtype = (att_dtype)type)),
                         ATT_OK);
        att_safetensors *file = open_written(ctx, &f);
        assert_int_equal(att_safetensors_get(file, "x", &t), ATT_OK);
        assert_int_equal(t.dtype, type);
        assert_memory_equal(t.data, codes[type - ATT_F16], sizeof codes[0]);
        assert_int_equal(att_safetensors_get(file, "ids", &t), ATT_OK);
        assert_memory_equal(t.data, ids, sizeof ids);
        assert_int_equal(att_safetensors_get(file, "half", &t), ATT_OK);
        assert_int_equal(t.dtype, ATT_F16);
        assert_memory_equal(t.data, half, sizeof half);
        att_safetensors_free(file);
    }
    folder_remove(&f);
    att_close(ctx);
}

/* ---- what fails */

/* Makes a folder with the file "x", which is "old". */
static test_folder with_old_file(void)
{
    const test_folder f = folder_new();
    folder_write(&f, "x", "old");
    return f;
}

static void old_file_is_left(const test_folder *f)
{
    file_has(f, "x", "old", 3);
    assert_int_equal(files_in(f), 1);
}

static void what_cannot_be_written_is_refused_and_the_old_file_stays(void **state)
{
    (void)state;
    float x[4] = {0};
    static const char *const texts[] = {"k", "1", "k", "2"};
    att_ctx *ctx = check_open(NULL, 1);
    const test_folder f = with_old_file();
    const struct {
        const char *names[2];
        att_tensor second;
        att_safetensors_options options;
        att_status status;
        const char *sentence;
    } wrong[] = {
        {{"a", NULL}, {x, .rank = 0}, {0}, ATT_ERR_ARGUMENT, "the name of a tensor is NULL"},
        {{"a", "a"}, {x, .rank = 0}, {0}, ATT_ERR_ARGUMENT, "\"a\" occurs twice among its tensor names"},
        {{"a", "a"}, {x, .dtype = ATT_I64}, {0}, ATT_ERR_ARGUMENT, "\"a\" occurs twice among its tensor names"},
        {{"a", "\xff"}, {x, .rank = 0}, {0}, ATT_ERR_ARGUMENT, "one of its tensor names is not UTF-8"},
        {{"a", "__metadata__"}, {x, .rank = 0}, {0}, ATT_ERR_ARGUMENT, "tensor \"__metadata__\" has a name that"},
        {{"a", "b"}, {NULL, .rank = 0}, {0}, ATT_ERR_ARGUMENT, "tensor \"b\" has no memory: its data is NULL"},
        {{"a", "b"}, {x, .rank = 7}, {0}, ATT_ERR_SHAPE, "tensor \"b\" has too many dimensions"},
        {{"a", "b"}, {x, .rank = 1, .dim = {-1}}, {0}, ATT_ERR_SHAPE, "tensor \"b\" has impossible dimensions"},
        {{"a", "b"}, {x, .rank = 2, .dim = {1LL << 40, 1LL << 40}}, {0}, ATT_ERR_SHAPE, "has impossible dimensions"},
        {{"a", "b"}, {x, .rank = 1, .dim = {INT64_MAX / 4}}, {0}, ATT_ERR_SHAPE, "tensor \"b\" is too large"},
        {{"a", "b"}, {x, .rank = 1, .dim = {2}, .stride = {INT64_MAX / 4}}, {0}, ATT_ERR_SHAPE, "any memory"},
        {{"a", "b"}, {x, .dtype = (att_dtype)77}, {0}, ATT_ERR_DTYPE, "tensor \"b\" has an unknown type"},
        {{"a", "b"}, {x, .rank = 0}, {.dtype = ATT_I32}, ATT_ERR_DTYPE, "options.dtype is i32"},
        {{"a", "b"},
         {x, .rank = 0},
         {.metadata = texts, .n_metadata = 2},
         ATT_ERR_ARGUMENT,
         "\"k\" occurs twice among"},
        {{"a", "b"}, {x, .rank = 0}, {.n_metadata = 2}, ATT_ERR_ARGUMENT, "options.metadata is NULL"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const att_tensor tensors[] = {{x, .rank = 0}, wrong[i].second};
        att_safetensors_options o = wrong[i].options;
        o.size = sizeof o;
        if (att_safetensors_write(ctx, path_in(&f, "x"), 2, wrong[i].names, tensors, &o) != wrong[i].status)
            fail_msg("expected: %s; is: %s", wrong[i].sentence, att_error(ctx));
        check_message(ctx, wrong[i].sentence);
        old_file_is_left(&f);
    }
    folder_remove(&f);
    att_close(ctx);
}

static void places_that_cannot_be_written_are_named(void **state)
{
    (void)state;
    float x = 1;
    static char long_name[400];
    set s = {0};
    add(&s, "x", &x, ATT_F32, 0, NULL, NULL);
    att_ctx *ctx = check_open(NULL, 1);
    const test_folder f = folder_new();
    memset(long_name, 'x', 300);
    const struct {
        const char *path, *sentence;
        int number;
    } wrong[] = {{path_in(&f, "no/x"), "No such file", ENOENT},
                 {f.path, "it is a folder", 0},
                 {"/dev/null/x", "Not a directory", ENOTDIR},
                 {"/dev/full", "/dev/full cannot be written: it is not a file", 0},
                 {long_name, "too long", ENAMETOOLONG}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(att_safetensors_write(ctx, wrong[i].path, 1, s.names, s.tensors, NULL), ATT_ERR_IO);
        check_message(ctx, wrong[i].sentence);
        check_message(ctx, "cannot be written");
        assert_int_equal(att_error_number(), wrong[i].number);
        assert_int_equal(files_in(&f), 0);
    }
    assert_int_equal(att_safetensors_write(ctx, NULL, 1, s.names, s.tensors, NULL), ATT_ERR_ARGUMENT);
    check_message(ctx, "att_safetensors_write: path is NULL");
    folder_remove(&f);
    att_close(ctx);
}

static void a_full_disk_is_an_error_and_the_old_file_stays(void **state)
{
    (void)state;
    enum { N = 10000 };
    float *x = check_numbers(N, 1);
    set s = {0};
    add(&s, "x", x, ATT_F32, ATT_DIMS(N), NULL);
    att_ctx *ctx = check_open(NULL, 1);
    const test_folder f = with_old_file();
    for (long most = 0; most < 4 * N; most += 3001) {
        limit_files(most);
        const att_status status = write_set(ctx, &f, &s, NULL);
        limit_files(-1);
        assert_int_equal(status, ATT_ERR_IO);
        check_message(ctx, "cannot be written: File too large");
        assert_int_equal(att_error_number(), EFBIG);
        old_file_is_left(&f);
    }
    folder_remove(&f);
    att_close(ctx);
    free(x);
}

static void every_failing_allocation_leaves_the_old_file(void **state)
{
    (void)state;
    float x[6] = {0};
    set s = {0};
    add(&s, "x", x, ATT_F32, ATT_DIMS(2, 3), (const int64_t[]){1, 2});
    add(&s, "y", x, ATT_F32, ATT_DIMS(6), NULL);
    att_status status = ATT_ERR_MEMORY;
    for (long n = 1; status; n++) {
        fail_alloc a = {.fail_at = 0};
        att_ctx *ctx = fail_open(&a);
        const test_folder f = with_old_file();
        const long live = a.live;
        a.fail_at = a.calls + n;
        status = write_set(ctx, &f, &s, ATT_OPTIONS(att_safetensors_options, .dtype = ATT_F16));
        if (status) {
            assert_int_equal(status, ATT_ERR_MEMORY);
            old_file_is_left(&f);
        } else {
            assert_true(n > 3); /* some have failed */
        }
        assert_int_equal(a.live, live);
        att_close(ctx);
        folder_remove(&f);
    }
}

/* ---- killed */

enum { KILLED = 1 << 18 };

/* Writes the file again and again, all of its numbers 1, 2, ... */
static void write_on(void *folder)
{
    float *x = malloc(KILLED * sizeof *x);
    set s = {0};
    add(&s, "x", x, ATT_F32, ATT_DIMS(KILLED), NULL);
    att_ctx *ctx = check_open("scalar", 1);
    for (float value = 1;; value++) {
        for (int i = 0; i < KILLED; i++)
            x[i] = value;
        if (write_set(ctx, folder, &s, NULL))
            _exit(1);
    }
}

static void a_killed_process_leaves_a_whole_file(void **state)
{
    (void)state;
    att_ctx *ctx = check_open("scalar", 1);
    float one = 0;
    set s = {0};
    add(&s, "x", &one, ATT_F32, ATT_DIMS(KILLED), (const int64_t[]){0});
    test_folder f = folder_new();
    assert_int_equal(write_set(ctx, &f, &s, NULL), ATT_OK);
    for (uint64_t i = 0; i < 20; i++) {
        att_tensor t;
        run_and_kill(write_on, &f, (useconds_t)(check_bits(1, i) % 30000));
        att_safetensors *file = open_written(ctx, &f);
        assert_int_equal(att_safetensors_get(file, "x", &t), ATT_OK);
        const float *x = t.data;
        for (int k = 1; k < KILLED; k++)
            assert_true(x[k] == x[0]);
        att_safetensors_free(file);
    }
    assert_int_equal(write_set(ctx, &f, &s, NULL), ATT_OK);
    assert_int_equal(files_in(&f), 1); /* what they left is gone */
    folder_remove(&f);
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bytes_are_those_of_the_format),
        cmocka_unit_test(tensors_of_any_size_and_strides_are_written_dense),
        cmocka_unit_test(numbers_may_be_written_as_f16_or_bf16),
        cmocka_unit_test(what_cannot_be_written_is_refused_and_the_old_file_stays),
        cmocka_unit_test(places_that_cannot_be_written_are_named),
        cmocka_unit_test(a_full_disk_is_an_error_and_the_old_file_stays),
        cmocka_unit_test(every_failing_allocation_leaves_the_old_file),
        cmocka_unit_test(a_killed_process_leaves_a_whole_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
