/* A training's folder: what is saved is loaded again to the last bit, whole or not at all, by one process at a time. */
#include "train/training_folder.h"
#include "fixtures/check.h"
#include "fixtures/fail_alloc.h"
#include "io/atomic_write.h"
#include "fixtures/write_files.h"

#include <fcntl.h>

/* A small training: all that it must know to continue. */
enum { ROWS = 3, COLUMNS = 5, FACTS = 5, TENSORS = 3 };
typedef struct training {
    float weight[ROWS * COLUMNS], moment[ROWS * COLUMNS];
    int64_t steps, position, hidden;
    double best, rate;
    char order[16];
    att_tensor tensors[TENSORS];
    att_field fields[FACTS];
    att_run_state state;
} training;

static const char *const names[TENSORS] = {"weight", "weight/m", "steps"};

/* Numbers that follow from `value`. */
static void fill(training *t, int value)
{
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        t->weight[i] = (float)value + (float)i / 16;
        t->moment[i] = -(float)value * (float)i;
    }
    t->steps = value;
    t->position = INT64_MIN + value;
    t->best = value / 3.0;
    snprintf(t->order, sizeof t->order, "order %d", value);
}

static void init(training *t, int value)
{
    const att_field fields[FACTS] = {{"position", ATT_FIELD_INT, &t->position, 0, false, NULL, false},
                                     {"best", ATT_FIELD_DOUBLE, &t->best, 0, false, NULL, false},
                                     {"order", ATT_FIELD_TEXT, t->order, sizeof t->order, false, NULL, false},
                                     {"hidden", ATT_FIELD_INT, &t->hidden, 0, true, NULL, false},
                                     {"rate", ATT_FIELD_DOUBLE, &t->rate, 0, true, NULL, false}};
    memset(t, 0, sizeof *t);
    memcpy(t->fields, fields, sizeof fields);
    att_wrap(&t->tensors[0], t->weight, ATT_F32, ATT_DIMS(ROWS, COLUMNS), NULL);
    att_wrap(&t->tensors[1], t->moment, ATT_F32, ATT_DIMS(ROWS, COLUMNS), (const int64_t[]){1, ROWS});
    att_wrap(&t->tensors[2], &t->steps, ATT_I64, 0, NULL, NULL);
    t->state = (att_run_state){TENSORS, names, t->tensors, FACTS, t->fields};
    t->hidden = 256;
    t->rate = 0.1;
    fill(t, value);
}

static void are_same(const training *a, const training *b)
{
    assert_memory_equal(a->weight, b->weight, sizeof a->weight);
    assert_memory_equal(a->moment, b->moment, sizeof a->moment);
    assert_int_equal(a->steps, b->steps);
    assert_int_equal(a->position, b->position);
    assert_memory_equal(&a->best, &b->best, sizeof a->best);
    assert_string_equal(a->order, b->order);
}

static att_run *open_run(att_ctx *ctx, const char *folder, int64_t keep)
{
    att_run *run;
    if (att_run_open(ctx, folder, keep, &run))
        fail_msg("%s", att_error(ctx));
    return run;
}

static void save(att_ctx *ctx, att_run *run, int64_t step, training *t)
{
    if (att_run_save(run, step, false, &t->state))
        fail_msg("%s", att_error(ctx));
}

static void what_is_saved_is_loaded_to_the_last_bit(void **state)
{
    (void)state;
    static const double bests[] = {1.0 / 3, -0.0, -INFINITY, NAN, 5e-324};
    att_ctx *ctx = check_open(NULL, 1);
    const test_folder f = folder_new();
    att_run *run = open_run(ctx, path_in(&f, "runs/of/mine"), 2); /* folders are made */
    for (int i = 0; i < 5; i++) {
        training a, b;
        int64_t step = -7;
        init(&a, 100 + i);
        init(&b, 0);
        a.best = bests[i];
        save(ctx, run, i, &a);
        assert_int_equal(att_run_load(run, ATT_RUN_NEWEST, &b.state, &step), ATT_OK);
        assert_int_equal(step, i);
        are_same(&a, &b);
        assert_int_equal(att_run_load(run, i, &b.state, NULL), ATT_OK);
    }
    att_run_close(run);
    folder_remove(&f);
    att_close(ctx);
}

static void expect_steps(att_ctx *ctx, att_run *run, int64_t first, int64_t count)
{
    int64_t *steps, n;
    assert_int_equal(att_run_steps(run, &steps, &n), ATT_OK);
    assert_int_equal(n, count);
    for (int64_t i = 0; i < n; i++)
        assert_int_equal(steps[i], first + i);
    att_free(ctx, steps);
}

static void only_the_newest_checkpoints_stay(void **state)
{
    (void)state;
    training t;
    init(&t, 1);
    att_ctx *ctx = check_open(NULL, 1);
    const test_folder f = folder_new();
    static const char *const others[] = {"model.safetensors", "checkpoint-0000000001.safetensors.old",
                                         "checkpoint-1.safetensors", ("log.jsonl" ATT_UNFINISHED)};
    for (int i = 0; i < 4; i++)
        folder_write(&f, others[i], "someone else's");
    folder_write(&f, "checkpoint-0000000002.safetensors" ATT_UNFINISHED "0", "killed");
    att_run *run = open_run(ctx, f.path, 3);
    assert_int_equal(files_in(&f), 5); /* the lock, too */
    assert_int_equal(att_run_load(run, ATT_RUN_NEWEST, &t.state, NULL), ATT_ERR_IO);
    check_message(ctx, ": there is no checkpoint");
    for (int64_t step = 8; step < 14; step++) {
        save(ctx, run, step, &t);
        expect_steps(ctx, run, step > 10 ? step - 2 : 8, step > 10 ? 3 : step - 7);
    }
    save(ctx, run, 13, &t); /* again */
    expect_steps(ctx, run, 11, 3);
    assert_int_equal(att_run_save(run, 12, false, &t.state), ATT_ERR_ARGUMENT);
    check_message(ctx, "a checkpoint of step 12 would not be the newest: there is one of step 13");
    assert_int_equal(att_run_load(run, 9, &t.state, NULL), ATT_ERR_IO);
    check_message(ctx, "checkpoint-0000000009.safetensors: No such file");
    att_run_close(run);
    run = open_run(ctx, f.path, 1); /* as after a process was killed before it removed old ones */
    expect_steps(ctx, run, 11, 3);
    save(ctx, run, 20000000000, &t);
    expect_steps(ctx, run, 20000000000, 1);
    assert_int_equal(att_run_keep(run, 0), ATT_OK);
    expect_steps(ctx, run, 0, 0);
    assert_int_equal(files_in(&f), 5);
    att_run_close(run);
    assert_int_equal(files_in(&f), 4); /* the lock has been removed */
    assert_int_equal(att_run_open(ctx, f.path, 0, &run), ATT_ERR_ARGUMENT);
    assert_int_equal(att_run_open(ctx, "", 1, &run), ATT_ERR_IO);
    assert_int_equal(att_run_open(ctx, path_in(&f, others[0]), 1, &run), ATT_ERR_IO);
    check_message(ctx, "model.safetensors is a file, not a folder");
    assert_null(run);
    folder_remove(&f);
    att_close(ctx);
}

/* ---- another one */

static void other_hidden(training *t) { t->hidden = 512; }
static void other_rate(training *t) { t->rate = 0.25; }
static void other_fact(training *t) { t->fields[0].name = "place"; }
static void less_room(training *t) { t->fields[2].room = 7; }
static void other_kind(training *t) { t->fields[2].kind = ATT_FIELD_INT; }
static void other_shape(training *t) { t->tensors[1].dim[1] = 4; }
static void other_type(training *t) { t->tensors[2].dtype = ATT_I32; }
static void less_tensors(training *t) { t->state.n = 2; }
static void other_tensor(training *t)
{
    static const char *const others[] = {"weight", "weight/v", "steps"};
    t->state.names = others;
}

static void a_checkpoint_of_another_training_is_refused(void **state)
{
    (void)state;
    static const struct {
        void (*change)(training *t);
        const char *sentence;
    } changes[] = {
        {other_hidden, ".safetensors: \"hidden\" is 256 but here it is 512"},
        {other_rate, ".safetensors: \"rate\" is 0.10000000000000001 but here it is 0.25"},
        {other_fact, ".safetensors: there is no \"place\""},
        {less_room, "\"order\" has 7 bytes but here is room for 6"},
        {other_kind, "\"order\" is \"order 1\", which is not a number"},
        {other_shape, "tensor \"weight/m\" is f32 [3, 5] but here it is f32 [3, 4]"},
        {other_type, "tensor \"steps\" is i64 [] but here it is i32 []"},
        {less_tensors, "has 3 tensors but here are 2"},
        {other_tensor, "there is no tensor \"weight/v\""},
    };
    att_ctx *ctx = check_open(NULL, 1);
    const test_folder f = folder_new();
    att_run *run = open_run(ctx, f.path, 2);
    training a, b, before;
    init(&a, 1);
    save(ctx, run, 1, &a);
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        init(&b, 2);
        init(&before, 2);
        changes[i].change(&b);
        assert_int_not_equal(att_run_load(run, 1, &b.state, NULL), ATT_OK);
        check_message(ctx, changes[i].sentence);
        check_message(ctx, "/checkpoint-0000000001.safetensors: ");
        are_same(&b, &before);
    }
    att_run_close(run);
    folder_remove(&f);
    att_close(ctx);
}

static void a_checkpoint_cut_short_is_refused_and_an_older_one_can_be_loaded(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    const test_folder f = folder_new();
    att_run *run = open_run(ctx, f.path, 2);
    training a, b, before;
    char path[ATT_MAX_PATH];
    init(&a, 1);
    init(&b, 2);
    init(&before, 2);
    save(ctx, run, 1, &a);
    save(ctx, run, 2, &before);
    assert_int_equal(att_run_path(run, 2, path), ATT_OK);
    struct stat is;
    assert_int_equal(stat(path, &is), 0);
    for (off_t bytes = is.st_size - 1; bytes >= 0; bytes -= check_step(10)) {
        assert_int_equal(truncate(path, bytes), 0);
        assert_int_equal(att_run_load(run, ATT_RUN_NEWEST, &b.state, NULL), ATT_ERR_FORMAT);
        check_message(ctx, "checkpoint-0000000002.safetensors");
        are_same(&b, &before);
    }
    assert_int_equal(att_run_load(run, 1, &b.state, NULL), ATT_OK);
    are_same(&b, &a);
    att_run_close(run);
    folder_remove(&f);
    att_close(ctx);
}

/* ---- disks, memory, processes */

static void a_full_disk_leaves_the_checkpoints(void **state)
{
    (void)state;
    att_ctx *ctx = check_open(NULL, 1);
    const test_folder f = folder_new();
    att_run *run = open_run(ctx, f.path, 1);
    training a, b;
    init(&a, 1);
    save(ctx, run, 1, &a);
    init(&b, 2);
    for (long most = 0; most < 500; most += 100) {
        limit_files(most);
        const att_status s = att_run_save(run, 2, false, &b.state);
        limit_files(-1);
        assert_int_equal(s, ATT_ERR_IO);
        check_message(ctx, "checkpoint-0000000002.safetensors cannot be written: File too large");
        assert_int_equal(files_in(&f), 2);
    }
    assert_int_equal(att_run_load(run, ATT_RUN_NEWEST, &b.state, NULL), ATT_OK);
    are_same(&b, &a);
    att_run_close(run);
    folder_remove(&f);
    att_close(ctx);
}

static void every_failing_allocation_leaves_all_as_it_was(void **state)
{
    (void)state;
    att_status s = ATT_ERR_MEMORY;
    for (long n = 1; s; n++) {
        fail_alloc m = {.fail_at = 0};
        att_ctx *ctx = fail_open(&m);
        const test_folder f = folder_new();
        training a, b, before;
        init(&a, 1);
        init(&b, 2);
        init(&before, 2);
        att_run *run = open_run(ctx, f.path, 1);
        save(ctx, run, 1, &a);
        att_run_close(run);
        const long live = m.live;
        m.fail_at = m.calls + n;
        s = att_run_open(ctx, f.path, 1, &run);
        if (s) {
            assert_null(run);
        } else {
            s = att_run_load(run, ATT_RUN_NEWEST, &b.state, NULL);
            are_same(&b, s ? &before : &a);
            s = s ? s : att_run_save(run, 2, false, &before.state);
        }
        assert_true(s == ATT_OK || s == ATT_ERR_MEMORY);
        att_run_close(run);
        assert_int_equal(m.live, live);
        m.fail_at = 0;
        run = open_run(ctx, f.path, 1); /* which is possible still, and there is a checkpoint */
        assert_int_equal(att_run_load(run, ATT_RUN_NEWEST, &b.state, NULL), ATT_OK);
        assert_true(b.steps == 1 || b.steps == 2);
        att_run_close(run);
        att_close(ctx);
        folder_remove(&f);
    }
}

static void hold(void *folder)
{
    att_ctx *ctx = check_open("scalar", 1);
    att_run *run;
    if (att_run_open(ctx, ((const test_folder *)folder)->path, 1, &run))
        _exit(1);
    fclose(folder_open(folder, "held"));
    pause();
}

static void a_folder_is_of_one_process_until_that_ends(void **state)
{
    (void)state;
    char sentence[64];
    att_ctx *ctx = check_open("scalar", 1);
    test_folder f = folder_new();
    att_run *run = open_run(ctx, f.path, 1), *other;
    assert_int_equal(att_run_open(ctx, f.path, 1, &other), ATT_ERR_IO);
    assert_null(other);
    snprintf(sentence, sizeof sentence, ": another training runs there, process %ld", (long)getpid());
    check_message(ctx, f.path);
    check_message(ctx, sentence);
    att_run_close(run);
    const pid_t child = fork();
    if (child == 0)
        hold(&f);
    while (access(path_in(&f, "held"), F_OK) && waitpid(child, NULL, WNOHANG) == 0) /* or it has ended */
        usleep(1000);
    assert_int_equal(att_run_open(ctx, f.path, 1, &other), ATT_ERR_IO);
    snprintf(sentence, sizeof sentence, "process %ld", (long)child);
    check_message(ctx, sentence);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    att_run_close(open_run(ctx, f.path, 1));
    folder_remove(&f);
    att_close(ctx);
}

/* Foreign files instead of the lock: they are neither read for long nor changed nor truncated. */
static void a_lock_that_no_training_has_made_is_refused_and_stays(void **state)
{
    (void)state;
    static const char precious[] = "precious";
    att_ctx *ctx = check_open("scalar", 1);
    const test_folder f = folder_new();
    att_run *run;
    assert_int_equal(mkdir(path_in(&f, "run"), 0777), 0);
    folder_write(&f, "precious", precious);
    folder_write(&f, "number", "77\n");
    assert_int_equal(symlink("run", path_in(&f, "other")), 0); /* the folder may be one */
    for (int i = 0; i < 7; i++) {
        const char *lock = path_in(&f, "run/lock");
        static const char *const says[] = {": lock is a symbolic link, not a file that a training has made",
                                           ": lock is a symbolic link, not",
                                           ": lock is something else, not",
                                           ": lock is something else, not",
                                           ": lock is something else, not",
                                           ": lock is something else, not",
                                           ": lock: Is a directory"};
        assert_int_equal(i == 0   ? symlink("../precious", lock)
                         : i == 1 ? symlink("../none", lock)
                         : i == 2 ? link(path_in(&f, "precious"), lock)
                         : i == 3 ? link(path_in(&f, "number"), lock)
                         : i == 4 ? mkfifo(lock, 0666)
                         : i == 5 ? (folder_write(&f, "run/lock", precious), 0)
                                  : mkdir(lock, 0777),
                         0);
        assert_int_equal(att_run_open(ctx, path_in(&f, "run"), 1, &run), ATT_ERR_IO);
        check_message(ctx, says[i]);
        assert_null(run);
        if (i == 5)
            file_has(&f, "run/lock", precious, sizeof precious - 1);
        assert_int_equal(remove(path_in(&f, "run/lock")), 0);
        file_has(&f, "precious", precious, sizeof precious - 1);
        file_has(&f, "number", "77\n", 3);
        assert_int_equal(files_in(&f), 4);
    }
    folder_write(&f, "run/lock", "4194304\n"); /* of a training that has ended */
    att_run_close(open_run(ctx, path_in(&f, "other"), 1));
    folder_write(&f, "run/lock", "41"); /* at a power cut */
    att_run_close(open_run(ctx, path_in(&f, "other"), 1));
    folder_remove(&f);
    att_close(ctx);
}

/* What the start has made, folders above included, but nothing that existed or that has something else in it. */
static void a_start_that_fails_leaves_what_it_found(void **state)
{
    (void)state;
    static const char *const names[] = {"vocab.json", "none", NULL};
    att_ctx *ctx = check_open("scalar", 1);
    const test_folder f = folder_new();
    for (int i = 0; i < 2; i++) {
        att_run *run = open_run(ctx, path_in(&f, "a/b//c/"), 1);
        folder_write(&f, "a/b/c/vocab.json", "made");
        if (i == 1)
            folder_write(&f, "a/b/other", "someone else's");
        att_run_discard(run, names);
        assert_int_equal(access(path_in(&f, "a/b/c"), F_OK), -1);
        assert_int_equal(access(path_in(&f, "a"), F_OK), i - 1);
    }
    folder_write(&f, "a/b/vocab.json", "someone else's");
    att_run_discard(open_run(ctx, path_in(&f, "a/b"), 1), names);
    file_has(&f, "a/b/vocab.json", "someone else's", strlen("someone else's"));
    assert_int_equal(access(path_in(&f, "a/b/lock"), F_OK), -1);
    att_run_discard(NULL, NULL);
    folder_remove(&f);
    att_close(ctx);
}

/* Opens the folder again and again, and creates and removes a file in it while it is open. Returns how often that
 * worked; -1: another process had it open, too. */
static int open_repeatedly(const char *folder, const char *inside)
{
    enum { TIMES = 2000 };
    att_ctx *ctx = check_open("scalar", 1);
    att_run *run;
    int n = 0;
    for (int i = 0; n >= 0 && i < TIMES; i++) {
        if (att_run_open(ctx, folder, 1, &run))
            continue;
        const int file = open(inside, O_CREAT | O_EXCL | O_WRONLY, 0666);
        if (file < 0 || close(file) || unlink(inside))
            n = -1;
        n += n >= 0;
        att_run_close(run);
    }
    att_close(ctx);
    return n;
}

/* The lock is removed at the end of a training, just when another process may have opened it to wait for it. */
static void of_many_that_open_a_folder_one_has_it(void **state)
{
    (void)state;
    const test_folder f = folder_new();
    pid_t child[3];
    char inside[sizeof f.path + 8];
    snprintf(inside, sizeof inside, "%s/inside", f.path);
    for (int i = 0; i < 3; i++)
        if ((child[i] = fork()) == 0)
            _exit(open_repeatedly(f.path, inside) > 0 ? 0 : 1);
    for (int i = 0; i < 3; i++) {
        int status;
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(files_in(&f), 0);
    folder_remove(&f);
}

/* A checkpoint of a pause is the newest until the next is there, and then as if it had not been: `keep` others stay. */
static void pauses_leave_the_checkpoints_of_a_run_without_them(void **state)
{
    (void)state;
    static const struct {
        int64_t step;
        bool pause;
        int64_t n, steps[3]; /* that there are then */
    } saves[] = {{2, false, 1, {2}},         {3, true, 2, {2, 3}},      {4, false, 2, {2, 4}},
                 {6, false, 3, {2, 4, 6}},   {7, true, 3, {4, 6, 7}},   {7, true, 3, {4, 6, 7}},
                 {9, true, 3, {4, 6, 9}},    {10, true, 3, {4, 6, 10}}, {10, false, 3, {4, 6, 10}},
                 {12, false, 3, {6, 10, 12}}};
    att_ctx *ctx = check_open("scalar", 1);
    const test_folder f = folder_new();
    att_run *run = open_run(ctx, f.path, 3);
    for (size_t i = 0; i < sizeof saves / sizeof saves[0]; i++) {
        training a, b;
        int64_t *steps, n, step;
        init(&a, (int)i);
        init(&b, 77);
        assert_int_equal(att_run_save(run, saves[i].step, saves[i].pause, &a.state), ATT_OK);
        assert_int_equal(att_run_steps(run, &steps, &n), ATT_OK);
        assert_int_equal(n, saves[i].n);
        assert_memory_equal(steps, saves[i].steps, (size_t)n * sizeof *steps);
        att_free(ctx, steps);
        assert_int_equal(files_in(&f), n + 1);
        assert_int_equal(att_run_load(run, ATT_RUN_NEWEST, &b.state, &step), ATT_OK);
        assert_int_equal(step, saves[i].step);
        are_same(&a, &b);
    }
    folder_write(&f, "checkpoint-0000000011-pause.safetensors", "of a process that was killed before it removed it");
    int64_t *steps, n;
    assert_int_equal(att_run_steps(run, &steps, &n), ATT_OK);
    assert_int_equal(n, 3);
    assert_int_equal(steps[1], 10);
    att_free(ctx, steps);
    att_run_close(run);
    folder_remove(&f);
    att_close(ctx);
}

/* Continues from the newest checkpoint, or starts. */
static void train(void *folder)
{
    training t;
    int64_t step = 0;
    att_ctx *ctx = check_open("scalar", 1);
    att_run *run = open_run(ctx, ((const test_folder *)folder)->path, 2);
    init(&t, 0);
    const att_status s = att_run_load(run, ATT_RUN_NEWEST, &t.state, &step);
    if (s && s != ATT_ERR_IO)
        _exit(1);
    while (step++ < INT32_MAX) {
        fill(&t, (int)step);
        save(ctx, run, step, &t);
    }
}

static void a_killed_training_goes_on_from_a_whole_checkpoint(void **state)
{
    (void)state;
    int64_t last = 0;
    test_folder f = folder_new();
    const int slow = check_step(20); /* there everything takes longer */
    const uint64_t step_of_i = slow > 1 ? 5 : 1;
    for (uint64_t i = 0; i < 20 || (last == 0 && i < 1000); i += step_of_i) { /* longer where nothing was saved yet */
        training t, expected;
        const useconds_t time = (useconds_t)(10000 + check_bits(2, i) % 30000);
        run_and_kill(train, &f, (useconds_t)slow * time * (useconds_t)(1 + i / 20));
        att_ctx *ctx = check_open("scalar", 1);
        att_run *run = open_run(ctx, f.path, 2);
        int64_t *steps, n, step = 0;
        assert_int_equal(att_run_steps(run, &steps, &n), ATT_OK);
        for (int64_t k = 0; k < n; k++) { /* the others, too */
            init(&t, 0);
            init(&expected, (int)steps[k]);
            assert_int_equal(att_run_load(run, steps[k], &t.state, &step), ATT_OK);
            are_same(&t, &expected);
        }
        assert_true(n <= 3 && files_in(&f) == n + 1);
        assert_true(step >= last);
        last = step;
        att_free(ctx, steps);
        att_run_close(run);
        att_close(ctx);
    }
    assert_true(last > 0);
    folder_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_saved_is_loaded_to_the_last_bit),
        cmocka_unit_test(only_the_newest_checkpoints_stay),
        cmocka_unit_test(a_checkpoint_of_another_training_is_refused),
        cmocka_unit_test(a_checkpoint_cut_short_is_refused_and_an_older_one_can_be_loaded),
        cmocka_unit_test(a_full_disk_leaves_the_checkpoints),
        cmocka_unit_test(every_failing_allocation_leaves_all_as_it_was),
        cmocka_unit_test(a_folder_is_of_one_process_until_that_ends),
        cmocka_unit_test(a_lock_that_no_training_has_made_is_refused_and_stays),
        cmocka_unit_test(a_start_that_fails_leaves_what_it_found),
        cmocka_unit_test(of_many_that_open_a_folder_one_has_it),
        cmocka_unit_test(pauses_leave_the_checkpoints_of_a_run_without_them),
        cmocka_unit_test(a_killed_training_goes_on_from_a_whole_checkpoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
