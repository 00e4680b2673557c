/* What the subcommands of attend stand on.
 *
 * A subcommand is a file app/cli/NAME.c that defines `const cli_command cli_NAME`. The build writes the list of
 * them from the folder's contents; parser, help, man page and shell completion all come from their tables.
 */
#ifndef CLI_H
#define CLI_H

#include <attend.h>
#include <attend_model.h>

#include <stdio.h>

/* ---- Commands and options ------------------------------------------------ */

/* What the process returns; also what most functions here return that can fail: 0, or a code after one sentence
 * on standard error. CLI_INTERRUPTED: work was cancelled after cli_end_later; the process then ends by the signal. */
enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_MISUSE = 2, CLI_INTERRUPTED = 130 };

/* An option writes to one of the variables it points to; what stands there before is the default. */
typedef struct cli_option {
    const char *name;  /* "threads" for --threads; NULL ends a table */
    char letter;       /* 't' for -t; 0: none */
    const char *value; /* how help calls the value: "N", "FILE", "MODEL"; a choice lists its words: "jsonl|npy|tsv" */
    bool *flag;        /* takes no value; given: true */
    const char **text;
    int64_t *integer;
    double *number;
    int *choice;      /* which word of `value` */
    double min, max;  /* of integer and number */
    bool required;    /* or its environment variable */
    bool quiet;       /* help shows no default */
    const char *env;  /* the environment variable that stands in when the option is not given */
    const char *help; /* one sentence without a full stop */
} cli_option;

typedef struct cli_command {
    const char *name;
    const char *summary;   /* one line without a full stop */
    const char *arguments; /* as in the usage line: "[FILE...]"; NULL: takes none */
    int min_arguments;
    int max_arguments;                   /* -1: any number */
    const char *details;                 /* paragraphs for help and man page, lines of at most 78 columns; or NULL */
    const char *examples;                /* lines, or NULL */
    const cli_option *options;           /* up to name NULL; or NULL. --help is always there */
    int (*run)(int n, char **arguments); /* the arguments that are no options; returns an exit code */
    const char *words; /* what completion offers for the first argument: "one|two"; NULL: files if arguments say FILE */
    const struct cli_command *const *commands; /* up to NULL: it has subcommands itself, and no run; or NULL */
} cli_command;

extern const cli_command *const cli_commands[]; /* in alphabetical order, up to NULL */

/* Rows that many tables share. */
/* clang-format off */
#define CLI_MODEL(to)                                                                        \
    {"model", 'm', "MODEL", .text = (to), .required = true, .env = "ATTEND_MODEL",           \
     .help = "a model's folder, or its name in the models folder"}
/* to begins as CLI_TRANSLATOR_SHIPPED */
#define CLI_TRANSLATOR(to)                                                                   \
    {"model", 'm', "MODEL", .text = (to),                                                    \
     .help = "a model's folder, or its name in the models folder or among the models that come with attend"}
#define CLI_TRANSLATOR_SHIPPED "tatoeba-de-en"
#define CLI_THREADS(to)                                                                      \
    {"threads", 't', "N", .integer = (to), .max = 1024, .quiet = true, .env = "ATTEND_THREADS", \
     .help = "threads to compute with; 0, the default: all that the process may use"}
#define CLI_JSON(to) {"json", 0, NULL, .flag = (to), .help = "print JSON"}
/* clang-format on */

/* Parses and runs: argv[0] is the command's name. */
int cli_run(const cli_command *c, const char *path, int argc, char **argv);
/* Gives an option its value; `source` is where it comes from, for sentences: "--threads". */
int cli_take(const cli_option *o, const char *source, const char *given);
/* The command that `name` calls, or NULL after a sentence with the nearest name; `path` as in "attend bench". */
const cli_command *cli_find(const cli_command *const *commands, const char *path, const char *name);
/* Of n words the one nearest to `word`, or NULL where none is near. */
const char *cli_nearest(const char *word, const char *const *words, int n);

void cli_print_overview(FILE *f);
void cli_print_help(FILE *f, const cli_command *c, const char *path);
void cli_print_man(FILE *f);
int cli_print_completion(FILE *f, int shell); /* 0 bash, 1 zsh, 2 fish */
/* "  -m, --model MODEL" into text; the option's default into `fallback` ("" if there is none to show). */
void cli_option_synopsis(const cli_option *o, char *text, size_t size);
void cli_option_default(const cli_option *o, char *text, size_t size);

/* ---- Saying what is wrong ------------------------------------------------ */

int cli_fail(const char *format, ...) ATT_PRINTF(1, 2);   /* "attend: ..." on standard error; CLI_FAILED */
int cli_misuse(const char *format, ...) ATT_PRINTF(1, 2); /* the same; CLI_MISUSE */
void cli_note(const char *format, ...) ATT_PRINTF(1, 2);  /* the same, where things go on */
int cli_fail_errno(const char *path);                     /* "attend: PATH: No such file or directory"; CLI_FAILED */
int cli_fail_memory(void);
int cli_status(const att_ctx *ctx, att_status s); /* 0; or the library's sentence and a code */

/* The signal that asked the process to end after cli_end_later, or 0. */
extern volatile int cli_signal;

/* ---- Contexts and models ------------------------------------------------- */

int cli_open(att_ctx **ctx, int64_t threads);

typedef struct cli_model {
    att_ctx *ctx;
    att_sentence *sentence;
    att_sentence_info info;
    const char *name; /* as the user wrote it */
} cli_model;
/* The model's folder, malloc'd: as it is given, in the models folder, or among those that come with the program. */
int cli_model_find(const char *name, char **path);
int cli_model_open(cli_model *m, const char *name, int64_t threads);
void cli_model_close(cli_model *m);

typedef struct cli_translator {
    att_ctx *ctx;
    att_translator *translator;
    att_encoder_decoder_info info;
} cli_translator;
int cli_translator_open(cli_translator *m, const char *name, int64_t threads);
void cli_translator_close(cli_translator *m);

/* A tokenizer: of a model as above, of a folder that has but a tokenizer, or of a file (SentencePiece). */
typedef struct cli_tokenizer {
    att_ctx *ctx;
    const att_tokenizer *tokenizer;
    int64_t max_tokens; /* that the model takes; 0: no limit */
    cli_model model;
    att_tokenizer *own; /* of no model */
} cli_tokenizer;
int cli_tokenizer_open(cli_tokenizer *t, const char *name);
void cli_tokenizer_close(cli_tokenizer *t);

/* $ATTEND_MODELS, else $XDG_DATA_HOME/attend/models, else ~/.local/share/attend/models; malloc'd, NULL: no memory. */
char *cli_models_folder(void);
/* Calls each(arg, name) for the models there, then for those that come with the program, in alphabetical order. */
int cli_models_list(void (*each)(void *arg, const char *name), void *arg);

#endif
