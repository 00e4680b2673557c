/* The known formats of conversations, and the patterns that recognize their templates. */
#ifndef ATT_LANGUAGE_CHAT_FORMAT_H
#define ATT_LANGUAGE_CHAT_FORMAT_H

#include <stdbool.h>

typedef enum att_chat_role { ATT_CHAT_SYSTEM, ATT_CHAT_USER, ATT_CHAT_ASSISTANT, ATT_CHAT_ROLES } att_chat_role;

/* The place of a system message in a conversation. */
typedef enum att_chat_system {
    ATT_SYSTEM_ANYWHERE,       /* a message like any other */
    ATT_SYSTEM_ALWAYS,         /* the conversation begins with one, which may be empty */
    ATT_SYSTEM_IN_FIRST_USER,  /* it is the first message, and is written in the user's message that follows */
    ATT_SYSTEM_IN_LAST_USER,   /* it is the first message, and is written in the last message, if that is the user's */
    ATT_SYSTEM_IN_EQUAL_USERS, /* it is the first message, and is written in each message of the user that is equal to
                                * the last one */
    ATT_SYSTEM_REFUSED
} att_chat_system;

/* The texts around a message. In these texts {bos} and {eos} are the tokens of the model, {date} is today's date or the
 * template's, and {cutoff} is the date up to which, by the template, the model's knowledge goes. */
typedef struct att_chat_part {
    const char *before, *after; /* the text of a message */
} att_chat_part;

typedef struct att_chat_format {
    const char *name;
    const char *const *patterns; /* patterns for the normal form of templates, followed by NULL; "$" is the default
                                  * system message, or {cutoff}; the other characters: see att_jinja_match */
    att_chat_part part[ATT_CHAT_ROLES];
    const char *reply, *no_reply; /* the end of a conversation with and without the beginning of an answer */
    att_chat_system system;
    bool trim[ATT_CHAT_ROLES];
    bool trim_joined;       /* the user's text is trimmed together with the system's text before it */
    bool bos;               /* {bos} comes first, unless the template states otherwise */
    bool alternate;         /* user and assistant must alternate */
    bool skip_empty_system; /* an empty system message is not written */
    bool thoughts;          /* Qwen3: <think>...</think> in answers, which is kept only after the last question */
} att_chat_format;

/* The list of formats. It ends with one without a name. */
extern const att_chat_format att_chat_formats[];

#endif
