/* attend recommend: the items that come next after a history. */
#include "cli/base/grow.h"
#include "cli/base/lines.h"
#include "cli/base/npy.h"
#include "cli/base/json.h"
#include "cli/base/output.h"
#include "cli/base/progress.h"
#include "cli/base/utf8.h"
#include "cli/draw/picture.h"
#include "cli/model/checkpoints.h"
#include "cli/recommend/history_attention.h"
#include "cli/recommend/interactions.h"
#include "cli/recommend/item_texts.h"
#include "cli/recommend/recommender.h"
#include "cli/recommend/training_data_check.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 256 }; /* histories at once */

static cli_interactions_options data = {CLI_INTERACTIONS_DEFAULTS};
static cli_texts users, histories, similar;
static const char *model_name, *allow_path, *deny_path, *texts_path, *text_column, *attention_path, *vectors_path,
    *output_path;
static int64_t k = 10, threads;
static int dtype;
static bool all_users, exclude_seen, json;

static const cli_option options[] = {
    CLI_RECOMMENDER_MODEL_OPTION(&model_name, "; default: the only one there"),
    {"history", 0, "ITEMS", .texts = &histories,
     .help = "ids of items, oldest first, separated by commas; if there is a tab, by tabs, so an id with a comma needs "
             "a tab after it; may be given repeatedly; default: lines of standard input"},
    {"user", 'u', "USER", .texts = &users, .help = "a user of --data; may be given repeatedly"},
    {"all-users", 0, NULL, .flag = &all_users, .help = "all users of --data, a line each"},
    {"data", 'd', "FILE", .text = &data.path,
     .help = "log of actions, as in attend train recommend, for --user and --all-users; \"-\": standard input"},
    CLI_INTERACTIONS_OPTIONS(data),
    {"similar", 's', "ITEM", .texts = &similar,
     .help = "print the items nearest to this one, by the cosine of their vectors; may be given repeatedly"},
    {"top", 'k', "N", .integer = &k, .min = 1, .max = INT32_MAX, .help = "number of items to print for each history"},
    {"exclude-seen", 0, NULL, .flag = &exclude_seen, .help = "do not recommend items of the history"},
    {"allow", 0, "FILE", .text = &allow_path, .help = "recommend only items of this file, which has an id a line"},
    {"deny", 0, "FILE", .text = &deny_path, .help = "recommend no item of this file"},
    CLI_ITEM_TEXTS_OPTION(&texts_path, "they are printed beside the ids"),
    CLI_TEXT_COLUMN_OPTION(&text_column),
    {"attention", 'a', "FILE", .text = &attention_path, .writes = true,
     .help = "draw how the items of the first history are weighted, to this file: " PICTURE_FORMATS},
    {"vectors", 0, "FILE", .text = &vectors_path, .writes = true,
     .help = "write the vectors of all items, in the order of the model's items.json, as a NumPy file"},
    CLI_OUTPUT(&output_path),
    CLI_DTYPE(&dtype),
    CLI_THREADS(&threads),
    CLI_JSON(&json),
    {0},
};
static bool typed[sizeof options / sizeof *options - 1]; /* options of the table */

static int complete(bool *given)
{
    memcpy(typed, given, sizeof typed);
    return CLI_DONE;
}

/* Ids of a file as numbers. */
typedef struct id_list {
    int32_t *items; /* [n] */
    int64_t n;
    size_t room;
} id_list;

typedef struct work {
    cli_recommender m;
    cli_interactions log; /* open for users */
    cli_item_texts texts;
    id_list allow, deny;
    att_recommend_options options;
    cli_output out;
    cli_progress progress;
    /* A block of histories: */
    cli_histories h;
    const char *name[BLOCK]; /* users, or the texts of histories */
    json_t *missing[BLOCK];  /* with --json: unknown ids of each history */
    /* Counts over all blocks: */
    cli_unknown unknown;
    int64_t done, total, popular; /* histories; of all, 0: unknown; by popularity */
    bool drawn;
} work;

/* ---- Lists of ids --------------------------------------------------------------- */

static int add_listed(id_list *l, const cli_recommender *m, const char *id, cli_unknown *unknown)
{
    const int64_t item = att_recommender_find_item(m->model, id);
    if (item < 0) {
        cli_unknown_add(unknown, id, strlen(id));
        cli_unknown_end_line(unknown);
        return CLI_DONE;
    }
    if (!cli_reserve(&l->room, (size_t)l->n + 1, &(cli_array){&l->items, sizeof *l->items}, 1))
        return cli_fail_memory();
    l->items[l->n++] = (int32_t)item;
    return CLI_DONE;
}

/* Checks that the line is text. source: its file, for messages. */
static int check_line(const char *source, int64_t number, const char *line, size_t bytes)
{
    if (strlen(line) == bytes && att_utf8_valid(line, bytes))
        return CLI_DONE;
    return cli_fail("%s: line %lld: %s", source, (long long)number,
                    strlen(line) < bytes ? "has a zero byte" : "is not UTF-8 text");
}

/* path NULL: an empty list. Empty lines are not ids. */
static int read_list(id_list *l, const cli_recommender *m, const char *option, const char *path)
{
    char *paths[] = {(char *)path}, list[CLI_UNKNOWN_LIST];
    cli_reader r = {.in = {.fd = -1}};
    cli_unknown unknown = {.ids = true};
    bool there = path != NULL;
    int code = path ? cli_lines_open(&r.in, 1, paths) : CLI_DONE;
    while (!code && there) {
        code = cli_reader_next(&r, &there);
        if (!code && there)
            code = check_line(path, r.lines, r.in.text[r.at], r.in.bytes[r.at]);
        if (!code && there && r.in.bytes[r.at] > 0)
            code = add_listed(l, m, r.in.text[r.at], &unknown);
    }
    cli_lines_close(&r.in);
    cli_unknown_list(&unknown, list);
    if (!code && path && l->n == 0)
        return cli_fail("--%s %s: has no item that the model knows%s%s", option, path, *list ? ": " : "", list);
    if (!code && unknown.lines > 0)
        cli_note("--%s %s: %lld of %lld items are not known to the model: %s", option, path, (long long)unknown.lines,
                 (long long)(unknown.lines + l->n), list);
    return code;
}

/* ---- Printing ------------------------------------------------------------------- */

/* Writes a field. Control characters, such as tabs and line ends, become spaces. */
static void put_field(FILE *f, const char *text)
{
    while (*text) {
        const uint32_t code = utf8_next(&text);
        utf8_put(f, code < 0x20 || (code >= 0x7F && code < 0xA0) ? ' ' : code);
    }
}

static const char *plural(int64_t n, const char *one, const char *more) { return n == 1 ? one : more; }

static const char *text_of(const work *w, const char *id) { return cli_item_texts_find(&w->texts, id); }

static void print_json(const work *w, const char *key, const char *name, const att_recommendation *r, int64_t row)
{
    cli_json j = cli_json_begin(w->out.file);
    cli_json_string(&j, key, name);
    if (!similar.n) {
        cli_json_bool(&j, "by_popularity", r->by_popular[row]);
        cli_json_value(&j, "unknown", w->missing[row], 0);
    }
    cli_json_array(&j, "items");
    for (int64_t i = row * r->k; i < (row + 1) * r->k && r->items[i] >= 0; i++) {
        const char *id = w->m.items[r->items[i]], *text = text_of(w, id);
        cli_json_object(&j, NULL);
        cli_json_string(&j, "item", id);
        cli_json_float(&j, "score", r->scores[i]);
        if (text)
            cli_json_string(&j, "text", text);
        cli_json_end(&j);
    }
    cli_json_close(&j);
}

/* Returns the number of digits of scores after the point. Scores by popularity are counts. */
static int digits(const att_recommendation *r, int64_t row) { return r->by_popular && r->by_popular[row] ? 0 : 4; }

/* Prints a line, which can be cut at its tabs: the name, then id and score of each item. */
static void print_line(const work *w, const char *name, const att_recommendation *r, int64_t row)
{
    put_field(w->out.file, name);
    for (int64_t i = row * r->k; i < (row + 1) * r->k && r->items[i] >= 0; i++) {
        putc('\t', w->out.file);
        put_field(w->out.file, w->m.items[r->items[i]]);
        fprintf(w->out.file, "\t%.*f", digits(r, row), (double)r->scores[i]);
    }
    putc('\n', w->out.file);
}

/* Prints a block for people: a line for each item. */
static void print_block(const work *w, const char *name, const att_recommendation *r, int64_t row)
{
    FILE *f = w->out.file;
    put_field(f, name);
    fputs(r->by_popular && r->by_popular[row] ? " (by popularity)\n" : "\n", f);
    for (int64_t i = row * r->k; i < (row + 1) * r->k && r->items[i] >= 0; i++) {
        const char *id = w->m.items[r->items[i]], *text = text_of(w, id);
        fprintf(f, "%10.*f  ", digits(r, row), (double)r->scores[i]);
        put_field(f, id);
        if (text) {
            fputs("  ", f);
            put_field(f, text);
        }
        putc('\n', f);
    }
}

static void print_row(const work *w, const char *name, const att_recommendation *r, int64_t row)
{
    if (json)
        print_json(w, similar.n ? "similar_to" : data.path ? "user" : "history", name, r, row);
    else
        (all_users ? print_line : print_block)(w, name, r, row);
}

/* ---- Histories ------------------------------------------------------------------ */

/* Draws the attention of history `row` of the block. A label is the text of an item, or its id if it has none. */
static int draw(const work *w, int64_t row, const att_recommendation *r)
{
    const int32_t *items = w->h.items + w->h.offsets[row];
    const int64_t n = w->h.offsets[row + 1] - w->h.offsets[row], best = r->items[row * r->k];
    char title[512];
    if (n == 0)
        return cli_fail("--attention: \"%.64s\" has no item that the model knows, so there is nothing to draw",
                        w->name[row]);
    const char **labels = malloc((size_t)n * sizeof *labels);
    if (!labels)
        return cli_fail_memory();
    for (int64_t i = 0; i < n; i++) {
        const char *id = w->m.items[items[i]], *text = text_of(w, id);
        labels[i] = text ? text : id;
    }
    const char *id = best < 0 ? "" : w->m.items[best], *text = text_of(w, id);
    snprintf(title, sizeof title, "%.*s → %.*s", utf8_prefix(w->name[row], 120), w->name[row],
             utf8_prefix(text ? text : id, 200), text ? text : id);
    const int code = history_attention_draw(&w->m, attention_path, title, items, n, labels);
    free(labels);
    return code;
}

/* Prints the lists of the block, which is then empty. */
static int recommend(work *w)
{
    att_recommendation r;
    int code = cli_status(w->m.base.ctx, att_recommend(w->m.model, w->h.n, w->h.items, w->h.offsets, &w->options, &r));
    if (code)
        return code;
    cli_progress_clear();
    if (attention_path && !w->drawn && w->h.n > 0) {
        w->drawn = true;
        code = draw(w, 0, &r);
    }
    for (int64_t i = 0; i < w->h.n; i++) {
        if (!code)
            print_row(w, w->name[i], &r, i);
        w->popular += r.by_popular[i];
        json_decref(w->missing[i]);
        w->missing[i] = NULL;
    }
    att_recommendation_free(w->m.base.ctx, &r);
    w->done += w->h.n;
    cli_progress_show(&w->progress, w->done, "histories", w->total ? (double)w->done / (double)w->total : 0);
    cli_histories_clear(&w->h);
    return code ? code : cli_output_flush(&w->out);
}

/* Begins the unknown ids of the next history of the block. */
static int begin_unknown(work *w)
{
    w->unknown.array = w->missing[w->h.n] = json ? json_array() : NULL;
    return json && !w->unknown.array ? cli_fail_memory() : CLI_DONE;
}

/* Adds a history to the block, whose lists are printed when it is full. */
static int add(work *w, const char *text)
{
    w->name[w->h.n] = text;
    int code = begin_unknown(w);
    if (!code)
        code = cli_histories_read(&w->h, w->m.model, text, NULL, &w->unknown);
    cli_unknown_end_line(&w->unknown);
    if (!code && w->h.n == BLOCK)
        code = recommend(w);
    return code;
}

static int add_user(work *w, int64_t user)
{
    const att_history h = att_interactions_history(w->log.log, user);
    w->name[w->h.n] = att_interactions_user(w->log.log, user);
    int code = begin_unknown(w);
    if (!code)
        code = cli_histories_begin(&w->h);
    for (int64_t i = 0; !code && i < h.count; i++) {
        const char *id = att_interactions_item(w->log.log, h.items[i]);
        if (h.items[i] < w->m.info.items)
            code = cli_histories_add(&w->h, h.items[i]);
        else
            cli_unknown_add(&w->unknown, id, strlen(id));
    }
    cli_unknown_end_line(&w->unknown);
    if (!code && w->h.n == BLOCK)
        code = recommend(w);
    return code;
}

/* ---- What is requested ---------------------------------------------------------- */

static int of_users(work *w)
{
    int64_t user = 0;
    int code = CLI_DONE;
    w->total = all_users ? w->log.info.users : users.n;
    for (int64_t i = 0; !code && i < w->total; i++) {
        if (!all_users)
            code = cli_interactions_user(&w->log, data.path, users.text[i], &user);
        if (!code)
            code = add_user(w, all_users ? i : user);
    }
    return code || w->h.n == 0 ? code : recommend(w);
}

static int of_histories(work *w)
{
    int code = CLI_DONE;
    w->total = histories.n;
    for (int i = 0; !code && i < histories.n; i++)
        code = add(w, histories.text[i]);
    return code || w->h.n == 0 ? code : recommend(w);
}

/* Recommends for lines of standard input. The lists of a line are printed as soon as no further line waits. */
static int of_lines(work *w)
{
    cli_lines in;
    int64_t number = 0;
    int code = cli_lines_open(&in, 0, NULL);
    while (!code) {
        code = cli_lines_next(&in, BLOCK);
        if (code || in.count == 0)
            break;
        for (int64_t i = 0; !code && i < in.count; i++) {
            code = check_line("standard input", ++number, in.text[i], in.bytes[i]);
            if (!code)
                code = add(w, in.text[i]);
        }
        if (!code && w->h.n > 0)
            code = recommend(w);
    }
    cli_lines_close(&in);
    return code;
}

/* Reports it if an item had no action in training and no content is added to its vector, which is then that of a text
 * at the start of training, or of random numbers. Its actions are its score after no history. */
static void note_untrained(const work *w, int32_t item)
{
    static const int64_t none[] = {0, 0};
    const att_recommend_options *one = ATT_OPTIONS(att_recommend_options, .k = 1, .allow = &item, .n_allow = 1);
    att_recommender_info info = {.size = sizeof info};
    att_recommendation r;
    if (att_recommender_describe(w->m.model, &info) || info.content_width > 0 ||
        att_recommend(w->m.model, 1, &item, none, one, &r)) /* it fails if the model has no counts */
        return;
    if (r.by_popular[0] && r.scores[0] == 0)
        cli_note("%s had no action in training: unless it had a text, its vector and neighbors are random",
                 att_recommender_item(w->m.model, item));
    att_recommendation_free(w->m.base.ctx, &r);
}

static int of_similar(work *w)
{
    int code = CLI_DONE;
    for (int i = 0; !code && i < similar.n; i++) {
        att_recommendation r;
        const int64_t item = att_recommender_find_item(w->m.model, similar.text[i]);
        if (item < 0)
            return cli_fail("--similar: %s has no item \"%s\"", w->m.base.name, similar.text[i]);
        code = cli_status(w->m.base.ctx, att_recommender_similar(w->m.model, item, &w->options, &r));
        if (!code)
            print_row(w, similar.text[i], &r, 0);
        if (!code)
            note_untrained(w, (int32_t)item);
        if (!code)
            att_recommendation_free(w->m.base.ctx, &r);
    }
    return code;
}

/* Reports how many rows of vectors [rows, columns] are zeros: those of items without text and action. */
static void note_without(const float *vectors, int64_t rows, int64_t columns)
{
    int64_t n = 0;
    for (int64_t i = 0; i < rows; i++) {
        bool any = false;
        for (int64_t k = 0; !any && k < columns; k++)
            any = vectors[i * columns + k] < 0 || vectors[i * columns + k] > 0;
        n += !any;
    }
    if (n > 0)
        cli_note("%s: %lld of %lld items %s no vector, having had neither a text nor an action in training: zeros",
                 vectors_path, (long long)n, (long long)rows, n == 1 ? "has" : "have");
}

static int write_vectors(const work *w)
{
    const int64_t rows = w->m.info.items, columns = w->m.info.hidden;
    cli_output out;
    float *vectors = malloc((size_t)rows * (size_t)columns * sizeof *vectors);
    int code = vectors ? cli_status(w->m.base.ctx, att_recommender_vectors(w->m.model, vectors)) : cli_fail_memory();
    if (!code)
        code = cli_output_open(&out, vectors_path);
    if (!code) {
        cli_npy_header(out.file, CLI_NPY_FLOAT32, rows, columns);
        if (fwrite(vectors, sizeof *vectors, (size_t)(rows * columns), out.file) < (size_t)(rows * columns))
            code = cli_fail_errno(vectors_path);
        code = cli_output_close(&out, code);
    }
    if (!code)
        note_without(vectors, rows, columns);
    free(vectors);
    return code;
}

/* ---- The work ------------------------------------------------------------------- */

static int check_options(void)
{
    const struct {
        const char *name;
        bool set;
    } asked[] = {{"history", histories.n > 0},
                 {"user", users.n > 0},
                 {"all-users", all_users},
                 {"similar", similar.n > 0},
                 {"vectors", vectors_path != NULL}};
    const char *first = NULL;
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        if (asked[i].set && first)
            return cli_misuse("--%s does not go with --%s", asked[i].name, first);
        first = asked[i].set ? asked[i].name : first;
    }
    const bool of_user = users.n > 0 || all_users, of_history = !similar.n && !vectors_path;
    if (of_user && !data.path)
        return cli_misuse("--%s needs --data FILE, the log of the user's actions", first);
    if (!of_user && data.path)
        return cli_misuse("--data %s needs --user USER or --all-users", data.path);
    if (!of_history && (exclude_seen || attention_path))
        return cli_misuse("--%s does not go with --%s, where there is no history",
                          exclude_seen ? "exclude-seen" : "attention", first);
    if (text_column && !texts_path)
        return cli_misuse("--text-column %s needs --item-texts FILE", text_column);
    if (vectors_path && json)
        return cli_misuse("--json does not go with --vectors, which writes a NumPy file");
    if (vectors_path && output_path)
        return cli_misuse("--output does not go with --vectors, which names the file");
    return CLI_DONE;
}

/* Returns whether an unknown id has spaces, so that it may be several ids. */
static bool has_spaces(const cli_unknown *u)
{
    for (int i = 0; i < u->n; i++)
        if (strchr(u->text[i], ' '))
            return true;
    return false;
}

static void report(const work *w)
{
    char list[CLI_UNKNOWN_LIST];
    cli_unknown_list(&w->unknown, list);
    if (w->unknown.lines > 0)
        cli_note("%lld of %lld %s items that the model does not know, which are left out: %s%s",
                 (long long)w->unknown.lines, (long long)w->done, plural(w->done, "history has", "histories have"),
                 list, !data.path && has_spaces(&w->unknown) ? "; ids are separated by commas or tabs" : "");
    if (w->popular > 0)
        cli_note("%lld of %lld %s no item that the model knows: the most popular items are recommended",
                 (long long)w->popular, (long long)w->done, plural(w->done, "history has", "histories have"));
    if (w->drawn && w->done > 1)
        cli_note("%s shows the first of %lld histories", attention_path, (long long)w->done);
}

static int answer(work *w)
{
    int code = cli_output_open(&w->out, output_path);
    if (code)
        return code;
    cli_progress_begin(&w->progress);
    code = similar.n ? of_similar(w) : users.n || all_users ? of_users(w) : histories.n ? of_histories(w) : of_lines(w);
    cli_progress_end(&w->progress);
    return cli_output_close(&w->out, code);
}

/* Fails if no item has a text. */
static int check_texts(const work *w)
{
    for (int64_t i = 0; i < w->m.info.items; i++)
        if (text_of(w, w->m.items[i]))
            return CLI_DONE;
    return cli_fail("--item-texts %s: no item of %s has a text there; the first id is \"%.64s\", and that of the model "
                    "\"%.64s\"",
                    texts_path, w->m.base.name, w->texts.id[0], w->m.items[0]);
}

/* Opens the log as the training of the model did, unless options state otherwise. */
static int open_log(work *w)
{
    static json_t *training; /* options point into it */
    int code = cli_training_file_read(w->m.base.folder.text, &training);
    if (!code)
        code = cli_check_reading(json_object_get(training, "options"), w->m.base.name, data.path, options, typed);
    if (!code)
        code = cli_interactions_open(w->m.base.ctx, &w->log, &data, w->m.items, w->m.info.items);
    if (!code)
        cli_interactions_note(&w->log, data.path);
    return code;
}

static int prepare(work *w)
{
    int code = read_list(&w->allow, &w->m, "allow", allow_path);
    if (!code)
        code = read_list(&w->deny, &w->m, "deny", deny_path);
    if (!code)
        code = cli_item_texts_read(&w->texts, texts_path, text_column, data.skip_bad_lines);
    if (!code && w->texts.n > 0)
        code = check_texts(w);
    if (!code && data.path)
        code = open_log(w);
    w->options = (att_recommend_options){.size = sizeof w->options,
                                         .k = k < w->m.info.items ? k : w->m.info.items,
                                         .exclude_seen = exclude_seen,
                                         .allow = w->allow.items,
                                         .n_allow = w->allow.n,
                                         .deny = w->deny.items,
                                         .n_deny = w->deny.n};
    return code;
}

static int run(int n, char **arguments)
{
    (void)n, (void)arguments;
    work *w = calloc(1, sizeof *w);
    if (!w)
        return cli_fail_memory();
    w->unknown.ids = true;
    int code = check_options();
    if (!code)
        code = cli_interactions_copy_pipe(&data);
    if (!code)
        code = cli_model_open(&w->m.base, &cli_recommender_kind, model_name, dtype, threads);
    if (!code)
        code = prepare(w);
    if (!code)
        code = vectors_path ? write_vectors(w) : answer(w);
    if (!code)
        report(w);
    for (int i = 0; i < BLOCK; i++)
        json_decref(w->missing[i]);
    cli_histories_free(&w->h);
    free(w->allow.items);
    free(w->deny.items);
    cli_item_texts_free(&w->texts);
    cli_interactions_close(&w->log);
    cli_model_close(&w->m.base);
    free(w);
    return code;
}

const cli_command cli_recommend = {
    .name = "recommend",
    .summary = "recommend the next items after a history",
    .details = "Prints the items with the highest scores after each history: of --history, of "
               "users of a log, or of lines of standard input. The history need not have occurred in training, "
               "only its items; those that the model does not know are left out, and reported at the end. Where "
               "none is left, the most popular items are recommended, which is reported, too. The list of a history is "
               "the same whatever else is asked for.\n\n"
               "--all-users prints a line for each user of --data, separated by tabs: user, then id and score of each "
               "item. For an index of vectors: the products of --vectors with the vector of a history, which "
               "att_recommender_embed of the library makes, are the scores.\n\n"
               "--attention draws how the last state weights the items of the history: the mean of all heads, each "
               "layer, each head. Attention is not proof of a reason (Jain, Wallace 2019).",
    .examples = "attend recommend -m shop --history \"B000142FVW,B0009RF9DW\"\n"
                "attend recommend -m shop --data log.csv --user A1YJEY40YUW4SE --exclude-seen --attention why.svg\n"
                "attend recommend -m shop --data log.csv --all-users -k 20 -o lists.tsv\n"
                "attend recommend -m shop --similar B0009RF9DW",
    .options = options,
    .see = "train recommend|evaluate recommend",
    .complete = complete,
    .run = run,
};
