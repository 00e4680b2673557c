/* The lines or images that are searched, and their vectors: of an index, or computed. */
#ifndef CLI_SENTENCE_CORPUS_H
#define CLI_SENTENCE_CORPUS_H

#include "cli/base/npy.h"
#include "codes.h"
#include "embedder.h"

typedef struct cli_corpus_options {
    const char *path;   /* of the corpus; "-": standard input */
    const char *index;  /* the path of the index, or NULL */
    const char *ranges; /* the path of its ranges, or NULL: next to the index */
    const char *prompt; /* --document-prompt, or NULL */
    int64_t dims;       /* --dims; 0: all */
    cli_types types;    /* of the model */
    int precision;      /* --precision, or -1 */
    bool rescored;      /* --rescore was given */
} cli_corpus_options;

typedef struct cli_corpus {
    cli_corpus_options o;
    int64_t count;
    size_t *begin; /* [count + 1]: of the lines in data, each followed by a zero */
    bool *failed;  /* [count]: images that could not be read, which are never found */
    bool any_failed;
    float *own;  /* [count, dim]; NULL with an index */
    size_t room; /* of begin, failed and own */
    char *data;
    size_t capacity;      /* of data */
    const float *vectors; /* [count, dim]: own, or those of the index; with codes NULL */
    cli_npy index;
    cli_codes codes; /* their precision is float32 if there are none */
    char *remake;    /* the command that makes the index again, for messages; or NULL */
} cli_corpus;

/* Reads the corpus and opens its index, some of whose rows are compared with the model's vectors, or embeds all lines.
 * The index is of m with its prompt. To be closed also after an error. */
int cli_corpus_open(cli_corpus *c, const cli_corpus_options *options, const cli_embedder *m);
void cli_corpus_close(cli_corpus *c);

#endif
