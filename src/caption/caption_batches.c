#include "caption/caption_batches.h"
#include "util/util.h"
#include "caption/plain_words.h"

#include <string.h>

enum { RANDOM_CAPTIONS = 3 }; /* the last word of counters of random numbers; image_batches.c has the smaller ones */

struct att_caption_batches {
    att_ctx *ctx;
    att_caption_source source;
    att_caption_set_info info;
    uint64_t sum;
    int64_t longest;    /* words of a caption */
    int64_t *first;     /* [images + 1]: captions of an image */
    int64_t *begin;     /* [captions + 1]: words of a caption, and <end> */
    int32_t *ids;       /* [begin[captions]] */
    int32_t *position;  /* [words]: the number of the word among the predicted words; -1: not among them */
    int32_t *candidate; /* [info.max_captions]: captions of an image, for a choice */
    /* of the last batch */
    int64_t *of_image, *offsets;
    int32_t *words;
    uint32_t *sequence;
    float *lengths, *present;
};

/* ---- all captions as numbers */

/* Counts the words of each caption. */
static att_status count(att_caption_batches *b)
{
    const att_caption_source *s = &b->source;
    for (int64_t i = 0, caption = 0; i < b->info.images; i++) {
        for (int64_t k = 0; k < att_caption_set_count(s->set, i); k++, caption++) {
            const int64_t n = att_words_encode(s->words, att_caption_set_caption(s->set, i, k), NULL, 0) + 1;
            if (n > s->max_positions)
                return att_fail(b->ctx, ATT_ERR_ARGUMENT,
                                "%s: caption %lld has %lld words, but the model's \"max_positions\" is %lld, one of "
                                "them for the end",
                                att_caption_set_path(s->set, i), (long long)k + 1, (long long)n - 1,
                                (long long)s->max_positions);
            b->begin[caption + 1] = b->begin[caption] + n;
            b->longest = att_max(b->longest, n);
        }
        b->first[i + 1] = caption;
    }
    return ATT_OK;
}

static bool is_normalized(const char *text, att_bytes *plain)
{
    const size_t bytes = strlen(text);
    plain->count = 0;
    att_plain_words((att_byte_view){text, bytes}, plain);
    return plain->count == bytes && !memcmp(plain->data, text, bytes);
}

static att_status encode(att_caption_batches *b, const char *text, int64_t caption, att_bytes *plain)
{
    const att_words *w = b->source.words;
    int32_t *ids = b->ids + b->begin[caption];
    const int64_t n = b->begin[caption + 1] - b->begin[caption];
    if (!is_normalized(text, plain))
        return plain->status ? plain->status
                             : att_fail(b->ctx, ATT_ERR_ARGUMENT,
                                        "options.%s has captions as they were typed, but words are trained on "
                                        "normalized ones (att_caption_set_options.keep_text)",
                                        b->source.name);
    att_words_encode(w, text, ids, n - 1);
    ids[n - 1] = att_words_end(w);
    for (int64_t i = 0; i < n; i++)
        b->sum = att_fnv64(b->sum, (uint32_t)ids[i]);
    return ATT_OK;
}

static att_status encode_all(att_caption_batches *b)
{
    const att_caption_set *set = b->source.set;
    att_bytes plain = {.ctx = b->ctx};
    att_status e = ATT_OK;
    b->sum = ATT_FNV64_OFFSET;
    for (int64_t i = 0; !e && i < b->info.images; i++) {
        const char *path = att_caption_set_path(set, i), *name = strrchr(path, '/');
        b->sum = att_fnv64_text(b->sum, name ? name : path);
        for (int64_t k = b->first[i]; !e && k < b->first[i + 1]; k++)
            e = encode(b, att_caption_set_caption(set, i, k - b->first[i]), k, &plain);
    }
    att_bytes_free(&plain);
    return e;
}

static att_status find_predicted_words(att_caption_batches *b)
{
    const int64_t n = b->source.presence;
    int32_t *ids = att_alloc(b->ctx, (size_t)n + 1, sizeof *ids);
    if (!ids)
        return ATT_ERR_MEMORY;
    memset(b->position, 0xff, (size_t)att_words_size(b->source.words) * sizeof *b->position);
    att_words_content(b->source.words, ids, n);
    for (int64_t i = 0; i < n; i++)
        b->position[ids[i]] = (int32_t)i;
    att_free(b->ctx, ids);
    return ATT_OK;
}

/* ---- construction */

static int64_t captions_of(const att_caption_batches *b, int64_t image)
{
    const int64_t n = b->first[image + 1] - b->first[image];
    return b->source.per_image ? att_min(n, b->source.per_image) : n;
}

static att_status make_room(att_caption_batches *b)
{
    const att_caption_source *s = &b->source;
    const size_t images = (size_t)b->info.images, captions = (size_t)b->info.captions, max = (size_t)s->max,
                 room = max * (size_t)b->info.max_captions;
    b->first = att_calloc(b->ctx, images + 1, sizeof *b->first);
    b->begin = att_calloc(b->ctx, captions + 1, sizeof *b->begin);
    const att_status e = b->first && b->begin ? count(b) : ATT_ERR_MEMORY;
    if (e)
        return e;
    b->ids = att_alloc(b->ctx, (size_t)b->begin[captions], sizeof *b->ids);
    b->position = att_alloc(b->ctx, (size_t)att_words_size(s->words), sizeof *b->position);
    b->candidate = att_alloc(b->ctx, (size_t)b->info.max_captions, sizeof *b->candidate);
    b->of_image = att_alloc(b->ctx, max + 1, sizeof *b->of_image);
    b->offsets = att_alloc(b->ctx, room + 1, sizeof *b->offsets);
    b->words = att_alloc(b->ctx, room * (size_t)b->longest, sizeof *b->words);
    b->sequence = att_alloc(b->ctx, room, sizeof *b->sequence);
    b->lengths = att_alloc(b->ctx, room, sizeof *b->lengths);
    b->present = att_alloc(b->ctx, max * (size_t)s->presence + 1, sizeof *b->present);
    return b->ids && b->position && b->candidate && b->of_image && b->offsets && b->words && b->sequence &&
                   b->lengths && b->present
               ? ATT_OK
               : ATT_ERR_MEMORY;
}

att_status att_caption_batches_new(att_ctx *ctx, const att_caption_source *source, att_caption_batches **out)
{
    att_caption_batches *b = att_calloc(ctx, 1, sizeof *b);
    *out = NULL;
    if (!b)
        return ATT_ERR_MEMORY;
    b->ctx = ctx;
    b->source = *source;
    b->info.size = sizeof b->info;
    att_status e = att_caption_set_describe(source->set, &b->info);
    e = e ? e : make_room(b);
    e = e ? e : find_predicted_words(b);
    e = e ? e : encode_all(b);
    if (e)
        att_caption_batches_free(b);
    else
        *out = b;
    return e;
}

void att_caption_batches_free(att_caption_batches *b)
{
    if (!b)
        return;
    void *const all[] = {b->first,   b->begin, b->ids,      b->position, b->candidate, b->of_image,
                         b->offsets, b->words, b->sequence, b->lengths,  b->present,   b};
    att_ctx *ctx = b->ctx;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        att_free(ctx, all[i]);
}

uint64_t att_caption_batches_sum(const att_caption_batches *b) { return b->sum; }

/* ---- a batch */

/* Chooses n captions of an image: the first ones of a random order, in that order. */
static void choose(const att_caption_batches *b, int64_t epoch, uint32_t image, int64_t n)
{
    const int64_t all = b->first[image + 1] - b->first[image];
    for (int64_t k = 0; k < all; k++)
        b->candidate[k] = (int32_t)k;
    for (int64_t k = 0; n < all && k < n; k++) {
        uint32_t r[4];
        att_random(b->source.seed, (const uint32_t[]){image, (uint32_t)epoch, (uint32_t)k, RANDOM_CAPTIONS}, r);
        const int64_t with = k + (int64_t)((uint64_t)r[0] * (uint64_t)(all - k) >> 32);
        const int32_t was = b->candidate[k];
        b->candidate[k] = b->candidate[with];
        b->candidate[with] = was;
    }
}

static void mark_present(const att_caption_batches *b, uint32_t image, float *present)
{
    memset(present, 0, (size_t)b->source.presence * sizeof *present);
    for (int64_t i = b->begin[b->first[image]]; i < b->begin[b->first[image + 1]]; i++)
        if (b->position[b->ids[i]] >= 0)
            present[b->position[b->ids[i]]] = 1;
}

/* Adds a caption to the batch as number k. */
static void add(const att_caption_batches *b, int64_t caption, int64_t k, int64_t *targets)
{
    const int32_t *ids = b->ids + b->begin[caption], unknown = att_words_unknown(b->source.words);
    const int64_t n = b->begin[caption + 1] - b->begin[caption];
    memcpy(b->words + b->offsets[k], ids, (size_t)n * sizeof *ids);
    b->offsets[k + 1] = b->offsets[k] + n;
    b->sequence[k] = (uint32_t)caption;
    b->lengths[k] = (float)n;
    for (int64_t i = 0; i < n; i++)
        *targets += ids[i] != unknown;
}

att_caption_examples att_caption_batches_get(att_caption_batches *b, int64_t epoch, const uint32_t *images, int64_t n)
{
    att_caption_examples e = {.captions = {.images = n,
                                           .of_image = b->of_image,
                                           .words = b->words,
                                           .offsets = b->offsets,
                                           .sequence_ids = b->sequence,
                                           .lengths = b->lengths},
                              .present = b->present};
    b->offsets[0] = b->of_image[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t captions = captions_of(b, images[i]);
        choose(b, epoch, images[i], captions);
        for (int64_t k = 0; k < captions; k++)
            add(b, b->first[images[i]] + b->candidate[k], e.captions.captions++, &e.targets);
        b->of_image[i + 1] = e.captions.captions;
        mark_present(b, images[i], b->present + i * b->source.presence);
    }
    return e;
}
