#include "lock.h"

#include <attend_model.h>

#include <errno.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

int cli_lock(int fd, const char *path, const char *name)
{
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
        return CLI_DONE; /* or a file system without locks */
    cli_note("another process downloads %s: waiting for it", name);
    if (flock(fd, LOCK_EX))
        return cli_signal ? CLI_INTERRUPTED : cli_fail_errno(path);
    return CLI_DONE;
}

bool cli_lock_is_at(int fd, const char *path)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

int cli_make_folders(const char *path)
{
    att_model_path part;
    snprintf(part.text, sizeof part.text, "%s", path);
    for (char *slash = part.text; (slash = strchr(slash + 1, '/'));) {
        *slash = '\0';
        if (mkdir(part.text, 0777) && errno != EEXIST)
            return cli_fail_errno(part.text);
        *slash = '/';
    }
    return mkdir(path, 0777) && errno != EEXIST ? cli_fail_errno(path) : CLI_DONE;
}

int cli_make_folder_of(const char *path)
{
    att_model_path folder;
    snprintf(folder.text, sizeof folder.text, "%s", path);
    char *slash = strrchr(folder.text, '/');
    if (!slash || slash == folder.text)
        return CLI_DONE;
    *slash = '\0';
    return cli_make_folders(folder.text);
}
