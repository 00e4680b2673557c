#include "model/seq2seq_config.h"
#include "io/settings.h"
#include "nn/nn.h"

#include <string.h>

#define MODEL_TYPE "attend-seq2seq"

/* Beyond these a size is damage, not a model. */
enum { MOST_FEATURES = 65536, MOST_TOKENS = 1 << 27 };

static const struct {
    const char *key;
    size_t offset; /* of the int64_t in the configuration */
    int64_t least, most;
} wholes[] = {
    {"vocab_size", offsetof(att_seq2seq_config, source_vocabulary), 1, MOST_TOKENS},
    {"decoder_vocab_size", offsetof(att_seq2seq_config, target_vocabulary), 1, MOST_TOKENS},
    {"embedding_size", offsetof(att_seq2seq_config, embedding), 1, MOST_FEATURES},
    {"hidden_size", offsetof(att_seq2seq_config, units), 1, MOST_FEATURES},
    {"num_layers", offsetof(att_seq2seq_config, layers), 1, ATT_NN_MAX_RECURRENT},
    {"pad_token_id", offsetof(att_seq2seq_config, pad), 0, MOST_TOKENS},
    {"eos_token_id", offsetof(att_seq2seq_config, eos), 0, MOST_TOKENS},
    {"decoder_start_token_id", offsetof(att_seq2seq_config, start), 0, MOST_TOKENS},
};
enum { N_WHOLES = sizeof wholes / sizeof wholes[0] };

static const char *const cells[] = {"gru", "lstm"};
static const char *const attentions[] = {"none", "additive", "dot", "general"}; /* by att_seq2seq_attention */
enum { N_ATTENTIONS = sizeof attentions / sizeof attentions[0] };

static int64_t *whole(att_seq2seq_config *c, int i) { return (int64_t *)(void *)((char *)c + wholes[i].offset); }

/* The number of a setting's value among n names. */
static int named(att_settings *s, const char *key, const char *const *names, int n, const char *supported)
{
    const char *value = att_settings_text(s, key, NULL);
    for (int i = 0; i < n; i++)
        if (!strcmp(value, names[i]))
            return i;
    att_settings_unsupported(s, key, supported);
    return 0;
}

/* What is wrong with values that are in their ranges: fails s. */
static void check_together(att_settings *s, const att_seq2seq_config *c)
{
    static const int ids[] = {5, 6, 7};
    for (int i = 0; !s->status && i < 3; i++) {
        const int64_t id = *whole((att_seq2seq_config *)(uintptr_t)c, ids[i]);
        if (id >= c->target_vocabulary)
            att_settings_fail(s, ATT_ERR_FORMAT, "\"%s\" is %lld, but \"decoder_vocab_size\" is %lld",
                              wholes[ids[i]].key, (long long)id, (long long)c->target_vocabulary);
    }
    if (!s->status && c->bidirectional && c->units % 2 != 0)
        att_settings_fail(s, ATT_ERR_FORMAT, "\"hidden_size\" is %lld, which two directions cannot share",
                          (long long)c->units);
    if (!s->status && c->bidirectional && 2 * c->layers > ATT_NN_MAX_RECURRENT)
        att_settings_fail(s, ATT_ERR_UNSUPPORTED, "\"num_layers\" is %lld, at most %d in two directions",
                          (long long)c->layers, ATT_NN_MAX_RECURRENT / 2);
}

static void read(att_settings *s, att_seq2seq_config *c)
{
    att_settings_need(s, "model_type");
    att_settings_only_text(s, "model_type", MODEL_TYPE);
    for (int i = 0; i < N_WHOLES; i++)
        *whole(c, i) = att_settings_whole(s, wholes[i].key, wholes[i].least, wholes[i].most);
    c->lstm = named(s, "cell", cells, 2, "gru or lstm");
    c->attention = (att_seq2seq_attention)named(s, "attention", attentions, N_ATTENTIONS,
                                                "one of none, additive, dot and general");
    c->bidirectional = att_settings_bool(s, "bidirectional", false);
    check_together(s, c);
}

att_status att_seq2seq_config_read(att_ctx *ctx, const char *folder, att_seq2seq_config *out)
{
    att_settings s;
    att_seq2seq_config c = {.size = sizeof c};
    att_settings_read(&s, ctx, folder, "config.json", true);
    read(&s, &c);
    att_settings_close(&s);
    if (!s.status)
        *out = c;
    return s.status;
}

static json_t *to_json(const att_seq2seq_config *c)
{
    json_t *root = json_pack("{s:s, s:s, s:s, s:b}", "model_type", MODEL_TYPE, "cell", cells[c->lstm], "attention",
                             attentions[c->attention], "bidirectional", c->bidirectional);
    for (int i = 0; root && i < N_WHOLES; i++)
        if (json_object_set_new(root, wholes[i].key, json_integer(*whole((att_seq2seq_config *)(uintptr_t)c, i)))) {
            json_decref(root);
            root = NULL;
        }
    return root;
}

att_status att_seq2seq_config_text(att_ctx *ctx, const att_seq2seq_config *c, char **out)
{
    json_t *root = to_json(c);
    const size_t bytes = root ? json_dumpb(root, NULL, 0, JSON_INDENT(2)) : 0;
    *out = bytes ? att_alloc(ctx, bytes + 2, 1) : NULL;
    if (*out) {
        json_dumpb(root, *out, bytes, JSON_INDENT(2));
        memcpy(*out + bytes, "\n", 2);
    }
    json_decref(root);
    return *out    ? ATT_OK
           : bytes ? ATT_ERR_MEMORY
                   : att_fail(ctx, ATT_ERR_MEMORY, "out of memory for the settings of a model");
}

/* What is written must be what can be read. */
att_status att_seq2seq_config_check(att_ctx *ctx, const att_seq2seq_config *c)
{
    if ((unsigned)c->attention >= N_ATTENTIONS)
        return att_fail(ctx, ATT_ERR_ARGUMENT, "seq2seq: %d is no attention", (int)c->attention);
    char *text;
    att_settings s;
    att_seq2seq_config same = {0};
    const att_status e = att_seq2seq_config_text(ctx, c, &text);
    if (e)
        return e;
    att_settings_parse(&s, ctx, "seq2seq", text, strlen(text));
    read(&s, &same);
    att_settings_close(&s);
    att_free(ctx, text);
    return s.status;
}
