/* The subject of `attend attention`: a model of any kind, its input, and the trace of one pass. */
#ifndef CLI_ATTENTION_ATTENDED_H
#define CLI_ATTENTION_ATTENDED_H

#include "cli/caption/captioner.h"
#include "cli/classifier/text_classifier.h"
#include "cli/language/language.h"
#include "cli/recommend/recommender.h"
#include "cli/sentence/sentence.h"
#include "cli/translate/translator.h"
#include "cli/vision/vision.h"

#include <attend_trace.h>

/* The values of the options */
typedef struct attention_request {
    const char *argument, *model, *target, *svg, *pair, *prompt, *background;
    cli_texts hide, zero;
    int64_t layer, head, from, threads; /* -1: not given */
    cli_types types;
    int side; /* side -1: not given */
    bool heads, lens, json;
} attention_request;

/* The kind of a pass's result, which changes if tokens are hidden and heads are set to zero. */
typedef enum attention_result {
    ATTENTION_RESULT_VECTOR,        /* one row: an embedding */
    ATTENTION_RESULT_PROBABILITIES, /* logits that a softmax converts to probabilities */
    ATTENTION_RESULT_EACH,          /* logits with independent probabilities */
    ATTENTION_RESULT_TARGET,        /* logits after each token of a target, which is given */
    ATTENTION_RESULT_SCORES
} attention_result;

enum { ATTENTION_NAME = 48 }; /* characters of the name of a location */

typedef struct attended attended;

/* The differences between the models of each subject. */
typedef struct attention_kind {
    const cli_model_kind *model;
    att_trace_side side;  /* the side that is shown unless --side is given; if the model does not have it, its only
                           * side */
    bool mean;            /* the mean of all heads is shown unless --head is given; false: head 0 */
    bool image, writes;   /* the argument is an image; the model writes a target, which --target replaces */
    bool prompts;         /* --prompt stands before the argument */
    const char *argument; /* the name of the argument in JSON; or NULL: JSON does not have it */
    const char *outcome;  /* the result's columns: "tokens", "classes", "items" */
    /* Reads the argument of an open model. */
    int (*read)(attended *a);
    att_status (*trace)(const attended *a, const att_trace_options *options, att_trace **out);
    /* The name of an id of the source or the target; NULL: tokens of the source are locations. */
    const char *(*source)(const attended *a, int32_t id);
    const char *(*target)(const attended *a, int32_t id);
    attention_result (*result)(const attended *a);
    const char *(*name)(const attended *a, int64_t column); /* the name of a column of the result */
    /* Shows the weights in a special way if no other is requested; or NULL. */
    int (*show)(attended *a);
} attention_kind;

struct attended {
    const attention_kind *kind;
    const attention_request *asked;
    union {
        cli_model base;
        cli_sentence sentence;
        cli_language language;
        cli_vision vision;
        cli_captioner captioner;
        cli_translator translator;
        cli_recommender recommender;
        cli_text_classifier text_classifier;
    } m;
    /* By kind->read: */
    cli_image image;
    int32_t *target; /* [n_target]: tokens of a translation without its end, or words of a caption */
    int64_t n_target;
    cli_histories history;
    const char *prompt; /* before the text of a sentence model */
    /* Fields of all kinds: */
    att_trace *described; /* without numbers */
    att_trace_info info;
    att_trace_side side;
    att_trace_attention_info attention; /* of the chosen layer, or of the last one */
    int64_t layer, head;                /* layer -1: none was chosen; head -1: the mean of all */
    const char **query, **key;          /* [attention.queries], [attention.keys]: labels */
    char (*number)[ATTENTION_NAME];     /* memory of labels of locations */
    int64_t *hide;                      /* [n_hide] */
    att_trace_head *zero;               /* [n_zero] */
    int64_t n_hide, n_zero;
    att_trace *trace;
};

/* Opens a model, reads the argument, and checks the options against the future trace. *a must not move until it is
 * closed. */
int attended_open(attended *a, const attention_kind *kind, const attention_request *asked);
void attended_close(attended *a);
/* Computes a trace of this layer, -1: of all, with the hidden states of all layers if requested. changed: without the
 * tokens and heads that options name. Reports the memory that it needs, if that is much. */
int attended_trace(const attended *a, int64_t layer, bool hidden, bool changed, att_trace **out);

/* Refuses a value of --from that is not below n. */
int attention_check_from(const attended *a, int64_t n);
/* "encoder", "decoder", "cross" */
const char *attention_side_name(att_trace_side side);
/* Returns whether the model has attention of more than one side. */
bool attention_has_sides(const attended *a);
/* Reports whose weights are shown: "Layer 3, head 1", "Layer 3, mean of 12 heads" */
void attention_heads_name(const attended *a, char *text, size_t size);
/* Returns the name of token i of the source, or of a location, which may be written to text. */
const char *attention_source_name(const attended *a, int64_t i, char text[ATTENTION_NAME]);
/* Begins JSON with the members of all views: argument, side if the model has several, layer, head. layer -1, head -1:
 * none. */
cli_json attention_json(const attended *a, int64_t layer, int64_t head);

#endif
