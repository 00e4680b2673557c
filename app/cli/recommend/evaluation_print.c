/* Prints evaluations of recommenders. */
#include "cli/base/json.h"
#include "cli/base/output.h"
#include "cli/base/utf8.h"
#include "evaluation.h"

#include <math.h>
#include <string.h>

int64_t evaluation_draws(const evaluation *e)
{
    const evaluation_protocol *o = e->protocol;
    return o->candidates == ATT_CANDIDATES_ALL ? 1 : o->draws ? o->draws : 5;
}

static int64_t sampled(const evaluation *e) { return e->protocol->negatives ? e->protocol->negatives : 100; }

static const char *plural(int64_t n) { return n == 1 ? "" : "s"; }

const char *evaluation_point(const evaluation *e, char text[CLI_TIME_BYTES])
{
    return cli_time_text(e->protocol->part ? e->log.held.test_from : e->log.held.valid_from,
                         e->log.info.time_per_second, text);
}

static void print_split(const evaluation *e)
{
    char point[CLI_TIME_BYTES];
    const att_holdout_info *h = &e->log.held;
    const long long cases = h->cases[e->protocol->part];
    if (h->kind == ATT_HOLDOUT_LEAVE_ONE_OUT)
        printf("held out    leave-one-out: the %s of each of %lld user%s with %lld actions or more,\n"
               "            predicted from all before it; %lld user%s with fewer %s for training only\n",
               e->protocol->part ? "last action" : "last action but one", cases, plural(cases),
               (long long)e->data->min_actions, (long long)h->train_only, plural(h->train_only),
               h->train_only == 1 ? "is" : "are");
    else
        printf("held out    time: the first action of each of %lld user%s from %s on%s, predicted\n"
               "            from all before it; %lld user%s without any before it %s not counted, and %lld\n"
               "            with fewer than %lld actions %s for training only\n",
               cases, plural(cases), evaluation_point(e, point), e->protocol->part ? "" : " (and before the test)",
               (long long)h->without_history[e->protocol->part], plural(h->without_history[e->protocol->part]),
               h->without_history[e->protocol->part] == 1 ? "is" : "are", (long long)h->train_only,
               (long long)e->data->min_actions, h->train_only == 1 ? "is" : "are");
    if (h->not_held_out > 0)
        printf("            %lld more user%s for training only, by --held-out-users %lld\n", (long long)h->not_held_out,
               h->not_held_out == 1 ? " is" : "s are", (long long)e->data->held_out_users);
}

static void print_candidates(const evaluation *e)
{
    static const char *const outside[] = {
        [ATT_CANDIDATES_OUTSIDE_TRAINING] = "uniform outside the user's training items, with repetition",
        [ATT_CANDIDATES_OUTSIDE_HISTORY] = "uniform outside all items of the user",
        [ATT_CANDIDATES_BY_POPULARITY] = "by popularity, outside all items of the user"};
    const bool of_history =
        e->protocol->candidates == ATT_CANDIDATES_OUTSIDE_TRAINING; /* the item for validation can be one */
    const char *seen = e->protocol->exclude_seen ? "without those of the history" : "those of the history, too";
    if (e->protocol->candidates == ATT_CANDIDATES_ALL)
        printf("candidates  all %lld items, %s\n", (long long)e->log.info.items, seen);
    else
        printf("candidates  %lld random items, %s%s%s;\n            mean of %lld draws for each user, seed %lld\n",
               (long long)sampled(e), outside[e->protocol->candidates], of_history ? ",\n            " : "",
               of_history ? seen : "", (long long)evaluation_draws(e), (long long)e->protocol->seed);
}

static double half_width(const att_interval *x) { return (x->high - x->low) / 2; }

/* Returns the last name of a path. */
static const char *short_name(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash && slash[1] ? slash + 1 : name;
}

static const struct {
    const char *name, *key;
    size_t at, minus; /* in att_ranking, att_rank_measures */
} measures[] = {{"HR", "hr", offsetof(att_ranking, hr), offsetof(att_rank_measures, hr)},
                {"NDCG", "ndcg", offsetof(att_ranking, ndcg), offsetof(att_rank_measures, ndcg)},
                {"MRR", "mrr", offsetof(att_ranking, mrr), offsetof(att_rank_measures, mrr)}};
enum { MEASURES = sizeof measures / sizeof *measures };

static const att_interval *interval_at(const void *of, size_t at)
{
    return (const att_interval *)((const char *)of + at);
}

/* Returns the width of the column of names. */
static int name_width(const evaluation *e)
{
    int width = 15;
    for (int i = 0; i < e->n; i++)
        width = (int)fmax(width, utf8_width(short_name(e->system[i].name)));
    return (int)fmin(width, 30);
}

/* Prints the names of the measures at cutoff k, each `width` wide, the last one `last`. */
static void print_heading(int64_t k, int width, int last)
{
    for (int c = 0; c < MEASURES; c++) {
        char name[32];
        snprintf(name, sizeof name, "%s@%lld", measures[c].name, (long long)k);
        printf("  %-*s", c < MEASURES - 1 ? width : last, name);
    }
}

/* Prints the results of a cutoff. */
static void print_table(const evaluation *e, int at)
{
    const int width = name_width(e);
    printf("\n%*s", width, "");
    print_heading(e->cutoff[at], 14, 14);
    puts("  coverage  popularity");
    for (int i = 0; i < e->n; i++) {
        const att_ranking *r = &e->system[i].r[at];
        utf8_field(stdout, short_name(e->system[i].name), width, 0);
        for (int c = 0; c < MEASURES; c++) {
            const att_interval *x = interval_at(r, measures[c].at);
            printf("  %.4f ±%.4f", x->mean, half_width(x));
        }
        printf("  %6.2f %%  %10.1f\n", 100 * r->coverage, r->popularity);
    }
}

/* Prints the differences between the model and each baseline at a cutoff. */
static void print_differences(const evaluation *e, int at)
{
    const int width = name_width(e);
    printf("\n%s minus\n%*s", short_name(e->system[e->n - 1].name), width, "");
    print_heading(e->cutoff[at], 26, 0);
    putchar('\n');
    for (int i = 0; i < e->n - 1; i++) {
        utf8_field(stdout, short_name(e->system[i].name), width, 0);
        for (int c = 0; c < MEASURES; c++) {
            const att_interval *x = interval_at(&e->system[i].minus[at], measures[c].minus);
            printf("  %+.4f %+.4f to %+.4f", x->mean, x->low, x->high);
        }
        putchar('\n');
    }
}

static void print_text(const evaluation *e)
{
    const att_ranking *first = &e->system[0].r[0];
    printf("training    %lld actions of %lld user%s with %lld item%s\n", (long long)e->log.held.actions,
           (long long)e->log.held.users, plural(e->log.held.users), (long long)e->log.held.items,
           plural(e->log.held.items));
    print_split(e);
    print_candidates(e);
    printf("unseen      %lld held-out item%s not occur in training: %s\n", (long long)first->unseen,
           first->unseen == 1 ? " does" : "s do", e->protocol->leave_out_unseen ? "not counted" : "counted");
    printf("repeats     %lld of %lld counted items %s in their history\n", (long long)first->repeats,
           (long long)first->cases, first->repeats == 1 ? "is" : "are");
    printf("neighbors   %lld of an item; an item of the history weighs %g times the one after it\n",
           (long long)e->protocol->neighbors, e->protocol->decay);
    if (e->ease.l2 > 0)
        printf("EASE        regularization %g; an item of the history weighs %g times the one after it\n", e->ease.l2,
               e->ease.decay);
    if (e->model_name)
        printf("model       knows %lld of the log's %lld item%s; %lld histor%s none that it knows\n",
               (long long)e->known_items, (long long)e->log_items, plural(e->log_items), (long long)e->without_known,
               e->without_known == 1 ? "y has" : "ies have");
    for (int i = 0; i < e->n_cutoffs; i++) {
        print_table(e, i);
        if (e->model_name)
            print_differences(e, i);
    }
    puts("\n± is half the width of the 95 % interval. coverage: share of the items that are\n"
         "recommended to some user; popularity: mean number of their training actions.");
    if (e->model_name)
        printf("Differences have the 95 %% interval of %s: one that does\n"
               "not include 0 is more than the choice of users explains.\n",
               evaluation_resamples(e) ? "paired resampling over users" : "the normal distribution over pairs");
}

static void json_estimate(cli_json *j, const char *key, const att_interval *x)
{
    char name[32];
    cli_json_number(j, key, x->mean, 8);
    snprintf(name, sizeof name, "%s_low", key);
    cli_json_number(j, name, x->low, 8);
    snprintf(name, sizeof name, "%s_high", key);
    cli_json_number(j, name, x->high, 8);
}

/* Writes the sizes of the training part and of the held-out parts. */
static void json_training(cli_json *j, const evaluation *e)
{
    const att_holdout_info *h = &e->log.held;
    cli_json_integer(j, "min_actions", e->data->min_actions);
    cli_json_object(j, "training");
    cli_json_integer(j, "actions", h->actions);
    cli_json_integer(j, "users", h->users);
    cli_json_integer(j, "items", h->items);
    cli_json_integer(j, "users_only", h->train_only);
    cli_json_integer(j, "users_not_held_out", h->not_held_out);
    cli_json_end(j);
    if (h->kind == ATT_HOLDOUT_TIME) {
        cli_json_number(j, "valid_from", h->valid_from, 17);
        cli_json_number(j, "test_from", h->test_from, 17);
        cli_json_integer(j, "users_not_counted", h->without_history[e->protocol->part]);
    }
    if (e->model_name) {
        cli_json_integer(j, "log_items", e->log_items);
        cli_json_integer(j, "known_items", e->known_items);
        cli_json_integer(j, "histories_without_known", e->without_known);
    }
}

/* Begins the object of a system at a cutoff. */
static void json_begin(cli_json *j, const evaluation *e, const evaluated *s, int at)
{
    cli_json_object(j, NULL);
    cli_json_string(j, "name", s->name);
    if (e->n_cutoffs > 1)
        cli_json_integer(j, "k", e->cutoff[at]);
}

static void json_results(cli_json *j, const evaluation *e)
{
    cli_json_array(j, "results");
    for (const evaluated *s = e->system; s < e->system + e->n; s++)
        for (int i = 0; i < e->n_cutoffs; i++) {
            json_begin(j, e, s, i);
            for (int c = 0; c < MEASURES; c++)
                json_estimate(j, measures[c].key, interval_at(&s->r[i], measures[c].at));
            cli_json_number(j, "coverage", s->r[i].coverage, 8);
            cli_json_number(j, "popularity", s->r[i].popularity, 8);
            cli_json_end(j);
        }
    cli_json_end(j);
    if (!e->model_name)
        return;
    cli_json_array(j, "differences"); /* the model minus the named baseline */
    for (const evaluated *s = e->system; s < e->system + e->n - 1; s++)
        for (int i = 0; i < e->n_cutoffs; i++) {
            json_begin(j, e, s, i);
            for (int c = 0; c < MEASURES; c++)
                json_estimate(j, measures[c].key, interval_at(&s->minus[i], measures[c].minus));
            cli_json_end(j);
        }
    cli_json_end(j);
}

static void print_json(const evaluation *e)
{
    static const char *const names[] = {"all", "outside-training", "outside-history", "popularity"};
    const att_ranking *first = &e->system[0].r[0];
    cli_json j = cli_json_begin(stdout);
    cli_json_string(&j, "data", e->data->path);
    cli_json_string(&j, "split", cli_split_name(e->log.held.kind));
    cli_json_string(&j, "part", e->protocol->part ? "test" : "valid");
    cli_json_integer(&j, "cases", first->cases);
    cli_json_integer(&j, "unseen", first->unseen);
    cli_json_bool(&j, "unseen_counted", !e->protocol->leave_out_unseen);
    cli_json_integer(&j, "repeats", first->repeats);
    cli_json_integer(&j, "neighbours", e->protocol->neighbors);
    cli_json_number(&j, "decay", e->protocol->decay, 6);
    if (e->ease.l2 > 0) {
        cli_json_number(&j, "ease_l2", e->ease.l2, 6);
        cli_json_number(&j, "ease_decay", e->ease.decay, 6);
    }
    json_training(&j, e);
    if (e->log.info.guests)
        cli_json_integer(&j, "guests", e->log.info.guests);
    const struct {
        const char *key;
        int64_t n;
    } left_out[] = {{"other_events", e->log.info.other_events},
                    {"low_ratings", e->log.info.low_ratings},
                    {"rare_users", e->log.info.rare_users},
                    {"rare_items", e->log.info.rare_items},
                    {"rare_actions", e->log.info.rare_actions}};
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
        if (left_out[i].n > 0)
            cli_json_integer(&j, left_out[i].key, left_out[i].n);
    cli_skipped_json(&j, e->log.info.skipped, e->log.info.bad);
    cli_json_integer(&j, "items", e->log.info.items);
    cli_json_string(&j, "candidates", names[e->protocol->candidates]);
    cli_json_bool(&j, "exclude_seen", e->protocol->exclude_seen);
    if (e->n_cutoffs == 1)
        cli_json_integer(&j, "k", e->cutoff[0]);
    if (e->protocol->candidates != ATT_CANDIDATES_ALL) {
        cli_json_integer(&j, "negatives", sampled(e));
        cli_json_integer(&j, "draws", evaluation_draws(e));
        cli_json_integer(&j, "seed", e->protocol->seed);
    }
    if (e->model_name)
        cli_json_string(&j, "compute", cli_model_compute(&e->m.base));
    json_results(&j, e);
    cli_json_end(&j);
}

int evaluation_print(const evaluation *e, bool json)
{
    cli_output out;
    const int code = cli_output_open(&out, NULL);
    if (code)
        return code;
    (json ? print_json : print_text)(e);
    return cli_output_close(&out, code);
}
