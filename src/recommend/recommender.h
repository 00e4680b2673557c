/* Recommenders: their struct, and declarations that their kinds share. */
#ifndef ATT_RECOMMEND_RECOMMENDER_H
#define ATT_RECOMMEND_RECOMMENDER_H

#include "recommend/item_ids.h"
#include "model/model.h"

#include "attend_recommend.h"

typedef struct att_recommender_config {
    att_recommender_info info;
    att_activation activation;
    double eps;         /* of the norms */
    bool content_start; /* items' own vectors began with content */
} att_recommender_config;

/* The histories to which a model is applied. */
typedef struct att_recommender_input {
    const int32_t *items;    /* [at.offsets[at.n]] */
    att_positions at;        /* the last item is at the last position */
    att_nn_layer_call layer; /* with dropout, or without */
    att_scope scope;         /* of the model */
} att_recommender_input;

typedef struct att_counting_kind att_counting_kind;

/* The functions of an architecture (sasrec.c, bert4rec.c), or of a model that counts (counting.h). */
typedef struct att_recommender_architecture {
    const att_counting_kind *counting; /* of a model that counts, which has of the following only `build`; or NULL */
    bool mask;                         /* the table has a row more */
    att_recommender_block block;
    double eps;
    void (*build)(att_recommender *m);
    /* `apply` applies all layers to histories. `result` makes vectors from their states; the products of these with the
     * vectors of items are the scores. */
    att_var *(*apply)(att_tape *t, const att_recommender *m, const att_recommender_input *in);
    att_var *(*result)(att_tape *t, const att_recommender *m, att_var *x);
} att_recommender_architecture;
extern const att_recommender_architecture att_sasrec, att_bert4rec, att_popularity, att_item_neighbors, att_ease;
extern const att_model_kind att_recommender_kind;

/* Plans of attention with dropout, one for each rate that was requested (recommender_layers.c). */
typedef struct att_dropout_plans att_dropout_plans;

/* The items whose vector is zero. In a model with content, these had no content and no action in training. Lists do not
 * have them. */
typedef struct att_items_without {
    int32_t *items; /* [n], ascending */
    int64_t n;
} att_items_without;

/* The nearest items of each item. */
typedef struct att_neighbor_lists {
    int64_t *first;    /* [items + 1]: the first neighbor of each item */
    int32_t *item;     /* [first[items]], nearest first */
    float *similarity; /* [first[items]] */
} att_neighbor_lists;

struct att_recommender {
    att_model model;
    const att_recommender_architecture *architecture;
    att_recommender_config config;
    att_ids ids;
    int64_t *counts;                    /* [items], or NULL */
    int trainings;                      /* open trainings that refer to its parameters */
    att_param *item;                    /* [rows, hidden]: the items' own vectors, and that of the mask */
    att_param *position;                /* [max_positions, hidden] */
    att_param *content;                 /* [rows, content_width], never trained; or NULL */
    att_tensor content_value;           /* the content's value, f32 */
    float *content_data;                /* memory of content_value if the parameter has another type; or NULL */
    const att_nn_linear *projection;    /* of content; or NULL */
    const att_nn_encoder_layer **layer; /* [config.info.layers] */
    const att_nn_norm *norm;            /* the last norm; or NULL */
    const att_nn_norm *embedding_norm;  /* of BERT4Rec, which transforms the states before the last norm */
    const att_nn_linear *transform;
    att_dropout_plans *plans;
    att_param *table;             /* [items, hidden]: vectors of all items, of a model that is not trainable */
    float *table_data;            /* memory of the table; or NULL: it is that of `item` */
    att_items_without without;    /* of a model that is not trainable */
    att_neighbor_lists neighbors; /* of item neighbors */
    att_param *weights;           /* [items, items], of EASE: weights[i] are those of item i for the scores of all */
};

/* ---- config.json (recommender_config.c) */

extern const att_model_types att_recommender_types;
void att_recommender_config_read(att_settings *s, att_recommender_config *c,
                                 const att_recommender_architecture **architecture);
/* Returns the settings as JSON; NULL: out of memory. */
json_t *att_recommender_config_json(const att_recommender_config *c);
/* Opens the settings of a new model, a JSON text, and adds the number of its items and, if it is above 0, the width of
 * its content. */
void att_recommender_settings(att_settings *s, att_ctx *ctx, const char *text, int64_t items, int64_t content_width);

/* ---- construction (recommender.c) */

/* Returns the number of rows of the table of items: one for each item, and one for the mask. */
static inline int64_t att_recommender_rows(const att_recommender *m)
{
    return m->config.info.items + m->architecture->mask;
}
/* Makes a model of `items` items from settings, a JSON text, without ids. */
att_status att_recommender_make(att_ctx *ctx, const char *settings, int64_t items, int64_t content_width, uint64_t seed,
                                att_recommender **out);
/* Writes the files of a model to a folder, one after another. */
att_status att_recommender_write_files(const att_recommender *m, const char *folder, att_dtype dtype);
/* Sets m->table (recommend_score.c). */
att_status att_recommender_make_table(att_recommender *m);
/* Makes all copies of weights that calls need, if the model was opened so (recommend_score.c). */
att_status att_recommender_prepare(att_recommender *m);
/* Sets the vectors of items [first, first + n) from content (recommender_content.c). */
att_status att_recommender_set_content(att_recommender *m, int64_t first, int64_t n, const att_item_content *content);
/* Returns whether all of x [n] are zero. */
bool att_recommender_is_zero(const float *x, int64_t n);
/* Checks content for n items. out: a copy with all members. content NULL: there is none; its width is 0. */
att_status att_item_content_read(att_ctx *ctx, const att_item_content *content, int64_t n, att_item_content *out);

/* ---- the parts of both architectures (recommender_layers.c) */

/* Makes m->item, m->position and, if there is content, m->content. init initializes the vectors of new items. */
void att_recommender_build_items(att_recommender *m, const att_init *init);
void att_recommender_build_layers(att_recommender *m, bool causal);
/* Returns the vectors of items with their content, [count, hidden], of ids [count]. */
att_var *att_recommender_embedding(att_tape *t, const att_recommender *m, const int32_t *ids, int64_t count);
/* Applies the layers to x, the embedding of all histories. */
att_var *att_recommender_layers(att_tape *t, const att_recommender *m, att_var *x, const att_recommender_input *in);
att_status att_dropout_plans_new(att_ctx *ctx, att_dropout_plans **out);
void att_dropout_plans_free(att_dropout_plans *p);

/* ---- what recommending and training share (recommend_score.c) */

/* The vectors of all items as a parameter, for products with states. If the model is trainable, they are the current
 * ones. */
typedef struct att_item_table {
    att_param *param; /* [items, hidden] */
    att_param *own;   /* or NULL: the model's */
    float *data;
    att_items_without without;
} att_item_table;
att_status att_item_table_open(const att_recommender *m, att_item_table *out);
void att_item_table_close(const att_recommender *m, att_item_table *table);

#endif
