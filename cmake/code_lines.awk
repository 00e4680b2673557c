# awk -f cmake/code_lines.awk FILE...: lines of code by file, the longest first, and their totals. A line of nothing but
# space and comments is none. In C, comments are found outside of strings and characters; in other files, a line whose
# first character is "#" is one.

FNR == 1 {
    file = FILENAME
    sub(/^\.\//, "", file)
    in_comment = 0
    is_c = file ~ /\.(c|h|cpp)$/
    n[file] += 0
}
{
    line = is_c ? without_comments($0) : $0
    if (!is_c && line ~ /^[ \t]*#/) line = ""
    if (line ~ /[^ \t]/) n[file]++
}

# Of a line of C; in_comment: does the next one begin inside of a comment?
function without_comments(s,    kept, end)
{
    for (kept = ""; s != "";) {
        if (in_comment) {
            if (!(end = index(s, "*/"))) return kept
            s = substr(s, end + 2)
            in_comment = 0
        }
        if (!match(s, /"([^"\\]|\\.)*"|'([^'\\]|\\.)*'|\/\/|\/\*/)) return kept s
        if (substr(s, RSTART, 2) == "//") return kept substr(s, 1, RSTART - 1)
        in_comment = substr(s, RSTART, 2) == "/*"
        kept = kept substr(s, 1, RSTART + (in_comment ? -1 : RLENGTH - 1))
        s = substr(s, RSTART + RLENGTH)
    }
    return kept
}

END {
    for (file in n) {
        print n[file], file | "sort -k1,1rn -k2"
        if (file ~ /^(src|include)\//) total["src and include"] += n[file]
        else {
            top = file
            total[sub(/\/.*/, "", top) ? top : "others"] += n[file]
        }
    }
    close("sort -k1,1rn -k2")
    print ""
    for (top in total) print total[top], top | "sort -k1,1rn"
}
