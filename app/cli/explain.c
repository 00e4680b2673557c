/* attend explain: attention step by step, on small numbers. The chapters are in another program, attend-explain, which
 * has this table as well; in the Python package they are part of the tool. */
#include "explain.h"

#include "cli/draw/picture.h"
#include "explain_chapters.h" /* written by the build: CHAPTER_LIST */

#include <stdlib.h>
#include <string.h>

explain_request explain_asked;

static const cli_option options[] = {
    {"input", 0, "FILE", .text = &explain_asked.input,
     .help = "run the chapter on the vectors in this file; \"-\": standard input"},
    {"query", 0, "N", .integer = &explain_asked.query, .min = 0, .max = EXPLAIN_MAX_VECTORS, .quiet = true,
     .help = "index of the query vector, from 1; 0, the default: the second"},
    {"svg", 0, "FILE", .text = &explain_asked.svg, .writes = true, .quiet = true,
     .help = "also write the chapter's last picture to this file: " PICTURE_FORMATS},
    {"lang", 0, "en|ja", .choice = &explain_asked.language, .quiet = true,
     .help = "language of the text; default: the one of $LC_ALL, $LC_MESSAGES or $LANG"},
    {"model", 'm', "MODEL", .text = &explain_asked.model,
     .help = "model folder, or name of a model in the models folder; default: the one of the chapter that comes with "
             "attend"},
    {"text", 0, "TEXT", .text = &explain_asked.sentence, .help = "sentence to translate, in chapters on a translator"},
    {"image", 0, "FILE", .text = &explain_asked.image, .help = "picture, in chapters on a vision model or a captioner"},
    {0},
};

/* Chooses the language of the environment if none was given. */
static int complete(bool *given)
{
    static const char *const variables[] = {"LC_ALL", "LC_MESSAGES", "LANG"}; /* the first one that is set counts */
    size_t i = 0;
    while (options[i].choice != &explain_asked.language)
        i++;
    if (given[i])
        return CLI_DONE;
    for (i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *locale = getenv(variables[i]);
        if (!locale || !*locale)
            continue;
        explain_asked.language = strncmp(locale, "ja", 2) == 0;
        break;
    }
    return CLI_DONE;
}

#define CHAPTER_WORD(name, title) title "|"
const cli_command cli_explain = {
    .name = "explain",
    .summary = "explain attention step by step: formula, numbers and C call",
    .arguments = "[CHAPTER]",
    .max_arguments = 1,
    .words = CHAPTER_LIST(CHAPTER_WORD),
    .details =
        "Without CHAPTER: lists the chapters in the order to read them in.\n"
        "\n"
        "With --input, a chapter runs on your own vectors, one per line: an optional\n"
        "label, then numbers separated by spaces, tabs, commas or semicolons; # begins a\n"
        "comment. A first line without numbers is a heading. All vectors have the\n"
        "dimension of the first. A chapter on a translator\n"
        "takes a sentence instead (--text), and any translator (--model); one on a vision\n"
        "model or a captioner a picture (--image), and any model of\n"
        "ViTForImageClassification, or any captioner with convolutions, a GRU\nof one layer and additive attention.",
    .examples = "attend explain simplified\n"
                "attend explain softmax --lang ja\n"
                "printf 'sea 1 0\\nlake 0.8 0.1\\nstone 0 1\\n' | attend explain softmax --input -\n"
                "attend explain three-uses --text 'Der Hund schläft auf dem Sofa.'\n"
                "attend explain vit --svg vit.svg",
    .options = options,
    .complete = complete,
    .see = "attention|bench",
#ifdef ATT_CHAPTERS_INSIDE /* as in the Python package, which has no other program */
    .run = explain_run,
#else
    .program = "attend-explain",
#endif
};
