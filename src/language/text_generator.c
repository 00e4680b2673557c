/* A language model with its tokenizer and its generation settings. */
#include "language/text_generator.h"
#include "model/composite.h"

static att_status open_all(void *self, const char *folder, const att_model_options *options)
{
    att_text_generator *g = self;
    g->info.size = sizeof g->info;
    att_status s = att_language_model_open(g->ctx, folder, options, &g->model);
    s = s ? s : att_language_model_describe(g->model, &g->info);
    s = s ? s : att_tokenizer_open(g->ctx, folder, &g->tokenizer);
    s = s ? s : att_generation_config_read(g->ctx, folder, g->info.vocabulary, &g->config);
    if (!s && att_tokenizer_size(g->tokenizer) > g->info.vocabulary)
        s = att_fail(g->ctx, ATT_ERR_FORMAT, "%s: the tokenizer has %lld tokens but the model %lld", folder,
                     (long long)att_tokenizer_size(g->tokenizer), (long long)g->info.vocabulary);
    return s;
}

static void free_all(void *self) { att_text_generator_free(self); }

att_status att_text_generator_open(att_ctx *ctx, const char *folder, const att_model_options *options,
                                   att_text_generator **out)
{
    static const att_composite kind = {sizeof(att_text_generator), open_all, free_all};
    return att_composite_open(ctx, __func__, &kind, folder, options, out);
}

void att_text_generator_free(att_text_generator *g)
{
    if (!g)
        return;
    att_language_model_free(g->model);
    att_tokenizer_free(g->tokenizer);
    att_free(g->ctx, g);
}

const att_language_model *att_text_generator_model(const att_text_generator *g) { return g ? g->model : NULL; }
const att_tokenizer *att_text_generator_tokenizer(const att_text_generator *g) { return g ? g->tokenizer : NULL; }

const att_nn_params *att_text_generator_params(const att_text_generator *g)
{
    return att_language_model_params(att_text_generator_model(g));
}

att_status att_text_generator_sampling(const att_text_generator *g, att_sampling *out)
{
    if (att_require(__func__, ATT_NAMED({"g", g}, {"out", out})))
        return ATT_ERR_ARGUMENT;
    return att_info_write(out, &g->config.sampling, sizeof g->config.sampling, "att_sampling");
}
