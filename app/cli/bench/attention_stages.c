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
    cli_hint hint;
    return cli_misuse("%s%s: there is no \"%s\"%s", c->where, option, name,
                      cli_did_you_mean(&hint, "", name, names, n, ""));
}

static int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b < 0); }

/* ---- Stages and parameters: added one by one ----------------------------------- */

/* Returns the next parameter, to be filled in. The stages that there are have no more than there is room for: see
 * new_stage. */
static att_tensor *new_param(attention_case *c) { return &c->param[c->args.n_params++]; }

/* Adds a stage, whose parameters come next. */
static int new_stage(attention_case *c, const char *option, att_stage stage)
{
    const int n = c->spec.n_stages;
    if (n == ATTENTION_MAX_STAGES || c->args.n_params + 2 > ATTENTION_MAX_PARAMS)
        return cli_misuse("%s%s: more than %d modifiers and masks, or %d parameters", c->where, option,
                          ATTENTION_MAX_STAGES, ATTENTION_MAX_PARAMS);
    c->stage[n] = stage;
    c->first_param[n] = c->args.n_params;
    c->spec.n_stages++;
    return CLI_DONE;
}

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
    char *end = NULL;
    c->windowed = true;
    c->window[0] = c->window[1] = value ? (double)strtoll(value, &end, 10) : -1;
    if (value && end != value && *end == ':') {
        value = end + 1;
        c->window[1] = (double)strtoll(value, &end, 10);
    }
    if (!value || end == value || *end || c->window[0] < 0 || c->window[1] < 0)
        return cli_misuse("%smask: window needs a number of keys, as in window=256, or before and after, as in "
                          "window=256:0",
                          c->where);
    memcpy(c->stage[c->spec.n_stages - 1].value, c->window, sizeof c->window);
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
    att_tensor *q = new_param(c), *k = new_param(c);
    if (!code)
        code = attention_tensor(c, q, ATT_I32, 2, (const int64_t[]){s->batch, s->q_len});
    if (!code)
        code = attention_tensor(c, k, ATT_I32, 2, (const int64_t[]){s->batch, s->k_len});
    c->q_documents = q->data;
    c->k_documents = k->data;
    return code;
}

/* Fills the ids of documents: after all masks are read, since positions depend on lengths. */
static void fill_documents(attention_case *c)
{
    const attention_settings *s = &c->set;
    int32_t *q = c->q_documents, *k = c->k_documents;
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
    att_tensor *param = new_param(c);
    if (!code)
        code = attention_tensor(c, param, ATT_BOOL, 4, (const int64_t[]){1, 1, s->q_len, s->k_len});
    unsigned char *mask = c->allowed = param->data;
    uint64_t seed = 5;
    for (int64_t i = 0; !code && i < s->q_len * s->k_len; i++)
        mask[i] = bench_random(&seed) < 2 * share - 1;
    return code;
}

static const struct {
    const char *name;
    const att_mask *const *mask; /* NULL: only in the args */
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
    for (int i = 0; i < MASKS; i++) {
        names[i] = masks[i].name;
        if (strcmp(name, masks[i].name))
            continue;
        for (int m = 0; masks[i].mask && m < c->spec.n_stages; m++)
            if (c->stage[m].mask == *masks[i].mask)
                return cli_misuse("%smask: %s occurs twice", c->where, name);
        const int code = masks[i].mask ? new_stage(c, "mask", (att_stage){.mask = *masks[i].mask}) : CLI_DONE;
        return code ? code : masks[i].parse(c, value);
    }
    return unknown(c, "mask", name, names, MASKS);
}

int attention_score_params(const attention_case *c) { return c->spec.n_stages ? c->first_param[0] : c->args.n_params; }

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
        *first = max(*first, position - (int64_t)c->window[0]);
        *last = min(*last, position + (int64_t)c->window[1] + 1);
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
    return !c->allowed || c->allowed[i * c->set.k_len + j];
}

/* ---- Scores and modifiers ------------------------------------------------------ */

/* Makes a stage's parameter [heads, extents...], small enough for small scores; any: the size of ATT_EXTENT_ANY. */
static int make_param(attention_case *c, att_tensor *out, const att_param_shape *shape, int64_t any)
{
    const attention_settings *s = &c->set;
    const int64_t size[] = {[ATT_EXTENT_ANY] = any,
                            [ATT_EXTENT_HEAD_DIM] = s->dim,
                            [ATT_EXTENT_KEY_DIM] = s->key_dim,
                            [ATT_EXTENT_SCORE_DIM] = s->score_dim ? s->score_dim : s->dim};
    int64_t dim[3] = {s->heads}, n = s->heads;
    const att_extent extents[] = {shape->rows, shape->columns};
    int rank = 1;
    for (; rank < 3 && extents[rank - 1] != ATT_EXTENT_NONE; rank++)
        n *= dim[rank] = size[extents[rank - 1]];
    int code = attention_tensor(c, out, ATT_F32, rank, dim);
    for (int64_t i = 0; !code && i < n; i++)
        ((float *)out->data)[i] /= sqrtf((float)dim[rank - 1]);
    return code;
}

/* Returns whether the case has a parameter. Without --score-dim there are no projections to it. */
static bool has_param(const attention_case *c, const att_param_shape *shape)
{
    return c->set.score_dim || shape->rows != ATT_EXTENT_SCORE_DIM || !shape->columns;
}

static const struct {
    const char *name;
    const att_score *const *score;
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
        c->spec.score = *scores[i].score;
        c->spec.scale = scores[i].scale;
        for (int p = 0; !code && p < c->spec.score->n_params; p++)
            if (has_param(c, &c->spec.score->param[p]))
                code = make_param(c, new_param(c), &c->spec.score->param[p], 0);
        return code;
    }
    return unknown(c, "score", c->set.score, names, SCORES);
}

static const att_modifier *const *const modifiers[] = {
    &att_modifier_scale,    &att_modifier_softcap,         &att_modifier_bias, &att_modifier_alibi,
    &att_modifier_relative, &att_modifier_relative_causal, &att_modifier_sink,
};
enum { MODIFIERS = sizeof modifiers / sizeof *modifiers, BUCKETS = 32 }; /* of relative: T5's */

static int add_modifier(attention_case *c, const att_modifier *m, const char *value)
{
    const attention_settings *s = &c->set;
    double number = 0;
    if (!value && (m->flags & ATT_STAGE_NEEDS_VALUE))
        return cli_misuse("%smodifier: %s needs a value, as in %s=30", c->where, m->name, m->name);
    if (value && !(m->flags & ATT_STAGE_NEEDS_VALUE))
        return cli_misuse("%smodifier: %s takes no value", c->where, m->name);
    int code = value ? parse_number(c, "modifier", m->name, value, -1e30, 1e30, &number) : CLI_DONE;
    if (!code && value && number == 0)
        code = cli_misuse("%smodifier: %s=%s: the value must not be 0", c->where, m->name, value);
    if (!code)
        code = new_stage(c, "modifier", (att_stage){.modifier = m, .value = {number}});
    for (int i = 0; !code && i < m->n_params; i++) {
        att_tensor *param = new_param(c);
        code = m->param[i].kind == ATT_PARAM_PER_PAIR
                   ? attention_tensor(c, param, ATT_F32, 4, (const int64_t[]){1, s->heads, s->q_len, s->k_len})
                   : make_param(c, param, &m->param[i], BUCKETS);
    }
    return code;
}

static int parse_modifier(attention_case *c, const char *name, const char *value)
{
    const char *names[MODIFIERS];
    for (int i = 0; i < MODIFIERS; i++) {
        names[i] = (*modifiers[i])->name;
        if (strcmp(name, names[i]) == 0)
            return add_modifier(c, *modifiers[i], value);
    }
    return unknown(c, "modifier", name, names, MODIFIERS);
}

int attention_set_stages(attention_case *c)
{
    c->spec.stage = c->stage;
    c->args.param = c->param;
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
