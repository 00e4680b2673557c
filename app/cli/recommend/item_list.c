#include "item_list.h"
#include "cli/base/grow.h"
#include "cli/base/lines.h"

#include <attend_text.h>

#include <string.h>

static int add_listed(cli_item_list *l, const cli_recommender *m, const char *id, cli_unknown *unknown)
{
    const int64_t item = att_recommender_find_item(m->model, id);
    if (item < 0) {
        cli_unknown_add(unknown, id, strlen(id));
        cli_unknown_end_line(unknown);
        return CLI_DONE;
    }
    if (!cli_reserve(&l->room, (size_t)l->n + 1, &(cli_array){&l->items, sizeof *l->items}, 1))
        return cli_fail_memory();
    l->items[l->n++] = (int32_t)item;
    return CLI_DONE;
}

int cli_check_line(const char *source, int64_t number, const char *line, size_t bytes)
{
    if (strlen(line) == bytes && att_utf8_valid(line, bytes))
        return CLI_DONE;
    return cli_fail("%s: line %lld: %s", source, (long long)number,
                    strlen(line) < bytes ? "has a zero byte" : "is not UTF-8 text");
}

int cli_item_list_read(cli_item_list *l, const cli_recommender *m, const char *option, const char *path)
{
    char *paths[] = {(char *)path}, list[CLI_UNKNOWN_LIST];
    cli_reader r = {.in = {.fd = -1}};
    cli_unknown unknown = {.ids = true};
    bool there = path != NULL;
    int code = path ? cli_lines_open(&r.in, 1, paths) : CLI_DONE;
    while (!code && there) {
        code = cli_reader_next(&r, &there);
        if (!code && there)
            code = cli_check_line(path, r.lines, r.in.text[r.at], r.in.bytes[r.at]);
        if (!code && there && r.in.bytes[r.at] > 0)
            code = add_listed(l, m, r.in.text[r.at], &unknown);
    }
    cli_lines_close(&r.in);
    cli_unknown_list(&unknown, list);
    if (!code && path && l->n == 0)
        return cli_fail("--%s %s: has no item that the model knows%s%s", option, path, *list ? ": " : "", list);
    if (!code && unknown.lines > 0)
        cli_note("--%s %s: %lld of %lld items are not known to the model: %s", option, path, (long long)unknown.lines,
                 (long long)(unknown.lines + l->n), list);
    return code;
}
