/* attend embed: lines to vectors. */
#include "cli/base/cli.h"
#include "cli/base/lines.h"
#include "cli/base/npy.h"
#include "cli/base/output.h"
#include "cli/base/progress.h"
#include "cli/base/unknown.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum format { JSONL, NPY, TSV };
enum { BLOCK = 512 }; /* lines at a time: enough for all threads, few enough to hold and to report */

static const char *model_name, *output_path, *file;
static cli_texts texts;
static int format = -1;
static bool json;
static int64_t threads;

static const cli_option options[] = {
    CLI_MODEL(&model_name),
    CLI_FILE(&file),
    CLI_SENTENCE(&texts),
    {"format", 0, "jsonl|npy|tsv", .choice = &format, .help = "output format; default: jsonl"},
    CLI_OUTPUT(&output_path),
    CLI_THREADS(&threads),
    {"json", 0, NULL, .flag = &json, .help = "print JSON Lines, the same as --format jsonl"},
    {0},
};

static void write_block(FILE *f, const cli_lines *in, const float *vectors /* [in->count, dim] */, int64_t dim)
{
    if (format == NPY) {
        fwrite(vectors, sizeof *vectors, (size_t)(in->count * dim), f);
        return;
    }
    for (int64_t i = 0; i < in->count; i++) {
        if (format == JSONL) {
            fputs("{\"text\": ", f);
            cli_write_json(f, in->text[i], in->bytes[i]);
            fputs(", \"embedding\": [", f);
        }
        cli_write_row(f, vectors + i * dim, dim, format == JSONL ? ',' : '\t');
        fputs(format == JSONL ? "]}\n" : "\n", f);
    }
}

/* All lines through the model; *rows: how many there were. */
static int stream(const cli_model *m, cli_lines *in, cli_output *out, int64_t *rows)
{
    float *vectors = malloc(BLOCK * (size_t)m->info.dim * sizeof *vectors);
    int64_t cut = 0;
    cli_unknown unknown = {0};
    int code = vectors ? CLI_DONE : cli_fail_memory();
    cli_progress progress;
    cli_progress_begin(&progress);
    while (!code) {
        int64_t cut_here = 0;
        code = cli_lines_next(in, BLOCK);
        if (code || in->count == 0)
            break;
        code = cli_status(m->ctx, att_sentence_encode(m->sentence, in->count, in->text, in->bytes, vectors, &cut_here));
        if (code)
            break;
        write_block(out->file, in, vectors, m->info.dim);
        *rows += in->count;
        cut += cut_here;
        code = cli_unknown_scan(&unknown, m->ctx, att_sentence_tokenizer(m->sentence), in, m->info.max_tokens);
        if (!code)
            code = cli_output_flush(out);
        cli_progress_show(&progress, *rows, "lines", in->total > 0 ? in->done / in->total : 0);
    }
    cli_progress_end(&progress);
    if (cut)
        cli_note("%lld of %lld lines are longer than %lld tokens and were truncated", (long long)cut, (long long)*rows,
                 (long long)m->info.max_tokens);
    cli_unknown_report(&unknown);
    free(vectors);
    return code;
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
    cli_model m = {0};
    cli_lines in = {.fd = -1};
    cli_output out = {0};
    int64_t rows = 0;
    off_t start = 0;
    if (json && format > JSONL)
        return cli_misuse("--json does not go with --format %s", format == NPY ? "npy" : "tsv");
    if (file && is_format(file) && access(file, F_OK))
        return cli_misuse("--file: there is no file \"%s\"; did you mean --format %s?", file, file);
    format = format < 0 ? JSONL : format;
    int code = cli_lines_choose(&in, &texts, &file, n, arguments);
    if (!code)
        code = cli_model_open(&m, model_name, threads);
    if (!code)
        code = cli_output_open(&out, output_path);
    if (!code && format == NPY) {
        start = ftello(out.file);
        if (start < 0 || fcntl(fileno(out.file), F_GETFL) & O_APPEND)
            code = cli_misuse("npy cannot be written to a pipe: give -o FILE");
        else
            cli_npy_header(out.file, 0, m.info.dim);
    }
    if (!code)
        code = stream(&m, &in, &out, &rows);
    if (!code && format == NPY)
        code = rewrite_header(out.file, start, rows, m.info.dim);
    code = cli_output_close(&out, code);
    cli_model_close(&m);
    cli_lines_close(&in);
    return code;
}

const cli_command cli_embed = {
    .name = "embed",
    .summary = "compute sentence embeddings, one vector per line",
    .arguments = "[FILE...]",
    .max_arguments = -1,
    .details = "Reads lines from the files (\"-\": standard input, which is also the default), or the sentences of "
               "--text, and\n"
               "writes a vector for each, in order; memory does not grow with the input. An\n"
               "empty line has a vector, too. A line that is too long for the model is truncated.\n\n"
               "jsonl: {\"text\": \"...\", \"embedding\": [...]} per line, with U+FFFD for invalid\n"
               "UTF-8. tsv: numbers separated by tabs. npy: a float32 matrix [lines, dim] for\n"
               "NumPy and for \"attend search --index\". All formats preserve the float32 values\n"
               "exactly.",
    .examples = "attend embed -m all-MiniLM-L6-v2 sentences.txt > vectors.jsonl\n"
                "attend embed -m all-MiniLM-L6-v2 --text \"A cat sleeps.\" --text \"A kitten naps.\"\n"
                "attend embed -m all-MiniLM-L6-v2 --format npy -o corpus.npy corpus.txt",
    .options = options,
    .see = "search|similarity|train embed|fetch",
    .run = run,
};
