/* attend train translate: a translator from two files. */
#include "cli/base/lines.h"
#include "cli/base/signals.h"
#include "cli/base/skipped.h"
#include "cli/train/train.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

enum architecture { TRANSFORMER, RNN };
enum preset { TINY, SMALL, BASE };

static const char *source, *target, *valid_source, *valid_target, *folder, *tokenizer, *config;
static int architecture = -1, attention = -1, preset = -1, schedule = 0;
static int64_t skip_bad_lines, vocabulary = 8000, batch_tokens = 4096, accumulate = 1, warmup = 1000, steps, seed = 1,
                               threads, validate_every = 500, save_every = 500, average = 5, patience, keep = 1;
static double coverage = 1, rate = 1e-3, dropout = 0.1, smoothing = 0.1, clip = 1, minutes;
static bool resume, half, byte_fallback;

static const cli_option options[] = {
    {"src", 0, "FILE", .text = &source, .required = true, .help = "source sentences, one per line; may end in .gz"},
    {"tgt", 0, "FILE", .text = &target, .required = true,
     .help = "target sentences: line i is the translation of line i of --src; may end in .gz"},
    {"valid-src", 0, "FILE", .text = &valid_source, .help = "source sentences for validation; may end in .gz"},
    {"valid-tgt", 0, "FILE", .text = &valid_target, .help = "target sentences for validation; may end in .gz"},
    {"output", 'o', "FOLDER", .text = &folder, .writes = true, .required = true,
     .help = "output folder: checkpoints and log, in the end the model"},
    {"resume", 0, NULL, .flag = &resume,
     .help = "resume from the newest checkpoint; the result has the same bits as without interruption"},
    {"arch", 0, "transformer|rnn", .choice = &architecture,
     .help = "architecture: Transformer, or recurrent neural network (GRU); default: transformer"},
    {"attention", 0, "none|additive|dot|general", .choice = &attention,
     .help = "attention of the RNN: Bahdanau (additive), Luong (dot, general), or none: a fixed context; default: "
             "additive"},
    {"preset", 'p', "tiny|small|base", .choice = &preset,
     .help =
         "model size: 2+2 layers with d_model 128, 3+3 with 256, or 6+6 with 512 (base of the paper); an RNN has about "
         "as many parameters; default: small"},
    {"config", 0, "FILE", .text = &config,
     .help = "model configuration in the format of config.json; missing settings have their defaults"},
    {"vocabulary", 0, "N", .integer = &vocabulary, .min = 64, .max = 1 << 20,
     .help = "vocabulary size, joint for both languages"},
    {"character-coverage", 0, "RATIO", .number = &coverage, .min = 0.5, .max = 1,
     .help = "character coverage: the share of the text whose characters are in the vocabulary, at most 4,000; others "
             "are unknown, as are those that occur fewer than three times"},
    {"byte-fallback", 0, NULL, .flag = &byte_fallback,
     .help = "byte fallback: encode unknown characters as bytes, with 256 pieces of the vocabulary"},
    {"tokenizer", 0, "FOLDER|FILE", .text = &tokenizer,
     .help = "use this tokenizer instead of learning one: a folder with source.spm, target.spm and vocab.json, or a "
             "SentencePiece model for both languages, as \"attend vocab\" writes it"},
    {"steps", 0, "N", .integer = &steps, .max = 1 << 30, .quiet = true,
     .help = "stop after N steps; 0: run until interrupted"},
    {"minutes", 0, "N", .number = &minutes, .max = 1e6, .quiet = true,
     .help = "stop after N minutes; 0: run until interrupted"},
    {"patience", 0, "N", .integer = &patience, .max = 1 << 20, .quiet = true,
     .help = "stop after N validations without improvement (early stopping); 0: off"},
    {"batch-tokens", 0, "N", .integer = &batch_tokens, .min = 1, .max = 1 << 24, .help = "batch size in target tokens"},
    {"accumulate", 0, "N", .integer = &accumulate, .min = 1, .max = 1 << 16,
     .help = "accumulate gradients over N batches"},
    {"schedule", 0, "constant|inverse-sqrt|cosine|linear", .choice = &schedule,
     .help = "learning rate schedule after the warm-up; cosine and linear decay to 0 at --steps"},
    {"rate", 0, "RATE", .number = &rate, .max = 10, .above_min = true, .help = "learning rate: the maximum"},
    {"warmup", 0, "N", .integer = &warmup, .max = 1 << 30, .help = "warm up the learning rate over N steps"},
    {"dropout", 0, "P", .number = &dropout, .max = 0.99, .help = "dropout probability"},
    {"smoothing", 0, "X", .number = &smoothing, .max = 0.99, .help = "label smoothing"},
    {"clip", 0, "NORM", .number = &clip, .max = 1e9, .help = "clip gradients to this norm; 0: off"},
    {"validate-every", 0, "N", .integer = &validate_every, .min = 1, .max = 1 << 30, .help = "validate every N steps"},
    {"save-every", 0, "N", .integer = &save_every, .min = 1, .max = 1 << 30, .help = "save a checkpoint every N steps"},
    {"average", 0, "N", .integer = &average, .max = 64,
     .help = "average the last N checkpoints; 0: use the last weights"},
    {"keep", 0, "N", .integer = &keep, .max = 64,
     .help = "checkpoints to keep when the training has finished; --resume needs one"},
    CLI_SKIP_OPTION(&skip_bad_lines, "each two files, which are not UTF-8"),
    {"half", 0, NULL, .flag = &half, .help = "write the weights in half precision (f16)"},
    {"seed", 0, "N", .integer = &seed, .max = 1e18, .help = "random seed"},
    CLI_THREADS(&threads),
    {0},
};

static const char *const may_change[] = {"valid-src",      "valid-tgt",  "steps",   "minutes", "patience",
                                         "validate-every", "save-every", "average", "keep",    "half",
                                         "threads",        "tokenizer",  NULL};
static const char *const same_files[] = {"src", "tgt", "config", "tokenizer", NULL};
static const cli_training_options stored = {"translate", options, &folder, &resume, may_change, same_files, NULL, NULL};

/* Words of --schedule are in the order of att_schedule_kind. */
static bool schedule_ends(int kind) { return kind == ATT_COSINE || kind == ATT_LINEAR; }

/* An option of the vocabulary to learn was typed beside --tokenizer, which has one. */
static int check_vocabulary(const bool *given)
{
    static const char *const learnt[] = {"vocabulary", "character-coverage", "byte-fallback"};
    for (int i = 0; tokenizer && options[i].name; i++)
        for (size_t k = 0; given[i] && k < sizeof learnt / sizeof *learnt; k++)
            if (strcmp(options[i].name, learnt[k]) == 0)
                return cli_misuse("--%s does not go with --tokenizer, which has a vocabulary", learnt[k]);
    return CLI_DONE;
}

/* Takes what was not typed from the training that continues. */
static int complete(bool *given)
{
    int code = resume ? CLI_DONE : check_vocabulary(given);
    if (!code)
        code = cli_training_options_read(&stored, given);
    return code || !resume || !schedule_ends(schedule)
               ? code
               : cli_training_options_same(&stored, "steps", ", where --schedule falls to 0");
}

/* ---- validation */

static int validate(void *user, cli_validation *v)
{
    const cli_training *t = user;
    double loss, bleu = NAN;
    int code = cli_status(t->ctx, att_training_validate(t->training, &loss));
    if (!code)
        code = cli_training_bleu(t, valid_source, valid_target, &bleu);
    if (code)
        return code;
    v->score = -loss;
    snprintf(v->log, sizeof v->log, ", \"valid_loss\": %.6g, \"bleu\": %.2f", loss, bleu);
    snprintf(v->shown, sizeof v->shown, ", on validation %.4f, BLEU %.2f", loss, bleu);
    return CLI_DONE;
}

/* ---- the run */

static void report_pairs(const att_training_info *i)
{
    fprintf(stderr, "%lld sentence pairs", (long long)i->examples);
    if (i->skipped_empty + i->skipped_invalid + i->skipped_long > 0)
        fprintf(stderr, "; left out: %lld with an empty side, %lld that are not UTF-8, %lld that are too long",
                (long long)i->skipped_empty, (long long)i->skipped_invalid, (long long)i->skipped_long);
    fputc('\n', stderr);
}

static int write_model(void *user, bool stopped)
{
    const cli_training *t = user;
    (void)stopped;
    return cli_status(t->ctx, att_training_write(t->training, average, half ? ATT_F16 : ATT_F32));
}

/* Members of a config.json, and the words of --attention. */
static const char *const sizes[][3] = {
    [TRANSFORMER] =
        {
            [TINY] = "\"d_model\": 128, \"encoder_layers\": 2, \"decoder_layers\": 2, \"encoder_ffn_dim\": 512, "
                     "\"decoder_ffn_dim\": 512, \"encoder_attention_heads\": 4, \"decoder_attention_heads\": 4",
            [SMALL] = "\"d_model\": 256, \"encoder_layers\": 3, \"decoder_layers\": 3, \"encoder_ffn_dim\": 1024, "
                      "\"decoder_ffn_dim\": 1024, \"encoder_attention_heads\": 4, \"decoder_attention_heads\": 4",
            [BASE] = "\"d_model\": 512, \"encoder_layers\": 6, \"decoder_layers\": 6, \"encoder_ffn_dim\": 2048, "
                     "\"decoder_ffn_dim\": 2048, \"encoder_attention_heads\": 8, \"decoder_attention_heads\": 8",
        },
    [RNN] =
        {
            [TINY] = "\"embedding_size\": 128, \"hidden_size\": 256, \"num_layers\": 1",
            [SMALL] = "\"embedding_size\": 256, \"hidden_size\": 512, \"num_layers\": 1",
            [BASE] = "\"embedding_size\": 512, \"hidden_size\": 1024, \"num_layers\": 2",
        },
};
static const char *const model_types[] = {[TRANSFORMER] = "marian", [RNN] = "attend-seq2seq"};
static const char *const attentions[] = {"none", "additive", "dot", "general"};

enum { SETTINGS = 512 };

/* The settings of the model as JSON: those of --preset, or, with --config, what the command line says beside it. */
static int choose_model(char text[SETTINGS])
{
    if (config && preset >= 0)
        return cli_misuse("--preset does not go with --config: the file has the sizes");
    if (attention >= 0 && architecture != RNN)
        return cli_misuse("--attention is for --arch rnn: a Transformer has its own");
    const int chosen = architecture < 0 && !config ? TRANSFORMER : architecture;
    int n = snprintf(text, SETTINGS, "{");
    if (chosen >= 0)
        n += snprintf(text + n, (size_t)(SETTINGS - n), "\"model_type\": \"%s\"", model_types[chosen]);
    if (attention >= 0)
        n += snprintf(text + n, (size_t)(SETTINGS - n), ", \"attention\": \"%s\"", attentions[attention]);
    if (!config)
        n += snprintf(text + n, (size_t)(SETTINGS - n), ", %s", sizes[chosen][preset < 0 ? SMALL : preset]);
    snprintf(text + n, (size_t)(SETTINGS - n), "}");
    return CLI_DONE;
}

static int open_training(cli_training *t, const char *settings)
{
    const att_schedule rates = {.size = sizeof rates,
                                .kind = (att_schedule_kind)schedule,
                                .max_rate = rate,
                                .warmup = warmup,
                                .steps = schedule_ends(schedule) ? steps : 0};
    const att_translator_training_options *o =
        ATT_OPTIONS(att_translator_training_options, .tokenizer = tokenizer, .vocabulary = vocabulary,
                    .character_coverage = coverage, .byte_fallback = byte_fallback, .settings = settings,
                    .config = config, .source = source, .target = target, .valid_source = valid_source,
                    .valid_target = valid_target, .batch_tokens = batch_tokens, .label_smoothing = (float)smoothing,
                    .dropout = (float)dropout, .skip_bad_lines = skip_bad_lines);
    const att_training_options *common = ATT_OPTIONS(
        att_training_options, .schedule = &rates, .accumulate = accumulate, .clip = clip, .seed = (uint64_t)seed,
        .resume = resume, .keep = average > 1 ? average : 1, .note = t->note, .note_bytes = sizeof t->note);
    return cli_status(t->ctx, att_translator_training_open(t->ctx, folder, common, o, &t->training));
}

enum { FILES = 4 };
/* Replaces pipes by files, as texts are read more than once. */
static int copy_pipes(cli_copy copies[FILES])
{
    static const char **const paths[FILES] = {&source, &target, &valid_source, &valid_target};
    int code = CLI_DONE;
    for (int i = 0; !code && i < FILES; i++)
        code = cli_copy_pipe(paths[i], &copies[i]);
    return code;
}

/* Checks before the training that both validation files have the same number of lines. */
static int check_valid(void)
{
    int64_t texts = 0, references = 0;
    int code = valid_source ? cli_lines_count(valid_source, &texts) : CLI_DONE;
    if (!code && valid_source)
        code = cli_lines_count(valid_target, &references);
    if (!code && texts != references)
        code = cli_fail("%s has %lld lines but %s has %lld", valid_source, (long long)texts, valid_target,
                        (long long)references);
    return code;
}

/* Options that need others, or contradict them. */
static int check_options(void)
{
    if (schedule_ends(schedule) && !steps)
        return cli_misuse("--schedule %s needs --steps, where the learning rate is 0",
                          schedule == ATT_COSINE ? "cosine" : "linear");
    if (schedule_ends(schedule) && steps <= warmup)
        return cli_misuse("--steps %lld is not more than --warmup %lld: between them --schedule falls to 0",
                          (long long)steps, (long long)warmup);
    if (!valid_source != !valid_target)
        return cli_misuse("--valid-%s is missing: both sides are needed", valid_source ? "tgt" : "src");
    if (patience && !valid_source)
        return cli_misuse("--patience needs --valid-src and --valid-tgt");
    if (tokenizer && !resume && access(tokenizer, F_OK))
        return cli_fail("--tokenizer: %s: %s", tokenizer, strerror(errno));
    return CLI_DONE;
}

/* A training that continues is not past --steps. */
static int check_steps(const cli_training *t)
{
    const int64_t step = att_training_steps(t->training);
    return steps && steps < step
               ? cli_misuse("--steps is %lld but %s is at step %lld", (long long)steps, folder, (long long)step)
               : CLI_DONE;
}

static int run(int n, char **arguments)
{
    (void)n, (void)arguments;
    cli_training t = {.folder = folder,
                      .steps = steps,
                      .minutes = minutes,
                      .patience = patience,
                      .save_every = save_every,
                      .validate_every = validate_every,
                      .resume = resume,
                      .validate = valid_source ? validate : NULL,
                      .keep = keep,
                      .describe = report_pairs,
                      .write = write_model,
                      .options = &stored,
                      .user = &t};
    cli_copy copies[FILES] = {{.file = -1}, {.file = -1}, {.file = -1}, {.file = -1}};
    char settings[SETTINGS];
    int code = choose_model(settings);
    if (code)
        return code;
    code = check_options();
    if (!code)
        code = cli_open(&t.ctx, threads);
    if (!code)
        code = copy_pipes(copies);
    if (!code)
        code = check_valid();
    if (!code) {
        cli_end_later(); /* a signal cancels the start, which then leaves no folder */
        code = open_training(&t, settings);
    }
    if (!code)
        code = check_steps(&t);
    if (!code)
        code = cli_training_run(&t);
    att_training_free(t.training);
    for (int i = 0; i < FILES; i++)
        if (copies[i].file >= 0)
            close(copies[i].file);
    att_close(t.ctx);
    return code;
}

const cli_command cli_train_translate = {
    .name = "translate",
    .summary = "train a translator on a parallel corpus of two files",
    .details = "Line i of --tgt is the translation of line i of --src. Trains a Transformer (Vaswani\n"
               "et al. 2017) with Adam, in the format of MarianMTModel, which transformers and CTranslate2 open, too; "
               "or, with --arch rnn, gated\n"
               "recurrent units (Cho et al. 2014) with attention (Bahdanau et al. 2015, Luong\n"
               "et al. 2015) or without.\n\n"
               "Files may have any size: their lines are read when needed, so they must not\n"
               "change during the training. A pipe is first copied to a file in $TMPDIR. A\n"
               "line has at most 1 MiB.\n\n"
               "Reports progress to standard error and to FOLDER/log.jsonl. Ctrl-C saves a\n"
               "checkpoint and writes the model so far; if the process is killed, the steps\n"
               "since the last checkpoint are lost. To continue, --resume -o FOLDER is enough:\n"
               "the folder has all options (training.json). --minutes counts the time of all\n"
               "runs of a training.",
    .examples = "attend train translate --src train.de --tgt train.en --valid-src val.de "
                "--valid-tgt val.en --minutes 60 -o de-en\n"
                "attend train translate --resume -o de-en --minutes 120\n"
                "attend plot de-en -o learning.svg\n"
                "attend train translate --src train.de --tgt train.en --arch rnn --attention none -o fixed",
    .options = options,
    .see = "translate|bleu|vocab|plot",
    .complete = complete,
    .run = run,
};
