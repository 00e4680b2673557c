#include "probe/probe_training.h"
#include "io/check_texts.h"
#include "text/utf8.h"
#include "util/clock.h"

#include <stdio.h>
#include <string.h>

/* ---- examples */

static att_status check_names(const att_probe_examples *e)
{
    att_status s = att_check_texts(e->ctx, "the names of the classes", e->names, e->classes);
    for (int64_t i = 0; !s && i < e->classes; i++) {
        if (!att_utf8_valid(e->names[i], strlen(e->names[i])))
            s = att_fail(e->ctx, ATT_ERR_ARGUMENT, "the name of class %lld is not UTF-8", (long long)i);
        for (int64_t k = 0; !s && k < i && e->classes <= 4096; k++)
            if (!strcmp(e->names[i], e->names[k]))
                s = att_fail(e->ctx, ATT_ERR_ARGUMENT, "two classes have the name \"%.80s\"", e->names[i]);
    }
    return s;
}

att_status att_probe_examples_begin(att_probe_examples *e)
{
    if (e->n < 1 || e->n_valid < 0 || e->n > INT32_MAX || e->n_valid > INT32_MAX - e->n)
        return att_fail(e->ctx, ATT_ERR_ARGUMENT, "there are %lld %ss for training and %lld for validation",
                        (long long)e->n, e->what, (long long)e->n_valid);
    if (e->classes < 2)
        return att_fail(e->ctx, ATT_ERR_ARGUMENT, "there is only one class; a classifier needs two");
    const att_status s = check_names(e);
    e->labels = s ? NULL : att_alloc(e->ctx, (size_t)(e->n + e->n_valid), sizeof *e->labels);
    return s ? s : e->labels ? ATT_OK : ATT_ERR_MEMORY;
}

static att_status check_classes(const att_probe_examples *e)
{
    bool *seen = att_calloc(e->ctx, (size_t)e->classes, sizeof *seen);
    att_status s = seen ? ATT_OK : ATT_ERR_MEMORY;
    for (int64_t i = 0; !s && i < e->n + e->n_valid; i++)
        if (e->labels[i] < 0 || e->labels[i] >= e->classes)
            s = att_fail(e->ctx, ATT_ERR_ARGUMENT, "the class of %s %lld is %d, but there are %lld classes", e->what,
                         (long long)i, (int)e->labels[i], (long long)e->classes);
        else if (i < e->n)
            seen[e->labels[i]] = true;
    for (int64_t k = 0; !s && k < e->classes; k++)
        if (!seen[k])
            s = att_fail(e->ctx, ATT_ERR_ARGUMENT, "class \"%.80s\" has no %s for training", e->names[k], e->what);
    att_free(e->ctx, seen);
    return s;
}

att_status att_probe_examples_embed(att_probe_examples *e, int64_t dim)
{
    const att_status s = check_classes(e);
    e->dim = dim;
    if (!s)
        e->vectors = att_alloc(e->ctx, (size_t)(e->n + e->n_valid), (size_t)dim * sizeof *e->vectors);
    return s ? s : e->vectors ? ATT_OK : ATT_ERR_MEMORY;
}

void att_probe_examples_free(att_probe_examples *e)
{
    att_free(e->ctx, e->vectors);
    att_free(e->ctx, e->labels);
}

/* ---- training */

/* Returns examples [first, first + n). */
static att_probe_data part(const att_probe_examples *e, int64_t first, int64_t n)
{
    return (att_probe_data){.size = sizeof(att_probe_data),
                            .n = n,
                            .dim = e->dim,
                            .classes = e->classes,
                            .vectors = e->vectors + first * e->dim,
                            .labels = e->labels + first};
}

/* Replaces the probe by one that is trained on all examples, with its c. */
static att_status fit_all(const att_probe_examples *e, const att_probe_options *options, att_probe **p)
{
    const att_probe_data all = part(e, 0, e->n + e->n_valid);
    att_probe_options o = *options;
    o.c = (*p)->info.c;
    att_probe_free(*p);
    return att_probe_fit(e->ctx, &all, NULL, &o, p);
}

att_status att_probe_train(const att_probe_examples *e, const att_probe_options *options, bool refit, att_probe **out,
                           att_probe_result *result)
{
    const double begin = att_seconds();
    const att_probe_data train = part(e, 0, e->n), valid = part(e, e->n, e->n_valid);
    att_probe_options o;
    *out = NULL;
    att_status s = att_options_read(&o, sizeof o, options, "att_probe_options");
    result->examples = e->n;
    result->validated = e->n_valid;
    s = s ? s : att_probe_fit(e->ctx, &train, e->n_valid ? &valid : NULL, &o, out);
    if (!s && e->n_valid)
        s = att_probe_correct(*out, &valid, &result->correct);
    if (!s && e->n_valid && refit)
        s = fit_all(e, &o, out);
    if (!s) {
        const att_probe_info *i = &(*out)->info;
        result->dim = i->dim;
        result->classes = i->classes;
        result->c = i->c;
        result->gradient = i->gradient;
        result->iterations = i->iterations;
        result->neighbors = i->neighbors;
        result->converged = i->converged;
    }
    result->fit_seconds = att_seconds() - begin;
    return s;
}

att_status att_probe_write_model(const att_probe *p, const att_opened_files *model, const char *folder,
                                 att_probe_inputs inputs, const char *const *names, att_dtype dtype)
{
    att_status s = att_opened_files_copy(model, folder);
    s = s ? s : att_probe_write(p, folder, inputs, names, dtype == ATT_F32 ? 0 : dtype);
    if (s)
        att_opened_files_remove(model, folder);
    return s;
}
