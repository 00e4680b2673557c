#include "recommend/log_heading.h"
#include "util/util.h"

#include <string.h>

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80; }

/* ---- names */

/* Of columns that are not used, as att_log_column_is_in wants them */
static const char *const others[] = {"rating", "ratings", "score",    "stars", "value", "weight", "count",
                                     "event",  "type",    "quantity", "price", "users", "items",  NULL};

static bool is_known(att_byte_view field)
{
    return att_log_column_is_usual(field) || att_log_column_is_in(field, others);
}

/* ---- numbers */

/* Does it begin as a number or a date? */
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

/* How many digits a number begins with */
static size_t count_digits(att_byte_view x)
{
    size_t n = 0;
    while (n < x.bytes && is_digit(x.data[n]))
        n++;
    return n;
}

/* A number of nine digits or more, seconds from 1973 on; or a date: one to four digits, and two separators. */
static bool is_time(att_byte_view x)
{
    const size_t n = count_digits(x), shown = x.bytes < sizeof "2001-12-31" - 1 ? x.bytes : sizeof "2001-12-31" - 1;
    int separators = 0;
    for (size_t i = n; i < shown; i++)
        separators += x.data[i] == '-' || x.data[i] == '/' || x.data[i] == '.';
    return n >= 9 || (n > 0 && n <= 4 && separators == 2);
}

/* A number of up to three digits before the point. */
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

/* What the first records are. */
typedef struct seen {
    int64_t records, fields;
    bool any;
    bool result;       /* as far as has been seen */
    uint64_t shape[2]; /* of the first record's user and item */
    bool again;        /* another record has these */
    bool untimed;      /* a record's last field is no time */
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

/* A hash of an id in which each run of letters is one letter, and of digits one digit; 0: it has no digit. */
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

/* Has the record the columns of an action, and those that are read as numbers such ones? Of three numbers the first may
 * be that of the record. */
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

/* What has no times may be words and a heading: ids that have digits, as those of another record have, are none. */
bool att_log_is_lines(att_table *t)
{
    seen s = {0};
    att_table_sample(t, see_action, &s);
    return s.result && (!s.untimed || (s.again && s.shape[0] && s.shape[1]));
}
