/* Text encoders as backbones: each token attends to the whole text. */
#include "sentence/backbone.h"
#include "stack/encoder.h"

static const att_encoder *encoder_of(const att_backbone *b) { return (const att_encoder *)b->model; }

static att_status open_folder(att_backbone *b, const char *folder, const att_backbone_opening *how)
{
    att_encoder *encoder = NULL;
    att_encoder_info info = {.size = sizeof info};
    att_status s = att_tokenizer_open(how->outer->ctx, folder, &b->tokenizer);
    s = s ? s : att_encoder_open_inside(how->outer, folder, how->extension, &encoder);
    s = s ? s : att_encoder_describe(encoder, &info);
    b->model = encoder ? &encoder->model : NULL;
    b->info = (att_backbone_info){
        .vocabulary = info.vocabulary, .max_tokens = info.max_positions, .layers = info.layers, .heads = info.heads};
    return s;
}

static int64_t features(const att_model *m) { return ((const att_encoder *)m)->info.hidden; }

static att_var *tokens(att_tape *t, const att_backbone *b, const att_texts *x)
{
    att_encoder_options o = {.size = sizeof o, .dropout = x->dropout};
    if (x->dropout) {
        o.seed = x->dropout->seed;
        o.sequence_ids = x->dropout->sequence_ids;
    }
    return att_encoder_apply(t, encoder_of(b), x->ids, x->offsets, x->n, &o);
}

static att_trace_part trace(const att_backbone *b, int64_t n) { return att_encoder_trace_part(encoder_of(b), n); }

static att_var *finish(att_tape *t, const att_backbone *b, att_var *x)
{
    return att_encoder_output(t, encoder_of(b), x);
}

static att_status write_weights(const att_backbone *b, const char *from, const char *folder, att_dtype dtype)
{
    return att_encoder_write_weights(encoder_of(b), from, folder, dtype);
}

const att_backbone_kind att_backbone_encoder = {.module = "Transformer",
                                                .types = att_encoder_kinds,
                                                .features = features,
                                                .source = "config.json",
                                                .configure = att_transformer_settings_read,
                                                .open = open_folder,
                                                .tokens = tokens,
                                                .trace = trace,
                                                .finish = finish,
                                                .files = att_transformer_files,
                                                .write = write_weights};
