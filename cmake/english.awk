# awk -f cmake/english.awk FILE...: do comments, strings and documents keep those of the rules of English in CONTRIBUTING.md
# that need no reader? Prints "file:line: what". "is no X" is written "is not a X"; "there is no X" and comparisons, as
# "is no longer", stay. "likewise" and "the same of" name what is meant. With -v openings=FOLDERS no
# comment on a line of its own in C files below these folders begins with "Of", "That of", "Those of" or "The same". Not
# searched: `code` and fenced blocks of documents, and lines that begin with "- bad:".

FNR == 1 {
    in_comment = in_block = 0
    before = ""
    is_page = FILENAME ~ /[.]md$/
    opens = is_below(FILENAME)
}

is_page && /^ *```/ { in_block = !in_block }

{
    text = is_page ? (in_block ? "" : prose($0)) : spoken($0)
    if (text == "") {
        before = ""
        next
    }
    check(before " " text)
    before = last_words(text)
}

# A line, after the last words of the one before: a phrase may go on in the next line, and is reported once.
function check(line,    found)
{
    found = tolower(line)
    gsub(/there[^a-z]+(is|are|was|were|be)[^a-z]+no/, "", found)
    gsub(/no[^a-z]+(longer|more|less|better|worse|other|further|[a-z]+er)[^a-z]/, "", found)
    if (ends_in_line(found, "(is|are|was|were|be) no [a-z\"%\\\\]")) fail("\"is no ...\": \"is not a ...\"")
    if (ends_in_line(found, "(which|that) (is|are) none")) fail("\"which is none\": \"which is not one of ...\"")
    if (ends_in_line(found, "likewise")) fail("\"likewise\": a verb of its own")
    if (ends_in_line(found, "the same of")) fail("\"the same of\": name what is meant")
}

# Does the phrase occur, and not only in the words of the line before?
function ends_in_line(line, phrase)
{
    gsub(/ /, "[ *]+", phrase)
    phrase = "(^|[^a-z])" phrase
    return line ~ phrase && tolower(before) !~ phrase
}

# The text of comments and strings of a line of C.
function spoken(line,    found, at, kept)
{
    for (found = ""; line != "";) {
        if (in_comment) {
            at = index(line, "*/")
            found = found " " (at ? substr(line, 1, at - 1) "." : line)
            line = at ? substr(line, at + 2) : ""
            in_comment = !at
        } else if (match(line, /\/\*|\/\/|"([^"\\]|\\.)*"|'([^'\\]|\\.)*'/)) {
            kept = substr(line, RSTART, 2)
            if (kept == "//") return found " " substr(line, RSTART + 2)
            in_comment = kept == "/*"
            if (in_comment && opens && line ~ /^ *\/\* (Of|That of|Those of|The same)[ ,]/)
                fail("a comment that begins with \"" first_words(line) "\": begin with a verb, or name it")
            if (substr(kept, 1, 1) == "\"") found = found " " substr(line, RSTART + 1, RLENGTH - 2)
            line = substr(line, RSTART + RLENGTH)
        } else line = ""
    }
    return found
}

function prose(line)
{
    if (line ~ /^ *- bad: /) return ""
    gsub(/`[^`]*`/, "x", line)
    gsub(/\]\([^)]*\)/, "", line)
    return line
}

function first_words(line,    word)
{
    split(line, word, / +/)
    return word[1] == "" ? word[3] " " word[4] : word[2] " " word[3]
}

function last_words(line,    n, part)
{
    n = split(line, part, /[ *]+/)
    return (n > 2 ? part[n - 2] " " : "") (n > 1 ? part[n - 1] " " : "") part[n]
}

function is_below(file,    folder, n, i)
{
    n = split(openings, folder, " ")
    for (i = 1; i <= n; i++) if (index(file, folder[i] "/") == 1) return 1
    return 0
}

function fail(what)
{
    print FILENAME ":" FNR ": " what
    bad = 1
}

END { exit bad }
