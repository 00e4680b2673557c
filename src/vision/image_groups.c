/* Puts images of a set into groups, such as those of one animal, and holds out whole groups. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "vision/image_groups.h"
#include "train/shuffle.h"
#include "util/util.h"

#include <math.h>
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

/* ---- which group */

/* Returns the part of an image's path that begins with the folder of its class. */
static const char *from_class(const att_image_set *s, int64_t i)
{
    return att_names_at(&s->paths, i) + s->above_classes;
}

/* Adds the group of an image: its folder. */
static att_status add_folder(att_image_set *s, int64_t i)
{
    const char *path = att_names_at(&s->paths, i), *slash = strrchr(path, '/');
    return att_names_add_bytes(&s->groups, path, slash ? (size_t)(slash - path) : 0);
}

/* Adds the group of an image: what the expression matches, or its first parenthesis if that takes part. */
static att_status add_match(att_image_set *s, int64_t i, const pcre2_code *code, pcre2_match_data *data, bool *matches)
{
    const char *text = from_class(s, i);
    const int n = pcre2_match(code, (PCRE2_SPTR)text, strlen(text), 0, 0, data, NULL);
    *matches = n > 0;
    if (n < 0 && n != PCRE2_ERROR_NOMATCH)
        return att_fail(s->ctx, ATT_ERR_ARGUMENT, "the expression takes too long, or too much memory, on \"%.200s\"",
                        text);
    if (n < 0)
        return att_names_add(&s->groups, att_names_at(&s->paths, i));
    const PCRE2_SIZE *at = pcre2_get_ovector_pointer(data);
    const int of = n > 1 && at[2] != PCRE2_UNSET ? 2 : 0;
    return att_names_add_bytes(&s->groups, text + at[of], at[of + 1] > at[of] ? at[of + 1] - at[of] : 0);
}

static att_status add_matches(att_image_set *s, const char *pattern, int64_t *alone)
{
    int number;
    PCRE2_SIZE where;
    PCRE2_UCHAR why[128];
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, 0, &number, &where, NULL);
    if (!code) {
        pcre2_get_error_message(number, why, sizeof why);
        return att_fail(s->ctx, ATT_ERR_ARGUMENT, "\"%.200s\" is not a regular expression: %s, at character %zu",
                        pattern, (const char *)why, (size_t)where + 1);
    }
    pcre2_match_data *data = pcre2_match_data_create_from_pattern(code, NULL);
    att_status e = data ? ATT_OK : att_fail(s->ctx, ATT_ERR_MEMORY, "out of memory for a regular expression");
    for (int64_t i = 0; !e && i < s->info.images; i++) {
        bool matches;
        e = add_match(s, i, code, data, &matches);
        *alone += !matches;
    }
    pcre2_match_data_free(data);
    pcre2_code_free(code);
    if (!e && *alone == s->info.images)
        e = att_fail(s->ctx, ATT_ERR_ARGUMENT, "\"%.200s\" matches no image; the first is \"%.200s\"", pattern,
                     from_class(s, 0));
    return e;
}

att_status att_image_set_group(att_image_set *s, const char *pattern, int64_t *alone)
{
    int64_t not_matched = 0;
    if (att_require(__func__, ATT_NAMED({"s", s}, {"pattern", pattern})))
        return ATT_ERR_ARGUMENT;
    if (!s->paths.n)
        return att_fail(s->ctx, ATT_ERR_ARGUMENT, "only images in folders have groups, not those of %s",
                        s->info.format);
    att_names_free(&s->groups);
    s->groups = (att_names){.text.ctx = s->ctx};
    att_status e = ATT_OK;
    if (strcmp(pattern, "folder") != 0)
        e = add_matches(s, pattern, &not_matched);
    else
        for (int64_t i = 0; !e && i < s->info.images; i++)
            e = add_folder(s, i);
    if (e) {
        att_names_free(&s->groups);
        s->groups = (att_names){.text.ctx = s->ctx};
    }
    if (alone)
        *alone = not_matched;
    return e;
}

const char *att_image_set_group_of(const att_image_set *s, int64_t i)
{
    return s && i >= 0 && i < (int64_t)s->groups.n ? att_names_at(&s->groups, i) : NULL;
}

/* ---- holding out groups */

typedef struct named {
    const char *group;
    int64_t image;
} named;

static int by_group(const void *a, const void *b)
{
    const named *x = a, *y = b;
    const int order = strcmp(x->group, y->group);
    return order ? order : (x->image > y->image) - (x->image < y->image);
}

/* A division in two. */
typedef struct division {
    const att_image_set *s;
    named *image;   /* [images]: by group */
    int64_t *first; /* [groups + 1]: in `image` */
    int64_t groups;
    uint32_t *order; /* [groups]: at random */
    int64_t *all;    /* [classes]: images */
    int64_t *held;   /* [classes]: those that are held out */
    double *wanted;  /* [classes]: as many as should be */
    bool *marked;    /* [images] */
} division;

static void add(division *d, int64_t group, int sign)
{
    for (int64_t k = d->first[group]; k < d->first[group + 1]; k++)
        d->held[d->s->classes[d->image[k].image]] += sign;
}

/* Returns how far the held-out images are from the wanted shares: the sum over classes of the squared difference. */
static double distance(const division *d)
{
    double sum = 0;
    for (int64_t c = 0; c < d->s->info.classes; c++) {
        const double x = d->all[c] ? ((double)d->held[c] - d->wanted[c]) / (double)d->all[c] : 0;
        sum += x * x;
    }
    return sum;
}

/* Returns whether each class keeps an image. */
static bool all_keep(const division *d)
{
    bool keep = true;
    for (int64_t c = 0; c < d->s->info.classes; c++)
        keep &= d->held[c] < d->all[c] || !d->all[c];
    return keep;
}

/* Holds out a group, if each class keeps an image. */
static bool hold(division *d, int64_t group)
{
    add(d, group, 1);
    if (!all_keep(d)) {
        add(d, group, -1);
        return false;
    }
    for (int64_t k = d->first[group]; k < d->first[group + 1]; k++)
        d->marked[d->image[k].image] = true;
    return true;
}

static bool has_class(const division *d, int64_t group, int64_t class)
{
    bool has = false;
    for (int64_t k = d->first[group]; k < d->first[group + 1]; k++)
        has |= d->s->classes[d->image[k].image] == class;
    return has;
}

/* Goes through the groups in random order, and holds out each that brings the shares of the classes nearer to what is
 * wanted. Then a class without any held-out image gives its smallest group, if it can. */
static int64_t choose(division *d)
{
    int64_t n = 0;
    for (int64_t i = 0; i < d->groups; i++) {
        const int64_t group = d->order[i];
        const double before = distance(d);
        add(d, group, 1);
        const bool nearer = distance(d) < before;
        add(d, group, -1);
        if (nearer)
            hold(d, group);
    }
    for (int64_t c = 0; c < d->s->info.classes; c++) {
        int64_t smallest = -1;
        for (int64_t i = 0; !d->held[c] && i < d->groups; i++) {
            const int64_t g = d->order[i];
            if (has_class(d, g, c) &&
                (smallest < 0 || d->first[g + 1] - d->first[g] < d->first[smallest + 1] - d->first[smallest]))
                smallest = g;
        }
        if (smallest >= 0)
            hold(d, smallest);
    }
    for (int64_t c = 0; c < d->s->info.classes; c++)
        n += d->held[c];
    return n;
}

static void number_groups(division *d)
{
    const int64_t images = d->s->info.images;
    for (int64_t i = 0; i < images; i++)
        d->image[i] = (named){att_names_at(&d->s->groups, i), i};
    qsort(d->image, (size_t)images, sizeof *d->image, by_group);
    for (int64_t i = 0; i < images; i++)
        if (i == 0 || strcmp(d->image[i].group, d->image[i - 1].group) != 0)
            d->first[d->groups++] = i;
    d->first[d->groups] = images;
}

att_status att_image_groups_mark(const att_image_set *s, double share, uint64_t seed, bool *marked, int64_t *n)
{
    att_ctx *ctx = s->ctx;
    const size_t images = (size_t)s->info.images, classes = (size_t)s->info.classes;
    division d = {.s = s,
                  .image = att_alloc(ctx, images, sizeof *d.image),
                  .first = att_alloc(ctx, images + 1, sizeof *d.first),
                  .order = att_alloc(ctx, images, sizeof *d.order),
                  .all = att_calloc(ctx, classes, sizeof *d.all),
                  .held = att_calloc(ctx, classes, sizeof *d.held),
                  .wanted = att_calloc(ctx, classes, sizeof *d.wanted),
                  .marked = marked};
    const att_status e = d.image && d.first && d.order && d.all && d.held && d.wanted ? ATT_OK : ATT_ERR_MEMORY;
    if (!e) {
        number_groups(&d);
        att_permutation(seed, ATT_GROUP_STREAM, 0, d.groups, d.order);
        for (size_t i = 0; i < images; i++)
            d.all[s->classes[i]]++;
        for (size_t c = 0; c < classes; c++)
            d.wanted[c] = share * (double)d.all[c];
        *n = choose(&d);
    }
    att_free(ctx, d.wanted);
    att_free(ctx, d.held);
    att_free(ctx, d.all);
    att_free(ctx, d.order);
    att_free(ctx, d.first);
    att_free(ctx, d.image);
    return e;
}
