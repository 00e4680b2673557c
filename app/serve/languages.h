/* Languages of translators, and the translator for two of them. */
#ifndef SERVE_LANGUAGES_H
#define SERVE_LANGUAGES_H

#include "call.h"

/* Returns the translator of this name, or, without a name, the first one from source ("auto": any, if only one model
 * fits) to target (text NULL: any, of no name). A named one must translate these languages, if it states its own. NULL:
 * the request was refused. */
serve_model *serve_translator(serve_call *c, serve_text name, serve_text source, serve_text target);
/* Writes [{"code", "name", "targets"}]. */
void serve_languages_write(cli_json *j, const serve_models *m);

#endif
