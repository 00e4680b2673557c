/* Opens the tokenizer that a folder or a file has, of any kind. */
#include "io/file.h"
#include "attend_util.h"
#include "text/gguf_tokenizer.h"
#include "text/tokenizer.h"

att_status att_tokenizer_open(att_ctx *ctx, const char *path, att_tokenizer **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"path", path}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    char gguf[ATT_MAX_PATH], source[ATT_MAX_PATH];
    att_status s = att_gguf_path(ctx, path, "config.json", gguf);
    if (s)
        return s;
    if (*gguf)
        return att_gguf_tokenizer_open(ctx, gguf, out);
    if (att_is_file(path))
        return att_sentencepiece_tokenizer_open(ctx, path, out);
    s = att_join_path(ctx, path, "source.spm", source);
    if (s)
        return s;
    return att_is_file(source) ? att_marian_tokenizer_open(ctx, path, out) : att_json_tokenizer_open(ctx, path, out);
}
