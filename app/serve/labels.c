#include "labels.h"

#include "ranks.h"

#include <stdlib.h>

void serve_labels_write(const serve_labels *l, cli_json *j, const char *key, const float *scores)
{
    const int64_t n = l->top > 0 && l->top < l->n ? l->top : l->n;
    serve_rank *r = serve_ranks(scores, l->n);
    if (!r) {
        cli_json_string(j, key, NULL);
        return;
    }
    cli_json_array(j, key);
    for (int64_t i = 0; i < n; i++) {
        cli_json_object(j, NULL);
        cli_json_string(j, "label", l->name(l->model, r[i].index));
        cli_json_float(j, "score", r[i].score);
        cli_json_end(j);
    }
    cli_json_end(j);
    free(r);
}
