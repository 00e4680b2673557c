#include "routes.h"

#include <string.h>

/* clang-format off */
#define ROUTES(X) \
    X(embeddings) X(embeddings_short) X(embed) X(similarity) X(rerank_v1) X(rerank_v2) X(rerank) X(predict) \
    X(classify) X(translate) X(detect) X(languages) X(caption) X(recommend) X(tokenize) X(decode) \
    X(chat) X(completions) X(responses) \
    X(ollama_chat) X(ollama_generate) X(ollama_embed) X(ollama_embeddings) X(ollama_tags) X(ollama_ps) \
    X(ollama_show) X(ollama_version) \
    X(page) X(models) X(model) X(info) X(health) X(livez) X(readyz) X(metrics) X(openapi)
/* clang-format on */

#define DECLARE(name) extern const serve_route serve_route_##name;
ROUTES(DECLARE)
#define ADDRESS(name) &serve_route_##name,
const serve_route *const serve_routes[] = {ROUTES(ADDRESS) NULL};

static bool has_path(const serve_route *r, const char *path)
{
    const size_t n = strlen(r->path);
    return n > 1 && r->path[n - 1] == '/' ? !strncmp(r->path, path, n) && path[n] : !strcmp(r->path, path);
}

const serve_route *serve_route_find(const char *method, const char *path, const serve_route **other)
{
    *other = NULL;
    if (!strcmp(method, "HEAD")) /* the library leaves out the body */
        method = "GET";
    for (const serve_route *const *r = serve_routes; *r; r++)
        if (has_path(*r, path)) {
            if (!strcmp((*r)->method, method))
                return *r;
            *other = *r;
        }
    return NULL;
}
