/* The input is what a hub answers: the list of a model's files up to a zero byte, then what its JSON files have. Names
 * that are accepted stay within a folder, and what is chosen of them is a list of files without repetition. */
#include "fuzz.h"

#include "cli/fetch/hub_choice.h"

#include <fcntl.h>
#include <sanitizer/common_interface_defs.h>

/* Refusals are printed to standard error, and files to choose from to standard output. */
static void set_quiet(bool quiet)
{
    static int null = -1, out = -1, error = -1;
    if (null < 0) {
        null = open("/dev/null", O_WRONLY);
        out = dup(STDOUT_FILENO);
        error = dup(STDERR_FILENO);
        __sanitizer_set_report_fd((void *)(intptr_t)error);
    }
    fflush(stdout);
    if (null < 0 || dup2(quiet ? null : out, STDOUT_FILENO) < 0 || dup2(quiet ? null : error, STDERR_FILENO) < 0)
        abort();
}

static int read_rest(void *rest, const hub_file *file, json_t **out)
{
    (void)file;
    *out = json_loads(rest, 0, NULL);
    return !*out;
}

static void check(const hub_listing *l, const hub_choice *c)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < c->n; i++) {
        fuzz_check(hub_is_path(c->file[i]->name), "a name leads elsewhere");
        fuzz_check(hub_listing_find(l, c->file[i]->name) != NULL, "a file is not in the list");
        for (size_t k = 0; k < i; k++)
            fuzz_check(c->file[i] != c->file[k], "a file is chosen twice");
        bytes += c->file[i]->bytes;
    }
    fuzz_check(bytes == c->bytes, "the sum of sizes is wrong");
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    hub_listing l;
    hub_choice c;
    char *text = malloc(size + 2);
    if (!text)
        abort();
    set_quiet(true);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = text[size + 1] = '\0';
    const size_t n = strlen(text);
    const hub_reader reader = {read_rest, text + n + 1 - (n == size)};
    if (!hub_listing_read(&l, text, n, "hub")) {
        if (!hub_choose(&c, &l, "a/b", &reader, size % 2))
            check(&l, &c);
        hub_choice_close(&c);
        for (size_t i = 0; i < l.n && i < 4; i++) {
            if (!hub_choose_gguf(&c, &l, "a/b", l.file[i].name))
                check(&l, &c);
            hub_choice_close(&c);
        }
    }
    set_quiet(false);
    hub_listing_close(&l);
    free(text);
    return 0;
}
