#include "text/charsmap.h"

#include <string.h>

#include "text/utf8.h"

static const char field_name[] = "precompiled_charsmap";

static bool is_leaf(uint32_t unit) { return unit >> 31; }
static bool ends_key(uint32_t unit) { return unit >> 8 & 1; }
static uint32_t leaf_value(uint32_t unit) { return unit & 0x7FFFFFFF; }
static uint32_t base_of(uint32_t index, uint32_t unit) { return index ^ unit >> 10 << (unit >> 6 & 8); }

/* Checks that all units reachable from a unit exist: those whose index differs from its base in one byte. */
static void check_unit(const att_charsmap *m, att_proto *p, uint32_t index)
{
    const uint32_t unit = m->unit[index], base = base_of(index, unit);
    if (!is_leaf(unit)) {
        if ((base | 0xFF) >= m->units)
            att_proto_fail(p, ATT_ERR_FORMAT, "\"%s\": unit %u leads to unit %u, but there are %zu", field_name, index,
                           base | 0xFF, m->units);
        else if (ends_key(unit) && !is_leaf(m->unit[base]))
            att_proto_fail(p, ATT_ERR_FORMAT, "\"%s\": a key ends at unit %u, but unit %u is not a leaf", field_name,
                           index, base);
        return;
    }
    const size_t value = leaf_value(unit), left = value < m->bytes ? m->bytes - value : 0;
    if (left == 0)
        att_proto_fail(p, ATT_ERR_FORMAT, "\"%s\": a replacement begins at byte %zu, but there are %zu", field_name,
                       value, m->bytes);
    else if (!memchr(m->replacement + value, 0, left < ATT_MAX_RULE ? left : ATT_MAX_RULE))
        att_proto_fail(p, left < ATT_MAX_RULE ? ATT_ERR_FORMAT : ATT_ERR_UNSUPPORTED,
                       "\"%s\": the replacement at byte %zu does not end within %d bytes", field_name, value,
                       ATT_MAX_RULE);
    else if (!att_utf8_valid(m->replacement + value, strlen(m->replacement + value)))
        att_proto_fail(p, ATT_ERR_FORMAT, "\"%s\": the replacement at byte %zu is not text in UTF-8", field_name,
                       value);
}

void att_charsmap_read(att_charsmap *m, att_proto *p, att_byte_view field)
{
    *m = (att_charsmap){.ctx = p->ctx};
    if (p->status || field.bytes == 0)
        return;
    const size_t trie = field.bytes < 4 ? 0 : att_read_number(field.data, 4);
    if (field.bytes < 4 || trie > field.bytes - 4 || trie % 4) {
        att_proto_fail(p, ATT_ERR_FORMAT, "\"%s\" has %zu bytes, its trie %zu", field_name, field.bytes, trie);
        return;
    }
    m->units = trie / 4;
    m->bytes = field.bytes - 4 - trie;
    m->unit = att_alloc(p->ctx, m->units, sizeof *m->unit);
    m->replacement = att_alloc(p->ctx, m->bytes, 1);
    if (!m->unit || !m->replacement) {
        p->status = ATT_ERR_MEMORY;
        return;
    }
    for (size_t i = 0; i < m->units; i++)
        m->unit[i] = (uint32_t)att_read_number(field.data + 4 + 4 * i, 4);
    if (m->bytes > 0)
        memcpy(m->replacement, field.data + 4 + trie, m->bytes);
    if (m->units > 0 && is_leaf(m->unit[0]))
        att_proto_fail(p, ATT_ERR_FORMAT, "\"%s\": unit 0, the root, is a leaf", field_name);
    for (size_t i = 0; !p->status && i < m->units; i++)
        check_unit(m, p, (uint32_t)i);
}

void att_charsmap_free(att_charsmap *m)
{
    att_free(m->ctx, m->unit);
    att_free(m->ctx, m->replacement);
    *m = (att_charsmap){.ctx = m->ctx};
}

/* Returns the length of the shortest or the longest key at the start of s [bytes], and its replacement; 0: none. */
static size_t find(const att_charsmap *m, const char *s, size_t bytes, bool shortest, const char **to)
{
    size_t length = 0;
    if (m->units == 0)
        return 0;
    const size_t max = bytes < ATT_MAX_RULE ? bytes : ATT_MAX_RULE;
    uint32_t base = base_of(0, m->unit[0]);
    for (size_t i = 0; i < max && !(shortest && length); i++) {
        const uint32_t byte = (unsigned char)s[i], index = base ^ byte, unit = m->unit[index];
        if (is_leaf(unit) || (unit & 0xFF) != byte)
            break;
        base = base_of(index, unit);
        if (ends_key(unit)) {
            length = i + 1;
            *to = m->replacement + leaf_value(m->unit[base]);
        }
    }
    return length;
}

size_t att_charsmap_find(const att_charsmap *m, const char *s, size_t bytes, const char **to)
{
    return find(m, s, bytes, false, to);
}

size_t att_charsmap_find_shortest(const att_charsmap *m, const char *s, size_t bytes, const char **to)
{
    return find(m, s, bytes, true, to);
}
