#include "vector_file.h"

#include "cli/base/command.h"
#include "cli/base/json.h"
#include "cli/base/npy.h"
#include "cli/base/output.h"
#include "cli/base/shard.h"

#include <attend_text.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

static bool is_bits(const cli_vector_file *v)
{
    return v->precision == ATT_PRECISION_BINARY || v->precision == ATT_PRECISION_UBINARY;
}

static bool is_signed(const cli_vector_file *v)
{
    return v->precision == ATT_PRECISION_INT8 || v->precision == ATT_PRECISION_BINARY;
}

/* Returns the bits of a vector as bytes of `ubinary`. */
static uint8_t bits_at(const cli_vector_file *v, const void *codes, int64_t byte)
{
    return ((const uint8_t *)codes)[byte] ^ (v->precision == ATT_PRECISION_BINARY ? 0x80 : 0);
}

/* ---- Numbers as text: jsonl, tsv */

/* Returns the numbers of a row as floats, which represent all codes exactly. */
static const float *numbers(const cli_vector_file *v, const void *codes)
{
    if (v->precision == ATT_PRECISION_FLOAT32)
        return codes;
    for (int64_t i = 0; i < v->columns; i++)
        v->row[i] = is_signed(v) ? (float)((const int8_t *)codes)[i] : (float)((const uint8_t *)codes)[i];
    return v->row;
}

static int add_jsonl(cli_vector_file *v, const cli_embedded *e)
{
    cli_json j = cli_json_begin(v->file);
    cli_json_bytes(&j, v->key, e->text, e->bytes);
    if (v->with_tokens) {
        cli_json_integer(&j, "tokens", e->tokens);
        cli_json_bool(&j, "truncated", e->truncated);
    }
    cli_json_row(&j, "embedding", numbers(v, e->codes), v->columns);
    cli_json_end(&j);
    return CLI_DONE;
}

static int add_tsv(cli_vector_file *v, const cli_embedded *e)
{
    cli_write_row(v->file, numbers(v, e->codes), v->columns, '\t');
    putc('\n', v->file);
    return CLI_DONE;
}

/* ---- Matrices: npy, fbin; the number of rows stands at the beginning of the file and is known at the end */

static int write_npy_header(cli_vector_file *v)
{
    const cli_npy_type type = v->precision == ATT_PRECISION_FLOAT32 ? CLI_NPY_FLOAT32
                              : is_signed(v)                        ? CLI_NPY_INT8
                                                                    : CLI_NPY_UINT8;
    cli_npy_header(v->file, type, v->rows, v->columns);
    return CLI_DONE;
}

static int write_fbin_header(cli_vector_file *v)
{
    const int32_t sizes[2] = {(int32_t)v->rows, (int32_t)v->columns};
    if (v->rows > INT32_MAX || v->columns > INT32_MAX)
        return cli_fail("fbin has at most %d vectors and numbers of each, but these are %lld by %lld", INT32_MAX,
                        (long long)v->rows, (long long)v->columns);
    fwrite(sizes, sizeof *sizes, 2, v->file);
    return CLI_DONE;
}

static int add_bytes(cli_vector_file *v, const cli_embedded *e)
{
    fwrite(e->codes, 1, (size_t)att_precision_bytes(v->precision, v->dim), v->file);
    return CLI_DONE;
}

/* ---- SQL */

/* Refuses a text that a string of SQL cannot have. */
static int check_text(const cli_vector_file *v, const cli_embedded *e)
{
    if (memchr(e->text, 0, e->bytes))
        return cli_fail("%s %lld has a zero byte, which no string of SQL has", v->key, (long long)e->number);
    if (!att_utf8_valid(e->text, e->bytes))
        return cli_fail("%s %lld is not UTF-8, which strings of SQL are", v->key, (long long)e->number);
    return CLI_DONE;
}

/* Returns the operator of pgvector with which the nearest rows come first. */
static const char *pgvector_operator(const cli_vector_file *v)
{
    static const char *const operators[] = {[ATT_SIMILARITY_COSINE] = "<=>",
                                            [ATT_SIMILARITY_DOT] = "<#>",
                                            [ATT_SIMILARITY_EUCLIDEAN] = "<->",
                                            [ATT_SIMILARITY_MANHATTAN] = "<+>"};
    return is_bits(v) ? "<~>" : operators[v->similarity];
}

/* Returns words with which the first part of --shard, whichever it is, makes the table that all parts share. */
static const char *unless_exists(void) { return cli_shard_given() ? "IF NOT EXISTS " : ""; }

static int begin_pgvector(cli_vector_file *v)
{
    enum { MAX_DIM = 16000 };
    if (v->precision == ATT_PRECISION_INT8 || v->precision == ATT_PRECISION_UINT8)
        return cli_misuse("pgvector has no type of %s: --precision float32 or ubinary",
                          att_precision_name(v->precision));
    if (!is_bits(v) && v->dim > MAX_DIM)
        return cli_misuse("vectors of pgvector have at most %d numbers, but these have %lld", MAX_DIM,
                          (long long)v->dim);
    fprintf(v->file,
            "-- The nearest: SELECT id, %s FROM %s ORDER BY embedding %s %s LIMIT 10;\n"
            "BEGIN;\n"
            "CREATE EXTENSION IF NOT EXISTS vector;\n"
            "CREATE TABLE %s%s (id bigint PRIMARY KEY, %s text NOT NULL, embedding %s(%lld) NOT NULL);\n"
            "COPY %s (id, %s, embedding) FROM stdin;\n",
            v->key, v->table, pgvector_operator(v), is_bits(v) ? "B'...'" : "'[...]'", unless_exists(), v->table,
            v->key, is_bits(v) ? "bit" : "vector", (long long)v->dim, v->table, v->key);
    return CLI_DONE;
}

/* Writes a field of COPY's text format. */
static void write_copied(FILE *f, const char *text, size_t bytes)
{
    static const char special[] = "\\\t\n\r", letters[] = "\\tnr";
    for (size_t i = 0; i < bytes; i++) {
        const char *found = strchr(special, text[i]);
        if (found)
            fprintf(f, "\\%c", letters[found - special]);
        else
            putc(text[i], f);
    }
}

static int add_pgvector(cli_vector_file *v, const cli_embedded *e)
{
    const int code = check_text(v, e);
    if (code)
        return code;
    fprintf(v->file, "%lld\t", (long long)e->number);
    write_copied(v->file, e->text, e->bytes);
    putc('\t', v->file);
    if (is_bits(v))
        for (int64_t d = 0; d < v->dim; d++)
            putc('0' + (bits_at(v, e->codes, d / 8) >> (7 - d % 8) & 1), v->file);
    else {
        putc('[', v->file);
        cli_write_row(v->file, e->codes, v->dim, ',');
        putc(']', v->file);
    }
    putc('\n', v->file);
    return CLI_DONE;
}

static int end_pgvector(cli_vector_file *v)
{
    fputs("\\.\nCOMMIT;\n", v->file);
    return CLI_DONE;
}

/* ---- sqlite-vec */

/* The types of columns of vec0, and the function that makes a value from a blob. */
static const struct {
    const char *type, *function;
} sqlite_types[] = {[ATT_PRECISION_FLOAT32] = {"float", "vec_f32"},
                    [ATT_PRECISION_INT8] = {"int8", "vec_int8"},
                    [ATT_PRECISION_UINT8] = {NULL, NULL},
                    [ATT_PRECISION_BINARY] = {"bit", "vec_bit"},
                    [ATT_PRECISION_UBINARY] = {"bit", "vec_bit"}};

/* Returns the option of a column for the model's measure. Steps of int8 begin at a different number in each dimension.
 * Differences of steps do not depend on it, so they are compared by distances. */
static const char *sqlite_metric(const cli_vector_file *v)
{
    if (is_bits(v))
        return "";
    if (v->similarity == ATT_SIMILARITY_MANHATTAN)
        return " distance_metric=l1";
    return v->similarity == ATT_SIMILARITY_EUCLIDEAN || v->precision == ATT_PRECISION_INT8 ? ""
                                                                                           : " distance_metric=cosine";
}

static int begin_sqlite(cli_vector_file *v)
{
    enum { MAX_DIM = 8192 };
    const char *type = sqlite_types[v->precision].type;
    if (!type)
        return cli_misuse("sqlite-vec has no type of uint8: --precision float32, int8 or ubinary");
    if (v->dim > MAX_DIM)
        return cli_misuse("vectors of sqlite-vec have at most %d numbers, but these have %lld", MAX_DIM,
                          (long long)v->dim);
    if (is_bits(v) && v->dim % 8)
        return cli_misuse("vectors of bits of sqlite-vec are whole bytes, but these have %lld bits: --dims %lld",
                          (long long)v->dim, (long long)(v->dim / 8 * 8));
    if (v->similarity == ATT_SIMILARITY_DOT && !is_bits(v))
        return cli_misuse("sqlite-vec does not compare by the dot product, as this model does: --precision ubinary");
    fprintf(v->file,
            "-- The nearest: SELECT rowid, %s FROM %s WHERE embedding MATCH %s AND k = 10 ORDER BY distance;\n"
            "BEGIN;\n"
            "CREATE VIRTUAL TABLE %s%s USING vec0(embedding %s[%lld]%s, +%s text);\n",
            v->key, v->table,
            is_bits(v)                           ? "vec_quantize_binary('[...]')"
            : v->precision == ATT_PRECISION_INT8 ? "vec_int8('[...]')"
                                                 : "'[...]'",
            unless_exists(), v->table, type, (long long)v->dim, sqlite_metric(v), v->key);
    return CLI_DONE;
}

/* Returns the byte with its bits in the opposite order, because for sqlite-vec the first of 8 numbers is a byte's
 * lowest bit (vec_quantize_binary). */
static uint8_t reversed(uint8_t byte)
{
    uint8_t other = 0;
    for (int i = 0; i < 8; i++)
        other = (uint8_t)(other << 1 | (byte >> i & 1));
    return other;
}

static int add_sqlite(cli_vector_file *v, const cli_embedded *e)
{
    static const char digits[] = "0123456789abcdef";
    const int64_t bytes = att_precision_bytes(v->precision, v->dim);
    const int code = check_text(v, e);
    if (code)
        return code;
    fprintf(v->file, "INSERT INTO %s(rowid, embedding, %s) VALUES (%lld, %s(x'", v->table, v->key, (long long)e->number,
            sqlite_types[v->precision].function);
    for (int64_t i = 0; i < bytes; i++) {
        const uint8_t byte = is_bits(v) ? reversed(bits_at(v, e->codes, i)) : ((const uint8_t *)e->codes)[i];
        putc(digits[byte >> 4], v->file);
        putc(digits[byte & 15], v->file);
    }
    fputs("'), '", v->file);
    for (size_t i = 0; i < e->bytes; i++) {
        if (e->text[i] == '\'')
            putc('\'', v->file);
        putc(e->text[i], v->file);
    }
    fputs("');\n", v->file);
    return CLI_DONE;
}

static int end_sqlite(cli_vector_file *v)
{
    fputs("COMMIT;\n", v->file);
    return CLI_DONE;
}

/* ---- All */

static const struct {
    const char *name;
    bool rewritten;                  /* `begin` is called again at the end, with the number of rows */
    int (*begin)(cli_vector_file *); /* or NULL */
    int (*add)(cli_vector_file *, const cli_embedded *);
    int (*end)(cli_vector_file *); /* or NULL */
} formats[] = {[CLI_VECTORS_JSONL] = {"jsonl", false, NULL, add_jsonl, NULL},
               [CLI_VECTORS_NPY] = {"npy", true, write_npy_header, add_bytes, NULL},
               [CLI_VECTORS_TSV] = {"tsv", false, NULL, add_tsv, NULL},
               [CLI_VECTORS_FBIN] = {"fbin", true, write_fbin_header, add_bytes, NULL},
               [CLI_VECTORS_PGVECTOR] = {"pgvector", false, begin_pgvector, add_pgvector, end_pgvector},
               [CLI_VECTORS_SQLITE] = {"sqlite-vec", false, begin_sqlite, add_sqlite, end_sqlite}};

const char *cli_vector_format(int format) { return formats[format].name; }

int cli_vector_file_begin(cli_vector_file *v, FILE *file)
{
    v->file = file;
    v->rows = 0;
    v->columns = v->precision == ATT_PRECISION_FLOAT32 ? v->dim : att_precision_bytes(v->precision, v->dim);
    if (formats[v->format].rewritten) {
        v->start = ftello(file);
        if (v->start < 0 || fcntl(fileno(file), F_GETFL) & O_APPEND)
            return cli_misuse("%s cannot be written to a pipe: give -o FILE", formats[v->format].name);
    }
    v->row = malloc((size_t)v->columns * sizeof *v->row);
    if (!v->row)
        return cli_fail_memory();
    return formats[v->format].begin ? formats[v->format].begin(v) : CLI_DONE;
}

int cli_vector_file_add(cli_vector_file *v, const cli_embedded *e)
{
    v->rows++;
    return formats[v->format].add(v, e);
}

/* Writes the header again. */
static int rewrite(cli_vector_file *v)
{
    if (fseeko(v->file, v->start, SEEK_SET))
        return cli_fail_errno("the header of the vectors");
    const int code = formats[v->format].begin(v);
    return !code && fseeko(v->file, 0, SEEK_END) ? cli_fail_errno("the end of the vectors") : code;
}

int cli_vector_file_end(cli_vector_file *v, int code)
{
    if (!code && v->file && formats[v->format].rewritten)
        code = rewrite(v);
    else if (!code && v->file && formats[v->format].end)
        code = formats[v->format].end(v);
    free(v->row);
    v->row = NULL;
    return code;
}
