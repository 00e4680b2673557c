/* attend bench attention: sets the plan's score, modifiers and masks by their names. */
#include "attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Lists: "causal,lengths=0.8" --------------------------------------------- */

/* Parses the number after "="; option and name are for messages. */
static int parse_number(const attention_case *c, const char *option, const char *name, const char *text, double low,
                        double high, double *out)
{
    char *end;
    *out = strtod(text, &end);
    if (end == text || *end || !(*out >= low && *out <= high))
        return cli_misuse("%s%s: %s=%s is not a number from %g to %g", c->where, option, name, text, low, high);
    return CLI_DONE;
}

/* Calls parse(c, name, value) for each item of the list, which is modified. */
static int each_word(attention_case *c, char *list,
                     int (*parse)(attention_case *c, const char *name, const char *value))
{
    int code = CLI_DONE;
    for (char *word, *rest = list; !code && (word = strsep(&rest, ","));) {
        char *name = strsep(&word, "=");
        code = parse(c, name, word);
    }
    return code;
}

static int parse_list(attention_case *c, const char *list,
                      int (*parse)(attention_case *c, const char *name, const char *value))
{
    if (!list)
        return CLI_DONE;
    char *copy = strdup(list);
    int code = copy ? each_word(c, copy, parse) : cli_fail_memory();
    free(copy);
    return code;
}

static int unknown(const attention_case *c, const char *option, const char *name, const char *const *names, int n)
{
    const char *nearest = cli_nearest(name, names, n);
    return cli_misuse("%s%s: there is no \"%s\"%s%s%s", c->where, option, name, nearest ? "; the nearest is \"" : "",
                      nearest ? nearest : "", nearest ? "\"" : "");
}

static int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b < 0); }

/* ---- Masks ------------------------------------------------------------------ */

static int parse_causal(attention_case *c, const char *value)
{
    c->causal = true;
    return value ? cli_misuse("%smask: causal takes no value", c->where) : CLI_DONE;
}

/* "0.8": that share of the keys; "30:17:25": lengths, cyclically. */
static int parse_lengths(attention_case *c, const char *value)
{
    const attention_settings *s = &c->set;
    const char *at = value ? value : "";
    for (int64_t b = 0; b < s->batch; b++) {
        char *end;
        double length = strtod(at, &end);
        if (memchr(at, '.', (size_t)(end - at)))
            length = floor(length * (double)s->k_len);
        if (end == at || (*end && *end != ':') || !(length >= 0 && length <= (double)s->k_len))
            return cli_misuse("%smask: lengths needs a share of the keys, as in lengths=0.8, or lengths of at most "
                              "%lld, as in lengths=30:17",
                              c->where, (long long)s->k_len);
        c->k_lengths[b] = (int64_t)length;
        at = *end ? end + 1 : value;
    }
    c->args.k_lengths = c->k_lengths;
    return CLI_DONE;
}

/* "256": number of keys before and after the query's position; "256:0": before, after. */
static int parse_window(attention_case *c, const char *value)
{
    att_attention_spec *spec = &c->spec;
    char *end = NULL;
    c->windowed = true;
    spec->window_left = spec->window_right = value ? strtoll(value, &end, 10) : -1;
    if (value && end != value && *end == ':') {
        value = end + 1;
        spec->window_right = strtoll(value, &end, 10);
    }
    if (!value || end == value || *end || spec->window_left < 0 || spec->window_right < 0)
        return cli_misuse("%smask: window needs a number of keys, as in window=256, or before and behind, as in "
                          "window=256:0",
                          c->where);
    return CLI_DONE;
}

/* "1000": documents of 1000 tokens each, one after the other from position 0 on. */
static int parse_documents(attention_case *c, const char *value)
{
    const attention_settings *s = &c->set;
    double length = 0;
    if (!value)
        return cli_misuse("%smask: documents needs their length, as in documents=1000", c->where);
    int code = parse_number(c, "mask", "documents", value, 1, 1e9, &length);
    c->document_length = (int64_t)length;
    if (!code)
        code = attention_tensor(c, &c->args.q_documents, ATT_I32, 2, (const int64_t[]){s->batch, s->q_len});
    if (!code)
        code = attention_tensor(c, &c->args.k_documents, ATT_I32, 2, (const int64_t[]){s->batch, s->k_len});
    return code;
}

/* Fills the ids of documents: after all masks are read, since positions depend on lengths. */
static void fill_documents(attention_case *c)
{
    const attention_settings *s = &c->set;
    int32_t *q = c->args.q_documents.data, *k = c->args.k_documents.data;
    for (int64_t b = 0; b < s->batch; b++) {
        for (int64_t i = 0; i < s->q_len; i++)
            q[b * s->q_len + i] = (int32_t)floor_divide(attention_position(c, b, i), c->document_length);
        for (int64_t j = 0; j < s->k_len; j++)
            k[b * s->k_len + j] = (int32_t)(j / c->document_length);
    }
}

/* "0.75": that share of the pairs attends. */
static int parse_bool(attention_case *c, const char *value)
{
    const attention_settings *s = &c->set;
    double share = 0.75;
    int code = value ? parse_number(c, "mask", "bool", value, 0, 1, &share) : CLI_DONE;
    if (!code)
        code = attention_tensor(c, &c->args.mask, ATT_BOOL, 4, (const int64_t[]){1, 1, s->q_len, s->k_len});
    unsigned char *mask = c->args.mask.data;
    uint64_t seed = 5;
    for (int64_t i = 0; !code && i < s->q_len * s->k_len; i++)
        mask[i] = bench_random(&seed) < 2 * share - 1;
    return code;
}

static const struct {
    const char *name;
    const att_mask *mask; /* NULL: in the args alone */
    int (*parse)(attention_case *c, const char *value);
} masks[] = {
    {"causal", &att_mask_causal, parse_causal}, {"window", &att_mask_window, parse_window},
    {"lengths", NULL, parse_lengths},           {"documents", &att_mask_document, parse_documents},
    {"bool", &att_mask_boolean, parse_bool},
};
enum { MASKS = sizeof masks / sizeof *masks };

static int parse_mask(attention_case *c, const char *name, const char *value)
{
    const char *names[MASKS];
    int at = 0;
    while (at < ATT_MAX_STAGES && c->spec.mask[at])
        at++;
    for (int i = 0; i < MASKS; i++) {
        names[i] = masks[i].name;
        if (strcmp(name, masks[i].name))
            continue;
        if (at == ATT_MAX_STAGES)
            return cli_misuse("%smask: more than %d masks", c->where, ATT_MAX_STAGES);
        for (int m = 0; m < at; m++)
            if (masks[i].mask && c->spec.mask[m] == masks[i].mask)
                return cli_misuse("%smask: %s is there twice", c->where, name);
        c->spec.mask[at] = masks[i].mask;
        return masks[i].parse(c, value);
    }
    return unknown(c, "mask", name, names, MASKS);
}

int64_t attention_key_count(const attention_case *c, int64_t b)
{
    return c->args.k_lengths ? c->k_lengths[b] : c->set.k_len;
}

int64_t attention_position(const attention_case *c, int64_t b, int64_t i)
{
    return c->spec.align == ATT_ALIGN_BOTTOM_RIGHT ? attention_key_count(c, b) - c->set.q_len + i : i;
}

void attention_keys(const attention_case *c, int64_t b, int64_t i, int64_t *first, int64_t *last)
{
    const int64_t position = attention_position(c, b, i);
    *first = 0;
    *last = attention_key_count(c, b);
    if (c->causal)
        *last = min(*last, position + 1);
    if (c->windowed) {
        *first = max(*first, position - c->spec.window_left);
        *last = min(*last, position + c->spec.window_right + 1);
    }
    if (c->document_length) {
        const int64_t document = floor_divide(position, c->document_length);
        *first = max(*first, document * c->document_length);
        *last = min(*last, (document + 1) * c->document_length);
    }
    *last = max(*first, *last);
}

bool attention_allows(const attention_case *c, int64_t i, int64_t j)
{
    return !c->args.mask.data || ((const unsigned char *)c->args.mask.data)[i * c->set.k_len + j];
}

/* ---- Scores and modifiers ------------------------------------------------------ */

/* Makes a stage's parameter [heads, extents...], small enough for small scores; any: the size of ATT_ANY. */
static int make_param(attention_case *c, att_tensor *out, const att_param_shape *shape, int64_t any)
{
    const attention_settings *s = &c->set;
    const int64_t size[] = {[ATT_ANY] = any,
                            [ATT_HEAD_DIM] = s->dim,
                            [ATT_KEY_DIM] = s->key_dim,
                            [ATT_SCORE_DIM] = s->score_dim ? s->score_dim : s->dim};
    int64_t dim[3] = {s->heads}, n = s->heads;
    int rank = 1;
    for (; rank < 3 && shape->extent[rank - 1] != ATT_NONE; rank++)
        n *= dim[rank] = size[shape->extent[rank - 1]];
    int code = attention_tensor(c, out, ATT_F32, rank, dim);
    for (int64_t i = 0; !code && i < n; i++)
        ((float *)out->data)[i] /= sqrtf((float)dim[rank - 1]);
    return code;
}

/* Without --score-dim there are no projections to it. */
static bool has_param(const attention_case *c, const att_param_shape *shape)
{
    return shape->name && (c->set.score_dim || shape->extent[0] != ATT_SCORE_DIM || !shape->extent[1]);
}

static const struct {
    const char *name;
    const att_score *score;
    float scale;
} scores[] = {
    {"scaled-dot", &att_score_dot, 0},    {"dot", &att_score_dot, 1},       {"general", &att_score_general, 0},
    {"additive", &att_score_additive, 0}, {"cosine", &att_score_cosine, 0},
};
enum { SCORES = sizeof scores / sizeof *scores };

static int parse_score(attention_case *c)
{
    const char *names[SCORES];
    int code = CLI_DONE;
    for (int i = 0; i < SCORES; i++) {
        names[i] = scores[i].name;
        if (strcmp(c->set.score, scores[i].name))
            continue;
        c->spec.score = scores[i].score;
        c->spec.scale = scores[i].scale;
        c->score = *c->spec.score->set;
        for (int p = 0; !code && p < ATT_MAX_PARAMS; p++)
            if (has_param(c, &c->score->param[p]))
                code = make_param(c, &c->args.score_param[p], &c->score->param[p], 0);
        return code;
    }
    return unknown(c, "score", c->set.score, names, SCORES);
}

static const att_modifier *const modifiers[] = {
    &att_modifier_scale,    &att_modifier_softcap,         &att_modifier_bias, &att_modifier_alibi,
    &att_modifier_relative, &att_modifier_relative_causal, &att_modifier_sink,
};
enum { MODIFIERS = sizeof modifiers / sizeof *modifiers, BUCKETS = 32 }; /* of relative: T5's */

static int prepare_modifier(attention_case *c, int at, const char *value)
{
    const attention_settings *s = &c->set;
    const att_modifier *m = c->modifier[at];
    att_tensor *param = &c->args.modifier_param[at];
    double number = 0;
    if (!value && (m->flags & ATT_HAS_VALUE))
        return cli_misuse("%smodifier: %s needs a value, as in %s=30", c->where, m->name, m->name);
    if (value && !(m->flags & ATT_HAS_VALUE))
        return cli_misuse("%smodifier: %s takes no value", c->where, m->name);
    int code = value ? parse_number(c, "modifier", m->name, value, -1e30, 1e30, &number) : CLI_DONE;
    c->spec.modifier_value[at] = (float)number;
    if (!code && (m->flags & ATT_PAIRS))
        code = attention_tensor(c, param, ATT_F32, 4, (const int64_t[]){1, s->heads, s->q_len, s->k_len});
    else if (!code && m->param.name)
        code = make_param(c, param, &m->param, BUCKETS);
    return code;
}

static int parse_modifier(attention_case *c, const char *name, const char *value)
{
    const char *names[MODIFIERS];
    int at = 0;
    while (at < ATT_MAX_STAGES && c->spec.modifier[at])
        at++;
    for (int i = 0; i < MODIFIERS; i++) {
        names[i] = modifiers[i]->name;
        if (strcmp(name, names[i]))
            continue;
        if (at == ATT_MAX_STAGES)
            return cli_misuse("%smodifier: more than %d modifiers", c->where, ATT_MAX_STAGES);
        c->spec.modifier[at] = modifiers[i];
        c->modifier[at] = *modifiers[i]->set;
        return prepare_modifier(c, at, value);
    }
    return unknown(c, "modifier", name, names, MODIFIERS);
}

int attention_take_stages(attention_case *c)
{
    int code = parse_score(c);
    if (!code)
        code = parse_list(c, c->set.modifier, parse_modifier);
    if (!code && c->set.causal)
        code = parse_mask(c, "causal", NULL);
    if (!code)
        code = parse_list(c, c->set.mask, parse_mask);
    if (!code && c->document_length)
        fill_documents(c);
    return code;
}
