/* attend embed: computes vectors of lines or images. */
#include "cli/base/grow.h"
#include "cli/base/output.h"
#include "cli/base/progress.h"
#include "cli/base/shard.h"
#include "cli/base/temporary.h"
#include "cli/base/unknown_tokens.h"
#include "cli/sentence/embedder.h"
#include "cli/sentence/ranges.h"
#include "cli/sentence/vector_file.h"
#include "cli/vision/vision.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *model_name, *output_path, *file, *ranges_path, *calibration_path, *table, *prompt, *background;
static cli_texts texts;
static int format = -1, precision;
static bool json, with_tokens, skip_broken;
static int64_t dims, threads;
static cli_types types;

static const cli_option options[] = {
    CLI_SENTENCE_MODEL_OPTION(&model_name),
    CLI_FILE(&file),
    CLI_SENTENCE(&texts),
    CLI_PROMPT(&prompt, "prompt", "text", "the model's default prompt, if it has one"),
    CLI_DIMS(&dims),
    {"format", 0, CLI_VECTOR_FORMATS, .choice = &format, .help = "output format; default: jsonl"},
    {"precision", 0, CLI_PRECISIONS, .choice = &precision,
     .help =
         "numbers of the vectors, as quantize_embeddings of sentence-transformers makes them: of 32 bits, of 8 with "
         "the ranges of each dimension, or of one"},
    {"ranges", 0, "FILE", .text = &ranges_path,
     .help = "ranges of int8 and uint8, a .npy file [2, dim] of lowest and highest numbers; default: those of the "
             "vectors themselves, which FILE.ranges.npy beside -o FILE has"},
    {"calibration", 0, "FILE", .text = &calibration_path,
     .help = "take the ranges of int8 and uint8 from these vectors, as --format npy writes them"},
    {"table", 0, "NAME", .text = &table, .help = "name of the table of SQL; default: embeddings"},
    {"tokens", 0, NULL, .flag = &with_tokens,
     .help = "in jsonl, also write how many tokens each line has, and whether it was truncated"},
    CLI_OUTPUT(&output_path),
    CLI_SHARD,
    CLI_TYPES(types),
    CLI_SKIP_BROKEN(&skip_broken),
    CLI_BACKGROUND(&background),
    CLI_THREADS(&threads),
    {"json", 0, NULL, .flag = &json, .help = "print JSON Lines, the same as --format jsonl"},
    {0},
};

/* ---- Vectors on their way to the file ------------------------------------- */

typedef struct sink {
    cli_embedder *m;
    cli_vector_file out;
    uint8_t *codes; /* of a vector */
    float *ranges;  /* [2, dim] of int8 and uint8, or NULL */
    FILE *waiting;  /* vectors, with their texts, until the ranges of all are known; or NULL */
    int64_t rows;
} sink;

/* The head of a vector that waits, before its text and the vector itself. */
typedef struct waiting_head {
    int64_t number, tokens;
    size_t bytes;
    bool truncated;
} waiting_head;

static bool has_ranges(void) { return precision == ATT_PRECISION_INT8 || precision == ATT_PRECISION_UINT8; }

/* Quantizes a vector and writes it. */
static int write_vector(sink *s, cli_embedded *e, const float *vector)
{
    e->codes = s->codes;
    const int code = cli_status(s->m->ctx, att_vectors_quantize(s->m->ctx, (att_precision)precision, vector, 1,
                                                                s->m->dim, s->ranges, s->codes));
    return code ? code : cli_vector_file_add(&s->out, e);
}

static int keep_vector(sink *s, const cli_embedded *e, const float *vector)
{
    const waiting_head head = {e->number, e->tokens, e->bytes, e->truncated};
    const int code = cli_status(s->m->ctx, att_ranges_add(s->m->ctx, vector, 1, s->m->dim, s->ranges));
    if (code)
        return code;
    fwrite(&head, sizeof head, 1, s->waiting);
    fwrite(e->text, 1, e->bytes, s->waiting);
    fwrite(vector, sizeof *vector, (size_t)s->m->dim, s->waiting);
    return ferror(s->waiting) ? cli_temporary_fail() : CLI_DONE;
}

/* Adds vectors [in->count, dim] of the block after `before` items. failed [in->count]: items without a vector. */
static int add_block(sink *s, const cli_lines *in, const float *vectors, const bool *failed, int64_t before)
{
    int code = CLI_DONE;
    for (int64_t i = 0; !code && i < in->count; i++) {
        const float *vector = vectors + i * s->m->dim;
        cli_embedded e = {.text = in->text[i],
                          .bytes = in->bytes[i],
                          .number = before + i + 1,
                          .tokens = s->m->tokens[i],
                          .truncated = s->m->truncated[i]};
        if (failed[i])
            continue;
        s->rows++;
        code = s->waiting ? keep_vector(s, &e, vector) : write_vector(s, &e, vector);
    }
    return code;
}

/* Reads the next vector that waits. *text grows. Returns false at the end, or after an error, with *code. */
static bool read_waiting(sink *s, cli_embedded *e, char **text, size_t *room, float *vector, int *code)
{
    waiting_head head;
    if (fread(&head, sizeof head, 1, s->waiting) != 1) {
        *code = ferror(s->waiting) ? cli_temporary_fail() : CLI_DONE;
        return false;
    }
    if (!cli_reserve(room, head.bytes + 1, &(cli_array){text, 1}, 1))
        *code = cli_fail_memory();
    else if (fread(*text, 1, head.bytes, s->waiting) < head.bytes ||
             fread(vector, sizeof *vector, (size_t)s->m->dim, s->waiting) < (size_t)s->m->dim)
        *code = cli_temporary_fail();
    *e = (cli_embedded){
        .text = *text, .bytes = head.bytes, .number = head.number, .tokens = head.tokens, .truncated = head.truncated};
    return !*code;
}

/* Quantizes and writes all vectors that wait, with the ranges of all of them. */
static int write_waiting(sink *s)
{
    enum { STABLE = 100 };
    cli_embedded e;
    char *text = NULL;
    size_t room = 0;
    float *vector = malloc((size_t)s->m->dim * sizeof *vector);
    int code = vector ? CLI_DONE : cli_fail_memory();
    if (!code && s->rows == 1)
        code = cli_fail("one vector has no ranges for %s: give --ranges or --calibration",
                        att_precision_name((att_precision)precision));
    if (!code && s->rows > 1 && s->rows < STABLE)
        cli_note("the ranges of %s are those of %lld vectors; they are more stable from more, by --calibration",
                 att_precision_name((att_precision)precision), (long long)s->rows);
    if (!code && (fflush(s->waiting) || fseeko(s->waiting, 0, SEEK_SET)))
        code = cli_temporary_fail();
    while (!code && read_waiting(s, &e, &text, &room, vector, &code))
        code = write_vector(s, &e, vector);
    free(text);
    free(vector);
    return code;
}

/* ---- The input -------------------------------------------------------------- */

/* Finds what the model does not know in the lines of a block that have such parts. */
static int scan(cli_unknown *unknown, const cli_embedder *m, const cli_lines *in)
{
    int code = CLI_DONE;
    for (int64_t i = 0; !m->images && !code && i < in->count; i++)
        if (m->unknown[i])
            code = cli_unknown_scan(unknown, m->ctx, att_sentence_tokenizer(m->text.sentence), in->text[i],
                                    in->bytes[i], m->text.info.max_tokens);
    return code;
}

/* Embeds all lines. *done: their number. */
static int stream(sink *s, cli_lines *in, cli_output *out, int64_t *done)
{
    cli_embedder *m = s->m;
    float *vectors = malloc((size_t)(m->block * m->dim) * sizeof *vectors);
    bool *failed = malloc((size_t)m->block * sizeof *failed);
    int64_t truncated = 0;
    cli_unknown unknown = {0};
    m->tokens = calloc((size_t)m->block, sizeof *m->tokens);
    m->truncated = calloc((size_t)m->block, sizeof *m->truncated);
    m->unknown = calloc((size_t)m->block, sizeof *m->unknown);
    int code = vectors && failed && m->tokens && m->truncated && m->unknown ? CLI_DONE : cli_fail_memory();
    cli_progress progress;
    cli_progress_begin(&progress);
    while (!code) {
        code = cli_lines_next(in, m->block);
        if (code || in->count == 0)
            break;
        const int64_t before = in->before + *done;
        code = cli_embedder_encode(m, in->count, in->text, in->bytes, vectors, &truncated, failed, before);
        if (!code)
            code = add_block(s, in, vectors, failed, before);
        if (code)
            break;
        *done += in->count;
        code = scan(&unknown, m, in);
        if (!code)
            code = cli_output_flush(out);
        cli_progress_show(&progress, *done, m->lines, in->total > 0 ? in->done / in->total : 0);
    }
    cli_progress_end(&progress);
    cli_embedder_note(m, truncated, s->rows, m->lines);
    cli_unknown_report(&unknown);
    free(vectors);
    free(failed);
    free(m->tokens);
    free(m->truncated);
    free(m->unknown);
    return code;
}

/* Sets the given ranges, or prepares to find those of all vectors. */
static int begin_ranges(sink *s)
{
    const char *name = att_precision_name((att_precision)precision);
    if (!has_ranges())
        return ranges_path || calibration_path ? cli_misuse("--%s is of int8 and uint8, not of --precision %s",
                                                            ranges_path ? "ranges" : "calibration", name)
                                               : CLI_DONE;
    if (ranges_path)
        return cli_ranges_read(ranges_path, s->m->dim, s->m->name, &s->ranges);
    if (calibration_path)
        return cli_ranges_of_vectors(s->m->ctx, calibration_path, s->m->dim, s->m->name, &s->ranges);
    s->ranges = malloc(2 * (size_t)s->m->dim * sizeof *s->ranges);
    int code = s->ranges ? cli_status(s->m->ctx, att_ranges_begin(s->m->dim, s->ranges)) : cli_fail_memory();
    if (!code)
        code = cli_temporary_open(&s->waiting);
    return code;
}

/* Writes the ranges next to the file of the vectors, for queries. */
static int write_ranges(const sink *s)
{
    if (!has_ranges() || s->rows == 0)
        return CLI_DONE;
    if (!output_path || !strcmp(output_path, "-")) {
        if (!ranges_path)
            cli_note("the ranges of %s, which queries need, are not written to standard output: give -o FILE",
                     att_precision_name((att_precision)precision));
        return CLI_DONE;
    }
    char *path = cli_ranges_path(output_path);
    int code = path ? CLI_DONE : cli_fail_memory();
    if (!code && !(ranges_path && !strcmp(ranges_path, path)))
        code = cli_ranges_write(path, s->m->dim, s->ranges);
    free(path);
    return code;
}

static int write_all(cli_embedder *m, cli_lines *in, cli_output *out)
{
    int64_t done = 0;
    sink s = {.m = m,
              .out = {.format = format,
                      .precision = (att_precision)precision,
                      .dim = m->dim,
                      .similarity = m->similarity,
                      .key = m->key,
                      .table = table ? table : "embeddings",
                      .with_tokens = with_tokens}};
    int code = begin_ranges(&s);
    s.codes = malloc((size_t)att_precision_bytes((att_precision)precision, m->dim));
    if (!code && !s.codes)
        code = cli_fail_memory();
    if (!code)
        code = cli_vector_file_begin(&s.out, out->file);
    if (!code)
        code = stream(&s, in, out, &done);
    if (!code && s.waiting)
        code = write_waiting(&s);
    code = cli_vector_file_end(&s.out, code);
    if (!code)
        code = write_ranges(&s);
    if (s.waiting)
        fclose(s.waiting);
    free(s.codes);
    free(s.ranges);
    if (!code && s.rows < done && skip_broken)
        cli_note("%lld of %lld images cannot be read, and %s no row", (long long)(done - s.rows), (long long)done,
                 done - s.rows == 1 ? "has" : "have");
    return !code && s.rows < done && !skip_broken ? CLI_FAILED : code;
}

/* ---- The command ------------------------------------------------------------ */

/* Returns whether a word is one of --format. */
static bool is_format(const char *word)
{
    for (int i = 0; i <= CLI_VECTORS_SQLITE; i++)
        if (!strcmp(word, cli_vector_format(i)))
            return true;
    return false;
}

/* Returns whether SQL needs no quotes around a name. */
static bool is_identifier(const char *name)
{
    enum { LONGEST = 63 };
    size_t n = 0;
    while (name[n] && (isalpha((unsigned char)name[n]) || name[n] == '_' || (n > 0 && isdigit((unsigned char)name[n]))))
        n++;
    return n > 0 && n <= LONGEST && !name[n];
}

static int check_options(void)
{
    if (json && format > CLI_VECTORS_JSONL)
        return cli_misuse("--json does not go with --format %s", cli_vector_format(format));
    if (with_tokens && format > CLI_VECTORS_JSONL)
        return cli_misuse("--tokens does not go with --format %s", cli_vector_format(format));
    if (file && is_format(file) && access(file, F_OK))
        return cli_misuse("--file: there is no file \"%s\"; did you mean --format %s?", file, file);
    format = format < 0 ? CLI_VECTORS_JSONL : format;
    if (ranges_path && calibration_path)
        return cli_misuse("--ranges does not go with --calibration");
    if (cli_shard_given() && has_ranges() && !ranges_path && !calibration_path)
        return cli_misuse(
            "--precision %s with --shard needs --ranges or --calibration: those of each part would differ",
            att_precision_name((att_precision)precision));
    if (table && format != CLI_VECTORS_PGVECTOR && format != CLI_VECTORS_SQLITE)
        return cli_misuse("--table is of the formats pgvector and sqlite-vec, not of %s", cli_vector_format(format));
    if (table && !is_identifier(table))
        return cli_misuse("--table: \"%s\" is not a name of letters, digits and _, of at most 63", table);
    return CLI_DONE;
}

static int run(int n, char **arguments)
{
    cli_embedder m = {0};
    cli_lines in = {.fd = -1};
    cli_output out = {0};
    int code = check_options();
    if (!code)
        code = cli_lines_choose(&in, cli_model_is(ATT_SUBJECT_VISION, model_name), &texts, &file, n, arguments);
    if (!code)
        code = cli_embedder_open(&m, model_name, types, threads);
    if (!code)
        code = cli_embedder_prompt(&m, "prompt", prompt, NULL);
    if (!code)
        code = cli_embedder_truncate(&m, dims);
    if (!code)
        code = cli_embedder_background(&m, background);
    if (!code && m.images && with_tokens)
        code = cli_misuse("--tokens is of lines, not of images");
    if (!code && !m.images)
        code = cli_paths_refuse_images(n, arguments);
    if (!code)
        code = cli_output_open(&out, output_path);
    if (!code)
        code = write_all(&m, &in, &out);
    code = cli_output_close(&out, code);
    cli_embedder_close(&m);
    cli_lines_close(&in);
    return code;
}

const cli_command cli_embed = {
    .name = "embed",
    .summary = "compute embeddings of sentences or images",
    .arguments = "[FILE...]",
    .max_arguments = -1,
    .details =
        "Reads lines from the files (\"-\": standard input, which is also the default), or the sentences of "
        "--text, and\n"
        "writes a vector for each, in order; memory does not grow with the input. An\n"
        "empty line has a vector, too. A line that is too long for the model is truncated.\n\n"
        "A folder of an encoder or a causal language model without modules.json is a sentence model, too: a line's "
        "vector is the mean of its hidden states, or that of the last token if the class is ...ForCausalLM, as "
        "in sentence-transformers.\n\n"
        "jsonl: {\"text\": \"...\", \"embedding\": [...]} per line, with U+FFFD for invalid\n"
        "UTF-8; with --tokens also \"tokens\": 5, \"truncated\": false. tsv: numbers\n"
        "separated by tabs. npy: a float32 matrix [lines, dim] for NumPy and for\n"
        "\"attend search --index\". fbin: the numbers of lines and of columns, int32, then the matrix, as "
        "approximate nearest neighbor libraries read .fbin, .i8bin and .u8bin. All these preserve the float32 "
        "values exactly. pgvector and sqlite-vec: SQL that makes a table of the lines and their vectors, in one "
        "transaction.\n\n"
        "--precision int8 and uint8: step floor((x - lowest) / (highest - lowest) * 255) of each dimension's "
        "range, which for int8 begins at -128. Vectors wait in a file in $TMPDIR until the ranges of all are "
        "known, unless --ranges or --calibration is given. ubinary: a bit for each number, 1 where it is above "
        "0, 8 to a byte, the first one highest, filled up with 0; binary: the same byte less 128. pgvector has "
        "no type of 8 bits, sqlite-vec none of uint8; both have their own order of bits, vector by "
        "vector the same as binary_quantize and vec_quantize_binary make.\n\n"
        "With a vision model the arguments are images (JPEG, PNG, WebP, TIFF; \"-\": standard input), or folders with "
        "images in them or in their folders, and lines and --text are paths of images. Their vectors have "
        "length 1, so that a dot product "
        "is a cosine, and in jsonl \"image\" stands in place of \"text\". An image that cannot be read "
        "is reported and gets no row, and the command fails at the end; with --skip-broken it succeeds.",
    .examples = "attend embed -m all-MiniLM-L6-v2 sentences.txt > vectors.jsonl\n"
                "attend embed -m all-MiniLM-L6-v2 --text \"A cat sleeps.\" --text \"A kitten naps.\"\n"
                "attend embed -m all-MiniLM-L6-v2 --format npy -o corpus.npy corpus.txt\n"
                "attend embed -m all-MiniLM-L6-v2 --precision int8 --format npy -o corpus.npy corpus.txt\n"
                "attend embed -m all-MiniLM-L6-v2 --format pgvector corpus.txt | psql\n"
                "attend embed -m dinov2-small --format npy -o photos.npy photos/",
    .options = options,
    .see = "search|similarity|train embed|fetch",
    .run = run,
};
