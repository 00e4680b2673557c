/* The beginning and the end of every program of attend. */
#ifndef CLI_BASE_PROCESS_H
#define CLI_BASE_PROCESS_H

/* Runs a program: prepares signals and streams, calls `run` with enough stack, and checks that all output was written.
 * main calls only this function. Returns the exit code, or ends the process by the signal that it has received. */
int cli_process_run(int argc, char **argv, int (*run)(int argc, char **argv));

/* Runs the tool (tool.c): the main of the program attend, and what the Python package calls. Returns the exit code. */
int cli_tool(int argc, char **argv);

#endif
