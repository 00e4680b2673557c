#include "recommend/log_content.h"
#include "io/content.h"
#include "util/util.h"

#include <string.h>

static att_byte_view skip_blanks(att_byte_view x)
{
    for (; x.bytes > 0 && (*x.data == ' ' || *x.data == '\t'); x.bytes--)
        x.data++;
    return x;
}

/* Returns whether a line begins an object or an array: it is a brace or bracket, or a brace or bracket followed by the
 * beginning of a key or a value in JSON, or in Python's form of it. */
static bool is_json(att_byte_view line)
{
    line = skip_blanks(line);
    if (line.bytes == 0 || (*line.data != '{' && *line.data != '['))
        return false;
    const char *const next = *line.data == '{' ? "\"'}" : "\"'{[]";
    line = skip_blanks((att_byte_view){line.data + 1, line.bytes - 1});
    return line.bytes == 0 || (*line.data && strchr(next, *line.data));
}

att_status att_log_check_content(att_ctx *ctx, const char *path, att_byte_view line)
{
    static const char matrix[] = "%%MatrixMarket";
    if (is_json(line))
        return att_fail(ctx, ATT_ERR_FORMAT,
                        "%s is JSON; write its actions as CSV with user, item and time, as jq -r "
                        "'[.user, .item, .time] | @csv' does",
                        path);
    if (line.bytes >= sizeof matrix - 1 && !memcmp(line.data, matrix, sizeof matrix - 1))
        return att_fail(ctx, ATT_ERR_FORMAT,
                        "%s is a matrix of Matrix Market; write its entries as lines of user and item", path);
    const att_content content = att_content_of(line.data, line.bytes);
    return *content.text ? att_fail(ctx, ATT_ERR_FORMAT, "%s is not a log: it is %s", path, content.text) : ATT_OK;
}
