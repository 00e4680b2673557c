#include "answers.h"
#include "cli/base/json.h"
#include "cli/base/output.h"
#include "cli/base/utf8.h"
#include "cli/draw/heatmap.h"
#include "cli/draw/picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TOP = 5, BINS = 15, MAX_TABLE = 20, MAX_DRAWN = 100, MAX_JSON = 1000 };

/* ---- Counting ------------------------------------------------------------ */

int cli_answers_check(const cli_answers *a, const cli_answers_options *o)
{
    return o->confusion && a->classes > MAX_DRAWN
               ? cli_misuse("--confusion: the model has %lld classes, at most %d can be drawn", (long long)a->classes,
                            MAX_DRAWN)
               : CLI_DONE;
}

int cli_answers_open(cli_answers *a, const cli_answers_options *o)
{
    const bool matrix = o->confusion || a->classes <= (o->json ? MAX_JSON : MAX_TABLE);
    a->json = o->json;
    a->of = calloc((size_t)a->classes, sizeof *a->of);
    a->confusion = matrix ? calloc((size_t)(a->classes * a->classes), sizeof *a->confusion) : NULL;
    a->confidence = malloc((size_t)a->n * sizeof *a->confidence);
    a->is_right = malloc((size_t)a->n * sizeof *a->is_right);
    a->wrong = o->wrong ? malloc((size_t)a->n * sizeof *a->wrong) : NULL;
    return a->of && !matrix == !a->confusion && !o->wrong == !a->wrong && a->confidence && a->is_right
               ? CLI_DONE
               : cli_fail_memory();
}

void cli_answers_close(cli_answers *a)
{
    free(a->label);
    free(a->of);
    free(a->confusion);
    free(a->confidence);
    free(a->is_right);
    free(a->wrong);
}

void cli_answers_add(cli_answers *c, int64_t example, int64_t class, const float *p)
{
    int64_t answer = 0, above = 0; /* classes that are more probable than the right one */
    for (int64_t k = 0; k < c->classes; k++) {
        answer = p[k] > p[answer] ? k : answer;
        above += p[k] > p[class] || (p[k] == p[class] && k < class);
    }
    if (c->confusion)
        c->confusion[class * c->classes + answer]++;
    if (c->wrong && answer != class)
        c->wrong[c->counted - c->right] = (cli_wrong_answer){example, class, answer, p[answer]};
    c->of[class].examples++;
    c->of[answer].answers++;
    c->of[class].right += answer == class;
    c->right += answer == class;
    c->right_top += above < TOP;
    c->confidence[c->counted] = p[answer];
    c->is_right[c->counted++] = answer == class;
}

/* ---- Figures --------------------------------------------------------------- */

static double share(int64_t part, int64_t all) { return all ? (double)part / (double)all : NAN; }

/* Return precision and recall. Both are NAN if there are no examples for them. */
static double precision(const cli_class_count *n) { return share(n->right, n->answers); }
static double recall(const cli_class_count *n) { return share(n->right, n->examples); }

/* Computes the accuracy of all examples, and the mean recall of the classes that have some. */
static int measure(cli_answers *c)
{
    int64_t *n = malloc(2 * (size_t)c->classes * sizeof *n), *right = n + c->classes;
    if (!n)
        return cli_fail_memory();
    for (int64_t k = 0; k < c->classes; k++) {
        n[k] = c->of[k].examples;
        right[k] = c->of[k].right;
    }
    int code = cli_status(NULL, att_share_interval(c->right, c->n, &c->accuracy));
    if (!code)
        code = cli_status(NULL, att_balanced_accuracy(right, n, c->classes, &c->balanced));
    free(n);
    return code;
}

/* Returns the interval of a recall; NAN if the class has no example. */
static att_interval recall_interval(const cli_class_count *n)
{
    att_interval a = {NAN, NAN, NAN};
    if (n->examples)
        att_share_interval(n->right, n->examples, &a);
    return a;
}

/* ---- Wrong answers --------------------------------------------------------- */

static int by_confidence(const void *a, const void *b)
{
    const cli_wrong_answer *x = a, *y = b;
    return x->probability != y->probability ? (x->probability < y->probability) - (x->probability > y->probability)
                                            : (x->example > y->example) - (x->example < y->example);
}

static void put_field(FILE *f, const char *text)
{
    for (; *text; text++)
        putc((unsigned char)*text < ' ' ? ' ' : *text, f);
}

static int write_wrong(const cli_answers *c, const char *path, const char *(*name)(const void *user, int64_t i),
                       const void *user)
{
    cli_output out;
    const int64_t n = c->counted - c->right;
    int code = cli_output_open(&out, path);
    if (code)
        return code;
    qsort(c->wrong, (size_t)n, sizeof *c->wrong, by_confidence);
    fprintf(out.file, "%.*s\tclass\tanswer\tprobability\n", (int)strlen(c->unit) - 1, c->unit);
    for (int64_t i = 0; i < n; i++) {
        const cli_wrong_answer *w = &c->wrong[i];
        const char *of = name(user, w->example);
        if (of)
            put_field(out.file, of);
        else
            fprintf(out.file, "%lld", (long long)w->example); /* of a file that has all, from 0 */
        putc('\t', out.file);
        put_field(out.file, c->label[w->class]);
        putc('\t', out.file);
        put_field(out.file, c->label[w->answer]);
        fprintf(out.file, "\t%.4f\n", (double)w->probability);
    }
    return cli_output_close(&out, code);
}

/* ---- Printing --------------------------------------------------------------- */

static void put_percent(double x)
{
    if (isnan(x))
        fputs("         -", stdout);
    else
        printf("  %6.2f %%", 100 * x);
}

/* Prints a line for each class of the data, followed by the last part of its row of the confusion matrix if all rows
 * fit. */
static void print_classes(const cli_answers *c)
{
    const bool matrix = c->classes <= MAX_TABLE;
    int width = 5, cell = 2;
    for (int64_t i = 0; i < c->classes; i++)
        width = (int)fmax(width, utf8_width(c->label[i]));
    width = (int)fmin(width, 24);
    for (int64_t n = c->n; n >= 10; n /= 10)
        cell++;
    printf("\n  #  %-*s  %6s  precision    recall    (95 %%)       ", width, "class", c->unit);
    for (int64_t k = 0; matrix && k < c->classes; k++)
        printf("%*lld", cell, (long long)k);
    printf("%s\n", matrix ? "  (answers)" : "");
    for (int64_t i = 0; i < c->classes; i++) {
        const cli_class_count *n = &c->of[i];
        if (!n->examples && !n->answers)
            continue;
        printf("%3lld  ", (long long)i);
        utf8_field(stdout, c->label[i], width, 0);
        printf("  %6lld ", (long long)n->examples);
        put_percent(precision(n));
        put_percent(recall(n));
        const att_interval a = recall_interval(n);
        if (isnan(a.mean))
            printf("%18s", "");
        else
            printf("  (%5.1f to %5.1f)", 100 * a.low, 100 * a.high);
        for (int64_t k = 0; matrix && k < c->classes; k++)
            printf("%*lld", cell, (long long)c->confusion[i * c->classes + k]);
        putchar('\n');
    }
}

static void print_top(const cli_answers *c)
{
    att_interval a = {0};
    att_share_interval(c->right_top, c->n, &a);
    printf("top %d        %6.2f %%  from %.2f to %.2f (95 %%)\n", TOP, 100 * a.mean, 100 * a.low, 100 * a.high);
}

static void print_text(const cli_answers *c)
{
    const att_interval *a = &c->accuracy, *b = &c->balanced;
    printf("accuracy     %6.2f %%  from %.2f to %.2f (95 %%): %lld of %lld %s\n", 100 * a->mean, 100 * a->low,
           100 * a->high, (long long)c->right, (long long)c->n, c->unit);
    printf("balanced     %6.2f %%  from %.2f to %.2f (95 %%): the mean recall of the classes\n", 100 * b->mean,
           100 * b->low, 100 * b->high);
    if (c->classes > TOP)
        print_top(c);
    printf("calibration  %6.2f %%  expected error of the probabilities, %d bins\n", 100 * c->calibration_error, BINS);
    printf("%.0f %s/s\n", (double)c->n / c->seconds, c->unit);
    print_classes(c);
}

static void json_classes(cli_json *j, const cli_answers *c)
{
    cli_json_array(j, "classes");
    for (int64_t i = 0; i < c->classes; i++) {
        cli_json_object(j, NULL);
        cli_json_string(j, "label", c->label[i]);
        cli_json_integer(j, c->unit, c->of[i].examples);
        cli_json_number(j, "precision", precision(&c->of[i]), 8);
        const att_interval a = recall_interval(&c->of[i]);
        cli_json_number(j, "recall", a.mean, 8);
        cli_json_number(j, "recall_low", a.low, 8);
        cli_json_number(j, "recall_high", a.high, 8);
        cli_json_end(j);
    }
    cli_json_end(j);
}

static void json_confusion(cli_json *j, const cli_answers *c)
{
    cli_json_array(j, "confusion");
    for (int64_t i = 0; i < c->classes; i++) {
        cli_json_array(j, NULL);
        for (int64_t k = 0; k < c->classes; k++)
            cli_json_integer(j, NULL, c->confusion[i * c->classes + k]);
        cli_json_end(j);
    }
    cli_json_end(j);
}

static void print_json(const cli_answers *c)
{
    const att_interval *a = &c->accuracy, *b = &c->balanced;
    att_interval top = {0};
    att_share_interval(c->right_top, c->n, &top);
    cli_json j = cli_json_begin(stdout);
    cli_json_integer(&j, c->unit, c->n);
    cli_json_integer(&j, "right", c->right);
    if (c->broken)
        cli_json_integer(&j, "broken", c->broken);
    cli_json_number(&j, "accuracy", a->mean, 8);
    cli_json_number(&j, "low", a->low, 8);
    cli_json_number(&j, "high", a->high, 8);
    cli_json_number(&j, "balanced_accuracy", b->mean, 8);
    cli_json_number(&j, "balanced_low", b->low, 8);
    cli_json_number(&j, "balanced_high", b->high, 8);
    if (c->classes > TOP) {
        cli_json_number(&j, "top5", top.mean, 8);
        cli_json_number(&j, "top5_low", top.low, 8);
        cli_json_number(&j, "top5_high", top.high, 8);
    }
    cli_json_number(&j, "calibration_error", c->calibration_error, 8);
    cli_json_string(&j, "compute", c->compute);
    cli_json_fixed(&j, "seconds", c->seconds, 3);
    json_classes(&j, c);
    if (c->classes <= MAX_JSON)
        json_confusion(&j, c);
    cli_json_end(&j);
}

static int print(const cli_answers *c)
{
    cli_output out;
    const int code = cli_output_open(&out, NULL);
    if (code)
        return code;
    if (c->json)
        print_json(c);
    else
        print_text(c);
    return cli_output_close(&out, code);
}

/* Draws the confusion matrix. Rows sum to 1, so the diagonal has the recall. */
static int draw(const cli_answers *c, const char *path)
{
    const int64_t n = c->classes;
    float *weights = calloc((size_t)(n * n), sizeof *weights);
    picture p;
    char title[256];
    int code = weights ? CLI_DONE : cli_fail_memory();
    for (int64_t i = 0; !code && i < n; i++)
        for (int64_t k = 0; c->of[i].examples && k < n; k++)
            weights[i * n + k] = (float)share(c->confusion[i * n + k], c->of[i].examples);
    snprintf(title, sizeof title, "Confusions of %lld %s, %.2f %% right (%.2f to %.2f)", (long long)c->n, c->unit,
             100 * c->accuracy.mean, 100 * c->accuracy.low, 100 * c->accuracy.high);
    if (!code)
        code = picture_open(&p, path);
    if (!code) {
        const heatmap h = {c->label, c->label, n, n, weights, "class (row)", "answer (column)", ""};
        heatmap_svg(p.svg, title, &h);
        code = picture_close(&p, CLI_DONE);
    }
    free(weights);
    return code;
}

int cli_answers_finish(cli_answers *c, const cli_answers_options *o, const char *(*name)(const void *user, int64_t i),
                       const void *user)
{
    c->n = c->counted;
    int code =
        cli_status(NULL, att_calibration_error(c->ctx, c->confidence, c->is_right, c->n, BINS, &c->calibration_error));
    if (!code)
        code = measure(c);
    if (!code && o->wrong)
        code = write_wrong(c, o->wrong, name, user);
    if (code)
        return code;
    const int drawn = o->confusion ? draw(c, o->confusion) : CLI_DONE; /* first: | head ends the output below */
    code = print(c);
    return code ? code : drawn;
}
