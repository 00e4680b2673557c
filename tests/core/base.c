/* The floor: opening, options, error sentences, memory, arenas, the operating system. */
#include "base/base.h"
#include "fixtures/check.h"
#include "fixtures/fail_alloc.h"
#include "fixtures/folder.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- opening */

static void opening_with_defaults_gives_threads_and_an_instruction_set(void **state)
{
    (void)state;
    att_ctx *ctx;
    assert_int_equal(att_open(&ctx, NULL), ATT_OK);
    assert_int_equal(att_threads(ctx), att_os_cpu_count());
    assert_true(strlen(att_isa(ctx)) > 0);
    assert_string_equal(att_version(), ATT_VERSION);
    int number[3];
    assert_int_equal(sscanf(ATT_VERSION, "%d.%d.%d", &number[0], &number[1], &number[2]), 3);
    assert_int_equal(ATT_VERSION_NUMBER, 10000 * number[0] + 100 * number[1] + number[2]);
    att_close(ctx);
    att_close(NULL);
}

static void refused(att_status expected, const char *words, const att_config *cfg)
{
    att_ctx *ctx = (att_ctx *)&ctx;
    assert_int_equal(att_open(&ctx, cfg), expected);
    assert_null(ctx);
    check_message(NULL, words);
}

static void a_wrong_configuration_is_refused_with_a_sentence(void **state)
{
    (void)state;
    fail_alloc f = {0};
    refused(ATT_ERR_ARGUMENT, "n_threads is -1", ATT_OPTIONS(att_config, .n_threads = -1));
    refused(ATT_ERR_ARGUMENT, "n_threads is 100000", ATT_OPTIONS(att_config, .n_threads = 100000));
    refused(ATT_ERR_UNSUPPORTED, "\"sse9\"", ATT_OPTIONS(att_config, .isa = "sse9"));
    refused(ATT_ERR_UNSUPPORTED, "scalar", ATT_OPTIONS(att_config, .isa = "sse9"));
    refused(ATT_ERR_ARGUMENT, "allocator.free",
            ATT_OPTIONS(att_config, .allocator = {.alloc = fail_allocator(&f).alloc}));
    refused(ATT_ERR_ARGUMENT, "allocator.alloc",
            ATT_OPTIONS(att_config, .allocator = {.free = fail_allocator(&f).free}));
    refused(ATT_ERR_ARGUMENT, "size is 0", &(att_config){.n_threads = 1});
    assert_int_equal(att_open(NULL, NULL), ATT_ERR_ARGUMENT);
}

static void the_environment_chooses_the_instruction_set_unless_the_program_does(void **state)
{
    (void)state;
    char before[64] = "";
    if (getenv("ATTEND_ISA"))
        snprintf(before, sizeof before, "%s", getenv("ATTEND_ISA"));
    att_ctx *ctx;
    setenv("ATTEND_ISA", "scalar", 1);
    assert_int_equal(att_open(&ctx, NULL), ATT_OK);
    assert_string_equal(att_isa(ctx), "scalar");
    att_close(ctx);
    setenv("ATTEND_ISA", "altivec", 1);
    refused(ATT_ERR_UNSUPPORTED, "$ATTEND_ISA: \"altivec\"", NULL);
    assert_int_equal(att_open(&ctx, ATT_OPTIONS(att_config, .isa = "scalar")), ATT_OK);
    att_close(ctx);
    setenv("ATTEND_ISA", before, 1); /* empty is as unset */
    assert_int_equal(att_open(&ctx, NULL), ATT_OK);
    att_close(ctx);
}

static void opening_survives_the_failure_of_any_allocation(void **state)
{
    (void)state;
    long n = 1;
    for (att_status s = ATT_ERR_MEMORY; s != ATT_OK; n++) {
        fail_alloc f = {.fail_at = n};
        att_ctx *ctx;
        s = att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = 3, .allocator = fail_allocator(&f)));
        if (s) {
            assert_int_equal(s, ATT_ERR_MEMORY);
            check_message(NULL, "out of memory");
            assert_null(ctx);
        }
        att_close(ctx);
        assert_int_equal(f.live, 0);
    }
    assert_true(n > 2); /* the context and the pool come from the allocator */
}

static void the_cancel_flag_is_seen(void **state)
{
    (void)state;
    volatile int flag = 0;
    att_ctx *ctx;
    assert_int_equal(att_open(&ctx, ATT_OPTIONS(att_config, .n_threads = 1, .cancel = &flag)), ATT_OK);
    assert_false(att_cancelled(ctx));
    flag = 1;
    assert_true(att_cancelled(ctx));
    att_close(ctx);
}

/* ---- options */

typedef struct small {
    size_t size;
    int a;
} small;

typedef struct large {
    size_t size;
    int a, b, c, d;
} large;

static void options_of_an_older_header_leave_the_rest_zero(void **state)
{
    (void)state;
    large got;
    memset(&got, 0xff, sizeof got);
    assert_int_equal(att_options_read(&got, sizeof got, &(small){sizeof(small), 7}, "large"), ATT_OK);
    assert_true(got.size == sizeof got && got.a == 7 && got.c == 0 && got.d == 0);
    assert_int_equal(att_options_read(&got, sizeof got, NULL, "large"), ATT_OK);
    assert_true(got.size == sizeof got && got.a == 0);
}

static void options_of_a_newer_header_pass_while_they_set_nothing_unknown(void **state)
{
    (void)state;
    small got = {0};
    large given = {sizeof given, 7, 0, 0, 0};
    assert_int_equal(att_options_read(&got, sizeof got, &given, "small"), ATT_OK);
    assert_true(got.size == sizeof got && got.a == 7);
    given.d = 1;
    assert_int_equal(att_options_read(&got, sizeof got, &given, "small"), ATT_ERR_UNSUPPORTED);
    check_message(NULL, "small");
}

static void options_without_their_size_are_refused(void **state)
{
    (void)state;
    small got = {3, 3};
    static const size_t wrong[] = {0, 1, sizeof(size_t) - 1, (size_t)1 << 20, SIZE_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(att_options_read(&got, sizeof got, &(small){wrong[i], 1}, "small"), ATT_ERR_ARGUMENT);
        check_message(NULL, "sizeof(small)");
    }
    assert_int_equal(got.a, 3);
}

static void what_is_filled_may_be_of_an_older_or_newer_header(void **state)
{
    (void)state;
    const large known = {0, 7, 8, 9, 10};
    struct {
        small info;
        int behind;
    } older = {{sizeof older.info, 1}, 42};
    assert_int_equal(att_info_write(&older.info, &known, sizeof known, "large"), ATT_OK);
    assert_true(older.info.size == sizeof older.info && older.info.a == 7 && older.behind == 42);
    large newer = {sizeof newer, 1, 1, 1, 1};
    assert_int_equal(att_info_write(&newer, &(small){0, 7}, sizeof(small), "small"), ATT_OK);
    assert_true(newer.size == sizeof newer && newer.a == 7 && newer.d == 0);
    small without = {0, 3};
    assert_int_equal(att_info_write(&without, &known, sizeof known, "large"), ATT_ERR_ARGUMENT);
    check_message(NULL, "large: its field size is 0");
    assert_int_equal(without.a, 3);
}

/* ---- errors */

static void each_status_has_a_name_and_a_text(void **state)
{
    (void)state;
    assert_string_equal(att_status_name(ATT_OK), "OK");
    assert_string_equal(att_status_name(ATT_ERR_SHAPE), "ERR_SHAPE");
    assert_string_equal(att_status_text(ATT_ERR_SHAPE), "dimensions do not fit together");
    assert_non_null(att_status_name((att_status)99));
    assert_non_null(att_status_text((att_status)-1));
}

static void *fail_elsewhere(void *arg)
{
    const bool empty_at_first = !*att_error(NULL);
    att_fail(NULL, ATT_ERR_IO, "elsewhere");
    *(bool *)arg = empty_at_first && !strcmp(att_error(NULL), "elsewhere");
    return NULL;
}

static void the_error_sentence_belongs_to_the_thread(void **state)
{
    (void)state;
    assert_int_equal(att_fail(NULL, ATT_ERR_SHAPE, "here %d", 1), ATT_ERR_SHAPE);
    pthread_t thread;
    bool right = false;
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, &right), 0);
    pthread_join(thread, NULL);
    assert_true(right);
    assert_string_equal(att_error(NULL), "here 1");
    att_fail(NULL, ATT_ERR_SHAPE, "%s, then more", att_error(NULL));
    assert_string_equal(att_error(NULL), "here 1, then more");
}

static void an_error_of_the_system_has_its_number(void **state)
{
    (void)state;
    errno = EACCES;
    att_fail(NULL, ATT_ERR_IO, "file: %s", strerror(errno));
    assert_int_equal(att_error_number(), EACCES);
    errno = ENOENT;
    att_fail(NULL, ATT_ERR_IO, "first, %s", att_error(NULL)); /* the same, repeated after other calls */
    assert_int_equal(att_error_number(), EACCES);
    att_fail(NULL, ATT_ERR_SYSTEM, "no threads: %s", strerror(errno));
    assert_int_equal(att_error_number(), ENOENT);
    att_fail(NULL, ATT_ERR_IO, "file is not a file"); /* whatever is in errno */
    assert_int_equal(att_error_number(), 0);
    att_fail(NULL, ATT_ERR_IO, "file: %s", strerror(errno));
    att_fail(NULL, ATT_ERR_FORMAT, "file: %s", strerror(errno));
    assert_int_equal(att_error_number(), 0);
    errno = 0;
    att_fail(NULL, ATT_ERR_IO, "file: %s", strerror(0));
    assert_int_equal(att_error_number(), 0);
}

static void a_sentence_without_arguments_is_set_as_it_is(void **state)
{
    (void)state;
    assert_int_equal(att_fail_text(NULL, ATT_ERR_FORMAT, "100%s of it"), ATT_ERR_FORMAT);
    assert_string_equal(att_error(NULL), "100%s of it");
    assert_int_equal(att_fail_text(NULL, ATT_ERR_FORMAT, NULL), ATT_ERR_ARGUMENT);
    check_message(NULL, "att_fail_text: text is NULL");
}

static void a_terminal_finds_nothing_to_obey_in_a_sentence(void **state)
{
    (void)state;
    att_fail(NULL, ATT_ERR_FORMAT, "tensor \"%s\"",
             "\x1b]0;title\x07\xc2\x9b"
             "2J\r\n\x7f\xc2\xa0\xc3\x9b");
    assert_string_equal(att_error(NULL), "tensor \"?]0;title???2J???\xc2\xa0\xc3\x9b\"");
    /* The direction of text, ends of lines and paragraphs; what is beside them stays. */
    att_fail(NULL, ATT_ERR_FORMAT, "a%s",
             "\xe2\x80\xae|\xe2\x80\xa8|\xd8\x9c|\xe2\x81\xa6|\xe2\x80\x8f|\xe2\x80\xa7\xe2\x80\x8d\xd8\x9b");
    assert_string_equal(att_error(NULL), "a???|???|??|???|???|\xe2\x80\xa7\xe2\x80\x8d\xd8\x9b");
}

static void a_long_sentence_is_cut_between_characters(void **state)
{
    (void)state;
    static const char *const characters[] = {"x", "\xc3\xa9", "\xe6\x97\xa5", "\xf0\x9f\x8c\x9e"}; /* 1 to 4 bytes */
    for (size_t c = 0; c < 4; c++)
        for (size_t shift = 0; shift < 4; shift++) {
            const size_t width = strlen(characters[c]);
            char text[4096] = "", *end = text;
            for (size_t i = 0; i < shift; i++)
                *end++ = '.';
            for (size_t i = 0; i < 1000; i++, end += width)
                memcpy(end, characters[c], width);
            *end = '\0';
            att_fail(NULL, ATT_ERR_IO, "%s", text);
            const size_t kept = strlen(att_error(NULL));
            assert_memory_equal(att_error(NULL), text, kept);
            assert_int_equal((kept - shift) % width, 0);
            assert_true(kept > 900);
        }
}

/* ---- memory */

static void memory_is_aligned_and_too_much_of_it_is_an_error(void **state)
{
    (void)state;
    fail_alloc f = {0};
    att_ctx *ctx = fail_open(&f);
    static const size_t counts[] = {0, 1, 63, 1000};
    for (size_t i = 0; i < 4; i++) {
        char *p = att_calloc(ctx, counts[i], 3);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 64, 0);
        for (size_t k = 0; k < counts[i] * 3; k++)
            assert_int_equal(p[k], 0);
        att_free(ctx, p);
    }
    att_free(ctx, NULL);
    const long calls = f.calls;
    assert_null(att_alloc(ctx, SIZE_MAX / 2, 3));
    assert_null(att_alloc(ctx, SIZE_MAX, 1));
    assert_null(att_calloc(ctx, SIZE_MAX / 4 + 2, 4));
    assert_int_equal(f.calls, calls); /* not even asked for */
    assert_true(att_size_mul(SIZE_MAX, 0) == 0 && att_size_mul(SIZE_MAX / 2, 3) == SIZE_MAX);
    att_close(ctx);
    assert_int_equal(f.live, 0);
}

static void large_memory_of_the_system_is_aligned_and_usable(void **state)
{
    (void)state;
    for (size_t bytes = 1; bytes < (size_t)40 << 20; bytes = bytes * 5 + 1) {
        char *p = att_os_alloc(bytes, 64);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 64, 0);
        memset(p, 1, bytes);
        att_os_free(p);
    }
}

/* A repeated use of the arena: 40 pieces of different sizes, in scopes. */
static void use_arena(att_arena *a)
{
    const size_t outer = att_arena_mark(a);
    for (size_t i = 0; i < 40; i++) {
        const size_t inner = att_arena_mark(a);
        const size_t bytes = (i * 7919) % 60000 + 1;
        unsigned char *p = att_arena_alloc(a, bytes), *q = att_arena_alloc(a, 3 * bytes);
        assert_non_null(p);
        assert_non_null(q);
        memset(p, (int)i, bytes);
        memset(q, (int)i + 1, 3 * bytes);
        assert_true(p[0] == i && p[bytes - 1] == i);
        if (i % 3)
            att_arena_release(a, inner);
    }
    att_arena_release(a, outer);
}

static void an_arena_reuses_its_blocks_and_in_the_end_allocates_nothing(void **state)
{
    (void)state;
    fail_alloc f = {0};
    att_ctx *ctx = fail_open(&f);
    att_arena a;
    att_arena_init(&a, ctx);
    unsigned char *first = att_arena_alloc(&a, 100);
    memset(first, 42, 100);
    use_arena(&a);
    const long calls = f.calls;
    for (int i = 0; i < 5; i++)
        use_arena(&a);
    assert_int_equal(f.calls, calls);
    assert_true(calls < 10); /* blocks double */
    for (int i = 0; i < 100; i++)
        assert_int_equal(first[i], 42); /* blocks do not move */
    att_arena_release(&a, 0);
    assert_ptr_equal(att_arena_alloc(&a, 1), first);
    assert_null(att_arena_alloc(&a, SIZE_MAX));
    att_arena_free(&a);
    att_arena_free(&a);
    att_close(ctx);
    assert_int_equal(f.live, 0);
}

static void an_arena_that_is_reset_has_one_block_of_what_was_used(void **state)
{
    (void)state;
    fail_alloc f = {0};
    att_ctx *ctx = fail_open(&f);
    att_arena a;
    att_arena_init(&a, ctx);
    const long before = f.live;
    use_arena(&a);
    assert_true(f.live - before > 1);
    att_arena_reset(&a);
    use_arena(&a);
    assert_int_equal(f.live - before, 1);
    const long calls = f.calls;
    att_arena_reset(&a);
    use_arena(&a);
    assert_int_equal(f.calls, calls);
    att_arena_free(&a);
    att_close(ctx);
    assert_int_equal(f.live, 0);
}

static void an_arena_that_is_trimmed_has_what_is_used(void **state)
{
    (void)state;
    fail_alloc f = {0};
    att_ctx *ctx = fail_open(&f);
    att_arena a;
    att_arena_init(&a, ctx);
    att_arena_trim(&a);
    assert_int_equal(att_arena_bytes(&a), 0);
    unsigned char *first = att_arena_alloc(&a, 100);
    memset(first, 42, 100);
    const size_t mark = att_arena_mark(&a), small = att_arena_bytes(&a);
    const long before = f.bytes - (long)small;
    use_arena(&a);
    assert_true(att_arena_bytes(&a) > small);
    assert_int_equal(f.bytes, before + (long)att_arena_bytes(&a)); /* all that the allocator has given */
    att_arena_trim(&a);
    assert_int_equal(att_arena_bytes(&a), small);
    assert_int_equal(f.bytes, before + (long)small);
    use_arena(&a);
    for (int i = 0; i < 100; i++)
        assert_int_equal(first[i], 42);
    att_arena_release(&a, mark);
    att_arena_release(&a, 0);
    att_arena_trim(&a);
    assert_int_equal(att_arena_bytes(&a), 0);
    assert_int_equal(f.bytes, before);
    use_arena(&a);
    att_arena_free(&a);
    att_close(ctx);
    assert_int_equal(f.live, 0);
}

static void an_arena_that_gets_no_block_stays_as_it_was(void **state)
{
    (void)state;
    fail_alloc f = {0};
    att_ctx *ctx = fail_open(&f);
    att_arena a;
    att_arena_init(&a, ctx);
    f.fail_at = f.calls + 1;
    assert_null(att_arena_alloc(&a, 10));
    assert_int_equal(att_arena_mark(&a), 0);
    assert_non_null(att_arena_alloc(&a, 10));
    const size_t mark = att_arena_mark(&a);
    f.fail_at = f.calls + 1;
    assert_null(att_arena_alloc(&a, 1 << 20));
    assert_int_equal(att_arena_mark(&a), mark);
    assert_non_null(att_arena_alloc(&a, 1 << 20));
    att_arena_release(&a, mark);
    att_arena_free(&a);
    att_close(ctx);
    assert_int_equal(f.live, 0);
}

/* ---- the operating system */

typedef struct file {
    const char *path, *text;
} file;

/* Reads the machine as the library does if /proc and /sys have these files. */
static void read_files(const file *files, int64_t *cpus, size_t *bytes)
{
    const test_folder root = folder_new();
    for (const file *f = files; f->path; f++)
        folder_write(&root, f->path, f->text);
    *cpus = att_os_cpu_quota(root.path);
    *bytes = att_os_memory(root.path);
    folder_remove(&root);
}

static int64_t quota_with(const file *files)
{
    int64_t cpus;
    size_t bytes;
    read_files(files, &cpus, &bytes);
    return cpus;
}

static size_t memory_with(const file *files)
{
    int64_t cpus;
    size_t bytes;
    read_files(files, &cpus, &bytes);
    return bytes;
}

#define QUOTA(...) quota_with((const file[]){__VA_ARGS__, {NULL, NULL}})
#define MEMORY(...) memory_with((const file[]){__VA_ARGS__, {NULL, NULL}})
#define V2 "/sys/fs/cgroup"
#define V1 "/sys/fs/cgroup/cpu,cpuacct"

static void a_cgroup_quota_is_found_in_the_group_or_above_it(void **state)
{
    (void)state;
    const file two = {"/proc/self/cgroup", "0::/a/b\n"};
    const file one = {"/proc/self/cgroup", "5:memory:/m\n4:cpu,cpuacct:/docker/c\n1:name=systemd:/x\n"};
    assert_int_equal(QUOTA(two), 0);
    assert_int_equal(QUOTA(two, {V2 "/a/b/cpu.max", "200000 100000\n"}), 2);
    assert_int_equal(QUOTA(two, {V2 "/a/b/cpu.max", "250000 100000\n"}), 3); /* rounded up */
    assert_int_equal(QUOTA(two, {V2 "/a/b/cpu.max", "max 100000\n"}), 0);
    assert_int_equal(QUOTA(two, {V2 "/a/b/cpu.max", "max 100000\n"}, {V2 "/a/cpu.max", "400000 100000\n"}), 4);
    assert_int_equal(QUOTA(two, {V2 "/a/b/cpu.max", "500000 100000\n"}, {V2 "/cpu.max", "100000 100000\n"}), 1);
    assert_int_equal(QUOTA(two, {V2 "/a/b/cpu.max", "nonsense\n"}), 0);
    assert_int_equal(QUOTA({"/proc/self/cgroup", "0::/\n"}, {V2 "/cpu.max", "300000 100000\n"}), 3);
    assert_int_equal(
        QUOTA(one, {V1 "/docker/c/cpu.cfs_quota_us", "150000\n"}, {V1 "/docker/c/cpu.cfs_period_us", "50000\n"}), 3);
    /* in a container the group named is the host's, and the mount is the container's own */
    assert_int_equal(QUOTA(one, {V1 "/cpu.cfs_quota_us", "150000\n"}, {V1 "/cpu.cfs_period_us", "100000\n"}), 2);
    assert_int_equal(QUOTA(one, {V1 "/cpu.cfs_quota_us", "-1\n"}, {V1 "/cpu.cfs_period_us", "100000\n"}), 0);
    assert_int_equal(QUOTA({"/other", ""}), 0);
    assert_true(att_os_cpu_count() >= 1);
}

static void free_memory_is_that_of_the_system_or_of_a_smaller_cgroup(void **state)
{
    (void)state;
    const file group = {"/proc/self/cgroup", "0::/a\n"},
               system = {"/proc/meminfo", "MemTotal: 9 kB\nMemAvailable: 4 kB\n"};
    assert_int_equal(MEMORY(group), 0);
    assert_int_equal(MEMORY(system), 4096);
    assert_int_equal(MEMORY(group, system, {V2 "/a/memory.max", "3000\n"}, {V2 "/a/memory.current", "1000\n"}), 2000);
    assert_int_equal(MEMORY(group, system, {V2 "/a/memory.max", "max\n"}, {V2 "/a/memory.current", "1000\n"}), 4096);
    assert_int_equal(MEMORY(group, system, {V2 "/memory.max", "500\n"}, {V2 "/memory.current", "501\n"}), 1);
    assert_int_equal(MEMORY({"/proc/self/cgroup", "3:memory:/m\n"}, system,
                            {"/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "900\n"},
                            {"/sys/fs/cgroup/memory/m/memory.usage_in_bytes", "100\n"}),
                     800);
    assert_true(att_os_memory("") > 0);
}

#define CACHE "/sys/devices/system/cpu/cpu0/cache/index"

static void the_size_of_a_data_cache_is_that_of_its_level_in_sys(void **state)
{
    (void)state;
    static const file files[] = {
        {CACHE "0/level", "1\n"}, {CACHE "0/type", "Instruction\n"}, {CACHE "0/size", "64K\n"},
        {CACHE "1/level", "1\n"}, {CACHE "1/type", "Data\n"},        {CACHE "1/size", "48K\n"},
        {CACHE "2/level", "2\n"}, {CACHE "2/type", "Unified\n"},     {CACHE "2/size", "2048K\n"},
        {CACHE "3/level", "3\n"}, {CACHE "3/type", "Unified\n"}, /* and no size */
    };
    const test_folder root = folder_new();
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        folder_write(&root, files[i].path, files[i].text);
    assert_int_equal(att_os_listed_cache(root.path, 1), 48 << 10);
    assert_int_equal(att_os_listed_cache(root.path, 2), 2 << 20);
    assert_int_equal(att_os_listed_cache(root.path, 3), 0);
    folder_remove(&root);
    assert_int_equal(att_os_listed_cache(root.path, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_with_defaults_gives_threads_and_an_instruction_set),
        cmocka_unit_test(a_wrong_configuration_is_refused_with_a_sentence),
        cmocka_unit_test(the_environment_chooses_the_instruction_set_unless_the_program_does),
        cmocka_unit_test(opening_survives_the_failure_of_any_allocation),
        cmocka_unit_test(the_cancel_flag_is_seen),
        cmocka_unit_test(options_of_an_older_header_leave_the_rest_zero),
        cmocka_unit_test(options_of_a_newer_header_pass_while_they_set_nothing_unknown),
        cmocka_unit_test(options_without_their_size_are_refused),
        cmocka_unit_test(what_is_filled_may_be_of_an_older_or_newer_header),
        cmocka_unit_test(each_status_has_a_name_and_a_text),
        cmocka_unit_test(the_error_sentence_belongs_to_the_thread),
        cmocka_unit_test(an_error_of_the_system_has_its_number),
        cmocka_unit_test(a_sentence_without_arguments_is_set_as_it_is),
        cmocka_unit_test(a_terminal_finds_nothing_to_obey_in_a_sentence),
        cmocka_unit_test(a_long_sentence_is_cut_between_characters),
        cmocka_unit_test(memory_is_aligned_and_too_much_of_it_is_an_error),
        cmocka_unit_test(large_memory_of_the_system_is_aligned_and_usable),
        cmocka_unit_test(an_arena_reuses_its_blocks_and_in_the_end_allocates_nothing),
        cmocka_unit_test(an_arena_that_is_reset_has_one_block_of_what_was_used),
        cmocka_unit_test(an_arena_that_is_trimmed_has_what_is_used),
        cmocka_unit_test(an_arena_that_gets_no_block_stays_as_it_was),
        cmocka_unit_test(a_cgroup_quota_is_found_in_the_group_or_above_it),
        cmocka_unit_test(free_memory_is_that_of_the_system_or_of_a_smaller_cgroup),
        cmocka_unit_test(the_size_of_a_data_cache_is_that_of_its_level_in_sys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
