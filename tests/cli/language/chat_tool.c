/* attend chat: conversations, commands, what the state saves, a terminal. */
#include "fixtures/tool.h"

#include <poll.h>
#include <pty.h>
#include <unistd.h>

/* The tiny language model with a chat template as $L: its tokens are the letters a to t, so of a template that writes
 * "[INST] " and " [/INST]" it has none, and a conversation is its messages; it has 32 positions. */
static int set_up(void **state)
{
    char path[4096];
    if (tool_setup(state) || !realpath("tests/golden/tiny_llama", path))
        return 1;
    setenv("T", path, 1);
    unsetenv("ATTEND_LANGUAGE_MODEL");
    if (!realpath("tests/golden/chat", path))
        return 1;
    setenv("J", path, 1);
    snprintf(path, sizeof path, "%s/chat", tool_model.path);
    setenv("L", path, 1);
    return tool("mkdir chat && cp $T/* chat && cp $J/mistral-nemo.jinja chat/chat_template.jinja");
}

static void assert_prints(const char *line, const char *text)
{
    const int code = tool(line);
    if (code || strcmp(tool_out, text) != 0)
        fail_msg("%s: exit code %d, \"%s\", not \"%s\": %s", line, code, tool_out, text, tool_err);
}

/* Among other messages there is this one. */
static void assert_fails(const char *line, int code, const char *sentence)
{
    const int is = tool(line);
    if (is != code)
        fail_msg("%s: exit code %d, not %d: %s", line, is, code, tool_err);
    assert_has(tool_err, sentence);
}

static void answers_continue_the_whole_conversation(void **state)
{
    (void)state;
    assert_prints("$A generate -m $L -n 6 bdcab; $A generate -m $L -n 6 bdcaboeqegst", "oeqegs\nihoegs\n");
    assert_prints("printf 'bdcab\\nt\\n' | $A chat -m $L -n 6", "oeqegs\nihoegs\n");
    assert_has(tool_err, "the answer ends after --max-tokens 6");
    assert_prints("printf 'bdcab\\r\\n\\nt' | ATTEND_LANGUAGE_MODEL=$L $A chat -n 6", "oeqegs\nihoegs\n");
    assert_prints("printf 'bdcab\\n/reset\\nbdcab\\n/quit\\nbdcab\\n' | $A chat -m $L -n 6", "oeqegs\noeqegs\n");
    assert_prints("$A chat -m $L </dev/null", "");
    assert_prints("printf '/etc/passwd\\n /reset\\n' | $A chat -m $L -n 1 | wc -l", "2\n");
}

static void the_state_is_used_again(void **state)
{
    (void)state;
    static const int64_t want[4][3] = {{5, 0, 6}, {12, 10, 6}, {5, 4, 6}, {6, 0, 6}};
    assert_int_equal(
        tool("printf 'bdcab\\nt\\n/reset\\nbdcab\\n/reset\\n/system e\\nbdcab' | $A chat -m $L -n 6 --json"), 0);
    for (int i = 0; i < 4; i++) {
        json_t *v = line_json(i);
        assert_string_equal(json_string_value(json_object_get(v, "role")), "assistant");
        assert_string_equal(json_string_value(json_object_get(v, "end")), "length");
        assert_int_equal(number(v, "prompt_tokens"), want[i][0]);
        assert_int_equal(number(v, "cached_tokens"), want[i][1]);
        assert_int_equal(number(v, "completion_tokens"), want[i][2]);
        if (i == 1)
            assert_string_equal(json_string_value(json_object_get(v, "content")), "ihoegs");
        json_decref(v);
    }
    assert_int_equal(count(tool_out, "\n"), 4);
}

static void penalties_biases_and_the_most_probable_tokens_are_options(void **state)
{
    (void)state;
    assert_int_equal(tool("for o in '--presence-penalty 2' '--frequency-penalty 2' '--logit-bias 4=-inf'; do "
                          "$A generate -m $L -n 20 $o bdcab >1; echo bdcab | $A chat -m $L -n 20 $o >2; cmp 1 2 || "
                          "exit 1; done"),
                     0);
    assert_int_equal(tool("echo bdcab | $A chat -m $L -n 6 --json --top-logprobs 3"), 0);
    json_t *v = line_json(0), *tokens = json_object_get(v, "tokens");
    assert_int_equal(json_array_size(tokens), 6);
    assert_int_equal(number(json_array_get(tokens, 0), "id"), 14);
    assert_int_equal(json_array_size(json_object_get(json_array_get(tokens, 5), "top_logprobs")), 3);
    json_decref(v);
}

static void the_system_message_is_set_and_removed(void **state)
{
    (void)state;
    char both[64];
    assert_int_equal(tool("$A generate -m $L -n 3 ebdcab; $A generate -m $L -n 3 bdcab"), 0);
    assert_true(strlen(tool_out) < sizeof both);
    memcpy(both, tool_out, strlen(tool_out) + 1);
    assert_prints(
        "{ printf 'bdcab\\n' | $A chat -m $L -n 3 --system e; printf '/system e\\n/system\\nbdcab\\n' | $A chat "
        "-m $L -n 3; }",
        both);
    assert_prints("printf '/system e\\nbdcab\\n/save s.json\\n' | $A chat -m $L -n 2 >answer; cat s.json",
                  "[\n  {\"role\": \"system\", \"content\": \"e\"},\n  {\"role\": \"user\", \"content\": \"bdcab\"},\n"
                  "  {\"role\": \"assistant\", \"content\": \"oe\"}\n]\n");
    assert_fails("$A chat -m $L --template gemma --system e", 1, "the chat template gemma has no system message");
    assert_fails("printf '/system e\\n/system f\\n' | $A chat -m $L --template gemma", 1,
                 "the chat template gemma has no system message");
    assert_int_equal(count(tool_err, "attend:"), 2);
}

static void an_error_does_not_end_the_chat(void **state)
{
    (void)state;
    assert_fails("printf 'bdcab\\nabcdefghijklmnopqrstabcdefghij\\nt\\n' | $A chat -m $L -n 6", 1,
                 "the conversation has 41 tokens, but the model has 32 positions: /reset begins a new one");
    assert_string_equal(tool_out, "oeqegs\nihoegs\n");
    assert_fails("printf '/nope\\n/save\\n/save no/where\\n/reset now\\n/help\\n' | $A chat -m $L", 1,
                 "there is no command /nope; /help lists them, and a space before it makes it a message");
    assert_has(tool_err, "/save FILE: which file?");
    assert_has(tool_err, "no/where: No such file");
    assert_has(tool_err, "/reset takes nothing after it, but here is \"now\"");
    assert_has(tool_err, "  /system TEXT   set the system message; without TEXT remove it\n");
    assert_int_equal(tool("printf 'bdcab\\n' | $A chat -m $L -n 0"), 0);
    assert_has(tool_err,
               "the answer ends where the conversation has the model's 32 positions: /reset begins a new one");
}

static void wrong_usage_is_refused(void **state)
{
    (void)state;
    assert_fails("$A chat -m $T </dev/null", 1,
                 "the model has no chat template, as models that were not trained for chat");
    assert_fails(
        "mkdir u; cp $T/* u; echo '{{ x }}' >u/chat_template.jinja; $A chat -m u </dev/null", 1,
        "this chat template is not one of those that attend knows; --template NAME chooses one of them: chatml, ");
    assert_fails("$A chat -m $L --template alpaca </dev/null", 1,
                 "\"alpaca\" is not a chat template that attend knows");
    assert_fails("$A chat -m $D </dev/null", 1, "sentence model");
    assert_fails("$A chat -m $L hello", 2, "hello");
    assert_fails("$A chat -m $L --top-logprobs 3 </dev/null", 2, "--top-logprobs is for --json");
    assert_fails("$A chat -m $L --logit-bias 3 </dev/null", 2, "\"3\" is not ID=X");
    assert_fails("$A chat -m $L --seed 3 </dev/null", 2, "--seed 3 is for random tokens");
    assert_fails("printf 'bdcab\\n' | $A chat -m $L -n 6 >/dev/full", 1, "standard output: No space left");
    assert_prints("printf 'bdcab\\n' | $A chat -m $L --temperature 1 --top-k 1 -n 6", "oeqegs\n");
    assert_has(tool_err, "sampling with --temperature 1 --top-k 1 ");
    assert_prints("printf 'bdcab\\n' | $A chat -m $T --template mistral-tekken -n 6", "oeqegs\n");
}

/* ---- on a terminal */

static char screen[1 << 14]; /* what the terminal has shown so far */

/* Reads until the terminal has shown `text`. */
static void wait_for(int terminal, const char *text)
{
    size_t n = strlen(screen);
    while (!strstr(screen, text)) {
        struct pollfd ready = {.fd = terminal, .events = POLLIN};
        if (poll(&ready, 1, 10000) != 1)
            fail_msg("the terminal shows no \"%s\" in 10 s: %s", text, screen);
        const ssize_t more = read(terminal, screen + n, sizeof screen - 1 - n);
        if (more <= 0)
            fail_msg("the terminal shows no \"%s\": %s", text, screen);
        screen[n += (size_t)more] = '\0';
    }
    memmove(screen, strstr(screen, text) + strlen(text), strlen(strstr(screen, text) + strlen(text)) + 1);
}

static void on_a_terminal_there_is_a_prompt(void **state)
{
    (void)state;
    int terminal, status;
    const pid_t pid = forkpty(&terminal, NULL, NULL, NULL);
    assert_true(pid >= 0);
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", "exec $A chat -m $L -n 6", (char *)NULL);
        _exit(127);
    }
    screen[0] = '\0';
    wait_for(terminal, "chat template mistral-tekken; /help lists commands, /quit or Ctrl-D ends");
    wait_for(terminal, "> ");
    assert_int_equal(write(terminal, "bdcab\n", 6), 6);
    wait_for(terminal, "oeqegs\r\n");
    wait_for(terminal, "> ");
    assert_int_equal(write(terminal, "half\x03", 5), 5);
    wait_for(terminal, "(/quit or Ctrl-D ends the chat)\r\n> ");
    assert_int_equal(write(terminal, "/nope\nt\n", 8), 8);
    wait_for(terminal, "there is no command /nope");
    wait_for(terminal, "ihoegs\r\n");
    wait_for(terminal, "> ");
    assert_int_equal(write(terminal, "\x04", 1), 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(terminal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_continue_the_whole_conversation),
        cmocka_unit_test(the_state_is_used_again),
        cmocka_unit_test(penalties_biases_and_the_most_probable_tokens_are_options),
        cmocka_unit_test(the_system_message_is_set_and_removed),
        cmocka_unit_test(an_error_does_not_end_the_chat),
        cmocka_unit_test(wrong_usage_is_refused),
        cmocka_unit_test(on_a_terminal_there_is_a_prompt),
    };
    return cmocka_run_group_tests(tests, set_up, tool_teardown);
}
