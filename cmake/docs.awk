# find ... | awk -f cmake/docs.awk - DOCUMENT...: does each file exist that a document names?
# The files of the tree come first, one path a line. Names of files stand in links and in backquotes, there whole or from
# any folder on ("score/dot.c"), with "*" and with NAME or SUBJECT for a name of the reader's choice. What may be anything else, as
# "config.json", is not looked at: only paths that begin with a folder of the tree, and endings that source files have.

BEGIN {
    n_endings = split("c h cpp sh py awk cmake txt md", ending)
    for (i = 1; i <= n_endings; i++) is_source["." ending[i]] = 1
}

FILENAME == "-" {
    sub(/^\.\//, "")
    files = files "\n/" $0
    top = $0
    if (sub(/\/.*/, "/", top)) is_top[top] = 1
    for (path = $0; sub(/\/[^\/]*$/, "", path) && !(path in is_folder);) {
        is_folder[path] = 1
        files = files "\n/" path
    }
    next
}

FNR == 1 {
    document_end()
    document = FILENAME
    n_documents++
}
/^```/ {
    fenced = !fenced
    next
}
!fenced { text = text $0 "\n" }

function document_end(    n, i, piece, word, n_words, w)
{
    n = split(text, piece, "`")
    if (n % 2 == 0 && n) fail("has a backquote that is not closed")
    for (i = 2; i <= n; i += 2) {
        n_words = split(piece[i], word, /[ \n]+/)
        for (w = 1; w <= n_words; w++)
            if (names_file(word[w]) && !exists(word[w])) fail("names " word[w] ", which does not exist")
    }
    while (match(text, /\]\([^)]+\)/)) {
        link(substr(text, RSTART + 2, RLENGTH - 3))
        text = substr(text, RSTART + RLENGTH)
    }
    text = ""
    fenced = 0
}

function names_file(word,    folder, suffix)
{
    if (word !~ /^[A-Za-z0-9_.*\/-]+$/) return 0
    sub(/^\.\//, "", word)
    folder = word
    suffix = word
    if (sub(/\/.*/, "/", folder) && (folder in is_top)) return 1
    return match(suffix, /\.[a-z]+$/) && RSTART > 1 && (substr(suffix, RSTART) in is_source)
}

# Links are relative to the folder of the document.
function link(target,    path)
{
    sub(/#.*/, "", target)
    if (target == "" || target ~ /^[a-z]+:/) return
    path = document
    sub(/[^\/]*$/, "", path)
    path = path target
    while (sub(/[^\/]+\/\.\.\//, "", path));
    if (!index(files "\n", "\n/" path "\n")) fail("links to " target ", which does not exist")
}

# Is there a path that ends so? The list has "/" before each path, so that a name begins where a folder's or file's does.
function exists(name)
{
    sub(/^\.\//, "", name)
    sub(/\/$/, "", name)
    gsub(/\./, "\\.", name)
    gsub(/\*|NAME|SUBJECT/, "[^/\n]+", name)
    return (files "\n") ~ ("/" name "\n")
}

function fail(sentence)
{
    print document " " sentence
    bad = 1
}

END {
    document_end()
    if (!n_documents || files == "") fail("nothing to check")
    exit bad
}
