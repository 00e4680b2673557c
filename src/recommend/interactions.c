/* A log of actions: ids and histories. */
#include "recommend/interactions.h"

#include <string.h>

void att_interactions_free(att_interactions *log)
{
    if (!log)
        return;
    att_ctx *ctx = log->ctx;
    att_ids_free(&log->users);
    att_ids_free(&log->items);
    att_names_free(&log->info_texts);
    att_free(ctx, log->offsets);
    att_free(ctx, log->item);
    att_free(ctx, log->time);
    att_free(ctx, log);
}

att_status att_interactions_describe(const att_interactions *log, att_interactions_info *info)
{
    if (att_require(__func__, ATT_NAMED({"log", log}, {"info", info})))
        return ATT_ERR_ARGUMENT;
    return att_info_write(info, &log->info, sizeof log->info, "att_interactions_info");
}

const char *att_interactions_user(const att_interactions *log, int64_t user)
{
    return log ? att_ids_at(&log->users, user) : NULL;
}

const char *att_interactions_item(const att_interactions *log, int64_t item)
{
    return log ? att_ids_at(&log->items, item) : NULL;
}

int64_t att_interactions_find_user(const att_interactions *log, const char *id)
{
    return log && id ? att_ids_find(&log->users, (att_byte_view){id, strlen(id)}) : -1;
}

int64_t att_interactions_find_item(const att_interactions *log, const char *id)
{
    return log && id ? att_ids_find(&log->items, (att_byte_view){id, strlen(id)}) : -1;
}

att_history att_interactions_history(const att_interactions *log, int64_t user)
{
    if (!log || user < 0 || user >= log->info.users)
        return (att_history){0};
    return att_history_of(log, log->offsets[user], log->offsets[user + 1]);
}
