/* attend train embed without scores: pairs, hard negatives, triplets and labels, from plain and packed files; and
 * packed texts of attend train translate. */
// labels: trains
#include "fixtures/stopped.h"
#include "fixtures/toy_texts.h"

#define TRAIN "$A train embed -m . --epochs 6 --batch 4 --rate 1e-3 --save-every 3 --validate-every 4 --threads 2 "

/* Rows of `columns` texts of three letters; texts of a row share letters, but for the third. last: what ends a line. */
static void write_rows(const char *name, int n, int columns, const char *(*last)(int row))
{
    FILE *f = folder_open(&tool_model, name);
    for (int i = 0; i < n; i++) {
        const int a = i * 7 % 23, b = (a + 11) % 23;
        fprintf(f, "%c %c %c\t%c %c", 'a' + a, 'b' + a, 'c' + a, 'b' + a, 'c' + a);
        for (int k = 2; k < columns; k++)
            fprintf(f, "\t%c %c", 'a' + b, 'd' + (i + k) % 20);
        fprintf(f, "%s%s\n", last ? "\t" : "", last ? last(i) : "");
    }
    assert_int_equal(fclose(f), 0);
}

static const char *word_of(int i)
{
    static const char *const words[] = {"entailment", "neutral", "contradiction"};
    return words[i % 3];
}

static const char *number_of(int i)
{
    static const char *const numbers[] = {"10", "9", "0"};
    return numbers[i % 3];
}

static const char *score_of(int i)
{
    static const char *const scores[] = {"5", "1.5", "0"};
    return scores[i % 3];
}

static int set_up(void **state)
{
    (void)state;
    setenv("A", ATTEND_TOOL, 1);
    tool_model = tiny_sentence();
    write_rows("pairs.tsv", 23, 2, NULL);
    write_rows("triples.tsv", 23, 3, NULL);
    write_rows("quads.tsv", 23, 4, NULL);
    write_rows("words.tsv", 23, 2, word_of);
    write_rows("numbers.tsv", 23, 2, number_of);
    write_rows("scores.tsv", 23, 2, score_of);
    toy_write(&tool_model, "train.de", "train.en", 1, 60);
    return 0;
}

static void the_loss_follows_from_the_columns_or_is_chosen(void **state)
{
    (void)state;
    static const struct {
        const char *options, *says;
    } cases[] = {
        {"-p pairs.tsv", "attend: loss: multiple negatives ranking, of 23 pairs\n"},
        {"-p triples.tsv", "attend: loss: multiple negatives ranking, of 23 pairs with 1 hard negative each\n"},
        {"-p quads.tsv", "attend: loss: multiple negatives ranking, of 23 pairs with 2 hard negatives each\n"},
        {"-p words.tsv", "attend: loss: softmax, of 23 pairs with labels\n"
                         "attend: 3 labels: contradiction (7), entailment (8), neutral (8)\n"},
        {"-p scores.tsv", "attend: loss: cosine similarity, of 23 pairs with scores\n"},
        {"-p triples.tsv -l triplet", "attend: loss: triplet, of 23 triplets\n"},
        {"-p triples.tsv -l triplet --distance cosine --margin 0.1", "attend: loss: triplet, of 23 triplets\n"},
        {"-p numbers.tsv --loss softmax", "attend: 3 labels: 0 (7), 9 (8), 10 (8)\n"},
        {"-p pairs.tsv --loss multiple-negatives-ranking --scale 10", "multiple negatives ranking, of 23 pairs\n"},
        {"-p words.tsv --loss mnr", "multiple negatives ranking, of 23 pairs with 1 hard negative each\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[512];
        snprintf(line, sizeof line, TRAIN "--epochs 1 %s -o loss%zu && echo a b | $A embed -m loss%zu",
                 cases[i].options, i, i);
        if (i == 9) /* labels are texts then, and occur too often for a batch of 4 */
            snprintf(line, sizeof line, "$A train embed -m . --batch 3 --epochs 1 %s -o loss%zu", cases[i].options, i);
        if (tool(line))
            fail_msg("%s: %s", line, tool_err);
        assert_has(tool_err, cases[i].says);
    }
}

static void columns_of_a_heading_are_trained_on_wherever_they_stand(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"id;gold_label;sentence1;sentence2\\n7;3,5;a b;c d\\n8;1,25;e f;g h\\n",
         "attend: columns.csv: line 1 was read as a heading: sentence1, sentence2 ...\n"
         "attend: loss: cosine similarity, of 2 pairs with scores\n"},
        {"query,id,passage\\na b,7,c d\\nquery,id,passage\\ne f,8,g h\\n",
         "loss: multiple negatives ranking, of 2 pairs\n"},
        {"7,a b,0.5,c d\\n8,e f,1,g h\\n", "columns.csv: the columns 1 to 3 of 4 are trained on; a heading, as"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[512];
        snprintf(line, sizeof line,
                 "printf '%s' >columns.csv; $A train embed -m . -p columns.csv --batch 2 --epochs 1 --highest 5 -o "
                 "columns%zu",
                 cases[i].text, i);
        if (tool(line))
            fail_msg("%s: %s", line, tool_err);
        assert_has(tool_err, cases[i].says);
    }
}

/* The longer the training, the nearer the texts of a pair, compared with those of others. */
static void pairs_alone_teach_which_texts_belong_together(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN "-p pairs.tsv --epochs 200 --rate 1e-2 -o trained && cat trained/log.jsonl"), 0);
    json_t *first = line_json(0), *last = line_json(290);
    const double begin = json_number_value(json_object_get(first, "loss")),
                 end = json_number_value(json_object_get(last, "loss"));
    json_decref(first);
    json_decref(last);
    if (!(end > 0 && end < begin / 4))
        fail_msg("the loss was %g and is %g", begin, end);
}

static void a_training_that_is_killed_again_and_again_has_the_same_result(void **state)
{
    (void)state;
    assert_kills_change_nothing(TRAIN "-p words.tsv", 2, 3, 5, 100);
    assert_int_equal(tool("rm -r calm killed"), 0);
    assert_kills_change_nothing(TRAIN "-p triples.tsv", 2, 4, 5, 100);
}

static void packed_files_teach_the_same(void **state)
{
    (void)state;
    assert_int_equal(
        tool("sed 's/\\t/,/g' pairs.tsv >pairs.csv; gzip -k pairs.csv scores.tsv train.de train.en; for name in "
             "pairs.csv pairs.csv.gz; do " TRAIN
             "-p $name --valid scores.tsv.gz -o by-$name; done && cmp by-pairs.csv/model.safetensors "
             "by-pairs.csv.gz/model.safetensors"),
        0);
    assert_int_equal(
        tool("for end in '' .gz; do $A train translate --src train.de$end --tgt train.en$end --vocabulary 70 "
             "-p tiny --batch-tokens 150 --steps 2 --warmup 1 --average 0 --valid-src train.de$end "
             "--valid-tgt train.en$end -o t$end; done && cmp t/model.safetensors t.gz/model.safetensors && "
             "cmp t/source.spm t.gz/source.spm"),
        0);
    assert_int_equal(
        tool("cut -f1 pairs.tsv >one.txt; gzip -k one.txt; $A embed -m . one.txt >a; $A embed -m . one.txt.gz "
             ">b; cmp a b"),
        0);
    assert_refused("head -c 300 train.de.gz >cut.gz; $A train translate --src cut.gz --tgt train.en -p tiny -o cut", 1,
                   "cut.gz: the gzip file is truncated");
    assert_refused("head -c 30 pairs.csv.gz >cut.csv.gz; " TRAIN "-p cut.csv.gz -o cut2", 1,
                   "cut.csv.gz: the gzip file is truncated");
    assert_refused("cp pairs.tsv plain.gz; " TRAIN "-p plain.gz -o cut3", 1, "plain.gz: is not a gzip file");
}

static void what_cannot_be_trained_on_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *make, *options;
        int code;
        const char *says;
    } cases[] = {
        {"printf 'a\\tb\\nc\\td\\te\\n'", "", 1, "odd.tsv: line 2: 3 columns, but line 1 has 2"},
        {"printf 'a\\tb\\tc d\\ne\\tf\\n'", "", 1, "odd.tsv: line 2: 2 columns, but line 1 has 3"},
        {"printf 'a\\nb\\n'", "", 1, "odd.tsv: line 1: one column, but a pair has two with a tab between them"},
        {"printf '{\"sentence1\": \"a\"}\\n'", "", 1,
         "two with a tab between them; JSON is not read: write its texts as CSV"},
        {"printf 'a\\t\\n \\tb\\n'", "", 1, "odd.tsv: none of 2 pairs can be used: 2 have an empty text"},
        {"printf 'a\\tb\\t1\\nc\\td\\tscore\\ne\\tf\\t2\\n'", "", 1,
         "odd.tsv: line 2: the third column is \"score\", but must be a number"},
        {"printf 'a\\tb\\tc\\nd\\te\\t\\n'", "--loss softmax", 1,
         "odd.tsv: line 2: the third column, the label, is empty"},
        {"printf 'a\\tb\\t\\nd\\te\\t\\n'", "--loss softmax --skip-bad-lines 9", 1, "odd.tsv: no row has a label"},
        {"printf 'a\\tb\\tx\\nd\\te\\ty\\n'", "--loss cosine --skip-bad-lines 9", 1,
         "odd.tsv: none of 2 pairs can be used: 0 have an empty text, 2 no score"},
        {"printf 'a\\tb\\tx\\nd\\te\\tx\\n'", "", 1,
         "odd.tsv: all rows have the label \"x\", but a classifier needs two"},
        {"printf 'a\\tb\\n'", "--loss triplet", 1, "--loss triplet: odd.tsv has 2 columns, but must have three"},
        {"printf 'a\\tb\\tc\\td\\n'", "--loss triplet", 1,
         "--loss triplet: odd.tsv has 4 columns, but must have three"},
        {"printf 'a\\tb\\n'", "--loss softmax", 1, "--loss softmax: odd.tsv has two columns, but the label must"},
        {"printf 'a\\tb\\n'", "--loss cosine", 1, "--loss cosine: odd.tsv has two columns, but the score must"},
        {"printf 'a\\tb\\na\\tc\\na\\td\\na\\te\\n'", "--batch 3", 1,
         "a batch of 3 without a text that occurs twice cannot be filled, only one of 1"},
        {"printf 'a\\tb\\nc\\td\\n'", "--batch 1", 2,
         "--batch 1 with --loss mnr: the negatives of a pair are the other"},
        {"printf 'a\\tb\\nc\\td\\n'", "--margin 2", 2,
         "--margin 2 is for --loss triplet, but here the loss is another"},
        {"printf 'a\\tb\\nc\\td\\n'", "--distance cosine", 2, "--distance cosine is for --loss triplet"},
        {"printf 'a\\tb\\t1\\n'", "--scale 5", 2, "--scale 5 is for --loss mnr, but here the loss is another"},
        {"printf 'text\\tlabel\\na\\t1\\nb\\t0\\n'", "", 1,
         "odd.tsv: line 1: the heading names one column of texts, but a pair has two"},
        {"printf 'a\\tb\\n'", "--loss mrn", 2,
         "--loss: \"mrn\" is not one of mnr|multiple-negatives-ranking|triplet|softmax"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[512];
        snprintf(line, sizeof line, "%s >odd.tsv; $A train embed -m . -p odd.tsv %s -o odd", cases[i].make,
                 cases[i].options);
        assert_refused(line, cases[i].code, cases[i].says);
    }
}

/* Both the heading and what is wrong are said. */
static void a_score_that_a_heading_names_is_no_text(void **state)
{
    (void)state;
    assert_int_equal(tool("printf 'text1,text2,score\\na,b,80%%\\nc,d,45%%\\n' >odd.csv; " TRAIN "-p odd.csv -o odd"),
                     1);
    assert_has(tool_err, "odd.csv: line 2: the score or label is \"80%\", neither a number nor one of few words");
    assert_int_equal(tool(TRAIN "-p odd.csv --loss triplet -o odd"), 1);
    assert_has(tool_err, "--loss triplet: odd.csv has 2 columns, but must have three");
}

static void rows_with_an_empty_text_are_left_out_and_counted(void **state)
{
    (void)state;
    assert_int_equal(
        tool("{ printf 'a\\t\\n'; cat pairs.tsv; printf ' \\tb\\n\\n'; } >gaps.tsv; for name in pairs gaps; "
             "do " TRAIN "-p $name.tsv -o $name; done; cmp pairs/model.safetensors gaps/model.safetensors"),
        0);
    assert_has(tool_err, "attend: gaps.tsv: 23 pairs; left out: 2 with an empty text\n");
}

static void a_training_with_another_loss_is_not_gone_on_with(void **state)
{
    (void)state;
    assert_int_equal(tool(TRAIN "-p triples.tsv -o kept"), 0);
    assert_refused(TRAIN "-p triples.tsv --loss triplet --resume -o kept", 2,
                   "--loss is not set in kept but triplet here");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_loss_follows_from_the_columns_or_is_chosen),
        cmocka_unit_test(columns_of_a_heading_are_trained_on_wherever_they_stand),
        cmocka_unit_test(pairs_alone_teach_which_texts_belong_together),
        cmocka_unit_test(a_training_that_is_killed_again_and_again_has_the_same_result),
        cmocka_unit_test(packed_files_teach_the_same),
        cmocka_unit_test(what_cannot_be_trained_on_is_named),
        cmocka_unit_test(a_score_that_a_heading_names_is_no_text),
        cmocka_unit_test(rows_with_an_empty_text_are_left_out_and_counted),
        cmocka_unit_test(a_training_with_another_loss_is_not_gone_on_with),
    };
    return cmocka_run_group_tests(tests, set_up, tool_teardown);
}
