/* Texts that are not UTF-8: in which encoding they seem to be, and the command that converts them. */
#ifndef ATT_TEXT_NOT_UTF8_H
#define ATT_TEXT_NOT_UTF8_H

#include "io/bytes.h"
#include "io/error_position.h"

/* The encoding of a text that is not UTF-8, as iconv calls it: "WINDOWS-1252", "SHIFT_JIS", "EUC-JP"; "UTF-8": it is
 * that but for damaged characters; NULL: another one. */
const char *att_guess_encoding(att_byte_view text);
/* Fails: `what` in the text, or if NULL all of it, is not UTF-8. */
att_status att_fail_not_utf8(const att_where *where, const char *what, att_byte_view text);

#endif
