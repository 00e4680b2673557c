/* Ctrl-C during a call of the library. Python's own handler only notes the signal until the call returns, so while the
 * main thread is in a long call, a handler in front of it sets a flag by which the library cancels the call. */
#include <signal.h>
#include <unistd.h>

#include "module.h"

static volatile int interrupted;
static struct sigaction pythons; /* Python's handler, while ours is in front of it */
static int depth;                /* long calls of the main thread: a callback may make another */
static pid_t owner;              /* whose main thread: a child may have been forked by another one */

static void on_interrupt(int number, siginfo_t *info, void *context)
{
    interrupted = 1;
    if (pythons.sa_flags & SA_SIGINFO)
        pythons.sa_sigaction(number, info, context);
    else
        pythons.sa_handler(number);
}

static bool is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == on_interrupt;
}

static void put_in_front(void)
{
    if (sigaction(SIGINT, NULL, &pythons) || is_ours(&pythons))
        return;
    if (!(pythons.sa_flags & SA_SIGINFO) && (pythons.sa_handler == SIG_DFL || pythons.sa_handler == SIG_IGN))
        return; /* it ends the process, or shall do nothing */
    struct sigaction action = pythons;
    action.sa_flags |= SA_SIGINFO;
    action.sa_sigaction = on_interrupt;
    sigaction(SIGINT, &action, NULL);
}

/* A callback may have set another handler meanwhile, which then stays. */
static void take_back(void)
{
    struct sigaction now;
    if (!sigaction(SIGINT, NULL, &now) && is_ours(&now))
        sigaction(SIGINT, &pythons, NULL);
}

void long_call_begin(long_call *call)
{
    pid_t process = getpid();
    call->is_main = gettid() == process; /* Python calls handlers in the main thread alone */
    if (!call->is_main)
        return;
    if (owner != process)
        owner = process, depth = 0;
    if (depth++ == 0)
        put_in_front();
    call->before = att_cancel_by(&interrupted);
}

bool long_call_again(long_call *call, att_status status)
{
    if (!call->is_main)
        return false;
    bool cancelled = interrupted && status == ATT_ERR_CANCELLED && !PyErr_Occurred();
    interrupted = 0;
    if (cancelled && PyErr_CheckSignals() == 0)
        return true; /* the program's handler raised nothing: the call goes on, from its start */
    att_cancel_by(call->before);
    if (--depth == 0)
        take_back();
    return false;
}
