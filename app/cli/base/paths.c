#include "paths.h"
#include "command.h"
#include "grow.h"

#include <attend_vision.h>

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Adds a path, which becomes the list's; NULL: memory is lacking. */
static int add(cli_paths *p, char *path)
{
    if (!path || !cli_reserve(&p->room, (size_t)p->n + 1, &(cli_array){&p->path, sizeof *p->path}, 1)) {
        free(path);
        return cli_fail_memory();
    }
    p->path[p->n++] = path;
    return CLI_DONE;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static int add_folder(cli_paths *p, const char *folder)
{
    const size_t length = strlen(folder);
    const char *slash = length && folder[length - 1] == '/' ? "" : "/";
    const int64_t first = p->n;
    int code = CLI_DONE;
    DIR *d = opendir(folder);
    if (!d)
        return cli_fail_errno(folder);
    for (const struct dirent *e; !code && (e = readdir(d));) {
        char *path;
        if (e->d_name[0] != '.' && att_image_has_name(e->d_name))
            code = add(p, asprintf(&path, "%s%s%s", folder, slash, e->d_name) < 0 ? NULL : path);
    }
    closedir(d);
    if (!code && p->n == first)
        return cli_fail("%s is a folder without images; their names end in .jpg, .jpeg, .png or .webp", folder);
    if (!code)
        qsort(p->path + first, (size_t)(p->n - first), sizeof *p->path, by_name);
    return code;
}

int cli_paths_of_images(cli_paths *p, int n, char *const *given)
{
    struct stat s;
    int code = CLI_DONE;
    *p = (cli_paths){0};
    for (int i = 0; !code && i < n; i++)
        code = strcmp(given[i], "-") && !stat(given[i], &s) && S_ISDIR(s.st_mode) ? add_folder(p, given[i])
                                                                                  : add(p, strdup(given[i]));
    return code;
}

int cli_paths_refuse_images(int n, char *const *given)
{
    struct stat s;
    for (int i = 0; i < n; i++)
        if (att_image_has_name(given[i]) && !stat(given[i], &s) && S_ISREG(s.st_mode))
            return cli_misuse("%s is an image, but the model reads text: -m needs the name of a vision model",
                              given[i]);
    return CLI_DONE;
}

void cli_paths_free(cli_paths *p)
{
    for (int64_t i = 0; i < p->n; i++)
        free(p->path[i]);
    free(p->path);
    *p = (cli_paths){0};
}
