/* The models of a server, by their names. */
#ifndef SERVE_MODELS_H
#define SERVE_MODELS_H

#include "cli/serve.h"

#include <attend_caption.h>
#include <attend_language.h>
#include <attend_model.h>
#include <attend_recommend.h>
#include <attend_sentence.h>
#include <attend_text_classifier.h>
#include <attend_translate.h>
#include <attend_vision.h>

enum { SERVE_MODELS = 64, SERVE_NAME = 256 };

typedef struct serve_session serve_session; /* generate_work.c */

typedef struct serve_model {
    att_ctx *ctx;
    char id[SERVE_NAME]; /* what requests call it: its folder's name, or OWNER/NAME of the Hub's cache */
    att_model_path folder;
    int64_t created; /* when its folder was changed, in seconds since 1970 */
    att_any_model *opened;
    att_subject subject;
    att_model_identity identity;
    const char *dtype;              /* of most bytes of its weights */
    int64_t bytes;                  /* of its weights in its files */
    const char *compute;            /* what products of other than quantized weights compute */
    const att_tokenizer *tokenizer; /* NULL: it has none */
    int64_t max_tokens;             /* of a text, special ones included; 0: no limit */
    union {                         /* by subject */
        att_sentence_info sentence;
        att_text_classifier_info classifier;
        att_encoder_decoder_info translator;
        att_language_model_info language;
        att_caption_model_info captioner;
        att_recommender_info recommender;
    } info;
    /* of a language model: */
    att_chat_template *template; /* NULL: it has none; no_template has the reason */
    char no_template[300];
    int64_t session_tokens;      /* of all its texts together, whose keys and values --max-cache has room for */
    serve_session *session;      /* of the compute loop */
    char source[16], target[16]; /* languages of a translator; "" if its folder does not state them */
    double rate;                 /* tokens per second, measured by the compute loop, which alone changes it */
} serve_model;

typedef struct serve_models {
    att_ctx *ctx;
    serve_model *model[SERVE_MODELS];
    int n;
    struct {
        char name[SERVE_NAME];
        const serve_model *model;
    } alias[SERVE_MODELS];
    int aliases;
} serve_models;

/* Opens all models. Returns a code. */
int serve_models_open(serve_models *m, const serve_settings *s);
void serve_models_close(serve_models *m);
/* Returns the model of this name or alias [bytes]; NULL: there is none. */
serve_model *serve_models_find(const serve_models *m, const char *name, size_t bytes);
/* Returns the first model of a subject; NULL: there is none. */
serve_model *serve_models_first(const serve_models *m, att_subject subject);

#endif
