#include "base_model.h"
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

int cli_base_model_copy(const char *folder)
{
    att_model_path base;
    static const char *const names[] = {"config.json", "items.json", "model.safetensors"};
    char from[sizeof base.text + 32], to[sizeof base.text + 32];
    if (snprintf(base.text, sizeof base.text, "%s/base", folder) >= (int)sizeof base.text)
        return cli_fail("%.80s...: the path is too long", folder);
    int code = check_lock(folder);
    if (!code && mkdir(base.text, 0777) && errno != EEXIST)
        code = cli_fail_errno(base.text);
    for (size_t i = 0; !code && i < sizeof names / sizeof *names; i++) {
        snprintf(from, sizeof from, "%s/%s", folder, names[i]);
        snprintf(to, sizeof to, "%s/%s", base.text, names[i]);
        code = copy_file(from, to);
    }
    return code;
}
