/* Steps of recurrent units, on every instruction set, against their references in double; derivatives against
 * differences of these. */
#include "fixtures/check.h"
#include "kernel/kernel.h"

enum { LARGEST = 257, MOST_GATES = 4 };
static const int64_t sizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65, LARGEST};

/* The input of a step. Numbers are in [-3, 3). */
typedef struct step {
    bool lstm;
    int64_t n;
    float *in, *product, *state; /* [gates][n], the same, [n] */
} step;

static int64_t gates_of(const step *s) { return s->lstm ? 4 : 3; }

static step new_step(bool lstm, int64_t n)
{
    step s = {.lstm = lstm, .n = n};
    float **const all[] = {&s.in, &s.product, &s.state};
    for (int i = 0; i < 3; i++) {
        const int64_t count = i < 2 ? gates_of(&s) * n : n;
        *all[i] = check_numbers(count, (uint64_t)i + 1);
        check_fill(*all[i], count, (uint64_t)i + 1, 0, 3);
    }
    return s;
}

static void step_free(step *s) { free(s->in), free(s->product), free(s->state); }

/* Returns the state of unit i if its input number `leaf` is moved. Inputs are first the gates' parts from x, then their
 * parts from the product, then the state. cell: of an LSTM, NULL for a GRU. */
static double unit(const step *s, int64_t i, int leaf, double by, double *cell)
{
    const int64_t gates = gates_of(s);
    double x[2 * MOST_GATES + 1], y;
    for (int64_t g = 0; g < gates; g++) {
        x[g] = (double)s->in[g * s->n + i];
        x[gates + g] = (double)s->product[g * s->n + i];
    }
    x[2 * gates] = (double)s->state[i];
    x[leaf] += by;
    if (s->lstm)
        att_ref_lstm(1, x, x + gates, x + 2 * gates, &y, cell);
    else
        att_ref_gru(1, x, x + gates, x + 2 * gates, &y);
    return y;
}

/* Makes the step at the fence of f; gates [gates + 1][n] must be freed. */
static float *run(const att_kernels *k, const step *s, check_fence *f, float **gates)
{
    const int64_t count = gates_of(s) * s->n;
    *gates = check_numbers(count + s->n, 9);
    memcpy(*gates, s->in, (size_t)count * sizeof **gates);
    float *y = check_place(f, (size_t)s->n * sizeof *y);
    (s->lstm ? k->layer.lstm : k->layer.gru)(s->n, s->product, s->state, *gates, y);
    return y;
}

/* With u = FLT_EPSILON / 2: a sum of two numbers below 3 is off by 4 u, so gates by a quarter of that and two units of
 * a number below 1, 3 u. A GRU's m: 3 times that of r, two roundings below 8 and two units, 9 + 8 + 2 u; z (h - m): 4
 * times that of z, two roundings below 4. An LSTM's c: 3 + 1 times that of gates, 4 + 2 u of g, two roundings below 4;
 * its output has those of o and tanh more. All are below 45 u. */
static const double tolerance = 45 * FLT_EPSILON / 2;

static void check_step_forward(int isa, const step *s, check_fence *f)
{
    float *gates, *y = run(att_kernels_of(isa), s, f, &gates);
    for (int64_t i = 0; i < s->n; i++) {
        double cell = 0;
        check_near(unit(s, i, 0, 0, &cell), y[i], tolerance, "%s %s[%d] of %d", att_isa_name(isa),
                   s->lstm ? "lstm" : "gru", (int)i, (int)s->n);
        if (s->lstm)
            check_near(cell, gates[4 * s->n + i], tolerance, "%s cell[%d] of %d", att_isa_name(isa), (int)i, (int)s->n);
    }
    check_untouched(f, "a recurrent step");
    free(gates);
}

/* Derivatives of the loss dy y + dc c of unit i. A central difference over 2e-5 of numbers below 10, exact to 1e-15, is
 * itself off by 1e-10. */
static double slope(const step *s, int64_t i, int leaf, double dy, double dc)
{
    static const double by = 1e-5;
    double above = 0, below = 0;
    const double difference = dy * (unit(s, i, leaf, by, &above) - unit(s, i, leaf, -by, &below));
    return (difference + dc * (above - below)) / (2 * by);
}

/* Gates are off by up to 23 u, as above, in derivatives that have slopes and states below 4 times dy and dc, below 1
 * each, beside them. */
static void check_step_back(int isa, const step *s, check_fence *f)
{
    const att_kernels *k = att_kernels_of(isa);
    const int64_t n = s->n, gates = gates_of(s);
    float *left, *d = check_numbers(gates * n, 1), *dproduct = check_numbers(gates * n, 1);
    float *dc = check_numbers(n, 5), *dy = check_numbers(n, 4);
    run(k, s, f, &left);
    float *dh = check_place(f, (size_t)n * sizeof *dh);
    memcpy(dh, dy, (size_t)n * sizeof *dh);
    if (s->lstm)
        k->layer.lstm_back(n, left, s->state, dh, dc, d), memcpy(dproduct, d, (size_t)(gates * n) * sizeof *d);
    else
        k->layer.gru_back(n, left, s->state, dh, d, dproduct);
    for (int64_t i = 0; i < n; i++) {
        const double by_y = (double)dy[i], by_c = s->lstm ? (double)check_uniform(5, (uint64_t)i) : 0;
        const float state = s->lstm ? dc[i] : dh[i];
        for (int leaf = 0; leaf <= 2 * gates; leaf++) {
            const float got = leaf < gates       ? d[leaf * n + i]
                              : leaf < 2 * gates ? dproduct[(leaf - gates) * n + i]
                                                 : state;
            check_near(slope(s, i, leaf, by_y, by_c), got, 4 * tolerance, "%s %s: derivative %d of unit %d of %d",
                       att_isa_name(isa), s->lstm ? "lstm" : "gru", leaf, (int)i, (int)n);
        }
        assert_true(!s->lstm || dh[i] == 0);
    }
    check_untouched(f, "a recurrent step back");
    free(left), free(d), free(dproduct), free(dc), free(dy);
}

static void on_each_set(void (*check)(int isa, const step *s, check_fence *f))
{
    check_fence f = check_fence_new(LARGEST * sizeof(float));
    for (int isa = -1; check_next_isa(&isa);)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            for (int lstm = 0; lstm < 2; lstm++) {
                step s = new_step(lstm, sizes[i]);
                check(isa, &s, &f);
                step_free(&s);
            }
    check_fence_free(&f);
}

static void steps_equal_their_references(void **state)
{
    (void)state;
    on_each_set(check_step_forward);
}

static void derivatives_of_steps_are_those_of_differences(void **state)
{
    (void)state;
    on_each_set(check_step_back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_equal_their_references),
        cmocka_unit_test(derivatives_of_steps_are_those_of_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
