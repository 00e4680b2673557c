/* Reads WebP files, with libwebp if the build has it. */
#include "image/image.h"

#include <string.h>

#ifdef ATT_WEBP
#include <webp/decode.h>

/* ---- the container: "RIFF", a size, "WEBP", then chunks of a name, a size and data, of an even number of bytes */

enum { HEADER_BYTES = 12, CHUNK_HEADER_BYTES = 8 };

/* Returns the data of the first chunk of this name; data NULL: there is none. */
static att_byte_view find_chunk(const att_image_file *f, const char *name)
{
    const char *data = (const char *)f->data;
    for (size_t at = HEADER_BYTES; at + CHUNK_HEADER_BYTES <= f->bytes;) {
        const size_t room = f->bytes - at - CHUNK_HEADER_BYTES, bytes = att_read_number(data + at + 4, 4);
        if (bytes > room)
            break;
        if (!memcmp(data + at, name, 4))
            return (att_byte_view){data + at + CHUNK_HEADER_BYTES, bytes};
        at += CHUNK_HEADER_BYTES + bytes + bytes % 2;
    }
    return (att_byte_view){0};
}

/* ---- decoding */

static att_status refused(const att_image_file *f, VP8StatusCode why)
{
    static const char *const reasons[] = {[VP8_STATUS_INVALID_PARAM] = "its header is invalid",
                                          [VP8_STATUS_BITSTREAM_ERROR] = "its data is invalid",
                                          [VP8_STATUS_UNSUPPORTED_FEATURE] = "it has a feature that libwebp lacks",
                                          [VP8_STATUS_USER_ABORT] = "its decoding was stopped"};
    if (why == VP8_STATUS_NOT_ENOUGH_DATA || why == VP8_STATUS_SUSPENDED)
        return att_image_truncated(f, "WebP");
    if (why == VP8_STATUS_OUT_OF_MEMORY)
        return att_fail(f->ctx, ATT_ERR_MEMORY, "%s: out of memory", f->label);
    return att_fail(f->ctx, ATT_ERR_FORMAT, "%s: the WebP file is damaged: %s", f->label, reasons[why]);
}

/* Decodes an image, or a frame, to the pixels of out from (top, left) on. */
static att_status decode_to(const att_image_file *f, att_byte_view image, att_image *out, int64_t top, int64_t left)
{
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config))
        return att_fail(f->ctx, ATT_ERR_UNSUPPORTED, "%s: libwebp is of another version than its header", f->label);
    const int64_t stride = out->width * out->channels, offset = top * stride + left * out->channels;
    config.output.colorspace = out->channels == 4 ? MODE_RGBA : MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = out->pixels + offset;
    config.output.u.RGBA.stride = (int)stride;
    config.output.u.RGBA.size = (size_t)(out->height * stride - offset);
    const VP8StatusCode s = WebPDecode((const uint8_t *)image.data, image.bytes, &config);
    WebPFreeDecBuffer(&config.output);
    return s ? refused(f, s) : ATT_OK;
}

/* Decodes the first frame of an animation. It may be a part of the canvas, and the rest is transparent black. */
static att_status decode_frame(const att_image_file *f, att_image *out)
{
    enum { FRAME_HEADER_BYTES = 16 };
    const att_byte_view chunk = find_chunk(f, "ANMF");
    if (!chunk.data || chunk.bytes < FRAME_HEADER_BYTES)
        return att_image_truncated(f, "WebP");
    const att_byte_view image = {chunk.data + FRAME_HEADER_BYTES, chunk.bytes - FRAME_HEADER_BYTES};
    const int64_t left = 2 * (int64_t)att_read_number(chunk.data, 3),
                  top = 2 * (int64_t)att_read_number(chunk.data + 3, 3);
    WebPBitstreamFeatures frame;
    const VP8StatusCode s = WebPGetFeatures((const uint8_t *)image.data, image.bytes, &frame);
    if (s)
        return refused(f, s);
    if (frame.has_animation || left + frame.width > out->width || top + frame.height > out->height)
        return refused(f, VP8_STATUS_INVALID_PARAM);
    memset(out->pixels, 0, (size_t)(out->height * out->width * out->channels));
    return decode_to(f, image, out, top, left);
}

/* Returns the bytes that libwebp needs besides the pixels. A lossless image needs 4 bytes a pixel, and so does alpha,
 * which is stored like it, and which needs another byte; a lossy image needs a few rows. */
static int64_t bytes_besides(const WebPBitstreamFeatures *x)
{
    enum { LOSSY = 1 };
    const int64_t pixels = (int64_t)x->height * x->width;
    return x->format == LOSSY && !x->has_alpha ? 0 : pixels * (x->has_alpha ? 5 : 4);
}

att_status att_webp_decode(const att_image_file *f, att_image *out, int *orientation)
{
    WebPBitstreamFeatures features;
    const uint8_t *background = f->options.background;
    const VP8StatusCode why = WebPGetFeatures(f->data, f->bytes, &features);
    if (why)
        return refused(f, why);
    if (att_read_number(f->data + 4, 4) > f->bytes - CHUNK_HEADER_BYTES)
        return att_image_truncated(f, "WebP");
    att_status s =
        att_image_file_alloc(f, features.height, features.width, background ? 4 : 3, bytes_besides(&features), out);
    if (!s && features.has_animation)
        s = decode_frame(f, out);
    else if (!s)
        s = decode_to(f, (att_byte_view){(const char *)f->data, f->bytes}, out, 0, 0);
    if (s)
        return s;
    if (background)
        att_image_composite(out, background);
    *orientation = att_image_orientation(find_chunk(f, "EXIF"), find_chunk(f, "XMP "));
    return ATT_OK;
}

#else

att_status att_webp_decode(const att_image_file *f, att_image *out, int *orientation)
{
    (void)out, (void)orientation;
    return att_fail(f->ctx, ATT_ERR_UNSUPPORTED,
                    "%s is a WebP file, which this build of attend cannot read: it was built without libwebp",
                    f->label);
}

#endif
