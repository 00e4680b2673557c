/* sentencepiece.bpe.model without tokenizer.json, of XLM-R and CamemBERT: a vocabulary of SentencePiece, whose ids are
 * those of fairseq, after tokens of its own, as the settings of tokenizer.json. */
#include <string.h>

#include "io/proto.h"
#include "text/base64.h"
#include "text/sentencepiece.h"
#include "text/tokenizer_file.h"

typedef struct layout {
    att_settings config, map; /* tokenizer_config.json, which has the first error; special_tokens_map.json */
    json_t *root, *vocab;
    const char *bos, *pad, *eos, *unk, *mask;
} layout;

static void check_made(layout *l, bool made)
{
    if (!made)
        att_settings_fail(&l->config, ATT_ERR_MEMORY, "out of memory");
}

static void add(layout *l, const char *token, double score)
{
    check_made(l, json_array_append_new(l->vocab, json_pack("[s, f]", token, score)) == 0);
}

/* ---- vocabularies: special tokens, the pieces from `first` on, and the mask */

static void make_xlm_roberta(layout *l)
{
    const char *const special[] = {l->bos, l->pad, l->eos, l->unk};
    for (int i = 0; i < 4; i++)
        add(l, special[i], 0);
}

/* The class does without the pieces of the file for these tokens. */
static void make_camembert(layout *l)
{
    const char *const special[] = {"<s>NOTUSED", l->pad, "</s>NOTUSED", l->unk};
    for (int i = 0; i < 4; i++)
        add(l, special[i], 0);
    add(l, "<unk>NOTUSED", -100);
}

static const struct {
    const char *class;
    void (*make)(layout *l);
    int64_t first;
    bool lstrip; /* the mask stands for the spaces before it, too, unless the settings state its flags */
} classes[] = {{"XLMRobertaTokenizer", make_xlm_roberta, 3, false}, {"CamembertTokenizer", make_camembert, 1, true}};
enum { CLASSES = sizeof classes / sizeof classes[0] };

static int find_class(att_settings *config, const char *folder)
{
    const att_class_name name = att_tokenizer_class(config, folder);
    for (int i = 0; i < CLASSES; i++)
        if (!strcmp(classes[i].class, name.text))
            return i;
    att_settings_fail(config, ATT_ERR_UNSUPPORTED,
                      "\"tokenizer_class\" is \"%.60s\", which is not supported with sentencepiece.bpe.model; "
                      "XLMRobertaTokenizer and CamembertTokenizer are; with transformers, from_pretrained() and "
                      "save_pretrained() write tokenizer.json",
                      name.text);
    return 0;
}

/* ---- special tokens */

static const char *token_of(layout *l, const char *key, const char *otherwise)
{
    return att_special_token_write(&l->config, &l->map, l->root, key, otherwise);
}

static double id_of(layout *l, const char *token)
{
    for (size_t i = 0; i < json_array_size(l->vocab); i++)
        if (!strcmp(json_string_value(json_array_get(json_array_get(l->vocab, i), 0)), token))
            return (double)i;
    att_settings_fail(&l->config, ATT_ERR_FORMAT, "the special token \"%.80s\" is not in sentencepiece.bpe.model",
                      token);
    return 0;
}

/* Makes a token of the vocabulary an added one, unless it is. */
static void add_token(layout *l, const char *token, bool special, bool lstrip)
{
    json_t *all = json_object_get(l->root, "added_tokens"), *item;
    size_t i;
    json_array_foreach(all, i, item)
    {
        const char *content = json_string_value(json_object_get(item, "content"));
        if (content && !strcmp(content, token))
            return;
    }
    check_made(l, json_array_append_new(all, json_pack("{s:f, s:s, s:b, s:b, s:b}", "id", id_of(l, token), "content",
                                                       token, "normalized", 0, "lstrip", lstrip, "special", special)) ==
                      0);
}

static json_t *item_of(const char *kind, const char *id)
{
    return json_pack("{s:{s:s, s:f}}", kind, "id", id, "type_id", 0.0);
}

/* <s> A </s>, <s> A </s> </s> B </s> */
static void make_post_processor(layout *l)
{
    const char *const pair[][2] = {{"SpecialToken", l->bos}, {"Sequence", "A"}, {"SpecialToken", l->eos},
                                   {"SpecialToken", l->eos}, {"Sequence", "B"}, {"SpecialToken", l->eos}};
    json_t *post =
        json_pack("{s:s, s:[], s:[], s:{s:{s:[f]}, s:{s:[f]}}}", "type", "TemplateProcessing", "single", "pair",
                  "special_tokens", l->bos, "ids", id_of(l, l->bos), l->eos, "ids", id_of(l, l->eos));
    for (int i = 0; i < 6; i++) {
        check_made(l, i >= 3 ||
                          json_array_append_new(json_object_get(post, "single"), item_of(pair[i][0], pair[i][1])) == 0);
        check_made(l, json_array_append_new(json_object_get(post, "pair"), item_of(pair[i][0], pair[i][1])) == 0);
    }
    check_made(l, json_object_set_new(l->root, "post_processor", post) == 0);
}

/* ---- the file */

static json_t *base64_of(att_ctx *ctx, att_byte_view data)
{
    att_bytes text = {.ctx = ctx};
    att_base64_write(&text, data);
    json_t *y = text.status ? NULL : json_stringn(text.data, text.count);
    att_bytes_free(&text);
    return y;
}

/* The charsmap of the file, as it is there */
static att_status find_charsmap(const att_text_file *f, att_byte_view *charsmap)
{
    static const att_proto_field normalizer[] = {
        {2, "normalizer_spec.precompiled_charsmap", ATT_PROTO_BYTES, .offset = 0}, {0}};
    static const att_proto_field model[] = {{3, "normalizer_spec", ATT_PROTO_MESSAGE, .fields = normalizer}, {0}};
    att_proto p = {.ctx = f->ctx, .path = f->path, .start = f->text};
    *charsmap = (att_byte_view){"", 0};
    att_proto_read(&p, (att_byte_view){f->text, f->bytes}, model, charsmap);
    return p.status;
}

static void read_file(layout *l, const att_text_file *f, int class)
{
    att_sentencepiece m;
    att_byte_view charsmap;
    att_status s = att_sentencepiece_parse(&m, f->ctx, f->path, (att_byte_view){f->text, f->bytes});
    s = s ? s : find_charsmap(f, &charsmap);
    if (!s && m.model != ATT_PIECES_UNIGRAM)
        s = att_fail(f->ctx, ATT_ERR_UNSUPPORTED,
                     "%s: \"trainer_spec.model_type\" is %d, which is not supported here; 1 (unigram) is", f->path,
                     (int)m.model);
    if (s) {
        l->config.status = l->config.status ? l->config.status : s;
        att_sentencepiece_free(&m);
        return;
    }
    classes[class].make(l);
    for (int64_t i = classes[class].first; i < m.size; i++)
        add(l, m.piece[i].text, (double)m.piece[i].score);
    add(l, l->mask, 0);
    for (int64_t i = 0; i < m.size && !l->config.status; i++)
        if (m.piece[i].type == ATT_PIECE_CONTROL || m.piece[i].type == ATT_PIECE_USER)
            add_token(l, m.piece[i].text, m.piece[i].type == ATT_PIECE_CONTROL, false);
    if (classes[class].lstrip && !json_is_object(att_special_token_value(&l->config, &l->map, "mask_token")))
        add_token(l, l->mask, true, true);
    if (charsmap.bytes > 0)
        check_made(l, json_object_set_new(l->root, "normalizer",
                                          json_pack("{s:s, s:o}", "type", "Precompiled", "precompiled_charsmap",
                                                    base64_of(f->ctx, charsmap))) == 0);
    att_sentencepiece_free(&m);
}

static void make_root(layout *l)
{
    l->root =
        json_pack("{s:[], s:{s:s, s:[], s:f}}", "added_tokens", "model", "type", "Unigram", "vocab", "unk_id", 3.0);
    check_made(l, l->root);
    l->vocab = json_object_get(json_object_get(l->root, "model"), "vocab");
    l->bos = token_of(l, "bos_token", "<s>");
    l->pad = token_of(l, "pad_token", "<pad>");
    l->eos = token_of(l, "eos_token", "</s>");
    l->unk = token_of(l, "unk_token", "<unk>");
    l->mask = token_of(l, "mask_token", "<mask>");
    token_of(l, "cls_token", "<s>");
    token_of(l, "sep_token", "</s>");
}

att_status att_read_fairseq(const att_text_file *f, const char *folder, const att_token_list *list,
                            att_settings *settings)
{
    layout l = {0};
    att_settings_read(&l.config, f->ctx, folder, "tokenizer_config.json", false);
    att_special_tokens_map_read(&l.config, folder, &l.map);
    const int class = find_class(&l.config, folder);
    make_root(&l);
    if (!l.config.status)
        read_file(&l, f, class);
    if (!l.config.status)
        l.config.status = att_tokenizer_config_apply(f->ctx, folder, list, l.root);
    const char *const named[] = {l.bos, l.pad, l.eos, l.unk, l.mask};
    for (int i = 0; i < 5 && !l.config.status; i++)
        add_token(&l, named[i], true, false);
    if (!l.config.status)
        make_post_processor(&l);
    att_settings_init(settings, f->ctx, f->path, l.root);
    settings->status = l.config.status;
    att_settings_close(&l.config);
    att_settings_close(&l.map);
    return settings->status;
}
