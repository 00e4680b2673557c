/* Traces vision Transformers. */
#include "vision/image_trace.h"
#include "probe/probe.h"
#include "vision/vit.h"

/* ---- the image */

static void free_image(const void *self)
{
    const att_traced_image *x = self;
    if (x->crop)
        att_image_free(x->run.model->ctx, x->crop);
    att_free(x->run.model->ctx, x->crop);
}

att_status att_traced_image_open(att_traced_image *x, const att_image *image, const att_trace_options *options,
                                 att_trace_pass *pass)
{
    att_image_processor_info p = {.size = sizeof p};
    x->image = image;
    pass->free = free_image;
    if (options->ids || options->n_ids != 0)
        return att_fail(x->run.model->ctx, ATT_ERR_ARGUMENT, "%s: options.ids are given, but the tokens are an image's",
                        pass->caller);
    att_status s = att_image_processor_describe(x->run.processor, &p);
    pass->info.bytes = sizeof *x->crop + (size_t)(p.height * p.width * p.channels);
    if (s || options->describe_only)
        return s;
    x->crop = att_calloc(x->run.model->ctx, 1, sizeof *x->crop);
    s = x->crop ? att_image_processor_crop(x->run.processor, image, x->crop) : ATT_ERR_MEMORY;
    if (s)
        free_image(x);
    pass->info.image = x->crop;
    return s;
}

/* ---- vision Transformers */

typedef struct image_pass {
    att_traced_image image;
    const att_vit *vit;
    const att_probe *probe; /* or NULL */
} image_pass;

static att_var *states(att_tape *t, const void *vit, att_var *images) { return att_vit_apply(t, vit, images, NULL); }

static att_var *apply(const void *self, att_tape *t)
{
    const image_pass *p = self;
    return att_image_run_one(t, &p->image.run, p->image.image);
}

static att_var *output(const void *self, att_tape *t, att_var *x)
{
    const image_pass *p = self;
    return p->probe ? att_probe_apply(t, p->probe, att_vit_output_features(t, p->vit, x))
                    : att_vit_output(t, p->vit, x);
}

/* Returns the description of an image's tokens and of the model's results. */
static att_trace_info info_of(const att_image_model *m, const att_image_processor_info *input, const att_vit_info *v)
{
    const int64_t rows = input->height / v->patch[0], columns = input->width / v->patch[1],
                  classes = att_image_model_classes(m);
    return (att_trace_info){.source = v->prefix + rows * columns,
                            .grid = {rows, columns},
                            .prefix = v->prefix,
                            .output_rows = 1,
                            .outputs = classes ? classes : att_image_model_dim(m)};
}

att_status att_image_trace(const att_image_model *m, const att_image *image, const att_trace_options *options,
                           att_trace **out)
{
    att_trace_options o;
    att_image_processor_info input = {.size = sizeof input};
    att_vit_info v = {.size = sizeof v};
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"m", m}, {"image", image}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    const att_vit *vit = att_image_model_vit(m);
    const att_image_processor *processor = att_image_model_processor(m);
    att_status s = att_options_read(&o, sizeof o, options, "att_trace_options");
    s = s ? s : att_image_processor_describe(processor, &input);
    s = s ? s : att_vit_describe(vit, &v);
    if (s)
        return s;
    image_pass self = {{.run = {.model = &vit->model, .processor = processor, .apply = states, .user = vit}},
                       .vit = vit,
                       .probe = att_image_model_probe(m)};
    att_trace_pass pass = {.ctx = vit->model.ctx,
                           .compute = vit->model.options.compute,
                           .caller = __func__,
                           .info = info_of(m, &input, &v),
                           .apply = apply,
                           .output = output,
                           .whole = true};
    att_vit_trace(vit, &pass);
    s = att_traced_image_open(&self.image, image, &o, &pass);
    return s ? s : att_trace_make(&pass, &self, sizeof self, &o, out);
}
