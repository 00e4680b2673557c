#include "utf8.h"

#include <attend_text.h>

#include <string.h>

enum { MAX_BYTES = 4, REPLACEMENT = 0xFFFD };

typedef struct range {
    uint32_t first, last;
} range;

/* Combining and format characters with no column: the common blocks of the Unicode categories Mn, Me, Cf. */
static const range zero_width[] = {
    {0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD},   {0x0610, 0x061A},   {0x064B, 0x065F}, {0x0670, 0x0670},
    {0x06D6, 0x06DC}, {0x0900, 0x0902}, {0x093C, 0x093C},   {0x0941, 0x0948},   {0x094D, 0x094D}, {0x0E31, 0x0E31},
    {0x0E34, 0x0E3A}, {0x0E47, 0x0E4E}, {0x1160, 0x11FF},   {0x1AB0, 0x1AFF},   {0x1DC0, 0x1DFF}, {0x200B, 0x200F},
    {0x202A, 0x202E}, {0x2060, 0x2064}, {0x20D0, 0x20F0},   {0x302A, 0x302D},   {0x3099, 0x309A}, {0xFE00, 0xFE0F},
    {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}, {0x1F3FB, 0x1F3FF}, {0xE0001, 0xE01EF},
};

/* Two columns: East Asian Width W and F, and emoji. */
static const range wide[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x2329, 0x232A},   {0x23E9, 0x23EC},   {0x2614, 0x2615},
    {0x2648, 0x2653},   {0x26A1, 0x26A1},   {0x26BD, 0x26BE},   {0x2705, 0x2705},   {0x274C, 0x274C},
    {0x2753, 0x2755},   {0x2795, 0x2797},   {0x2B50, 0x2B50},   {0x2E80, 0x303E},   {0x3041, 0x33FF},
    {0x3400, 0x4DBF},   {0x4E00, 0xA4CF},   {0xA960, 0xA97F},   {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},
    {0xFE10, 0xFE19},   {0xFE30, 0xFE6F},   {0xFF01, 0xFF60},   {0xFFE0, 0xFFE6},   {0x1F004, 0x1F004},
    {0x1F18E, 0x1F19A}, {0x1F200, 0x1F265}, {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F900, 0x1FAFF},
    {0x20000, 0x3FFFD},
};

static int in(const range *list, size_t count, uint32_t code)
{
    for (size_t i = 0; i < count; i++) {
        if (code >= list[i].first && code <= list[i].last)
            return 1;
    }
    return 0;
}

int utf8_length(const char *s, size_t bytes)
{
    uint32_t code;
    const size_t n = att_utf8_decode(s, bytes, &code);
    return code != REPLACEMENT || att_utf8_valid(s, n) ? (int)n : -(int)n;
}

uint32_t utf8_next(const char **s)
{
    uint32_t code;
    *s += att_utf8_decode(*s, MAX_BYTES, &code); /* no character continues after the terminating zero */
    return code;
}

int utf8_prefix(const char *s, int bytes)
{
    int n = (int)strnlen(s, (size_t)bytes);
    while (n > 0 && ((unsigned char)s[n] & 0xC0) == 0x80)
        n--;
    return n;
}

int utf8_is_control(uint32_t code)
{
    static const range controls[] = {{0x00, 0x1F},     {0x7F, 0x9F},     {0x061C, 0x061C},
                                     {0x200E, 0x200F}, {0x2028, 0x202E}, {0x2066, 0x2069}};
    return in(controls, sizeof controls / sizeof *controls, code);
}

static uint32_t visible(uint32_t code) { return utf8_is_control(code) ? REPLACEMENT : code; }

int utf8_columns(uint32_t code)
{
    if (in(zero_width, sizeof zero_width / sizeof *zero_width, code))
        return 0;
    return in(wide, sizeof wide / sizeof *wide, code) ? 2 : 1;
}

int utf8_width(const char *s)
{
    int width = 0;
    while (*s)
        width += utf8_columns(visible(utf8_next(&s)));
    return width;
}

void utf8_put(FILE *f, uint32_t code)
{
    char text[MAX_BYTES];
    fwrite(text, 1, att_utf8_encode(code, text), f);
}

void utf8_field(FILE *f, const char *s, int width, int right)
{
    int full = utf8_width(s), truncated = full > width, room = truncated ? width - 1 : width,
        used = truncated && width > 0;
    const char *end = s, *next = s;
    for (int columns; *end && (columns = utf8_columns(visible(utf8_next(&next)))) + used <= room + truncated;
         end = next)
        used += columns;
    int padding = width > used ? width - used : 0;
    fprintf(f, "%*s", right ? padding : 0, "");
    while (s < end)
        utf8_put(f, visible(utf8_next(&s)));
    if (truncated && width > 0)
        utf8_put(f, 0x2026);
    fprintf(f, "%*s", right ? 0 : padding, "");
}
