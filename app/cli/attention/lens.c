/* Shows the results that the model would compute if each layer were the last one (the logit lens). */
#include "cli/base/utf8.h"
#include "result.h"
#include "views.h"

#include <math.h>
#include <stdlib.h>

enum { SHOWN = 3, LISTED = 5, NAME = 14 };

/* Returns the side whose hidden states the result is of. */
static att_trace_side side_of(const attended *a)
{
    return a->info.hidden[ATT_TRACE_SIDE_DECODER] > 0 ? ATT_TRACE_SIDE_DECODER : ATT_TRACE_SIDE_ENCODER;
}

static int check(const attended *a)
{
    const attention_result result = a->kind->result(a);
    if (result == ATTENTION_RESULT_VECTOR)
        return cli_misuse("--logit-lens: %s has no logits, but a vector", a->m.base.name);
    if (result == ATTENTION_RESULT_TARGET && side_of(a) != ATT_TRACE_SIDE_DECODER)
        return cli_misuse("--logit-lens: %s has a recurrent decoder, without the hidden states of layers",
                          a->m.base.name);
    return CLI_DONE;
}

/* The result as it is printed: log probabilities of a target become probabilities. */
static double value_of(const attended *a, float x)
{
    return a->kind->result(a) == ATTENTION_RESULT_TARGET ? exp((double)x) : (double)x;
}

static void write_layer(cli_json *j, const attended *a, int64_t layer, const float *row)
{
    int64_t best[LISTED];
    const int64_t n = attention_largest(row, a->info.outputs, LISTED, best);
    cli_json_object(j, NULL);
    cli_json_integer(j, "layers", layer);
    cli_json_array(j, "results");
    for (int64_t i = 0; i < n; i++) {
        cli_json_object(j, NULL);
        cli_json_integer(j, "id", best[i]);
        cli_json_string(j, "name", a->kind->name(a, best[i]));
        cli_json_number(j, a->kind->result(a) == ATTENTION_RESULT_SCORES ? "score" : "probability",
                        value_of(a, row[best[i]]), 9);
        cli_json_end(j);
    }
    cli_json_end(j);
    cli_json_end(j);
}

static void print_layer(const attended *a, int64_t layer, const float *row)
{
    int64_t best[SHOWN];
    const int64_t n = attention_largest(row, a->info.outputs, SHOWN, best);
    printf("%6lld", (long long)layer);
    for (int64_t i = 0; i < n; i++) {
        const char *known = a->kind->name(a, best[i]), *name = known ? known : "";
        const int width = utf8_width(name);
        printf("  %8.4f ", value_of(a, row[best[i]]));
        utf8_field(stdout, name, i + 1 < n || width > NAME ? NAME : width, 0);
    }
    putchar('\n');
}

static void begin(const attended *a, cli_json *j, int64_t row)
{
    const bool tokens = a->info.output_rows > 1;
    if (a->asked->json) {
        *j = attention_json(a, -1, -1);
        if (tokens)
            cli_json_integer(j, "from", row);
        cli_json_array(j, "layers");
        return;
    }
    printf("The %s of largest %s after each number of layers", a->kind->outcome,
           a->kind->result(a) == ATTENTION_RESULT_SCORES ? "score" : "probability");
    if (tokens)
        printf(", next to token %lld", (long long)row);
    printf(".\n\nlayers\n");
}

int attention_show_lens(attended *a)
{
    cli_json j = {0};
    float *row = NULL;
    int64_t at;
    int code = check(a);
    if (!code)
        code = attention_result_at(a, &at);
    if (!code)
        code = attended_trace(a, 0, true, true, &a->trace);
    if (!code) {
        row = malloc((size_t)a->info.outputs * sizeof *row);
        code = row ? CLI_DONE : cli_fail_memory();
    }
    for (int64_t l = 0; !code && l <= a->info.layers[side_of(a)]; l++) {
        code = attention_result_row(a, a->trace, l, at, row);
        if (!code && l == 0)
            begin(a, &j, at);
        if (code)
            break;
        if (a->asked->json)
            write_layer(&j, a, l, row);
        else
            print_layer(a, l, row);
    }
    if (!code && a->asked->json)
        cli_json_close(&j);
    free(row);
    return code;
}
