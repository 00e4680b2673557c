#include "text/pipeline/regex.h"

#include <string.h>
#include <time.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "text/pipeline/regex_syntax.h"

enum {
    MAX_PATTERN = 1 << 14, /* bytes; the longest known one has 400 */
    MAX_STEPS = 1 << 24,   /* of PCRE2's matcher, for a match that begins at one character ... */
    STEPS_A_BYTE = 4,      /* ... and for each byte of the text; known patterns need two at most */
    FIRST_STEPS = 1 << 8,  /* of the first try, which mostly suffices */
    MAX_STARTS = 64,       /* bytes in which a match of one try may begin */
    TRIES = 64,            /* tries after which the clock is read */
    MAX_KIB = 1 << 18      /* of PCRE2's memory */
};

struct att_regex {
    att_ctx *ctx;
    pcre2_code *code;
    char pattern[64]; /* its beginning, for errors */
};

/* ---- compiling */

static pcre2_code *compile(att_settings *s, const char *key, const char *pattern, const att_bytes *translated)
{
    int code = 0;
    PCRE2_SIZE where;
    const char *text = translated->count ? translated->data : "";
    pcre2_compile_context *newline = pcre2_compile_context_create(NULL);
    if (!newline) {
        s->status = att_fail(s->ctx, ATT_ERR_MEMORY, "out of memory for a regular expression");
        return NULL;
    }
    pcre2_set_newline(newline, PCRE2_NEWLINE_LF);
    pcre2_code *r =
        pcre2_compile((PCRE2_SPTR)text, translated->count,
                      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C | PCRE2_USE_OFFSET_LIMIT, &code,
                      &where, newline);
    pcre2_compile_context_free(newline);
    char message[120] = "";
    if (!r && pcre2_get_error_message(code, (PCRE2_UCHAR *)message, sizeof message))
        att_settings_fail(s, ATT_ERR_UNSUPPORTED,
                          "\"%s%s\" is \"%.80s\", a regular expression that is not supported: %s", s->within, key,
                          pattern, message);
    if (r)
        pcre2_jit_compile(r, PCRE2_JIT_COMPLETE); /* if it fails, matching is only slower */
    return r;
}

att_regex *att_regex_new(att_settings *s, const char *key, const char *pattern)
{
    att_bytes translated = {.ctx = s->ctx};
    att_regex *r = att_calloc(s->ctx, 1, sizeof *r);
    if (!r && !s->status)
        s->status = ATT_ERR_MEMORY;
    if (strlen(pattern) > MAX_PATTERN)
        att_settings_fail(s, ATT_ERR_UNSUPPORTED, "\"%s%s\" has %zu bytes, more than %d", s->within, key,
                          strlen(pattern), MAX_PATTERN);
    att_regex_translate(s, key, pattern, &translated);
    if (!s->status) {
        r->ctx = s->ctx;
        strncpy(r->pattern, pattern, sizeof r->pattern - 1);
        r->code = compile(s, key, pattern, &translated);
    }
    att_bytes_free(&translated);
    if (s->status) {
        att_free(s->ctx, r);
        return NULL;
    }
    return r;
}

void att_regex_free(att_regex *r)
{
    if (!r)
        return;
    pcre2_code_free(r->code);
    att_free(r->ctx, r);
}

/* ---- matching
 *
 * PCRE2 limits the steps of a match that begins at one character, but it does not count all of them, and a text has as
 * many characters as somebody likes. So a search is several tries with few steps each, and the thread's time of all is
 * limited. */

/* Returns the thread's time in nanoseconds. */
static int64_t thread_time(void)
{
    struct timespec t;
    return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) ? 0 : 1000000000 * (int64_t)t.tv_sec + t.tv_nsec;
}

int64_t att_regex_time(size_t bytes) { return 1000000000 + 4000 * (int64_t)bytes; }

/* Allocates memory for a match, and sets its limits. */
static bool prepare(const att_regex *r, att_regex_match *m, size_t bytes)
{
    if (!m->data)
        m->data = pcre2_match_data_create(1, NULL);
    if (!m->limits) {
        m->limits = pcre2_match_context_create(NULL);
        m->begun = thread_time();
        m->time = m->time ? m->time : att_regex_time(bytes);
    }
    if (!m->data || !m->limits) {
        m->status = att_fail(r->ctx, ATT_ERR_MEMORY, "out of memory for a regular expression");
        return false;
    }
    pcre2_set_heap_limit(m->limits, MAX_KIB);
    return true;
}

/* Finds a match that begins at a character in [from, last] of s [bytes]. */
static int match(const att_regex *r, const att_regex_match *m, const char *s, size_t bytes, size_t from, size_t last,
                 uint64_t steps)
{
    pcre2_set_match_limit(m->limits, steps < UINT32_MAX ? (uint32_t)steps : UINT32_MAX);
    pcre2_set_offset_limit(m->limits, last);
    const int code = pcre2_match(r->code, (PCRE2_SPTR)s, bytes, from, PCRE2_NO_UTF_CHECK, m->data, m->limits);
    return code != PCRE2_ERROR_JIT_STACKLIMIT ? code : /* the interpreter has its memory on the heap */
               pcre2_match(r->code, (PCRE2_SPTR)s, bytes, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, m->data, m->limits);
}

/* Returns the first byte of the next character after `at`, or `bytes` + 1. */
static size_t next_char(const char *s, size_t bytes, size_t at)
{
    do
        at++;
    while (at < bytes && ((unsigned char)s[at] & 0xC0) == 0x80);
    return at;
}

/* Reports that a search from byte `from` of s [bytes] has failed with an error of PCRE2, or has taken too long. */
static void search_fail(const att_regex *r, att_regex_match *m, int code, size_t from, size_t bytes)
{
    char message[120] = "";
    pcre2_get_error_message(code, (PCRE2_UCHAR *)message, sizeof message);
    m->status = code == PCRE2_ERROR_NOMATCH
                    ? att_fail(r->ctx, ATT_ERR_UNSUPPORTED,
                               "the regular expression \"%s\" takes too long on this text: at byte %zu of a part of "
                               "%zu, %.3g seconds are over",
                               r->pattern, from, bytes, 1e-9 * (double)m->time)
                    : att_fail(r->ctx, code == PCRE2_ERROR_NOMEMORY ? ATT_ERR_MEMORY : ATT_ERR_UNSUPPORTED,
                               "the regular expression \"%s\" fails on this text, from byte %zu of a part of %zu: %s",
                               r->pattern, from, bytes, message);
}

bool att_regex_find(const att_regex *r, att_regex_match *m, const char *s, size_t bytes, size_t from, size_t *begin,
                    size_t *end)
{
    if (m->status || !prepare(r, m, bytes))
        return false;
    const uint64_t max = MAX_STEPS + (uint64_t)STEPS_A_BYTE * bytes;
    uint64_t steps = FIRST_STEPS;
    size_t alone = from; /* up to here, a try has one character where a match may begin */
    while (from <= bytes) {
        size_t last = from;
        while (from >= alone && last < bytes && last - from < MAX_STARTS)
            last = next_char(s, bytes, last);
        if ((++m->tries % TRIES == 0 || steps > FIRST_STEPS) && thread_time() - m->begun > m->time) {
            search_fail(r, m, PCRE2_ERROR_NOMATCH, from, bytes);
            return false;
        }
        const int code = match(r, m, s, bytes, from, last, steps);
        if (code >= 0) {
            const PCRE2_SIZE *at = pcre2_get_ovector_pointer(m->data);
            *begin = at[0];
            *end = at[1];
            return true;
        }
        const bool again = code == PCRE2_ERROR_MATCHLIMIT && (steps < max || last > from);
        if (code != PCRE2_ERROR_NOMATCH && !again) {
            search_fail(r, m, code, from, bytes);
            return false;
        }
        alone = again && last > from ? last : alone;
        steps = !again ? FIRST_STEPS : last > from ? steps : 4 * steps;
        from = again ? from : next_char(s, bytes, last);
    }
    return false;
}

void att_regex_match_free(att_regex_match *m)
{
    pcre2_match_data_free(m->data);
    pcre2_match_context_free(m->limits);
    *m = (att_regex_match){0};
}
