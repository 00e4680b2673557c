/* The routes, each a row of routes.c, and the fields that many of them have. */
#ifndef SERVE_ROUTES_H
#define SERVE_ROUTES_H

#include "call.h"

extern const serve_route *const serve_routes[]; /* up to NULL */

/* Finds the route of a method and a path. NULL: none; *other: a route of the path with another method, or NULL. */
const serve_route *serve_route_find(const char *method, const char *path, const serve_route **other);

/* clang-format off */
#define SERVE_MODEL_FIELD(type, kind)                                                        \
    {"model", SERVE_TEXT, offsetof(type, model),                                             \
     .help = "name of a " kind "; default: the first one that is served"}
/* clang-format on */

#endif
