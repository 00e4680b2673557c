/* Where the words of a caption come from: they are decoded in one pass while their attention is recorded. */
#include "attend_util.h"
#include "model/attention_recorder.h"
#include "caption/caption_model.h"

#include <string.h>

/* The caption, of one image */
typedef struct forced {
    const att_caption_model *m;
    att_caption_batch batch;
    att_tensor grid;
    int64_t locations;
    float *weights; /* [words, locations] */
} forced;

/* Of additive attention */
static att_status compute_weights(att_tape *t, const forced *f)
{
    att_var *weights = NULL;
    att_tensor w;
    att_var *y = att_captioner_logits(t, f->m->captioner, att_constant(t, &f->grid), &f->batch, &weights);
    att_status s = att_var_value(t, y, &w);
    s = s ? s : att_var_value(t, weights, &w);
    if (!s)
        memcpy(f->weights, w.data, (size_t)(f->batch.offsets[1] * f->locations) * sizeof *f->weights);
    return s;
}

/* The mean of all heads of the last layer of a Transformer; l: its tape's recorder */
static att_status record(att_tape *t, const forced *f, const att_source_recorder *l)
{
    att_tensor y;
    const att_status s =
        att_var_value(t, att_captioner_logits(t, f->m->captioner, att_constant(t, &f->grid), &f->batch, NULL), &y);
    return s ? s : l->status;
}

static att_status compute(const forced *f)
{
    const att_captioner_config *c = &f->m->captioner->config;
    const bool transformer = c->decoder == ATT_CAPTIONER_TRANSFORMER;
    const att_nn_name scope = att_transformer_decoder_scope(c->layers - 1);
    att_source_recorder l = {.scope = scope.text, .heads = c->heads, .columns = f->locations, .weights = f->weights};
    l.head = att_alloc(f->m->ctx, (size_t)(f->batch.offsets[1] * f->locations), sizeof *l.head);
    att_tape *t = NULL;
    att_status s = !l.head ? ATT_ERR_MEMORY
                           : att_tape_new(f->m->ctx,
                                          ATT_OPTIONS(att_tape_config, .hook = transformer ? att_source_record : NULL,
                                                      .hook_user = &l),
                                          &t);
    s = s ? s : transformer ? record(t, f, &l) : compute_weights(t, f);
    att_tape_free(t);
    att_free(f->m->ctx, l.head);
    return s;
}

static att_status check(const att_caption_model *m, const int32_t *ids, int64_t n)
{
    const att_captioner_config *c = &m->captioner->config;
    if (n < 1 || n > c->max_positions)
        return att_fail(m->ctx, ATT_ERR_ARGUMENT, "att_caption_attend: n is %lld, not in [1, %lld]", (long long)n,
                        (long long)c->max_positions);
    if (att_require("att_caption_attend", ATT_NAMED({"ids", ids})))
        return ATT_ERR_ARGUMENT;
    if (!c->attention)
        return att_fail(
            m->ctx, ATT_ERR_UNSUPPORTED,
            "there are no locations of words: the model has no attention, but one context vector of an image");
    for (int64_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= c->vocabulary)
            return att_fail(m->ctx, ATT_ERR_ARGUMENT, "att_caption_attend: ids[%lld] is %d, not in [0, %lld)",
                            (long long)i, (int)ids[i], (long long)c->vocabulary);
    return ATT_OK;
}

att_status att_caption_attend(const att_caption_model *m, const att_image *image, const int32_t *ids, int64_t n,
                              att_caption_attention *out)
{
    if (out)
        *out = (att_caption_attention){0};
    if (att_require(__func__, ATT_NAMED({"m", m}, {"image", image}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_status s = check(m, ids, n);
    if (s)
        return s;
    const att_captioner_config *c = &m->captioner->config;
    const int64_t of_image[] = {0, 1}, offsets[] = {0, n};
    att_caption_attention a = {.grid = {c->grid[0], c->grid[1]}, .words = n};
    forced f = {.m = m,
                .batch = {.images = 1, .captions = 1, .of_image = of_image, .words = ids, .offsets = offsets},
                .locations = c->grid[0] * c->grid[1]};
    float *grid = att_alloc(m->ctx, (size_t)att_caption_grid_size(m), sizeof *grid);
    f.weights = a.weights = att_calloc(m->ctx, (size_t)(n * f.locations), sizeof *a.weights);
    s = grid && a.weights ? att_caption_grids(m, 1, image, grid) : ATT_ERR_MEMORY;
    s = s ? s : att_wrap(&f.grid, grid, ATT_F32, 2, (const int64_t[]){f.locations, c->features}, NULL);
    s = s ? s : compute(&f);
    s = s ? s : att_image_processor_crop(m->processor, image, &a.image);
    att_free(m->ctx, grid);
    if (s)
        att_caption_attention_free(m->ctx, &a);
    else
        *out = a;
    return s;
}

void att_caption_attention_free(att_ctx *ctx, att_caption_attention *a)
{
    if (!ctx || !a)
        return;
    att_image_free(ctx, &a->image);
    att_free(ctx, a->weights);
    *a = (att_caption_attention){0};
}
