/* attend train recommend: SASRec or BERT4Rec, from a log of what users did. */
#include "cli/base/progress.h"
#include "cli/base/signals.h"
#include "cli/model/checkpoints.h"
#include "cli/train/base_model.h"
#include "cli/train/train.h"
#include "interactions.h"
#include "item_texts.h"
#include "recommender.h"
#include "training_data_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum arch { SASREC, BERT4REC };
enum content { START, ADD };
enum dtype { F32, F16 };

static cli_interactions_options data = {CLI_INTERACTIONS_DEFAULTS};
static const char *model_name, *texts_path, *text_column, *text_model, *folder;
static int arch = -1, block = -1, loss = ATT_ITEM_LOSS_SOFTMAX, content = -1, schedule, dtype = F32,
           candidates = ATT_CANDIDATES_ALL;
static int64_t hidden, layers, heads, intermediate, max_positions, negatives,
    batch = 128, validate_every, save_every, patience = -1, keep = 1, seed = 1, threads;
static double calibration = 0.75, mask_share, last_mask_share, epochs, minutes, rate = 1e-3, warmup, beta2 = 0.999,
              decay, clip, dropout = 0.2;
static bool with_replacement, exclude_seen, resume, json;

/* Words of --schedule */
static const att_schedule_kind schedules[] = {ATT_CONSTANT, ATT_LINEAR, ATT_COSINE};

static const cli_option options[] = {
    {"data", 'd', "FILE", .text = &data.path, .required = true,
     .help = "log of actions, plain or packed by gzip: a user, an item and a time a line, or CSV, or RecBole's .inter"},
    CLI_INTERACTIONS_OPTIONS(data),
    CLI_HOLDOUT_OPTIONS(data),
    {"output", 'o', "FOLDER", .text = &folder, .writes = true, .required = true,
     .help = "output folder: checkpoints and log, in the end the model"},
    {"resume", 0, NULL, .flag = &resume,
     .help = "resume from the newest checkpoint; the result has the same bits as without interruption. With another "
             "--data: begin again with the model in the folder, a copy of which is kept in FOLDER/base, and the new "
             "items of the log"},
    {"model", 'm', "MODEL", .text = &model_name,
     .help = "begin with what this recommender has learnt; further items of the log are added to it"},
    {"arch", 'a', "sasrec|bert4rec", .choice = &arch,
     .help = "predict each next item from those before it, or masked items from all others; default: sasrec"},
    {"block", 0, "pre-norm|post-norm|sasrec", .choice = &block,
     .help = "arrangement of a layer; sasrec: that of the paper's code; default: pre-norm, of bert4rec post-norm"},
    {"hidden", 0, "N", .integer = &hidden, .min = 1, .max = 1 << 16, .quiet = true,
     .help = "features of an item; default: 64"},
    {"layers", 0, "N", .integer = &layers, .min = 1, .max = 1000, .quiet = true, .help = "layers; default: 2"},
    {"heads", 0, "N", .integer = &heads, .min = 1, .max = 1 << 16, .quiet = true,
     .help = "attention heads of a layer; default: 1"},
    {"intermediate", 0, "N", .integer = &intermediate, .min = 1, .max = 1 << 18, .quiet = true,
     .help = "features inside the feed-forward network; default: 4 times --hidden, of --block sasrec the same"},
    {"max-positions", 0, "N", .integer = &max_positions, .min = 1, .max = 1 << 16, .quiet = true,
     .help = "the last N items of a history count; default: 50"},
    {"item-texts", 0, "FILE", .text = &texts_path,
     .help = "texts of items, such as titles: lines of id and text with a tab between them, or CSV; items that occur "
             "in no action can be recommended then, too"},
    CLI_TEXT_COLUMN_OPTION(&text_column),
    CLI_TEXT_MODEL_OPTION(&text_model),
    {"content", 0, "start|add", .choice = &content,
     .help = "vectors of --item-texts are the start of those of items; or are projected and added to them; default: "
             "start"},
    {"loss", 0, "softmax|sampled-softmax|binary|gbce", .choice = &loss,
     .help = "cross entropy of the softmax over all items, or over the next one and negatives; binary cross entropy of "
             "the next one and negatives; or that with calibrated probabilities"},
    {"negatives", 0, "N", .integer = &negatives, .min = 1, .max = 1 << 16, .quiet = true,
     .help = "negatives at each position, at random outside the user's training items; default: 1 of binary, else "
             "256, or all other items where these are fewer"},
    {"calibration", 0, "T", .number = &calibration, .max = 1, .help = "t of --loss gbce: 0 calibrates nothing, 1 all"},
    {"mask-share", 0, "SHARE", .number = &mask_share, .max = 0.99, .above_min = true, .quiet = true,
     .help = "bert4rec: share of a history's items that are masked; default: 0.2"},
    {"last-mask-share", 0, "SHARE", .number = &last_mask_share, .max = 1,
     .help = "bert4rec: share of histories whose last item alone is masked"},
    {"with-replacement", 0, NULL, .flag = &with_replacement,
     .help = "draw histories at random; otherwise each is in an epoch once"},
    {"epochs", 0, "N", .number = &epochs, .min = 1e-6, .max = 1e6, .quiet = true,
     .help = "at most N epochs; with --resume it may be another N; default: 200, and without validation 20"},
    {"minutes", 0, "N", .number = &minutes, .max = 1e6, .quiet = true,
     .help = "stop after N minutes, if --epochs or --patience do not stop it before; 0: no limit"},
    {"batch", 0, "N", .integer = &batch, .min = 1, .max = 1 << 20, .help = "batch size: histories per step"},
    {"rate", 0, "RATE", .number = &rate, .max = 10, .above_min = true, .help = "learning rate: the maximum"},
    {"schedule", 0, "constant|linear|cosine", .choice = &schedule,
     .help = "learning rate schedule: constant, or falling to 0 over --epochs"},
    {"warmup", 0, "RATIO", .number = &warmup, .max = 0.99,
     .help = "warm up the learning rate over this share of all steps"},
    {"beta2", 0, "X", .number = &beta2, .max = 0.999999, .above_min = true, .help = "beta2 of AdamW; the paper: 0.98"},
    {"decay", 0, "X", .number = &decay, .max = 1, .help = "weight decay"},
    {"clip", 0, "NORM", .number = &clip, .max = 1e9, .help = "clip gradients to this norm; 0: off"},
    {"dropout", 0, "P", .number = &dropout, .max = 0.99, .help = "dropout probability"},
    {"exclude-seen", 0, NULL, .flag = &exclude_seen, .help = "validate without the items of the history"},
    {"validate-candidates", 0, "all|outside-training|outside-history|popularity", .choice = &candidates,
     .help = "validate by the rank among all items; or among 100 random ones, as --candidates of attend evaluate "
             "recommend, to compare with papers that choose their model so"},
    {"validate-every", 0, "N", .integer = &validate_every, .max = 1 << 30, .quiet = true,
     .help = "validate every N steps; 0, the default: after each epoch"},
    {"save-every", 0, "N", .integer = &save_every, .max = 1 << 30, .quiet = true,
     .help = "save a checkpoint every N steps; 0, the default: after each epoch"},
    {"patience", 0, "N", .integer = &patience, .max = 1 << 30, .quiet = true,
     .help = "stop after N validations without improvement; 0: never; default: 5"},
    {"keep", 0, "N", .integer = &keep, .max = 64,
     .help = "checkpoints to keep when the training has finished; --resume needs one"},
    {"dtype", 0, "f32|f16", .choice = &dtype, .help = "type of the weights in the model"},
    {"seed", 0, "N", .integer = &seed, .max = 1e18, .help = "random seed"},
    CLI_TRAINING_JSON(&json),
    CLI_THREADS(&threads),
    {0},
};

static const char *const may_change[] = {"epochs",   "minutes", "validate-every", "save-every",
                                         "patience", "keep",    "threads",        NULL};
static const char *const same_files[] = {"data", "item-texts", NULL};
static const char *const of_model[] = {"model",  "arch",  "block",        "content",       "hidden",
                                       "layers", "heads", "intermediate", "max-positions", NULL};
static const cli_training_options stored = {"recommend", options,    &folder,    &resume,
                                            may_change,  same_files, same_files, of_model};
static bool goes_on;                                     /* --resume, and not with another log */
static bool typed[sizeof options / sizeof *options - 1]; /* options of the table */

/* Takes what was not typed from the training that continues. One with a new log begins with the model that it has,
 * whose sizes are no options then. */
static int complete(bool *given)
{
    goes_on = resume;
    memcpy(typed, given, sizeof typed);
    int code = folder ? cli_base_model_recover(folder) : CLI_DONE;
    if (!code)
        code = cli_training_options_read(&stored, given);
    if (!code && resume && (schedule != 0 || warmup > 0))
        code = cli_training_options_same(&stored, "epochs", ", and the learning rate depends on them");
    if (!code && cli_training_options_renewed()) {
        cli_note("%s is not the log of the training in %s: another one begins with the model that is there", data.path,
                 folder);
        goes_on = false;
        model_name = folder;
        arch = block = content = -1;
        hidden = layers = heads = intermediate = max_positions = 0;
    }
    cli_interactions_complete(&data);
    return code;
}

typedef struct recommend_training {
    cli_training common;
    cli_interactions log;
    cli_item_texts texts;
    att_recommender *base;     /* the model to begin with; NULL: a new one */
    att_recommender_info info; /* of it */
    json_t *learnt;            /* and what it has learnt from, where the training begins */
    bool in_folder;            /* the output folder has it, too, and keeps it until there is a better one */
    int64_t histories;         /* of two or more items */
} recommend_training;

/* ---- options ------------------------------------------------------------------ */

/* The first of the options of a new model that are set, or NULL. */
static const char *size_option(void)
{
    const struct {
        const char *name;
        bool set;
    } sizes[] = {{"arch", arch >= 0},       {"block", block >= 0},
                 {"hidden", hidden > 0},    {"layers", layers > 0},
                 {"heads", heads > 0},      {"intermediate", intermediate > 0},
                 {"content", content >= 0}, {"max-positions", max_positions > 0}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].set)
            return sizes[i].name;
    return NULL;
}

static int check_options(void)
{
    if (model_name && size_option())
        return cli_misuse("--%s does not go with --model, which has its own", size_option());
    const long long width = hidden ? hidden : 64;
    if (heads && width % heads)
        return cli_misuse("--heads %lld does not divide --hidden %lld", (long long)heads, width);
    if (arch == BERT4REC && block == ATT_BLOCK_SASREC)
        return cli_misuse("--block sasrec is for --arch sasrec");
    if (patience > 0 && data.split == ATT_HOLDOUT_NONE)
        return cli_misuse("--patience %lld needs a validation, but --split is none", (long long)patience);
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

/* Options of one of both architectures, once it is known. */
static int check_arch(const recommend_training *t)
{
    const bool bert = t->base ? strcmp(t->info.type, "attend-bert4rec") == 0 : arch == BERT4REC;
    if (!bert && (mask_share > 0 || last_mask_share > 0))
        return cli_misuse("--%smask-share is for --arch bert4rec", mask_share > 0 ? "" : "last-");
    if (t->base && t->info.content_width > 0 && !texts_path)
        return cli_misuse("--item-texts FILE is needed: %s adds vectors of texts to those of items", model_name);
    return CLI_DONE;
}

/* ---- data ----------------------------------------------------------------------- */

/* Ids of the items that get the first numbers: those of the model, then those that have texts. */
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
    if (!code && t->histories == 0)
        code = cli_fail("%s: no user has two or more actions for training, of %lld users with %lld actions", data.path,
                        (long long)t->log.info.users, (long long)t->log.info.actions);
    return code;
}

/* What the model to begin with has learnt from, to be stored; another log is read as that was. */
static int read_learnt(recommend_training *t)
{
    static json_t *training; /* options point into it */
    const bool renewed = cli_training_options_renewed();
    const int code = cli_training_file_read(model_name, &training);
    if (code)
        return code;
    t->learnt = cli_training_data_of(training, renewed ? "its earlier model" : model_name, renewed);
    cli_training_options_trained(t->learnt);
    return renewed ? CLI_DONE
                   : cli_check_reading(json_object_get(training, "options"), model_name, data.path, options, typed);
}

static int open_base(recommend_training *t)
{
    static att_model_path path;
    if (!model_name)
        return CLI_DONE;
    int code = cli_model_find(CLI_RECOMMENDER, model_name, &path);
    if (code)
        return code;
    model_name = path.text; /* as the folder stores it */
    t->info.size = sizeof t->info;
    code = cli_status(t->common.ctx, att_recommender_open(t->common.ctx, model_name, NULL, &t->base));
    if (!code)
        code = cli_status(t->common.ctx, att_recommender_describe(t->base, &t->info));
    return code || goes_on ? code : read_learnt(t);
}

/* The log, and vectors of the texts of items that the model does not have. */
static int read_data(recommend_training *t)
{
    int code = cli_item_texts_read(&t->texts, texts_path, text_column, data.skip_bad_lines);
    if (!code)
        code = open_base(t);
    if (!code)
        code = check_arch(t);
    if (!code)
        code = read_log(t);
    const int64_t old = t->base ? t->info.items : 0;
    if (!code && texts_path && t->log.info.items > old)
        code = cli_item_texts_embed(&t->texts, text_model, threads, t->log.log, old, t->log.info.items);
    return code;
}

static void report_data(const recommend_training *t)
{
    const att_holdout_info *h = &t->log.held;
    cli_interactions_report(&t->log);
    fprintf(stderr, "split %s: %lld actions of %lld user%s for training", cli_split_name(h->kind),
            (long long)h->actions, (long long)h->users, h->users == 1 ? "" : "s");
    if (h->kind != ATT_HOLDOUT_NONE)
        fprintf(stderr, "; %lld for validation and %lld for the test, which is not read",
                (long long)h->cases[ATT_HOLDOUT_VALID], (long long)h->cases[ATT_HOLDOUT_TEST]);
    fputc('\n', stderr);
    if (h->kind != ATT_HOLDOUT_NONE && h->cases[ATT_HOLDOUT_VALID] == 0)
        cli_note("no action is held out for validation, so the model of the last step is written");
    if (t->base)
        fprintf(stderr, "begins with %s, which has %lld of the items\n", model_name, (long long)t->info.items);
    if (t->texts.vectors)
        fprintf(stderr, "texts of items as vectors of %lld numbers; %lld item%s none\n", (long long)t->texts.width,
                (long long)t->texts.missing, t->texts.missing == 1 ? " has" : "s have");
}

/* ---- validation ------------------------------------------------------------------ */

static att_dtype weights(void) { return dtype == F16 ? ATT_F16 : ATT_F32; }

static int score(const recommend_training *t, cli_validation *v)
{
    att_ranking r = {.size = sizeof r};
    const att_scorer scorer = att_recommender_scorer(att_training_recommender(t->common.training));
    const att_ranking_options *o = ATT_OPTIONS(att_ranking_options, .part = ATT_HOLDOUT_VALID,
                                               .exclude_seen = exclude_seen, .candidates = (att_candidates)candidates,
                                               .draws = candidates != ATT_CANDIDATES_ALL, .seed = (uint64_t)seed);
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

static int validate(void *user, cli_validation *v)
{
    const recommend_training *t = user;
    const int code = score(t, v);
    return code ? code : cli_status(t->common.ctx, att_training_keep_best(t->common.training, v->score, weights()));
}

/* The number of items of the log that the model to begin with does not have. */
static int64_t new_items(const recommend_training *t) { return t->base ? t->log.info.items - t->info.items : 0; }

/* The model to begin with. */
static int validate_first(void *user, cli_validation *v)
{
    recommend_training *t = user;
    if (!t->in_folder)
        return validate(user, v);
    const int code = score(t, v);
    return code ? code : cli_status(t->common.ctx, att_training_keep_first(t->common.training, v->score));
}

/* Of what is held out for validation, and how it is ranked. */
static int64_t checksum(const recommend_training *t)
{
    uint64_t sum = cli_training_checksum(0, &exclude_seen, sizeof exclude_seen);
    sum = cli_training_checksum(sum, &candidates, sizeof candidates);
    att_holdout_case c;
    for (int64_t i = 0; i < t->log.held.cases[ATT_HOLDOUT_VALID]; i++) {
        if (att_holdout_get(t->log.holdout, ATT_HOLDOUT_VALID, i, &c))
            break;
        sum = cli_training_checksum(sum, &c.user, sizeof c.user);
        sum = cli_training_checksum(sum, &c.target, sizeof c.target);
    }
    return (int64_t)sum;
}

/* ---- the run ---------------------------------------------------------------------- */

/* Appends "name": value, of numbers those that are set. */
static void add_setting(char *text, size_t size, const char *name, int64_t value)
{
    const size_t n = strlen(text);
    if (value > 0)
        snprintf(text + n, size - n, ", \"%s\": %lld", name, (long long)value);
}

/* The settings of a new model as JSON. */
static void write_settings(char *text, size_t size)
{
    static const char *const types[] = {[SASREC] = "attend-sasrec", [BERT4REC] = "attend-bert4rec"};
    static const char *const blocks[] = {"pre-norm", "post-norm", "sasrec"};
    snprintf(text, size, "{\"model_type\": \"%s\"", types[arch < 0 ? SASREC : arch]);
    const size_t n = strlen(text);
    if (block >= 0)
        snprintf(text + n, size - n, ", \"block\": \"%s\"", blocks[block]);
    add_setting(text, size, "hidden_size", hidden);
    add_setting(text, size, "num_hidden_layers", layers);
    add_setting(text, size, "num_attention_heads", heads);
    add_setting(text, size, "intermediate_size", intermediate);
    add_setting(text, size, "max_position_embeddings", max_positions);
    strncat(text, "}", size - strlen(text) - 1);
}

/* Sets the options of a new model that were not chosen to what it has, for the log and training.json. */
static int show_sizes(const recommend_training *t)
{
    att_recommender_info i = {.size = sizeof i};
    const int code =
        cli_status(t->common.ctx, att_recommender_describe(att_training_recommender(t->common.training), &i));
    if (!code && !strcmp(i.type, "attend-bert4rec") && mask_share == 0)
        mask_share = 0.2;
    if (code || t->base)
        return code;
    arch = strcmp(i.type, "attend-bert4rec") ? SASREC : BERT4REC;
    block = (int)i.block;
    hidden = i.hidden;
    layers = i.layers;
    heads = i.heads;
    intermediate = i.intermediate;
    max_positions = i.max_positions;
    return CLI_DONE;
}

/* Limits that were not typed. */
static void complete_limits(recommend_training *t)
{
    const bool validates = t->log.held.cases[ATT_HOLDOUT_VALID] > 0;
    t->common.validate = validates ? validate : NULL;
    t->common.validate_first = validates && t->base ? validate_first : NULL;
    if (epochs == 0)
        epochs = validates ? 200 : 20;
    if (patience < 0)
        patience = validates ? 5 : 0;
    t->common.patience = validates ? patience : 0;
}

static int open_training(recommend_training *t)
{
    char settings[512];
    const int64_t batches = (t->histories + batch - 1) / batch;
    const bool add = t->base ? t->info.content_width > 0 : content == ADD;
    const att_item_content *vectors =
        ATT_OPTIONS(att_item_content, .vectors = t->texts.vectors, .width = t->texts.width, .add = add);
    t->common.steps = (int64_t)ceil(epochs * (double)batches);
    t->common.validate_every = validate_every ? validate_every : batches;
    t->common.save_every = save_every ? save_every : batches;
    const att_schedule *rates =
        ATT_OPTIONS(att_schedule, .kind = schedules[schedule], .max_rate = rate,
                    .warmup = (int64_t)(warmup * (double)t->common.steps), .steps = schedule ? t->common.steps : 0);
    write_settings(settings, sizeof settings);
    const att_recommender_training_options *o = ATT_OPTIONS(
        att_recommender_training_options, .data = t->log.holdout, .batch = batch, .with_replacement = with_replacement,
        .loss = (att_item_loss)loss, .negatives = negatives,
        .calibration = loss == ATT_ITEM_LOSS_GBCE ? calibration : 0, .mask_share = mask_share,
        .last_mask_share = last_mask_share, .dropout = (float)dropout, .settings = model_name ? NULL : settings,
        .model = model_name, .content = t->texts.vectors ? vectors : NULL);
    const att_training_options *common =
        ATT_OPTIONS(att_training_options, .schedule = rates, .beta2 = beta2, .weight_decay = decay, .clip = clip,
                    .resume = resume, .seed = (uint64_t)seed, .keep = keep ? keep : 1, .evaluation_id = checksum(t),
                    .note = t->common.note, .note_bytes = sizeof t->common.note);
    att_ctx *ctx = t->common.ctx;
    return cli_status(ctx, att_recommender_training_open(ctx, folder, common, o, &t->common.training));
}

/* With another log: begins with the model in the folder, which then finds it in FOLDER/base when it continues. Until it
 * has begun, the training that is there stays. */
static int open_renewed(recommend_training *t)
{
    static att_model_path next, base;
    int code = cli_base_model_begin(folder, &next);
    if (code)
        return code;
    model_name = next.text;
    code = open_training(t);
    code = code ? code : show_sizes(t);
    snprintf(base.text, sizeof base.text, "%.4000s/base", folder);
    model_name = base.text;
    t->in_folder = true;
    return cli_base_model_end(&stored, &next, code);
}

/* A training of the folder's own model that begins once more, killed before a checkpoint, may have replaced that. */
static int open_other(recommend_training *t)
{
    const size_t n = strlen(folder);
    t->in_folder = model_name && !strncmp(model_name, folder, n) && !strcmp(model_name + n, "/base");
    int code = t->in_folder && !resume ? cli_base_model_restore(folder, model_name) : CLI_DONE;
    if (!code)
        code = open_training(t);
    return code ? code : show_sizes(t);
}

/* The last validation was the best: says how the training continues. */
static void report_rising(const recommend_training *t)
{
    if (t->common.steps > att_training_steps(t->common.training))
        cli_note("it was still rising: attend train recommend --resume -o %s --minutes %g goes on",
                 cli_quoted(folder).text, 2 * minutes);
    else if (schedule == 0 && warmup == 0)
        cli_note("it was still rising: attend train recommend --resume -o %s --epochs %g goes on",
                 cli_quoted(folder).text, 2 * epochs);
    else
        cli_note("it was still rising: with more --epochs another training may be better");
}

/* With validation the best model is there already; else the last one is written now. */
static int write_model(void *user, bool stopped)
{
    recommend_training *t = user;
    att_training_info info = {.size = sizeof info};
    const int code = cli_status(t->common.ctx, att_training_describe(t->common.training, &info));
    if (code || !isfinite(info.best))
        return code ? code : cli_status(t->common.ctx, att_training_write(t->common.training, 0, weights()));
    if (info.best_step == 0) {
        t->common.stays = t->in_folder;
        cli_training_report_kept(&t->common, "NDCG@10", 4, new_items(t));
        return CLI_DONE;
    }
    cli_note("%s is the model of step %lld, with the highest NDCG@10 on validation, %.4f", folder,
             (long long)info.best_step, info.best);
    if (!stopped && info.best_step == att_training_steps(t->common.training))
        report_rising(t);
    return CLI_DONE;
}

static int run(int n, char **arguments)
{
    (void)n, (void)arguments;
    recommend_training t = {.common = {.folder = folder,
                                       .minutes = minutes,
                                       .resume = resume,
                                       .options_first = true,
                                       .things = "positions",
                                       .keep = keep,
                                       .write = write_model,
                                       .options = &stored,
                                       .user = &t}};
    int code = check_options();
    if (!code)
        code = cli_open(&t.common.ctx, threads);
    if (!code)
        code = read_data(&t);
    if (!code) {
        complete_limits(&t);
        cli_end_later(); /* a signal cancels the start, which then leaves no folder */
        code = cli_training_options_renewed() ? open_renewed(&t) : open_other(&t);
    }
    if (!code && t.common.steps < att_training_steps(t.common.training))
        code = cli_misuse("--epochs is %g, %lld steps, but %s is at step %lld", epochs, (long long)t.common.steps,
                          folder, (long long)att_training_steps(t.common.training));
    t.in_folder = t.in_folder && !(t.texts.vectors && new_items(&t) > 0); /* with texts, new items are worth having */
    if (!code) {
        report_data(&t);
        code = cli_training_data_note(t.learnt, folder, &data);
    }
    if (!code)
        code = cli_training_run(&t.common);
    if (json && (!code || code == CLI_INTERRUPTED))
        code = cli_training_print_result(&t.common, "ndcg", code);
    json_decref(t.learnt);
    att_training_free(t.common.training);
    att_recommender_free(t.base);
    cli_interactions_close(&t.log);
    cli_item_texts_free(&t.texts);
    att_close(t.common.ctx);
    return code;
}

const cli_command cli_train_recommend = {
    .name = "recommend",
    .summary = "train a recommender of next items on a log of what users did",
    .details = "Trains a Transformer over histories with AdamW: SASRec (Kang, McAuley 2018), or\n"
               "BERT4Rec (Sun et al. 2019). The default loss is the cross entropy of the softmax\n"
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
               "--validate-candidates says otherwise, is written; without an improvement in\n"
               "--patience validations the training ends. --split time divides the log\n"
               "at two points in time instead, and none trains on all.\n\n"
               "Reports progress to standard error and to FOLDER/log.jsonl, whose first line\n"
               "has all options. Ctrl-C saves a checkpoint and writes the model so far; if the\n"
               "process is killed, the steps since the last checkpoint are lost. To continue,\n"
               "--resume -o FOLDER is enough. --resume -o FOLDER --data NEW trains the model in\n"
               "the folder on a log that has grown, and may have other --item-texts: what it has\n"
               "learnt stays, and new items are added. FOLDER/base keeps the model that this\n"
               "begins with; like the checkpoints, only --resume needs it.",
    .examples = "attend train recommend --data log.csv -o shop\n"
                "attend train recommend --data log.csv --item-texts titles.tsv --content add -o shop\n"
                "attend train recommend --resume -o shop\n"
                "attend train recommend --resume -o shop --data newer-log.csv",
    .options = options,
    .see = "recommend|evaluate recommend|plot",
    .complete = complete,
    .run = run,
};
