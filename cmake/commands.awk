# awk -f cmake/commands.awk TABLE DOCUMENT...: do the commands and options exist that a document names? Prints
# "document:line: what". TABLE has lines "command train caption", "option train translate --arch =transformer|rnn" (with
# what its value may be, or "="), "dev check", "cmake ATT_MODEL" and "other --quick", an option of a script.
# Searched are what is in backquotes and the commands of blocks: what stands after attend, ./dev and -D; in backquotes
# also what begins with an option, which may be that of any command, or with a command that has one ("embed --json").

FILENAME == ARGV[1] {
    name = $2
    if ($1 == "command" || $1 == "option") {
        for (i = 3; i <= NF - 2 * ($1 == "option"); i++) {
            has_parts[name] = 1
            name = name " " $i
        }
        if ($1 == "command") is_command[name] = 1
        else {
            is_option[name, $(NF - 1)] = 1
            for (; name != ""; sub(/ ?[^ ]*$/, "", name)) add_option(name, $(NF - 1), substr($NF, 2))
            add_option("", $(NF - 1), substr($NF, 2))
        }
    } else is_known[$1, name] = 1
    if ($1 == "other") add_option("", name, "")
    next
}

FNR == 1 {
    document_end()
    document = FILENAME
    n_documents++
}

/^```/ {
    kind = kind == "" ? $0 : ""
    text = text "\n"
    next
}
kind != "" && kind !~ /^```sh/ && joined == "" && !/^[$>] / && (kind != "```" || !/^(attend|\.\/dev) /) { # no command
    text = text "\n"
    next
}
kind != "" || joined != "" || /^    (\$ )?(attend|\.\/dev) / {
    text = text "\n"
    joined = joined $0
    if (!sub(/\\$/, " ", joined)) {
        check(joined, FNR, 0)
        joined = ""
    }
    next
}
{ text = text $0 "\n" }

# An option of a command, or of one whose name begins so, with its values or, "", any.
function add_option(name, option, values,    n, i, value)
{
    is_below[name, option] = 1
    if (values == "") takes_any[name, option] = 1
    n = split(values, value, "|")
    for (i = 1; i <= n; i++) is_value[name, option, value[i]] = 1
}

function document_end(    n, i, piece, line)
{
    n = split(text, piece, "`")
    line = 1
    for (i = 1; i <= n; i++) {
        if (i % 2 == 0) check(piece[i], line, 1)
        line += gsub(/\n/, "", piece[i])
    }
    text = ""
    kind = joined = ""
}

function check(command, line, is_span,    n, i, word, path, begins)
{
    gsub(/"[^"]*"|'[^']*'/, "\"\"", command)
    sub(/(^| )# .*/, "", command)
    sub(/^[ \n]+/, "", command)
    gsub(/[;()]|[ \n][|&]+[ \n]/, " ; ", command)
    n = split(command, word, /[ \n]+/)
    path = "-" # no command of attend
    begins = 1 # the next word is a program
    if (is_span && word[1] ~ /^--?[A-Za-z]/) path = ""
    else if (is_span && (word[1] in is_command) && command ~ / -/) path = " "
    for (i = 1; i <= n; i++) {
        sub(/,$/, "", word[i])
        if (word[i] == ";") path = "-"
        else if (begins && word[i] ~ /^(build\/)?attend$/) path = " "
        else if (word[i] == "./dev" && word[i + 1] ~ /^[a-z-]+$/) known("dev", word[i + 1], line)
        else if (word[i] ~ /^-DATT_/) known("cmake", substr(word[i], 3), line)
        else if (path != "-" && word[i] ~ /^(--[a-z]|-[A-Za-z]$)/) {
            check_option(path, word[i], word[i + 1], line)
            if (("", word[i], word[i + 1]) in is_value) i++ # a value, not a command: explain --lang ja
        } else if (path == " " || (path in has_parts)) path = longer(path, word[i], line)
        begins = word[i] ~ /^([;$>]|sudo|[A-Z_]+=.*)$/
    }
}

# The command that a path and a word are, or the path if the word is in the place of one.
function longer(path, word, line,    name)
{
    if (word !~ /^[a-z][a-z-]*$/) return path == " " ? "" : path
    name = path == " " ? word : path " " word
    if (name in is_command) return name
    fail(line, "attend " name " does not exist")
    return "-"
}

# An option of the command, of one that begins so ("train --resume"), or of the one before ("explain softmax --svg")?
function check_option(path, option, value, line,    before, n, i, one)
{
    sub(/=.*/, "", option)
    sub(/^ $/, "", path)
    before = path
    if (option == "--help" || option == "-h") return
    if (!((path, option) in is_below) && sub(/ [^ ]*$/, "", before) && ((before, option) in is_option)) path = before
    if (!((path, option) in is_below)) {
        fail(line, (path == "" ? "" : "attend " path " ") option " does not exist")
        return
    }
    n = (path, option) in takes_any ? 0 : split(value, one, "|")
    for (i = 1; i <= n; i++)
        if (one[i] ~ /^[a-z0-9.-]+$/ && !((path, option, one[i]) in is_value))
            fail(line, (path == "" ? "" : "attend " path " ") option " " one[i] " does not exist")
}

function known(what, name, line)
{
    sub(/=.*/, "", name)
    if (!((what, name) in is_known)) fail(line, (what == "dev" ? "./dev " : "-D") name " does not exist")
}

function fail(line, sentence)
{
    print document ":" line ": " sentence
    bad = 1
}

END {
    document_end()
    if (!n_documents || !(("", "--json") in is_below)) fail(0, "nothing to check")
    exit bad
}
