/* The texts of items, such as titles and descriptions, and their vectors by a sentence model. */
#ifndef CLI_RECOMMEND_ITEM_TEXTS_H
#define CLI_RECOMMEND_ITEM_TEXTS_H

#include "cli/base/command.h"

#include <attend_recommend.h>

typedef struct cli_item_texts {
    int64_t n;         /* in the order of the file */
    const char **id;   /* [n], no two the same */
    const char **text; /* [n] */
    /* After cli_item_texts_embed: */
    float *vectors; /* [items, width] */
    int64_t width;
    int64_t missing; /* items without a text */
    /* private */
    int64_t *sorted; /* [n]: numbers of texts, by id */
    char *data;      /* all ids and texts, zero-terminated */
} cli_item_texts;

/* Reads lines of id and text, separated by a tab, or CSV (see cli_records); further fields are not read. A first line
 * that names the first column (item_id, item_id:token, item, itemId, movieId, asin, sku, id ...) or whose second is
 * title, name or text is a header, in letters of either case; its column title, name or text, else the second has the
 * texts, which is reported where there are more than two. id_column, column: the names of the columns of ids and texts,
 * in a file whose first line then is a header; or NULL: the first, and as stated above. path NULL: no texts. skip:
 * malformed lines that may be left out, which is reported. Errors name the line: no text, no id, one that an earlier
 * line had, not UTF-8. */
int cli_item_texts_read(cli_item_texts *t, const char *path, const char *id_column, const char *column, int64_t skip);
/* Reads categories as cli_item_texts_read reads texts; column NULL: category, product type, type or genre. Error: more
 * than two columns, none with such a name. */
int cli_item_categories_read(cli_item_texts *t, const char *path, const char *id_column, const char *column,
                             int64_t skip);
void cli_item_texts_free(cli_item_texts *t);
/* Fails if there are texts, but no action of the log has an item with one; path: of the texts. */
int cli_item_texts_check(const cli_item_texts *t, const char *path, const att_interactions *log);
/* Returns the text of an item; NULL: there is none. */
const char *cli_item_texts_find(const cli_item_texts *t, const char *id);
/* Embeds the texts of the log's items [first, end) by this sentence model (NULL: the only one) into t->vectors
 * [end - first, width]. Items without a text have zeros. */
int cli_item_texts_embed(cli_item_texts *t, const char *model, int64_t threads, const att_interactions *log,
                         int64_t first, int64_t end);

/* clang-format off */
#define CLI_ITEM_TEXTS_OPTION(to, use)                                                       \
    {"item-texts", 0, "FILE", .text = (to),                                                  \
     .help = "texts of items, such as titles: lines of id and text with a tab between them, or CSV; " use}
#define CLI_TEXT_COLUMN_OPTION(to)                                                           \
    {"text-column", 0, "NAME", .text = (to),                                                 \
     .help = "column of --item-texts with the texts; default: title, name or text, else the second"}
#define CLI_ID_COLUMN_OPTION(to)                                                             \
    {"id-column", 0, "NAME", .text = (to),                                                   \
     .help = "column of --item-texts with the ids of items; default: the first"}
#define CLI_TEXT_MODEL_OPTION(to)                                                            \
    {"text-model", 0, "MODEL", .text = (to),                                                 \
     .help = "sentence model that embeds --item-texts; default: the only one in the models folder"}
/* clang-format on */

#endif
