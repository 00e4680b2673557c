#include "image_work.h"

#include <stdlib.h>
#include <string.h>

typedef struct image_job {
    serve_job base;
    const serve_images *images;
    int64_t classes;
    float *probability; /* [n, classes] */
} image_job;

static const serve_images *images_of(const serve_job *j) { return ((const image_job *)j)->images; }

static att_status run(const serve_batch *b)
{
    const size_t n = (size_t)b->n, classes = (size_t)((const image_job *)b->job[0])->classes;
    att_image *images = malloc(n * sizeof *images);
    float *out = malloc(n * classes * sizeof *out);
    att_status s = images && out ? ATT_OK : ATT_ERR_MEMORY;
    if (!s) {
        serve_images_gather(b, images_of, images);
        s = att_image_classify(att_any_model_as(b->model->opened, ATT_SUBJECT_VISION), b->n, images, NULL, out);
    }
    for (size_t i = 0; !s && i < n; i++)
        memcpy(((image_job *)b->job[i])->probability + (size_t)b->item[i] * classes, out + i * classes,
               classes * sizeof *out);
    free(images);
    free(out);
    return s;
}

static const serve_work work = {.name = "classify images", .run = run};

float *serve_classify_images(serve_call *c, serve_model *m, const serve_images *images)
{
    const att_image_model *model = att_any_model_as(m->opened, ATT_SUBJECT_VISION);
    const int64_t classes = att_image_model_classes(model);
    att_vit_info info = {.size = sizeof info};
    if (classes == 0) {
        serve_refuse(c, 400, "model", "%s has no classifier", m->id);
        return NULL;
    }
    int64_t *cost = malloc((size_t)images->n * sizeof *cost), all = 0;
    float *out = malloc((size_t)(images->n * classes) * sizeof *out);
    bool good = cost && out && !att_vit_describe(att_image_model_vit(model), &info);
    for (int64_t i = 0; good && i < images->n; i++)
        all += cost[i] = info.prefix + info.image[0] / info.patch[0] * (info.image[1] / info.patch[1]);
    image_job j = {.base = {.work = &work, .model = m, .n = images->n, .cost = cost},
                   .images = images,
                   .classes = classes,
                   .probability = out};
    if (!good)
        serve_refuse(c, 503, NULL, "out of memory");
    good = good && serve_call_run(c, &j.base);
    if (good)
        serve_call_count(c, all, 0);
    else
        free(out);
    free(cost);
    return good ? out : NULL;
}
