/* Reads and writes PNG files with libpng. Its errors arrive by longjmp in the functions that call setjmp. Therefore
 * every variable that changes in between is in a struct that belongs to their caller. */
#include "image/png_text.h"

#include <string.h>

#include <png.h>

/* ---- what reading and writing share */

typedef struct png_work {
    att_ctx *ctx;
    const char *label; /* in messages */
    const char *task;  /* in messages: "the PNG file is damaged" */
    png_structp png;
    png_infop info;
    att_status status;
    bool out_of_memory;
    const att_image_file *file; /* the file that is read; NULL: a file is written */
    att_image *out;             /* the image that is read */
    int64_t allocated;          /* bytes, besides out; what libpng frees before the end is small */
} png_work;

static _Noreturn void fail(png_work *w, att_status s)
{
    w->status = s;
    png_longjmp(w->png, 1);
}

/* Fails with libpng's message. */
static _Noreturn void fail_as_told(png_structp png, png_const_charp message)
{
    png_work *w = png_get_error_ptr(png);
    if (w->status)
        fail(w, w->status);
    if (w->out_of_memory)
        fail(w, att_fail(w->ctx, ATT_ERR_MEMORY, "%s: out of memory", w->label));
    fail(w, att_fail(w->ctx, ATT_ERR_FORMAT, "%s: %s: %s", w->label, w->task, message));
}

/* Ignores a warning. Warnings are about chunks that do not matter for pixels. */
static void ignore_warning(png_structp png, png_const_charp message) { (void)png, (void)message; }

static png_voidp allocate(png_structp png, png_alloc_size_t bytes)
{
    png_work *w = png_get_mem_ptr(png);
    w->allocated += (int64_t)bytes;
    if (w->file && !w->status)
        w->status = att_image_file_check(w->file, w->out, w->allocated);
    void *p = w->status ? NULL : att_alloc(w->ctx, bytes, 1);
    w->out_of_memory |= !p;
    return p;
}

static void release(png_structp png, png_voidp p) { att_free(((png_work *)png_get_mem_ptr(png))->ctx, p); }

/* ---- reading */

/* The reader. It gives the whole file to libpng at once, which calls back with each row. Therefore rows need no array
 * of pointers, and if the end of a file is missing, it is known whether all pixels are there. */
typedef struct reader {
    png_work work;
    int passes; /* 7 of an interlaced image */
    bool complete;
} reader;

/* The parts of a file that are read. A file has 8 bytes, then chunks, each with a size, a name, data and a checksum.
 * The last chunk is named IEND. */
typedef struct png_parts {
    size_t end;         /* end of the chunks before IEND that are complete, or of pixels that are cut off */
    bool whole;         /* there is an IEND */
    att_byte_view exif; /* the data of the chunk eXIf, or empty */
    att_png_text texts[ATT_PNG_TEXTS];
} png_parts;

/* Finds the parts. A chunk cannot claim more memory than the file has. */
static png_parts find_parts(const att_image_file *f)
{
    enum { SIGNATURE_BYTES = 8, CHUNK_BYTES = 12 };
    png_parts parts = {.end = SIGNATURE_BYTES};
    while (f->bytes - parts.end >= CHUNK_BYTES) {
        const uint8_t *chunk = f->data + parts.end;
        const size_t bytes = png_get_uint_32(chunk), room = f->bytes - parts.end - CHUNK_BYTES;
        parts.whole = !memcmp(chunk + 4, "IEND", 4);
        if (parts.whole)
            break;
        if (bytes > room) {
            parts.end = memcmp(chunk + 4, "IDAT", 4) ? parts.end : f->bytes;
            break;
        }
        if (!memcmp(chunk + 4, "eXIf", 4))
            parts.exif = (att_byte_view){(const char *)chunk + 8, bytes};
        att_png_text_add(parts.texts, (const char *)chunk + 4, (att_byte_view){(const char *)chunk + 8, bytes});
        parts.end += CHUNK_BYTES + bytes;
    }
    return parts;
}

/* Sets libpng's limits. max_pixels limits width times height, so libpng need not limit them. Chunks that are not needed
 * are skipped, because they may be packed to a thousandth of their size. */
static void set_limits(png_structp png)
{
    png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
}

/* Converts every kind of PNG to red, green, blue and, if requested, alpha, with 8 bits each. Of 16 bits the upper 8 are
 * used. */
static void set_transformations(png_structp png, bool alpha)
{
    png_set_expand(png); /* palettes, fewer than 8 bits, a transparent color */
    png_set_strip_16(png);
    png_set_gray_to_rgb(png);
    if (alpha)
        png_set_add_alpha(png, 0xff, PNG_FILLER_AFTER);
    else
        png_set_strip_alpha(png);
}

/* Begins the image, before the first pixels. libpng calls it again if there are more pixels after another chunk; those
 * are of no use. */
static void begin_image(png_structp png, png_infop info)
{
    reader *r = png_get_progressive_ptr(png);
    png_work *w = &r->work;
    if (w->out->pixels)
        return;
    const bool alpha = w->file->options.background;
    const int64_t height = png_get_image_height(png, info), width = png_get_image_width(png, info);
    const int64_t channels = alpha ? 4 : 3;
    const att_status s = att_image_file_alloc(w->file, height, width, channels, w->allocated, w->out);
    if (s)
        fail(w, s);
    set_transformations(png, alpha);
    r->passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    if (png_get_rowbytes(png, info) != (size_t)(width * channels))
        png_error(png, "its rows have an unexpected size");
}

/* Adds a row. row NULL: this pass has no pixels for it. */
static void add_row(png_structp png, png_bytep row, png_uint_32 y, int pass)
{
    reader *r = png_get_progressive_ptr(png);
    const att_image *out = r->work.out;
    if (row)
        png_progressive_combine_row(png, out->pixels + y * out->width * out->channels, row);
    r->complete = y + 1 == out->height && pass + 1 == r->passes;
}

static void read_file(reader *r, size_t end)
{
    png_work *w = &r->work;
    w->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, w, fail_as_told, ignore_warning, w, allocate, release);
    w->info = w->png ? png_create_info_struct(w->png) : NULL;
    if (!w->info) {
        w->status = att_fail(w->ctx, ATT_ERR_MEMORY, "%s: out of memory", w->label);
        return;
    }
    if (setjmp(png_jmpbuf(w->png)))
        return;
    png_set_progressive_read_fn(w->png, r, begin_image, add_row, NULL);
    set_limits(w->png);
    png_process_data(w->png, w->info, (png_bytep)w->file->data, end); /* libpng does not change it */
}

att_status att_png_decode(const att_image_file *f, att_image *out, int *orientation)
{
    const png_parts parts = find_parts(f);
    reader r = {.work = {.ctx = f->ctx, .label = f->label, .task = "the PNG file is damaged", .file = f, .out = out}};
    read_file(&r, parts.end);
    png_destroy_read_struct(&r.work.png, &r.work.info, NULL);
    if (!r.work.status && !r.complete)
        return parts.whole ? att_fail(f->ctx, ATT_ERR_FORMAT, "%s: the PNG file is damaged: it ends before its pixels",
                                      f->label)
                           : att_image_truncated(f, "PNG");
    if (!r.work.status && f->options.background)
        att_image_composite(out, f->options.background);
    return r.work.status ? r.work.status : att_png_orientation(f->ctx, parts.exif, parts.texts, orientation);
}

/* ---- writing */

typedef struct writer {
    png_work work;
    const att_image *image;
    att_bytes bytes;
} writer;

static void write_bytes(png_structp png, png_bytep from, size_t n)
{
    writer *w = png_get_io_ptr(png);
    att_bytes_add(&w->bytes, from, n);
    if (w->bytes.status)
        fail(&w->work, w->bytes.status);
}

static void flush_nothing(png_structp png) { (void)png; }

static void write_image(writer *w)
{
    png_work *p = &w->work;
    const att_image *image = w->image;
    p->png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, p, fail_as_told, ignore_warning, p, allocate, release);
    p->info = p->png ? png_create_info_struct(p->png) : NULL;
    if (!p->info) {
        p->status = att_fail(p->ctx, ATT_ERR_MEMORY, "%s: out of memory", p->label);
        return;
    }
    if (setjmp(png_jmpbuf(p->png)))
        return;
    png_set_write_fn(p->png, w, write_bytes, flush_nothing);
    png_set_user_limits(p->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_IHDR(p->png, p->info, (png_uint_32)image->width, (png_uint_32)image->height, 8,
                 image->channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(p->png, p->info);
    for (int64_t y = 0; y < image->height; y++)
        png_write_row(p->png, image->pixels + y * image->width * image->channels);
    png_write_end(p->png, NULL);
}

att_status att_image_encode_png(att_ctx *ctx, const att_image *image, att_image_bytes *out)
{
    if (out)
        *out = (att_image_bytes){0};
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"image", image}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_status s = att_image_check(ctx, __func__, image);
    if (!s && (image->height > PNG_UINT_31_MAX || image->width > PNG_UINT_31_MAX))
        s = att_fail(ctx, ATT_ERR_UNSUPPORTED, "a PNG file cannot have %lld x %lld pixels", (long long)image->width,
                     (long long)image->height);
    if (s)
        return s;
    writer w = {.work = {.ctx = ctx, .label = __func__, .task = "the image cannot be written"},
                .image = image,
                .bytes = {.ctx = ctx}};
    write_image(&w);
    png_destroy_write_struct(&w.work.png, &w.work.info);
    if (w.work.status)
        att_bytes_free(&w.bytes);
    *out = (att_image_bytes){(uint8_t *)w.bytes.data, w.bytes.count};
    return w.work.status;
}

void att_image_bytes_free(att_ctx *ctx, att_image_bytes *b)
{
    if (!b)
        return;
    att_free(ctx, b->data);
    *b = (att_image_bytes){0};
}
