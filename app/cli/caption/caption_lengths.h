/* Scores of captions by the length of their references. */
#ifndef CLI_CAPTION_CAPTION_LENGTHS_H
#define CLI_CAPTION_CAPTION_LENGTHS_H

#include "caption_scores.h"
#include "cli/base/json.h"

/* Images whose references have more than `from` words on average, and at most `to` */
typedef struct caption_length {
    int64_t from, to; /* to 0: any number */
    int64_t images;
    double length; /* mean number of words of their references */
    caption_intervals scores;
} caption_length;
/* Writes the scores s of the images of r to rows [CAPTION_LENGTHS]: those that have images. Sets their number. */
enum { CAPTION_LENGTHS = 8 };
int caption_scores_by_length(const caption_scores *s, const caption_references *r, uint64_t seed, caption_length *rows,
                             int *n);

void caption_lengths_print(const caption_length *rows, int n);
/* Writes the results as the member "by_length" of an object. */
void caption_lengths_json(cli_json *j, const caption_length *rows, int n);
/* [mean, low, high] */
void caption_interval_json(cli_json *j, const char *key, const att_interval *i);

#endif
