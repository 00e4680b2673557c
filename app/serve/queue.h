/* The queue of work and the one thread that computes.
 *
 * A request is a job of items, such as texts. The compute loop takes items of all jobs in turn until a step is full,
 * and computes them in one call; so jobs that arrive together share steps, and a long one does not delay the others for
 * more than a step. What an item's result is does not depend on what else is in the step. */
#ifndef SERVE_QUEUE_H
#define SERVE_QUEUE_H

#include "models.h"

#include <pthread.h>

typedef struct serve_job serve_job;

/* Items that are computed together: item[i] of job[i], all of one model and one kind of work. */
typedef struct serve_batch {
    serve_model *model;
    att_ctx *ctx;
    int64_t n;
    serve_job **job;     /* [n] */
    int64_t *item;       /* [n] */
    double step_seconds; /* that the step should take */
    int64_t *taken;      /* tokens of the step, which work that stays sets */
} serve_batch;

/* A kind of work. */
typedef struct serve_work {
    const char *name;
    /* Returns whether items of two jobs, of the same model, may be in one call; NULL: they may. */
    bool (*fits)(const serve_job *a, const serve_job *b);
    /* Computes the items and stores their results in their jobs. It may be called again with some of them. */
    att_status (*run)(const serve_batch *b);
    /* Jobs stay for many steps, such as texts that are generated. A step has all of a model, each with item 0. run
     * computes the step of all and returns ATT_OK; it sets `done`, or status and message, of those that end with it,
     * and `begun`. Only the compute loop ends such jobs. */
    bool stays;
    /* NULL, or is called when a job ends, whatever the end, between steps and with the queue's lock. */
    void (*ended)(serve_job *j);
} serve_work;

typedef enum serve_end {
    SERVE_WAITING, /* not ended */
    SERVE_DONE,
    SERVE_FAILED, /* message has the sentence */
    SERVE_LATE,   /* its time was over */
    SERVE_LEFT,   /* its client has gone */
    SERVE_STOPPED /* the server ends */
} serve_end;

struct serve_job {
    const serve_work *work;
    serve_model *model;
    int64_t n;
    const int64_t *cost; /* [n]: tokens of each item */
    int socket;          /* of its client; -1: none */
    /* set by the queue: */
    serve_end end;
    att_status status; /* of SERVE_FAILED */
    char message[512];
    double waited, computed; /* seconds before its first step, and of steps with it */
    int64_t next, running;   /* items that were taken; those in the step that runs */
    int64_t tokens;          /* that wait */
    double added;
    bool done;     /* of work that stays: it is complete */
    int64_t begun; /* of work that stays: tokens that wait no more, since the last step */
    bool late;     /* its deadline has passed */
    bool probed;   /* see http_has_left */
    pthread_cond_t ended;
    serve_job *following, *previous;
};

typedef struct serve_queue serve_queue;
typedef struct serve_queue_options {
    att_ctx *ctx;
    int64_t max_waiting; /* tokens */
    int64_t step_tokens;
    double step_seconds;
    void (*step)(void *user, const serve_batch *b, int64_t tokens, double seconds); /* is called after each step */
    void *user;
} serve_queue_options;

/* Starts the compute loop. Returns NULL if out of memory or threads. */
serve_queue *serve_queue_start(const serve_queue_options *o);
/* Ends all jobs, and the compute loop after its step; jobs that are added later end at once. q or NULL. */
void serve_queue_stop(serve_queue *q);
/* q or NULL; it has been stopped, and no thread calls its functions. */
void serve_queue_free(serve_queue *q);
/* Returns whether there is room for a job of that many tokens; otherwise after how many seconds to ask again. */
bool serve_queue_has_room(serve_queue *q, int64_t tokens, int64_t *seconds);
/* Adds a job, whose end must be waited for. */
void serve_queue_add(serve_queue *q, serve_job *job);
/* Waits for a job's end, at most until `deadline`, of cli_seconds; 0 ends it after the running step. */
serve_end serve_queue_wait(serve_queue *q, serve_job *job, double deadline);
/* Notes that a job's answer is being sent, into which nothing may be written to find out whether its client has gone.
 */
void serve_queue_answers(serve_queue *q, serve_job *job);
/* Returns the tokens that wait. */
int64_t serve_queue_waiting(serve_queue *q);

#endif
