#include "attended.h"
#include "cli/base/grow.h"

#include <stdlib.h>
#include <string.h>

enum { MUCH = 256 << 20 }; /* bytes of a trace that are worth a note */

const char *attention_side_name(att_trace_side side)
{
    static const char *const name[ATT_TRACE_SIDES] = {"encoder", "decoder", "cross"};
    return name[side];
}

void attention_heads_name(const attended *a, char *text, size_t size)
{
    const int64_t heads = a->attention.heads;
    if (a->head >= 0)
        snprintf(text, size, "Layer %lld, head %lld", (long long)a->attention.layer, (long long)a->head);
    else
        snprintf(text, size, "Layer %lld, mean of %lld head%s", (long long)a->attention.layer, (long long)heads,
                 heads == 1 ? "" : "s");
}

bool attention_has_sides(const attended *a)
{
    int sides = 0;
    for (int i = 0; i < ATT_TRACE_SIDES; i++)
        sides += a->info.layers[i] > 0;
    return sides > 1;
}

cli_json attention_json(const attended *a, int64_t layer, int64_t head)
{
    cli_json j = cli_json_begin(stdout);
    if (a->kind->argument)
        cli_json_string(&j, a->kind->argument,
                        a->kind->image && !strcmp(a->asked->argument, "-") ? "standard input" : a->asked->argument);
    if (attention_has_sides(a) || a->asked->side >= 0)
        cli_json_string(&j, "side", attention_side_name(a->side));
    if (layer >= 0)
        cli_json_integer(&j, "layer", layer);
    if (head >= 0)
        cli_json_integer(&j, "head", head);
    return j;
}

/* ---- Options ------------------------------------------------------------------- */

/* Checks that a number, such as that of a query, is in [0, n). */
static int check_number(const char *option, const char *what, int64_t n, int64_t given)
{
    if (given < n)
        return CLI_DONE;
    return cli_misuse("--%s: the model has the %s 0 to %lld, not %lld", option, what, (long long)n - 1,
                      (long long)given);
}

/* Reads the integer at *text, and moves *text to its end. */
static bool read_number(const char **text, int64_t *out)
{
    char *end;
    const long long n = strtoll(*text, &end, 10);
    const bool plain = **text >= '0' && **text <= '9';
    *text = end;
    *out = n;
    return plain && n < INT32_MAX;
}

int attention_check_from(const attended *a, int64_t n)
{
    return a->asked->from < n
               ? CLI_DONE
               : cli_misuse("--from: the tokens are 0 to %lld, not %lld", (long long)n - 1, (long long)a->asked->from);
}

static int read_hidden(attended *a)
{
    const cli_texts *t = &a->asked->hide;
    const int64_t tokens = a->info.source > 0 ? a->info.source : a->info.target;
    size_t room = 0;
    for (int i = 0; i < t->n; i++)
        for (const char *p = t->text[i], *next = ","; *next == ','; p = next + 1) {
            int64_t token;
            next = p;
            if (!read_number(&next, &token) || (*next && *next != ','))
                return cli_misuse("--hide: \"%s\" is not a list of whole numbers, such as 2,5", t->text[i]);
            if (token >= tokens)
                return cli_misuse("--hide: the tokens are 0 to %lld, not %lld", (long long)tokens - 1,
                                  (long long)token);
            if (!cli_reserve(&room, (size_t)a->n_hide + 1, &(cli_array){&a->hide, sizeof *a->hide}, 1))
                return cli_fail_memory();
            a->hide[a->n_hide++] = token;
        }
    return CLI_DONE;
}

static int check_zero(const attended *a, int64_t layer, int64_t head)
{
    att_trace_attention_info i = {.size = sizeof i};
    const int code = check_number("zero", "layers", a->info.layers[a->side], layer);
    if (code || att_trace_attention(a->described, att_trace_find(a->described, a->side, layer), &i))
        return code ? code : CLI_FAILED;
    return check_number("zero", "heads", i.heads, head);
}

static int read_zeroed(attended *a)
{
    const cli_texts *t = &a->asked->zero;
    size_t room = 0;
    for (int i = 0; i < t->n; i++)
        for (const char *p = t->text[i], *next = ","; *next == ','; p = next + 1) {
            int64_t layer, head;
            next = p;
            if (!read_number(&next, &layer) || *next++ != '.' || !read_number(&next, &head) || (*next && *next != ','))
                return cli_misuse("--zero: \"%s\" is not a list of LAYER.HEAD, such as 0.3,5.11", t->text[i]);
            const int code = check_zero(a, layer, head);
            if (code)
                return code;
            if (!cli_reserve(&room, (size_t)a->n_zero + 1, &(cli_array){&a->zero, sizeof *a->zero}, 1))
                return cli_fail_memory();
            a->zero[a->n_zero++] = (att_trace_head){a->side, layer, head};
        }
    return CLI_DONE;
}

static int choose_side(attended *a)
{
    const int64_t *layers = a->info.layers;
    char has[64] = "";
    int first = -1;
    for (int i = ATT_TRACE_SIDES - 1; i >= 0; i--) {
        first = layers[i] > 0 ? i : first;
        const size_t n = strlen(has);
        if (layers[i] > 0)
            snprintf(has + n, sizeof has - n, "%s%s", n ? ", " : "", attention_side_name((att_trace_side)i));
    }
    if (first < 0)
        return cli_fail("%s has no attention", a->m.base.name);
    if (a->asked->side >= 0 && layers[a->asked->side] == 0)
        return cli_misuse("--side %s: %s does not have it, but %s", attention_side_name((att_trace_side)a->asked->side),
                          a->m.base.name, has);
    a->side = a->asked->side >= 0         ? (att_trace_side)a->asked->side
              : layers[a->kind->side] > 0 ? a->kind->side
                                          : (att_trace_side)first;
    return CLI_DONE;
}

static int choose(attended *a)
{
    int code = choose_side(a);
    if (!code)
        code = check_number("layer", "layers", a->info.layers[a->side], a->asked->layer);
    if (code)
        return code;
    a->layer = a->asked->layer;
    a->attention.size = sizeof a->attention;
    code = cli_status(a->m.base.ctx, att_trace_attention(a->described, att_trace_find(a->described, a->side, a->layer),
                                                         &a->attention));
    if (!code)
        code = check_number("head", "heads", a->attention.heads, a->asked->head);
    a->head = a->asked->head >= 0 || a->kind->mean ? a->asked->head : 0;
    if (!code)
        code = read_hidden(a);
    return code ? code : read_zeroed(a);
}

/* ---- Labels -------------------------------------------------------------------- */

const char *attention_source_name(const attended *a, int64_t i, char text[ATTENTION_NAME])
{
    if (a->info.source_ids) {
        const char *name = a->kind->source(a, a->info.source_ids[i]);
        return name ? name : "";
    }
    const int64_t location = i - a->info.prefix, columns = a->info.grid[1];
    if (location >= 0)
        snprintf(text, ATTENTION_NAME, "%lld,%lld", (long long)(location / columns), (long long)(location % columns));
    else
        snprintf(text, ATTENTION_NAME, i == 0 ? "[CLS]" : "[%lld]", (long long)i);
    return text;
}

static const char *target_name(const attended *a, int64_t i)
{
    const char *name = i < 0 ? "(start)" : a->kind->target(a, a->info.target_ids[i]);
    return name ? name : "";
}

static int make_labels(attended *a)
{
    const int64_t queries = a->attention.queries, keys = a->attention.keys;
    const bool encoder = a->side == ATT_TRACE_SIDE_ENCODER, decoder = a->side == ATT_TRACE_SIDE_DECODER;
    const int64_t first = a->side == ATT_TRACE_SIDE_CROSS ? a->info.prefix : 0;
    a->query = malloc(((size_t)queries + 1) * sizeof *a->query);
    a->key = malloc(((size_t)keys + 1) * sizeof *a->key);
    a->number = malloc(((size_t)queries + (size_t)keys + 1) * sizeof *a->number);
    if (!a->query || !a->key || !a->number)
        return cli_fail_memory();
    for (int64_t i = 0; i < queries; i++)
        a->query[i] = encoder ? attention_source_name(a, i, a->number[i]) : target_name(a, i);
    for (int64_t i = 0; i < keys; i++)
        a->key[i] =
            decoder ? target_name(a, i - a->info.shifted) : attention_source_name(a, first + i, a->number[queries + i]);
    return CLI_DONE;
}

/* ---- Traces -------------------------------------------------------------------- */

static att_trace_options options_of(const attended *a, const int64_t *layer, bool hidden, bool changed)
{
    att_trace_options o = {.size = sizeof o, .layers = layer, .n_layers = *layer >= 0, .hidden = hidden};
    if (changed) {
        o.hide = a->hide;
        o.n_hide = a->n_hide;
        o.zero = a->zero;
        o.n_zero = a->n_zero;
    }
    return o;
}

/* Reports the memory of a trace that is large. */
static int report_memory(const attended *a, const att_trace_options *options)
{
    att_trace_options o = *options;
    att_trace_info i = {.size = sizeof i};
    att_trace *t;
    o.describe_only = true;
    int code = cli_status(a->m.base.ctx, a->kind->trace(a, &o, &t));
    if (code)
        return code;
    code = cli_status(a->m.base.ctx, att_trace_describe(t, &i));
    att_trace_free(t);
    if (!code && i.bytes >= MUCH)
        cli_note("the trace takes %.0f MB of memory", (double)i.bytes * 1e-6);
    return code;
}

int attended_trace(const attended *a, int64_t layer, bool hidden, bool changed, att_trace **out)
{
    const att_trace_options o = options_of(a, &layer, hidden, changed);
    *out = NULL;
    const int code = report_memory(a, &o);
    return code ? code : cli_status(a->m.base.ctx, a->kind->trace(a, &o, out));
}

static void report_truncation(const attended *a)
{
    const int64_t tokens = a->info.source > 0 ? a->info.source : a->info.target;
    if (a->info.truncated && a->history.n > 0)
        cli_note("of the history the last %lld items are used",
                 (long long)tokens - (a->info.source > 0)); /* because the mask of BERT4Rec is also a token */
    else if (a->info.truncated)
        cli_note("the text is longer than %lld tokens and was truncated", (long long)tokens);
}

int attended_open(attended *a, const attention_kind *kind, const attention_request *asked)
{
    *a = (attended){.kind = kind, .asked = asked, .info.size = sizeof a->info};
    int code = cli_model_open(&a->m.base, kind->model, asked->model, asked->types, asked->threads);
    if (code)
        return code;
    code = kind->read(a);
    if (!code)
        code = cli_status(a->m.base.ctx,
                          kind->trace(a, ATT_OPTIONS(att_trace_options, .describe_only = true), &a->described));
    if (!code)
        code = cli_status(a->m.base.ctx, att_trace_describe(a->described, &a->info));
    if (!code)
        code = choose(a);
    if (!code)
        code = make_labels(a);
    if (!code)
        report_truncation(a);
    return code;
}

void attended_close(attended *a)
{
    if (!a->m.base.ctx)
        return;
    att_trace_free(a->trace);
    att_trace_free(a->described);
    cli_images_free(a->m.base.ctx, 1, &a->image);
    cli_histories_free(&a->history);
    free(a->target);
    free(a->query);
    free(a->key);
    free(a->number);
    free(a->hide);
    free(a->zero);
    cli_model_close(&a->m.base);
}
