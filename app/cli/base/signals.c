#include "signals.h"
#include "command.h"
#include "leftovers.h"
#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

volatile int cli_signal;
static volatile sig_atomic_t later;

/* ---- output files in progress, and a program that writes them */

enum { MAX_FILES = 8 }; /* a command writes two at most */
static char *volatile begun[MAX_FILES];
static volatile pid_t started; /* the group of a program; 0: none */

static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
enum { ENDS = sizeof ends / sizeof *ends };

static sigset_t all_ends(void)
{
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < ENDS; i++)
        sigaddset(&set, ends[i]);
    return set;
}

void cli_end_block(sigset_t *before)
{
    const sigset_t set = all_ends();
    pthread_sigmask(SIG_BLOCK, &set, before);
}

void cli_signals_forward(pid_t group) { started = group; }

int cli_end_create(char *path, mode_t mode)
{
    sigset_t before;
    int free_slot = 0;
    while (free_slot < MAX_FILES && begun[free_slot])
        free_slot++;
    if (free_slot == MAX_FILES) {
        errno = EMFILE;
        return -1;
    }
    cli_end_block(&before); /* no signal between creation and entry in the list */
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode), why = errno;
    if (fd >= 0)
        begun[free_slot] = path;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = why;
    return fd;
}

void cli_end_keeps(const char *path)
{
    for (int i = 0; path && i < MAX_FILES; i++)
        if (begun[i] == path)
            begun[i] = NULL;
}

/* Removes temporary files. Calls only async-signal-safe functions. */
static void clean_up(void)
{
    for (int i = 0; i < MAX_FILES; i++)
        if (begun[i])
            unlink(begun[i]);
    cli_remove_leftovers();
    if (started > 0)
        kill(-started, SIGTERM);
    cli_progress_clear();
}

/* ---- signals */

void cli_end_by_signal(int number)
{
    sigset_t one;
    signal(number, SIG_DFL);
    sigemptyset(&one);
    sigaddset(&one, number);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    raise(number);
}

/* The flag is set atomically, as other threads read it (att_config.cancel). */
static void on_signal(int number)
{
    if (later && !cli_signal && number != SIGPIPE) {
        __atomic_store_n(&cli_signal, number, __ATOMIC_RELAXED);
        return;
    }
    clean_up();
    cli_end_by_signal(number);
}

void cli_end_later(void) { later = 1; }

bool cli_end_forget(void)
{
    if (cli_signal != SIGINT)
        return false;
    __atomic_store_n(&cli_signal, 0, __ATOMIC_RELAXED);
    return true;
}

void cli_end_answered(void) { __atomic_store_n(&cli_signal, 0, __ATOMIC_RELAXED); }

/* Blocks or unblocks SIGPIPE, which goes to the thread that writes and is pending there while it is blocked. */
static void block_pipe(int how)
{
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGPIPE);
    pthread_sigmask(how, &one, NULL);
}

void cli_end_hold_pipe(void) { block_pipe(SIG_BLOCK); }
void cli_end_release_pipe(void) { block_pipe(SIG_UNBLOCK); }

/* ---- mapped files */

/* Finds the path of the file that is mapped at `at`, truncated to fit, in /proc/self/maps, whose lines are
 * "5581a000-5581c000 r--p 00000000 08:01 1234 /path". Returns false if there is none. */
static bool mapped_file(uintptr_t at, char *path, size_t size)
{
    enum { FIRST, LAST, REST, PATH } part = FIRST;
    char text[1024];
    uintptr_t bound[2] = {0, 0};
    size_t used = 0;
    const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    for (ssize_t n; fd >= 0 && (n = read(fd, text, sizeof text)) > 0;)
        for (ssize_t i = 0; i < n; i++) {
            const char c = text[i];
            if (c == '\n') {
                if (used > 0 && bound[0] <= at && at < bound[1]) {
                    path[used] = '\0';
                    return true;
                }
                part = FIRST;
                bound[0] = bound[1] = used = 0;
            } else if (part < REST) {
                if (c == '-' || c == ' ')
                    part++;
                else
                    bound[part] = 16 * bound[part] + (uintptr_t)(c <= '9' ? c - '0' : c - 'a' + 10);
            } else if (part == PATH || c == '/') {
                part = PATH;
                if (used < size - 1)
                    path[used++] = c;
            }
        }
    return false;
}

/* A mapped file was truncated and read beyond its end. Several threads may get here at once; the first one reports. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
    static volatile int told;
    char path[1024];
    (void)context;
    if (info->si_code != BUS_ADRERR) { /* e.g. a hardware memory error */
        clean_up();
        signal(number, SIG_DFL); /* the signal is raised again */
        return;
    }
    if (!mapped_file((uintptr_t)info->si_addr, path, sizeof path))
        strcpy(path, "a file that is mapped into memory");
    if (__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED))
        for (;;)
            pause();
    clean_up();
    cli_terminal_put("attend: ");
    cli_terminal_put(path);
    cli_terminal_put(": was cut short while it was in use, or cannot be read any more\n");
    _exit(CLI_FAILED);
}

/* ---- memory */

void cli_end_without_memory(void)
{
    clean_up();
    cli_fail_memory();
    _exit(CLI_FAILED);
}

/* Allocates memory for jansson, and ends the process if that fails. jansson's parser does not notice that a token could
 * not grow (lex_save), loses characters, and writes out of bounds at the closing quote. */
static void *allocate(size_t bytes)
{
    void *p = malloc(bytes);
    if (!p)
        cli_end_without_memory();
    return p;
}

/* ---- at the start */

/* Opens closed standard descriptors in a mode that makes their use fail; otherwise files opened later would get these
 * numbers and receive messages. */
static void reserve_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0 &&
            open("/", O_RDONLY) < 0)
            _exit(CLI_FAILED);
}

/* A file has reached the limit of a shell (ulimit -f): the call that writes fails with EFBIG, and its caller reports
 * it. Unlike an ignored signal, this is not passed on to programs that are started. */
static void on_file_limit(int number) { (void)number; }

static void set_signal_handlers(void)
{
    const struct sigaction a = {.sa_handler = on_signal, .sa_mask = all_ends()},
                           bus = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO},
                           limit = {.sa_handler = on_file_limit, .sa_flags = SA_RESTART};
    const sigset_t set = all_ends();
    for (int i = 0; i < ENDS; i++) {
        struct sigaction old;
        sigaction(ends[i], NULL, &old);
        if (old.sa_handler != SIG_IGN || ends[i] == SIGPIPE) /* nohup */
            sigaction(ends[i], &a, NULL);
    }
    sigaction(SIGBUS, &bus, NULL);
    sigaction(SIGXFSZ, &limit, NULL);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL); /* whatever the parent process has blocked */
}

void cli_end_prepare(void)
{
    reserve_descriptors();
    set_signal_handlers();
    json_set_alloc_funcs(allocate, free);
}

/* A signal that arrives just before read() would have no effect until the next line, so cli_signal is checked
 * repeatedly. */
ssize_t cli_read_unless_signaled(char *to, size_t bytes, void (*wake)(void *user), void *user)
{
    enum { MILLISECONDS = 100 };
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    while (!cli_signal && poll(&input, 1, MILLISECONDS) == 0)
        if (wake)
            wake(user);
    if (!cli_signal)
        return read(STDIN_FILENO, to, bytes);
    errno = EINTR;
    return -1;
}
