/* attend convert: a language model to a folder for transformers, or to a .gguf file for llama.cpp. */
#include "cli/base/command.h"
#include "cli/base/progress.h"
#include "cli/base/signals.h"
#include "cli/model/model.h"

#include <attend_language.h>

#include <string.h>

static const char *output;
static int dtype = -1;
static int64_t threads;

static const cli_option options[] = {
    {"output", 'o', "FOLDER|FILE.gguf", .text = &output, .writes = true, .required = true,
     .help =
         "folder to write, which must not exist or be empty; or file, whose name ends in .gguf, and which is replaced"},
    {"dtype", 0, "f32|f16|bf16|int8|int4", .choice = &dtype,
     .help = "type of the weights; default: int8 in a .gguf file, f32 in a folder"},
    CLI_THREADS(&threads),
    {0},
};

static att_status convert(att_ctx *ctx, const char *model, bool to_gguf)
{
    static const att_dtype dtypes[] = {ATT_F32, ATT_F16, ATT_BF16, ATT_Q8_0, ATT_Q4_0};
    cli_share p = cli_share_of_call("% written", 100);
    const att_gguf_options *o = ATT_OPTIONS(att_gguf_options,
                                            .dtype = dtype >= 0 ? dtypes[dtype]
                                                     : to_gguf  ? ATT_Q8_0
                                                                : ATT_F32,
                                            .progress = cli_share_report, .user = &p);
    const att_status s = to_gguf ? att_gguf_write(ctx, model, output, o) : att_gguf_convert(ctx, model, output, o);
    cli_share_end(&p);
    return s;
}

static int run(int n, char **arguments)
{
    enum { INT8 = 3, INT4 };
    const bool to_gguf = cli_has_extension(output, ".gguf");
    att_ctx *ctx = NULL;
    att_model_path model;
    (void)n;
    if (!strcmp(output, "-"))
        return cli_misuse("--output -: standard output is not supported; give a folder or a file that ends in .gguf");
    if (dtype >= INT8 && !to_gguf)
        return cli_misuse("--dtype %s is for a .gguf file, but %s is a folder; give f32, f16 or bf16",
                          dtype == INT4 ? "int4" : "int8", output);
    int code = cli_model_find(ATT_SUBJECT_LANGUAGE, arguments[0], &model);
    if (!code)
        code = cli_open(&ctx, threads);
    if (!code)
        cli_end_later(); /* a signal cancels the conversion, which then leaves nothing */
    if (!code)
        code = cli_status(ctx, convert(ctx, model.text, to_gguf));
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
    .details =
        "Writes a language model as a folder that `transformers` opens, or as a .gguf file for\n"
        "llama.cpp. MODEL is a folder with model.safetensors, a .gguf file, or a folder with one.\n"
        "What is written appears completely or not at all.\n\n"
        "A folder: f32 has exactly the values of the weights, f16 and bf16 are rounded. That of a\n"
        ".gguf file has config.json, tokenizer.json and the chat template, too.\n\n"
        "A .gguf file: the model is one of llama, mistral, qwen2 and qwen3. int8 is Q8_0 and int4 Q4_0, for matrices\n"
        "whose rows are in whole blocks of 32 (others are F16), as in llama.cpp; vectors are F32.\n"
        "The metadata of another .gguf file (tokenizer, chat template, name) are copied. A file of\n"
        "another type, such as Q4_K_M, is unpacked and quantized anew.",
    .examples = "attend convert SmolLM2-135M-Instruct -o smollm2\n"
                "attend convert smollm2 -o smollm2-q8_0.gguf\n"
                "attend convert qwen2.5-0.5b-instruct-q8_0.gguf -o qwen --dtype bf16",
    .options = options,
    .see = "fetch|info",
    .run = run,
};
