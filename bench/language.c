/* A language model as a program that links the library gets it: JSON lines.
 *
 *   bench_language FOLDER [THREADS] [ROUNDS] [TYPE[/COMPUTE]]   time of a prompt of 1,024 tokens, and of a token after
 * 32 bench_language FOLDER logits OUT < IDS            logits of all tokens, f32 [tokens, vocabulary], to OUT
 *
 * Ids of prompts that are timed are 0, 7, 14, ...: their values cost nothing. */
#include "bench.h"
#include "attend_language.h"

#include <math.h>
#include <string.h>

enum { PROMPT = 1024, SHORT = 32, DECODED = 48, MAX_IDS = 1 << 16 };

typedef struct bench {
    att_ctx *ctx;
    att_language_model *m;
    att_language_model_info info;
    att_tape *t;
    int32_t ids[MAX_IDS];
} bench;

/* Returns the most probable token after ids [n]. */
static int32_t next(bench *b, const int32_t *ids, int64_t n, att_language_state *state)
{
    att_tensor logits;
    const int64_t offsets[] = {0, n};
    check(b->ctx, att_var_value(b->t,
                                att_language_model_apply(b->t, b->m, ids, offsets, 1, state,
                                                         ATT_OPTIONS(att_language_model_options, .last_only = true)),
                                &logits));
    const float *x = logits.data;
    int32_t best = 0;
    for (int32_t i = 1; i < b->info.vocabulary; i++)
        best = x[i] > x[best] ? i : best;
    att_tape_reset(b->t);
    return best;
}

static void time_all(bench *b, int rounds)
{
    double prompt = INFINITY, token = INFINITY;
    for (int64_t i = 0; i < PROMPT; i++)
        b->ids[i] = (int32_t)(7 * i % b->info.vocabulary);
    for (int r = 0; r < rounds; r++) {
        att_language_state *state;
        check(b->ctx, att_language_state_new(b->m, 1, ATT_F32, &state));
        double start = seconds();
        next(b, b->ids, b->info.max_positions < PROMPT ? b->info.max_positions : PROMPT, state);
        prompt = fmin(prompt, seconds() - start);
        check(b->ctx, att_language_state_truncate(state, 0, SHORT));
        int32_t id = 1;
        start = seconds();
        for (int i = 0; i < DECODED; i++)
            id = next(b, &id, 1, state);
        token = fmin(token, (seconds() - start) / DECODED);
        att_language_state_free(state);
    }
    printf("{\"threads\":%d,\"isa\":\"%s\",\"prompt_tokens_per_second\":%.1f,\"tokens_per_second\":%.2f}\n",
           att_threads(b->ctx), att_isa(b->ctx), PROMPT / prompt, 1 / token);
}

static int write_logits(bench *b, const char *path)
{
    int64_t n = 0;
    att_tensor logits;
    while (n < MAX_IDS && scanf("%d", &b->ids[n]) == 1)
        n++;
    const int64_t offsets[] = {0, n};
    check(b->ctx, att_var_value(b->t, att_language_model_apply(b->t, b->m, b->ids, offsets, 1, NULL, NULL), &logits));
    FILE *f = fopen(path, "wb");
    const size_t count = (size_t)(logits.dim[0] * logits.dim[1]);
    const bool good = f && fwrite(logits.data, sizeof(float), count, f) == count;
    if ((f && fclose(f)) || !good)
        return fprintf(stderr, "bench_language: %s cannot be written\n", path), 1;
    return 0;
}

int main(int n, char **argument)
{
    static bench b = {.info = {.size = sizeof b.info}};
    if (n < 2)
        return fprintf(stderr,
                       "usage: bench_language FOLDER [THREADS] [ROUNDS] [TYPE[/COMPUTE]] | FOLDER logits OUT\n"),
               2;
    const bool logits = n > 3 && !strcmp(argument[2], "logits");
    check(NULL, att_open(&b.ctx, ATT_OPTIONS(att_config, .n_threads = n > 2 && !logits ? atoi(argument[2]) : 0)));
    const att_model_options o = types_of(n > 4 ? argument[4] : NULL);
    check(b.ctx, att_language_model_open(b.ctx, argument[1], &o, &b.m));
    check(b.ctx, att_language_model_describe(b.m, &b.info));
    check(b.ctx, att_tape_new(b.ctx, ATT_OPTIONS(att_tape_config, .compute = o.compute), &b.t));
    int bad = 0;
    if (logits)
        bad = write_logits(&b, argument[3]);
    else
        time_all(&b, n > 3 ? atoi(argument[3]) : 3);
    att_tape_free(b.t);
    att_language_model_free(b.m);
    att_close(b.ctx);
    return bad;
}
