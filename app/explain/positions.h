/* Shared by the two files of the chapter on positions. */
#ifndef EXPLAIN_POSITIONS_H
#define EXPLAIN_POSITIONS_H

#include "page.h"

typedef struct positions_chapter {
    vectors words;
    att_tape *tape;
    float *p; /* [n, features], by the library */
} positions_chapter;

/* Shows how a word is given its position: added to it, or appended. */
void positions_and_words(page *p, const positions_chapter *l);

#endif
