/* A server from its beginning to its end. */
#ifndef SERVE_SERVER_H
#define SERVE_SERVER_H

#include "cli/serve.h"

/* Serves until SIGTERM or SIGINT. Returns the exit code. */
int serve_run(const serve_settings *s);

#endif
