/* .gguf files, written for a test: the weights of a tiny model like Llama, with any value or tensor changed. */
#ifndef TINY_GGUF_H
#define TINY_GGUF_H

#include "tiny_llama.h"

#include "attend_language.h"

#include <stdint.h>

enum { GGUF_NONE = -1, GGUF_U32 = 4, GGUF_I32 = 5, GGUF_F32 = 6, GGUF_BOOL = 7, GGUF_TEXT = 8, GGUF_LIST = 9 };

typedef struct gguf_value {
    const char *key;
    int type; /* of a list: of its items; GGUF_NONE: the value is left out */
    double number;
    const char *text;
    int64_t count; /* of a list */
    const char *const *texts;
    const double *numbers;
} gguf_value;

/* ---- a file as it grows */

typedef struct gguf_bytes {
    unsigned char *data;
    size_t count;
} gguf_bytes;

typedef struct gguf_file {
    gguf_bytes values, tensors, data;
    uint64_t n_values, n_tensors;
} gguf_file;

static inline void gguf_add(gguf_bytes *b, const void *data, size_t n)
{
    b->data = realloc(b->data, b->count + n);
    assert_non_null(b->data);
    memcpy(b->data + b->count, data, n);
    b->count += n;
}

static inline void gguf_add_number(gguf_bytes *b, uint64_t x, size_t n) /* little-endian, as the tests' machines */
{
    gguf_add(b, &x, n);
}

static inline void gguf_add_text(gguf_bytes *b, const char *text)
{
    gguf_add_number(b, strlen(text), 8);
    gguf_add(b, text, strlen(text));
}

static inline void gguf_add_item(gguf_bytes *b, int type, double number, const char *text)
{
    const float x = (float)number;
    if (type == GGUF_TEXT)
        gguf_add_text(b, text);
    else if (type == GGUF_F32)
        gguf_add(b, &x, sizeof x);
    else
        gguf_add_number(b, (uint64_t)(int64_t)number, type == GGUF_BOOL ? 1 : 4);
}

static inline void gguf_put(gguf_file *f, const gguf_value *v)
{
    if (v->type == GGUF_NONE)
        return;
    gguf_add_text(&f->values, v->key);
    gguf_add_number(&f->values, v->count ? GGUF_LIST : (uint64_t)v->type, 4);
    if (v->count) {
        gguf_add_number(&f->values, (uint64_t)v->type, 4);
        gguf_add_number(&f->values, (uint64_t)v->count, 8);
    } else {
        gguf_add_item(&f->values, v->type, v->number, v->text);
    }
    for (int64_t i = 0; i < v->count; i++)
        gguf_add_item(&f->values, v->type, v->numbers ? v->numbers[i] : 0, v->texts ? v->texts[i] : NULL);
    f->n_values++;
}

/* A tensor of f32, dim [rank] with the last one contiguous */
static inline void gguf_put_tensor(gguf_file *f, const char *name, int rank, const int64_t *dim, const float *x)
{
    uint64_t n = 1;
    gguf_add_text(&f->tensors, name);
    gguf_add_number(&f->tensors, (uint64_t)rank, 4);
    for (int i = rank - 1; i >= 0; i--) {
        gguf_add_number(&f->tensors, (uint64_t)dim[i], 8);
        n *= (uint64_t)dim[i];
    }
    gguf_add_number(&f->tensors, 0, 4);
    gguf_add_number(&f->tensors, f->data.count, 8);
    gguf_add(&f->data, x, n * sizeof *x);
    while (f->data.count % 32)
        gguf_add(&f->data, "", 1);
    f->n_tensors++;
}

static inline void gguf_write(gguf_file *f, const test_folder *folder, const char *name)
{
    gguf_bytes head = {0};
    gguf_add(&head, "GGUF", 4);
    gguf_add_number(&head, 3, 4);
    gguf_add_number(&head, f->n_tensors, 8);
    gguf_add_number(&head, f->n_values, 8);
    gguf_add(&head, f->values.data, f->values.count);
    gguf_add(&head, f->tensors.data, f->tensors.count);
    while (head.count % 32)
        gguf_add(&head, "", 1);
    FILE *file = folder_open(folder, name);
    assert_int_equal(fwrite(head.data, 1, head.count, file), head.count);
    assert_int_equal(fwrite(f->data.data, 1, f->data.count, file), f->data.count);
    assert_int_equal(fclose(file), 0);
    free(head.data);
    free(f->values.data);
    free(f->tensors.data);
    free(f->data.data);
    *f = (gguf_file){0};
}

/* ---- the tiny model */

/* 20 tokens of byte level: special ones, one of the user, and unused ones */
static const char *const tiny_gguf_tokens[LLAMA_VOCABULARY] = {"<|end|>",
                                                               "<|begin|>",
                                                               "<tool>",
                                                               "a",
                                                               "b",
                                                               "c",
                                                               "d",
                                                               "\xC4\xA0",
                                                               "1",
                                                               "2",
                                                               "ab",
                                                               "\xC4\xA0"
                                                               "a",
                                                               "\xC4\xA0"
                                                               "ab",
                                                               "cd",
                                                               "!",
                                                               "\xC4\x8A",
                                                               "e",
                                                               "f",
                                                               "[PAD18]",
                                                               "[PAD19]"};
static const double tiny_gguf_kinds[LLAMA_VOCABULARY] = {3, 3, 4, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 5, 5};
static const char *const tiny_gguf_merges[] = {"a b", "\xC4\xA0 a", "\xC4\xA0 ab", "c d"};

typedef struct tiny_gguf {
    const gguf_value *change; /* [changes]: instead of the values with these keys, or more of them */
    int changes;
    const char *without, *extra; /* tensors by their names in the file */
    const float *factors;        /* rope_freqs.weight [head_dim / 2] */
} tiny_gguf;

static inline void tiny_gguf_put(gguf_file *f, const tiny_gguf *how, gguf_value v)
{
    for (int i = 0; i < how->changes; i++)
        if (!strcmp(how->change[i].key, v.key))
            return;
    gguf_put(f, &v);
}

static inline void tiny_gguf_settings(gguf_file *f, const tiny_llama *m, const tiny_gguf *how)
{
    const char *template = "{{ messages }}";
    const struct {
        const char *name;
        int type;
        double number;
    } settings[] = {{"block_count", GGUF_U32, .number = 2},
                    {"context_length", GGUF_U32, .number = 32},
                    {"embedding_length", GGUF_U32, LLAMA_HIDDEN},
                    {"feed_forward_length", GGUF_U32, LLAMA_INNER},
                    {"attention.head_count", GGUF_U32, LLAMA_HEADS},
                    {"attention.head_count_kv", GGUF_U32, LLAMA_KV_HEADS},
                    {"attention.key_length", GGUF_U32, m->head_dim},
                    {"attention.value_length", GGUF_U32, m->head_dim},
                    {"attention.layer_norm_rms_epsilon", GGUF_F32, 1e-5},
                    {"rope.dimension_count", GGUF_U32, m->head_dim}};
    tiny_gguf_put(f, how, (gguf_value){"general.architecture", GGUF_TEXT, .text = m->type});
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        char key[80];
        snprintf(key, sizeof key, "%s.%s", m->type, settings[i].name);
        tiny_gguf_put(f, how, (gguf_value){key, settings[i].type, .number = settings[i].number});
    }
    const gguf_value tokenizer[] = {
        {"tokenizer.ggml.model", GGUF_TEXT, .text = "gpt2"},
        {"tokenizer.ggml.pre", GGUF_TEXT, .text = "smollm"},
        {"tokenizer.ggml.tokens", GGUF_TEXT, .count = LLAMA_VOCABULARY, .texts = tiny_gguf_tokens},
        {"tokenizer.ggml.token_type", GGUF_I32, .count = LLAMA_VOCABULARY, .numbers = tiny_gguf_kinds},
        {"tokenizer.ggml.merges", GGUF_TEXT, .count = 4, .texts = tiny_gguf_merges},
        {"tokenizer.ggml.bos_token_id", GGUF_U32, .number = 1},
        {"tokenizer.ggml.eos_token_id", GGUF_U32, .number = 0},
        {"tokenizer.chat_template", GGUF_TEXT, .text = template}};
    for (size_t i = 0; i < sizeof tokenizer / sizeof tokenizer[0]; i++)
        tiny_gguf_put(f, how, tokenizer[i]);
    for (int i = 0; i < how->changes; i++)
        gguf_put(f, &how->change[i]);
}

/* "model.layers.1.mlp.up_proj.weight" as "blk.1.ffn_up.weight" */
static inline void tiny_gguf_name(const char *name, char to[128])
{
    static const char *const parts[][2] = {{"model.embed_tokens", "token_embd"},
                                           {"model.norm", "output_norm"},
                                           {"lm_head", "output"},
                                           {"self_attn.q_proj", "attn_q"},
                                           {"self_attn.k_proj", "attn_k"},
                                           {"self_attn.v_proj", "attn_v"},
                                           {"self_attn.o_proj", "attn_output"},
                                           {"self_attn.q_norm", "attn_q_norm"},
                                           {"self_attn.k_norm", "attn_k_norm"},
                                           {"input_layernorm", "attn_norm"},
                                           {"post_attention_layernorm", "ffn_norm"},
                                           {"mlp.gate_proj", "ffn_gate"},
                                           {"mlp.up_proj", "ffn_up"},
                                           {"mlp.down_proj", "ffn_down"}};
    char prefix[32] = "";
    int layer;
    if (sscanf(name, "model.layers.%d.", &layer) == 1)
        snprintf(prefix, sizeof prefix, "blk.%d.", layer);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const char *at = strstr(name, parts[i][0]);
        if (at && at[strlen(parts[i][0])] == '.') {
            snprintf(to, 128, "%s%s%s", prefix, parts[i][1], at + strlen(parts[i][0]));
            return;
        }
    }
    fail_msg("%s has no name in a .gguf file", name);
}

/* Rows of heads as llama.cpp's converter orders them: row j d/2 + i of a head becomes row 2 i + j. */
static inline void tiny_gguf_permute(float *to, const float *from, int64_t rows, int64_t width, int64_t head_dim)
{
    for (int64_t r = 0; r < rows; r++) {
        const int64_t in_head = r % head_dim, j = in_head / (head_dim / 2), i = in_head % (head_dim / 2);
        memcpy(to + (r - in_head + 2 * i + j) * width, from + r * width, (size_t)width * sizeof *to);
    }
}

static inline void tiny_gguf_tensors(gguf_file *f, const test_folder *folder, const tiny_llama *m, const tiny_gguf *how)
{
    char path[300], name[128];
    static float ordered[4096];
    att_ctx *context;
    att_safetensors *all;
    snprintf(path, sizeof path, "%s/model.safetensors", folder->path);
    assert_int_equal(att_open(&context, NULL), ATT_OK);
    assert_int_equal(att_safetensors_open(context, path, &all), ATT_OK);
    for (int64_t i = 0; i < att_safetensors_count(all); i++) {
        att_tensor t;
        assert_int_equal(att_safetensors_get(all, att_safetensors_name(all, i), &t), ATT_OK);
        tiny_gguf_name(att_safetensors_name(all, i), name);
        if (how->without && !strcmp(how->without, name))
            continue;
        const int64_t width = t.rank > 1 ? t.dim[1] : 1;
        const float *x = t.data;
        if (!strcmp(m->type, "llama") && (strstr(name, "attn_q.") || strstr(name, "attn_k."))) {
            tiny_gguf_permute(ordered, x, t.dim[0], width, m->head_dim);
            x = ordered;
        }
        gguf_put_tensor(f, name, t.rank, t.dim, x);
    }
    if (how->extra)
        gguf_put_tensor(f, how->extra, 1, (const int64_t[]){1}, (const float[]){1});
    if (how->factors)
        gguf_put_tensor(f, "rope_freqs.weight", 1, (const int64_t[]){m->head_dim / 2}, how->factors);
    att_safetensors_free(all);
    att_close(context);
}

/* Writes the weights of a tiny model's folder -> FOLDER/name. how NULL: as they are */
static inline void tiny_gguf_write(const test_folder *folder, const char *name, const tiny_llama *m,
                                   const tiny_gguf *how)
{
    gguf_file f = {0};
    how = how ? how : &(const tiny_gguf){0};
    tiny_gguf_settings(&f, m, how);
    tiny_gguf_tensors(&f, folder, m, how);
    gguf_write(&f, folder, name);
}

/* Logits of a model's tokens ids [n] -> out [n, LLAMA_VOCABULARY] */
static inline void tiny_logits(att_ctx *ctx, const char *path, const int32_t *ids, int64_t n, float *out)
{
    att_language_model *m;
    att_tape *t;
    att_tensor v;
    if (att_language_model_open(ctx, path, &m))
        fail_msg("%s", att_error(ctx));
    assert_int_equal(att_tape_new(ctx, NULL, &t), ATT_OK);
    att_var *y = att_language_model_apply(t, m, ids, (const int64_t[]){0, n}, 1, NULL, false);
    assert_int_equal(att_var_value(t, y, &v), ATT_OK);
    memcpy(out, v.data, (size_t)(n * LLAMA_VOCABULARY) * sizeof *out);
    att_tape_free(t);
    att_language_model_free(m);
}

#endif
