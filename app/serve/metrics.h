/* Counts for operators, in the text format of Prometheus. */
#ifndef SERVE_METRICS_H
#define SERVE_METRICS_H

#include "queue.h"

#include <stdio.h>

typedef struct serve_metrics serve_metrics;
serve_metrics *serve_metrics_new(void); /* NULL: out of memory */
void serve_metrics_free(serve_metrics *m);

/* Counts an answer of a route, a path of the table of routes, and its seconds. */
void serve_metrics_answer(serve_metrics *m, const char *route, int status, double seconds);
/* Counts a request that was refused: a word of the list in metrics.c. */
void serve_metrics_reject(serve_metrics *m, const char *why);
/* Adds how long a job waited, and how long it was computed. */
void serve_metrics_job(serve_metrics *m, const serve_job *job);
void serve_metrics_count(serve_metrics *m, int64_t tokens, int64_t truncated);
/* Adds a step of the compute loop. */
void serve_metrics_step(serve_metrics *m, const serve_batch *b, int64_t tokens, double seconds);
/* Writes all. */
void serve_metrics_write(serve_metrics *m, FILE *f, const serve_models *models, int64_t waiting, const char *isa);

#endif
