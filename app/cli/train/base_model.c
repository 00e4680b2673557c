#include "base_model.h"
#include "cli/base/checkpoints.h"
#include "cli/base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int copy_file(const char *from, const char *to)
{
    char block[1 << 16];
    cli_output out;
    FILE *in = fopen(from, "rbe");
    if (!in)
        return cli_fail_errno(from);
    int code = cli_output_open(&out, to);
    if (!code) {
        for (size_t n; !code && (n = fread(block, 1, sizeof block, in)) > 0;)
            if (fwrite(block, 1, n, out.file) < n)
                code = cli_fail_errno(to);
        if (!code && ferror(in))
            code = cli_fail_errno(from);
        code = cli_output_close(&out, code);
    }
    fclose(in);
    return code;
}

/* Does another process train in the folder? It holds a lock (see att_training). */
static int check_lock(const char *folder)
{
    char path[sizeof(att_model_path) + 32];
    snprintf(path, sizeof path, "%s/lock", folder);
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const bool runs = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd);
    return runs ? cli_fail("%s: another process trains there", folder) : CLI_DONE;
}

static const char *const files[] = {"config.json", "items.json", "model.safetensors"};
enum { FILES = sizeof files / sizeof *files, PATH = sizeof(att_model_path) + 32 };

/* Copies the files of the model from a folder to another one, or moves them; to NULL: removes those that exist. */
static int for_files(const char *from, const char *to, bool copy)
{
    char old[PATH], new[PATH];
    int code = CLI_DONE;
    for (int i = 0; !code && i < FILES; i++) {
        snprintf(old, sizeof old, "%s/%s", from, files[i]);
        snprintf(new, sizeof new, "%s/%s", to ? to : "", files[i]);
        if (copy)
            code = copy_file(old, new);
        else if (!to)
            unlink(old);
        else if (rename(old, new))
            code = cli_fail_errno(new);
    }
    return code;
}

static int make_folder(const char *path)
{
    return mkdir(path, 0777) && errno != EEXIST ? cli_fail_errno(path) : CLI_DONE;
}

/* The training that was there stays. */
static void undo(const char *folder, const char *next)
{
    cli_checkpoints_move(next, folder);
    for_files(next, NULL, false);
    rmdir(next);
}

int cli_base_model_begin(const char *folder, att_model_path *next)
{
    if (snprintf(next->text, sizeof next->text, "%s/next", folder) >= (int)sizeof next->text)
        return cli_fail("%.80s...: the path is too long", folder);
    int code = check_lock(folder);
    if (!code)
        code = make_folder(next->text);
    if (code)
        return code;
    code = for_files(folder, next->text, true);
    if (!code)
        code = cli_checkpoints_move(folder, next->text);
    if (code)
        undo(folder, next->text);
    return code;
}

int cli_base_model_end(const char *folder, const att_model_path *next, att_model_path *base, int code)
{
    snprintf(base->text, sizeof base->text, "%.4000s/base", folder);
    if (!code)
        code = make_folder(base->text);
    if (!code)
        code = for_files(next->text, base->text, false);
    if (!code)
        code = cli_checkpoints_remove(next->text);
    if (code)
        undo(folder, next->text);
    rmdir(next->text);
    return code;
}
