/* JSON schemas of what routes read and answer, for /openapi.json. */
#ifndef SERVE_SCHEMA_H
#define SERVE_SCHEMA_H

#include "field.h"

/* Returns the schema of a shape, which the caller releases. A shape is JSON that is built as the value, with types
 * instead of texts and numbers: "string", "integer", "number", "boolean", "null", several as "string|null", or "any".
 * Keys that end in "?" may be missing; "*" is the shape of all other keys, which there are none of without it. A list
 * has one shape, of all its elements. {"|": [...]} is one of several shapes. NULL: out of memory. */
json_t *serve_schema(const char *shape);
/* Returns the schema of a request, which the caller releases. */
json_t *serve_fields_schema(const serve_field *fields);

#endif
