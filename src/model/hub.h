/* Models in the cache of the Hugging Face Hub on this machine. */
#ifndef ATT_MODEL_HUB_H
#define ATT_MODEL_HUB_H

#include <stdbool.h>

/* Returns whether a text is OWNER/NAME or OWNER/NAME@REVISION, in the characters that the Hub allows. */
bool att_hub_is_name(const char *text);

#endif
