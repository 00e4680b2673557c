# awk -f cmake/api.awk include/*.h: the second half of docs/API.md, the headers and those of their structs that do not
# begin with their size (tests/docs.sh). One that ends with reserved fields has room, and a layer may grow that only the
# library makes: att_nn_X, if att_nn_X_new returns a constant one. The others are fixed. Options and what describes an
# object must have a size, and no function but a setter has a bare bool among its arguments.

FNR == 1 {
    header = FILENAME
    sub(/.*\//, "", header)
    about = $0
    sub(/^\/\* [a-z_.]+ - /, "", about)
    table = table "| [`" header "`](../include/" header ") | " toupper(substr(about, 1, 1)) substr(about, 2) " |\n"
}

/^(typedef )?struct att_[a-z_0-9]+ \{/ {
    name = $1 == "typedef" ? $3 : $2
    names[++n] = name
    kind[name] = /stays as it is/ ? "fixed" : ""
}
name && /^    size_t size;/ { kind[name] = "size" }
name && /^    void \*reserved\[/ { kind[name] = "room" }
name && /^}/ {
    if (name ~ /_(options|config|info)$/ && kind[name] !~ /size|fixed/) {
        print header ": " name " does not begin with its size" | "cat 1>&2"
        exit bad = 1
    }
    name = ""
}
/^ATT_API const att_nn_[a-z_]+ \*att_nn_[a-z_]+_new\(/ {
    layer = $4
    sub(/^\*/, "", layer)
    sub(/_new\(.*/, "", layer)
    if (layer == $3 && kind[layer] == "") kind[layer] = "layer"
}

/^ATT_API / { call = "" }
/^ATT_API /, /;/ {
    call = call $0
    if (/;/ && call ~ /[(,] *bool [a-z_]+[,)]/ && call !~ /_set_/) {
        sub(/\(.*/, "", call)
        print header ": an option, not a bool, in " call | "cat 1>&2"
        exit bad = 1
    }
}

# A sentence with the names of a kind, in lines of at most 120 characters
function list(which, line,    i, word, text)
{
    for (i = 1; i <= n; i++) {
        if (kind[names[i]] != which) continue
        word = " `" names[i] "`,"
        if (length(line) + length(word) > 120) {
            text = text line "\n"
            line = " "
        }
        line = line word
    }
    sub(/,$/, ".", line)
    print text line
}

END {
    if (bad) exit 1
    for (i = 1; i <= n; i++)
        if (kind[names[i]] == "") kind[names[i]] = "fixed"
    printf "## Headers\n\n| Header | What it has |\n|---|---|\n%s", table
    print "\n## Structs that do not begin with their size\n"
    list("room", "- Filled by calls, with reserved fields, which may get a name:")
    list("layer", "- Made by the library alone, which may add fields:")
    list("fixed", "- Fixed within a second number:")
}
