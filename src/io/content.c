#include "io/content.h"
#include "io/text_start.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Formats in addition to those of att_foreign_of. */
static const struct {
    size_t at, bytes;
    const char *magic, *name;
} contents[] = {
    {0, 4, "PK\3\4", "a zip archive, as are PyTorch's .bin, .pt and .pth files; convert those to safetensors"},
    {257, 5, "ustar", "a tar archive; unpack it"},
    {0, 2, "\x80\2", "a pickle of Python, as are old .bin files of PyTorch; convert it to safetensors"},
    {0, 2, "\x80\3", "a pickle of Python; convert it to safetensors"},
    {0, 2, "\x80\4", "a pickle of Python; convert it to safetensors"},
    {0, 2, "\x80\5", "a pickle of Python; convert it to safetensors"},
    {0, 4, "GGUF", "a .gguf file; give it that name"},
    {0, 4, "FUGG", "a .gguf file for big-endian machines; take the usual file of the model"},
    {0, 4, "lmgg", "of llama.cpp's old format GGML; take the .gguf file of the model"},
    {0, 4, "fmgg", "of llama.cpp's old format GGMF; take the .gguf file of the model"},
    {0, 4, "tjgg", "of llama.cpp's old format GGJT; take the .gguf file of the model"},
    {0, 6, "\x93NUMPY", "a .npy file of NumPy"},
    {0, 8, "\x89HDF\r\n\x1a\n", "an HDF5 file, as TensorFlow and Keras write; convert it to safetensors"},
    {0, 5, "%PDF-", "a PDF document"},
    {0, 8, "\x89PNG\r\n\x1a\n", "a PNG image"},
    {0, 3, "\xff\xd8\xff", "a JPEG image"},
};

/* Beginnings of web pages, after blanks, in letters of either case: a server may send an error page instead of a
 * file. */
static const struct {
    const char *begin, *name;
} pages[] = {
    {"<!doctype html", "a web page (HTML); download the file itself"},
    {"<html", "a web page (HTML); download the file itself"},
    {"<head", "a web page (HTML); download the file itself"},
    {"<?xml", "an XML page, perhaps a server's refusal; download the file itself"},
    {"entry not found", "a server's answer that the file does not exist; download it anew"},
    {"not found", "a server's answer that the file does not exist; download it anew"},
    {"invalid username or password", "a server's answer that asks for a login; download the file anew"},
    {"access to model", "a server's answer that asks for a login; download the file anew"},
};

static bool begins(const char *data, size_t bytes, const char *with)
{
    const size_t n = strlen(with);
    return bytes >= n && !strncasecmp(data, with, n);
}

static const char *page_name(const char *data, size_t bytes)
{
    const size_t mark = att_mark_bytes(data, bytes);
    data += mark;
    bytes -= mark;
    for (; bytes > 0 && strchr(" \t\r\n", *data) && *data; bytes--)
        data++;
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++)
        if (begins(data, bytes, pages[i].begin))
            return pages[i].name;
    return NULL;
}

static att_content content(const char *a, const char *b, const char *c)
{
    att_content x;
    snprintf(x.text, sizeof x.text, "%s%s%s", a, b, c);
    return x;
}

att_content att_content_of(const void *data, size_t bytes)
{
    for (size_t i = 0; i < sizeof contents / sizeof contents[0]; i++)
        if (bytes >= contents[i].at + contents[i].bytes &&
            !memcmp((const char *)data + contents[i].at, contents[i].magic, contents[i].bytes))
            return content(contents[i].name, "", "");
    const att_foreign *f = bytes ? att_foreign_of(data, bytes) : NULL;
    if (f && f->bytes) /* known by its bytes, not guessed from zero bytes, which files of numbers have, too */
        return content(f->kind, f->command ? "; " : "", f->command ? f->command : "");
    const char *page = page_name(data, bytes);
    return content(page ? page : "", "", "");
}

att_status att_refuse_pointer(att_ctx *ctx, const char *path, const void *data, size_t bytes)
{
    const bool is =
        bytes >= sizeof ATT_POINTER_START - 1 && !memcmp(data, ATT_POINTER_START, sizeof ATT_POINTER_START - 1);
    return is ? att_fail_foreign(ctx, path, path, att_foreign_of(data, bytes)) : ATT_OK;
}

att_status att_refuse_content(att_ctx *ctx, const char *path, const void *data, size_t bytes)
{
    const att_status s = att_refuse_pointer(ctx, path, data, bytes);
    const att_content c = att_content_of(data, bytes);
    if (s || !*c.text)
        return s;
    return att_fail(ctx, ATT_ERR_FORMAT, "%s is not what its name states: it is %s", path, c.text);
}
