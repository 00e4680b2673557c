/* attend train recommend: trains SASRec or BERT4Rec from a log of actions, or makes a model that counts these. */
#include "cli/base/progress.h"
#include "cli/model/checkpoints.h"
#include "cli/train/base_model.h"
#include "cli/train/train.h"
#include "counting_model.h"
#include "interactions.h"
#include "item_texts.h"
#include "network.h"
#include "training_data_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum content { START, ADD };

typedef struct recommend_training {
    cli_training common;
    cli_interactions log;
    cli_item_texts texts;
    att_recommender *base;     /* the model to begin with; NULL: a new one */
    att_recommender_info info; /* of it */
    json_t *base_training;     /* its training.json; options point into it */
    att_model_path next, old;  /* with another log: FOLDER/next and FOLDER/base */
    int64_t histories;         /* of two or more items */
} recommend_training;

static cli_interactions_options data = {CLI_INTERACTIONS_DEFAULTS};
static const char *model_name, *texts_path, *text_column, *id_column, *text_model;
static network_options network = {NETWORK_DEFAULTS};
static counting_settings counting;
static int loss = ATT_ITEM_LOSS_SOFTMAX, content = -1, candidates = ATT_CANDIDATES_ALL;
static int64_t negatives;
static double calibration = 0.75, mask_share, last_mask_share, dropout = 0.2;
static bool with_replacement, exclude_seen;
static recommend_training recommend = {
    .common.options = {.batch = 128, .beta2 = 0.999, .patience = 5, .rate = 1e-3, CLI_TRAINING_DEFAULTS}};

static const cli_option options[] = {
    {"data", 'd', "FILE", .text = &data.path, .required = true,
     .help = "log of actions, plain or packed by gzip: a user, an item and a time a line, or CSV, or RecBole's .inter"},
    CLI_INTERACTIONS_OPTIONS(data),
    CLI_HOLDOUT_OPTIONS(data),
    CLI_TRAINING_FOLDER(recommend.common.options),
    CLI_TRAINING_REFIT(recommend.common.options),
    {"model", 'm', "MODEL", .text = &model_name,
     .help = "begin with this trained recommender; further items of the log are added to it"},
    {"arch", 'a', "sasrec|bert4rec|neighbors|ease|popularity", .choice = &network.arch,
     .help = "a Transformer that predicts each next item from those before it, or masked items from all others; or, "
             "counted in seconds to minutes: item k-nearest neighbors (Sarwar et al. 2001), EASE (Steck 2019) or the "
             "most popular items; default: sasrec"},
    {"neighbors", 0, "N", .integer = &counting.neighbors, .min = 1, .max = 1 << 20, .quiet = true,
     .help = "--arch neighbors: neighbors of an item; default: 100"},
    {"l2", 0, "X", .number = &counting.l2, .max = 1e9, .above_min = true, .quiet = true,
     .help = "--arch ease: regularization, lambda; default: 500"},
    {"history-decay", 0, "X", .number = &counting.decay, .max = 1, .above_min = true, .quiet = true,
     .help = "--arch neighbors and ease: weight of an item of the history, relative to the item after it; 1: all the "
             "same; default: of neighbors 0.6, of ease 0.8"},
    {"block", 0, "pre-norm|post-norm|sasrec", .choice = &network.block,
     .help = "arrangement of a layer; sasrec: that of the paper's code; default: pre-norm, of bert4rec post-norm"},
    {"hidden", 0, "N", .integer = &network.hidden, .min = 1, .max = 1 << 16, .quiet = true,
     .help = "features of an item; default: 64"},
    {"layers", 0, "N", .integer = &network.layers, .min = 1, .max = 1000, .quiet = true, .help = "layers; default: 2"},
    {"heads", 0, "N", .integer = &network.heads, .min = 1, .max = 1 << 16, .quiet = true,
     .help = "attention heads of a layer; default: 1"},
    {"intermediate", 0, "N", .integer = &network.intermediate, .min = 1, .max = 1 << 18, .quiet = true,
     .help = "features inside the feed-forward network; default: 4 times --hidden, of --block sasrec the same"},
    {"max-positions", 0, "N", .integer = &network.max_positions, .min = 1, .max = 1 << 16, .quiet = true,
     .help = "use the last N items of a history; default: 50"},
    {"item-texts", 0, "FILE", .text = &texts_path,
     .help = "texts of items, such as titles: lines of id and text with a tab between them, or CSV; items that occur "
             "in no action can be recommended then, too"},
    CLI_TEXT_COLUMN_OPTION(&text_column),
    CLI_ID_COLUMN_OPTION(&id_column),
    CLI_TEXT_MODEL_OPTION(&text_model),
    {"content", 0, "start|add", .choice = &content,
     .help =
         "start: the vectors of items are initialized by those of --item-texts; add: these are projected and added to "
         "the vectors of items; default: start"},
    {"loss", 0, "softmax|sampled-softmax|binary|gbce", .choice = &loss,
     .help = "cross entropy of the softmax over all items, or over the next one and negatives; binary cross entropy of "
             "the next one and negatives; or that with calibrated probabilities"},
    {"negatives", 0, "N", .integer = &negatives, .min = 1, .max = 1 << 16, .quiet = true,
     .help = "negatives at each position, at random outside the user's training items; default: 1 of binary, else "
             "256, or all other items where these are fewer"},
    {"calibration", 0, "T", .number = &calibration, .max = 1,
     .help = "t of --loss gbce: how far probabilities are calibrated, from 0, not, to 1, fully"},
    {"mask-share", 0, "SHARE", .number = &mask_share, .max = 0.99, .above_min = true, .quiet = true,
     .help = "bert4rec: share of a history's items that are masked; default: 0.2"},
    {"last-mask-share", 0, "SHARE", .number = &last_mask_share, .max = 1,
     .help = "bert4rec: share of histories whose last item alone is masked"},
    {"with-replacement", 0, NULL, .flag = &with_replacement,
     .help = "draw histories at random with replacement; otherwise each occurs once in an epoch"},
    {"dropout", 0, "P", .number = &dropout, .max = 0.99, .help = "dropout probability"},
    {"exclude-seen", 0, NULL, .flag = &exclude_seen, .help = "validate without the items of the history"},
    {"validate-candidates", 0, "all|outside-training|outside-history|popularity", .choice = &candidates,
     .help = "validate by the rank among all items; or among 100 random ones, as --candidates of attend evaluate "
             "recommend, to compare with papers that choose their model so"},
    CLI_TRAINING_EPOCHS(recommend.common.options, "histories", "; default: 200, and without validation 20"),
    CLI_TRAINING_OPTIONS(recommend.common.options),
    {0},
};

/* Returns whether the model counts. */
static bool counts(void) { return network.arch > BERT4REC; }

/* Returns the kind of one that counts. */
static counting_kind kind_of_counting(void) { return (counting_kind)(network.arch - NEIGHBORS); }

/* ---- options ------------------------------------------------------------------ */

static int check_options(void *training)
{
    (void)training;
    const char *given = network_given(&network) ? network_given(&network) : content >= 0 ? "content" : NULL;
    if (model_name && given)
        return cli_misuse("--%s does not go with --model, which has its own", given);
    const char *counted = counting.neighbors > 0 ? "neighbors" : counting.l2 > 0 ? "l2" : "history-decay";
    if (counting.neighbors > 0 || counting.l2 > 0 || counting.decay > 0)
        return cli_misuse("--%s is for --arch %s", counted,
                          counting.l2 > 0 && !counting.neighbors ? "ease" : "neighbors");
    const int code = network_check(&network);
    if (code)
        return code;
    if (negatives && loss == ATT_ITEM_LOSS_SOFTMAX)
        return cli_misuse("--negatives %lld is for another --loss: softmax is over all items", (long long)negatives);
    if (calibration != 0.75 && loss != ATT_ITEM_LOSS_GBCE)
        return cli_misuse("--calibration %g is for --loss gbce", calibration);
    if (content >= 0 && !texts_path)
        return cli_misuse("--content needs --item-texts FILE");
    if (text_column && !texts_path)
        return cli_misuse("--text-column %s needs --item-texts FILE", text_column);
    if (text_model && !texts_path)
        return cli_misuse("--text-model %s needs --item-texts FILE", text_model);
    return cli_interactions_check(&data);
}

/* Checks the options of an architecture. */
static int check_arch(const recommend_training *t)
{
    const bool bert = t->base ? strcmp(t->info.type, "attend-bert4rec") == 0 : network.arch == BERT4REC;
    if (!bert && (mask_share > 0 || last_mask_share > 0))
        return cli_misuse("--%smask-share is for --arch bert4rec", mask_share > 0 ? "" : "last-");
    if (t->base && t->info.content_width > 0 && !texts_path)
        return cli_misuse("--item-texts FILE is needed: %s adds vectors of texts to those of items", model_name);
    return CLI_DONE;
}

/* ---- data ----------------------------------------------------------------------- */

/* Lists the ids of the items that get the first numbers: those of the model, then those that have texts. */
static int first_items(const recommend_training *t, const char ***ids, int64_t *n)
{
    const int64_t old = t->base ? t->info.items : 0;
    *n = old;
    *ids = malloc((size_t)(old + t->texts.n + 1) * sizeof **ids);
    if (!*ids)
        return cli_fail_memory();
    for (int64_t i = 0; i < old; i++)
        (*ids)[i] = att_recommender_item(t->base, i);
    for (int64_t i = 0; i < t->texts.n; i++)
        if (!t->base || att_recommender_find_item(t->base, t->texts.id[i]) < 0)
            (*ids)[(*n)++] = t->texts.id[i];
    return CLI_DONE;
}

static int read_log(recommend_training *t)
{
    const char **ids = NULL;
    int64_t n = 0;
    int code = first_items(t, &ids, &n);
    if (!code)
        code = cli_interactions_open(t->common.ctx, &t->log, &data, ids, n);
    if (!code)
        code = cli_interactions_hold_out(t->common.ctx, &t->log, &data);
    free(ids);
    if (!code)
        code = cli_item_texts_check(&t->texts, texts_path, t->log.log);
    for (int64_t u = 0; !code && u < t->log.info.users; u++)
        t->histories += att_holdout_train(t->log.holdout, u).count > 1;
    if (!code && t->histories == 0 && network.arch != POPULARITY)
        code = cli_fail("%s: no user has two or more actions for training, of %lld users with %lld actions", data.path,
                        (long long)t->log.info.users, (long long)t->log.info.actions);
    return code;
}

/* Finds the training of the initial model, to store it. Another log is read in the same way. */
static int read_base_training(recommend_training *t)
{
    const bool renewed = t->common.renewed;
    const int code = cli_training_file_read(model_name, &t->base_training);
    if (code)
        return code;
    t->common.file.trained_on =
        cli_training_data_of(t->base_training, renewed ? "its earlier model" : model_name, renewed);
    return renewed ? CLI_DONE
                   : cli_check_reading(json_object_get(t->base_training, "options"), model_name, data.path, options,
                                       t->common.file.typed);
}

static int open_base(recommend_training *t)
{
    att_ctx *ctx = t->common.ctx;
    if (!model_name)
        return CLI_DONE;
    int code = cli_training_find_model(&t->common, ATT_SUBJECT_RECOMMEND, &model_name);
    t->info.size = sizeof t->info;
    if (!code)
        code = cli_status(ctx, att_recommender_open(ctx, model_name, NULL, &t->base));
    if (!code)
        code = cli_status(ctx, att_recommender_describe(t->base, &t->info));
    return code || t->common.continues ? code : read_base_training(t);
}

/* Returns the checksum of the actions that are held out for validation, and of the kind of ranking. */
static int64_t checksum(const recommend_training *t)
{
    uint64_t sum = cli_training_checksum(0, &exclude_seen, sizeof exclude_seen);
    sum = cli_training_checksum(sum, &candidates, sizeof candidates);
    att_holdout_case c;
    for (int64_t i = 0; i < t->log.held.cases[ATT_HOLDOUT_PART_VALID]; i++) {
        if (att_holdout_get(t->log.holdout, ATT_HOLDOUT_PART_VALID, i, &c))
            break;
        sum = cli_training_checksum(sum, &c.user, sizeof c.user);
        sum = cli_training_checksum(sum, &c.target, sizeof c.target);
    }
    return (int64_t)sum;
}

/* Opens the log, and vectors of the texts of items that the model does not have. */
static int read_actions(void *training)
{
    recommend_training *t = training;
    cli_training *c = &t->common;
    int code = cli_item_texts_read(&t->texts, texts_path, id_column, text_column, data.skip_bad_lines);
    if (!code)
        code = open_base(t);
    if (!code)
        code = check_arch(t);
    if (!code)
        code = read_log(t);
    const int64_t old = t->base ? t->info.items : 0;
    if (!code && texts_path && t->log.info.items > old)
        code = cli_item_texts_embed(&t->texts, text_model, c->options.threads, t->log.log, old, t->log.info.items);
    c->batches = (t->histories + c->options.batch - 1) / c->options.batch;
    c->validates = t->log.held.cases[ATT_HOLDOUT_PART_VALID] > 0;
    c->has_base = t->base != NULL;
    c->evaluation_id = checksum(t);
    c->new_items = t->base ? t->log.info.items - t->info.items : 0;
    if (c->options.epochs == 0)
        c->options.epochs = c->validates ? 200 : 20;
    return code;
}

static void report(const void *training, const att_training_info *info)
{
    const recommend_training *t = training;
    (void)info;
    const att_holdout_info *h = &t->log.held;
    cli_interactions_report(&t->log);
    fprintf(stderr, "split %s: %lld actions of %lld user%s for training", cli_split_name(h->kind),
            (long long)h->actions, (long long)h->users, h->users == 1 ? "" : "s");
    if (h->kind != ATT_HOLDOUT_NONE)
        fprintf(stderr, "; %lld for validation and %lld for the test, which is not read",
                (long long)h->cases[ATT_HOLDOUT_PART_VALID], (long long)h->cases[ATT_HOLDOUT_PART_TEST]);
    fputc('\n', stderr);
    if (h->kind != ATT_HOLDOUT_NONE && h->cases[ATT_HOLDOUT_PART_VALID] == 0 && !counts())
        cli_note("no action is held out for validation, so the model of the last step is written");
    if (t->base)
        fprintf(stderr, "begins with %s, which has %lld of the items\n", model_name, (long long)t->info.items);
    if (t->texts.vectors)
        fprintf(stderr, "texts of items as vectors of %lld numbers; %lld item%s none\n", (long long)t->texts.width,
                (long long)t->texts.missing, t->texts.missing == 1 ? " has" : "s have");
}

/* ---- validation ------------------------------------------------------------------ */

static int validate_model(const recommend_training *t, const att_recommender *m, cli_validation *v)
{
    att_ranking r = {.size = sizeof r};
    const att_scorer scorer = att_recommender_scorer(m);
    const att_ranking_options *o =
        ATT_OPTIONS(att_ranking_options, .part = ATT_HOLDOUT_PART_VALID, .exclude_seen = exclude_seen,
                    .candidates = (att_candidates)candidates, .draws = candidates != ATT_CANDIDATES_ALL,
                    .seed = (uint64_t)t->common.options.seed);
    const int code = cli_status(t->common.ctx, att_rank(t->log.holdout, &scorer, o, &r));
    if (code)
        return code;
    v->score = r.ndcg.mean;
    snprintf(v->log, sizeof v->log, ", \"ndcg\": %.6f, \"hr\": %.6f, \"mrr\": %.6f, \"coverage\": %.4f", r.ndcg.mean,
             r.hr.mean, r.mrr.mean, r.coverage);
    snprintf(v->shown, sizeof v->shown, ", on validation NDCG@%lld %.4f, HR@%lld %.4f", (long long)r.k, r.ndcg.mean,
             (long long)r.k, r.hr.mean);
    return CLI_DONE;
}

static int validate(void *training, cli_validation *v)
{
    const recommend_training *t = training;
    return validate_model(t, att_training_recommender(t->common.training), v);
}

/* ---- the run ---------------------------------------------------------------------- */

/* Sets the options of a new model that were not given to its actual values, for the log and training.json. */
static int show_sizes(const recommend_training *t)
{
    att_recommender_info i = {.size = sizeof i};
    const int code =
        cli_status(t->common.ctx, att_recommender_describe(att_training_recommender(t->common.training), &i));
    if (!code && !strcmp(i.type, "attend-bert4rec") && mask_share == 0)
        mask_share = 0.2;
    if (!code && !t->base)
        network_describe(&network, &i);
    return code;
}

static int open_training(recommend_training *t, const att_training_options *common)
{
    char settings[NETWORK_SETTINGS];
    const cli_training_options *o = &t->common.options;
    const att_item_content vectors = {.size = sizeof vectors,
                                      .vectors = t->texts.vectors,
                                      .width = t->texts.width,
                                      .add = t->base ? t->info.content_width > 0 : content == ADD};
    network_settings(&network, settings);
    const att_recommender_training_options *all = ATT_OPTIONS(
        att_recommender_training_options, .data = t->log.holdout, .batch = o->batch,
        .with_replacement = with_replacement, .loss = (att_item_loss)loss, .negatives = negatives,
        .calibration = loss == ATT_ITEM_LOSS_GBCE ? calibration : 0, .mask_share = mask_share,
        .last_mask_share = last_mask_share, .dropout = (float)dropout, .settings = model_name ? NULL : settings,
        .model = model_name, .content = t->texts.vectors ? &vectors : NULL);
    const int code = cli_training_status(
        t->common.ctx, att_recommender_training_open(t->common.ctx, o->folder, common, all, &t->common.training));
    return code ? code : show_sizes(t);
}

/* Opens a training with another log, which begins with the model in the folder. That model is kept in FOLDER/base,
 * where the training finds it when it continues. The old training is kept until the new one has begun. */
static int open_renewed(recommend_training *t, const att_training_options *common)
{
    const char *folder = t->common.options.folder;
    int code = cli_base_model_begin(folder, &t->next);
    if (code)
        return code;
    model_name = t->next.text;
    code = open_training(t, common);
    snprintf(t->old.text, sizeof t->old.text, "%.4000s/base", folder);
    model_name = t->old.text;
    return cli_base_model_end(&t->common, &t->next, code);
}

/* Opens the training. One that began with the model of its own folder, FOLDER/base, and was killed before a checkpoint
 * may have replaced that model: it is restored if the training begins once more. */
static int open_any(void *training, const att_training_options *common)
{
    recommend_training *t = training;
    const cli_training_options *o = &t->common.options;
    const size_t n = strlen(o->folder);
    const bool in_folder =
        t->common.renewed || (model_name && !strncmp(model_name, o->folder, n) && !strcmp(model_name + n, "/base"));
    /* If no step is better, the folder's model stays, without new items. If these have vectors of their texts, which
     * are expensive to compute, the model that has them is written. */
    t->common.in_folder = in_folder && !(t->texts.vectors && t->common.new_items > 0);
    int code = in_folder && !t->common.renewed && !o->resume ? cli_base_model_restore(o->folder, model_name) : CLI_DONE;
    if (!code)
        code = (t->common.renewed ? open_renewed : open_training)(t, common);
    return code ? code : cli_training_data_note(t->common.file.trained_on, o->folder, &data);
}

static void close_training(void *training)
{
    recommend_training *t = training;
    json_decref(t->common.file.trained_on);
    att_recommender_free(t->base);
    cli_interactions_close(&t->log);
    cli_item_texts_free(&t->texts);
}

/* Holds out nothing, for the second training of --refit. */
static void use_all(void *training)
{
    recommend_training *t = training;
    *t = (recommend_training){.common = t->common};
    data.split = ATT_HOLDOUT_NONE;
    data.min_actions = data.held_out_users = 0;
    data.valid_share = data.test_share = 0;
    data.valid_from = data.test_from = NULL;
}

static const char *const same_files[] = {"data", "item-texts", NULL};
static const char *const of_model[] = {"model",  "arch",  "block",        "content",       "hidden",
                                       "layers", "heads", "intermediate", "max-positions", NULL};
static const cli_trainer trainer = {
    .command = "recommend",
    .unit = "positions",
    .validation = "a validation: --split leave-one-out or time, and users with enough actions",
    .score = "ndcg",
    .measure = "NDCG@10",
    .digits = 4,
    .keeps_best = true,
    .logs_options = true,
    .options = options,
    .same_files = same_files,
    .renewed = same_files,
    .kept = of_model,
    .check = check_options,
    .read = read_actions,
    .open = open_any,
    .use_all = use_all,
    .report = report,
    .validate = validate,
    .close = close_training,
};

/* ---- models that count ---------------------------------------------------------------- */

/* Prints the line of --json. */
static void print_counting(const char *folder, const cli_validation *v)
{
    json_t *path = json_string(folder), /* NULL: it is not UTF-8 */
        *line = json_pack("{s:o, s:b, s:o}", "model", path ? path : json_null(), "finished", 1, "ndcg",
                          isfinite(v->score) ? json_real(v->score) : json_null());
    json_dumpf(line, stdout, JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(line);
}

/* Makes the model, measures it on what is held out for validation, and writes it. */
static int make_counting(recommend_training *t)
{
    char settings[COUNTING_SETTINGS];
    cli_validation v = {.score = NAN};
    att_recommender *m = NULL;
    const cli_training_options *o = &t->common.options;
    cli_share p = cli_share_of_call("items", t->log.info.items);
    const att_call_options *call = ATT_OPTIONS(att_call_options, .progress = cli_share_report, .user = &p);
    counting.kind = kind_of_counting();
    int code = cli_status(t->common.ctx,
                          att_recommender_fit(t->log.holdout, counting_settings_text(&counting, settings), call, &m));
    cli_share_end(&p);
    if (!code && t->log.held.cases[ATT_HOLDOUT_PART_VALID] > 0)
        code = validate_model(t, m, &v);
    if (!code)
        code = cli_status(t->common.ctx, att_recommender_write(m, o->folder, o->dtype ? ATT_F16 : ATT_F32));
    att_recommender_free(m);
    if (!code)
        code = cli_training_options_write(&t->common, o->folder, 1);
    if (!code)
        fprintf(stderr, "%s is a model of %s%s\n", o->folder, counting_name(kind_of_counting()), v.shown);
    if (!code && o->json)
        print_counting(o->folder, &v);
    return code;
}

static int run_counting(recommend_training *t)
{
    int code = counting_check(kind_of_counting(), options, t->common.file.typed);
    if (!code)
        code = cli_interactions_check(&data);
    if (!code)
        code = cli_open(&t->common.ctx, t->common.options.threads);
    if (!code)
        code = read_log(t);
    if (!code) {
        report(t, NULL);
        code = make_counting(t);
    }
    close_training(t);
    att_close(t->common.ctx);
    return code;
}

/* A training with another log begins with the model that the folder has, whose sizes are not options then. */
static int complete(bool *given)
{
    cli_training *t = &recommend.common;
    int code = t->options.folder ? cli_base_model_recover(t->options.folder) : CLI_DONE;
    if (!code)
        code = cli_training_complete(t, &trainer, given);
    if (!code && t->renewed && !counts()) {
        cli_note("%s is not the log of the training in %s: another one begins with the model that is there", data.path,
                 t->options.folder);
        model_name = t->options.folder;
        network = (network_options){NETWORK_DEFAULTS};
        content = -1;
    }
    cli_interactions_complete(&data);
    return code;
}

static int run(int n, char **arguments)
{
    (void)n, (void)arguments;
    return counts() ? run_counting(&recommend) : cli_training_run(&recommend.common);
}

const cli_command cli_train_recommend = {
    .name = "recommend",
    .summary = "train a recommender of next items on a log of what users did",
    .details = "Trains a Transformer over histories with AdamW: SASRec (Kang, McAuley 2018), or\n"
               "BERT4Rec (Sun et al. 2019); or, with --arch neighbors, ease or popularity, counts\n"
               "the actions once: such a model is evaluated and recommends like the others, but\n"
               "has no vectors of items (embeddings) and does not attend. Of a small log it can\n"
               "be as good: attend evaluate recommend prints all, with the difference.\n\n"
               " The default loss is the cross entropy of the softmax\n"
               "over all items; the paper of SASRec is --block sasrec --loss binary\n"
               "--with-replacement --beta2 0.98 --dropout 0.5, and gSASRec --loss gbce.\n\n"
               "--data has a line for each action: user, item and, if there is one, time,\n"
               "separated by spaces or tabs; with a rating before the time, too; MovieLens'\n"
               "\"::\"; RecBole's .inter; CSV; or lines of a user and all its items. Times are\n"
               "dates, as 1997-09-20 03:05:10, which is in UTC, or 1997-09-20T03:05:10+01:00, or\n"
               "numbers, as of seconds, milli-, micro- or nanoseconds since 1970; of dates that\n"
               "do not begin with the year it is not known what is day and month. Few small\n"
               "numbers in place of times are ratings, which are not used. An action whose user\n"
               "is empty, NULL, NA or None is a guest's and is left out. Columns are found by usual\n"
               "names, as customer_id, \"Order Date\" and SKU, or named; of a file without a\n"
               "header by their numbers. Actions are sorted by time; those of the same time stay in the order\n"
               "of the file. The last action of each user is held out for the test, which\n"
               "attend evaluate recommend makes, and the one before for validation: the model\n"
               "with the highest NDCG@10 on it, ranked among all items unless\n"
               "--validate-candidates states otherwise, is written; without an improvement in\n"
               "--patience validations the training ends. --split time divides the log\n"
               "at two points in time instead, and none trains on all. --refit does both.\n\n"
               "--resume -o FOLDER --data NEW trains the model in the folder on a log that has\n"
               "grown, and may have other --item-texts: what it has learned stays, and new items\n"
               "are added. FOLDER/base keeps the model that this begins with; like the\n"
               "checkpoints, only --resume needs it. The log's first line has all options.\n\n" CLI_TRAINING_DETAILS,
    .examples = "attend train recommend --data log.csv -o shop\n"
                "attend train recommend --data log.csv --arch ease -o shop\n"
                "attend train recommend --data log.csv --item-texts titles.tsv --content add -o shop\n"
                "attend train recommend --resume -o shop\n"
                "attend train recommend --resume -o shop --data newer-log.csv",
    .options = options,
    .see = "recommend|evaluate recommend|plot",
    .complete = complete,
    .run = run,
};
