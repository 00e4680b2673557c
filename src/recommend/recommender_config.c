/* Reads and writes config.json of recommenders. */
#include "model/activation.h"
#include "recommend/counting.h"

#include <string.h>

enum { MAX_FEATURES = 1 << 16, MAX_LAYERS = 1024, MAX_POSITIONS = 1 << 20, MAX_CONTENT = 1 << 16 };

static const char *const known[] = {"model_type",
                                    "num_items",
                                    "hidden_size",
                                    "num_hidden_layers",
                                    "num_attention_heads",
                                    "intermediate_size",
                                    "block",
                                    "max_position_embeddings",
                                    "hidden_act",
                                    "layer_norm_eps",
                                    "content_width",
                                    "content_start",
                                    NULL};
static const char *const blocks[] = {"pre-norm", "post-norm", "sasrec"}; /* att_recommender_block */
enum { BLOCKS = sizeof blocks / sizeof blocks[0] };
typedef struct recommender_type {
    const char *name;
    const att_recommender_architecture *architecture;
} recommender_type;
static const recommender_type types[] = {{"attend-sasrec", &att_sasrec},
                                         {"attend-bert4rec", &att_bert4rec},
                                         {"attend-neighbors", &att_item_neighbors},
                                         {"attend-ease", &att_ease},
                                         {"attend-popularity", &att_popularity}};
const att_model_types att_recommender_types = ATT_MODEL_TYPES(types);

static att_recommender_block read_block(att_settings *s, att_recommender_block otherwise)
{
    const char *name = att_settings_text(s, "block", blocks[otherwise]);
    for (int i = 0; i < BLOCKS; i++)
        if (!strcmp(name, blocks[i]))
            return (att_recommender_block)i;
    att_settings_unsupported(s, "block", "one of pre-norm, post-norm and sasrec");
    return otherwise;
}

static void check(att_settings *s, const att_recommender_info *i, bool mask)
{
    if (i->hidden % i->heads)
        att_settings_fail(s, ATT_ERR_FORMAT,
                          "\"num_attention_heads\" is %lld, which does not divide \"hidden_size\", %lld",
                          (long long)i->heads, (long long)i->hidden);
    else if (mask && i->block == ATT_RECOMMENDER_BLOCK_SASREC)
        att_settings_unsupported(s, "block", "for attend-bert4rec, pre-norm or post-norm");
    else if (mask && i->max_positions < 2)
        att_settings_fail(s, ATT_ERR_FORMAT,
                          "\"max_position_embeddings\" is 1, but attend-bert4rec needs one for an item and one for the "
                          "mask");
}

/* Reads the settings of a model that counts. */
static void read_counting(att_settings *s, att_recommender_info *i, const att_counting_kind *k)
{
    enum { MAX_NEIGHBORS = 1 << 20 };
    att_settings_only_known(s, k->settings);
    i->items = att_settings_int(s, "num_items", 1, ATT_MAX_ITEMS);
    i->neighbors = k->neighbors ? att_settings_int_or(s, "neighbors", 1, MAX_NEIGHBORS, k->neighbors) : 0;
    i->decay = k->decay > 0 && att_settings_has(s, "decay") ? att_settings_number(s, "decay", 1e-30, 1) : k->decay;
    i->l2 = k->l2 > 0 && att_settings_has(s, "l2") ? att_settings_number(s, "l2", 1e-30, 1e30) : k->l2;
    if (!s->status && k->max_items > 0 && i->items > k->max_items)
        att_settings_fail(s, ATT_ERR_UNSUPPORTED,
                          "%s has weights between all items: for %lld they would take %.1f GiB, and at most %lld are "
                          "supported; leave out rare items, or use attend-neighbors",
                          i->type, (long long)i->items, (double)i->items * (double)i->items / (1 << 28),
                          (long long)k->max_items);
}

void att_recommender_config_read(att_settings *s, att_recommender_config *c,
                                 const att_recommender_architecture **architecture)
{
    att_recommender_info *i = &c->info;
    const recommender_type *type =
        att_model_type_find(&att_recommender_types, att_settings_text(s, "model_type", NULL));
    *c = (att_recommender_config){.info.size = sizeof c->info};
    if (s->status)
        return;
    const att_recommender_architecture *a = *architecture = type->architecture;
    i->type = type->name;
    if (a->counting) {
        read_counting(s, i, a->counting);
        return;
    }
    att_settings_only_known(s, known);
    i->block = read_block(s, a->block);
    i->items = att_settings_int(s, "num_items", 1, ATT_MAX_ITEMS);
    i->hidden = att_settings_int_or(s, "hidden_size", 1, MAX_FEATURES, 64);
    i->layers = att_settings_int_or(s, "num_hidden_layers", 1, MAX_LAYERS, 2);
    i->heads = att_settings_int_or(s, "num_attention_heads", 1, MAX_FEATURES, 1);
    i->intermediate = att_settings_int_or(s, "intermediate_size", 1, 8 * MAX_FEATURES,
                                          i->block == ATT_RECOMMENDER_BLOCK_SASREC ? i->hidden : 4 * i->hidden);
    i->max_positions = att_settings_int_or(s, "max_position_embeddings", 1, MAX_POSITIONS, 50);
    i->content_width = att_settings_int_or(s, "content_width", 0, MAX_CONTENT, 0);
    c->content_start = att_settings_bool(s, "content_start", false);
    c->activation = att_activation_read(s, "hidden_act", i->block == ATT_RECOMMENDER_BLOCK_SASREC ? "relu" : "gelu");
    c->eps = att_settings_has(s, "layer_norm_eps") ? att_settings_number(s, "layer_norm_eps", 1e-30, 1) : a->eps;
    if (!s->status)
        check(s, i, a->mask);
}

/* Returns the settings of a model that counts. */
static json_t *counting_json(const att_recommender_info *i)
{
    json_t *root = json_pack("{s:s, s:I}", "model_type", i->type, "num_items", (json_int_t)i->items);
    const bool added = root && (!i->neighbors || !json_object_set_new(root, "neighbors", json_integer(i->neighbors))) &&
                       (!(i->l2 > 0) || !json_object_set_new(root, "l2", json_real(i->l2))) &&
                       (!(i->decay > 0) || !json_object_set_new(root, "decay", json_real(i->decay)));
    if (root && !added) {
        json_decref(root);
        root = NULL;
    }
    return root;
}

json_t *att_recommender_config_json(const att_recommender_config *c)
{
    const att_recommender_info *i = &c->info;
    if (!i->hidden)
        return counting_json(i);
    json_t *root = json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:f, s:I}", "model_type", i->type, "block",
                             blocks[i->block], "num_items", (json_int_t)i->items, "hidden_size", (json_int_t)i->hidden,
                             "num_hidden_layers", (json_int_t)i->layers, "num_attention_heads", (json_int_t)i->heads,
                             "intermediate_size", (json_int_t)i->intermediate, "max_position_embeddings",
                             (json_int_t)i->max_positions, "hidden_act", att_activation_name(c->activation),
                             "layer_norm_eps", c->eps, "content_width", (json_int_t)i->content_width);
    if (root && c->content_start && json_object_set_new(root, "content_start", json_true())) {
        json_decref(root);
        root = NULL;
    }
    return root;
}

void att_recommender_settings(att_settings *s, att_ctx *ctx, const char *text, int64_t items, int64_t content_width)
{
    static const char name[] = "the model's settings";
    att_settings_parse(s, ctx, name, text, strlen(text));
    if (!s->status &&
        (json_object_set_new(s->root, "num_items", json_integer(items)) ||
         (content_width > 0 && json_object_set_new(s->root, "content_width", json_integer(content_width)))))
        att_settings_fail(s, ATT_ERR_MEMORY, "out of memory");
    json_t *root = s->status ? NULL : json_incref(s->root);
    if (!root)
        return;
    att_settings_close(s);
    att_settings_from_json(s, ctx, name, root);
}
