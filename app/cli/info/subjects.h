/* What attend info prints of a model of each subject, besides its identity and its weights. */
#ifndef CLI_INFO_SUBJECTS_H
#define CLI_INFO_SUBJECTS_H

#include "cli/caption/captioner.h"
#include "cli/classifier/text_classifier.h"
#include "cli/language/language.h"
#include "cli/recommend/recommender.h"
#include "cli/sentence/sentence.h"
#include "cli/translate/translator.h"
#include "cli/vision/vision.h"

typedef union info_model {
    cli_model base;
    cli_sentence sentence;
    cli_translator translator;
    cli_language language;
    cli_vision vision;
    cli_captioner captioner;
    cli_recommender recommender;
    cli_text_classifier text_classifier;
} info_model;

typedef struct info_subject {
    const cli_model_kind *kind;
    void (*show)(const cli_model *m); /* prints facts */
} info_subject;

/* Returns a subject, or NULL: there is no such one. */
const info_subject *info_subject_of(att_subject subject);

#endif
