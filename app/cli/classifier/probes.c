#include "probes.h"
#include "cli/base/json.h"
#include "cli/base/output.h"
#include "cli/base/progress.h"
#include "cli/sentence/training_rows.h"

#include <attend_metric.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- The report ----------------------------------------------------------- */

static int print_json(const cli_probe *p, const att_probe_result *r, const att_interval *a)
{
    cli_output out;
    const int code = cli_output_open(&out, NULL);
    if (code)
        return code;
    cli_json j = cli_json_begin(stdout);
    cli_json_string(&j, "model", p->folder);
    cli_json_integer(&j, "examples", r->examples);
    cli_json_integer(&j, "classes", r->classes);
    cli_json_integer(&j, "dim", r->dim);
    if (p->options.kind == ATT_PROBE_KIND_LINEAR)
        cli_json_number(&j, "c", r->c, 8);
    else
        cli_json_integer(&j, "neighbors", r->neighbors);
    if (r->validated) {
        cli_json_integer(&j, "validated", r->validated);
        cli_json_integer(&j, "correct", r->correct);
        cli_json_number(&j, "accuracy", a->mean, 8);
        cli_json_number(&j, "low", a->low, 8);
        cli_json_number(&j, "high", a->high, 8);
    }
    cli_json_end(&j);
    return cli_output_close(&out, code);
}

static int report(const cli_probe *p, const att_probe_result *r, const char *unit, bool refit)
{
    const long long all = (long long)(r->examples + r->validated);
    att_interval a = {0};
    fprintf(stderr, "%lld %s embedded in %.1f s (%.0f/s), %lld numbers each\n", all, unit, r->embedding_seconds,
            (double)all / fmax(r->embedding_seconds, 1e-3), (long long)r->dim);
    if (p->options.kind == ATT_PROBE_KIND_LINEAR)
        fprintf(stderr, "linear probe: C %.3g%s, in %.1f s\n", r->c, p->options.c > 0 ? "" : ", chosen on validation",
                r->fit_seconds);
    else
        fprintf(stderr, "nearest neighbors: %lld vote, by cosine, weighted with temperature %g\n",
                (long long)r->neighbors, p->options.temperature > 0 ? p->options.temperature : 0.07);
    if (r->validated) {
        att_share_interval(r->correct, r->validated, &a);
        fprintf(stderr, "on validation %.2f %% right, from %.2f to %.2f (95 %%): %lld of %lld %s\n", 100 * a.mean,
                100 * a.low, 100 * a.high, (long long)r->correct, (long long)r->validated, unit);
    }
    if (p->options.kind == ATT_PROBE_KIND_LINEAR && !r->converged)
        cli_note("the last fit ended after %lld steps with a gradient of %.2g, before it converged; a smaller --c "
                 "converges sooner",
                 (long long)r->iterations, r->gradient);
    cli_note("%s is trained on %s%lld %s: %s%s", p->folder, refit && r->validated ? "all " : "",
             refit ? all : (long long)r->examples, unit, p->command, r->plain ? "; transformers opens it, too" : "");
    return p->json ? print_json(p, r, &a) : CLI_DONE;
}

/* ---- Images ----------------------------------------------------------------- */

static att_dtype dtype_of(const cli_probe *p) { return p->f16 ? ATT_F16 : ATT_F32; }

int cli_probe_images(const cli_probe *p, const att_image_set *images, const att_image_set *valid, bool refit)
{
    att_image_set_info i = {.size = sizeof i}, v = {.size = sizeof v};
    att_probe_result r = {.size = sizeof r};
    int code = cli_status(p->ctx, att_image_set_describe(images, &i));
    if (!code && valid)
        code = cli_status(p->ctx, att_image_set_describe(valid, &v));
    if (code)
        return code;
    fprintf(stderr, "%lld images of %lld classes", (long long)i.images, (long long)i.classes);
    if (valid)
        fprintf(stderr, "; %lld for validation", (long long)v.images);
    fputc('\n', stderr);
    cli_share progress = cli_share_of_call("images embedded", i.images + v.images);
    const att_image_probe_options o = {.size = sizeof o,
                                       .images = images,
                                       .valid = valid,
                                       .refit = refit,
                                       .probe = &p->options,
                                       .dtype = dtype_of(p),
                                       .progress = cli_share_report,
                                       .user = &progress};
    const att_status s = att_image_probe_train(p->ctx, p->model, p->folder, &o, &r);
    cli_share_end(&progress);
    return s ? cli_status(p->ctx, s) : report(p, &r, "images", refit);
}

/* ---- Texts -------------------------------------------------------------------- */

typedef struct texts {
    cli_rows train, valid;
    int64_t n, n_valid;
    const char **text; /* [n + n_valid], those for validation last */
    size_t *bytes;     /* [n + n_valid] */
    int32_t *label;    /* [n + n_valid] */
} texts;

static int read_rows(const cli_probe_texts *from, const char *path, cli_rows *rows)
{
    const cli_rows_options o = {
        .format = from->format, .loss = CLI_LOSS_SOFTMAX, .skip = from->skip, .of_labels = "ce", .single = true};
    int code = cli_rows_read(rows, path, &o);
    if (!code)
        cli_rows_describe_data(rows);
    if (!code && rows->columns != 1)
        code =
            cli_fail("%s: has rows of two texts and a label, but embeddings are of single texts: rows are a text and "
                     "its label, or a heading names the columns text and label",
                     path);
    return code;
}

static void add(texts *t, int64_t at, const cli_rows *from, int64_t row, int32_t label)
{
    t->text[at] = from->text[row];
    t->bytes[at] = from->bytes[row];
    t->label[at] = label;
}

/* Adds the rows of --valid, with the numbers of their labels in --data. */
static int add_valid(texts *t)
{
    const cli_rows *v = &t->valid;
    for (int64_t i = 0; i < v->n; i++) {
        const char *word = v->word[v->label[i]];
        int64_t k = 0;
        while (k < t->train.classes && strcmp(word, t->train.word[k]) != 0)
            k++;
        if (k == t->train.classes)
            return cli_fail("%s: has the label \"%.40s\", which %s does not have", v->path, word, t->train.path);
        add(t, t->n + i, v, i, (int32_t)k);
    }
    return CLI_DONE;
}

/* Chooses round(share * n) of the n texts of each label at random, at least one and not all; a single text stays.
 * Selection sampling (Knuth 1969), as for images. */
static int divide(const cli_probe_texts *from, const cli_rows *rows, bool *held, int64_t *n_held)
{
    enum { RANDOM_TEXTS = 4 }; /* the last word of the counter */
    int64_t *rest = calloc(2 * (size_t)rows->classes, sizeof *rest), *needed = rest + rows->classes;
    if (!rest)
        return cli_fail_memory();
    *n_held = 0;
    for (int64_t i = 0; i < rows->n; i++)
        rest[rows->label[i]]++;
    for (int64_t k = 0; k < rows->classes; k++) {
        const double wanted = fmax(1, round(from->share * (double)rest[k]));
        needed[k] = rest[k] > 1 ? (int64_t)fmin(wanted, (double)(rest[k] - 1)) : 0;
    }
    for (int64_t i = 0; i < rows->n; i++) {
        const int32_t k = rows->label[i];
        uint32_t r[4];
        att_random(from->seed, (const uint32_t[]){(uint32_t)i, (uint32_t)((uint64_t)i >> 32), 0, RANDOM_TEXTS}, r);
        held[i] = (uint64_t)r[0] * (uint64_t)rest[k] >> 32 < (uint64_t)needed[k];
        needed[k] -= held[i];
        rest[k]--;
        *n_held += held[i];
    }
    free(rest);
    return CLI_DONE;
}

/* Puts the texts into one list, those for validation last. */
static int join(const cli_probe_texts *from, texts *t)
{
    const size_t room = (size_t)(t->train.n + t->valid.n);
    bool *held = calloc(room + 1, sizeof *held);
    t->text = malloc((room + 1) * sizeof *t->text);
    t->bytes = malloc((room + 1) * sizeof *t->bytes);
    t->label = malloc((room + 1) * sizeof *t->label);
    int code = held && t->text && t->bytes && t->label ? CLI_DONE : cli_fail_memory();
    t->n_valid = t->valid.n;
    if (!code && !from->valid && from->share > 0)
        code = divide(from, &t->train, held, &t->n_valid);
    t->n = t->train.n + t->valid.n - t->n_valid;
    int64_t at[2] = {0, t->n};
    for (int64_t i = 0; !code && i < t->train.n; i++)
        add(t, at[held[i]]++, &t->train, i, t->train.label[i]);
    if (!code && from->valid)
        code = add_valid(t);
    free(held);
    return code;
}

static int train(const cli_probe *p, const texts *t, bool refit)
{
    att_probe_result r = {.size = sizeof r};
    cli_rows_describe_labels(&t->train);
    fprintf(stderr, "%lld texts; %lld for validation\n", (long long)t->n, (long long)t->n_valid);
    cli_share progress = cli_share_of_call("texts embedded", t->n + t->n_valid);
    const att_text_probe_options o = {.size = sizeof o,
                                      .n = t->n,
                                      .n_valid = t->n_valid,
                                      .texts = t->text,
                                      .bytes = t->bytes,
                                      .labels = t->label,
                                      .classes = t->train.classes,
                                      .names = t->train.word,
                                      .refit = refit,
                                      .probe = &p->options,
                                      .dtype = dtype_of(p),
                                      .progress = cli_share_report,
                                      .user = &progress};
    const att_status s = att_text_probe_train(p->ctx, p->model, p->folder, &o, &r);
    cli_share_end(&progress);
    return s ? cli_status(p->ctx, s) : report(p, &r, "texts", refit);
}

int cli_probe_of_texts(const cli_probe *p, const cli_probe_texts *from)
{
    texts t = {0};
    const bool refit = !from->valid;
    int code = read_rows(from, from->path, &t.train);
    if (!code && from->valid)
        code = read_rows(from, from->valid, &t.valid);
    if (!code)
        code = join(from, &t);
    if (!code)
        code = train(p, &t, refit);
    free(t.text);
    free(t.bytes);
    free(t.label);
    cli_rows_free(&t.valid);
    cli_rows_free(&t.train);
    return code;
}
