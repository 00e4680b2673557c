# awk -f cmake/without_comments.awk -f cmake/circles.awk FILE...: is there a circle of .c files, each of which uses a
# function that the next one defines, and the last one a function of the first? LAYERS orders rooms, this also the files
# within a room. Definitions are known by the layout of clang-format. A function is used where its name is in the body of
# another one; a table outside of functions does not use those that it lists.

FNR == 1 {
    in_comment = in_body = 0
    head = ""
    files[++n_files] = FILENAME
}
/^[ \t]*#/ { next }
{
    line = without_comments($0)
    gsub(/"([^"\\]|\\.)*"|'([^'\\]|\\.)*'/, "", line)
}
line ~ /^[A-Za-z_].*\(/ { head = line }
line ~ /^\{/ || line ~ /^[A-Za-z_].*\) \{.*\}$/ {
    in_body = 1
    define(head)
    sub(/^[^{]*/, "", line)
}
in_body { add_uses(line) }
line ~ /^\}|^[^ \t].*\}[ \t]*$/ { in_body = 0 }

# A head is "type name(...": a function of this file, and for others unless it is static.
function define(head,    name)
{
    name = head
    sub(/\(.*/, "", name)
    sub(/.*[ *]/, "", name)
    if (head ~ /^(static|ATT_INLINE) /) own[FILENAME, name] = 1
    else definer[name] = FILENAME
}

function add_uses(line,    name)
{
    while (match(line, /[A-Za-z_][A-Za-z0-9_]*/)) {
        name = substr(line, RSTART, RLENGTH)
        if (substr(line, 1, RSTART - 1) !~ /(\.|->)$/ && !((FILENAME, name) in is_used)) {
            is_used[FILENAME, name] = 1
            used[FILENAME] = used[FILENAME] " " name
        }
        line = substr(line, RSTART + RLENGTH)
    }
}

# Names of functions become files: next_files[file], and via[file, other] the function that is used.
function connect(file,    name, n, i, other)
{
    n = split(used[file], name)
    for (i = 1; i <= n; i++) {
        other = definer[name[i]]
        if (!other || other == file || (file, name[i]) in own || (file, other) in via) continue
        via[file, other] = name[i]
        next_files[file] = next_files[file] " " other
    }
}

# The shortest circle from a file back to it, breadth first, as a sentence, or "". Marks the files in it as reported.
function circle(from,    queue, first, last, part, n, i, file, back, text)
{
    queue[first = last = 1] = from
    for (; first <= last; first++) {
        n = split(next_files[queue[first]], part)
        for (i = 1; i <= n; i++) {
            if (part[i] in back) continue
            back[part[i]] = queue[first]
            queue[++last] = part[i]
        }
    }
    if (!(from in back)) return ""
    text = ""
    for (file = from; file != from || text == ""; file = back[file]) {
        text = ", which uses " via[back[file], file] " of " file text
        reported[file] = 1
    }
    return from substr(text, 8)
}

END {
    for (i = 1; i <= n_files; i++) connect(files[i])
    for (i = 1; i <= n_files; i++) {
        if (files[i] in reported) continue
        if ((sentence = circle(files[i])) != "") {
            print sentence
            bad = 1
        }
    }
    exit bad
}
