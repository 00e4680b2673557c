# awk -f cmake/words.awk docs/GLOSSARY.md FILE...: does no file use a word of the table "Words not used here"?
# A row is | word | use instead | folders |. A word is searched in comments and, between underscores too, in identifiers;
# one in `backquotes` only as a whole identifier, where * stands for any characters; a phrase only in comments. Strings
# are not searched. Folders, if any, are the only ones where a word is banned.

BEGIN {
    # Folders and files that are not checked.
    n_unchecked = 0
}

FILENAME == ARGV[1] {
    if (/^## /) in_table = /^## Words not used here/
    if (in_table && /^\| / && !/^\| word /) {
        n = split($0, cell, / *\| */)
        if (n < 4) fail(FILENAME ":" FNR ": not a row of three cells")
        add(cell[2], cell[3], cell[4])
    }
    next
}

FNR == 1 {
    in_comment = 0
    checked = 1
    for (i = 1; i <= n_unchecked; i++) if (begins(FILENAME, unchecked[i])) checked = 0
    for (i = 1; i <= n_rules; i++) applies[i] = checked && is_within(FILENAME, where[i])
}

checked {
    split_line($0)
    for (i = 1; i <= n_rules; i++)
        if (applies[i] && is_used(i)) fail(FILENAME ":" FNR ": \"" word[i] "\", use instead: " instead[i])
}

function is_used(i)
{
    if (kind[i] == "identifier") return has_identifier(code, pattern[i])
    return comment ~ pattern[i] || (kind[i] == "word" && code ~ pattern[i])
}

function add(text, use, folders)
{
    word[++n_rules] = text
    instead[n_rules] = use
    where[n_rules] = folders
    if (text ~ /^`/) {
        kind[n_rules] = "identifier"
        gsub(/`/, "", text)
        gsub(/\*/, "[a-z0-9_]*", text)
        pattern[n_rules] = "^" text "$"
    } else {
        kind[n_rules] = text ~ / / ? "phrase" : "word"
        gsub(/ /, "[ \n]+", text)
        pattern[n_rules] = "(^|[^a-z0-9])" text "($|[^a-z0-9])"
    }
}

# Sets code and comment, in lower case and without strings and characters.
function split_line(line,    at)
{
    code = comment = ""
    line = tolower(line)
    while (line != "") {
        if (in_comment) {
            at = index(line, "*/")
            comment = comment " " (at ? substr(line, 1, at - 1) : line)
            line = at ? substr(line, at + 2) : ""
            in_comment = !at
        } else if (match(line, /\/\*|\/\/|"([^"\\]|\\.)*"|'([^'\\]|\\.)*'/)) {
            code = code substr(line, 1, RSTART - 1) " "
            if (substr(line, RSTART, 2) == "//") {
                comment = comment " " substr(line, RSTART + 2)
                line = ""
            } else {
                in_comment = substr(line, RSTART, 2) == "/*"
                line = substr(line, RSTART + RLENGTH)
            }
        } else {
            code = code line
            line = ""
        }
    }
}

function has_identifier(text, of,    part, n, k)
{
    n = split(text, part, /[^a-z0-9_]+/)
    for (k = 1; k <= n; k++) if (part[k] ~ of) return 1
    return 0
}

function begins(text, start) { return substr(text, 1, length(start)) == start }

function is_within(file, folders,    folder, n, k)
{
    n = split(folders, folder)
    for (k = 1; k <= n; k++) if (begins(file, folder[k])) return 1
    return n == 0
}

function fail(sentence) { print sentence; bad = 1 }

END { exit bad }
