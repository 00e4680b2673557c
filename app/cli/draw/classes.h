/* Classes with their probabilities, the most probable ones first: for people, as lines, or as JSON. */
#ifndef CLI_DRAW_CLASSES_H
#define CLI_DRAW_CLASSES_H

#include "cli/base/json.h"

/* What a model has for classes */
typedef struct cli_classes {
    const void *model;
    const char *(*label)(const void *model, int64_t i);
    int64_t n, top; /* classes; how many of them are printed */
} cli_classes;

/* The classes of largest probability [n], those of the same by their number -> best [top]. */
void cli_classes_choose(const cli_classes *c, const float *probability, int64_t *best);
/* Adds "classes", a list, to a JSON object. */
void cli_classes_json(const cli_classes *c, cli_json *j, const float *probability, const int64_t *best);
/* Ends a line: after each of a tab, label and probability. */
void cli_classes_line(const cli_classes *c, FILE *f, const float *probability, const int64_t *best);
/* Prints a line for each class, with a bar; an empty line before all but the first titles, of `bytes`. */
void cli_classes_bars(const cli_classes *c, const char *title, const float *probability, const int64_t *best);
/* Writes a field of such a line: tabs and line ends are spaces. */
void cli_classes_field(FILE *f, const char *text, size_t bytes);

#endif
