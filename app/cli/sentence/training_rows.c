#include "training_rows.h"
#include "cli/base/grow.h"
#include "cli/base/records.h"
#include "labels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- all records of the file */

static const char *field(const cli_rows *r, int64_t row, int64_t k) { return r->data + r->begin[row * r->fields + k]; }

/* Refuses the current record if it is malformed. */
static int check_columns(const cli_rows *r, cli_records *in, bool *bad)
{
    *bad = in->fields < 2 || (r->n > 0 && in->fields != r->fields);
    if (in->fields < 2)
        return cli_records_refuse_one(in);
    return *bad ? cli_records_refuse(in, "%lld columns, but line %lld has %lld", (long long)in->fields,
                                     (long long)r->line[0], (long long)r->fields)
                : CLI_DONE;
}

/* Copies the current record. */
static int add_record(cli_rows *r, cli_records *in)
{
    bool bad;
    const int code = check_columns(r, in, &bad);
    if (code || bad)
        return code;
    const size_t n = (size_t)in->fields;
    const cli_array rows[] = {
        {&r->begin, n * sizeof *r->begin}, {&r->size, n * sizeof *r->size}, {&r->line, sizeof *r->line}};
    r->fields = in->fields;
    if (!cli_reserve(&r->room, (size_t)r->n + 1, rows, 3) ||
        !cli_reserve(&r->capacity, r->used + in->used, &(cli_array){&r->data, 1}, 1))
        return cli_fail_memory();
    memcpy(r->data + r->used, in->data, in->used);
    for (size_t k = 0; k < n; k++) {
        r->begin[(size_t)r->n * n + k] = r->used + in->begin[k];
        r->size[(size_t)r->n * n + k] = in->bytes[k];
    }
    r->used += in->used;
    r->line[r->n++] = in->line;
    return CLI_DONE;
}

static int read_records(cli_rows *r, const cli_rows_options *o)
{
    cli_records in;
    int code = cli_records_open(&in, r->path, o->format, o->skip);
    in.single = o->single;
    for (bool first = true; !code; first = false) {
        in.used = 0;
        code = cli_records_next(&in);
        if (code || in.fields == 0)
            break;
        if (first && cli_records_named(&in))
            code = cli_records_heading(&in);
        else
            code = add_record(r, &in);
    }
    r->valued = in.valued;
    r->chosen = in.chosen > 0;
    cli_records_skipped(&in, &r->skipped);
    cli_records_close(&in);
    return !code && r->n == 0 ? cli_fail("%s: has no pairs", r->path) : code;
}

/* ---- the loss */

static bool is_number(const char *text)
{
    double value;
    return cli_records_number(text, &value);
}

/* Sets *yes: whether three columns are labeled pairs. They are if the third has single words that occur twice or more
 * on average. */
static int has_labels(const cli_rows *r, bool *yes)
{
    enum { MAX_LABELS = 100 };
    for (int64_t i = 0; i < r->n; i++)
        if (strpbrk(field(r, i, 2), " \t\r\n\v\f")) {
            *yes = false;
            return CLI_DONE;
        }
    int64_t different;
    const int code = cli_labels_count(r->data, r->begin + 2, r->fields, r->n, &different);
    *yes = !code && different <= MAX_LABELS && 2 * different <= r->n;
    return code;
}

/* What --loss calls the loss of labels, or of scores */
static const char *of_labels(const cli_rows_options *o) { return o->of_labels ? o->of_labels : "softmax"; }

static const char *of_scores(const cli_rows_options *o) { return o->of_scores ? o->of_scores : "cosine"; }

/* A number in the third column of the first or the last row is a score: the first row may be a heading. */
static int choose_loss(cli_rows *r, const cli_rows_options *o)
{
    static const att_sentence_loss losses[] = {ATT_SENTENCE_LOSS_MULTIPLE_NEGATIVES_RANKING,
                                               ATT_SENTENCE_LOSS_MULTIPLE_NEGATIVES_RANKING, ATT_SENTENCE_LOSS_TRIPLET,
                                               ATT_SENTENCE_LOSS_SOFTMAX, ATT_SENTENCE_LOSS_COSINE_SIMILARITY};
    bool labels = false;
    int code = CLI_DONE;
    if (o->loss != CLI_LOSS_BY_FILE) {
        r->loss = losses[o->loss];
        return CLI_DONE;
    }
    const bool scores = r->fields >= 3 && (is_number(field(r, 0, 2)) || is_number(field(r, r->n - 1, 2)));
    if (!scores && r->fields == 3)
        code = has_labels(r, &labels);
    if (!code && r->valued && !scores && !labels)
        return cli_fail(
            "%s: line %lld: the score or label is \"%.40s\", neither a number nor one of few words; for labels: "
            "--loss %s",
            r->path, (long long)r->line[0], field(r, 0, r->fields - 1), of_labels(o));
    r->loss = scores   ? ATT_SENTENCE_LOSS_COSINE_SIMILARITY
              : labels ? ATT_SENTENCE_LOSS_SOFTMAX
                       : ATT_SENTENCE_LOSS_MULTIPLE_NEGATIVES_RANKING;
    return code;
}

static int check_loss(cli_rows *r, const cli_rows_options *o)
{
    const int64_t texts = r->fields - r->valued;
    if (r->loss == ATT_SENTENCE_LOSS_TRIPLET && texts != 3)
        return cli_fail("--loss triplet: %s has %lld columns, but must have three: anchor, positive, negative", r->path,
                        (long long)texts);
    const bool labels = r->loss == ATT_SENTENCE_LOSS_SOFTMAX, scores = r->loss == ATT_SENTENCE_LOSS_COSINE_SIMILARITY;
    const bool single = o->single && labels && r->fields == 2;
    r->value = single ? 1 : 2;
    if (labels && r->fields < 3 && !single)
        return cli_fail("--loss %s: %s has two columns, but the label must stand in a third", of_labels(o), r->path);
    if (scores && r->fields < 3)
        return cli_fail("--loss %s: %s has two columns, but the score must stand in a third", of_scores(o), r->path);
    return CLI_DONE;
}

/* ---- scores and labels */

/* Moves row `from` to `to`. */
static void copy_row(cli_rows *r, int64_t to, int64_t from)
{
    const size_t n = (size_t)r->fields;
    memmove(r->begin + (size_t)to * n, r->begin + (size_t)from * n, n * sizeof *r->begin);
    memmove(r->size + (size_t)to * n, r->size + (size_t)from * n, n * sizeof *r->size);
    r->line[to] = r->line[from];
}

/* Drops a heading: a first row without a score, followed by one that has a score. */
static void drop_heading(cli_rows *r)
{
    if (r->n < 2 || is_number(field(r, 0, 2)) || !is_number(field(r, 1, 2)))
        return;
    cli_note("%s: line %lld was read as a heading, as its third column is not a score: %.40s", r->path,
             (long long)r->line[0], field(r, 0, 2));
    for (int64_t i = 1; i < r->n; i++)
        copy_row(r, i - 1, i);
    r->n--;
}

/* Scores of rows that are left out become NAN. */
static int read_scores(cli_rows *r, const cli_rows_options *o)
{
    const double highest = o->any_scores ? 1 : o->highest;
    drop_heading(r);
    r->score = malloc((size_t)r->n * sizeof *r->score);
    if (!r->score)
        return cli_fail_memory();
    int code = CLI_DONE;
    for (int64_t i = 0; !code && i < r->n; i++) {
        const char *text = field(r, i, 2);
        double score;
        const bool number = cli_records_number(text, &score) && isfinite(score);
        const bool inside = number && (o->any_scores || (score >= 0 && score <= highest));
        r->score[i] = inside ? score / highest : NAN;
        if (!number)
            code =
                cli_skip(&r->skipped,
                         "%s: line %lld: the third column is \"%.40s\", but must be a number, the score; for labels: "
                         "--loss %s",
                         r->path, (long long)r->line[i], text, of_labels(o));
        else if (!inside)
            code = cli_skip(&r->skipped, "%s: line %lld: the score is %g, but must be from 0 to %g (--highest)",
                            r->path, (long long)r->line[i], score, highest);
    }
    return code;
}

static int read_labels(cli_rows *r)
{
    r->label = malloc((size_t)r->n * sizeof *r->label);
    if (!r->label)
        return cli_fail_memory();
    const int64_t all = r->n;
    int code = CLI_DONE;
    r->n = 0;
    for (int64_t i = 0; !code && i < all; i++)
        if (*field(r, i, r->value))
            copy_row(r, r->n++, i);
        else
            code = cli_skip(&r->skipped, "%s: line %lld: the %s column, the label, is empty", r->path,
                            (long long)r->line[i], r->value == 1 ? "second" : "third");
    if (!code && r->n == 0)
        code = cli_fail("%s: no row has a label", r->path);
    if (!code)
        code = cli_labels_number(r->data, r->begin + r->value, r->fields, r->n, r->label, &r->word, &r->classes);
    if (!code && r->classes < 2)
        return cli_fail("%s: all rows have the label \"%.40s\", but a classifier needs two or more", r->path,
                        r->word[0]);
    return code;
}

/* ---- texts */

static bool is_blank(const char *text, size_t bytes)
{
    size_t i = 0;
    while (i < bytes && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r' || text[i] == '\n'))
        i++;
    return i == bytes;
}

/* Returns whether the row can be trained on. Counts it as left out if its texts are the reason. */
static bool is_usable(cli_rows *r, int64_t row)
{
    bool empty = false;
    for (int64_t k = 0; k < r->columns; k++)
        empty |= is_blank(field(r, row, k), r->size[row * r->fields + k]);
    const bool scored = !r->score || isfinite(r->score[row]);
    r->empty += empty && scored;
    return !empty && scored;
}

/* Keeps the usable rows. */
static int select_rows(cli_rows *r)
{
    const int64_t all = r->n;
    r->columns = r->loss == ATT_SENTENCE_LOSS_MULTIPLE_NEGATIVES_RANKING ? r->fields - r->valued
                 : r->loss == ATT_SENTENCE_LOSS_TRIPLET                  ? 3
                                                                         : r->value;
    r->text = malloc((size_t)(all * r->columns) * sizeof *r->text);
    r->bytes = malloc((size_t)(all * r->columns) * sizeof *r->bytes);
    if (!r->text || !r->bytes)
        return cli_fail_memory();
    r->n = 0;
    for (int64_t i = 0; i < all; i++) {
        if (!is_usable(r, i))
            continue;
        for (int64_t k = 0; k < r->columns; k++) {
            r->text[r->n * r->columns + k] = field(r, i, k);
            r->bytes[r->n * r->columns + k] = r->size[i * r->fields + k];
        }
        if (r->score)
            r->score[r->n] = r->score[i];
        if (r->label)
            r->label[r->n] = r->label[i];
        r->n++;
    }
    return r->n ? CLI_DONE
                : cli_fail("%s: none of %lld pairs can be used: %lld have an empty text, %lld no score", r->path,
                           (long long)all, (long long)r->empty, (long long)(all - r->empty));
}

/* ---- everything */

int cli_rows_read(cli_rows *r, const char *path, const cli_rows_options *options)
{
    *r = (cli_rows){.path = path};
    int code = read_records(r, options);
    if (!code)
        code = choose_loss(r, options);
    if (!code)
        code = check_loss(r, options);
    if (!code && r->loss == ATT_SENTENCE_LOSS_COSINE_SIMILARITY)
        code = read_scores(r, options);
    if (!code && r->loss == ATT_SENTENCE_LOSS_SOFTMAX)
        code = read_labels(r);
    return code ? code : select_rows(r);
}

void cli_rows_free(cli_rows *r)
{
    void *const all[] = {(void *)r->text, r->bytes, r->score, r->label, (void *)r->word,
                         r->data,         r->begin, r->size,  r->line};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
    *r = (cli_rows){0};
}

void cli_rows_describe_labels(const cli_rows *r)
{
    enum { SHOWN = 12 };
    char text[512];
    size_t used = 0;
    if (!r->label)
        return;
    for (int64_t c = 0; c < r->classes && c < SHOWN && used < sizeof text; c++) {
        int64_t n = 0;
        for (int64_t i = 0; i < r->n; i++)
            n += r->label[i] == c;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.32s (%lld)", c ? ", " : "", r->word[c],
                                 (long long)n);
    }
    cli_note("%lld labels: %s%s", (long long)r->classes, text, r->classes > SHOWN ? ", ..." : "");
}

void cli_rows_describe_data(const cli_rows *r)
{
    if (r->empty)
        cli_note("%s: %lld pairs; left out: %lld with an empty text", r->path, (long long)r->n, (long long)r->empty);
    cli_skipped_report(r->skipped.n, r->skipped.first);
    if (!r->chosen && r->fields > 3 && r->loss != ATT_SENTENCE_LOSS_MULTIPLE_NEGATIVES_RANKING)
        cli_note(
            "%s: the columns 1 to 3 of %lld are trained on; a heading, as sentence1, sentence2 and score, names others",
            r->path, (long long)r->fields);
}

void cli_rows_describe(const cli_rows *r)
{
    const long long n = r->n, negatives = r->columns - 2;
    cli_rows_describe_data(r);
    if (r->loss == ATT_SENTENCE_LOSS_COSINE_SIMILARITY)
        cli_note("loss: cosine similarity, of %lld pairs with scores", n);
    else if (r->loss == ATT_SENTENCE_LOSS_TRIPLET)
        cli_note("loss: triplet, of %lld triplets", n);
    else if (r->loss == ATT_SENTENCE_LOSS_SOFTMAX)
        cli_note("loss: softmax, of %lld pairs with labels", n);
    else if (negatives)
        cli_note("loss: multiple negatives ranking, of %lld pairs with %lld hard negative%s each", n, negatives,
                 negatives > 1 ? "s" : "");
    else
        cli_note("loss: multiple negatives ranking, of %lld pairs", n);
    cli_rows_describe_labels(r);
}
