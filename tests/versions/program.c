/* Uses both libraries by structs that begin with their size, and prints what it gets. tests/versions.sh compiles it
 * against headers of other versions than the libraries that it runs with. It uses no field that is the last of a
 * struct. */
#include <attend_optimizer.h>
#include "attend_metric.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "not so: %s; the last error: %s\n", what, att_error(NULL));
    exit(1);
}
#define CHECK(condition) check(condition, #condition)

static void show(const char *what, int n, const float *x)
{
    printf("%s", what);
    for (int i = 0; i < n; i++)
        printf(" %.9g", x[i]);
    printf("\n");
}

/* Of a newer header: a new option is ignored where it is 0, and refused where it is set. */
#ifdef NEWER
#define REFUSED_IF_SET(options, call)                                                                                  \
    do {                                                                                                               \
        (options).added[1] = 1;                                                                                        \
        CHECK((call) == ATT_ERR_UNSUPPORTED);                                                                          \
        (options).added[1] = 0;                                                                                        \
    } while (0)
#else
#define REFUSED_IF_SET(options, call) ((void)0)
#endif

/* A struct that a call fills, and what lies behind it */
#define GUARDED(type)                                                                                                  \
    struct {                                                                                                           \
        type info;                                                                                                     \
        unsigned char behind[512];                                                                                     \
    }
#define FILL(guarded)                                                                                                  \
    do {                                                                                                               \
        memset(&(guarded), 0x5a, sizeof(guarded));                                                                     \
        (guarded).info.size = sizeof(guarded).info;                                                                    \
    } while (0)

#ifdef NEWER
#define CHECK_FILLED(guarded) CHECK((guarded).info.added[0] == 0 && (guarded).info.added[1] == 0)
#else
static void check_behind(const unsigned char *behind, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        CHECK(behind[i] == 0x5a);
}
#define CHECK_FILLED(guarded) check_behind((guarded).behind, sizeof(guarded).behind)
#endif

static void attention(att_ctx *ctx)
{
    float words[3][3] = {{0.34f, 0.22f, 0.54f}, {0.53f, 0.34f, 0.98f}, {0.29f, 0.54f, 0.93f}};
    float out[3][3], lse[3], dout[3][3] = {{0}, {1, 1, 1}}, dv[3][3];
    att_attention_spec spec = {.size = sizeof spec, .heads = 1, .head_dim = 3, .scale = 1};
    att_attention_args args = {.size = sizeof args};
    att_attention_grads grads = {.size = sizeof grads};
    CHECK(att_wrap(&args.q, words, ATT_F32, ATT_DIMS(1, 1, 3, 3), NULL) == ATT_OK);
    args.k = args.v = args.q;
    CHECK(att_wrap(&args.out, out, ATT_F32, ATT_DIMS(1, 1, 3, 3), NULL) == ATT_OK);
    CHECK(att_wrap(&args.lse, lse, ATT_F32, ATT_DIMS(1, 1, 3), NULL) == ATT_OK);
    CHECK(att_wrap(&grads.dout, dout, ATT_F32, ATT_DIMS(1, 1, 3, 3), NULL) == ATT_OK);
    CHECK(att_wrap(&grads.dv, dv, ATT_F32, ATT_DIMS(1, 1, 3, 3), NULL) == ATT_OK);

    att_plan *plan;
    REFUSED_IF_SET(spec, att_plan_new(ctx, &spec, &plan));
    CHECK(att_plan_new(ctx, &spec, &plan) == ATT_OK);
    GUARDED(att_plan_info) described;
    FILL(described);
    REFUSED_IF_SET(args, att_plan_describe(plan, &args, &described.info));
    CHECK(att_plan_describe(plan, &args, &described.info) == ATT_OK);
    CHECK_FILLED(described);
    printf("plan %s %g %g\n", described.info.isa, described.info.skipped, described.info.bytes);
    REFUSED_IF_SET(args, att_forward(plan, &args));
    CHECK(att_forward(plan, &args) == ATT_OK);
    REFUSED_IF_SET(grads, att_backward(plan, &args, &grads));
    CHECK(att_backward(plan, &args, &grads) == ATT_OK);
    show("out", 9, out[0]);
    show("lse", 3, lse);
    show("dv", 9, dv[0]);
    att_plan_free(plan);
}

static void learning(att_ctx *ctx)
{
    float x[2][3] = {{1, 2, 3}, {0, 1, -1}}, w[4][3] = {{0.5f, -0.25f, 1}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    const int32_t targets[2] = {3, 1};
    att_tensor input, weight;
    CHECK(att_wrap(&input, x, ATT_F32, ATT_DIMS(2, 3), NULL) == ATT_OK);
    CHECK(att_wrap(&weight, w, ATT_F32, ATT_DIMS(4, 3), NULL) == ATT_OK);
    att_tape_config tape_config = {.size = sizeof tape_config, .record = true};
    att_optimizer_config config = {.size = sizeof config, .method = ATT_OPTIMIZER_ADAM, .beta2 = 0.98};
    att_param_options learns = {.size = sizeof learns, .no_weight_decay = true};
    att_schedule schedule = {.size = sizeof schedule, .max_rate = 0.1, .warmup = 2};
    att_update update = {.size = sizeof update, .scale = 0.5};
    att_cross_entropy_options loss_options = {.size = sizeof loss_options, .label_smoothing = 0.1f, .classes = 4};
    att_param *p;
    att_tape *t;
    att_optimizer *o;
    CHECK(att_param_new(ctx, &weight, &p) == ATT_OK);
    REFUSED_IF_SET(tape_config, att_tape_new(ctx, &tape_config, &t));
    CHECK(att_tape_new(ctx, &tape_config, &t) == ATT_OK);
    REFUSED_IF_SET(config, att_optimizer_new(ctx, &config, &o));
    CHECK(att_optimizer_new(ctx, &config, &o) == ATT_OK);
    REFUSED_IF_SET(learns, att_optimizer_add(o, p, &learns));
    CHECK(att_optimizer_add(o, p, &learns) == ATT_OK);
    for (int64_t step = 1; step <= 3; step++) {
        att_var *y = att_linear(t, att_input(t, &input), p, NULL, ATT_ACTIVATION_TANH, NULL);
        att_var *loss = att_cross_entropy(t, y, targets, &loss_options);
        att_tensor value;
        CHECK(att_var_value(t, loss, &value) == ATT_OK && att_tape_backward(t, loss, NULL) == ATT_OK);
        show("loss", 1, value.data);
        att_tape_reset(t);
        REFUSED_IF_SET(schedule, att_schedule_rate(&schedule, step, &update.rate));
        CHECK(att_schedule_rate(&schedule, step, &update.rate) == ATT_OK);
        REFUSED_IF_SET(update, att_optimizer_step(o, &update, NULL));
        CHECK(att_optimizer_step(o, &update, NULL) == ATT_OK);
    }
    show("weight", 12, w[0]);
    att_optimizer_free(o);
    att_tape_free(t);
    att_param_free(p);
}

static void bleu(att_ctx *ctx)
{
    static const char *const references[] = {"a dog is running in the snow"};
    att_bleu_counts counts;
    CHECK(att_bleu_count(ctx, ATT_BLEU_TOKENIZER_13A, "a dog runs in the snow", 22, references, NULL, 1, &counts) ==
          ATT_OK);
    GUARDED(att_bleu_info) scores;
    FILL(scores);
    att_bleu_options how = {.size = sizeof how};
    REFUSED_IF_SET(how, att_bleu_describe(&counts, &how, &scores.info));
    CHECK(att_bleu_describe(&counts, &how, &scores.info) == ATT_OK);
    CHECK_FILLED(scores);
    printf("bleu %.9g chrf %.9g\n", scores.info.bleu, scores.info.chrf);
    att_bleu_resampling resampling = {.size = sizeof resampling, .resamples = 10, .seed = 3};
    att_interval of_bleu, of_chrf;
    REFUSED_IF_SET(resampling, att_bleu_intervals(ctx, &counts, 1, &resampling, &of_bleu, &of_chrf));
    CHECK(att_bleu_intervals(ctx, &counts, 1, &resampling, &of_bleu, &of_chrf) == ATT_OK);
    printf("resampled chrf %.9g\n", of_chrf.mean);
}

int main(void)
{
    att_config config = {.size = sizeof config, .n_threads = 2};
    att_ctx *ctx;
    REFUSED_IF_SET(config, att_open(&ctx, &config));
    CHECK(att_open(&ctx, &config) == ATT_OK && att_threads(ctx) == 2);
    attention(ctx);
    learning(ctx);
    bleu(ctx);
    att_close(ctx);
    return 0;
}
