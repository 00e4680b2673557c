/* Files that take the place of others: whole, the right ones, and without leftovers. */
#include "io/atomic_write.h"
#include "attend_model.h"
#include "fixtures/check.h"
#include "fixtures/write_files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>

/* ---- a disk that fails: the calls of the whole program, from the n-th on */

static int flushes_until_failure = -1;

int fsync(int fd)
{
    if (flushes_until_failure == 0) {
        errno = EIO;
        return -1;
    }
    flushes_until_failure -= flushes_until_failure > 0;
    return (int)syscall(SYS_fsync, fd);
}

/* ---- a writer that ends, and another that begins, before the next lock */

static const test_folder *writers;

int flock(int fd, int operation)
{
    if (writers) {
        assert_int_equal(rename(path_in(writers, "x" ATT_UNFINISHED "0"), path_in(writers, "x")), 0);
        folder_write(writers, "x" ATT_UNFINISHED "0", "second");
        writers = NULL;
    }
    return (int)syscall(SYS_flock, fd, operation);
}

static test_folder with_old_file(void)
{
    const test_folder f = folder_new();
    folder_write(&f, "x", "old");
    return f;
}

static void after_each_failing_flush_the_sentence_says_which_file_is_there(void **state)
{
    (void)state;
    att_ctx *ctx = check_open("scalar", 1);
    const test_folder f = with_old_file();
    flushes_until_failure = 0; /* of the file */
    assert_int_equal(att_write_file(ctx, path_in(&f, "x"), "new", 3), ATT_ERR_IO);
    check_message(ctx, "/x cannot be written: Input/output error");
    file_has(&f, "x", "old", 3);
    flushes_until_failure = 1; /* of the folder */
    assert_int_equal(att_write_file(ctx, path_in(&f, "x"), "new", 3), ATT_ERR_IO);
    check_message(ctx, "/x is the new file, but may not be so after a power failure: Input/output error");
    file_has(&f, "x", "new", 3);
    flushes_until_failure = -1;
    assert_int_equal(files_in(&f), 1);
    folder_remove(&f);
    att_close(ctx);
}

/* ---- permissions, links */

static void a_new_file_has_the_permissions_of_the_old_one(void **state)
{
    (void)state;
    att_ctx *ctx = check_open("scalar", 1);
    const test_folder f = with_old_file();
    struct stat is;
    const mode_t mask = umask(027);
    assert_int_equal(att_write_file(ctx, path_in(&f, "new"), "new", 3), ATT_OK);
    assert_int_equal(chmod(path_in(&f, "x"), 0604), 0);
    assert_int_equal(att_write_file(ctx, path_in(&f, "x"), "", 0), ATT_OK);
    assert_int_equal(stat(path_in(&f, "new"), &is), 0);
    assert_int_equal(is.st_mode & 0777, 0640);
    assert_int_equal(stat(path_in(&f, "x"), &is), 0);
    assert_int_equal(is.st_mode & 0777, 0604);
    umask(mask);
    folder_remove(&f);
    att_close(ctx);
}

static bool is_link(const test_folder *f, const char *name)
{
    struct stat is;
    assert_int_equal(lstat(path_in(f, name), &is), 0);
    return S_ISLNK(is.st_mode);
}

static att_status write_none(att_ctx *ctx, const char *path)
{
    return att_safetensors_write(ctx, path, 0, NULL, NULL, NULL);
}

/* Where the user names the file, a link is a name like any other; in a folder others may have made it. */
static void a_link_that_is_named_is_followed_and_one_in_a_folder_is_replaced(void **state)
{
    (void)state;
    static const char empty[] = "\x08\0\0\0\0\0\0\0{}      ";
    att_ctx *ctx = check_open("scalar", 1);
    const test_folder f = with_old_file();
    assert_int_equal(mkdir(path_in(&f, "far"), 0777), 0);
    folder_write(&f, "far/x", "old");
    assert_int_equal(symlink("far/x", path_in(&f, "link")), 0);
    assert_int_equal(symlink("link", path_in(&f, "again")), 0);
    assert_int_equal(symlink("none", path_in(&f, "dangling")), 0);
    assert_int_equal(symlink("loop", path_in(&f, "loop")), 0);
    assert_int_equal(write_none(ctx, path_in(&f, "again")), ATT_OK);
    file_has(&f, "far/x", empty, sizeof empty - 1);
    assert_true(is_link(&f, "link") && is_link(&f, "again"));
    assert_int_equal(write_none(ctx, path_in(&f, "dangling")), ATT_ERR_IO);
    check_message(ctx, "/dangling cannot be written: No such file");
    assert_int_equal(write_none(ctx, path_in(&f, "loop")), ATT_ERR_IO);
    check_message(ctx, "/loop cannot be written: Too many levels of symbolic links");
    assert_int_equal(access(path_in(&f, "none"), F_OK), -1);
    static const char *const links[] = {"again", "link", "dangling", "loop"};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(att_write_file(ctx, path_in(&f, links[i]), "new", 3), ATT_OK);
        assert_false(is_link(&f, links[i]));
        file_has(&f, links[i], "new", 3);
    }
    file_has(&f, "far/x", empty, sizeof empty - 1);
    assert_int_equal(files_in(&f), 6);
    folder_remove(&f);
    att_close(ctx);
}

/* Root may read everything. */
static void write_as_other_user(const test_folder *f)
{
    /* The system call: the function of the C library waits for threads, and ThreadSanitizer has one of its own. */
    if (geteuid() == 0 && syscall(SYS_setresuid, 65534, 65534, 65534))
        _exit(2);
    att_ctx *ctx = check_open("scalar", 1);
    const bool unreadable = open(f->path, O_RDONLY | O_DIRECTORY) < 0;
    const att_status s = att_write_file(ctx, path_in(f, "x"), "new", 3);
    if (s)
        fprintf(stderr, "%s\n", att_error(ctx));
    att_close(ctx);
    _exit(s || !unreadable);
}

static void a_folder_that_cannot_be_read_is_written(void **state)
{
    (void)state;
    const test_folder f = folder_new();
    assert_int_equal(chmod(f.path, 0333), 0);
    int status;
    const pid_t child = fork();
    if (child == 0)
        write_as_other_user(&f);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(chmod(f.path, 0777), 0);
    assert_int_equal(status, 0);
    file_has(&f, "x", "new", 3);
    assert_int_equal(files_in(&f), 1);
    folder_remove(&f);
}

/* ---- leftovers */

static void what_was_begun_may_fail_and_leaves_nothing(void **state)
{
    (void)state;
    att_ctx *ctx = check_open("scalar", 1);
    const test_folder f = with_old_file();
    att_replace a, b;
    att_replace_open(&a, ctx, path_in(&f, "x"), true); /* two at once do not write into one file */
    att_replace_open(&b, ctx, path_in(&f, "x"), false);
    att_replace_write(&a, "first", 5);
    att_replace_write(&b, "second", 6);
    assert_int_equal(files_in(&f), 3);
    att_replace_fail(&b, ATT_ERR_FORMAT, "it is not wanted");
    assert_int_equal(att_replace_commit(&b), ATT_ERR_FORMAT);
    check_message(ctx, "/x cannot be written: it is not wanted");
    file_has(&f, "x", "old", 3);
    assert_int_equal(att_replace_commit(&a), ATT_OK);
    file_has(&f, "x", "first", 5);
    assert_int_equal(files_in(&f), 1);
    folder_remove(&f);
    att_close(ctx);
}

static void the_file_of_a_writer_that_began_meanwhile_is_not_removed(void **state)
{
    (void)state;
    const test_folder f = with_old_file();
    folder_write(&f, "x" ATT_UNFINISHED "0", "first");
    writers = &f;
    att_remove_unfinished(path_in(&f, "x" ATT_UNFINISHED "0"));
    file_has(&f, "x", "first", 5);
    file_has(&f, "x" ATT_UNFINISHED "0", "second", 6);
    folder_remove(&f);
}

/* Begins to write x, and says so: until it holds its lock another process may remove its file. */
static void begin_and_wait(const test_folder *f, int begun)
{
    att_replace r;
    att_replace_open(&r, check_open("scalar", 1), path_in(f, "x"), false);
    att_replace_write(&r, "half", 4);
    if (r.status || write(begun, "", 1) != 1)
        _exit(1);
    pause();
}

static pid_t begin_in_child(const test_folder *f)
{
    int begun[2];
    char byte;
    assert_int_equal(pipe(begun), 0);
    const pid_t child = fork();
    if (child == 0)
        begin_and_wait(f, begun[1]);
    close(begun[1]);
    assert_int_equal(read(begun[0], &byte, 1), 1);
    close(begun[0]);
    return child;
}

/* Three processes begin: one lives on, two are killed. */
static void what_killed_processes_left_is_removed_but_not_what_is_being_written(void **state)
{
    (void)state;
    enum { N = 3 };
    pid_t child[N];
    att_ctx *ctx = check_open("scalar", 1);
    test_folder f = with_old_file();
    folder_write(&f, "x.unfinished", "someone else's");
    folder_write(&f, "y" ATT_UNFINISHED "0", "of another file");
    assert_int_equal(mkfifo(path_in(&f, "x" ATT_UNFINISHED "5"), 0666), 0);
    assert_int_equal(symlink("y", path_in(&f, "x" ATT_UNFINISHED "6")), 0);
    for (int i = 0; i < N; i++)
        child[i] = begin_in_child(&f);
    assert_int_equal(files_in(&f), 5 + N);
    for (int i = 0; i < N; i += 2) {
        kill(child[i], SIGKILL);
        waitpid(child[i], NULL, 0);
    }
    assert_int_equal(att_write_file(ctx, path_in(&f, "x"), "new", 3), ATT_OK);
    file_has(&f, "x", "new", 3);
    assert_int_equal(files_in(&f), 6); /* the file of the live process is there, and files of other origin */
    assert_int_equal(access(path_in(&f, "x" ATT_UNFINISHED "1"), F_OK), 0);
    kill(child[1], SIGKILL);
    waitpid(child[1], NULL, 0);
    assert_int_equal(att_write_file(ctx, path_in(&f, "x"), "newer", 5), ATT_OK);
    assert_int_equal(files_in(&f), 5);
    folder_remove(&f);
    att_close(ctx);
}

static void names_may_have_as_many_bytes_as_the_file_system_allows(void **state)
{
    (void)state;
    att_ctx *ctx = check_open("scalar", 1);
    const test_folder f = folder_new();
    char name[257] = "";
    memset(name, 'n', 256);
    assert_int_equal(att_write_file(ctx, path_in(&f, name), "new", 3), ATT_ERR_IO);
    check_message(ctx, "cannot be written: File name too long");
    name[255] = 0;
    assert_int_equal(att_write_file(ctx, path_in(&f, name), "new", 3), ATT_OK);
    file_has(&f, name, "new", 3);
    assert_int_equal(files_in(&f), 1);
    folder_remove(&f);
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_each_failing_flush_the_sentence_says_which_file_is_there),
        cmocka_unit_test(a_new_file_has_the_permissions_of_the_old_one),
        cmocka_unit_test(a_link_that_is_named_is_followed_and_one_in_a_folder_is_replaced),
        cmocka_unit_test(a_folder_that_cannot_be_read_is_written),
        cmocka_unit_test(what_was_begun_may_fail_and_leaves_nothing),
        cmocka_unit_test(the_file_of_a_writer_that_began_meanwhile_is_not_removed),
        cmocka_unit_test(what_killed_processes_left_is_removed_but_not_what_is_being_written),
        cmocka_unit_test(names_may_have_as_many_bytes_as_the_file_system_allows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
