/* attend search with an index: one of other lines, of another model or with values that are not numbers is refused; one
 * that another program has made, with numbers of its own, is not. Cosines lie in [-1, 1]; what is not finite is not a
 * result.
 */
#include "fixtures/tool.h"

#include <math.h>

enum { LINES = 300, DIM = TINY_HIDDEN };

static float vectors[LINES][DIM];

/* lines: words that differ; v.npy: their vectors, which are `vectors`. */
static int set_up(void **state)
{
    const int code = tool_setup(state);
    FILE *f = folder_open(&tool_model, "lines");
    for (int i = 0; i < LINES; i++)
        fprintf(f, "%c%c %c\n", 'a' + i % 26, 'a' + i / 26, 'a' + 7 * i % 26);
    fclose(f);
    if (code || tool("$A embed -m $D --format npy -o v.npy lines && cat v.npy"))
        return -1;
    memcpy(vectors, tool_out + 128, sizeof vectors);
    return 0;
}

/* w.npy of these numbers. */
static void write_index(float (*x)[DIM], int rows)
{
    FILE *f = folder_open(&tool_model, "w.npy");
    char header[119];
    const int n =
        snprintf(header, sizeof header, "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", rows, DIM);
    fprintf(f, "\x93NUMPY\1%c\x76%c%s%*s\n", 0, 0, header, 117 - n, "");
    fwrite(x, sizeof *x, (size_t)rows, f);
    assert_int_equal(fclose(f), 0);
}

static void an_index_of_another_text_is_refused(void **state)
{
    (void)state;
    static const char *const changes[] = {
        "tac lines",                                             /* all are elsewhere */
        "tail -n +2 lines; head -n 1 lines",                     /* shifted */
        "echo z z z; head -n 299 lines",                         /* one before, one less behind */
        "head -n 299 lines; echo another",                       /* the last */
        "head -n 150 lines; echo x y; sed '1,150d; 300d' lines", /* one more in the middle, one less after it */
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        char line[256];
        snprintf(line, sizeof line, "{ %s; } >other; $A search -m $D -c other -i v.npy a", changes[i]);
        assert_refused(line, 1, "v.npy: row ");
        assert_has(tool_err, " of other by ");
        assert_has(tool_err, "--format npy -o v.npy other\" makes the index anew\n");
        assert_int_equal(tool_bytes, 0);
    }
    assert_refused("tac lines >other; $A search -m $D -c other -i v.npy a", 1,
                   "row 1 is not the vector of line 1 of other");
}

static void an_index_of_another_model_is_refused(void **state)
{
    (void)state;
    test_folder other = {""};
    snprintf(other.path, sizeof other.path, "%.40s/m", tool_model.path);
    assert_int_equal(tool("mkdir m; cp -r *.json vocab.txt 1_Pooling m"), 0);
    tiny_write_weights(&other, &(tiny_weights){.coarse = true}); /* the same in 16 bits: as good an index */
    assert_int_equal(tool("$A embed -m m --format npy -o m.npy lines && $A search -m $D -c lines -i m.npy a"), 0);
    assert_int_equal(tool("sed -i 's/mode_mean_tokens\": true/mode_mean_tokens\": false/; "
                          "s/mode_cls_token\": false/mode_cls_token\": true/' m/1_Pooling/config.json; "
                          "$A embed -m m --format npy -o m.npy lines"),
                     0);
    assert_refused("$A search -m $D -c lines -i m.npy a", 1,
                   "m.npy: row 1 is not the vector of line 1 of lines by /tmp/");
    assert_int_equal(tool("$A search -m m -c lines -i m.npy a"), 0);
}

/* As programs write them that keep 16 or 8 bits of a number, or do not make vectors of length 1. */
static void rounded_and_unnormalized_vectors_are_an_index(void **state)
{
    (void)state;
    static float x[LINES][DIM];
    static const struct {
        float scale;
        int levels; /* of int8 with a scale a row; 0: bf16 */
    } kinds[] = {{1, 0}, {1, 127}, {1e-15f, 127}, {1e15f, 127}, {250, 0}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (int i = 0; i < LINES; i++) {
            float most = 0;
            for (int d = 0; d < DIM; d++)
                most = fmaxf(most, fabsf(vectors[i][d]));
            for (int d = 0; d < DIM; d++) {
                uint32_t bits;
                memcpy(&bits, &vectors[i][d], sizeof bits);
                bits = (bits + 0x8000u) & 0xffff0000u;
                memcpy(&x[i][d], &bits, sizeof bits);
                if (kinds[k].levels)
                    x[i][d] = roundf(vectors[i][d] / most * (float)kinds[k].levels);
                x[i][d] *= kinds[k].scale;
            }
        }
        write_index(x, LINES);
        assert_int_equal(tool("$A search -m $D -c lines -i w.npy -k 1 --json 'ab h'"), 0);
        json_t *v = line_json(0);
        assert_true(number(json_array_get(json_object_get(v, "results"), 0), "score") > 0.5);
        json_decref(v);
    }
}

static void numbers_that_are_not_finite_are_refused_by_row(void **state)
{
    (void)state;
    static const struct {
        float x;
        const char *says;
    } bad[] = {{NAN, "NaN"}, {-NAN, "NaN"}, {INFINITY, "infinite"}, {-INFINITY, "infinite"}};
    static const int rows[] = {0, 1, 137, LINES - 1}; /* 1 and 137 are not among those that are embedded again */
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
            static float x[LINES][DIM];
            char says[64];
            memcpy(x, vectors, sizeof x);
            x[rows[r]][(i + r) % DIM] = bad[i].x;
            write_index(x, LINES);
            snprintf(says, sizeof says, "w.npy: row %d has a number that is %s", rows[r] + 1, bad[i].says);
            assert_refused("$A search -m $D -c lines -i w.npy -k 1 a", 1, says);
            assert_refused("$A search -m $D -c lines -i w.npy -k 1 --json a", 1, says);
            assert_int_equal(tool_bytes, 0);
        }
}

static void what_is_no_regular_file_is_no_index_and_nothing_waits_for_it(void **state)
{
    (void)state;
    assert_refused("mkfifo fifo; timeout -s KILL 20 $A search -m $D -c lines -i fifo a", 1, "fifo: is not a .npy file");
    assert_refused("$A search -m $D -c lines -i . a", 1, ".: is not a .npy file");
    assert_refused("$A search -m $D -c lines -i /dev/zero a", 1, "/dev/zero: is not a .npy file");
    assert_refused("timeout -s KILL 20 $A tokenize -m fifo lines", 1, "fifo is not a file");
    assert_refused("mkdir p; cp -r *.json vocab.txt 1_Pooling p; mkfifo p/model.safetensors; "
                   "timeout -s KILL 20 $A embed -m p lines",
                   1, "p/model.safetensors is not a file");
    assert_int_equal(tool("cat lines | $A search -m $D -c /dev/stdin -i v.npy -k 1 a"), 0); /* a text may be a pipe */
}

/* The vectors as a file of this version, whose header has `length` bytes; the other fields of the header as NumPy
 * writes them. */
static void write_npy(int version, size_t length, const char *fields)
{
    FILE *f = folder_open(&tool_model, "w.npy");
    char header[4096];
    assert_non_null(f);
    const int n = snprintf(header, sizeof header, "{%s}", fields);
    assert_in_range(n, 1, length);
    memset(header + n, ' ', length - (size_t)n);
    const unsigned char begin[] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', (unsigned char)version, 0, (unsigned char)length, (unsigned char)(length >> 8),
        0,    0};
    fwrite(begin, 1, version == 1 ? 10 : 12, f);
    fwrite(header, 1, length, f);
    fwrite(vectors, 1, sizeof vectors, f);
    assert_int_equal(fclose(f), 0);
}

static void numbers_may_begin_at_any_byte_of_an_index(void **state)
{
    (void)state;
    char fields[128];
    snprintf(fields, sizeof fields, "'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), ", LINES, DIM);
    for (int version = 1; version <= 3; version++)
        for (size_t length = 100; length < 104; length++) {
            write_npy(version, length, fields);
            assert_int_equal(tool("$A search -m $D -c lines -i w.npy -k 1 'ab h'"), 0);
        }
    write_npy(1, 1001, fields);
    assert_int_equal(tool("$A search -m $D -c lines -i w.npy -k 1 'ab h'"), 0);
    snprintf(fields, sizeof fields, "'shape': (%dL,%dL), 'fortran_order': False, 'descr': '<f4'", LINES, DIM);
    write_npy(1, 118, fields);
    assert_int_equal(tool("$A search -m $D -c lines -i w.npy -k 1 'ab h'"), 0);
}

static void arrays_of_other_kinds_are_named_with_what_to_save(void **state)
{
    static const struct {
        const char *fields, *says;
    } others[] = {
        {"'descr': '<f8', 'fortran_order': False, 'shape': (1, 2), ",
         "'<f8' (float64), but must be '<f4' (float32): save numpy.ascontiguousarray(x, '<f4')"},
        {"'descr': '<f2', 'fortran_order': False, 'shape': (1, 2), ", "'<f2' (float16)"},
        {"'descr': '>f4', 'fortran_order': False, 'shape': (1, 2), ", "'>f4' (big-endian float32)"},
        {"'descr': '<i8', 'fortran_order': False, 'shape': (1, 2), ", "'<i8' (int64)"},
        {"'descr': '|O', 'fortran_order': False, 'shape': (1, 2), ", "'|O' (objects of Python)"},
        {"'descr': '<f4', 'fortran_order': True, 'shape': (1, 2), ",
         "Fortran order, but must be in C order: save numpy.ascontiguousarray"},
        {"'descr': '<f4', 'fortran_order': False, 'shape': (2,), ", "the shape is (2,), but must be (rows, c"},
        {"'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3), ", "the shape is (1, 2, 3), but must be"},
        {"'descr': '<f4', 'fortran_order': False, 'shape': (-1, 2), ", "the shape is (-1, 2), but must be"},
        {"'descr': '<f4', 'fortran_order': False, 'shape': (1, 99999999999999999999), ", "but must be"},
        {"'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), ", "bytes of numbers"}};
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        write_npy(1, 118, others[i].fields);
        assert_refused("$A search -m $D -c lines -i w.npy -k 1 a", 1, others[i].says);
    }
    assert_refused("printf 'PK\\003\\004 and so on' >w.npy; $A search -m $D -c lines -i w.npy a", 1,
                   "w.npy: is not a .npy file but a zip archive, as a .npz file is");
    assert_refused("echo version https://git-lfs.github.com/spec/v1 >w.npy; $A search -m $D -c lines -i w.npy a", 1,
                   "w.npy is a pointer of git LFS, not the file that it stands for; in its repository: git lfs pull");
}

static void cosines_lie_between_minus_one_and_one(void **state)
{
    (void)state;
    for (int i = 0; i < 26; i++) {
        char line[128];
        snprintf(line, sizeof line, "$A similarity -m $D --json '%c b' '%c b' 'c d %c'", 'a' + i, 'a' + i, 'a' + i);
        assert_int_equal(tool(line), 0);
        json_t *v = line_json(0), *table = json_object_get(v, "similarity");
        for (size_t k = 0; k < 9; k++)
            assert_true(fabs(json_number_value(json_array_get(json_array_get(table, k / 3), k % 3))) <= 1);
        json_decref(v);
    }
    assert_int_equal(tool("$A search -m $D -c lines -k 1 --json <lines"), 0);
    for (int i = 0; i < LINES; i++) {
        json_t *v = line_json(i);
        const double score = number(json_array_get(json_object_get(v, "results"), 0), "score");
        assert_true(score > 0.9999 && score <= 1);
        json_decref(v);
    }
}

/* A model whose weights are damaged gives NaN. */
static void vectors_that_are_not_finite_are_refused_with_their_line(void **state)
{
    (void)state;
    test_folder f = {""};
    snprintf(f.path, sizeof f.path, "%.40s/nan", tool_model.path);
    assert_int_equal(tool("mkdir nan; cp -r *.json vocab.txt 1_Pooling model.safetensors nan; "
                          "printf '\\377\\377\\377\\377' | dd of=nan/model.safetensors bs=1 conv=notrunc status=none "
                          "seek=$(($(stat -c %s nan/model.safetensors) - 4))"),
                     0);
    static const struct {
        const char *command, *says;
    } commands[] = {
        {"$A embed -m nan lines", "nan: the vector of text 1, \"aa a\", has numbers that are not finite"},
        {"$A embed -m nan --format npy -o nan.npy lines",
         "nan: the vector of text 1, \"aa a\", has numbers that are not"},
        {"$A embed -m nan --format tsv lines", "nan: the vector of text 1, \"aa a\", has numbers that are not finite"},
        {"$A similarity -m nan --json a b", "nan: the vector of text 1, \"a\", has numbers that are not finite"},
        {"$A similarity -m nan a b", "nan: the vector of text 1, \"a\", has numbers that are not finite"},
        {"printf 'a\\tb\\t1\\nc\\td\\t2\\n' | $A similarity -m nan --pairs - --gold --json",
         "nan: the vector of text \"a\" has numbers that are not finite"},
        {"$A search -m nan -c lines --json a", "nan: the vector of text 1, \"aa a\", has numbers that are not finite"},
        {"$A search -m nan -c lines -i v.npy a", "has numbers that are not finite"}};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        assert_refused(commands[i].command, 1, commands[i].says);
        assert_int_equal(tool_bytes, 0);
    }
    assert_int_equal(tool("test ! -e nan.npy"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_index_of_another_text_is_refused),
        cmocka_unit_test(an_index_of_another_model_is_refused),
        cmocka_unit_test(rounded_and_unnormalized_vectors_are_an_index),
        cmocka_unit_test(numbers_that_are_not_finite_are_refused_by_row),
        cmocka_unit_test(what_is_no_regular_file_is_no_index_and_nothing_waits_for_it),
        cmocka_unit_test(numbers_may_begin_at_any_byte_of_an_index),
        cmocka_unit_test(arrays_of_other_kinds_are_named_with_what_to_save),
        cmocka_unit_test(cosines_lie_between_minus_one_and_one),
        cmocka_unit_test(vectors_that_are_not_finite_are_refused_with_their_line),
    };
    return cmocka_run_group_tests(tests, set_up, tool_teardown);
}
