/* Traces captions. The words of a caption are decoded in one pass. */
#include "caption/caption_model.h"
#include "vision/image_trace.h"
#include "vision/vit.h"

/* The words of a caption, as the decoder's input. Words and offsets must be valid until the model has been applied. */
typedef struct forced {
    att_traced_image image;
    const att_captioner *captioner;
    att_caption_batch batch;
} forced;

static att_var *output(const void *self, att_tape *t, att_var *x)
{
    const forced *f = self;
    return att_captioner_output(t, f->captioner, x);
}

static att_var *apply(const void *self, att_tape *t)
{
    const forced *f = self;
    att_var *grid = att_image_run_one(t, &f->image.run, f->image.image);
    return att_captioner_states(t, f->captioner, grid, &f->batch, NULL);
}

/* Applies the model with a recurrent decoder. */
static att_var *apply_all(const void *self, att_tape *t) { return output(self, t, apply(self, t)); }

static att_status check(const att_caption_model *m, const int32_t *words, int64_t n)
{
    static const char caller[] = "att_caption_trace";
    const att_captioner_config *c = &m->captioner->config;
    if (n < 1 || n > c->max_positions)
        return att_fail(m->ctx, ATT_ERR_ARGUMENT, "%s: n is %lld, not in [1, %lld]", caller, (long long)n,
                        (long long)c->max_positions);
    if (att_require(caller, ATT_NAMED({"words", words})))
        return ATT_ERR_ARGUMENT;
    for (int64_t i = 0; i < n; i++)
        if (words[i] < 0 || words[i] >= c->vocabulary)
            return att_fail(m->ctx, ATT_ERR_ARGUMENT, "%s: words[%lld] is %d, not in [0, %lld)", caller, (long long)i,
                            (int)words[i], (long long)c->vocabulary);
    return ATT_OK;
}

/* Describes the tokens of both sides and the layers. An encoder that is a CNN has no attention. */
static void describe(const att_caption_model *m, const int32_t *words, int64_t n, att_trace_pass *pass)
{
    const att_captioner_config *c = &m->captioner->config;
    const att_vit *vit = att_image_model_vit(m->encoder);
    const int64_t prefix = vit ? vit->config.info.prefix : 0;
    pass->info = (att_trace_info){.source = prefix + c->grid[0] * c->grid[1],
                                  .target = n,
                                  .target_ids = words,
                                  .shifted = true,
                                  .grid = {c->grid[0], c->grid[1]},
                                  .prefix = prefix,
                                  .output_rows = n,
                                  .outputs = c->vocabulary};
    if (vit)
        att_vit_trace(vit, pass);
    if (c->decoder == ATT_CAPTIONER_TRANSFORMER) {
        att_transformer_decoder_trace(&m->captioner->transformer, prefix, pass);
        pass->apply = apply;
        pass->output = output;
    } else {
        att_recurrent_decoder_trace(&m->captioner->recurrent, prefix, pass);
        pass->apply = apply_all;
    }
}

att_status att_caption_trace(const att_caption_model *m, const att_image *image, const int32_t *words, int64_t n,
                             const att_trace_options *options, att_trace **out)
{
    static const int64_t of_image[] = {0, 1};
    att_trace_options o;
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"m", m}, {"image", image}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_status s = check(m, words, n);
    s = s ? s : att_options_read(&o, sizeof o, options, "att_trace_options");
    if (s)
        return s;
    const int64_t offsets[] = {0, n};
    forced self = {{.run = att_caption_grid_run(m)},
                   m->captioner,
                   {.images = 1, .captions = 1, .of_image = of_image, .words = words, .offsets = offsets}};
    att_trace_pass pass = {.ctx = m->ctx,
                           .compute = m->captioner->model.options.compute,
                           .caller = __func__,
                           .output_side = ATT_TRACE_SIDE_DECODER};
    describe(m, words, n, &pass);
    if (pass.parts == 0)
        return att_fail(
            m->ctx, ATT_ERR_UNSUPPORTED,
            "there are no locations of words: the model has no attention, but one context vector of an image");
    s = att_traced_image_open(&self.image, image, &o, &pass);
    return s ? s : att_trace_make(&pass, &self, sizeof self, &o, out);
}
