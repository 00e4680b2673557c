#include "embedder.h"

#include "correlation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SENTENCES = 512 }; /* sentences at once */

int cli_embedder_open(cli_embedder *e, const char *name, cli_types types, int64_t threads)
{
    *e = (cli_embedder){.images = cli_model_is(ATT_SUBJECT_VISION, name),
                        .lines = "lines",
                        .key = "text",
                        .image_options.size = sizeof e->image_options};
    const int code = e->images ? cli_model_open(&e->vision.base, &cli_vision_kind, name, types, threads)
                               : cli_model_open(&e->text.base, &cli_sentence_kind, name, types, threads);
    if (code)
        return code;
    if (e->images) {
        e->ctx = e->vision.base.ctx;
        e->name = e->vision.base.name;
        e->dim = att_image_model_dim(e->vision.model);
        e->lines = "images";
        e->key = "image";
        e->block = cli_images_at_once(e->ctx);
    } else {
        e->ctx = e->text.base.ctx;
        e->name = e->text.base.name;
        e->dim = e->text.info.dim;
        e->similarity = e->text.info.similarity;
        e->block = SENTENCES;
    }
    return code;
}

void cli_embedder_close(cli_embedder *e)
{
    if (e->images)
        cli_model_close(&e->vision.base);
    else
        cli_model_close(&e->text.base);
}

int cli_embedder_prompt(cli_embedder *e, const char *option, const char *given, const char *usual)
{
    e->prompt = NULL;
    if (e->images)
        return given ? cli_misuse("--%s is of texts, not of images", option) : CLI_DONE;
    return cli_sentence_prompt(&e->text, option, given, usual, &e->prompt);
}

int cli_embedder_truncate(cli_embedder *e, int64_t dims)
{
    const int64_t all = e->images ? e->dim : e->text.info.full_dim;
    if (dims && e->images)
        return cli_misuse("--dims is of the vectors of texts, not of images");
    if (dims > all)
        return cli_misuse("--dims is %lld, but the vectors of %s have %lld numbers", (long long)dims, e->name,
                          (long long)all);
    e->dims = dims;
    e->dim = dims ? dims : e->dim;
    return CLI_DONE;
}

int cli_embedder_background(cli_embedder *e, const char *given)
{
    return given && !e->images ? cli_misuse("--background is of images, but %s reads text", e->name)
                               : cli_read_background(given, e->background, &e->image_options);
}

int cli_embedder_arguments(const cli_embedder *e, cli_lines *l, int n, char *const *arguments)
{
    if (e->images)
        return cli_lines_of_images(l, n, arguments);
    cli_lines_of(l, n, (const char *const *)arguments);
    return cli_paths_refuse_images(n, arguments);
}

/* ---- What is not finite ------------------------------------------------------- */

static bool is_finite(const float *x, int64_t n)
{
    while (n > 0 && isfinite(x[n - 1]))
        n--;
    return n == 0;
}

/* Reports that embedding items [n] failed with this status. vectors [n, dim] were zero before. */
static int refuse(const cli_embedder *e, att_status s, int64_t n, const char *const *items, const float *vectors,
                  int64_t before)
{
    char number[32] = "";
    int64_t i = 0;
    while (i < n && is_finite(vectors + i * e->dim, e->dim))
        i++;
    if (i == n)
        return cli_status(e->ctx, s);
    if (before >= 0)
        snprintf(number, sizeof number, " %lld,", (long long)(before + i + 1));
    return cli_fail("%s: the vector of %s%s \"%.80s\"%s has numbers that are not finite: the weights are damaged, or "
                    "too large",
                    e->name, e->key, number, items[i], *number ? "," : "");
}

/* ---- Images ----------------------------------------------------------------- */

/* Divides x [n] by its length. */
static void normalize(float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    for (int64_t i = 0; i < n && sum > 0; i++)
        x[i] = (float)((double)x[i] / sqrt(sum));
}

/* Embeds those of the images [n] that have been read: vectors [n, dim]. They are computed together into the first rows,
 * which then move to their positions, from the last one to the first. */
static int embed_images(const cli_embedder *e, int64_t n, const char *const *paths, const cli_image *images,
                        float *vectors, int64_t before)
{
    const int64_t dim = e->dim;
    int64_t good = 0;
    att_image *readable = malloc((size_t)n * sizeof *readable);
    if (!readable)
        return cli_fail_memory();
    for (int64_t i = 0; i < n; i++)
        if (images[i].status == ATT_OK)
            readable[good++] = images[i].image;
    memset(vectors, 0, (size_t)(n * dim) * sizeof *vectors);
    const att_status s = att_image_embed(e->vision.model, good, readable, NULL, vectors);
    free(readable);
    for (int64_t i = n - 1; i >= 0; i--) {
        float *row = vectors + i * dim;
        if (images[i].status != ATT_OK) {
            memset(row, 0, (size_t)dim * sizeof *row);
            continue;
        }
        memmove(row, vectors + --good * dim, (size_t)dim * sizeof *row);
        normalize(row, dim);
    }
    return s ? refuse(e, s, n, paths, vectors, before) : CLI_DONE;
}

/* Embeds at most e->block images. */
static int encode_block(const cli_embedder *e, int64_t n, const char *const *paths, float *vectors, bool *failed,
                        int64_t before)
{
    int code = CLI_DONE;
    cli_image *images = malloc((size_t)n * sizeof *images);
    if (!images)
        return cli_fail_memory();
    cli_images_read(e->ctx, n, paths, &e->image_options, images);
    for (int64_t i = 0; !code && i < n; i++) {
        const int wrong = cli_image_code(&images[i]);
        if (failed)
            failed[i] = wrong;
        code = failed && wrong == CLI_FAILED ? CLI_DONE : wrong;
    }
    if (!code)
        code = embed_images(e, n, paths, images, vectors, before);
    cli_images_free(e->ctx, n, images);
    free(images);
    return code;
}

static int encode_images(const cli_embedder *e, int64_t n, const char *const *paths, const size_t *bytes,
                         float *vectors, bool *failed, int64_t before)
{
    int code = CLI_DONE;
    for (int64_t i = 0; i < n; i++) {
        if (bytes[i] == 0 && i > 0)
            return cli_fail("the line after \"%s\" is empty: not the path of an image", paths[i - 1]);
        if (bytes[i] == 0)
            return cli_fail("a line is empty: not the path of an image");
        if (!*paths[i])
            return cli_fail(
                "a line begins with a zero byte: lines are paths of images; the argument \"-\" is an image on "
                "standard input");
        if (strlen(paths[i]) < bytes[i])
            return cli_fail("%s: is followed by a zero byte, which is in no path", paths[i]);
    }
    for (int64_t i = 0; !code && i < n; i += e->block)
        code = encode_block(e, n - i < e->block ? n - i : e->block, paths + i, vectors + i * e->dim,
                            failed ? failed + i : NULL, before < 0 ? before : before + i);
    return code;
}

/* ---- Both -------------------------------------------------------------------- */

int cli_embedder_encode(const cli_embedder *e, int64_t n, const char *const *items, const size_t *bytes, float *vectors,
                        int64_t *truncated, bool *failed, int64_t before)
{
    if (e->images)
        return encode_images(e, n, items, bytes, vectors, failed, before);
    if (failed)
        memset(failed, false, (size_t)n * sizeof *failed);
    memset(vectors, 0, (size_t)(n * e->dim) * sizeof *vectors);
    bool *own = e->truncated ? NULL : calloc((size_t)n + 1, sizeof *own), *shortened = own ? own : e->truncated;
    if (!shortened)
        return cli_fail_memory();
    const att_status s = att_sentence_embed(e->text.sentence, n, items, bytes,
                                            ATT_OPTIONS(att_embed_options, .tokens = e->tokens, .truncated = shortened,
                                                        .unknown = e->unknown, .prompt = e->prompt, .dims = e->dims),
                                            vectors);
    for (int64_t i = 0; i < n; i++)
        *truncated += shortened[i];
    free(own);
    return s ? refuse(e, s, n, items, vectors, before) : CLI_DONE;
}

/* Compares vectors. A cosine outside of [-1, 1] is due to rounding and is clamped; NaN is not changed. */
int cli_embedder_compare(const cli_embedder *e, const float *a, int64_t n, const float *b, int64_t m, float *out)
{
    att_tensor x, y, z;
    att_wrap(&x, (void *)a, ATT_F32, ATT_DIMS(n, e->dim), NULL);
    att_wrap(&y, (void *)b, ATT_F32, ATT_DIMS(m, e->dim), NULL);
    att_wrap(&z, out, ATT_F32, ATT_DIMS(n, m), NULL);
    int code = CLI_DONE;
    if (e->similarity == ATT_SIMILARITY_COSINE)
        code = cli_status(e->ctx, att_tensor_cosine(e->ctx, &x, &y, &z));
    else if (e->similarity == ATT_SIMILARITY_DOT)
        code = cli_status(e->ctx,
                          att_tensor_matmul(e->ctx, &x, &y, ATT_OPTIONS(att_matmul_options, .transpose_b = true), &z));
    else
        for (int64_t i = 0; i < n * m; i++)
            out[i] = (float)cli_similar(e->similarity, a + i / m * e->dim, b + i % m * e->dim, e->dim);
    for (int64_t i = 0; !code && e->similarity == ATT_SIMILARITY_COSINE && i < n * m; i++)
        out[i] = cli_clamp_cosine(out[i]);
    for (int64_t i = 0; !code && i < n * m; i++)
        if (!isfinite(out[i]))
            code = cli_fail("%s: the similarity of two vectors is not finite: their numbers are too large", e->name);
    return code;
}

void cli_embedder_note_measure(const cli_embedder *e)
{
    static const char *const names[] = {[ATT_SIMILARITY_DOT] = "the dot product",
                                        [ATT_SIMILARITY_EUCLIDEAN] = "minus the Euclidean distance",
                                        [ATT_SIMILARITY_MANHATTAN] = "minus the Manhattan distance"};
    if (e->similarity != ATT_SIMILARITY_COSINE)
        cli_note("%s compares by %s, \"similarity_fn_name\" of its config_sentence_transformers.json", e->name,
                 names[e->similarity]);
}

void cli_embedder_note(const cli_embedder *e, int64_t truncated, int64_t n, const char *items)
{
    if (truncated)
        cli_note("%lld of %lld %s are longer than %lld tokens and were truncated", (long long)truncated, (long long)n,
                 items, (long long)e->text.info.max_tokens);
}
