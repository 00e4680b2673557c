/* Several texts of a language model at once, in a session that they share: JSON lines, one a round.
 *
 *   bench_sessions FOLDER [THREADS] [ROUNDS] [TYPE[/COMPUTE]]
 *
 * In turn: one text alone, eight in a session, the same eight by att_generate, each a prompt of 32 tokens and 64 more;
 * then the steps of one text while another's prompt of 1,024 tokens is computed, in parts of 256. Before anything is
 * timed, the tokens of the eight are compared with those of each alone. */
#include "bench.h"
#include "attend_language.h"

#include <math.h>

enum { CHATS = 8, PROMPT = 32, TOKENS = 64, LONG = 1024 };

typedef struct bench {
    att_ctx *ctx;
    att_text_generator *g;
    int32_t ids[CHATS * PROMPT], long_prompt[LONG];
    int64_t offsets[CHATS + 1], long_tokens;
} bench;

static const att_generate_options options = {.size = sizeof options, .max_tokens = TOKENS, .ignore_eos = true};

static att_generation *open_session(const bench *b)
{
    att_generation *s;
    check(b->ctx, att_generation_new(b->g, NULL, &s));
    return s;
}

static int64_t add(const bench *b, att_generation *s, int chat)
{
    int64_t number;
    check(b->ctx, att_generation_add(s, b->ids + b->offsets[chat], PROMPT, &options, &number));
    return number;
}

/* Returns the seconds of a step. */
static double step(const bench *b, att_generation *s, int64_t *active)
{
    const double start = seconds();
    check(b->ctx, att_generation_step(s, active));
    return seconds() - start;
}

/* Chats [first, first + n) in a session -> out [n]; returns tokens per second. */
static double run_session(const bench *b, int first, int n, att_generated *out)
{
    att_generation *s = open_session(b);
    int64_t active = 1;
    const double start = seconds();
    for (int i = 0; i < n; i++)
        add(b, s, first + i);
    while (active > 0)
        step(b, s, &active);
    const double taken = seconds() - start;
    for (int i = 0; i < n; i++)
        check(b->ctx, att_generation_finish(s, i, &out[i]));
    att_generation_free(s);
    return n * TOKENS / taken;
}

static double run_generate(const bench *b, att_generated *out)
{
    const double start = seconds();
    check(b->ctx, att_generate(b->g, CHATS, b->ids, b->offsets, &options, out));
    return CHATS * TOKENS / (seconds() - start);
}

static void free_all(const bench *b, int n, att_generated *out)
{
    for (int i = 0; i < n; i++)
        att_generated_free(b->ctx, &out[i]);
}

static bool same(const att_generated *x, const att_generated *y)
{
    return x->tokens.count == y->tokens.count &&
           !memcmp(x->tokens.ids, y->tokens.ids, (size_t)x->tokens.count * sizeof(int32_t));
}

/* Checks that all eight have the same tokens as each by itself, in a session and by att_generate. */
static bool verify(const bench *b)
{
    att_generated session[CHATS], call[CHATS], alone;
    bool all = true;
    run_session(b, 0, CHATS, session);
    run_generate(b, call);
    for (int i = 0; i < CHATS; i++) {
        run_session(b, i, 1, &alone);
        all = all && same(&session[i], &alone) && same(&call[i], &alone);
        free_all(b, 1, &alone);
    }
    free_all(b, CHATS, session);
    free_all(b, CHATS, call);
    return all;
}

/* The seconds of a step of one text alone, of the longest step in which the long prompt is computed beside it, and of
 * the longest one of that prompt by itself: a token waits for one part of it, so *alone + *part is about *longest. */
static void time_long(const bench *b, double *alone, double *longest, double *part)
{
    att_generation *s = open_session(b);
    int64_t active, number;
    *alone = INFINITY;
    *longest = *part = 0;
    check(b->ctx, att_generation_add(s, b->long_prompt, b->long_tokens, &options, &number));
    for (int i = 0; i < b->long_tokens / 256; i++)
        *part = fmax(*part, step(b, s, &active));
    check(b->ctx, att_generation_remove(s, number));
    add(b, s, 0);
    step(b, s, &active);
    for (int i = 0; i < 16; i++)
        *alone = fmin(*alone, step(b, s, &active));
    check(b->ctx, att_generation_add(s, b->long_prompt, b->long_tokens, &options, &number));
    for (int i = 0; i < b->long_tokens / 256; i++)
        *longest = fmax(*longest, step(b, s, &active));
    att_generation_free(s);
}

static void time_round(const bench *b)
{
    att_generated out[CHATS];
    const double one = run_session(b, 0, 1, out);
    free_all(b, 1, out);
    const double session = run_session(b, 0, CHATS, out);
    free_all(b, CHATS, out);
    const double call = run_generate(b, out);
    free_all(b, CHATS, out);
    double alone, longest, part;
    time_long(b, &alone, &longest, &part);
    printf("{\"threads\":%d,\"isa\":\"%s\",\"one_tokens_per_second\":%.2f,\"eight_tokens_per_second\":%.2f,"
           "\"generate_tokens_per_second\":%.2f,\"eight_to_one\":%.2f,\"session_to_generate\":%.3f,"
           "\"step_ms\":%.2f,\"part_ms\":%.2f,\"longest_step_ms\":%.2f}\n",
           att_threads(b->ctx), att_isa(b->ctx), one, session, call, session / one, session / call, 1e3 * alone,
           1e3 * part, 1e3 * longest);
    fflush(stdout);
}

static void make_prompts(bench *b)
{
    att_language_model_info info = {.size = sizeof info};
    check(b->ctx, att_language_model_describe(att_text_generator_model(b->g), &info));
    b->long_tokens = info.max_positions <= LONG ? info.max_positions / 512 * 256 : LONG;
    for (int64_t i = 0; i < CHATS * PROMPT; i++)
        b->ids[i] = (int32_t)((7 * i + 13 * (i / PROMPT)) % info.vocabulary);
    for (int64_t i = 0; i < LONG; i++)
        b->long_prompt[i] = (int32_t)((11 * i + 5) % info.vocabulary);
    for (int i = 0; i < CHATS; i++)
        b->offsets[i + 1] = b->offsets[i] + PROMPT;
}

int main(int n, char **argument)
{
    static bench b;
    if (n < 2)
        return fprintf(stderr, "usage: bench_sessions FOLDER [THREADS] [ROUNDS] [TYPE[/COMPUTE]]\n"), 2;
    const att_model_options weights = types_of(n > 4 ? argument[4] : NULL);
    check(NULL, att_open(&b.ctx, ATT_OPTIONS(att_config, .n_threads = n > 2 ? atoi(argument[2]) : 0)));
    check(b.ctx, att_text_generator_open(b.ctx, argument[1], &weights, &b.g));
    make_prompts(&b);
    if (!verify(&b))
        return fprintf(stderr, "bench_sessions: the texts of eight are not those of each alone\n"), 1;
    for (int round = 0; round < (n > 3 ? atoi(argument[3]) : 1); round++)
        time_round(&b);
    att_text_generator_free(b.g);
    att_close(b.ctx);
    return 0;
}
