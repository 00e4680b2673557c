/* Contexts, and the notes that the library makes in them. */
#include "command.h"
#include "signals.h"

#include <pthread.h>
#include <string.h>

bool cli_keep_notes;
static char *notes[8]; /* as many as fit */
enum { MAX_NOTES = sizeof notes / sizeof *notes };

/* Returns whether the note is the last one again, as of many images of one kind. Threads may call it. */
static bool is_repeated(const char *text)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static char last[1024];
    pthread_mutex_lock(&lock);
    const bool repeated = !strcmp(last, text);
    snprintf(last, sizeof last, "%s", text);
    pthread_mutex_unlock(&lock);
    return repeated;
}

static void pass_note(void *user, const char *text)
{
    (void)user;
    if (is_repeated(text))
        return;
    int n = 0;
    while (n < MAX_NOTES && notes[n])
        n++;
    if (!cli_keep_notes)
        cli_note("%s", text);
    else if (n < MAX_NOTES && !(notes[n] = strdup(text)))
        cli_end_without_memory();
}

const char *cli_kept_note(int i) { return i < MAX_NOTES ? notes[i] : NULL; }

int cli_open_with(att_ctx **ctx, int64_t threads, const volatile int *cancel)
{
    return cli_status(
        NULL, att_open(ctx, ATT_OPTIONS(att_config, .n_threads = (int)threads, .cancel = cancel, .note = pass_note)));
}

int cli_open(att_ctx **ctx, int64_t threads) { return cli_open_with(ctx, threads, &cli_signal); }
