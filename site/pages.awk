# awk -v folder=FOLDER -f site/pages.awk man1/*.1 man3/*.3: manual pages, as attend and cmake/reference.awk write them, to
# Markdown for Sphinx: FOLDER/tool and FOLDER/reference, which has an index of the headers. Names of the library and of pages
# become links.

FNR == 1 {
    page = FILENAME
    sub(/.*\//, "", page)
    section = substr(page, length(page))
    sub(/\.[0-9]$/, "", page)
}
/^\.so / { # a function, stage or type, and the page that has it
    name = $2
    sub(/.*\//, "", name)
    sub(/\.3$/, "", name)
    page_with[page] = name
    next
}
FNR == 1 {
    key = section " " page
    keys[++n_keys] = key
}
{ lines[key, ++n_lines[key]] = $0 }
section == 3 && /^\.SS / { # where what has no page of its own is, as macros
    n = split(substr($0, 5), part, ", ")
    for (i = 1; i <= n; i++)
        if (part[i] ~ /^ATT_/) page_with[part[i]] = page
}
section == 3 && match($0, /#include <[a-z_]+/) { header_of[page] = substr($0, RSTART + 10, RLENGTH - 10) }

END {
    for (k = 1; k <= n_keys; k++) convert(keys[k])
    if (n_keys && !bad) write_index()
    exit bad || !n_keys
}

function put(line) { print line > file }

function convert(key,    i, n, line, title)
{
    section = substr(key, 1, 1)
    page = substr(key, 3)
    file = folder "/" (section == 3 ? "reference" : "tool") "/" page ".md"
    heading = under = term = tree = ""
    in_code = in_item = 0
    n = n_lines[key]
    title = plain(lines[key, 5])
    sub(/^[^ ]+ - /, "", title)
    summary[page] = title
    if (section == 1) {
        title = page
        gsub(/-/, " ", title)
    } else if (is_header(page)) title = page ".h"
    put("(man-" section "-" page ")=\n\n# " text(title) "\n")
    for (i = 4; i <= n; i++) convert_line(lines[key, i])
    paragraph_end()
    if (tree != "") put("\n```{toctree}\n:hidden:\n:titlesonly:\n" tree "\n```")
    close(file)
}

function is_header(page) { return header_of[page] == page }

function convert_line(line)
{
    if (in_code && line != ".fi") code_line(plain(line))
    else if (line == ".SH NAME") return # the page's title stands there
    else if (line ~ /^\.SH /) heading_new(2, sentence_case(substr(line, 5)))
    else if (line ~ /^\.SS /) heading_new(3, substr(line, 5))
    else if (line == ".PP") {
        paragraph_end()
        in_item = 0
    } else if (line == ".IP \\(bu 2" || line == ".IP \"\" 2") {
        paragraph_end()
        in_item = 1
        under = line ~ /bu/ ? "- " : "  "
    } else if (line == ".TP") {
        paragraph_end()
        in_item = 0
        term = "next"
    } else if (line == ".nf") {
        paragraph_end()
        in_code = 1
        indent = -1
        block = ""
    } else if (line == ".fi") {
        in_code = 0
        fence = in_item ? "  ```" : "```"
        put(fence (section == 3 && (block "\n") ~ /[;{\\]( \/[\/*][^\n]*)?\n|#/ ? "c" : "text") block "\n" fence "\n")
    } else if (line ~ /^\.BR /) reference(line)
    else if (line ~ /^\.(TH|nh|ad)/) return
    else if (line ~ /^\.[A-Z]/) fail("unknown: " line)
    else add(inline(line))
}

# Without the indentation of the first line
function code_line(line)
{
    if (indent < 0) {
        if (line == "") return
        match(line, /^ */)
        indent = RLENGTH
    }
    line = substr(line, 1, indent) ~ /^ *$/ ? substr(line, indent + 1) : line
    block = block "\n" (in_item && line != "" ? "  " : "") line
}

function fail(sentence)
{
    print "site/pages.awk: " page ": " sentence | "cat 1>&2"
    bad = 1
}

function add(line)
{
    if (term == "next") {
        put(line)
        term = ""
        under = ": "
    } else paragraph = paragraph (paragraph == "" ? "" : "\n" (under == "" ? "" : "  ")) line
}

function paragraph_end()
{
    if (paragraph != "") put((under == "" ? line_start(paragraph) : under paragraph) "\n")
    else if (under == ": ") put(": \n")
    paragraph = under = ""
}

# Where a paragraph would begin a list, a heading or a definition
function line_start(s) { return s ~ /^([-+:=]|[0-9]+[.)])/ ? "\\" s : s }

function heading_new(level, names,    n, i, part, label)
{
    paragraph_end()
    in_item = 0
    heading = names
    n = split(names, part, ", ")
    for (i = 1; i <= n && level == 3; i++) {
        label = part[i]
        sub(/\(\)$/, "", label)
        if (page_with[label] == page && !(label in labels)) {
            labels[label] = 1
            put("(" target(label) ")=\n")
        }
    }
    put(substr("###", 1, level) " " text(plain(names)) "\n")
}

# What a name is called in a link; letters of both cases are the same there.
function target(name) { return (name ~ /^ATT_/ ? "macro-" : "") name }

function sentence_case(s) { return substr(s, 1, 1) tolower(substr(s, 2)) }

# ".BR attend_plan (3),": a link to a page, which is one of the commands or chapters below this page, or another one
function reference(line,    part, name, of, comma)
{
    split(line, part, " ")
    name = plain(part[2])
    of = substr(part[3], 2, 1)
    comma = part[3] ~ /,$/ ? "," : ""
    if (of == 3 ? is_header(page) && header_of[name] == page : heading == "Commands") tree = tree "\n" name
    gsub(/^\n/, "", tree)
    add("[" text(name) "(" of ")](man-" of "-" name ")" comma)
}

# ---- roff to plain text and to Markdown ----

function plain(s)
{
    gsub(/\\f[BIR]/, "", s)
    gsub(/\\-/, "-", s)
    gsub(/\\&/, "", s)
    gsub(/\\\(ha/, "^", s)
    gsub(/\\\(ti/, "~", s)
    gsub(/\\\(ga/, "`", s)
    gsub(/\\\(aq/, "'", s)
    gsub(/\\e/, "\\", s)
    return s
}

function text(s)
{
    gsub(/[][\\`*_{}<>#|~$]/, "\\\\&", s)
    return s
}

function inline(s,    out, token, kind)
{
    while (match(s, /\\f[BI]([^\\]|\\[^f])*\\fR/)) {
        kind = substr(s, RSTART + 2, 1)
        token = plain(substr(s, RSTART + 3, RLENGTH - 6))
        out = out text(plain(substr(s, 1, RSTART - 1))) (kind == "I" ? "*" text(token) "*" : code(token))
        s = substr(s, RSTART + RLENGTH)
    }
    return out text(plain(s))
}

function code(token,    stem)
{
    stem = token
    sub(/\.h$|\(\)$/, "", stem)
    if (stem in page_with) return "[`" token "`](" target(stem) ")"
    if (stem in header_of) return "[`" token "`](man-3-" stem ")"
    return token ~ /`/ ? "`` " token " ``" : "`" token "`"
}

function write_index(    k, name, tree)
{
    file = folder "/reference/index.md"
    put("# Functions, by header\n\nA page for each chapter of the public headers, made from these. Where attend is\n" \
        "installed, `man 3 att_attention` shows the same.\n")
    for (k = 1; k <= n_keys; k++) {
        name = substr(keys[k], 3)
        if (keys[k] !~ /^3/ || !is_header(name)) continue
        put("[`" name ".h`](man-3-" name ")\n: " text(summary[name]) "\n")
        tree = tree "\n" name
    }
    put("```{toctree}\n:hidden:\n:titlesonly:\n" tree "\n```")
    close(file)
}
