/* attend evaluate recommend: measures how well a model and baselines predict next items. */
#include "cli/base/output.h"
#include "cli/base/progress.h"
#include "cli/model/checkpoints.h"
#include "counting_model.h"
#include "evaluation.h"
#include "item_texts.h"
#include "training_data_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static cli_interactions_options data = {CLI_INTERACTIONS_DEFAULTS};
static evaluation_protocol protocol = {
    .part = 1, .candidates = ATT_CANDIDATES_ALL, .seed = 1, .neighbors = 100, .decay = 0.6, .l2 = 500};
static const char *model_name, *texts_path, *text_column, *id_column, *text_model;
static const char *cutoffs_text = "10";
static int64_t threads;
static cli_types types;
static cli_item_texts texts;
static bool ease, json;

static const cli_option options[] = {
    CLI_RECOMMENDER_MODEL_OPTION(&model_name, "; without one the baselines are measured alone"),
    {"data", 'd', "FILE", .text = &data.path, .required = true,
     .help = "log of actions, as in attend train recommend; \"-\": standard input"},
    CLI_INTERACTIONS_OPTIONS(data),
    CLI_HOLDOUT_OPTIONS(data),
    {"part", 0, "valid|test", .choice = &protocol.part, .help = "held-out actions that are predicted"},
    {"top", 'k', "N[,N...]", .text = &cutoffs_text,
     .help = "number of items that are recommended: the k of HR@k, NDCG@k and MRR@k; up to 8 of them"},
    {"candidates", 0, "all|outside-training|outside-history|popularity", .choice = &protocol.candidates,
     .help = "rank the held-out item among all items; or among some at random: outside the user's training items, as "
             "in the paper of SASRec; outside all the user's items; or these by popularity"},
    {"negatives", 0, "N", .integer = &protocol.negatives, .min = 1, .max = 1 << 30, .quiet = true,
     .help = "number of random candidates; default: 100"},
    {"draws", 0, "N", .integer = &protocol.draws, .min = 1, .max = 1 << 20, .quiet = true,
     .help = "draw them N times for each user, and print the mean; default: 5"},
    {"seed", 0, "N", .integer = &protocol.seed, .max = 1e18, .help = "random seed of candidates"},
    {"exclude-seen", 0, NULL, .flag = &protocol.exclude_seen, .help = "items of the history are not candidates"},
    {"leave-out-unseen", 0, NULL, .flag = &protocol.leave_out_unseen,
     .help = "do not count held-out items that do not occur in training"},
    {"neighbors", 0, "N", .integer = &protocol.neighbors, .min = 1, .max = 1 << 20,
     .help = "neighbors of an item in the baseline of item k-nearest neighbors"},
    {"decay", 0, "X", .number = &protocol.decay, .max = 1, .above_min = true,
     .help = "weight of an item of the history in that baseline, relative to the item after it; 1: all the same"},
    {"l2", 0, "X", .number = &protocol.l2, .max = 1e9, .above_min = true,
     .help = "regularization of the baseline EASE (Steck 2019)"},
    {"ease", 0, NULL, .flag = &ease,
     .help = "measure EASE also where the log has more than 4,000 items, up to 32,768: its time grows with their cube, "
             "its memory with their square"},
    CLI_ITEM_TEXTS_OPTION(&texts_path, "measures their similarity as another baseline"),
    CLI_TEXT_COLUMN_OPTION(&text_column),
    CLI_ID_COLUMN_OPTION(&id_column),
    CLI_TEXT_MODEL_OPTION(&text_model),
    CLI_TYPES(types),
    CLI_THREADS(&threads),
    CLI_JSON(&json),
    {0},
};

/* ---- How the training read its log and split it --------------------------------- */

static bool typed[sizeof options / sizeof *options - 1]; /* options of the table */

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
    double min_actions = (double)data.min_actions, held_out_users = (double)data.held_out_users;
    const struct {
        const char *name;
        double *is, was;
        bool excluded; /* by an option that was given */
    } numbers[] = {{"min-actions", &min_actions, (double)was->min_actions, false},
                   {"held-out-users", &held_out_users, (double)was->held_out_users, false},
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
    data.held_out_users = (int64_t)held_out_users;
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

enum { EASE_ITEMS = 4000 }; /* of a log for which EASE takes seconds */

static int measure_at(evaluation *e, evaluated *s, const att_scorer *scorer, int at)
{
    char unit[96];
    snprintf(unit, sizeof unit, "histories by %.80s", s->name);
    cli_share p = cli_share_of_call(unit, e->log.held.cases[protocol.part]);
    const att_ranking_options *o = ATT_OPTIONS(
        att_ranking_options, .part = (att_holdout_part)protocol.part, .k = e->cutoff[at],
        .exclude_seen = protocol.exclude_seen, .leave_out_unseen = protocol.leave_out_unseen,
        .candidates = (att_candidates)protocol.candidates, .negatives = protocol.negatives, .draws = protocol.draws,
        .seed = (uint64_t)protocol.seed, .ranks = s->ranks, .progress = cli_share_report, .user = &p);
    s->r[at].size = sizeof s->r[at];
    const int code = cli_status(e->ctx, att_rank(e->log.holdout, scorer, o, &s->r[at]));
    cli_share_end(&p);
    return code;
}

static int measure(evaluation *e, const char *name, att_scorer scorer)
{
    evaluated *s = &e->system[e->n];
    s->name = name;
    s->ranks = malloc((size_t)(e->log.held.cases[protocol.part] * evaluation_draws(e)) * sizeof *s->ranks);
    e->n++;
    int code = s->ranks ? CLI_DONE : cli_fail_memory();
    for (int i = 0; !code && i < e->n_cutoffs; i++)
        code = measure_at(e, s, &scorer, i);
    return code;
}

/* Measures a model that counts. info: receives its description. */
static int measure_counting(evaluation *e, const char *name, const char *settings, att_recommender_info *info)
{
    att_recommender *m = NULL;
    cli_share p = cli_share_of_call("items", e->log.info.items);
    const att_call_options *o = ATT_OPTIONS(att_call_options, .progress = cli_share_report, .user = &p);
    int code = cli_status(e->ctx, att_recommender_fit(e->log.holdout, settings, o, &m));
    cli_share_end(&p);
    if (!code)
        code = cli_status(e->ctx, att_recommender_describe(m, info));
    if (!code)
        code = measure(e, name, att_recommender_scorer(m));
    att_recommender_free(m);
    return code;
}

static int measure_content(evaluation *e)
{
    att_baseline *b = NULL;
    const att_baseline_options *o = ATT_OPTIONS(att_baseline_options, .vectors = texts.vectors, .width = texts.width);
    int code = cli_status(e->ctx, att_baseline_new(e->log.holdout, ATT_BASELINE_CONTENT, o, &b));
    if (!code)
        code = measure(e, "content", att_baseline_scorer(b));
    att_baseline_free(b);
    return code;
}

static int measure_all(evaluation *e)
{
    const counting_settings popular = {.kind = COUNTING_POPULARITY},
                            near = {.kind = COUNTING_NEIGHBORS,
                                    .neighbors = protocol.neighbors,
                                    .decay = protocol.decay},
                            linear = {.kind = COUNTING_EASE, .l2 = protocol.l2};
    char text[COUNTING_SETTINGS];
    att_recommender_info info = {.size = sizeof info};
    e->ease.size = sizeof e->ease;
    int code = measure_counting(e, "popularity", counting_settings_text(&popular, text), &info);
    if (!code)
        code = measure_counting(e, "item neighbors", counting_settings_text(&near, text), &info);
    if (!code && (ease || e->log.info.items <= EASE_ITEMS))
        code = measure_counting(e, "EASE", counting_settings_text(&linear, text), &e->ease);
    if (!code && texts_path)
        code = measure_content(e);
    if (code || !model_name)
        return code;
    code = measure(e, e->m.base.name, att_recommender_scorer(e->m.model));
    return code ? code : evaluation_compare(e);
}

/* ---- The work ------------------------------------------------------------------- */

/* "5,10,20" */
static int read_cutoffs(evaluation *e)
{
    const char *at = cutoffs_text;
    for (bool more = true; more && e->n_cutoffs < EVALUATION_CUTOFFS; at++) {
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
                      cutoffs_text, 1 << 30, EVALUATION_CUTOFFS);
}

static int check_options(void)
{
    if (protocol.candidates == ATT_CANDIDATES_ALL && (protocol.negatives || protocol.draws))
        return cli_misuse("--%s needs --candidates at random: without them the held-out item is ranked among all items",
                          protocol.negatives ? "negatives" : "draws");
    if (data.split == ATT_HOLDOUT_NONE)
        return cli_misuse("--split none holds out nothing that could be predicted");
    if (text_column && !texts_path)
        return cli_misuse("--text-column %s needs --item-texts FILE", text_column);
    if (text_model && !texts_path)
        return cli_misuse("--text-model %s needs --item-texts FILE", text_model);
    if ((types.weights || types.compute) && !model_name)
        return cli_misuse("%s needs --model", types.weights ? "--dtype" : "--compute");
    return CLI_DONE;
}

static int fail_without_cases(const evaluation *e)
{
    char point[CLI_TIME_BYTES];
    if (e->log.held.kind == ATT_HOLDOUT_TIME)
        return cli_fail("%s: no action is held out, as no user with %lld actions or more has one from %s on%s and one "
                        "before it",
                        data.path, (long long)data.min_actions, evaluation_point(e, point),
                        protocol.part ? "" : ", before the test,");
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
    for (int64_t i = 0; i < e->log.held.cases[protocol.part] && !att_holdout_get(e->log.holdout, protocol.part, i, &c);
         i++) {
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
        code = cli_item_texts_read(&texts, texts_path, id_column, text_column, data.skip_bad_lines);
    if (!code)
        code = cli_interactions_open(e->ctx, &e->log, &data, e->m.items, e->m.info.items);
    if (!code)
        code = cli_interactions_hold_out(e->ctx, &e->log, &data);
    if (!code && e->log.held.cases[protocol.part] == 0) {
        cli_interactions_report(&e->log); /* the reason may be how the log was read */
        code = fail_without_cases(e);
    }
    if (!code && model_name)
        code = count_known(e);
    if (!code)
        code = cli_item_texts_check(&texts, texts_path, e->log.log);
    if (!code && texts_path)
        code = cli_item_texts_embed(&texts, text_model, threads, e->log.log, 0, e->log.info.items);
    if (!code && texts.missing > 0)
        cli_note("%s: %lld of %lld items %s no text", texts_path, (long long)texts.missing,
                 (long long)e->log.info.items, texts.missing == 1 ? "has" : "have");
    return code;
}

static int run(int n, char **arguments)
{
    (void)n, (void)arguments;
    evaluation e = {.protocol = &protocol, .data = &data, .model_name = model_name};
    int code = check_options();
    if (!code)
        code = cli_interactions_copy_pipe(&data);
    if (!code)
        code = read_cutoffs(&e);
    if (!code)
        code = model_name ? cli_model_open(&e.m.base, &cli_recommender_kind, model_name, types, threads)
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
        code = evaluation_print(&e, json);
    for (int i = 0; i < e.n; i++)
        free(e.system[i].ranks);
    cli_interactions_close(&e.log);
    cli_item_texts_free(&texts);
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
               "popular items, item k-nearest neighbors (Sarwar et al. 2001), EASE (Steck 2019), and with\n"
               "--item-texts the items whose texts are nearest to those of the history. The\n"
               "difference between the model and each has a paired interval, over users: if that\n"
               "includes 0, the baseline may be as good; attend train recommend --arch makes\n"
               "models of the first three.\n\n"
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
