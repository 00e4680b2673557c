/* Runs the tool as a user does, from a shell. */
#ifndef TOOL_H
#define TOOL_H

#include "real_files.h"
#include "tiny_bert.h"

#include <fcntl.h>
#include <jansson.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* What the last command left. */
static char tool_out[1 << 20], tool_err[1 << 14]; /* zero-terminated */
static size_t tool_bytes;                         /* of tool_out, before it was cut to fit */
static long tool_peak;                            /* KiB of memory, of the largest process in it */

static test_folder tool_model; /* a tiny model, in whose folder tests put their files as well */

static inline size_t tool_read(const char *path, char *text, size_t size)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(text, 1, size - 1, f), all = n;
    text[n] = '\0';
    for (int c; (c = getc(f)) != EOF;)
        all++;
    fclose(f);
    return all;
}

/* The exit code of a command line in which $A is the tool; it runs in $D, the folder of the tiny model. */
static inline int tool(const char *line)
{
    char out[128], err[128];
    snprintf(out, sizeof out, "%s.out", tool_model.path);
    snprintf(err, sizeof err, "%s.err", tool_model.path);
    pid_t pid = fork();
    if (pid == 0) {
        int o = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600), e = open(err, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (o < 0 || e < 0 || dup2(o, 1) < 0 || dup2(e, 2) < 0 || chdir(tool_model.path))
            _exit(126);
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    int status;
    struct rusage usage;
    assert_true(pid > 0);
    assert_int_equal(wait4(pid, &status, 0, &usage), pid);
    tool_peak = usage.ru_maxrss;
    tool_bytes = tool_read(out, tool_out, sizeof tool_out);
    tool_read(err, tool_err, sizeof tool_err);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Prints the log of a training without the time that it took, which may differ. */
#define WITHOUT_SECONDS "sed 's/\"seconds\": [0-9.]*, //' "
/* Compares two of them. */
#define SAME_LOG(a, b) "{ " WITHOUT_SECONDS a " >log.1 && " WITHOUT_SECONDS b " | diff log.1 -; } "

static inline int count(const char *text, const char *part)
{
    int n = 0;
    for (const char *p = text; (p = strstr(p, part)); p += strlen(part))
        n++;
    return n;
}

static inline void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in: %s", part, text);
}

/* Line `i` of the last command's output as JSON. */
static inline json_t *line_json(int i)
{
    const char *p = tool_out;
    for (; i > 0; i--)
        p = strchr(p, '\n') + 1;
    json_t *v = json_loadb(p, strcspn(p, "\n"), JSON_ALLOW_NUL, NULL);
    if (!v)
        fail_msg("no JSON: %.200s", p);
    return v;
}

static inline double number(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);
    assert_true(json_is_number(v));
    return json_number_value(v);
}

/* The real model's folder as $M, or the test is skipped. */
static inline void need_model(void) { setenv("M", model_folder("all-MiniLM-L6-v2"), 1); }

/* A command that writes small.json, the configuration of a translator whose steps take no time. */
#define SMALL_TRANSLATOR                                                                                               \
    "echo '{\"d_model\": 8, \"encoder_layers\": 1, \"decoder_layers\": 1, \"encoder_attention_heads\": 1, "            \
    "\"decoder_attention_heads\": 1, \"encoder_ffn_dim\": 8, \"decoder_ffn_dim\": 8}' >small.json"

/* Wrong usage or bad data: this code, nothing but one sentence that has this part. */
static inline void assert_refused(const char *line, int code, const char *part)
{
    int found = tool(line);
    if (found != code)
        fail_msg("%s: exit code %d, but must be %d: %s", line, found, code, tool_err);
    assert_has(tool_err, part);
    assert_int_equal(count(tool_err, "\n"), 1);
    assert_int_equal(strncmp(tool_err, "attend: ", 8), 0);
}

static inline int tool_setup(void **state)
{
    (void)state;
    setenv("A", ATTEND_TOOL, 1);
    setenv("LC_ALL", "C", 1);
    unsetenv("ATTEND_MODEL");
    unsetenv("ATTEND_THREADS");
    tool_model = tiny_sentence();
    setenv("D", tool_model.path, 1);
    return 0;
}

static inline int tool_teardown(void **state)
{
    (void)state;
    char path[128];
    snprintf(path, sizeof path, "%s.out", tool_model.path);
    unlink(path);
    snprintf(path, sizeof path, "%s.err", tool_model.path);
    unlink(path);
    folder_remove(&tool_model);
    return 0;
}

#endif
