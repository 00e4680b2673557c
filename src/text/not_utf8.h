/* Guesses the encoding of texts that are not UTF-8, and the command that converts them. */
#ifndef ATT_TEXT_NOT_UTF8_H
#define ATT_TEXT_NOT_UTF8_H

#include "io/bytes.h"
#include "io/error_position.h"

/* Returns the encoding of a text that is not UTF-8, as iconv calls it: "WINDOWS-1252", "SHIFT_JIS", "EUC-JP"; "UTF-8":
 * only some characters are damaged; NULL: another one. */
const char *att_guess_encoding(att_byte_view text);
/* Fails because `what` in the text, or if NULL the whole text, is not UTF-8. */
att_status att_fail_not_utf8(const att_where *where, const char *what, att_byte_view text);

#endif
