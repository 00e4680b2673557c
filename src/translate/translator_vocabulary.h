/* The vocabulary in the folder of a translator's training. */
#ifndef ATT_TRANSLATE_TRANSLATOR_VOCABULARY_H
#define ATT_TRANSLATE_TRANSLATOR_VOCABULARY_H

#include "attend_translate.h"

/* Makes source.spm, target.spm and vocab.json in the folder, trained from the texts or copied. */
att_status att_translator_vocabulary_make(att_ctx *ctx, const att_translator_training_options *options,
                                          const char *folder);

#endif
