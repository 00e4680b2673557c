/* Reading the files of a tokenizer. */
#ifndef ATT_TOKENIZER_FILE_H
#define ATT_TOKENIZER_FILE_H

#include "io/settings.h"
#include "text/bert_normalizer.h"
#include "text/tokenizer.h"
#include "text/trie.h"
#include "text/wordpiece.h"

/* ---- vocabularies in files */

/* Tokens and their ids, in [0, ATT_MAX_VOCABULARY); other objects own the texts. */
typedef struct att_token_list {
    att_ctx *ctx;
    att_trie_entry *entry; /* [count] */
    size_t count, capacity;
    double *score; /* [scores]: scores of a list of ["token", score] of tokenizer.json */
    size_t scores, scores_capacity;
} att_token_list;

att_status att_token_list_add(att_token_list *list, att_trie_entry entry);
void att_token_list_free(att_token_list *list);
/* Builds a vocabulary; duplicate tokens or ids are errors. Reserves space for the tokens and ids of `more`. */
void att_token_list_fill(const att_token_list *list, const att_token_list *more, att_settings *s, att_vocabulary *v);
/* Sets the added tokens that the vocabulary does not have. Error: a token has another id there. */
void att_token_list_set_added(const att_token_list *added, att_settings *s, att_vocabulary *v);
/* Sorts the list, and builds a trie. */
att_status att_token_list_trie(const att_token_list *list, att_trie *out);
/* Reads special_tokens_map.json of older folders, which have no "added_tokens_decoder" in tokenizer_config.json. As in
 * `transformers` it then takes precedence. `config` gets the error. */
void att_special_tokens_map_read(att_settings *config, const char *folder, att_settings *map);
/* Returns the special token `key` of either file; NULL: none. */
const json_t *att_special_token_value(const att_settings *config, const att_settings *map, const char *key);
/* Returns the special token `key` as text, or else `otherwise`. */
const char *att_special_token(att_settings *config, const att_settings *map, const char *key, const char *otherwise);
/* Returns the token in setting `key`, a string or an object with "content". */
const char *att_token_content(att_settings *s, const char *key, const json_t *value);

/* The class of the tokenizer, without "Fast": "tokenizer_class" of tokenizer_config.json, `config`, or of config.json,
 * or that of the model's type; "": none of these. An error is in `config`. (tokenizer_class.c) */
typedef struct att_class_name {
    char text[64];
} att_class_name;
att_class_name att_tokenizer_class(att_settings *config, const char *folder);

/* ---- what tokenizer_config.json states, in the object ATT_CONFIG_KEY of these settings (token_list.c) */

#define ATT_CONFIG_KEY "tokenizer_config"
/* The keys of special tokens, by att_token: "pad_token". */
extern const char *const att_special_keys[ATT_TOKENS];
/* Writes the special token that att_special_token returns, and returns it. An error becomes that of config. */
const char *att_special_token_write(att_settings *config, const att_settings *map, json_t *root, const char *key,
                                    const char *otherwise);
/* Writes the special tokens of tokenizer_config.json or special_tokens_map.json, and clean_up_tokenization_spaces if it
 * is true and the model is WordPiece; `config` gets the error. */
void att_config_copy(json_t *root, att_settings *config, const att_settings *map);

/* ---- layouts; the returned settings, to be closed, are those of tokenizer.json without model.vocab */

/* Reads tokenizer.json (vocab_json.c); tokens are unescaped in place. */
att_status att_read_vocab_json(att_text_file *f, att_token_list *list, att_settings *settings);
/* Reads vocab.json, which has only tokens (vocab_json.c). */
att_status att_read_token_map(att_text_file *f, att_token_list *list);
/* Reads vocab.txt, one token per line with the line number (from 0) as id, tokenizer_config.json and optionally
 * special_tokens_map.json (vocab_txt.c). */
att_status att_read_vocab_txt(const att_text_file *f, const char *folder, att_token_list *list, att_settings *settings);
/* Reads vocab.json, in f, and merges.txt, optionally tokenizer_config.json and special_tokens_map.json
 * (pipeline/merges_file.c). */
att_status att_read_merges(att_text_file *f, const char *folder, att_token_list *list, att_settings *settings);

/* sentencepiece.bpe.model, in f, of XLM-R and CamemBERT, optionally tokenizer_config.json and special_tokens_map.json;
 * list is empty: the vocabulary is in the settings (fairseq_file.c). */
att_status att_read_fairseq(const att_text_file *f, const char *folder, const att_token_list *list,
                            att_settings *settings);

/* Changes tokenizer.json (root, without model.vocab, which is `list`) by tokenizer_config.json as the classes of
 * `transformers` do: added tokens and their flags, special tokens that it names, add_prefix_space, and the steps that
 * a class makes itself. (tokenizer_config.c) */
att_status att_tokenizer_config_apply(att_ctx *ctx, const char *folder, const att_token_list *list, json_t *root);
/* Finds out whether a text that is too long is truncated on the left: by "truncation_side" of tokenizer_config.json, or
 * else "truncation" of tokenizer.json (root or NULL). (tokenizer_config.c) */
att_status att_truncation_side(att_ctx *ctx, const char *folder, const json_t *root, bool *left);

/* Reads a folder in any of these layouts; the tokens are texts of f, which must be freed after them.
 * (tokenizer_file.c) */
att_status att_tokenizer_files_read(att_text_file *f, att_ctx *ctx, const char *folder, att_token_list *list,
                                    att_settings *settings);

/* Reads the two texts of a merge, ["a", "b"] or "a b"; false: it is not a merge. (pipeline/bpe_model.c) */
bool att_split_merge(const json_t *merge, att_byte_view side[2]);

/* ---- from these settings and tokens to a tokenizer (pipeline/pipeline.c) */

att_status att_pipeline_read(att_settings *s, const att_token_list *list, att_tokenizer **out);
/* Returns the settings of BERT's normalizer if the tokenizer is BERT's; otherwise NULL. */
const att_bert_settings *att_pipeline_bert(const att_tokenizer *t);

#endif
