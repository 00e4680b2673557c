#include "caption/words.h"
#include "io/settings.h"
#include "caption/plain_words.h"
#include "util/array.h"

#include <stdlib.h>
#include <string.h>

/* Articles, conjunctions, prepositions, pronouns, auxiliary verbs. Numbers are not among them because they can be seen
 * in an image. */
static const char *const function_words[] = {
    "a",      "across",  "an",    "and",   "another", "are",  "around", "as",    "at",      "be",
    "behind", "being",   "by",    "down",  "for",     "from", "has",    "have",  "he",      "her",
    "him",    "his",     "in",    "into",  "is",      "it",   "its",    "next",  "near",    "of",
    "off",    "on",      "onto",  "or",    "other",   "out",  "over",   "she",   "some",    "that",
    "the",    "their",   "them",  "there", "these",   "they", "this",   "those", "through", "to",
    "toward", "towards", "under", "up",    "was",     "were", "which",  "while", "who",     "with"};

/* ---- counts */

void att_word_counts_init(att_word_counts *c, att_ctx *ctx)
{
    *c = (att_word_counts){.count = NULL};
    att_ids_init(&c->words, ctx);
}

void att_word_counts_free(att_word_counts *c)
{
    att_free(c->words.ctx, c->count);
    att_ids_free(&c->words);
}

att_status att_word_counts_add(att_word_counts *c, const char *text)
{
    att_status e = ATT_OK;
    for (att_byte_view word; !e && (word = att_next_plain_word(&text)).bytes > 0;) {
        const size_t n = (size_t)att_ids_count(&c->words);
        const att_where where = {.ctx = c->words.ctx, .of = "word", .number = (int64_t)n};
        int32_t id;
        e = att_grow(c->words.ctx, &c->count, sizeof *c->count, n, 1, &c->room);
        e = e ? e : att_ids_add(&c->words, word, &where, "the word", &id);
        if (e)
            return e;
        c->count[id] = (size_t)id == n ? 1 : c->count[id] + 1;
    }
    return e;
}

/* ---- a vocabulary */

typedef struct counted {
    const char *word;
    int64_t count;
} counted;

static int by_count(const void *x, const void *y)
{
    const counted *a = x, *b = y;
    return a->count != b->count ? (a->count < b->count) - (a->count > b->count) : strcmp(a->word, b->word);
}

static att_status add_word(att_words *w, const char *word, const att_where *where)
{
    int32_t id;
    return att_ids_add(&w->words, (att_byte_view){word, strlen(word)}, where, "the word", &id);
}

att_status att_words_make(att_words *w, const att_word_counts *counts, int64_t min_count, int64_t max)
{
    att_ctx *ctx = counts->words.ctx;
    const int64_t n = att_ids_count(&counts->words);
    *w = (att_words){.min_count = min_count};
    att_ids_init(&w->words, ctx);
    counted *all = att_alloc(ctx, (size_t)n, sizeof *all);
    if (!all)
        return ATT_ERR_MEMORY;
    for (int64_t i = 0; i < n; i++)
        all[i] = (counted){att_ids_at(&counts->words, i), counts->count[i]};
    qsort(all, (size_t)n, sizeof *all, by_count);
    att_status e = ATT_OK;
    for (int64_t i = 0; !e && i < n && all[i].count >= min_count && (max == 0 || i < max); i++)
        e = add_word(w, all[i].word, &(const att_where){.ctx = ctx, .of = "word", .number = i});
    if (!e && !att_ids_count(&w->words))
        e = att_fail(ctx, ATT_ERR_ARGUMENT,
                     "no word is in the captions %lld times or more: of their %lld words, the most frequent is there "
                     "%lld times",
                     (long long)min_count, (long long)n, n ? (long long)all[0].count : 0);
    att_free(ctx, all);
    return e;
}

void att_words_free(att_words *w) { att_ids_free(&w->words); }

/* ---- the file */

att_status att_words_write(const att_words *w, const char *folder)
{
    json_t *words = json_array();
    bool enough = words;
    for (int64_t i = 0; enough && i < att_ids_count(&w->words); i++)
        enough = !json_array_append_new(words, json_string(att_ids_at(&w->words, i)));
    json_t *root = enough ? json_pack("{s:O, s:I}", "words", words, "min_count", (json_int_t)w->min_count) : NULL;
    json_decref(words);
    return att_settings_write(w->words.ctx, folder, ATT_WORDS_FILE, root);
}

/* Returns whether a text is one word as att_plain_words makes it. plain: scratch memory. */
static bool is_plain(const char *text, att_bytes *plain)
{
    const size_t bytes = strlen(text);
    plain->count = 0;
    const int64_t words = att_plain_words((att_byte_view){text, bytes}, plain);
    return words == 1 && plain->count == bytes && !memcmp(plain->data, text, bytes);
}

static void read_words(att_words *w, att_settings *s)
{
    const json_t *list = att_settings_list(s, "words", true);
    att_bytes plain = {.ctx = s->ctx};
    for (size_t i = 0; !s->status && i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        const char *word = json_string_value(item);
        const att_where where = {.ctx = s->ctx, .path = s->path, .number = (int64_t)i};
        const bool fits = word && is_plain(word, &plain);
        if (plain.status)
            s->status = plain.status;
        else if (!fits)
            att_settings_fail(s, ATT_ERR_FORMAT, "\"words\"[%zu] is %s, not a word in lower case without punctuation",
                              i, att_json_show(item).text);
        else if (att_ids_find(&w->words, (att_byte_view){word, strlen(word)}) >= 0)
            att_settings_fail(s, ATT_ERR_FORMAT, "\"words\"[%zu], %s, occurs a second time", i,
                              att_json_show(item).text);
        else
            s->status = add_word(w, word, &where);
    }
    if (!s->status && !att_ids_count(&w->words))
        att_settings_fail(s, ATT_ERR_FORMAT, "\"words\" has no word");
    att_bytes_free(&plain);
}

att_status att_words_read(att_words *w, att_ctx *ctx, const char *folder)
{
    att_settings s;
    *w = (att_words){.min_count = 0};
    att_ids_init(&w->words, ctx);
    att_settings_read(&s, ctx, folder, ATT_WORDS_FILE, true);
    read_words(w, &s);
    w->min_count = att_settings_int(&s, "min_count", 0, INT32_MAX);
    const att_status e = s.status;
    att_settings_close(&s);
    return e;
}

/* ---- text and ids */

int64_t att_words_encode(const att_words *w, const char *text, int32_t *ids, int64_t room)
{
    int64_t n = 0;
    for (att_byte_view word; (word = att_next_plain_word(&text)).bytes > 0; n++) {
        const int64_t id = n < room ? att_ids_find(&w->words, word) : -1;
        if (n < room)
            ids[n] = id < 0 ? att_words_unknown(w) : (int32_t)id;
    }
    return n;
}

att_status att_words_decode(const att_words *w, const int32_t *ids, int64_t n, att_bytes *text)
{
    const int32_t unknown = att_words_unknown(w), end = att_words_end(w);
    for (int64_t i = 0, written = 0; i < n && ids[i] != end; i++) {
        if (ids[i] < 0 || ids[i] > end)
            return att_fail(w->words.ctx, ATT_ERR_ARGUMENT, "ids[%lld] is %d, not in [0, %d)", (long long)i, ids[i],
                            end + 1);
        if (ids[i] == unknown)
            continue;
        const char *word = att_ids_at(&w->words, ids[i]);
        att_bytes_add(text, " ", written++ > 0);
        att_bytes_add(text, word, strlen(word));
    }
    return text->status;
}

int64_t att_words_content(const att_words *w, int32_t *ids, int64_t room)
{
    int64_t n = 0;
    for (int32_t id = 0; n < room && id < att_words_unknown(w); id++) {
        const char *word = att_ids_at(&w->words, id);
        size_t i = 0;
        while (i < sizeof function_words / sizeof *function_words && strcmp(word, function_words[i]) != 0)
            i++;
        if (i == sizeof function_words / sizeof *function_words)
            ids[n++] = id;
    }
    return n;
}
