#include "caption/caption_validation.h"
#include "io/string_list.h"
#include "util/util.h"
#include "decoder/beam_search.h"

#include "attend_metric.h"

enum { MAX_WORDS = 50 };

/* Appends the captions of images first to first + n - 1. found [n]: scratch memory, whose ids are NULL before and
 * after. */
static att_status caption_batch(att_caption_images *i, const att_words *w, att_tape *t, int64_t first, int64_t n,
                                att_finished *found, att_names *captions)
{
    const att_captioner_config *c = &i->model->config;
    const int32_t unknown = (int32_t)c->unknown;
    const att_search search = {.vocabulary = c->vocabulary,
                               .beam = 1,
                               .n_best = 1,
                               .max_tokens = att_min(c->max_positions, MAX_WORDS),
                               .start = (int32_t)c->end,
                               .end = (int32_t)c->end,
                               .no_scores = true,
                               .banned = &unknown,
                               .n_banned = 1};
    att_generator g = {0};
    att_tensor grids;
    att_bytes text = {.ctx = i->ctx};
    att_status e = att_var_value(t, att_caption_images_valid(i, t, first, n), &grids);
    e = e ? e : att_captioner_start(i->model, grids.data, n, &g);
    e = e ? e : att_search_run(&i->model->model, &search, &g, n, found);
    if (g.free)
        g.free(g.user);
    for (int64_t k = 0; !e && k < n; k++) {
        text.count = 0;
        e = att_words_decode(w, found[k].ids, found[k].count, &text);
        e = e ? e : att_names_add_bytes(captions, text.count ? text.data : "", text.count);
        att_free(i->ctx, found[k].ids);
        found[k].ids = NULL;
    }
    for (int64_t k = 0; k < n; k++)
        att_free(i->ctx, found[k].ids);
    att_bytes_free(&text);
    att_tape_reset(t);
    return e;
}

static att_status caption_all(att_caption_images *i, const att_words *w, int64_t n, att_names *captions)
{
    att_tape *t = NULL;
    att_finished *found = att_calloc(i->ctx, (size_t)i->batch, sizeof *found);
    att_status e = found ? att_model_tape(&i->model->model, &t) : ATT_ERR_MEMORY;
    for (int64_t first = 0; !e && first < n; first += i->batch)
        e = caption_batch(i, w, t, first, att_min(i->batch, n - first), found, captions);
    att_tape_free(t);
    att_free(i->ctx, found);
    return e;
}

/* Scores the texts against the captions of the first n images. */
static att_status compare(const att_caption_images *i, int64_t n, const att_names *captions, double *cider)
{
    const att_caption_set *set = i->set[1];
    int64_t all = 0;
    for (int64_t k = 0; k < n; k++)
        all += att_caption_set_count(set, k);
    const char **texts = att_alloc(i->ctx, (size_t)n, sizeof *texts),
               **references = att_alloc(i->ctx, (size_t)all, sizeof *references);
    int64_t *offsets = att_calloc(i->ctx, (size_t)n + 1, sizeof *offsets);
    att_status e = texts && references && offsets ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t k = 0; !e && k < n; k++) {
        texts[k] = att_names_at(captions, k);
        offsets[k + 1] = offsets[k];
        for (int64_t r = 0; r < att_caption_set_count(set, k); r++)
            references[offsets[k + 1]++] = att_caption_set_caption(set, k, r);
    }
    e = e ? e : att_cider(i->ctx, texts, n, references, offsets, NULL, cider);
    att_free(i->ctx, texts);
    att_free(i->ctx, references);
    att_free(i->ctx, offsets);
    return e;
}

att_status att_caption_greedy_cider(att_caption_images *images, const att_words *words, int64_t n, double *cider)
{
    att_names captions = {.text = {.ctx = images->ctx}};
    att_status e = caption_all(images, words, n, &captions);
    e = e ? e : compare(images, n, &captions, cider);
    att_names_free(&captions);
    return e;
}
