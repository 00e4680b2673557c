/* attend: the tool. */
#include "cli.h"
#include "cli_list.h" /* written by the build: the commands in this folder's parent */
#include "end.h"

#include <errno.h>
#include <locale.h>
#include <string.h>

#define CLI_DECLARE(name) extern const cli_command cli_##name;
CLI_COMMAND_LIST(CLI_DECLARE)
#define CLI_ADDRESS(name) &cli_##name,
const cli_command *const cli_commands[] = {CLI_COMMAND_LIST(CLI_ADDRESS) NULL};

/* Whether all that was printed has arrived. */
static int close_output(int code)
{
    errno = 0;
    if (fflush(stdout) || ferror(stdout)) {
        if (!code)
            return cli_fail("standard output: %s", errno ? strerror(errno) : "not everything could be written");
    }
    return code;
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        cli_print_overview(stderr);
        return CLI_MISUSE;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        printf("attend %s\n", att_version());
        return CLI_DONE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        cli_print_overview(stdout);
        return CLI_DONE;
    }
    if (argv[1][0] == '-')
        return cli_misuse("a command comes first, not \"%s\"; \"attend help\" lists them", argv[1]);
    const cli_command *c = cli_find(cli_commands, "attend", argv[1]);
    char path[64];
    snprintf(path, sizeof path, "attend %s", argv[1]);
    return c ? cli_run(c, path, argc - 1, argv + 1) : CLI_MISUSE;
}

int main(int argc, char **argv)
{
    cli_end_prepare();
    setlocale(LC_CTYPE, ""); /* numbers keep their point */
    const int code = close_output(run(argc, argv));
    if (cli_signal)
        cli_end_by_signal(cli_signal);
    return code;
}
