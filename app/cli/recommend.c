/* attend recommend: the items that come next after a history. */
#include "cli/base/finished.h"
#include "cli/base/lines.h"
#include "cli/base/output.h"
#include "cli/base/progress.h"
#include "cli/base/shard.h"
#include "cli/draw/picture.h"
#include "cli/model/checkpoints.h"
#include "cli/recommend/history_attention.h"
#include "cli/recommend/interactions.h"
#include "cli/recommend/item_categories.h"
#include "cli/recommend/item_list.h"
#include "cli/recommend/item_texts.h"
#include "cli/recommend/lists.h"
#include "cli/recommend/recommender.h"
#include "cli/recommend/similar_items.h"
#include "cli/recommend/training_data_check.h"
#include "cli/recommend/untrained.h"
#include "cli/recommend/vectors.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 256 }; /* histories at once */

static cli_interactions_options data = {CLI_INTERACTIONS_DEFAULTS};
static cli_texts users, histories, similar;
static const char *model_name, *allow_path, *deny_path, *new_path, *texts_path, *text_column, *id_column,
    *categories_path, *category_column, *attention_path, *vectors_path, *output_path;
static int64_t k = 10, max_per_category, threads;
static int vector_format = -1;
static cli_types types;
static double diversity, new_share = -1;
static bool all_users, all_items, exclude_seen, json;

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
    {"all-items", 0, NULL, .flag = &all_items,
     .help = "print the items nearest to each item, as --similar does, a line each"},
    {"top", 'k', "N", .integer = &k, .min = 1, .max = INT32_MAX, .help = "number of items to print for each history"},
    {"exclude-seen", 0, NULL, .flag = &exclude_seen, .help = "do not recommend items of the history"},
    {"allow", 0, "FILE", .text = &allow_path,
     .help = "recommend only items of this file, which has an id a line, such as those in stock, or new ones for a "
             "list of their own"},
    {"deny", 0, "FILE", .text = &deny_path, .help = "recommend no item of this file"},
    {"new-share", 0, "SHARE", .number = &new_share, .max = 1, .quiet = true,
     .help =
         "give at least this share of each list to new items (cold start), and of its beginnings: they have few or no "
         "actions, so that their scores are rarely among the highest"},
    {"new", 0, "FILE", .text = &new_path,
     .help = "the new items, an id a line; default: all without an action in training"},
    {"max-per-category", 0, "N", .integer = &max_per_category, .min = 1, .max = INT32_MAX, .quiet = true,
     .help = "at most N items of a category in a list"},
    {"categories", 0, "FILE", .text = &categories_path,
     .help = "categories of items: lines of id and category with a tab between them, or CSV; default: a column of "
             "--item-texts"},
    {"category-column", 0, "NAME", .text = &category_column,
     .help = "their column; default: category, product type, type or genre, or the second of two"},
    {"diversity", 0, "L", .number = &diversity, .max = 1, .quiet = true,
     .help = "diversify lists by maximal marginal relevance: from 0, only the score counts, to 1, only how little the "
             "item is like those above it, by the cosine of their vectors"},
    CLI_ITEM_TEXTS_OPTION(&texts_path, "they are printed beside the ids"),
    CLI_TEXT_COLUMN_OPTION(&text_column),
    CLI_ID_COLUMN_OPTION(&id_column),
    {"attention", 'a', "FILE", .text = &attention_path, .writes = true,
     .help = "draw how the items of the first history are weighted, to this file: " PICTURE_FORMATS},
    {"vectors", 0, "FILE", .text = &vectors_path, .writes = true,
     .help = "write vectors: of all items, in the order of the model's items.json; or with --history, --user or "
             "--all-users, of these, whose products with those of items are the scores"},
    {"vector-format", 0, CLI_VECTOR_FORMATS, .choice = &vector_format,
     .help = "format of --vectors, as of attend embed; default: npy"},
    CLI_OUTPUT(&output_path),
    CLI_SHARD,
    CLI_TYPES(types),
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

typedef struct work {
    cli_recommender m;
    cli_interactions log; /* open for users */
    cli_item_texts texts, categories;
    cli_item_list allow, deny, new_items;
    int32_t *category; /* [items], or NULL */
    att_recommend_options options;
    cli_output out;
    cli_lists lists;          /* how they are printed */
    cli_item_vectors vectors; /* instead of lists, if vectors_path is set */
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

static const char *plural(int64_t n, const char *one, const char *more) { return n == 1 ? one : more; }

static const char *text_of(const work *w, const char *id) { return cli_item_texts_find(&w->texts, id); }

/* ---- Histories ------------------------------------------------------------------ */

/* Prints the lists of the block. */
static int print_block(work *w)
{
    att_recommendation r;
    int code = cli_status(w->m.base.ctx, att_recommend(w->m.model, w->h.n, w->h.items, w->h.offsets, &w->options, &r));
    if (code)
        return code;
    cli_progress_clear();
    if (attention_path && !w->drawn && w->h.n > 0) {
        w->drawn = true;
        code = history_attention_draw(&w->m, &w->texts, attention_path, w->name[0], r.items[0], w->h.items,
                                      w->h.offsets[1]);
    }
    for (int64_t i = 0; i < w->h.n; i++) {
        if (!code)
            cli_lists_print(&w->lists, w->name[i], w->missing[i], &r, i);
        w->popular += r.by_popular[i];
    }
    att_recommendation_free(w->m.base.ctx, &r);
    return code ? code : cli_output_flush(&w->out);
}

/* Prints the lists of the block, or writes the vectors of its histories. The block is then empty. */
static int recommend(work *w)
{
    const int code = vectors_path ? cli_item_vectors_add_histories(&w->vectors, &w->h, w->name) : print_block(w);
    for (int64_t i = 0; i < w->h.n; i++) {
        json_decref(w->missing[i]);
        w->missing[i] = NULL;
    }
    w->done += w->h.n;
    cli_progress_show(&w->progress, w->done, "histories", w->total ? (double)w->done / (double)w->total : 0);
    cli_histories_clear(&w->h);
    return code;
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

/* Returns which of n rows are of the shard, and sets what depends on it. */
static cli_range begin_rows(work *w, int64_t n)
{
    const cli_range r = cli_shard_of(n);
    w->total = r.end - r.first;
    w->vectors.before = r.first;
    return r;
}

static int of_users(work *w)
{
    const cli_range r = begin_rows(w, all_users ? w->log.info.users : users.n);
    int64_t user = 0;
    int code = CLI_DONE;
    for (int64_t i = r.first; !code && i < r.end; i++) {
        if (!all_users)
            code = cli_interactions_user(&w->log, data.path, users.text[i], &user);
        if (!code)
            code = add_user(w, all_users ? i : user);
    }
    return code || w->h.n == 0 ? code : recommend(w);
}

static int of_histories(work *w)
{
    const cli_range r = begin_rows(w, histories.n);
    int code = CLI_DONE;
    for (int64_t i = r.first; !code && i < r.end; i++)
        code = add(w, histories.text[i]);
    return code || w->h.n == 0 ? code : recommend(w);
}

/* Recommends for lines of standard input. The lists of a line are printed as soon as no further line waits. */
static int of_lines(work *w)
{
    cli_lines in;
    int code = cli_lines_open(&in, 0, NULL);
    if (!code)
        code = cli_lines_shard(&in);
    int64_t number = in.before;
    while (!code) {
        code = cli_lines_next(&in, BLOCK);
        if (code || in.count == 0)
            break;
        for (int64_t i = 0; !code && i < in.count; i++) {
            code = cli_check_line("standard input", ++number, in.text[i], in.bytes[i]);
            if (!code)
                code = add(w, in.text[i]);
        }
        if (!code && w->h.n > 0)
            code = recommend(w);
    }
    cli_lines_close(&in);
    return code;
}

/* ---- The work ------------------------------------------------------------------- */

/* An option, and whether it is set. */
typedef struct asked {
    const char *name;
    bool set;
} asked;

/* Returns the first of n options that is set, or NULL. */
static const char *first_of(const asked *options_of, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (options_of[i].set)
            return options_of[i].name;
    return NULL;
}

/* Checks options that need another one. */
static int check_needs(void)
{
    const struct {
        const char *name, *value, *needs;
        bool has;
    } all[] = {{"text-column", text_column, "--item-texts FILE", texts_path != NULL},
               {"id-column", id_column, "--item-texts FILE or --categories FILE", texts_path || categories_path},
               {"categories", categories_path, "--max-per-category N", max_per_category > 0},
               {"category-column", category_column, "--max-per-category N", max_per_category > 0},
               {"new", new_path, "--new-share SHARE", new_share >= 0}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].value && !all[i].has)
            return cli_misuse("--%s %s needs %s", all[i].name, all[i].value, all[i].needs);
    if (max_per_category > 0 && !categories_path && !texts_path)
        return cli_misuse("--max-per-category %lld needs --categories FILE, or --item-texts FILE with a column of "
                          "categories",
                          (long long)max_per_category);
    if (vector_format >= 0 && !vectors_path)
        return cli_misuse("--vector-format %s needs --vectors FILE", cli_vector_format(vector_format));
    return CLI_DONE;
}

/* Checks options that do not go with --vectors, or with lists of similar items. */
static int check_others(const char *first, bool of_history)
{
    const asked without_history[] = {{"exclude-seen", exclude_seen}, {"attention", attention_path != NULL}},
                of_lists[] = {{"exclude-seen", exclude_seen},     {"attention", attention_path != NULL},
                              {"allow", allow_path != NULL},      {"deny", deny_path != NULL},
                              {"new-share", new_share > 0},       {"max-per-category", max_per_category > 0},
                              {"diversity", diversity > 0},       {"json", json},
                              {"item-texts", texts_path != NULL}, {"output", output_path != NULL}};
    const char *other = vectors_path ? first_of(of_lists, sizeof of_lists / sizeof *of_lists)
                        : of_history ? NULL
                                     : first_of(without_history, 2);
    if (!other)
        return CLI_DONE;
    return vectors_path ? cli_misuse("--%s does not go with --vectors %s, which has no lists", other, vectors_path)
                        : cli_misuse("--%s does not go with --%s, where there is no history", other, first);
}

static int check_options(void)
{
    const asked all[] = {{"history", histories.n > 0},
                         {"user", users.n > 0},
                         {"all-users", all_users},
                         {"similar", similar.n > 0},
                         {"all-items", all_items}};
    const size_t n = sizeof all / sizeof *all;
    const char *first = first_of(all, n);
    for (size_t i = 0; i < n; i++)
        if (all[i].set && all[i].name != first)
            return cli_misuse("--%s does not go with --%s", all[i].name, first);
    const bool of_user = users.n > 0 || all_users, of_item = similar.n > 0 || all_items;
    if (of_user && !data.path)
        return cli_misuse("--%s needs --data FILE, the log of the user's actions", first);
    if (!of_user && data.path)
        return cli_misuse("--data %s needs --user USER or --all-users", data.path);
    if (of_item && vectors_path)
        return cli_misuse("--vectors does not go with --%s", first);
    const int code = check_needs();
    return code ? code : check_others(first, !of_item);
}

static void report(const work *w)
{
    char list[CLI_UNKNOWN_LIST];
    cli_unknown_list(&w->unknown, list);
    if (w->unknown.lines > 0)
        cli_note("%lld of %lld %s items that the model does not know, which are left out: %s%s",
                 (long long)w->unknown.lines, (long long)w->done, plural(w->done, "history has", "histories have"),
                 list,
                 !data.path && cli_unknown_has_spaces(&w->unknown) ? "; ids are separated by commas or tabs" : "");
    if (w->popular > 0)
        cli_note("%lld of %lld %s no item that the model knows: the most popular items are recommended",
                 (long long)w->popular, (long long)w->done, plural(w->done, "history has", "histories have"));
    if (w->drawn && w->done > 1)
        cli_note("%s shows the first of %lld histories", attention_path, (long long)w->done);
}

/* Prints what is asked for, or with --vectors writes the vectors of the histories. */
static int answer_each(work *w)
{
    const cli_similar_items items = {&w->m, &w->options, &w->lists, &w->out, &w->progress};
    cli_progress_begin(&w->progress);
    const int code = all_items              ? cli_similar_items_print_all(&items)
                     : similar.n            ? cli_similar_items_print(&items, &similar)
                     : users.n || all_users ? of_users(w)
                     : histories.n          ? of_histories(w)
                                            : of_lines(w);
    cli_progress_end(&w->progress);
    return code;
}

static int write_vectors(work *w)
{
    const bool of_user = users.n > 0 || all_users, of_history = of_user || histories.n > 0;
    int code =
        cli_item_vectors_open(&w->vectors, &w->m, vectors_path, vector_format < 0 ? CLI_VECTORS_NPY : vector_format,
                              of_user      ? "users"
                              : of_history ? "histories"
                                           : "items",
                              of_user      ? "user_id"
                              : of_history ? "history"
                                           : "item_id");
    if (!code)
        code = of_history ? answer_each(w) : cli_item_vectors_add_items(&w->vectors);
    code = cli_item_vectors_close(&w->vectors, code);
    if (!code)
        cli_item_vectors_report(&w->vectors, vectors_path, !of_history);
    return code;
}

static int answer(work *w)
{
    const bool of_item = similar.n > 0 || all_items;
    int code = cli_output_open(&w->out, output_path);
    if (code)
        return code;
    w->lists = (cli_lists){.m = &w->m,
                           .texts = &w->texts,
                           .file = w->out.file,
                           .json = json,
                           .lines = all_users || all_items,
                           .of_items = of_item,
                           .key = of_item     ? "similar_to"
                                  : data.path ? "user"
                                              : "history"};
    code = answer_each(w);
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

/* Reads the categories, which are a column of the titles' file if they have none of their own. */
static int read_categories(work *w)
{
    const char *path = categories_path ? categories_path : texts_path;
    if (!max_per_category)
        return CLI_DONE;
    const int code = cli_item_categories_read(&w->categories, path, id_column, category_column, data.skip_bad_lines);
    return code ? code : cli_item_categories_number(&w->categories, &w->m, path, &w->category);
}

static int prepare(work *w)
{
    int code = cli_item_list_read(&w->allow, &w->m, "allow", allow_path);
    if (!code)
        code = cli_item_list_read(&w->deny, &w->m, "deny", deny_path);
    if (!code)
        code = cli_item_list_read(&w->new_items, &w->m, "new", new_path);
    if (!code)
        code = cli_item_texts_read(&w->texts, texts_path, id_column, text_column, data.skip_bad_lines);
    if (!code && w->texts.n > 0)
        code = check_texts(w);
    if (!code)
        code = read_categories(w);
    if (!code)
        code = new_share > 0 && !new_path ? cli_untrained_check(&w->m) : CLI_DONE;
    if (!code && data.path)
        code = open_log(w);
    w->options = (att_recommend_options){.size = sizeof w->options,
                                         .k = k < w->m.info.items ? k : w->m.info.items,
                                         .exclude_seen = exclude_seen,
                                         .allow = w->allow.items,
                                         .n_allow = w->allow.n,
                                         .deny = w->deny.items,
                                         .n_deny = w->deny.n,
                                         .category = w->category,
                                         .max_per_category = max_per_category,
                                         .diversity = diversity,
                                         .new_share = new_share > 0 ? new_share : 0,
                                         .new_items = w->new_items.items,
                                         .n_new_items = w->new_items.n};
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
    if (!code && !users.n && !all_users && !similar.n && !all_items && !histories.n && !vectors_path)
        code = cli_finished_add_input();
    if (!code)
        code = cli_model_open(&w->m.base, &cli_recommender_kind, model_name, types, threads);
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
    free(w->new_items.items);
    free(w->category);
    cli_item_texts_free(&w->texts);
    cli_item_texts_free(&w->categories);
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
               "--all-users prints a line for each user of --data, separated by tabs: user, then id, score and with "
               "--item-texts title of each item; --all-items such a line for each item. For an index of vectors: the "
               "products of --vectors of items with those of users or histories are the scores.\n\n"
               "New items get into lists in three ways: a model trained with --item-texts --content add knows them by "
               "their texts; --new-share gives them a share of each list; --allow makes a list of them alone. "
               "--max-per-category and --diversity keep a list from having only items of one kind: with --diversity L "
               "the next item has the highest (1 - L) r - L c, its score as a share of the range of the scores of the "
               "first 10 k items, minus its largest cosine with an item above it (Carbonell, Goldstein 1998).\n\n"
               "--attention draws how the last state weights the items of the history: the mean of all heads, each "
               "layer, each head. Attention is not proof of a reason (Jain, Wallace 2019).",
    .examples = "attend recommend -m shop --history \"B000142FVW,B0009RF9DW\"\n"
                "attend recommend -m shop --data log.csv --user A1YJEY40YUW4SE --exclude-seen --attention why.svg\n"
                "attend recommend -m shop --data log.csv --all-users -k 20 -o lists.tsv\n"
                "attend recommend -m shop --data log.csv --all-users --new-share 0.1 --max-per-category 3 --item-texts "
                "products.csv -o lists.tsv\n"
                "attend recommend -m shop --similar B0009RF9DW\n"
                "attend recommend -m shop --all-items -k 20 -o similar.tsv\n"
                "attend recommend -m shop --data log.csv --all-users --vectors users.sql --vector-format pgvector",
    .options = options,
    .see = "train recommend|evaluate recommend",
    .complete = complete,
    .run = run,
};
