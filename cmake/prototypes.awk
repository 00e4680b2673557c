# awk -f cmake/prototypes.awk include/*.h: public functions and structs, as tables in C for tests/model/null.c.
# Of a function: a call of it with pointers to void, what it returns, its parameters. Of a struct: its size, and where
# it has pointers. Comments say what may be NULL: "NAME or NULL" or "NAME [shape] or NULL" before or behind a prototype,
# "or NULL" behind a member.

/^#ifdef __cplusplus/ { skips = 1 }
/^[ \t]*#/ || in_macro { in_macro = /\\$/; if (/^#endif/) skips = 0; next }
/^ATT_API/ && !/ extern / { declared++ }
!skips { text = text $0 "\n" }

END {
    while (next_piece()) {
        if (is_comment) comment = piece
        else if (piece ~ /^ATT_API/ && piece !~ / extern /) prototype(piece, comment " " comment_behind())
        else if (piece ~ /^(typedef )?struct [a-z_0-9]+ \{/) structure(piece)
    }
    if (n_functions != declared) {
        print "cmake/prototypes.awk: found " n_functions " functions of " declared | "cat 1>&2"
        exit 1
    }
    print "static const struct function functions[] = {" functions "};\n"
    print "static const struct member members[] = {" members "};"
}

# Takes the next declaration, or the comment before one, off the text.
function next_piece(    length_)
{
    sub(/^[ \n]+/, "", text)
    is_comment = text ~ /^\/\*/
    length_ = is_comment ? index(text, "*/") + 1 : length_of_declaration(text)
    piece = substr(text, 1, length_)
    text = substr(text, length_ + 1)
    return piece != ""
}

# Takes the comment that begins on the line of what was taken last, if there is one.
function comment_behind(    found)
{
    if (text !~ /^ *\/\*/) return ""
    found = substr(text, 1, index(text, "*/") + 1)
    text = substr(text, length(found) + 1)
    return found
}

# Up to the semicolon outside of braces and comments
function length_of_declaration(s,    at, depth, c)
{
    for (at = 0; match(substr(s, at + 1), /[{};]|\/\*/);) {
        at += RSTART
        c = substr(s, at, 1)
        if (c == "/") at += index(substr(s, at), "*/")
        depth += (c == "{") - (c == "}")
        if (c == ";" && !depth) return at
    }
    return length(s)
}

# On one line
function plain(s)
{
    gsub(/\n \* ?/, " ", s)
    gsub(/[ \n]+/, " ", s)
    sub(/^ /, "", s)
    sub(/ $/, "", s)
    return s
}

function without_comments(s,    at)
{
    while ((at = index(s, "/*"))) s = substr(s, 1, at - 1) substr(s, at + index(substr(s, at), "*/") + 1)
    return s
}

# The type and name of "const int64_t *dim", "const uint32_t counter[4]" or "void (*body)(void *arg, int i)"
function declarator(s)
{
    s = plain(s)
    is_array = sub(/\[[^]]*\]$/, "", s)
    is_callback = match(s, /\(\*[a-z_0-9]+\)/)
    if (is_callback) {
        name = substr(s, RSTART + 2, RLENGTH - 3)
        type = substr(s, 1, RSTART + 1) substr(s, RSTART + RLENGTH - 1)
    } else {
        match(s, /[a-z_0-9]+$/)
        name = substr(s, RSTART)
        type = plain(substr(s, 1, RSTART - 1))
        is_callback = type ~ /_fn$/
    }
}

# To part[1], part[2], ...: what is between commas outside of brackets
function at_commas(s,    n, i, c, depth)
{
    part[n = 1] = ""
    for (i = 1; i <= length(s); i++) {
        c = substr(s, i, 1)
        depth += (c == "(") - (c == ")")
        if (c == "," && !depth) part[++n] = ""
        else part[n] = part[n] c
    }
    return n
}

function kind_of(type)
{
    if (type == "att_status") return "STATUS"
    if (type == "att_var *") return "VARIABLE"
    if (type ~ /\*$/) return "POINTER"
    return type == "void" || (type in is_struct) ? "NOTHING" : "NUMBER"
}

# A value of that type where p points to
function value_at(type, p,    pointer)
{
    pointer = type " *"
    if (type ~ /\(\*\)/) {
        pointer = type
        sub(/\(\*\)/, "(**)", pointer)
    }
    return "*(" pointer ")" p
}

function prototype(s, comment,    call, kind, n, i, arguments, parameters, or_null)
{
    s = plain(without_comments(s))
    sub(/^ATT_API /, "", s)
    sub(/( ATT_PRINTF.*)?;$/, "", s)
    match(s, /att_[a-z_0-9]+\(/)
    call = substr(s, RSTART, RLENGTH - 1)
    kind = kind_of(plain(substr(s, 1, RSTART - 1)))
    n = at_commas(substr(s, RSTART + RLENGTH, length(s) - RSTART - RLENGTH))
    for (i = 1; i <= n && part[i] !~ /^ *(void|\.\.\.)$/; i++) {
        declarator(part[i])
        if (is_array) type = type " *"
        or_null = plain(comment) ~ ("(^|[^a-z_0-9])" name "( \\[[^]]*\\])? or NULL")
        arguments = arguments (i > 1 ? ", " : "") (type ~ /\*$/ ? "a[" i - 1 "]" : value_at(type, "a[" i - 1 "]"))
        parameters = parameters "{\"" type "\", \"" name "\", " \
                     (type ~ /\*$/ ? "GIVEN" : is_callback ? "CALLBACK" : "VALUE") ", " or_null "}, "
    }
    if (kind == "STATUS") arguments = "r->status = " call "(" arguments ")"
    else if (kind == "NUMBER") arguments = "r->number = (long long)" call "(" arguments ")"
    else if (kind == "NOTHING") arguments = call "(" arguments ")"
    else arguments = "r->pointer = " call "(" arguments ")"
    print "static void call_" call "(void **a, struct result *r)\n{\n    (void)a, (void)r;\n    " arguments ";\n}\n"
    n_functions++
    functions = functions "\n    {\"" call "\", " kind ", call_" call ", " i - 1 ", {" (parameters ? parameters : "{0}") "}},"
}

# Of a struct's members, those that are a pointer
function structure(s,    of, body, rest, n, i, behind)
{
    match(s, /struct [a-z_0-9]+/)
    of = substr(s, RSTART + 7, RLENGTH - 7)
    is_struct[of] = 1
    if (of ~ /^att_nn_/ && s !~ /\{[^;]*size_t size;/) return # a layer, which the library makes
    members = members "\n    {\"" of "\", NULL, sizeof(" of "), 0},"
    rest = text
    text = substr(s, index(s, "{") + 1)
    while (next_piece() && piece !~ /^}/) {
        if (is_comment) continue
        n = at_commas(without_comments(substr(piece, 1, length(piece) - 1)))
        behind = comment_behind() ~ /or[ \n*]+NULL/
        for (i = 1; i <= n; i++) {
            declarator(part[i])
            if ((type ~ /\*$/ || (i > 1 && part[i] ~ /^ *\*/) || is_callback) && !is_array)
                members = members "\n    {\"" of "\", \"" name "\", offsetof(" of ", " name "), " behind "},"
        }
    }
    text = rest
}
