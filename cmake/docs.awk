# awk -f cmake/docs.awk FILES NAMES DOCUMENT...: does all exist that a document names? Prints "document:line: what".
# FILES has the paths of the tree, one a line; NAMES is what cmake/names.awk prints.
# Names of files stand in links and in backquotes, there whole or from any folder on ("score/dot.c"), with "*" and with
# NAME or SUBJECT for a name of the reader's choice. What may be anything else, as "config.json", is not searched: only
# paths that begin with a folder of the tree, and endings that source files have. In fenced blocks only the former are.
# Identifiers of three letters or more in backquotes are in some code or string of the tree; names that begin with att_ or
# ATT_, with or without backquotes, in that of the libraries, the tool or the build; "att_tensor.dim" is a field of that
# struct.
# <!-- names: src/attn include --> says that from here on identifiers in backquotes are of these folders, and
# <!-- names: elsewhere --> that they are of other projects, or of none.

BEGIN {
    n_endings = split("c h cpp sh py awk cmake txt md", ending)
    for (i = 1; i <= n_endings; i++) is_source["." ending[i]] = 1
}

FILENAME == ARGV[1] {
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

FILENAME == ARGV[2] {
    if ($1 == "-") is_field[$2] = is_struct[substr($2, 1, index($2, ".") - 1)] = 1
    else if ($2 !~ /^(att|ATT)_/) is_name["", $2] = is_name[$1, $2] = 1
    else if ($1 ~ /^(include|src|app|cmake|CMakeLists)/) {
        is_name["", $2] = is_name[$1, $2] = 1
        public = public "\n" $2 "\n"
    }
    next
}

FNR == 1 {
    document_end()
    document = FILENAME
    n_documents++
    scope = ""
}

{ check_names($0, "(^|[^A-Za-z0-9_])(att|ATT)_[A-Za-z0-9_*]+", FNR) }

/^```/ {
    fenced = !fenced
    text = text "\n"
    next
}
fenced {
    n_words = split($0, word, /[ "'=]+/)
    for (i = 1; i <= n_words; i++) {
        sub(/[.,:;]$/, "", word[i])
        if (names_file(word[i]) == 2 && !exists(word[i])) fail(FNR, word[i] " does not exist")
    }
    text = text "\n"
    next
}
/^#+ / { is_anchor[document "#" anchor_of($0)] = 1 }
{ text = text $0 "\n" }

# The name by which links find a heading
function anchor_of(heading)
{
    heading = tolower(heading)
    sub(/^#+ +/, "", heading)
    gsub(/[][!"#$%&'()*+,.\/:;<=>?@\\^`{|}~]/, "", heading)
    gsub(/ /, "-", heading)
    return heading
}

function document_end(    n, i, piece, line)
{
    n = split(text, piece, "`")
    line = 1
    for (i = 1; i <= n; i++) {
        if (i % 2 == 0) check_span(piece[i], line)
        else check_prose(piece[i], line)
        line += gsub(/\n/, "", piece[i])
    }
    if (n % 2 == 0 && n) fail(line, "a backquote is not closed")
    check_links()
    text = ""
    fenced = 0
}

# Prose is searched for scopes alone.
function check_prose(piece, line)
{
    while (match(piece, /<!-- names: [^>]* -->/)) {
        scope = substr(piece, RSTART + 12, RLENGTH - 16)
        piece = substr(piece, RSTART + RLENGTH)
    }
}

function check_span(span, line,    n, w, n_words, word, n_lines, one)
{
    n_lines = split(span, one, "\n")
    for (n = 1; n <= n_lines; n++) {
        n_words = split(one[n], word, / +/)
        for (w = 1; w <= n_words; w++)
            if (names_file(word[w])) {
                if (!exists(word[w])) fail(line + n - 1, word[w] " does not exist")
            } else if (scope != "elsewhere") check_word(word[w], line + n - 1)
    }
}

# The identifiers of a word; not what is a part of a path, of a file's name, or of an option.
function check_word(word, line,    struct)
{
    if (word ~ /^-/) return
    if (word ~ /^[A-Za-z0-9_-]+\.[a-z]+$/) {
        struct = substr(word, 1, index(word, ".") - 1)
        if (struct !~ /^att_/) return
        if ((struct in is_struct) && !(word in is_field)) fail(line, word " is not a field of this struct")
    }
    check_names(word, "(^|[^A-Za-z0-9_./-])[A-Za-z_][A-Za-z0-9_*]*", line)
}

function check_names(piece, pattern, line,    name)
{
    while (match(piece, pattern)) {
        name = substr(piece, RSTART, RLENGTH)
        piece = substr(piece, RSTART + RLENGTH)
        sub(/^[^A-Za-z_]/, "", name)
        if (length(name) > 2 && !is_known(name) && !((document, line, name) in blamed)) {
            fail(line, name " does not exist" (scope == "" || name ~ /^(att|ATT)_/ ? "" : " in " scope))
            blamed[document, line, name] = 1
        }
    }
}

function is_known(name,    folder, n, i)
{
    if (name ~ /^(att|ATT)_/) {
        if (("", name) in is_name) return 1
        if (name !~ /NAME|SUBJECT|[*]/) return 0
        gsub(/NAME|SUBJECT|[*]/, "[A-Za-z0-9_]+", name)
        return public ~ ("\n" name "\n")
    }
    if (name ~ /NAME|SUBJECT|[*]/) return 1
    n = split(scope, folder, " ")
    for (i = 1; i <= n; i++) if ((folder[i], name) in is_name) return 1
    return n == 0 && (("", name) in is_name)
}

# 2: a path from the top of the tree on; 1: another name of a source file.
function names_file(word,    folder, suffix)
{
    if (word !~ /^[A-Za-z0-9_.*\/-]+$/) return 0
    sub(/^\.\//, "", word)
    folder = word
    suffix = word
    if (sub(/\/.*/, "/", folder) && (folder in is_top)) return 2
    return match(suffix, /\.[a-z]+$/) && RSTART > 1 && (substr(suffix, RSTART) in is_source)
}

# Links are relative to the folder of the document.
function check_links(    n, i, line, target, path, anchor)
{
    n = split(text, line, "\n")
    for (i = 1; i <= n; i++)
        while (match(line[i], /\]\([^)]+\)/)) {
            target = substr(line[i], RSTART + 2, RLENGTH - 3)
            line[i] = substr(line[i], RSTART + RLENGTH)
            if (target ~ /^[a-z]+:/) continue
            anchor = target
            if (!sub(/^[^#]*#/, "", anchor)) anchor = ""
            sub(/#.*/, "", target)
            path = document
            if (target != "") sub(/[^\/]*$/, "", path)
            path = path target
            while (sub(/[^\/]+\/\.\.\//, "", path));
            if (target != "" && !index(files "\n", "\n/" path "\n")) fail(i, "a link to " target ", which does not exist")
            else if (anchor != "" && path ~ /\.md$/) {
                linked[++n_linked] = path "#" anchor
                linked_by[n_linked] = document
                linked_at[n_linked] = i
            }
        }
}

# When all documents have been read, their headings are known.
function check_anchors(    i)
{
    for (i = 1; i <= n_linked; i++) {
        if (linked[i] in is_anchor) continue
        document = linked_by[i]
        fail(linked_at[i], "a link to " linked[i] ", which is not a heading")
    }
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

function fail(line, sentence)
{
    print document ":" line ": " sentence
    bad = 1
}

END {
    document_end()
    check_anchors()
    if (!n_documents || files == "" || public == "") fail(0, "nothing to check")
    exit bad
}
