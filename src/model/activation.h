/* Activations by the names that config.json has for them. */
#ifndef ATT_MODEL_ACTIVATION_H
#define ATT_MODEL_ACTIVATION_H

#include "attend_learn.h"
#include "io/settings.h"

/* Reads the setting `key`; `otherwise`: its default, or NULL: it is required. */
att_activation att_activation_read(att_settings *s, const char *key, const char *otherwise);
/* Returns the name of an activation that has been read. */
const char *att_activation_name(att_activation a);

#endif
