#include "model/tape_pool.h"

att_status att_model_tape(const att_model *m, att_tape **out)
{
    return att_tape_new(m->ctx, ATT_OPTIONS(att_tape_config, .compute = m->options.compute), out);
}

void att_tape_pool_begin(att_tape_pool *p, const att_model *m)
{
    *p = (att_tape_pool){.model = m};
    pthread_mutex_init(&p->lock, NULL);
}

void att_tape_pool_end(att_tape_pool *p)
{
    att_tape_pool_trim(p);
    pthread_mutex_destroy(&p->lock);
}

att_status att_tape_pool_acquire(att_tape_pool *p, att_tape **out)
{
    *out = NULL;
    pthread_mutex_lock(&p->lock);
    if (p->n_idle > 0)
        *out = p->idle[--p->n_idle];
    pthread_mutex_unlock(&p->lock);
    return *out ? ATT_OK : att_model_tape(p->model, out);
}

void att_tape_pool_release(att_tape_pool *p, att_tape *t)
{
    att_tape_reset(t);
    pthread_mutex_lock(&p->lock);
    const bool keep = p->n_idle < ATT_MAX_IDLE_TAPES;
    if (keep)
        p->idle[p->n_idle++] = t;
    pthread_mutex_unlock(&p->lock);
    if (!keep)
        att_tape_free(t);
}

void att_tape_pool_trim(att_tape_pool *p)
{
    pthread_mutex_lock(&p->lock);
    while (p->n_idle > 0)
        att_tape_free(p->idle[--p->n_idle]);
    pthread_mutex_unlock(&p->lock);
}

size_t att_tape_pool_bytes(att_tape_pool *p)
{
    size_t bytes = 0;
    pthread_mutex_lock(&p->lock);
    for (int i = 0; i < p->n_idle; i++)
        bytes += att_tape_bytes(p->idle[i]);
    pthread_mutex_unlock(&p->lock);
    return bytes;
}
