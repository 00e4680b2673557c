/* attend: the tool. */
#include "cli.h"
#include "cli_list.h" /* written by the build: the commands in this folder's parent */

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <string.h>

#define CLI_DECLARE(name) extern const cli_command cli_##name;
CLI_COMMAND_LIST(CLI_DECLARE)
#define CLI_ADDRESS(name) &cli_##name,
const cli_command *const cli_commands[] = {CLI_COMMAND_LIST(CLI_ADDRESS) NULL};

/* Atomically, as other threads look at it (att_config.cancel). */
static void on_signal(int number) { __atomic_store_n(&cli_signal, number, __ATOMIC_RELAXED); }

/* The first signal asks for a clean end, the second one ends. A closed pipe ends as it does other tools. */
static void take_signals(void)
{
    const int clean[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND};
    for (size_t i = 0; i < sizeof clean / sizeof *clean; i++) {
        struct sigaction old;
        sigaction(clean[i], NULL, &old);
        if (old.sa_handler != SIG_IGN) /* nohup */
            sigaction(clean[i], &a, NULL);
    }
    signal(SIGPIPE, SIG_DFL);
}

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
    setlocale(LC_CTYPE, ""); /* numbers keep their point */
    take_signals();
    int code = close_output(run(argc, argv));
    return cli_signal ? 128 + cli_signal : code;
}
