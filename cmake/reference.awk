# awk -v folder=FOLDER -f cmake/reference.awk LAYERS include/*.h: the manual pages of the libraries, section 3, made from
# the headers: a page for each chapter ("---- 1 Context ----"), attend_context(3), one for each header, attend(3), which has
# what stands before its first chapter, and for each function, stage and type a page that refers to its chapter's.
# LAYERS tells which headers are those of libattend. Comments keep their order; blocks.awk reads what they are made of.
# Code is narrowed to a terminal of 80 columns: narrow_code.awk.

BEGIN { width = 71 }

FILENAME ~ /LAYERS$/ {
    if ($1 == "[libattend]")
        for (i = 2; i <= NF; i++) of_core[$i] = 1
    next
}
FNR == 1 {
    header = FILENAME
    sub(/.*\//, "", header)
    headers[++n_headers] = header
    skips = skips_all = 0
}
/^#define ATT_VERSION "/ { version = substr($3, 2, length($3) - 2) }
/^    X\([A-Z_]+, [0-9]+, "/ { # a row of ATT_STATUS_LIST
    match($0, /\([A-Z_]+/)
    status[++n_statuses] = "ATT_" substr($0, RSTART + 1, RLENGTH - 1)
    match($0, /"[^"]*"/)
    status_text[n_statuses] = substr($0, RSTART + 1, RLENGTH - 2)
}

# What is for the preprocessor and C++ alone is left out.
/^#include "/ { includes[header] = includes[header] " " substr($2, 2, length($2) - 2) }
/^#ifdef __cplusplus/ { skips = 1; next }
/^#if / { skips = skips_all = 1; next }
/^#else/ { skips = skips_all; next }
/^#endif/ { skips = skips_all = 0; next }
skips || /^#(include|ifndef|undef)/ || /^#define (ATTEND_|ATT_STATUS_CODE)/ { next }
{ lines[header, ++n_lines[header]] = $0 }

END {
    if (!n_headers || version == "" || !n_statuses) fail("no headers, or none with a version and statuses")
    for (h = 1; h <= n_headers; h++) read_header(headers[h])
    for (p = 1; p <= n_pages && !bad; p++) write_page(p)
    for (name in alias_of)
        if (!bad && name != page_name[alias_of[name]]) {
            file = folder "/" name ".3"
            print ".so man3/" page_name[alias_of[name]] ".3" > file
            close(file)
        }
    exit bad
}

function fail(sentence)
{
    print "cmake/reference.awk: " sentence | "cat 1>&2"
    bad = 1
}

# ---- reading: pages with items, each of a comment and the declarations after it ----

function page_new(name, title, header)
{
    if (name in page_of) fail("two pages are called " name ": " page_header[page_of[name]] ", " header)
    if (length(name) > 35) fail(name " is too long for the head of a page: its chapter needs a shorter title")
    page_of[name] = ++n_pages
    page_name[n_pages] = name
    page_title[n_pages] = title
    page_header[n_pages] = header
    page_first[n_pages] = n_items + 1
}

function read_header(header,    stem, i, n, line, title)
{
    stem = header
    sub(/\.h$/, "", stem)
    title = lines[header, 1]
    sub(/^\/\* [a-z_.]+ - /, "", title)
    sub(/\.$/, "", title)
    page_new(stem, title, header)
    lines[header, 1] = "/*"
    n = n_lines[header]
    for (i = 1; i <= n; i++) {
        line = lines[header, i]
        if (line == "") item_end()
        else if (line ~ /^\/\* ---- /) chapter(line, stem, header)
        else if (line ~ /^\/\*/) {
            item_end()
            for (comment = line; line !~ /\*\/$/ && i < n; comment = comment "\n" line) line = lines[header, ++i]
        } else {
            for (; !is_whole(line) && i < n;) line = line "\n" lines[header, ++i]
            declaration(line)
        }
    }
    item_end()
}

function chapter(line, stem, header,    slug)
{
    item_end()
    sub(/^\/\* ---- ([0-9]+ )?/, "", line)
    sub(/ *-* *\*\/$/, "", line)
    slug = tolower(line)
    sub(/(:| (and|of|on|with) ).*/, "", slug)
    sub(/^the /, "", slug)
    gsub(/[^a-z0-9]+/, "_", slug)
    sub("^" substr(stem, 8) "_", "", slug) # not attend_text_text_files
    page_new(stem "_" slug, line, header)
}

# Does a declaration, with the comment after it, end with these lines?
function is_whole(text,    c, depth, opened)
{
    if (text ~ /^#/) return text !~ /\\$/
    opened = text
    gsub(/\/\*([^*]|\*+[^*\/])*\*+\//, "", opened)
    if (opened ~ /\/\*/) return 0
    c = opened
    depth = gsub(/[{(]/, "", c) - gsub(/[})]/, "", c)
    return !depth && opened ~ /; *$/
}

# One with a comment of its own, after others that share the one above them, stands by itself, and a type after functions.
function declaration(text,    name)
{
    if (comment != "" && code != "" && text ~ /^ATT_API .*\/\*/) item_end()
    if (names ~ /\(\)/ && text ~ /^(typedef )?(struct|enum) [^;]*\{/) item_end()
    code = code (code == "" ? "" : "\n") text
    name = declared_name(text)
    if (name != "") names = names (names == "" ? "" : ", ") name
}

# "att_open()", "att_mask_causal", "att_config", "ATT_OPTIONS"; of constants without a type the first one. It becomes a page
# unless it is a macro or a constant, of a type the one where it is defined.
function declared_name(text,    name, plain)
{
    if (match(text, /^#define [A-Z_]+/)) return substr(text, 9, RLENGTH - 8)
    if (match(text, /^enum \{[ \n]*[A-Z_0-9]+/)) {
        name = substr(text, 1, RLENGTH)
        sub(/.*[^A-Z_0-9]/, "", name)
        return name
    }
    plain = text
    gsub(/\/\*([^*]|\*+[^*\/])*\*+\//, "", plain)
    if (plain ~ /^ATT_API / && plain !~ / extern / && match(plain, /att_[a-z_0-9]+\(/)) {
        name = substr(plain, RSTART, RLENGTH - 1)
        alias_of[name] = n_pages
        return name "()"
    }
    if (match(plain, /^typedef [^{;]*\(\*att_[a-z_0-9]+\)/)) {
        name = substr(plain, 1, RLENGTH - 1)
        sub(/.*\*/, "", name)
    } else if (plain ~ /^(typedef )?(struct|enum|union) [a-z_0-9]+ \{/) {
        sub(/^typedef /, "", plain)
        split(plain, word, " ")
        name = word[2]
        alias_of[name] = 0
    } else if (match(plain, /att_[a-z_0-9]+ *;[ \n]*$/)) {
        name = substr(plain, RSTART)
        sub(/ *;.*/, "", name)
    } else fail(page_header[n_pages] ": what is declared here? " text)
    if (!alias_of[name]) alias_of[name] = n_pages
    return name
}

function item_end()
{
    if (comment != "" || code != "") {
        page_last[n_pages] = ++n_items
        item_comment[n_items] = comment
        item_code[n_items] = code
        item_names[n_items] = names
    }
    comment = code = names = ""
}

# ---- writing ----

function put(line) { print line > file }

function write_page(p,    k, name)
{
    name = page_name[p]
    file = folder "/" name ".3"
    split("", mentioned)
    n_mentioned = 0
    put(".TH " name " 3 \"\" \"attend " version "\" \"\"\n.nh\n.ad l\n.SH NAME")
    put(escape(name) " \\- " escape(page_title[p]) "\n.SH SYNOPSIS\n.nf")
    put("\\fB#include <" page_header[p] ">\\fR\n")
    put("cc program.c $(pkg\\-config \\-\\-cflags \\-\\-libs " (page_header[p] in of_core ? "attend" : "attend_model") ")")
    write_prototypes(p)
    put(".fi\n.SH DESCRIPTION")
    fresh = 1 # nothing under this heading yet
    for (k = page_first[p]; k <= page_last[p]; k++) write_item(k)
    if (fresh) put("See its chapters.")
    write_return_values(p)
    write_references(p)
    close(file)
}

function write_prototypes(p,    k, n, i, part, text, line)
{
    for (k = page_first[p]; k <= page_last[p]; k++) {
        n = split(item_code[k], part, "\n")
        for (i = 1; i <= n; i++) {
            if (part[i] !~ /^ATT_API /) continue
            for (line = part[i]; line !~ /;/ && i < n;) line = line " " part[++i]
            gsub(/  +/, " ", line)
            sub(/;.*/, ";", line)
            text = text "\n" narrow_code(line)
        }
    }
    n = split(text, part, "\n")
    for (i = 1; i <= n; i++) put(part[i] == "" ? "" : "\\fB" escape_code(part[i]) "\\fR")
}

function write_item(k,    n, i, part)
{
    if (item_names[k] != "") {
        put(".SS " item_names[k])
        fresh = 1
    }
    if (item_code[k] != "") {
        put(".nf")
        mention(item_code[k])
        n = split(narrow_code(item_code[k]), part, "\n")
        for (i = 1; i <= n; i++) put(escape_code(part[i]))
        put(".fi")
        fresh = 0
    }
    if (item_comment[k] != "") write_comment(item_comment[k])
}

function write_comment(text,    i, n, b, part)
{
    mention(text)
    n = blocks(text)
    for (b = 1; b <= n; b++) {
        if (block_kind[b] == "paragraph") put((fresh ? "" : ".PP\n") inline(block_text[b]))
        else if (block_kind[b] == "item") put(".IP \\(bu 2\n" inline(block_text[b]))
        else if (block_kind[b] == "rest of an item") put(".IP \"\" 2\n" inline(block_text[b]))
        else if (block_kind[b] == "term") put(".TP\n" inline(block_term[b]) "\n" inline(block_text[b]))
        else {
            put((fresh || block_kind[b - 1] ~ /item/ ? ".nf" : ".PP\n.nf") (block_kind[b - 1] ~ /item/ ? "\n" : ""))
            split_code = narrow_example(block_text[b])
            n_parts = split(split_code, part, "\n")
            for (i = 1; i <= n_parts; i++) put(part[i] == "" ? "" : "    " escape_code(part[i]))
            put(".fi")
        }
        fresh = 0
    }
}

function write_return_values(p,    k, i, text)
{
    for (k = page_first[p]; k <= page_last[p]; k++) text = text "\n" item_code[k]
    if (text !~ /\nATT_API /) return
    put(".SH RETURN VALUE")
    if (text ~ /\nATT_API att_status /) {
        put("Functions of type \\fBatt_status\\fR return \\fBATT_OK\\fR, or why they failed; \\fBatt_error\\fR() then\n" \
            "returns one sentence that names the argument and both values:")
        for (i = 2; i <= n_statuses; i++) put(".TP\n\\fB" status[i] "\\fR\n" escape(status_text[i]))
        put(".PP")
        mention("att_error")
    }
    put("Where a pointer is NULL that may not be, a function that returns a pointer returns NULL, one that returns\n" \
        "a count 0, one that returns an index \\-1, and one that returns nothing does nothing.")
}

function mention(text,    name)
{
    while (match(text, /(att|attend)_[a-z_0-9]*[a-z0-9](\.h)?|attend\.h/)) {
        name = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        sub(/\.h$/, "", name)
        name = name in alias_of ? page_name[alias_of[name]] : name in page_of ? name : ""
        if (name != "" && !(name in mentioned)) {
            mentioned[name] = 1
            mention_list[++n_mentioned] = name
        }
    }
}

# The header's other pages, then the pages of other headers that have what this one names.
function write_references(p,    q, i, n, list)
{
    for (q = 1; q <= n_pages; q++)
        if (page_header[q] == page_header[p] && q != p) list = list " " page_name[q]
    for (i = 1; i <= n_mentioned; i++)
        if (page_header[page_of[mention_list[i]]] != page_header[p]) list = list " " mention_list[i]
    n = split(list, reference, " ")
    if (n) put(".SH SEE ALSO")
    for (i = 1; i <= n; i++) put(".BR " escape(reference[i]) " (3)" (i < n ? "," : ""))
}

# ---- roff ----

function escape(s)
{
    gsub(/\\/, "\\e", s)
    gsub(/-/, "\\-", s)
    gsub(/\^/, "\\(ha", s)
    gsub(/~/, "\\(ti", s)
    gsub(/`/, "\\(ga", s)
    return s ~ /^[.']/ ? "\\&" s : s
}

function escape_code(s)
{
    s = escape(s)
    gsub(/'/, "\\(aq", s)
    return s ~ /^\\&/ ? substr(s, 3) : s
}

# A text with what is in backquotes, and names of the library, in bold
function inline(s,    out, token, before)
{
    while (match(s, /`[^`]+`|attend[a-z_]*\.h|(att|ATT|attend)_[A-Za-z0-9_]*[A-Za-z0-9](\(\))?/)) {
        before = substr(s, 1, RSTART - 1)
        token = substr(s, RSTART, RLENGTH)
        s = substr(s, RSTART + RLENGTH)
        out = out escape(before)
        if (before ~ /[A-Za-z0-9_\/]$/) out = out escape(token) # a part of another name
        else {
            gsub(/`/, "", token)
            out = out "\\fB" escape(token) "\\fR"
        }
    }
    out = out escape(s)
    return out ~ /^[.']/ ? "\\&" out : out
}
