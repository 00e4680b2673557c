#include "paths.h"
#include "command.h"
#include "grow.h"

#include <attend_vision.h>

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

/* Adds the images of a folder. */
static int add_folder(cli_paths *p, att_ctx *ctx, const char *folder)
{
    att_image_files *found;
    int code = cli_status(ctx, att_image_files_open(ctx, folder, &found));
    const char *rest = code ? "" : att_image_files_passed_over(found);
    if (!code && att_image_files_count(found) == 0)
        code = cli_fail("%s is a folder without images; their names end in .jpg, .jpeg, .png, .webp or .tif%s%s%s",
                        folder, *rest ? ", and there are only " : "", rest, *rest ? " files" : "");
    for (int64_t i = 0; !code && i < att_image_files_count(found); i++)
        code = add(p, strdup(att_image_files_path(found, i)));
    if (!code && *rest)
        cli_note("%s: %s passed over", folder, rest);
    att_image_files_free(found);
    return code;
}

int cli_paths_of_images(cli_paths *p, int n, char *const *given)
{
    struct stat s;
    att_ctx *ctx;
    *p = (cli_paths){0};
    int code = cli_open(&ctx, 1);
    for (int i = 0; !code && i < n; i++)
        code = strcmp(given[i], "-") && !stat(given[i], &s) && S_ISDIR(s.st_mode) ? add_folder(p, ctx, given[i])
                                                                                  : add(p, strdup(given[i]));
    att_close(ctx);
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
