/* The input is a translation and, one section each, its references; the first byte states how words are cut. */
#include "fuzz.h"

#include "attend_metric.h"

enum { MAX_REFERENCES = 4 };

static att_bleu_counts count(att_bleu_tokenizer words, fuzz_section text, const fuzz_section *reference, int n)
{
    const char *texts[MAX_REFERENCES];
    size_t bytes[MAX_REFERENCES];
    att_bleu_counts c;
    for (int i = 0; i < n; i++) {
        texts[i] = (const char *)reference[i].data;
        bytes[i] = reference[i].size;
    }
    fuzz_check(!att_bleu_count(fuzz_context(), words, (const char *)text.data, text.size, texts, bytes, n, &c),
               "a text is refused");
    return c;
}

static att_bleu_info scores(const att_bleu_counts *c)
{
    att_bleu_info info = {.size = sizeof info};
    fuzz_check(!att_bleu_describe(c, ATT_OPTIONS(att_bleu_options, .effective_order = true), &info),
               "counts are refused");
    fuzz_check(info.bleu >= 0 && info.bleu <= 100.001 && info.chrf >= 0 && info.chrf <= 100.001, "no score");
    return info;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    if (size == 0)
        return 0;
    const att_bleu_tokenizer words = (att_bleu_tokenizer)(data[0] % 3);
    fuzz_section rest = {data + 1, size - 1}, reference[MAX_REFERENCES];
    const fuzz_section text = fuzz_next(&rest);
    int n = 0;
    while (n < MAX_REFERENCES && rest.data)
        reference[n++] = fuzz_next(&rest);
    const att_bleu_counts c = count(words, text, reference, n), own = count(words, text, &text, 1);
    scores(&c);
    const att_bleu_info best = scores(&own);
    fuzz_check(own.tokens == c.tokens && own.tokens == own.reference_tokens, "words are not the same again");
    for (int i = 0; i < ATT_BLEU_ORDER; i++) {
        fuzz_check(c.token_matches[i] <= c.token_ngrams[i], "more is shared than is there");
        fuzz_check(own.token_matches[i] == own.token_ngrams[i] && own.token_ngrams[i] == c.token_ngrams[i],
                   "not all its own words");
    }
    fuzz_check(own.tokens == 0 || (best.bleu > 99.999 && best.chrf > 99.999), "a text is not its own translation");
    return 0;
}
