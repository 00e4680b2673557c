/* Translation as a program that links the library gets it: JSON lines.
 *
 *   bench_translate FOLDER FILE [THREADS] [OUT] [TYPE[/COMPUTE]]
 *
 * Lines of FILE to exactly 30 tokens: the first line alone, all of them, all of them with a beam of 4, each the best of
 * two. OUT receives the translations of the last but one, a line each, so that a peer's can be compared. */
#include "bench.h"
#include "attend_translate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PASSES = 2, TOKENS = 30, MAX_LINES = 256 };

static int fail(const char *sentence)
{
    fprintf(stderr, "bench_translate: %s\n", sentence);
    return 1;
}

typedef struct lines {
    char text[1 << 16]; /* the file, lines ended by zero bytes */
    const char *line[MAX_LINES];
    int64_t n;
} lines;

static int read_lines(const char *path, lines *out)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return fail("the file cannot be read");
    out->text[fread(out->text, 1, sizeof out->text - 1, f)] = 0;
    fclose(f);
    for (char *p = strtok(out->text, "\n"); p && out->n < MAX_LINES; p = strtok(NULL, "\n"))
        out->line[out->n++] = p;
    return out->n ? 0 : fail("the file is empty");
}

static int write_lines(const char *path, const att_translation *t, int64_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f)
        return fail("the translations cannot be written");
    for (int64_t i = 0; i < n; i++)
        fprintf(f, "%.*s\n", (int)t[i].text.bytes, t[i].text.text);
    return fclose(f) ? fail("the translations cannot be written") : 0;
}

static int measure(att_ctx *ctx, const att_translator *m, const lines *in, int64_t n, int64_t beam, const char *out)
{
    const att_translate_options options = {
        .size = sizeof options, .beam = beam, .min_tokens = TOKENS, .max_tokens = TOKENS, .no_scores = true};
    static att_translation found[MAX_LINES];
    double best = INFINITY;
    int bad = 0;
    for (int pass = 0; !bad && pass < PASSES; pass++) {
        const double start = seconds();
        if (att_translate(m, n, in->line, NULL, &options, found))
            return fail(att_error(ctx));
        best = fmin(best, seconds() - start);
        if (out && pass == 0)
            bad = write_lines(out, found, n);
        for (int64_t i = 0; i < n; i++)
            att_translation_free(ctx, &found[i]);
    }
    printf("{\"batch\":%lld,\"beam\":%lld,\"threads\":%d,\"isa\":\"%s\",\"ms\":%.3f,\"tokens_per_second\":%.1f}\n",
           (long long)n, (long long)beam, att_threads(ctx), att_isa(ctx), 1e3 * best, (double)(n * TOKENS) / best);
    return bad;
}

int main(int argc, char **argv)
{
    static lines in;
    if (argc < 3)
        return fail("usage: bench_translate FOLDER FILE [THREADS] [OUT] [TYPE[/COMPUTE]]");
    if (read_lines(argv[2], &in))
        return 1;
    att_ctx *ctx;
    att_translator *m;
    if (att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = argc > 3 ? atoi(argv[3]) : 0)))
        return fail(att_error(NULL));
    const att_model_options o = types_of(argc > 5 ? argv[5] : NULL);
    if (att_translator_open(ctx, argv[1], &o, &m))
        return fail(att_error(ctx));
    const int bad = measure(ctx, m, &in, 1, 1, NULL) || measure(ctx, m, &in, in.n, 1, argc > 4 ? argv[4] : NULL) ||
                    measure(ctx, m, &in, in.n, 4, NULL);
    att_translator_free(m);
    att_close(ctx);
    return bad;
}
