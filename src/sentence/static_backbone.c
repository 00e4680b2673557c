/* Static embeddings as backbones: StaticEmbedding of sentence-transformers, model2vec. */
#include "sentence/backbone.h"
#include "sentence/static_model.h"

static const att_static_model *static_of(const att_backbone *b) { return (const att_static_model *)b->model; }

static att_status open_folder(att_backbone *b, const char *folder, const att_backbone_opening *how)
{
    att_static_model *m = NULL;
    const att_status s = att_static_open(how->outer, folder, how->extension, &b->tokenizer, &m);
    b->model = m ? &m->model : NULL;
    if (!s)
        b->info = (att_backbone_info){
            .vocabulary = m->tokens, .max_tokens = m->max_tokens, .no_special = true, .normalized = m->normalized};
    return s;
}

static int64_t features(const att_model *m) { return ((const att_static_model *)m)->dim; }

static att_status tokenize(const att_backbone *b, int64_t n, const char *const *texts, const size_t *bytes,
                           att_tokens *out)
{
    return att_static_tokenize(static_of(b), n, texts, bytes, out);
}

/* Reads the vectors of tokens. There is no dropout. */
static att_var *tokens(att_tape *t, const att_backbone *b, const att_texts *x)
{
    return att_static_apply(t, static_of(b), x->ids, x->offsets[x->n]);
}

static att_var *vectors(att_tape *t, const att_backbone *b, const att_texts *x)
{
    att_var *y = att_pool(t, tokens(t, b, x), x->offsets, x->n, ATT_POOLING_MEAN, 0);
    return static_of(b)->normalized ? att_normalize(t, y, 1e-12f) : y;
}

static att_status write_weights(const att_backbone *b, const char *from, const char *folder, att_dtype dtype)
{
    (void)from;
    return att_static_write_weights(static_of(b), folder, dtype);
}

static const char *const files[] = {"config.json", "tokenizer.json", NULL};

const att_backbone_kind att_backbone_static = {.module = "StaticEmbedding",
                                               .features = features,
                                               .source = "model.safetensors",
                                               .open = open_folder,
                                               .tokenize = tokenize,
                                               .tokens = tokens,
                                               .vectors = vectors,
                                               .files = files,
                                               .write = write_weights};
