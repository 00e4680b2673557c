/* The parts of chapter fixed-context. */
#ifndef EXPLAIN_FIXED_CONTEXT_H
#define EXPLAIN_FIXED_CONTEXT_H

#include "page.h"

/* Shows a step: translators with and without attention, compared by the length of texts. */
void fixed_context_measured(page *p);

#endif
