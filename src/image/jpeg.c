/* Reads JPEG files with libjpeg. Its errors arrive by longjmp in the one function that calls setjmp. Therefore every
 * variable that changes in between is in the reader, which belongs to the caller of that function. */
#include "image/image.h"
#include "util/util.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

/* The limit of scans. Each scan of a progressive file visits all blocks, even if its data is short. Encoders write
 * about 10 scans, some up to 64. */
enum { MAX_SCANS = 100 };
enum { APP1 = JPEG_APP0 + 1, MAX_MARKER = 0xffff };

typedef struct reader {
    struct jpeg_decompress_struct jpeg; /* the first member, so that a pointer to it is also a pointer to the reader */
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf failed;
    const att_image_file *file;
    att_image *out;
    int *orientation;
    uint8_t *row; /* of a CMYK file, or NULL */
    att_status status;
} reader;

/* ---- errors */

static _Noreturn void fail(reader *r, att_status s)
{
    r->status = s;
    longjmp(r->failed, 1);
}

/* Fails with libjpeg's message. */
static _Noreturn void fail_as_told(j_common_ptr jpeg)
{
    reader *r = (reader *)jpeg;
    char message[JMSG_LENGTH_MAX];
    if (r->errors.msg_code == JERR_OUT_OF_MEMORY)
        fail(r, att_fail(r->file->ctx, ATT_ERR_MEMORY, "%s: out of memory", r->file->label));
    r->errors.format_message(jpeg, message);
    fail(r, att_fail(r->file->ctx, ATT_ERR_FORMAT, "%s: the JPEG file is damaged: %s", r->file->label, message));
}

/* Makes most warnings (level -1) errors, because libjpeg has then invented pixels. The exceptions are oddities that
 * cameras write. */
static void check_warning(j_common_ptr jpeg, int level)
{
    reader *r = (reader *)jpeg;
    const int code = r->errors.msg_code;
    if (level >= 0 || code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_TOO_MUCH_DATA)
        return;
    if (code == JWRN_JPEG_EOF)
        fail(r, att_image_truncated(r->file, "JPEG"));
    fail_as_told(jpeg);
}

static void check_scans(j_common_ptr jpeg)
{
    reader *r = (reader *)jpeg;
    if (r->jpeg.input_scan_number > MAX_SCANS)
        fail(r, att_fail(r->file->ctx, ATT_ERR_UNSUPPORTED, "%s: the JPEG file has more than %d scans", r->file->label,
                         MAX_SCANS));
}

static void print_nothing(j_common_ptr jpeg) { (void)jpeg; }

/* ---- reading */

/* Reads the orientation as Pillow does: from the first EXIF segment, or the last one of XMP. */
static void read_orientation(reader *r)
{
    static const char exif_name[6] = "Exif\0", xmp_name[29] = "http://ns.adobe.com/xap/1.0/";
    att_byte_view exif = {0}, xmp = {0};
    for (jpeg_saved_marker_ptr m = r->jpeg.marker_list; m; m = m->next) {
        const att_byte_view data = {(const char *)m->data, m->data_length};
        if (!exif.data && data.bytes >= sizeof exif_name && !memcmp(data.data, exif_name, sizeof exif_name))
            exif = data;
        if (data.bytes >= sizeof xmp_name && !memcmp(data.data, xmp_name, sizeof xmp_name))
            xmp = (att_byte_view){data.data + sizeof xmp_name, data.bytes - sizeof xmp_name};
    }
    *r->orientation = att_image_orientation(exif, xmp);
}

static void read_header(reader *r)
{
    jpeg_mem_src(&r->jpeg, r->file->data, (unsigned long)r->file->bytes);
    jpeg_save_markers(&r->jpeg, APP1, MAX_MARKER);
    jpeg_read_header(&r->jpeg, TRUE);
    read_orientation(r);
}

/* Returns the bytes of the coefficients of a file that has several scans. They are in memory all at once. */
static int64_t coefficient_bytes(reader *r)
{
    int64_t blocks = 0;
    for (int i = 0; i < r->jpeg.num_components && jpeg_has_multiple_scans(&r->jpeg); i++) {
        const jpeg_component_info *c = &r->jpeg.comp_info[i];
        blocks +=
            att_round_up(c->width_in_blocks, c->h_samp_factor) * att_round_up(c->height_in_blocks, c->v_samp_factor);
    }
    return blocks * (int64_t)sizeof(JBLOCK);
}

/* Converts a row of a CMYK file. A value of 255 means "without ink", as Adobe's programs and Pillow have it. */
static void convert_cmyk(const reader *r, uint8_t *to)
{
    for (int64_t x = 0; x < r->out->width; x++) {
        uint8_t ink[4];
        for (int c = 0; c < 4; c++)
            ink[c] = (uint8_t)(255 - r->row[4 * x + c]);
        att_cmyk_to_rgb(ink, to + 3 * x);
    }
}

static void read_rows(reader *r)
{
    const bool cmyk = r->jpeg.out_color_space == JCS_CMYK;
    const int64_t width = r->jpeg.image_width, besides = coefficient_bytes(r) + (cmyk ? 4 * width : 0);
    const att_status s = att_image_file_alloc(r->file, r->jpeg.image_height, width, 3, besides, r->out);
    if (s)
        fail(r, s);
    r->row = cmyk ? att_alloc(r->file->ctx, (size_t)width, 4) : NULL;
    if (cmyk && !r->row)
        fail(r, ATT_ERR_MEMORY);
    jpeg_start_decompress(&r->jpeg);
    while (r->jpeg.output_scanline < r->jpeg.output_height) {
        uint8_t *to = r->out->pixels + (int64_t)r->jpeg.output_scanline * width * 3;
        JSAMPROW row = cmyk ? r->row : to;
        jpeg_read_scanlines(&r->jpeg, &row, 1);
        if (cmyk)
            convert_cmyk(r, to);
    }
}

static void read_file(reader *r)
{
    if (setjmp(r->failed))
        return;
    jpeg_create_decompress(&r->jpeg);
    r->jpeg.progress = &r->progress;
    read_header(r);
    const J_COLOR_SPACE space = r->jpeg.jpeg_color_space;
    r->jpeg.out_color_space = space == JCS_CMYK || space == JCS_YCCK ? JCS_CMYK : JCS_RGB;
    jpeg_calc_output_dimensions(&r->jpeg);
    read_rows(r);
}

att_status att_jpeg_decode(const att_image_file *f, att_image *out, int *orientation)
{
    reader r = {.file = f, .out = out, .orientation = orientation, .progress.progress_monitor = check_scans};
    r.jpeg.err = jpeg_std_error(&r.errors);
    r.errors.error_exit = fail_as_told;
    r.errors.emit_message = check_warning;
    r.errors.output_message = print_nothing;
    read_file(&r);
    jpeg_destroy_decompress(&r.jpeg);
    att_free(f->ctx, r.row);
    return r.status;
}
