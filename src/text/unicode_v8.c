/* Uses own tables for categories, which differ between versions of Unicode, and utf8proc for decompositions and
 * combining classes, which are stable for assigned characters. */
#include "text/unicode_v8.h"

#include <stddef.h>

#include <utf8proc.h>

typedef struct class_range {
    uint32_t first, last;
    uint8_t classes;
} class_range;

typedef struct number_range {
    uint32_t first, last;
    int32_t number;
} number_range;

enum {
    REMOVED = ATT_CHAR_REMOVED,
    SPACE = ATT_CHAR_SPACE,
    PUNCTUATION = ATT_CHAR_PUNCTUATION,
    MARK = ATT_CHAR_MARK,
    CJK = ATT_CHAR_CJK
};

#include "text/unicode_v8_table.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

unsigned att_char_class(uint32_t c)
{
    size_t low = 0, high = COUNT(class_table);
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (c > class_table[middle].last)
            low = middle + 1;
        else if (c < class_table[middle].first)
            high = middle;
        else
            return class_table[middle].classes;
    }
    return 0;
}

static int number_of(const number_range *table, size_t count, uint32_t c)
{
    for (size_t i = 0; i < count && c >= table[i].first; i++) {
        if (c <= table[i].last)
            return table[i].number;
    }
    return 0;
}

int att_char_combining(uint32_t c)
{
    if (att_char_class(c) == MARK)
        return utf8proc_get_property((utf8proc_int32_t)c)->combining_class;
    return number_of(combining_table, COUNT(combining_table), c);
}

int att_char_decompose(uint32_t c, uint32_t out[ATT_MAX_DECOMPOSITION])
{
    out[0] = c;
    if (c < 0xC0 || (c > 0xFFFF && !number_of(decomposing_table, COUNT(decomposing_table), c)))
        return 1;
    int boundary = 0;
    utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)c, (utf8proc_int32_t *)out, ATT_MAX_DECOMPOSITION,
                                                 UTF8PROC_DECOMPOSE, &boundary);
    if (n >= 1 && n <= ATT_MAX_DECOMPOSITION)
        return (int)n;
    out[0] = c;
    return 1;
}

int att_char_lower(uint32_t c, uint32_t out[2])
{
    if (c == 0x130) { /* the only character whose lower case is two: i and a dot above */
        out[0] = 'i';
        out[1] = 0x307;
        return 2;
    }
    int32_t offset = number_of(lower_table, COUNT(lower_table), c);
    out[0] = offset ? (uint32_t)((int32_t)c + offset) : (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
    return 1;
}
