/* Models of the Hugging Face Hub: attend fetch OWNER/NAME, against a hub on this machine
 * (tests/fixtures/hub_server.py), which is honest, and then cuts, lies, refuses and waits. */
#include "fixtures/tool.h"

#define COMMIT "0123456789abcdef0123456789abcdef01234567"
#define SNAPSHOT "models--ann--tiny/snapshots/" COMMIT

static bool has_curl; /* the tool was built with libcurl */

/* Of a command line: `fault WORD...` has the hub do something wrong, from which it recovers by `fault`; `again` empties
 * cache and log; `files` lists the cache without its locks. */
#define FUNCTIONS                                                                                                      \
    "fault() { echo \"$*\" >hub/fault; }; again() { rm -rf cache hub/log; }; "                                         \
    "files() { (cd cache && find . -name .locks -prune -o ! -type d -print | sort); }; "

/* Runs a line with these functions and the hub. */
static int hub(const char *line)
{
    char all[4096];
    snprintf(all, sizeof all, FUNCTIONS "%s", line);
    return tool(all);
}

static void refused(const char *line, int code, const char *part)
{
    char all[4096];
    snprintf(all, sizeof all, FUNCTIONS "%s", line);
    assert_refused(all, code, part);
}

static int hub_setup(void **state)
{
    assert_int_equal(tool_setup(state), 0);
    has_curl = tool("test -x ${A}-fetch") == 0;
    if (!has_curl || tool("python3 -c 'import http.server, ssl'"))
        return 0;
    static const char *const variables[] = {"HF_TOKEN",       "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH",
                                            "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE",   "SSL_CERT_FILE"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    setenv("no_proxy", "*", 1);
    setenv("HF_HUB_CACHE", "cache", 1);
    setenv("HF_HOME", "home", 1);
    setenv("ATTEND_MODELS", "none", 1);
    char script[4096];
    assert_non_null(realpath("tests/fixtures/hub_server.py", script));
    setenv("HUB", script, 1);
    assert_int_equal(
        tool("t=hub/models/ann/tiny; mkdir -p $t/onnx hub/models/ann/large hub/models/ann/quantized/Q4 "
             "hub/models/ann/one "
             "hub/models/ann/pickle hub/models/ann/lora && cp -r *.json *.txt *.safetensors 1_* $t && "
             "echo card | tee $t/README.md $t/1_Pooling/README.md >$t/onnx/model.onnx && echo x >$t/pytorch_model.bin "
             "&& "
             "echo '{\"weight_map\": {\"a\": \"b 1.safetensors\", \"c\": \"b 2.safetensors\"}}' "
             ">hub/models/ann/large/model.safetensors.index.json && seq 900 >hub/models/ann/large/'b 1.safetensors' && "
             "seq 99 >hub/models/ann/large/'b 2.safetensors' && echo no >hub/models/ann/large/consolidated.safetensors "
             "&& "
             "cd hub/models/ann && echo {} | tee large/config.json quantized/config.json pickle/config.json "
             ">lora/adapter_config.json && echo 1 >quantized/a-Q4_K_M.gguf && echo 22 >quantized/a-Q8_0.gguf && "
             "for i in 1 2 3; do echo 333 >quantized/Q4/big-0000$i-of-00003.gguf; done && echo 4 "
             ">quantized/half-00001-of-00002.gguf && cp $D/config.json one && echo 5 >one/only.GGUF && echo 6 "
             ">pickle/pytorch_model.bin && echo 7 >lora/adapter_model.safetensors"),
        0);
    return tool("python3 $HUB hub >hub/out 2>&1 & await 'test -s hub/ports'");
}

/* Skips a test without libcurl or Python, and has the hub honest, its log and the cache empty. */
static void begin(void)
{
    static char endpoint[64];
    if (!has_curl || tool("test -s hub/ports"))
        skip();
    assert_int_equal(hub("fault; again; cut -d ' ' -f 1 hub/ports"), 0);
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%d/", atoi(tool_out));
    setenv("HF_ENDPOINT", endpoint, 1);
}

/* ---- what is downloaded */

static void a_model_is_laid_out_as_huggingface_hub_does(void **state)
{
    (void)state;
    begin();
    assert_int_equal(hub("$A fetch ann/tiny"), 0);
    assert_string_equal(tool_out, "ann/tiny is now in cache/" SNAPSHOT "\n");
    assert_has(tool_err, "attend: downloading ann/tiny (");
    assert_int_equal(hub("cd cache/" SNAPSHOT
                         " && for f in $(find . -type l); do cmp $f $D/hub/models/ann/tiny/$f || exit; "
                         "done && cat ../../refs/main && find . -type l | sort && readlink config.json "
                         "1_Pooling/config.json | sed 's/[0-9a-f]\\{40\\}/HASH/'"),
                     0);
    assert_string_equal(
        tool_out, COMMIT
        "./1_Pooling/config.json\n./config.json\n./model.safetensors\n./modules.json\n./sentence_bert_config.json\n"
        "./tokenizer_config.json\n./vocab.txt\n../../blobs/HASH\n../../../blobs/HASH\n");
    assert_int_equal(hub("echo a b >in; $A embed -m ann/tiny in >1 && $A embed -m $D in | cmp - 1"), 0);
    assert_int_equal(hub("rm hub/log; $A fetch ann/tiny && cat hub/log"), 0);
    assert_has(tool_out, "ann/tiny is already in cache/" SNAPSHOT "\n");
    assert_int_equal(count(tool_out, "\n"), 2); /* one request, for the list */
    assert_string_equal(tool_err, "");
}

static void the_result_as_json_has_all_files(void **state)
{
    (void)state;
    begin();
    assert_int_equal(hub("$A fetch --json ann/large@v/1 2>/dev/null"), 0);
    json_t *v = line_json(0);
    assert_string_equal(json_string_value(json_object_get(v, "name")), "ann/large");
    assert_string_equal(json_string_value(json_object_get(v, "revision")), "v/1");
    assert_string_equal(json_string_value(json_object_get(v, "commit")), COMMIT);
    assert_int_equal(json_array_size(json_object_get(v, "files")), 4);
    double bytes = 0;
    for (size_t i = 0; i < 4; i++)
        bytes += number(json_array_get(json_object_get(v, "files"), i), "bytes");
    assert_true(bytes == number(v, "received"));
    json_decref(v);
    assert_int_equal(hub("files"), 0);
    assert_has(tool_out, "/refs/v/1\n");
    assert_has(tool_out, "/.no_exist/" COMMIT "/modules.json\n");
    assert_has(tool_out, "/b 2.safetensors\n");
    assert_int_equal(count(tool_out, "consolidated"), 0);
}

static void huggingface_hub_finds_it(void **state)
{
    (void)state;
    begin();
    if (tool("${ATTEND_PEERS_PYTHON:-python3} -c 'import huggingface_hub'"))
        skip();
    assert_int_equal(
        hub("$A fetch ann/tiny && $A fetch ann/large && $A fetch ann/quantized a-Q8_0.gguf && "
            "${ATTEND_PEERS_PYTHON:-python3} -c '\n"
            "from huggingface_hub import hf_hub_download, snapshot_download, scan_cache_dir\n"
            "path = snapshot_download(\"ann/tiny\", local_files_only=True)\n"
            "assert path.endswith(\"/cache/" SNAPSHOT "\"), path\n"
            "for name in \"config.json\", \"1_Pooling/config.json\", \"model.safetensors\":\n"
            "    assert hf_hub_download(\"ann/tiny\", name, local_files_only=True) == path + \"/\" + name\n"
            "hf_hub_download(\"ann/quantized\", \"a-Q8_0.gguf\", local_files_only=True)\n"
            "from huggingface_hub import _CACHED_NO_EXIST, try_to_load_from_cache\n"
            "assert try_to_load_from_cache(\"ann/large\", \"modules.json\") is _CACHED_NO_EXIST\n"
            "cache = scan_cache_dir(\"cache\")\n"
            "assert not cache.warnings and len(cache.repos) == 3, cache'"),
        0);
    /* and the other way: what it has downloaded is there already */
    assert_int_equal(hub("again; ${ATTEND_PEERS_PYTHON:-python3} -c '\n"
                         "from huggingface_hub import hf_hub_download\n"
                         "hf_hub_download(\"ann/large\", \"b 1.safetensors\", revision=\"" COMMIT
                         "\")' && rm hub/log && "
                         "$A fetch ann/large && ! grep b%201 hub/log"),
                     0);
}

static void revisions(void **state)
{
    (void)state;
    begin();
    assert_int_equal(hub("$A fetch ann/one@" COMMIT " && files"), 0);
    assert_int_equal(count(tool_out, "refs"), 0);
    refused("$A fetch ann/one@v9", 1, "ann/one has no revision \"v9\" at 127.0.0.1:");
    refused("$A fetch ann/one@../v", 2, "\"ann/one@../v\" is not the name of a model of the Hugging Face Hub");
    refused("$A fetch ann/none", 1, " has no model ann/none\n");
    assert_int_equal(hub("$A fetch old/tiny"), 0); /* a model that was renamed is redirected */
}

static void a_gguf_file_is_chosen(void **state)
{
    (void)state;
    begin();
    assert_int_equal(hub("$A fetch ann/quantized"), 2);
    assert_string_equal(tool_out, "       0.0 MB  Q4/big-00001-of-00003.gguf\n       0.0 MB  a-Q4_K_M.gguf\n"
                                  "       0.0 MB  a-Q8_0.gguf\n       0.0 MB  half-00001-of-00002.gguf\n");
    assert_string_equal(tool_err, "attend: ann/quantized has 4 .gguf files; name one: attend fetch ann/quantized "
                                  "FILE.gguf\n");
    assert_int_equal(hub("$A fetch --json ann/quantized 2>/dev/null"), 2);
    json_t *v = json_loads(tool_out, 0, NULL);
    assert_int_equal(json_array_size(v), 4);
    assert_true(number(json_array_get(v, 0), "bytes") == 12); /* of all parts */
    json_decref(v);
    assert_int_equal(
        hub("$A fetch ann/quantized a-Q8_0.gguf && $A fetch ann/quantized Q4/big-00002-of-00003.gguf && files"), 0);
    assert_has(tool_out, COMMIT "/a-Q8_0.gguf\n");
    assert_has(tool_out, COMMIT "/Q4/big-00001-of-00003.gguf\n");
    assert_int_equal(count(tool_out, "-of-00003.gguf"), 4);
    assert_int_equal(count(tool_out, "config.json"), 0);
    assert_int_equal(hub("$A fetch ann/one"), 0);
    assert_has(tool_out, COMMIT "/only.GGUF\n");
    refused("$A fetch ann/quantized half-00001-of-00002.gguf", 1, "half-00001-of-00002.gguf: part 2 is missing");
    refused("$A fetch ann/quantized a-q8_0.gguf", 1, "has no file \"a-q8_0.gguf\"; did you mean \"a-Q8_0.gguf\"?");
    refused("$A fetch ann/tiny x.gguf", 1, "ann/tiny has no file \"x.gguf\", nor any other .gguf file");
    refused("$A fetch ann/tiny model.safetensors", 2, "\"model.safetensors\" is not the name of a .gguf file");
}

static void models_without_weights_that_attend_reads_are_refused(void **state)
{
    (void)state;
    begin();
    refused(
        "$A fetch ann/pickle", 1,
        "ann/pickle has no model.safetensors and no .gguf file, but pytorch_model.bin: a pickle, which attend does not "
        "open, as that can run programs; save it again, with transformers: from_pretrained(\"ann/pickle\") and "
        "save_pretrained(FOLDER)\n");
    refused("$A fetch ann/lora", 1, "but adapter_config.json: an adapter of another model");
    assert_int_equal(hub("! test -e cache"), 0);
}

/* ---- the token */

static void the_token_goes_to_the_hub_alone(void **state)
{
    (void)state;
    begin();
    static const char *const ways[] = {"HF_TOKEN=hf_one", "HF_TOKEN=' hf_one\n'", "HF_TOKEN_PATH=in", "HF_HOME=."};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char line[256];
        snprintf(line, sizeof line,
                 "again; fault token hf_one; echo hf_one | tee in >token; %s $A fetch ann/tiny; cat hub/log", ways[i]);
        assert_int_equal(hub(line), 0);
        assert_int_equal(count(tool_out, "\nlarge "), 1);
        assert_int_equal(count(tool_out, "token Bearer hf_one range"), count(tool_out, "hub /"));
        assert_int_equal(count(tool_out, "large "), count(tool_out, "token None"));
    }
    assert_int_equal(hub("rm token"), 0);
    refused("HF_TOKEN='a b' $A fetch ann/tiny", 1, "what HF_TOKEN has is not a token");
    refused("printf 'a\\nX-Evil: 1' >in; HF_TOKEN_PATH=in $A fetch ann/tiny", 1, "what in has is not a token");
    refused("HF_TOKEN_PATH=. $A fetch ann/tiny", 1, ".: Is a directory");
}

static void a_refusal_says_which_token_is_needed(void **state)
{
    (void)state;
    begin();
    refused("fault token hf_one; $A fetch ann/tiny", 1, "ann/tiny is gated: accept its license at http://127.0.0.1:");
    assert_has(tool_err, "/ann/tiny, logged in, and set HF_TOKEN to a token of yours");
    refused("HF_TOKEN=hf_two $A fetch ann/tiny", 1, "see that the token may read gated models: it is that of HF_TOKEN");
    refused("fault status 401 RepoNotFound; $A fetch ann/tiny", 1, " has no model ann/tiny, or only for those who may");
    refused("HF_TOKEN=x $A fetch ann/tiny", 1, " refuses the token of HF_TOKEN: make another one at ");
    refused("fault status 403; HF_TOKEN=x $A fetch ann/tiny", 1, " does not let the token of HF_TOKEN read ann/tiny");
    refused("fault status 404; $A fetch ann/tiny", 1, " has no model ann/tiny\n");
    refused("fault status 418; $A fetch ann/tiny", 1, "ann/tiny: 127.0.0.1:");
    assert_has(tool_err, " answers with status 418\n");
}

/* ---- a hub or a network with faults */

/* Returns whether the cache has no model, as far as names tell. */
static void assert_nothing_installed(void)
{
    assert_int_equal(hub("! test -e cache || files"), 0);
    assert_int_equal(count(tool_out, "snapshots"), 0);
    assert_int_equal(count(tool_out, "refs"), 0);
}

static void a_cut_download_is_continued(void **state)
{
    (void)state;
    begin();
    static const char same[] = " && cmp cache/" SNAPSHOT "/model.safetensors model.safetensors && cat hub/log";
    char line[512];
    snprintf(line, sizeof line, "fault cut 2; $A fetch ann/tiny%s", same);
    assert_int_equal(hub(line), 0);
    assert_int_equal(count(tool_err, "trying again in 0 s"), 2);
    assert_int_equal(count(tool_out, "range bytes="), 4); /* at the hub, then where it leads */
    snprintf(line, sizeof line, "again; fault cut 1; $A fetch ann/tiny 2>/dev/null >1; fault whole 0; : >hub/log%s",
             same);
    assert_int_equal(hub(line), 0);
    /* silence counts as a cut; and a server that has no ranges sends all again */
    snprintf(line, sizeof line, "again; fault stop 1 4; HF_HUB_DOWNLOAD_TIMEOUT=1 $A fetch ann/tiny%s", same);
    assert_int_equal(hub(line), 0);
    assert_has(tool_err, " sent nothing, or nearly so, for 1 s; trying again");
    /* a part of the list is of no use */
    assert_int_equal(hub("again; fault part 1; $A fetch ann/tiny; grep -c 'hub /api/.* range None' hub/log"), 0);
    assert_has(tool_out, "\n2\n");
}

/* Returns the name of the blob of the weights. */
static const char *blob(void)
{
    static char path[256];
    assert_int_equal(hub("sha256sum <model.safetensors | cut -c-64 | tr -d '\\n'"), 0);
    snprintf(path, sizeof path, "cache/models--ann--tiny/blobs/%.64s", tool_out);
    return path;
}

static void what_an_earlier_process_has_left_is_continued_if_it_is_right(void **state)
{
    (void)state;
    begin();
    setenv("BLOB", blob(), 1);
    static const struct {
        const char *left, *requests; /* what is in the unfinished file, and the ranges that are requested for */
    } cases[] = {{"head -c 100 model.safetensors", "range bytes=100-\n"},
                 {"cat model.safetensors", ""},
                 {"head -c 100 /dev/zero", "range bytes=100-\nrange None\n"},
                 {"cat model.safetensors model.safetensors", "range None\n"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[512];
        snprintf(line, sizeof line,
                 "again; mkdir -p ${BLOB%%/*}; %s >$BLOB.incomplete; $A fetch ann/tiny >1 2>2 && cmp $BLOB "
                 "model.safetensors && "
                 "! test -e $BLOB.incomplete && sed -n 's/^large.*range/range/p' hub/log",
                 cases[i].left);
        assert_int_equal(hub(line), 0);
        assert_string_equal(tool_out, cases[i].requests);
    }
    assert_int_equal(
        hub("again; mkdir -p ${BLOB%/*}; head -c 9 model.safetensors >$BLOB.incomplete; fault whole 0; $A fetch "
            "ann/tiny && cmp $BLOB model.safetensors"), /* a server without ranges */
        0);
}

static void what_is_not_as_listed_is_refused(void **state)
{
    (void)state;
    begin();
    refused("fault wrong; $A fetch --quiet ann/tiny", 1, "model.safetensors is damaged: 127.0.0.1:");
    assert_has(tool_err, "; nothing was installed\n");
    assert_nothing_installed();
    refused("fault longer; $A fetch --quiet ann/tiny", 1, " sends more than the ");
    assert_nothing_installed();
    refused("fault size 1; $A fetch --quiet ann/tiny", 1, "model.safetensors: 127.0.0.1:");
    assert_has(tool_err, ", but has listed ");
    assert_nothing_installed();
    refused("fault size -1; $A fetch --quiet ann/tiny", 1, ", but has listed ");
    refused("fault size 999999999999; $A fetch --quiet ann/tiny", 1,
            "ann/tiny needs 1000000.0 MB, but cache/models--ann--tiny has");
    refused("fault size 9999999999999; $A fetch --quiet ann/tiny", 1, "without a size, or with one that no file has");
    assert_int_equal(hub("fault; $A fetch --quiet ann/tiny"), 0);
}

static void names_that_lead_elsewhere_are_refused(void **state)
{
    (void)state;
    begin();
    static const char *const names[] = {"../x", "/etc/x", "a/../../x", "a//b",     "",         ".",
                                        "a/.",  "a/",     "a\\u000ab", "a\\u001b", "a\\u007f", "a\\u0000.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char line[256];
        snprintf(line, sizeof line, "printf '%%s' 'lists \"%s\"' >hub/fault; $A fetch ann/tiny", names[i]);
        refused(line, 1, i == 11 ? "127.0.0.1:" : ", which is not a path within a model\n");
    }
    static const char *const keys[] = {"sha", "siblings", "size", "blobId", "rfilename"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char line[128];
        snprintf(line, sizeof line, "fault without %s; $A fetch ann/tiny", keys[i]);
        refused(line, 1, "127.0.0.1:");
    }
    assert_int_equal(hub("! test -e cache"), 0);
}

static void a_hub_that_is_busy_is_asked_again(void **state)
{
    (void)state;
    begin();
    assert_int_equal(hub("fault busy 2 429 Retry-After=0; $A fetch ann/tiny"), 0);
    assert_int_equal(count(tool_err, "answers with status 429; trying again in 0 s"), 2);
    assert_int_equal(hub("again; fault busy 1 503 Retry-After=1; $A fetch ann/tiny"), 0);
    assert_has(tool_err, "status 503; trying again in 1 s");
    assert_int_equal(hub("again; fault busy 1 429 'RateLimit=\"api\";r=0;t=1'; $A fetch ann/tiny"), 0);
    assert_has(tool_err, "status 429; trying again in 1 s");
    assert_int_equal(hub("again; fault busy 99 429 Retry-After=0; $A fetch ann/tiny"), 1);
    assert_int_equal(count(tool_err, "trying again"), 5);
    assert_has(tool_err, "\nattend: ann/tiny: 127.0.0.1:");
    refused("again; fault busy 9 429 Retry-After=9999; $A fetch ann/tiny", 1,
            ", and asks to wait for more than five minutes");
}

static void answers_that_lead_nowhere_are_refused(void **state)
{
    (void)state;
    begin();
    refused("fault page; $A fetch ann/tiny", 1,
            " answers with a page for a browser instead of JSON: does HF_ENDPOINT name");
    refused("fault loop; $A fetch ann/tiny", 1, "Maximum (10) redirects followed");
    refused("HF_ENDPOINT=ftp://x $A fetch ann/tiny", 1,
            "HF_ENDPOINT is \"ftp://x\", which is not an address such as https://");
    refused("HF_ENDPOINT=https://a:b@x $A fetch ann/tiny", 1, "which is not an address such as https://");
    refused("HF_ENDPOINT=https://x/?q $A fetch ann/tiny", 1, "which is not an address such as https://");
    refused("HF_ENDPOINT=x:y $A fetch ann/tiny", 1, "HF_ENDPOINT is \"x:y\"");
    refused("HF_ENDPOINT=http://127.0.0.1:1 $A fetch ann/tiny", 1, "ann/tiny: 127.0.0.1:1: Failed to connect");
}

/* The large files are on a port without TLS. */
static void from_https_nothing_leads_to_http(void **state)
{
    (void)state;
    begin();
    if (tool("openssl version"))
        skip();
    assert_int_equal(
        hub("mkdir -p safe && ln -sfn ../hub/models safe/models && openssl req -x509 -newkey rsa:2048 -nodes -days 2 "
            "-subj "
            "/CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 -keyout key -out certificate 2>/dev/null && cat key "
            "certificate >safe/both && { python3 $HUB safe safe/both >safe/out 2>&1 & } && await 'test -s safe/ports'"),
        0);
    static const char to[] = "HF_TOKEN=x HF_ENDPOINT=https://127.0.0.1:$(cut -d ' ' -f 1 safe/ports) ";
    char line[256];
    snprintf(line, sizeof line, "%s SSL_CERT_FILE=certificate $A fetch --quiet ann/tiny", to);
    refused(line, 1, " leads to an address that is not https, which is refused");
    assert_int_equal(hub("! grep ^large safe/log"), 0);
    snprintf(line, sizeof line, "%s $A fetch --quiet ann/tiny", to);
    refused(line, 1, "SSL certificate problem");
    assert_nothing_installed();
}

/* ---- without a hub */

static void offline_the_cache_counts(void **state)
{
    (void)state;
    begin();
    refused("HF_HUB_OFFLINE=1 $A fetch ann/large", 1,
            "HF_HUB_OFFLINE is set, so that nothing is downloaded, and ann/large is not in the cache");
    assert_int_equal(hub("! test -e hub/log; $A fetch --quiet ann/large && HF_HUB_OFFLINE=yes $A fetch ann/large"), 0);
    assert_has(tool_out, "\nann/large is already in cache/models--ann--large/snapshots/" COMMIT "\n");
    assert_int_equal(hub("HF_ENDPOINT=http://127.0.0.1:1 $A fetch ann/large"), 0);
    assert_has(tool_out, "ann/large is already in cache/");
    assert_has(tool_err, "; whether it has changed is not known\n");
    refused("rm cache/*/snapshots/*/b\\ 2*; HF_HUB_OFFLINE=1 $A fetch ann/large", 1,
            COMMIT ", but without b 2.safetensors, and HF_HUB_OFFLINE is set");
    refused("HF_HUB_OFFLINE=1 $A fetch ann/large a.gguf", 1, COMMIT ", but without a.gguf, and HF_HUB_OFFLINE is set");
}

/* ---- other processes, and signals */

static void an_interrupted_download_is_continued(void **state)
{
    (void)state;
    begin();
    setenv("BLOB", blob(), 1);
    assert_int_equal(hub("fault hang 1 60; rm -f hub/hangs; env --default-signal=INT $A fetch ann/tiny & await 'test "
                         "-e hub/hangs && "
                         "test -s $BLOB.incomplete'; kill -INT $!; wait $!"),
                     130);
    assert_nothing_installed();
    assert_int_equal(hub("rm hub/log; $A fetch ann/tiny && grep -c 'range bytes=[1-9]' hub/log"), 0);
    assert_has(tool_out, "\n2\n");
}

static void a_second_process_waits_for_the_first(void **state)
{
    (void)state;
    begin();
    setenv("BLOB", blob(), 1);
    assert_int_equal(
        hub("fault hang 1 60; rm -f hub/hangs; $A fetch ann/tiny >1 2>2 & first=$!; await 'test -e hub/hangs'; "
            "$A fetch ann/tiny >3 2>4 & await 'grep waiting 4' && kill $first; wait $!; cat 4; cat 3 >&2"),
        0);
    assert_has(tool_out, "another process downloads model.safetensors: waiting for it\n");
    assert_has(tool_err, "ann/tiny is now in ");
}

static void without_libcurl_another_command_is_named(void **state)
{
    (void)state;
    if (has_curl)
        skip();
    refused(
        "$A fetch ann/tiny@v1 x.gguf", 1,
        "built without libcurl, which downloads from the Hugging Face Hub: hf download ann/tiny x.gguf --revision v1 ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_laid_out_as_huggingface_hub_does),
        cmocka_unit_test(the_result_as_json_has_all_files),
        cmocka_unit_test(huggingface_hub_finds_it),
        cmocka_unit_test(revisions),
        cmocka_unit_test(a_gguf_file_is_chosen),
        cmocka_unit_test(models_without_weights_that_attend_reads_are_refused),
        cmocka_unit_test(the_token_goes_to_the_hub_alone),
        cmocka_unit_test(a_refusal_says_which_token_is_needed),
        cmocka_unit_test(a_cut_download_is_continued),
        cmocka_unit_test(what_an_earlier_process_has_left_is_continued_if_it_is_right),
        cmocka_unit_test(what_is_not_as_listed_is_refused),
        cmocka_unit_test(names_that_lead_elsewhere_are_refused),
        cmocka_unit_test(a_hub_that_is_busy_is_asked_again),
        cmocka_unit_test(answers_that_lead_nowhere_are_refused),
        cmocka_unit_test(from_https_nothing_leads_to_http),
        cmocka_unit_test(offline_the_cache_counts),
        cmocka_unit_test(an_interrupted_download_is_continued),
        cmocka_unit_test(a_second_process_waits_for_the_first),
        cmocka_unit_test(without_libcurl_another_command_is_named),
    };
    return cmocka_run_group_tests(tests, hub_setup, tool_teardown);
}
