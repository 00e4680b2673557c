/* attend convert: a language model to a folder for transformers, or to a .gguf file for llama.cpp. */
#include "cli/base/command.h"
#include "cli/base/progress.h"
#include "cli/base/signals.h"
#include "cli/model/model.h"

#include <attend_language.h>

#include <string.h>
#include <strings.h>

static const char *output;
static const char *dtype;
static int64_t threads;

typedef struct weight_type {
    const char *name;
    att_dtype dtype;
    bool medium;
} weight_type;

/* The values of --dtype; the first three are those of a folder, too. */
static const weight_type types[] = {
    {"f32", ATT_F32, false},     {"f16", ATT_F16, false},     {"bf16", ATT_BF16, false},  {"int8", ATT_Q8_0, false},
    {"q8_0", ATT_Q8_0, false},   {"q6_k", ATT_Q6_K, false},   {"q5_k_m", ATT_Q5_K, true}, {"q5_k", ATT_Q5_K, true},
    {"q5_k_s", ATT_Q5_K, false}, {"q5_1", ATT_Q5_1, false},   {"q5_0", ATT_Q5_0, false},  {"q4_k_m", ATT_Q4_K, true},
    {"q4_k", ATT_Q4_K, true},    {"q4_k_s", ATT_Q4_K, false}, {"q4_1", ATT_Q4_1, false},  {"q4_0", ATT_Q4_0, false},
    {"int4", ATT_Q4_0, false},
};
enum { TYPES = sizeof types / sizeof *types, OF_FOLDER = 3 };

static const cli_option options[] = {
    {"output", 'o', "FOLDER|FILE.gguf", .text = &output, .writes = true, .required = true,
     .help =
         "folder to write, which must not exist or be empty; or file, whose name ends in .gguf, and which is replaced"},
    {"dtype", 0, "TYPE", .text = &dtype,
     .help = "type of the weights: f32, f16 or bf16, in a .gguf file also int8 or q8_0, q6_k, q5_k_m, q5_k_s, q5_1, "
             "q5_0, q4_k_m, q4_k_s, q4_1, q4_0 or int4; default: int8 in a .gguf file, f32 in a folder"},
    CLI_THREADS(&threads),
    {0},
};

/* Finds the type of --dtype, in letters of either case -> *type. Returns an exit code. */
static int find_type(bool to_gguf, const weight_type **type)
{
    const char *names[TYPES];
    const char *given = dtype ? dtype : to_gguf ? "int8" : "f32";
    int n = 0;
    for (; n < TYPES && strcasecmp(types[n].name, given); n++)
        names[n] = types[n].name;
    cli_hint hint;
    if (n == TYPES)
        return cli_misuse("--dtype: \"%s\" is not a type of weights, such as f16, int8 or q4_k_m%s", given,
                          cli_did_you_mean(&hint, "", given, names, n, ""));
    if (n >= OF_FOLDER && !to_gguf)
        return cli_misuse("--dtype %s is for a .gguf file, but %s is a folder; give f32, f16 or bf16", given, output);
    *type = &types[n];
    return CLI_DONE;
}

static att_status convert(att_ctx *ctx, const char *model, bool to_gguf, const weight_type *type)
{
    cli_share p = cli_share_of_call("% written", 100);
    const att_gguf_options *o = ATT_OPTIONS(att_gguf_options, .dtype = type->dtype, .medium = type->medium,
                                            .progress = cli_share_report, .user = &p);
    const att_status s = to_gguf ? att_gguf_write(ctx, model, output, o) : att_gguf_convert(ctx, model, output, o);
    cli_share_end(&p);
    return s;
}

static int run(int n, char **arguments)
{
    const bool to_gguf = cli_has_extension(output, ".gguf");
    const weight_type *type = NULL;
    att_ctx *ctx = NULL;
    att_model_path model;
    (void)n;
    if (!strcmp(output, "-"))
        return cli_misuse("--output -: standard output is not supported; give a folder or a file that ends in .gguf");
    int code = find_type(to_gguf, &type);
    if (!code)
        code = cli_model_find(ATT_SUBJECT_LANGUAGE, arguments[0], &model);
    if (!code)
        code = cli_open(&ctx, threads);
    if (!code)
        cli_end_later(); /* a signal cancels the conversion, which then leaves nothing */
    if (!code)
        code = cli_status(ctx, convert(ctx, model.text, to_gguf, type));
    if (!code)
        printf("%s is written\n", output);
    att_close(ctx);
    return code;
}

const cli_command cli_convert = {
    .name = "convert",
    .summary = "convert a language model to a folder, or to a GGUF file",
    .arguments = "MODEL",
    .min_arguments = 1,
    .max_arguments = 1,
    .details = "Writes a language model as a folder that `transformers` opens, or as a .gguf file for\n"
               "llama.cpp. MODEL is a folder with model.safetensors, a .gguf file, or a folder with one.\n"
               "What is written appears completely or not at all.\n\n"
               "A folder: f32 has exactly the values of the weights, f16 and bf16 are rounded. That of a\n"
               ".gguf file has config.json, tokenizer.json and the chat template, too.\n\n"
               "A .gguf file: the model is one of gpt2, llama, mistral, olmo2, phi3, qwen2 and qwen3.\n"
               "int8 is q8_0 and int4 q4_0.\n"
               "Vectors are F32. Types with k have blocks of 256 and the least error for their size; the output\n"
               "layer is then Q6_K, and q4_k_m and q5_k_m have Q6_K also in half of the layers for values and\n"
               "the feed-forward output, as llama.cpp's files Q4_K_M and Q5_K_M. A matrix whose rows are not in\n"
               "whole blocks is Q5_0 instead of Q4_K, Q5_1 instead of Q5_K, Q8_0 instead of Q6_K, and F16\n"
               "instead of a type with blocks of 32, as in llama.cpp. The metadata of another .gguf file\n"
               "(tokenizer, chat template, name) are copied. Weights of other types are\n"
               "quantized anew.",
    .examples = "attend convert SmolLM2-135M-Instruct -o smollm2\n"
                "attend convert smollm2 -o smollm2-q8_0.gguf\n"
                "attend convert llama-3.2-1b -o llama-3.2-1b-q4_k_m.gguf --dtype q4_k_m\n"
                "attend convert qwen2.5-0.5b-instruct-q8_0.gguf -o qwen --dtype bf16",
    .options = options,
    .see = "fetch|info",
    .run = run,
};
