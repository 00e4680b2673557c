# awk -f cmake/without_comments.awk -f cmake/limits.awk FILE...: has a file more than 600 lines (500 in src)? And in C and
# C++: has a function more than 60 lines or 8 parameters, or a struct of src/attn more than 16 fields? The layout is that
# of clang-format: a function begins with "{" on a line of its own, and ends with "}".

BEGIN { most["lines"] = 60; most["parameters"] = 8; most["fields"] = 16 }

FNR == 1 {
    file_end()
    file = FILENAME
    sub(/^\.\//, "", file)
    most["lines of a file"] = file ~ /^src\// ? 500 : 600
    in_macro = in_comment = in_function = depth = inside = 0
    head = ""
    is_c = file ~ /\.(c|h|cpp)$/
}
{ n_lines = FNR }
!is_c { next }
in_macro || /^[ \t]*#/ {
    in_macro = /\\$/
    next
}
{
    line = without_comments($0)
    gsub(/"([^"\\]|\\.)*"|'([^'\\]|\\.)*'/, "\"\"", line)
}

# Structs, wherever they are: fields are counted by what separates them, at each depth on its own.
file ~ /^src\/attn\// { structs(line) }

/^\{$/ { # a function's, whose head has been gathered
    name = head
    sub(/\(.*/, "", name)
    sub(/.*[ *]/, "", name)
    begin = head_begin
    check("parameters", parameters(head), name)
    in_function = 1
}
/^\}/ {
    if (in_function) check("lines", FNR - begin + 1, name)
    in_function = 0
    head = ""
    next
}
!in_function {
    if (line ~ /^[A-Za-z_]/) {
        head = ""
        head_begin = FNR
    }
    head = head " " line
    if (line ~ /^[A-Za-z_].*\) \{.*\}$/ && line !~ /=/) { # on one line
        name = line
        sub(/\(.*/, "", name)
        sub(/.*[ *]/, "", name)
        check("parameters", parameters(substr(line, 1, index(line, "{") - 1)), name)
    }
}

function parameters(head,    i, c, depth, n)
{
    head = substr(head, index(head, "("))
    if (head ~ /^\((void)?\)/) return 0
    for (i = n = 1; i <= length(head); i++) {
        c = substr(head, i, 1)
        depth += (c == "(") - (c == ")")
        n += c == "," && depth == 1
        if (!depth) break
    }
    return n
}

function structs(line,    i, c, rest)
{
    for (i = 1; i <= length(line); i++) {
        c = substr(line, i, 1)
        if (c == "{") {
            depth++
            rest = substr(line, 1, i - 1)
            kind[depth] = rest ~ /(struct|union)( [a-z_0-9]+)? *$/
            fields[depth] = 0
            of[depth] = rest ~ /struct [a-z_0-9]+ *$/ ? rest : "struct"
            sub(/ *$/, "", of[depth])
            sub(/.* /, "", of[depth])
        } else if (c == "}") {
            if (kind[depth]) check("fields", fields[depth], of[depth])
            depth--
        } else if (c == "(") inside++
        else if (c == ")") inside--
        else if (!inside && depth && (c == ";" || c == ",")) fields[depth]++
    }
}

function check(what, n, name)
{
    if (n <= most[what]) return
    print file ": " (name ? name ": " : "") n " " what ", the most is " most[what]
    bad = 1
}

function file_end()
{
    if (file) check("lines of a file", n_lines)
}

END {
    file_end()
    exit bad
}
