#include "log.h"
#include "cli/base/command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Refuses anything but a regular file as the log. */
static int check_file(const cli_log *l)
{
    struct stat s;
    if (l->fd < 0 && errno != ELOOP)
        return cli_fail_errno(l->path);
    if (l->fd >= 0 && fstat(l->fd, &s))
        return cli_fail_errno(l->path);
    if (l->fd < 0 || !S_ISREG(s.st_mode))
        return cli_fail("%s: is %s, not a file", l->path, l->fd < 0 ? "a symbolic link" : "something else");
    if (s.st_nlink > 1)
        return cli_fail("%s: is a file with another name, too; a training writes to its own only", l->path);
    return CLI_DONE;
}

/* Counts the bytes to keep: complete lines up to the first one of a step after `step`. */
static int count_kept(cli_log *l, int64_t step)
{
    const int fd = dup(l->fd);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
    if (!f) {
        const int code = cli_fail_errno(l->path);
        if (fd >= 0)
            close(fd);
        return code;
    }
    char *line = NULL;
    size_t room = 0;
    long long its_step;
    for (ssize_t n; (n = getline(&line, &room, f)) > 0 && line[n - 1] == '\n'; l->bytes += n)
        if (sscanf(line, "{\"step\": %18lld", &its_step) == 1 && its_step > step)
            break;
    const int code = ferror(f) ? cli_fail_errno(l->path) : CLI_DONE;
    free(line);
    fclose(f);
    return code;
}

int cli_log_open(cli_log *l, const char *folder, int64_t step)
{
    *l = (cli_log){0};
    if (snprintf(l->path, sizeof l->path, "%s/log.jsonl", folder) >= (int)sizeof l->path)
        return cli_fail("%.80s...: the path is too long", folder);
    struct stat s;
    l->made = lstat(l->path, &s) && errno == ENOENT;
    l->fd = open(l->path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    int code = check_file(l);
    if (!code)
        code = count_kept(l, step);
    if (!code && (fstat(l->fd, &s) || (s.st_size > l->bytes && ftruncate(l->fd, l->bytes))))
        code = cli_fail_errno(l->path);
    return code ? cli_log_close(l, code) : code;
}

int cli_log_add(cli_log *l, const char *line)
{
    const size_t bytes = strlen(line);
    for (size_t done = 0; done < bytes;) {
        const ssize_t n = write(l->fd, line + done, bytes - done);
        if (n < 0 && errno != EINTR) {
            const int code = cli_fail_errno(l->path);
            if (done > 0 && ftruncate(l->fd, l->bytes)) {
                /* a resumed training truncates it */
            }
            return code;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    l->bytes += (int64_t)bytes;
    return CLI_DONE;
}

int cli_log_flush(const cli_log *l) { return fdatasync(l->fd) && errno != EINVAL ? cli_fail_errno(l->path) : CLI_DONE; }

int cli_log_close(cli_log *l, int code)
{
    if (l->fd >= 0 && close(l->fd) && !code)
        code = cli_fail_errno(l->path);
    l->fd = -1;
    return code;
}

void cli_log_discard(cli_log *l)
{
    if (l->fd >= 0 && l->made)
        unlink(l->path);
    cli_log_close(l, CLI_FAILED);
}
