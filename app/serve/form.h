/* Bodies of HTML forms, as JSON objects: application/x-www-form-urlencoded and multipart/form-data. */
#ifndef SERVE_FORM_H
#define SERVE_FORM_H

#include "field.h"
#include "http.h"

/* Returns whether the body is that of a form, by its type. What begins with "{" is JSON, which curl calls a form. */
bool serve_is_form(const http_request *r);
/* Reads it: fields that are not texts become numbers and booleans, fields that are repeated become lists; a part of
 * multipart/form-data may have any bytes. Returns the object, which the caller releases; or NULL, and *why. */
json_t *serve_form_read(const http_request *r, const serve_field *fields, const char **why);

#endif
