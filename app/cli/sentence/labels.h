/* Numbers of labels: fields of a table, data + begin[i * stride], zero-terminated, i < n. */
#ifndef CLI_SENTENCE_LABELS_H
#define CLI_SENTENCE_LABELS_H

#include <stddef.h>
#include <stdint.h>

/* Counts the different labels. */
int cli_labels_count(const char *data, const size_t *begin, int64_t stride, int64_t n, int64_t *different);
/* label[i]: the number of label i among all that differ, in numerical order if all are integers, otherwise in
 * alphabetical order. *word [*different]: these labels, malloc'd; they point into data. */
int cli_labels_number(const char *data, const size_t *begin, int64_t stride, int64_t n, int32_t *label,
                      const char ***word, int64_t *different);

#endif
