#include "translate/seq2seq_config.h"
#include "attend_nn.h"

#include <string.h>

/* Upper limits. Larger sizes indicate a damaged file. */
enum { MAX_FEATURES = 65536, MAX_POSITIONS = 1 << 20, MAX_TOKENS = 1 << 27 };

static const struct {
    const char *key;
    size_t offset; /* of the int64_t in the config */
    int64_t min, max;
} wholes[] = {
    {"vocab_size", offsetof(att_seq2seq_config, source_vocabulary), 1, MAX_TOKENS},
    {"decoder_vocab_size", offsetof(att_seq2seq_config, target_vocabulary), 1, MAX_TOKENS},
    {"embedding_size", offsetof(att_seq2seq_config, embedding), 1, MAX_FEATURES},
    {"hidden_size", offsetof(att_seq2seq_config, units), 1, MAX_FEATURES},
    {"num_layers", offsetof(att_seq2seq_config, layers), 1, ATT_NN_MAX_RECURRENT},
    {"max_positions", offsetof(att_seq2seq_config, max_positions), 1, MAX_POSITIONS},
    {"pad_token_id", offsetof(att_seq2seq_config, pad), 0, MAX_TOKENS},
    {"eos_token_id", offsetof(att_seq2seq_config, eos), 0, MAX_TOKENS},
    {"decoder_start_token_id", offsetof(att_seq2seq_config, start), 0, MAX_TOKENS},
};
enum { N_WHOLES = sizeof wholes / sizeof wholes[0] };

static const struct {
    const char *key;
    size_t offset; /* of the bool */
} bools[] = {{"bidirectional", offsetof(att_seq2seq_config, bidirectional)},
             {"scale_embedding", offsetof(att_seq2seq_config, scale_embedding)},
             {"share_encoder_decoder_embeddings", offsetof(att_seq2seq_config, share)},
             {"tie_word_embeddings", offsetof(att_seq2seq_config, tie)}};
enum { N_BOOLS = sizeof bools / sizeof bools[0] };

static const char *const cells[] = {"gru", "lstm"};
static const char *const attentions[] = {"none", "additive", "dot", "general"}; /* indexed by att_seq2seq_attention */
enum { N_ATTENTIONS = sizeof attentions / sizeof attentions[0] };

static int64_t *whole(att_seq2seq_config *c, int i) { return (int64_t *)(void *)((char *)c + wholes[i].offset); }
static bool *yes_or_no(att_seq2seq_config *c, int i) { return (bool *)(void *)((char *)c + bools[i].offset); }

/* Checks combinations of values, which fail s. */
static void check_together(att_settings *s, const att_seq2seq_config *c)
{
    const struct {
        const char *key;
        int64_t id;
    } ids[] = {{"pad_token_id", c->pad}, {"eos_token_id", c->eos}, {"decoder_start_token_id", c->start}};
    for (int i = 0; !s->status && i < 3; i++)
        if (ids[i].id >= c->target_vocabulary)
            att_settings_fail(s, ATT_ERR_FORMAT, "\"%s\" is %lld, but \"decoder_vocab_size\" is %lld", ids[i].key,
                              (long long)ids[i].id, (long long)c->target_vocabulary);
    if (!s->status && c->share && c->source_vocabulary != c->target_vocabulary)
        att_settings_fail(s, ATT_ERR_FORMAT,
                          "\"share_encoder_decoder_embeddings\" is true, but \"vocab_size\" is %lld and "
                          "\"decoder_vocab_size\" %lld",
                          (long long)c->source_vocabulary, (long long)c->target_vocabulary);
    if (!s->status && c->bidirectional && c->units % 2 != 0)
        att_settings_fail(s, ATT_ERR_FORMAT, "\"hidden_size\" is %lld, which two directions cannot share",
                          (long long)c->units);
    if (!s->status && c->bidirectional && 2 * c->layers > ATT_NN_MAX_RECURRENT)
        att_settings_fail(s, ATT_ERR_UNSUPPORTED, "\"num_layers\" is %lld, at most %d in two directions",
                          (long long)c->layers, ATT_NN_MAX_RECURRENT / 2);
}

void att_seq2seq_config_read(att_settings *s, att_seq2seq_config *c)
{
    att_settings_need(s, "model_type");
    for (int i = 0; i < N_WHOLES; i++)
        *whole(c, i) = att_settings_int(s, wholes[i].key, wholes[i].min, wholes[i].max);
    c->lstm = att_settings_choice(s, "cell", cells, 2, "gru or lstm");
    c->attention = (att_seq2seq_attention)att_settings_choice(s, "attention", attentions, N_ATTENTIONS,
                                                              "one of none, additive, dot and general");
    for (int i = 0; i < N_BOOLS; i++)
        *yes_or_no(c, i) = att_settings_bool(s, bools[i].key, false);
    check_together(s, c);
}

json_t *att_seq2seq_config_json(const att_seq2seq_config *config)
{
    att_seq2seq_config c = *config;
    json_t *root = json_pack("{s:s, s:s, s:s}", "model_type", ATT_SEQ2SEQ_TYPE, "cell", cells[c.lstm], "attention",
                             attentions[c.attention]);
    int failed = !root;
    for (int i = 0; i < N_WHOLES; i++)
        failed |= json_object_set_new(root, wholes[i].key, json_integer(*whole(&c, i)));
    for (int i = 0; i < N_BOOLS; i++)
        failed |= json_object_set_new(root, bools[i].key, json_boolean(*yes_or_no(&c, i)));
    if (!failed)
        return root;
    json_decref(root);
    return NULL;
}

att_seq2seq_config att_seq2seq_config_default(int64_t vocabulary)
{
    return (att_seq2seq_config){.size = sizeof(att_seq2seq_config),
                                .source_vocabulary = vocabulary,
                                .target_vocabulary = vocabulary,
                                .embedding = 256,
                                .units = 512,
                                .layers = 1,
                                .max_positions = 512,
                                .pad = vocabulary - 1,
                                .start = vocabulary - 1,
                                .bidirectional = true,
                                .scale_embedding = true,
                                .share = true,
                                .tie = true,
                                .attention = ATT_SEQ2SEQ_ADDITIVE};
}
