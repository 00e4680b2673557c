/* Chat templates as programs. */
#ifndef ATT_LANGUAGE_CHAT_PROGRAM_H
#define ATT_LANGUAGE_CHAT_PROGRAM_H

#include "language/chat.h"

/* Appends the text of messages [n], which are checked, and the ranges of it that are from messages (att_literal). */
att_status att_chat_program_write(const att_chat_template *t, const att_chat_message *messages, int64_t n, bool reply,
                                  att_bytes *text, att_bytes *literal);
/* Sets the token after an answer: what the template writes there, or, if it writes none, the model's end token. */
att_status att_chat_program_end(att_chat_template *t);

#endif
