/* The training of a sentence model in a folder. */
#include "model/sentence.h"
#include "train/training.h"

#include <sys/stat.h>

typedef struct learner {
    att_ctx *ctx;
    att_sentence_training_options options;
    att_sentence *model;
} learner;

/* The training would take the place of what it begins with. */
static bool same_folder(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static att_status begin(void *self, const char *folder, bool resume, att_trainer **out)
{
    learner *t = self;
    (void)resume;
    if (same_folder(t->options.model, folder))
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "%s: is the model's own folder; a training needs another one",
                        folder);
    const att_status e = att_sentence_learn(t->ctx, t->options.model, &t->model);
    return e ? e : att_sentence_trainer_new(t->model, &t->options.learn, out);
}

static att_status write(const void *self, const char *folder, att_dtype dtype)
{
    return att_sentence_write(((const learner *)self)->model, folder, dtype);
}

static void free_learner(void *self)
{
    learner *t = self;
    att_sentence_free(t->model);
    att_free(t->ctx, t);
}

static int64_t judged_by(const void *self) { return ((const learner *)self)->options.judged_by; }

static const att_training_kind kind = {.begin = begin, .write = write, .free = free_learner, .judged_by = judged_by};

att_status att_sentence_training_open(att_ctx *ctx, const char *folder, const att_sentence_training_options *options,
                                      att_training **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"folder", folder}, {"options", options}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    learner *t = att_calloc(ctx, 1, sizeof *t);
    if (!t)
        return ATT_ERR_MEMORY;
    t->ctx = ctx;
    att_status e = att_take_options(&t->options, sizeof t->options, options, "att_sentence_training_options");
    if (!e && !t->options.model)
        e = att_fail(ctx, ATT_ERR_ARGUMENT, "options.model is NULL");
    if (e) {
        free_learner(t);
        return e;
    }
    const att_sentence_training_options *o = &t->options;
    const att_training_start start = {o->resume, o->keep ? o->keep : 2, o->note, o->note_bytes};
    return att_training_make(ctx, folder, &start, &kind, t, out);
}

const att_sentence *att_training_sentence(const att_training *t)
{
    return t && t->kind == &kind ? ((const learner *)t->self)->model : NULL;
}
