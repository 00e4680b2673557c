/* attend bench attention: the options, the lines of --shapes, the report. */
#include "attention.h"
#include "cli/base/lines.h"

#include <jansson.h>
#include <stdarg.h>
#include <string.h>

static attention_settings now = {.batch = 1, .heads = 12, .q_len = 1024, .dim = 64, .seconds = 1};
static const char *shapes;
static bool json;

enum { NAME = 32, NO_FIELDS = 2 }; /* --shapes and --json are not for a line of --shapes */

static const cli_option options[] = {
    {"name", 0, "TEXT", .text = &now.name, .help = "name of the case in the report"},
    {"batch", 'b', "N", .integer = &now.batch, .min = 1, .max = 1e6, .help = "batch size: number of sequences"},
    {"heads", 'H', "N", .integer = &now.heads, .min = 1, .max = 1e6, .help = "number of query heads"},
    {"kv-heads", 0, "N", .integer = &now.kv_heads, .max = 1e6, .quiet = true,
     .help = "number of key and value heads (grouped-query attention); default: --heads"},
    {"tq", 'q', "N", .integer = &now.q_len, .min = 1, .max = 1e9, .help = "number of queries per sequence"},
    {"tk", 'k', "N", .integer = &now.k_len, .max = 1e9, .quiet = true,
     .help = "number of keys per sequence; default: --tq"},
    {"dim", 'd', "N", .integer = &now.dim, .min = 1, .max = 1e6, .help = "head dimension of queries and keys"},
    {"kdim", 0, "N", .integer = &now.key_dim, .max = 1e6, .quiet = true,
     .help = "head dimension of keys, for scores that allow another one than for queries; default: --dim"},
    {"vdim", 0, "N", .integer = &now.value_dim, .max = 1e6, .quiet = true,
     .help = "head dimension of values; default: --dim"},
    {"score", 0, "NAME", .text = &now.score, .quiet = true, .help = "score function (scaled-dot)"},
    {"score-dim", 0, "N", .integer = &now.score_dim, .max = 1e6, .quiet = true,
     .help = "dimension to which the additive score projects queries and keys; default: 0, no projection"},
    {"mask", 0, "LIST", .text = &now.mask, .help = "masks, see above"},
    {"modifier", 0, "LIST", .text = &now.modifier, .help = "score modifiers, see above"},
    {"dropout", 0, "P", .number = &now.dropout, .max = 0.999, .quiet = true,
     .help = "dropout probability of the attention weights; default: 0"},
    {"causal", 0, "no|top-left|bottom-right", .choice = &now.causal, .help = "short for --mask causal and --align"},
    {"align", 0, "unset|top-left|bottom-right", .choice = &now.align, .quiet = true,
     .help = "alignment of queries and keys; required by some masks if --tq and --tk differ"},
    {"pass", 0, "fwd|bwd", .choice = &now.pass,
     .help = "forward pass, or backward pass: the gradients of q, k, v and the parameters of the score"},
    {"dtype", 0, "f32|f16|bf16", .choice = &now.dtype,
     .help = "data type of queries, keys, values, outputs and gradients"},
    {"layout", 0, "bhtd|bthd", .choice = &now.layout, .help = "memory layout: order of batch, heads, time and dim"},
    {"cache", 0, NULL, .flag = &now.cache,
     .help = "read keys and values from a KV cache, as in decoding; forward only"},
    CLI_THREADS(&now.threads),
    BENCH_REPEAT(&now.repeat),
    BENCH_SECONDS(&now.seconds),
    BENCH_NO_VERIFY(&now.no_verify),
    {"shapes", 0, "FILE", .text = &shapes,
     .help =
         "measure each line of this file, a JSON object of these options, \"kv_heads\" for --kv-heads; options that "
         "it lacks are those of the command line; \"-\": standard input"},
    CLI_JSON(&json),
    {0},
};

/* Returns the name of an option's field in a line of --shapes: with "_" for "-". */
static const char *field_name(const cli_option *o, char *name, size_t size)
{
    snprintf(name, size, "%s", o->name);
    for (char *p; (p = strchr(name, '-'));)
        *p = '_';
    return name;
}

/* ---- The report --------------------------------------------------------------- */

static const char *word_of(const cli_option *o, int choice, char *words, size_t size)
{
    char *rest = words, *word;
    snprintf(words, size, "%s", o->value);
    do
        word = strsep(&rest, "|");
    while (choice-- > 0);
    return word;
}

/* Returns the settings as JSON, named as in a line of --shapes. */
static json_t *fields_of(const attention_settings *set)
{
    json_t *row = json_object();
    const attention_settings given = now;
    now = *set;
    for (const cli_option *o = options; strcmp(o->name, "threads") != 0; o++) {
        char name[NAME], words[NAME];
        json_t *value = o->integer  ? json_integer(*o->integer)
                        : o->number ? json_real(*o->number)
                        : o->choice ? json_string(word_of(o, *o->choice, words, sizeof words))
                        : o->flag   ? json_boolean(*o->flag)
                        : *o->text  ? json_string(*o->text)
                                    : NULL;
        if (value)
            json_object_set_new(row, field_name(o, name, NAME), value);
    }
    now = given;
    return row;
}

static void add(char *text, size_t size, const char *format, ...) ATT_PRINTF(3, 4);
static void add(char *text, size_t size, const char *format, ...)
{
    va_list list;
    const size_t used = strlen(text);
    va_start(list, format);
    vsnprintf(text + used, size - used, format, list);
    va_end(list);
}

/* "backward, B1 H8/2 1024x1024 D64, mask causal, f32" */
static void title_of(const attention_case *c, char *text, size_t size)
{
    const attention_settings *s = &c->set;
    *text = '\0';
    if (s->name)
        add(text, size, "%s: ", s->name);
    add(text, size, "%s, B%lld H%lld", s->pass == PASS_BACKWARD ? "backward" : "forward", (long long)s->batch,
        (long long)s->heads);
    if (s->kv_heads != s->heads)
        add(text, size, "/%lld", (long long)s->kv_heads);
    add(text, size, " %lldx%lld D%lld", (long long)s->q_len, (long long)s->k_len, (long long)s->dim);
    if (s->value_dim != s->dim)
        add(text, size, "/%lld", (long long)s->value_dim);
    if (strcmp(s->score, "scaled-dot"))
        add(text, size, ", score %s", s->score);
    if (s->modifier)
        add(text, size, ", modifier %s", s->modifier);
    if (s->causal)
        add(text, size, ", causal");
    if (s->mask)
        add(text, size, ", mask %s", s->mask);
    if (s->dropout > 0)
        add(text, size, ", dropout %g", s->dropout);
    add(text, size, ", %s%s%s", att_dtype_name(c->spec.dtype), s->layout == LAYOUT_BTHD ? ", bthd" : "",
        s->cache ? ", cache" : "");
}

/* Returns the peak resident memory in bytes; 0: unknown. */
static double peak_bytes(void)
{
    char line[128];
    long long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f) && sscanf(line, "VmHWM: %lld", &kib) != 1)
        ;
    if (f)
        fclose(f);
    return 1024 * (double)kib;
}

static int report(const attention_case *c, const bench_times *times, const bench_bandwidths *bandwidths, double error)
{
    const att_plan_info *info = &c->info;
    const bool back = c->set.pass == PASS_BACKWARD;
    const att_pass_info *pass = back ? &info->backward : &info->forward;
    char title[256];
    json_t *row = fields_of(&c->set);
    json_object_set_new(row, "kernel", json_string(pass->kernel));
    json_object_set_new(row, "why", json_string(pass->why));
    json_object_set_new(row, "q_block", json_integer(pass->q_block));
    json_object_set_new(row, "k_block", json_integer(pass->k_block));
    json_object_set_new(row, "skipped", bench_real(info->skipped));
    json_object_set_new(row, "workspace_bytes", json_integer((json_int_t)pass->workspace));
    json_object_set_new(row, "tensor_bytes", json_integer((json_int_t)c->bytes));
    json_object_set_new(row, "process_peak_bytes", json_integer((json_int_t)peak_bytes()));
    if (bandwidths->memory > 0) {
        json_object_set_new(row, "bandwidth_share", bench_real(bandwidths->share));
        json_object_set_new(row, "read_gbytes_per_second", bench_real(1e-9 * bandwidths->memory));
    }
    title_of(c, title, sizeof title);
    int code = bench_report(c->ctx, "attention", title, row, attention_flops(c), times, error, json);
    if (!code && !json)
        printf("  %s, tiles of %d queries by %d keys, %.1f %% of them skipped, workspace %.3g MB\n  %s\n", pass->kernel,
               pass->q_block, pass->k_block, 100 * info->skipped, 1e-6 * (double)pass->workspace, pass->why);
    if (!code && !json && bandwidths->memory > 0)
        printf("  keys and values read at %.1f %% of the %.1f GB/s at which memory is\n", 100 * bandwidths->share,
               1e-9 * bandwidths->memory);
    return code;
}

/* ---- One, or each line -------------------------------------------------------- */

static int measure(const char *line)
{
    attention_case c;
    bench_times times;
    bench_bandwidths bandwidths = {0};
    double error = -1;
    int code = attention_open(&c, &now, line);
    if (!code && !now.no_verify)
        code = attention_verify(&c, &error);
    if (!code)
        code = bench_measure(c.ctx, now.repeat, now.seconds, attention_once, &c, &times);
    if (!code && attention_reads(&c) > 0)
        code = bench_measure_bandwidth(c.ctx, now.repeat, now.seconds, attention_once, &c, attention_reads(&c),
                                       &bandwidths);
    if (!code)
        code = report(&c, &times, &bandwidths, error);
    attention_close(&c);
    return code;
}

/* Returns the option of a field in a line of --shapes, or NULL after an error message. */
static const cli_option *find(const char *where, const char *field)
{
    enum { FIELDS = sizeof options / sizeof *options - 1 - NO_FIELDS };
    char names[FIELDS][NAME];
    const char *list[FIELDS];
    for (int i = 0; i < FIELDS; i++) {
        list[i] = field_name(&options[i], names[i], NAME);
        if (strcmp(field, list[i]) == 0)
            return &options[i];
    }
    cli_hint hint;
    cli_fail("%sthere is no field \"%s\"%s", where, field,
             cli_did_you_mean(&hint, "", field, list, FIELDS, "; \"attend bench attention --help\" lists them"));
    return NULL;
}

static int parse_field(const char *where, const char *name, const json_t *value)
{
    char source[512], number[32];
    const cli_option *o = find(where, name);
    if (!o)
        return CLI_FAILED;
    snprintf(source, sizeof source, "%s%s", where, name);
    if (o->flag && json_is_boolean(value)) {
        *o->flag = json_is_true(value);
        return CLI_DONE;
    }
    if (!o->flag && json_is_string(value))
        return cli_option_set(o, source, json_string_value(value));
    if ((o->integer || o->number) && json_is_number(value)) {
        if (json_is_integer(value))
            snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
        else
            snprintf(number, sizeof number, "%.17g", json_real_value(value));
        return cli_option_set(o, source, number);
    }
    return cli_fail("%s: is not a %s", source, o->flag ? "boolean" : o->integer || o->number ? "number" : "string");
}

static int measure_line(const char *where, const char *text, size_t bytes)
{
    json_error_t wrong;
    json_t *line = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &wrong), *value;
    const char *name;
    if (!json_is_object(line)) {
        int code = line ? cli_fail("%sis not a JSON object", where)
                        : cli_fail("%scolumn %d: %s", where, wrong.column, wrong.text);
        json_decref(line);
        return code;
    }
    const attention_settings given = now;
    int code = CLI_DONE;
    json_object_foreach(line, name, value) if (!code) code = parse_field(where, name, value);
    if (!code)
        code = measure(where);
    fflush(stdout); /* so that the reader of a pipe gets each result immediately */
    now = given;
    json_decref(line);
    return code ? (code == CLI_MISUSE ? CLI_FAILED : code) : CLI_DONE;
}

static int measure_shapes(void)
{
    cli_lines lines;
    int64_t number = 0;
    int code = cli_lines_open(&lines, 1, (char *const[]){(char *)shapes});
    while (!code && !(code = cli_lines_next(&lines, 1)) && lines.count > 0) {
        char where[300];
        snprintf(where, sizeof where, "%.250s: line %lld: ", shapes, (long long)++number);
        if (lines.bytes[0] > 0)
            code = measure_line(where, lines.text[0], lines.bytes[0]);
    }
    cli_lines_close(&lines);
    return code;
}

static int run(int argc, char **arguments)
{
    (void)argc;
    (void)arguments;
    return shapes ? measure_shapes() : measure("");
}

const cli_command bench_attention = {
    .name = "attention",
    .summary = "measure attention, forward or backward",
    .details = "Scores: scaled-dot, dot, general, cosine, additive; with --score-dim, additive\n"
               "projects queries and keys first.\n\n"
               "Modifiers, in this order: scale=0.5, softcap=30, bias, alibi, relative=128\n"
               "(relative position bias of T5, 32 buckets up to that distance) and\n"
               "relative_causal=128, sink.\n\n"
               "Masks, combined by AND: causal; window=256, a sliding window of that many keys\n"
               "before and after, or window=256:0; lengths=0.8, that share of the keys, or\n"
               "lengths=30:17, the length of each sequence in turn; documents=1000, of that\n"
               "length; bool=0.75, that share of the pairs at random.\n\n"
               "Floating-point operations are 2 (dim + vdim) for each pair that attends,\n"
               "backward 2 (3 dim + 2 vdim); causal counts as half of all pairs. A sample of the\n"
               "results is compared with plain loops in double before anything is timed.",
    .examples = "attend bench attention --batch 8 --heads 12 --tq 128 --dim 64\n"
                "attend bench attention --tq 4096 --mask causal --pass bwd --threads 1 --json\n"
                "attend bench attention --shapes shapes.jsonl --json",
    .options = options,
    .see = "bench gemm|explain",
    .run = run,
};
