#include "recommend/log_heading.h"
#include "recommend/log_time.h"
#include "util/util.h"

#include <string.h>

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80; }

/* ---- names */

/* The names of columns that are not used, in the form that att_log_column_is_in expects. */
static const char *const others[] = {"rating", "ratings", "score",    "stars", "value", "weight", "count",
                                     "event",  "type",    "quantity", "price", "users", "items",  NULL};

static bool is_known(att_byte_view field)
{
    return att_log_column_is_usual(field) || att_log_column_is_in(field, others);
}

/* ---- numbers */

/* Returns whether x begins like a number or a date. */
static bool is_number(att_byte_view x)
{
    size_t i = 0;
    while (i < x.bytes && x.data[i] == ' ')
        i++;
    i += i < x.bytes && (x.data[i] == '-' || x.data[i] == '+');
    i += i < x.bytes && x.data[i] == '.';
    return i < x.bytes && is_digit(x.data[i]);
}

static bool any_is_number(const att_table *t)
{
    for (int64_t i = 0; i < t->n; i++)
        if (is_number(t->field[i]))
            return true;
    return false;
}

/* Returns the number of digits at the beginning. */
static size_t count_digits(att_byte_view x)
{
    size_t n = 0;
    while (n < x.bytes && is_digit(x.data[n]))
        n++;
    return n;
}

/* Returns whether x is likely a time: a number of nine digits or more, which is seconds from 1973 on, or a date, which
 * is one to four digits and two separators. */
static bool is_time(att_byte_view x)
{
    const size_t n = count_digits(x), shown = x.bytes < sizeof "2001-12-31" - 1 ? x.bytes : sizeof "2001-12-31" - 1;
    int separators = 0;
    for (size_t i = n; i < shown; i++)
        separators += x.data[i] == '-' || x.data[i] == '/' || x.data[i] == '.';
    return n >= 9 || (n > 0 && n <= 4 && separators == 2);
}

bool att_log_seems_time(att_byte_view x) { return att_time_is_likely(x) || (count_digits(x) <= 4 && is_time(x)); }

/* Returns whether x is likely a rating: a number with up to three digits before the point. */
static bool is_rating(att_byte_view x)
{
    const size_t n = count_digits(x);
    return n > 0 && n <= 3 && (n == x.bytes || x.data[n] == '.' || x.data[n] == ',');
}

/* ---- the first record */

bool att_log_has_names(const att_table *t)
{
    bool all = t->n > 1;
    for (int64_t i = 0; all && i < t->n; i++)
        all = is_known(t->field[i]);
    return all;
}

/* The result of looking at the first records. */
typedef struct seen {
    int64_t records, fields;
    bool any;
    bool result;       /* of the records up to now */
    uint64_t shape[2]; /* of the first record's user and item */
    bool again;        /* another record has the same shapes */
    bool untimed;      /* a record's last field is not a time */
} seen;

static bool see_heading(const att_table *t, void *arg)
{
    seen *s = arg;
    if (s->records++ == 0) {
        s->fields = t->n;
        return !any_is_number(t);
    }
    s->result = t->n == s->fields && (s->any ? any_is_number(t) : is_number(t->field[t->n - 1]));
    return false;
}

bool att_log_has_heading(att_table *t, bool any)
{
    seen s = {.any = any};
    att_table_sample(t, see_heading, &s);
    return s.result;
}

static bool see_fields(const att_table *t, void *arg)
{
    seen *s = arg;
    s->fields = s->records++ ? s->fields : t->n;
    s->result = t->n == s->fields;
    return s->result;
}

bool att_log_has_fields(att_table *t, int64_t min, int64_t max)
{
    seen s = {0};
    att_table_sample(t, see_fields, &s);
    return s.result && s.fields >= min && s.fields <= max;
}

/* ---- columns */

static att_byte_view without(att_byte_view x, size_t n) { return (att_byte_view){x.data + n, x.bytes - n}; }

/* The kind of a field, as one bit. */
enum { NUMBER = 1, DECIMAL = 2, TIME = 4, OTHER = 8 };

static unsigned kind_of(att_byte_view x)
{
    if (att_log_seems_time(x))
        return TIME;
    const att_byte_view whole = without(x, x.bytes > 0 && *x.data == '-'), rest = without(whole, count_digits(whole));
    if (rest.bytes == whole.bytes || rest.bytes == 0)
        return rest.bytes < whole.bytes ? NUMBER : OTHER;
    const att_byte_view part = without(rest, 1);
    return *rest.data == '.' && count_digits(part) == part.bytes ? DECIMAL : OTHER;
}

enum { MAX_COLUMNS = 64 };

/* The columns of the first records: the kinds of all their fields. */
typedef struct columns {
    int64_t records, n;
    unsigned kinds[MAX_COLUMNS];
} columns;

static bool see_columns(const att_table *t, void *arg)
{
    columns *c = arg;
    c->n = c->records++ ? c->n : t->n;
    if (t->n != c->n || t->n > MAX_COLUMNS) {
        c->n = 0;
        return false;
    }
    for (int64_t i = 0; i < t->n; i++)
        c->kinds[i] |= kind_of(t->field[i]);
    return true;
}

bool att_log_has_columns(att_table *t)
{
    columns c = {0};
    /* of_all: kinds that all columns have; alone: kinds that are the only one of a column */
    unsigned of_all = NUMBER | DECIMAL | TIME, alone = 0;
    att_table_sample(t, see_columns, &c);
    for (int64_t i = 1; i < c.n; i++) { /* after the user */
        const unsigned k = c.kinds[i];
        of_all &= k;
        alone |= k == NUMBER || k == DECIMAL || k == TIME ? k : 0;
    }
    return c.records > 1 && (alone & ~of_all);
}

/* Returns a hash of the shape of an id, in which each run of letters counts as one letter and each run of digits as one
 * digit; 0: it has no digit. */
static uint64_t shape_of(att_byte_view id)
{
    uint64_t hash = ATT_FNV64_OFFSET;
    char before = 0;
    bool digits = false;
    for (size_t i = 0; i < id.bytes; i++) {
        const char c = is_digit(id.data[i]) ? '0' : is_letter(id.data[i]) ? 'a' : id.data[i];
        hash = c == before ? hash : att_fnv64(hash, (unsigned char)c);
        digits |= c == '0';
        before = c;
    }
    return digits ? hash : 0;
}

/* Returns whether the record has the columns of an action, with numbers in those that are read as numbers. The first of
 * three numbers may be the number of the record. */
static bool is_action(const att_table *t)
{
    return t->n == 2 || (t->n == 3 && (is_time(t->field[2]) || (is_rating(t->field[2]) && !is_number(t->field[0])))) ||
           (t->n == 4 && is_rating(t->field[2]) && is_time(t->field[3]));
}

static bool see_action(const att_table *t, void *arg)
{
    seen *s = arg;
    s->fields = s->records ? s->fields : t->n;
    s->result = t->n == s->fields && is_action(t);
    if (!s->result)
        return false;
    s->untimed |= t->n == 2 || !is_time(t->field[t->n - 1]);
    const uint64_t user = shape_of(t->field[0]), item = shape_of(t->field[1]);
    s->again |= s->records > 0 && user == s->shape[0] && item == s->shape[1];
    if (s->records++ == 0) {
        s->shape[0] = user;
        s->shape[1] = item;
    }
    return true;
}

/* Records without times may be words below a heading. Ids with digits, whose shape is that of another record's ids, are
 * not words. */
bool att_log_is_lines(att_table *t)
{
    seen s = {0};
    att_table_sample(t, see_action, &s);
    return s.result && (!s.untimed || (s.again && s.shape[0] && s.shape[1]));
}
