/* Shows the steps to one weight: the score, the score after each stage, the weight, and the length of the value. */
#include "views.h"

#include <stdlib.h>
#include <string.h>

/* Reads "Q,K". */
static int read_pair(const attended *a, int64_t *query, int64_t *key)
{
    const char *text = a->asked->pair;
    char *end;
    const bool first = *text >= '0' && *text <= '9';
    *query = strtoll(text, &end, 10);
    const bool second = first && *end == ',' && end[1] >= '0' && end[1] <= '9';
    *key = second ? strtoll(end + 1, &end, 10) : 0;
    if (!second || *end)
        return cli_misuse("--pair: \"%s\" is not Q,K, the numbers of two tokens, such as 3,5", text);
    if (*query >= a->attention.queries)
        return cli_misuse("--pair: the queries are 0 to %lld, not %lld", (long long)a->attention.queries - 1,
                          (long long)*query);
    if (*key >= a->attention.keys)
        return cli_misuse("--pair: the keys are 0 to %lld, not %lld", (long long)a->attention.keys - 1,
                          (long long)*key);
    return CLI_DONE;
}

/* Returns whether the score is the scaled product of query and key. */
static bool is_product(const attended *a, const att_trace_pair *p)
{
    return !strcmp(a->attention.score, "dot") && p->dim == p->key_dim;
}

static double product(const att_trace_pair *p)
{
    double sum = 0;
    for (int64_t i = 0; i < p->dim; i++)
        sum += (double)p->query[i] * (double)p->key[i];
    return sum;
}

static void print_heads(const attended *a, const att_trace_pair *p)
{
    printf("head  ");
    if (is_product(a, p))
        printf("%9s  ", "q . k");
    printf("%9s  ", is_product(a, p) ? "scaled" : a->attention.score);
    for (int i = 0; i < p->n_stages; i++)
        printf("%9s  ", p->stage[i]);
    printf("%9s  %7s  %7s\n", "log sum", "weight", "|value|");
}

static int stage_width(const att_trace_pair *p, int i)
{
    const int n = (int)strlen(p->stage[i]);
    return n < 9 ? 9 : n;
}

static void print_line(const attended *a, int64_t head, const att_trace_pair *p)
{
    printf("%4lld  ", (long long)head);
    if (is_product(a, p))
        printf("%9.4f  ", product(p));
    printf("%9.4f  ", p->score);
    for (int i = 0; i < p->n_stages; i++)
        if (p->masked_by >= 0 && i >= p->masked_by)
            printf("%*s  ", stage_width(p, i), "masked");
        else
            printf("%*.4f  ", stage_width(p, i), p->after[i]);
    printf("%9.4f  %7.4f  %7.4f\n", p->log_sum_exp, p->weight, (double)p->value_length);
}

static void write_pair(cli_json *j, const attended *a, int64_t head, const att_trace_pair *p)
{
    cli_json_object(j, NULL);
    cli_json_integer(j, "head", head);
    cli_json_row(j, "q", p->query, p->dim);
    cli_json_row(j, "k", p->key, p->key_dim);
    if (is_product(a, p))
        cli_json_number(j, "product", product(p), 9);
    cli_json_number(j, "score", p->score, 9);
    cli_json_array(j, "stages");
    for (int i = 0; i < p->n_stages; i++) {
        cli_json_object(j, NULL);
        cli_json_string(j, "name", p->stage[i]);
        cli_json_number(j, "after", p->after[i], 9); /* null: masked */
        cli_json_end(j);
    }
    cli_json_end(j);
    if (p->masked_by >= 0)
        cli_json_string(j, "masked_by", p->stage[p->masked_by]);
    cli_json_number(j, "log_sum_exp", p->log_sum_exp, 9);
    cli_json_number(j, "weight", p->weight, 9);
    cli_json_float(j, "value_length", p->value_length);
    cli_json_end(j);
}

static void begin(const attended *a, cli_json *j, int64_t query, int64_t key)
{
    if (a->asked->json) {
        *j = attention_json(a, a->attention.layer, -1);
        cli_json_string(j, "query", a->query[query]);
        cli_json_string(j, "key", a->key[key]);
        cli_json_string(j, "score", a->attention.score);
        cli_json_array(j, "heads");
        return;
    }
    printf("Layer %lld of 0 to %lld: query %lld \"%s\", key %lld \"%s\".\n\n", (long long)a->attention.layer,
           (long long)a->info.layers[a->side] - 1, (long long)query, a->query[query], (long long)key, a->key[key]);
}

int attention_show_pair(attended *a)
{
    int64_t query, key;
    int code = read_pair(a, &query, &key);
    if (!code)
        code = attended_trace(a, a->attention.layer, false, true, &a->trace);
    const int64_t index = code ? 0 : att_trace_find(a->trace, a->side, a->attention.layer);
    const int64_t first = a->asked->head >= 0 ? a->asked->head : 0,
                  last = a->asked->head >= 0 ? a->asked->head : a->attention.heads - 1;
    cli_json j = {0};
    for (int64_t h = first; !code && h <= last; h++) {
        att_trace_pair p = {.size = sizeof p};
        code = cli_status(a->m.base.ctx, att_trace_pair_of(a->trace, index, h, query, key, &p));
        if (code)
            break;
        if (h == first)
            begin(a, &j, query, key);
        if (a->asked->json) {
            write_pair(&j, a, h, &p);
            continue;
        }
        if (h == first)
            print_heads(a, &p);
        print_line(a, h, &p);
    }
    if (!code && a->asked->json)
        cli_json_close(&j);
    return code;
}
