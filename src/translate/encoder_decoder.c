/* Functions that all encoder-decoder architectures share. */
#include "translate/encoder_decoder.h"
#include "io/atomic_write.h"
#include "decoder/beam_config.h"
#include "translate/seq2seq.h"
#include "translate/transformer.h"

#include <string.h>

const att_model_kind *const att_encoder_decoder_kinds[] = {&att_transformer_architecture.kind,
                                                           &att_seq2seq_architecture.kind, NULL};

/* ---- open */

att_status att_encoder_decoder_open(att_ctx *ctx, const char *folder, const att_model_options *options,
                                    att_encoder_decoder **out)
{
    att_settings s;
    *out = NULL;
    att_settings_read(&s, ctx, folder, "config.json", true);
    const att_model_kind *kind = att_model_kind_of(&s, att_encoder_decoder_kinds, "");
    att_settings_close(&s);
    return s.status ? s.status : att_model_open(ctx, __func__, kind, folder, options, out);
}

/* ---- a new model */

/* The settings of a new model: all of them, and those that the caller or the vocabulary has fixed. */
typedef struct merged_settings {
    json_t *all, *fixed;
} merged_settings;

/* Begins with the defaults. The architecture and, if known, the sizes of vocabularies are fixed. */
static bool begin(merged_settings *d, json_t *defaults, bool known)
{
    static const char *const keys[] = {"model_type",   "vocab_size",   "decoder_vocab_size",
                                       "pad_token_id", "eos_token_id", "decoder_start_token_id"};
    const size_t n = known ? sizeof keys / sizeof keys[0] : 1;
    int failed = 0;
    *d = (merged_settings){defaults, json_object()};
    for (size_t i = 0; i < n; i++)
        failed |= json_object_set(d->fixed, keys[i], json_object_get(d->all, keys[i]));
    return !failed;
}

/* Merges given settings and fixes them. */
static void decide(merged_settings *d, att_settings *given)
{
    const char *key;
    json_t *value;
    int failed = 0;
    json_object_foreach(given->root, key, value)
    {
        const att_json_text is = att_json_show(value), must = att_json_show(json_object_get(d->fixed, key));
        if (!json_object_get(d->all, key))
            att_settings_fail(given, ATT_ERR_UNSUPPORTED, "\"%.40s\" is not a setting of such a model", key);
        else if (json_object_get(d->fixed, key) && strcmp(is.text, must.text) != 0)
            att_settings_fail(given, ATT_ERR_ARGUMENT, "\"%s\" is %s but here it is %s", key, is.text, must.text);
        failed |= json_object_set(d->all, key, value) || json_object_set(d->fixed, key, value);
    }
    if (failed)
        att_settings_fail(given, ATT_ERR_MEMORY, "out of memory");
}

/* Returns the size of a vocabulary that is not known yet: that in the given settings, or any. */
static int64_t presumed_vocabulary(const att_settings given[2])
{
    double n = 0;
    for (int i = 0; i < 2; i++)
        if (att_settings_has(&given[i], "vocab_size"))
            n = json_number_value(att_settings_get(&given[i], "vocab_size"));
    return n >= 1 && n < INT32_MAX ? (int64_t)n : 8000;
}

/* Makes a new model. given [2]: the caller's settings, and those of a file. */
static att_status make(att_ctx *ctx, att_settings given[2], int64_t vocabulary, uint64_t seed,
                       att_encoder_decoder **out)
{
    const att_model_kind *kind = att_encoder_decoder_kinds[0];
    for (int i = 1; i >= 0; i--)
        if (att_settings_has(&given[i], "model_type"))
            kind = att_model_kind_of(&given[i], att_encoder_decoder_kinds, "");
    att_status e = given[0].status ? given[0].status : given[1].status;
    if (e)
        return e;
    const att_architecture *a = (const att_architecture *)kind;
    merged_settings d;
    att_settings s;
    const bool known = vocabulary > 0;
    if (!begin(&d, a->defaults(known ? vocabulary : presumed_vocabulary(given)), known))
        e = att_fail(ctx, ATT_ERR_MEMORY, "out of memory for the settings of a model");
    for (int i = 0; !e && i < 2; i++) {
        decide(&d, &given[i]);
        e = given[i].status;
    }
    if (!e) {
        att_settings_from_json(&s, ctx, given[1].path, json_incref(d.all));
        e = att_model_new(ctx, kind, &s, seed, out);
        att_settings_close(&s);
    }
    json_decref(d.fixed);
    json_decref(d.all);
    return e;
}

att_status att_encoder_decoder_new(att_ctx *ctx, const char *settings, const char *path, int64_t vocabulary,
                                   uint64_t seed, att_encoder_decoder **out)
{
    static const char name[] = "the model's settings";
    att_settings given[2];
    att_text_file f = {0};
    if (out)
        *out = NULL;
    const char *text = settings ? settings : "{}";
    att_status e = path ? att_text_file_open(&f, ctx, path, true) : ATT_OK;
    if (e)
        return e;
    att_settings_parse(&given[0], ctx, name, text, strlen(text));
    att_settings_parse(&given[1], ctx, path ? path : name, path ? f.text : "{}", path ? f.bytes : 2);
    e = make(ctx, given, vocabulary, seed, out);
    att_settings_close(&given[0]);
    att_settings_close(&given[1]);
    att_text_file_free(&f);
    return e;
}

/* ---- description */

att_status att_encoder_decoder_describe(const att_encoder_decoder *m, att_encoder_decoder_info *info)
{
    if (att_require(__func__, ATT_NAMED({"m", m}, {"info", info})))
        return ATT_ERR_ARGUMENT;
    return att_info_write(info, &m->info, sizeof m->info, "att_encoder_decoder_info");
}

const att_nn_params *att_encoder_decoder_params(const att_encoder_decoder *m)
{
    return att_model_params(m ? &m->model : NULL);
}

/* ---- training */

/* Copies the pairs. The tape fails if one of their arrays is NULL. */
static bool read_pairs(att_tape *t, const att_encoder_decoder *m, const att_sequence_pairs *pairs,
                       att_sequence_pairs *p)
{
    static const char what[] = "encoder_decoder";
    if (!att_tape_require(t, what, ATT_NAMED({"m", m}, {"pairs", pairs})) ||
        !att_tape_options_read(t, what, p, sizeof *p, pairs, "att_sequence_pairs") ||
        !att_tape_require(
            t, what,
            ATT_NAMED({"pairs.source_offsets", p->source_offsets}, {"pairs.target_offsets", p->target_offsets})))
        return false;
    if (p->n < 0)
        return att_tape_fail(t, ATT_ERR_ARGUMENT, "%s: pairs.n is %lld, less than 0", what, (long long)p->n);
    return (p->source_offsets[p->n] == 0 || att_tape_require(t, what, ATT_NAMED({"pairs.source", p->source}))) &&
           (p->target_offsets[p->n] == 0 || att_tape_require(t, what, ATT_NAMED({"pairs.target", p->target})));
}

/* Returns the decoder's inputs [target_offsets[n]] for teacher forcing: the target instead of the decoder's own output
 * (Williams, Zipser 1989). Each target is shifted right by one token, with `start` first. The caller frees them; NULL:
 * error set. */
static int32_t *decoder_inputs(att_ctx *ctx, const att_sequence_pairs *p, int64_t start)
{
    int32_t *ids = att_alloc(ctx, (size_t)p->target_offsets[p->n] + 1, sizeof *ids);
    for (int64_t b = 0; ids && b < p->n; b++)
        for (int64_t i = p->target_offsets[b]; i < p->target_offsets[b + 1]; i++)
            ids[i] = i == p->target_offsets[b] ? (int32_t)start : p->target[i - 1];
    return ids;
}

att_var *att_encoder_decoder_states(att_tape *t, const att_encoder_decoder *m, const att_sequence_pairs *p,
                                    const att_loss_options *l)
{
    if (!att_sequences_fit(t, "target", p->target, p->target_offsets, p->n, m->info.max_positions))
        return NULL;
    int32_t *inputs = decoder_inputs(m->model.ctx, p, m->info.start);
    if (!inputs)
        return att_tape_fail(t, ATT_ERR_MEMORY, "%s", att_error(m->model.ctx));
    const att_positions sources = {.size = sizeof sources, .offsets = p->source_offsets, .n = p->n};
    const att_positions targets = {.size = sizeof targets, .offsets = p->target_offsets, .n = p->n};
    const att_nn_dropout of_source = {sizeof of_source, l->dropout, l->seed, &sources, l->sequence_ids};
    const att_nn_dropout of_target = {sizeof of_target, l->dropout, l->seed, &targets, l->sequence_ids};
    att_var *y = att_architecture_of(m)->decode(t, m, p, inputs, &of_source, &of_target);
    att_free(m->model.ctx, inputs);
    return y;
}

/* Computes the logits of pairs that read_pairs has copied. */
static att_var *logits(att_tape *t, const att_encoder_decoder *m, const att_sequence_pairs *p,
                       const att_loss_options *l)
{
    return att_architecture_of(m)->output(t, m, att_encoder_decoder_states(t, m, p, l));
}

static bool read_arguments(att_tape *t, const att_encoder_decoder *m, const att_sequence_pairs *pairs,
                           const att_loss_options *options, att_sequence_pairs *p, att_loss_options *l)
{
    return read_pairs(t, m, pairs, p) &&
           att_tape_options_read(t, "encoder_decoder", l, sizeof *l, options, "att_loss_options");
}

att_var *att_encoder_decoder_logits(att_tape *t, const att_encoder_decoder *m, const att_sequence_pairs *pairs,
                                    const att_loss_options *options)
{
    att_sequence_pairs p;
    att_loss_options l;
    return read_arguments(t, m, pairs, options, &p, &l) ? logits(t, m, &p, &l) : NULL;
}

att_var *att_encoder_decoder_loss(att_tape *t, const att_encoder_decoder *m, const att_sequence_pairs *pairs,
                                  const att_loss_options *options)
{
    att_sequence_pairs p;
    att_loss_options l;
    att_var *y = read_arguments(t, m, pairs, options, &p, &l) ? logits(t, m, &p, &l) : NULL;
    if (!y)
        return NULL;
    const int64_t all = m->info.target_vocabulary, padded = m->info.pad == all - 1; /* classes without padding */
    return att_cross_entropy(t, y, p.target,
                             ATT_OPTIONS(att_cross_entropy_options, .label_smoothing = l.label_smoothing,
                                         .classes = padded ? all - 1 : 0, .sum = l.sum, .count = l.count));
}

/* ---- writing */

att_status att_encoder_decoder_write_settings(const att_encoder_decoder *m, const char *folder, int64_t beam)
{
    att_ctx *ctx = m->model.ctx;
    att_status s = att_make_folder(ctx, folder);
    s = s ? s : att_settings_write(ctx, folder, "config.json", att_architecture_of(m)->settings(m));
    return s ? s : att_generation_write(ctx, folder, &m->info, beam);
}

att_status att_encoder_decoder_write(const att_encoder_decoder *m, const char *folder,
                                     const att_encoder_decoder_write_options *options)
{
    if (att_require(__func__, ATT_NAMED({"m", m}, {"folder", folder})))
        return ATT_ERR_ARGUMENT;
    att_encoder_decoder_write_options o;
    att_status s = att_options_read(&o, sizeof o, options, "att_encoder_decoder_write_options");
    if (!s && !m->model.trainable)
        s = att_fail(m->model.ctx, ATT_ERR_ARGUMENT,
                     "att_encoder_decoder_write: the model was opened for inference, and is not trainable");
    if (!s && o.beam < 0)
        s = att_fail(m->model.ctx, ATT_ERR_ARGUMENT, "options.beam is %lld, expected 1 or more", (long long)o.beam);
    if (s)
        return s;
    s = att_encoder_decoder_write_settings(m, folder, o.beam ? o.beam : 4);
    return s ? s : att_model_write(&m->model, folder, o.dtype, att_architecture_of(m)->in_file, m, 0, NULL, NULL);
}
