/* Lists of items in files, an id a line. */
#ifndef CLI_RECOMMEND_ITEM_LIST_H
#define CLI_RECOMMEND_ITEM_LIST_H

#include "recommender.h"

typedef struct cli_item_list {
    int32_t *items; /* [n] */
    int64_t n;
    size_t room;
} cli_item_list;

/* Reads the ids of a file, and reports unknown ones; empty lines are not ids. option: for
 * messages, as "allow". path NULL: an empty list. Error: no item is known. */
int cli_item_list_read(cli_item_list *l, const cli_recommender *m, const char *option, const char *path);
/* Checks that a line is text. source: its file, for messages. */
int cli_check_line(const char *source, int64_t number, const char *line, size_t bytes);

#endif
