/* A tiny BERT and a tiny sentence-transformers folder, written for a test, with any part left out or wrong.
 * The weights are those of tests/golden/make_tiny_bert.py. */
#ifndef TINY_BERT_H
#define TINY_BERT_H

#include "attend_model.h"
#include "tiny_model.h"

enum { TINY_HIDDEN = 12, TINY_TOKENS = 40, TINY_POSITIONS = 16, TINY_LAYERS = 2, TINY_HEADS = 3, TINY_INNER = 20 };

static inline void tiny_put_layer(tiny_file *f, int layer)
{
    enum { H = TINY_HIDDEN };
    static const tiny_tensor parts[] = {{"attention.self.query.weight", H, H},
                                        {"attention.self.query.bias", 0, H},
                                        {"attention.self.key.weight", H, H},
                                        {"attention.self.key.bias", 0, H},
                                        {"attention.self.value.weight", H, H},
                                        {"attention.self.value.bias", 0, H},
                                        {"attention.output.dense.weight", H, H},
                                        {"attention.output.dense.bias", 0, H},
                                        {"attention.output.LayerNorm.weight", 0, H},
                                        {"attention.output.LayerNorm.bias", 0, H},
                                        {"intermediate.dense.weight", TINY_INNER, H},
                                        {"intermediate.dense.bias", 0, TINY_INNER},
                                        {"output.dense.weight", H, TINY_INNER},
                                        {"output.dense.bias", 0, H},
                                        {"output.LayerNorm.weight", 0, H},
                                        {"output.LayerNorm.bias", 0, H}};
    char prefix[32];
    snprintf(prefix, sizeof prefix, "encoder.layer.%d.", layer);
    tiny_put_all(f, prefix, parts, sizeof parts / sizeof parts[0]);
}

static inline void tiny_put_bert(tiny_file *f)
{
    tiny_put(f, "embeddings.word_embeddings.weight", TINY_TOKENS, TINY_HIDDEN);
    tiny_put(f, "embeddings.position_embeddings.weight", TINY_POSITIONS, TINY_HIDDEN);
    tiny_put(f, "embeddings.token_type_embeddings.weight", 2, TINY_HIDDEN);
    tiny_put(f, "embeddings.LayerNorm.weight", 0, TINY_HIDDEN);
    tiny_put(f, "embeddings.LayerNorm.bias", 0, TINY_HIDDEN);
    for (int i = 0; i < TINY_LAYERS; i++)
        tiny_put_layer(f, i);
}

/* model.safetensors; how NULL: as it should be */
static inline void tiny_write_weights(const test_folder *folder, const tiny_weights *how)
{
    tiny_write_tensors(folder, how, tiny_put_bert);
}

/* config.json; the setting `key` is `value` (JSON), or is left out where that is NULL. key NULL: as it should be. */
static inline void tiny_write_config(const test_folder *folder, const char *key, const char *value)
{
    static const char *const settings[][2] = {
        {"model_type", "\"bert\""},     {"vocab_size", "40"},
        {"hidden_size", "12"},          {"num_hidden_layers", "2"},
        {"num_attention_heads", "3"},   {"intermediate_size", "20"},
        {"hidden_act", "\"gelu\""},     {"max_position_embeddings", "16"},
        {"type_vocab_size", "2"},       {"layer_norm_eps", "1e-5"},
        {"hidden_dropout_prob", "0.1"}, {"position_embedding_type", "\"absolute\""}};
    tiny_write_settings(folder, "config.json", settings, sizeof settings / sizeof settings[0], key, value);
}

/* A BERT folder as it should be. */
static inline test_folder tiny_bert(void)
{
    const test_folder f = folder_new();
    tiny_write_config(&f, NULL, NULL);
    tiny_write_weights(&f, NULL);
    return f;
}

/* A sentence-transformers folder in the older layout, with a vocabulary of letters; mean, normalised. */
static inline test_folder tiny_sentence(void)
{
    const test_folder f = tiny_bert();
    FILE *file = folder_open(&f, "vocab.txt");
    fprintf(file, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n");
    for (int i = 5; i < TINY_TOKENS; i++)
        fprintf(file, "%s%c\n", i < 31 ? "" : "##", i < 31 ? 'a' + i - 5 : 'a' + i - 31);
    assert_int_equal(fclose(file), 0);
    folder_write(&f, "tokenizer_config.json", "{\"do_lower_case\": true, \"model_max_length\": 14}");
    folder_write(
        &f, "modules.json",
        "[{\"idx\": 0, \"name\": \"0\", \"path\": \"\", \"type\": \"sentence_transformers.models.Transformer\"},"
        " {\"idx\": 1, \"name\": \"1\", \"path\": \"1_Pooling\", \"type\": "
        "\"sentence_transformers.models.Pooling\"},"
        " {\"idx\": 2, \"name\": \"2\", \"path\": \"2_Normalize\", \"type\": "
        "\"sentence_transformers.models.Normalize\"}]");
    folder_write(&f, "1_Pooling/config.json",
                 "{\"word_embedding_dimension\": 12, \"pooling_mode_cls_token\": false, \"pooling_mode_mean_tokens\": "
                 "true, \"pooling_mode_max_tokens\": false, \"pooling_mode_mean_sqrt_len_tokens\": false}");
    folder_write(&f, "sentence_bert_config.json", "{\"max_seq_length\": 12, \"do_lower_case\": false}");
    return f;
}

#endif
