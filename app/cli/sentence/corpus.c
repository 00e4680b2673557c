/* Reads a corpus and its index, and checks that the index is of these lines and this model. */
#include "corpus.h"

#include "cli/base/grow.h"
#include "cli/base/progress.h"
#include "correlation.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void cli_corpus_close(cli_corpus *c)
{
    free(c->begin);
    free(c->data);
    free(c->failed);
    free(c->own);
    cli_npy_close(&c->index);
    cli_codes_close(&c->codes);
    free(c->remake);
}

static cli_codes_options codes_options(const cli_corpus *c)
{
    return (cli_codes_options){
        .precision = c->o.precision, .index = c->o.index, .ranges = c->o.ranges, .remake = c->remake};
}

/* Makes room for the lines of a block. */
static int make_room(cli_corpus *c, const cli_lines *block, int64_t dim)
{
    const cli_array arrays[] = {
        {&c->begin, sizeof *c->begin}, {&c->failed, sizeof *c->failed}, {&c->own, (size_t)dim * sizeof *c->own}};
    if (!cli_reserve(&c->room, (size_t)(c->count + block->count) + 1, arrays, c->o.index ? 2 : 3))
        return cli_fail_memory();
    c->begin[0] = 0;
    size_t bytes = c->begin[c->count];
    for (int64_t i = 0; i < block->count; i++)
        bytes += block->bytes[i] + 1;
    return cli_reserve(&c->capacity, bytes, &(cli_array){&c->data, 1}, 1) ? CLI_DONE : cli_fail_memory();
}

/* Opens the corpus: a folder of images or an image for a vision model, otherwise a file with a line for each item. */
static int open_items(const cli_corpus *c, cli_lines *in, const cli_embedder *m)
{
    struct stat s;
    char *const *path = (char *const *)&c->o.path; /* in keeps it */
    const bool folder = !stat(c->o.path, &s) && S_ISDIR(s.st_mode);
    return m->images && (folder || att_image_has_name(c->o.path)) ? cli_lines_of_images(in, 1, path)
                                                                  : cli_lines_open(in, 1, path);
}

static int read_items(cli_corpus *c, const cli_embedder *m)
{
    cli_lines in;
    cli_progress progress;
    int64_t truncated = 0; /* not reported; the number for queries is */
    int code = open_items(c, &in, m);
    cli_progress_begin(&progress);
    while (!code) {
        code = cli_lines_next(&in, m->block);
        if (code || in.count == 0)
            break;
        code = make_room(c, &in, m->dim);
        if (!code && c->o.index)
            memset(c->failed + c->count, false, (size_t)in.count * sizeof *c->failed);
        else if (!code)
            code = cli_embedder_encode(m, in.count, in.text, in.bytes, c->own + c->count * m->dim, &truncated,
                                       c->failed + c->count, c->count);
        for (int64_t i = 0; !code && i < in.count; i++) {
            c->any_failed = c->any_failed || c->failed[c->count];
            memcpy(c->data + c->begin[c->count], in.text[i], in.bytes[i] + 1);
            c->begin[c->count + 1] = c->begin[c->count] + in.bytes[i] + 1;
            c->count++;
        }
        cli_progress_show(&progress, c->count, m->lines, in.total > 0 ? in.done / in.total : 0);
    }
    cli_progress_end(&progress);
    cli_lines_close(&in);
    if (!code && c->count == 0)
        code = cli_fail("%s: has no lines to search in", c->o.path);
    return code;
}

static double length_of(const float *x, int64_t dim) { return sqrt(cli_similar(ATT_SIMILARITY_DOT, x, x, dim)); }

/* Checks, if a model's measure depends on lengths, that a row of the index has the length of its line's vector, up to
 * rounding.
 */
static int check_length(const cli_corpus *c, const cli_embedder *m, int64_t line, const float *row, const float *again)
{
    const double is = length_of(row, m->dim), should = length_of(again, m->dim), rounding = 0.04;
    return m->similarity == ATT_SIMILARITY_COSINE || fabs(is - should) <= rounding * should
               ? CLI_DONE
               : cli_fail(
                     "%s: row %lld has the length %.4g, but the vector of line %lld of %s has %.4g, and %s compares "
                     "by lengths, too; \"attend embed --format npy\" makes the index anew",
                     c->o.index, (long long)line + 1, is, (long long)line + 1, c->o.path, should, m->name);
}

/* Returns the command that makes the index again, for messages: malloc'd, or NULL. */
static char *remake_command(const cli_corpus *c, const cli_embedder *m, att_precision p)
{
    cli_types types = c->o.types;
    const cli_option type[] = {CLI_TYPES(types)};
    const bool floats = p == ATT_PRECISION_FLOAT32;
    const char *usual = "", *given = c->o.prompt ? c->o.prompt : "document";
    char weights[16], products[16], truncated[32] = "", *text;
    cli_option_default(&type[0], weights, sizeof weights);
    cli_option_default(&type[1], products, sizeof products);
    if (c->o.dims)
        snprintf(truncated, sizeof truncated, " --dims %lld", (long long)c->o.dims);
    if (!m->images)
        att_sentence_prompt(m->text.sentence, NULL, &usual);
    const bool prompted = !m->images && strcmp(usual, m->prompt) != 0;
    return asprintf(&text, "\"attend embed -m %s%s%s%s%s%s%s%s%s%s --format npy -o %s %s\"", cli_quoted(m->name).text,
                    types.weights ? " --dtype " : "", types.weights ? weights : "", types.compute ? " --compute " : "",
                    types.compute ? products : "", prompted ? " --prompt " : "", prompted ? cli_quoted(given).text : "",
                    truncated, floats ? "" : " --precision ", floats ? "" : att_precision_name(p),
                    cli_quoted(c->o.index).text, cli_quoted(c->o.path).text) < 0
               ? NULL
               : text;
}

/* Compares a row of an index of floats with its line's vector by the cosine, which ignores lengths. Numbers of 8 bits
 * (bf16, or int8 with a scale for each row) have errors of 2^-9 of their size. In a model that computes with them,
 * about a hundred such errors add up at random to 2^-9 sqrt(100) = 0.02 of the vector's length. Twice that is allowed:
 * a cosine of 1 - 0.04^2 / 2. Sentences that differ in one full stop are five times as far apart. */
static int check_floats(const cli_corpus *c, const cli_embedder *m, int64_t line, const float *again)
{
    const double min_cosine = 0.9992;
    const float *row = c->index.data + line * m->dim;
    const int code = check_length(c, m, line, row, again);
    const double cosine = cli_cosine(again, row, m->dim);
    return code || cosine >= min_cosine
               ? code
               : cli_fail("%s: row %lld is not the vector of line %lld of %s by %s, their cosine is %.4f: the text, "
                          "the model, its --dtype or --compute is another; %s makes the index anew",
                          c->o.index, (long long)line + 1, (long long)line + 1, c->o.path, m->name, cosine, c->remake);
}

/* Embeds some of the lines again and compares them with their rows of the index. */
static int check_index(const cli_corpus *c, const cli_embedder *m)
{
    enum { SOME = 5 };
    const int64_t dim = m->dim, n = c->count < SOME ? c->count : SOME;
    const cli_codes_options o = codes_options(c);
    const char *text[SOME];
    size_t bytes[SOME];
    int64_t line[SOME], truncated = 0;
    for (int64_t i = 0; i < n; i++) {
        line[i] = n > 1 ? i * (c->count - 1) / (n - 1) : 0; /* the first and the last among them */
        text[i] = c->data + c->begin[line[i]];
        bytes[i] = c->begin[line[i] + 1] - c->begin[line[i]] - 1;
    }
    float *again = malloc((size_t)(n * dim) * sizeof *again);
    int code = again ? cli_embedder_encode(m, n, text, bytes, again, &truncated, NULL, -1) : cli_fail_memory();
    for (int64_t i = 0; !code && i < n; i++)
        code = c->index.data ? check_floats(c, m, line[i], again + i * dim)
                             : cli_codes_check(&c->codes, m, &o, line[i], again + i * dim);
    free(again);
    return code;
}

/* Opens the index, if there is one, and its codes. */
static int open_index(cli_corpus *c, const cli_embedder *m)
{
    cli_codes_options o = codes_options(c);
    att_precision p = ATT_PRECISION_FLOAT32;
    int code = cli_npy_open(&c->index, c->o.index);
    if (!code)
        code = cli_codes_precision(&c->index, m, &o, &p);
    c->remake = code ? NULL : remake_command(c, m, p);
    if (!code && !c->remake)
        code = cli_fail_memory();
    o = codes_options(c);
    return code ? code : cli_codes_open(&c->codes, &c->index, m, &o);
}

int cli_corpus_open(cli_corpus *c, const cli_corpus_options *options, const cli_embedder *m)
{
    *c = (cli_corpus){.o = *options};
    const cli_codes_options o = codes_options(c);
    int code = c->o.index ? open_index(c, m) : CLI_DONE;
    if (!code)
        code = read_items(c, m);
    if (!code && c->o.index && c->index.rows != c->count)
        code = cli_fail("%s: has %lld rows, but %s has %lld %s", c->o.index, (long long)c->index.rows, c->o.path,
                        (long long)c->count, m->lines);
    if (!code && c->o.index)
        code = check_index(c, m);
    else if (!code && c->o.precision > ATT_PRECISION_FLOAT32)
        code = cli_codes_make(&c->codes, c->own, c->count, m, &o);
    else if (!code && c->o.ranges)
        code = cli_misuse("--ranges is of int8 and uint8: give --precision, or --index");
    if (!code && c->o.rescored && !c->codes.data)
        code = cli_misuse("--rescore is of int8, uint8 and bits, but these vectors are float32");
    if (c->codes.own) {
        free(c->own);
        c->own = NULL;
    }
    c->vectors = c->o.index ? c->index.data : c->own;
    return code;
}
