/* Guesses the encoding of texts that are not UTF-8, and the command that converts them. */
#ifndef ATT_TEXT_NOT_UTF8_H
#define ATT_TEXT_NOT_UTF8_H

#include "io/bytes.h"
#include "io/error_position.h"

/* Fails because `what` in the text, or if NULL the whole text, is not UTF-8. */
att_status att_fail_not_utf8(const att_where *where, const char *what, att_byte_view text);

#endif
