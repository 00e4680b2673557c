/* PNG, by libpng, read and written. Its errors arrive by longjmp in the functions with setjmp; everything that changes
 * in between is in a struct of their caller's. */
#include "image/image.h"

#include <string.h>

#include <png.h>

/* ---- what reading and writing share */

typedef struct png_work {
    att_ctx *ctx;
    const char *label; /* in messages */
    const char *task;  /* the same: "the PNG file is damaged" */
    png_structp png;
    png_infop info;
    att_status status;
    bool out_of_memory;
} png_work;

static _Noreturn void fail(png_work *w, att_status s)
{
    w->status = s;
    png_longjmp(w->png, 1);
}

/* libpng's own errors. */
static _Noreturn void fail_as_told(png_structp png, png_const_charp message)
{
    png_work *w = png_get_error_ptr(png);
    if (w->out_of_memory)
        fail(w, att_fail(w->ctx, ATT_ERR_MEMORY, "%s: out of memory", w->label));
    fail(w, att_fail(w->ctx, ATT_ERR_FORMAT, "%s: %s: %s", w->label, w->task, message));
}

/* Warnings are about chunks that do not matter for pixels. */
static void ignore_warning(png_structp png, png_const_charp message) { (void)png, (void)message; }

static png_voidp allocate(png_structp png, png_alloc_size_t bytes)
{
    png_work *w = png_get_mem_ptr(png);
    void *p = att_alloc(w->ctx, bytes, 1);
    w->out_of_memory |= !p;
    return p;
}

static void release(png_structp png, png_voidp p) { att_free(((png_work *)png_get_mem_ptr(png))->ctx, p); }

/* ---- reading */

typedef struct reader {
    png_work work;
    const att_image_file *file;
    size_t at; /* bytes read */
    att_image *out;
    png_bytepp rows; /* [out->height] */
} reader;

/* A file is 8 bytes, then chunks of a size, a name, data and a checksum, the last named IEND. Do all of them lie in the
 * file, so that none can claim memory that the file does not have? *exif: the data of one named eXIf, or empty. */
static bool find_chunks(const att_image_file *f, att_byte_view *exif)
{
    enum { SIGNATURE_BYTES = 8, CHUNK_BYTES = 12 };
    for (size_t at = SIGNATURE_BYTES; f->bytes - at >= CHUNK_BYTES;) {
        const uint8_t *chunk = f->data + at;
        const size_t bytes = png_get_uint_32(chunk);
        if (bytes > f->bytes - at - CHUNK_BYTES)
            return false;
        if (!memcmp(chunk + 4, "eXIf", 4))
            *exif = (att_byte_view){(const char *)chunk + 8, bytes};
        if (!memcmp(chunk + 4, "IEND", 4))
            return true;
        at += CHUNK_BYTES + bytes;
    }
    return false;
}

static void read_bytes(png_structp png, png_bytep to, size_t n)
{
    reader *r = png_get_io_ptr(png);
    if (n > r->file->bytes - r->at)
        fail(&r->work, att_image_truncated(r->file, "PNG"));
    memcpy(to, r->file->data + r->at, n);
    r->at += n;
}

/* max_pixels limits width times height, so libpng need not limit them. Chunks that are not needed are skipped: they may
 * be packed to a thousandth. */
static void set_limits(png_structp png)
{
    png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
}

/* Every kind of PNG as red, green, blue and, where that is wanted, alpha, of 8 bits. 16 bits become the upper 8. */
static void set_transformations(png_structp png, bool alpha)
{
    png_set_expand(png); /* palettes, fewer than 8 bits, a transparent colour */
    png_set_strip_16(png);
    png_set_gray_to_rgb(png);
    if (alpha)
        png_set_add_alpha(png, 0xff, PNG_FILLER_AFTER);
    else
        png_set_strip_alpha(png);
    png_set_interlace_handling(png);
}

static void read_rows(reader *r)
{
    const png_work *w = &r->work;
    const uint8_t *background = r->file->options.background;
    png_read_info(w->png, w->info);
    const int64_t height = png_get_image_height(w->png, w->info), width = png_get_image_width(w->png, w->info);
    const int64_t channels = background ? 4 : 3;
    const att_status s = att_image_file_alloc(r->file, height, width, channels, r->out);
    if (s)
        fail(&r->work, s);
    set_transformations(w->png, background);
    png_read_update_info(w->png, w->info);
    if (png_get_rowbytes(w->png, w->info) != (size_t)(width * channels))
        png_error(w->png, "its rows have an unexpected size");
    r->rows = png_malloc(w->png, (size_t)height * sizeof *r->rows);
    for (int64_t y = 0; y < height; y++)
        r->rows[y] = r->out->pixels + y * width * channels;
    png_read_image(w->png, r->rows);
    png_read_end(w->png, NULL);
    if (background)
        att_image_composite(r->out, background);
}

static void read_file(reader *r)
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
    png_set_read_fn(w->png, r, read_bytes);
    set_limits(w->png);
    read_rows(r);
}

att_status att_png_decode(const att_image_file *f, att_image *out, int *orientation)
{
    att_byte_view exif = {0};
    if (!find_chunks(f, &exif))
        return att_image_truncated(f, "PNG");
    reader r = {.work = {.ctx = f->ctx, .label = f->label, .task = "the PNG file is damaged"}, .file = f, .out = out};
    read_file(&r);
    *orientation = att_exif_orientation(exif);
    if (r.work.png)
        png_free(r.work.png, r.rows);
    png_destroy_read_struct(&r.work.png, &r.work.info, NULL);
    return r.work.status;
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
