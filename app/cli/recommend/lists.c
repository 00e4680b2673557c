#include "lists.h"
#include "cli/base/json.h"
#include "cli/base/utf8.h"

/* Writes a field. Control characters, such as tabs and line ends, become spaces. */
static void put_field(FILE *f, const char *text)
{
    while (*text) {
        const uint32_t code = utf8_next(&text);
        utf8_put(f, code < 0x20 || (code >= 0x7F && code < 0xA0) ? ' ' : code);
    }
}

static const char *text_of(const cli_lists *l, const char *id) { return cli_item_texts_find(l->texts, id); }

static void print_json(const cli_lists *l, const char *name, json_t *unknown, const att_recommendation *r, int64_t row)
{
    cli_json j = cli_json_begin(l->file);
    cli_json_string(&j, l->key, name);
    if (!l->of_items) {
        cli_json_bool(&j, "by_popularity", r->by_popular[row]);
        cli_json_value(&j, "unknown", unknown, 0);
    }
    cli_json_array(&j, "items");
    for (int64_t i = row * r->k; i < (row + 1) * r->k && r->items[i] >= 0; i++) {
        const char *id = l->m->items[r->items[i]], *text = text_of(l, id);
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

/* Prints a line, which can be cut at its tabs: the name, then id, score and, if there are titles, title of each item.
 */
static void print_line(const cli_lists *l, const char *name, const att_recommendation *r, int64_t row)
{
    put_field(l->file, name);
    for (int64_t i = row * r->k; i < (row + 1) * r->k && r->items[i] >= 0; i++) {
        const char *id = l->m->items[r->items[i]], *text = text_of(l, id);
        putc('\t', l->file);
        put_field(l->file, id);
        fprintf(l->file, "\t%.*f", digits(r, row), (double)r->scores[i]);
        if (l->texts->n > 0) {
            putc('\t', l->file);
            put_field(l->file, text ? text : "");
        }
    }
    putc('\n', l->file);
}

/* Prints a block for people: a line for each item. */
static void print_block(const cli_lists *l, const char *name, const att_recommendation *r, int64_t row)
{
    FILE *f = l->file;
    put_field(f, name);
    fputs(r->by_popular && r->by_popular[row] ? " (by popularity)\n" : "\n", f);
    for (int64_t i = row * r->k; i < (row + 1) * r->k && r->items[i] >= 0; i++) {
        const char *id = l->m->items[r->items[i]], *text = text_of(l, id);
        fprintf(f, "%10.*f  ", digits(r, row), (double)r->scores[i]);
        put_field(f, id);
        if (text) {
            fputs("  ", f);
            put_field(f, text);
        }
        putc('\n', f);
    }
}

void cli_lists_print(const cli_lists *l, const char *name, json_t *unknown, const att_recommendation *r, int64_t row)
{
    if (l->json)
        print_json(l, name, unknown, r, row);
    else
        (l->lines ? print_line : print_block)(l, name, r, row);
}
