/* attend-serve: the program that `attend serve` starts, so that the tool does not load libmicrohttpd. */
#include "cli/base/process.h"
#include "server.h"

const cli_command *const cli_commands[] = {&cli_serve, NULL};

static int serve(int n, char **arguments)
{
    (void)n;
    (void)arguments;
    return serve_run(&cli_serve_settings);
}

static int run(int argc, char **argv) { return cli_run_here(&cli_serve, serve, argc, argv); }

int main(int argc, char **argv) { return cli_process_run(argc, argv, run); }
