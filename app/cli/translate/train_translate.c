/* attend train translate: a translator from two files. */
#include "cli/base/lines.h"
#include "cli/base/skipped.h"
#include "cli/train/train.h"

#include <attend_translate.h>

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

enum architecture { TRANSFORMER, RNN };
enum preset { TINY, SMALL, BASE };

enum { FILES = 4, SETTINGS = 512 };

typedef struct translate_training {
    cli_training common;
    cli_copy copies[FILES]; /* of pipes */
    char settings[SETTINGS];
} translate_training;

static const char *source, *target, *valid_source, *valid_target, *tokenizer, *config;
static int architecture = -1, attention = -1, preset = -1;
static int64_t skip_bad_lines, vocabulary = 8000, batch_tokens = 4096;
static double coverage = 1, dropout = 0.1, smoothing = 0.1;
static bool byte_fallback;
static translate_training translate = {.common.options = {.rate = 1e-3,
                                                          .beta2 = 0.98,
                                                          .warmup = 1000,
                                                          .clip = 1,
                                                          .validate_every = 500,
                                                          .save_every = 500,
                                                          .average = 5,
                                                          CLI_TRAINING_DEFAULTS},
                                       .copies = {{.file = -1}, {.file = -1}, {.file = -1}, {.file = -1}}};

static const cli_option options[] = {
    {"src", 0, "FILE", .text = &source, .required = true, .help = "source sentences, one per line; may end in .gz"},
    {"tgt", 0, "FILE", .text = &target, .required = true,
     .help = "target sentences: line i is the translation of line i of --src; may end in .gz"},
    {"valid-src", 0, "FILE", .text = &valid_source, .help = "source sentences for validation; may end in .gz"},
    {"valid-tgt", 0, "FILE", .text = &valid_target, .help = "target sentences for validation; may end in .gz"},
    CLI_TRAINING_FOLDER(translate.common.options),
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
    {"batch-tokens", 0, "N", .integer = &batch_tokens, .min = 1, .max = 1 << 24, .help = "batch size in target tokens"},
    {"dropout", 0, "P", .number = &dropout, .max = 0.99, .help = "dropout probability"},
    {"smoothing", 0, "X", .number = &smoothing, .max = 0.99, .help = "label smoothing"},
    CLI_SKIP_OPTION(&skip_bad_lines, "each two files, which are not UTF-8"),
    CLI_TRAINING_OPTIONS(translate.common.options),
    {0},
};

/* ---- validation */

static int validate(void *training, cli_validation *v)
{
    const cli_training *t = training;
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

static void report(const void *training, const att_training_info *i)
{
    (void)training;
    fprintf(stderr, "%lld sentence pairs", (long long)i->examples);
    if (i->skipped_empty + i->skipped_invalid + i->skipped_long > 0)
        fprintf(stderr, "; left out: %lld with an empty side, %lld that are not UTF-8, %lld that are too long",
                (long long)i->skipped_empty, (long long)i->skipped_invalid, (long long)i->skipped_long);
    fputc('\n', stderr);
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

/* Writes the settings of the model as JSON: those of --preset or, with --config, the other settings of the command
 * line. */
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

static int open_training(void *training, const att_training_options *common)
{
    translate_training *t = training;
    const cli_training_options *o = &t->common.options;
    const att_translator_training_options *all =
        ATT_OPTIONS(att_translator_training_options, .tokenizer = tokenizer, .vocabulary = vocabulary,
                    .character_coverage = coverage, .byte_fallback = byte_fallback, .settings = t->settings,
                    .config = config, .source = source, .target = target, .valid_source = valid_source,
                    .valid_target = valid_target, .batch_tokens = batch_tokens, .label_smoothing = (float)smoothing,
                    .dropout = (float)dropout, .skip_bad_lines = skip_bad_lines);
    return cli_training_status(
        t->common.ctx, att_translator_training_open(t->common.ctx, o->folder, common, all, &t->common.training));
}

/* Replaces pipes by files, as texts are read more than once, and checks that both validation files have the same number
 * of lines. */
static int read_texts(void *training)
{
    translate_training *t = training;
    static const char **const paths[FILES] = {&source, &target, &valid_source, &valid_target};
    int64_t texts = 0, references = 0;
    int code = CLI_DONE;
    for (int i = 0; !code && i < FILES; i++)
        code = cli_copy_pipe(paths[i], &t->copies[i]);
    t->common.validates = valid_source != NULL;
    if (!code && valid_source)
        code = cli_lines_count(valid_source, &texts);
    if (!code && valid_source)
        code = cli_lines_count(valid_target, &references);
    if (!code && texts != references)
        code = cli_fail("%s has %lld lines but %s has %lld", valid_source, (long long)texts, valid_target,
                        (long long)references);
    return code;
}

/* Checks for options that need others, or contradict them. */
static int check_options(void *training)
{
    translate_training *t = training;
    static const char *const trained[] = {"vocabulary", "character-coverage", "byte-fallback"};
    for (size_t i = 0; tokenizer && !t->common.continues && i < sizeof trained / sizeof *trained; i++)
        if (cli_training_typed(&t->common, trained[i]))
            return cli_misuse("--%s does not go with --tokenizer, which has a vocabulary", trained[i]);
    if (!valid_source != !valid_target)
        return cli_misuse("--valid-%s is missing: both sides are needed", valid_source ? "tgt" : "src");
    if (tokenizer && !t->common.options.resume && access(tokenizer, F_OK))
        return cli_fail("--tokenizer: %s: %s", tokenizer, strerror(errno));
    return choose_model(t->settings);
}

static void close_training(void *training)
{
    const translate_training *t = training;
    for (int i = 0; i < FILES; i++)
        if (t->copies[i].file >= 0)
            close(t->copies[i].file);
}

static const char *const may_change[] = {"valid-src", "valid-tgt", "tokenizer", NULL};
static const char *const same_files[] = {"src", "tgt", "config", "tokenizer", NULL};
static const cli_trainer trainer = {
    .command = "translate",
    .validation = "--valid-src and --valid-tgt",
    .score = "valid_loss",
    .measure = "loss",
    .digits = 4,
    .negative = true,
    .options = options,
    .may_change = may_change,
    .same_files = same_files,
    .check = check_options,
    .read = read_texts,
    .open = open_training,
    .report = report,
    .validate = validate,
    .close = close_training,
};

static int complete(bool *given) { return cli_training_complete(&translate.common, &trainer, given); }

static int run(int n, char **arguments)
{
    (void)n, (void)arguments;
    return cli_training_run(&translate.common);
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
               "line has at most 1 MiB.\n\n" CLI_TRAINING_DETAILS,
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
