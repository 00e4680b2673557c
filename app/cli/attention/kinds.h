/* The kinds of models that have attention to show. */
#ifndef CLI_ATTENTION_KINDS_H
#define CLI_ATTENTION_KINDS_H

#include "attended.h"

extern const attention_kind *const attention_kinds[]; /* up to NULL; the first one is that of a model without a name */

#endif
