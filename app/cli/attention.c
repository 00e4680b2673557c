/* attend attention: shows the attention of a model over a text, an image or a history. */
#include "cli/attention/kinds.h"
#include "cli/attention/views.h"
#include "cli/draw/picture.h"

#include <string.h>

static attention_request asked = {.layer = -1, .head = -1, .from = -1, .side = -1};

static const cli_option options[] = {
    CLI_SENTENCE_MODEL_OPTION(&asked.model),
    {"side", 0, "encoder|decoder|cross", .choice = &asked.side,
     .help = "attention of the encoder, of the decoder, or of the decoder to its source; default: what the model has, "
             "of translators and captioners cross"},
    {"target", 0, "TEXT", .text = &asked.target,
     .help = "translation of the text, or caption of the image; default: the model's own"},
    CLI_PROMPT(&asked.prompt, "prompt", "text of a sentence model", "the model's default prompt, if it has one"),
    {"layer", 'l', "N", .integer = &asked.layer, .max = 1000, .quiet = true,
     .help = "layer, from 0; default: the last; of an image: rollout, the product of the attention of all layers"},
    {"head", 'H', "N", .integer = &asked.head, .max = 1000, .quiet = true,
     .help = "head, from 0; default: 0; of images, translators and recommenders: the mean of all"},
    {"from", 0, "N", .integer = &asked.from, .max = INT32_MAX, .quiet = true,
     .help = "show the row of one token only, from 0; of an image: the row of one patch, where 0 is [CLS] if the model "
             "has it"},
    {"heads", 0, NULL, .flag = &asked.heads, .help = "show all heads of all layers, as small maps"},
    {"pair", 0, "Q,K", .text = &asked.pair,
     .help = "show what the weight of token Q for token K is made of, in each head of the layer, or in that of --head"},
    {"hide", 0, "N,...", .texts = &asked.hide,
     .help = "let no token attend to these (of the source, if there is one), and print what changes; may be given "
             "repeatedly"},
    {"zero", 0, "LAYER.HEAD,...", .texts = &asked.zero,
     .help = "set the results of these heads of the side to 0, and print what changes; may be given repeatedly"},
    {"logit-lens", 0, NULL, .flag = &asked.lens,
     .help = "show what the model would predict after each layer, if that were the last one"},
    {"svg", 0, "FILE", .text = &asked.svg, .writes = true, .quiet = true,
     .help = "also write the picture to this file: " PICTURE_FORMATS},
    CLI_BACKGROUND(&asked.background),
    CLI_TYPES(asked.types),
    CLI_THREADS(&asked.threads),
    CLI_JSON(&asked.json),
    {0},
};

/* The views, by the option that requests each: the first row whose option is given is shown. */
typedef struct view {
    const char *option;
    bool given;
    bool side, layer, head, from, picture; /* options that can be combined with it */
    int (*show)(attended *a);
} view;

static int choose_view(view *chosen)
{
    const bool changes = asked.hide.n > 0 || asked.zero.n > 0;
    const bool zero = asked.zero.n > 0; /* heads of a side */
    const view views[] = {
        {"heads", asked.heads, .side = true, .from = true, .picture = true, .show = attention_show_heads},
        {"pair", asked.pair != NULL, .side = true, .layer = true, .head = true, .show = attention_show_pair},
        {"logit-lens", asked.lens, .side = zero, .from = true, .show = attention_show_lens},
        {asked.hide.n > 0 ? "hide" : "zero", changes, .side = zero, .from = true, .show = attention_show_changes},
        {NULL, true, true, true, true, true, true, NULL}};
    int n = 0;
    while (!views[n].given)
        n++;
    *chosen = views[n];
    for (int i = n + 1; i < 3; i++)
        if (views[i].given)
            return cli_misuse("--%s does not go with --%s", views[i].option, chosen->option);
    const struct {
        const char *option;
        bool wrong;
    } rules[] = {{"side", asked.side >= 0 && !chosen->side},
                 {"layer", asked.layer >= 0 && !chosen->layer},
                 {"head", asked.head >= 0 && !chosen->head},
                 {"from", asked.from >= 0 && !chosen->from},
                 {"svg", asked.svg && !chosen->picture}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].wrong)
            return cli_misuse("--%s does not go with --%s", rules[i].option, chosen->option);
    return CLI_DONE;
}

/* Returns the kind of the model. If it is not found, or has no name: the first kind, whose errors are reported. */
static const attention_kind *kind_of_model(void)
{
    for (int i = 0; attention_kinds[i]; i++)
        if (cli_model_is(attention_kinds[i]->model->subject, asked.model))
            return attention_kinds[i];
    return attention_kinds[0];
}

static int run(int n, char **arguments)
{
    (void)n;
    attended a;
    view chosen;
    asked.argument = arguments[0];
    int code = choose_view(&chosen);
    if (code)
        return code;
    const attention_kind *kind = kind_of_model();
    if (asked.target && !kind->writes)
        return cli_misuse("--target is for translators and captioners");
    if (asked.prompt && !kind->prompts)
        return cli_misuse("--prompt is for sentence models");
    if (asked.background && !kind->image)
        return cli_misuse("--background is for images");
    code = attended_open(&a, kind, &asked);
    if (!code && chosen.show)
        code = chosen.show(&a);
    else if (!code)
        code = (kind->show ? kind->show : attention_show_weights)(&a);
    attended_close(&a);
    return code;
}

const cli_command cli_attention = {
    .name = "attention",
    .summary = "show what a model attends to, over a text, an image or a history",
    .arguments = "TEXT|IMAGE|ITEMS",
    .min_arguments = 1,
    .max_arguments = 1,
    .details =
        "Shows the attention weights of one head of one layer, after the softmax. Rows: the\n"
        "token that attends; columns: the tokens attended to. Each row sums to 1. The model\n"
        "is a sentence model, a text classifier (TEXT may be two with a tab between them, a pair) or a language model, "
        "whose tokens attend only to those before "
        "them and themselves; or a translator, whose rows are the translation and columns the text, a recommender "
        "(ITEMS: ids, oldest first, with commas between them, as in attend recommend --history), a vision model or a "
        "captioner. A long text is shown by parts, and with --json row by row.\n\n"
        "With a vision model the argument is an image (\"-\": standard input), and the picture a map of its "
        "patches: what they get of the attention of the token [CLS], or of the mean attention of all patches "
        "where the model has none; --from N has that of a patch. With a captioner it is a map for each word.\n\n"
        "--pair prints q . k, the score after each stage (masked: the pair is left out), the logarithm of the sum of "
        "e^score over all keys, the weight, and the length of the value that it multiplies.\n\n"
        "--hide and --zero print results with and without these: of a language model the probabilities of the token "
        "after the last one or that of --from, of a sentence model the cosine with the vector of the whole, of a "
        "vision model or text classifier the probabilities of classes, of a translator or captioner the log "
        "probability of the target, of "
        "a recommender "
        "the scores of items. Together with --heads, --pair or --logit-lens only the pass without them is shown.",
    .examples = "attend attention -m all-MiniLM-L6-v2 \"The cat sat on the mat because it was tired.\"\n"
                "attend attention -m all-MiniLM-L6-v2 --layer 5 --head 3 --svg head.svg \"Hello shiny sun!\"\n"
                "attend attention -m SmolLM2-135M-Instruct --heads --svg heads.svg \"The cat sat on the mat.\"\n"
                "attend attention -m SmolLM2-135M-Instruct --logit-lens \"The capital of France is\"\n"
                "attend attention -m tatoeba-de-en --side encoder --layer 0 \"Guten Morgen!\"\n"
                "attend attention -m tatoeba-de-en --pair 2,1 \"Guten Morgen!\"\n"
                "attend attention -m vit-base-patch16-224 --svg cat.png cat.jpg\n"
                "attend attention -m vit-base-patch16-224 --hide 5,6 --zero 11.3 cat.jpg",
    .options = options,
    .see = "classify|translate|caption|recommend|tokenize",
    .run = run,
};
