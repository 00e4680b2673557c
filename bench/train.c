/* A step of learning of a Transformer, as a program does it: the best of some, one JSON line with --json.
 *
 *   bench_train FOLDER [STEPS] [--json] [--bf16]
 *
 * FOLDER has a MarianMTModel. A step is the loss of 128 pairs with dropout and label smoothing, its gradients, and
 * Adam; sources have 8 to 16 tokens, targets 16, one after the other without padding. */
#include "bench.h"
#include "attend_translate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS = 128, LONGEST = 16, STEPS = 6, THREADS = 2 };

/* ---- random pairs of texts */

typedef struct side {
    int32_t ids[PAIRS * LONGEST];
    int64_t offsets[PAIRS + 1];
} side;

/* Tokens but the end, 0, and the padding, the last. */
static void fill(side *x, bool target, int64_t vocabulary)
{
    static uint32_t random = 1;
    for (int b = 0; b < PAIRS; b++)
        x->offsets[b + 1] = x->offsets[b] + (target ? LONGEST : 8 + b % 9);
    for (int64_t i = 0; i < x->offsets[PAIRS]; i++) {
        random = random * 1664525 + 1013904223;
        x->ids[i] = 1 + (int32_t)((int64_t)(random >> 8) % (vocabulary - 2));
    }
}

/* ---- learning */

typedef struct trainer {
    att_ctx *ctx;
    att_transformer *model;
    att_optimizer *optimizer;
    att_tape *tape;
    int64_t params; /* numbers in all */
    side source, target;
    uint32_t ids[PAIRS];
} trainer;

static void open_trainer(trainer *l, const char *folder, att_compute compute)
{
    att_transformer_info info = {.size = sizeof info};
    const char *name;
    check(NULL, att_open(&l->ctx, ATT_OPTIONS(att_config, .n_threads = THREADS)));
    check(l->ctx, att_transformer_open_for_training(l->ctx, folder, NULL, &l->model));
    check(l->ctx, att_transformer_describe(l->model, &info));
    check(l->ctx,
          att_optimizer_new(l->ctx,
                            ATT_OPTIONS(att_optimizer_config, .method = ATT_OPTIMIZER_ADAM, .beta2 = 0.98, .eps = 1e-9),
                            &l->optimizer));
    for (int64_t i = 0;
         i < att_nn_params_count(att_encoder_decoder_params(att_transformer_as_encoder_decoder(l->model))); i++) {
        att_param *p =
            att_nn_params_at(att_encoder_decoder_params(att_transformer_as_encoder_decoder(l->model)), i, &name);
        const att_tensor *value = att_param_value(p);
        check(l->ctx, att_optimizer_add(l->optimizer, p, NULL));
        int64_t count = 1;
        for (int d = 0; d < value->rank; d++)
            count *= value->dim[d];
        l->params += count;
    }
    check(l->ctx, att_tape_new(l->ctx, ATT_OPTIONS(att_tape_config, .record = true, .compute = compute), &l->tape));
    fill(&l->source, false, info.source_vocabulary);
    fill(&l->target, true, info.target_vocabulary);
    for (int b = 0; b < PAIRS; b++)
        l->ids[b] = (uint32_t)b;
}

static void close_trainer(trainer *l)
{
    att_tape_free(l->tape);
    att_optimizer_free(l->optimizer);
    att_transformer_free(l->model);
    att_close(l->ctx);
}

/* Returns the loss before the step. */
static float train_step(trainer *l, uint64_t number)
{
    const att_sequence_pairs pairs = {sizeof pairs,      PAIRS,         l->source.ids,
                                      l->source.offsets, l->target.ids, l->target.offsets};
    const att_loss_options how = {
        .size = sizeof how, .label_smoothing = 0.1f, .dropout = 0.1f, .seed = number, .sequence_ids = l->ids};
    att_var *y = att_encoder_decoder_loss(l->tape, att_transformer_as_encoder_decoder(l->model), &pairs, &how);
    att_tensor read;
    check(l->ctx, att_var_value(l->tape, y, &read));
    const float loss = *(const float *)read.data;
    check(l->ctx, att_tape_backward(l->tape, y, NULL));
    att_tape_reset(l->tape);
    check(l->ctx, att_optimizer_step(l->optimizer, ATT_OPTIONS(att_update, .rate = 1e-4, .clip = 1), NULL));
    return loss;
}

/* Returns the maximum memory of this process: getrusage includes the maximum of its parent, if that was larger. */
static double peak_mb(void)
{
    char line[256];
    double kilobytes = NAN;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && isnan(kilobytes) && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %lf", &kilobytes) != 1)
            kilobytes = NAN;
    if (f)
        fclose(f);
    return 1.024e-3 * kilobytes;
}

int main(int argc, char **argv)
{
    static trainer l;
    const char *folder = NULL;
    bool json = false, bf16 = false;
    int steps = STEPS;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = true;
        else if (strcmp(argv[i], "--bf16") == 0)
            bf16 = true;
        else if (folder)
            steps = atoi(argv[i]);
        else
            folder = argv[i];
    }
    if (!folder || steps < 1) {
        fprintf(stderr, "usage: bench_train FOLDER [STEPS] [--json] [--bf16]\n");
        return 1;
    }
    open_trainer(&l, folder, bf16 ? ATT_COMPUTE_BF16 : ATT_COMPUTE_F32);
    double best = INFINITY;
    float first = 0, last = 0;
    for (int i = 0; i < steps; i++) {
        const double start = seconds();
        last = train_step(&l, (uint64_t)i);
        best = fmin(best, seconds() - start);
        first = i == 0 ? last : first;
    }
    const double tokens = (double)l.target.offsets[PAIRS], megabytes = peak_mb();
    printf(json ? "{\"params\":%lld,\"threads\":%d,\"isa\":\"%s\",\"ms\":%.3f,\"tokens_per_second\":%.1f,"
                  "\"peak_mb\":%.1f,\"first_loss\":%.4f,\"last_loss\":%.4f}\n"
                : "%lld parameters, %d threads, %s: %.1f ms a step, %.0f target tokens/s, %.0f MB at the peak; "
                  "loss %.4f, then %.4f\n",
           (long long)l.params, att_threads(l.ctx), att_isa(l.ctx), 1e3 * best, tokens / best, megabytes, (double)first,
           (double)last);
    close_trainer(&l);
    return 0;
}
