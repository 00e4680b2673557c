# A line of C without its comments, which are found outside of strings and characters. in_comment: does the next line
# begin inside of one? Whoever begins with a file sets it to 0.
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
