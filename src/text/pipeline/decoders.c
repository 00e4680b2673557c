/* Decoders: each changes the list of tokens, which finally is the text. */
#include <string.h>

#include "text/pipeline/step.h"
#include "text/utf8.h"

/* ---- the list */

static const size_t *ends_of(const att_decoded *d) { return (const size_t *)(void *)d->ends.data; }

/* Returns the i-th token. */
static att_byte_view token_at(const att_decoded *d, size_t i)
{
    const size_t begin = i > 0 ? ends_of(d)[i - 1] : 0;
    const char *text = d->text.data ? d->text.data : ""; /* no token has text */
    return (att_byte_view){text + begin, ends_of(d)[i] - begin};
}

void att_decoded_put(att_decoded *d, const char *text, size_t bytes) { att_bytes_add(&d->text_to, text, bytes); }

void att_decoded_end_token(att_decoded *d) { att_bytes_add(&d->ends_to, &d->text_to.count, sizeof d->text_to.count); }

void att_decoded_swap(att_decoded *d)
{
    const att_bytes text = d->text, ends = d->ends;
    d->text = d->text_to;
    d->ends = d->ends_to;
    d->text_to = text;
    d->ends_to = ends;
    d->text_to.count = d->ends_to.count = 0;
}

void att_decoded_free(att_decoded *d)
{
    att_bytes_free(&d->text);
    att_bytes_free(&d->ends);
    att_bytes_free(&d->text_to);
    att_bytes_free(&d->ends_to);
}

/* Writes s [bytes] with `to` in place of each `from`. */
static void put_replaced(att_decoded *d, att_byte_view s, const char *from, const char *to)
{
    const size_t length = strlen(from);
    const char *end = s.data + s.bytes;
    for (const char *at = s.data, *found; at < end; at = found + length) {
        found = memmem(at, (size_t)(end - at), from, length);
        if (!found) {
            att_decoded_put(d, at, (size_t)(end - at));
            return;
        }
        att_decoded_put(d, at, (size_t)(found - at));
        att_decoded_put(d, to, strlen(to));
    }
}

/* Writes bytes as text, invalid ones as U+FFFD: each maximal invalid subpart of UTF-8, or each byte. */
static void put_valid(att_decoded *d, const char *s, size_t bytes, bool each)
{
    const bool valid = att_utf8_valid(s, bytes);
    for (size_t i = 0, n; i < bytes; i += n) {
        uint32_t c;
        char utf8[4];
        n = att_utf8_decode(s + i, bytes - i, &c);
        if (each && !valid)
            n = 1, c = ATT_REPLACEMENT;
        att_decoded_put(d, utf8, att_utf8_encode(c, utf8));
    }
}

/* ---- decoders */

/* Makes one text of bytes of all tokens; a token with a character that does not stand for a byte is not changed. */
static void decode_byte_level(const att_step *s, att_decoded *d)
{
    (void)s;
    att_bytes bytes = {.ctx = d->text.ctx};
    for (size_t i = 0; i < att_decoded_count(d); i++) {
        const att_byte_view token = token_at(d, i);
        const size_t before = bytes.count;
        uint32_t c;
        for (size_t k = 0; k < token.bytes;) {
            k += att_utf8_decode(token.data + k, token.bytes - k, &c);
            const int byte = att_char_byte(c);
            if (byte < 0) {
                bytes.count = before;
                att_bytes_add(&bytes, token.data, token.bytes);
                break;
            }
            att_bytes_add(&bytes, &(char){(char)byte}, 1);
        }
    }
    put_valid(d, bytes.data, bytes.count, false);
    att_decoded_end_token(d);
    if (bytes.status)
        d->text_to.status = bytes.status;
    att_bytes_free(&bytes);
}

static void decode_metaspace(const att_step *s, att_decoded *d)
{
    for (size_t i = 0; i < att_decoded_count(d); i++) {
        const bool dropped = i == 0 && s->prepend != ATT_PREPEND_NEVER;
        put_replaced(d, token_at(d, i), s->text, dropped ? "" : " ");
        att_decoded_end_token(d);
    }
}

/* Returns the byte of a token such as "<0x0A>"; otherwise -1. */
static int byte_of(att_byte_view token)
{
    static const char digits[] = "0123456789ABCDEF0123456789abcdef";
    if (token.bytes != 6 || memcmp(token.data, "<0x", 3) != 0 || token.data[5] != '>')
        return -1;
    const char *high = memchr(digits, token.data[3], 32), *low = memchr(digits, token.data[4], 32);
    return high && low ? (int)((high - digits) % 16 * 16 + (low - digits) % 16) : -1;
}

static void put_run(att_decoded *d, att_bytes *run)
{
    if (run->count == 0)
        return;
    put_valid(d, run->data, run->count, true);
    att_decoded_end_token(d);
    run->count = 0;
}

static void decode_byte_fallback(const att_step *s, att_decoded *d)
{
    (void)s;
    att_bytes run = {.ctx = d->text.ctx}; /* adjacent bytes */
    for (size_t i = 0; i < att_decoded_count(d); i++) {
        const att_byte_view token = token_at(d, i);
        const int byte = byte_of(token);
        if (byte >= 0) {
            att_bytes_add(&run, &(char){(char)byte}, 1);
            continue;
        }
        put_run(d, &run);
        att_decoded_put(d, token.data, token.bytes);
        att_decoded_end_token(d);
    }
    put_run(d, &run);
    if (run.status)
        d->text_to.status = run.status;
    att_bytes_free(&run);
}

static void decode_fuse(const att_step *s, att_decoded *d)
{
    (void)s;
    att_decoded_put(d, d->text.data, d->text.count);
    att_decoded_end_token(d);
}

/* Removes up to `start` of the character at the start of each token, and up to `stop` at its end. */
static void decode_strip(const att_step *s, att_decoded *d)
{
    for (size_t i = 0; i < att_decoded_count(d); i++) {
        att_byte_view token = token_at(d, i);
        for (int64_t n = 0; n < s->start && token.bytes >= s->bytes && !memcmp(token.data, s->text, s->bytes); n++)
            token = (att_byte_view){token.data + s->bytes, token.bytes - s->bytes};
        for (int64_t n = 0;
             n < s->stop && token.bytes >= s->bytes && !memcmp(token.data + token.bytes - s->bytes, s->text, s->bytes);
             n++)
            token.bytes -= s->bytes;
        att_decoded_put(d, token.data, token.bytes);
        att_decoded_end_token(d);
    }
}

static void decode_replace(const att_step *s, att_decoded *d)
{
    att_pieces p = {.ctx = d->text.ctx, .matches.ctx = d->text.ctx};
    for (size_t i = 0; i < att_decoded_count(d); i++) {
        const att_byte_view token = token_at(d, i);
        const size_t n = att_pattern_find(&p, &s->pattern, token.data, token.bytes);
        for (size_t k = 0; k < n; k++) {
            const att_match m = att_matches(&p)[k];
            if (m.is)
                att_decoded_put(d, s->text, s->bytes);
            else
                att_decoded_put(d, token.data + m.begin, m.end - m.begin);
        }
        att_decoded_end_token(d);
    }
    if (p.status)
        d->text_to.status = p.status;
    att_bytes_free(&p.matches);
    att_regex_match_free(&p.match);
}

/* Turns the suffix of words into a space, except that of the last token. */
static void decode_bpe(const att_step *s, att_decoded *d)
{
    const size_t n = att_decoded_count(d);
    for (size_t i = 0; i < n; i++) {
        put_replaced(d, token_at(d, i), s->text, i + 1 < n ? " " : "");
        att_decoded_end_token(d);
    }
}

enum { CLEAN_UPS = 11 };

/* Replaces the first n of these texts in each token. Only `tokenizers` has the last one. */
static void clean_up(att_decoded *d, int n)
{
    static const char *const pairs[CLEAN_UPS][2] = {
        {" .", "."},   {" ?", "?"},   {" !", "!"},     {" ,", ","},     {" ' ", "'"},         {" n't", "n't"},
        {" 'm", "'m"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}, {" do not", " don't"}};
    for (int k = 0; k < n; k++) {
        att_decoded_swap(d);
        for (size_t i = 0; i < att_decoded_count(d); i++) {
            put_replaced(d, token_at(d, i), pairs[k][0], pairs[k][1]);
            att_decoded_end_token(d);
        }
    }
}

static void decode_wordpiece(const att_step *s, att_decoded *d)
{
    for (size_t i = 0; i < att_decoded_count(d); i++) {
        att_byte_view token = token_at(d, i);
        if (i > 0 && token.bytes >= s->bytes && memcmp(token.data, s->text, s->bytes) == 0)
            token = (att_byte_view){token.data + s->bytes, token.bytes - s->bytes};
        else if (i > 0)
            att_decoded_put(d, " ", 1);
        att_decoded_put(d, token.data, token.bytes);
        att_decoded_end_token(d);
    }
    if (s->cleanup)
        clean_up(d, CLEAN_UPS);
}

void att_decoded_clean_up(att_decoded *d)
{
    decode_fuse(NULL, d);
    clean_up(d, CLEAN_UPS - 1);
    att_decoded_swap(d);
}

/* ---- settings */

static void read_bpe(att_settings *s, att_step *step)
{
    att_step_read_text(s, "suffix", false, &step->text, &step->bytes);
}

static void read_wordpiece(att_settings *s, att_step *step)
{
    att_step_read_text(s, "prefix", true, &step->text, &step->bytes);
    step->cleanup = att_settings_bool(s, "cleanup", true);
}

static void read_strip(att_settings *s, att_step *step)
{
    att_step_read_text(s, "content", false, &step->text, &step->bytes);
    step->start = att_settings_int(s, "start", 0, INT32_MAX);
    step->stop = att_settings_int(s, "stop", 0, INT32_MAX);
}

const att_step_type att_decoder_types[] = {
    {.name = "BPEDecoder", .read = read_bpe, .decode = decode_bpe},
    {.name = "ByteFallback", .decode = decode_byte_fallback},
    {.name = "ByteLevel", .decode = decode_byte_level},
    {.name = "Fuse", .decode = decode_fuse},
    {.name = "Metaspace", .read = att_step_read_metaspace, .decode = decode_metaspace},
    {.name = "Replace", .read = att_step_read_replace, .decode = decode_replace},
    {.name = "Strip", .read = read_strip, .decode = decode_strip},
    {.name = "WordPiece", .read = read_wordpiece, .decode = decode_wordpiece},
    {.name = NULL},
};
