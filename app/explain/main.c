/* attend-explain: the program that `attend explain` starts, so that the tool does not have the chapters in it. */
#include "cli/base/process.h"
#include "cli/explain.h"

const cli_command *const cli_commands[] = {&cli_explain, NULL};

static int run(int argc, char **argv) { return cli_run_here(&cli_explain, explain_run, argc, argv); }

int main(int argc, char **argv) { return cli_process_run(argc, argv, run); }
