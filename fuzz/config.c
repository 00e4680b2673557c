/* The input is the settings of a sentence-transformers folder, one section a file, in the order of `files`. */
#include "fuzz.h"

#include "model/bert_config.h"
#include "model/modules.h"

static const char *const folders[] = {"1_Pooling", "2_Normalize"};
static const char *const files[] = {"config.json",
                                    "modules.json",
                                    "1_Pooling/config.json",
                                    "sentence_bert_config.json",
                                    "tokenizer_config.json",
                                    "config_sentence_transformers.json",
                                    "2_Normalize/config.json",
                                    "1_Pooling",
                                    "2_Normalize",
                                    NULL};
enum { N_FILES = 7 };

static void clean(void) { fuzz_remove(files); }

static void check_bert(void)
{
    att_bert_config c = {0};
    if (att_bert_config_read(fuzz_context(), fuzz_folder(), &c)) {
        fuzz_check(c.hidden == 0, "a config was refused, but written");
        return;
    }
    fuzz_check(c.heads > 0 && c.hidden > 0 && c.hidden % c.heads == 0, "heads do not divide hidden");
    fuzz_check(c.layers > 0 && c.vocabulary > 0 && c.types > 0 && c.max_positions > 0 && c.intermediate > 0 &&
                   c.eps >= 0 && c.eps <= 1,
               "a size is out of range");
}

static void check_modules(void)
{
    att_modules m;
    if (att_modules_read(fuzz_context(), fuzz_folder(), &m)) {
        fuzz_check(!m.transformer, "modules were refused, but written");
        return;
    }
    fuzz_check(m.transformer && m.dim > 0 && m.max_tokens >= 0 && (unsigned)m.pooling <= ATT_POOL_MAX,
               "a setting is out of range");
    att_modules_free(fuzz_context(), &m);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    static bool made;
    if (!made) {
        for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
            fuzz_make_folder(folders[i]);
        atexit(clean);
        made = true;
    }
    fuzz_section rest = {data, size};
    for (int i = 0; i < N_FILES; i++)
        fuzz_write(files[i], fuzz_next(&rest));
    check_bert();
    check_modules();
    return 0;
}
