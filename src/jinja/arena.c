/* The memory of a template's values, the limits of a run, and how an error ends it. */
#include "jinja/value.h"

#include <stdio.h>
#include <string.h>

enum { BLOCK = 1 << 16, ALIGN = 16, MAX_MEMORY = 1 << 27 };

struct att_jinja_block {
    att_jinja_block *before;
    size_t unused; /* keeps the data aligned */
};

void att_jinja_arena_free(att_jinja_arena *a)
{
    for (att_jinja_block *b = a->last, *before; b; b = before) {
        before = b->before;
        att_free(a->ctx, b);
    }
    a->last = NULL;
}

void att_jinja_fail(att_jinja_state *s, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(s->message, sizeof s->message, format, list);
    va_end(list);
    s->status = ATT_ERR_FORMAT;
    longjmp(*s->failed, 1);
}

void att_jinja_refuse(att_jinja_state *s, const char *message, size_t bytes)
{
    snprintf(s->message, sizeof s->message, "%.*s", (int)(bytes < sizeof s->message ? bytes : sizeof s->message),
             message);
    s->status = ATT_ERR_ARGUMENT;
    longjmp(*s->failed, 1);
}

void att_jinja_work(att_jinja_state *s, size_t steps)
{
    if ((int64_t)steps > s->steps)
        att_jinja_fail(s, "the template takes more steps than any conversation needs");
    s->steps -= (int64_t)steps;
}

void att_jinja_enter(att_jinja_state *s)
{
    att_jinja_work(s, 1);
    if (++s->depth > ATT_JINJA_MAX_DEPTH)
        att_jinja_fail(s, "the template nests or recurs more than %d deep", ATT_JINJA_MAX_DEPTH);
}

void *att_jinja_alloc(att_jinja_state *s, size_t count, size_t size)
{
    att_jinja_arena *a = &s->arena;
    if (count > MAX_MEMORY / size || a->total + count * size > MAX_MEMORY)
        att_jinja_fail(s, "the template needs more than %d MB of memory", MAX_MEMORY >> 20);
    const size_t bytes = (count * size + ALIGN - 1) / ALIGN * ALIGN;
    if (!a->last || bytes > a->room - a->used) {
        const size_t room = bytes > BLOCK ? bytes : BLOCK;
        att_jinja_block *b = att_alloc(s->ctx, 1, sizeof *b + room);
        if (!b) {
            s->status = ATT_ERR_MEMORY;
            longjmp(*s->failed, 1);
        }
        b->before = a->last;
        a->last = b;
        a->used = 0;
        a->room = room;
    }
    void *p = (char *)(a->last + 1) + a->used;
    a->used += bytes;
    a->total += bytes;
    att_jinja_work(s, bytes / 64);
    return memset(p, 0, bytes);
}

void *att_jinja_grow(att_jinja_state *s, void *array, size_t n, size_t *room, size_t size)
{
    if (n < *room)
        return array;
    const size_t more = *room ? 2 * *room : 4;
    void *p = att_jinja_alloc(s, more, size);
    if (n > 0)
        memcpy(p, array, n * size);
    *room = more;
    return p;
}
