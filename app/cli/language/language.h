/* Language models: opening them by name, and the options for sampling that commands share. */
#ifndef CLI_LANGUAGE_LANGUAGE_H
#define CLI_LANGUAGE_LANGUAGE_H

#include "cli/base/json.h"
#include "cli/model/model.h"

#include <attend_language.h>

typedef struct cli_language {
    cli_model base;
    const att_text_generator *generator;
    att_language_model_info info;
} cli_language;
extern const cli_model_kind cli_language_kind;

/* Options for sampling. A negative number was not given; for the two penalties in the second line 0 was not given. */
typedef struct cli_sampling {
    double temperature, top_p, min_p, repetition_penalty;
    double presence_penalty, frequency_penalty;
    int64_t top_k, seed;
    bool sample;
    cli_texts bias_text;
    att_logit_bias bias[CLI_TEXTS]; /* [bias_text.n], set by cli_sampling_read */
} cli_sampling;
#define CLI_SAMPLING_NONE                                                                                              \
    {                                                                                                                  \
        .temperature = -1, .top_p = -1, .min_p = -1, .repetition_penalty = -1, .top_k = -1, .seed = -1                 \
    }
/* clang-format off */
#define CLI_LANGUAGE_MODEL_OPTION(to)                                                        \
    {"model", 'm', "MODEL", .text = (to), .env = "ATTEND_LANGUAGE_MODEL",                    \
     .help = "model folder, OWNER/NAME in the cache of the Hugging Face Hub, or "            \
             "name of a model in the models folder; default: the only language model there"}
/* s: a cli_sampling */
#define CLI_SAMPLING(s)                                                                      \
    {"temperature", 'T', "X", .number = &(s).temperature, .max = 1e6, .quiet = true,         \
     .help = "temperature, which divides the logits; 0: the most probable token each time"}, \
    {"top-k", 'k', "N", .integer = &(s).top_k, .max = INT32_MAX, .quiet = true,              \
     .help = "choose among the N most probable tokens only; 0: among all"},                  \
    {"top-p", 'p', "X", .number = &(s).top_p, .max = 1, .above_min = true, .quiet = true,    \
     .help = "choose among the most probable tokens whose probabilities sum to X"},          \
    {"min-p", 0, "X", .number = &(s).min_p, .max = 1, .quiet = true,                         \
     .help = "choose among tokens with at least X times the largest probability"},           \
    {"repetition-penalty", 0, "X", .number = &(s).repetition_penalty, .min = 1e-3, .max = 1e3, .quiet = true, \
     .help = "make tokens that occurred less probable, the prompt's as well; 1: off"},       \
    {"presence-penalty", 0, "X", .number = &(s).presence_penalty, .min = -2, .max = 2, .quiet = true, \
     .help = "subtract X from the logits of tokens that were generated; negative: add"},     \
    {"frequency-penalty", 0, "X", .number = &(s).frequency_penalty, .min = -2, .max = 2, .quiet = true, \
     .help = "subtract X from the logits of tokens for each time that they were generated"}, \
    {"logit-bias", 0, "ID=X", .texts = &(s).bias_text,                                       \
     .help = "add X, from -100 to 100, to the logit of the token with this id; -inf: never choose it; may be given " \
             "repeatedly"},                                                                  \
    {"seed", 's', "N", .integer = &(s).seed, .max = 1e15, .quiet = true,                     \
     .help = "seed of the random tokens; default: another one each time, which is printed"}
#define CLI_STOP(to) {"stop", 0, "TEXT", .texts = (to), .help = "end before this text; may be given repeatedly"}
#define CLI_LOOKUP(to)                                                                       \
    {"lookup", 0, "N", .integer = (to), .max = 64, .quiet = true,                            \
     .help =                                                                                 \
         "prompt lookup decoding: guess up to N tokens from what followed the same words before; faster where a text " \
         "repeats itself, and the same text"}
#define CLI_TOP_LOGPROBS(to)                                                                 \
    {"top-logprobs", 0, "K", .integer = (to), .max = 256, .quiet = true,                     \
     .help = "with --json: also the K most probable tokens at each token, with their log probabilities"}
/* clang-format on */

/* Sets *out to the folder's settings for sampling, changed by the given options, with a random seed if none was given.
 * If `greedy` is true and no option requests sampling, *out is greedy. *out has pointers to s. */
int cli_sampling_read(const cli_language *m, cli_sampling *s, bool greedy, att_sampling *out);
/* Reports how tokens are sampled, as options that repeat it; nothing if they are not. */
void cli_sampling_note(const att_sampling *s, int64_t seed);

/* Checks that the model has at least `top` tokens. */
int cli_top_check(const cli_language *m, int64_t top);
/* Checks that no stop string is empty. */
int cli_stop_check(const cli_texts *stop);
/* Checks that the model has more than `lookup` positions. */
int cli_lookup_check(const cli_language *m, int64_t lookup);

/* Tokens and their log probabilities, for --json. top_ids and top_log_probabilities: [n, top], or NULL. */
typedef struct cli_scored_tokens {
    const int32_t *ids;             /* [n] */
    const float *log_probabilities; /* [n] */
    const int32_t *top_ids;
    const float *top_log_probabilities;
    int64_t n, top;
} cli_scored_tokens;
/* Writes id, token, log_probability and top_logprobs of the token at an index into the open object. */
void cli_token_write(cli_json *j, const cli_language *m, const cli_scored_tokens *t, int64_t at);
/* Writes an array of such objects. */
void cli_tokens_write(cli_json *j, const char *key, const cli_language *m, const cli_scored_tokens *t);

/* Returns how a text ended, for --json: "eos", "stop", "length", "context" or "interrupted". */
const char *cli_generation_end(att_generation_end end);

/* Checks that a prompt of this number of tokens can be continued. what: "the prompt", "line 3". */
int cli_prompt_check(const cli_language *m, const char *what, int64_t tokens);

#endif
