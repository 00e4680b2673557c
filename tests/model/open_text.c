/* Text files packed by gzip: what they hold is read, and what is truncated, damaged or a bomb is refused. */
#include "check.h"
#include "folder.h"

#include "attend_text.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { LINES = 20000, MOST = 1 << 20 };

static test_folder folder;
static char packed[256]; /* path of packed.txt.gz, LINES different lines */
static char text[MOST], bytes[MOST];
static size_t text_bytes, packed_bytes;

static const char *path_of(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder.path, name);
    return path;
}

static void write_bytes(const char *name, const void *data, size_t n)
{
    FILE *f = folder_open(&folder, name);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void pack(const char *path, const char *mode, const char *data, size_t n)
{
    gzFile f = gzopen(path, mode);
    assert_non_null(f);
    assert_int_equal(gzwrite(f, data, (unsigned)n), (int)n);
    assert_int_equal(gzclose(f), Z_OK);
}

static int set_up(void **state)
{
    (void)state;
    folder = folder_new();
    for (int i = 0; i < LINES; i++)
        text_bytes += (size_t)sprintf(text + text_bytes, "line %d of %u\n", i, (unsigned)i * 2654435761u);
    snprintf(packed, sizeof packed, "%s", path_of("packed.txt.gz"));
    pack(packed, "wb", text, text_bytes);
    FILE *f = fopen(packed, "rb");
    packed_bytes = fread(bytes, 1, sizeof bytes, f);
    assert_int_equal(fclose(f), 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    folder_remove(&folder);
    return 0;
}

/* Does the file at path have this text? */
static void assert_text(const char *path, const char *expected, size_t n)
{
    static char got[2 * MOST];
    int file;
    if (att_open_text(path, &file))
        fail_msg("%s", att_error(NULL));
    size_t used = 0;
    for (ssize_t k = 1; k > 0; used += (size_t)k)
        k = read(file, got + used, sizeof got - used);
    close(file);
    assert_int_equal(used, n);
    assert_memory_equal(got, expected, n);
}

static void assert_refused(const char *path, att_status status, const char *says)
{
    int file = 0;
    if (att_open_text(path, &file) != status || file != -1 || !strstr(att_error(NULL), says))
        fail_msg("%s: %d, %s: expected %s", path, file, att_error(NULL), says);
}

static void plain_and_packed_files_have_the_same_text(void **state)
{
    (void)state;
    write_bytes("plain.txt", text, text_bytes);
    assert_text(path_of("plain.txt"), text, text_bytes);
    assert_text(packed, text, text_bytes);
    write_bytes("no-name", bytes, packed_bytes); /* the content tells, not the name */
    assert_text(path_of("no-name"), text, text_bytes);
    write_bytes("empty.txt", "", 0);
    assert_text(path_of("empty.txt"), "", 0);
    pack(path_of("empty.gz"), "wb", "", 0);
    assert_text(path_of("empty.gz"), "", 0);
}

/* As `cat a.gz b.gz` makes them. */
static void several_members_are_one_text(void **state)
{
    (void)state;
    pack(path_of("two.gz"), "wb", text, 1000);
    pack(path_of("two.gz"), "ab", text + 1000, text_bytes - 1000);
    assert_text(path_of("two.gz"), text, text_bytes);
}

static void truncated_files_are_refused(void **state)
{
    (void)state;
    for (size_t n = 2; n < packed_bytes; n += n < 40 || n + 20 > packed_bytes ? 1 : 997) {
        write_bytes("cut.gz", bytes, n);
        assert_refused(path_of("cut.gz"), ATT_ERR_FORMAT, "cut.gz: the gzip file is truncated");
    }
}

/* A flipped bit is found by the checksum at the latest, but for those of the header that say nothing of the text. */
static void damaged_files_are_refused(void **state)
{
    (void)state;
    enum { HEADER = 10 };
    for (size_t i = HEADER; i<packed_bytes; i += i + 20> packed_bytes ? 1 : 499) {
        int file;
        bytes[i] ^= 0x10;
        write_bytes("damaged.gz", bytes, packed_bytes);
        bytes[i] ^= 0x10;
        assert_int_equal(att_open_text(path_of("damaged.gz"), &file), ATT_ERR_FORMAT);
        assert_int_equal(file, -1);
    }
    bytes[packed_bytes - 8] ^= 1;
    write_bytes("checksum.gz", bytes, packed_bytes);
    bytes[packed_bytes - 8] ^= 1;
    assert_refused(path_of("checksum.gz"), ATT_ERR_FORMAT,
                   "checksum.gz: the gzip file is damaged: incorrect data check");
}

static void a_bomb_is_refused(void **state)
{
    (void)state;
    static char zeros[1 << 20];
    gzFile f = gzopen(path_of("bomb.gz"), "wb9");
    for (int i = 0; i < 100; i++)
        assert_int_equal(gzwrite(f, zeros, sizeof zeros), sizeof zeros);
    assert_int_equal(gzclose(f), Z_OK);
    assert_refused(path_of("bomb.gz"), ATT_ERR_UNSUPPORTED, "bytes, over 100 times its size, as no such file has");
    f = gzopen(path_of("repeated.gz"), "wb9"); /* small enough for any ratio */
    for (int i = 0; i < 60; i++)
        assert_int_equal(gzwrite(f, zeros, sizeof zeros), sizeof zeros);
    assert_int_equal(gzclose(f), Z_OK);
    int file;
    struct stat is;
    assert_int_equal(att_open_text(path_of("repeated.gz"), &file), ATT_OK);
    assert_int_equal(fstat(file, &is), 0);
    assert_int_equal(is.st_size, 60 << 20);
    close(file);
}

static void what_cannot_be_opened_is_named(void **state)
{
    (void)state;
    write_bytes("named.gz", text, text_bytes);
    assert_refused(path_of("named.gz"), ATT_ERR_FORMAT, "named.gz: is not a gzip file, though its name ends in .gz");
    assert_refused(path_of("none.gz"), ATT_ERR_IO, "none.gz: No such file");
    setenv("TMPDIR", "/proc", 1);
    assert_refused(packed, ATT_ERR_IO, "is unpacked to a file in /proc (TMPDIR), which cannot be written");
    unsetenv("TMPDIR");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_and_packed_files_have_the_same_text),
        cmocka_unit_test(several_members_are_one_text),
        cmocka_unit_test(truncated_files_are_refused),
        cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(a_bomb_is_refused),
        cmocka_unit_test(what_cannot_be_opened_is_named),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
