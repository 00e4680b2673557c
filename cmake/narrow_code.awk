# narrow_code(CODE): declarations in `width` columns, for cmake/reference.awk, without ATT_API and ATT_PRINTF; a comment that
# does not fit beside what it is of stands below it. narrow_example(CODE): the same for lines of an example.

function narrow_code(text,    n, i, line, out, in_macro)
{
    n = split(text, line_of_code, "\n")
    for (i = 1; i <= n; i++) {
        line = line_of_code[i]
        if (in_macro || line ~ /^#define .*\(/) {
            in_macro = sub(/ *\\$/, "", line)
            width -= 2 # of " \\"
            line = narrow_line(line)
            width += 2
            gsub(/\n/, " \\\n", line)
            out = out line (in_macro ? " \\\n" : "\n")
            continue
        }
        sub(/^ATT_API /, "", line)
        sub(/ ATT_PRINTF\([0-9, ]+\)/, "", line)
        for (; is_open(line) && i < n;) line = joined(line, line_of_code[++i])
        out = out narrow_statement(line) "\n"
    }
    sub(/\n$/, "", out)
    return out
}

# Is a comment or a parenthesis open at the end?
function is_open(line)
{
    gsub(/\/\*([^*]|\*+[^*\/])*\*+\//, "", line)
    if (line ~ /\/\*/) return 1
    return gsub(/\(/, "", line) > gsub(/\)/, "", line)
}

# The next line of a comment is one of its own, that of a prototype is not.
function joined(line, next_)
{
    if (line ~ /\/\*/) return line "\n" next_
    sub(/^ +/, "", next_)
    return line " " next_
}

function narrow_statement(text,    at, note, indent, one)
{
    match(text, /^ */)
    indent = substr(text, 1, RLENGTH)
    at = index(text, "/*")
    if (!at) return narrow_line(text)
    note = substr(text, at)
    text = substr(text, 1, at - 1)
    sub(/ +$/, "", text)
    if (text == "") return narrow_note(note, indent)
    one = text " " note
    if (one !~ /\n/ && length(one) <= width) return one
    return narrow_line(text) "\n" narrow_note(note, indent "    ")
}

# A line of code, broken where columns are, between arguments or between words
function narrow_line(text,    indent, at, out, line)
{
    match(text, /^ */)
    indent = substr(text, 1, RLENGTH) "    "
    while (length(text) > width) {
        for (at = width; at > width / 2 && substr(text, at, 2) != "  "; at--);
        if (at <= width / 2)
            for (at = width; at > length(indent) && !is_between_arguments(text, at, out); at--);
        if (at <= length(indent))
            for (at = width - 1; at > length(indent) && substr(text, at + 1, 1) != " "; at--);
        if (at <= length(indent)) break
        line = substr(text, 1, at)
        sub(/ +$/, "", line)
        out = out line "\n"
        text = substr(text, at + 1)
        sub(/^ +/, "", text)
        text = indent text
    }
    return out text
}

# Is there a comma at `at`, and no second parenthesis open, as of a callback? The first one may be in the lines before.
function is_between_arguments(text, at, before)
{
    if (substr(text, at, 2) != ", ") return 0
    text = substr(text, 1, at)
    return gsub(/[(]/, "", text) <= gsub(/[)]/, "", text) + (before == "")
}

# A comment in code
function narrow_note(note, indent,    n, b, out, i, part, m, room)
{
    room = width - length(indent) - 6
    n = blocks(note)
    for (b = 1; b <= n; b++) {
        if (b > 1 && block_kind[b] == "paragraph" && block_kind[b - 1] == "paragraph") out = out "\n"
        if (b > 1) out = out "\n"
        if (block_kind[b] == "code") {
            m = split(block_text[b], part, "\n")
            for (i = 1; i <= m; i++) out = out (i > 1 ? "\n" : "") filled("    " part[i], 8, room)
        } else if (block_kind[b] == "paragraph") out = out filled(block_text[b], 0, room)
        else if (block_kind[b] == "item") out = out filled("- " block_text[b], 2, room)
        else if (block_kind[b] == "term") out = out filled(block_term[b] "  " block_text[b], 2, room)
        else out = out filled("  " block_text[b], 2, room)
    }
    gsub(/\n/, "\n" indent " * ", out)
    gsub(/ +\n/, "\n", out)
    return indent "/* " out " */"
}

# A text in lines of `room` columns; after the first they are indented by `hang`.
function filled(text, hang, room,    at, out, blanks)
{
    blanks = sprintf("%" hang "s", "")
    while (length(text) > room) {
        for (at = room; at > hang + 1 && substr(text, at + 1, 1) != " "; at--);
        if (at <= hang + 1) break
        out = out substr(text, 1, at) "\n"
        text = substr(text, at + 1)
        sub(/^ +/, "", text)
        text = blanks text
    }
    return out text
}

# Examples: a "// comment" that does not fit stands above its line.
function narrow_example(text,    n, i, line, at, note, room, out)
{
    room = width
    width -= 4 # they are indented
    n = split(text, example, "\n")
    for (i = 1; i <= n; i++) {
        line = example[i]
        at = index(line, " // ")
        if (length(line) > width && at) {
            note = substr(line, at + 1)
            line = substr(line, 1, at - 1)
            sub(/ +$/, "", line)
            match(line, /^ */)
            if (length(line " " note) <= width) line = line " " note
            else out = out (out == "" ? "" : "\n") narrow_line(substr(line, 1, RLENGTH) note)
        }
        out = out (i == 1 && out == "" ? "" : "\n") narrow_line(line)
    }
    width = room
    return out
}
