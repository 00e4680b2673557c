/* Models that recommend items, opened by name, and the ids that commands read for them. */
#ifndef CLI_RECOMMEND_RECOMMENDER_H
#define CLI_RECOMMEND_RECOMMENDER_H

#include "cli/base/unknown_tokens.h"
#include "cli/model/model.h"

#include <attend_recommend.h>

typedef struct cli_recommender {
    cli_model base;
    const att_recommender *model;
    att_recommender_info info;
    const char **items; /* [info.items]: their ids */
} cli_recommender;
extern const cli_model_kind cli_recommender_kind;

/* Histories of items, for one call. */
typedef struct cli_histories {
    int64_t n;        /* histories */
    int64_t *offsets; /* [n + 1] */
    int32_t *items;   /* [offsets[n]] */
    size_t n_room, items_room;
} cli_histories;
/* Adds a history without items, and items to the last one. */
int cli_histories_begin(cli_histories *h);
int cli_histories_add(cli_histories *h, int64_t item);
void cli_histories_clear(cli_histories *h);
void cli_histories_free(cli_histories *h);

/* Adds the history that a text of ids is, with commas between them, or tabs if it has one; spaces around an id do not
 * count. Unknown ids are left out and collected; NULL: they are an error, which names `source`. */
int cli_histories_read(cli_histories *h, const att_recommender *m, const char *text, const char *source,
                       cli_unknown *unknown);

/* clang-format off */
#define CLI_RECOMMENDER_MODEL_OPTION(to, role)                                               \
    {"model", 'm', "MODEL", .text = (to),                                                    \
     .help = "model folder, or name of a recommender in the models folder" role}
/* clang-format on */

#endif
