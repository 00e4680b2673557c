# awk -f cmake/without_comments.awk -f cmake/code_lines.awk FILE...: lines of code by file, the longest first, and their totals. A line of nothing but
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
