/* attend search: finds the nearest lines of a text, or images, by meaning. */
#include "cli/base/json.h"
#include "cli/base/output.h"
#include "cli/classifier/reranker.h"
#include "cli/sentence/corpus.h"
#include "cli/sentence/vector_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { QUERIES = 64, ROWS = 1 << 16 }; /* scores of QUERIES x ROWS at a time: 16 MiB */

static const char *model_name, *corpus_path, *index_path, *file, *ranges_path, *query_prompt, *document_prompt,
    *background;
static const char *rerank_name;
static int64_t top = 10, candidates, rescore = -1, dims, threads;
static int64_t k; /* lines that are found for each query: top, or those to rerank */
static bool json, skip_broken;
static int precision = -1;
static cli_types types;

static const cli_option options[] = {
    CLI_SENTENCE_MODEL_OPTION(&model_name),
    {"corpus", 'c', "FILE", .text = &corpus_path, .required = true,
     .help = "corpus to search, one sentence per line; \"-\": standard input; with a vision model a folder with images "
             "in it or in its "
             "folders, or a path of an image per line"},
    {"index", 'i', "FILE", .text = &index_path,
     .help = "embeddings of the corpus by the same model, --dtype and --compute, as \"attend embed --format npy\" "
             "writes them, of any "
             "--precision; five of them are checked; default: they are computed"},
    {"file", 'f', "FILE", .text = &file, .help = "read queries from this file, one per line; \"-\": standard input"},
    {"top", 'k', "N", .integer = &top, .min = 1, .max = 1000000,
     .help = "number of nearest lines to print for each query"},
    CLI_PROMPT(&query_prompt, "query-prompt", "query", "the prompt \"query\", which is empty in most models"),
    CLI_PROMPT(&document_prompt, "document-prompt", "line of the corpus", "the prompt \"document\""),
    CLI_DIMS(&dims),
    {"rerank", 0, "MODEL", .text = &rerank_name,
     .help = "rank the nearest lines by this text classifier, a cross-encoder, and print its scores"},
    {"candidates", 0, "N", .integer = &candidates, .max = 1000000, .quiet = true,
     .help = "number of nearest lines that --rerank ranks; 0, the default: 10 times --top"},
    {"precision", 0, CLI_PRECISIONS, .choice = &precision,
     .help = "numbers of the vectors to search in; default: those of the index, or float32"},
    {"rescore", 0, "N", .integer = &rescore, .max = 1000, .quiet = true,
     .help = "of int8, uint8 and bits: N times as many lines as --top are found by their codes, and rescored by the "
             "float32 vector of the query; 0: none, scores are those of the codes; default: 2"},
    {"ranges", 0, "FILE", .text = &ranges_path,
     .help = "ranges of an index of int8 or uint8; default: INDEX.ranges.npy, which \"attend embed\" writes beside it"},
    CLI_BACKGROUND(&background),
    CLI_SKIP_BROKEN(&skip_broken),
    CLI_TYPES(types),
    CLI_THREADS(&threads),
    CLI_JSON(&json),
    {0},
};

/* ---- The nearest ------------------------------------------------------------ */

typedef struct hit {
    float score;
    int64_t line;     /* from 0 */
    float similarity; /* of a reranked line */
} hit;

/* Inserts h into best [*count <= max], which has the highest score first and equal ones by line, unless it is worse
 * than all of `max` hits. */
static void insert(hit *best, int64_t *count, int64_t max, hit h)
{
    if (*count == max && !(h.score > best[max - 1].score))
        return;
    int64_t low = 0, high = *count; /* the position after all that are not worse */
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (best[middle].score >= h.score)
            low = middle + 1;
        else
            high = middle;
    }
    *count += *count < max;
    memmove(best + low + 1, best + low, (size_t)(*count - low - 1) * sizeof *best);
    best[low] = h;
}

/* Finds the nearest lines of queries [n, dim]: best [n, k], counts [n]; scores [QUERIES, ROWS] is scratch. */
static int nearest(const cli_embedder *m, const cli_corpus *c, const float *queries, int64_t n, hit *best,
                   int64_t *counts, float *scores)
{
    const int64_t dim = m->dim;
    memset(counts, 0, (size_t)n * sizeof *counts);
    for (int64_t first = 0; first < c->count; first += ROWS) {
        int64_t some = c->count - first < ROWS ? c->count - first : ROWS;
        const int code = cli_embedder_compare(m, queries, n, c->vectors + first * dim, some, scores);
        if (code)
            return code;
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < some; j++) {
                const float score = scores[i * some + j];
                if (c->failed[first + j])
                    continue;
                if (isnan(score))
                    return cli_fail("%s: its vector of a query or of line %lld of %s has numbers that are not finite",
                                    m->name, (long long)(first + j) + 1, corpus_path);
                insert(best + i * k, &counts[i], k, (hit){score, first + j, score});
            }
    }
    return CLI_DONE;
}

/* Finds the nearest lines of queries among codes: first the k * rescore lines that are nearest by their codes, then
 * those of them whose codes are nearest to the query itself. */
static int nearest_codes(const cli_embedder *m, const cli_corpus *c, const float *queries, int64_t n, hit *best,
                         int64_t *counts)
{
    const att_vector_corpus in = {.size = sizeof in,
                                  .n = c->count,
                                  .dim = m->dim,
                                  .precision = c->codes.precision,
                                  .codes = c->codes.data,
                                  .ranges = c->codes.ranges,
                                  .hidden = c->failed};
    const bool cosine = !m->images && !m->text.info.normalized && m->similarity == ATT_SIMILARITY_COSINE;
    att_vector_hit *hits = malloc((size_t)(n * k) * sizeof *hits);
    const int code =
        hits ? cli_status(m->ctx, att_vectors_search(m->ctx, &in, queries, n,
                                                     ATT_OPTIONS(att_vector_search_options, .k = k,
                                                                 .multiplier = rescore < 0 ? 0 : rescore,
                                                                 .by_codes = rescore == 0, .cosine = cosine),
                                                     hits))
             : cli_fail_memory();
    for (int64_t i = 0; !code && i < n; i++)
        for (counts[i] = 0; counts[i] < k && hits[i * k + counts[i]].row >= 0; counts[i]++) {
            const att_vector_hit h = hits[i * k + counts[i]];
            best[i * k + counts[i]] = (hit){(float)h.score, h.row, (float)h.score};
        }
    free(hits);
    return code;
}

static void print_json(const char *key, const cli_corpus *c, const char *query, size_t bytes, const hit *best,
                       int64_t count)
{
    cli_json j = cli_json_begin(stdout);
    cli_json_bytes(&j, "query", query, bytes);
    cli_json_array(&j, "results");
    for (int64_t i = 0; i < count; i++) {
        const size_t *begin = c->begin + best[i].line;
        cli_json_object(&j, NULL);
        cli_json_integer(&j, "line", best[i].line + 1);
        cli_json_number(&j, "score", (double)best[i].score, 9);
        if (rerank_name)
            cli_json_number(&j, "similarity", (double)best[i].similarity, 9);
        cli_json_bytes(&j, key, c->data + begin[0], begin[1] - begin[0] - 1);
        cli_json_end(&j);
    }
    cli_json_close(&j);
}

static void print_plain(const cli_corpus *c, const char *query, size_t bytes, const hit *best, int64_t count)
{
    static bool again;
    if (again)
        putchar('\n');
    again = true;
    fwrite(query, 1, bytes, stdout);
    putchar('\n');
    int digits = snprintf(NULL, 0, "%lld", (long long)c->count);
    for (int64_t i = 0; i < count; i++) {
        const size_t *begin = c->begin + best[i].line;
        printf("  %7.4f  %*lld  ", (double)best[i].score, digits, (long long)best[i].line + 1);
        fwrite(c->data + begin[0], 1, begin[1] - begin[0] - 1, stdout);
        putchar('\n');
    }
}

/* ---- Reranking --------------------------------------------------------------- */

/* Puts the nearest lines of a query, best [n], into the order of a cross-encoder's scores; *n becomes `top` at most. */
static int rerank(cli_reranker *r, const cli_corpus *c, const char *query, size_t bytes, hit *best, int64_t *n)
{
    const int64_t kept = *n < top ? *n : top;
    const char **text = malloc(((size_t)*n + 1) * sizeof *text);
    size_t *sizes = malloc(((size_t)*n + 1) * sizeof *sizes);
    att_ranked_text *ranked = malloc(((size_t)*n + 1) * sizeof *ranked);
    hit *all = malloc(((size_t)*n + 1) * sizeof *all);
    int code = text && sizes && ranked && all ? CLI_DONE : cli_fail_memory();
    for (int64_t i = 0; !code && i < *n; i++) {
        const size_t *begin = c->begin + best[i].line;
        text[i] = c->data + begin[0];
        sizes[i] = begin[1] - begin[0] - 1;
        all[i] = best[i];
    }
    if (!code && kept)
        code = cli_reranker_rank(r, query, bytes, *n, text, sizes, kept, ranked);
    for (int64_t i = 0; !code && i < kept; i++) {
        best[i] = all[ranked[i].document];
        best[i].score = ranked[i].score;
    }
    *n = kept;
    free(text);
    free(sizes);
    free(ranked);
    free(all);
    return code;
}

/* ---- The queries ------------------------------------------------------------ */

typedef struct scratch {
    float *vectors; /* [QUERIES, dim] */
    float *scores;  /* [QUERIES, at most ROWS] */
    hit *best;      /* [QUERIES, k] */
    int64_t *counts;
    cli_reranker reranker; /* with --rerank */
} scratch;

static int answer(const cli_embedder *m, const cli_corpus *c, scratch *s, const cli_lines *in, bool *any_failed)
{
    bool failed[QUERIES];
    int64_t truncated = 0;
    int code = cli_embedder_encode(m, in->count, in->text, in->bytes, s->vectors, &truncated, failed, -1);
    if (!code)
        cli_embedder_note(m, truncated, in->count, "queries");
    if (!code)
        code = c->codes.data ? nearest_codes(m, c, s->vectors, in->count, s->best, s->counts)
                             : nearest(m, c, s->vectors, in->count, s->best, s->counts, s->scores);
    for (int64_t i = 0; !code && i < in->count; i++) {
        *any_failed = *any_failed || failed[i];
        if (failed[i])
            continue;
        if (rerank_name)
            code = rerank(&s->reranker, c, in->text[i], in->bytes[i], s->best + i * k, &s->counts[i]);
        if (code)
            break;
        if (json)
            print_json(m->key, c, in->text[i], in->bytes[i], s->best + i * k, s->counts[i]);
        else
            print_plain(c, in->text[i], in->bytes[i], s->best + i * k, s->counts[i]);
    }
    return code;
}

/* The queries are arguments [n], or lines. */
static int answer_all(const cli_embedder *m, const cli_corpus *c, scratch *s, int n, char **arguments)
{
    cli_lines in;
    cli_output out;
    bool any_failed = c->any_failed;
    int code = n ? cli_embedder_arguments(m, &in, n, arguments) : cli_lines_open(&in, 1, (char *const[]){(char *)file});
    cli_output_open(&out, NULL);
    while (!code) {
        code = cli_lines_next(&in, QUERIES);
        if (code || in.count == 0)
            break;
        code = answer(m, c, s, &in, &any_failed);
        if (!code)
            code = cli_output_flush(&out);
    }
    cli_lines_close(&in);
    if (rerank_name)
        cli_reranker_note(&s->reranker);
    return !code && any_failed && !skip_broken ? CLI_FAILED : code;
}

/* Notes a prompt "passage" or "corpus" if lines of the corpus have none: encode_document of sentence-transformers 6
 * takes "document" before these, which each model has. */
static void note_passages(const cli_embedder *m)
{
    static const char *const names[] = {"passage", "corpus"};
    for (int64_t i = 0; !m->images && !document_prompt && !*m->prompt && i < m->text.info.prompts; i++) {
        const char *name, *text = att_sentence_prompt_at(m->text.sentence, i, &name);
        for (size_t j = 0; j < sizeof names / sizeof *names; j++)
            if (*text && !strcmp(name, names[j]))
                cli_note("%s has a prompt \"%s\", which lines of the corpus do not get, as with encode_document of "
                         "sentence-transformers; --document-prompt %s sets it",
                         m->name, name, name);
    }
}

/* Answers all queries by a model that is open. */
static int search(cli_embedder *m, int n, char **arguments)
{
    cli_corpus c = {0};
    scratch s = {0};
    const cli_corpus_options o = {.path = corpus_path,
                                  .index = index_path,
                                  .ranges = ranges_path,
                                  .prompt = document_prompt,
                                  .dims = dims,
                                  .types = types,
                                  .precision = precision,
                                  .rescored = rescore >= 0};
    int code = rerank_name ? cli_reranker_open(&s.reranker, rerank_name, types, threads) : CLI_DONE;
    s.reranker.quiet = true;
    if (!code)
        code = cli_embedder_truncate(m, dims);
    if (!code)
        code = cli_embedder_prompt(m, "document-prompt", document_prompt, "document");
    if (!code) {
        note_passages(m);
        code = cli_corpus_open(&c, &o, m);
    }
    if (!code)
        code = cli_embedder_prompt(m, "query-prompt", query_prompt, "query");
    if (!code) {
        k = rerank_name ? candidates ? candidates : 10 * top : top;
        k = k < c.count ? k : c.count;
        s.vectors = malloc(QUERIES * (size_t)m->dim * sizeof *s.vectors);
        s.scores = malloc(QUERIES * (size_t)(c.count < ROWS ? c.count : ROWS) * sizeof *s.scores);
        s.best = malloc(QUERIES * (size_t)k * sizeof *s.best);
        s.counts = malloc(QUERIES * sizeof *s.counts);
        if (!s.vectors || !s.scores || !s.best || !s.counts)
            code = cli_fail_memory();
    }
    if (!code)
        code = answer_all(m, &c, &s, n, arguments);
    free(s.vectors);
    free(s.scores);
    free(s.best);
    free(s.counts);
    cli_corpus_close(&c);
    if (rerank_name)
        cli_reranker_close(&s.reranker);
    return code;
}

static int run(int n, char **arguments)
{
    if (n && file)
        return cli_misuse("--file does not go with queries as arguments");
    if (n == 1 && strcmp(arguments[0], "-") == 0 &&
        !cli_model_is(ATT_SUBJECT_VISION, model_name)) /* standard input has lines, not an image */
        n = 0;
    if (n == 0 && !file)
        file = "-";
    if (n == 0 && strcmp(corpus_path, "-") == 0 && strcmp(file, "-") == 0)
        return cli_misuse("standard input cannot be both the corpus and the queries: give a query as argument");
    if (candidates && !rerank_name)
        return cli_misuse("--candidates needs --rerank MODEL");
    if (rerank_name && candidates && candidates < top)
        return cli_misuse("--candidates is %lld, fewer than --top, %lld", (long long)candidates, (long long)top);
    cli_embedder m;
    int code = cli_embedder_open(&m, model_name, types, threads);
    if (code)
        return code;
    if (rerank_name && m.images)
        code = cli_misuse("--rerank is of texts, but %s is a vision model", m.name);
    cli_embedder_note_measure(&m);
    if (!code)
        code = cli_embedder_background(&m, background);
    if (!code)
        code = search(&m, n, arguments);
    cli_embedder_close(&m);
    return code;
}

const cli_command cli_search = {
    .name = "search",
    .summary = "search sentences or images for the nearest to a query",
    .arguments = "[QUERY...]",
    .max_arguments = -1,
    .details = "Semantic search: for each query, an argument or a line of --file or of standard input, prints the "
               "lines of the\n"
               "corpus with the highest similarity: similarity, line number, text. It is the cosine, or the measure\n"
               "that the model's folder names (similarity_fn_name): the dot product, or minus a distance.\n\n"
               "Vectors of 8 bits or one take a quarter or a 32nd of the memory. They are searched as "
               "semantic_search_faiss of sentence-transformers does: by the codes of query and lines first, then "
               "--rescore times as many as --top by the product of the query's float32 vector with the line's codes, "
               "which is the score that is printed. For bits it is not the cosine.\n\n"
               "With --rerank, ten times as many lines are found by similarity, or --candidates, and a cross-encoder "
               "ranks them (\"attend rerank\"): its scores are printed, and in JSON also the similarity.\n\n"
               "With a vision model, queries and corpus are images: a query is a path (\"-\": standard input), the "
               "corpus a folder of images, or lines that are paths. An image that cannot be read is an error, but the "
               "others are searched; with --skip-broken the command succeeds.",
    .examples = "attend search -m all-MiniLM-L6-v2 -c proverbs.txt -k 3 \"Children are like their parents.\"\n"
                "attend embed -m all-MiniLM-L6-v2 --format npy -o proverbs.npy proverbs.txt\n"
                "attend search -m all-MiniLM-L6-v2 -c proverbs.txt -i proverbs.npy < questions.txt\n"
                "attend embed -m all-MiniLM-L6-v2 --precision int8 --format npy -o int8.npy proverbs.txt\n"
                "attend search -m all-MiniLM-L6-v2 -c proverbs.txt -i int8.npy --rescore 4 < questions.txt\n"
                "attend search -m all-MiniLM-L6-v2 --rerank ms-marco-MiniLM-L6-v2 -c passages.txt -k 3 \"Berlin\"\n"
                "attend search -m dinov2-small -c photos/ -k 3 cat.jpg",
    .options = options,
    .see = "embed|rerank|similarity|fetch",
    .run = run,
};
