/* Runs other programs, without a shell. */
#ifndef CLI_PROGRAM_H
#define CLI_PROGRAM_H

typedef struct cli_program {
    const char *const *arguments; /* up to NULL; the first is the program, found in $PATH */
    const char *folder;           /* folder in which the program runs, or NULL: the current one */
    int in, out, err;             /* descriptors for its standard streams; -1: /dev/null */
} cli_program;

/* Runs it in a process group of its own and waits for its end. *status: its exit status, or 128 + the signal that ended
 * it. Returns 0, or why it could not be started, as errno. A signal that ends this process ends the program as well;
 * after cli_end_later, which leaves that to the caller, it ends only the program, with all processes in its group. */
int cli_program_run(const cli_program *p, int *status);

/* Replaces this process by a program that comes with the tool: one of this name beside the file of this program, as in
 * a build folder, or where such programs are installed; never one of $PATH. arguments, up to NULL; the first becomes
 * the program's path. Nothing may have been printed or opened. Returns only if that fails: CLI_FAILED, after a message
 * that names the command.
 */
int cli_program_become(const char *command, const char *name, char **arguments);

#endif
