/* model.safetensors.index.json: {"weight_map": {TENSOR: FILE, ...}} */
#include "io/settings.h"
#include "util/util.h"
#include "model/checkpoint.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_SHARDS = 1024 };

/* Opens a file of the folder, unless it is open already; NULL after an error in s. */
static const att_checkpoint_file *open_shard(att_settings *s, att_checkpoint *c, const char *folder, const char *name)
{
    char path[ATT_MAX_PATH];
    if (s->status)
        return NULL;
    if (!*name || strchr(name, '/') || name[0] == '.')
        att_settings_fail(s, ATT_ERR_FORMAT,
                          "\"weight_map\" has file \"%.80s\", which is not the name of a file in the folder", name);
    else
        s->status = att_join_path(c->ctx, folder, name, path);
    for (int64_t i = 0; !s->status && i < c->files; i++)
        if (strcmp(c->file[i].path, path) == 0)
            return &c->file[i];
    if (!s->status && c->files == MAX_SHARDS)
        att_settings_fail(s, ATT_ERR_UNSUPPORTED, "\"weight_map\" has more than %d files", MAX_SHARDS);
    if (!s->status && !att_is_file(path))
        att_settings_fail(s, ATT_ERR_IO, "the file %.80s, which has some of the weights, is missing", name);
    if (s->status)
        return NULL;
    att_checkpoint_file *f = &c->file[c->files];
    memcpy(f->path, path, sizeof path);
    s->status = att_safetensors_open(c->ctx, path, &f->data);
    c->files += !s->status;
    return s->status ? NULL : f;
}

static void read_map(att_settings *s, att_checkpoint *c, const char *folder, json_t *map)
{
    const char *name;
    json_t *file;
    json_object_foreach(map, name, file)
    {
        const char *shard = json_string_value(file);
        if (!shard)
            att_settings_fail(s, ATT_ERR_FORMAT, "\"weight_map\" has %s as the file of \"%.80s\"",
                              att_json_show(file).text, name);
        const att_checkpoint_file *f = open_shard(s, c, folder, shard ? shard : "");
        if (!f)
            return;
        const int64_t i = att_safetensors_find(f->data, name);
        if (i < 0) {
            att_settings_fail(s, ATT_ERR_FORMAT, "tensor \"%.80s\" is not in %.80s", name, shard);
            return;
        }
        c->entry[c->count++] = (att_checkpoint_entry){.name = att_safetensors_name(f->data, i), .file = f};
    }
}

att_status att_checkpoint_open_shards(att_checkpoint *c, const char *folder)
{
    static const char index[] = "model.safetensors.index.json";
    att_settings s;
    att_settings_read(&s, c->ctx, folder, index, true);
    att_settings_scope file = att_settings_enter(&s, "weight_map");
    json_t *map = s.status ? NULL : json_object_get(s.root, "weight_map");
    att_settings_leave(&s, file);
    memcpy(c->path, s.path, sizeof c->path);
    if (!s.status) {
        c->entry = att_calloc(c->ctx, json_object_size(map), sizeof *c->entry);
        c->file = att_calloc(c->ctx, (size_t)att_min((int64_t)json_object_size(map), MAX_SHARDS), sizeof *c->file);
        s.status = c->entry && c->file ? ATT_OK : ATT_ERR_MEMORY;
    }
    read_map(&s, c, folder, s.status ? NULL : map);
    att_settings_close(&s);
    return s.status;
}
