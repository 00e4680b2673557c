/* Properties of any tokenizer and any text. */
#ifndef FUZZ_TEXT_H
#define FUZZ_TEXT_H

#include "fuzz.h"

#include "attend_text.h"

static inline att_tokens fuzz_encode(const att_tokenizer *t, fuzz_section text, int64_t max_tokens, bool no_special)
{
    att_tokens tokens;
    const att_status s =
        att_tokenize(t, (const char *)text.data, text.size,
                     ATT_OPTIONS(att_tokenize_options, .max_tokens = max_tokens, .no_special = no_special), &tokens);
    fuzz_check(!s, "a text is refused");
    for (int64_t i = 0; i < tokens.count; i++)
        fuzz_check(tokens.ids[i] >= 0 && tokens.ids[i] < att_tokenizer_size(t) &&
                       att_tokenizer_token(t, tokens.ids[i]) != NULL,
                   "an id that no token has");
    return tokens;
}

/* Returns whether it is between two characters. Each byte that is not UTF-8 may be a character. */
static inline bool fuzz_is_boundary(fuzz_section text, int64_t at)
{
    for (int64_t back = 1; back < 4 && back <= at && at < (int64_t)text.size; back++) {
        uint32_t code;
        const char *c = (const char *)text.data + (at - back);
        const size_t n = att_utf8_decode(c, text.size - (size_t)(at - back), &code);
        if ((int64_t)n > back && att_utf8_valid(c, n))
            return false;
    }
    return true;
}

/* Tokens with offsets are those without; offsets ascend, lie in the text, and between its characters. Ids have a text.
 */
static inline void fuzz_check_offsets(const att_tokenizer *t, fuzz_section text)
{
    att_tokens x, plain = fuzz_encode(t, text, 0, false);
    att_text decoded;
    fuzz_check(
        !att_tokenize(t, (const char *)text.data, text.size, ATT_OPTIONS(att_tokenize_options, .offsets = true), &x),
        "a text is refused with offsets alone");
    fuzz_check(x.count == plain.count && !memcmp(x.ids, plain.ids, (size_t)x.count * sizeof *x.ids),
               "offsets change the tokens");
    int64_t last = 0; /* where the token before begins */
    for (int64_t i = 0; i < x.count; i++) {
        const int64_t begin = x.offsets[2 * i], end = x.offsets[2 * i + 1];
        fuzz_check(0 <= begin && begin <= end && end <= (int64_t)text.size, "offsets outside the text");
        fuzz_check(fuzz_is_boundary(text, begin) && fuzz_is_boundary(text, end), "offsets within a character");
        fuzz_check(!x.special[i] || (begin == 0 && end == 0), "a token around the text has offsets");
        fuzz_check(x.special[i] || begin >= last, "offsets do not ascend");
        last = x.special[i] ? last : begin;
    }
    fuzz_check(!att_detokenize(t, x.ids, x.count, &decoded), "ids are not decoded");
    fuzz_check(att_utf8_valid(decoded.text, decoded.bytes), "decoded text is not UTF-8");
    att_text_free(fuzz_context(), &decoded);
    att_tokens_free(fuzz_context(), &x);
    att_tokens_free(fuzz_context(), &plain);
}

/* Tokens of the text are cut to a limit, on one side, and are otherwise those without one; special ones stay around
 * them. */
static inline void fuzz_check_text(const att_tokenizer *t, fuzz_section text)
{
    fuzz_check_offsets(t, text);
    att_tokens bare = fuzz_encode(t, text, 0, true), all = fuzz_encode(t, text, 0, false);
    const int64_t special = all.count - bare.count;
    fuzz_check(special >= 0 && !bare.truncated && !all.truncated, "cut without a limit");
    for (int64_t room = 0; room <= 8; room = 2 * room + 1) {
        const int64_t n = bare.count < room ? bare.count : room;
        if (special + room > 0) {
            att_tokens cut = fuzz_encode(t, text, special + room, false);
            fuzz_check(cut.count == special + n, "not cut to the limit");
            fuzz_check(cut.truncated == (bare.count > room), "truncated is wrong");
            att_tokens_free(fuzz_context(), &cut);
        }
        if (room > 0) {
            att_tokens cut = fuzz_encode(t, text, room, true);
            const size_t bytes = (size_t)n * sizeof *cut.ids;
            fuzz_check(cut.count == n &&
                           (!memcmp(cut.ids, bare.ids, bytes) || !memcmp(cut.ids, bare.ids + bare.count - n, bytes)),
                       "cut tokens are others");
            att_tokens_free(fuzz_context(), &cut);
        }
    }
    att_tokens_free(fuzz_context(), &bare);
    att_tokens_free(fuzz_context(), &all);
}

#endif
