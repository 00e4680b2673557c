/* attend convert: a .gguf file becomes a folder, and a folder a .gguf file; what is wrong with the paths is said. */
#include "fixtures/tool.h"

#include "fixtures/tiny_gguf.h"

static int convert_setup(void **state)
{
    assert_int_equal(tool_setup(state), 0);
    const test_folder weights = tiny_llama_folder(&tiny_llamas[0], NULL);
    tiny_gguf_write(&weights, "m.gguf", &tiny_llamas[0], NULL);
    char line[200];
    snprintf(line, sizeof line, "mkdir -p models/tiny && cp %s/m.gguf models/tiny && cp %s/m.gguf .", weights.path,
             weights.path);
    assert_int_equal(tool(line), 0);
    folder_remove(&weights);
    return 0;
}

static void a_file_becomes_a_folder(void **state)
{
    (void)state;
    assert_int_equal(tool("$A convert m.gguf -o out && ls out"), 0);
    assert_string_equal(tool_out, "out is written\nchat_template.jinja\nconfig.json\ngeneration_config.json\n"
                                  "model.safetensors\ntokenizer.json\ntokenizer_config.json\n");
    assert_string_equal(tool_err, "");
    assert_int_equal(tool("ATTEND_MODELS=models $A convert tiny -o named/deep/ && diff -r out named/deep"), 0);
    assert_int_equal(tool("$A convert --dtype bf16 -o half m.gguf && grep -q bfloat16 half/config.json"), 0);
    assert_int_equal(tool("echo 'ab cd <|end|>' >in; $A tokenize --json -m m.gguf in >1; "
                          "$A tokenize --json -m out in | cmp - 1 && cat 1"),
                     0);
    assert_has(tool_out, "10");
}

static void what_is_wrong_is_said(void **state)
{
    (void)state;
    assert_refused("$A convert m.gguf", 2, "--output FOLDER|FILE.gguf is needed");
    assert_refused("$A convert -o out2", 2, "MODEL");
    assert_refused("mkdir full; echo >full/x; $A convert m.gguf -o full", 1, "full is not empty; remove it first");
    assert_refused("mkdir empty; ln -s empty link; $A convert m.gguf -o link/", 1, "link is a symbolic link");
    assert_refused("ln -s nowhere dangling; $A convert m.gguf -o dangling", 1, "dangling is a symbolic link");
    assert_refused("$A convert none.gguf -o out2", 1, "none.gguf");
    assert_refused("echo GGUF >bad.gguf; $A convert bad.gguf -o out2", 1, "bad.gguf");
    assert_refused("$A convert m.gguf -o out2 --dtype int8", 2,
                   "--dtype int8 is for a .gguf file, but out2 is a folder; give f32, f16 or bf16");
    assert_refused("$A convert m.gguf -o out2 --dtype int4", 2,
                   "--dtype int4 is for a .gguf file, but out2 is a folder; give f32, f16 or bf16");
    assert_refused("$A convert m.gguf -o m.gguf", 1, "--output m.gguf would replace m.gguf, which this command reads");
    assert_refused("mkdir d.gguf; $A convert m.gguf -o d.gguf", 1, "d.gguf cannot be written: it is a folder");
    assert_refused("$A convert $D -o out2", 1, "is a sentence model: attend embed");
    assert_int_equal(tool("ls -d out2* .out2* 2>/dev/null"), 2);
    assert_string_equal(tool_out, "");
}

static void a_folder_becomes_a_file(void **state)
{
    (void)state;
    assert_int_equal(tool("$A convert m.gguf -o from && $A convert from -o new.gguf && $A info -m new.gguf"), 0);
    assert_has(tool_out, "new.gguf is written");
    assert_has(tool_out, "f16"); /* rows of 16 and 24 are not blocks of int8 */
    assert_int_equal(tool("$A convert from -o big.GGUF && cmp new.gguf big.GGUF && $A info -m big.GGUF"), 0);
    assert_int_equal(tool("$A convert from/ --dtype f32 -o f32.gguf && $A convert f32.gguf -o back && "
                          "cmp back/model.safetensors from/model.safetensors && cmp back/tokenizer.json "
                          "from/tokenizer.json && $A convert from -o half2 --dtype f16 && grep -q float16 "
                          "half2/config.json && ls | grep -c unfinished"),
                     1);
    assert_has(tool_out, "half2 is written\n0\n");
}

/* Only a folder that a conversion has made and not finished is replaced: then there is its mark. */
static void files_of_others_are_not_removed(void **state)
{
    (void)state;
    assert_int_equal(tool("mkdir mine.unfinished; echo thesis >mine.unfinished/notes.txt; "
                          "echo 1 >mine.unfinished/config.json"),
                     0);
    assert_refused("$A convert m.gguf -o mine", 1, "mine.unfinished, where mine is written first, has \"notes.txt\"");
    assert_int_equal(tool("cat mine.unfinished/notes.txt mine.unfinished/config.json; ls -d mine"), 2);
    assert_string_equal(tool_out, "thesis\n1\n");
    assert_int_equal(tool("rm mine.unfinished/notes.txt"), 0);
    assert_refused("$A convert m.gguf -o mine", 1, "mine.unfinished, where mine is written first, has \"config.json\"");
    assert_int_equal(tool("cat mine.unfinished/config.json; ls -d mine mine.unfinished.mark"), 2);
    assert_string_equal(tool_out, "1\n");
    assert_int_equal(tool("echo 1 >mine.unfinished/model.safetensors.unfinished-0; >mine.unfinished.mark; "
                          "$A convert m.gguf -o mine && ls mine | wc -l && ! ls -d mine.* 2>/dev/null"),
                     0);
    assert_string_equal(tool_out, "mine is written\n6\n");
    assert_int_equal(tool("mkdir empty.unfinished; $A convert m.gguf -o empty && ls empty | wc -l && ! ls -d empty.*"),
                     0);
    assert_int_equal(tool(">empty.unfinished.mark; $A convert m.gguf -o empty; ls -d empty.*"), 2); /* it was renamed */
    assert_has(tool_err, "empty is not empty");
}

/* The last number of the file is replaced. */
static void numbers_beyond_f16_are_refused(void **state)
{
    (void)state;
#define LAST_NUMBER(bytes) "cp m.gguf big.gguf; truncate -s -4 big.gguf; printf '" bytes "' >>big.gguf; "
    assert_refused(LAST_NUMBER("\\000\\120\\303\\107") "$A convert --dtype f16 big.gguf -o big", 1,
                   "big.gguf: tensor \"lm_head.weight\" has 100000, but the largest number of f16 is 65504");
    assert_refused(LAST_NUMBER("\\000\\360\\177\\307") "$A convert --dtype f16 big.gguf -o big", 1, "has -65520, but");
    assert_refused("$A convert big.gguf -o big.q8.gguf", 1,
                   "has -65520, but the largest number of f16 is 65504"); /* as its rows are f16 */
    assert_refused("$A generate -m big.gguf --dtype f16 a", 1,
                   "head.weight\" has -65520, but the largest number of f16 is 65504; open as bf16 or f32");
    assert_int_equal(tool("ls -d big big.unfinished big.q8* 2>/dev/null"), 2);
    assert_int_equal(tool("$A convert --dtype bf16 big.gguf -o big16 && $A convert big.gguf -o big32"), 0);
    assert_int_equal(tool(LAST_NUMBER("\\000\\346\\177\\107") "$A convert --dtype f16 big.gguf -o rounded"), 0);
    assert_int_equal(tool("od -An -v -tx2 rounded/model.safetensors | grep -o 7bff"), 0); /* 65510 becomes 65504 */
    assert_string_equal(tool_out, "7bff\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_becomes_a_folder),        cmocka_unit_test(a_folder_becomes_a_file),
        cmocka_unit_test(what_is_wrong_is_said),          cmocka_unit_test(files_of_others_are_not_removed),
        cmocka_unit_test(numbers_beyond_f16_are_refused),
    };
    return cmocka_run_group_tests(tests, convert_setup, tool_teardown);
}
