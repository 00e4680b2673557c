/* Logs: each format gives the same histories, sorted by time and, where times are equal, by the file; and what is
 * damaged or hostile is refused with a sentence that names file, line and field. */
#include "fixtures/interactions.h"
#include "fixtures/progress.h"
#include "util/util.h"
#include "fixtures/real_files.h"

#include "attend_util.h"

#include <math.h>
#include <string.h>
#include <zlib.h>

static test_folder folder;

static int new_folder(void **state)
{
    (void)state;
    folder = folder_new();
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    folder_remove(&folder);
    return 0;
}

static const char *path_of(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder.path, name);
    return path;
}

static void write_bytes(const char *name, const char *data, size_t n)
{
    FILE *f = folder_open(&folder, name);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* ---- what is read */

typedef struct log_case {
    const char *name, *text; /* of the file */
    const char *format;
    const char *a, *b; /* histories of the users "a" and "b" */
} log_case;

static const log_case cases[] = {
    {"pairs.txt", "a x\nb y\na z\na x\n", "lines", "x,z,x", "y"},
    {"crlf.txt", "a x\r\n\r\nb y\r\n  \r\na z\r\na x", "lines", "x,z,x", "y"},
    {"spaces.txt", "  a   x \nb\ty\na z", "lines", "x,z", "y"},
    {"times.txt", "a x 20\nb y 5\na z 10\na w 20\n", "lines", "z@10,x@20,w@20", "y@5"},
    {"ratings.txt", "a\tx\t5\t20\nb\ty\t1\t5\na\tz\t3\t10\n", "lines", "z@10,x@20", "y@5"},
    {"tabs.txt", "a\tx y\t-2.5e1\nb\tü ß\t.5\na\t x\t-25.5\n", "lines", " x@-25.5,x y@-25", "ü ß@0.5"},
    {"mark.txt",
     "\xEF\xBB\xBF"
     "a x\nb y\n",
     "lines", "x", "y"},
    {"ratings.dat", "a::x::5::20\nb::y::1::5\na::z::3::10\n", "MovieLens", "z@10,x@20", "y@5"},
    {"cpp.txt", "a std::map\nb std::set\n", "lines", "std::map", "std::set"},
    {"log.inter",
     "user_id:token\titem_id:token\trating:float\ttimestamp:float\na\tx\t5\t20.0\nb\ty\t1\t5\na\tz\t3\t10\n",
     "RecBole .inter", "z@10,x@20", "y@5"},
    {"untimed.inter", "item_id:token\tuser_id:token\nx\ta\ny\tb\nz\ta\n", "RecBole .inter", "x,z", "y"},
    {"log.csv", "rating,item,time,user\n5,x,20,a\n1,y,5,b\n3,z,10,a\n", "CSV", "z@10,x@20", "y@5"},
    {"quoted.csv", "userId,movieId,\"note, long\"\n\"a\",\"x, \"\"new\"\"\",\"\"\nb,y,\"\"\"\"\na,\"\"\"z\"\"\",1\n",
     "CSV", "x, \"new\",\"z\"", "y"},
    {"log.tsv", "item_id\tuser_id\nx y\ta\ny\tb\nz\ta\n", "CSV", "x y,z", "y"},
    {"words.txt", "user item time\na x 20\nb y 5\na z 10\n", "CSV", "z@10,x@20", "y@5"},
    {"semicolons.csv", "price;item;time;user\n2,5;x;20;a\n1;y;5;b\n\"3,\"\"5\";z;10;a\n", "CSV", "z@10,x@20", "y@5"},
    {"excel.csv", "sep=;\r\nuser;item\r\na;x, y\r\n;;\r\nb;y\r\n;\r\n", "CSV", "x, y", "y"},
    {"marked.csv",
     "\xEF\xBB\xBF"
     "\"user\",\"item\"\r\n\"a\",\"x\"\r\n\r\nb,y\r\na,z",
     "CSV", "x,z", "y"},
    {"line-ends.csv", "note,item,user,time\n\"one\ntwo\r\n\n\",x,a,2\n\"\",y,b,1\n,\"z\n;\",a,1\n", "CSV", "z\n;@1,x@2",
     "y@1"},
    {"old-mac.csv", "user;item\ra;x\r\rb;y\ra;z", "CSV", "x,z", "y"},
    {"old-mac.txt", "a x\rb y\ra z\r", "lines", "x,z", "y"},
    {"blanks.csv", "user, item, time\na, \"x, y\", 20\nb,  y, 5\na, z, 10\n", "CSV", "z@10,x, y@20", "y@5"},
    {"titles.csv", "user;item;title\na;x;one, two and three\nb;y;four\n", "CSV", "x", "y"},
    {"tabs.csv", "user\titem\tnote\na\tx, y\t\"1\t2\"\nb\ty\t;\n", "CSV", "x, y", "y"},
    {"histories.txt", "a x y z x w\nb y\na v\n", "histories", "x,y,z,x,w,v", "y"},
    {"histories.tsv", "a\tx 1\ty\tz\tx\tw\nb\ty\n", "histories", "x 1,y,z,x,w", "y"},
};

static void each_format_gives_the_histories(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const log_case *c = &cases[i];
        folder_write(&folder, c->name, c->text);
        att_interactions *log = open_log(path_of(c->name), NULL);
        const att_interactions_info info = describe_log(log);
        if (strcmp(info.format, c->format))
            fail_msg("%s: read as %s, not %s", c->name, info.format, c->format);
        if (strcmp(history_text(log, "a"), c->a))
            fail_msg("%s: the history of a is %s, not %s", c->name, history_text(log, "a"), c->a);
        if (strcmp(history_text(log, "b"), c->b))
            fail_msg("%s: the history of b is %s, not %s", c->name, history_text(log, "b"), c->b);
        assert_int_equal(info.users, 2);
        assert_int_equal(info.timed, strchr(c->a, '@') != NULL);
        att_interactions_free(log);
    }
}

static void a_file_packed_by_gzip_is_the_same(void **state)
{
    (void)state;
    gzFile f = gzopen(path_of("log.csv.gz"), "wb");
    assert_true(gzputs(f, cases[11].text) > 0);
    assert_int_equal(gzclose(f), Z_OK);
    att_interactions *log = open_log(path_of("log.csv.gz"), NULL);
    assert_string_equal(history_text(log, "a"), cases[11].a);
    att_interactions_free(log);
}

static void columns_are_those_that_are_named(void **state)
{
    (void)state;
    folder_write(&folder, "log.csv", "who,what,user,when\na,x,no,3\na,y,no,1\n");
    att_interactions *log = open_log(
        path_of("log.csv"), ATT_OPTIONS(att_interactions_options, .user = "who", .item = "what", .time = "when"));
    assert_string_equal(history_text(log, "a"), "y@1,x@3");
    att_interactions_free(log);
    folder_write(&folder, "log.txt", "a x 3\na y 1\n");
    log = open_log(path_of("log.txt"), ATT_OPTIONS(att_interactions_options, .time = ""));
    assert_string_equal(history_text(log, "a"), "x,y");
    att_interactions_free(log);
}

static void items_of_a_model_keep_their_numbers(void **state)
{
    (void)state;
    static const char *const items[] = {"never", "z", "x"};
    folder_write(&folder, "log.txt", "a x\nb y\na z\n");
    att_interactions *log =
        open_log(path_of("log.txt"), ATT_OPTIONS(att_interactions_options, .items = items, .n_items = 3));
    const char *const expected[] = {"never", "z", "x", "y"};
    assert_int_equal(describe_log(log).items, 4);
    for (int i = 0; i < 4; i++)
        assert_string_equal(att_interactions_item(log, i), expected[i]);
    assert_null(att_interactions_item(log, 4));
    assert_null(att_interactions_item(log, -1));
    assert_int_equal(att_interactions_find_item(log, "w"), -1);
    assert_int_equal(att_interactions_find_user(log, "x"), -1);
    assert_int_equal(att_interactions_history(log, 2).count, 0);
    att_interactions_free(log);
    const char *const twice[] = {"p", "q", "p"};
    assert_int_equal(att_interactions_open(ctx, path_of("log.txt"),
                                           ATT_OPTIONS(att_interactions_options, .items = twice, .n_items = 3), &log),
                     ATT_ERR_ARGUMENT);
    check_message(ctx, "items 0 and 2 are the same: p");
    assert_null(log);
    const char *const empty[] = {"p", ""};
    assert_int_equal(att_interactions_open(ctx, path_of("log.txt"),
                                           ATT_OPTIONS(att_interactions_options, .items = empty, .n_items = 2), &log),
                     ATT_ERR_FORMAT);
    check_message(ctx, "known item 1: item is empty");
}

/* ---- order */

static void histories_are_those_of_python(void **state)
{
    (void)state;
    att_interactions *log = open_log(GOLDEN_LOG, NULL);
    const att_interactions_info info = describe_log(log);
    double x[64];
    assert_int_equal(golden_line(GOLDEN_RANKING, "info", x, 64), 8);
    const int64_t found[] = {info.users,    info.items, info.actions, info.longest,
                             info.unsorted, info.ties,  info.repeats, info.duplicates};
    for (int i = 0; i < 8; i++)
        assert_int_equal(found[i], x[i]);
    assert_true(info.unsorted > 0 && info.ties > 0 && info.repeats > 0 && info.duplicates > 0);
    for (int64_t u = 0; u < info.users; u++) {
        char name[32];
        snprintf(name, sizeof name, "history-%d", (int)u);
        const att_history h = att_interactions_history(log, u);
        assert_int_equal(golden_line(GOLDEN_RANKING, name, x, 64), h.count);
        for (int64_t i = 0; i < h.count; i++)
            assert_int_equal(h.items[i], x[i]);
    }
    att_interactions_free(log);
}

static void duplicates_are_dropped_if_wanted(void **state)
{
    (void)state;
    folder_write(&folder, "log.txt", "a x 1\na y 1\na x 1\na x 2\nb x 1\na x 2\nb x 1\n");
    att_interactions *log = open_log(path_of("log.txt"), NULL);
    assert_string_equal(history_text(log, "a"), "x@1,y@1,x@1,x@2,x@2");
    assert_int_equal(describe_log(log).duplicates, 3);
    assert_int_equal(describe_log(log).repeats, 4);
    att_interactions_free(log);
    log = open_log(path_of("log.txt"), ATT_OPTIONS(att_interactions_options, .drop_duplicates = true));
    assert_string_equal(history_text(log, "a"), "x@1,y@1,x@2");
    assert_string_equal(history_text(log, "b"), "x@1");
    const att_interactions_info info = describe_log(log);
    assert_int_equal(info.duplicates, 3);
    assert_int_equal(info.actions, 4);
    assert_int_equal(info.repeats, 1);
    assert_int_equal(info.longest, 3);
    att_interactions_free(log);
}

static void arrays_are_a_log(void **state)
{
    (void)state;
    static const char *const users[] = {"a", "b", "a", "a"}, *const items[] = {"x", "y", "z", "w"};
    static const double times[] = {2, 0, 1, 2};
    att_interactions *log;
    assert_int_equal(att_interactions_new(ctx, 4, users, items, times, NULL, &log), ATT_OK);
    assert_string_equal(history_text(log, "a"), "z@1,x@2,w@2");
    assert_string_equal(describe_log(log).format, "memory");
    att_interactions_free(log);
    assert_int_equal(att_interactions_new(ctx, 4, users, items, NULL, NULL, &log), ATT_OK);
    assert_string_equal(history_text(log, "a"), "x,z,w");
    att_interactions_free(log);
    assert_int_equal(att_interactions_new(ctx, 0, NULL, NULL, NULL, NULL, &log), ATT_ERR_FORMAT);
    check_message(ctx, "no action");
    assert_int_equal(att_interactions_new(ctx, 4, users, items, (const double[]){0, 0, NAN, 0}, NULL, &log),
                     ATT_ERR_ARGUMENT);
    check_message(ctx, "action 2: time is nan");
    assert_int_equal(att_interactions_new(ctx, 4, users, (const char *const[]){"x", NULL, "x", "x"}, NULL, NULL, &log),
                     ATT_ERR_ARGUMENT);
    check_message(ctx, "action 1: item is NULL");
}

/* ---- times */

static void times_are_read_as_strtod_reads_them(void **state)
{
    (void)state;
    static const char *const times[] = {"0",
                                        "-0",
                                        "+7",
                                        "1700000000",
                                        "9007199254740992",
                                        "-9007199254740992",
                                        "1e3",
                                        "1.5e-3",
                                        "123456.789",
                                        "1700000000.125",
                                        "0.1",
                                        "1E22",
                                        "12345678901234.5",
                                        "000000000000000000000000000012",
                                        "0.000000000000000000000000000012",
                                        "1e-300",
                                        "3e307",
                                        "9223372036854775808",
                                        "5.",
                                        ".5"};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        char text[128];
        snprintf(text, sizeof text, "a x %s\n", times[i]);
        folder_write(&folder, "log.txt", text);
        att_interactions *log = open_log(path_of("log.txt"), NULL);
        const double found = att_interactions_history(log, 0).times[0], expected = strtod(times[i], NULL);
        /* Up to fifteen roundings, of 22 digits each, are needed for 1e-300 and 3e307; none or one for usual times */
        const double tolerance = fabs(expected) > 1e25 || fabs(expected) < 1e-15 ? 15 * DBL_EPSILON : 0;
        if (!(fabs(found - expected) <= tolerance * fabs(expected)))
            fail_msg("%s is read as %.17g", times[i], found);
        att_interactions_free(log);
    }
}

/* ---- what is refused */

typedef struct refused_case {
    const char *text;
    size_t bytes; /* 0: zero-terminated */
    const char *says;
} refused_case;

static const refused_case refused[] = {
    {"", 0, " has no action of a user with an item"},
    {"\n\n \n", 0, " has no action of a user with an item"},
    {"user_id,item_id\n", 0, " has no action of a user with an item"},
    {"a\n", 0, "log: line 1: 1 field in the format lines, expected \"user item\""},
    {"a x\n\nb\n", 0, "log: line 3: 1 field, but the first line has 2: item is missing"},
    {"a x 1\nb y\n", 0, "log: line 2: 2 fields, but the first line has 3: time is missing"},
    {"a x\nb y 1\n", 0,
     "log: line 2: 3 fields, but the first line has 2; if each line is a user and items, the format"},
    {"a\tx\nb\t\n", 0, "log: line 2: item is empty"},
    {"\ty\n  \tx\n", 0, "log: none of the 2 actions has a user"},
    {"a\tx\t\n", 0, "log: line 1: time is empty"},
    {"a x now\n", 0, "log: line 1: time is \"now\", not a number"},
    {"a x 1\na y 1.2.3\n", 0, "log: line 2: time is \"1.2.3\", not a number"},
    {"a x 0x10\n", 0, "time is \"0x10\", not a number"},
    {"a x nan\n", 0, "time is \"nan\", not a number"},
    {"a x 1e\n", 0, "time is \"1e\", not a number"},
    {"a x -\n", 0, "time is \"-\", not a number"},
    {"a x 1e999\n", 0, "time is 1e999, more than a double holds"},
    {"a x 9e99999999999999999999\n", 0, "more than a double holds"},
    {"a x 9007199254740993\n", 0, "time is 9007199254740993, an integer that a double cannot hold"},
    {"a x 12345678901234567\n", 0, "an integer that a double cannot hold; write seconds or milliseconds"},
    {"a x\na \xff\n", 0, "log: line 2: item is not UTF-8"},
    {"a x\na \xed\xa0\x80\n", 0, "log: line 2: item is not UTF-8"},
    {"a x\na y\0z\n", 10, "log: line 2: item has a zero byte"},
    {"\0\0 x\n", 5, "log: line 1: user has a zero byte"},
    {"user,time\na,1\n", 0, "log: line 1: the header has no column \"item_id\", of the item; it is: user,time"},
    {"Kunde;Ware\na1;x1\na2;x2\n", 0,
     "log: line 1: the header has no column \"user_id\", of the user; it is: Kunde;Ware"},
    {"anna,apple\nbea,pear\n", 0, "log: line 1: the header has no column \"user_id\""},
    {"1,u1,i1,1609459200\n2,u1,i2,1609459201\n", 0, "log: line 1: the header has no column \"user_id\""},
    {"0,196,242\n1,186,302\n", 0, "log: line 1: the header has no column \"user_id\""},
    {"Wann\tWer\tWas\tTitel\tPreis\n1\ta\tx\tT\t5\n2\ta\ty\tT\t5\n", 0, "the header has no column \"user_id\""},
    {"user,item,user\na,x,b\n", 0, "log: line 1: the header has the column \"user\" twice"},
    {"user,item\na\n", 0, "log: line 2: 1 field, but the first line has 2: item is missing"},
    {"user,item\na,x,y\n", 0, "log: line 2: 3 fields, but the first line has 2"},
    {"user,item\na,\"x\n", 0, "log: line 2: a field begins with a quote but does not end with one"},
    {"user,item\n\"a\"b,x\n", 0, "log: line 2: a field begins with a quote, and text follows its end"},
    {"user,item\na,\"\"\n", 0, "log: line 2: item is empty"},
    {"user_id:token\titem_id:token\na\n", 0, "log: line 2: 1 field, but the first line has 2: item is missing"},
    {"user_id:token\titem_list:token_seq\na\tb\n", 0, "the header has no column \"item_id\""},
    {"a::x::1::2::3\n", 0, "log: line 1: 5 fields in the format MovieLens"},
    {"a x y z w v\nb\n", 0, "log: line 2: 1 field, the user; item is missing"},
};

static void assert_refused(const char *path, const att_interactions_options *options, const char *says)
{
    att_interactions *log;
    if (!att_interactions_open(ctx, path, options, &log) || log)
        fail_msg("%s was accepted", path);
    check_message(ctx, says);
}

static void what_is_damaged_is_refused_with_file_line_and_field(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        write_bytes("log", refused[i].text, refused[i].bytes ? refused[i].bytes : strlen(refused[i].text));
        assert_refused(path_of("log"), NULL, refused[i].says);
        check_message(ctx, folder.path);
    }
}

static void options_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    folder_write(&folder, "log", "a x 1\n");
    assert_refused(path_of("nothing"), NULL, "No such file");
    assert_refused(folder.path, NULL, "is not a file");
    assert_refused(path_of("log"), ATT_OPTIONS(att_interactions_options, .user = "who"), "\"who\" was given as one");
    assert_refused(path_of("log"), ATT_OPTIONS(att_interactions_options, .format = (att_interactions_format)9),
                   "format is 9");
    assert_refused(path_of("log"), ATT_OPTIONS(att_interactions_options, .format = ATT_INTERACTIONS_CSV),
                   "the header has no column \"user_id\"");
    assert_refused(path_of("log"), ATT_OPTIONS(att_interactions_options, .format = ATT_INTERACTIONS_MOVIELENS),
                   "1 field in the format MovieLens");
    assert_refused(path_of("log"), ATT_OPTIONS(att_interactions_options, .n_items = 3), "n_items is 3");
    folder_write(&folder, "log", "user,item\na,x\n");
    assert_refused(path_of("log"), ATT_OPTIONS(att_interactions_options, .time = "when"),
                   "the header has no column \"when\", of the time");
}

static void a_long_id_is_refused_and_one_of_4096_bytes_is_read(void **state)
{
    (void)state;
    enum { MAX = 4096 };
    static char text[MAX + 8] = "a ";
    memset(text + 2, 'x', MAX);
    folder_write(&folder, "log", text);
    att_interactions *log = open_log(path_of("log"), NULL);
    assert_int_equal(strlen(att_interactions_item(log, 0)), MAX);
    att_interactions_free(log);
    text[2 + MAX] = 'x';
    folder_write(&folder, "log", text);
    assert_refused(path_of("log"), NULL, "log: line 1: item has 4097 bytes, more than 4096: xxx");
}

/* Ids whose hashes begin at the same slot, also of the table that 1,025 of them need: each would be compared with all
 * that were read before. */
static void ids_that_were_made_to_collide_are_refused(void **state)
{
    (void)state;
    enum { SLOTS = 4096, IDS = 1025 };
    FILE *f = folder_open(&folder, "log");
    for (uint32_t id = 0, n = 0; n < IDS; id++) {
        char text[16];
        const int bytes = snprintf(text, sizeof text, "%u", (unsigned)id);
        const uint32_t hash = att_fnv32_bytes(ATT_FNV32_OFFSET, text, (size_t)bytes);
        if (((hash ^ hash >> 15) & (SLOTS - 1)) != 7)
            continue;
        fprintf(f, "a %s\n", text);
        n++;
    }
    assert_int_equal(fclose(f), 0);
    assert_refused(path_of("log"), NULL, "log: line 1025: item collides with 1024 other ids");
}

static void a_history_that_is_too_long_for_a_line_is_refused(void **state)
{
    (void)state;
    FILE *f = folder_open(&folder, "log");
    fprintf(f, "a x y z w\nb");
    for (int i = 0; i < 1 << 19; i++)
        fprintf(f, " %d", i % 10);
    fprintf(f, "\n");
    assert_int_equal(fclose(f), 0);
    assert_refused(path_of("log"), NULL,
                   "log: line 2 has more than 1048576 bytes; write an action a line, the format lines");
}

/* ---- size */

static size_t used, most;

static void *count_alloc(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    size_t *p = aligned_alloc(alignment, (bytes + 2 * alignment - 1) / alignment * alignment);
    if (!p)
        return NULL;
    *p = bytes;
    used += bytes;
    most = used > most ? used : most;
    return (char *)p + alignment;
}

static void count_free(void *user, void *p)
{
    (void)user;
    size_t *head = (size_t *)((char *)p - 64);
    used -= *head;
    free(head);
}

/* Opens a log of `lines` of users and items, all of them different if there are as many; times descend: all have to be
 * sorted. Of 64 bytes a line, 16 are left for what does not grow with lines: the file's block of 2 MiB and few ids. */
static void assert_memory(int lines, int users, int items)
{
    enum { BYTES_OF_LINE = 48, BYTES_OF_ID = 64, FIXED = 4 << 20 };
    const size_t ids = users == lines ? 2 * (size_t)lines : 0, bytes_of_ids = 2 * ids * strlen("1000000");
    FILE *f = folder_open(&folder, "log");
    for (int i = 0; i < lines; i++)
        fprintf(f, "%d %d %d\n", 1000000 + i % users, 1000000 + i % items, lines - i);
    assert_int_equal(fclose(f), 0);
    att_ctx *counted;
    att_interactions *log;
    assert_int_equal(
        att_open(&counted, ATT_OPTIONS(att_config, .n_threads = 1, .allocator = {count_alloc, count_free, NULL})),
        ATT_OK);
    const size_t before = used;
    most = used;
    assert_int_equal(att_interactions_open(counted, path_of("log"), NULL, &log), ATT_OK);
    assert_int_equal(describe_log(log).unsorted, lines - users);
    if (most - before > (size_t)BYTES_OF_LINE * (size_t)lines + BYTES_OF_ID * ids + bytes_of_ids + FIXED)
        fail_msg("%zu bytes for %d lines of %d users", most - before, lines, users);
    att_interactions_free(log);
    assert_int_equal(used, before);
    att_close(counted);
}

static void a_log_needs_the_memory_that_the_header_says(void **state)
{
    (void)state;
    enum { LINES = 1 << 19, GROWN = (1 << 18) + 1 };
    assert_memory(LINES, 1, 1009);
    assert_memory(LINES, 997, 1009);
    assert_memory(GROWN - 1, GROWN - 1, GROWN - 1);
    assert_memory(GROWN, GROWN, GROWN); /* the tables of ids have just grown */
}

/* ---- real data: the counts of ../shared/DOMAINS.md, by another program */

typedef struct data_case {
    const char *path, *format;
    int64_t users, items, actions, ties, repeats, unseen;
} data_case;

static const data_case data[] = {
    {"sasrec/sasrec_orig/Video.txt", "lines", 31013, 23715, 287107, 0, 0, 1167},
    {"sasrec/bert4rec/beauty.txt", "lines", 40226, 54542, 353962, 0, 0, 4018},
    {"sasrec/s3rec/Beauty.txt", "histories", 22363, 12101, 198502, 0, 0, 138},
    {"sasrec/s3rec/Sports_and_Outdoors.txt", "histories", 35598, 18357, 296337, 0, 0, 317},
    {"sasrec/s3rec/Toys_and_Games.txt", "histories", 19412, 11924, 167597, 0, 0, 279},
    {"sasrec/s3rec/Yelp.txt", "histories", 30431, 20033, 316354, 0, -1, 73},
    {"sasrec/s3rec/LastFM.txt", "histories", 1090, 3646, 52551, 0, 0, 2},
    {"sasrec/ml-100k/ml-100k.inter", "RecBole .inter", 943, 1682, 100000, 50561, 0, 3},
};

static void real_logs_have_the_known_counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof data / sizeof data[0]; i++) {
        const data_case *d = &data[i];
        if (!data_file(d->path)) {
            print_message("skipped: %s is not in ATTEND_DATA or ../shared/data\n", d->path);
            skip();
        }
        att_interactions *log = open_log(data_file(d->path), NULL);
        const att_interactions_info info = describe_log(log);
        att_holdout *h = hold_out(log, NULL);
        assert_string_equal(info.format, d->format);
        assert_int_equal(info.users, d->users);
        assert_int_equal(info.items, d->items);
        assert_int_equal(info.actions, d->actions);
        assert_int_equal(info.ties, d->ties);
        assert_int_equal(describe_holdout(h).unseen[ATT_HOLDOUT_PART_TEST], d->unseen);
        if (d->repeats >= 0)
            assert_int_equal(info.repeats, d->repeats);
        else
            assert_int_equal(describe_holdout(h).repeats[ATT_HOLDOUT_PART_TEST], 2027);
        att_holdout_free(h);
        att_interactions_free(log);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, new_folder, remove_folder)

/* Reads more lines than there are between two reports. */
static att_status read_in_parts(void *path, att_progress_fn progress, void *user)
{
    att_interactions *log;
    const att_status s = att_interactions_open(
        ctx, path, ATT_OPTIONS(att_interactions_options, .progress = progress, .progress_user = user), &log);
    assert_true(!s == (log != NULL));
    if (log)
        assert_string_equal(history_text(log, "u7"), "i0,i1,i2");
    att_interactions_free(log);
    return s;
}

static att_status add_in_parts(void *unused, att_progress_fn progress, void *user)
{
    (void)unused;
    static const char *ids[50000];
    att_interactions *log;
    for (int i = 0; i < 50000; i++)
        ids[i] = i % 2 ? "a" : "b";
    const att_status s =
        att_interactions_new(ctx, 50000, ids, ids, NULL,
                             ATT_OPTIONS(att_interactions_options, .progress = progress, .progress_user = user), &log);
    assert_true(!s == (log != NULL));
    if (log)
        assert_int_equal(describe_log(log).repeats, 49998);
    att_interactions_free(log);
    return s;
}

static void progress_may_stop_reading(void **state)
{
    (void)state;
    const test_folder f = folder_new();
    char path[300];
    snprintf(path, sizeof path, "%s/log", f.path);
    FILE *to = fopen(path, "w");
    assert_non_null(to);
    for (int i = 0; i < 50000; i++)
        fprintf(to, "u%d i%d\n", i % 20000, i % 7);
    assert_int_equal(fclose(to), 0);
    assert_progress(ctx, read_in_parts, path);
    assert_progress(ctx, add_in_parts, NULL);
    folder_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_format_gives_the_histories),
        TEST(a_file_packed_by_gzip_is_the_same),
        TEST(columns_are_those_that_are_named),
        TEST(items_of_a_model_keep_their_numbers),
        cmocka_unit_test(histories_are_those_of_python),
        TEST(duplicates_are_dropped_if_wanted),
        TEST(arrays_are_a_log),
        TEST(times_are_read_as_strtod_reads_them),
        TEST(what_is_damaged_is_refused_with_file_line_and_field),
        TEST(options_that_do_not_fit_are_refused),
        TEST(a_long_id_is_refused_and_one_of_4096_bytes_is_read),
        TEST(a_history_that_is_too_long_for_a_line_is_refused),
        TEST(ids_that_were_made_to_collide_are_refused),
        TEST(a_log_needs_the_memory_that_the_header_says),
        cmocka_unit_test(real_logs_have_the_known_counts),
        cmocka_unit_test(progress_may_stop_reading),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
