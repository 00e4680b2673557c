/* A tiny BERT and a tiny sentence-transformers folder, written for a test, with any part left out or wrong.
 * The weights are those of tests/golden/make_tiny_bert.py. */
#ifndef TINY_BERT_H
#define TINY_BERT_H

#include "attend_model.h"
#include "folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TINY_HIDDEN = 12, TINY_TOKENS = 40, TINY_POSITIONS = 16, TINY_LAYERS = 2, TINY_HEADS = 3, TINY_INNER = 20 };

static inline void tiny_delete(const test_folder *f, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", f->path, name);
    assert_int_equal(remove(path), 0);
}

/* ---- weights */

typedef struct tiny_weights {
    const char *prefix;  /* before all names, NULL: "" */
    const char *without; /* this tensor is left out */
    const char *extra;   /* this one, of one number, is there too */
    const char *wider;   /* this one has a column more */
    bool gamma;          /* LayerNorm.gamma and beta for weight and bias */
    bool coarse;         /* the upper 16 bits of each number only */
    bool bf16;           /* stored so */
} tiny_weights;

typedef struct tiny_file {
    const tiny_weights *how;
    char header[16384];
    size_t header_bytes, data_bytes;
    unsigned char *data;
} tiny_file;

static inline float tiny_number(const char *name, uint64_t i)
{
    uint64_t seed = 0;
    for (size_t c = 0; name[c]; c++)
        seed += (uint64_t)(unsigned char)name[c] * (c + 1);
    const uint32_t h = (uint32_t)((i + seed) * 2654435761u) ^ (uint32_t)((i + seed) * 40503u);
    const float x = (float)(h >> 8) / 16777216.0f - 0.5f;
    const char *norm = strstr(name, "LayerNorm.weight");
    return norm ? x + 1 : x;
}

static inline void tiny_put(tiny_file *f, const char *name, int64_t rows, int64_t columns)
{
    const tiny_weights *how = f->how;
    char theirs[128], shape[64];
    if (how->without && !strcmp(how->without, name))
        return;
    snprintf(theirs, sizeof theirs, "%s%s", how->prefix ? how->prefix : "", name);
    char *norm = strstr(theirs, "LayerNorm.");
    if (how->gamma && norm)
        strcpy(norm + 10, strcmp(norm + 10, "weight") == 0 ? "gamma" : "beta");
    columns += how->wider && !strcmp(how->wider, name);
    if (rows)
        snprintf(shape, sizeof shape, "%lld,%lld", (long long)rows, (long long)columns);
    else
        snprintf(shape, sizeof shape, "%lld", (long long)columns);
    const uint64_t count = (uint64_t)((rows ? rows : 1) * columns);
    const size_t bytes = count * (how->bf16 ? 2 : 4);
    f->header_bytes += (size_t)snprintf(f->header + f->header_bytes, sizeof f->header - f->header_bytes,
                                        "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
                                        f->header_bytes > 1 ? "," : "", theirs, how->bf16 ? "BF16" : "F32", shape,
                                        f->data_bytes, f->data_bytes + bytes);
    f->data = realloc(f->data, f->data_bytes + bytes);
    for (uint64_t i = 0; i < count; i++) {
        const float x = tiny_number(name, i);
        uint32_t u;
        memcpy(&u, &x, sizeof u);
        if (how->coarse)
            u &= 0xffff0000u;
        const uint16_t half = (uint16_t)(u >> 16);
        memcpy(f->data + f->data_bytes + i * (how->bf16 ? 2 : 4), how->bf16 ? (void *)&half : (void *)&u,
               how->bf16 ? 2 : 4);
    }
    f->data_bytes += bytes;
}

static inline void tiny_put_layer(tiny_file *f, int layer)
{
    enum { H = TINY_HIDDEN };
    static const struct {
        const char *name;
        int64_t rows, columns;
    } parts[] = {{"attention.self.query.weight", H, H},
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
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        char name[128];
        snprintf(name, sizeof name, "encoder.layer.%d.%s", layer, parts[i].name);
        tiny_put(f, name, parts[i].rows, parts[i].columns);
    }
}

/* model.safetensors; how NULL: as it should be */
static inline void tiny_write_weights(const test_folder *folder, const tiny_weights *how)
{
    tiny_file *f = calloc(1, sizeof *f);
    f->how = how ? how : &(const tiny_weights){0};
    f->header[f->header_bytes++] = '{';
    tiny_put(f, "embeddings.word_embeddings.weight", TINY_TOKENS, TINY_HIDDEN);
    tiny_put(f, "embeddings.position_embeddings.weight", TINY_POSITIONS, TINY_HIDDEN);
    tiny_put(f, "embeddings.token_type_embeddings.weight", 2, TINY_HIDDEN);
    tiny_put(f, "embeddings.LayerNorm.weight", 0, TINY_HIDDEN);
    tiny_put(f, "embeddings.LayerNorm.bias", 0, TINY_HIDDEN);
    for (int i = 0; i < TINY_LAYERS; i++)
        tiny_put_layer(f, i);
    if (f->how->extra)
        tiny_put(f, f->how->extra, 0, 1);
    f->header[f->header_bytes++] = '}';
    while (f->header_bytes % 8)
        f->header[f->header_bytes++] = ' ';
    FILE *file = folder_open(folder, "model.safetensors");
    const uint64_t n = f->header_bytes;
    fwrite(&n, 1, sizeof n, file);
    fwrite(f->header, 1, f->header_bytes, file);
    fwrite(f->data, 1, f->data_bytes, file);
    assert_int_equal(fclose(file), 0);
    free(f->data);
    free(f);
}

/* ---- settings */

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
    FILE *file = folder_open(folder, "config.json");
    fprintf(file, "{\"transformers_version\": \"5\"");
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        if (!key || strcmp(key, settings[i][0]) != 0)
            fprintf(file, ", \"%s\": %s", settings[i][0], settings[i][1]);
    if (key && value)
        fprintf(file, ", \"%s\": %s", key, value);
    fprintf(file, "}\n");
    assert_int_equal(fclose(file), 0);
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
