/* The input is the settings of a sentence-transformers folder or of a translator's, one section a file, in the order of
 * `files`. */
#include "fuzz.h"

#include "stack/bert_config.h"
#include "decoder/beam_config.h"
#include "translate/marian_config.h"
#include "sentence/modules.h"
#include "sentence/prompts.h"
#include "translate/seq2seq_config.h"

static const char *const folders[] = {"1_Pooling", "2_Normalize"};
static const char *const files[] = {"config.json",
                                    "modules.json",
                                    "1_Pooling/config.json",
                                    "sentence_bert_config.json",
                                    "tokenizer_config.json",
                                    "config_sentence_transformers.json",
                                    "2_Normalize/config.json",
                                    "generation_config.json",
                                    "1_Pooling",
                                    "2_Normalize",
                                    NULL};
enum { N_FILES = 8 };

static void clean(void) { fuzz_remove(files); }

static att_settings read_settings(void)
{
    att_settings s;
    att_settings_read(&s, fuzz_context(), fuzz_folder(), "config.json", true);
    return s;
}

static void check_bert(void)
{
    att_bert_config c = {0};
    att_settings s = read_settings();
    att_bert_config_read(&s, &att_bert_keys_of_class, &c);
    att_settings_close(&s);
    if (s.status)
        return;
    fuzz_check(c.heads > 0 && c.hidden > 0 && c.hidden % c.heads == 0, "heads do not divide hidden");
    fuzz_check(c.layers > 0 && c.vocabulary > 0 && c.types > 0 && c.positions > 0 && c.intermediate > 0 && c.eps >= 0 &&
                   c.eps <= 1,
               "a size is out of range");
}

static void check_modules(void)
{
    att_modules m;
    if (att_modules_read(fuzz_context(), fuzz_folder(), &m)) {
        fuzz_check(!m.folder && !m.backbone, "modules were refused, but written");
        return;
    }
    fuzz_check(m.backbone && m.kind && m.settings.max_tokens >= 0, "a setting is out of range");
    for (int i = 0; i < m.n; i++)
        fuzz_check(m.module[i].type && m.module[i].in >= 0 && m.module[i].out >= 0, "a size is out of range");
    att_modules_check(fuzz_context(), &m, 12);
    att_modules_free(fuzz_context(), &m);
}

static void check_prompts(void)
{
    att_prompts p;
    if (!att_prompts_read(fuzz_context(), fuzz_folder(), &p))
        fuzz_check(p.n >= 2 && p.chosen < p.n && p.truncate_dim >= 0, "a setting is out of range");
    att_prompts_free(fuzz_context(), &p);
}

static void check_generation(const att_marian_config *config)
{
    att_generation g;
    const att_encoder_decoder_info c = {.target_vocabulary = config->target_vocabulary,
                                        .max_positions = config->max_positions,
                                        .pad = config->pad,
                                        .eos = config->eos,
                                        .start = config->start};
    if (att_generation_read(fuzz_context(), fuzz_folder(), &c, &g))
        return;
    const att_search *o = &g.search;
    fuzz_check(o->beam > 0 && o->n_best == 1 && o->max_tokens > 0 && o->min_tokens >= 0 && o->start >= 0 &&
                   o->start < o->vocabulary && o->end >= 0 && o->end < o->vocabulary && o->length_penalty >= -100 &&
                   o->length_penalty <= 100,
               "a setting of a search is out of range");
    for (int64_t i = 0; i < o->n_banned; i++)
        fuzz_check(o->banned[i] >= 0 && o->banned[i] < o->vocabulary && o->banned[i] != o->end,
                   "a banned token is none of the model's");
}

static void check_marian(void)
{
    att_marian_config c = {0};
    att_settings s = read_settings();
    att_marian_config_read(&s, &c);
    att_settings_close(&s);
    if (s.status)
        return;
    fuzz_check(c.encoder.heads > 0 && c.hidden % c.encoder.heads == 0 && c.decoder.heads > 0 &&
                   c.hidden % c.decoder.heads == 0 && c.hidden % 2 == 0,
               "heads do not divide hidden");
    fuzz_check(c.encoder.layers > 0 && c.decoder.layers > 0 && c.encoder.intermediate > 0 &&
                   c.decoder.intermediate > 0 && c.source_vocabulary > 0 && c.target_vocabulary > 0 &&
                   c.max_positions > 0,
               "a size is out of range");
    fuzz_check(c.pad >= 0 && c.pad < c.target_vocabulary && c.eos >= 0 && c.eos < c.target_vocabulary && c.start >= 0 &&
                   c.start < c.target_vocabulary,
               "a special token is none of the model's");
    check_generation(&c);
}

static void check_seq2seq(void)
{
    att_seq2seq_config c = {0}, same = {0};
    att_settings s = read_settings();
    att_seq2seq_config_read(&s, &c);
    att_settings_close(&s);
    if (s.status)
        return;
    fuzz_check(c.embedding > 0 && c.units > 0 && c.layers > 0 && c.max_positions > 0 && c.source_vocabulary > 0 &&
                   c.target_vocabulary > 0 && (!c.bidirectional || c.units % 2 == 0),
               "a size is out of range");
    fuzz_check(c.pad >= 0 && c.pad < c.target_vocabulary && c.eos >= 0 && c.eos < c.target_vocabulary && c.start >= 0 &&
                   c.start < c.target_vocabulary,
               "a special token is none of the model's");
    att_settings_from_json(&s, fuzz_context(), "seq2seq", att_seq2seq_config_json(&c));
    att_seq2seq_config_read(&s, &same);
    att_settings_close(&s);
    fuzz_check(s.status == ATT_OK, "what was read could not be read again");
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
    check_prompts();
    check_marian();
    check_seq2seq();
    return 0;
}
