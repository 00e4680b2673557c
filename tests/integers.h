/* For tests of every number of the public calls of libattend that may be any integer: those that cannot be are errors,
 * with a sentence, and none is undefined behaviour (which the sanitizers see) or allocates more memory than there is.
 */
#ifndef INTEGERS_H
#define INTEGERS_H

#include "cache_help.h"
#include "fail_alloc.h"
#include "tape_help.h"

#include <limits.h>

enum { ROWS = 4, COLUMNS = 6, HEADS = 2, DIM = 3, KEYS = 5 };
enum { MOST_MEMORY = 64 << 20 };

static inline void *little_memory(void *user, size_t bytes, size_t alignment)
{
    return bytes > MOST_MEMORY ? NULL : fail_alloc_take(user, bytes, alignment);
}

typedef struct fixture {
    att_ctx *ctx;
    att_tape *t;
    float x[ROWS * COLUMNS], y[ROWS * COLUMNS], weights[ROWS * COLUMNS * 4], kernel[64];
    att_tensor xs, ys;                    /* [ROWS, COLUMNS] */
    att_param *w;                         /* [ROWS, COLUMNS] */
    att_param *gru_ih, *gru_hh, *filters; /* [3, COLUMNS] [3, 1] [1, 2, 2, 2] */
    att_plan *plan;
    operands o;
    att_cache *cache; /* of KEYS tokens */
    att_optimizer *optimizer;
} fixture;

static inline att_var *input_of(fixture *f) { return att_input(f->t, &f->xs); }
static inline att_var *cube_of(fixture *f) { return input(f->t, f->x, ATT_DIMS(2, HEADS, COLUMNS)); }
static inline att_var *image_of(fixture *f) { return input(f->t, f->x, ATT_DIMS(1, 3, 4, 2)); }

/* What is an int: those that do not fit are those that are next to them. */
static inline int as_int(int64_t n) { return n < INT_MIN ? INT_MIN : n > INT_MAX ? INT_MAX : (int)n; }

static inline att_status read_out(fixture *f, const att_var *v)
{
    att_tensor out;
    return att_var_value(f->t, v, &out);
}

/* A number of a call: those of [least, most] are right. What counts an array of the caller's is tried up to the array's
 * length, as more cannot be known. */
enum { ARRAY = 1, ANY = 2 /* no number is wrong */ };

typedef struct number {
    const char *name;
    att_status (*call)(fixture *f, int64_t n);
    int64_t least, most;
    int flags;
} number;

#define NUMBER(name, least, most, flags)                                                                               \
    {                                                                                                                  \
#name, name, least, most, flags                                                                                \
    }

static inline void fixture_open(fixture *f, fail_alloc *memory)
{
    const att_allocator a = {little_memory, fail_alloc_give, memory};
    const shape n = {1, HEADS, HEADS, 3, KEYS, DIM, DIM};
    const att_attention_spec s = spec_of(n);
    must(NULL, att_open(&f->ctx, ATT_OPTIONS(att_config, .n_threads = 2, .allocator = a)));
    check_fill(f->x, ROWS * COLUMNS, 1, 0, 1);
    check_fill(f->y, ROWS * COLUMNS, 2, 0, 1);
    check_fill(f->kernel, 64, 3, 0, 1);
    f->xs = view(f->x, ATT_F32, ATT_DIMS(ROWS, COLUMNS)), f->ys = view(f->y, ATT_F32, ATT_DIMS(ROWS, COLUMNS));
    f->w = param(f->ctx, f->kernel, ATT_F32, ATT_DIMS(ROWS, COLUMNS));
    f->gru_ih = param(f->ctx, f->kernel, ATT_F32, ATT_DIMS(3, COLUMNS));
    f->gru_hh = param(f->ctx, f->kernel, ATT_F32, ATT_DIMS(3, 1));
    f->filters = param(f->ctx, f->kernel, ATT_F32, ATT_DIMS(1, 2, 2, 2));
    f->t = recording_tape(f->ctx);
    f->plan = plan_of(f->ctx, &s);
    f->o = make(n);
    f->cache = cache_of(f->ctx, f->plan, 1);
    append(f->ctx, f->cache, &f->o.args, 0, KEYS);
    must(f->ctx, att_optimizer_new(f->ctx, NULL, &f->optimizer));
    must(f->ctx, att_optimizer_add(f->optimizer, f->w, NULL));
}

static inline void fixture_close(fixture *f)
{
    att_optimizer_free(f->optimizer);
    att_cache_free(f->cache);
    drop(&f->o);
    att_plan_free(f->plan);
    att_tape_free(f->t);
    att_param_free(f->w), att_param_free(f->gru_ih), att_param_free(f->gru_hh), att_param_free(f->filters);
    att_close(f->ctx);
}

/* Calls each with numbers of all sizes: a wrong one is an error with a sentence. */
static inline void check_integers(const number *numbers, size_t n_numbers)
{
    static const int64_t tried[] = {INT64_MIN,
                                    INT64_MIN + 1,
                                    INT64_MIN / 2,
                                    -(INT64_C(1) << 49),
                                    INT32_MIN,
                                    -9,
                                    -3,
                                    -2,
                                    -1,
                                    0,
                                    1,
                                    2,
                                    3,
                                    4,
                                    5,
                                    6,
                                    9,
                                    3000000,
                                    INT32_MAX - 1,
                                    INT32_MAX,
                                    INT64_C(1) << 32,
                                    INT64_C(1) << 49,
                                    INT64_MAX / 4,
                                    INT64_MAX / 3,
                                    INT64_MAX / 2,
                                    INT64_MAX - 1,
                                    INT64_MAX};
    fail_alloc memory = {0};
    fixture f;
    int wrong = 0;
    fixture_open(&f, &memory);
    for (size_t i = 0; i < n_numbers; i++)
        for (size_t j = 0; j < sizeof tried / sizeof *tried; j++) {
            const int64_t n = tried[j];
            if ((numbers[i].flags & ARRAY) && n > numbers[i].most)
                continue;
            att_fail(f.ctx, ATT_OK, "%s", "");
            const att_status s = numbers[i].call(&f, n);
            const bool right = (numbers[i].flags & ANY) || (n >= numbers[i].least && n <= numbers[i].most);
            if ((!s && !right) || (s && !*att_error(f.ctx))) {
                print_error("%s of %lld: %s, \"%s\"\n", numbers[i].name, (long long)n, att_status_name(s),
                            att_error(f.ctx));
                wrong++;
            }
            att_tape_reset(f.t);
        }
    fixture_close(&f);
    assert_int_equal(wrong, 0);
    assert_int_equal(memory.live, 0);
}

#endif
