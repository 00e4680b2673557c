/* Data-parallel training with exact bits: 1, 2 and 4 callers, each with a context, a model and a training of its own,
 * compute the gradients of eight shards of each batch, sum them by a tree, and make the same step. All of them, and a
 * training by itself, end with the same bits. The callers are threads here; on machines, the arrays would travel.
 *
 *     cc shards.c $(pkg-config --cflags --libs attend_model) -o shards */
#define _POSIX_C_SOURCE 200809L /* barriers */
#include <attend_recommend.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { SHARDS = 8, STEPS = 20, MAX_CALLERS = 4, ITEMS = 30, USERS = 60, LENGTH = 8 };

/* The data of one caller. */
typedef struct own {
    att_ctx *ctx;
    att_interactions *log;
    att_holdout *data;
    att_recommender *model;
    att_training *training;
} own;

/* The data that callers share: the gradients of each shard, and the parts from which they were computed. */
static int callers;
static pthread_barrier_t barrier;
static float *gradients[SHARDS];
static att_training_part part[SHARDS];
static uint64_t checksum[MAX_CALLERS]; /* of all weights in the end */

static void check(const own *o, att_status s)
{
    if (!s)
        return;
    fprintf(stderr, "%s\n", att_error(o->ctx));
    exit(1);
}

/* Makes a small recommender, with random weights, and histories to train it on. */
static own begin(void)
{
    static const att_schedule rate = {.size = sizeof rate, .max_rate = 0.01, .warmup = 5};
    char name[USERS + ITEMS][8];
    const char *id[USERS + ITEMS], *user[USERS * LENGTH], *item[USERS * LENGTH];
    for (int i = 0; i < USERS + ITEMS; i++) {
        snprintf(name[i], sizeof name[i], "%d", i);
        id[i] = name[i];
    }
    for (int u = 0; u < USERS; u++)
        for (int k = 0, last = u * 7 % ITEMS; k < LENGTH; k++, last = (last * 3 + u) % ITEMS) {
            user[u * LENGTH + k] = id[u];
            item[u * LENGTH + k] = id[USERS + last];
        }
    own o = {0};
    check(&o, att_open(&o.ctx, ATT_OPTIONS(att_config, .n_threads = 1)));
    check(&o,
          att_interactions_new(o.ctx, USERS * LENGTH, user, item, NULL,
                               ATT_OPTIONS(att_interactions_options, .items = id + USERS, .n_items = ITEMS), &o.log));
    check(&o, att_holdout_new(o.log, ATT_OPTIONS(att_holdout_options, .kind = ATT_HOLDOUT_NONE), &o.data));
    check(&o, att_recommender_new(o.ctx, "{\"model_type\": \"attend-sasrec\", \"hidden_size\": 16}", ITEMS, id + USERS,
                                  NULL, 1, &o.model));
    check(&o, att_recommender_training_new(
                  o.model, ATT_OPTIONS(att_training_options, .schedule = &rate, .clip = 1, .seed = 1, .shards = SHARDS),
                  ATT_OPTIONS(att_recommender_training_options, .data = o.data, .batch = 25, .dropout = 0.2f),
                  &o.training));
    return o;
}

/* Hashes the bits of all weights (FNV-1a), and frees all. */
static uint64_t end(own *o)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    const att_param *p;
    const char *name;
    for (int64_t i = 0; (p = att_nn_params_at(att_recommender_params(o->model), i, &name)); i++) {
        const att_tensor *x = att_param_value(p);
        const int64_t bytes = x->dim[0] * x->stride[0] * (int64_t)sizeof(float); /* dense */
        for (int64_t k = 0; k < bytes; k++)
            sum = (sum ^ ((const uint8_t *)x->data)[k]) * UINT64_C(0x100000001b3);
    }
    att_training_free(o->training);
    att_recommender_free(o->model);
    att_holdout_free(o->data);
    att_interactions_free(o->log);
    att_close(o->ctx);
    return sum;
}

/* Runs a caller, which owns neighboring shards, and the nodes of the tree whose left end is one of them. */
static void *run(void *number)
{
    const int me = *(const int *)number, first = me * SHARDS / callers, last = (me + 1) * SHARDS / callers;
    own o = begin();
    att_training_report report = {.size = sizeof report};
    for (int step = 0; step < STEPS; step++) {
        for (int s = first; s < last; s++)
            check(&o, att_training_gradients(o.training, s, gradients[s], &part[s]));
        for (int width = 1; width < SHARDS; width *= 2) {
            pthread_barrier_wait(&barrier);
            for (int s = first; s < last; s++)
                if (s % (2 * width) == 0 && s + width < SHARDS)
                    check(&o,
                          att_training_add(o.training, gradients[s], &part[s], gradients[s + width], &part[s + width]));
        }
        pthread_barrier_wait(&barrier);
        check(&o, att_training_apply(o.training, gradients[0], &part[0], &report));
        pthread_barrier_wait(&barrier);
    }
    checksum[me] = end(&o);
    return NULL;
}

int main(void)
{
    own alone = begin();
    att_training_report report = {.size = sizeof report};
    att_training_info info = {.size = sizeof info};
    for (int step = 0; step < STEPS; step++)
        check(&alone, att_training_step(alone.training, &report));
    check(&alone, att_training_describe(alone.training, &info));
    const uint64_t expected = end(&alone);
    bool same = true;
    printf("alone:  %016" PRIx64 ", loss %.4f\n", expected, report.loss);
    for (int s = 0; s < SHARDS; s++) {
        part[s].size = sizeof part[s];
        if (!(gradients[s] = malloc((size_t)info.parameters * sizeof(float))))
            return 1;
    }
    for (callers = 1; callers <= MAX_CALLERS; callers *= 2) {
        static int number[] = {0, 1, 2, 3};
        pthread_t thread[MAX_CALLERS];
        pthread_barrier_init(&barrier, NULL, (unsigned)callers);
        for (int c = 0; c < callers; c++)
            if (pthread_create(&thread[c], NULL, run, &number[c]))
                return 1;
        for (int c = 0; c < callers; c++) {
            pthread_join(thread[c], NULL);
            printf("%d of %d: %016" PRIx64 "\n", c + 1, callers, checksum[c]);
            same = same && checksum[c] == expected;
        }
        pthread_barrier_destroy(&barrier);
    }
    for (int s = 0; s < SHARDS; s++)
        free(gradients[s]);
    printf("%s bits\n", same ? "the same" : "other");
    return !same;
}
