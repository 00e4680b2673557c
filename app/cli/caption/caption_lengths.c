#include "caption_lengths.h"

#include <stdlib.h>
#include <string.h>

/* The largest mean number of words of each row; 0: any */
static const int64_t longest[CAPTION_LENGTHS] = {6, 8, 10, 12, 14, 16, 20, 0};

static int64_t words_in(const char *text)
{
    int64_t n = *text != '\0';
    for (; *text; text++)
        n += *text == ' ';
    return n;
}

/* Returns the mean number of words of the references of image i. */
static double mean_words(const caption_references *r, int64_t i)
{
    int64_t sum = 0;
    for (int64_t k = r->offset[i]; k < r->offset[i + 1]; k++)
        sum += words_in(r->text[k]);
    return (double)sum / (double)(r->offset[i + 1] - r->offset[i]);
}

/* Copies the images of one row, copied side by side to `some`. */
static int score_row(const caption_scores *s, const caption_references *r, uint64_t seed, caption_scores *some,
                     caption_length *row)
{
    caption_references of = {.ctx = r->ctx};
    att_bleu_counts sum = {0};
    double words = 0, cider = 0;
    for (int64_t i = 0; i < r->n; i++) {
        const double length = mean_words(r, i);
        if (length <= (double)row->from || (row->to && length > (double)row->to))
            continue;
        some->count[of.n] = s->count[i];
        some->cider[of.n++] = s->cider[i];
        att_bleu_add(&sum, &s->count[i]);
        words += length;
        cider += s->cider[i];
    }
    row->images = of.n;
    if (!of.n)
        return CLI_DONE;
    row->length = words / (double)of.n;
    some->mean = cider / (double)of.n;
    const int code = cli_status(r->ctx, att_bleu_describe(&sum, NULL, &some->bleu));
    return code ? code : caption_scores_intervals(some, &of, seed, &row->scores);
}

int caption_scores_by_length(const caption_scores *s, const caption_references *r, uint64_t seed, caption_length *rows,
                             int *n)
{
    caption_scores some = {.count = malloc((size_t)r->n * sizeof *some.count),
                           .cider = malloc((size_t)r->n * sizeof *some.cider),
                           .bleu.size = sizeof some.bleu};
    int code = some.count && some.cider ? CLI_DONE : cli_fail_memory();
    *n = 0;
    for (int i = 0; !code && i < CAPTION_LENGTHS; i++) {
        rows[*n] = (caption_length){.from = i ? longest[i - 1] : 0, .to = longest[i]};
        code = score_row(s, r, seed, &some, &rows[*n]);
        *n += rows[*n].images > 0;
    }
    caption_scores_free(&some);
    return code;
}

static double half(const att_interval *i) { return (i->high - i->low) / 2; }

void caption_lengths_print(const caption_length *rows, int n)
{
    puts("\nBy the mean number of words of the references of an image, more than the first and at most the second; "
         "95 %\n   words   images     BLEU-4             CIDEr-D");
    for (int i = 0; i < n; i++) {
        const caption_length *r = &rows[i];
        char range[48];
        const int end = snprintf(range, sizeof range, "%lld-", (long long)r->from);
        if (r->to)
            snprintf(range + end, sizeof range - (size_t)end, "%lld", (long long)r->to);
        printf("%8s  %7lld", range, (long long)r->images);
        if (r->images > 1) /* samples of a single image are all the same */
            printf("     %6.2f ± %5.2f     %7.4f ± %.4f\n", r->scores.bleu4.mean, half(&r->scores.bleu4),
                   r->scores.cider.mean, half(&r->scores.cider));
        else
            printf("     %6.2f             %7.4f\n", r->scores.bleu4.mean, r->scores.cider.mean);
    }
}

void caption_lengths_json(cli_json *j, const caption_length *rows, int n)
{
    cli_json_array(j, "by_length");
    for (int i = 0; i < n; i++) {
        const caption_length *r = &rows[i];
        cli_json_object(j, NULL);
        cli_json_number(j, "length", r->length, 8);
        cli_json_integer(j, "from", r->from);
        if (r->to)
            cli_json_integer(j, "to", r->to);
        cli_json_integer(j, "images", r->images);
        caption_interval_json(j, "bleu4_interval", &r->scores.bleu4);
        caption_interval_json(j, "cider_interval", &r->scores.cider);
        cli_json_end(j);
    }
    cli_json_end(j);
}

void caption_interval_json(cli_json *j, const char *key, const att_interval *i)
{
    cli_json_numbers(j, key, (const double[]){i->mean, i->low, i->high}, 3, 8);
}
