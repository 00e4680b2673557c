/* attend convert: a .gguf file of llama.cpp to a folder that transformers opens. */
#include "cli/base/cli.h"
#include "cli/base/end.h"

#include <attend_language.h>

static const char *folder;
static int dtype;
static int64_t threads;

static const cli_option options[] = {
    {"output", 'o', "FOLDER", .text = &folder, .required = true,
     .help = "folder to write, which must not exist or be empty"},
    {"dtype", 0, "f32|f16|bf16", .choice = &dtype, .help = "type of the weights"},
    CLI_THREADS(&threads),
    {0},
};

static int run(int n, char **arguments)
{
    static const att_dtype dtypes[] = {ATT_F32, ATT_F16, ATT_BF16};
    att_ctx *ctx = NULL;
    att_model_path model;
    (void)n;
    int code = cli_model_find(CLI_LANGUAGE_MODEL, arguments[0], &model);
    if (!code)
        code = cli_open(&ctx, threads);
    if (!code)
        code = cli_status(
            ctx, att_gguf_convert(ctx, model.text, folder, ATT_OPTIONS(att_gguf_options, .dtype = dtypes[dtype])));
    if (!code)
        printf("%s is written\n", folder);
    att_close(ctx);
    return code;
}

const cli_command cli_convert = {
    .name = "convert",
    .summary = "convert a GGUF model to a folder for transformers",
    .arguments = "MODEL.gguf",
    .min_arguments = 1,
    .max_arguments = 1,
    .details = "Writes a language model in llama.cpp's format as a folder with config.json,\n"
               "model.safetensors, tokenizer.json and the chat template, which this program and\n"
               "`transformers` open. MODEL is a .gguf file, or a model folder with one. The folder\n"
               "appears completely or not at all.\n\n"
               "Architectures: llama, qwen2, qwen3. Weights: F32, F16, BF16, Q8_0, Q4_0, Q4_1;\n"
               "f32 has exactly their values, f16 and bf16 are rounded.",
    .examples = "attend convert SmolLM2-135M-Instruct -o smollm2\n"
                "attend convert qwen2.5-0.5b-instruct-q8_0.gguf -o qwen --dtype bf16",
    .options = options,
    .see = "fetch|info",
    .run = run,
};
