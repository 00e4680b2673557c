#include "base_model.h"
#include "cli/base/checkpoints.h"
#include "cli/base/output.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

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

int cli_base_model_copy(const char *folder, att_model_path *path)
{
    static const char *const names[] = {"config.json", "items.json", "model.safetensors"};
    char from[sizeof path->text + 32], to[sizeof path->text + 32];
    if (snprintf(path->text, sizeof path->text, "%s/base", folder) >= (int)sizeof path->text)
        return cli_fail("%.80s...: the path is too long", folder);
    if (mkdir(path->text, 0777) && errno != EEXIST)
        return cli_fail_errno(path->text);
    int code = CLI_DONE;
    for (size_t i = 0; !code && i < sizeof names / sizeof *names; i++) {
        snprintf(from, sizeof from, "%s/%s", folder, names[i]);
        snprintf(to, sizeof to, "%s/%s", path->text, names[i]);
        code = copy_file(from, to);
    }
    return code ? code : cli_checkpoints_remove(folder);
}
