/* A type of vision models that is only in a row more of the table in src/vision/vit_config.c, with which the build
 * makes another tool: all commands find it. */
#include "fixtures/vision_tool.h"

/* $NEW: the classifier $V as one of type "new-vit"; $OLD: the tool as it is */
static int new_setup(void **state)
{
    assert_int_equal(tool_setup(state), 0);
    vision_setup();
    setenv("OLD", getenv("A"), 1);
    setenv("A", ATTEND_NEW_TYPE, 1);
    assert_int_equal(tool("mkdir only && cp -r $V only/eye && cp -r only/eye new && "
                          "sed -i 's/\"model_type\": \"vit\"/\"model_type\": \"new-vit\"/' new/config.json "
                          "only/eye/config.json && mkdir -p set/LABEL_0 set/LABEL_1 && cp dot.png set/LABEL_0 && cp "
                          "dot.png set/LABEL_1"),
                     0);
    return tool("grep -q new-vit new/config.json");
}

static void the_tool_without_the_row_does_not_know_it(void **state)
{
    (void)state;
    assert_refused("$OLD info -m new", 1, "new: its files do not tell what kind of model it is");
    assert_refused("$OLD classify -m new dot.png", 1,
                   "\"model_type\" is \"new-vit\", which is not supported; one of vit, deit, dinov2, "
                   "dinov2_with_registers and attend-vit is");
}

static void it_is_identified(void **state)
{
    (void)state;
    assert_int_equal(tool("$A info -m new"), 0);
    assert_has(tool_out, "\nkind                vision model\ntype                new-vit\n");
    assert_has(tool_out, "\nweights stored      f32 ");
    assert_int_equal(tool("ATTEND_MODELS=only $A info --json"), 0);
    assert_has(tool_out, "\"eye\"");
}

/* Each command prints the same for it as for the model as a "vit". */
static void commands_on_vision_models_use_it(void **state)
{
    (void)state;
    static const char *const commands[] = {"classify --json dot.png",
                                           "classify --json --dtype bf16 dot.png",
                                           "embed dot.png",
                                           "similarity dot.png dot.png",
                                           "search --corpus set/LABEL_0 dot.png",
                                           "attention --json dot.png",
                                           "evaluate classify --json --data set"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        char line[300];
        const char *command = commands[i], *option = strchr(command, ' ');
        if (!strncmp(command, "evaluate", 8))
            option = strchr(option + 1, ' ');
        const int words = (int)(option - command);
        snprintf(line, sizeof line, "$OLD %.*s -m $V %s | sed \"s|$V|M|g\" | " WITHOUT_SECONDS ">old && test -s old",
                 words, command, option);
        if (tool(line))
            fail_msg("%s: %s%s", line, tool_out, tool_err);
        snprintf(line, sizeof line,
                 "$A %.*s -m new %s | sed 's|\"new\"|\"M\"|g' | " WITHOUT_SECONDS ">new.out && cmp old new.out", words,
                 command, option);
        if (tool(line))
            fail_msg("%s: %s%s", line, tool_out, tool_err);
    }
}

static void other_commands_name_the_one_for_it(void **state)
{
    (void)state;
    static const char *const lines[] = {"$A translate -m new /dev/null", "$A chat -m new", "$A generate -m new a",
                                        "$A caption -m new dot.png", "$A recommend -m new --history a"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_refused(lines[i], 1, "attend: new is a vision model: attend classify\n");
    assert_refused("ATTEND_MODELS=only $A embed --text a", 2, "no sentence model is in the models folder");
    assert_refused("mkdir swin; echo '{\"model_type\": \"swin\"}' >swin/config.json; $A classify -m swin dot.png", 1,
                   "one of vit, new-vit, deit, dinov2, dinov2_with_registers and attend-vit is");
}

static void a_training_begins_with_it(void **state)
{
    (void)state;
    if (tool("$A train classify -m new --data set --valid-share 0 --epochs 1 -o trained && $A info -m trained"))
        fail_msg("%s", tool_err);
    assert_has(tool_out, "\nkind                vision model\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tool_without_the_row_does_not_know_it),
        cmocka_unit_test(it_is_identified),
        cmocka_unit_test(commands_on_vision_models_use_it),
        cmocka_unit_test(other_commands_name_the_one_for_it),
        cmocka_unit_test(a_training_begins_with_it),
    };
    return cmocka_run_group_tests(tests, new_setup, tool_teardown);
}
