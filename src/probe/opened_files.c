#include "probe/opened_files.h"
#include "io/atomic_write.h"

#include <string.h>
#include <unistd.h>

static const att_opened_file *find(const att_opened_files *f, const char *name)
{
    for (size_t i = 0; i < f->n; i++)
        if (!strcmp(f->file[i].name, name))
            return &f->file[i];
    return NULL;
}

static att_status add(att_opened_files *f, const char *name, const char *path)
{
    att_status s = att_grow_array(f->ctx, &f->file, sizeof *f->file, f->n, 1, &f->room);
    if (s)
        return s;
    att_opened_file *new = &f->file[f->n];
    new->name = att_alloc(f->ctx, strlen(name) + 1, 1);
    if (!new->name)
        return ATT_ERR_MEMORY;
    strcpy(new->name, name);
    s = att_file_data_open(&new->data, f->ctx, path);
    if (s)
        att_free(f->ctx, new->name);
    f->n += !s;
    return s;
}

att_status att_opened_files_read(void *files, const char *name, const void **data, size_t *bytes)
{
    att_opened_files *f = files;
    char path[ATT_MAX_PATH];
    att_status s = att_join_path(f->ctx, f->folder, name, path);
    *data = NULL;
    if (s || (!find(f, name) && !att_is_file(path)))
        return s;
    if (!find(f, name))
        s = add(f, name, path);
    const att_opened_file *of = s ? NULL : find(f, name);
    if (of) {
        *data = of->data.bytes;
        *bytes = of->data.size;
    }
    return s;
}

/* Makes the path of a copy, and of its folder if that is below `folder`; otherwise *below is empty. */
static att_status find_paths(const att_opened_files *f, size_t i, const char *folder, char path[ATT_MAX_PATH],
                             char below[ATT_MAX_PATH])
{
    const att_status s = att_join_path(f->ctx, folder, f->file[i].name, path);
    *below = 0;
    if (!s && strchr(f->file[i].name, '/')) {
        strcpy(below, path);
        *strrchr(below, '/') = 0;
    }
    return s;
}

att_status att_opened_files_copy(const att_opened_files *f, const char *folder)
{
    char path[ATT_MAX_PATH], below[ATT_MAX_PATH];
    att_status s = att_make_folder(f->ctx, folder);
    for (size_t i = 0; !s && i < f->n; i++) {
        s = find_paths(f, i, folder, path, below);
        if (!s && *below)
            s = att_make_folder(f->ctx, below);
        s = s ? s : att_write_file(f->ctx, path, f->file[i].data.bytes, f->file[i].data.size);
    }
    return s;
}

void att_opened_files_remove(const att_opened_files *f, const char *folder)
{
    char path[ATT_MAX_PATH], below[ATT_MAX_PATH];
    for (size_t i = 0; i < f->n; i++)
        if (!find_paths(f, i, folder, path, below)) {
            unlink(path);
            if (*below)
                rmdir(below); /* unless it has others */
        }
}

void att_opened_files_free(att_opened_files *f)
{
    for (size_t i = 0; i < f->n; i++) {
        att_free(f->ctx, f->file[i].name);
        att_file_data_close(&f->file[i].data);
    }
    att_free(f->ctx, f->file);
    *f = (att_opened_files){.ctx = f->ctx};
}
