/* attend embed and search with vectors of 8 bits and of one: all formats have the same codes, those of
 * att_vectors_quantize, and an index is searched by them; what does not fit together is refused. */
#include "attend_vectors.h"
#include "fixtures/check.h"
#include "fixtures/tool.h"

#include <math.h>

enum { LINES = 120, DIM = TINY_HIDDEN, BYTES = (DIM + 7) / 8, NPY_HEADER = 128 };

static float vectors[LINES][DIM], ranges[2 * DIM];
static uint8_t codes[ATT_PRECISION_UBINARY + 1][LINES * DIM * sizeof(float)];
static const char *const names[] = {"float32", "int8", "uint8", "binary", "ubinary"};

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
    memcpy(vectors, tool_out + NPY_HEADER, sizeof vectors);
    att_ctx *ctx = check_open(NULL, 1);
    assert_int_equal(att_ranges_begin(DIM, ranges), ATT_OK);
    assert_int_equal(att_ranges_add(ctx, vectors[0], LINES, DIM, ranges), ATT_OK);
    for (int p = 0; p <= ATT_PRECISION_UBINARY; p++) {
        assert_string_equal(names[p], att_precision_name((att_precision)p));
        assert_int_equal(att_vectors_quantize(ctx, (att_precision)p, vectors[0], LINES, DIM, ranges, codes[p]), ATT_OK);
    }
    att_close(ctx);
    return 0;
}

/* Runs a command of embed with this precision, a word of `format`. */
static int embed(const char *format, const char *precision)
{
    char line[512];
    snprintf(line, sizeof line, format, precision, precision, precision, precision);
    return tool(line);
}

static size_t bytes_of(int p) { return (size_t)att_precision_bytes((att_precision)p, DIM); }

static void matrices_have_the_codes_of_the_library(void **state)
{
    (void)state;
    static const char *const types[] = {"'<f4'", "'|i1'", "'|u1'", "'|i1'", "'|u1'"};
    for (int p = 0; p <= ATT_PRECISION_UBINARY; p++) {
        char header[128];
        const size_t bytes = bytes_of(p), columns = p ? bytes : DIM;
        assert_int_equal(embed("$A embed -m $D --precision %s --format npy -o %s.npy lines && cat %s.npy", names[p]),
                         0);
        assert_int_equal(tool_bytes, NPY_HEADER + LINES * bytes);
        assert_memory_equal(tool_out + NPY_HEADER, codes[p], LINES * bytes);
        snprintf(header, sizeof header, "{'descr': %s, 'fortran_order': False, 'shape': (%d, %zu), }", types[p], LINES,
                 columns);
        assert_memory_equal(tool_out + 10, header, strlen(header));
        assert_int_equal(embed("$A embed -m $D --precision %s --format fbin -o %s.bin lines && cat %s.bin", names[p]),
                         0);
        const int32_t sizes[] = {LINES, (int32_t)columns};
        assert_memory_equal(tool_out, sizes, sizeof sizes);
        assert_int_equal(tool_bytes, sizeof sizes + LINES * bytes);
        assert_memory_equal(tool_out + sizeof sizes, codes[p], LINES * bytes);
        const bool has_ranges = p == ATT_PRECISION_INT8 || p == ATT_PRECISION_UINT8;
        assert_int_equal(embed("test -e %s.npy.ranges.npy", names[p]), !has_ranges);
        if (has_ranges) {
            assert_int_equal(embed("cmp %s.npy.ranges.npy %s.bin.ranges.npy && cat %s.npy.ranges.npy", names[p]), 0);
            assert_int_equal(tool_bytes, NPY_HEADER + sizeof ranges);
            assert_memory_equal(tool_out + NPY_HEADER, ranges, sizeof ranges);
        }
    }
}

static void lines_of_text_have_the_same_codes(void **state)
{
    (void)state;
    for (int p = ATT_PRECISION_INT8; p <= ATT_PRECISION_UBINARY; p++) {
        const bool is_signed = p == ATT_PRECISION_INT8 || p == ATT_PRECISION_BINARY;
        const size_t bytes = bytes_of(p);
        assert_int_equal(embed("$A embed -m $D --precision %s --tokens lines", names[p]), 0);
        for (int i = 0; i < LINES; i++) {
            json_t *v = line_json(i), *row = json_object_get(v, "embedding");
            assert_int_equal(json_array_size(row), bytes);
            assert_true(number(v, "tokens") > 2);
            assert_int_equal(json_string_length(json_object_get(v, "text")), 4);
            for (size_t d = 0; d < bytes; d++) {
                const uint8_t code = codes[p][(size_t)i * bytes + d];
                assert_int_equal(json_integer_value(json_array_get(row, d)), is_signed ? (int8_t)code : code);
            }
            json_decref(v);
        }
        assert_int_equal(
            embed("$A embed -m $D --precision %s --format tsv lines >v.tsv; "
                  "$A embed -m $D --precision %s lines | sed 's/.*\\[//; s/\\].*//; s/,/\\t/g' | cmp v.tsv",
                  names[p]),
            0);
    }
}

/* The ranges of others clip what is outside. */
static void ranges_may_be_those_of_other_vectors(void **state)
{
    (void)state;
    static const float wide[2 * DIM] = {[DIM] = 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4};
    FILE *f = folder_open(&tool_model, "wide.npy");
    char header[119];
    const int n = snprintf(header, sizeof header, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, %d), }", DIM);
    fprintf(f, "\x93NUMPY\1%c\x76%c%s%*s\n", 0, 0, header, 117 - n, "");
    fwrite(wide, sizeof *wide, 2 * DIM, f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(tool("$A embed -m $D --precision uint8 --ranges wide.npy --format npy -o w.npy lines && "
                          "cmp wide.npy w.npy.ranges.npy && cat w.npy"),
                     0);
    assert_string_equal(tool_err, "");
    for (int i = 0; i < LINES * DIM; i++) {
        const float x = vectors[i / DIM][i % DIM] / (4.0f / 255);
        assert_int_equal((uint8_t)tool_out[NPY_HEADER + i], x > 0 ? (int)x : 0);
    }
    assert_int_equal(
        tool("$A embed -m $D --precision int8 --calibration v.npy --format npy -o c.npy --text 'aa a' && "
             "head -c 12 int8.npy >/dev/null; tail -c 12 c.npy >c; tail -c +129 int8.npy | head -c 12 | cmp c"),
        0);
    assert_int_equal(tool("$A embed -m $D --precision int8 --text 'aa a' --text 'b b'"), 0);
    assert_has(tool_err, "attend: the ranges of int8 are those of 2 vectors; they are more stable from more");
    assert_has(tool_err, "which queries need, are not written to standard output");
}

static void sql_has_the_texts_and_the_codes(void **state)
{
    (void)state;
    assert_int_equal(
        tool("printf 'a\\\\tb\\n'\"it's\\n\" >odd; $A embed -m $D --format pgvector --precision ubinary odd"), 0);
    assert_has(tool_out, "ORDER BY embedding <~> B'...' LIMIT 10;\nBEGIN;\nCREATE EXTENSION IF NOT EXISTS vector;\n"
                         "CREATE TABLE embeddings (id bigint PRIMARY KEY, text text NOT NULL, embedding bit(12) NOT "
                         "NULL);\nCOPY embeddings (id, text, embedding) FROM stdin;\n1\ta\\\\tb\t");
    assert_has(tool_out, "\n2\tit's\t");
    assert_has(tool_out, "\n\\.\nCOMMIT;\n");
    assert_int_equal(tool("$A embed -m $D --format pgvector --table Items_2 lines"), 0);
    assert_has(tool_out,
               "CREATE TABLE Items_2 (id bigint PRIMARY KEY, text text NOT NULL, embedding vector(12) NOT NULL);");
    const char *row = strstr(tool_out, "\n1\taa a\t[");
    assert_non_null(row);
    row += strlen("\n1\taa a\t[");
    for (int d = 0; d < DIM; d++) {
        char *end;
        assert_true(strtof(row, &end) == vectors[0][d]);
        assert_int_equal(*end, d + 1 < DIM ? ',' : ']');
        row = end + 1;
    }
    assert_int_equal(tool("$A embed -m $D --format sqlite-vec odd"), 0);
    assert_has(tool_out,
               "CREATE VIRTUAL TABLE embeddings USING vec0(embedding float[12] distance_metric=cosine, +text text);\n"
               "INSERT INTO embeddings(rowid, embedding, text) VALUES (1, vec_f32(x'");
    assert_has(tool_out, "'), 'it''s');\nCOMMIT;\n");
    assert_int_equal(tool("$A embed -m $D --format sqlite-vec --precision int8 -o s.sql lines && cat s.sql"), 0);
    assert_has(tool_out, "vec0(embedding int8[12], +text text);\n");
    for (int i = 0; i < LINES; i++) {
        char text[160];
        int n = snprintf(text, sizeof text, "VALUES (%d, vec_int8(x'", i + 1);
        for (int d = 0; d < DIM; d++)
            n += snprintf(text + n, sizeof text - (size_t)n, "%02x", codes[ATT_PRECISION_INT8][i * DIM + d]);
        assert_has(tool_out, text);
    }
    assert_int_equal(tool("test -e s.sql.ranges.npy"), 0);
}

static void an_index_of_codes_finds_what_the_vectors_find(void **state)
{
    (void)state;
    assert_int_equal(tool("$A search -m $D -c lines -i v.npy -k 1 'cb o' >exact"), 0);
    for (int p = ATT_PRECISION_INT8; p <= ATT_PRECISION_UBINARY; p++) {
        assert_int_equal(embed("$A search -m $D -c lines -i %s.npy --rescore 60 -k 2 --json 'cb o' && "
                               "$A search -m $D -c lines --precision %s --rescore 60 -k 2 --json 'cb o'",
                               names[p]),
                         0);
        json_t *v = line_json(0), *other = line_json(1), *hits = json_object_get(v, "results");
        assert_true(json_equal(v, other)); /* computed or not */
        assert_int_equal(json_array_size(hits), 2);
        if (p <= ATT_PRECISION_UINT8) /* all lines are rescored, the line itself is the nearest */
            assert_string_equal(json_string_value(json_object_get(json_array_get(hits, 0), "text")), "cb o");
        assert_true(number(json_array_get(hits, 0), "score") >= number(json_array_get(hits, 1), "score"));
        json_decref(v);
        json_decref(other);
        assert_int_equal(
            embed("$A search -m $D -c lines -i %s.npy --precision %s --rescore 0 -k 1 --json 'cb o'", names[p]), 0);
        v = line_json(0);
        const double score = number(json_array_get(json_object_get(v, "results"), 0), "score");
        assert_true(score == round(score));
        assert_true(p <= ATT_PRECISION_UINT8 ? score > 0 : score == 0);
        json_decref(v);
    }
}

static void what_does_not_fit_together_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int code;
        const char *says;
    } cases[] = {
        {"$A search -m $D -c lines -i int8.npy --precision uint8 a", 1,
         "int8.npy: has vectors of int8, but --precision is uint8"},
        {"$A search -m $D -c lines -i v.npy --precision ubinary a", 1,
         "v.npy: has vectors of float32, but --precision is ubinary"},
        {"$A search -m $D -c lines -i v.npy --rescore 2 a", 2, "--rescore is of int8, uint8 and bits"},
        {"$A search -m $D -c lines --ranges v.npy a", 2, "--ranges is of int8 and uint8"},
        {"$A search -m $D -c lines -i binary.npy --ranges int8.npy.ranges.npy a", 2,
         "--ranges is of int8 and uint8, but binary.npy has vectors of binary"},
        {"cp int8.npy alone.npy; $A search -m $D -c lines -i alone.npy a", 1,
         "alone.npy.ranges.npy: is missing, the ranges of alone.npy that queries need: give --ranges, or make both "
         "anew: \"attend embed -m "},
        {"$A search -m $D -c lines -i int8.npy --ranges v.npy a", 1, "v.npy: has 120 rows, but ranges have 2"},
        {"$A search -m $D -c lines -i int8.npy --ranges int8.npy a", 1,
         "int8.npy: the numbers are '|i1', but must be '<f4' (float32)"},
        {"$A search -m $D -c lines -i int8.npy --ranges wide.npy a", 1,
         "int8.npy: row 1 is not the int8 vector of line 1 by"},
        {"tac lines >other; $A search -m $D -c other -i ubinary.npy a", 1,
         "ubinary.npy: row 1 is not the ubinary vector of line 1 by"},
        {"head -n 119 lines >fewer; $A search -m $D -c fewer -i uint8.npy a", 1,
         "uint8.npy: has 120 rows, but fewer has 119 lines"},
        {"head -c 1000 int8.npy >short.npy; $A search -m $D -c lines -i short.npy a", 1,
         "short.npy: the shape is (120, 12), but the file has 872 bytes of numbers"},
        {"sed 's/(120, 12)/(12, 120)/' int8.npy >turned.npy; $A search -m $D -c lines -i turned.npy a", 1,
         "turned.npy: has vectors of 120 int8, but those of"},
        {"sed 's/(120, 12), }     /(9223372036854775807, 2)}/' int8.npy >huge.npy; $A search -m $D -c lines -i "
         "huge.npy a",
         1, "huge.npy: the shape is (9223372036854775807, 2), but the file has"},
        {"$A embed -m $D --precision int8 --text a", 1,
         "one vector has no ranges for int8: give --ranges or --calibration"},
        {"$A embed -m $D --precision ubinary --ranges wide.npy lines", 2, "--ranges is of int8 and uint8, not of"},
        {"$A embed -m $D --precision int8 --ranges wide.npy --calibration v.npy lines", 2,
         "--ranges does not go with --calibration"},
        {"$A embed -m $D --precision int8 --ranges none.npy lines", 1, "none.npy: No such file"},
        {"$A embed -m $D --precision int8 --format pgvector lines", 2,
         "pgvector has no type of int8: --precision float32 or ubinary"},
        {"$A embed -m $D --precision uint8 --format sqlite-vec lines", 2, "sqlite-vec has no type of uint8"},
        {"$A embed -m $D --precision binary --format sqlite-vec lines", 2,
         "vectors of bits of sqlite-vec are whole bytes, but these have 12 bits"},
        {"$A embed -m $D --table a lines", 2, "--table is of the formats pgvector and sqlite-vec, not of jsonl"},
        {"$A embed -m $D --format pgvector --table 'a;b' lines", 2, "--table: \"a;b\" is not a name"},
        {"printf 'a line, b\\0 c\\n' >zero; $A embed -m $D --format pgvector zero", 1, "text 1 has a zero byte"},
        {"{ $A embed -m $D --format fbin lines; echo $? >code; } | cat; exit $(cat code)", 2,
         "fbin cannot be written to a pipe: give -o FILE"},
        {"$A embed -m $D --precision f32 lines", 2, "float32"},
        {"TMPDIR=/none $A embed -m $D --precision int8 lines", 1, "a file in /none (TMPDIR), where vectors wait"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_refused(cases[i].line, cases[i].code, cases[i].says);
}

/* A range that is upside down, and one that is not finite */
static void ranges_that_cannot_be_are_refused(void **state)
{
    (void)state;
    assert_int_equal(tool("head -c 128 int8.npy.ranges.npy >bad.npy; tail -c 48 int8.npy.ranges.npy >>bad.npy; "
                          "tail -c +129 int8.npy.ranges.npy | head -c 48 >>bad.npy"),
                     0);
    assert_refused("$A search -m $D -c lines -i int8.npy --ranges bad.npy a", 1, "bad.npy: column 1 is from ");
    assert_int_equal(tool("head -c 176 int8.npy.ranges.npy >bad.npy; printf '\\0\\0\\200\\177' >>bad.npy; "
                          "tail -c 44 int8.npy.ranges.npy >>bad.npy"),
                     0);
    assert_refused("$A search -m $D -c lines -i int8.npy --ranges bad.npy a", 1,
                   "bad.npy: row 2 has a number that is infinite");
}

/* An output that cannot be completed leaves neither file. */
static void an_interrupted_output_leaves_no_file(void **state)
{
    (void)state;
    assert_refused("printf 'a line, b\\nc\\0 d\\n' >zero; $A embed -m $D --format sqlite-vec --precision int8 "
                   "--calibration v.npy -o z.sql zero",
                   1, "text 2 has a zero byte");
    assert_int_equal(tool("test ! -e z.sql && test ! -e z.sql.ranges.npy && ! ls | grep unfinished"), 0);
}

static void truncated_vectors_are_the_first_numbers_and_of_length_one(void **state)
{
    (void)state;
    enum { SOME = 9 }; /* 2 bytes of bits */
    assert_int_equal(tool("$A embed -m $D --dims 9 --format npy -o d.npy lines && cat d.npy"), 0);
    for (int i = 0; i < LINES; i++) {
        double squares = 0;
        for (int d = 0; d < SOME; d++)
            squares += (double)vectors[i][d] * (double)vectors[i][d];
        for (int d = 0; d < SOME; d++) {
            float x;
            memcpy(&x, tool_out + NPY_HEADER + (size_t)(i * SOME + d) * sizeof x, sizeof x);
            assert_true(fabs((double)x - (double)vectors[i][d] / sqrt(squares)) <= 4 * (double)FLT_EPSILON);
        }
    }
    assert_int_equal(tool("$A search -m $D --dims 9 -c lines -i d.npy -k 1 'cb o'"), 0);
    assert_has(tool_out, "cb o\n   1.0000");
    assert_int_equal(tool("$A embed -m $D --dims 9 --precision ubinary --format npy -o d1.npy lines && "
                          "$A search -m $D --dims 9 -c lines -i d1.npy -k 1 'cb o' && "
                          "$A similarity -m $D --dims 1 'a b' 'c d'"),
                     0);
    assert_refused("$A search -m $D -c lines -i d.npy a", 1, "d.npy: has vectors of 9 numbers, but those of ");
    assert_has(tool_err, " have 12 numbers (--dims)\n");
    assert_refused("$A search -m $D --dims 8 -c lines -i d1.npy a", 1, "d1.npy: has vectors of 2 uint8, but those of ");
    assert_refused("$A embed -m $D --dims 13 lines", 2, "--dims is 13, but the vectors of ");
    assert_refused("$A search -m $D --dims 13 -c lines a", 2, " have 12 numbers");
    assert_refused("$A similarity -m $D --dims 0 a b", 2, "--dims");
}

/* prompted: the model with prompts */
static void prompts_are_text_before_each_text(void **state)
{
    (void)state;
    assert_int_equal(tool("mkdir prompted; cp -r *.json vocab.txt 1_Pooling model.safetensors prompted; "
                          "echo '{\"prompts\": {\"query\": \"c d \", \"passage\": \"e \", \"task-1\": \"f \"}, "
                          "\"default_prompt_name\": \"task-1\"}' >prompted/config_sentence_transformers.json"),
                     0);
    static const struct {
        const char *option, *before;
    } cases[] = {{"", "f "},          {"--prompt query", "c d "}, {"--prompt 'a b '", "a b "},
                 {"--prompt ''", ""}, {"--prompt document", ""},  {"--prompt passage", "e "}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[256];
        snprintf(
            line, sizeof line,
            "$A embed -m prompted %s --format tsv --text 'g h' >x; $A embed -m $D --format tsv --text '%sg h' | cmp x",
            cases[i].option, cases[i].before);
        assert_int_equal(tool(line), 0);
    }
    assert_int_equal(tool("$A similarity -m prompted --prompt query --json 'g h' b | sed 's/.*similarity//' >x; "
                          "$A similarity -m $D --json 'c d g h' 'c d b' | sed 's/.*similarity//' | cmp x"),
                     0);
    assert_refused("$A embed -m prompted --prompt pasage lines", 1,
                   "--prompt: prompted has no prompt \"pasage\"; did you mean \"passage\"?");
    assert_refused("$A search -m prompted --document-prompt document --query-prompt qery -c lines a", 1,
                   "--query-prompt: prompted has no prompt \"qery\"; did you mean \"query\"?");
    assert_refused("$A similarity -m prompted --prompt no-such a b", 1,
                   "--prompt: prompted has no prompt \"no-such\"; \"attend info\" lists them");
}

/* The query has the prompt "query", lines of the corpus "document", which is empty here. */
static void search_has_a_prompt_of_queries_and_one_of_documents(void **state)
{
    (void)state;
    assert_int_equal(tool("$A search -m prompted -c lines --json -k 3 'cb o' >x; "
                          "$A search -m $D -c lines --json -k 3 'c d cb o' | sed 's/c d cb o/cb o/' | cmp x"),
                     0);
    assert_int_equal(tool("$A search -m prompted -c lines -k 1 a"), 0);
    assert_has(tool_err,
               "prompted has a prompt \"passage\", which lines of the corpus do not get, as with encode_document");
    assert_int_equal(tool("$A embed -m prompted --prompt passage --format npy -o p.npy lines && "
                          "$A search -m prompted -c lines -i p.npy --document-prompt passage --query-prompt 'e ' -k 1 "
                          "'cb o'"),
                     0);
    assert_has(tool_out, "1.0000");
    assert_string_equal(tool_err, "");
    assert_int_equal(tool("$A search -m prompted -c lines -i p.npy a"), 1);
    assert_has(tool_err, "p.npy: row 1 is not the vector of line 1 of lines by prompted");
    assert_has(tool_err, "\"attend embed -m prompted --prompt document --format npy -o p.npy lines\" makes");
    assert_int_equal(tool("$A embed -m prompted --prompt document --format npy -o p.npy lines && "
                          "$A search -m prompted -c lines -i p.npy -k 1 a"),
                     0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_have_the_codes_of_the_library),
        cmocka_unit_test(lines_of_text_have_the_same_codes),
        cmocka_unit_test(ranges_may_be_those_of_other_vectors),
        cmocka_unit_test(sql_has_the_texts_and_the_codes),
        cmocka_unit_test(an_index_of_codes_finds_what_the_vectors_find),
        cmocka_unit_test(what_does_not_fit_together_is_refused),
        cmocka_unit_test(ranges_that_cannot_be_are_refused),
        cmocka_unit_test(an_interrupted_output_leaves_no_file),
        cmocka_unit_test(truncated_vectors_are_the_first_numbers_and_of_length_one),
        cmocka_unit_test(prompts_are_text_before_each_text),
        cmocka_unit_test(search_has_a_prompt_of_queries_and_one_of_documents),
    };
    return cmocka_run_group_tests(tests, set_up, tool_teardown);
}
