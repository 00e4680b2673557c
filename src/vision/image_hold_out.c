/* Divides a set of images in two. */
#include "vision/image_groups.h"
#include "util/util.h"

#include <math.h>
#include <string.h>

/* The last word of counters of random numbers. Trainings use other ones. */
enum { RANDOM_HOLD_OUT = 3 };

/* The images of a class that are not yet assigned, and the number of them that will be marked. */
typedef struct class_rest {
    int64_t count, needed;
} class_rest;

/* Marks round(share * count) images of each class at random, where count = rest[class].count; of two or more images at
 * least one is marked, and at least one is not. Each image is marked with the probability that its class still needs
 * (selection sampling, Knuth 1969). rest [classes] becomes 0. Returns the number of marked images. */
static int64_t mark(const att_image_set *s, double share, uint64_t seed, class_rest *rest, bool *marked)
{
    int64_t total = 0;
    for (int64_t c = 0; c < s->info.classes; c++) {
        const int64_t all = rest[c].count;
        rest[c].needed = all > 1 ? att_min(att_max(llround(share * (double)all), 1), all - 1) : 0;
        total += rest[c].needed;
    }
    for (int64_t i = 0; i < s->info.images; i++) {
        uint32_t r[4];
        class_rest *of = &rest[s->classes[i]];
        att_random(seed, (const uint32_t[]){(uint32_t)i, (uint32_t)(i >> 32), 0, RANDOM_HOLD_OUT}, r);
        marked[i] = (uint64_t)r[0] * (uint64_t)of->count >> 32 < (uint64_t)of->needed;
        of->needed -= marked[i];
        of->count--;
    }
    return total;
}

/* Appends image i of s to `to`, which has room for it. */
static att_status append(const att_image_set *s, int64_t i, att_image_set *to)
{
    const size_t bytes = (size_t)(s->info.height * s->info.width * s->info.channels);
    const int64_t n = to->info.images++;
    to->classes[n] = s->classes[i];
    if (!s->pixels) {
        const att_status e = s->groups.n ? att_names_add(&to->groups, att_names_at(&s->groups, i)) : ATT_OK;
        return e ? e : att_names_add(&to->paths, att_names_at(&s->paths, i));
    }
    memcpy(to->pixels + (size_t)n * bytes, s->pixels + (size_t)i * bytes, bytes);
    return ATT_OK;
}

/* Makes a set with the labels of s and room for n images. */
static att_status make_like(const att_image_set *s, int64_t n, att_image_set **out)
{
    att_image_set *x = att_calloc(s->ctx, 1, sizeof *x);
    *out = NULL;
    if (!x)
        return ATT_ERR_MEMORY;
    x->ctx = x->labels.text.ctx = x->paths.text.ctx = x->groups.text.ctx = s->ctx;
    x->above_classes = s->above_classes;
    x->info = s->info;
    x->info.images = 0;
    memcpy(x->passed_over, s->passed_over, sizeof x->passed_over);
    memcpy(x->background, s->background, sizeof x->background);
    x->has_background = s->has_background;
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

static att_status divide(att_image_set *s, double share, uint64_t seed, class_rest *count, bool *marked,
                         att_image_set **out)
{
    att_image_set *rest;
    int64_t n = 0;
    att_status e = ATT_OK;
    for (int64_t i = 0; i < s->info.images; i++)
        count[s->classes[i]].count++;
    if (s->groups.n)
        e = att_image_groups_mark(s, share, seed, marked, &n);
    else
        n = mark(s, share, seed, count, marked);
    if (e)
        return e;
    if (n < 1 && s->groups.n)
        return att_fail(s->ctx, ATT_ERR_ARGUMENT,
                        "no group of images can be held out: some class would have no image left");
    if (n < 1)
        return att_fail(s->ctx, ATT_ERR_ARGUMENT,
                        "each of the %lld classes has at most one image, so none can be held out",
                        (long long)s->info.classes);
    e = copy(s, marked, true, n, out);
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
    if (atomic_load(&s->trainings) > 0)
        return att_fail(s->ctx, ATT_ERR_ARGUMENT,
                        "a training is open that reads these images: hold them out before it begins, or end it "
                        "(att_training_free)");
    class_rest *count = att_calloc(s->ctx, (size_t)s->info.classes, sizeof *count);
    bool *marked = att_calloc(s->ctx, (size_t)s->info.images, sizeof *marked);
    const att_status e = count && marked ? divide(s, share, seed, count, marked, out) : ATT_ERR_MEMORY;
    att_free(s->ctx, marked);
    att_free(s->ctx, count);
    return e;
}

att_status att_count_left(att_ctx *ctx, const bool *out, int64_t images, int64_t *n)
{
    *n = 0;
    for (int64_t i = 0; i < images; i++)
        *n += !out[i];
    return *n || !images ? ATT_OK : att_fail(ctx, ATT_ERR_ARGUMENT, "all %lld images are left out", (long long)images);
}

att_status att_image_set_leave_out(att_image_set *s, const bool *out)
{
    int64_t n;
    att_image_set *rest;
    if (att_require(__func__, ATT_NAMED({"s", s}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    if (atomic_load(&s->trainings) > 0)
        return att_fail(s->ctx, ATT_ERR_ARGUMENT,
                        "att_image_set_leave_out: a training that reads from the set is open");
    att_status e = att_count_left(s->ctx, out, s->info.images, &n);
    if (e || n == s->info.images)
        return e;
    e = copy(s, out, false, n, &rest);
    if (e)
        return e;
    const att_image_set was = *s;
    *s = *rest;
    *rest = was;
    att_image_set_free(rest);
    return ATT_OK;
}
