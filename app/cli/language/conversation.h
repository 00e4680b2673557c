/* A conversation with a language model. */
#ifndef CLI_LANGUAGE_CONVERSATION_H
#define CLI_LANGUAGE_CONVERSATION_H

#include "cli/base/read_file.h"
#include "language.h"

typedef struct cli_conversation {
    const cli_language *m;
    att_chat_template *template;
    att_chat_message *message; /* [count]; text and more are from malloc */
    size_t count, room;
    int64_t replies;
    /* Asks whether to drop the `dropped` oldest messages, so that an answer has room. NULL: no. */
    bool (*drop)(void *user, size_t dropped);
    void *user;
    att_chat_options options; /* of all calls: reply, tools and documents */
    /* private: */
    cli_whole_text tools, documents;
    att_generation *session; /* or NULL */
    bool full;               /* the last answer ended at the model's last position */
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
/* Reads the files of --tools and --documents, each a JSON list, or NULL. Fails if the template would leave them out.
 * variables or NULL: a JSON object, which must stay. */
int cli_conversation_lists(cli_conversation *c, const char *tools, const char *documents, const char *variables);
/* Sets the system message; an empty text removes it. Fails, and changes nothing, if the template has no system
 * message. */
int cli_conversation_system(cli_conversation *c, const char *text, size_t bytes);
/* Adds a message of the user, and generates and adds the answer. The function adds the template's end to o's stop
 * strings and sets its first sequence. If the conversation leaves no room for an answer, c->drop is asked about its
 * oldest messages but the system's; what remains is the text of a conversation without them. After CLI_FAILED the
 * conversation is unchanged. After CLI_INTERRUPTED it has the text that was generated before a signal. cli_reply_free
 * must free reply in any case. */
int cli_conversation_reply(cli_conversation *c, const char *text, size_t bytes, const att_generate_options *o,
                           cli_reply *reply);
/* Replaces the last answer, if the conversation ends with one, by a new answer to the message before it, which is the
 * user's or a tool's. */
int cli_conversation_retry(cli_conversation *c, const att_generate_options *o, cli_reply *reply);
void cli_reply_free(const cli_conversation *c, cli_reply *reply);
/* Removes the last message of the user and what follows it. Fails if there is none. */
int cli_conversation_undo(cli_conversation *c);

/* Writes the messages to a file as JSON: [{"role": "user", "content": "..."}] (conversation_file.c) */
int cli_conversation_save(const cli_conversation *c, const char *path);
/* Replaces the messages by those of such a file, or of one with {"messages": [...]}. After CLI_FAILED the conversation
 * is unchanged. (conversation_file.c) */
int cli_conversation_load(cli_conversation *c, const char *path);

/* For conversation_file.c: fails if the template refuses a system message, or writes a conversation without it. */
int cli_conversation_check_system(const cli_conversation *c, const char *text, size_t bytes);
/* For conversation_file.c: adds a copy of a message, whose role is a constant, at an index. */
int cli_conversation_insert(cli_conversation *c, size_t at, const att_chat_message *message);
/* For conversation_file.c: removes all messages from an index on. */
void cli_conversation_truncate(cli_conversation *c, size_t first);

#endif
