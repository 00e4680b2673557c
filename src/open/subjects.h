/* All subjects of models. */
#ifndef ATT_OPEN_SUBJECTS_H
#define ATT_OPEN_SUBJECTS_H

#include "model/subject.h"

/* All subjects, up to NULL. */
extern const att_model_subject *const att_subjects[];
/* Returns the subject of an identity; NULL: ATT_SUBJECT_NONE. */
const att_model_subject *att_subject_of(att_subject subject);

#endif
