#include "schema.h"

#include <string.h>

/* Returns the words of "one|two" as a list. */
static json_t *split_words(const char *words)
{
    json_t *list = json_array();
    while (*words) {
        const size_t n = strcspn(words, "|");
        json_array_append_new(list, json_stringn(words, n));
        words += n + (words[n] == '|');
    }
    return list;
}

/* ---- shapes ---- */

static json_t *schema_of(const json_t *shape);

static json_t *type_schema(const char *type) { return json_pack("{s:s}", "type", type); }

/* Returns the schema of "string|null" or the like. */
static json_t *types_schema(const char *types)
{
    json_t *word, *schemas;
    size_t i;
    if (!strchr(types, '|'))
        return type_schema(types);
    json_t *list = split_words(types);
    schemas = json_array();
    json_array_foreach(list, i, word) json_array_append_new(schemas, type_schema(json_string_value(word)));
    json_decref(list);
    return json_pack("{s:o}", "anyOf", schemas);
}

static json_t *schemas_of(const json_t *shapes)
{
    json_t *list = json_array();
    for (size_t i = 0; i < json_array_size(shapes); i++)
        json_array_append_new(list, schema_of(json_array_get(shapes, i)));
    return list;
}

static json_t *object_schema(const json_t *shape)
{
    json_t *properties = json_object(), *required = json_array(), *value;
    const json_t *others = json_object_get(shape, "*");
    const char *key;
    json_object_foreach((json_t *)shape, key, value)
    {
        const size_t n = strlen(key), optional = n > 0 && key[n - 1] == '?';
        if (!strcmp(key, "*"))
            continue;
        json_object_setn_new(properties, key, n - optional, schema_of(value));
        if (!optional)
            json_array_append_new(required, json_string(key));
    }
    return json_pack("{s:s, s:o, s:o, s:o}", "type", "object", "properties", properties, "required", required,
                     "additionalProperties", others ? schema_of(others) : json_false());
}

static json_t *schema_of(const json_t *shape)
{
    const json_t *either = json_object_get(shape, "|");
    if (either)
        return json_pack("{s:o}", "anyOf", schemas_of(either));
    if (json_is_object(shape))
        return object_schema(shape);
    if (json_is_array(shape))
        return json_pack("{s:s, s:o}", "type", "array", "items", schema_of(json_array_get(shape, 0)));
    if (!shape || !strcmp(json_string_value(shape), "any"))
        return json_object();
    return types_schema(json_string_value(shape));
}

json_t *serve_schema(const char *shape)
{
    json_t *parsed = json_loads(shape, JSON_DECODE_ANY, NULL), *schema = schema_of(parsed);
    json_decref(parsed);
    return schema;
}

/* ---- fields ---- */

static json_t *words_schema(const char *words)
{
    return json_pack("{s:s, s:o}", "type", "string", "enum", split_words(words));
}

static json_t *number_schema(const serve_field *f)
{
    json_t *o = json_pack("{s:s}", "type", f->type == SERVE_INTEGER ? "integer" : "number");
    json_object_set_new(o, "minimum", f->type == SERVE_INTEGER ? json_integer((json_int_t)f->min) : json_real(f->min));
    json_object_set_new(o, "maximum", f->type == SERVE_INTEGER ? json_integer((json_int_t)f->max) : json_real(f->max));
    return o;
}

static json_t *list_schema(json_t *items, int64_t min)
{
    return json_pack("{s:s, s:o, s:I}", "type", "array", "items", items, "minItems", (json_int_t)min);
}

/* Returns the schema of a text or a list of them. */
static json_t *texts_schema(const serve_field *f)
{
    json_t *list = list_schema(type_schema("string"), !f->empty);
    if (f->max > 0)
        json_object_set_new(list, "maxItems", json_integer((json_int_t)f->max));
    return json_pack("{s:[o, o]}", "anyOf", type_schema("string"), list);
}

static json_t *ids_schema(void)
{
    return list_schema(json_pack("{s:s, s:i, s:i}", "type", "integer", "minimum", 0, "maximum", INT32_MAX), 1);
}

static json_t *input_schema(void)
{
    return json_pack("{s:[o, o, o, o]}", "anyOf", type_schema("string"), list_schema(type_schema("string"), 1),
                     ids_schema(), list_schema(ids_schema(), 1));
}

static json_t *documents_schema(void)
{
    return list_schema(json_pack("{s:[o, {s:s, s:{s:{s:s}}, s:[s]}]}", "anyOf", type_schema("string"), "type", "object",
                                 "properties", "text", "type", "string", "required", "text"),
                       1);
}

/* Returns the schema of the only value of a refused field that is accepted, besides null. */
static json_t *const_schema(const char *value)
{
    return value ? json_pack("{s:o}", "const", json_loads(value, JSON_DECODE_ANY, NULL)) : type_schema("null");
}

static json_t *value_schema(const serve_field *f)
{
    switch (f->type) {
    case SERVE_TEXT:
        return type_schema("string");
    case SERVE_TEXTS:
        return texts_schema(f);
    case SERVE_DOCUMENTS:
        return documents_schema();
    case SERVE_INPUT:
        return input_schema();
    case SERVE_BOOL:
        return type_schema("boolean");
    case SERVE_INTEGER:
    case SERVE_NUMBER:
        return number_schema(f);
    case SERVE_CHOICE:
        return words_schema(f->words);
    case SERVE_JSON:
        return f->table ? serve_fields_schema(f->table) : f->words ? serve_schema(f->words) : json_object();
    case SERVE_REFUSED:
        return const_schema(f->words);
    case SERVE_IGNORED:
        break;
    }
    return json_object();
}

/* Returns the schema of a field, which may be null if it is not required. */
static json_t *field_schema(const serve_field *f)
{
    json_t *schema = value_schema(f);
    if (!f->required && json_object_size(schema) > 0)
        schema = json_pack("{s:[o, o]}", "anyOf", schema, type_schema("null"));
    if (f->help)
        json_object_set_new(schema, "description", json_string(f->help));
    return schema;
}

json_t *serve_fields_schema(const serve_field *fields)
{
    json_t *properties = json_object(), *required = json_array();
    for (const serve_field *f = fields; f->name; f++) {
        json_object_set_new(properties, f->name, field_schema(f));
        if (f->required)
            json_array_append_new(required, json_string(f->name));
    }
    return json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", properties, "required", required,
                     "additionalProperties", 0);
}
