/* attend serve: answers requests over HTTP. Another program does so, attend-serve, so that the tool does not load
 * libmicrohttpd, with the libraries that that loads. The program has this table as well. */
#include "cli/serve.h"

serve_settings cli_serve_settings = {.host = "127.0.0.1",
                                     .port = 8080,
                                     .max_connections = 512,
                                     .max_body = 32,
                                     .max_memory = 1024,
                                     .max_inputs = 2048,
                                     .max_waiting = 1 << 20,
                                     .max_cache = 2048,
                                     .timeout = 300,
                                     .grace = 30,
                                     .step_ms = 30,
                                     .step_tokens = 16384};

static const cli_option options[] = {
    {"model", 'm', "MODEL", .texts = &cli_serve_settings.models,
     .help =
         "model folder, OWNER/NAME in the cache of the Hugging Face Hub, or name of a model in the models folder or "
         "of one that comes with attend; may be given repeatedly; default: all of these two"},
    {"alias", 0, "NAME=MODEL", .texts = &cli_serve_settings.aliases,
     .help = "another name of a model, such as text-embedding-3-small=all-MiniLM-L6-v2, for programs that ask for "
             "nothing else; may be given repeatedly"},
    {"host", 0, "ADDRESS", .text = &cli_serve_settings.host,
     .help = "address to listen on; 0.0.0.0: all of the machine, for which a key is needed"},
    {"port", 0, "N", .integer = &cli_serve_settings.port, .max = 65535,
     .help = "port to listen on; 0: any that is free"},
    {"api-key", 0, "KEY", .texts = &cli_serve_settings.keys, .env = "ATTEND_API_KEY",
     .help = "refuse requests without this key, or another of these; may be given repeatedly. Others on the machine "
             "can see options: prefer the file or the variable"},
    {"api-key-file", 0, "FILE", .text = &cli_serve_settings.key_file, .quiet = true, .help = "keys, one a line"},
    {"insecure", 0, NULL, .flag = &cli_serve_settings.insecure,
     .help = "let everybody ask who reaches an address beyond this machine"},
    {"allow-host", 0, "NAME", .texts = &cli_serve_settings.hosts,
     .help = "accept requests for this host, beside those of the loopback; may be given repeatedly"},
    {"cors-origin", 0, "URL", .texts = &cli_serve_settings.origins,
     .help = "let web pages of this origin ask, such as https://example.org; \"*\": of any; may be given repeatedly"},
    {"max-connections", 0, "N", .integer = &cli_serve_settings.max_connections, .min = 1, .max = 65536,
     .help = "connections at a time; further ones are answered 503"},
    {"max-body", 0, "MB", .integer = &cli_serve_settings.max_body, .min = 1, .max = 65536,
     .help = "size of a request; larger ones are answered 413"},
    {"max-memory", 0, "MB", .integer = &cli_serve_settings.max_memory, .min = 1, .max = 1 << 20,
     .help = "memory for the bodies, images, vectors, scores, tokens and generated texts of all requests together; "
             "beyond it they are answered 503"},
    {"max-inputs", 0, "N", .integer = &cli_serve_settings.max_inputs, .min = 1, .max = 1 << 20,
     .help = "texts of a request"},
    {"max-cache", 0, "MB", .integer = &cli_serve_settings.max_cache, .min = 1, .max = 1 << 20,
     .help = "memory for the keys and values of the texts that a language model generates (KV cache); texts beyond it "
             "wait"},
    {"max-waiting", 0, "N", .integer = &cli_serve_settings.max_waiting, .min = 1, .max = 1 << 30,
     .help = "tokens that wait; further requests are answered 429"},
    {"timeout", 0, "SECONDS", .integer = &cli_serve_settings.timeout, .min = 1, .max = 86400,
     .help =
         "time of a request: one that takes longer to arrive is answered 408, one that takes longer to compute 504"},
    {"grace", 0, "SECONDS", .integer = &cli_serve_settings.grace, .max = 86400,
     .help = "time for requests to end after SIGTERM or Ctrl-C"},
    {"step-ms", 0, "MS", .integer = &cli_serve_settings.step_ms, .min = 1, .max = 60000,
     .help = "time to compute at once: what a new request waits at most for others, unless one text takes longer"},
    {"step-tokens", 0, "N", .integer = &cli_serve_settings.step_tokens, .min = 1, .max = 1 << 20,
     .help = "tokens to compute at once, at most"},
    CLI_TYPES(cli_serve_settings.types),
    CLI_THREADS(&cli_serve_settings.threads),
    {0},
};

#ifndef ATT_HTTP
static int run(int n, char **arguments)
{
    (void)n;
    (void)arguments;
    return cli_fail(
        "this attend was built without libmicrohttpd, which serve needs: install it (libmicrohttpd-dev) and "
        "build attend anew");
}
#endif

const cli_command cli_serve = {
    .name = "serve",
    .summary = "serve models over HTTP: embeddings and more, by OpenAI's interface",
    .details =
        "Serves models of any kind in one process, until Ctrl-C or SIGTERM. Requests of all connections share one "
        "queue "
        "and one loop that computes with all threads, so that many clients are as fast as one with many texts; results "
        "have the same bits whoever else asks.\n\n"
        "Programs that know OpenAI's interface need its address alone: http://127.0.0.1:8080/v1. docs/SERVE.md has "
        "the routes, their fields, and the limits; GET /openapi.json has them for programs, and /metrics counts for "
        "Prometheus. \n\n"
        "It listens on this machine alone. Beyond it a key is needed, and a proxy with TLS should be before it.\n\n"
        "Prints its address on standard output when all models are open, and a line of JSON for each request on "
        "standard error (--quiet: none), without the texts.",
    .examples = "attend serve\n"
                "attend serve -m all-MiniLM-L6-v2 --port 8081\n"
                "attend serve -m tatoeba-de-en --cors-origin https://example.org\n"
                "attend serve -m all-MiniLM-L6-v2 --alias text-embedding-3-small=all-MiniLM-L6-v2\n"
                "ATTEND_API_KEY=$(cat key) attend serve --host 0.0.0.0",
    .options = options,
    .see = "embed|rerank|translate|fetch",
#ifdef ATT_HTTP
    .program = "attend-serve",
#else
    .run = run,
#endif
};
