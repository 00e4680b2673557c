/* The cost of reading, tokenizing and batching relative to training; one JSON line with --json. */
#include "bench.h"
#include "translate/parallel_corpus.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 2, STEPS = 4, BATCH_TOKENS = 4096, MAX_TOKENS = 128 };

/* Seconds of all batches of an epoch together, except those of a step. */
typedef struct times {
    int64_t pairs, batches;
    double read, order, load, step;
} times;

static void measure_data(att_ctx *ctx, const att_tokenizer *text, const char *source, const char *target, times *t)
{
    att_parallel_corpus set;
    att_epoch epoch;
    double start = seconds();
    check(ctx, att_parallel_corpus_read(ctx, text, source, target, MAX_TOKENS, 0, &set));
    t->read = seconds() - start;
    start = seconds();
    check(ctx, att_epoch_make(&set, 1, 0, BATCH_TOKENS, &epoch));
    t->order = seconds() - start;
    t->pairs = set.n;
    t->batches = epoch.n;
    start = seconds();
    for (int64_t i = 0; i < epoch.n; i++) {
        att_batch b;
        check(ctx, att_batch_read(&set, &epoch, i, &b));
        att_batch_free(ctx, &b);
    }
    t->load = seconds() - start;
    att_epoch_free(&epoch);
    att_parallel_corpus_free(&set);
}

/* The best of several runs. */
static void measure_steps(att_ctx *ctx, att_transformer *m, const att_tokenizer *text, const char *source,
                          const char *target, times *t)
{
    att_training *training;
    att_training_report r = {.size = sizeof r};
    check(ctx,
          att_translator_training_new(
              att_transformer_as_encoder_decoder(m), text,
              ATT_OPTIONS(att_training_options, .clip = 1, .seed = 1,
                          .schedule = &(const att_schedule){.size = sizeof(att_schedule), .max_rate = 1e-4}),
              ATT_OPTIONS(att_translator_training_options, .source = source, .target = target, .max_tokens = MAX_TOKENS,
                          .batch_tokens = BATCH_TOKENS, .dropout = 0.1f, .label_smoothing = 0.1f),
              &training));
    t->step = INFINITY;
    for (int i = 0; i < STEPS; i++) {
        const double start = seconds();
        check(ctx, att_training_step(training, &r));
        t->step = fmin(t->step, seconds() - start);
    }
    att_training_free(training);
}

int main(int argc, char **argv)
{
    const bool json = argc == 5 && strcmp(argv[4], "--json") == 0;
    if (argc != 4 && !json) {
        fprintf(stderr, "usage: bench_data FOLDER SOURCE TARGET [--json]\n");
        return 1;
    }
    att_ctx *ctx;
    att_transformer *m;
    att_tokenizer *text;
    times t = {0};
    check(NULL, att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = THREADS)));
    check(ctx, att_transformer_open_for_training(ctx, argv[1], NULL, &m));
    check(ctx, att_tokenizer_open(ctx, argv[1], &text));
    measure_data(ctx, text, argv[2], argv[3], &t);
    measure_steps(ctx, m, text, argv[2], argv[3], &t);
    const double n = (double)t.batches, all = n * t.step;
    printf(json ? "{\"pairs\":%lld,\"batches\":%lld,\"step_ms\":%.3f,\"read_ms\":%.3f,\"batch_ms\":%.3f,"
                  "\"share\":%.5f,\"share_of_first_epoch\":%.5f}\n"
                : "%lld pairs in %lld batches: %.1f ms a step; %.1f ms to read and tokenize them all, once, %.3f ms to "
                  "lay out and take a batch: %.4f of a step, %.4f in the first epoch\n",
           (long long)t.pairs, (long long)t.batches, 1e3 * t.step, 1e3 * t.read, 1e3 * (t.order + t.load) / n,
           (t.order + t.load) / all, (t.read + t.order + t.load) / all);
    att_tokenizer_free(text);
    att_transformer_free(m);
    att_close(ctx);
    return 0;
}
