/* Reports on items without an action in training. */
#ifndef CLI_RECOMMEND_UNTRAINED_H
#define CLI_RECOMMEND_UNTRAINED_H

#include "recommender.h"

/* Reports it if an item had no action in training and no content is added to its vector, which is then that of a text
 * at the start of training, or of random numbers. */
void cli_untrained_note(const cli_recommender *m, int32_t item);
/* Reports it if all items had one, so that --new-share has no effect. */
int cli_untrained_check(const cli_recommender *m);

#endif
