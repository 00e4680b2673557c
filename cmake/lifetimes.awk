# awk -f cmake/lifetimes.awk include/*.h: a struct with a size that a function takes as const has a mark at each of its
# pointers, [call] or [object], first in the comment behind the field: how long is it needed? See attend.h. Stages, which
# attend_extend.h has, are none: one sentence there is on all of their pointers.

/^(typedef )?struct att_[a-z_0-9]+ \{/ {
    name = $1 == "typedef" ? $3 : $2
    field = ""
    next
}
/^}/ { name = "" }
name && /^    size_t size;/ { sized[name] = 1 }
name {
    code = $0
    while (match(code, /\/\*([^*]|\*[^\/])*\*\//)) # comments in one line
        code = substr(code, 1, RSTART - 1) substr(code, RSTART + RLENGTH)
    if (inside && !sub(/^.*\*\//, "", code)) next # the rest of a longer one
    inside = sub(/\/\*.*/, "", code)
    field = field code
    if (code !~ /;/) next
    if (field ~ /\*|_fn /) {
        sub(/^ +/, "", field)
        if ($0 !~ /; *\/\* \[(call|object)\]/) missing[name] = missing[name] FILENAME ":" FNR ": " name ": " field "\n"
        else marks++
    }
    field = ""
    next
}

/^ATT_API / { call = "" }
!/extern/ && /^ATT_API /, /;/ {
    call = call $0
    if (!/;/) next
    sub(/^[^(]*/, "", call) # what it returns
    while (match(call, /const att_[a-z_0-9]+ \*[a-z]/)) {
        taken[substr(call, RSTART + 6, RLENGTH - 9)] = 1
        call = substr(call, RSTART + RLENGTH)
    }
}

END {
    for (name in taken)
        if ((name in sized) && (name in missing)) {
            printf "%s", missing[name]
            bad = 1
        }
    if (bad) print "how long is each needed? [call] or [object], see the conventions of attend.h"
    exit bad || !marks
}
