/* Pre-tokenizers: each splits the text into pieces that the model segments one by one. */
#include <string.h>

#include "text/pipeline/step.h"
#include "text/pipeline/unicode_v16.h"
#include "text/unicode_v8.h"
#include "text/utf8.h"

/* ---- properties of characters */

static bool is_number(uint32_t c)
{
    if (c < 0x80)
        return c >= '0' && c <= '9';
    return att_char_category(c)[0] == 'N' || (c >= 0x11DE0 && c <= 0x11DE9) || (c >= 0x16FF4 && c <= 0x16FF6);
}

static bool is_punctuation(uint32_t c) { return att_char_class(c) & ATT_CHAR_PUNCTUATION; }

static const att_pattern spaces = {.is = att_char_is_space}, numbers = {.is = is_number},
                         punctuation = {.is = is_punctuation}, words = {.is = att_char_is_word};

/* ---- ByteLevel */

uint32_t att_byte_char(unsigned char byte)
{
    if ((byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD))
        return byte;
    return 0x100u + (byte <= ' ' ? byte : byte == 0xAD ? 0x43u : byte - 0x7Fu + 0x21u);
}

int att_char_byte(uint32_t c)
{
    if (c < 0x100)
        return att_byte_char((unsigned char)c) == c ? (int)c : -1;
    const uint32_t i = c - 0x100;
    return i <= 0x20 ? (int)i : i <= 0x42 ? (int)(i - 0x21 + 0x7F) : i == 0x43 ? 0xAD : -1;
}

void att_rewrite_bytes(const void *step, att_edit *e)
{
    (void)step;
    while (e->at < e->bytes) {
        uint32_t c;
        const char *s = e->s + e->at;
        const size_t n = att_edit_peek(e, &c);
        att_edit_replace(e, att_byte_char((unsigned char)s[0]), 0);
        for (size_t i = 1; i < n; i++)
            att_edit_insert(e, att_byte_char((unsigned char)s[i]));
    }
}

static void rewrite_space_prefix(const void *step, att_edit *e)
{
    if (e->s[0] != ' ')
        att_rewrite_prepend(step, e);
    else
        att_edit_copy(e, e->bytes);
}

static void apply_byte_level(const att_step *s, att_pieces *p)
{
    if (s->prefix_space)
        att_pieces_rewrite(p, rewrite_space_prefix, s);
    if (s->use_regex)
        att_pieces_split(p, &s->pattern, false, ATT_SPLIT_ISOLATED);
    att_pieces_rewrite(p, att_rewrite_bytes, s);
}

static void read_byte_level(att_settings *s, att_step *step)
{
    static const char gpt2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
    step->prefix_space = att_settings_bool(s, "add_prefix_space", true);
    step->use_regex = att_settings_bool(s, "use_regex", true);
    if (step->use_regex)
        step->pattern.regex = att_regex_new(s, "use_regex", gpt2);
    att_step_set_text(s, " ", &step->text, &step->bytes);
}

/* ---- Metaspace */

static void rewrite_metaspace_prefix(const void *step, att_edit *e)
{
    const att_step *s = step;
    const bool there = e->bytes >= s->bytes && memcmp(e->s, s->text, s->bytes) == 0;
    if (!there && (s->prepend == ATT_PREPEND_ALWAYS || e->start == 0))
        att_rewrite_prepend(step, e);
    else
        att_edit_copy(e, e->bytes);
}

static void apply_metaspace(const att_step *s, att_pieces *p)
{
    att_rewrite_matches(s, p); /* replaces spaces by the mark */
    if (s->prepend != ATT_PREPEND_NEVER)
        att_pieces_rewrite(p, rewrite_metaspace_prefix, s);
    if (s->split)
        att_pieces_split(p, &(att_pattern){.text = s->text, .bytes = s->bytes}, false, ATT_SPLIT_MERGED_WITH_NEXT);
}

void att_step_read_metaspace(att_settings *s, att_step *step)
{
    static const char *const schemes[] = {"always", "first", "never"};
    att_step_read_text(s, "replacement", false, &step->text, &step->bytes);
    const bool prefix = att_settings_bool(s, "add_prefix_space", true);
    const char *scheme = att_settings_text(s, "prepend_scheme", prefix ? "always" : "never");
    size_t i = 0;
    while (i < 3 && strcmp(scheme, schemes[i]) != 0)
        i++;
    if (i == 3)
        att_settings_unsupported(s, "prepend_scheme", "\"always\", \"first\" or \"never\"");
    else
        step->prepend = prefix ? (int)i : ATT_PREPEND_NEVER;
    step->split = att_settings_bool(s, "split", true);
    att_step_set_text(s, " ", &step->pattern.text, &step->pattern.bytes);
}

/* ---- those that split at characters */

static void apply_split(const att_step *s, att_pieces *p)
{
    att_pieces_split(p, &s->pattern, s->inverted, s->behavior);
}

static void read_behavior(att_settings *s, att_step *step, const char *otherwise)
{
    static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"};
    const char *name = att_settings_text(s, "behavior", otherwise);
    for (int i = 0; i < 5; i++)
        if (strcmp(name, names[i]) == 0) {
            step->behavior = i;
            return;
        }
    att_settings_unsupported(s, "behavior", "Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

static void read_split(att_settings *s, att_step *step)
{
    att_step_read_pattern(s, step);
    read_behavior(s, step, NULL);
    step->inverted = att_settings_bool(s, "invert", false);
}

static void read_delimiter(att_settings *s, att_step *step)
{
    step->behavior = ATT_SPLIT_REMOVED;
    att_step_read_text(s, "delimiter", false, &step->pattern.text, &step->pattern.bytes);
}

static void apply_digits(const att_step *s, att_pieces *p) { att_pieces_split(p, &numbers, false, s->behavior); }

static void read_digits(att_settings *s, att_step *step)
{
    step->behavior = att_settings_bool(s, "individual_digits", false) ? ATT_SPLIT_ISOLATED : ATT_SPLIT_CONTIGUOUS;
}

static void apply_punctuation(const att_step *s, att_pieces *p)
{
    att_pieces_split(p, &punctuation, false, s->behavior);
}

static void read_punctuation(att_settings *s, att_step *step) { read_behavior(s, step, "Isolated"); }

static void apply_bert(const att_step *s, att_pieces *p)
{
    (void)s;
    att_pieces_split(p, &spaces, false, ATT_SPLIT_REMOVED);
    att_pieces_split(p, &punctuation, false, ATT_SPLIT_ISOLATED);
}

static void apply_whitespace_split(const att_step *s, att_pieces *p)
{
    (void)s;
    att_pieces_split(p, &spaces, false, ATT_SPLIT_REMOVED);
}

/* Splits by \w+|[^\w\s]+. */
static void apply_whitespace(const att_step *s, att_pieces *p)
{
    (void)s;
    att_pieces_split(p, &spaces, false, ATT_SPLIT_REMOVED);
    att_pieces_split(p, &words, false, ATT_SPLIT_CONTIGUOUS);
}

const att_step_type att_pre_tokenizer_types[] = {
    {.name = "BertPreTokenizer", .apply = apply_bert},
    {.name = "ByteLevel", .read = read_byte_level, .apply = apply_byte_level},
    {.name = "CharDelimiterSplit", .read = read_delimiter, .apply = apply_split},
    {.name = "Digits", .read = read_digits, .apply = apply_digits},
    {.name = "Metaspace", .read = att_step_read_metaspace, .apply = apply_metaspace},
    {.name = "Punctuation", .read = read_punctuation, .apply = apply_punctuation},
    {.name = "Split", .read = read_split, .apply = apply_split},
    {.name = "Whitespace", .apply = apply_whitespace},
    {.name = "WhitespaceSplit", .apply = apply_whitespace_split},
    {.name = NULL},
};
