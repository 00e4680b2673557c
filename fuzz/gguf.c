/* The input is a .gguf file. What is accepted must be readable to its end: values, tensors, and what becomes of them,
 * the settings of a model and a tokenizer. */
#include "fuzz.h"

#include "model/gguf_model.h"
#include "text/gguf_tokenizer.h"

enum { MAX_ELEMENTS = 1 << 20 };

static void read_settings(att_gguf *g)
{
    static const char *const names[] = {"config.json", "generation_config.json", "tokenizer_config.json"};
    for (int i = 0; i < 3; i++) {
        json_t *root;
        const att_status s = att_gguf_file(g, names[i], &root);
        fuzz_check(!s == (root != NULL), "refused, but with settings, or the other way round");
        json_decref(root);
    }
}

static void read_tokenizer(att_gguf *g)
{
    static const char text[] = "Hello, 12 worlds <|end|>\n";
    att_tokenizer *t = NULL;
    att_tokens tokens;
    if (att_gguf_tokenizer_read(fuzz_context(), g, &t)) {
        fuzz_check(!t, "refused, but with a tokenizer");
        return;
    }
    if (!att_tokenize(t, text, sizeof text - 1, NULL, &tokens))
        att_tokens_free(fuzz_context(), &tokens);
    att_tokenizer_free(t);
}

static void read_weights(att_gguf *g)
{
    att_gguf_weights w;
    int64_t elements = 0;
    for (int64_t i = 0; i < att_gguf_count(g); i++)
        elements += att_gguf_at(g, i)->elements;
    if (elements > MAX_ELEMENTS || att_gguf_weights_read(fuzz_context(), g, &w))
        return;
    volatile unsigned sum = 0;
    for (int64_t i = 0; i < w.count; i++)
        sum = sum + *(const unsigned char *)w.tensor[i].data;
    att_gguf_weights_free(&w);
}

/* An error stays in a file, so each part has its own. */
static void read_part(const unsigned char *bytes, size_t size, void part(att_gguf *g))
{
    att_gguf *g;
    if (!att_gguf_from_memory(fuzz_context(), "input", bytes, size, &g))
        part(g);
    else
        fuzz_check(!g, "refused, but with a file");
    att_gguf_free(g);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    unsigned char *bytes;
    if (posix_memalign((void **)&bytes, 8, size + !size))
        abort();
    if (size > 0)
        memcpy(bytes, data, size);
    read_part(bytes, size, read_settings);
    read_part(bytes, size, read_tokenizer);
    read_part(bytes, size, read_weights);
    free(bytes);
    return 0;
}
