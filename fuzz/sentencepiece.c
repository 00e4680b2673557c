/* The input is a text and, after a separator, the model to tokenize it with. A text alone is tokenized with a small
 * valid model, so that its bytes can be arbitrary. */
#include "fuzz_text.h"
#include "io/proto.h"
#include "text/sentencepiece.h"

static const char *const files[] = {"model.spm", NULL};

static void clean(void) { fuzz_remove(files); }

static att_tokenizer *open_model(fuzz_section file)
{
    static bool made;
    char path[128];
    att_tokenizer *t;
    if (!made) {
        atexit(clean);
        made = true;
    }
    fuzz_write(files[0], file);
    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), files[0]);
    if (!att_tokenizer_open(fuzz_context(), path, &t))
        return t;
    fuzz_check(!t, "refused, but with a tokenizer");
    return NULL;
}

/* Opened once: a small BPE model. */
static const att_tokenizer *small_model(void)
{
    static const struct {
        const char *text;
        int type;
    } pieces[] = {{"<unk>", ATT_PIECE_UNKNOWN},
                  {"</s>", ATT_PIECE_CONTROL},
                  {"ab", 1},
                  {"\xe2\x96\x81"
                   "ab",
                   1},
                  {"aa", 1},
                  {"aaaa", 1},
                  {"a", 1},
                  {"b", 1},
                  {"\xe2\x96\x81", 1},
                  {"\xe6\x97\xa5", 1},
                  {"[MASK]", ATT_PIECE_USER}};
    static att_tokenizer *t;
    if (t)
        return t;
    att_bytes file = {.ctx = fuzz_context()};
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        att_bytes piece = {.ctx = fuzz_context()};
        att_proto_put_bytes(&piece, 1, pieces[i].text, strlen(pieces[i].text));
        att_proto_put_float(&piece, 2, -(float)i);
        att_proto_put_int(&piece, 3, (uint64_t)pieces[i].type);
        att_proto_put_bytes(&file, 1, piece.data, piece.count);
        att_bytes_free(&piece);
    }
    att_proto_put_bytes(&file, 2, "\x18\x02", 2); /* BPE */
    t = open_model((fuzz_section){(const unsigned char *)file.data, file.count});
    att_bytes_free(&file);
    fuzz_check(t != NULL, "the small model is refused");
    return t;
}

/* Decodes the ids of the text, and ids made from its bytes. */
static void check_back(const att_tokenizer *t, fuzz_section text)
{
    att_tokens tokens = fuzz_encode(t, text, 0, false);
    att_text back;
    fuzz_check(!att_detokenize(t, tokens.ids, tokens.count, &back), "ids are refused");
    fuzz_check(back.text[back.bytes] == 0, "a text does not end");
    att_text_free(fuzz_context(), &back);
    att_tokens_free(fuzz_context(), &tokens);
    int32_t ids[256];
    int64_t n = 0;
    for (; (size_t)n < text.size && n < 256; n++)
        ids[n] = (int32_t)(text.data[n] % att_tokenizer_size(t));
    fuzz_check(!att_detokenize(t, ids, n, &back), "ids are refused");
    att_text_free(fuzz_context(), &back);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    const att_tokenizer *small = small_model();
    fuzz_section text = {data, size};
    const unsigned char *end = memchr(data, FUZZ_SEPARATOR, size);
    if (!end) {
        fuzz_check_text(small, text);
        check_back(small, text);
        return 0;
    }
    text.size = (size_t)(end - data);
    att_tokenizer *t = open_model((fuzz_section){end + 1, size - text.size - 1});
    if (t) {
        fuzz_check_text(t, text);
        check_back(t, text);
    }
    att_tokenizer_free(t);
    return 0;
}
