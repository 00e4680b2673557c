/* Unicode's normalisation form NFKC as rules of charsmap.h. */
#ifndef ATT_NFKC_H
#define ATT_NFKC_H

#include "io/bytes.h"

/* Each character to its NFKC, and each letter that is written as a base and its marks, in canonical order, to the one
 * character that Unicode has for it; Hangul likewise. Beyond NFKC, all white space becomes a space, and other control
 * characters go. (What is not in canonical order, or gets its mark only after a compatibility mapping, stays.) */
att_status att_nfkc_write(att_bytes *out);

#endif
