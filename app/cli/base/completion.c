/* Completion for bash, zsh and fish, from the tables. One function of the shell per kind of thing:
 * the script is a list of (command path, words). */
#include "command.h"

#include <string.h>

/* "one|two" as "one two" */
static void put_words(FILE *f, const char *words)
{
    for (; *words; words++)
        fputc(*words == '|' ? ' ' : *words, f);
}

static bool is_model(const cli_option *o) { return o->value && strcmp(o->value, "MODEL") == 0; }

static bool is_file(const cli_option *o)
{
    return !o->choice && o->value && (strstr(o->value, "FILE") || strstr(o->value, "FOLDER"));
}

static bool takes_files(const cli_command *c)
{
    return c->arguments && (strstr(c->arguments, "FILE") || strstr(c->arguments, "IMAGE"));
}

/* Returns the commands that can follow a command of this path, up to NULL: its own, or all after "attend help". */
static const cli_command *const *followers(const cli_command *c, const char *path)
{
    static const cli_command *const none[] = {NULL};
    if (c->commands)
        return c->commands;
    return !*path && c->arguments && strstr(c->arguments, "COMMAND") ? cli_commands : none;
}

/* ---- bash (and zsh, through bashcompinit) ---------------------------------- */

static const char bash_start[] =
    "# Completion for attend; written by: attend help --completion bash\n"
    "_attend() {\n"
    "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} path='' words='' i\n"
    "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
    "        case $path/${COMP_WORDS[i]} in\n";

/* Turns the folders in the cache of the Hugging Face Hub into names: models--OWNER--NAME. */
#define HUB_NAMES "sed -n 's,^models--\\(.*\\)--\\(.*\\)$,\\1/\\2,p'"

/* The models that come with attend, those of the models folder, and those in the cache of the Hub. */
static const char bash_models[] = CLI_TRANSLATOR_SHIPPED
    " " CLI_VISION_SHIPPED " " CLI_CAPTIONER_SHIPPED
    " $(command ls \"${ATTEND_MODELS:-${XDG_DATA_HOME:-$HOME/.local/share}/attend/models}\" 2>/dev/null)"
    " $(command ls \"${HF_HUB_CACHE:-${HF_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/huggingface}/hub}\" 2>/dev/null "
    "| " HUB_NAMES ")";

/* Adds "PATH/WORD": the cases of the words by which the path gets longer. */
static void bash_paths(FILE *f, const cli_command *c, const char *path)
{
    char deeper[64];
    snprintf(deeper, sizeof deeper, "%s/%s", path, c->name);
    fprintf(f, "        %s) path=%s ;;\n", deeper, deeper);
    for (const cli_command *const *sub = followers(c, path); *sub; sub++)
        bash_paths(f, *sub, deeper);
}

/* Returns the code that completes an option with files: any files, or only those that can be a model. */
static const char *bash_files(const cli_option *o, bool spm)
{
    if (!is_model(o))
        return " $(compgen -f -- \"$word\" | sort)";
    return spm ? " $({ compgen -d -- \"$word\"; compgen -f -X '!*.spm' -- \"$word\"; } | sort -u)"
               : " $(compgen -d -- \"$word\" | sort)";
}

static void bash_values(FILE *f, const cli_command *c, const char *path)
{
    char deeper[64];
    snprintf(deeper, sizeof deeper, "%s/%s", path, c->name);
    for (const cli_option *o = c->options; o && o->name; o++) {
        if (!o->choice && !is_file(o) && !is_model(o))
            continue;
        fprintf(f, "    %s/--%s", deeper, o->name);
        if (o->letter)
            fprintf(f, "|%s/-%c", deeper, o->letter);
        fputs(") words=\"", f);
        if (o->choice)
            put_words(f, o->value);
        else if (is_model(o))
            fputs(bash_models, f);
        fprintf(f, "\"; COMPREPLY=($(compgen -W \"$words\" -- \"$word\")%s)%s; return ;;\n",
                o->choice ? "" : bash_files(o, strcmp(c->name, "tokenize") == 0),
                is_model(o) ? "; compopt -o nosort 2>/dev/null" : "");
    }
    for (const cli_command *const *sub = c->commands; sub && *sub; sub++)
        bash_values(f, *sub, deeper);
}

/* Prints the words after "help COMMAND": its subcommands. */
static void bash_described(FILE *f, const cli_command *c, const char *path)
{
    if (!c->commands)
        return;
    fprintf(f, "    %s/%s) words=\"", path, c->name);
    for (const cli_command *const *sub = c->commands; *sub; sub++)
        fprintf(f, "%s ", (*sub)->name);
    fputs("\" ;;\n", f);
}

static void bash_words(FILE *f, const cli_command *c, const char *path)
{
    char deeper[64];
    snprintf(deeper, sizeof deeper, "%s/%s", path, c->name);
    fprintf(f, "    %s) words=\"", deeper);
    for (const cli_option *o = c->options; o && o->name; o++)
        fprintf(f, "--%s ", o->name);
    fprintf(f, "--%s --help ", cli_quiet_option.name);
    if (c->words)
        put_words(f, c->words);
    for (const cli_command *const *sub = followers(c, path); *sub; sub++)
        fprintf(f, "%s ", (*sub)->name);
    fprintf(f, "\"%s ;;\n", takes_files(c) ? "; COMPREPLY=($(compgen -f -- \"$word\"))" : "");
    for (const cli_command *const *sub = c->commands; sub && *sub; sub++)
        bash_words(f, *sub, deeper);
    for (const cli_command *const *of = c->commands ? NULL : followers(c, path); of && *of; of++)
        bash_described(f, *of, deeper);
}

static void put_bash(FILE *f)
{
    fputs(bash_start, f);
    for (const cli_command *const *c = cli_commands; *c; c++)
        bash_paths(f, *c, "");
    fputs("        esac\n    done\n    COMPREPLY=()\n    case $path/$before in\n", f);
    for (const cli_command *const *c = cli_commands; *c; c++)
        bash_values(f, *c, "");
    fputs("    esac\n    case $path in\n    '') words=\"--version --help ", f);
    for (const cli_command *const *c = cli_commands; *c; c++)
        fprintf(f, "%s ", (*c)->name);
    fputs("\" ;;\n", f);
    for (const cli_command *const *c = cli_commands; *c; c++)
        bash_words(f, *c, "");
    fputs("    esac\n    COMPREPLY+=($(compgen -W \"$words\" -- \"$word\"))\n}\n"
          "complete -o filenames -F _attend attend\n",
          f);
}

/* ---- fish ------------------------------------------------------------------ */

static void fish_text(FILE *f, const char *text)
{
    fputc('\'', f);
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            fputc('\\', f);
        fputc(*text, f);
    }
    fputc('\'', f);
}

static void fish_option(FILE *f, const cli_option *o, const char *here)
{
    fprintf(f, "complete -c attend -n '%s' -l %s", here, o->name);
    if (o->letter)
        fprintf(f, " -s %c", o->letter);
    if (o->choice) {
        fputs(" -x -a '", f);
        put_words(f, o->value);
        fputc('\'', f);
    } else if (is_model(o)) {
        fputs(" -r -F -k -a '(__attend_models)'", f);
    } else if (o->value) {
        fputs(is_file(o) ? " -r -F" : " -x", f);
    }
    fputs(" -d ", f);
    fish_text(f, o->help);
    fputc('\n', f);
}

static void fish_command(FILE *f, const cli_command *c, const char *condition)
{
    char here[256];
    snprintf(here, sizeof here, "%s; and __fish_seen_subcommand_from %s", condition, c->name);
    for (const cli_option *o = c->options; o && o->name; o++)
        fish_option(f, o, here);
    if (c->options)
        fish_option(f, &cli_quiet_option, here);
    if (c->words) {
        fprintf(f, "complete -c attend -n '%s' -a '", here);
        put_words(f, c->words);
        fputs("'\n", f);
    }
    if (takes_files(c))
        fprintf(f, "complete -c attend -n '%s' -F\n", here);
    for (const cli_command *const *of = c->commands ? NULL : followers(c, ""); of && *of; of++) {
        fprintf(f, "complete -c attend -n '%s' -a %s -d ", here, (*of)->name);
        fish_text(f, (*of)->summary);
        fputc('\n', f);
    }
    for (const cli_command *const *sub = c->commands; sub && *sub; sub++) {
        fprintf(f, "complete -c attend -n '%s' -a %s -d ", here, (*sub)->name);
        fish_text(f, (*sub)->summary);
        fputc('\n', f);
        fish_command(f, *sub, here);
    }
}

static void put_fish(FILE *f)
{
    fputs("# Completion for attend; written by: attend help --completion fish\n"
          "function __attend_models\n"
          "    set -l folder ~/.local/share/attend/models\n"
          "    set -q XDG_DATA_HOME; and set folder $XDG_DATA_HOME/attend/models\n"
          "    set -q ATTEND_MODELS; and set folder $ATTEND_MODELS\n"
          "    echo " CLI_TRANSLATOR_SHIPPED "\n"
          "    echo " CLI_VISION_SHIPPED "\n"
          "    echo " CLI_CAPTIONER_SHIPPED "\n"
          "    command ls $folder 2>/dev/null\n"
          "    set folder ~/.cache/huggingface/hub\n"
          "    set -q XDG_CACHE_HOME; and set folder $XDG_CACHE_HOME/huggingface/hub\n"
          "    set -q HF_HOME; and set folder $HF_HOME/hub\n"
          "    set -q HF_HUB_CACHE; and set folder $HF_HUB_CACHE\n"
          "    command ls $folder 2>/dev/null | " HUB_NAMES "\n"
          "end\n"
          "complete -c attend -f\n",
          f);
    for (const cli_command *const *c = cli_commands; *c; c++) {
        fprintf(f, "complete -c attend -n __fish_use_subcommand -a %s -d ", (*c)->name);
        fish_text(f, (*c)->summary);
        fputc('\n', f);
        fish_command(f, *c, "true");
    }
}

int cli_print_completion(FILE *f, int shell)
{
    if (shell == 1)
        fputs("#compdef attend\nautoload -U +X bashcompinit && bashcompinit\n", f);
    if (shell == 2)
        put_fish(f);
    else
        put_bash(f);
    return CLI_DONE;
}
