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
    return tool("mkdir chat && cp $T/* chat && cp $J/mistral-nemo.jinja chat/chat_template.jinja && "
                "echo '{\"eos_token\": \"</>\"}' >chat/tokenizer_config.json");
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
    assert_fails("$A chat -m $L --template $J/gemma.jinja --system e", 1,
                 "gemma.jinja: the chat template refuses the conversation: System role not supported");
    assert_fails("printf '/system e\\n/system f\\n' | $A chat -m $L --template $J/gemma.jinja", 1,
                 "System role not supported");
    assert_int_equal(count(tool_err, "attend:"), 2);
    assert_fails("printf '/load s.json\n/system e\n' | $A chat -m $L --template $J/phi3-128k.jinja", 1,
                 "phi3-128k.jinja leaves system messages out");
    assert_int_equal(count(tool_err, "leaves system messages out"), 2);
}

static void an_error_does_not_end_the_chat(void **state)
{
    (void)state;
    assert_fails("printf 'bdcab\\nabcdefghijklmnopqrstabcdefghij\\nt\\n' | $A chat -m $L -n 6", 1,
                 "the conversation has 41 tokens, but the model has 32 positions: /reset begins a new one, and with "
                 "--drop-oldest the oldest messages are left out");
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

static void messages_are_removed_answered_again_and_read(void **state)
{
    (void)state;
    assert_prints("printf 'bdcab\\n/undo\\nbdcab\\nt\\n/retry\\n' | $A chat -m $L -n 6",
                  "oeqegs\noeqegs\nihoegs\nihoegs\n");
    assert_prints("printf 'bdcab\\n/save c.json\\n' | $A chat -m $L -n 6; printf '/load c.json\\nt\\n' | "
                  "$A chat -m $L -n 6; echo t | $A chat -m $L -n 6 --load c.json",
                  "oeqegs\nihoegs\nihoegs\n");
    assert_prints("printf '{\"messages\": [{\"role\": \"user\", \"content\": \"bdcab\"}]}' >m.json; "
                  "printf '/load m.json\\n/retry\\n' | $A chat -m $L -n 6",
                  "oeqegs\n");
    assert_has(tool_err, "m.json: the last message has no answer; /retry generates one");
    /* At a temperature of 1 an answer is drawn again, by the seed alone. */
    assert_int_equal(tool("for i in 1 2; do printf 'bdcab\\n/retry\\n/retry\\n/retry\\n' | $A chat -m $L -n 6 "
                          "-T 1 --seed 1 >$i; done; cmp 1 2 && [ $(sort -u 1 | wc -l) -gt 1 ]"),
                     0);
    assert_fails("printf '/undo\\n/retry\\n' | $A chat -m $L", 1, "there is no message to undo");
    assert_has(tool_err, "there is no message to answer");
    assert_fails("printf '/load\\n/load nix\\n' | $A chat -m $L", 1, "/load FILE: which file?");
    assert_has(tool_err, "nix: No such file");
}

static void a_file_that_is_not_a_conversation_changes_nothing(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"[", ":1: "},
        {"{}", "this is not a list of messages"},
        {"[]", "this is not a list of messages"},
        {"[{\"role\": \"robot\", \"content\": \"a\"}]", "the \"role\" of message 1 is not system, developer, user"},
        {"[{\"role\": \"user\", \"content\": [{\"type\": \"image_url\"}]}]",
         "message 1 has a part of type \"image_url\", which is not supported; \"text\" is"},
        {"[{\"role\": \"user\", \"content\": [{\"type\": \"text\"}]}]", "a part of message 1 has no \"text\""},
        {"[{\"role\": \"user\"}]", "the \"content\" of message 1 is not a text"},
        {"[{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"user\", \"content\": \"a\"}]", "alternate"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char line[512];
        snprintf(line, sizeof line, "printf '%s' >w.json; printf 'bdcab\\n/load w.json\\nt\\n' | $A chat -m $L -n 6",
                 wrong[i][0]);
        assert_fails(line, 1, wrong[i][1]);
        assert_string_equal(tool_out, "oeqegs\nihoegs\n");
        snprintf(line, sizeof line, "$A chat -m $L --load w.json </dev/null");
        assert_fails(line, 1, wrong[i][1]);
    }
}

/* A template that writes letters of messages, calls, tools and documents, and no other */
static void tools_documents_and_calls_reach_the_template(void **state)
{
    (void)state;
    assert_int_equal(
        tool("cat >own.jinja <<'END'\n"
             "{%- if tools %}{{ tools[0].name }}{% endif %}{% if documents %}{{ documents[0].text }}{% endif %}\n"
             "{%- if x %}{{ x }}{% endif %}{% for m in messages %}{{ m.content or '' }}\n"
             "{%- for c in m.tool_calls or [] %}{{ c.function.arguments.a }}{% endfor %}{% endfor %}\n"
             "END\n"
             "echo '[{\"name\": \"e\"}]' >tools; echo '[{\"text\": \"f\"}]' >documents"),
        0);
    assert_prints(
        "$A generate -m $L -n 6 efgbdcab >1; echo bdcab | $A chat -m $L -n 6 --template own.jinja --tools tools "
        "--documents documents --template-variables '{\"x\": \"g\"}' | cmp - 1",
        "");
    assert_int_equal(
        tool("cat >calls <<'END'\n"
             "[{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"bd\"}, {\"type\": \"text\", "
             "\"text\": \"cab\"}]}, {\"role\": \"assistant\", \"tool_calls\": [{\"function\": {\"arguments\": "
             "\"{\\\"a\\\": \\\"t\\\"}\"}}]}, {\"role\": \"tool\", \"content\": \"h\", \"tool_call_id\": \"1\"}]\n"
             "END\n"),
        0);
    assert_prints(
        "$A generate -m $L -n 6 bdcabth >1; printf '/retry\n/save saved\n/undo\n' | "
        "$A chat -m $L -n 6 --template own.jinja --load calls | cmp - 1; sed -n '3,4p' saved",
        "  {\"role\": \"assistant\", \"tool_calls\": [{\"function\": {\"arguments\": {\"a\": \"t\"}}}], \"content\": "
        "null},\n  {\"role\": \"tool\", \"content\": \"h\", \"tool_call_id\": \"1\"},\n");
    assert_prints("printf '/load saved\n/retry\n' | $A chat -m $L -n 6 --template own.jinja | cmp - 1", "");
    static const char *const wrong[][2] = {
        {"--tools nix", "nix: No such file"},
        {"--tools saved --documents calls --template chatml", "the chat template chatml leaves --tools out"},
        {"--documents documents --template chatml", "the chat template chatml leaves --documents out"},
        {"--tools own.jinja", "own.jinja:1: "},
        {"--documents empty", "empty: this is not a JSON list with an object for each of the documents"},
    };
    assert_int_equal(tool("echo '[1]' >empty"), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char line[200];
        snprintf(line, sizeof line, "$A chat -m $L %s </dev/null", wrong[i][0]);
        assert_fails(line, 1, wrong[i][1]);
    }
    assert_fails("$A chat -m $L --template-variables '[1]' </dev/null", 2, "--template-variables is not a JSON object");
}

static void the_oldest_messages_are_dropped_if_asked_for(void **state)
{
    (void)state;
    static const char messages[] = "printf 'bdcab\\nt\\nbdcab\\nbdcab\\n/save kept.json\\n' >full; ";
    char line[300];
    snprintf(line, sizeof line, "%s$A chat -m $L -n 6 <full", messages);
    assert_fails(line, 1, "the conversation has 34 tokens, but the model has 32 positions");
    assert_int_equal(tool("$A chat -m $L -n 6 --drop-oldest <full >answers && tail -n 1 answers >last && "
                          "$A generate -m $L -n 6 tihoegsbdcab$(sed -n 3p answers)bdcab | cmp - last"),
                     0);
    assert_has(tool_err, "the 2 oldest messages are left out, as the conversation fills the model's 32 positions");
    assert_int_equal(tool("grep -c role kept.json; sed -n 2p kept.json"), 0);
    assert_string_equal(tool_out, "6\n  {\"role\": \"user\", \"content\": \"t\"},\n");
    /* the system message stays; an answer that was cut off can be given again in full */
    assert_int_equal(tool("printf 'bdcab\\nbdcab\\n/retry\\n/save kept.json\\n' | $A chat -m $L -n 0 "
                          "--drop-oldest --system e; grep -c role kept.json; sed -n 2p kept.json"),
                     0);
    assert_has(tool_out, "3\n  {\"role\": \"system\", \"content\": \"e\"},\n");
    assert_fails("echo abcdefghijklmnopqrstabcdefghijklmnop | $A chat -m $L --drop-oldest", 1,
                 "the conversation has 36 tokens");
}

static void answers_have_stop_strings_a_system_file_and_figures(void **state)
{
    (void)state;
    assert_prints("echo bdcab | $A chat -m $L -n 6 --stop g --stop xyz", "oeqe\n");
    assert_prints("echo bdcab | $A chat -m $L -n 6 --lookup 4", "oeqegs\n");
    assert_prints("echo e >system; echo bdcab | $A chat -m $L -n 6 --system-file system >1; "
                  "echo bdcab | $A chat -m $L -n 6 --system e | cmp - 1",
                  "");
    assert_prints("echo bdcab | $A chat -m $L -n 6 --stats", "oeqegs\n");
    assert_has(tool_err, "prompt of 5 tokens, 0 of them cached; first token after ");
    assert_int_equal(tool("echo bdcab | $A chat -m $L -n 6 --stats --json"), 0);
    assert_has(tool_out, "\"seconds_to_first_token\": ");
    assert_has(tool_out, "\"tokens_per_second\": ");
    assert_fails("$A chat -m $L --system e --system-file system </dev/null", 2,
                 "--system and --system-file are given, not one of them");
    assert_fails("$A chat -m $L --stop '' </dev/null", 2, "--stop is empty");
    assert_fails("$A chat -m $L --system-file nix </dev/null", 1, "nix: No such file");
}

static void wrong_usage_is_refused(void **state)
{
    (void)state;
    assert_fails("$A chat -m $T </dev/null", 1,
                 "the model has no chat template, as models that were not trained for chat");
    assert_fails("mkdir u; cp $T/* u; echo '{{ x' >u/chat_template.jinja; $A chat -m u </dev/null", 1,
                 "u/chat_template.jinja: chat template, line 1: a tag has no end");
    assert_prints("cp $L/chat_template.jinja own.jinja; echo '{# of my own #}{% set x = 1 %}' >>own.jinja; "
                  "printf 'bdcab\\n' | $A chat -m $T --template own.jinja -n 6",
                  "oeqegs\n");
    assert_fails("$A chat -m $L --template no.jinja </dev/null", 1, "no.jinja: No such file");
    assert_fails("$A chat -m $L --template alpaca </dev/null", 1,
                 ", or one that comes with attend, which are: chatml, gemma, ");
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

/* Starts a chat on a terminal of this kind ($TERM). */
static pid_t start_on_terminal(int *terminal, const char *kind)
{
    const pid_t pid = forkpty(terminal, NULL, NULL, NULL);
    assert_true(pid >= 0);
    if (pid == 0) {
        setenv("TERM", kind, 1);
        if (chdir(tool_model.path))
            _exit(127);
        execl("/bin/sh", "sh", "-c", "exec $A chat -m $L -n 6", (char *)NULL);
        _exit(127);
    }
    screen[0] = '\0';
    wait_for(*terminal, "each token is the most probable one; --sample, --temperature and others");
    wait_for(*terminal, "chat template chat_template.jinja; /help lists commands, /quit or Ctrl-D ends");
    wait_for(*terminal, "> ");
    return pid;
}

static void type(int terminal, const char *keys)
{
    assert_int_equal(write(terminal, keys, strlen(keys)), strlen(keys));
}

static void end_by_control_d(int terminal, pid_t pid)
{
    int status;
    type(terminal, "\x04");
    for (ssize_t more = 1; more > 0;) { /* until no process has the terminal */
        struct pollfd ready = {.fd = terminal, .events = POLLIN};
        if (poll(&ready, 1, 10000) != 1)
            fail_msg("Ctrl-D does not end the chat in 10 s");
        more = read(terminal, screen, sizeof screen);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(terminal);
}

static void on_a_terminal_there_is_a_prompt(void **state)
{
    (void)state;
    int terminal;
    const pid_t pid = start_on_terminal(&terminal, "dumb");
    type(terminal, "bdcab\n");
    wait_for(terminal, "oeqegs\r\n");
    wait_for(terminal, "> ");
    type(terminal, "half\x03");
    wait_for(terminal, "(/quit or Ctrl-D ends the chat)\r\n> ");
    type(terminal, "/nope\nt\n");
    wait_for(terminal, "there is no command /nope");
    wait_for(terminal, "ihoegs\r\n");
    wait_for(terminal, "> ");
    for (int i = 0; i < 50; i++)
        type(terminal, "bdcabbdcabbdcabbdcabbdcabbdcabbdcabbdcabbdcabbdcabbdcabbdcabbdcabbdcabbdcabbdcabbdcabbdcab");
    type(terminal, "\n");
    wait_for(terminal, "the terminal cuts lines after 4095 bytes, so this one is not used");
    wait_for(terminal, "> ");
    type(terminal, "bdcab\n"); /* 24 tokens with what was said */
    wait_for(terminal, "> ");
    type(terminal, "bdcab\n");
    wait_for(terminal, "without its 2 oldest messages it continues");
    wait_for(terminal, "leave them out? [y/n] ");
    type(terminal, "n\n");
    wait_for(terminal, "the conversation has 34 tokens");
    wait_for(terminal, "> ");
    type(terminal, "bdcab\n");
    wait_for(terminal, "leave them out? [y/n] ");
    type(terminal, "y\n");
    wait_for(terminal, "> ");
    end_by_control_d(terminal, pid);
}

static void lines_are_edited_and_pasted_as_a_whole(void **state)
{
    (void)state;
#ifndef ATT_LIBEDIT
    skip();
#endif
    int terminal;
    const pid_t pid = start_on_terminal(&terminal, "xterm");
    type(terminal, "dcax\177b\001b\r"); /* Backspace; Ctrl-A goes to the beginning */
    wait_for(terminal, "oeqegs\r\n");
    wait_for(terminal, "> ");
    type(terminal, "half\x03");
    wait_for(terminal, "(/quit or Ctrl-D ends the chat)\r\n");
    wait_for(terminal, "> ");
    type(terminal, "/reset\r");
    wait_for(terminal, "> ");
    type(terminal, "\033[A\033[A\r"); /* twice Up: the message */
    wait_for(terminal, "oeqegs\r\n");
    wait_for(terminal, "> ");
    type(terminal, "/reset\r");
    wait_for(terminal, "> ");
    type(terminal, "\033[200~bdcab\rt\xE6\x97\xA5\377\033[201~\r");
    wait_for(terminal, "the answer ends after --max-tokens 6");
    wait_for(terminal, "> ");
    type(terminal, "/save pasted.json\r");
    wait_for(terminal, "> ");
    type(terminal, "/reset\r");
    wait_for(terminal, "> ");
    for (int i = 0; i < 100; i++)
        type(terminal, "bdcabbdcabbdcabbdcabbdcabbdcabbdcabbdcabbdcabbdcab");
    type(terminal, "\r");
    wait_for(terminal, "the conversation has 5000 tokens");
    wait_for(terminal, "> ");
    end_by_control_d(terminal, pid);
    assert_int_equal(tool("sed -n 2p pasted.json"), 0);
    assert_has(tool_out, "{\"role\": \"user\", \"content\": \"bdcab\\u000at\xE6\x97\xA5\xEF\xBF\xBD\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_continue_the_whole_conversation),
        cmocka_unit_test(the_state_is_used_again),
        cmocka_unit_test(penalties_biases_and_the_most_probable_tokens_are_options),
        cmocka_unit_test(the_system_message_is_set_and_removed),
        cmocka_unit_test(an_error_does_not_end_the_chat),
        cmocka_unit_test(messages_are_removed_answered_again_and_read),
        cmocka_unit_test(a_file_that_is_not_a_conversation_changes_nothing),
        cmocka_unit_test(tools_documents_and_calls_reach_the_template),
        cmocka_unit_test(the_oldest_messages_are_dropped_if_asked_for),
        cmocka_unit_test(answers_have_stop_strings_a_system_file_and_figures),
        cmocka_unit_test(wrong_usage_is_refused),
        cmocka_unit_test(on_a_terminal_there_is_a_prompt),
        cmocka_unit_test(lines_are_edited_and_pasted_as_a_whole),
    };
    return cmocka_run_group_tests(tests, set_up, tool_teardown);
}
