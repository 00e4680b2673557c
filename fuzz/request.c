/* The input is a request of attend serve: the line of its Content-Type, then its body, which is JSON or a form. Fields
 * that are accepted are within what their table allows; a form of the same values has the same values. */
#include "fuzz.h"

#include "serve/form.h"

typedef struct request_fields {
    serve_text text;
    serve_texts texts, documents, input;
    bool flag;
    int64_t integer;
    double number;
    int choice;
    const json_t *json;
} request_fields;

enum { MAX_TEXTS = 8 };
static const serve_field fields[] = {
    {"text", SERVE_TEXT, offsetof(request_fields, text), .help = "text"},
    {"texts", SERVE_TEXTS, offsetof(request_fields, texts), .max = 4},
    {"documents", SERVE_DOCUMENTS, offsetof(request_fields, documents), .empty = true},
    {"input", SERVE_INPUT, offsetof(request_fields, input), .help = "texts or ids"},
    {"flag", SERVE_BOOL, offsetof(request_fields, flag), .usual = 1},
    {"integer", SERVE_INTEGER, offsetof(request_fields, integer), .min = -3, .max = 100, .usual = 7},
    {"number", SERVE_NUMBER, offsetof(request_fields, number), .min = 0, .max = 2},
    {"choice", SERVE_CHOICE, offsetof(request_fields, choice), .words = "one|two|three"},
    {"json", SERVE_JSON, offsetof(request_fields, json), .help = "any value"},
    {"ignored", SERVE_IGNORED, .help = "it changes nothing"},
    {"refused", SERVE_REFUSED, .words = "[]", .help = "it is not built"},
    {0},
};
static const serve_field none[] = {{0}};

static void check_texts(const serve_texts *t, int64_t max)
{
    fuzz_check(t->n >= 0 && t->n <= max, "there are too many texts");
    for (int64_t i = 0; t->text && i < t->n; i++)
        fuzz_check(t->text[i] && t->text[i][t->bytes[i]] == '\0', "a text does not end with a zero byte");
    for (int64_t i = 0; t->ids && i < t->n; i++) {
        fuzz_check(t->offsets[i] < t->offsets[i + 1], "a list of ids is empty");
        for (int64_t k = t->offsets[i]; k < t->offsets[i + 1]; k++)
            fuzz_check(t->ids[k] >= 0, "an id is negative");
    }
}

static void check_fields(const json_t *object)
{
    request_fields f = {0};
    serve_field_error e = {0};
    if (serve_fields_read(fields, object, MAX_TEXTS, &f, &e)) {
        check_texts(&f.texts, 4);
        check_texts(&f.documents, MAX_TEXTS);
        check_texts(&f.input, MAX_TEXTS);
        fuzz_check(f.integer >= -3 && f.integer <= 100, "an integer is beyond its limits");
        fuzz_check(f.number >= 0 && f.number <= 2, "a number is beyond its limits");
        fuzz_check(f.choice >= 0 && f.choice < 3, "a choice is none of the words");
    } else {
        fuzz_check(e.message[0] && memchr(e.message, '\0', sizeof e.message), "an error has no sentence");
    }
    serve_fields_free(fields, &f);
}

/* ---- a form of the same values ---- */

/* Writes a value, a string or a list of strings, as parts of multipart/form-data. */
static void write_parts(FILE *f, const char *name, const json_t *value)
{
    const size_t n = json_is_array(value) ? json_array_size(value) : 1;
    for (size_t i = 0; i < n; i++) {
        const json_t *text = json_is_array(value) ? json_array_get(value, i) : value;
        fprintf(f, "--fuzz-boundary\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n", name);
        fwrite(json_string_value(text), 1, json_string_length(text), f);
        fputs("\r\n", f);
    }
}

static bool has_boundary(const json_t *value)
{
    const size_t n = json_is_array(value) ? json_array_size(value) : 1;
    for (size_t i = 0; i < n; i++) {
        const json_t *text = json_is_array(value) ? json_array_get(value, i) : value;
        if (memmem(json_string_value(text), json_string_length(text), "--fuzz-boundary", 15))
            return true;
    }
    return false;
}

static void check_again(json_t *object)
{
    const char *name, *why;
    json_t *value;
    http_request r = {.type = "multipart/form-data; boundary=\"fuzz-boundary\""};
    FILE *f = open_memstream(&r.body, &r.bytes);
    if (!f)
        abort();
    bool plain = true;
    json_object_foreach(object, name, value)
    {
        plain &= strlen(name) < 60 && !strpbrk(name, "\"\r\n") && !has_boundary(value);
        write_parts(f, name, value);
    }
    fputs("--fuzz-boundary--\r\n", f);
    fclose(f);
    if (plain) {
        json_t *again = serve_form_read(&r, none, &why);
        fuzz_check(json_equal(object, again), "a form of the same values has others");
        json_decref(again);
    }
    free(r.body);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    const char *why = NULL;
    char *text = malloc(size + 1);
    if (!text)
        abort();
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    char *line = memchr(text, '\n', size);
    if (line) {
        *line = '\0';
        http_request r = {.type = text, .bytes = size - (size_t)(line + 1 - text)};
        r.body = malloc(r.bytes + 1); /* of its own, so that reads beyond it are found */
        if (!r.body)
            abort();
        memcpy(r.body, line + 1, r.bytes + 1);
        const bool is_form = serve_is_form(&r);
        json_t *object = is_form ? serve_form_read(&r, fields, &why)
                                 : json_loadb(r.body, r.bytes, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
        if (is_form && !object)
            fuzz_check(why != NULL, "a refused form has no sentence");
        if (json_is_object(object))
            check_fields(object);
        json_decref(object);
        object = is_form ? serve_form_read(&r, none, &why) : NULL;
        if (object)
            check_again(object);
        json_decref(object);
        free(r.body);
    }
    free(text);
    return 0;
}
