#include "io/string_list.h"
#include "util/array.h"

#include <string.h>

att_status att_names_add_bytes(att_names *names, const char *name, size_t bytes)
{
    att_ctx *ctx = names->text.ctx;
    const att_status s = att_grow(ctx, &names->start, sizeof *names->start, names->n, 1, &names->room);
    if (s)
        return s;
    const size_t start = names->text.count;
    if (att_bytes_reserve(&names->text, bytes + 1)) {
        att_bytes_add(&names->text, name, bytes);
        att_bytes_add(&names->text, "", 1);
        names->start[names->n++] = start;
    }
    return names->text.status;
}

att_status att_names_add(att_names *names, const char *name) { return att_names_add_bytes(names, name, strlen(name)); }

void att_names_free(att_names *names)
{
    att_free(names->text.ctx, names->start);
    att_bytes_free(&names->text);
}
