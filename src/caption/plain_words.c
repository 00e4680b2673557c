#include "caption/plain_words.h"
#include "text/utf8.h"

#include <string.h>

#include <utf8proc.h>

typedef enum character_kind { DROPPED, WORD, SEPARATOR } character_kind;

static character_kind kind_of(uint32_t c)
{
    if (c < 0x80) /* most characters */
        return (c | 0x20) - 'a' < 26u || c - '0' < 10u ? WORD : c <= ' ' || c == 0x7F ? SEPARATOR : DROPPED;
    const char *category = utf8proc_category_string((utf8proc_int32_t)c);
    if (strchr("LMN", category[0]))
        return WORD;
    return category[0] == 'Z' || !strcmp(category, "Cc") ? SEPARATOR : DROPPED;
}

static uint32_t lower_case(uint32_t c)
{
    if (c < 0x80) /* a letter, or a digit, which has this bit already */
        return c | 0x20;
    return (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
}

int64_t att_plain_words(att_byte_view text, att_bytes *out)
{
    int64_t words = 0;
    bool inside = false;
    for (size_t at = 0; at < text.bytes;) {
        uint32_t c;
        char encoded[4];
        at += att_utf8_decode(text.data + at, text.bytes - at, &c);
        const character_kind kind = kind_of(c);
        if (kind == WORD) {
            if (!inside && words++ > 0)
                att_bytes_add(out, " ", 1);
            att_bytes_add(out, encoded, att_utf8_encode(lower_case(c), encoded));
        }
        inside = kind == WORD || (inside && kind == DROPPED);
    }
    return words;
}

att_byte_view att_next_plain_word(const char **at)
{
    const char *begin = *at + (**at == ' '), *end = strchrnul(begin, ' ');
    *at = end;
    return (att_byte_view){begin, (size_t)(end - begin)};
}
