/* attend embed: lines, or images, to vectors. */
#include "cli/base/npy.h"
#include "cli/base/json.h"
#include "cli/base/output.h"
#include "cli/base/progress.h"
#include "cli/base/unknown_tokens.h"
#include "cli/sentence/embedder.h"
#include "cli/vision/vision.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum format { JSONL, NPY, TSV };

static const char *model_name, *output_path, *file;
static cli_texts texts;
static int format = -1;
static bool json, with_tokens, skip_broken;
static int64_t threads;
static int dtype;

static const cli_option options[] = {
    CLI_SENTENCE_MODEL_OPTION(&model_name),
    CLI_FILE(&file),
    CLI_SENTENCE(&texts),
    {"format", 0, "jsonl|npy|tsv", .choice = &format, .help = "output format; default: jsonl"},
    {"tokens", 0, NULL, .flag = &with_tokens,
     .help = "in jsonl, also write how many tokens each line has, and whether it was truncated"},
    CLI_OUTPUT(&output_path),
    CLI_DTYPE(&dtype),
    CLI_SKIP_BROKEN(&skip_broken),
    CLI_THREADS(&threads),
    {"json", 0, NULL, .flag = &json, .help = "print JSON Lines, the same as --format jsonl"},
    {0},
};

/* vectors [in->count, dim]; failed [in->count]: have none. Returns the number of rows. */
static int64_t write_block(FILE *f, const cli_embedder *m, const cli_lines *in, const float *vectors,
                           const bool *failed)
{
    const int64_t dim = m->dim;
    int64_t rows = 0;
    for (int64_t i = 0; i < in->count; i++) {
        if (failed[i])
            continue;
        rows++;
        if (format == NPY) {
            fwrite(vectors + i * dim, sizeof *vectors, (size_t)dim, f);
            continue;
        }
        if (format == JSONL) {
            cli_json j = cli_json_begin(f);
            cli_json_bytes(&j, m->key, in->text[i], in->bytes[i]);
            if (with_tokens) {
                cli_json_integer(&j, "tokens", m->tokens[i]);
                cli_json_bool(&j, "truncated", m->truncated[i]);
            }
            cli_json_row(&j, "embedding", vectors + i * dim, dim);
            cli_json_end(&j);
            continue;
        }
        cli_write_row(f, vectors + i * dim, dim, '\t');
        putc('\n', f);
    }
    return rows;
}

/* The texts of a block that are unknown to the model. */
static int scan(cli_unknown *unknown, const cli_embedder *m, const cli_lines *in)
{
    if (m->images)
        return CLI_DONE;
    return cli_unknown_scan(unknown, m->ctx, att_sentence_tokenizer(m->text.sentence), in, m->text.info.max_tokens);
}

/* All lines through the model; *rows: how many there were. */
static int stream(cli_embedder *m, cli_lines *in, cli_output *out, int64_t *rows)
{
    float *vectors = malloc((size_t)(m->block * m->dim) * sizeof *vectors);
    bool *failed = malloc((size_t)m->block * sizeof *failed);
    int64_t truncated = 0, done = 0;
    cli_unknown unknown = {0};
    m->tokens = calloc((size_t)m->block, sizeof *m->tokens);
    m->truncated = calloc((size_t)m->block, sizeof *m->truncated);
    int code = vectors && failed && m->tokens && m->truncated ? CLI_DONE : cli_fail_memory();
    cli_progress progress;
    cli_progress_begin(&progress);
    while (!code) {
        code = cli_lines_next(in, m->block);
        if (code || in->count == 0)
            break;
        code = cli_embedder_encode(m, in->count, in->text, in->bytes, vectors, &truncated, failed, done);
        if (code)
            break;
        *rows += write_block(out->file, m, in, vectors, failed);
        done += in->count;
        code = scan(&unknown, m, in);
        if (!code)
            code = cli_output_flush(out);
        cli_progress_show(&progress, done, m->lines, in->total > 0 ? in->done / in->total : 0);
    }
    cli_progress_end(&progress);
    cli_embedder_note(m, truncated, *rows, m->lines);
    cli_unknown_report(&unknown);
    free(vectors);
    free(failed);
    free(m->tokens);
    free(m->truncated);
    if (!code && *rows < done && skip_broken)
        cli_note("%lld of %lld images cannot be read, and %s no row", (long long)(done - *rows), (long long)done,
                 done - *rows == 1 ? "has" : "have");
    return !code && *rows < done && !skip_broken ? CLI_FAILED : code;
}

/* The number of rows stands at the beginning of an .npy file and is known at the end. */
static int rewrite_header(FILE *f, off_t start, int64_t rows, int64_t dim)
{
    if (fseeko(f, start, SEEK_SET))
        return cli_fail_errno("the header of the .npy file");
    cli_npy_header(f, rows, dim);
    return fseeko(f, 0, SEEK_END) ? cli_fail_errno("the end of the .npy file") : CLI_DONE;
}

static bool is_format(const char *word)
{
    return !strcmp(word, "jsonl") || !strcmp(word, "npy") || !strcmp(word, "tsv");
}

static int run(int n, char **arguments)
{
    cli_embedder m = {0};
    cli_lines in = {.fd = -1};
    cli_output out = {0};
    int64_t rows = 0;
    off_t start = 0;
    if (json && format > JSONL)
        return cli_misuse("--json does not go with --format %s", format == NPY ? "npy" : "tsv");
    if (with_tokens && format > JSONL)
        return cli_misuse("--tokens does not go with --format %s", format == NPY ? "npy" : "tsv");
    if (file && is_format(file) && access(file, F_OK))
        return cli_misuse("--file: there is no file \"%s\"; did you mean --format %s?", file, file);
    format = format < 0 ? JSONL : format;
    int code = cli_lines_choose(&in, cli_model_is(ATT_SUBJECT_VISION, model_name), &texts, &file, n, arguments);
    if (!code)
        code = cli_embedder_open(&m, model_name, dtype, threads);
    if (!code && m.images && with_tokens)
        code = cli_misuse("--tokens is of lines, not of images");
    if (!code && !m.images)
        code = cli_paths_refuse_images(n, arguments);
    if (!code)
        code = cli_output_open(&out, output_path);
    if (!code && format == NPY) {
        start = ftello(out.file);
        if (start < 0 || fcntl(fileno(out.file), F_GETFL) & O_APPEND)
            code = cli_misuse("npy cannot be written to a pipe: give -o FILE");
        else
            cli_npy_header(out.file, 0, m.dim);
    }
    if (!code)
        code = stream(&m, &in, &out, &rows);
    if (!code && format == NPY)
        code = rewrite_header(out.file, start, rows, m.dim);
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
    .details = "Reads lines from the files (\"-\": standard input, which is also the default), or the sentences of "
               "--text, and\n"
               "writes a vector for each, in order; memory does not grow with the input. An\n"
               "empty line has a vector, too. A line that is too long for the model is truncated.\n\n"
               "jsonl: {\"text\": \"...\", \"embedding\": [...]} per line, with U+FFFD for invalid\n"
               "UTF-8; with --tokens also \"tokens\": 5, \"truncated\": false. tsv: numbers\n"
               "separated by tabs. npy: a float32 matrix [lines, dim] for NumPy and for\n"
               "\"attend search --index\". All formats preserve the float32 values exactly.\n\n"
               "With a vision model the arguments are images (JPEG, PNG, WebP; \"-\": standard input), or folders of "
               "images, and lines and --text are paths of images. Their vectors have length 1, so that a dot product "
               "is a cosine, and in jsonl \"image\" stands in place of \"text\". An image that cannot be read "
               "is reported and gets no row, and the command fails at the end; with --skip-broken it succeeds.",
    .examples = "attend embed -m all-MiniLM-L6-v2 sentences.txt > vectors.jsonl\n"
                "attend embed -m all-MiniLM-L6-v2 --text \"A cat sleeps.\" --text \"A kitten naps.\"\n"
                "attend embed -m all-MiniLM-L6-v2 --format npy -o corpus.npy corpus.txt\n"
                "attend embed -m dinov2-small --format npy -o photos.npy photos/",
    .options = options,
    .see = "search|similarity|train embed|fetch",
    .run = run,
};
