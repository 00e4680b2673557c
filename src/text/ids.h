/* Maps texts to numbers in the order in which they were added: ids of users and items, names of images, words. */
#ifndef ATT_IDS_H
#define ATT_IDS_H

#include "io/string_list.h"
#include "io/error_position.h"
#include "text/hash_table.h"

enum { ATT_MAX_ID = 4096 }; /* bytes */

typedef struct att_ids {
    att_ctx *ctx;
    att_names names;
    att_hash_table table; /* of names */
} att_ids;

void att_ids_init(att_ids *ids, att_ctx *ctx);
void att_ids_free(att_ids *ids);
static inline int64_t att_ids_count(const att_ids *ids) { return (int64_t)ids->names.n; }
/* Returns id i; NULL: out of range. */
const char *att_ids_at(const att_ids *ids, int64_t i);
/* Returns the number of an id; -1: there is none. */
int64_t att_ids_find(const att_ids *ids, att_byte_view id);
/* Checks an id. Errors: it is empty, too long, not UTF-8, or has a zero byte; `what` names the field. */
att_status att_id_check(att_byte_view id, const att_where *where, const char *what);
/* Finds an id, and adds it if it is new; `what` names the field in errors: the id is empty, too long, not UTF-8, or has
 * a zero byte. */
att_status att_ids_add(att_ids *ids, att_byte_view id, const att_where *where, const char *what, int32_t *out);

/* Removes the id that was added last. */
void att_ids_remove_last(att_ids *ids);

#endif
