#include "vectors.h"
#include "attend_text.h"
#include "attend_util.h"
#include "cli/base/grow.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char separators[] = " \t,;\r\n";
static const float largest = 1e15f; /* products of two and their sums stay finite */

typedef struct reader {
    att_ctx *ctx;
    const char *path;
    int64_t line, first_line; /* now; of the first vector */
    int64_t n, dim;           /* vectors; numbers in each */
    bool begun;               /* the heading or the first vector was read */
    char **labels;
    float *x;
    size_t room; /* of x */
} reader;

static att_status out_of_memory(reader *r) { return att_fail(r->ctx, ATT_ERR_MEMORY, "%s: out of memory", r->path); }

static att_status add_number(reader *r, int64_t count, const char *word)
{
    char *end;
    float v = strtof(word, &end);
    if (*end)
        return att_fail(r->ctx, ATT_ERR_FORMAT, "%s:%" PRId64 ": \"%.40s\" is not a number", r->path, r->line, word);
    if (!(fabsf(v) <= largest))
        return att_fail(r->ctx, ATT_ERR_FORMAT, "%s:%" PRId64 ": %.40s is not between %g and %g", r->path, r->line,
                        word, -largest, largest);
    if (count >= VECTORS_MAX_DIM)
        return att_fail(r->ctx, ATT_ERR_FORMAT, "%s:%" PRId64 ": more than %d numbers in a vector", r->path, r->line,
                        VECTORS_MAX_DIM);
    const int64_t at = r->n * r->dim + count;
    if (!cli_reserve(&r->room, (size_t)at + 1, &(cli_array){&r->x, sizeof *r->x}, 1))
        return out_of_memory(r);
    r->x[at] = v;
    return ATT_OK;
}

static int starts_number(const char *word)
{
    return word[strspn(word, "+-.")] && strchr("0123456789", word[strspn(word, "+-.")]);
}

/* Returns whether a line is several words, none of which is a number. */
static bool is_heading(const char *line)
{
    int words = 0;
    for (const char *at = line + strspn(line, separators); *at; words++) {
        if (starts_number(at))
            return false;
        at += strcspn(at, separators);
        at += strspn(at, separators);
    }
    return words > 1;
}

static att_status add_vector(reader *r, char *line)
{
    line[strcspn(line, "#")] = 0;
    if (!r->begun && is_heading(line)) {
        r->begun = true;
        return ATT_OK;
    }
    char *rest, *word = strtok_r(line, separators, &rest), *label = NULL;
    if (!word)
        return ATT_OK;
    r->begun = true;
    if (r->n == VECTORS_MAX)
        return att_fail(r->ctx, ATT_ERR_FORMAT, "%s:%" PRId64 ": more than %d vectors", r->path, r->line, VECTORS_MAX);
    if (!starts_number(word)) {
        label = word;
        word = strtok_r(NULL, separators, &rest);
    }
    int64_t count = 0;
    for (; word; word = strtok_r(NULL, separators, &rest), count++) {
        att_status s = add_number(r, count, word);
        if (s != ATT_OK)
            return s;
    }
    if (count == 0)
        return att_fail(r->ctx, ATT_ERR_FORMAT, "%s:%" PRId64 ": the label \"%.40s\" has no numbers after it", r->path,
                        r->line, label);
    if (r->n > 0 && count != r->dim)
        return att_fail(r->ctx, ATT_ERR_SHAPE,
                        "%s:%" PRId64 ": this vector has %" PRId64 " numbers but the one in line %" PRId64
                        " has %" PRId64,
                        r->path, r->line, count, r->first_line, r->dim);
    for (char *c = label; c && *c; c++)
        *c = (unsigned char)*c < 0x20 || *c == 0x7F ? '?' : *c; /* nothing that steers a terminal */
    char number[24];
    snprintf(number, sizeof number, "x%" PRId64, r->n + 1);
    if (!(r->labels[r->n] = strdup(label ? label : number)))
        return out_of_memory(r);
    if (r->n++ == 0)
        r->first_line = r->line, r->dim = count;
    return ATT_OK;
}

static att_status read_lines(reader *r, FILE *f)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    att_status s = ATT_OK;
    while (s == ATT_OK && (length = getline(&line, &room, f)) >= 0) {
        int mark = ++r->line == 1 && strncmp(line, "\xEF\xBB\xBF", 3) == 0; /* a byte order mark */
        if ((size_t)length != strlen(line))
            s = att_fail(r->ctx, ATT_ERR_FORMAT, "%s:%" PRId64 ": a zero byte: this is not text", r->path, r->line);
        else
            s = add_vector(r, line + (mark ? 3 : 0));
    }
    if (s == ATT_OK && ferror(f))
        s = att_fail(r->ctx, ATT_ERR_IO, "%s: %s", r->path, strerror(errno));
    else if (s == ATT_OK && !feof(f)) /* getline has no memory for a line */
        s = out_of_memory(r);
    if (s == ATT_OK && r->n == 0)
        s = att_fail(r->ctx, ATT_ERR_FORMAT, "%s: no vectors in it", r->path);
    free(line);
    return s;
}

att_status vectors_read(att_ctx *ctx, const char *path, vectors *out)
{
    int standard = strcmp(path, "-") == 0, file = -1;
    att_status s = standard ? ATT_OK : att_open_text(path, &file);
    if (s != ATT_OK)
        return s;
    FILE *f = standard ? stdin : fdopen(file, "r");
    if (!f) {
        close(file);
        return att_fail(ctx, ATT_ERR_MEMORY, "%s: out of memory", path);
    }
    reader r = {.ctx = ctx, .path = standard ? "standard input" : path};
    r.labels = calloc(VECTORS_MAX, sizeof *r.labels);
    s = r.labels ? read_lines(&r, f) : out_of_memory(&r);
    vectors v = {.n = r.n, .dim = r.dim, .labels = (const char *const *)r.labels, .x = r.x};
    if (s == ATT_OK)
        *out = v;
    else
        vectors_free(&v);
    if (!standard)
        fclose(f);
    return s;
}

void vectors_free(vectors *v)
{
    for (int64_t i = 0; v->labels && i < v->n; i++)
        free((char *)v->labels[i]);
    free((char **)v->labels);
    free((float *)v->x);
    *v = (vectors){0};
}
