/* attend help: lists and describes the commands, from their tables. */
#include "cli/base/command.h"

#include <string.h>

static bool man;
static const char *man_folder;
static int shell = -1;

static const cli_option options[] = {
    {"man", 0, NULL, .flag = &man, .help = "print the manual page, of the command if one is given, as roff"},
    {"man-folder", 0, "FOLDER", .text = &man_folder, .writes = true, .quiet = true,
     .help = "write all manual pages to this folder, as attend-embed.1"},
    {"completion", 0, "bash|zsh|fish", .choice = &shell, .help = "print the completion script of this shell"},
    {0},
};

static int run(int n, char **arguments)
{
    if (man_folder)
        return cli_write_man(man_folder);
    if (shell >= 0)
        return cli_print_completion(stdout, shell);
    char path[64] = "attend";
    const cli_command *c = NULL;
    const cli_command *const *commands = cli_commands;
    for (int i = 0; i < n; i++) {
        if (!commands)
            return cli_misuse("\"%s\" has no commands of its own", path);
        c = cli_find(commands, path, arguments[i]);
        if (!c)
            return CLI_MISUSE;
        commands = c->commands;
        snprintf(path + strlen(path), sizeof path - strlen(path), " %s", c->name);
    }
    if (man)
        cli_print_man(stdout, c, path);
    else if (c)
        cli_print_help(stdout, c, path);
    else
        cli_print_overview(stdout);
    return CLI_DONE;
}

const cli_command cli_help = {
    .name = "help",
    .summary = "list the commands, or describe a command",
    .arguments = "[COMMAND...]",
    .max_arguments = 2,
    .examples = "attend help embed\n"
                "attend help --man embed | man -l -\n"
                "eval \"$(attend help --completion bash)\"",
    .options = options,
    .run = run,
};
