/* attend evaluate caption: measures how near captions of a model are to those of people, and compares baselines. */
#include "caption_baselines.h"
#include "caption_images.h"
#include "caption_lengths.h"
#include "cli/base/json.h"
#include "cli/base/output.h"
#include "cli/base/progress.h"
#include "cli/base/skipped.h"
#include "cli/train/training_images.h"

#include <attend_util.h>

#include <stdlib.h>
#include <string.h>

/* Images that --retrieval can have at most */
enum { MAX_RETRIEVAL = 10000, CUTOFFS = 3 };
static const int64_t cutoffs[CUTOFFS] = {1, 5, 10};

static const char *model_name = CLI_CAPTIONER_SHIPPED, *list, *train_list;
static cli_captions captions;
static cli_caption_search search = {CLI_CAPTION_SEARCH_DEFAULTS};
static int64_t seed = 1, threads;
static cli_types types;
static bool by_length, retrieval, skip_broken, json;

static const cli_option options[] = {
    CLI_CAPTIONER_OPTION(&model_name),
    CLI_CAPTIONS(captions),
    {"list", 'l', "FILE", .text = &list, .quiet = true,
     .help = "the images that are measured, a name on each line; default: all that have captions"},
    {"train-list", 0, "FILE", .text = &train_list, .quiet = true,
     .help = "images that the model was trained on: their captions, too, are tried as the one caption for all, and "
             "four captions are chosen by a classifier that learns from them"},
    CLI_CAPTION_SEARCH(search),
    {"by-length", 0, NULL, .flag = &by_length,
     .help = "print a table by the mean number of words of the references of an image"},
    {"retrieval", 'r', NULL, .flag = &retrieval,
     .help = "find each image by its first caption among all images, in time that grows with their square"},
    {"seed", 0, "N", .integer = &seed, .max = 1e18, .help = "random seed of the shuffled captions and of resampling"},
    CLI_SKIP_OPTION(&captions.skip_bad_lines, "--data"),
    CLI_SKIP_BROKEN(&skip_broken),
    CLI_BACKGROUND(&captions.background),
    CLI_TYPES(types),
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
    caption_candidates candidates;
    int64_t words;       /* of all captions */
    caption_kinds kinds; /* with --train-list */
    caption_scores four, oracle;
    caption_intervals over_four;
    caption_length lengths[CAPTION_LENGTHS]; /* --by-length */
    int n_lengths;
    int64_t found[CUTOFFS]; /* --retrieval */
    double median_rank, seconds;
} evaluation;

/* ---- Captions ---------------------------------------------------------------- */

static int caption_block(void *user, int64_t first, int64_t n, const att_image *block)
{
    evaluation *e = user;
    return cli_captioner_caption(&e->m, n, block, &e->options, e->caption + first);
}

static int caption_all(evaluation *e)
{
    const double begin = cli_seconds();
    const int code = caption_image_blocks(&e->m, e->path, e->n, "images", caption_block, e);
    e->seconds = cli_seconds() - begin;
    for (int64_t i = 0; !code && i < e->n; i++) {
        e->text[i] = e->caption[i].text;
        e->words += e->caption[i].count;
    }
    return code;
}

/* ---- Retrieval -------------------------------------------------------------- */

typedef struct ranking {
    const evaluation *e;
    const char **query; /* [n]: the first caption of each image */
    double *block;      /* [a block, n] */
    float *p;           /* [n, n]: of caption (column) given image (row) */
    int64_t *rank;      /* [n] */
} ranking;

static int score_block(void *user, int64_t first, int64_t n, const att_image *block)
{
    const ranking *x = user;
    const evaluation *e = x->e;
    const int code = cli_status(
        e->m.base.ctx, att_caption_score(e->m.model, n, block, e->n, (const char *const *)x->query, NULL, x->block));
    for (int64_t i = 0; !code && i < n * e->n; i++)
        x->p[first * e->n + i] = (float)x->block[i];
    return code;
}

static int by_rank(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Ranks each image among all images by the probability of its caption. Images of equal probability keep their order. */
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
    const size_t n = (size_t)e->n, room = (size_t)cli_images_at_once(e->m.base.ctx);
    ranking x = {.e = e,
                 .query = malloc(n * sizeof *x.query),
                 .block = malloc(room * n * sizeof *x.block),
                 .p = malloc(n * n * sizeof *x.p),
                 .rank = malloc(n * sizeof *x.rank)};
    int code = x.query && x.block && x.p && x.rank ? CLI_DONE : cli_fail_memory();
    for (int64_t i = 0; !code && i < e->n; i++)
        x.query[i] = e->r.text[e->r.offset[i]];
    if (!code)
        code = caption_image_blocks(&e->m, e->path, e->n, "images searched", score_block, &x);
    if (!code)
        rank_images(e, &x);
    free(x.query);
    free(x.block);
    free(x.p);
    free(x.rank);
    return code;
}

/* ---- Constants -------------------------------------------------------------- */

static int measure_constant(evaluation *e)
{
    const char *best = NULL;
    int code = caption_candidates_open(&e->candidates, e->m.base.ctx, (const char *const *)e->text, e->n, e->train,
                                       (uint64_t)seed);
    if (!code)
        code = caption_best_constant(&e->r, &e->candidates, &best);
    for (int64_t i = 0; !code && i < e->n; i++)
        e->constant[i] = best;
    if (!code)
        code = caption_scores_make(&e->single, &e->r, e->constant);
    if (!code)
        code = caption_scores_differences(&e->model, &e->single, &e->r, (uint64_t)seed, &e->over_single);
    return code;
}

static int measure_four(evaluation *e)
{
    int code = caption_kinds_make(&e->kinds, &e->m, &e->candidates, e->train, &e->r, e->path);
    if (!code)
        code = caption_scores_make(&e->four, &e->r, e->kinds.given);
    if (!code)
        code = caption_scores_make(&e->oracle, &e->r, e->kinds.best);
    if (!code)
        code = caption_scores_differences(&e->model, &e->four, &e->r, (uint64_t)seed, &e->over_four);
    return code;
}

static int measure(evaluation *e)
{
    int code = caption_all(e);
    if (!code)
        code = caption_scores_make(&e->model, &e->r, e->text);
    if (!code)
        code = caption_scores_intervals(&e->model, &e->r, (uint64_t)seed, &e->of_model);
    if (!code)
        code = caption_shuffle(e->r.ctx, e->text, e->n, (uint64_t)seed, e->shuffled);
    if (!code)
        code = caption_scores_make(&e->control, &e->r, e->shuffled);
    if (!code)
        code = caption_scores_differences(&e->model, &e->control, &e->r, (uint64_t)seed, &e->over_control);
    if (!code)
        code = measure_constant(e);
    if (!code && e->train)
        code = measure_four(e);
    if (!code && by_length)
        code = caption_scores_by_length(&e->model, &e->r, (uint64_t)seed, e->lengths, &e->n_lengths);
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

static void print_constants(const evaluation *e)
{
    const caption_kinds *k = &e->kinds;
    printf("constant: \"%s\" for all,\nthe best by CIDEr-D on these images of %lld captions that %s\n", e->constant[0],
           (long long)e->candidates.n, e->train ? "the model writes or training images have" : "the model writes");
    if (!e->train)
        return;
    printf(
        "four: one of these for each image, by a ridge regression on the encoder's features (%lld training images);\n"
        "best: the best of the four for each image, by its references\n",
        (long long)k->trained_on);
    for (int64_t i = 0; i < k->kinds; i++)
        printf("%9lld  \"%s\"\n", (long long)k->images[i], k->text[i]);
    printf("chosen of the same captions, greedily by CIDEr-D on %lld training images\n", (long long)k->chosen_on);
}

static void print_text(const evaluation *e)
{
    const double n = (double)e->n;
    printf("%lld images with %lld captions; beam %lld, length penalty %g\n", (long long)e->n,
           (long long)e->info.captions, (long long)search.beam, search.length_penalty);
    printf("%lld distinct captions, of %.2f words on average; %.1f images/s\n\n", (long long)e->candidates.distinct,
           (double)e->words / n, n / e->seconds);
    puts("           BLEU-1  BLEU-2  BLEU-3  BLEU-4  CIDEr-D");
    print_row("model", &e->model);
    print_row("shuffled", &e->control);
    print_row("constant", &e->single);
    if (e->train) {
        print_row("four", &e->four);
        print_row("best", &e->oracle);
    }
    printf("\n95 %% intervals\nmodel          BLEU-4 %.2f from %.2f to %.2f, CIDEr-D %.4f from %.4f to %.4f\n",
           e->of_model.bleu4.mean, e->of_model.bleu4.low, e->of_model.bleu4.high, e->of_model.cider.mean,
           e->of_model.cider.low, e->of_model.cider.high);
    print_difference("shuffled", &e->over_control);
    print_difference("constant", &e->over_single);
    if (e->train)
        print_difference("four", &e->over_four);
    printf("\nshuffled: each image has the caption of another one, seed %lld\n", (long long)seed);
    print_constants(e);
    puts("Words are compared as they are: lower case, without punctuation; BLEU of the corpus, not smoothed where it\n"
         "has matches of all orders, with the length of the nearest reference.");
    if (by_length)
        caption_lengths_print(e->lengths, e->n_lengths);
    if (!retrieval)
        return;
    puts("\nImages found by their first caption, by its log probability");
    for (int c = 0; c < CUTOFFS; c++)
        printf("recall@%-3lld  %6.2f %%  (at random %.2f %%)\n", (long long)cutoffs[c], 100 * (double)e->found[c] / n,
               100 * (double)(cutoffs[c] < e->n ? cutoffs[c] : e->n) / n);
    printf("median rank %g of %lld\n", e->median_rank, (long long)e->n);
}

/* Begins an object. */
static void json_scores(cli_json *j, const char *key, const caption_scores *s)
{
    cli_json_object(j, key);
    cli_json_numbers(j, "bleu", s->bleu.bleu_of, ATT_BLEU_ORDER, 8);
    cli_json_number(j, "cider", s->mean, 8);
}

/* Ends one. */
static void json_differences(cli_json *j, const caption_intervals *d)
{
    caption_interval_json(j, "bleu4_difference", &d->bleu4);
    caption_interval_json(j, "cider_difference", &d->cider);
    cli_json_end(j);
}

static void json_four(cli_json *j, const evaluation *e)
{
    const caption_kinds *k = &e->kinds;
    json_scores(j, "four", &e->four);
    cli_json_array(j, "captions");
    for (int64_t i = 0; i < k->kinds; i++) {
        cli_json_object(j, NULL);
        cli_json_string(j, "text", k->text[i]);
        cli_json_integer(j, "images", k->images[i]);
        cli_json_end(j);
    }
    cli_json_end(j);
    cli_json_integer(j, "chosen_on", k->chosen_on);
    cli_json_integer(j, "learnt_from", k->trained_on);
    cli_json_number(j, "ridge", k->strength, 6);
    json_differences(j, &e->over_four);
    json_scores(j, "best_of_four", &e->oracle);
    cli_json_end(j);
}

static void json_retrieval(cli_json *j, const evaluation *e)
{
    cli_json_object(j, "retrieval");
    for (int c = 0; c < CUTOFFS; c++) {
        char key[32];
        snprintf(key, sizeof key, "recall@%lld", (long long)cutoffs[c]);
        cli_json_number(j, key, (double)e->found[c] / (double)e->n, 8);
    }
    cli_json_number(j, "median_rank", e->median_rank, 6);
    cli_json_end(j);
}

static void print_json(const evaluation *e)
{
    cli_json j = cli_json_begin(stdout);
    cli_json_integer(&j, "images", e->n);
    cli_json_integer(&j, "references", e->info.captions);
    cli_json_integer(&j, "beam", search.beam);
    cli_json_number(&j, "length_penalty", search.length_penalty, 6);
    cli_json_integer(&j, "distinct", e->candidates.distinct);
    cli_json_number(&j, "mean_words", (double)e->words / (double)e->n, 8);
    cli_json_string(&j, "compute", cli_model_compute(&e->m.base));
    cli_json_fixed(&j, "seconds", e->seconds, 3);
    json_scores(&j, "model", &e->model);
    caption_interval_json(&j, "bleu4_interval", &e->of_model.bleu4);
    caption_interval_json(&j, "cider_interval", &e->of_model.cider);
    cli_json_end(&j);
    json_scores(&j, "shuffled", &e->control);
    json_differences(&j, &e->over_control);
    json_scores(&j, "constant", &e->single);
    cli_json_string(&j, "text", e->constant[0]);
    cli_json_integer(&j, "candidates", e->candidates.n);
    json_differences(&j, &e->over_single);
    if (e->train)
        json_four(&j, e);
    if (by_length)
        caption_lengths_json(&j, e->lengths, e->n_lengths);
    if (retrieval)
        json_retrieval(&j, e);
    cli_json_end(&j);
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

static const char *path_of(const void *set, int64_t i) { return att_caption_set_path(set, i); }
static att_status leave_out(void *set, const bool *broken) { return att_caption_set_leave_out(set, broken); }

/* Opens a set whose images can all be read. */
static int open_set(const evaluation *e, const char *names, att_caption_set **set)
{
    att_ctx *ctx = e->m.base.ctx;
    cli_training_images files = {.ctx = ctx, .skip_broken = skip_broken};
    att_caption_set_info info = {.size = sizeof info};
    int code = cli_captions_open(&captions, ctx, names, set);
    if (!code)
        code = cli_status(ctx, att_caption_set_describe(*set, &info));
    if (!code)
        code = cli_training_images_check(&files, info.images, path_of, leave_out, *set);
    cli_training_images_free(&files);
    return code;
}

static int open_sets(evaluation *e)
{
    int code = open_set(e, list, &e->set);
    if (!code && train_list)
        code = open_set(e, train_list, &e->train);
    if (!code)
        code = cli_status(e->m.base.ctx, att_caption_set_describe(e->set, &e->info));
    e->n = e->info.images;
    if (!code && e->n < 2)
        code = cli_fail("%s: one image, but two or more are needed: each is compared with others",
                        list ? list : captions.data);
    if (!code && retrieval && e->n > MAX_RETRIEVAL)
        code = cli_misuse("--retrieval: there are %lld images, at most %d can be searched; --list names fewer",
                          (long long)e->n, MAX_RETRIEVAL);
    if (!code && e->info.missing)
        cli_note("%lld image%s captions, but %s not in %s, and left out", (long long)e->info.missing,
                 e->info.missing == 1 ? " has" : "s have", e->info.missing == 1 ? "is" : "are", captions.images);
    if (!code && e->info.empty)
        cli_note("%s: %lld caption%s without a word, left out", captions.data, (long long)e->info.empty,
                 e->info.empty == 1 ? "" : "s");
    if (!code)
        cli_skipped_report(e->info.skipped, e->info.bad);
    return code ? code : caption_references_open(&e->r, e->m.base.ctx, e->set, e->n);
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
        att_image_caption_free(e->m.base.ctx, &e->caption[i]);
    free(e->caption);
    free(e->path);
    free(e->text);
    free(e->shuffled);
    free(e->constant);
    caption_scores_free(&e->model);
    caption_scores_free(&e->control);
    caption_scores_free(&e->single);
    caption_scores_free(&e->four);
    caption_scores_free(&e->oracle);
    caption_kinds_free(&e->kinds);
    caption_candidates_free(&e->candidates);
    caption_references_free(&e->r);
    att_caption_set_free(e->set);
    att_caption_set_free(e->train);
    cli_model_close(&e->m.base);
}

static int run(int n, char **arguments)
{
    (void)n, (void)arguments;
    evaluation e = {.info.size = sizeof e.info};
    int code = cli_model_open(&e.m.base, &cli_captioner_kind, model_name, types, threads);
    if (!code)
        code = cli_caption_search_options(&search, &e.m, 1, &e.options);
    e.m.image_options.size = sizeof e.m.image_options;
    if (!code)
        code = cli_read_background(captions.background, e.m.background, &e.m.image_options);
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

const cli_command cli_evaluate_caption = {
    .name = "caption",
    .summary = "measure how near captions of images are to those of people",
    .details =
        "Writes a caption of each image, and compares it with those in --data: BLEU-1 to BLEU-4 (Papineni et "
        "al. 2002) and CIDEr-D (Vedantam et al. 2015), with 95 % intervals by bootstrap resampling of the "
        "images. All words are in lower case, and punctuation is dropped.\n\n"
        "Beside it are the same captions shuffled, so that each image has that of another one, which shows how much is "
        "owed to the image; and the one caption that is best for all images. Candidates are the 1,000 captions that "
        "the "
        "model writes most often and, with --train-list, 1,000 random captions of those images. All have the paired "
        "interval of the difference.\n\n"
        "With --train-list it also evaluates four constant captions, as a model could write that only tells four kinds "
        "of images apart. They are chosen greedily from these candidates, so that 1,000 training "
        "images reach the largest CIDEr-D if each gets the best of the four. Ridge regression predicts which of them "
        "an image gets, from the "
        "means of the encoder's features; it is trained on at most 6,000 training images. Beside it is what the best "
        "of the four for each image would reach. For 6,000 images this takes two cores about a minute.\n\n"
        "--retrieval takes the first caption of each image in --data, ranks all images by the log probability "
        "that the model gives it, and reports how often the right image is among the first 1, 5 and 10. For 1,000 "
        "images "
        "that takes two cores about ten minutes.",
    .examples =
        "attend evaluate caption -m flickr8k-captions --data Flickr8k.token.txt --images Images --list test.txt\n"
        "attend evaluate caption -m flickr8k-captions -d Flickr8k.token.txt -i Images -l test.txt --retrieval --json",
    .options = options,
    .see = "caption|bleu",
    .run = run,
};
