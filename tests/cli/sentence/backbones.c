/* Sentence models whose backbone is not an encoder, in the tool: causal language models, in a folder with modules.json
 * and without, and static embeddings. */
#include "fixtures/tool.h"

#include <limits.h>

/* $Q: a folder as Qwen3-Embedding's, with a prompt "query"; $S: static embeddings */
static int set_up(void **state)
{
    char causal[PATH_MAX], fixed[PATH_MAX];
    assert_non_null(realpath("tests/golden/qwen3_embedding", causal));
    assert_non_null(realpath("tests/golden/static/static_bf16", fixed));
    setenv("Q", causal, 1);
    setenv("S", fixed, 1);
    return tool_setup(state);
}

static void attention_of_a_causal_backbone_names_its_tokens(void **state)
{
    (void)state;
    assert_int_equal(tool("$A attention -m $Q 'the cat' --json"), 0);
    json_t *v = line_json(0);
    assert_int_equal(json_array_size(json_object_get(v, "tokens")), json_array_size(json_object_get(v, "weights")));
    json_decref(v);
    assert_int_equal(tool("$A attention -m $Q --hide 0 'the cat'"), 0);
    assert_has(tool_out, "Without token 0 \"");
}

static void attention_is_that_of_the_text_after_its_prompt(void **state)
{
    (void)state;
    assert_int_equal(tool("$A attention -m $D --prompt 'ab c: ' 'fig' >prompted && "
                          "$A attention -m $D 'ab c: fig' | diff prompted -"),
                     0);
    assert_int_equal(tool("$A attention -m $D --prompt query fig >named && $A attention -m $D fig | diff named -"), 0);
    assert_refused("$A attention -m $D --prompt quer fig", 1, "has no prompt \"quer\"; did you mean \"query\"?");
    assert_refused("$A attention -m $Q/nix --prompt query fig", 1, "nix");
    assert_refused("$A attention -m tatoeba-de-en --prompt query fig", 2, "--prompt is for sentence models");
}

static void a_causal_model_alone_embeds_by_the_mean_or_by_its_last_token(void **state)
{
    (void)state;
    assert_int_equal(
        tool("mkdir -p plain last && for f in config.json tokenizer.json tokenizer_config.json "
             "model.safetensors; do cp $Q/$f plain; cp $Q/$f last; done; "
             "sed 's/Qwen3Model/Qwen3ForCausalLM/' $Q/config.json >last/config.json; "
             "$A embed -m plain --text 'the cat' >mean; $A embed -m last --text 'the cat' >end; cmp mean end"),
        1);
    assert_has(tool_err, "plain has no modules.json, which would state how its hidden states become an embedding: "
                         "their mean is taken");
    assert_has(tool_err, "last has no modules.json, which would state how its hidden states become an embedding: that "
                         "of the last token is taken");
    assert_int_equal(tool("$A similarity -m $Q --prompt '' 'the cat' 'a dog' >with 2>&1; "
                          "$A similarity -m last 'the cat' 'a dog' 2>/dev/null | diff with -"),
                     0); /* $Q's pooling is that of the last token */
}

static void static_embeddings_have_no_type_no_pooling_and_no_attention(void **state)
{
    (void)state;
    assert_int_equal(tool("$A info -m $Q"), 0);
    assert_has(tool_out, "\npooling             lasttoken\n");
    assert_int_equal(tool("$A info -m $S"), 0);
    assert_int_equal(count(tool_out, "\ntype") + count(tool_out, "\npooling"), 0);
    assert_has(tool_out, "\nmaximum of tokens   none\n");
    assert_refused("$A attention -m $S 'a cat'", 1, "has no attention: an embedding is the mean of vectors of tokens");
    assert_refused("echo a >docs; $A rerank -m $S -c docs b", 1, "is a sentence model, which has no classifier");
    assert_refused("printf 'a b\tc\nd\te f\n' >pairs.tsv; $A train rerank -m $S --pairs pairs.tsv -o out", 1,
                   "there is no config.json of an encoder beside modules.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_of_a_causal_backbone_names_its_tokens),
        cmocka_unit_test(attention_is_that_of_the_text_after_its_prompt),
        cmocka_unit_test(a_causal_model_alone_embeds_by_the_mean_or_by_its_last_token),
        cmocka_unit_test(static_embeddings_have_no_type_no_pooling_and_no_attention),
    };
    return cmocka_run_group_tests(tests, set_up, tool_teardown);
}
