/* What every program of attend does around its work. */
#ifndef CLI_BASE_PROCESS_H
#define CLI_BASE_PROCESS_H

/* Called by main, first and alone: prepares signals and streams, calls `run` with stack enough, and sees that all
 * output was written. Returns the exit code, or ends the process by the signal that it has received. */
int cli_process_run(int argc, char **argv, int (*run)(int argc, char **argv));

#endif
