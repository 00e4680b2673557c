#include "hub_choice.h"
#include "cli/base/command.h"
#include "cli/base/grow.h"
#include "cli/base/json.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* What attend reads of a folder beside weights, as patterns of fnmatch() */
static const char *const settings[] = {"config.json",
                                       "generation_config.json",
                                       "preprocessor_config.json",
                                       "processor_config.json",
                                       "modules.json",
                                       "config_sentence_transformers.json",
                                       "sentence_*_config.json",
                                       "tokenizer.json",
                                       "tokenizer_config.json",
                                       "special_tokens_map.json",
                                       "added_tokens.json",
                                       "vocab.json",
                                       "vocab.txt",
                                       "merges.txt",
                                       "tokenizer.model",
                                       "sentencepiece.bpe.model",
                                       "source.spm",
                                       "target.spm",
                                       "chat_template.jinja",
                                       "chat_template.json",
                                       "words.json",
                                       "items.json",
                                       "probe.json",
                                       "probe.safetensors"};
static const char weights[] = "model.safetensors", index_name[] = "model.safetensors.index.json";

/* Files of a model without weights that attend reads, and how they are described */
#define PICKLE "a pickle, which attend does not open, as that can run programs"
static const struct {
    const char *pattern, *description;
    bool saved_again; /* whether transformers can save them as safetensors */
} others[] = {
    {"adapter_config.json", "an adapter of another model, not a model; merge it into that one", false},
    {"consolidated*.safetensors", "whose tensors have other names; attend reads the files of transformers", false},
    {"*.bin", PICKLE, true},
    {"*.pt", PICKLE, true},
    {"*.pth", PICKLE, true},
    {"*.ckpt", PICKLE, true},
    {"*.pkl", PICKLE, true},
    {"*.h5", "weights of TensorFlow, which attend does not read", true},
    {"*.msgpack", "weights of Flax, which attend does not read", true},
    {"*.onnx", "a graph of ONNX, which attend does not run", false},
};

/* ---- lists of files */

static int add(hub_choice *c, const hub_listing *l, const hub_file *f)
{
    if (!c->has)
        c->has = calloc(l->n, sizeof *c->has);
    if (!c->has || !cli_reserve(&c->room, c->n + 1, &(cli_array){&c->file, sizeof *c->file}, 1))
        return cli_fail_memory();
    bool *has = &c->has[f - l->file];
    if (!*has) {
        c->file[c->n++] = f;
        c->bytes += f->bytes;
    }
    *has = true;
    return CLI_DONE;
}

void hub_choice_close(hub_choice *c)
{
    free(c->file);
    free(c->has);
    *c = (hub_choice){0};
}

/* Returns a file of a folder, which is "" or ends with a slash; NULL: there is none. */
static const hub_file *find_in(const hub_listing *l, const char *folder, const char *name)
{
    char path[2048];
    const bool fits = snprintf(path, sizeof path, "%s%s", folder, name) < (int)sizeof path;
    return fits && !strchr(name, '/') ? hub_listing_find(l, path) : NULL;
}

/* ---- a folder of safetensors */

static int add_settings(hub_choice *c, const hub_listing *l, const char *folder)
{
    int code = CLI_DONE;
    for (size_t i = 0; !code && i < l->n; i++) {
        const size_t n = strlen(folder);
        const char *name = strncmp(folder, l->file[i].name, n) ? NULL : l->file[i].name + n;
        for (size_t k = 0; !code && name && k < sizeof settings / sizeof *settings; k++)
            if (!fnmatch(settings[k], name, FNM_PATHNAME))
                code = add(c, l, &l->file[i]);
    }
    return code;
}

/* Adds the files that an index of weights names. */
static int add_shards(hub_choice *c, const hub_listing *l, const char *folder, const char *model, const json_t *index)
{
    const char *tensor;
    json_t *name;
    int code = CLI_DONE;
    json_object_foreach(json_object_get(index, "weight_map"), tensor, name)
    {
        const char *text = json_string_value(name);
        const hub_file *f = text ? find_in(l, folder, text) : NULL;
        code =
            f ? add(c, l, f)
              : cli_fail("%s has no %s%.200s, which %s%s names", model, folder, text ? text : "", folder, index_name);
        if (code)
            break;
    }
    return code;
}

static int add_weights(hub_choice *c, const hub_listing *l, const char *folder, const char *model,
                       const hub_reader *reader)
{
    const hub_file *whole = find_in(l, folder, weights), *index = find_in(l, folder, index_name);
    json_t *map = NULL;
    if (whole || !index)
        return whole ? add(c, l, whole) : CLI_DONE;
    int code = add(c, l, index);
    if (!code)
        code = reader->read(reader->user, index, &map);
    if (!code)
        code = add_shards(c, l, folder, model, map);
    json_decref(map);
    return code;
}

/* Calls add_settings (reader NULL) or add_weights for the folder of the model and those of its modules. */
static int add_folders(hub_choice *c, const hub_listing *l, const char *model, const json_t *modules,
                       const hub_reader *reader)
{
    enum { MAX_MODULES = 64 };
    int code = reader ? add_weights(c, l, "", model, reader) : add_settings(c, l, "");
    for (size_t i = 0; !code && i < json_array_size(modules) && i < MAX_MODULES; i++) {
        char folder[512];
        const char *path = json_string_value(json_object_get(json_array_get(modules, i), "path"));
        if (!path || !hub_is_path(path) || snprintf(folder, sizeof folder, "%s/", path) >= (int)sizeof folder)
            continue; /* the module has no folder, or opening the model refuses it */
        code = reader ? add_weights(c, l, folder, model, reader) : add_settings(c, l, folder);
    }
    return code;
}

/* ---- .gguf files */

/* Returns whether the name is that of a .gguf file. *stem: the bytes before its number among several parts, *parts of
 * them, as in NAME-00001-of-00003.gguf; *parts is 0 if the file is whole. */
static bool is_gguf(const char *name, int *stem, int *parts)
{
    static const char shape[] = "-00000-of-00000.gguf";
    const size_t n = strlen(name), m = sizeof shape - 1;
    bool split = n > m;
    for (size_t i = 0; split && i < m; i++) {
        const char c = name[n - m + i];
        split = shape[i] == '0' ? c >= '0' && c <= '9' : c == shape[i];
    }
    *stem = (int)(split ? n - m : n);
    *parts = split ? atoi(name + n - 10) : 0;
    return cli_has_extension(name, ".gguf");
}

/* Finds part i, from 1, of the file that this one is a part of. */
static const hub_file *find_part(const hub_listing *l, const char *name, int i)
{
    int stem, parts;
    char part[2048];
    is_gguf(name, &stem, &parts);
    snprintf(part, sizeof part, "%.*s-%05d-of-%05d.gguf", stem, name, i, parts);
    return hub_listing_find(l, parts ? part : name);
}

static int add_gguf(hub_choice *c, const hub_listing *l, const char *model, const hub_file *file)
{
    int stem, parts, code = CLI_DONE;
    is_gguf(file->name, &stem, &parts);
    for (int i = 1; !code && i <= (parts ? parts : 1); i++) {
        const hub_file *f = find_part(l, file->name, i);
        code = f ? add(c, l, f) : cli_fail("%s has not all parts of %s: part %d is missing", model, file->name, i);
    }
    c->chosen = code ? NULL : c->file[0]->name;
    return code;
}

/* Returns whether a file is a .gguf file, and the first one if it has parts. */
static bool begins_gguf(const hub_listing *l, const hub_file *f)
{
    int stem, parts;
    return is_gguf(f->name, &stem, &parts) && find_part(l, f->name, 1) == f;
}

static int64_t gguf_bytes(const hub_listing *l, const hub_file *first)
{
    int stem, parts;
    int64_t bytes = first->bytes;
    is_gguf(first->name, &stem, &parts);
    for (int i = 2; i <= parts; i++) {
        const hub_file *f = find_part(l, first->name, i);
        if (!f)
            break;
        bytes += f->bytes;
    }
    return bytes;
}

/* Prints the .gguf files, and that one has to be named. */
static int print_ggufs(const hub_listing *l, const char *model, bool json, int n)
{
    cli_json j = {.file = stdout, .between = ",\n "};
    if (json)
        cli_json_array(&j, NULL);
    for (size_t i = 0; i < l->n; i++) {
        if (!begins_gguf(l, &l->file[i]))
            continue;
        const int64_t bytes = gguf_bytes(l, &l->file[i]);
        if (json) {
            cli_json_object(&j, NULL);
            cli_json_string(&j, "file", l->file[i].name);
            cli_json_integer(&j, "bytes", bytes);
            cli_json_end(&j);
        } else
            printf("%10.1f MB  %s\n", (double)bytes / 1e6, l->file[i].name);
    }
    if (json)
        cli_json_end(&j);
    return cli_misuse("%s has %d .gguf files; name one: attend fetch %s FILE.gguf", model, n, model);
}

int hub_choose_gguf(hub_choice *c, const hub_listing *l, const char *model, const char *gguf)
{
    enum { MAX_NAMES = 64 };
    const char *names[MAX_NAMES];
    int n = 0;
    const hub_file *f = hub_listing_find(l, gguf);
    *c = (hub_choice){0};
    if (f)
        return add_gguf(c, l, model, f);
    for (size_t i = 0; i < l->n && n < MAX_NAMES; i++)
        if (begins_gguf(l, &l->file[i]))
            names[n++] = l->file[i].name;
    cli_hint hint;
    return cli_fail("%s has no file \"%s\"%s", model, gguf,
                    n ? cli_did_you_mean(&hint, "", gguf, names, n, "; attend fetch OWNER/NAME lists its .gguf files")
                      : ", nor any other .gguf file");
}

/* ---- all */

static int refuse(const hub_listing *l, const char *model)
{
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        for (size_t i = 0; i < l->n; i++)
            if (!fnmatch(others[k].pattern, l->file[i].name, FNM_PATHNAME))
                return cli_fail("%s has no model.safetensors and no .gguf file, but %s: %s%s%s%s", model,
                                l->file[i].name, others[k].description,
                                others[k].saved_again ? "; save it again, with transformers: from_pretrained(\"" : "",
                                others[k].saved_again ? model : "",
                                others[k].saved_again ? "\") and save_pretrained(FOLDER)" : "");
    return cli_fail("%s has no weights: neither model.safetensors nor a .gguf file", model);
}

/* Chooses the only .gguf file of a model without safetensors. */
static int choose_only_gguf(hub_choice *c, const hub_listing *l, const char *model, bool json)
{
    const hub_file *first = NULL;
    int n = 0;
    for (size_t i = 0; i < l->n; i++)
        if (begins_gguf(l, &l->file[i])) {
            first = first ? first : &l->file[i];
            n++;
        }
    hub_choice_close(c);
    return n == 0 ? refuse(l, model) : n > 1 ? print_ggufs(l, model, json, n) : add_gguf(c, l, model, first);
}

int hub_choose(hub_choice *c, const hub_listing *l, const char *model, const hub_reader *reader, bool json)
{
    const hub_file *list = hub_listing_find(l, "modules.json");
    json_t *modules = NULL;
    *c = (hub_choice){0};
    int code = list ? reader->read(reader->user, list, &modules) : CLI_DONE;
    if (!code)
        code = add_folders(c, l, model, modules, NULL);
    const size_t without = c->n;
    if (!code)
        code = add_folders(c, l, model, modules, reader);
    json_decref(modules);
    return code || c->n > without ? code : choose_only_gguf(c, l, model, json);
}
