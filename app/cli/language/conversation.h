/* A conversation with a language model. */
#ifndef CLI_LANGUAGE_CONVERSATION_H
#define CLI_LANGUAGE_CONVERSATION_H

#include "language.h"

typedef struct cli_conversation {
    const cli_language *m;
    att_chat_template *template;
    att_chat_message *message; /* [count]; the texts are from malloc */
    size_t count, room;
    int64_t replies;
    /* private: */
    att_generation *session; /* or NULL */
} cli_conversation;

typedef struct cli_reply {
    att_generated generated;
    int64_t prompt; /* tokens of the conversation before it */
} cli_reply;

/* template_name or NULL: as in att_chat_template_open. m stays open. */
int cli_conversation_open(cli_conversation *c, const cli_language *m, const char *template_name);
void cli_conversation_close(cli_conversation *c);
/* Removes all messages but the system's. */
void cli_conversation_reset(cli_conversation *c);
/* Sets the system message; an empty text removes it. Fails, and changes nothing, if the template has no system
 * message. */
int cli_conversation_system(cli_conversation *c, const char *text, size_t bytes);
/* Adds a message of the user, and generates and adds the answer. The function sets o's stop and first sequence. After
 * CLI_FAILED the conversation is unchanged. After CLI_INTERRUPTED it has the text that was generated before a signal.
 * cli_reply_free must free reply in any case. */
int cli_conversation_reply(cli_conversation *c, const char *text, size_t bytes, const att_generate_options *o,
                           cli_reply *reply);
void cli_reply_free(const cli_conversation *c, cli_reply *reply);
/* Writes the messages to a file as JSON: [{"role": "user", "content": "..."}] */
int cli_conversation_save(const cli_conversation *c, const char *path);

#endif
