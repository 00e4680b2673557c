#include "item_texts.h"
#include "cli/base/grow.h"
#include "cli/base/progress.h"
#include "cli/base/records.h"
#include "cli/sentence/sentence.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- Reading ---------------------------------------------------------------- */

/* What the texts are. */
typedef struct kind {
    const char *one, *many;   /* "text", "texts" */
    const char *option;       /* names the column */
    const char *const *names; /* [up to NULL]: usual names of the column, the best first */
    bool by_name;             /* of more than two columns it is only one with such a name */
} kind;

static const char *const text_names[] = {"title", "name", "text", NULL};
static const char *const category_names[] = {"category",
                                             "categories",
                                             "product category",
                                             "product_category",
                                             "product type",
                                             "product_type",
                                             "type",
                                             "genre",
                                             "genres",
                                             "class",
                                             NULL};
static const kind texts = {"text", "texts", "text-column", text_names, false},
                  categories = {"category", "categories", "category-column", category_names, true};

typedef struct reading {
    cli_records in;
    size_t *begin; /* [2 n]: of ids and texts in in.data */
    int64_t *line; /* [n] */
    size_t room;
    int64_t n;
    int64_t id, column;         /* columns of the id and the text */
    const char *id_name, *name; /* names of these columns; NULL: not given */
    const kind *of;
} reading;

/* Returns whether a field is one of the names, which end with NULL, in letters of either case. In RecBole's files a
 * name has a type, "title:token_seq". */
static bool is_name(const char *field, const char *const *names)
{
    bool found = false;
    for (; *names && !found; names++) {
        const size_t n = strlen(*names);
        found = !strncasecmp(field, *names, n) && (!field[n] || field[n] == ':');
    }
    return found;
}

static bool is_header(const reading *r)
{
    const cli_records *in = &r->in;
    static const char *const names[] = {"item_id",    "item", "itemid",    "movieid",    "asin", "id", "product_id",
                                        "product id", "sku",  "productid", "article_id", "isbn", NULL};
    return is_name(in->data + in->begin[0], names) ||
           (in->fields > 1 && is_name(in->data + in->begin[1], r->of->names));
}

/* Returns the column with the first of these names that there is, other than that of the ids; -1: none. */
static int64_t find_column(const reading *r, const char *const *names, int64_t except)
{
    for (; *names; names++)
        for (int64_t i = 0; i < r->in.fields; i++)
            if (i != except && is_name(r->in.data + r->in.begin[i], (const char *const[]){*names, NULL}))
                return i;
    return -1;
}

/* Finds a column that was named. */
static int find_named(const reading *r, const char *path, const char *option, const char *name, int64_t *column)
{
    *column = find_column(r, (const char *const[]){name, NULL}, -1);
    return *column >= 0 ? CLI_DONE
                        : cli_fail("%s: line %lld: has no column \"%.64s\" (--%s); its first is \"%.64s\"", path,
                                   (long long)r->in.line, name, option, r->in.data + r->in.begin[0]);
}

/* Chooses the columns with the ids and the texts. The current record is a header. */
static int choose_columns(reading *r, const char *path)
{
    const cli_records *in = &r->in;
    int code = r->id_name ? find_named(r, path, "id-column", r->id_name, &r->id) : CLI_DONE;
    if (!code && r->name)
        return find_named(r, path, r->of->option, r->name, &r->column);
    if (code)
        return code;
    r->column = find_column(r, r->of->names, r->id);
    if (r->column < 0 && r->of->by_name && in->fields > 2)
        return cli_fail("%s: line %lld: has no column \"%s\"; --%s NAME states which has the %s", path,
                        (long long)in->line, r->of->names[0], r->of->option, r->of->many);
    if (r->column < 0)
        r->column = r->id == 1 ? 0 : 1;
    if (in->fields > 2 && r->column < in->fields)
        cli_note("%s: the %s are the column \"%.64s\"", path, r->of->many, in->data + in->begin[r->column]);
    return CLI_DONE;
}

/* Reads the current record, which is not a header. */
static int add_record(reading *r)
{
    cli_records *in = &r->in;
    const cli_array arrays[] = {{&r->begin, 2 * sizeof *r->begin}, {&r->line, sizeof *r->line}};
    const int64_t last = r->id > r->column ? r->id : r->column;
    if (in->fields <= last)
        return cli_records_refuse(in, "has no %s after the item's id, \"%.64s\"; expected a %s between them%s",
                                  r->of->one, in->data + in->begin[0], in->between,
                                  strcmp(in->between, "tab") ? "" : ", or CSV with the ending .csv");
    const char *id = in->data + in->begin[r->id], *text = in->data + in->begin[r->column];
    if (!in->bytes[r->id])
        return cli_records_refuse(in, "the item's id is empty");
    if (strlen(id) != in->bytes[r->id] || strlen(text) != in->bytes[r->column])
        return cli_records_refuse(in, "has a zero byte");
    if (!cli_reserve(&r->room, (size_t)r->n + 1, arrays, 2))
        return cli_fail_memory();
    r->begin[2 * r->n] = in->begin[r->id];
    r->begin[2 * r->n + 1] = in->begin[r->column];
    r->line[r->n++] = in->line;
    if (in->fields > last + 1)
        in->used = in->begin[last + 1];
    return CLI_DONE;
}

static int read_records(reading *r, const char *path, int64_t skip)
{
    cli_skipped skipped;
    int code = cli_records_open(&r->in, path, CLI_PAIRS_BY_NAME, skip);
    for (bool first = true; !code; first = false) {
        code = cli_records_next(&r->in);
        if (code || r->in.fields == 0)
            break;
        if (first && (r->name || r->id_name || is_header(r))) {
            r->in.used = r->in.begin[0];
            code = choose_columns(r, path);
        } else
            code = add_record(r);
    }
    cli_records_skipped(&r->in, &skipped);
    if (!code)
        cli_skipped_report(skipped.n, skipped.first);
    return !code && r->n == 0 ? cli_fail("%s: has no %s", path, r->of->many) : code;
}

static int by_id(const void *a, const void *b, void *t)
{
    const cli_item_texts *texts = t;
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    const int order = strcmp(texts->id[x], texts->id[y]);
    return order ? order : (x > y) - (x < y);
}

static int sort(cli_item_texts *t, const reading *r, const char *path)
{
    for (int64_t i = 0; i < t->n; i++) {
        t->id[i] = t->data + r->begin[2 * i];
        t->text[i] = t->data + r->begin[2 * i + 1];
        t->sorted[i] = i;
    }
    qsort_r(t->sorted, (size_t)t->n, sizeof *t->sorted, by_id, t);
    for (int64_t i = 1; i < t->n; i++)
        if (!strcmp(t->id[t->sorted[i - 1]], t->id[t->sorted[i]]))
            return cli_fail("%s: line %lld: item \"%.64s\" has a %s already, in line %lld", path,
                            (long long)r->line[t->sorted[i]], t->id[t->sorted[i]], r->of->one,
                            (long long)r->line[t->sorted[i - 1]]);
    return CLI_DONE;
}

static int read_all(cli_item_texts *t, const char *path, reading *r, int64_t skip)
{
    *t = (cli_item_texts){0};
    if (!path)
        return CLI_DONE;
    int code = read_records(r, path, skip);
    t->n = code ? 0 : r->n;
    if (!code) {
        t->data = r->in.data;
        r->in.data = NULL;
        t->id = malloc((size_t)t->n * sizeof *t->id);
        t->text = malloc((size_t)t->n * sizeof *t->text);
        t->sorted = malloc((size_t)t->n * sizeof *t->sorted);
        code = t->id && t->text && t->sorted ? sort(t, r, path) : cli_fail_memory();
    }
    cli_records_close(&r->in);
    free(r->begin);
    free(r->line);
    return code;
}

int cli_item_texts_read(cli_item_texts *t, const char *path, const char *id_column, const char *column, int64_t skip)
{
    return read_all(t, path, &(reading){.column = 1, .id_name = id_column, .name = column, .of = &texts}, skip);
}

int cli_item_categories_read(cli_item_texts *t, const char *path, const char *id_column, const char *column,
                             int64_t skip)
{
    return read_all(t, path, &(reading){.column = 1, .id_name = id_column, .name = column, .of = &categories}, skip);
}

void cli_item_texts_free(cli_item_texts *t)
{
    free(t->id);
    free(t->text);
    free(t->sorted);
    free(t->data);
    free(t->vectors);
    *t = (cli_item_texts){0};
}

const char *cli_item_texts_find(const cli_item_texts *t, const char *id)
{
    int64_t low = 0, high = t->n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (strcmp(t->id[t->sorted[middle]], id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < t->n && !strcmp(t->id[t->sorted[low]], id) ? t->text[t->sorted[low]] : NULL;
}

int cli_item_texts_check(const cli_item_texts *t, const char *path, const att_interactions *log)
{
    att_interactions_info info = {.size = sizeof info};
    att_interactions_describe(log, &info);
    for (int64_t u = 0; t->n > 0 && u < info.users; u++) {
        const att_history h = att_interactions_history(log, u);
        for (int64_t i = 0; i < h.count; i++)
            if (cli_item_texts_find(t, att_interactions_item(log, h.items[i])))
                return CLI_DONE;
    }
    return t->n == 0 ? CLI_DONE
                     : cli_fail("--item-texts %s: no item of the log has a text there; the first id is \"%.64s\", and "
                                "that of the log \"%.64s\"",
                                path, t->id[0], att_interactions_item(log, att_interactions_history(log, 0).items[0]));
}

/* ---- Embedding -------------------------------------------------------------- */

enum { BLOCK = 512 }; /* texts at once */

typedef struct embedding {
    cli_sentence m;
    cli_progress progress;
    const char *text[BLOCK];
    size_t bytes[BLOCK];
    int64_t row[BLOCK]; /* of t->vectors */
    float *vectors;     /* [BLOCK, width] */
    int64_t count, done, truncated;
} embedding;

static int flush(embedding *b, cli_item_texts *t)
{
    bool truncated[BLOCK] = {false};
    const int code = cli_status(b->m.base.ctx,
                                att_sentence_embed(b->m.sentence, b->count, b->text, b->bytes,
                                                   ATT_OPTIONS(att_embed_options, .truncated = truncated), b->vectors));
    for (int64_t i = 0; !code && i < b->count; i++) {
        memcpy(t->vectors + b->row[i] * t->width, b->vectors + i * t->width, (size_t)t->width * sizeof(float));
        b->truncated += truncated[i];
    }
    b->done += b->count;
    b->count = 0;
    return code;
}

static int embed_all(embedding *b, cli_item_texts *t, const att_interactions *log, int64_t first, int64_t end)
{
    int code = CLI_DONE;
    for (int64_t i = first; !code && i < end; i++) {
        const char *text = cli_item_texts_find(t, att_interactions_item(log, i));
        if (!text || !*text) {
            t->missing++;
            continue;
        }
        b->text[b->count] = text;
        b->bytes[b->count] = strlen(text);
        b->row[b->count++] = i - first;
        if (b->count == BLOCK)
            code = flush(b, t);
        cli_progress_show(&b->progress, b->done, "item texts", (double)(i - first) / (double)(end - first));
    }
    return code || !b->count ? code : flush(b, t);
}

static int embed(embedding *b, cli_item_texts *t, const att_interactions *log, int64_t first, int64_t end)
{
    t->width = b->m.info.dim;
    t->missing = 0;
    free(t->vectors);
    t->vectors = calloc((size_t)(end - first + 1), (size_t)t->width * sizeof *t->vectors);
    b->vectors = malloc(BLOCK * (size_t)t->width * sizeof *b->vectors);
    if (!t->vectors || !b->vectors)
        return cli_fail_memory();
    cli_progress_begin(&b->progress);
    const int code = embed_all(b, t, log, first, end);
    cli_progress_end(&b->progress);
    if (!code && b->truncated)
        cli_note("%lld of %lld item texts are longer than %lld tokens and were truncated", (long long)b->truncated,
                 (long long)b->done, (long long)b->m.info.max_tokens);
    return code;
}

int cli_item_texts_embed(cli_item_texts *t, const char *model, int64_t threads, const att_interactions *log,
                         int64_t first, int64_t end)
{
    embedding *b = calloc(1, sizeof *b);
    int code = b ? cli_model_open(&b->m.base, &cli_sentence_kind, model, (cli_types){0}, threads) : cli_fail_memory();
    if (!code) {
        code = embed(b, t, log, first, end);
        free(b->vectors);
        cli_model_close(&b->m.base);
    }
    free(b);
    return code;
}
