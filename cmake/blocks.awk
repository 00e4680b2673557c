# blocks(COMMENT): what a comment of C is made of, for cmake/reference.awk. Returns how many blocks: block_kind is
# "paragraph", "item" (a line that begins with "- " or is indented by two), "rest of an item", "term" (two columns) or "code"
# (indented by four); block_text is on one line, but of code; block_term is the first column.

function blocks(text,    n, i, line, indent, kind)
{
    n = split(comment_text(text), line_of, "\n")
    n_blocks = in_list = gap = 0
    kind = ""
    for (i = 1; i <= n; i++) {
        line = line_of[i]
        if (line ~ /^ *$/) {
            gap = 1
            continue
        }
        match(line, /^ */)
        indent = RLENGTH
        line = substr(line, indent + 1)
        kind = line_kind(line, indent, kind)
        if (kind ~ /^more/) block_add(line)
        else block_new(kind, line, indent)
        sub(/^more /, "", kind)
        gap = 0
    }
    return n_blocks
}

# What a line begins, or "more ..." of the block before
function line_kind(line, indent, before)
{
    if (line ~ /^- / && indent < 2) {
        in_list = hanging = 2
        return "item"
    }
    if (in_list && indent >= hanging && indent < hanging + 2 && before ~ /item/ && !gap) return "more " before
    if (in_list && indent >= hanging && indent < hanging + 2 && before == "code") return "rest of an item"
    if (before == "term" && indent >= 8 && !gap) return "more term"
    if (indent >= 4) return before == "code" ? "more code" : "code"
    if (indent >= 2) {
        in_list = 1
        hanging = 4
        return line ~ /[^ ]  +[^ ]/ ? "term" : "item"
    }
    in_list = 0
    return before == "paragraph" && !gap ? "more paragraph" : "paragraph"
}

function block_new(kind, line, indent)
{
    block_kind[++n_blocks] = kind
    if (kind == "item") sub(/^- /, "", line)
    if (kind == "term") {
        match(line, /  +/)
        block_term[n_blocks] = substr(line, 1, RSTART - 1)
        line = substr(line, RSTART + RLENGTH)
    }
    if (kind != "code") gsub(/  +/, " ", line)
    block_text[n_blocks] = line
    code_indent = indent
}

function block_add(line)
{
    if (block_kind[n_blocks] != "code") block_text[n_blocks] = block_text[n_blocks] " " line
    else {
        for (; RLENGTH-- > code_indent;) line = " " line # of the match in blocks()
        block_text[n_blocks] = block_text[n_blocks] (gap ? "\n\n" : "\n") line
    }
}

# A comment without its marks; lines keep how far they are indented beyond its text
function comment_text(text,    n, i, part, out)
{
    sub(/^ *\/\* ?/, "", text)
    sub(/ *\*\/ *$/, "", text)
    n = split(text, part, "\n")
    for (i = 1; i <= n; i++) {
        if (i > 1 && !sub(/^ *\* ?/, "", part[i])) sub(/^ */, "", part[i])
        out = out (i > 1 ? "\n" : "") part[i]
    }
    return out
}
