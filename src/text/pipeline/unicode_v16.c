#include "text/pipeline/unicode_v16.h"

#include <utf8proc.h>

typedef att_newer_range newer_range;

#include "text/pipeline/unicode_v16_table.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const newer_range *newer(uint32_t c)
{
    for (size_t low = 0, high = COUNT(newer_table); low < high;) {
        const size_t middle = (low + high) / 2;
        if (c > newer_table[middle].last)
            low = middle + 1;
        else if (c < newer_table[middle].first)
            high = middle;
        else
            return &newer_table[middle];
    }
    return NULL;
}

size_t att_newer_chars(const att_newer_range **ranges)
{
    *ranges = newer_table;
    return COUNT(newer_table);
}

const char *att_char_category(uint32_t c)
{
    const newer_range *r = c < newer_table[0].first ? NULL : newer(c);
    return r ? r->category : utf8proc_category_string((utf8proc_int32_t)c);
}

/* Returns whether a character has the property White_Space, which has not changed since Unicode 6.3. */
bool att_char_is_space(uint32_t c)
{
    return c == ' ' || (c >= 9 && c <= 13) || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
           c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

/* Returns whether a character is alphabetic, a mark, a decimal digit, a connector or a joiner. */
bool att_char_is_word(uint32_t c)
{
    if (c < 0x80)
        return c == '_' || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
    const char *k = att_char_category(c);
    if (k[0] == 'L' || k[0] == 'M' || (k[0] == 'N' && k[1] != 'o') || (k[0] == 'P' && k[1] == 'c'))
        return true;
    return c == 0x200C || c == 0x200D || (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
           (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
}

bool att_char_is_accent(uint32_t c)
{
    bool strange = false;
    for (size_t i = 0; i < COUNT(strange_marks) && c >= strange_marks[i][0]; i++)
        strange |= c <= strange_marks[i][1];
    const bool mark = utf8proc_category_string((utf8proc_int32_t)c)[0] == 'M' && !newer(c);
    return mark != strange;
}
