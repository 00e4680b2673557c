# awk -f cmake/words.awk docs/GLOSSARY.md FILE...: does no file use a word of the table "Words not used here"?
# A row is | words | use instead | folders |, the words with commas between them. A word is searched in comments, in
# strings and as a part of identifiers (between underscores); one that ends in * stands for all that begin so; a phrase is
# searched in comments and strings, where it may go on in the next line; one in `backquotes` only as a part of
# identifiers, or, with (), as the whole name of a function. Folders, if any, are the only ones where a word is banned.
# A row with "allowed" instead of a word allows it in identifiers: in_place.
# Not searched: a string of one word, "\"a_key\"", --options, names with . or / in strings, as these may be on disk; and
# for words in backquotes the names of tests, which are sentences: identifiers of four words or more below tests/.

FILENAME == ARGV[1] {
    if (/^## /) in_table = /^## Words not used here/
    if (in_table && /^\| / && !/^\| words? /) {
        n = split($0, cell, / *\| */)
        if (n < 4) fail(FILENAME ":" FNR ": not a row of three cells")
        n = split(cell[2], one, /, /)
        for (i = 1; i <= n; i++) add(one[i], cell[3], cell[4])
    }
    next
}

FNR == 1 {
    in_comment = 0
    before = ""
    in_tests = FILENAME ~ /^tests\//
    for (i = 1; i <= n_rules; i++) applies[i] = is_within(FILENAME, where[i])
}

{
    if (FILENAME ~ /\.md$/) split_prose($0)
    else split_line($0)
    n = split(code, token, /[^a-z0-9_@]+/)
    for (k = 1; k <= n; k++) if (token[k] != "") report(rules_of_identifier(token[k]), token[k])
    n = split(text, token, /[^a-z0-9]+/)
    for (k = 1; k <= n; k++) if (token[k] != "") report(rules_of_word(token[k]), "")
    if (text != "") {
        if (phrases != "" && (before " " text) ~ phrases) report_phrases(before " " text)
        before = last_words(text)
    } else if (code ~ /[a-z0-9]/) before = ""
}

# ---- the table

function add(words, use, folders)
{
    if (use == "allowed") {
        gsub(/`/, "", words)
        allowed[words] = 1
        return
    }
    word[++n_rules] = words
    instead[n_rules] = use
    where[n_rules] = folders
    if (words ~ /^`/) {
        gsub(/`/, "", words)
        sub(/\(\)$/, "@", words)
        kind[n_rules] = "identifier"
    } else if (words ~ / /) {
        kind[n_rules] = "phrase"
        phrases = (phrases == "" ? "" : phrases "|") bounded(words)
    } else kind[n_rules] = "word"
    pattern[n_rules] = words
}

function bounded(phrase)
{
    gsub(/ /, "[^a-z0-9]+", phrase)
    return "(^|[^a-z0-9])" phrase "($|[^a-z0-9])"
}

# ---- which rules a token breaks: numbers with a space after each; each token is looked up once

function rules_of_word(one,    i, found)
{
    if (one in of_word) return of_word[one]
    for (i = 1; i <= n_rules; i++) if (kind[i] == "word" && is_like(one, pattern[i])) found = found i " "
    return of_word[one] = found
}

function rules_of_identifier(token,    name, i, n, part, found)
{
    if (token in of_identifier) return of_identifier[token]
    name = without_allowed(token)
    for (i = 1; i <= n_rules; i++)
        if (kind[i] == "identifier" && (pattern[i] ~ /@$/ ? name == pattern[i] : has_part(name, pattern[i])))
            found = found i " "
    n = split(name, part, /[_@]+/)
    for (i = 1; i <= n; i++) found = found rules_of_word(part[i])
    return of_identifier[token] = found
}

function without_allowed(name,    i, at)
{
    for (i in allowed)
        if (at = index("_" name, "_" i)) name = substr(name, 1, at - 1) substr(name, at + length(i))
    return name
}

function is_like(one, of) { return of ~ /\*$/ ? begins(one, substr(of, 1, length(of) - 1)) : one == of }

function has_part(name, of)
{
    sub(/@$/, "", name)
    return index("_" name "_", "_" of "_") > 0
}

function report(rules, name,    number, n, j)
{
    if (rules == "") return
    n = split(rules, number, " ")
    for (j = 1; j <= n; j++)
        if (applies[number[j]] && !(kind[number[j]] == "identifier" && in_tests && is_sentence(name)))
            blame(number[j], name)
}

function report_phrases(within,    i)
{
    for (i = 1; i <= n_rules; i++)
        if (kind[i] == "phrase" && applies[i] && within ~ bounded(pattern[i]) && before !~ bounded(pattern[i]))
            blame(i, "")
}

function blame(i, name)
{
    sub(/@$/, "", name)
    fail(FILENAME ":" FNR ": \"" word[i] "\"" (name == "" || name == word[i] ? "" : " in " name) ", use instead: " instead[i])
}

function is_sentence(name) { return split(name, sentence, "_") >= 4 }

# ---- a line: its code, and its text, that of comments and strings, both in lower case; a "(" of the code becomes "@ "

function split_line(line,    at)
{
    code = text = ""
    line = tolower(line)
    while (line != "") {
        if (in_comment) {
            at = index(line, "*/")
            text = text " " (at ? substr(line, 1, at - 1) : line)
            line = at ? substr(line, at + 2) : ""
            in_comment = !at
        } else if (match(line, /\/\*|\/\/|"([^"\\]|\\.)*"|'([^'\\]|\\.)*'/)) {
            code = code substr(line, 1, RSTART - 1) " "
            if (substr(line, RSTART, 2) == "//") {
                text = text " " substr(line, RSTART + 2)
                line = ""
            } else {
                in_comment = substr(line, RSTART, 2) == "/*"
                if (substr(line, RSTART, 1) == "\"") text = text sentence_of(substr(line, RSTART + 1, RLENGTH - 2))
                line = substr(line, RSTART + RLENGTH)
            }
        } else {
            code = code line
            line = ""
        }
    }
    gsub(/ *\(/, "@ ", code)
}

# A line of a document is text but for what is in `backquotes`.
function split_prose(line)
{
    gsub(/`[^`]*`/, " . ", line)
    gsub(/\]\([^)]*\)/, " ", line)
    code = ""
    text = tolower(line)
}

# The words of a string, without what may be a name on disk.
function sentence_of(string,    n, i, part, found)
{
    gsub(/\\"[a-z0-9_]+\\"/, " ", string)
    gsub(/\\[a-z"]/, " ", string)
    if (string !~ /[^ ] [^ ]/) return ""
    n = split(string, part, / +/)
    for (i = 1; i <= n; i++) {
        sub(/^[^a-z0-9-]+/, "", part[i])
        sub(/[^a-z0-9]+$/, "", part[i])
        if (part[i] ~ /^[a-z]+(-[a-z]+)*$/) found = found " " part[i]
        else found = found " ."
    }
    return found
}

function last_words(line,    n, part)
{
    n = split(line, part, /[ *]+/)
    return (n > 2 ? part[n - 2] " " : "") (n > 1 ? part[n - 1] " " : "") part[n]
}

# ---- small helpers

function begins(line, start) { return substr(line, 1, length(start)) == start }

function is_within(file, folders,    folder, n, k)
{
    n = split(folders, folder, " ")
    for (k = 1; k <= n; k++) if (begins(file, folder[k])) return 1
    return n == 0
}

function fail(sentence) { print sentence; bad = 1 }

END { exit bad }
