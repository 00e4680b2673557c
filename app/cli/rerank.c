/* attend rerank: scores documents or pairs of texts by a cross-encoder. */
#include "cli/base/json.h"
#include "cli/base/lines.h"
#include "cli/base/output.h"
#include "cli/base/progress.h"
#include "cli/classifier/documents.h"
#include "cli/classifier/reranker.h"
#include "cli/sentence/pairs.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 512 };

static const char *model_name, *corpus_path, *pairs_path, *file;
static int format = CLI_PAIRS_BY_NAME, activation;
static cli_types types;
static int64_t top, max_tokens, threads, skip_bad_lines;
static bool json;

static const cli_option options[] = {
    CLI_TEXT_CLASSIFIER_OPTION(&model_name),
    {"corpus", 'c', "FILE", .text = &corpus_path,
     .help = "documents to rank, one per line, or of a file that ends in .jsonl the \"text\" of each line's object; "
             "\"-\": standard input"},
    {"file", 'f', "FILE", .text = &file, .help = "read queries from this file, one per line; \"-\": standard input"},
    {"pairs", 'p', "FILE", .text = &pairs_path,
     .help = "pairs of texts, one per line: print the score of each pair; a heading may name the columns, as query and "
             "passage; \"-\": standard input"},
    {"format", 0, "tsv|csv", .choice = &format,
     .help = "format of the pairs: tab-separated, or comma-separated with quotes (RFC 4180); default: by the file's "
             "extension"},
    CLI_SKIP_OPTION(&skip_bad_lines, "--pairs"),
    {"top", 'k', "N", .integer = &top, .max = INT32_MAX, .quiet = true,
     .help = "number of documents to print for each query; 0, the default: all"},
    CLI_ACTIVATION_OPTION(&activation),
    CLI_MAX_TOKENS_OPTION(&max_tokens),
    CLI_TYPES(types),
    CLI_THREADS(&threads),
    CLI_JSON(&json),
    {0},
};

/* ---- Queries and documents --------------------------------------------------------- */

static void print_json(const cli_documents *d, const char *query, size_t bytes, const att_ranked_text *best, int64_t n)
{
    cli_json j = cli_json_begin(stdout);
    cli_json_bytes(&j, "query", query, bytes);
    cli_json_array(&j, "results");
    for (int64_t i = 0; i < n; i++) {
        cli_json_object(&j, NULL);
        cli_json_integer(&j, "line", best[i].document + 1);
        cli_json_float(&j, "score", best[i].score);
        cli_json_bytes(&j, "text", d->text[best[i].document], d->bytes[best[i].document]);
        cli_json_end(&j);
    }
    cli_json_close(&j);
}

static void print_plain(const cli_documents *d, const char *query, size_t bytes, const att_ranked_text *best, int64_t n)
{
    static bool again;
    const int digits = snprintf(NULL, 0, "%lld", (long long)d->n);
    fputs(again ? "\n" : "", stdout);
    again = true;
    fwrite(query, 1, bytes, stdout);
    putchar('\n');
    for (int64_t i = 0; i < n; i++) {
        printf("  %8.4f  %*lld  ", (double)best[i].score, digits, (long long)best[i].document + 1);
        fwrite(d->text[best[i].document], 1, d->bytes[best[i].document], stdout);
        putchar('\n');
    }
}

static int answer(cli_reranker *r, const cli_documents *d, const char *query, size_t bytes, att_ranked_text *best)
{
    const int64_t n = top && top < d->n ? top : d->n;
    const int code = cli_reranker_rank(r, query, bytes, d->n, d->text, d->bytes, n, best);
    if (!code)
        (json ? print_json : print_plain)(d, query, bytes, best, n);
    return code;
}

/* Ranks the documents for each query: those of arguments [n], or lines. */
static int answer_all(cli_reranker *r, const cli_documents *d, int n, char **arguments)
{
    cli_lines in = {.fd = -1};
    cli_output out;
    att_ranked_text *best = malloc((size_t)d->n * sizeof *best);
    int code = best ? CLI_DONE : cli_fail_memory();
    if (!code && n)
        cli_lines_of(&in, n, (const char *const *)arguments);
    else if (!code)
        code = cli_lines_open(&in, 1, (char *const *)&file); /* which it keeps */
    cli_output_open(&out, NULL);
    do {
        code = code ? code : cli_lines_next(&in, BLOCK);
        for (int64_t i = 0; !code && i < in.count; i++) {
            code = answer(r, d, in.text[i], in.bytes[i], best);
            code = code ? code : cli_output_flush(&out);
        }
    } while (!code && in.count > 0);
    cli_reranker_note(r);
    cli_lines_close(&in);
    free(best);
    return code;
}

static int run_corpus(cli_reranker *r, int n, char **arguments)
{
    cli_documents d;
    int code = cli_documents_read(&d, corpus_path);
    if (!code)
        code = answer_all(r, &d, n, arguments);
    cli_documents_free(&d);
    return code;
}

/* ---- Pairs ----------------------------------------------------------------------------- */

/* Scores a block of pairs, whose texts alternate. */
static int score(cli_reranker *r, const cli_pairs *p, float *scores)
{
    const char *text[2][BLOCK];
    size_t bytes[2][BLOCK];
    bool truncated[BLOCK];
    for (int64_t i = 0; i < 2 * p->count; i++) {
        text[i % 2][i / 2] = p->text[i];
        bytes[i % 2][i / 2] = p->bytes[i];
    }
    const att_text_classify_options o = {.size = sizeof o,
                                         .pairs = text[1],
                                         .pair_bytes = bytes[1],
                                         .activation = r->activation,
                                         .max_tokens = max_tokens,
                                         .truncated = truncated};
    const att_status s = att_text_classify(r->m.model, p->count, text[0], bytes[0], &o, scores);
    for (int64_t i = 0; !s && i < p->count; i++)
        r->truncated += truncated[i];
    r->pairs += p->count;
    return s == ATT_ERR_FORMAT ? cli_fail("%s: %s", r->m.base.name, att_error(r->m.base.ctx))
                               : cli_status(r->m.base.ctx, s);
}

static void print_pair(const cli_pairs *p, int64_t i, float score)
{
    if (!json) {
        printf("%.6f\n", (double)score);
        return;
    }
    cli_json j = cli_json_begin(stdout);
    cli_json_bytes(&j, "a", p->text[2 * i], p->bytes[2 * i]);
    cli_json_bytes(&j, "b", p->text[2 * i + 1], p->bytes[2 * i + 1]);
    cli_json_float(&j, "score", score);
    cli_json_close(&j);
}

static int stream(cli_reranker *r, cli_pairs *p)
{
    float scores[BLOCK];
    cli_output out;
    cli_progress progress;
    int code = cli_output_open(&out, NULL);
    cli_progress_begin(&progress);
    while (!code) {
        code = cli_pairs_next(p);
        if (code || p->count == 0)
            break;
        code = score(r, p, scores);
        for (int64_t i = 0; !code && i < p->count; i++)
            print_pair(p, i, scores[i]);
        code = code ? code : cli_output_flush(&out);
        cli_progress_show(&progress, r->pairs, "pairs", p->total > 0 ? p->read / p->total : 0);
    }
    cli_progress_end(&progress);
    return code;
}

static int run_pairs(cli_reranker *r)
{
    cli_pairs p;
    cli_skipped skipped;
    const cli_pairs_options o = {.format = format, .skip = skip_bad_lines, .max_count = BLOCK};
    int code = cli_pairs_open(&p, pairs_path, &o);
    if (code)
        return code;
    code = stream(r, &p);
    if (!code && r->pairs == 0)
        code = cli_fail("%s: has no pairs", pairs_path);
    cli_text_classifier_note(&r->m, r->truncated, r->pairs, "pairs", max_tokens);
    cli_records_skipped(&p.in, &skipped);
    if (!code)
        cli_skipped_report(skipped.n, skipped.first);
    cli_pairs_close(&p);
    return code;
}

/* ---- The command ------------------------------------------------------------------------ */

static int check(int n)
{
    if (!corpus_path == !pairs_path)
        return cli_misuse(pairs_path ? "--pairs does not go with --corpus"
                                     : "--corpus FILE is needed, of documents, or --pairs FILE");
    if (pairs_path && (file || n))
        return cli_misuse("--pairs does not go with %s", file ? "--file" : "queries as arguments");
    if (n && file)
        return cli_misuse("--file does not go with queries as arguments");
    if (!pairs_path && !n && !file)
        file = "-";
    if (file && !strcmp(file, "-") && !strcmp(corpus_path, "-"))
        return cli_misuse("standard input cannot be both the corpus and the queries: give a query as argument");
    return CLI_DONE;
}

static int run(int n, char **arguments)
{
    cli_reranker r;
    int code = check(n);
    if (code)
        return code;
    code = cli_reranker_open(&r, model_name, types, threads);
    r.activation = (att_text_activation)activation;
    r.max_tokens = max_tokens;
    if (!code)
        code = cli_text_classifier_check_tokens(&r.m, max_tokens);
    if (!code)
        code = pairs_path ? run_pairs(&r) : run_corpus(&r, n, arguments);
    cli_reranker_close(&r);
    return code;
}

const cli_command cli_rerank = {
    .name = "rerank",
    .summary = "rank documents by a cross-encoder's scores with a query",
    .arguments = "[QUERY...]",
    .max_arguments = -1,
    .details =
        "A cross-encoder reads a query and a document together, and scores how well they fit: better than the\n"
        "similarity of two vectors, but it has to read all documents for each query. \"attend search --rerank\"\n"
        "therefore reranks the nearest lines of a corpus alone.\n\n"
        "Prints for each query, an argument or a line of --file or of standard input, the documents of the "
        "corpus, the best first: score, line number, text. With --pairs it prints a score per line of a file. "
        "A pair that is too long for the model is truncated, the longer text first.\n\n"
        "Scores are those of sentence-transformers' CrossEncoder.",
    .examples = "attend rerank -m ms-marco-MiniLM-L6-v2 -c passages.txt -k 3 \"How many people live in Berlin?\"\n"
                "attend rerank -m ms-marco-MiniLM-L6-v2 --pairs pairs.tsv > scores.txt\n"
                "attend search -m all-MiniLM-L6-v2 --rerank ms-marco-MiniLM-L6-v2 -c passages.txt \"Berlin\"",
    .options = options,
    .see = "search|classify|train rerank",
    .run = run,
};
