/* Models by name: the only one of a kind needs no name, one of another kind is refused with the command for it, and if
 * there is none, the message states how to get one. */
#include "fixtures/translator_tool.h"

/* $ATTEND_MODELS in the tests' folder: empty, with a sentence model, with two */
static int names_setup(void **state)
{
    assert_int_equal(translator_setup(state), 0);
    return tool("mkdir none one two && ln -s $D one/first && ln -s $T one/de-en && ln -s $D two/first && "
                "ln -s $D two/second");
}

static void the_only_sentence_model_needs_no_name(void **state)
{
    (void)state;
    assert_int_equal(tool("echo a b >in; $A embed -m $D in >1 && ATTEND_MODELS=one $A embed in >2 && cmp 1 2"), 0);
    assert_int_equal(tool("ATTEND_MODELS=one $A similarity a b"), 0);
    assert_int_equal(tool("ATTEND_MODELS=one $A search -c in a"), 0);
    assert_int_equal(tool("ATTEND_MODELS=one $A attention a"), 0);
    assert_refused("ATTEND_MODELS=two $A embed in", 2,
                   "--model MODEL is needed, as there are 2 sentence models: first, second");
    assert_int_equal(tool("ATTEND_MODELS=two ATTEND_MODEL=second $A embed in"), 0);
}

static void where_there_is_none_the_command_that_downloads_one_is_named(void **state)
{
    (void)state;
    assert_refused("ATTEND_MODELS=none $A embed in", 2,
                   "no sentence model is in the models folder; \"attend fetch all-MiniLM-L6-v2\" downloads one");
    assert_refused("ATTEND_MODELS=none $A embed -m nix in", 1, "; \"attend fetch all-MiniLM-L6-v2\" downloads one");
    assert_refused("ATTEND_MODELS=two $A embed -m all-MiniLM-L6-v2 in", 1,
                   "; \"attend fetch all-MiniLM-L6-v2\" downloads one");
    assert_refused("ATTEND_MODELS=two $A embed -m nix in", 1, "\"nix\" is neither a folder nor a model in two");
    assert_int_equal(count(tool_err, "fetch"), 0);
}

static void a_model_of_another_kind_is_refused_with_its_command(void **state)
{
    (void)state;
    assert_refused("ATTEND_MODELS=none $A embed -m tatoeba-de-en in", 1,
                   "attend: tatoeba-de-en is a translator: attend translate\n");
    assert_refused("ATTEND_MODELS=one $A similarity -m de-en a b", 1, "de-en is a translator: attend translate\n");
    assert_refused("$A generate -m $T a", 1, "is a translator: attend translate\n");
    assert_refused("ATTEND_MODELS=one $A translate -m first in", 1,
                   "attend: first is a sentence model: attend embed\n");
}

/* A folder with a class of that kind, one with a .gguf file, and such a file */
static void language_models_are_recognized(void **state)
{
    (void)state;
    assert_int_equal(tool("mkdir -p lm/class lm/gguf; echo GGUF >lm/gguf/x.gguf; "
                          "echo '{\"architectures\": [\"GPT2LMHeadModel\"]}' >lm/class/config.json"),
                     0);
    static const char *const models[] = {"class", "gguf", "lm/gguf/x.gguf"};
    for (int i = 0; i < 3; i++) {
        char line[256], message[256];
        snprintf(line, sizeof line, "ATTEND_MODELS=lm $A translate -m %s in", models[i]);
        snprintf(message, sizeof message, "attend: %s is a language model: attend chat\n", models[i]);
        assert_refused(line, 1, message);
    }
    assert_refused("ATTEND_MODELS=lm $A embed -m nix in", 1, "available are: class, gguf");
    assert_refused("ATTEND_MODELS=lm $A embed -m gguf in", 1, "attend: gguf is a language model: attend chat\n");
    /* A folder may be a sentence model, too. */
    assert_refused("ATTEND_MODELS=lm $A embed -m class in", 1, "config.json: there is no \"model_type\"");
}

/* By their type or, of timm's models, by their architecture */
static void vision_models_are_recognized(void **state)
{
    (void)state;
    static const char *const configs[] = {
        "\"model_type\": \"vit\"",        "\"model_type\": \"deit\"",
        "\"model_type\": \"dinov2\"",     "\"model_type\": \"dinov2_with_registers\"",
        "\"model_type\": \"attend-vit\"", "\"architecture\": \"vit_tiny_patch16_224\", \"num_classes\": 2"};
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        char line[256];
        snprintf(line, sizeof line, "mkdir -p eyes/eye; echo '{%s}' >eyes/eye/config.json", configs[i]);
        assert_int_equal(tool(line), 0);
        assert_refused("ATTEND_MODELS=eyes $A translate -m eye in", 1,
                       "attend: eye is a vision model: attend classify\n");
    }
    assert_refused("ATTEND_MODELS=eyes $A embed in", 2, "no sentence model is in the models folder");
    assert_refused("ATTEND_MODELS=eyes $A classify -m ey in.png", 1, "available are: eye");
}

/* As models--NAME/snapshots/REVISION of Hugging Face's cache */
static void a_folder_whose_subfolder_has_the_model_is_refused_with_its_name(void **state)
{
    (void)state;
    assert_int_equal(tool("mkdir -p outer/snapshots/a1 outer/blobs outer/empty/er && cp -r $D/*.json $D/1_* $D/*.txt "
                          "$D/*.safetensors outer/snapshots/a1"),
                     0);
    static const char *const commands[] = {"embed --text a", "rerank -c in a", "info", "translate",
                                           "classify --text a"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        char line[128];
        snprintf(line, sizeof line, "echo a >in; $A %s -m outer <in", commands[i]);
        assert_refused(line, 1, "outer has no model, but its folder outer/snapshots/a1 has one");
    }
    assert_refused("$A embed --text a -m outer/empty", 1,
                   "outer/empty: is not the folder of a sentence model: there is neither");
    assert_int_equal(tool("$A embed --text a -m outer/snapshots/a1"), 0);
}

/* In the cache of the Hugging Face Hub, as huggingface_hub lays it out: files are links to blobs. */
static void a_name_of_the_hub_is_a_model_of_every_command(void **state)
{
    (void)state;
    assert_int_equal(
        tool("snapshot() { at=hub/models--$1/snapshots/0a; shift; mkdir -p $at $at/../../refs $at/../../blobs "
             "&& cp -r $@ $at && printf 0a >$at/../../refs/main && (cd $at && for f in *.*; do "
             "mv $f ../../blobs && ln -s ../../blobs/$f .; done); } && snapshot ann--first $D/*.json $D/1_* "
             "$D/*.txt $D/*.safetensors && snapshot bob--de-en $T/* && echo a b >in"),
        0);
    setenv("HF_HUB_CACHE", "hub", 1);
    assert_int_equal(tool("$A embed -m $D in >1 && $A embed -m ann/first in >2 && cmp 1 2 && $A embed -m ann/first@0a "
                          "in >2 && cmp 1 2 && $A search -m ann/first -c in a && $A info -m ann/first"),
                     0);
    assert_has(tool_out, "ann/first");
    assert_int_equal(tool("$A translate -m $T in >1 && $A translate -m bob/de-en in >2 && cmp 1 2"), 0);
    assert_refused("$A embed -m bob/de-en in", 1, "attend: bob/de-en is a translator: attend translate\n");
    assert_refused("ATTEND_MODELS=none $A embed -m ann/other in", 1,
                   "attend: \"ann/other\" is not in the cache of the Hugging Face Hub, hub: attend fetch ann/other "
                   "(or hf download ann/other) puts it there; nor is it a folder, or a model in none\n");
    assert_int_equal(tool("rm hub/models--ann--first/blobs/model.safetensors"), 0);
    assert_refused("$A embed -m ann/first in", 1,
                   "is in the cache of the Hugging Face Hub, hub, but without all of its weights (.safetensors or "
                   ".gguf): attend fetch ann/first (or hf download ann/first) gets them");
    unsetenv("HF_HUB_CACHE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_only_sentence_model_needs_no_name),
        cmocka_unit_test(where_there_is_none_the_command_that_downloads_one_is_named),
        cmocka_unit_test(a_model_of_another_kind_is_refused_with_its_command),
        cmocka_unit_test(language_models_are_recognized),
        cmocka_unit_test(vision_models_are_recognized),
        cmocka_unit_test(a_folder_whose_subfolder_has_the_model_is_refused_with_its_name),
        cmocka_unit_test(a_name_of_the_hub_is_a_model_of_every_command),
    };
    return cmocka_run_group_tests(tests, names_setup, tool_teardown);
}
