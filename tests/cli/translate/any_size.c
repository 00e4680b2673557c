/* attend vocab and attend train translate on texts of any size, from files and from pipes: what they have in memory,
 * and that it changes nothing. */
// labels: long slow
#include "fixtures/check.h"
#include "fixtures/tool.h"
#include "fixtures/toy_texts.h"

#define TRAIN                                                                                                          \
    "$A train translate --config small.json --tokenizer pieces.spm --batch-tokens 150 --warmup 2 --threads 2 "         \
    "--average 0 "
#define FILES "--src train.de --tgt train.en "

static int set_up(void **state)
{
    (void)state;
    setenv("A", ATTEND_TOOL, 1);
    tool_model = folder_new();
    toy_write(&tool_model, "train.de", "train.en", 1, 200);
    toy_write(&tool_model, "valid.de", "valid.en", 1000, 20);
    assert_int_equal(tool("echo '{\"d_model\": 32, \"encoder_layers\": 1, \"decoder_layers\": 1, "
                          "\"encoder_attention_heads\": 2, \"decoder_attention_heads\": 2, "
                          "\"encoder_ffn_dim\": 64, \"decoder_ffn_dim\": 64}' >small.json && "
                          "$A vocab --size 70 -n identity -o pieces.spm train.de train.en && " TRAIN FILES
                          "--valid-src valid.de --valid-tgt valid.en --steps 2 -o calm"),
                     0);
    return 0;
}

/* ---- memory */

/* Returns the bytes a line by which the maximum memory of a command on `many` lines exceeds that on `few`, both of all
 * its files. */
static double growth(const char *line, int few, int many)
{
    long peak[2];
    for (int i = 0; i < 2; i++) {
        toy_write(&tool_model, "big.de", "big.en", 1, (i ? many : few) / 2);
        if (tool(line))
            fail_msg("%s", tool_err);
        peak[i] = tool_peak;
    }
    const double bytes = 1024.0 * (double)(peak[1] - peak[0]) / (double)(many - few);
    print_message("%.2f bytes a line: %ld KiB for %d lines, %ld KiB for %d\n", bytes, peak[0], few, peak[1], many);
    return bytes;
}

/* Lines of the toy language are short, so that there are many: three words of five letters. */
static void memory_grows_by_sixteen_bytes_a_line_at_most(void **state)
{
    (void)state;
    const int few = 60000, many = check_step(3) > 1 ? 120000 : 600000;
    const double words = growth("$A vocab --size 70 -o big.spm big.de big.en", few, many);
    const double pairs = growth("rm -rf big; " TRAIN "--src big.de --tgt big.en --steps 1 -o big", few, many);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they keep what is freed */
    assert_true(words < 1);
    assert_true(pairs < 16);
#else
    (void)words, (void)pairs;
#endif
}

/* Of several hundred MB. */
static void a_line_without_an_end_takes_no_more_memory_than_many(void **state)
{
    (void)state;
    assert_int_equal(tool("yes 'eins zwei drei ' | tr -d '\\n' | head -c 40000000 | $A vocab --size 30 -o one.spm"), 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    assert_true(tool_peak < 40000);
#endif
    assert_int_equal(tool("yes 'eins zwei drei' | head -c 40000000 | $A vocab --size 30 -o many.spm && "
                          "cmp one.spm many.spm"),
                     0);
    assert_refused("yes | tr -d '\\n' | head -c 40000000 | $A vocab -o none.spm", 1,
                   "standard input: line 1 has more than 1048576 bytes without a space");
    assert_refused("yes 'eins zwei' | tr -d '\\n' | head -c 2000000 | cat train.de - >one.de; $A train translate "
                   "--src one.de --tgt train.en --vocabulary 70 -o none",
                   1, "one.de: line 201 has more than 1048576 bytes");
}

/* Of 70 MB each: what is trained is in the first 200 of 70,000 lines. */
static void texts_beyond_any_limit_of_other_files_are_trained_on(void **state)
{
    (void)state;
    assert_int_equal(
        tool("for l in de en; do { cat train.$l; yes \"$(printf '%1000s' '')\" | head -n 70000; } >large.$l; "
             "done; " TRAIN "--src large.de --tgt large.en --steps 2 -o large && "
             "cmp calm/model.safetensors large/model.safetensors; wc -c <large.de; rm large.de large.en"),
        0);
    assert_has(tool_err, "200 sentence pairs; left out: 70000 with an empty side");
    assert_true(atoi(tool_out) > 64 << 20);
}

/* ---- texts to validate by */

static void validation_is_of_all_lines_however_many(void **state)
{
    (void)state;
    assert_int_equal(
        tool("for l in de en; do { yes \"$(printf '%1000s' '')\" | head -n 6000; cat valid.$l; } >long.$l; "
             "done; " TRAIN FILES "--valid-src long.de --valid-tgt long.en --steps 2 -o long && " SAME_LOG(
                 "calm/log.jsonl", "long/log.jsonl")),
        0);
    assert_refused("echo more >>long.de; " TRAIN FILES "--valid-src long.de --valid-tgt long.en --steps 1 -o unequal",
                   1, "long.de has 6021 lines but long.en has 6020");
    assert_int_equal(tool("ls unequal"), 2); /* before anything was made */
}

/* A pipe may come bit by bit, and be read once only. */
static void pipes_give_the_bits_of_files(void **state)
{
    (void)state;
    assert_int_equal(
        tool("cat >pipes.sh <<'E'\n" TRAIN "--src <(head -n 100 train.de; sleep 0.2; tail -n 100 train.de) "
             "--tgt <(cat train.en) --valid-src <(head -n 3 valid.de; sleep 0.2; tail -n 17 valid.de) "
             "--valid-tgt fifo --steps 2 -o pipes\nE\n"
             "mkfifo fifo; cat valid.en >fifo & bash pipes.sh && " SAME_LOG(
                 "calm/log.jsonl", "pipes/log.jsonl") "&& "
                                                      "cmp calm/model.safetensors pipes/model.safetensors"),
        0);
    assert_has(tool_err, "fifo is a pipe");
    assert_refused("bash -c '" TRAIN FILES "--valid-src <(head -n 3 valid.de) --valid-tgt valid.en --steps 1 -o x'", 1,
                   " has 3 lines but valid.en has 20");
    assert_refused("bash -c 'TMPDIR=nowhere " TRAIN "--src <(cat train.de) --tgt train.en --steps 1 -o x'", 1,
                   "cannot be put into a file in nowhere (TMPDIR): No such file or directory");
}

static void lines_are_counted_before_a_vocabulary_is_trained(void **state)
{
    (void)state;
    assert_refused("head -n 150 train.en >short.en; $A train translate --src train.de --tgt short.en --vocabulary 4000 "
                   "-o short",
                   1, "train.de has 200 lines but short.en has 150");
    assert_int_equal(tool("ls -d short"), 2);
}

/* ---- files that change while they are trained on */

static void a_file_that_is_cut_ends_a_training_and_leaves_its_checkpoints(void **state)
{
    (void)state;
    assert_int_equal(tool("cp train.de cut.de; " TRAIN "--src cut.de --tgt train.en --save-every 1 -o cut & "
                          "await '! kill -0 $! || ls cut/checkpoint-*'; head -n 150 train.de >cut.de; "
                          "wait $!"),
                     1);
    assert_has(tool_err, "cut.de was changed while it was trained on");
    assert_refused(TRAIN "--src cut.de --tgt train.en --resume -o cut", 1, "--src: cut.de has ");
    assert_int_equal(tool("n=$(ls cut | sed -n 's/checkpoint-0*\\([0-9]*\\).*/\\1/p' | tail -n 1); " TRAIN FILES
                          "--steps $((n + 1)) --resume -o cut && " TRAIN FILES "--steps $((n + 1)) -o whole && "
                          "cmp cut/model.safetensors whole/model.safetensors"),
                     0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_grows_by_sixteen_bytes_a_line_at_most),
        cmocka_unit_test(a_line_without_an_end_takes_no_more_memory_than_many),
        cmocka_unit_test(texts_beyond_any_limit_of_other_files_are_trained_on),
        cmocka_unit_test(validation_is_of_all_lines_however_many),
        cmocka_unit_test(pipes_give_the_bits_of_files),
        cmocka_unit_test(lines_are_counted_before_a_vocabulary_is_trained),
        cmocka_unit_test(a_file_that_is_cut_ends_a_training_and_leaves_its_checkpoints),
    };
    return cmocka_run_group_tests(tests, set_up, tool_teardown);
}
