/* Writes conversations as a chat template does, and tokenizes them. */
#include "language/chat.h"
#include "language/chat_program.h"

#include "attend_util.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

#include <string.h>

/* A conversation that is being written. */
typedef struct chat_writer {
    const att_chat_template *t;
    att_bytes text, literal; /* literal: att_literal[], the parts of the text that are from messages */
} chat_writer;

/* Writes a text of the format. */
static void write_format(chat_writer *w, const char *s)
{
    static const char *const names[ATT_CHAT_TEXTS] = {"{bos}", "{eos}", "{date}", "{cutoff}"};
    for (size_t n; s && *s; s += n) {
        int i = 0;
        while (i < ATT_CHAT_TEXTS && strncmp(s, names[i], strlen(names[i])) != 0)
            i++;
        n = i < ATT_CHAT_TEXTS ? strlen(names[i]) : 1 + strcspn(s + 1, "{");
        if (i < ATT_CHAT_TEXTS)
            att_bytes_add(&w->text, w->t->text[i].data, w->t->text[i].count);
        else
            att_bytes_add(&w->text, s, n);
    }
}

/* Writes a part of a message. */
static void write_text(chat_writer *w, att_byte_view text)
{
    if (text.bytes == 0)
        return;
    const att_literal range = {(int64_t)w->text.count, (int64_t)(w->text.count + text.bytes)};
    att_bytes_add(&w->text, text.data, text.bytes);
    att_bytes_add(&w->literal, &range, sizeof range);
}

/* ---- trimming as Python's str.strip */

static bool is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

static bool is_line_end(uint32_t c) { return c == '\n'; }

static att_byte_view strip_left(att_byte_view s, bool (*is)(uint32_t c))
{
    for (size_t n; s.bytes > 0; s = (att_byte_view){s.data + n, s.bytes - n}) {
        uint32_t c;
        n = att_utf8_decode(s.data, s.bytes, &c);
        if (!is(c))
            break;
    }
    return s;
}

static att_byte_view strip_right(att_byte_view s, bool (*is)(uint32_t c))
{
    while (s.bytes > 0) {
        size_t at = s.bytes - 1;
        while (at > 0 && s.bytes - at < 4 && ((unsigned char)s.data[at] & 0xC0) == 0x80)
            at--;
        uint32_t c;
        if (att_utf8_decode(s.data + at, s.bytes - at, &c) != s.bytes - at || !is(c))
            break;
        s.bytes = at;
    }
    return s;
}

static att_byte_view strip(att_byte_view s, bool (*is)(uint32_t c)) { return strip_right(strip_left(s, is), is); }

/* ---- answers with thoughts (Qwen3) */

static const char *find_last(att_byte_view s, const char *word)
{
    const size_t n = strlen(word);
    for (size_t at = s.bytes < n ? 0 : s.bytes - n + 1; at > 0; at--)
        if (memcmp(s.data + at - 1, word, n) == 0)
            return s.data + at - 1;
    return NULL;
}

/* Writes the thoughts of an answer after the last question, if it has any or ends the conversation. */
static void write_thoughts(chat_writer *w, att_byte_view text, bool after_question, bool last)
{
    static const char begin[] = "<think>", end[] = "</think>";
    att_byte_view thought = {text.data, 0}, answer = text;
    const char *first = text.bytes ? memmem(text.data, text.bytes, end, sizeof end - 1) : NULL;
    if (first) {
        const char *after = find_last(text, end) + sizeof end - 1;
        answer = strip_left((att_byte_view){after, text.bytes - (size_t)(after - text.data)}, is_line_end);
        thought = strip_right((att_byte_view){text.data, (size_t)(first - text.data)}, is_line_end);
        const char *from = find_last(thought, begin);
        if (from)
            thought = (att_byte_view){from + sizeof begin - 1,
                                      thought.bytes - (size_t)(from + sizeof begin - 1 - thought.data)};
        thought = strip_left(thought, is_line_end);
    }
    if (after_question && (last || thought.bytes > 0)) {
        write_format(w, "<think>\n");
        write_text(w, strip(thought, is_line_end));
        write_format(w, "\n</think>\n\n");
        answer = strip_left(answer, is_line_end);
    }
    write_text(w, answer);
}

static bool is_role(const att_chat_message *m, const char *role) { return strcmp(m->role, role) == 0; }

/* Returns the last message of the user that is not a result of a tool; the last message if there is none. */
static int64_t last_question(const att_chat_message *messages, int64_t n)
{
    static const char begin[] = "<tool_response>", end[] = "</tool_response>";
    for (int64_t i = n - 1; i >= 0; i--) {
        const att_chat_message *m = &messages[i];
        if (is_role(m, "user") &&
            !(m->bytes >= sizeof begin - 1 && memcmp(m->text, begin, sizeof begin - 1) == 0 &&
              m->bytes >= sizeof end - 1 && memcmp(m->text + m->bytes - (sizeof end - 1), end, sizeof end - 1) == 0))
            return i;
    }
    return n - 1;
}

/* ---- messages */

static const char *const role_names[ATT_CHAT_ROLES] = {"system", "user", "assistant"};

static att_chat_role role_of(const att_chat_message *m)
{
    int role = 0;
    while (role < ATT_CHAT_ROLES && strcmp(role_names[role], m->role) != 0)
        role++;
    return (att_chat_role)role;
}

/* Writes a message, which may begin with a system message. system: NULL if it does not. */
static void write_message(chat_writer *w, att_chat_role role, att_byte_view text, const att_chat_message *system)
{
    const att_chat_format *f = w->t->format;
    const att_chat_part *part = &f->part[role], *inner = &f->part[ATT_CHAT_SYSTEM];
    write_format(w, part->before);
    if (!system) {
        write_text(w, f->trim[role] ? strip(text, is_space) : text);
    } else {
        write_format(w, inner->before);
        write_text(w, (att_byte_view){system->text, system->bytes});
        if (!f->trim_joined) {
            write_format(w, inner->after);
            write_text(w, f->trim[role] ? strip(text, is_space) : text);
        } else if (strip(text, is_space).bytes > 0) {
            write_format(w, inner->after);
            write_text(w, strip_right(text, is_space));
        } else { /* trims the end of the text before it, too */
            const size_t n = strlen(inner->after);
            const att_byte_view after = strip_right((att_byte_view){inner->after, n}, is_space);
            att_bytes_add(&w->text, after.data, after.bytes);
        }
    }
    write_format(w, part->after);
}

/* Writes the default system message, or the one that the format always has. */
static void write_begin(chat_writer *w, const att_chat_message *first)
{
    const att_chat_template *t = w->t;
    const bool has_system = is_role(first, "system");
    if (t->bos)
        write_format(w, "{bos}");
    if (t->format->system == ATT_SYSTEM_ALWAYS) {
        const att_byte_view text = {first->text, has_system ? first->bytes : 0};
        write_message(w, ATT_CHAT_SYSTEM, text, NULL);
    } else if (t->has_default && !has_system) {
        write_format(w, t->format->part[ATT_CHAT_SYSTEM].before);
        att_bytes_add(&w->text, t->system.data, t->system.count);
        write_format(w, t->format->part[ATT_CHAT_SYSTEM].after);
    }
}

/* Returns whether the first message, which is the system's, is written in this one. */
static bool has_system(const att_chat_format *f, const att_chat_message *messages, int64_t n, int64_t i)
{
    int64_t last = n - 1;
    if (!is_role(&messages[i], "user"))
        return false;
    while (f->system == ATT_SYSTEM_IN_EQUAL_USERS && last > i && !is_role(&messages[last], "user"))
        last--;
    const att_chat_message *a = &messages[i], *b = &messages[last];
    if (f->system == ATT_SYSTEM_IN_EQUAL_USERS)
        return a->bytes == b->bytes && (a->bytes == 0 || memcmp(a->text, b->text, a->bytes) == 0);
    return i == (f->system == ATT_SYSTEM_IN_FIRST_USER ? 1 : last);
}

static void write_conversation(chat_writer *w, const att_chat_message *messages, int64_t n, bool reply)
{
    const att_chat_format *f = w->t->format;
    const bool joined = is_role(&messages[0], "system") && f->system != ATT_SYSTEM_ANYWHERE;
    const int64_t question = f->thoughts ? last_question(messages, n) : 0;
    write_begin(w, &messages[0]);
    for (int64_t i = joined; i < n; i++) {
        const att_chat_role role = role_of(&messages[i]);
        const att_byte_view text = {messages[i].bytes ? messages[i].text : "", messages[i].bytes};
        if (f->skip_empty_system && role == ATT_CHAT_SYSTEM && text.bytes == 0)
            continue;
        if (f->thoughts && role == ATT_CHAT_ASSISTANT) {
            write_format(w, f->part[role].before);
            write_thoughts(w, text, i > question, i == n - 1);
            write_format(w, f->part[role].after);
        } else {
            const bool inside = joined && f->system != ATT_SYSTEM_ALWAYS && has_system(f, messages, n, i);
            write_message(w, role, text, inside ? &messages[0] : NULL);
        }
    }
    write_format(w, reply ? f->reply : f->no_reply);
}

/* ---- checks */

static att_status check_message(const att_chat_template *t, const att_chat_message *m, int64_t i, bool joined)
{
    const att_chat_format *f = t->format;
    const long long at = (long long)i;
    if (!m->role || (!m->text && m->bytes > 0))
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "messages[%lld]: %s is NULL", at, m->role ? "text" : "role");
    const att_chat_role role = role_of(m);
    if (role == ATT_CHAT_ROLES)
        return att_fail(t->ctx, ATT_ERR_ARGUMENT,
                        "messages[%lld]: the role is \"%.40s\"; system, user and assistant are "
                        "supported",
                        at, m->role);
    if (!f) /* the template's program has its own checks */
        return ATT_OK;
    if (role == ATT_CHAT_SYSTEM && f->system == ATT_SYSTEM_REFUSED)
        return att_fail(t->ctx, ATT_ERR_ARGUMENT, "messages[%lld]: the chat template %s has no system message", at,
                        f->name);
    if (role == ATT_CHAT_SYSTEM && i > 0 && f->system != ATT_SYSTEM_ANYWHERE)
        return att_fail(t->ctx, ATT_ERR_ARGUMENT,
                        "messages[%lld]: with the chat template %s only the first message may be the system's", at,
                        f->name);
    const att_chat_role wanted = (i - joined) % 2 == 0 ? ATT_CHAT_USER : ATT_CHAT_ASSISTANT;
    if (f->alternate && !(joined && i == 0) && role != wanted)
        return att_fail(t->ctx, ATT_ERR_ARGUMENT,
                        "messages[%lld]: conversation roles must alternate user/assistant/user/assistant with the chat "
                        "template %s, but this one is the %s's",
                        at, f->name, m->role);
    return ATT_OK;
}

/* Copies messages [n] of the caller's size, that of the first, to out [n]. */
static att_status read_messages(const att_chat_template *t, const att_chat_message *messages, int64_t n,
                                att_chat_message *out)
{
    const size_t step = messages->size;
    const char *m = (const char *)messages;
    att_status s = ATT_OK;
    for (int64_t i = 0; !s && i < n; i++, m += step) {
        size_t size;
        memcpy(&size, m, sizeof size);
        s = att_options_read(&out[i], sizeof *out, m, "att_chat_message");
        if (!s && size != step)
            s = att_fail(t->ctx, ATT_ERR_ARGUMENT, "messages[%lld].size is %zu, but messages[0].size is %zu",
                         (long long)i, size, step);
    }
    return s;
}

static att_status check_messages(const att_chat_template *t, const att_chat_message *messages, int64_t n)
{
    att_status s = ATT_OK;
    const bool joined = messages[0].role && is_role(&messages[0], "system");
    for (int64_t i = 0; !s && i < n; i++)
        s = check_message(t, &messages[i], i, joined);
    return s;
}

static att_status write_all(chat_writer *w, const att_chat_message *messages, int64_t n,
                            const att_chat_options *options)
{
    w->text.ctx = w->literal.ctx = w->t->ctx;
    att_ctx *ctx = w->t->ctx;
    att_chat_options o;
    att_status s = att_options_read(&o, sizeof o, options, "att_chat_options");
    if (!s && n < 1)
        s = att_fail(ctx, ATT_ERR_ARGUMENT, "n is %lld; a conversation has at least one message", (long long)n);
    att_chat_message *m = s ? NULL : att_alloc(ctx, (size_t)n, sizeof *m);
    s = s || m ? s : ATT_ERR_MEMORY;
    s = s ? s : read_messages(w->t, messages, n, m);
    s = s ? s : check_messages(w->t, m, n);
    if (!s && w->t->program)
        s = att_chat_program_write(w->t, m, n, o.reply, &w->text, &w->literal);
    else if (!s)
        write_conversation(w, m, n, o.reply);
    if (!s) {
        att_bytes_add(&w->text, "", 1);
        s = w->text.status ? w->text.status : w->literal.status;
    }
    att_free(ctx, m);
    return s;
}

att_status att_chat_render(const att_chat_template *t, const att_chat_message *messages, int64_t n,
                           const att_chat_options *options, att_text *out)
{
    if (out)
        *out = (att_text){0};
    if (att_require(__func__, ATT_NAMED({"t", t}, {"messages", messages}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    chat_writer w = {.t = t};
    const att_status s = write_all(&w, messages, n, options);
    att_bytes_free(&w.literal);
    if (s)
        att_bytes_free(&w.text);
    else
        *out = (att_text){w.text.data, w.text.count - 1};
    return s;
}

att_status att_chat_tokenize(const att_chat_template *t, const att_tokenizer *tokenizer,
                             const att_chat_message *messages, int64_t n, const att_chat_options *options,
                             att_tokens *out)
{
    if (out)
        *out = (att_tokens){0};
    if (att_require(__func__, ATT_NAMED({"t", t}, {"tokenizer", tokenizer}, {"messages", messages}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    chat_writer w = {.t = t};
    att_status s = write_all(&w, messages, n, options);
    const att_literals literal = {(const att_literal *)(const void *)w.literal.data,
                                  w.literal.count / sizeof(att_literal)};
    if (!s)
        s = att_encode_literals(tokenizer, w.text.data, w.text.count - 1, &literal, out);
    att_bytes_free(&w.text);
    att_bytes_free(&w.literal);
    return s;
}
