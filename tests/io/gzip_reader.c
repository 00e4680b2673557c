/* Text files packed by gzip: what they hold is read, and what is truncated, damaged or a bomb is refused. */
#include "fixtures/check.h"
#include "fixtures/folder.h"

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

/* ---- what others write */

static void byte_order_marks_are_no_part_of_the_text(void **state)
{
    (void)state;
    write_bytes("marked.txt", "\xEF\xBB\xBFone\r\ntwo", 11);
    assert_text(path_of("marked.txt"), "one\r\ntwo", 8);
    pack(path_of("marked.gz"), "wb", "\xEF\xBB\xBFone\n", 7);
    assert_text(path_of("marked.gz"), "one\n", 4);
    write_bytes("twice.txt", "\xEF\xBB\xBF\xEF\xBB\xBFx", 7);
    assert_text(path_of("twice.txt"), "\xEF\xBB\xBFx", 4);
}

/* Old Macs end lines with CR; in a file that has a LF anywhere a CR is text. */
static void lines_that_end_with_carriage_returns_are_lines(void **state)
{
    (void)state;
    enum { LONG = 40000 };
    static char returns[LONG], feeds[LONG];
    for (int i = 0; i < LONG; i++) {
        returns[i] = (char)(i % 9 ? 'a' + i % 9 : '\r');
        feeds[i] = (char)(i % 9 ? 'a' + i % 9 : '\n');
    }
    write_bytes("mac.txt", returns, LONG);
    assert_text(path_of("mac.txt"), feeds, LONG);
    pack(path_of("mac.gz"), "wb", returns, LONG);
    assert_text(path_of("mac.gz"), feeds, LONG);
    write_bytes("marked-mac.txt",
                "\xEF\xBB\xBF"
                "a\rb",
                6);
    assert_text(path_of("marked-mac.txt"), "a\nb", 3);
    returns[LONG - 1] = '\n';
    write_bytes("late.txt", returns, LONG);
    assert_text(path_of("late.txt"), returns, LONG);
}

typedef struct foreign_case {
    const char *bytes;
    size_t n;
    const char *says; /* after the file's name */
} foreign_case;

#define TEXT(bytes, says)                                                                                              \
    {                                                                                                                  \
        bytes, sizeof(bytes) - 1, says                                                                                 \
    }

static const foreign_case foreign[] = {
    TEXT("\xFF\xFEh\0i\0\n\0", " is UTF-16, not UTF-8; convert it: iconv -f UTF-16 -t UTF-8 "),
    TEXT("\xFE\xFF\0h\0i\0\n", " is UTF-16, not UTF-8; convert it: iconv -f UTF-16 -t UTF-8 "),
    TEXT("\xFF\xFE\0\0h\0\0\0", " is UTF-32, not UTF-8; convert it: iconv -f UTF-32 -t UTF-8 "),
    TEXT("\0\0\xFE\xFF\0\0\0h", " is UTF-32, not UTF-8; convert it: iconv -f UTF-32 -t UTF-8 "),
    TEXT("u\0s\0e\0r\0\n\0", " is UTF-16 (little endian, without a byte order mark), not UTF-8; convert it: iconv "),
    TEXT("\0u\0s\0e\0r\0\n", "iconv -f UTF-16BE -t UTF-8 "),
    TEXT("\x1F\x04@\x04"
         "8\x04"
         "2\x04"
         "5\x04"
         "B\x04\n\0",
         "iconv -f UTF-16LE -t UTF-8 "),                                            /* Cyrillic */
    TEXT("\x03\x93\x03\xB5\x03\xB9\0 \x03\xB1\0\n", "iconv -f UTF-16BE -t UTF-8 "), /* Greek */
    TEXT("h\0\0\0i\0\0\0\n\0\0\0", "iconv -f UTF-32LE -t UTF-8 "),
    TEXT("\0\0\0h\0\0\0i\0\0\0\n", "iconv -f UTF-32BE -t UTF-8 "),
    TEXT("BZh91AY&SY", " is packed by bzip2; unpack it: bzip2 -dk "),
    TEXT("\xFD\x37zXZ\0\0\4", " is packed by xz; unpack it: xz -dk "),
    TEXT("\x28\xB5\x2F\xFD\4\0", " is packed by zstd; unpack it: zstd -d "),
    TEXT("PK\3\4\24\0",
         " is a zip archive or a document of Excel, LibreOffice or Word; write a document as CSV in UTF-8,"),
    TEXT("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", " is a document of an old Excel or Word; write its table as CSV in UTF-8"),
    TEXT("PAR1\25\4", " is a table of Parquet; write its table as CSV in UTF-8"),
    TEXT("version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
         " is a pointer of git LFS, not the file that it stands for; in its repository: git lfs pull"),
};

static void other_encodings_and_packings_are_named_with_what_to_do(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        write_bytes("my table.csv", foreign[i].bytes, foreign[i].n);
        assert_refused(path_of("my table.csv"), ATT_ERR_FORMAT, foreign[i].says);
    }
    write_bytes("u16 it's.txt", "\xFF\xFEh\0", 4);
    assert_refused(path_of("u16 it's.txt"), ATT_ERR_FORMAT, "/u16 it'\\''s.txt' > NEW");
    pack(path_of("u16.gz"), "wb", "\xFF\xFEh\0", 4);
    assert_refused(path_of("u16.gz"), ATT_ERR_FORMAT, "u16.gz is UTF-16, not UTF-8; convert it: iconv -f UTF-16");
}

/* Texts may have zero bytes and control characters. */
static void texts_that_are_odd_are_texts(void **state)
{
    (void)state;
    static const foreign_case odd[] = {TEXT("a\0b,c\nd,e\n", ""),
                                       TEXT("a.jpg\0b.jpg\0", ""),
                                       TEXT("\0\0", ""),
                                       TEXT("x", ""),
                                       TEXT("\0", ""),
                                       TEXT("\x1f", ""),
                                       TEXT("\x01\x02\x03\x04", ""),
                                       TEXT("BZ", ""),
                                       TEXT("BZhang wrote this.\n", ""),
                                       TEXT("LZIP packs files.\n", ""),
                                       TEXT("PAR1,PAR2\n", ""),
                                       TEXT("ARROW1 flies\n", ""),
                                       TEXT("version 2\n", "")};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        write_bytes("odd.txt", odd[i].bytes, odd[i].n);
        assert_text(path_of("odd.txt"), odd[i].bytes, odd[i].n);
    }
}

/* A text from a pipe begins in the same way. */
static void a_pipe_begins_as_a_file_does(void **state)
{
    (void)state;
    att_text_start start = {.size = sizeof start};
    assert_int_equal(att_text_begin("standard input",
                                    "\xEF\xBB\xBF"
                                    "a\n",
                                    5, &start),
                     ATT_OK);
    assert_int_equal(start.mark, 3);
    assert_false(start.returns);
    assert_int_equal(att_text_begin("standard input", "a\rb", 3, &start), ATT_OK);
    assert_int_equal(start.mark, 0);
    assert_true(start.returns);
    assert_int_equal(att_text_begin("standard input", "", 0, &start), ATT_OK);
    assert_int_equal(att_text_begin("standard input", "\x1f\x8b\x08", 3, &start), ATT_ERR_FORMAT);
    assert_string_equal(att_error(NULL), "standard input is packed by gzip; unpack it: gzip -dk");
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
        cmocka_unit_test(byte_order_marks_are_no_part_of_the_text),
        cmocka_unit_test(lines_that_end_with_carriage_returns_are_lines),
        cmocka_unit_test(other_encodings_and_packings_are_named_with_what_to_do),
        cmocka_unit_test(texts_that_are_odd_are_texts),
        cmocka_unit_test(a_pipe_begins_as_a_file_does),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
