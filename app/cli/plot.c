/* attend plot: curves of the numbers in logs. */
#include "cli/base/command.h"
#include "cli/base/grow.h"
#include "cli/base/lines.h"
#include "cli/base/utf8.h"
#include "cli/draw/chart.h"
#include "cli/draw/picture.h"
#include "cli/model/checkpoints.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { BLOCK = 1024, MAX_FIELDS = 16, MAX_LOGS = 64, MAX_SEEN = 12 };

static const char *x_name = "step", *y_names, *output_path, *title;

static const cli_option options[] = {
    {"x", 'x', "NAME", .text = &x_name, .help = "field on the x axis"},
    {"y", 'y', "NAME,NAME", .text = &y_names,
     .help =
         "fields on the y axis; default: those of loss, valid_loss, presence, valid_presence, bleu, cider, spearman "
         "and ndcg that occur"},
    {"output", 'o', "FILE", .text = &output_path, .writes = true,
     .help = "file to write: " PICTURE_FORMATS "; default: plot in the terminal"},
    {"title", 0, "TEXT", .text = &title, .help = "title of the picture"},
    {0},
};

/* ---- What is read ---------------------------------------------------------- */

/* The points of one number in one log. */
typedef struct series {
    chart_point *point;
    int64_t n;
    size_t room;
} series;

/* Lines of one log. */
typedef struct log_lines {
    int64_t all, objects, broken, first_broken;
} log_lines;

typedef struct plot {
    char *const *paths;   /* [logs], as typed */
    char *file[MAX_LOGS]; /* the log in a folder that was typed, or a copy of the path */
    int logs, fields;
    log_lines lines[MAX_LOGS];
    const char *field[MAX_FIELDS];
    char *field_text;     /* the value of --y, split at its commas */
    series *series;       /* [logs, fields] */
    char *seen[MAX_SEEN]; /* names of numbers in the logs, for error messages */
    int n_seen;
    int64_t with_x; /* lines */
} plot;

static const char default_fields[] = "loss,valid_loss,presence,valid_presence,bleu,cider,spearman,ndcg";

static int choose_fields(plot *p)
{
    char *rest = p->field_text = strdup(y_names ? y_names : default_fields);
    if (!rest)
        return cli_fail_memory();
    for (const char *name; (name = strsep(&rest, ","));) {
        if (!*name)
            return cli_misuse("--y: \"%s\" has a name of no letters", y_names);
        if (p->fields == MAX_FIELDS)
            return cli_misuse("--y: more than %d names", MAX_FIELDS);
        p->field[p->fields++] = name;
    }
    p->series = calloc((size_t)p->logs * (size_t)p->fields, sizeof *p->series);
    return p->series ? CLI_DONE : cli_fail_memory();
}

/* Finds the path of a log: that in the folder of a training, or the file itself. */
static int find_file(plot *p, int log)
{
    struct stat s;
    const char *path = p->paths[log];
    const bool folder = stat(path, &s) == 0 && S_ISDIR(s.st_mode);
    if (asprintf(&p->file[log], "%s%s", path, folder ? "/log.jsonl" : "") < 0) {
        p->file[log] = NULL;
        return cli_fail_memory();
    }
    return CLI_DONE;
}

static int add_point(series *s, chart_point point)
{
    if (!cli_reserve(&s->room, (size_t)s->n + 1, &(cli_array){&s->point, sizeof *s->point}, 1))
        return cli_fail_memory();
    s->point[s->n++] = point;
    return CLI_DONE;
}

/* Returns the number called `name` followed by `end`, or NAN. */
static double get(const json_t *object, const char *name, const char *end)
{
    char key[256];
    snprintf(key, sizeof key, "%s%s", name, end);
    const json_t *v = json_object_get(object, key);
    return json_is_number(v) ? json_number_value(v) : NAN;
}

/* Remembers the names of numbers, up to MAX_SEEN, so that an error message can list them. */
static int remember(plot *p, json_t *object)
{
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value)
    {
        bool known = !json_is_number(value) || p->n_seen == MAX_SEEN;
        for (int i = 0; !known && i < p->n_seen; i++)
            known = strcmp(p->seen[i], name) == 0;
        if (!known && !(p->seen[p->n_seen++] = strdup(name)))
            return cli_fail_memory();
    }
    return CLI_DONE;
}

static int add_object(plot *p, int log, int64_t line, json_t *object)
{
    const double x = get(object, x_name, "");
    int code = remember(p, object);
    if (code || isnan(x))
        return code;
    p->with_x++;
    for (int i = 0; !code && i < p->fields; i++) {
        chart_point q = {x, get(object, p->field[i], ""), get(object, p->field[i], "_low"),
                         get(object, p->field[i], "_high")};
        if (isnan(q.y))
            continue;
        if (!(q.low <= q.y && q.y <= q.high))
            q.low = q.high = q.y;
        if (fmax(fmax(fabs(x), fabs(q.y)), fmax(-q.low, q.high)) >= CHART_MAX)
            return cli_fail("%s: line %lld: a number is %g or more, too large to draw", p->file[log], (long long)line,
                            CHART_MAX);
        code = add_point(&p->series[log * p->fields + i], q);
    }
    return code;
}

/* Adds a block of lines. Lines that are not objects are only counted, because they occur if a disk was full or a
 * process was killed in the middle of a line. */
static int add_block(plot *p, int log, const cli_lines *in)
{
    log_lines *lines = &p->lines[log];
    int code = CLI_DONE;
    for (int64_t i = 0; !code && i < in->count; i++) {
        lines->all++;
        if (in->bytes[i] == 0)
            continue;
        json_t *v = json_loadb(in->text[i], in->bytes[i], JSON_ALLOW_NUL, NULL);
        if (json_is_object(v)) {
            lines->objects++;
            code = add_object(p, log, lines->all, v);
        } else if (lines->broken++ == 0) {
            lines->first_broken = lines->all;
        }
        json_decref(v);
    }
    return code;
}

static void tell_broken(const plot *p)
{
    for (int log = 0; log < p->logs; log++) {
        const log_lines *lines = &p->lines[log];
        const long long n = lines->broken, first = lines->first_broken;
        if (n == 1 && first == lines->all)
            cli_note("%s: line %lld, the last, is cut short and left out", p->file[log], first);
        else if (n == 1)
            cli_note("%s: line %lld is not a JSON object and is left out", p->file[log], first);
        else if (n > 1)
            cli_note("%s: %lld lines are not JSON objects and are left out, the first is line %lld", p->file[log], n,
                     first);
    }
}

static int by_x(const void *a, const void *b)
{
    const chart_point *p = a, *q = b;
    if (p->x != q->x)
        return p->x < q->x ? -1 : 1;
    return (p->y > q->y) - (p->y < q->y);
}

static int read_log(plot *p, int log)
{
    cli_lines in = {.fd = -1};
    int code = find_file(p, log);
    if (!code)
        code = cli_lines_open(&in, 1, &p->file[log]);
    in.any_bytes = true; /* a damaged line of a log is left out */
    while (!code) {
        code = cli_lines_next(&in, BLOCK);
        if (code || in.count == 0)
            break;
        code = add_block(p, log, &in);
    }
    cli_lines_close(&in);
    const log_lines *lines = &p->lines[log];
    if (!code && lines->broken && lines->objects == 0)
        code = cli_fail("%s: line %lld is not a JSON object", p->file[log], (long long)lines->first_broken);
    for (int i = 0; !code && i < p->fields; i++) {
        series *s = &p->series[log * p->fields + i];
        if (s->n)
            qsort(s->point, (size_t)s->n, sizeof *s->point, by_x); /* a log that was resumed goes back */
    }
    return code;
}

/* Reports that there is nothing to draw, and the names that exist. */
static int nothing_to_draw(const plot *p)
{
    char names[512] = "none";
    size_t n = 0;
    for (int i = 0; i < p->n_seen && n < sizeof names - 1; i++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%s\"%.*s\"", i ? ", " : "", utf8_prefix(p->seen[i], 40),
                              p->seen[i]);
    if (p->with_x == 0)
        return cli_fail("%s: no line has the number \"%s\" (--x); the numbers there: %s", p->file[0], x_name, names);
    return cli_fail("%s: no line with \"%s\" has a number of %s (--y); the numbers there: %s", p->file[0], x_name,
                    y_names ? y_names : default_fields, names);
}

/* ---- What is drawn --------------------------------------------------------- */

static bool occurs(const plot *p, int field)
{
    for (int log = 0; log < p->logs; log++)
        if (p->series[log * p->fields + field].n)
            return true;
    return false;
}

/* Returns the measured quantity: "loss" for "valid_loss". Numbers of one quantity share a panel. */
static const char *quantity(const char *field)
{
    const char *last = strrchr(field, '_');
    return last && last[1] ? last + 1 : field;
}

static bool in_panel(const plot *p, int field, const char *name)
{
    return strcmp(quantity(p->field[field]), name) == 0 && occurs(p, field);
}

/* A slash at the end belongs to the name. */
static const char *base_name(const char *path)
{
    const char *name = path;
    for (const char *p = path; *p; p++)
        if (*p == '/' && p[1] && p[1] != '/')
            name = p + 1;
    return name;
}

/* Returns the name of the file or folder without the folder that it is in, and without its ending, or all of the path
 * where another log is called so. */
static const char *log_name(const plot *p, int log, int *length)
{
    const char *name = base_name(p->paths[log]);
    for (int i = 0; i < p->logs; i++)
        if (i != log && strcmp(name, base_name(p->paths[i])) == 0)
            name = p->paths[log];
    const char *dot = strrchr(base_name(name), '.');
    *length = (int)strlen(name);
    if (dot && dot != base_name(name) && strcmp(p->file[log], p->paths[log]) == 0)
        *length = (int)(dot - name);
    while (*length > 1 && name[*length - 1] == '/')
        --*length;
    return name;
}

enum { NAME_BYTES = 256 };

/* Makes curve `number` of a log's field. Its name is the part that distinguishes it from the other curves of its panel:
 * the log, the field or both. */
static chart_curve make_curve(const plot *p, int log, int field, int number, int fields, char *name)
{
    const series *s = &p->series[log * p->fields + field];
    int length;
    const char *called = log_name(p, log, &length);
    length = length > 120 ? utf8_prefix(called, 120) : length;
    const char *shown = p->field[field];
    if (p->logs == 1)
        snprintf(name, NAME_BYTES, "%.*s", utf8_prefix(shown, 100), shown);
    else
        snprintf(name, NAME_BYTES, "%.*s%s%.*s", length, called, fields > 1 ? ": " : "",
                 fields > 1 ? utf8_prefix(shown, 100) : 0, shown);
    return (chart_curve){name, s->point, s->n, p->logs == 1 ? field : log, p->logs == 1 ? 0 : number};
}

/* Makes the curves of all fields of the quantity `name`: curve [logs * fields], with names. Returns their number. */
static int make_curves(const plot *p, const char *name, chart_curve *curve, char (*names)[NAME_BYTES])
{
    int fields = 0, number = 0, used = 0;
    for (int field = 0; field < p->fields; field++)
        fields += in_panel(p, field, name);
    for (int field = 0; field < p->fields; field++) {
        if (!in_panel(p, field, name))
            continue;
        for (int log = 0; log < p->logs; log++) {
            if (p->series[log * p->fields + field].n == 0)
                continue;
            curve[used] = make_curve(p, log, field, number, fields, names[used]);
            used++;
        }
        number++;
    }
    return used;
}

/* Makes panels [fields] of the quantities that occur, in the order of their first fields. Returns their number. */
static int make_panels(const plot *p, chart_panel *panel, chart_curve *curve, char (*names)[NAME_BYTES])
{
    int n = 0;
    for (int field = 0; field < p->fields; field++) {
        const char *name = quantity(p->field[field]);
        bool known = !occurs(p, field);
        for (int i = 0; i < n; i++)
            known = known || strcmp(panel[i].name, name) == 0;
        if (known)
            continue;
        panel[n] = (chart_panel){.name = name, .curve = curve, .n = make_curves(p, name, curve, names)};
        curve += panel[n].n;
        names += panel[n].n;
        n++;
    }
    return n;
}

/* ---- Why loss and valid_loss differ ------------------------------------------ */

/* Sets *dropout and *smoothing if the log is that of a training with them, by the options that its folder stores. */
static int read_training(const plot *p, int log, bool *dropout, bool *smoothing)
{
    static const char end[] = "/log.jsonl";
    char folder[CLI_TRAINING_PATH];
    json_t *training;
    const char *file = p->file[log];
    const size_t n = strlen(file), rest = sizeof end - 1;
    const bool here = !strcmp(file, end + 1);
    if (!here && (n < rest || strcmp(file + n - rest, end) != 0))
        return CLI_DONE;
    snprintf(folder, sizeof folder, "%.*s", here ? 1 : (int)(n - rest), here ? "." : file);
    const int code = cli_training_file_read(folder, &training);
    const json_t *options = json_object_get(training, "options");
    const char *text[] = {json_string_value(json_object_get(options, "dropout")),
                          json_string_value(json_object_get(options, "smoothing"))};
    *dropout |= text[0] && strtod(text[0], NULL) > 0;
    *smoothing |= text[1] && strtod(text[1], NULL) > 0;
    json_decref(training);
    return code;
}

static bool has(const plot *p, int log, const char *name)
{
    for (int i = 0; i < p->fields; i++)
        if (!strcmp(p->field[i], name) && p->series[log * p->fields + i].n)
            return true;
    return false;
}

/* Adds the note below the picture, if it has both losses of a training whose options act on one of them only. */
static int make_note(const plot *p, char note[NAME_BYTES])
{
    bool dropout = false, smoothing = false;
    int code = CLI_DONE;
    for (int log = 0; !code && log < p->logs; log++)
        if (has(p, log, "loss") && has(p, log, "valid_loss"))
            code = read_training(p, log, &dropout, &smoothing);
    *note = '\0';
    if (dropout || smoothing)
        snprintf(note, NAME_BYTES, "valid_loss may be lower than loss, which is with %s%s%s", dropout ? "dropout" : "",
                 dropout && smoothing ? " and " : "", smoothing ? "label smoothing" : "");
    return code;
}

/* "loss, bleu by step" */
static void make_title(const chart *c, char *text, size_t size)
{
    size_t n = 0;
    for (int i = 0; i < c->n && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%.*s", i ? ", " : "", utf8_prefix(c->panel[i].name, 60),
                              c->panel[i].name);
    if (n < size)
        snprintf(text + n, size - n, " by %.*s", utf8_prefix(c->x_name, 60), c->x_name);
}

static int draw(const plot *p)
{
    const size_t curves = (size_t)p->logs * (size_t)p->fields;
    chart_curve *curve = malloc(curves * sizeof *curve);
    char(*name)[NAME_BYTES] = malloc(curves * sizeof *name), text[NAME_BYTES], note[NAME_BYTES];
    chart_panel panel[MAX_FIELDS];
    picture file = {0};
    int code = curve && name ? make_note(p, note) : cli_fail_memory();
    if (!code)
        code = picture_open(&file, output_path);
    if (!code) {
        chart c = {.title = title, .x_name = x_name, .panel = panel, .n = make_panels(p, panel, curve, name)};
        c.note = *note ? note : NULL;
        if (!title) {
            make_title(&c, text, sizeof text);
            c.title = text;
        }
        if (!output_path)
            chart_terminal(file.svg, &c, terminal_colors(file.svg));
        else if (chart_svg(file.svg, &c))
            code = cli_fail_memory();
        code = picture_close(&file, code);
    }
    free(curve);
    free(name);
    return code;
}

static int run(int n, char **arguments)
{
    plot p = {.paths = arguments, .logs = n};
    int code = choose_fields(&p);
    for (int log = 0; !code && log < n; log++)
        code = read_log(&p, log);
    bool any = false;
    for (int i = 0; !code && i < p.fields; i++)
        any = any || occurs(&p, i);
    if (any)
        tell_broken(&p);
    if (!code)
        code = any ? draw(&p) : nothing_to_draw(&p);
    for (int i = 0; p.series && i < p.logs * p.fields; i++)
        free(p.series[i].point);
    for (int log = 0; log < n; log++)
        free(p.file[log]);
    for (int i = 0; i < p.n_seen; i++)
        free(p.seen[i]);
    free(p.series);
    free(p.field_text);
    return code;
}

const cli_command cli_plot = {
    .name = "plot",
    .summary = "plot curves of training logs, in the terminal or as a picture",
    .arguments = "FOLDER|FILE...",
    .min_arguments = 1,
    .max_arguments = MAX_LOGS,
    .details = "Reads logs of JSON objects, one per line, such as log.jsonl in the folder of a\n"
               "training and that of \"attend bleu --json --by-length\". Lines without the field --x are skipped; so\n"
               "are lines that are not objects, with a note. Each log is a curve. Fields whose\n"
               "names end in the same word, such as loss and valid_loss, share a panel.\n"
               "NAME_low and NAME_high are plotted as a confidence interval of NAME.",
    .examples = "attend plot de-en\n"
                "attend plot -x length -y bleu -o lengths.svg rnn.jsonl transformer.jsonl",
    .options = options,
    .see = "train|bleu",
    .run = run,
};
