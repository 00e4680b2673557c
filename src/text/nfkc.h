/* Unicode normalisation form NFKC, as rules for charsmap.h. */
#ifndef ATT_NFKC_H
#define ATT_NFKC_H

#include "io/bytes.h"

/* Maps each character to its NFKC form, and each canonically ordered sequence of a base and marks that has a
 * precomposed character to that, Hangul included. Additionally, all white space becomes a space, and other control
 * characters are removed. (Sequences that are not in canonical order, or only arise from a compatibility mapping, are
 * not composed.) */
att_status att_nfkc_write(att_bytes *out);

#endif
