/* The route of captions. */
#include "images.h"
#include "routes.h"

#include <stdlib.h>
#include <string.h>

typedef struct caption_fields {
    serve_texts image;
    serve_text model;
    int64_t n, beam;
} caption_fields;

enum { MAX_BEAM = 64 };

static const serve_field caption_table[] = {
    {"image", SERVE_TEXTS, offsetof(caption_fields, image), .required = true, .max = 64,
     .help = "image file (JPEG, PNG, WebP, TIFF) as base64, also as a data URL, or a list of them; in a form the file"},
    SERVE_MODEL_FIELD(caption_fields, "captioner"),
    {"n", SERVE_INTEGER, offsetof(caption_fields, n), .min = 1, .max = MAX_BEAM, .usual = 1,
     .help = "number of captions of each image, the best ones"},
    {"beam", SERVE_INTEGER, offsetof(caption_fields, beam), .min = 1, .max = MAX_BEAM, .usual = 5,
     .help = "beam size, at least n; 1: greedy search"},
    {0},
};

typedef struct caption_job {
    serve_job base;
    const serve_images *images;
    int64_t n, beam;
    att_image_caption *out; /* [images, n] */
} caption_job;

static const serve_images *images_of(const serve_job *j) { return ((const caption_job *)j)->images; }

static bool fits(const serve_job *a, const serve_job *b)
{
    const caption_job *x = (const caption_job *)a, *y = (const caption_job *)b;
    return x->n == y->n && x->beam == y->beam;
}

static att_status run(const serve_batch *b)
{
    const caption_job *first = (const caption_job *)b->job[0];
    const size_t n = (size_t)b->n, k = (size_t)first->n;
    att_image *images = malloc(n * sizeof *images);
    att_image_caption *out = calloc(n * k, sizeof *out);
    att_status s = images && out ? ATT_OK : ATT_ERR_MEMORY;
    if (!s) {
        serve_images_gather(b, images_of, images);
        s = att_caption(att_any_model_as(b->model->opened, ATT_SUBJECT_CAPTION), b->n, images,
                        ATT_OPTIONS(att_caption_options, .beam = first->beam, .n_best = first->n), out);
    }
    for (size_t i = 0; !s && i < n; i++)
        memcpy(((caption_job *)b->job[i])->out + (size_t)b->item[i] * k, out + i * k, k * sizeof *out);
    free(images);
    free(out);
    return s;
}

static const serve_work work = {.name = "caption", .fits = fits, .run = run};

static void write_captions(serve_call *c, const serve_model *m, const caption_job *j)
{
    cli_json o = serve_answer_open(c);
    cli_json_object(&o, NULL);
    cli_json_string(&o, "object", "list");
    cli_json_array(&o, "data");
    for (int64_t i = 0; i < j->images->n; i++) {
        const att_image_caption *best = j->out + i * j->n;
        cli_json_object(&o, NULL);
        cli_json_integer(&o, "index", i);
        cli_json_string(&o, "caption", best->text);
        cli_json_array(&o, "captions");
        for (int64_t k = 0; k < j->n && best[k].text; k++) {
            cli_json_object(&o, NULL);
            cli_json_string(&o, "text", best[k].text);
            cli_json_float(&o, "score", best[k].score);
            cli_json_end(&o);
        }
        cli_json_end(&o);
        cli_json_end(&o);
    }
    cli_json_end(&o);
    cli_json_string(&o, "model", m->id);
    serve_answer_close(c, &o);
}

static void run_job(serve_call *c, serve_model *m, caption_job *j)
{
    const att_caption_model_info *info = &m->info.captioner;
    int64_t *cost = malloc((size_t)j->images->n * sizeof *cost), all = 0;
    j->out = calloc((size_t)(j->images->n * j->n), sizeof *j->out);
    for (int64_t i = 0; cost && i < j->images->n; i++)
        all += cost[i] = info->grid[0] * info->grid[1] + info->max_words;
    j->base = (serve_job){.work = &work, .model = m, .n = j->images->n, .cost = cost};
    if (!cost || !j->out) {
        serve_refuse(c, 503, NULL, "out of memory");
    } else if (serve_call_run(c, &j->base)) {
        serve_call_count(c, all, 0);
        write_captions(c, m, j);
    }
    for (int64_t i = 0; j->out && i < j->images->n * j->n; i++)
        att_image_caption_free(c->shared->models.ctx, &j->out[i]);
    free(j->out);
    free(cost);
}

static void answer_caption(serve_call *c, void *fields)
{
    const caption_fields *o = fields;
    serve_images images = {0};
    serve_model *m = serve_call_model(c, o->model, ATT_SUBJECT_CAPTION);
    if (!m)
        return;
    if (serve_images_read(c, "image", &o->image, &images)) {
        caption_job j = {.images = &images, .n = o->n, .beam = o->beam > o->n ? o->beam : o->n};
        run_job(c, m, &j);
    }
    serve_images_free(c, &images);
}

#define CAPTIONS                                                                                                       \
    "{\"object\": \"string\", \"data\": [{\"index\": \"integer\", \"caption\": \"string\", \"captions\": "             \
    "[{\"text\": \"string\", \"score\": \"number\"}]}], \"model\": \"string\"}"

const serve_route serve_route_caption = {.method = "POST",
                                         .path = "/caption",
                                         .answers = CAPTIONS,
                                         .summary = "Captions of images",
                                         .fields = caption_table,
                                         .size = sizeof(caption_fields),
                                         .run = answer_caption,
                                         .form = true};
