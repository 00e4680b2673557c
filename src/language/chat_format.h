/* The known formats of conversations, and how their templates are recognized. */
#ifndef ATT_LANGUAGE_CHAT_FORMAT_H
#define ATT_LANGUAGE_CHAT_FORMAT_H

#include <stdbool.h>

typedef enum att_chat_role { ATT_CHAT_SYSTEM, ATT_CHAT_USER, ATT_CHAT_ASSISTANT, ATT_CHAT_ROLES } att_chat_role;

/* What becomes of a system message. */
typedef enum att_chat_system {
    ATT_SYSTEM_ANYWHERE,       /* a message like any other */
    ATT_SYSTEM_ALWAYS,         /* the conversation begins with one, which may be empty */
    ATT_SYSTEM_IN_FIRST_USER,  /* the first message, written in the user's that follows */
    ATT_SYSTEM_IN_LAST_USER,   /* the same in the last message, if it is the user's */
    ATT_SYSTEM_IN_EQUAL_USERS, /* the same in each message of the user that is equal to the last one */
    ATT_SYSTEM_REFUSED
} att_chat_system;

/* In these texts {bos} and {eos} are the tokens of the model, {date} is today's or the template's, and {cutoff} what
 * the template states of the model's knowledge. */
typedef struct att_chat_part {
    const char *before, *after; /* the text of a message */
} att_chat_part;

typedef struct att_chat_format {
    const char *name;
    const char *const *patterns; /* of the normal form of templates, up to NULL; "$" is the default system message, or
                                  * {cutoff}; others: att_jinja_match */
    att_chat_part part[ATT_CHAT_ROLES];
    const char *reply, *no_reply; /* the end of a conversation with and without the begin of an answer */
    att_chat_system system;
    bool trim[ATT_CHAT_ROLES];
    bool trim_joined;       /* the user's text is trimmed together with the system's before it */
    bool bos;               /* {bos} is first, unless the template states otherwise */
    bool alternate;         /* user and assistant have to */
    bool skip_empty_system; /* an empty system message is not written */
    bool thoughts;          /* Qwen3: <think>...</think> in answers, which only stays after the last question */
} att_chat_format;

/* Up to one without a name. */
extern const att_chat_format att_chat_formats[];

#endif
