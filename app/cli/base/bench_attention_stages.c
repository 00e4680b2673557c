/* attend bench attention: masks and modifiers, from the words of a list to what the plan is given, and in double. */
#include "bench_attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Lists: "causal,lengths=0.8" --------------------------------------------- */

/* The number behind "="; option and name are for the sentence. */
static int take_number(const attention_case *c, const char *option, const char *name, const char *text, double min,
                       double max, double *out)
{
    char *end;
    *out = strtod(text, &end);
    if (end == text || *end || !(*out >= min && *out <= max))
        return cli_misuse("%s%s: %s=%s is not a number from %g to %g", c->where, option, name, text, min, max);
    return CLI_DONE;
}

/* Calls take(c, name, value) for each word of the list; its text is changed. */
static int each_word(attention_case *c, char *list, int (*take)(attention_case *c, const char *name, const char *value))
{
    int code = CLI_DONE;
    for (char *word, *rest = list; !code && (word = strsep(&rest, ","));) {
        char *name = strsep(&word, "=");
        code = take(c, name, word);
    }
    return code;
}

static int take_list(attention_case *c, const char *list,
                     int (*take)(attention_case *c, const char *name, const char *value))
{
    if (!list)
        return CLI_DONE;
    char *copy = strdup(list);
    int code = copy ? each_word(c, copy, take) : cli_fail_memory();
    free(copy);
    return code;
}

static int unknown(const attention_case *c, const char *option, const char *name, const char *const *names, int n)
{
    const char *nearest = cli_nearest(name, names, n);
    return cli_misuse("%s%s: there is no \"%s\"%s%s%s", c->where, option, name, nearest ? "; the nearest is \"" : "",
                      nearest ? nearest : "", nearest ? "\"" : "");
}

/* ---- Masks ------------------------------------------------------------------ */

static int take_causal(attention_case *c, const char *value)
{
    c->causal = true;
    return value ? cli_misuse("%smask: causal takes no value", c->where) : CLI_DONE;
}

/* "0.8": that share of the keys; "30:17:25": lengths, taken in turn. */
static int take_lengths(attention_case *c, const char *value)
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

/* "0.75": so many of the pairs attend. */
static int take_bool(attention_case *c, const char *value)
{
    const attention_settings *s = &c->set;
    double share = 0.75;
    int code = value ? take_number(c, "mask", "bool", value, 0, 1, &share) : CLI_DONE;
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
    int (*take)(attention_case *c, const char *value);
} masks[] = {
    {"causal", &att_mask_causal, take_causal},
    {"lengths", NULL, take_lengths},
    {"bool", &att_mask_boolean, take_bool},
};
enum { MASKS = sizeof masks / sizeof *masks };

static int take_mask(attention_case *c, const char *name, const char *value)
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
        c->spec.mask[at] = masks[i].mask;
        return masks[i].take(c, value);
    }
    return unknown(c, "mask", name, names, MASKS);
}

int attention_take_masks(attention_case *c) { return take_list(c, c->set.mask, take_mask); }

/* Where query i stands among the keys. */
static int64_t position(const attention_case *c, int64_t b, int64_t i)
{
    const int64_t keys = c->args.k_lengths ? c->k_lengths[b] : c->set.k_len;
    return c->spec.align == ATT_ALIGN_BOTTOM_RIGHT ? keys - c->set.q_len + i : i;
}

void attention_keys(const attention_case *c, int64_t b, int64_t i, int64_t *first, int64_t *last)
{
    *first = 0;
    *last = c->args.k_lengths ? c->k_lengths[b] : c->set.k_len;
    if (c->causal && position(c, b, i) + 1 < *last)
        *last = position(c, b, i) + 1;
    if (*last < *first)
        *last = *first;
}

bool attention_allows(const attention_case *c, int64_t i, int64_t j)
{
    return !c->args.mask.data || ((const unsigned char *)c->args.mask.data)[i * c->set.k_len + j];
}

/* ---- Modifiers -------------------------------------------------------------- */

static int take_bias(attention_case *c, int at, const char *value)
{
    const attention_settings *s = &c->set;
    (void)at;
    if (value)
        return cli_misuse("%smodifier: bias takes no value", c->where);
    return attention_tensor(c, &c->args.bias, ATT_F32, 4, (const int64_t[]){1, s->heads, s->q_len, s->k_len});
}

static double apply_bias(const attention_case *c, int at, const attention_pair *p, double s)
{
    (void)at;
    const att_tensor *bias = &c->args.bias;
    return s + (double)((const float *)bias->data)[(p->head * bias->dim[2] + p->q) * bias->dim[3] + p->k];
}

static const attention_modifier modifiers[] = {
    {"bias", &att_modifier_bias, take_bias, apply_bias, NULL},
};
enum { MODIFIERS = sizeof modifiers / sizeof *modifiers };

static int take_modifier(attention_case *c, const char *name, const char *value)
{
    const char *names[MODIFIERS];
    int at = 0;
    while (at < ATT_MAX_STAGES && c->spec.modifier[at])
        at++;
    for (int i = 0; i < MODIFIERS; i++) {
        names[i] = modifiers[i].name;
        if (strcmp(name, modifiers[i].name))
            continue;
        if (at == ATT_MAX_STAGES)
            return cli_misuse("%smodifier: more than %d modifiers", c->where, ATT_MAX_STAGES);
        c->modifier[at] = &modifiers[i];
        c->spec.modifier[at] = modifiers[i].stage;
        return modifiers[i].take(c, at, value);
    }
    return unknown(c, "modifier", name, names, MODIFIERS);
}

int attention_take_modifiers(attention_case *c) { return take_list(c, c->set.modifier, take_modifier); }
