/* attend-explain: the program that `attend explain` starts, so that the tool does not have the chapters in it. */
#include "cli/base/process.h"
#include "cli/explain.h"

const cli_command *const cli_commands[] = {&cli_explain, NULL};

static int run(int argc, char **argv)
{
    static cli_command own;
    own = cli_explain;
    own.program = NULL;
    own.run = explain_run;
    return cli_run(&own, "attend explain", argc, argv);
}

int main(int argc, char **argv) { return cli_process_run(argc, argv, run); }
