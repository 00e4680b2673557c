/* Writes a tokenizer as values of a .gguf file. Settings that a file cannot express are refused, because it would be
 * another tokenizer. */
#include "text/gguf_tokenizer_write.h"

#include "text/gguf_tokenizer.h"
#include "text/gguf_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "tokenizer.ggml."

enum { NAME = 24, MAX_ENDS = 3 };

typedef struct writer {
    att_gguf_vocabulary *v;
    att_settings *s;
    att_gguf_writer *to;
    int64_t n;            /* tokens */
    att_byte_view *text;  /* [n] */
    int32_t *kind;        /* [n] */
    float *score;         /* [n] */
    char (*unused)[NAME]; /* [n]: names of unused tokens */
} writer;

static att_status out_of_memory(const writer *w)
{
    return w->s->status = att_fail(w->v->ctx, ATT_ERR_MEMORY, "%s: out of memory", w->s->path);
}

/* ---- the vocabulary */

static void set(writer *w, int64_t id, const char *text, size_t bytes, int kind)
{
    if (id >= w->n)
        att_settings_fail(w->s, ATT_ERR_FORMAT, "token \"%.*s\" has id %lld, but the model has %lld embeddings",
                          bytes < 80 ? (int)bytes : 80, text, (long long)id, (long long)w->n);
    if (w->s->status)
        return;
    w->text[id] = (att_byte_view){text, bytes};
    w->kind[id] = kind;
}

static bool is_byte(const att_trie_entry *e)
{
    return e->bytes == 6 && memcmp(e->text, "<0x", 3) == 0 && e->text[5] == '>';
}

/* Refuses added tokens that are found in another way than by default: files do not store how. */
static void check_added(writer *w, const json_t *token, const char *text)
{
    static const char *const options[] = {"single_word", "lstrip", "rstrip", "normalized"};
    const bool normalizer = att_settings_has(w->s, "normalizer");
    for (int i = 0; i < 4; i++)
        if (json_is_true(json_object_get(token, options[i])) && (i < 3 || normalizer))
            att_settings_fail(w->s, ATT_ERR_UNSUPPORTED,
                              "added token \"%.80s\" has \"%s\": true, which a .gguf file cannot express", text,
                              options[i]);
}

static void fill(writer *w)
{
    const json_t *added = att_settings_list(w->s, "added_tokens", false);
    const char *unknown = json_string_value(json_object_get(att_settings_get(w->s, "model"), "unk_token"));
    for (size_t i = 0; i < w->v->list.count; i++) {
        const att_trie_entry *e = &w->v->list.entry[i];
        set(w, e->id, e->text, e->bytes, w->v->pieces && is_byte(e) ? ATT_GGUF_BYTE : ATT_GGUF_NORMAL);
    }
    for (size_t i = 0; i < json_array_size(added); i++) {
        const json_t *token = json_array_get(added, i);
        const json_t *content = json_object_get(token, "content");
        const char *text = json_string_value(content);
        const bool special = json_is_true(json_object_get(token, "special"));
        const bool is_unknown = w->v->pieces && unknown && strcmp(unknown, text) == 0;
        check_added(w, token, text);
        set(w, (int64_t)json_number_value(json_object_get(token, "id")), text, json_string_length(content),
            is_unknown ? ATT_GGUF_UNKNOWN
            : special  ? ATT_GGUF_CONTROL
                       : ATT_GGUF_USER_DEFINED);
    }
    for (int64_t i = 0; !w->s->status && i < w->n; i++)
        if (!w->text[i].data) {
            const int length = snprintf(w->unused[i], NAME, "[PAD%lld]", (long long)i);
            set(w, i, w->unused[i], (size_t)length, ATT_GGUF_UNUSED);
        }
}

/* Returns the token of a text; -1: none. */
static int64_t find(const writer *w, const char *text)
{
    const size_t bytes = strlen(text);
    for (int64_t i = 0; i < w->n; i++)
        if (w->kind[i] != ATT_GGUF_UNUSED && w->text[i].bytes == bytes && !memcmp(w->text[i].data, text, bytes))
            return i;
    return -1;
}

/* ---- merges and scores */

/* Writes a merge's two texts with a space between: "a b" */
static bool add_merge(const json_t *merge, const char *between, att_bytes *to)
{
    att_byte_view side[2];
    if (!att_split_merge(merge, side))
        return false;
    att_bytes_add(to, side[0].data, side[0].bytes);
    att_bytes_add(to, between, strlen(between));
    att_bytes_add(to, side[1].data, side[1].bytes);
    return true;
}

static const json_t *merges_of(const json_t *root) { return json_object_get(json_object_get(root, "model"), "merges"); }

/* Joins the two texts of each merge by `between` -> text, and where each begins -> begin [merges + 1]; the caller frees
 * both. */
static att_status list_merges(att_ctx *ctx, const json_t *merges, const char *between, att_bytes *text, size_t **begin)
{
    const size_t n = json_array_size(merges);
    *text = (att_bytes){.ctx = ctx};
    *begin = att_calloc(ctx, n + 1, sizeof **begin);
    for (size_t i = 0; *begin && i < n; i++) {
        add_merge(json_array_get(merges, i), between, text);
        (*begin)[i + 1] = text->count;
    }
    return *begin ? text->status : ATT_ERR_MEMORY;
}

static void put_merges(writer *w)
{
    const size_t n = json_array_size(merges_of(w->s->root));
    att_bytes text;
    size_t *begin;
    att_status s = list_merges(w->v->ctx, merges_of(w->s->root), " ", &text, &begin);
    att_byte_view *view = att_alloc(w->v->ctx, n, sizeof *view);
    for (size_t i = 0; !s && view && i < n; i++)
        view[i] = (att_byte_view){text.data + begin[i], begin[i + 1] - begin[i]};
    if (!s && view)
        att_gguf_put_texts(w->to, KEY "merges", view, (int64_t)n);
    else
        out_of_memory(w);
    att_free(w->v->ctx, view);
    att_free(w->v->ctx, begin);
    att_bytes_free(&text);
}

/* Finds the piece that each merge makes -> piece [merges]; -1: none */
static att_status find_pieces(const writer *w, const json_t *merges, int32_t *piece)
{
    const size_t n = w->v->list.count;
    att_bytes text;
    size_t *begin;
    att_status s = list_merges(w->v->ctx, merges, "", &text, &begin);
    att_trie_entry *sorted = att_alloc(w->v->ctx, n, sizeof *sorted);
    s = s ? s : sorted ? ATT_OK : ATT_ERR_MEMORY;
    if (!s && n > 0) {
        memcpy(sorted, w->v->list.entry, n * sizeof *sorted);
        qsort(sorted, n, sizeof *sorted, att_trie_order);
    }
    for (size_t i = 0; !s && i < json_array_size(merges); i++) {
        const att_trie_entry wanted = {text.data + begin[i], begin[i + 1] - begin[i], 0};
        const att_trie_entry *e = bsearch(&wanted, sorted, n, sizeof wanted, att_trie_order);
        piece[i] = e ? e->id : -1;
    }
    att_free(w->v->ctx, sorted);
    att_free(w->v->ctx, begin);
    att_bytes_free(&text);
    return s;
}

/* Sets scores in the order of the merges: 0, -1, -2, ... as SentencePiece writes them. Pieces whose merges are
 * interleaved get the same score, as those of several spaces in Llama 2. last [n]: 1 + the last merge of each piece. */
static void set_scores(writer *w, const int32_t *piece, int64_t merges, int64_t *last)
{
    int64_t made = 0, end = 0;
    for (int64_t i = 0; i < merges; i++)
        if (piece[i] >= 0)
            last[piece[i]] = i + 1;
    for (int64_t i = 0; i < merges; i++) {
        if (piece[i] < 0)
            continue;
        made += i >= end;
        w->score[piece[i]] = 1 - (float)made;
        end = last[piece[i]] > end ? last[piece[i]] : end;
    }
    for (int64_t i = 0; i < w->n; i++)
        if (w->kind[i] != ATT_GGUF_NORMAL)
            w->score[i] = 0;
        else if (!last[i])
            w->score[i] = -(float)made++;
}

static void put_scores(writer *w)
{
    const json_t *merges = merges_of(w->s->root);
    const size_t n = json_array_size(merges);
    int32_t *piece = att_alloc(w->v->ctx, n, sizeof *piece);
    int64_t *last = att_calloc(w->v->ctx, (size_t)w->n, sizeof *last);
    if (!piece || !last || find_pieces(w, merges, piece))
        out_of_memory(w);
    else {
        set_scores(w, piece, (int64_t)n, last);
        att_gguf_put_numbers(w->to, KEY "scores", w->score, w->n);
    }
    att_free(w->v->ctx, piece);
    att_free(w->v->ctx, last);
}

/* ---- tokens with a meaning */

/* Reads the ids of "eos_token_id" in generation_config.json, or else config.json -> id; returns their number. */
static int64_t read_ends(writer *w, int64_t id[MAX_ENDS + 1])
{
    static const char *const names[] = {"generation_config.json", "config.json"};
    int64_t n = 0;
    for (int i = 0; i < 2 && n == 0 && !w->s->status; i++) {
        att_settings file;
        att_settings_read(&file, w->v->ctx, w->v->folder, names[i], false);
        const json_t *value = file.status ? NULL : att_settings_get(&file, "eos_token_id");
        const size_t count = json_is_array(value) ? json_array_size(value) : value != NULL;
        if (count > MAX_ENDS)
            att_settings_fail(&file, ATT_ERR_UNSUPPORTED,
                              "\"eos_token_id\" has %zu tokens, more than the %d that a .gguf file can express", count,
                              MAX_ENDS);
        for (size_t k = 0; !file.status && k < count; k++) {
            const json_t *one = json_is_array(value) ? json_array_get(value, k) : value;
            const double number = json_number_value(one);
            if (json_is_number(one) && number >= 0 && number < (double)w->n)
                id[n++] = (int64_t)number;
            else
                att_settings_fail(&file, ATT_ERR_FORMAT, "\"eos_token_id\" has %s, not a token",
                                  att_json_show(one).text);
        }
        w->s->status = file.status;
        att_settings_close(&file);
    }
    return n;
}

/* Writes the tokens that end a text: the tokenizer's own first, if it is one of them. */
static int64_t put_ends(writer *w, int64_t own)
{
    static const char *const keys[] = {KEY "eos_token_id", KEY "eot_token_id", KEY "eom_token_id"};
    int64_t id[MAX_ENDS + 1], n = read_ends(w, id);
    if (n == 0 && own >= 0)
        id[n++] = own;
    for (int64_t i = 1; i < n; i++)
        if (id[i] == own) {
            memmove(id + 1, id, (size_t)i * sizeof *id);
            id[0] = own;
        }
    for (int64_t i = 0; !w->s->status && i < n; i++)
        att_gguf_put_int(w->to, keys[i], id[i]);
    return n > 0 ? id[0] : -1;
}

/* Finds the tokens that the tokenizer adds around a text. */
static void put_around(writer *w, int64_t bos, int64_t eos)
{
    att_tokens around;
    if (!w->s->status)
        w->s->status = att_tokenize(w->v->t, "", 0, NULL, &around);
    if (w->s->status)
        return;
    const bool begin = around.count > 0 && around.ids[0] == bos;
    const bool end = around.count > begin && around.ids[begin] == eos;
    if (around.count != (int64_t)begin + (int64_t)end)
        att_settings_fail(w->s, ATT_ERR_UNSUPPORTED,
                          "\"post_processor\" writes tokens around a text other than one bos_token and one eos_token, "
                          "which a .gguf file cannot express");
    att_gguf_put_bool(w->to, KEY "add_bos_token", begin);
    if (end)
        att_gguf_put_bool(w->to, KEY "add_eos_token", true);
    att_tokens_free(w->v->ctx, &around);
}

static void put_special(writer *w)
{
    static const char *const names[] = {"bos_token", "eos_token", "unk_token", "pad_token"};
    static const char *const keys[] = {KEY "bos_token_id", NULL, KEY "unknown_token_id", KEY "padding_token_id"};
    int64_t id[4], eos = -1;
    att_settings config, map;
    att_settings_read(&config, w->v->ctx, w->v->folder, "tokenizer_config.json", false);
    att_special_tokens_map_read(&config, w->v->folder, &map);
    for (int i = 0; i < 4 && !config.status; i++) {
        const char *text = att_special_token(&config, &map, names[i], NULL);
        id[i] = text ? find(w, text) : -1;
        if (text && id[i] < 0)
            att_settings_fail(&config, ATT_ERR_FORMAT, "\"%s\" is \"%.80s\", which is not in the vocabulary", names[i],
                              text);
        else if (id[i] >= 0 && keys[i])
            att_gguf_put_int(w->to, keys[i], id[i]);
        else if (i == 1 && !config.status)
            eos = put_ends(w, id[i]);
    }
    if (config.status)
        w->s->status = w->s->status ? w->s->status : config.status;
    else
        put_around(w, id[0], eos);
    att_settings_close(&config);
    att_settings_close(&map);
}

/* ---- the kind of tokenizer */

/* Counts the tokens of single bytes, which are characters below U+0144 in byte-level BPE. */
static int count_bytes(const writer *w)
{
    int n = 0;
    for (int64_t i = 0; i < w->n; i++) {
        const unsigned char *t = (const unsigned char *)w->text[i].data;
        const bool two = w->text[i].bytes == 2 && t[0] >= 0xC0;
        const unsigned c = two ? (t[0] & 31U) << 6 | (t[1] & 63U) : w->text[i].bytes == 1 ? t[0] : 0;
        n += w->kind[i] == ATT_GGUF_NORMAL && ((c > ' ' && c <= '~') || (c >= 0xA1 && c != 0xAD && c < 0x144));
    }
    return n;
}

static void check_model(writer *w)
{
    const att_settings_scope before = att_settings_enter(w->s, "model");
    const char *type = att_settings_text(w->s, "type", NULL);
    if (strcmp(type, "BPE") != 0)
        att_settings_unsupported(w->s, "type", "BPE");
    att_settings_only_number(w->s, "dropout", 0);
    att_settings_only_empty(w->s, "continuing_subword_prefix");
    att_settings_only_empty(w->s, "end_of_word_suffix");
    w->v->pieces = att_settings_bool(w->s, "byte_fallback", false);
    if (!w->v->pieces && att_settings_has(w->s, "unk_token") && count_bytes(w) < 256)
        att_settings_fail(
            w->s, ATT_ERR_UNSUPPORTED,
            "\"%sunk_token\" stands for bytes without a token, which a .gguf file cannot express; there are %d",
            w->s->within, 256 - count_bytes(w));
    att_settings_leave(w->s, before);
}

static void put_kind(writer *w)
{
    const char *tag = w->v->pieces ? "default" : att_gguf_words_tag(w->s->root);
    if (!tag)
        att_settings_fail(w->s, ATT_ERR_UNSUPPORTED,
                          "\"normalizer\", \"pre_tokenizer\" and \"ignore_merges\" correspond together to none of the "
                          "tags that a .gguf file can have: gpt-2, smollm, llama-bpe, dbrx, qwen2, tekken or default");
    if (w->s->status)
        return;
    att_gguf_put_text(w->to, KEY "model", w->v->pieces ? "llama" : "gpt2");
    att_gguf_put_text(w->to, KEY "pre", tag);
}

/* Returns whether the tokenizer puts a space before a text. */
static bool has_prefix(const writer *w)
{
    const json_t *steps = json_object_get(att_settings_get(w->s, "normalizer"), "normalizers");
    const char *type = json_string_value(json_object_get(json_array_get(steps, 0), "type"));
    return type && strcmp(type, "Prepend") == 0;
}

static void put_all(writer *w)
{
    att_settings *s = w->s;
    w->v->pieces = json_is_true(json_object_get(att_settings_get(s, "model"), "byte_fallback"));
    fill(w);
    if (!s->status)
        check_model(w);
    put_kind(w);
    if (s->status)
        return;
    att_gguf_put_texts(w->to, KEY "tokens", w->text, w->n);
    att_gguf_put_ints(w->to, KEY "token_type", w->kind, w->n);
    if (w->v->pieces) {
        put_scores(w);
        att_gguf_put_bool(w->to, KEY "add_space_prefix", has_prefix(w));
    } else
        put_merges(w);
    if (!s->status)
        put_special(w);
}

att_status att_gguf_vocabulary_put(att_gguf_vocabulary *v, att_gguf_writer *to, int64_t n)
{
    writer w = {.v = v, .s = &v->settings, .to = to, .n = n};
    w.text = att_calloc(v->ctx, (size_t)n, sizeof *w.text);
    w.kind = att_calloc(v->ctx, (size_t)n, sizeof *w.kind);
    w.score = att_calloc(v->ctx, (size_t)n, sizeof *w.score);
    w.unused = att_calloc(v->ctx, (size_t)n, sizeof *w.unused);
    if (w.text && w.kind && w.score && w.unused)
        put_all(&w);
    else
        out_of_memory(&w);
    att_free(v->ctx, w.text);
    att_free(v->ctx, w.kind);
    att_free(v->ctx, w.score);
    att_free(v->ctx, w.unused);
    return v->settings.status;
}

/* ---- what was written */

/* Compares merges: *same if they make the same texts in the same order. Two merges that make the same text may be in
 * either order. */
static att_status compare_merges(const att_gguf_vocabulary *v, const json_t *is, bool *same)
{
    const json_t *lists[] = {is, merges_of(v->settings.root)};
    att_bytes text[2];
    size_t *begin[2];
    att_status s = ATT_OK;
    for (int i = 0; i < 2; i++) {
        const att_status one = list_merges(v->ctx, lists[i], "", &text[i], &begin[i]);
        s = s ? s : one;
    }
    const size_t n = json_array_size(lists[0]);
    *same = !s && json_array_size(lists[1]) == n && text[0].count == text[1].count &&
            (n == 0 || (!memcmp(begin[0], begin[1], (n + 1) * sizeof **begin) &&
                        !memcmp(text[0].data, text[1].data, text[0].count)));
    for (int i = 0; i < 2; i++) {
        att_free(v->ctx, begin[i]);
        att_bytes_free(&text[i]);
    }
    return s;
}

att_status att_gguf_vocabulary_check(att_gguf_vocabulary *v, att_gguf *g)
{
    static const char *const names[] = {"normalizer", "pre_tokenizer", "decoder"};
    att_settings *s = &v->settings, made;
    att_token_list list = {.ctx = v->ctx};
    json_t *root;
    bool same = true;
    s->status = s->status ? s->status : att_gguf_tokenizer(g, &list, &root);
    att_token_list_free(&list);
    if (s->status)
        return s->status;
    s->status = compare_merges(v, merges_of(root), &same);
    json_object_del(root, "model");
    att_settings_from_json(&made, v->ctx, s->path, root);
    s->status = s->status ? s->status : made.status;
    for (int i = 0; i < 3 && v->pieces; i++) {
        const json_t *is = att_settings_get(&made, names[i]), *want = att_settings_get(s, names[i]);
        if (is && want ? !json_equal(is, want) : is != want)
            att_settings_fail(s, ATT_ERR_UNSUPPORTED,
                              "\"%s\" is not the one that a .gguf file with \"byte_fallback\" implies", names[i]);
    }
    if (!same)
        att_settings_fail(s, ATT_ERR_UNSUPPORTED,
                          "\"model.merges\" are not those that scores of tokens imply, which a .gguf file has instead");
    att_settings_close(&made);
    return s->status;
}

/* ---- opening */

att_status att_gguf_vocabulary_open(att_gguf_vocabulary *v, att_ctx *ctx, const char *folder)
{
    *v = (att_gguf_vocabulary){
        .ctx = ctx, .folder = folder, .file = {.ctx = ctx}, .list = {.ctx = ctx}, .settings = {.ctx = ctx}};
    att_status s = att_tokenizer_open(ctx, folder, &v->t);
    return s ? s : att_tokenizer_files_read(&v->file, ctx, folder, &v->list, &v->settings);
}

void att_gguf_vocabulary_close(att_gguf_vocabulary *v)
{
    att_tokenizer_free(v->t);
    att_settings_close(&v->settings);
    att_token_list_free(&v->list);
    att_text_file_free(&v->file);
}
