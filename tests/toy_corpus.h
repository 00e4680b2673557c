/* A folder with a toy corpus (toy_texts.h), and a tokenizer of its words: what trainings of a translator are tested on.
 */
#ifndef TEST_TOY_CORPUS_H
#define TEST_TOY_CORPUS_H

#include "attend_model.h"
#include "check.h"
#include "toy_texts.h"

enum { LINES = 240 };

static test_folder folder;

static const char *path_of(const char *name, char path[256])
{
    snprintf(path, 256, "%s/%s", folder.path, name);
    return path;
}

/* A vocabulary of all words of both, and what Marian's tokenizer reads. */
static void write_vocabulary(att_ctx *ctx)
{
    att_vocab *v;
    att_vocab_result r = {.size = sizeof r};
    assert_int_equal(att_vocab_new(ctx, ATT_OPTIONS(att_vocab_options, .pieces = 70, .keep_text = true), &v), ATT_OK);
    for (int i = 0; i < 2 * TOY_WORDS; i++)
        for (int k = 0; k < 3; k++)
            assert_int_equal(att_vocab_add(v, toy_words[i / TOY_WORDS][i % TOY_WORDS],
                                           strlen(toy_words[i / TOY_WORDS][i % TOY_WORDS])),
                             ATT_OK);
    assert_int_equal(att_vocab_learn(v, &r), ATT_OK);
    const att_marian_tokenizer_files text = {.size = sizeof text, .source = r.model, .source_bytes = r.bytes};
    assert_int_equal(att_marian_tokenizer_write(ctx, folder.path, &text, NULL), ATT_OK);
    att_vocab_free(v);
}

static int set_up(void **state)
{
    (void)state;
    folder = folder_new();
    att_ctx *ctx = check_open(NULL, 1);
    write_vocabulary(ctx);
    att_close(ctx);
    toy_write(&folder, "train.de", "train.en", 1, LINES);
    toy_write(&folder, "valid.de", "valid.en", 1000, 50);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    folder_remove(&folder);
    return 0;
}

#endif
