#include "process.h"
#include "command.h"
#include "signals.h"
#include "terminal.h"

#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

/* ---- with enough stack */

typedef struct program {
    int argc;
    char **argv;
    int (*run)(int argc, char **argv);
    int code;
} program;

static void *run_program(void *arg)
{
    program *p = arg;
    p->code = p->run(p->argc, p->argv);
    return NULL;
}

/* Runs in a thread with a stack of its own, which receives all signals; false: there is no memory for it. */
static bool run_in_thread(program *p)
{
    enum { STACK = 8 << 20 };
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before;
    if (pthread_attr_init(&attributes))
        return false;
    const bool started =
        !pthread_attr_setstacksize(&attributes, STACK) && !pthread_create(&thread, &attributes, run_program, p);
    pthread_attr_destroy(&attributes);
    if (!started)
        return false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_join(thread, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return true;
}

/* `ulimit -s 64` leaves less stack than paths and attention take. */
static int run_with_stack(int argc, char **argv, int (*run)(int argc, char **argv))
{
    enum { ENOUGH = 1 << 20 };
    program p = {argc, argv, run, CLI_FAILED};
    struct rlimit stack;
    if (getrlimit(RLIMIT_STACK, &stack) || stack.rlim_cur >= ENOUGH || !run_in_thread(&p))
        run_program(&p);
    return p.code;
}

/* Closes standard output, and checks that all output was written. */
static int close_output(int code)
{
    errno = 0;
    if (cli_terminal_end() || ferror(stdout)) {
        if (!code)
            return cli_fail("standard output: %s", errno ? strerror(errno) : "not everything could be written");
    }
    return code;
}

int cli_process_run(int argc, char **argv, int (*run)(int argc, char **argv))
{
    cli_end_prepare();
    if (!cli_terminal_prepare())
        cli_end_without_memory();
    setlocale(LC_CTYPE, ""); /* numbers keep the decimal point */
    const int code = close_output(run_with_stack(argc, argv, run));
    if (cli_signal)
        cli_end_by_signal(cli_signal);
    return code;
}
