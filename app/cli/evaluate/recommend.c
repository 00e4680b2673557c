/* attend evaluate recommend: how well next items are predicted, by a model and by what it has to beat. */
#include "cli/base/checkpoints.h"
#include "cli/base/interactions.h"
#include "cli/base/item_texts.h"
#include "cli/base/output.h"
#include "cli/base/progress.h"
#include "cli/base/recommender.h"
#include "cli/base/utf8.h"
#include "cli/evaluate/evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static cli_interactions_options data = {CLI_INTERACTIONS_DEFAULTS};
static const char *model_name, *texts_path, *text_model;
static int part = 1, candidates = ATT_CANDIDATES_ALL;
static int64_t k = 10, negatives, draws, seed = 1, neighbours, threads;
static bool exclude_seen, leave_out_unseen, json;

static const cli_option options[] = {
    CLI_RECOMMENDER_MODEL_OPTION(&model_name, "; without one the baselines are measured alone"),
    {"data", 'd', "FILE", .text = &data.path, .required = true, .help = "log of actions, as in attend train recommend"},
    CLI_INTERACTIONS_OPTIONS(data),
    CLI_HOLDOUT_OPTIONS(data),
    {"part", 0, "valid|test", .choice = &part, .help = "held-out actions that are predicted"},
    {"top", 'k', "N", .integer = &k, .min = 1, .max = 1 << 30,
     .help = "number of items that are recommended: the k of HR@k, NDCG@k and MRR@k"},
    {"candidates", 0, "all|outside-training|outside-history|popularity", .choice = &candidates,
     .help = "rank the held-out item among all items; or among some at random: outside the user's training items, as "
             "in the paper of SASRec; outside all the user's items; or these by popularity"},
    {"negatives", 0, "N", .integer = &negatives, .min = 1, .max = 1 << 30, .quiet = true,
     .help = "number of random candidates; default: 100"},
    {"draws", 0, "N", .integer = &draws, .min = 1, .max = 1 << 20, .quiet = true,
     .help = "draw them N times for each user, and print the mean; default: 5"},
    {"seed", 0, "N", .integer = &seed, .max = 1e18, .help = "random seed of candidates"},
    {"exclude-seen", 0, NULL, .flag = &exclude_seen, .help = "items of the history are no candidates"},
    {"leave-out-unseen", 0, NULL, .flag = &leave_out_unseen,
     .help = "do not count held-out items that do not occur in training"},
    {"neighbours", 0, "N", .integer = &neighbours, .min = 1, .max = 1 << 20, .quiet = true,
     .help = "neighbours of an item in that baseline; default: 100"},
    CLI_ITEM_TEXTS_OPTION(&texts_path, "measures their similarity as another baseline"),
    CLI_TEXT_MODEL_OPTION(&text_model),
    CLI_THREADS(&threads),
    CLI_JSON(&json),
    {0},
};

enum { MAX_RESULTS = 4 };
typedef struct evaluation {
    att_ctx *ctx;
    cli_recommender m; /* open if model_name */
    cli_interactions log;
    cli_item_texts texts;
    int n;
    struct {
        const char *name;
        att_ranking r;
    } result[MAX_RESULTS];
} evaluation;

/* ---- The split of the training -------------------------------------------------- */

static const char *stored_text(const json_t *training, const char *name)
{
    return json_string_value(json_object_get(json_object_get(training, "options"), name));
}

/* "leave-one-out" -> its number; -1: not said */
static int split_number(const char *name)
{
    int i = ATT_HOLDOUT_NONE;
    while (i >= 0 && (!name || strcmp(name, cli_split_name((att_holdout_kind)i)) != 0))
        i--;
    return i;
}

static bool has_split(void)
{
    return data.split >= 0 || data.min_actions || data.valid_share != 0 || data.test_share != 0 ||
           data.valid_from != 0 || data.test_from != 0;
}

/* The split of the training, where none was typed; says so where it differs from the one that was. */
static int read_split(const evaluation *e)
{
    json_t *training = NULL;
    const int code = model_name ? cli_training_file_read(e->m.folder.text, &training) : CLI_DONE;
    if (code || !training)
        return code;
    const struct {
        const char *name;
        double *to;
    } numbers[] = {{"valid-share", &data.valid_share},
                   {"test-share", &data.test_share},
                   {"valid-from", &data.valid_from},
                   {"test-from", &data.test_from}};
    const int split = split_number(stored_text(training, "split"));
    const int was = split < 0 ? ATT_HOLDOUT_LEAVE_ONE_OUT : split, is = data.split < 0 ? was : data.split;
    if (was == ATT_HOLDOUT_NONE)
        cli_note("%s was trained with --split none: it has learnt from the actions that are held out here", e->m.name);
    else if (is != was)
        cli_note("%s was trained with --split %s: it may have learnt from actions that are held out here", e->m.name,
                 cli_split_name((att_holdout_kind)was));
    if (!has_split() && was != ATT_HOLDOUT_NONE) {
        const char *min = stored_text(training, "min-actions");
        data.split = was;
        data.min_actions = min ? strtoll(min, NULL, 10) : 0;
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
            const char *text = stored_text(training, numbers[i].name);
            *numbers[i].to = text ? strtod(text, NULL) : 0;
        }
    }
    json_decref(training);
    return CLI_DONE;
}

/* ---- Measuring ------------------------------------------------------------------ */

typedef struct progress {
    cli_progress line;
    int64_t cases;
} progress;

static void show_progress(void *user, double share)
{
    progress *p = user;
    cli_progress_show(&p->line, (int64_t)(share * (double)p->cases), "histories", share);
}

static int measure(evaluation *e, const char *name, const att_scorer *scorer)
{
    progress p = {.cases = e->log.held.cases[part]};
    const att_ranking_options *o = ATT_OPTIONS(
        att_ranking_options, .part = (att_holdout_part)part, .k = k, .exclude_seen = exclude_seen,
        .leave_out_unseen = leave_out_unseen, .candidates = (att_candidates)candidates, .negatives = negatives,
        .draws = draws, .seed = (uint64_t)seed, .progress = show_progress, .user = &p);
    att_ranking *r = &e->result[e->n].r;
    r->size = sizeof *r;
    cli_progress_begin(&p.line);
    const int code = cli_status(e->ctx, att_rank(e->log.holdout, scorer, o, r));
    cli_progress_end(&p.line);
    e->result[e->n].name = name;
    e->n += !code;
    return code;
}

static int measure_baseline(evaluation *e, att_baseline_kind kind, const char *name)
{
    att_baseline *b = NULL;
    const att_baseline_options *o =
        ATT_OPTIONS(att_baseline_options, .neighbours = kind == ATT_BASELINE_NEIGHBOURS ? neighbours : 0,
                    .vectors = kind == ATT_BASELINE_CONTENT ? e->texts.vectors : NULL,
                    .width = kind == ATT_BASELINE_CONTENT ? e->texts.width : 0);
    int code = cli_status(e->ctx, att_baseline_new(e->log.holdout, kind, o, &b));
    if (!code) {
        const att_scorer scorer = att_baseline_scorer(b);
        code = measure(e, name, &scorer);
    }
    att_baseline_free(b);
    return code;
}

static int measure_all(evaluation *e)
{
    int code = measure_baseline(e, ATT_BASELINE_POPULARITY, "popularity");
    if (!code)
        code = measure_baseline(e, ATT_BASELINE_NEIGHBOURS, "item neighbours");
    if (!code && texts_path)
        code = measure_baseline(e, ATT_BASELINE_CONTENT, "content");
    if (code || !model_name)
        return code;
    const att_scorer scorer = att_recommender_scorer(e->m.model);
    return measure(e, e->m.name, &scorer);
}

/* ---- Printing ------------------------------------------------------------------- */

static int64_t drawn(void) { return draws ? draws : 5; }
static int64_t sampled(void) { return negatives ? negatives : 100; }

static void print_split(const evaluation *e)
{
    const att_holdout_info *h = &e->log.held;
    const long long cases = h->cases[part];
    if (h->kind == ATT_HOLDOUT_LEAVE_ONE_OUT)
        printf("held out    leave-one-out: the %s of each of %lld users with %lld actions or more,\n"
               "            predicted from all before it; %lld users with fewer are for training only\n",
               part ? "last action" : "last action but one", cases,
               (long long)(data.min_actions > 3 ? data.min_actions : 3), (long long)h->train_only);
    else
        printf("held out    time: the first action of each of %lld users from %.17g on%s, predicted\n"
               "            from all before it; %lld users without any before it are not counted\n",
               cases, part ? h->test_from : h->valid_from, part ? "" : " (and before the test)",
               (long long)h->without_history[part]);
}

static void print_candidates(const evaluation *e)
{
    static const char *const outside[] = {
        [ATT_CANDIDATES_OUTSIDE_TRAINING] = "uniform outside the user's training items, with repetition",
        [ATT_CANDIDATES_OUTSIDE_HISTORY] = "uniform outside all items of the user",
        [ATT_CANDIDATES_BY_POPULARITY] = "by popularity, outside all items of the user"};
    const char *seen = exclude_seen ? "without those of the history" : "those of the history, too";
    if (candidates == ATT_CANDIDATES_ALL)
        printf("candidates  all %lld items, %s\n", (long long)e->log.info.items, seen);
    else
        printf("candidates  %lld random items, %s,\n            %s; mean of %lld draws for each user, seed %lld\n",
               (long long)sampled(), outside[candidates], seen, (long long)drawn(), (long long)seed);
}

static double half_width(const att_estimate *x) { return fmax(x->high - x->mean, x->mean - x->low); }

static void print_text(const evaluation *e)
{
    const att_ranking *first = &e->result[0].r;
    const struct {
        const char *name;
        size_t at;
    } columns[] = {
        {"HR", offsetof(att_ranking, hr)}, {"NDCG", offsetof(att_ranking, ndcg)}, {"MRR", offsetof(att_ranking, mrr)}};
    const int n_columns = sizeof columns / sizeof *columns;
    int width = 15;
    for (int i = 0; i < e->n; i++)
        width = (int)fmax(width, utf8_width(e->result[i].name));
    width = (int)fmin(width, 30);
    printf("training    %lld actions of %lld users with %lld items\n", (long long)e->log.held.actions,
           (long long)e->log.held.users, (long long)e->log.held.items);
    print_split(e);
    print_candidates(e);
    printf("unseen      %lld held-out items do not occur in training: %s\n", (long long)first->unseen,
           leave_out_unseen ? "not counted" : "counted");
    printf("repeats     %lld of %lld counted items are in their history\n\n%*s", (long long)first->repeats,
           (long long)first->cases, width, "");
    for (int c = 0; c < n_columns; c++) {
        char name[32];
        snprintf(name, sizeof name, "%s@%lld", columns[c].name, (long long)k);
        printf("  %-14s", name);
    }
    puts("  coverage  popularity");
    for (int i = 0; i < e->n; i++) {
        const att_ranking *r = &e->result[i].r;
        utf8_field(stdout, e->result[i].name, width, 0);
        for (int c = 0; c < n_columns; c++) {
            const att_estimate *x = (const att_estimate *)((const char *)r + columns[c].at);
            printf("  %.4f ±%.4f", x->mean, half_width(x));
        }
        printf("  %6.2f %%  %10.1f\n", 100 * r->coverage, r->popularity);
    }
    puts("\n± is half the width of the 95 % interval. coverage: share of the items that are\n"
         "recommended to some user; popularity: mean number of their training actions.");
}

static void put_estimate(const char *name, const att_estimate *x)
{
    printf(", \"%s\": %.8g, \"%s_low\": %.8g, \"%s_high\": %.8g", name, x->mean, name, x->low, name, x->high);
}

static void print_json(const evaluation *e)
{
    static const char *const names[] = {"all", "outside-training", "outside-history", "popularity"};
    const att_ranking *first = &e->result[0].r;
    fputs("{\"data\": ", stdout);
    cli_write_json(stdout, data.path, strlen(data.path));
    printf(", \"split\": \"%s\", \"part\": \"%s\", \"cases\": %lld, \"unseen\": %lld, \"unseen_counted\": %s, "
           "\"repeats\": %lld",
           cli_split_name(e->log.held.kind), part ? "test" : "valid", (long long)first->cases, (long long)first->unseen,
           leave_out_unseen ? "false" : "true", (long long)first->repeats);
    printf(", \"items\": %lld, \"candidates\": \"%s\", \"exclude_seen\": %s, \"k\": %lld", (long long)e->log.info.items,
           names[candidates], exclude_seen ? "true" : "false", (long long)k);
    if (candidates != ATT_CANDIDATES_ALL)
        printf(", \"negatives\": %lld, \"draws\": %lld, \"seed\": %lld", (long long)sampled(), (long long)drawn(),
               (long long)seed);
    fputs(", \"results\": [", stdout);
    for (int i = 0; i < e->n; i++) {
        const att_ranking *r = &e->result[i].r;
        fputs(i ? ", {\"name\": " : "{\"name\": ", stdout);
        cli_write_json(stdout, e->result[i].name, strlen(e->result[i].name));
        put_estimate("hr", &r->hr);
        put_estimate("ndcg", &r->ndcg);
        put_estimate("mrr", &r->mrr);
        printf(", \"coverage\": %.8g, \"popularity\": %.8g}", r->coverage, r->popularity);
    }
    puts("]}");
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

/* ---- The work ------------------------------------------------------------------- */

static int check_options(void)
{
    if (candidates == ATT_CANDIDATES_ALL && (negatives || draws))
        return cli_misuse("--%s needs --candidates at random: without them the held-out item is ranked among all items",
                          negatives ? "negatives" : "draws");
    if (data.split == ATT_HOLDOUT_NONE)
        return cli_misuse("--split none holds out nothing that could be predicted");
    if (text_model && !texts_path)
        return cli_misuse("--text-model %s needs --item-texts FILE", text_model);
    return CLI_DONE;
}

static int read_data(evaluation *e)
{
    int code = read_split(e);
    if (!code)
        code = cli_item_texts_read(&e->texts, texts_path);
    if (!code)
        code = cli_interactions_open(e->ctx, &e->log, &data, e->m.items, e->m.info.items);
    if (!code)
        code = cli_interactions_hold_out(e->ctx, &e->log, &data);
    if (!code && e->log.held.cases[part] == 0)
        code = cli_fail("%s: no action is held out, as no user has %lld actions or more", data.path,
                        (long long)(data.min_actions > 3 ? data.min_actions : 3));
    if (!code && texts_path)
        code = cli_item_texts_embed(&e->texts, text_model, threads, e->log.log, 0, e->log.info.items);
    return code;
}

static int run(int n, char **arguments)
{
    (void)n, (void)arguments;
    evaluation e = {.ctx = NULL};
    int code = check_options();
    if (!code)
        code = model_name ? cli_recommender_open(&e.m, model_name, threads) : cli_open(&e.ctx, threads);
    if (model_name)
        e.ctx = e.m.ctx;
    if (!code)
        code = read_data(&e);
    if (!code && !json)
        cli_interactions_say(&e.log);
    if (!code)
        code = measure_all(&e);
    if (!code)
        code = print(&e);
    cli_interactions_close(&e.log);
    cli_item_texts_free(&e.texts);
    if (model_name)
        cli_recommender_close(&e.m);
    else
        att_close(e.ctx);
    return code;
}

const cli_command evaluate_recommend = {
    .name = "recommend",
    .summary = "measure how well next items are predicted, beside baselines",
    .details = "Predicts held-out actions of a log, and prints how often the item is among the\n"
               "first k (HR@k, the recall of one item), how far in front it is (NDCG@k, MRR@k),\n"
               "with 95 % intervals over users, how many of the items are recommended to\n"
               "anybody, and how popular these are. Beside the model are baselines: the most\n"
               "popular items, item k-nearest neighbours (Sarwar et al. 2001), and with\n"
               "--item-texts the items whose texts are nearest to those of the history.\n\n"
               "What is held out is as in the training of the model. The item is ranked among\n"
               "all items; random candidates order models otherwise (Krichene, Rendle 2020)\n"
               "and are for comparison with papers only. The protocol is printed in full.",
    .examples = "attend evaluate recommend -m shop --data log.csv\n"
                "attend evaluate recommend -m shop --data log.csv --exclude-seen --leave-out-unseen -k 20\n"
                "attend evaluate recommend --data ml-100k.inter --candidates outside-training --negatives 100",
    .options = options,
    .see = "recommend|train recommend",
    .run = run,
};
