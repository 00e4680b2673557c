#include "base_model.h"
#include "cli/base/output.h"
#include "cli/model/checkpoints.h"

#include <dirent.h>
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

/* Returns whether another process trains in the folder: it holds a lock (see att_training). */
static bool is_locked(const char *folder)
{
    char path[sizeof(att_model_path) + 32];
    snprintf(path, sizeof path, "%s/lock", folder);
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const bool runs = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd);
    return runs;
}

static const char weights[] = "model.safetensors";
static const char *const files[] = {"config.json", "items.json", weights}; /* the weights are the last */
enum { FILES = sizeof files / sizeof *files, PATH = sizeof(att_model_path) + 32 };

static bool exists(const char *folder, const char *name)
{
    char path[PATH];
    struct stat s;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return lstat(path, &s) == 0;
}

/* Copies the files of the model from a folder to another one, or moves those that exist. */
static int for_files(const char *from, const char *to, bool copy)
{
    char old[PATH], new[PATH];
    int code = CLI_DONE;
    for (int i = 0; !code && i < FILES; i++) {
        snprintf(old, sizeof old, "%s/%s", from, files[i]);
        snprintf(new, sizeof new, "%s/%s", to, files[i]);
        if (copy)
            code = copy_file(old, new);
        else if (rename(old, new) && errno != ENOENT)
            code = cli_fail_errno(new);
    }
    return code;
}

static int make_folder(const char *path)
{
    return mkdir(path, 0777) && errno != EEXIST ? cli_fail_errno(path) : CLI_DONE;
}

static int path_of(const char *folder, const char *name, att_model_path *path)
{
    return snprintf(path->text, sizeof path->text, "%s/%s", folder, name) < (int)sizeof path->text
               ? CLI_DONE
               : cli_fail("%.80s...: the path is too long", folder);
}

/* ---- beginning with the model, and what a killed process has left of that */

/* While the next training begins, FOLDER/next is locked. It has the model and the checkpoints of the training before;
 * once it has the options of the next one, too, that has begun. */
static int next_lock = -1;
static const char begun[] = "training.json";

static bool lock_next(const char *next)
{
    next_lock = open(next, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return next_lock >= 0 && !(flock(next_lock, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK);
}

static void unlock_next(void)
{
    if (next_lock >= 0)
        close(next_lock);
    next_lock = -1;
}

/* Removes the folder, with all complete and unfinished files of a process. */
static void remove_next(const char *next)
{
    DIR *d = opendir(next);
    for (const struct dirent *e; d && (e = readdir(d));)
        for (int i = 0; i <= FILES; i++) {
            const char *name = i < FILES ? files[i] : begun;
            if (strncmp(e->d_name, name, strlen(name)) == 0)
                unlinkat(dirfd(d), e->d_name, 0);
        }
    if (d)
        closedir(d);
    rmdir(next);
}

/* The training that was there stays. */
static int undo(const char *folder, const char *next)
{
    const int code = cli_checkpoints_move(next, folder);
    if (!code)
        remove_next(next);
    return code;
}

/* The next training is the one of the folder. Whatever a killed process has done of this may be done once more. */
static int complete(const char *folder, const char *next)
{
    char from[PATH], to[PATH];
    att_model_path base;
    int code = path_of(folder, "base", &base);
    if (!code)
        code = make_folder(base.text);
    if (!code)
        code = for_files(next, base.text, false);
    if (!code)
        code = cli_checkpoints_remove(next);
    snprintf(from, sizeof from, "%s/%s", next, begun);
    snprintf(to, sizeof to, "%s/%s", folder, begun);
    if (!code && rename(from, to))
        code = cli_fail_errno(to);
    if (!code)
        remove_next(next);
    return code;
}

/* Checks that the model can move to FOLDER/base. */
static int check_base(const char *folder)
{
    char path[PATH];
    struct stat s;
    att_model_path base;
    int code = path_of(folder, "base", &base);
    if (!code && lstat(base.text, &s) == 0 && !S_ISDIR(s.st_mode))
        code = cli_fail("%s: is not a folder", base.text);
    for (int i = 0; !code && i < FILES; i++) {
        snprintf(path, sizeof path, "%s/%s", base.text, files[i]);
        if (lstat(path, &s) == 0 && S_ISDIR(s.st_mode))
            code = cli_fail("%s: is a folder", path);
    }
    return code;
}

int cli_base_model_recover(const char *folder)
{
    att_model_path next;
    int code = path_of(folder, "next", &next);
    if (code || !exists(folder, "next"))
        return code;
    if (!lock_next(next.text) || is_locked(folder)) { /* by a process that is running */
        unlock_next();
        return CLI_DONE;
    }
    code = exists(next.text, begun) ? complete(folder, next.text) : undo(folder, next.text);
    unlock_next();
    return code;
}

int cli_base_model_begin(const char *folder, att_model_path *next)
{
    att_model_path base;
    int code = path_of(folder, "next", next);
    if (!code)
        code = path_of(folder, "base", &base);
    if (!code && is_locked(folder))
        code = cli_fail("%s: another process trains there", folder);
    if (!code)
        code = make_folder(next->text);
    if (!code && !lock_next(next->text))
        code = cli_fail("%s: another process begins a training there", folder);
    if (code)
        return code;
    code = for_files(exists(folder, weights) ? folder : base.text, next->text, true);
    if (!code)
        code = cli_checkpoints_move(folder, next->text);
    if (code) {
        undo(folder, next->text);
        unlock_next();
    }
    return code;
}

int cli_base_model_end(cli_training *t, const att_model_path *next, int code)
{
    const char *folder = t->options.folder;
    if (!code)
        code = check_base(folder);
    if (!code)
        code = cli_training_options_write(t, next->text, 0);
    if (code)
        undo(folder, next->text);
    else
        code = complete(folder, next->text);
    unlock_next();
    return code;
}

/* ---- the model of a training that begins once more */

/* Sets *has: whether the folder has the weights of FOLDER/base. */
static int has_weights_of(const char *folder, const char *base, bool *same)
{
    char path[PATH], sum[2][CLI_CHECKSUM] = {"", ""};
    const char *const folders[] = {folder, base};
    int code = CLI_DONE;
    for (int i = 0; !code && i < 2 && exists(folder, weights); i++) {
        snprintf(path, sizeof path, "%s/%s", folders[i], weights);
        code = cli_file_checksum(path, sum[i]);
    }
    *same = *sum[0] && !strcmp(sum[0], sum[1]);
    return code;
}

int cli_base_model_restore(const char *folder, const char *base)
{
    char path[PATH];
    bool same;
    const int code = has_weights_of(folder, base, &same);
    if (code || same)
        return code;
    snprintf(path, sizeof path, "%s/%s", folder, weights);
    if (unlink(path) && errno != ENOENT) /* other files change only while there are none */
        return cli_fail_errno(path);
    return for_files(base, folder, true);
}
