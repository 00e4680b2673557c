/* What a sentence model or a text classifier learns from: a table of texts, with scores or labels in the third column
 * or without. */
#ifndef CLI_SENTENCE_TRAINING_ROWS_H
#define CLI_SENTENCE_TRAINING_ROWS_H

#include "cli/base/skipped.h"

#include <attend_sentence.h>

#include <stdbool.h>

/* Losses, in the order of the option --loss. */
#define CLI_LOSSES "mnr|multiple-negatives-ranking|triplet|softmax|cosine"
enum { CLI_LOSS_BY_FILE = -1, CLI_LOSS_MNR, CLI_LOSS_RANKING, CLI_LOSS_TRIPLET, CLI_LOSS_SOFTMAX, CLI_LOSS_COSINE };

typedef struct cli_rows {
    att_sentence_loss loss;
    int64_t n, columns; /* rows; texts of each */
    const char **text;  /* [n, columns], zero-terminated */
    size_t *bytes;      /* [n, columns] */
    double *score;      /* [n], from 0 to 1, or any with `any_scores`; of the cosine loss */
    int32_t *label;     /* [n], from 0 to classes - 1; of the softmax loss */
    int64_t classes;
    const char **word;   /* [classes]: the labels, in alphabetical order, or as numbers */
    int64_t empty;       /* rows left out: with an empty text */
    cli_skipped skipped; /* and malformed ones */
    /* private */
    const char *path;
    int64_t fields; /* columns that are read */
    bool valued;    /* a heading names a score or label, which is the last of them */
    bool chosen;    /* a heading names which they are */
    int64_t value;  /* the column of scores or labels, from 0 */
    char *data;     /* all fields, zero-terminated */
    size_t used, capacity;
    size_t *begin, *size; /* [n, fields]: of each field in data, its bytes */
    int64_t *line;        /* [n] */
    size_t room;          /* rows in begin, size and line */
} cli_rows;

typedef struct cli_rows_options {
    int format;     /* as of cli_records_open */
    int loss;       /* CLI_LOSS_BY_FILE or what was chosen */
    double highest; /* scores are divided by it */
    int64_t skip;   /* malformed rows that may be left out */
    /* For a text classifier, whose losses have rows like these: those of scores are read as the cosine's, those of
     * labels as the softmax's. */
    const char *of_scores, *of_labels; /* what --loss calls them, for messages; NULL: "cosine", "softmax" */
    bool any_scores;                   /* scores are any numbers, and stay as they are */
    bool single;                       /* two columns may be a text and its label */
} cli_rows_options;

/* Reads a file. A first row that names columns, or has no score where the second has one, is a heading, which is
 * reported. Errors name the line. */
int cli_rows_read(cli_rows *r, const char *path, const cli_rows_options *options);
void cli_rows_free(cli_rows *r);
/* Tells on standard error what is trained on: the loss of a sentence model, and how many rows and labels. */
void cli_rows_describe(const cli_rows *r);
/* Tell what was left out; and what the labels are, if there are some. */
void cli_rows_describe_data(const cli_rows *r);
void cli_rows_describe_labels(const cli_rows *r);

#endif
