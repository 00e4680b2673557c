# awk -f cmake/struct_sizes.awk include/*.h: the public headers, and a table in C of each struct that they define and its
# size, for tests/core/struct_sizes.c.

FNR == 1 {
    name = FILENAME
    sub(/.*\//, "", name)
    print "#include <" name ">"
}

/^(typedef )?(struct|union) .*\{$/ {
    name = $1 == "typedef" ? $3 : $2
    if (name !~ /^att_[a-z_0-9]+$/) {
        print FILENAME ":" FNR ": a struct without a name that begins with att_" | "cat 1>&2"
        exit bad = 1
    }
    rows = rows "\n    {\"" name "\", sizeof(" ($1 == "typedef" ? "" : $1 " ") name ")},"
}

END {
    if (!bad) print "static const struct { const char *name; size_t bytes; } structs[] = {" rows "\n};"
    exit bad
}
