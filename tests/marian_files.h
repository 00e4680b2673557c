/* The files of a Marian tokenizer, those of tests/golden/make_marian.py: two SentencePiece models, and a vocabulary of
 * most of their pieces. */
#ifndef MARIAN_FILES_H
#define MARIAN_FILES_H

#include "attend_model.h"
#include "folder.h"

#include <jansson.h>

static inline void copy_file(const char *from, const test_folder *folder, const char *to)
{
    static char data[1 << 16];
    FILE *in = fopen(from, "rb"), *out = folder_open(folder, to);
    assert_non_null(in);
    fwrite(data, 1, fread(data, 1, sizeof data, in), out);
    fclose(in);
    assert_int_equal(fclose(out), 0);
}

static inline void add_token_once(json_t *tokens, const char *token)
{
    if (!json_object_get(tokens, token))
        json_object_set_new(tokens, token, json_integer((json_int_t)json_object_size(tokens)));
}

/* Returns the number of tokens; the first is </s>, the last <pad>. */
static inline int64_t write_marian_files(att_ctx *ctx, const test_folder *folder)
{
    static const char *const names[][2] = {{"tests/golden/unigram.spm", "source.spm"},
                                           {"tests/golden/bpe.spm", "target.spm"}};
    json_t *tokens = json_object();
    add_token_once(tokens, "</s>");
    add_token_once(tokens, "<unk>");
    add_token_once(tokens, ">>de<<");
    for (int m = 0; m < 2; m++) {
        att_tokenizer *t;
        copy_file(names[m][0], folder, names[m][1]);
        assert_int_equal(att_tokenizer_open(ctx, names[m][0], &t), ATT_OK);
        for (int32_t i = 0; i < att_tokenizer_size(t); i++)
            if (i % 7)
                add_token_once(tokens, att_tokenizer_token(t, i));
        att_tokenizer_free(t);
    }
    add_token_once(tokens, "<pad>");
    const int64_t count = (int64_t)json_object_size(tokens);
    FILE *f = folder_open(folder, "vocab.json");
    assert_int_equal(json_dumpf(tokens, f, 0), 0);
    assert_int_equal(fclose(f), 0);
    json_decref(tokens);
    folder_write(folder, "tokenizer_config.json", "{}");
    return count;
}

#endif
