/* Files of embeddings, in one of several formats. */
#ifndef CLI_SENTENCE_VECTOR_FILE_H
#define CLI_SENTENCE_VECTOR_FILE_H

#include <attend_sentence.h>
#include <attend_vectors.h>

#include <stdio.h>

/* The formats, in the order of the words. */
#define CLI_VECTOR_FORMATS "jsonl|npy|tsv|fbin|pgvector|sqlite-vec"
enum {
    CLI_VECTORS_JSONL,
    CLI_VECTORS_NPY,
    CLI_VECTORS_TSV,
    CLI_VECTORS_FBIN,
    CLI_VECTORS_PGVECTOR,
    CLI_VECTORS_SQLITE
};
/* In the order of att_precision. */
#define CLI_PRECISIONS "float32|int8|uint8|binary|ubinary"

/* One item and its vector. */
typedef struct cli_embedded {
    const char *text;
    size_t bytes;
    int64_t number; /* of the item in the input, from 1 */
    int64_t tokens;
    bool truncated;
    const void *codes; /* [att_precision_bytes(precision, dim)] */
} cli_embedded;

typedef struct cli_vector_file {
    int format;
    att_precision precision;
    int64_t dim; /* of the vectors before they were quantized */
    att_similarity similarity;
    const char *key;   /* of an item: "text", "image" */
    const char *table; /* of SQL */
    bool with_tokens;  /* in jsonl */
    int64_t rows;      /* so far */
    /* private */
    FILE *file;
    off_t start;
    int64_t columns; /* numbers of a row of codes */
    float *row;      /* [columns] */
} cli_vector_file;

/* Returns the word of a format. */
const char *cli_vector_format(int format);
/* Checks that the format supports this precision and dim, and begins the file. The caller has set the format, precision
 * and all members after them. */
int cli_vector_file_begin(cli_vector_file *v, FILE *file);
int cli_vector_file_add(cli_vector_file *v, const cli_embedded *e);
/* Writes the end of the file. code: that of the work before, which is returned if it is not 0. */
int cli_vector_file_end(cli_vector_file *v, int code);

#endif
