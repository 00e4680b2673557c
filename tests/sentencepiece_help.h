/* For tests of SentencePiece: models made piece by piece. */
#ifndef SENTENCEPIECE_HELP_H
#define SENTENCEPIECE_HELP_H

#include "io/proto.h"
#include "text/sentencepiece.h"
#include "tokenizer_help.h"

/* A model's file as it grows. */
static att_bytes model_file;

static inline void put_piece(const char *text, float score, int type)
{
    att_bytes b = {.ctx = ctx};
    att_proto_put_bytes(&b, 1, text, strlen(text));
    att_proto_put_float(&b, 2, score);
    att_proto_put_int(&b, 3, (uint64_t)type);
    att_proto_put_bytes(&model_file, 1, b.data, b.count);
    att_bytes_free(&b);
}

/* Of message `message` of the model, which may be given in parts. */
static inline void put_setting(uint32_t message, uint32_t field, uint64_t value)
{
    att_bytes b = {.ctx = ctx};
    att_proto_put_int(&b, field, value);
    att_proto_put_bytes(&model_file, message, b.data, b.count);
    att_bytes_free(&b);
}

static inline void put_bytes(uint32_t message, uint32_t field, const void *data, size_t bytes)
{
    att_bytes b = {.ctx = ctx};
    att_proto_put_bytes(&b, field, data, bytes);
    att_proto_put_bytes(&model_file, message, b.data, b.count);
    att_bytes_free(&b);
}

enum { TRAINER = 2, NORMALIZER_SPEC = 3, DENORMALIZER = 5 };
enum { MODEL_TYPE = 3, SUFFIX = 24, BYTE_FALLBACK = 35, UNK_SURFACE = 44 };
enum { CHARSMAP = 2, ADD_PREFIX = 3, REMOVE_SPACES = 4, ESCAPE_SPACES = 5 };

/* Begins a model: <unk>, <s> and </s>. */
static inline void begin_model(att_piece_model type)
{
    att_bytes_free(&model_file);
    model_file.ctx = ctx;
    put_setting(TRAINER, MODEL_TYPE, type);
    put_piece("<unk>", 0, ATT_PIECE_UNKNOWN);
    put_piece("<s>", 0, ATT_PIECE_CONTROL);
    put_piece("</s>", 0, ATT_PIECE_CONTROL);
}

static inline void put_byte_pieces(void)
{
    char text[8];
    put_setting(TRAINER, BYTE_FALLBACK, 1);
    for (int i = 0; i < 256; i++) {
        snprintf(text, sizeof text, "<0x%02X>", i);
        put_piece(text, 0, ATT_PIECE_BYTE);
    }
}

/* All of the file at once. */
static inline void set_model(const void *data, size_t bytes)
{
    att_bytes_free(&model_file);
    model_file.ctx = ctx;
    att_bytes_add(&model_file, data, bytes);
}

static inline const char *write_model_file(void)
{
    static char path[128];
    FILE *f = folder_open(&folder, "model.spm");
    if (model_file.count > 0)
        fwrite(model_file.data, 1, model_file.count, f);
    assert_int_equal(fclose(f), 0);
    snprintf(path, sizeof path, "%s/model.spm", folder.path);
    return path;
}

static inline att_tokenizer *open_model(void)
{
    att_tokenizer *t;
    if (att_tokenizer_open(ctx, write_model_file(), &t) != ATT_OK)
        fail_msg("%s", att_error(ctx));
    return t;
}

/* Ends the context's last memory too. */
static inline int tear_down_model(void **state)
{
    att_bytes_free(&model_file);
    return tear_down(state);
}

#endif
