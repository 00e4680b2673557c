/* Learns a SentencePiece model: counts words, selects characters, learns merges (bpe_learn.c), and writes the format
 * that sentencepiece_file.c reads. */

#include <stdlib.h>
#include <string.h>

#include "io/check_texts.h"
#include "util/util.h"
#include "text/bpe_learn.h"
#include "text/sentencepiece.h"
#include "text/utf8.h"

enum { MIN_PIECES = 4, MAX_LENGTH = 16, N_SPECIAL = 3 };

struct att_vocab {
    att_ctx *ctx;
    att_vocab_options options; /* its symbols are not used after att_vocab_new */
    att_bytes meta;            /* special pieces and settings, as a model file */
    int64_t n_meta;
    att_sentencepiece model; /* `meta` as an opened model: it normalizes text */
    att_trie special;        /* special pieces, which separate words */
    att_bytes texts, words;  /* words: att_word[] */
    att_hash_table by_text;  /* words */
    att_bytes normal;        /* scratch */
    att_bytes result;
    int64_t n_left_out; /* number of characters without a piece */
    att_bytes left_out; /* their text, UTF-8, zero-terminated */
};

static att_word *word_at(const att_vocab *v, size_t i) { return (att_word *)(void *)v->words.data + i; }
static size_t n_words(const att_vocab *v) { return v->words.count / sizeof(att_word); }

/* ---- special pieces and settings */

static void put_message(att_bytes *model, uint32_t number, att_bytes *message)
{
    att_proto_put_bytes(model, number, message->data, message->count);
    if (message->status && !model->status)
        model->status = message->status;
    att_bytes_free(message);
}

static void put_piece(att_bytes *model, const char *text, size_t bytes, float score, att_piece_type type)
{
    att_bytes piece = {.ctx = model->ctx};
    att_proto_put_bytes(&piece, 1, text, bytes);
    att_proto_put_float(&piece, 2, score);
    if (type != ATT_PIECE_NORMAL)
        att_proto_put_int(&piece, 3, type);
    put_message(model, 1, &piece);
}

static void put_special(att_vocab *v, const char *text, att_piece_type type)
{
    put_piece(&v->meta, text, strlen(text), 0, type);
    v->n_meta++;
}

/* Writes the fields of TrainerSpec and NormalizerSpec that differ from the default. */
static void put_settings(att_vocab *v)
{
    enum { NAME = 1, MAP = 2, TYPE = 3, COVERAGE = 10, LENGTH = 20, BY_SCRIPT = 21, DIGITS = 25, FALLBACK = 35 };
    const att_vocab_options *o = &v->options;
    const char *name = o->keep_text ? "identity" : "nfkc";
    att_bytes trainer = {.ctx = v->ctx}, normalizer = {.ctx = v->ctx}, map = {.ctx = v->ctx};
    att_proto_put_int(&trainer, TYPE, ATT_PIECES_BPE);
    att_proto_put_float(&trainer, COVERAGE, (float)o->character_coverage);
    att_proto_put_int(&trainer, LENGTH, (uint64_t)o->max_length);
    att_proto_put_int(&trainer, BY_SCRIPT, false);
    att_proto_put_int(&trainer, DIGITS, o->split_digits);
    att_proto_put_int(&trainer, FALLBACK, o->byte_fallback);
    put_message(&v->meta, 2, &trainer);
    att_proto_put_bytes(&normalizer, NAME, name, strlen(name));
    const att_status s = o->keep_text ? ATT_OK : att_nfkc_write(&map);
    att_proto_put_bytes(&normalizer, MAP, map.data, map.count);
    att_bytes_free(&map);
    put_message(&v->meta, 3, &normalizer);
    if (s)
        v->meta.status = s;
}

static void put_meta(att_vocab *v)
{
    const att_vocab_options *o = &v->options;
    put_special(v, "<unk>", ATT_PIECE_UNKNOWN);
    put_special(v, "<s>", ATT_PIECE_CONTROL);
    put_special(v, "</s>", ATT_PIECE_CONTROL);
    for (int64_t i = 0; i < o->n_control; i++)
        put_special(v, o->control[i], ATT_PIECE_CONTROL);
    for (int64_t i = 0; i < o->n_symbols; i++)
        put_special(v, o->symbols[i], ATT_PIECE_USER);
    for (int i = 0; o->byte_fallback && i < 256; i++) {
        const char text[] = {'<', '0', 'x', "0123456789ABCDEF"[i >> 4], "0123456789ABCDEF"[i & 15], '>', 0};
        put_special(v, text, ATT_PIECE_BYTE);
    }
    put_settings(v);
}

/* ---- construction */

static att_status check_options(att_ctx *ctx, att_vocab_options *o)
{
    if (o->character_coverage == 0)
        o->character_coverage = 0.9995;
    if (o->max_length == 0)
        o->max_length = MAX_LENGTH;
    if (o->pieces < MIN_PIECES || o->pieces > ATT_MAX_PIECES)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "pieces is %lld, not in [%d, %d]", (long long)o->pieces, MIN_PIECES,
                        ATT_MAX_PIECES);
    if (!(o->character_coverage > 0 && o->character_coverage <= 1))
        return att_fail(ctx, ATT_ERR_ARGUMENT, "character_coverage is %g, not in (0, 1]", o->character_coverage);
    if (o->max_characters < 0)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "max_characters is %lld, less than 0", (long long)o->max_characters);
    if (o->min_count < 0)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "min_count is %lld, less than 0", (long long)o->min_count);
    if (o->max_length < 1 || o->max_length > ATT_MAX_SYMBOL)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "max_length is %lld, not in [1, %d]", (long long)o->max_length,
                        ATT_MAX_SYMBOL);
    const att_status s = att_check_texts(ctx, "att_vocab_new: options.symbols", o->symbols, o->n_symbols);
    return s ? s : att_check_texts(ctx, "att_vocab_new: options.control", o->control, o->n_control);
}

static att_status make_trie(att_vocab *v)
{
    const size_t n = (size_t)v->model.size;
    att_trie_entry *entries = att_alloc(v->ctx, n, sizeof *entries);
    if (!entries)
        return ATT_ERR_MEMORY;
    for (size_t i = 0; i < n; i++)
        entries[i] = (att_trie_entry){v->model.piece[i].text, v->model.piece[i].bytes, (int32_t)i};
    qsort(entries, n, sizeof *entries, att_trie_order);
    const att_status s = att_trie_init(&v->special, v->ctx, entries, n);
    att_free(v->ctx, entries);
    return s;
}

att_status att_vocab_new(att_ctx *ctx, const att_vocab_options *opt, att_vocab **out)
{
    if (out)
        *out = NULL;
    if (att_require(__func__, ATT_NAMED({"ctx", ctx}, {"opt", opt}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    att_vocab_options o;
    att_status s = att_options_read(&o, sizeof o, opt, "att_vocab_options");
    s = s ? s : check_options(ctx, &o);
    if (s)
        return s;
    att_vocab *v = att_alloc(ctx, 1, sizeof *v);
    if (!v)
        return ATT_ERR_MEMORY;
    *v = (att_vocab){.ctx = ctx, .options = o, .model = att_sentencepiece_empty(ctx), .special.ctx = ctx};
    v->by_text.ctx = v->meta.ctx = v->texts.ctx = v->words.ctx = v->normal.ctx = v->result.ctx = v->left_out.ctx = ctx;
    put_meta(v);
    s = v->meta.status;
    if (!s)
        s = att_sentencepiece_parse(&v->model, ctx, "the vocabulary's special pieces",
                                    (att_byte_view){v->meta.data, v->meta.count});
    s = s ? s : make_trie(v);
    if (s)
        att_vocab_free(v);
    else
        *out = v;
    return s;
}

void att_vocab_free(att_vocab *v)
{
    if (!v)
        return;
    att_sentencepiece_free(&v->model);
    att_trie_free(&v->special);
    att_bytes_free(&v->meta);
    att_bytes_free(&v->texts);
    att_bytes_free(&v->words);
    att_bytes_free(&v->normal);
    att_bytes_free(&v->result);
    att_bytes_free(&v->left_out);
    att_hash_free(&v->by_text);
    att_free(v->ctx, v);
}

/* ---- counting words */

static att_hash_slot *slot_of(const att_vocab *v, uint32_t hash, const char *s, size_t bytes)
{
    for (uint32_t i = 0;; i++) {
        att_hash_slot *slot = att_hash_slot_at(&v->by_text, hash, i);
        if (slot->item == ATT_NO_ITEM)
            return slot;
        const att_word *w = word_at(v, (size_t)slot->item);
        if (slot->hash == hash && w->bytes == bytes && memcmp(v->texts.data + w->begin, s, bytes) == 0)
            return slot;
    }
}

static att_status count_word(att_vocab *v, const char *s, size_t bytes)
{
    const uint32_t hash = att_fnv32_bytes(ATT_FNV32_OFFSET, s, bytes);
    if (att_hash_reserve(&v->by_text, v->by_text.count + 1))
        return ATT_ERR_MEMORY;
    att_hash_slot *slot = slot_of(v, hash, s, bytes);
    if (slot->item != ATT_NO_ITEM) {
        word_at(v, (size_t)slot->item)->count++;
        return ATT_OK;
    }
    const att_word w = {v->texts.count, bytes, 1};
    att_bytes_add(&v->texts, s, bytes);
    if (!v->texts.status)
        att_bytes_add(&v->words, &w, sizeof w);
    if (v->texts.status || v->words.status)
        return ATT_ERR_MEMORY;
    att_hash_insert(&v->by_text, slot, hash, (int32_t)n_words(v) - 1);
    return ATT_OK;
}

/* Counts the words of normalized text. Special pieces separate words, so no trained piece contains one. */
static att_status count_between(att_vocab *v, const char *s, size_t bytes)
{
    size_t begin = 0;
    for (size_t i = 0; i < bytes;) {
        size_t symbol;
        att_trie_longest(&v->special, s + i, bytes - i, &symbol);
        if (symbol && i > begin && count_word(v, s + begin, i - begin) != ATT_OK)
            return ATT_ERR_MEMORY;
        i += symbol ? symbol : att_piece_char(s + i, bytes - i);
        begin = symbol ? i : begin;
    }
    return begin < bytes ? count_word(v, s + begin, bytes - begin) : ATT_OK;
}

att_status att_vocab_add(att_vocab *v, const char *text, size_t bytes)
{
    if (att_require(__func__, ATT_NAMED({"v", v})))
        return ATT_ERR_ARGUMENT;
    if (!text && bytes > 0)
        return att_fail(v->ctx, ATT_ERR_ARGUMENT, "att_vocab_add: text is NULL, but bytes is %zu", bytes);
    if (v->result.count > 0)
        return att_fail(v->ctx, ATT_ERR_ARGUMENT, "att_vocab_add: the vocabulary has been trained already");
    v->normal.count = 0;
    att_sentencepiece_normalize(&v->model, bytes > 0 ? text : "", bytes, &v->normal, NULL);
    att_status s = v->normal.status;
    for (size_t at = 0, n; !s && at < v->normal.count; at += n) {
        n = att_piece_word(v->normal.data + at, v->normal.count - at);
        s = count_between(v, v->normal.data + at, n);
    }
    return s;
}

/* ---- characters */

typedef struct character {
    int64_t count;
    uint32_t code;
} character;

static int by_count(const void *x, const void *y)
{
    const character *a = x, *b = y;
    return a->count != b->count ? (a->count < b->count) - (a->count > b->count)
                                : (a->code > b->code) - (a->code < b->code);
}

enum { CODES = 0x110000 };

/* Counts the characters of all words and sorts them by count: c [CODES]; returns the number of distinct ones. *all: the
 * number of all characters. */
static int64_t count_characters(const att_vocab *v, character *c, int64_t *all)
{
    int64_t different = 0;
    for (uint32_t i = 0; i < CODES; i++)
        c[i] = (character){0, i};
    *all = 0;
    for (size_t i = 0; i < n_words(v); i++) {
        const att_word *w = word_at(v, i);
        for (size_t at = 0; at < w->bytes;) {
            uint32_t code;
            at += att_utf8_decode(v->texts.data + w->begin + at, w->bytes - at, &code);
            c[code].count += code > 0 ? w->count : 0; /* no piece can have a zero byte */
            *all += w->count;
        }
    }
    for (uint32_t i = 0; i < CODES; i++)
        if (c[i].count > 0)
            c[different++] = c[i];
    qsort(c, (size_t)different, sizeof *c, by_count);
    return different;
}

/* Returns how many of c [different], sorted by count, become pieces. */
static int64_t characters_that_become_pieces(const att_vocab_options *o, const character *c, int64_t different,
                                             int64_t all)
{
    const int64_t max = o->max_characters > 0 ? att_min(o->max_characters, different) : different;
    int64_t n = 0, covered = 0;
    while (n < max && c[n].count >= o->min_count && (double)covered < o->character_coverage * (double)all)
        covered += c[n++].count;
    return n;
}

/* Stores the text of c [n] for the result. */
static att_status keep_left_out(att_vocab *v, const character *c, int64_t n)
{
    v->left_out.count = 0;
    for (int64_t i = 0; i < n; i++) {
        char text[4];
        att_bytes_add(&v->left_out, text, att_utf8_encode(c[i].code, text));
    }
    att_bytes_add(&v->left_out, "", 1);
    return v->left_out.status;
}

/* Adds characters that cover enough of the text to `symbols`, which it initializes; *n: their number. */
static att_status choose_characters(att_vocab *v, att_vocabulary *symbols, int64_t *n)
{
    const int64_t room = v->options.pieces - v->n_meta;
    character *c = att_alloc(v->ctx, CODES, sizeof *c);
    if (!c)
        return ATT_ERR_MEMORY;
    int64_t all;
    const int64_t different = count_characters(v, c, &all);
    *n = characters_that_become_pieces(&v->options, c, different, all);
    v->n_left_out = different - *n;
    att_status s = keep_left_out(v, c + *n, v->n_left_out);
    if (s)
        *n = 0;
    else if (different == 0)
        s = att_fail(v->ctx, ATT_ERR_ARGUMENT, "there is no text to learn a vocabulary from");
    else if (*n > room)
        s = att_fail(v->ctx, ATT_ERR_ARGUMENT,
                     "%lld special pieces and %lld characters are more than a vocabulary of %lld: it has to be larger, "
                     "or to cover fewer characters",
                     (long long)v->n_meta, (long long)*n, (long long)v->options.pieces);
    else
        s = att_vocabulary_init(symbols, v->ctx, room, 4 * (size_t)room * (size_t)v->options.max_length);
    for (int64_t i = 0; !s && i < *n; i++) {
        char text[4];
        if (!att_vocabulary_add(symbols, (int32_t)i, text, att_utf8_encode(c[i].code, text)))
            s = att_fail(v->ctx, ATT_ERR_UNSUPPORTED, "more than %d characters collide", ATT_MAX_PROBES);
    }
    att_free(v->ctx, c);
    return s;
}

/* ---- learning and writing */

/* Writes merged pieces in the order of learning, then characters, like the `sentencepiece` package. */
static att_status write_model(att_vocab *v, const att_vocabulary *symbols, int64_t n_characters, int64_t n)
{
    enum { TRAINER = 2, SIZE = 4 };
    att_bytes size = {.ctx = v->ctx};
    att_bytes_add(&v->result, v->meta.data, v->meta.count);
    for (int64_t i = 0; i < n; i++) {
        const int64_t id = i < n - n_characters ? n_characters + i : i - (n - n_characters);
        put_piece(&v->result, att_vocabulary_get(symbols, id), symbols->tokens[id].bytes, -(float)i, ATT_PIECE_NORMAL);
    }
    att_proto_put_int(&size, SIZE, (uint64_t)(v->n_meta + n));
    put_message(&v->result, TRAINER, &size); /* merged with the field written before */
    return v->result.status;
}

att_status att_vocab_train(att_vocab *v, att_vocab_result *result)
{
    if (att_require(__func__, ATT_NAMED({"v", v}, {"result", result})))
        return ATT_ERR_ARGUMENT;
    att_vocabulary symbols = {.ctx = v->ctx};
    int64_t n = 0, n_characters = 0;
    att_status s = v->result.count > 0
                       ? att_fail(v->ctx, ATT_ERR_ARGUMENT, "att_vocab_train: the vocabulary has been trained already")
                       : choose_characters(v, &symbols, &n);
    n_characters = n;
    s = s ? s : att_bpe_learn(&symbols, &n, v->texts.data, word_at(v, 0), n_words(v), &v->options);
    s = s ? s : write_model(v, &symbols, n_characters, n);
    att_vocabulary_free(&symbols);
    if (s)
        return s;
    const att_vocab_result r = {.model = v->result.data,
                                .bytes = v->result.count,
                                .pieces = v->n_meta + n,
                                .characters = n_characters,
                                .words = (int64_t)n_words(v),
                                .left_out = v->n_left_out,
                                .left_out_text = v->left_out.data};
    return att_info_write(result, &r, sizeof r, "att_vocab_result");
}
