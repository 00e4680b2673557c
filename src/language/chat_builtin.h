/* Chat templates by name, for models that have none. */
#ifndef ATT_LANGUAGE_CHAT_BUILTIN_H
#define ATT_LANGUAGE_CHAT_BUILTIN_H

typedef struct att_chat_builtin {
    const char *name, *text; /* text: Jinja */
} att_chat_builtin;

/* The list ends with one without a name. */
extern const att_chat_builtin att_chat_builtins[];

#endif
