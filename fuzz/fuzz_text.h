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

/* Offsets lie in the text; decoding works, where a tokenizer decodes. */
static inline void fuzz_check_offsets(const att_tokenizer *t, fuzz_section text)
{
    att_tokens x;
    att_text decoded;
    if (att_tokenize(t, (const char *)text.data, text.size, ATT_OPTIONS(att_tokenize_options, .offsets = true), &x))
        return; /* this tokenizer has none */
    for (int64_t i = 0; i < x.count; i++)
        fuzz_check(0 <= x.offsets[2 * i] && x.offsets[2 * i] <= x.offsets[2 * i + 1] &&
                       x.offsets[2 * i + 1] <= (int64_t)text.size,
                   "offsets outside the text");
    const att_status s = att_detokenize(t, x.ids, x.count, &decoded);
    fuzz_check(!s || s == ATT_ERR_UNSUPPORTED, "ids are not decoded");
    att_text_free(fuzz_context(), &decoded);
    att_tokens_free(fuzz_context(), &x);
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
