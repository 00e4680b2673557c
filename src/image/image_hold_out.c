/* Divides a set of images in two. */
#include "image/image_set.h"

#include <math.h>
#include <string.h>

/* The last word of counters of random numbers: those of trainings are other ones. */
enum { RANDOM_HOLD_OUT = 3 };

/* Of each class, which has count[class] images, marks round(share * count) of them at random: each image with the
 * probability that its class still needs (Knuth 1969, selection sampling). count: becomes 0. -> number marked */
static int64_t mark(const att_image_set *s, double share, uint64_t seed, int64_t *count, bool *marked)
{
    int64_t total = 0;
    for (int32_t c = 0; c < s->info.classes; c++) {
        int64_t needed = llround(share * (double)count[c]);
        total += needed;
        for (int64_t i = 0; i < s->info.images; i++) {
            uint32_t r[4];
            if (s->classes[i] != c)
                continue;
            att_random(seed, (const uint32_t[]){(uint32_t)i, (uint32_t)(i >> 32), 0, RANDOM_HOLD_OUT}, r);
            marked[i] = (uint64_t)r[0] * (uint64_t)count[c] >> 32 < (uint64_t)needed;
            needed -= marked[i];
            count[c]--;
        }
    }
    return total;
}

/* Appends image i of s to `to`, which has room for it; in memory it may be the same set. */
static att_status append(const att_image_set *s, int64_t i, att_image_set *to)
{
    const size_t bytes = (size_t)(s->info.height * s->info.width * s->info.channels);
    const int64_t n = to->info.images++;
    to->classes[n] = s->classes[i];
    if (!s->pixels)
        return att_names_add(&to->paths, att_names_at(&s->paths, i));
    memmove(to->pixels + (size_t)n * bytes, s->pixels + (size_t)i * bytes, bytes);
    return ATT_OK;
}

/* A set with the labels of s and room for n images. */
static att_status make_like(const att_image_set *s, int64_t n, att_image_set **out)
{
    att_image_set *x = att_calloc(s->ctx, 1, sizeof *x);
    if (!x)
        return ATT_ERR_MEMORY;
    x->ctx = x->labels.text.ctx = x->paths.text.ctx = s->ctx;
    x->info = s->info;
    x->info.images = 0;
    x->classes = att_alloc(s->ctx, (size_t)n, sizeof *x->classes);
    if (s->pixels)
        x->pixels = att_alloc(s->ctx, (size_t)n, (size_t)(s->info.height * s->info.width * s->info.channels));
    att_status e = x->classes && !s->pixels == !x->pixels ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t i = 0; !e && i < s->info.classes; i++)
        e = att_names_add(&x->labels, att_names_at(&s->labels, i));
    if (e)
        att_image_set_free(x);
    *out = e ? NULL : x;
    return e;
}

/* Copies the images with this mark. */
static att_status copy(const att_image_set *s, const bool *marked, bool mark, int64_t n, att_image_set **out)
{
    att_status e = make_like(s, n, out);
    for (int64_t i = 0; !e && i < s->info.images; i++)
        if (marked[i] == mark)
            e = append(s, i, *out);
    if (e) {
        att_image_set_free(*out);
        *out = NULL;
    }
    return e;
}

static att_status divide(att_image_set *s, double share, uint64_t seed, int64_t *count, bool *marked,
                         att_image_set **out)
{
    att_image_set *rest;
    for (int64_t i = 0; i < s->info.images; i++)
        count[s->classes[i]]++;
    const int64_t n = mark(s, share, seed, count, marked);
    if (n < 1 || n >= s->info.images)
        return att_fail(s->ctx, ATT_ERR_ARGUMENT,
                        "a share of %g would move %lld of %lld images, of each class the nearest number", share,
                        (long long)n, (long long)s->info.images);
    att_status e = copy(s, marked, true, n, out);
    e = e ? e : copy(s, marked, false, s->info.images - n, &rest);
    if (e) {
        att_image_set_free(*out);
        *out = NULL;
        return e;
    }
    const att_image_set was = *s;
    *s = *rest;
    *rest = was;
    att_image_set_free(rest);
    return ATT_OK;
}

att_status att_image_set_hold_out(att_image_set *s, double share, uint64_t seed, att_image_set **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"s", s}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    if (!(share > 0 && share < 1))
        return att_fail(s->ctx, ATT_ERR_ARGUMENT, "share is %g, not in (0, 1)", share);
    int64_t *count = att_calloc(s->ctx, (size_t)s->info.classes, sizeof *count);
    bool *marked = att_calloc(s->ctx, (size_t)s->info.images, sizeof *marked);
    const att_status e = count && marked ? divide(s, share, seed, count, marked, out) : ATT_ERR_MEMORY;
    att_free(s->ctx, marked);
    att_free(s->ctx, count);
    return e;
}
