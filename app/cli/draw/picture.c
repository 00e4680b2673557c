#include "picture.h"
#include "cli/base/command.h"
#include "cli/base/program.h"

#include <attend_vision.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

bool picture_has_name(const char *path) { return cli_has_extension(path, ".svg") || cli_has_extension(path, ".png"); }

/* A file in memory. */
static int open_memory(FILE **f)
{
    const int fd = memfd_create("drawing.svg", MFD_CLOEXEC);
    *f = fd < 0 ? NULL : fdopen(fd, "w+b");
    if (!*f && fd >= 0)
        close(fd);
    return *f ? CLI_DONE : cli_fail_errno("a file in memory");
}

int picture_open(picture *p, const char *path)
{
    p->svg = NULL;
    if (path && att_image_has_name(path) && !cli_has_extension(path, ".png"))
        return cli_misuse("%s: drawings are written as .svg or .png", path);
    int code = cli_output_open(&p->out, path);
    if (!code && path && cli_has_extension(path, ".png")) {
        code = open_memory(&p->svg);
        return code ? cli_output_close(&p->out, code) : code;
    }
    p->svg = p->out.file;
    return code;
}

/* ---- PNG ------------------------------------------------------------------- */

/* Reports why the program failed, with the text that it printed. */
static int fail(const picture *p, int status, FILE *printed)
{
    char line[512] = "";
    rewind(printed);
    if (fgets(line, sizeof line, printed))
        line[strcspn(line, "\n")] = '\0';
    if (status > 128)
        return cli_fail("%s: rsvg-convert was ended by signal %d (%s)", p->out.path, status - 128,
                        strsignal(status - 128));
    return cli_fail("%s: rsvg-convert could not draw it: %s (exit code %d); write .svg instead", p->out.path,
                    *line ? line : "it gives no reason", status);
}

/* Reads the SVG in memory, writes the PNG to the output: at twice the size, for screens with small pixels. */
static int convert(const picture *p, FILE *printed)
{
    static const char *const arguments[] = {"rsvg-convert", "--format", "png", "--zoom", "2", "--unlimited", NULL};
    const cli_program program = {arguments, NULL, fileno(p->svg), fileno(p->out.file), fileno(printed)};
    int status = 0;
    if (fflush(p->svg) || ferror(p->svg) || fseek(p->svg, 0, SEEK_SET))
        return cli_fail_memory();
    const int failed = cli_program_run(&program, &status);
    if (failed == ENOENT)
        return cli_fail("%s: a PNG needs rsvg-convert; install the Debian package librsvg2-bin, or write .svg",
                        p->out.path);
    if (failed)
        return cli_fail("rsvg-convert: %s", strerror(failed));
    if (cli_signal)
        return CLI_INTERRUPTED;
    return status ? fail(p, status, printed) : CLI_DONE;
}

int picture_close(picture *p, int code)
{
    FILE *printed;
    if (p->svg == p->out.file)
        return cli_output_close(&p->out, code);
    if (!code)
        code = open_memory(&printed);
    if (!code) {
        code = convert(p, printed);
        fclose(printed);
    }
    fclose(p->svg);
    return cli_output_close(&p->out, code);
}
