# awk -f cmake/struct_sizes.awk include/*.h: the public headers, and a table in C of each struct that they define and its
# size, for tests/core/struct_sizes.c. A struct that begins with its size may grow, so none is a part of another one.

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

/^    size_t size;/ { grows[name] = 1 }
/^    att_[a-z_0-9]+ [a-z]/ && ($1 in grows) {
    print FILENAME ":" FNR ": " $1 " may grow, and what stands behind it would move: take a pointer" | "cat 1>&2"
    exit bad = 1
}

END {
    if (!bad) print "static const struct { const char *name; size_t bytes; } structs[] = {" rows "\n};"
    exit bad
}
