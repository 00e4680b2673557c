#include "recommend/log_columns.h"

#include <string.h>

static const char *const what[] = {[ATT_LOG_USER] = "user",
                                   [ATT_LOG_ITEM] = "item",
                                   [ATT_LOG_TIME] = "time",
                                   [ATT_LOG_EVENT] = "event",
                                   [ATT_LOG_RATING] = "rating"};
static const char *const shown[] = {[ATT_LOG_USER] = "user_id",
                                    [ATT_LOG_ITEM] = "item_id",
                                    [ATT_LOG_TIME] = "time",
                                    [ATT_LOG_EVENT] = "event",
                                    [ATT_LOG_RATING] = "rating"};

/* ---- usual names */

/* The usual names, in only small letters and digits. Names of the second list count if no column has one of the first,
 * because other columns have them, too. */
/* clang-format off */
enum { LISTS = 2, NAMES = 64 };
static const char *const usual[ATT_LOG_COLUMNS][LISTS][NAMES] = {
    [ATT_LOG_USER] = {
        { "user", "userid", "uid", "visitorid", "customer", "customerid", "customerno", "customernumber",
          "clientid", "memberid", "accountid", "buyerid", "shopperid", "personid", "profileid", "subscriberid",
          "reviewerid", "viewerid", "readerid", "listenerid", "deviceid", "cookieid", "fullvisitorid",
          "householdid", "householdkey", "idvisitor", "userpseudoid", "customeruser", NULL },
        { "username", "usr", "email", "useremail", "customeremail", "emailaddress", "visitor", "client",
          "billingemail", "member", "account", "buyer", "shopper", "reviewer", "session", "sessionid", NULL }},
    [ATT_LOG_ITEM] = {
        { "item", "itemid", "iid", "itemno", "itemnumber", "itemsku", "itemcode", "sku", "skuid", "productid",
          "productno", "productnumber", "productsku", "productcode", "stockcode", "lineitemsku", "variantid",
          "variantsku", "goodsid", "asin", "isbn", "movieid", "articleid", "articlecode", "bookid", "songid",
          "trackid", "videoid", "newsid", "contentid", "recipeid", "gameid", "animeid", "businessid", "venueid",
          "poiid", "offerid", "courseid", NULL },
        { "product", "parentasin", "artistid", "artist", "movie", "article", "book", "song", "track", "video", "game", "goods",
          NULL }},
    [ATT_LOG_TIME] = {
        { "timestamp", "timestampms", "timestampmillis", "time", "timems", "ts", "tsms", "date", "datetime",
          "dt", "unixtime", "unixtimestamp", "unixreviewtime", "epoch", "epochtime", "createdat", "created",
          "createdon", "createdate", "createddate", "createdtime", "creationdate", "creationtime", "orderedat",
          "orderedon", "orderdate", "ordertime", "orderdatetime", "ordertimestamp", "orderpurchasetimestamp",
          "purchasedat", "purchasedate", "purchasetime", "boughtat", "eventtime", "eventdate", "eventdatetime",
          "eventtimestamp", "eventat", "eventts", "transactiondate", "transactiontime", "transactionat", "tdat",
          "invoicedate", "viewedat", "clickedat", "playedat", "ratedat", "reviewdate", "dateadded",
          "utctimestamp", "utctime", "reviewedat", "servertime", "ratingtimestamp", "sorttimestamp", NULL },
        { "paidat", "processedat", "updatedat", "starttime", "startedat", "visittime", "sessiondate",
          "sessionstart", "clicktime", "ratingtime", "lastupdated", "day", NULL }},
    [ATT_LOG_EVENT] = {
        { "event", "eventtype", "eventname", "eventtitle", "interactiontype", "actiontype", "behavior", "behaviour",
          "behaviortype", "behaviourtype", "activitytype", NULL },
        { "action", "interaction", "activity", "type", NULL }},
    [ATT_LOG_RATING] = {
        { "rating", "ratings", "stars", "userrating", "bookrating", "ratingvalue", "overall", NULL },
        { "score", "value", NULL }},
};
/* clang-format on */

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (unsigned char)c >= 0x80; }

/* Reduces a name to small letters and digits: "Ordered At" and ordered_at become "orderedat". Returns false if it is
 * too long for the room. */
enum { PLAIN = 64 };
static bool write_plain(att_byte_view name, char plain[PLAIN])
{
    size_t n = 0;
    for (size_t i = 0; i < name.bytes; i++) {
        const char c = name.data[i], small = c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c;
        if (!is_letter(small))
            continue;
        if (n + 1 == PLAIN)
            return false;
        plain[n++] = small;
    }
    plain[n] = '\0';
    return n > 0;
}

bool att_log_column_is_in(att_byte_view name, const char *const *names)
{
    char plain[PLAIN];
    if (!write_plain(name, plain))
        return false;
    while (*names && strcmp(*names, plain) != 0)
        names++;
    return *names != NULL;
}

bool att_log_column_is_usual(att_byte_view name)
{
    bool is = false;
    for (int c = 0; c < ATT_LOG_COLUMNS; c++)
        for (int k = 0; k < LISTS; k++)
            is = is || att_log_column_is_in(name, usual[c][k]);
    return is;
}

/* ---- columns of a header */

static bool is_space(char c) { return c == ' ' || c == '\t'; }

att_byte_view att_log_column_name(att_byte_view field, bool type)
{
    const char *colon = type ? memchr(field.data, ':', field.bytes) : NULL;
    field.bytes = colon ? (size_t)(colon - field.data) : field.bytes;
    for (; field.bytes > 0 && is_space(field.data[0]); field.bytes--)
        field.data++;
    while (field.bytes > 0 && is_space(field.data[field.bytes - 1]))
        field.bytes--;
    return field;
}

/* The first two of the columns that were searched for; -1: none. */
typedef struct columns {
    int64_t first, second;
} columns;

static void add(columns *found, int64_t i) { *(found->first < 0 ? &found->first : &found->second) = i; }

/* Finds the columns with a given name. If there is none, and the name is a number, finds the column with this
 * number. */
static columns find_named(const att_table *t, bool types, const char *name)
{
    const att_byte_view wanted = att_log_column_name((att_byte_view){name, strlen(name)}, false);
    char plain[PLAIN];
    const char *const plain_names[] = {plain, NULL};
    columns exact = {-1, -1}, similar = {-1, -1};
    const bool has_plain = write_plain(wanted, plain);
    for (int64_t i = 0; i < t->n; i++) {
        const att_byte_view is = att_log_column_name(t->field[i], types);
        if (is.bytes == wanted.bytes && !memcmp(is.data, wanted.data, is.bytes))
            add(&exact, i);
        else if (has_plain && att_log_column_is_in(is, plain_names))
            add(&similar, i);
    }
    const columns found = exact.first < 0 ? similar : exact;
    const int64_t number = att_log_column_number(name);
    return found.first < 0 && number < t->n ? (columns){number, -1} : found;
}

static bool is_named(const att_table *t, bool types, int64_t i, const char *name)
{
    return att_log_column_is_in(att_log_column_name(t->field[i], types), (const char *const[]){name, NULL});
}

/* Finds the columns with usual names of users, items or times. c states which. */
static columns find_usual(const att_table *t, bool types, int c)
{
    columns found = {-1, -1};
    for (int k = 0; k < LISTS && found.first < 0; k++)
        for (int64_t i = 0; i < t->n; i++)
            if (att_log_column_is_in(att_log_column_name(t->field[i], types), usual[c][k]))
                add(&found, i);
    if (found.second < 0 && found.first >= 0 && is_named(t, types, found.first, "day"))
        for (int64_t i = 0; i < t->n; i++) /* the day of a month is a part of a date */
            if (is_named(t, types, i, "month"))
                add(&found, i);
    return found;
}

void att_log_columns_given(const att_interactions_options *o, const char *given[ATT_LOG_COLUMNS])
{
    given[ATT_LOG_USER] = o->user;
    given[ATT_LOG_ITEM] = o->item;
    given[ATT_LOG_TIME] = o->time;
    given[ATT_LOG_EVENT] = o->n_events > 0 ? o->event : NULL;
    given[ATT_LOG_RATING] = o->by_rating ? o->rating : NULL;
}

bool att_log_filters_by(const att_interactions_options *o, int column)
{
    return column == ATT_LOG_EVENT ? o->n_events > 0 : column == ATT_LOG_RATING && o->by_rating;
}

/* Returns whether a log needs no column c. */
static bool is_optional(const att_interactions_options *o, int c)
{
    return c > ATT_LOG_ITEM && !att_log_filters_by(o, c);
}

static columns find(const att_table *t, bool types, const char *name, int c)
{
    return name ? find_named(t, types, name) : find_usual(t, types, c);
}

static att_status refuse_two(const att_table *t, bool types, columns found, int c)
{
    enum { SHOWN = 80 };
    const att_where where = att_table_where(t);
    const att_byte_view a = att_log_column_name(t->field[found.first], types),
                        b = att_log_column_name(t->field[found.second], types);
    if (a.bytes == b.bytes && !memcmp(a.data, b.data, a.bytes))
        return att_fail_at(&where, ATT_ERR_FORMAT, "the header has the column \"%.*s\" twice",
                           (int)(a.bytes < SHOWN ? a.bytes : SHOWN), a.data);
    return att_fail_at(&where, ATT_ERR_FORMAT,
                       "the header has the columns \"%.*s\" and \"%.*s\", and either may be that of the %s: name one",
                       (int)(a.bytes < SHOWN ? a.bytes : SHOWN), a.data, (int)(b.bytes < SHOWN ? b.bytes : SHOWN),
                       b.data, what[c]);
}

static att_status refuse_none(const att_table *t, att_byte_view line, const char *name, int c)
{
    const att_where where = att_table_where(t);
    return att_fail_at(
        &where, ATT_ERR_FORMAT,
        "the header has no column \"%.80s\", of the %s; it is: %.*s%s. Name the column if it has another "
        "name",
        name ? name : shown[c], what[c], (int)(line.bytes < 120 ? line.bytes : 120), line.data,
        line.bytes < 120 ? "" : "...");
}

att_status att_log_columns_check(const att_where *where, const int64_t column[ATT_LOG_COLUMNS])
{
    for (int a = 0; a < ATT_LOG_COLUMNS; a++)
        for (int b = a + 1; b < ATT_LOG_COLUMNS; b++)
            if (column[a] >= 0 && column[a] == column[b])
                return att_fail_at(where, ATT_ERR_FORMAT,
                                   "column %lld would be both that of the %s and of the %s: name both",
                                   (long long)column[a] + 1, what[a], what[b]);
    return ATT_OK;
}

att_status att_log_columns_find(const att_table *t, bool types, att_byte_view line, const att_interactions_options *o,
                                int64_t column[ATT_LOG_COLUMNS])
{
    const char *given[ATT_LOG_COLUMNS];
    att_log_columns_given(o, given);
    for (int c = 0; c < ATT_LOG_COLUMNS; c++) {
        const bool none = c == ATT_LOG_TIME ? o->time && !*o->time : is_optional(o, c);
        const columns found = none ? (columns){-1, -1} : find(t, types, given[c], c);
        if (found.second >= 0)
            return refuse_two(t, types, found, c);
        if (found.first < 0 && !none && (!is_optional(o, c) || given[c]))
            return refuse_none(t, line, given[c], c);
        column[c] = found.first;
    }
    const att_where where = att_table_where(t);
    return att_log_columns_check(&where, column);
}

bool att_log_columns_exist(const att_table *t, const att_interactions_options *o)
{
    const bool user = att_log_column_number(o->user) >= 0, item = att_log_column_number(o->item) >= 0;
    return !(user && item) && (user || find(t, false, o->user, ATT_LOG_USER).first >= 0) &&
           (item || find(t, false, o->item, ATT_LOG_ITEM).first >= 0);
}

bool att_log_columns_are_numbers(const att_interactions_options *o)
{
    const char *given[ATT_LOG_COLUMNS];
    int n = 0;
    att_log_columns_given(o, given);
    for (int c = 0; c < ATT_LOG_COLUMNS; c++) {
        const bool any = given[c] && *given[c];
        if (any && att_log_column_number(given[c]) < 0)
            return false;
        n += any;
    }
    return n > 0;
}

int64_t att_log_column_number(const char *name)
{
    const size_t digits = name ? strspn(name, "0123456789") : 0;
    int64_t n = 0;
    if (digits == 0 || digits > 6 || name[digits])
        return -1;
    for (size_t i = 0; i < digits; i++)
        n = n * 10 + (name[i] - '0');
    return n - 1;
}
