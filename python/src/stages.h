/* Scores, modifiers and masks of the caller's, as functions that are compiled. */
#ifndef ATT_PYTHON_STAGES_H
#define ATT_PYTHON_STAGES_H

#include "attend_extend.h"
#include "module.h"

typedef enum stage_kind { STAGE_SCORE, STAGE_MODIFIER, STAGE_MASK, STAGE_KINDS } stage_kind;

enum { STAGE_PARAMETERS = 8, STAGE_NAME = 64 };

/* attend._attend.Stage */
typedef struct own_stage {
    PyObject_HEAD stage_kind kind;
    union {
        att_score score;
        att_modifier modifier;
        att_mask mask;
    } as;
    char name[STAGE_NAME];
    att_param_shape param[STAGE_PARAMETERS];
    char param_name[STAGE_PARAMETERS][STAGE_NAME];
    PyObject *held; /* whose code the functions are */
    Py_buffer user; /* obj NULL: none */
} own_stage;

/* The score of a name or of a Stage; *own is the Stage, borrowed, or NULL. false with an exception */
bool stage_read_score(module_state *state, PyObject *object, const att_score **out, PyObject **own);
/* Sets mask or modifier of a stage by a name or a Stage. */
bool stage_read(module_state *state, PyObject *object, att_stage *out, PyObject **own);

#endif
