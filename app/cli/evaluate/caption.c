/* attend evaluate caption: how near captions of a model are to those of people, beside what has to be beaten. */
#include "caption_scores.h"
#include "cli/base/output.h"
#include "cli/base/progress.h"
#include "cli/evaluate/evaluate.h"

#include <attend_util.h>

#include <stdlib.h>
#include <string.h>

/* Constants that are tried at most, of the model and of the training captions; images that --retrieval can have */
enum { MAX_CONSTANTS = 1000, MAX_RETRIEVAL = 10000, CUTOFFS = 3 };
static const int64_t cutoffs[CUTOFFS] = {1, 5, 10};

static const char *model_name = CLI_CAPTIONER_SHIPPED, *data, *images, *list, *train_list;
static cli_caption_search search = {CLI_CAPTION_SEARCH_DEFAULTS};
static int64_t seed = 1, threads;
static bool retrieval, json;

static const cli_option options[] = {
    CLI_CAPTIONER_OPTION(&model_name),
    {"data", 'd', "FILE", .text = &data, .required = true,
     .help = "captions of images: lines NAME#K, tab, caption, as Flickr8k has them; NAME, tab, caption; CSV; or COCO's "
             "JSON"},
    {"images", 'i', "FOLDER", .text = &images, .required = true, .help = "the images"},
    {"list", 'l', "FILE", .text = &list, .quiet = true,
     .help = "the images that are measured, a name on each line; default: all that have captions"},
    {"train-list", 0, "FILE", .text = &train_list, .quiet = true,
     .help = "images that the model has learnt from: their captions, too, are tried as the one caption for all"},
    CLI_CAPTION_SEARCH(search),
    {"retrieval", 'r', NULL, .flag = &retrieval,
     .help = "find each image by its first caption among all images, in time that grows with their square"},
    {"seed", 0, "N", .integer = &seed, .max = 1e18, .help = "random seed of the shuffled captions and of resampling"},
    CLI_THREADS(&threads),
    CLI_JSON(&json),
    {0},
};

typedef struct evaluation {
    cli_captioner m;
    att_caption_set *set, *train;
    att_caption_set_info info;
    att_caption_options options;
    caption_references r;
    int64_t n;
    const char **path;                         /* [n] */
    att_image_caption *caption;                /* [n] */
    const char **text, **shuffled, **constant; /* [n] */
    caption_scores model, control, single;
    caption_intervals of_model, over_control, over_single;
    int64_t words, distinct, constants; /* of all captions; texts among them; constants that were tried */
    int64_t found[CUTOFFS];             /* --retrieval */
    double median_rank, seconds;
} evaluation;

/* ---- Images, block by block ------------------------------------------------ */

/* Calls each with the images first .. first + n - 1, which it reads. */
static int for_blocks(evaluation *e, const char *things,
                      int (*each)(evaluation *e, int64_t first, int64_t n, const att_image *images, void *user),
                      void *user)
{
    const int64_t room = cli_images_at_once(e->m.ctx);
    cli_image *read = malloc((size_t)room * sizeof *read);
    att_image *image = malloc((size_t)room * sizeof *image);
    cli_progress line;
    int code = read && image ? CLI_DONE : cli_fail_memory();
    cli_progress_begin(&line);
    for (int64_t first = 0; !code && first < e->n; first += room) {
        const int64_t n = e->n - first < room ? e->n - first : room;
        cli_progress_show(&line, first, things, (double)first / (double)e->n);
        cli_images_read(e->m.ctx, n, e->path + first, NULL, read);
        for (int64_t i = 0; !code && i < n; i++) {
            code = cli_image_code(&read[i]);
            image[i] = read[i].image;
        }
        if (!code)
            code = each(e, first, n, image, user);
        cli_images_free(e->m.ctx, n, read);
    }
    cli_progress_end(&line);
    free(read);
    free(image);
    return code;
}

static int caption_block(evaluation *e, int64_t first, int64_t n, const att_image *block, void *user)
{
    (void)user;
    return cli_captioner_caption(&e->m, n, block, &e->options, e->caption + first);
}

static int caption_all(evaluation *e)
{
    const double begin = cli_seconds();
    const int code = for_blocks(e, "images", caption_block, NULL);
    e->seconds = cli_seconds() - begin;
    for (int64_t i = 0; !code && i < e->n; i++) {
        e->text[i] = e->caption[i].text;
        e->words += e->caption[i].count;
    }
    return code;
}

/* ---- Retrieval -------------------------------------------------------------- */

typedef struct ranking {
    const char **query; /* [n]: the first caption of each image */
    double *block;      /* [a block, n] */
    float *p;           /* [n, n]: of caption (column) given image (row) */
    int64_t *rank;      /* [n] */
} ranking;

static int score_block(evaluation *e, int64_t first, int64_t n, const att_image *block, void *user)
{
    const ranking *x = user;
    const int code =
        cli_status(e->m.ctx, att_caption_score(e->m.model, n, block, e->n, (const char *const *)x->query, x->block));
    for (int64_t i = 0; !code && i < n * e->n; i++)
        x->p[first * e->n + i] = (float)x->block[i];
    return code;
}

static int by_rank(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The place of each image among all, by the probability of its caption; of those of the same by their order. */
static void rank_images(evaluation *e, const ranking *x)
{
    const int64_t n = e->n;
    for (int64_t k = 0; k < n; k++) {
        const float own = x->p[k * n + k];
        x->rank[k] = 1;
        for (int64_t i = 0; i < n; i++)
            x->rank[k] += x->p[i * n + k] > own || (x->p[i * n + k] == own && i < k);
        for (int c = 0; c < CUTOFFS; c++)
            e->found[c] += x->rank[k] <= cutoffs[c];
    }
    qsort(x->rank, (size_t)n, sizeof *x->rank, by_rank);
    e->median_rank = (double)(x->rank[(n - 1) / 2] + x->rank[n / 2]) / 2;
}

static int find_images(evaluation *e)
{
    const size_t n = (size_t)e->n, room = (size_t)cli_images_at_once(e->m.ctx);
    ranking x = {.query = malloc(n * sizeof *x.query),
                 .block = malloc(room * n * sizeof *x.block),
                 .p = malloc(n * n * sizeof *x.p),
                 .rank = malloc(n * sizeof *x.rank)};
    int code = x.query && x.block && x.p && x.rank ? CLI_DONE : cli_fail_memory();
    for (int64_t i = 0; !code && i < e->n; i++)
        x.query[i] = e->r.text[e->r.offset[i]];
    if (!code)
        code = for_blocks(e, "images searched", score_block, &x);
    if (!code)
        rank_images(e, &x);
    free(x.query);
    free(x.block);
    free(x.p);
    free(x.rank);
    return code;
}

/* ---- Constants -------------------------------------------------------------- */

/* Adds captions of the training images to those tried, at random if they are too many. */
static int add_training(const evaluation *e, const char **tried, int64_t *n)
{
    caption_references r;
    att_caption_set_info info = {.size = sizeof info};
    const char **distinct = NULL;
    int64_t count = 0;
    att_caption_set_describe(e->train, &info);
    int code = caption_references_open(&r, e->m.ctx, e->train, info.images);
    if (!code) {
        distinct = malloc((size_t)info.captions * sizeof *distinct);
        count = distinct ? caption_distinct(r.text, info.captions, distinct) : -1;
        code = count < 0 ? cli_fail_memory() : CLI_DONE;
    }
    const int64_t more = count < MAX_CONSTANTS ? count : MAX_CONSTANTS;
    for (int64_t i = 0; !code && i < more; i++) {
        const uint32_t counter[4] = {(uint32_t)i, 1};
        uint32_t words[4];
        att_random((uint64_t)seed, counter, words);
        const int64_t k = i + (int64_t)(((uint64_t)words[0] * (uint64_t)(count - i)) >> 32);
        const char *chosen = distinct[k];
        distinct[k] = distinct[i];
        tried[(*n)++] = chosen;
    }
    free(distinct);
    caption_references_free(&r);
    return code;
}

static int measure_constant(evaluation *e)
{
    const char **tried = malloc((size_t)(e->n + MAX_CONSTANTS) * sizeof *tried), *best = NULL;
    int64_t n = tried ? caption_distinct(e->text, e->n, tried) : -1;
    int code = n < 0 ? cli_fail_memory() : CLI_DONE;
    e->distinct = n;
    n = n < MAX_CONSTANTS ? n : MAX_CONSTANTS;
    if (!code && e->train)
        code = add_training(e, tried, &n);
    if (!code)
        code = caption_best_constant(&e->r, tried, n, &best);
    e->constants = n;
    for (int64_t i = 0; !code && i < e->n; i++)
        e->constant[i] = best;
    if (!code)
        code = caption_scores_make(&e->single, &e->r, e->constant);
    if (!code)
        code = caption_scores_differences(&e->model, &e->single, &e->r, (uint64_t)seed, &e->over_single);
    free(tried);
    return code;
}

static int measure(evaluation *e)
{
    int code = caption_all(e);
    if (!code)
        code = caption_scores_make(&e->model, &e->r, e->text);
    if (!code)
        code = caption_scores_intervals(&e->model, &e->r, (uint64_t)seed, &e->of_model);
    if (code)
        return code;
    caption_shuffle(e->text, e->n, (uint64_t)seed, e->shuffled);
    code = caption_scores_make(&e->control, &e->r, e->shuffled);
    if (!code)
        code = caption_scores_differences(&e->model, &e->control, &e->r, (uint64_t)seed, &e->over_control);
    if (!code)
        code = measure_constant(e);
    return !code && retrieval ? find_images(e) : code;
}

/* ---- Printing --------------------------------------------------------------- */

static void print_row(const char *name, const caption_scores *s)
{
    printf("%-9s", name);
    for (int i = 0; i < ATT_BLEU_ORDER; i++)
        printf("  %6.2f", s->bleu.bleu_of[i]);
    printf("  %7.4f\n", s->mean);
}

static void print_difference(const char *name, const caption_intervals *d)
{
    printf("over %-8s  BLEU-4 %+.2f from %+.2f to %+.2f, CIDEr-D %+.4f from %+.4f to %+.4f\n", name, d->bleu4.mean,
           d->bleu4.low, d->bleu4.high, d->cider.mean, d->cider.low, d->cider.high);
}

static void print_text(const evaluation *e)
{
    const double n = (double)e->n;
    printf("%lld images with %lld captions; beam %lld, length penalty %g\n", (long long)e->n,
           (long long)e->info.captions, (long long)search.beam, search.length_penalty);
    printf("%lld distinct captions, of %.2f words on average; %.1f images/s\n\n", (long long)e->distinct,
           (double)e->words / n, n / e->seconds);
    puts("           BLEU-1  BLEU-2  BLEU-3  BLEU-4  CIDEr-D");
    print_row("model", &e->model);
    print_row("shuffled", &e->control);
    print_row("constant", &e->single);
    printf("\n95 %% intervals\nmodel          BLEU-4 %.2f from %.2f to %.2f, CIDEr-D %.4f from %.4f to %.4f\n",
           e->of_model.bleu4.mean, e->of_model.bleu4.low, e->of_model.bleu4.high, e->of_model.cider.mean,
           e->of_model.cider.low, e->of_model.cider.high);
    print_difference("shuffled", &e->over_control);
    print_difference("constant", &e->over_single);
    printf("\nshuffled: each image has the caption of another one, seed %lld\n", (long long)seed);
    printf("constant: \"%s\" for all,\nthe best by CIDEr-D on these images of %lld captions that %s\n", e->constant[0],
           (long long)e->constants, e->train ? "the model writes or training images have" : "the model writes");
    puts("Words are compared as they are: lower case, without punctuation; BLEU of the corpus, not smoothed where it\n"
         "has matches of all orders, with the length of the nearest reference.");
    if (!retrieval)
        return;
    puts("\nImages found by their first caption, by its log probability");
    for (int c = 0; c < CUTOFFS; c++)
        printf("recall@%-3lld  %6.2f %%  (at random %.2f %%)\n", (long long)cutoffs[c], 100 * (double)e->found[c] / n,
               100 * (double)(cutoffs[c] < e->n ? cutoffs[c] : e->n) / n);
    printf("median rank %g of %lld\n", e->median_rank, (long long)e->n);
}

static void json_scores(const char *name, const caption_scores *s)
{
    printf(", \"%s\": {\"bleu\": [", name);
    for (int i = 0; i < ATT_BLEU_ORDER; i++)
        printf("%s%.8g", i ? ", " : "", s->bleu.bleu_of[i]);
    printf("], \"cider\": %.8g", s->mean);
}

static void json_interval(const char *name, const att_interval *i)
{
    printf(", \"%s\": [%.8g, %.8g, %.8g]", name, i->mean, i->low, i->high);
}

static void json_differences(const caption_intervals *d)
{
    json_interval("bleu4_difference", &d->bleu4);
    json_interval("cider_difference", &d->cider);
    putchar('}');
}

static void print_json(const evaluation *e)
{
    printf("{\"images\": %lld, \"references\": %lld, \"beam\": %lld, \"length_penalty\": %g, \"distinct\": %lld, "
           "\"mean_words\": %.8g, \"seconds\": %.3f",
           (long long)e->n, (long long)e->info.captions, (long long)search.beam, search.length_penalty,
           (long long)e->distinct, (double)e->words / (double)e->n, e->seconds);
    json_scores("model", &e->model);
    json_interval("bleu4_interval", &e->of_model.bleu4);
    json_interval("cider_interval", &e->of_model.cider);
    putchar('}');
    json_scores("shuffled", &e->control);
    json_differences(&e->over_control);
    json_scores("constant", &e->single);
    fputs(", \"text\": ", stdout);
    cli_write_json(stdout, e->constant[0], strlen(e->constant[0]));
    printf(", \"candidates\": %lld", (long long)e->constants);
    json_differences(&e->over_single);
    if (retrieval) {
        fputs(", \"retrieval\": {", stdout);
        for (int c = 0; c < CUTOFFS; c++)
            printf("\"recall@%lld\": %.8g, ", (long long)cutoffs[c], (double)e->found[c] / (double)e->n);
        printf("\"median_rank\": %g}", e->median_rank);
    }
    puts("}");
}

static int print(const evaluation *e)
{
    cli_output out;
    const int code = cli_output_open(&out, NULL);
    if (code)
        return code;
    (json ? print_json : print_text)(e);
    return cli_output_close(&out, code);
}

/* ---- The work ---------------------------------------------------------------- */

static int open_set(const evaluation *e, const char *names, att_caption_set **set)
{
    const att_caption_set_options o = {.size = sizeof o, .images = images, .list = names};
    return cli_status(e->m.ctx, att_caption_set_open(e->m.ctx, data, &o, set));
}

static int open_sets(evaluation *e)
{
    int code = open_set(e, list, &e->set);
    if (!code && train_list)
        code = open_set(e, train_list, &e->train);
    if (!code)
        code = cli_status(e->m.ctx, att_caption_set_describe(e->set, &e->info));
    e->n = e->info.images;
    if (!code && e->n < 2)
        code = cli_fail("%s: one image, but two or more are needed: each is compared with others", list ? list : data);
    if (!code && retrieval && e->n > MAX_RETRIEVAL)
        code = cli_misuse("--retrieval: there are %lld images, at most %d can be searched; --list names fewer",
                          (long long)e->n, MAX_RETRIEVAL);
    if (!code && e->info.missing)
        cli_note("%lld images that have captions are not in %s: they are left out", (long long)e->info.missing, images);
    return code ? code : caption_references_open(&e->r, e->m.ctx, e->set, e->n);
}

static int allocate(evaluation *e)
{
    const size_t n = (size_t)e->n;
    e->caption = calloc(n, sizeof *e->caption);
    const char ***texts[] = {&e->path, &e->text, &e->shuffled, &e->constant};
    for (int i = 0; i < 4; i++) {
        *texts[i] = malloc(n * sizeof **texts[i]);
        if (!*texts[i])
            return cli_fail_memory();
    }
    for (int64_t i = 0; i < e->n; i++)
        e->path[i] = att_caption_set_path(e->set, i);
    return e->caption ? CLI_DONE : cli_fail_memory();
}

static void close_all(evaluation *e)
{
    for (int64_t i = 0; e->caption && i < e->n; i++)
        att_image_caption_free(e->m.model, &e->caption[i]);
    free(e->caption);
    free(e->path);
    free(e->text);
    free(e->shuffled);
    free(e->constant);
    caption_scores_free(&e->model);
    caption_scores_free(&e->control);
    caption_scores_free(&e->single);
    caption_references_free(&e->r);
    att_caption_set_free(e->set);
    att_caption_set_free(e->train);
    cli_captioner_close(&e->m);
}

static int run(int n, char **arguments)
{
    (void)n, (void)arguments;
    evaluation e = {.info.size = sizeof e.info};
    int code = cli_captioner_open(&e.m, model_name, threads);
    if (!code)
        code = cli_caption_search_options(&search, &e.m, 1, &e.options);
    if (!code)
        code = open_sets(&e);
    if (!code)
        code = allocate(&e);
    if (!code)
        code = measure(&e);
    if (!code)
        code = print(&e);
    close_all(&e);
    return code;
}

const cli_command evaluate_caption = {
    .name = "caption",
    .summary = "measure how near captions of images are to those of people",
    .details =
        "Writes a caption of each image, and compares it with those in --data: BLEU-1 to BLEU-4 (Papineni et "
        "al. 2002) and CIDEr-D (Vedantam et al. 2015), with 95 % intervals by bootstrap resampling of the "
        "images. All words are in lower case, and punctuation is dropped.\n\n"
        "Beside it: the same captions shuffled, each image with that of another one, which shows how much is "
        "owed to the image; and the single caption that is best for all images, of those that the model writes "
        "(the 1,000 most frequent) and, with --train-list, of 1,000 captions of these images at random. Both "
        "with the paired interval of the difference.\n\n"
        "--retrieval takes the first caption of each image in --data, ranks all images by the log probability "
        "that the model gives it, and says how often the right image is among the first 1, 5 and 10. For 1,000 images "
        "that takes two cores about ten minutes.",
    .examples = "attend evaluate caption -m flickr8k --data Flickr8k.token.txt --images Images --list test.txt\n"
                "attend evaluate caption -m flickr8k -d Flickr8k.token.txt -i Images -l test.txt --retrieval --json",
    .options = options,
    .see = "caption|bleu",
    .run = run,
};
