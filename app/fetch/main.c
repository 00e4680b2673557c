/* attend-fetch: the program that `attend fetch` starts, so that the tool does not load libcurl. */
#include "cli/base/process.h"
#include "cli/fetch/fetch.h"
#include "hub.h"

const cli_command *const cli_commands[] = {&cli_fetch, NULL};

static int fetch(int n, char **arguments)
{
    if (n > 0 && cli_fetch_is_of_hub(arguments[0]))
        return hub_fetch(arguments[0], n > 1 ? arguments[1] : NULL);
    if (n > 1)
        return cli_misuse("\"%s\" is one argument too many: only models named OWNER/NAME have files to choose from",
                          arguments[1]);
    return cli_fetch_known(n ? arguments[0] : NULL);
}

static int run(int argc, char **argv) { return cli_run_here(&cli_fetch, fetch, argc, argv); }

int main(int argc, char **argv) { return cli_process_run(argc, argv, run); }
