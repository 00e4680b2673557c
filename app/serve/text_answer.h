/* Texts as JSON, as OpenAI's: a whole answer, or chunk by chunk. */
#ifndef SERVE_TEXT_ANSWER_H
#define SERVE_TEXT_ANSWER_H

#include "generate_work.h"

typedef struct serve_text_answer serve_text_answer;
typedef struct serve_text_shape {
    const char *id, *object, *chunk; /* what ids begin with; names of an answer and of its chunks */
    bool chat;                       /* a text is a message */
    const char *type;                /* of a stream */
    /* Writes the whole answer, when the generation is complete. */
    void (*write)(serve_text_answer *a, cli_json *j);
    /* Writes events of all that is new, while the lock of the generation is held. */
    void (*events)(serve_text_answer *a, FILE *f);
    /* Writes the last events, after the end of all texts. */
    void (*finish)(serve_text_answer *a, FILE *f);
    /* Writes an error as an event. */
    void (*fail)(serve_text_answer *a, FILE *f, int status, const char *message);
} serve_text_shape;
extern const serve_text_shape serve_chat_shape, serve_completion_shape, serve_response_shape, serve_ollama_chat_shape,
    serve_ollama_text_shape, serve_ollama_raw_shape;

/* What was written of a choice. */
typedef struct serve_cursor {
    size_t bytes;
    int64_t tokens, characters; /* characters: of the texts of tokens, for text_offset */
    bool begun, ended;
} serve_cursor;

/* An answer that is being written. */
struct serve_text_answer {
    const serve_text_shape *shape;
    serve_generation *g;
    char id[40];
    int64_t created;
    bool usage;           /* a chunk with counts follows the last one */
    json_t *echo;         /* what is repeated of the request: the prompts, a string or a list, which begin the texts; of
                           * /v1/responses the body; or NULL */
    int64_t events;       /* that were written, of a stream that numbers them */
    serve_cursor *cursor; /* [choices] */
};

/* Begins an answer. Returns false if out of memory. serve_text_answer_free also frees the generation. */
bool serve_text_answer_begin(serve_text_answer *a, const serve_text_shape *shape, serve_generation *g);
void serve_text_answer_free(serve_text_answer *a);

/* The new part of a text. */
typedef struct serve_piece {
    const serve_choice *c;
    serve_cursor *cursor;
    int64_t index;
    const char *text;
    size_t bytes;
    int64_t from, to; /* tokens */
} serve_piece;
/* Returns what was not written of a choice, and moves its cursor. */
serve_piece serve_next_piece(serve_text_answer *a, int64_t index);
/* Returns the text of a choice, as an answer has it. A message has no space at its beginning: that of templates. */
const char *serve_choice_text(const serve_text_answer *a, int64_t index, size_t *bytes);
/* Writes the tokens [from, to) of a choice with their log probabilities, as a list. */
void serve_log_probabilities_write(cli_json *j, const char *key, const serve_choice *c, int64_t from, int64_t to);
/* Returns why a text has ended: "stop" or "length"; NULL: it has not. */
const char *serve_end_reason(att_generation_end end);
/* Writes a time as Ollama's answers have it; seconds: since 1970. */
void serve_ollama_time(cli_json *j, const char *key, int64_t seconds);
/* Returns how many tokens all texts have, and how many of the prompts' were not computed. */
int64_t serve_text_answer_tokens(const serve_text_answer *a, int64_t *cached);

#endif
