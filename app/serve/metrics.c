#include "metrics.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A histogram of seconds or of numbers. */
enum { BOUNDS = 16 };
typedef struct histogram {
    const char *name, *help;
    const double *bound; /* [bounds] */
    int bounds;
    int64_t count[BOUNDS + 1]; /* of values up to each bound, and beyond all */
    double sum;
} histogram;

static const double seconds_bound[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60},
                    numbers_bound[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
enum {
    N_SECONDS = sizeof seconds_bound / sizeof *seconds_bound,
    N_NUMBERS = sizeof numbers_bound / sizeof *numbers_bound
};

enum { REQUEST, QUEUE, COMPUTE, BATCH_TOKENS, BATCH_TEXTS, HISTOGRAMS };
enum { ANSWERS = 256 }; /* pairs of a route and a status */

static const char *const reasons[] = {"waiting", "timeout", "left", "memory", "key", "host", NULL};
enum { REASONS = sizeof reasons / sizeof *reasons };

struct serve_metrics {
    pthread_mutex_t lock;
    histogram histogram[HISTOGRAMS];
    struct {
        const char *route; /* NULL: free */
        int status;
        int64_t count;
    } answer[ANSWERS];
    int64_t rejected[REASONS], tokens, truncated, texts;
};

serve_metrics *serve_metrics_new(void)
{
    serve_metrics *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    pthread_mutex_init(&m->lock, NULL);
    m->histogram[REQUEST] = (histogram){"attend_request_seconds",
                                        "Time from the headers of a request to the end of its answer.",
                                        seconds_bound,
                                        N_SECONDS,
                                        {0},
                                        0};
    m->histogram[QUEUE] = (histogram){
        "attend_queue_seconds", "Time that a request waits before its first step.", seconds_bound, N_SECONDS, {0}, 0};
    m->histogram[COMPUTE] =
        (histogram){"attend_compute_seconds", "Time of a step of the compute loop.", seconds_bound, N_SECONDS, {0}, 0};
    m->histogram[BATCH_TOKENS] =
        (histogram){"attend_batch_tokens", "Tokens of a step.", numbers_bound, N_NUMBERS, {0}, 0};
    m->histogram[BATCH_TEXTS] = (histogram){"attend_batch_texts", "Texts of a step.", numbers_bound, N_NUMBERS, {0}, 0};
    return m;
}

void serve_metrics_free(serve_metrics *m)
{
    if (m)
        pthread_mutex_destroy(&m->lock);
    free(m);
}

/* ---- counting ---- */

static void add(histogram *h, double x)
{
    int i = 0;
    while (i < h->bounds && x > h->bound[i])
        i++;
    h->count[i]++;
    h->sum += x;
}

void serve_metrics_answer(serve_metrics *m, const char *route, int status, double seconds)
{
    pthread_mutex_lock(&m->lock);
    add(&m->histogram[REQUEST], seconds);
    for (int i = 0; i < ANSWERS; i++) {
        if (m->answer[i].route && (strcmp(m->answer[i].route, route) || m->answer[i].status != status))
            continue;
        m->answer[i].route = route;
        m->answer[i].status = status;
        m->answer[i].count++;
        break;
    }
    pthread_mutex_unlock(&m->lock);
}

void serve_metrics_reject(serve_metrics *m, const char *why)
{
    int i = 0;
    while (reasons[i] && strcmp(reasons[i], why))
        i++;
    pthread_mutex_lock(&m->lock);
    m->rejected[i]++;
    pthread_mutex_unlock(&m->lock);
}

void serve_metrics_job(serve_metrics *m, const serve_job *job)
{
    pthread_mutex_lock(&m->lock);
    add(&m->histogram[QUEUE], job->waited);
    pthread_mutex_unlock(&m->lock);
}

void serve_metrics_count(serve_metrics *m, int64_t tokens, int64_t truncated)
{
    pthread_mutex_lock(&m->lock);
    m->tokens += tokens;
    m->truncated += truncated;
    pthread_mutex_unlock(&m->lock);
}

void serve_metrics_step(serve_metrics *m, const serve_batch *b, int64_t tokens, double seconds)
{
    pthread_mutex_lock(&m->lock);
    add(&m->histogram[COMPUTE], seconds);
    add(&m->histogram[BATCH_TOKENS], (double)tokens);
    add(&m->histogram[BATCH_TEXTS], (double)b->n);
    m->texts += b->n;
    pthread_mutex_unlock(&m->lock);
}

/* ---- writing ---- */

static void write_histogram(FILE *f, const histogram *h)
{
    int64_t sum = 0;
    fprintf(f, "# HELP %s %s\n# TYPE %s histogram\n", h->name, h->help, h->name);
    for (int i = 0; i < h->bounds; i++) {
        sum += h->count[i];
        fprintf(f, "%s_bucket{le=\"%g\"} %lld\n", h->name, h->bound[i], (long long)sum);
    }
    sum += h->count[h->bounds];
    fprintf(f, "%s_bucket{le=\"+Inf\"} %lld\n%s_sum %.9g\n%s_count %lld\n", h->name, (long long)sum, h->name, h->sum,
            h->name, (long long)sum);
}

static void write_head(FILE *f, const char *name, const char *type, const char *help)
{
    fprintf(f, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void write_counter(FILE *f, const char *name, const char *type, const char *help, int64_t value)
{
    write_head(f, name, type, help);
    fprintf(f, "%s %lld\n", name, (long long)value);
}

/* Writes a label's value: the format escapes these three characters. */
static void write_label(FILE *f, const char *text)
{
    for (; *text; text++)
        if (*text == '\n')
            fputs("\\n", f);
        else
            fprintf(f, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
}

static int64_t resident_bytes(void)
{
    long long all, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (!f)
        return 0;
    if (fscanf(f, "%lld %lld", &all, &resident) != 2)
        resident = 0;
    fclose(f);
    return resident * sysconf(_SC_PAGESIZE);
}

static void write_models(FILE *f, const serve_models *models, const char *isa)
{
    write_head(f, "attend_model_info", "gauge", "A model that is served.");
    for (int i = 0; i < models->n; i++) {
        fputs("attend_model_info{model=\"", f);
        write_label(f, models->model[i]->id);
        fprintf(f, "\",kind=\"%s\",dtype=\"%s\",isa=\"%s\"} 1\n", att_subject_name(models->model[i]->subject),
                models->model[i]->dtype ? models->model[i]->dtype : "", isa);
    }
}

void serve_metrics_write(serve_metrics *m, FILE *f, const serve_models *models, int64_t waiting, const char *isa)
{
    pthread_mutex_lock(&m->lock);
    write_head(f, "attend_requests_total", "counter", "Answers by route and status.");
    for (int i = 0; i < ANSWERS && m->answer[i].route; i++)
        fprintf(f, "attend_requests_total{route=\"%s\",code=\"%d\"} %lld\n", m->answer[i].route, m->answer[i].status,
                (long long)m->answer[i].count);
    for (int i = 0; i < HISTOGRAMS; i++)
        write_histogram(f, &m->histogram[i]);
    write_head(f, "attend_rejected_total", "counter", "Requests that were refused, by the limit.");
    for (int i = 0; reasons[i]; i++)
        fprintf(f, "attend_rejected_total{why=\"%s\"} %lld\n", reasons[i], (long long)m->rejected[i]);
    write_counter(f, "attend_tokens_total", "counter", "Tokens of texts that were computed.", m->tokens);
    write_counter(f, "attend_texts_total", "counter", "Texts, pairs and images that were computed.", m->texts);
    write_counter(f, "attend_truncated_total", "counter", "Texts that were truncated.", m->truncated);
    pthread_mutex_unlock(&m->lock);
    write_counter(f, "attend_waiting_tokens", "gauge", "Tokens in the queue.", waiting);
    write_models(f, models, isa);
    write_counter(f, "process_resident_memory_bytes", "gauge", "Resident memory.", resident_bytes());
}
