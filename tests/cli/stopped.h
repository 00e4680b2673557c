/* Trainings that are stopped: what all of them promise. */
#ifndef STOPPED_H
#define STOPPED_H

#include "check.h"
#include "tool.h"

/* Killed 20 times (each step-th of them), after `least` milliseconds and up to `more` further ones, a training
 * continues from its last checkpoint and ends with the bits of a calm one. `train` is its command, but for the folder.
 */
static inline void assert_kills_change_nothing(const char *train, int step, uint64_t seed, int least, int more)
{
    enum { KILLS = 20 };
    char go_on[1024], line[1152];
    snprintf(line, sizeof line, "%s -o calm", train);
    assert_int_equal(tool(line), 0);
    snprintf(go_on, sizeof go_on, /* from where it is, or from the beginning */
             "r=; ls killed/checkpoint-*.safetensors >/dev/null 2>&1 && r=--resume; %s -o killed $r ", train);
    for (int i = 0; i < KILLS; i += step) { /* in time to take some steps, or not; it may be done before */
        const int milliseconds = least + (int)(check_bits(seed, (uint64_t)i) % (uint64_t)more);
        snprintf(line, sizeof line, "%s& sleep 0.%03d; kill -KILL $! 2>/dev/null; wait $!", go_on, milliseconds);
        const int code = tool(line);
        if (code != 0 && code != 137)
            fail_msg("exit code %d: %s", code, tool_err);
    }
    assert_int_equal(tool(go_on), 0);
    assert_int_equal(tool("cmp calm/model.safetensors killed/model.safetensors"), 0);
}

/* Signals after the first checkpoint of a training that would go on: it leaves a model that works, and says how to go
 * on and how to use it. command: "translate", "embed" or "classify"; before and after it is what it reads. */
static inline void assert_interrupt_leaves_a_model(const char *train, const char *command, const char *before,
                                                   const char *after)
{
    static const struct {
        const char *name;
        int code;
    } signals[] = {{"TERM", 143}, {"INT", 130}, {"HUP", 129}};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        char line[1024];
        snprintf(line, sizeof line, /* sh ignores SIGINT in what runs in the background */
                 "rm -rf stopped; { while ! ls stopped/checkpoint-* >/dev/null 2>&1; do "
                 "sleep 0.05; done; kill -%s $$; } & exec %s -o stopped",
                 signals[i].name, train);
        const int code = tool(line);
        if (code != signals[i].code)
            fail_msg("exit code %d: %s", code, tool_err);
        const char *last = strstr(tool_err, "attend: stopped after step ");
        assert_non_null(last);
        snprintf(line, sizeof line,
                 "; attend train %s --resume -o stopped continues, attend %s -m stopped uses the model so far\n",
                 command, command);
        assert_has(last, line);
        assert_int_equal(count(last, "\n"), 1);
        snprintf(line, sizeof line, "%s $A %s -m stopped %s", before, command, after);
        assert_int_equal(tool(line), 0);
    }
}

#endif
