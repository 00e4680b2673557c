/* All pairs with scores of a file, for validation. */
#ifndef CLI_SENTENCE_SCORED_PAIRS_H
#define CLI_SENTENCE_SCORED_PAIRS_H

#include "pairs.h"

typedef struct cli_scored {
    int64_t n;
    const char **text; /* [2 n], malloc'd each */
    size_t *bytes;     /* [2 n] */
    double *score;     /* [n]: divided by options->highest, if that is not 0 */
    size_t room;       /* capacity of text, bytes and score, in pairs */
} cli_scored;

/* Reads the file with these options, whose gold and max_count are set here. Free the pairs after an error, too. */
int cli_scored_read(cli_scored *s, const char *path, const cli_pairs_options *options);
void cli_scored_free(cli_scored *s);
/* Computes the checksum of all texts and scores. */
int64_t cli_scored_checksum(const cli_scored *s);

#endif
