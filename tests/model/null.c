/* One rule for NULL: each public function, as the headers declare them, with each pointer NULL in turn. */
// labels: forks
#include "fixtures/null.h"
#include "fixtures/write_files.h"

#include <ctype.h>

/* ---- what the headers declare, in tables that the build makes of them */

enum { MOST_PARAMETERS = 10 };
enum returns { STATUS, VARIABLE, POINTER, NUMBER, NOTHING };
enum passed { GIVEN, CALLBACK, VALUE }; /* a pointer, a pointer to a function, a number or struct */

struct result {
    att_status status;
    const volatile void *pointer;
    long long number;
};

struct function {
    const char *name;
    enum returns returns;
    void (*call)(void **argument, struct result *r);
    int n;
    struct {
        const char *type, *name;
        enum passed passed;
        bool or_null; /* by its comment */
    } parameter[MOST_PARAMETERS];
};

/* Of a struct, the members that are pointers; before them one without a name, `at` is the struct's size. */
struct member {
    const char *of, *name;
    size_t at;
    bool or_null;
};

#pragma GCC diagnostic ignored "-Wformat-security" /* att_fail is called with a format that is not a constant */
#include "prototypes.h"

/* ---- a call in a process of its own */

typedef struct outcome {
    bool ended, is_null;
    bool left; /* what should have been made is not NULL */
    att_status status;
    long long number;
    char sentence[1024];
} outcome;

static outcome *shared; /* by the process of a call */

static int set_up(void **state)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED ? -1 : make_fixtures(state);
}

static const fixture *find(const char *of)
{
    for (int i = 0; i < n_fixtures; i++)
        if (!strcmp(fixtures[i].of, of))
            return &fixtures[i];
    return NULL;
}

/* Is it where a constructor writes what it has made? */
static bool is_out(const char *type) { return strstr(type, "**") && !strncmp(type, "att_", 4); }

/* The argument in a place that C wants to be writable. */
static void *argument_of(const struct function *f, int i)
{
    char keys[3][160];
    const char *type = f->parameter[i].type, *name = f->parameter[i].name;
    static void *out[MOST_PARAMETERS]; /* for constructors */
    snprintf(keys[0], sizeof keys[0], "%s.%s", f->name, name);
    snprintf(keys[1], sizeof keys[1], "%s%s%s", type, type[strlen(type) - 1] == '*' ? "" : " ", name);
    snprintf(keys[2], sizeof keys[2], "%s", type);
    for (int k = 0; k < 3; k++) {
        const fixture *found = find(keys[k]);
        if (found)
            return (void *)(uintptr_t)found->value;
    }
    if (is_out(type)) {
        out[i] = out; /* to be overwritten */
        return &out[i];
    }
    fail_msg("tests/fixtures/null.h has nothing for %s of %s: \"%s\"", name, f->name, type);
    return NULL;
}

static void run(const struct function *f, void **argument)
{
    struct result r = {0};
    const bool on_tape = f->returns == VARIABLE;
    f->call(argument, &r);
    att_tensor x;
    if (on_tape && !r.pointer && argument[0])
        att_var_value(argument[0], NULL, &x);
    shared->status = r.status;
    shared->is_null = !r.pointer;
    shared->number = r.number;
    for (int i = 0; i < f->n; i++)
        shared->left |= is_out(f->parameter[i].type) && argument[i] && *(void **)argument[i];
    snprintf(shared->sentence, sizeof shared->sentence, "%s", att_error(NULL));
    shared->ended = true;
}

/* In a folder of its own, for at most a minute. */
static outcome call(const struct function *f, void **argument)
{
    *shared = (outcome){0};
    const test_folder folder = folder_new();
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60);
        signal(SIGSEGV, SIG_DFL); /* cmocka would continue with the next test */
        if (chdir(folder.path) == 0)
            run(f, argument);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (rmdir(folder.path))
        folder_remove(&folder);
    shared->ended &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
    return *shared;
}

static void take_arguments(const struct function *f, void **argument)
{
    for (int i = 0; i < f->n; i++)
        argument[i] = argument_of(f, i);
}

/* ---- the rule */

static int wrong;

static void complain(const struct function *f, const char *name, const outcome *o, const char *expected)
{
    wrong++;
    print_message("%s, %s: %s%s\"%s\", expected %s\n", f->name, name, o->ended ? "" : "crashed ",
                  f->returns == STATUS ? att_status_name(o->status) : "", o->sentence, expected);
}

/* A variable that is NULL is one that an operation before could not make, and the sentence is of that. */
static bool is_named(const struct function *f, int i)
{
    return (f->returns == STATUS || f->returns == VARIABLE) && strcmp(f->parameter[i].type, "att_var *") != 0;
}

/* What may be NULL or not as the rest of the call has it: it does not crash. */
static bool depends(const struct function *f, const char *name)
{
    static const char *const either[] = {"att_scope_end.keep",
                                         "att_scope_reset.keep",     /* which they return */
                                         "att_weights.sequence_ids", /* of dropout, which these do not do */
                                         "att_plan_describe.sequence_ids",
                                         "att_pair_describe.sequence_ids",
                                         "att_require.name",
                                         "att_require.pointer",
                                         "att_tape_require.name",
                                         "att_tape_require.pointer",
                                         "att_baseline_new.options",          /* of content, which has vectors */
                                         "att_nn_encoder_layer_apply.source", /* of a decoder */
                                         "att_nn_recurrent_apply.at",         /* of dropout between layers */
                                         "att_nn_recurrent_apply.sequence_ids"};
    char text[160];
    bool does = false;
    snprintf(text, sizeof text, "%s.%s", f->name, name);
    for (size_t i = 0; i < sizeof either / sizeof either[0]; i++)
        does |= !strcmp(either[i], text);
    return does;
}

/* Is it a word of the sentence, with these words behind it? */
static bool says(const char *sentence, const char *name, const char *behind)
{
    char words[128];
    snprintf(words, sizeof words, "%s%s", name, behind);
    for (const char *s = sentence; (s = strstr(s, words)); s++) {
        const char before = s == sentence ? ' ' : s[-1], after = s[strlen(words)];
        if (!isalnum((unsigned char)before) && before != '_' && !isalnum((unsigned char)after) && after != '_')
            return true;
    }
    return false;
}

/* Does it return NULL whatever its arguments are, or for those that are given here? */
static bool returns_null(const struct function *f)
{
    return !strncmp(f->name, "att_tape_fail", strlen("att_tape_fail")) || !strcmp(f->name, "att_cancel_by") ||
           !strcmp(f->name, "att_caption_model_encoder") || /* of convolutions */
           !strcmp(f->name, "att_image_model_probe") || !strcmp(f->name, "att_text_classifier_probe"); /* none */
}

static bool works(const struct function *f, const outcome *o)
{
    const bool pointer = f->returns == POINTER || f->returns == VARIABLE;
    return o->ended && o->status == ATT_OK && (!pointer || !o->is_null || returns_null(f));
}

static bool refuses(const struct function *f, const outcome *o)
{
    switch (f->returns) {
    case STATUS:
        return o->ended && o->status == ATT_ERR_ARGUMENT && !o->left;
    case VARIABLE:
    case POINTER:
        return o->ended && o->is_null;
    case NUMBER:
        return o->ended && (o->number == 0 || o->number == -1);
    case NOTHING:
        return o->ended;
    }
    return false;
}

/* The call with an argument, or a member of one, that is NULL: may it be, and what does the sentence say of it? */
static void check_call(const struct function *f, int i, void **argument, const char *name, bool or_null,
                       const char *words)
{
    const outcome o = call(f, argument);
    if (f->returns == NOTHING || depends(f, name)) {
        if (!o.ended)
            complain(f, name, &o, "no crash");
    } else if (or_null) {
        if (!works(f, &o))
            complain(f, name, &o, "what works");
    } else if (!refuses(f, &o)) {
        complain(f, name, &o, "an error");
    } else if (is_named(f, i) && !says(o.sentence, name, words)) {
        complain(f, name, &o, "its name");
    }
}

static void check_argument(const struct function *f, int i, void **argument)
{
    static void *none[1];
    void *kept = argument[i];
    argument[i] = f->parameter[i].passed == CALLBACK ? (void *)none : NULL;
    check_call(f, i, argument, f->parameter[i].name, f->parameter[i].or_null, " is NULL");
    argument[i] = kept;
}

/* An array of texts; one is NULL */
static void check_texts(const struct function *f, int i, void **argument)
{
    static const char *const none[4];
    void *kept = argument[i];
    if (strcmp(f->parameter[i].type, "const char *const *") != 0)
        return;
    argument[i] = (void *)(uintptr_t)none;
    check_call(f, i, argument, "NULL", false, "");
    argument[i] = kept;
}

/* The members of a struct that is an option or an argument: "const TYPE *" */
static void check_members(const struct function *f, int i, void **argument)
{
    char type[128];
    _Alignas(max_align_t) unsigned char copy[4096];
    size_t size = 0;
    void *kept = argument[i];
    for (size_t m = 0; m < sizeof members / sizeof members[0]; m++) {
        snprintf(type, sizeof type, "const %s *", members[m].of);
        if (strcmp(type, f->parameter[i].type) != 0)
            continue;
        if (!members[m].name) {
            size = members[m].at;
            continue;
        }
        assert_true(size <= sizeof copy);
        memcpy(copy, kept, size);
        if (!memcmp(copy + members[m].at, &(void *){NULL}, sizeof(void *)))
            continue;
        memset(copy + members[m].at, 0, sizeof(void *));
        argument[i] = copy;
        check_call(f, i, argument, members[m].name, members[m].or_null, "");
    }
    argument[i] = kept;
}

static void for_each_pointer(void (*check)(const struct function *f, int i, void **argument))
{
    void *argument[MOST_PARAMETERS];
    wrong = 0;
    for (size_t k = 0; k < sizeof functions / sizeof functions[0]; k++) {
        const struct function *f = &functions[k];
        take_arguments(f, argument);
        for (int i = 0; i < f->n; i++)
            if (f->parameter[i].passed != VALUE)
                check(f, i, argument);
    }
    assert_int_equal(wrong, 0);
}

static void every_function_works_with_valid_arguments(void **state)
{
    (void)state;
    void *argument[MOST_PARAMETERS];
    wrong = 0;
    for (size_t k = 0; k < sizeof functions / sizeof functions[0]; k++) {
        take_arguments(&functions[k], argument);
        if (!strcmp(functions[k].name, "att_measure_bandwidth")) /* writes more than caches hold, for seconds */
            continue;
        const outcome o = call(&functions[k], argument);
        if (!works(&functions[k], &o))
            complain(&functions[k], "all valid", &o, "what works");
    }
    assert_int_equal(wrong, 0);
}

static void a_null_argument_is_named_or_allowed(void **state)
{
    (void)state;
    for_each_pointer(check_argument);
}

static void a_null_text_is_refused(void **state)
{
    (void)state;
    for_each_pointer(check_texts);
}

static void a_null_member_is_named_or_allowed(void **state)
{
    (void)state;
    for_each_pointer(check_members);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_function_works_with_valid_arguments),
        cmocka_unit_test(a_null_argument_is_named_or_allowed),
        cmocka_unit_test(a_null_text_is_refused),
        cmocka_unit_test(a_null_member_is_named_or_allowed),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
