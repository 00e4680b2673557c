/* The framework of the subcommands of attend.
 *
 * A subcommand is a file app/cli/NAME.c that defines `const cli_command cli_NAME`. The build generates the list of them
 * from the folder's contents; parser, help, man page and shell completion are generated from their tables. */
#ifndef CLI_BASE_COMMAND_H
#define CLI_BASE_COMMAND_H

#include <attend.h>
#include <attend_util.h>

#include <stdio.h>

/* ---- Commands and options ------------------------------------------------ */

/* Exit codes, also returned by most functions here that can fail: 0, or a code after one message on standard error.
 * CLI_INTERRUPTED: work was cancelled after cli_end_later; the process then ends by the signal. CLI_FINISHED: there is
 * nothing to do, as --resume found; the process ends as one that is done. */
enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_MISUSE = 2, CLI_INTERRUPTED = 130, CLI_FINISHED = 256 };

/* The values of an option that may be given repeatedly. */
enum { CLI_TEXTS = 256 };
typedef struct cli_texts {
    int n;
    const char *text[CLI_TEXTS];
} cli_texts;

/* An option writes to one of the variables it points to; their initial values are the defaults. */
typedef struct cli_option {
    const char *name;  /* "threads" for --threads; NULL ends a table */
    char letter;       /* 't' for -t; 0: none */
    const char *value; /* the value's name in help: "N", "FILE", "MODEL"; a choice lists its words: "jsonl|npy|tsv" */
    bool *flag;        /* takes no value; given: true */
    const char **text;
    cli_texts *texts;
    int64_t *integer;
    double *number;
    int *choice;      /* index of the word in `value` */
    double min, max;  /* of integer and number */
    bool above_min;   /* a number has to be greater than min */
    bool required;    /* unless its environment variable is set */
    bool quiet;       /* help shows no default */
    bool writes;      /* text is the path of an output, which must not replace an input of the command: in_use.h */
    const char *env;  /* environment variable that is used if the option is not given */
    const char *help; /* one sentence without a full stop */
} cli_option;

enum { CLI_MAX_OPTIONS = 96 }; /* of a command */

typedef struct cli_command {
    const char *name;
    const char *summary;   /* one line without a full stop */
    const char *arguments; /* as in the usage line: "[FILE...]"; NULL: there are none */
    int min_arguments;
    int max_arguments;         /* -1: any number */
    const char *details;       /* paragraphs for help and man page, which fill them; or NULL */
    const char *examples;      /* command lines, one each; or NULL */
    const cli_option *options; /* up to name NULL; or NULL. --help is always there */
    /* Completes the options before required ones are checked; or NULL. given[i]: option i was given. It may set other
     * options, and set their `given`. Returns a code. */
    int (*complete)(bool *given);
    int (*run)(int n, char **arguments); /* arguments: without options; returns an exit code */
    const char *program;                 /* the program that does it instead, by program.h: "attend-explain"; or NULL */
    const char *see;                     /* related commands, for the man page: "search|train embed"; or NULL */
    const char *words; /* completions of the first argument: "one|two"; NULL: files if `arguments` states FILE */
    const struct cli_command *const *commands; /* its subcommands, up to NULL, if it has some and no run; or NULL */
} cli_command;

#define CLI_SUMMARY "attention and Transformers" /* of attend itself */
extern const cli_command *const cli_commands[];  /* in alphabetical order, up to NULL */

/* The models that come with attend */
#define CLI_TRANSLATOR_SHIPPED "tatoeba-de-en"
#define CLI_VISION_SHIPPED "fashion-mnist"
#define CLI_CAPTIONER_SHIPPED "flickr8k-captions"

/* Option rows shared by many tables. */
/* clang-format off */
#define CLI_THREADS(to)                                                                      \
    {"threads", 't', "N", .integer = (to), .max = 1024, .quiet = true, .env = "ATTEND_THREADS", \
     .help = "number of threads; 0, the default: all that the process may use"}
/* What products compute. to: an int, which is an att_compute. */
#define CLI_COMPUTE(to, what) {"compute", 0, "f32|bf16|auto", .choice = (to), .help = what}
#define CLI_FILE(to)                                                                         \
    {"file", 'f', "FILE", .text = (to), .quiet = true,                                       \
     .help = "read sentences from this file, one per line; \"-\": standard input"}
#define CLI_SENTENCE(to)                                                                     \
    {"text", 0, "TEXT", .texts = (to),                                                       \
     .help = "sentence, instead of lines of files; may be given repeatedly"}
#define CLI_OUTPUT(to)                                                                       \
    {"output", 'o', "FILE", .text = (to), .quiet = true, .writes = true,                     \
     .help = "output file; appears when complete; default: standard output"}
#define CLI_JSON(to) {"json", 0, NULL, .flag = (to), .help = "print JSON"}
/* clang-format on */

/* Parses and runs: argv[0] is the command's name. */
int cli_run(const cli_command *c, const char *path, int argc, char **argv);
/* Parses and runs in the command's own program (`program`), where this function does it. */
int cli_run_here(const cli_command *c, int (*run)(int n, char **arguments), int argc, char **argv);
/* Sets an option's value; `source` is its origin, for messages: "--threads". */
int cli_option_set(const cli_option *o, const char *source, const char *given);
/* Returns the command with this name, or NULL after a message with the nearest name; `path` as in "attend bench". */
const cli_command *cli_find(const cli_command *const *commands, const char *path, const char *name);
typedef struct cli_hint {
    char text[128];
} cli_hint;
/* Returns the end of a message about an unknown word: "; did you mean \"BEFORE WORD\"?" with the nearest of n words, or
 * `otherwise` if none is near. */
const char *cli_did_you_mean(cli_hint *hint, const char *before, const char *given, const char *const *words, int n,
                             const char *otherwise);

enum { CLI_HELP_COLUMNS = 78 }; /* no line of help is longer */
void cli_print_overview(FILE *f);
void cli_print_help(FILE *f, const cli_command *c, const char *path);
/* Prints the manual page of a command; c NULL: attend(1). */
void cli_print_man(FILE *f, const cli_command *c, const char *path);
/* Writes all manual pages to a folder: attend.1, attend-embed.1, attend-train-embed.1, ... */
int cli_write_man(const char *folder);
int cli_print_completion(FILE *f, int shell); /* 0 bash, 1 zsh, 2 fish */
/* Returns where to break a command line of n bytes: the number of bytes that fit into `width` columns with a backslash,
 * up to a space that is not quoted, if possible one before an option or a redirection; n if all fit or there is no such
 * space.
 */
int cli_shell_break(const char *line, int n, int width);
/* Writes the option's default, "" if there is none to show. */
void cli_option_default(const cli_option *o, char *text, size_t size);

/* ---- Messages ----------------------------------------------------------- */

/* --quiet, which all commands have. */
extern const cli_option cli_quiet_option;
/* Drops everything that is written to standard error from here on, except the messages of cli_fail, cli_misuse and
 * those that call them. */
int cli_only_errors(void);

int cli_fail(const char *format, ...) ATT_PRINTF(1, 2);   /* "attend: ..." on standard error; CLI_FAILED */
int cli_misuse(const char *format, ...) ATT_PRINTF(1, 2); /* the same; CLI_MISUSE */
void cli_note(const char *format, ...) ATT_PRINTF(1, 2);  /* the same, but the command continues */
int cli_fail_errno(const char *path);                     /* "attend: PATH: No such file or directory"; CLI_FAILED */
int cli_fail_memory(void);
int cli_status(const att_ctx *ctx, att_status s); /* 0; or the library's message and a code */

/* A path as a command in a message has it: in single quotes if a shell would change it, "FOLDER" if it is too long. */
typedef struct cli_shell_word {
    char text[4096];
} cli_shell_word;
cli_shell_word cli_quoted(const char *path);

bool cli_ends_with(const char *text, const char *end);
/* Returns whether a path has a name followed by this extension, such as ".gguf", in letters of either case. */
bool cli_has_extension(const char *path, const char *extension);

/* The signal that was received after cli_end_later, or 0. */
extern volatile int cli_signal;

/* ---- Contexts ------------------------------------------------------------ */

/* A context, whose notes (att_config) are printed to standard error; or kept, if that is set before. */
int cli_open(att_ctx **ctx, int64_t threads);
/* Opens one with another flag that cancels calls (att_config.cancel) than cli_signal, which cli_open has; or NULL:
 * none. */
int cli_open_with(att_ctx **ctx, int64_t threads, const volatile int *cancel);
extern bool cli_keep_notes;
const char *cli_kept_note(int i); /* NULL: there are no more */

#endif
