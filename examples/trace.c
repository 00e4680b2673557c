/* What does attention do in a model of any kind? One pass, whose weights are then computed by hand, too.
 *     cc trace.c $(pkg-config --cflags --libs attend_model) -lm -o trace
 *     ./trace all-MiniLM-L6-v2 "The cat sat on the mat." models/flickr8k-captions dog.jpg     # MODEL INPUT ...
 */
#include <attend_caption.h>
#include <attend_language.h>
#include <attend_recommend.h>
#include <attend_sentence.h>
#include <attend_translate.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Computes the weights of a query by hand, from the trace's values of the query and of each key: weights [keys]. */
static att_status by_hand(const att_trace *t, int64_t i, bool dot, int64_t head, int64_t query, int64_t keys, double *w)
{
    double sum = 0;
    for (int64_t k = 0; k < keys; k++) {
        att_trace_pair p = {.size = sizeof p};
        if (att_trace_pair_of(t, i, head, query, k, &p))
            return ATT_ERR_ARGUMENT;
        double score = dot ? 0 : p.score; /* others have parameters, which the model has */
        for (int64_t d = 0; dot && d < p.dim; d++)
            score += (double)p.query[d] * (double)p.key[d] / sqrt((double)p.dim);
        w[k] = p.masked_by < 0 ? exp(score) : 0;
        sum += w[k];
    }
    for (int64_t k = 0; k < keys; k++)
        w[k] /= sum;
    return ATT_OK;
}

/* Compares the last row of all heads of an attention. */
static att_status compare(const att_trace *t, int64_t i, const att_trace_attention_info *a, double *largest)
{
    enum { MAX_KEYS = 4096 };
    static float row[MAX_KEYS];
    static double hand[MAX_KEYS];
    att_status s = a->keys <= MAX_KEYS ? ATT_OK : ATT_ERR_UNSUPPORTED;
    for (int64_t h = 0; !s && h < a->heads; h++) {
        s = att_trace_weights(t, i, h, a->queries - 1, 1, row);
        s = s ? s : by_hand(t, i, !strcmp(a->score, "dot"), h, a->queries - 1, a->keys, hand);
        for (int64_t k = 0; !s && k < a->keys; k++)
            *largest = fmax(*largest, fabs((double)row[k] - hand[k]));
    }
    return s;
}

/* Prints what a trace has, and frees it. */
static att_status show(const char *model, att_trace *t)
{
    static const char *const sides[] = {"encoder", "decoder", "cross"};
    att_trace_info info = {.size = sizeof info};
    double largest = 0;
    att_status s = att_trace_describe(t, &info);
    printf("%s: %zu bytes\n", model, info.bytes);
    for (int64_t i = 0; !s && i < info.attentions; i++) {
        att_trace_attention_info a = {.size = sizeof a};
        s = att_trace_attention(t, i, &a);
        s = s ? s : compare(t, i, &a, &largest);
        if (!s && a.layer == 0)
            printf("  %-7s %2d layers, %2d heads, %3d x %-3d %s\n", sides[a.side], (int)info.layers[a.side],
                   (int)a.heads, (int)a.queries, (int)a.keys, a.score);
    }
    att_trace_free(t);
    if (!s)
        printf("  %s\n", largest < 1e-5 ? "weights are those by hand" : "WEIGHTS DIFFER");
    return s || largest < 1e-5 ? s : ATT_ERR_FORMAT;
}

/* Traces the encoder of a sentence model on the same tokens. */
static att_status show_encoder(const att_encoder *m, const att_trace *same)
{
    att_trace_info info = {.size = sizeof info};
    att_trace *t = NULL;
    att_status s = att_trace_describe(same, &info);
    s = s ? s : att_encoder_trace(m, info.source_ids, info.source, NULL, &t);
    return s ? s : show("its encoder", t);
}

/* Opens a model of any subject, and traces a pass. */
static att_status trace(att_ctx *ctx, att_subject subject, const char *path, const char *input)
{
    att_sentence *sentence = NULL;
    att_translator *translator = NULL;
    att_text_generator *generator = NULL;
    att_image_model *vision = NULL;
    att_caption_model *captioner = NULL;
    att_recommender *recommender = NULL;
    att_translation translation = {0};
    att_image image = {0};
    att_image_caption caption = {0};
    att_trace *t = NULL;
    att_status s = ATT_OK;
    if (subject == ATT_SUBJECT_SENTENCE) {
        s = att_sentence_open(ctx, path, NULL, &sentence);
        s = s ? s : att_sentence_trace(sentence, input, strlen(input), NULL, NULL, &t);
        s = s ? s : show_encoder(att_sentence_encoder(sentence), t);
    } else if (subject == ATT_SUBJECT_TRANSLATE) {
        s = att_translator_open(ctx, path, NULL, &translator);
        s = s ? s : att_translate(translator, 1, &input, NULL, NULL, &translation);
        const att_tokens *words = &translation.tokens;
        s = s ? s : att_translator_trace(translator, input, strlen(input), words->ids, words->count, NULL, &t);
    } else if (subject == ATT_SUBJECT_LANGUAGE) {
        s = att_text_generator_open(ctx, path, NULL, &generator);
        s = s ? s : att_language_trace(generator, input, strlen(input), NULL, &t);
    } else if (subject == ATT_SUBJECT_VISION) {
        s = att_image_model_open(ctx, path, NULL, &vision);
        s = s ? s : att_image_open(ctx, input, NULL, &image);
        s = s ? s : att_image_trace(vision, &image, NULL, &t);
    } else if (subject == ATT_SUBJECT_CAPTION) {
        s = att_caption_model_open(ctx, path, NULL, &captioner);
        s = s ? s : att_image_open(ctx, input, NULL, &image);
        s = s ? s : att_caption(captioner, 1, &image, NULL, &caption);
        s = s ? s : att_caption_trace(captioner, &image, caption.ids, caption.count, NULL, &t);
    } else { /* and if it is not a model of a subject, this is the error */
        s = att_recommender_open(ctx, path, NULL, &recommender);
        const int32_t items[] = {(int32_t)att_recommender_find_item(recommender, input), 0, 1};
        s = s ? s : att_recommender_trace(recommender, 3, items, NULL, &t);
    }
    s = s ? s : show(path, t);
    att_image_caption_free(ctx, &caption);
    att_image_free(ctx, &image);
    att_translation_free(ctx, &translation);
    att_sentence_free(sentence);
    att_translator_free(translator);
    att_text_generator_free(generator);
    att_image_model_free(vision);
    att_caption_model_free(captioner);
    att_recommender_free(recommender);
    return s;
}

int main(int n, char **argument)
{
    att_ctx *ctx = NULL;
    att_status s = att_open(&ctx, NULL);
    for (int i = 1; !s && i + 1 < n; i += 2) {
        att_model_path path;
        att_model_identity of = {.size = sizeof of};
        s = att_model_find(argument[i], &path);
        s = s ? s : att_model_identify(ctx, path.text, &of);
        s = s ? s : trace(ctx, of.subject, path.text, argument[i + 1]);
    }
    if (s)
        fprintf(stderr, "%s\n", att_error(ctx));
    att_close(ctx);
    return s != ATT_OK;
}
