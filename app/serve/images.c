#include "images.h"

#include "cli/base/base64.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PIXELS = 1 << 26 }; /* of an image */

/* Decodes an image file. One is decoded at a time, so that the memory that it needs meanwhile is that of one. */
static att_status decode(const serve_call *c, const char *label, const void *file, size_t bytes, att_image *out)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    const att_status s = att_image_decode(c->shared->models.ctx, label, file, bytes,
                                          ATT_OPTIONS(att_image_options, .max_pixels = MAX_PIXELS), out);
    pthread_mutex_unlock(&lock);
    return s;
}

/* Returns the text after "data:image/png;base64,", if it begins so. */
static const char *after_head(const char *text, size_t *bytes)
{
    const char *comma = !strncmp(text, "data:", 5) ? memchr(text, ',', *bytes) : NULL;
    if (comma)
        *bytes -= (size_t)(comma + 1 - text);
    return comma ? comma + 1 : text;
}

static bool read_image(serve_call *c, const char *field, const char *given, size_t bytes, serve_images *out)
{
    char label[64];
    unsigned char *file = NULL;
    size_t n = bytes;
    snprintf(label, sizeof label, "%s[%lld]", field, (long long)out->n);
    if (!c->is_form) {
        given = after_head(given, &bytes);
        file = malloc(bytes / 4 * 3 + 3);
        if (!file || !cli_base64_read(given, bytes, file, &n)) {
            serve_refuse(c, file ? 400 : 503, field, file ? "%s is not base64 of an image file" : "%s: out of memory",
                         label);
            free(file);
            return false;
        }
    }
    att_image *image = &out->image[out->n];
    const att_status s = decode(c, label, file ? (const void *)file : given, n, image);
    free(file);
    if (s) {
        serve_refuse(c, s == ATT_ERR_MEMORY ? 503 : 400, field, "%s", att_error(c->shared->models.ctx));
        return false;
    }
    const size_t pixels = (size_t)(image->height * image->width * image->channels);
    out->n++;
    if (!http_acquire(c->shared->http, pixels)) {
        serve_refuse(c, 503, field, "the images of all requests together fill --max-memory; retry later");
        return false;
    }
    out->bytes += pixels;
    return true;
}

bool serve_images_read(serve_call *c, const char *field, const serve_texts *given, serve_images *out)
{
    *out = (serve_images){.image = calloc((size_t)given->n, sizeof *out->image)};
    if (!out->image)
        serve_refuse(c, 503, field, "out of memory");
    for (int64_t i = 0; out->image && i < given->n; i++)
        if (!read_image(c, field, given->text[i], given->bytes[i], out))
            return false;
    return out->image;
}

void serve_images_free(const serve_call *c, serve_images *images)
{
    for (int64_t i = 0; i < images->n; i++)
        att_image_free(c->shared->models.ctx, &images->image[i]);
    free(images->image);
    http_release(c->shared->http, images->bytes);
}

void serve_images_gather(const serve_batch *b, const serve_images *(*of)(const serve_job *j), att_image *to)
{
    for (int64_t i = 0; i < b->n; i++)
        to[i] = of(b->job[i])->image[b->item[i]];
}
