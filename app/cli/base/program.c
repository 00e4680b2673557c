#include "program.h"
#include "command.h"
#include "signals.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* Ends a process group by SIGTERM and waits for all processes in it: its leader may be a script that waits for Python,
 * whose files may be removed only when it has ended. */
static void end_group(pid_t leader)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* when the leader has ended, the others become children of this process */
    kill(-leader, SIGTERM);
    while (waitpid(-leader, NULL, 0) > 0 || errno == EINTR)
        ;
}

/* Waits for a process, and ends its group if a signal is received. *exit: its exit status. The function polls, because
 * a signal could arrive between the check for it and a wait without limit. Returns 0, or errno. */
static int wait_for(pid_t pid, int *exit)
{
    const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
    pid_t ended;
    int status = 0;
    while ((ended = waitpid(pid, &status, WNOHANG)) == 0) {
        if (cli_signal) {
            end_group(pid);
            break;
        }
        nanosleep(&pause, NULL);
    }
    if (ended < 0)
        return errno;
    *exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return 0;
}

/* Adds a standard stream of the program; 0, or errno. */
static int add_stream(posix_spawn_file_actions_t *actions, int from, int to)
{
    return from < 0
               ? posix_spawn_file_actions_addopen(actions, to, "/dev/null", to == STDIN_FILENO ? O_RDONLY : O_WRONLY, 0)
               : posix_spawn_file_actions_adddup2(actions, from, to);
}

static int set_actions(posix_spawn_file_actions_t *actions, const cli_program *p)
{
    int failed = add_stream(actions, p->in, STDIN_FILENO);
    if (!failed)
        failed = add_stream(actions, p->out, STDOUT_FILENO);
    if (!failed)
        failed = add_stream(actions, p->err, STDERR_FILENO);
    return failed || !p->folder ? failed : posix_spawn_file_actions_addchdir_np(actions, p->folder);
}

/* Sets the attributes of the program, in which no signal is blocked. */
static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, pipe;
    sigemptyset(&none);
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    int failed = posix_spawnattr_setsigmask(attributes, &none);
    if (!failed)
        failed = posix_spawnattr_setsigdefault(attributes, &pipe);
    return failed ? failed
                  : posix_spawnattr_setflags(attributes,
                                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

/* Starts a program. Signals are blocked until its process id is stored. */
static int spawn(pid_t *pid, const char *const *arguments, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes)
{
    sigset_t before;
    cli_end_block(&before);
    const int failed =
        posix_spawnp(pid, arguments[0], actions, attributes, (char *const *)(uintptr_t)arguments, environ);
    if (!failed)
        cli_signals_forward(*pid);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

/* 0, or why it failed, as errno. */
static int start(pid_t *pid, const cli_program *p)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed)
        return failed;
    failed = posix_spawnattr_init(&attributes);
    if (!failed) {
        failed = set_actions(&actions, p);
        if (!failed)
            failed = set_attributes(&attributes);
        if (!failed)
            failed = spawn(pid, p->arguments, &actions, &attributes);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

int cli_program_run(const cli_program *p, int *status)
{
    pid_t pid;
    signal(SIGCHLD, SIG_DFL); /* who starts this process may have it ignored, and then no status can be waited for */
    int failed = start(&pid, p);
    if (failed)
        return failed;
    failed = wait_for(pid, status);
    cli_signals_forward(0);
    return failed;
}

/* ---- a program instead of this one */

int cli_program_become(const char *command, const char *name, char **arguments)
{
    static const char *const from_here[] = {"", ATT_LIBEXEC_FROM_PROGRAM "/"};
    enum { FOLDERS = sizeof from_here / sizeof *from_here };
    char here[PATH_MAX], path[FOLDERS][PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", here, sizeof here - 1);
    if (n < 0)
        return cli_fail_errno("/proc/self/exe");
    here[n] = '\0';
    strrchr(here, '/')[1] = '\0';
    for (int i = 0; i < FOLDERS; i++) {
        const bool fits = snprintf(path[i], PATH_MAX, "%s%s%s", here, from_here[i], name) < PATH_MAX;
        arguments[0] = path[i];
        errno = ENAMETOOLONG;
        if (fits)
            execv(path[i], arguments);
        if (errno != ENOENT && errno != ENOTDIR)
            return cli_fail_errno(path[i]);
    }
    return cli_fail("\"%s\" is the program %s, which is neither %s nor %s; install attend again, with all its programs",
                    command, name, path[0], path[1]);
}
