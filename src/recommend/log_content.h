/* Recognizes text that is not a log. */
#ifndef ATT_RECOMMEND_LOG_CONTENT_H
#define ATT_RECOMMEND_LOG_CONTENT_H

#include "io/bytes.h"

/* Returns an error if a file that begins with `line` is not a log but JSON, a matrix, a web page or another known
 * content. Without this check, records could be found in it. */
att_status att_log_check_content(att_ctx *ctx, const char *path, att_byte_view line);

#endif
