#include "digest.h"
#include "command.h"
#include "in_use.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORDS = 1 << 15, DEPTH = 8, PATH_BYTES = 4096 };
static const uint64_t offset = UINT64_C(0xcbf29ce484222325), prime = UINT64_C(0x9e3779b97f4a7c15);

/* One step with a word of 64 bits: as FNV-1a, and the high half, into which the product mixes, comes down. */
static uint64_t mix(uint64_t sum, uint64_t word)
{
    sum = (sum ^ word) * prime;
    return sum ^ sum >> 32;
}

/* Mixes `bytes` of words, the rest of whose last one is zeros. */
static uint64_t mix_words(uint64_t sum, const uint64_t *words, size_t bytes)
{
    for (size_t i = 0; i < (bytes + 7) / 8; i++)
        sum = mix(sum, words[i]);
    return sum;
}

static uint64_t mix_text(uint64_t sum, const char *text)
{
    while (*text)
        sum = mix(sum, (unsigned char)*text++);
    return sum;
}

/* Digests an open file from `at` on. Whole buffers are read, so that the sum does not depend on how reads end. */
static int digest_open(const char *path, int fd, off_t at, cli_digest *out)
{
    uint64_t *words = malloc(WORDS * sizeof *words);
    int code = words ? CLI_DONE : cli_fail_memory();
    bool end = false;
    *out = (cli_digest){.sum = offset};
    while (!code && !end) {
        size_t used = 0;
        while (!code && !end && used < WORDS * sizeof *words) {
            const ssize_t n = pread(fd, (char *)words + used, WORDS * sizeof *words - used, at);
            if (n < 0 && errno != EINTR)
                code = cli_fail_errno(path);
            end = n == 0;
            used += n > 0 ? (size_t)n : 0;
            at += n > 0 ? n : 0;
        }
        if (code)
            break;
        memset((char *)words + used, 0, (8 - used % 8) % 8);
        out->sum = mix_words(out->sum, words, used);
        out->bytes += (int64_t)used;
    }
    out->sum = mix(out->sum, (uint64_t)out->bytes);
    free(words);
    return code;
}

int cli_digest_file(const char *path, cli_digest *out)
{
    struct stat s;
    const bool standard = !strcmp(path, "-");
    const int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const char *name = standard ? "standard input" : path;
    if (fd < 0 || fstat(fd, &s))
        return cli_fail_errno(name);
    int code =
        S_ISREG(s.st_mode) ? CLI_DONE : cli_fail("%s is not a file: --resume needs input that can be read again", name);
    if (!code)
        code = digest_open(name, fd, standard ? lseek(fd, 0, SEEK_CUR) : 0, out);
    if (!standard)
        close(fd);
    return code;
}

/* Adds the files below a folder, in any order: those of a model with their content, otherwise all, with their sizes. */
static int add_folder(const char *folder, bool model, int depth, cli_digest *sum)
{
    char path[PATH_BYTES];
    struct stat s;
    int code = CLI_DONE;
    DIR *d = opendir(folder);
    if (!d)
        return cli_fail_errno(folder);
    for (const struct dirent *e; !code && (e = readdir(d));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name) >= (int)sizeof path || stat(path, &s))
            continue;
        cli_digest one = {.bytes = s.st_size};
        if (S_ISDIR(s.st_mode)) {
            one.bytes = 0;
            code = depth > 1 ? add_folder(path, model, depth - 1, &one) : CLI_DONE;
        } else if (model) {
            if (!S_ISREG(s.st_mode) || !cli_is_model_file(e->d_name))
                continue;
            code = cli_digest_file(path, &one);
        }
        sum->bytes += one.bytes;
        sum->sum += mix(mix_text(mix(offset, one.sum), e->d_name), (uint64_t)one.bytes);
    }
    closedir(d);
    return code;
}

/* Digests a folder as above, or a file as `file` does. */
static int digest(const char *path, bool model, int (*file)(const char *path, cli_digest *out), cli_digest *out)
{
    struct stat s;
    *out = (cli_digest){0};
    if (strcmp(path, "-") && stat(path, &s))
        return cli_fail_errno(path);
    return strcmp(path, "-") && S_ISDIR(s.st_mode) ? add_folder(path, model, DEPTH, out) : file(path, out);
}

static int size_of_file(const char *path, cli_digest *out)
{
    struct stat s;
    if (stat(path, &s))
        return cli_fail_errno(path);
    *out = (cli_digest){.bytes = s.st_size};
    return CLI_DONE;
}

int cli_digest_model(const char *path, cli_digest *out) { return digest(path, true, cli_digest_file, out); }
int cli_digest_names(const char *path, cli_digest *out) { return digest(path, false, size_of_file, out); }
