/* Shows the changes of the result without some tokens and heads. */
#include "cli/base/utf8.h"
#include "result.h"
#include "views.h"

#include <math.h>
#include <stdlib.h>

enum { SHOWN = 5, SHOWN_ITEMS = 10, NAMED = 4 };

typedef struct changes {
    const attended *a;
    att_trace *whole;
    float *with, *without; /* [info.outputs] */
    int64_t row;           /* the requested row of the result */
    cli_json j;
    const char *measure; /* its name in JSON */
} changes;

/* ---- Printing ------------------------------------------------------------------- */

static void print_title(const changes *c, const char *what)
{
    const attended *a = c->a;
    const char *join = "Without";
    if (a->n_hide > NAMED) {
        printf("%s %lld tokens", join, (long long)a->n_hide);
        join = ",";
    }
    for (int64_t i = 0; i < a->n_hide && a->n_hide <= NAMED; i++) {
        char text[ATTENTION_NAME];
        const bool source = a->info.source > 0;
        const char *name =
            source ? attention_source_name(a, a->hide[i], text) : a->kind->target(a, a->info.target_ids[a->hide[i]]);
        printf("%s token %lld \"%s\"", join, (long long)a->hide[i], name ? name : "");
        join = ",";
    }
    for (int64_t i = 0; i < a->n_zero; i++) {
        printf("%s %s%slayer %lld head %lld", join, attention_has_sides(a) ? attention_side_name(a->side) : "",
               attention_has_sides(a) ? " " : "", (long long)a->zero[i].layer, (long long)a->zero[i].head);
        join = ",";
    }
    printf(": %s.\n\n%-24s  %10s  %10s\n", what, "", "with", "without");
}

static void begin(changes *c, const char *measure, const char *what)
{
    const attended *a = c->a;
    c->measure = measure;
    if (!a->asked->json) {
        print_title(c, what);
        return;
    }
    c->j = attention_json(a, -1, -1);
    cli_json_array(&c->j, "hidden");
    for (int64_t i = 0; i < a->n_hide; i++)
        cli_json_integer(&c->j, NULL, a->hide[i]);
    cli_json_end(&c->j);
    cli_json_array(&c->j, "zeroed");
    for (int64_t i = 0; i < a->n_zero; i++) {
        cli_json_object(&c->j, NULL);
        cli_json_integer(&c->j, "layer", a->zero[i].layer);
        cli_json_integer(&c->j, "head", a->zero[i].head);
        cli_json_end(&c->j);
    }
    cli_json_end(&c->j);
    cli_json_string(&c->j, "measure", measure);
    cli_json_array(&c->j, "results");
}

static void add(changes *c, const char *name, double with, double without)
{
    name = name ? name : "";
    if (c->a->asked->json) {
        cli_json_object(&c->j, NULL);
        cli_json_string(&c->j, "name", name);
        cli_json_number(&c->j, "with", with, 9);
        cli_json_number(&c->j, "without", without, 9);
        cli_json_end(&c->j);
        return;
    }
    utf8_field(stdout, name, 24, 0);
    printf("  %10.4f  %10.4f\n", with, without);
}

static void end(changes *c)
{
    if (c->a->asked->json)
        cli_json_close(&c->j);
}

/* ---- What is compared ------------------------------------------------------------ */

static int read_both(changes *c, int64_t row)
{
    const int code = attention_result_row(c->a, c->whole, -1, row, c->with);
    return code ? code : attention_result_row(c->a, c->a->trace, -1, row, c->without);
}

static int compare_vectors(changes *c)
{
    double dot = 0, with = 0, without = 0;
    const int code = read_both(c, 0);
    if (code)
        return code;
    for (int64_t i = 0; i < c->a->info.outputs; i++) {
        dot += (double)c->with[i] * (double)c->without[i];
        with += (double)c->with[i] * (double)c->with[i];
        without += (double)c->without[i] * (double)c->without[i];
    }
    begin(c, "cosine", "the cosine with the vector of the whole");
    add(c, "cosine", 1, with > 0 && without > 0 ? dot / sqrt(with * without) : 0);
    end(c);
    return CLI_DONE;
}

/* Compares the columns that are large in either row. */
static int compare_columns(changes *c, const char *measure, const char *what, int64_t max)
{
    int64_t best[SHOWN_ITEMS];
    const int64_t n = c->a->info.outputs;
    const int code = read_both(c, c->row);
    float *larger = malloc((size_t)n * sizeof *larger);
    if (code || !larger) {
        free(larger);
        return code ? code : cli_fail_memory();
    }
    for (int64_t i = 0; i < n; i++)
        larger[i] = fmaxf(c->with[i], c->without[i]);
    const int64_t count = attention_largest(larger, n, max, best);
    free(larger);
    begin(c, measure, what);
    for (int64_t i = 0; i < count; i++)
        add(c, c->a->kind->name(c->a, best[i]), (double)c->with[best[i]], (double)c->without[best[i]]);
    end(c);
    return CLI_DONE;
}

static int compare_probabilities(changes *c)
{
    char what[160];
    const attended *a = c->a;
    snprintf(what, sizeof what, "probabilities of %s%s", a->info.output_rows > 1 ? "next " : "", a->kind->outcome);
    return compare_columns(c, "probability", what, SHOWN);
}

static int compare_scores(changes *c) { return compare_columns(c, "score", "scores of items", SHOWN_ITEMS); }

/* Reads the tokens of the target and computes their sum. */
static int compare_target(changes *c)
{
    const attended *a = c->a;
    double with = 0, without = 0;
    int code = CLI_DONE;
    for (int64_t i = 0; !code && i < a->info.output_rows; i++) {
        const int32_t id = a->info.target_ids[i];
        code = read_both(c, i);
        if (code)
            return code;
        if (i == 0)
            begin(c, "log_probability", "log probabilities of the target");
        add(c, a->kind->target(a, id), (double)c->with[id], (double)c->without[id]);
        with += (double)c->with[id];
        without += (double)c->without[id];
    }
    if (a->asked->json) {
        cli_json_end(&c->j);
        cli_json_object(&c->j, "sum");
        cli_json_number(&c->j, "with", with, 9);
        cli_json_number(&c->j, "without", without, 9);
    } else {
        add(c, "sum", with, without);
    }
    end(c);
    return CLI_DONE;
}

int attention_show_changes(attended *a)
{
    static int (*const compare[])(changes *) = {[ATTENTION_RESULT_VECTOR] = compare_vectors,
                                                [ATTENTION_RESULT_PROBABILITIES] = compare_probabilities,
                                                [ATTENTION_RESULT_EACH] = compare_probabilities,
                                                [ATTENTION_RESULT_TARGET] = compare_target,
                                                [ATTENTION_RESULT_SCORES] = compare_scores};
    changes c = {.a = a};
    const int64_t n = a->info.outputs;
    int code = CLI_DONE;
    if (a->asked->from >= 0 && (a->info.output_rows == 1 || a->kind->result(a) == ATTENTION_RESULT_TARGET))
        code = cli_misuse("--from does not go with --%s: what changes is not that of one token",
                          a->n_hide ? "hide" : "zero");
    if (!code)
        code = attention_result_at(a, &c.row);
    if (!code)
        code = attended_trace(a, 0, false, false, &c.whole);
    if (!code)
        code = attended_trace(a, 0, false, true, &a->trace);
    c.with = malloc(((size_t)n + 1) * sizeof *c.with);
    c.without = malloc(((size_t)n + 1) * sizeof *c.without);
    if (!code && !(c.with && c.without))
        code = cli_fail_memory();
    if (!code)
        code = compare[a->kind->result(a)](&c);
    free(c.with);
    free(c.without);
    att_trace_free(c.whole);
    return code;
}
