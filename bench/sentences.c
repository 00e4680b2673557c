/* Sentence embeddings as a program that links the library gets them: one JSON line.
 *
 *   bench_sentences FOLDER FILE [THREADS] [OUT.f32] [TYPE[/COMPUTE]]
 *
 * Embeds all lines of FILE, best of two passes; and the first line alone, best and median of 200. OUT.f32 receives the
 * embeddings [lines, dim], so that a peer's can be compared. */
#include "bench.h"
#include "attend_sentence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PASSES = 2, CALLS = 200 };

typedef struct lines {
    char *text; /* the file, lines ended by zero bytes */
    const char **line;
    int64_t n;
} lines;

static int fail(const char *sentence)
{
    fprintf(stderr, "bench_sentences: %s\n", sentence);
    return 1;
}

static int read_lines(const char *path, lines *out)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END))
        return fail("the file cannot be read");
    const long bytes = ftell(f);
    rewind(f);
    out->text = calloc((size_t)bytes + 1, 1);
    out->line = calloc((size_t)bytes + 1, sizeof *out->line);
    if (!out->text || !out->line || fread(out->text, 1, (size_t)bytes, f) != (size_t)bytes)
        return fail("the file cannot be read");
    fclose(f);
    for (char *p = strtok(out->text, "\n"); p; p = strtok(NULL, "\n"))
        out->line[out->n++] = p;
    return out->n ? 0 : fail("the file is empty");
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int measure(att_ctx *ctx, const att_sentence *model, const lines *in, const char *out_path, double load)
{
    att_sentence_info info = {.size = sizeof info};
    att_sentence_describe(model, &info);
    float *out = calloc((size_t)(in->n * info.dim), sizeof *out);
    double all = 1e9, single[CALLS];
    if (!out)
        return fail("out of memory");
    for (int i = 0; i < PASSES; i++) {
        const double start = seconds();
        if (att_sentence_embed(model, in->n, in->line, NULL, NULL, out))
            return fail(att_error(ctx));
        const double took = seconds() - start;
        all = took < all ? took : all;
    }
    FILE *f = out_path ? fopen(out_path, "wb") : NULL;
    if (f && (fwrite(out, sizeof *out, (size_t)(in->n * info.dim), f) != (size_t)(in->n * info.dim) || fclose(f)))
        return fail("the embeddings cannot be written");
    for (int i = 0; i < CALLS; i++) {
        const double start = seconds();
        if (att_sentence_embed(model, 1, in->line, NULL, NULL, out))
            return fail(att_error(ctx));
        single[i] = seconds() - start;
    }
    qsort(single, CALLS, sizeof *single, ascending);
    printf("{\"sentences\":%lld,\"threads\":%d,\"isa\":\"%s\",\"load_ms\":%.2f,\"per_second\":%.1f,"
           "\"one_ms\":%.4f,\"one_median_ms\":%.4f}\n",
           (long long)in->n, att_threads(ctx), att_isa(ctx), 1e3 * load, (double)in->n / all, 1e3 * single[0],
           1e3 * single[CALLS / 2]);
    free(out);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return fail("usage: bench_sentences FOLDER FILE [THREADS] [OUT.f32] [TYPE[/COMPUTE]]");
    lines in = {0};
    if (read_lines(argv[2], &in))
        return 1;
    const double start = seconds();
    att_ctx *ctx;
    att_sentence *model;
    if (att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = argc > 3 ? atoi(argv[3]) : 0)))
        return fail(att_error(NULL));
    const att_model_options o = types_of(argc > 5 ? argv[5] : NULL);
    if (att_sentence_open(ctx, argv[1], &o, &model))
        return fail(att_error(ctx));
    const int bad = measure(ctx, model, &in, argc > 4 ? argv[4] : NULL, seconds() - start);
    att_sentence_free(model);
    att_close(ctx);
    free(in.text);
    free(in.line);
    return bad;
}
