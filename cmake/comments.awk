# awk -f cmake/without_comments.awk -f cmake/comments.awk FILES NAMES SOURCE...: do the source files exist that comments
# name ("tiles.c", "call/plan.c"), and the names that begin with att_, ATT_ or cli_? Prints "file:line: what". FILES has
# the paths of the tree, one a line; NAMES is what cmake/names.awk prints. NAME stands for a name of the reader's choice.

FILENAME == ARGV[1] {
    for (path = "/" $0; sub(/^\/[^\/]*/, "", path) && path != "";) is_file[substr(path, 2)] = 1
    next
}

FILENAME == ARGV[2] {
    is_name[$2] = 1
    next
}

FNR == 1 { in_comment = 0 }

{
    code = without_comments($0)
    comment = index($0, code) == 1 ? substr($0, length(code) + 1) : $0
    if (comment == "") next
    check(comment, "(^|[^A-Za-z0-9_])(att|ATT|cli)_[A-Za-z0-9_*]+", is_name)
    check(comment " ", "[A-Za-z0-9_/.-]+[.][ch]([^A-Za-z0-9_(.]|[.] )", is_file)
}

function check(comment, pattern, known,    name)
{
    while (match(comment, pattern)) {
        name = substr(comment, RSTART, RLENGTH)
        comment = substr(comment, RSTART + RLENGTH)
        sub(/^[^A-Za-z0-9]+/, "", name)
        sub(/[^A-Za-z0-9_*]+$/, "", name)
        if (name in known || name ~ /NAME|SUBJECT|[*]/) continue
        print FILENAME ":" FNR ": " name " does not exist"
        bad = 1
    }
}

END { exit bad }
