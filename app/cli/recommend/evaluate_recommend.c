/* attend evaluate recommend: measures how well a model and baselines predict next items. */
#include "cli/base/json.h"
#include "cli/base/output.h"
#include "cli/base/progress.h"
#include "cli/base/utf8.h"
#include "cli/model/checkpoints.h"
#include "interactions.h"
#include "item_texts.h"
#include "log_times.h"
#include "recommender.h"
#include "training_data_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static cli_interactions_options data = {CLI_INTERACTIONS_DEFAULTS};
static const char *model_name, *texts_path, *text_column, *id_column, *text_model;
static int part = 1, candidates = ATT_CANDIDATES_ALL, dtype;
static const char *cutoffs_text = "10";
static int64_t negatives, draws, seed = 1, neighbors = 100, threads;
static double decay = 0.6;
static bool exclude_seen, leave_out_unseen, json;

static const cli_option options[] = {
    CLI_RECOMMENDER_MODEL_OPTION(&model_name, "; without one the baselines are measured alone"),
    {"data", 'd', "FILE", .text = &data.path, .required = true,
     .help = "log of actions, as in attend train recommend; \"-\": standard input"},
    CLI_INTERACTIONS_OPTIONS(data),
    CLI_HOLDOUT_OPTIONS(data),
    {"part", 0, "valid|test", .choice = &part, .help = "held-out actions that are predicted"},
    {"top", 'k', "N[,N...]", .text = &cutoffs_text,
     .help = "number of items that are recommended: the k of HR@k, NDCG@k and MRR@k; up to 8 of them"},
    {"candidates", 0, "all|outside-training|outside-history|popularity", .choice = &candidates,
     .help = "rank the held-out item among all items; or among some at random: outside the user's training items, as "
             "in the paper of SASRec; outside all the user's items; or these by popularity"},
    {"negatives", 0, "N", .integer = &negatives, .min = 1, .max = 1 << 30, .quiet = true,
     .help = "number of random candidates; default: 100"},
    {"draws", 0, "N", .integer = &draws, .min = 1, .max = 1 << 20, .quiet = true,
     .help = "draw them N times for each user, and print the mean; default: 5"},
    {"seed", 0, "N", .integer = &seed, .max = 1e18, .help = "random seed of candidates"},
    {"exclude-seen", 0, NULL, .flag = &exclude_seen, .help = "items of the history are not candidates"},
    {"leave-out-unseen", 0, NULL, .flag = &leave_out_unseen,
     .help = "do not count held-out items that do not occur in training"},
    {"neighbors", 0, "N", .integer = &neighbors, .min = 1, .max = 1 << 20,
     .help = "neighbors of an item in the baseline of item k-nearest neighbors"},
    {"decay", 0, "X", .number = &decay, .max = 1, .above_min = true,
     .help = "weight of an item of the history in this baseline, relative to the item after it; 1: all the same"},
    CLI_ITEM_TEXTS_OPTION(&texts_path, "measures their similarity as another baseline"),
    CLI_TEXT_COLUMN_OPTION(&text_column),
    CLI_ID_COLUMN_OPTION(&id_column),
    CLI_TEXT_MODEL_OPTION(&text_model),
    CLI_DTYPE(&dtype),
    CLI_THREADS(&threads),
    CLI_JSON(&json),
    {0},
};

enum { MAX_CUTOFFS = 8, MAX_RESULTS = 4 * MAX_CUTOFFS };

typedef struct evaluation {
    att_ctx *ctx;
    cli_recommender m; /* open if model_name */
    cli_interactions log;
    cli_item_texts texts;
    int64_t log_items, known_items; /* of the log; of these, those that the model has */
    int64_t without_known;          /* histories with none of these */
    int n, n_cutoffs;
    int64_t cutoff[MAX_CUTOFFS]; /* of -k */
    struct {
        const char *name;
        att_ranking r;
    } result[MAX_RESULTS];
} evaluation;

/* ---- How the training read its log and split it --------------------------------- */

static bool typed[64]; /* options of the table */

static int complete(bool *given)
{
    for (int i = 0; options[i].name; i++)
        typed[i] = given[i];
    return CLI_DONE;
}

static int number_of(const char *name)
{
    int i = 0;
    while (strcmp(options[i].name, name) != 0)
        i++;
    return i;
}

static bool is_typed(const char *name) { return typed[number_of(name)]; }

static void note_split(const evaluation *e, const char *name, const char *was)
{
    cli_note("%s was trained with --%s %s, not as here: it may have been trained on actions that are held out here",
             e->m.base.name, name, was);
}

/* Sets options of the split that were not given to those of the training, and reports given ones that differ. */
static void restore_split(const evaluation *e, const cli_interactions_options *was)
{
    const bool points = is_typed("valid-from") || is_typed("test-from"),
               shares = is_typed("valid-share") || is_typed("test-share");
    double min_actions = (double)data.min_actions;
    const struct {
        const char *name;
        double *is, was;
        bool excluded; /* by an option that was given */
    } numbers[] = {{"min-actions", &min_actions, (double)was->min_actions, false},
                   {"valid-share", &data.valid_share, was->valid_share, points},
                   {"test-share", &data.test_share, was->test_share, points}};
    const struct {
        const char *name, **is, *was;
    } times[] = {{"valid-from", &data.valid_from, was->valid_from}, {"test-from", &data.test_from, was->test_from}};
    if (was->split == ATT_HOLDOUT_NONE)
        cli_note("%s was trained with --split none, so also on the actions that are held out here", e->m.base.name);
    else if (data.split >= 0 && data.split != was->split)
        note_split(e, "split", cli_split_name((att_holdout_kind)was->split));
    else
        data.split = was->split;
    for (size_t i = 0; data.split == was->split && i < sizeof numbers / sizeof *numbers; i++) {
        char text[CLI_NUMBER_BYTES];
        const bool set = numbers[i].was != 0;
        cli_write_number(numbers[i].was, text);
        if (set && (is_typed(numbers[i].name) ? *numbers[i].is != numbers[i].was : numbers[i].excluded))
            note_split(e, numbers[i].name, text);
        if (set && !is_typed(numbers[i].name) && !numbers[i].excluded)
            *numbers[i].is = numbers[i].was;
    }
    for (size_t i = 0; data.split == was->split && i < sizeof times / sizeof *times; i++) {
        const bool is = is_typed(times[i].name);
        if (times[i].was && (is ? !cli_time_same(*times[i].is, times[i].was) : shares))
            note_split(e, times[i].name, times[i].was);
        if (!is && !shares)
            *times[i].is = times[i].was;
    }
    data.min_actions = (int64_t)min_actions;
}

/* Reads and splits as the training did, except for options that were given. If the model may have been trained on
 * held-out actions, reports the reason: these options, the log, or the models with which the training began. */
static int restore_training(const evaluation *e, const json_t *training)
{
    bool other = false;
    cli_interactions_options was;
    const json_t *all = json_object_get(training, "options");
    cli_training_data_split(all, &was);
    restore_split(e, &was);
    cli_interactions_complete(&data);
    int code = cli_check_reading(all, e->m.base.name, data.path, options, typed);
    if (!code)
        code = cli_training_data_other_log(training, data.path, &other);
    if (!code && other)
        cli_note(
            "%s is not the log of the training of %s, which may have been trained on actions that are held out here",
            data.path, e->m.base.name);
    return code ? code : cli_training_data_note(json_object_get(training, "learnt"), e->m.base.name, &data);
}

static int read_training(const evaluation *e)
{
    static json_t *training; /* options point into it */
    int code = model_name ? cli_training_file_read(e->m.base.folder.text, &training) : CLI_DONE;
    if (!code && training)
        code = restore_training(e, training);
    cli_interactions_complete(&data);
    return code ? code : cli_interactions_check(&data);
}

/* ---- Measuring ------------------------------------------------------------------ */

static int measure_at(evaluation *e, const char *name, const att_scorer *scorer, int64_t k)
{
    cli_share p = cli_share_of_call("histories", e->log.held.cases[part]);
    const att_ranking_options *o = ATT_OPTIONS(
        att_ranking_options, .part = (att_holdout_part)part, .k = k, .exclude_seen = exclude_seen,
        .leave_out_unseen = leave_out_unseen, .candidates = (att_candidates)candidates, .negatives = negatives,
        .draws = draws, .seed = (uint64_t)seed, .progress = cli_share_report, .user = &p);
    att_ranking *r = &e->result[e->n].r;
    r->size = sizeof *r;
    const int code = cli_status(e->ctx, att_rank(e->log.holdout, scorer, o, r));
    cli_share_end(&p);
    e->result[e->n].name = name;
    e->n += !code;
    return code;
}

static int measure(evaluation *e, const char *name, const att_scorer *scorer)
{
    int code = CLI_DONE;
    for (int i = 0; !code && i < e->n_cutoffs; i++)
        code = measure_at(e, name, scorer, e->cutoff[i]);
    return code;
}

static int measure_baseline(evaluation *e, att_baseline_kind kind, const char *name)
{
    const bool near = kind == ATT_BASELINE_NEIGHBORS, content = kind == ATT_BASELINE_CONTENT;
    att_baseline *b = NULL;
    cli_share p = cli_share_of_call("items", e->log.info.items);
    const att_baseline_options *o =
        ATT_OPTIONS(att_baseline_options, .neighbors = near ? neighbors : 0, .decay = near ? decay : 0,
                    .vectors = content ? e->texts.vectors : NULL, .width = content ? e->texts.width : 0,
                    .progress = cli_share_report, .user = &p);
    int code = cli_status(e->ctx, att_baseline_new(e->log.holdout, kind, o, &b));
    cli_share_end(&p);
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
        code = measure_baseline(e, ATT_BASELINE_NEIGHBORS, "item neighbors");
    if (!code && texts_path)
        code = measure_baseline(e, ATT_BASELINE_CONTENT, "content");
    if (code || !model_name)
        return code;
    const att_scorer scorer = att_recommender_scorer(e->m.model);
    return measure(e, e->m.base.name, &scorer);
}

/* ---- Printing ------------------------------------------------------------------- */

static int64_t drawn(void) { return draws ? draws : 5; }
static int64_t sampled(void) { return negatives ? negatives : 100; }

static const char *plural(int64_t n) { return n == 1 ? "" : "s"; }

/* Returns the point in time from which on actions are held out. */
static const char *point_of(const evaluation *e, char text[CLI_TIME_BYTES])
{
    return cli_time_text(part ? e->log.held.test_from : e->log.held.valid_from, e->log.info.time_per_second, text);
}

static void print_split(const evaluation *e)
{
    char point[CLI_TIME_BYTES];
    const att_holdout_info *h = &e->log.held;
    const long long cases = h->cases[part];
    if (h->kind == ATT_HOLDOUT_LEAVE_ONE_OUT)
        printf("held out    leave-one-out: the %s of each of %lld user%s with %lld actions or more,\n"
               "            predicted from all before it; %lld user%s with fewer %s for training only\n",
               part ? "last action" : "last action but one", cases, plural(cases), (long long)data.min_actions,
               (long long)h->train_only, plural(h->train_only), h->train_only == 1 ? "is" : "are");
    else
        printf("held out    time: the first action of each of %lld user%s from %s on%s, predicted\n"
               "            from all before it; %lld user%s without any before it %s not counted, and %lld\n"
               "            with fewer than %lld actions %s for training only\n",
               cases, plural(cases), point_of(e, point), part ? "" : " (and before the test)",
               (long long)h->without_history[part], plural(h->without_history[part]),
               h->without_history[part] == 1 ? "is" : "are", (long long)h->train_only, (long long)data.min_actions,
               h->train_only == 1 ? "is" : "are");
}

static void print_candidates(const evaluation *e)
{
    static const char *const outside[] = {
        [ATT_CANDIDATES_OUTSIDE_TRAINING] = "uniform outside the user's training items, with repetition",
        [ATT_CANDIDATES_OUTSIDE_HISTORY] = "uniform outside all items of the user",
        [ATT_CANDIDATES_BY_POPULARITY] = "by popularity, outside all items of the user"};
    const bool of_history = candidates == ATT_CANDIDATES_OUTSIDE_TRAINING; /* the item for validation can be one */
    const char *seen = exclude_seen ? "without those of the history" : "those of the history, too";
    if (candidates == ATT_CANDIDATES_ALL)
        printf("candidates  all %lld items, %s\n", (long long)e->log.info.items, seen);
    else
        printf("candidates  %lld random items, %s%s%s;\n            mean of %lld draws for each user, seed %lld\n",
               (long long)sampled(), outside[candidates], of_history ? ",\n            " : "", of_history ? seen : "",
               (long long)drawn(), (long long)seed);
}

static double half_width(const att_interval *x) { return (x->high - x->low) / 2; }

/* Returns the last name of a path. */
static const char *short_name(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash && slash[1] ? slash + 1 : name;
}

/* Prints the results of one cutoff. */
static void print_table(const evaluation *e, int64_t k)
{
    const struct {
        const char *name;
        size_t at;
    } columns[] = {
        {"HR", offsetof(att_ranking, hr)}, {"NDCG", offsetof(att_ranking, ndcg)}, {"MRR", offsetof(att_ranking, mrr)}};
    const int n_columns = sizeof columns / sizeof *columns;
    int width = 15;
    for (int i = 0; i < e->n; i++)
        width = (int)fmax(width, utf8_width(short_name(e->result[i].name)));
    width = (int)fmin(width, 30);
    printf("\n%*s", width, "");
    for (int c = 0; c < n_columns; c++) {
        char name[32];
        snprintf(name, sizeof name, "%s@%lld", columns[c].name, (long long)k);
        printf("  %-14s", name);
    }
    puts("  coverage  popularity");
    for (int i = 0; i < e->n; i++) {
        const att_ranking *r = &e->result[i].r;
        if (e->result[i].r.k != k)
            continue;
        utf8_field(stdout, short_name(e->result[i].name), width, 0);
        for (int c = 0; c < n_columns; c++) {
            const att_interval *x = (const att_interval *)((const char *)r + columns[c].at);
            printf("  %.4f ±%.4f", x->mean, half_width(x));
        }
        printf("  %6.2f %%  %10.1f\n", 100 * r->coverage, r->popularity);
    }
}

static void print_text(const evaluation *e)
{
    const att_ranking *first = &e->result[0].r;
    printf("training    %lld actions of %lld user%s with %lld item%s\n", (long long)e->log.held.actions,
           (long long)e->log.held.users, plural(e->log.held.users), (long long)e->log.held.items,
           plural(e->log.held.items));
    print_split(e);
    print_candidates(e);
    printf("unseen      %lld held-out item%s not occur in training: %s\n", (long long)first->unseen,
           first->unseen == 1 ? " does" : "s do", leave_out_unseen ? "not counted" : "counted");
    printf("repeats     %lld of %lld counted items %s in their history\n", (long long)first->repeats,
           (long long)first->cases, first->repeats == 1 ? "is" : "are");
    printf("neighbors   %lld of an item; an item of the history weighs %g times the one after it\n",
           (long long)neighbors, decay);
    if (model_name)
        printf("model       knows %lld of the log's %lld item%s; %lld histor%s none that it knows\n",
               (long long)e->known_items, (long long)e->log_items, plural(e->log_items), (long long)e->without_known,
               e->without_known == 1 ? "y has" : "ies have");
    for (int i = 0; i < e->n_cutoffs; i++)
        print_table(e, e->cutoff[i]);
    puts("\n± is half the width of the 95 % interval. coverage: share of the items that are\n"
         "recommended to some user; popularity: mean number of their training actions.");
}

static void json_estimate(cli_json *j, const char *key, const att_interval *x)
{
    char name[32];
    cli_json_number(j, key, x->mean, 8);
    snprintf(name, sizeof name, "%s_low", key);
    cli_json_number(j, name, x->low, 8);
    snprintf(name, sizeof name, "%s_high", key);
    cli_json_number(j, name, x->high, 8);
}

/* Writes the sizes of the training part and of the held-out parts. */
static void json_training(cli_json *j, const evaluation *e)
{
    const att_holdout_info *h = &e->log.held;
    cli_json_integer(j, "min_actions", data.min_actions);
    cli_json_object(j, "training");
    cli_json_integer(j, "actions", h->actions);
    cli_json_integer(j, "users", h->users);
    cli_json_integer(j, "items", h->items);
    cli_json_integer(j, "users_only", h->train_only);
    cli_json_end(j);
    if (h->kind == ATT_HOLDOUT_TIME) {
        cli_json_number(j, "valid_from", h->valid_from, 17);
        cli_json_number(j, "test_from", h->test_from, 17);
        cli_json_integer(j, "users_not_counted", h->without_history[part]);
    }
    if (model_name) {
        cli_json_integer(j, "log_items", e->log_items);
        cli_json_integer(j, "known_items", e->known_items);
        cli_json_integer(j, "histories_without_known", e->without_known);
    }
}

static void json_results(cli_json *j, const evaluation *e)
{
    cli_json_array(j, "results");
    for (int i = 0; i < e->n; i++) {
        const att_ranking *r = &e->result[i].r;
        cli_json_object(j, NULL);
        cli_json_string(j, "name", e->result[i].name);
        if (e->n_cutoffs > 1)
            cli_json_integer(j, "k", e->result[i].r.k);
        json_estimate(j, "hr", &r->hr);
        json_estimate(j, "ndcg", &r->ndcg);
        json_estimate(j, "mrr", &r->mrr);
        cli_json_number(j, "coverage", r->coverage, 8);
        cli_json_number(j, "popularity", r->popularity, 8);
        cli_json_end(j);
    }
    cli_json_end(j);
}

static void print_json(const evaluation *e)
{
    static const char *const names[] = {"all", "outside-training", "outside-history", "popularity"};
    const att_ranking *first = &e->result[0].r;
    cli_json j = cli_json_begin(stdout);
    cli_json_string(&j, "data", data.path);
    cli_json_string(&j, "split", cli_split_name(e->log.held.kind));
    cli_json_string(&j, "part", part ? "test" : "valid");
    cli_json_integer(&j, "cases", first->cases);
    cli_json_integer(&j, "unseen", first->unseen);
    cli_json_bool(&j, "unseen_counted", !leave_out_unseen);
    cli_json_integer(&j, "repeats", first->repeats);
    cli_json_integer(&j, "neighbours", neighbors);
    cli_json_number(&j, "decay", decay, 6);
    json_training(&j, e);
    if (e->log.info.guests)
        cli_json_integer(&j, "guests", e->log.info.guests);
    cli_skipped_json(&j, e->log.info.skipped, e->log.info.bad);
    cli_json_integer(&j, "items", e->log.info.items);
    cli_json_string(&j, "candidates", names[candidates]);
    cli_json_bool(&j, "exclude_seen", exclude_seen);
    if (e->n_cutoffs == 1)
        cli_json_integer(&j, "k", e->cutoff[0]);
    if (candidates != ATT_CANDIDATES_ALL) {
        cli_json_integer(&j, "negatives", sampled());
        cli_json_integer(&j, "draws", drawn());
        cli_json_integer(&j, "seed", seed);
    }
    json_results(&j, e);
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

/* ---- The work ------------------------------------------------------------------- */

/* "5,10,20" */
static int read_cutoffs(evaluation *e)
{
    const char *at = cutoffs_text;
    for (bool more = true; more && e->n_cutoffs < MAX_CUTOFFS; at++) {
        char *end;
        const long long k = strtoll(at, &end, 10);
        more = *end == ',';
        if (*at < '0' || *at > '9' || k < 1 || k > 1 << 30 || (*end && !more))
            break;
        for (int i = 0; i < e->n_cutoffs; i++)
            if (e->cutoff[i] == k)
                return cli_misuse("-k: \"%s\" has %lld twice", cutoffs_text, k);
        e->cutoff[e->n_cutoffs++] = k;
        at = end;
        if (!more)
            return CLI_DONE;
    }
    return cli_misuse("-k: \"%s\" is not a whole number from 1 to %d, or up to %d of them with commas between them",
                      cutoffs_text, 1 << 30, MAX_CUTOFFS);
}

static int check_options(void)
{
    if (candidates == ATT_CANDIDATES_ALL && (negatives || draws))
        return cli_misuse("--%s needs --candidates at random: without them the held-out item is ranked among all items",
                          negatives ? "negatives" : "draws");
    if (data.split == ATT_HOLDOUT_NONE)
        return cli_misuse("--split none holds out nothing that could be predicted");
    if (text_column && !texts_path)
        return cli_misuse("--text-column %s needs --item-texts FILE", text_column);
    if (text_model && !texts_path)
        return cli_misuse("--text-model %s needs --item-texts FILE", text_model);
    if (dtype && !model_name)
        return cli_misuse("--dtype needs --model");
    return CLI_DONE;
}

static int fail_without_cases(const evaluation *e)
{
    char point[CLI_TIME_BYTES];
    if (e->log.held.kind == ATT_HOLDOUT_TIME)
        return cli_fail("%s: no action is held out, as no user with %lld actions or more has one from %s on%s and one "
                        "before it",
                        data.path, (long long)data.min_actions, point_of(e, point), part ? "" : ", before the test,");
    return cli_fail("%s: no action is held out, as no user has %lld actions or more", data.path,
                    (long long)data.min_actions);
}

/* Reports how many items of the log the model knows, and how many histories have none of them. */
static int count_known(evaluation *e)
{
    att_holdout_case c;
    const int64_t items = e->log.info.items, own = e->m.info.items;
    bool *seen = calloc((size_t)items + 1, sizeof *seen);
    if (!seen)
        return cli_fail_memory();
    for (int64_t u = 0; u < e->log.info.users; u++) {
        const att_history h = att_interactions_history(e->log.log, u);
        for (int64_t i = 0; i < h.count; i++)
            seen[h.items[i]] = true;
    }
    for (int64_t i = 0; i < items; i++) {
        e->log_items += seen[i];
        e->known_items += seen[i] && i < own;
    }
    free(seen);
    for (int64_t i = 0; i < e->log.held.cases[part] && !att_holdout_get(e->log.holdout, part, i, &c); i++) {
        int64_t k = 0;
        while (k < c.history.count && c.history.items[k] >= own)
            k++;
        e->without_known += k == c.history.count;
    }
    return e->known_items > 0 ? CLI_DONE
                              : cli_fail("%s: %s knows none of its %lld items; the first is \"%.64s\", the model's "
                                         "first is \"%.64s\"",
                                         data.path, e->m.base.name, (long long)e->log_items,
                                         att_interactions_item(e->log.log, own), e->m.items[0]);
}

static int read_data(evaluation *e)
{
    int code = read_training(e);
    if (!code)
        code = cli_item_texts_read(&e->texts, texts_path, id_column, text_column, data.skip_bad_lines);
    if (!code)
        code = cli_interactions_open(e->ctx, &e->log, &data, e->m.items, e->m.info.items);
    if (!code)
        code = cli_interactions_hold_out(e->ctx, &e->log, &data);
    if (!code && e->log.held.cases[part] == 0) {
        cli_interactions_report(&e->log); /* the reason may be how the log was read */
        code = fail_without_cases(e);
    }
    if (!code && model_name)
        code = count_known(e);
    if (!code)
        code = cli_item_texts_check(&e->texts, texts_path, e->log.log);
    if (!code && texts_path)
        code = cli_item_texts_embed(&e->texts, text_model, threads, e->log.log, 0, e->log.info.items);
    if (!code && e->texts.missing > 0)
        cli_note("%s: %lld of %lld items %s no text", texts_path, (long long)e->texts.missing,
                 (long long)e->log.info.items, e->texts.missing == 1 ? "has" : "have");
    return code;
}

static int run(int n, char **arguments)
{
    (void)n, (void)arguments;
    evaluation e = {.ctx = NULL};
    int code = check_options();
    if (!code)
        code = cli_interactions_copy_pipe(&data);
    if (!code)
        code = read_cutoffs(&e);
    if (!code)
        code = model_name ? cli_model_open(&e.m.base, &cli_recommender_kind, model_name, dtype, threads)
                          : cli_open(&e.ctx, threads);
    if (model_name)
        e.ctx = e.m.base.ctx;
    if (!code)
        code = read_data(&e);
    if (!code && !json)
        cli_interactions_report(&e.log);
    if (!code)
        code = measure_all(&e);
    if (!code)
        code = print(&e);
    cli_interactions_close(&e.log);
    cli_item_texts_free(&e.texts);
    if (model_name)
        cli_model_close(&e.m.base);
    else
        att_close(e.ctx);
    return code;
}

const cli_command cli_evaluate_recommend = {
    .name = "recommend",
    .summary = "measure how well next items are predicted, beside baselines",
    .details = "Predicts held-out actions of a log, and prints how often the item is among the\n"
               "first k (HR@k, the recall of one item), how far in front it is (NDCG@k, MRR@k),\n"
               "with 95 % intervals over users, how many of the items are recommended to\n"
               "anybody, and how popular these are. Beside the model are baselines: the most\n"
               "popular items, item k-nearest neighbors (Sarwar et al. 2001), and with\n"
               "--item-texts the items whose texts are nearest to those of the history.\n\n"
               "How the log is read and what is held out is as in the training of the model,\n"
               "but for what is typed; where the model may know what it is measured by, that is\n"
               "reported. The item is ranked among all items; random candidates order models\n"
               "otherwise (Krichene, Rendle 2020) and are for comparison with papers only. The\n"
               "protocol is printed in full.",
    .examples = "attend evaluate recommend -m shop --data log.csv\n"
                "attend evaluate recommend -m shop --data log.csv --exclude-seen --leave-out-unseen -k 20\n"
                "attend evaluate recommend --data ml-100k.inter --candidates outside-training --negatives 100",
    .options = options,
    .see = "recommend|train recommend",
    .complete = complete,
    .run = run,
};
