#include "checkpoints.h"
#include "cli/base/command.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* "checkpoint-0000001200.safetensors" or "checkpoint-0000001200-pause.safetensors" */
static bool is_checkpoint(const char *name)
{
    static const char begin[] = "checkpoint-", end[] = ".safetensors";
    const size_t n = strlen(name);
    return n > sizeof begin + sizeof end && n < sizeof((cli_checkpoints *)0)->newest &&
           !strncmp(name, begin, sizeof begin - 1) && !strcmp(name + n - (sizeof end - 1), end);
}

void cli_checkpoints_find(const char *folder, cli_checkpoints *c)
{
    struct stat s;
    *c = (cli_checkpoints){0};
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (!is_checkpoint(e->d_name) || fstatat(dirfd(d), e->d_name, &s, AT_SYMLINK_NOFOLLOW))
            continue;
        c->n++;
        c->bytes += s.st_size;
        if (strcmp(e->d_name, c->newest) > 0)
            strcpy(c->newest, e->d_name);
    }
    if (d)
        closedir(d);
    /* If two checkpoints have the same step, the name of the pause comes first. */
    c->paused = strstr(c->newest, "-pause") != NULL;
}

/* Moves them to a folder of the descriptor `to`; -1: removes them. */
static int move_all(const char *folder, int to)
{
    int code = CLI_DONE;
    DIR *d = opendir(folder);
    if (!d)
        return cli_fail_errno(folder);
    for (struct dirent *e; !code && (e = readdir(d));)
        if (is_checkpoint(e->d_name) &&
            (to < 0 ? unlinkat(dirfd(d), e->d_name, 0) : renameat(dirfd(d), e->d_name, to, e->d_name)))
            code = cli_fail("%s/%s: %s", folder, e->d_name, strerror(errno));
    closedir(d);
    return code;
}

int cli_checkpoints_remove(const char *folder) { return move_all(folder, -1); }

int cli_checkpoints_move(const char *folder, const char *to)
{
    const int fd = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return cli_fail_errno(to);
    const int code = move_all(folder, fd);
    close(fd);
    return code;
}

int cli_training_file_path(const char *folder, char path[CLI_TRAINING_PATH])
{
    if (snprintf(path, CLI_TRAINING_PATH, "%s/training.json", folder) >= CLI_TRAINING_PATH)
        return cli_fail("%.80s...: the path is too long", folder);
    return CLI_DONE;
}

/* Reads the content of an open file. */
static int parse(const char *path, int fd, json_t **out)
{
    struct stat s;
    json_error_t e;
    if (fstat(fd, &s))
        return cli_fail_errno(path);
    if (!S_ISREG(s.st_mode))
        return cli_fail("%s: is not a file", path);
    *out = json_loadfd(fd, JSON_REJECT_DUPLICATES, &e);
    if (json_is_object(*out))
        return CLI_DONE;
    json_decref(*out);
    *out = NULL;
    return cli_fail("%s: is not a JSON object: a training stores its options there", path);
}

int cli_training_file_read(const char *folder, json_t **out)
{
    char path[CLI_TRAINING_PATH];
    *out = NULL;
    int code = cli_training_file_path(folder, path);
    if (code)
        return code;
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ELOOP)
        return cli_fail("%s: is a symbolic link, not a file", path);
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR ? CLI_DONE : cli_fail_errno(path);
    code = parse(path, fd, out);
    close(fd);
    return code;
}

uint64_t cli_training_checksum(uint64_t sum, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum = (sum ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
    return sum;
}

int cli_file_checksum(const char *path, char text[CLI_CHECKSUM])
{
    static unsigned char block[1 << 16];
    uint64_t sum = 0;
    FILE *f = fopen(path, "rbe");
    if (!f)
        return cli_fail_errno(path);
    for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;)
        sum = cli_training_checksum(sum, block, n);
    const int code = ferror(f) ? cli_fail_errno(path) : CLI_DONE;
    fclose(f);
    snprintf(text, CLI_CHECKSUM, "%016llx", (unsigned long long)sum);
    return code;
}
