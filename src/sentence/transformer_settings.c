/* Reads how a Transformer of a sentence model reads texts: sentence_bert_config.json, tokenizer_config.json. */
#include "sentence/backbone.h"

/* Checks the input and output modality of the newer layout. With "message" texts would be put into a chat template. */
static void check_modality(att_settings *s)
{
    static const char *const known[] = {"text", NULL};
    if (!att_settings_has(s, "modality_config"))
        return;
    const att_settings_scope file = att_settings_enter(s, "modality_config");
    att_settings_only_known(s, known);
    att_settings_enter(s, "text");
    att_settings_need(s, "method");
    att_settings_only_text(s, "method", "forward");
    att_settings_need(s, "method_output_name");
    att_settings_only_text(s, "method_output_name", "last_hidden_state");
    att_settings_leave(s, file);
}

static void read_transformer(att_settings *s, att_backbone_settings *out)
{
    static const char *const known[] = {"max_seq_length",
                                        "do_lower_case",
                                        "transformer_task",
                                        "modality_config",
                                        "module_output_name",
                                        "processing_kwargs",
                                        "unpad_inputs",
                                        "query_length",
                                        "document_length",
                                        "query_expansion",
                                        "model_args",
                                        "tokenizer_args",
                                        "config_args",
                                        "model_kwargs",
                                        "processor_kwargs",
                                        "config_kwargs",
                                        NULL};
    static const char *const empty[] = {"processing_kwargs", "query_length", "document_length", "query_expansion",
                                        "model_args",        "config_args",  "tokenizer_args",  "model_kwargs",
                                        "processor_kwargs",  "config_kwargs"};
    att_settings_only_known(s, known);
    att_settings_only_text(s, "transformer_task", "feature-extraction");
    att_settings_only_text(s, "module_output_name", "token_embeddings");
    for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++)
        att_settings_only_empty(s, empty[i]);
    check_modality(s);
    out->lower_case = att_settings_bool(s, "do_lower_case", false);
    if (att_settings_has(s, "max_seq_length"))
        out->max_tokens = att_settings_int(s, "max_seq_length", 3, 1 << 20);
}

/* Reads the limit in tokenizer_config.json, if sentence_bert_config.json has none. A huge value means no limit. */
static void read_tokenizer_limit(att_settings *s, att_backbone_settings *out)
{
    if (out->max_tokens == 0 && att_settings_has(s, "model_max_length")) {
        const double limit = att_settings_number(s, "model_max_length", 3, 1e300);
        out->max_tokens = limit < 1 << 20 ? (int64_t)limit : 0;
    }
}

/* The files of settings. The first one that has a setting counts. */
static const char *const names[] = {"sentence_bert_config.json",       "sentence_roberta_config.json",
                                    "sentence_distilbert_config.json", "sentence_camembert_config.json",
                                    "sentence_albert_config.json",     "sentence_xlm-roberta_config.json",
                                    "sentence_xlnet_config.json"};

att_status att_transformer_settings_read(att_ctx *ctx, const char *folder, bool plain, att_backbone_settings *out)
{
    att_settings s = {0};
    bool found = plain;
    for (size_t i = 0; !s.status && !found && i < sizeof names / sizeof names[0]; i++) {
        att_settings_read(&s, ctx, folder, names[i], false);
        found = s.root && json_object_size(s.root) > 0;
        out->file = names[i];
        if (!s.status && found)
            read_transformer(&s, out);
        att_settings_close(&s);
    }
    if (s.status)
        return s.status;
    att_settings_read(&s, ctx, folder, "tokenizer_config.json", false);
    if (!s.status && s.root)
        read_tokenizer_limit(&s, out);
    att_settings_close(&s);
    return s.status;
}

const char *const att_transformer_files[] = {"config.json",
                                             "sentence_bert_config.json",
                                             "sentence_roberta_config.json",
                                             "sentence_distilbert_config.json",
                                             "sentence_camembert_config.json",
                                             "sentence_albert_config.json",
                                             "sentence_xlm-roberta_config.json",
                                             "sentence_xlnet_config.json",
                                             "tokenizer.json",
                                             "tokenizer_config.json",
                                             "vocab.txt",
                                             "vocab.json",
                                             "merges.txt",
                                             "sentencepiece.bpe.model",
                                             "special_tokens_map.json",
                                             "added_tokens.json",
                                             NULL};
