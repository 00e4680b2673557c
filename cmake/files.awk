# awk -f cmake/files.awk FILE...: what each file is for: the first sentence of the comment that it begins with, for a .c
# file that has a header of its own that of the header alone. Fails where there is none.

FNR == 1 {
    finish()
    file = FILENAME
    header = FILENAME
    is_done = sub(/\.c$/, ".h", header) && exists(header)
    text = ""
}
is_done || (text == "" && /^\/\/ /) { next } # what the build reads

{
    if (text == "" && !/^\/\*/) finish()
    line = $0
    is_last = sub(/ *\*\/.*/, "", line)
    sub(/^(\/\*| \*) */, "", line)
    text = text (text == "" ? "" : " ") line
    if (is_last || line == "") finish()
}

function finish()
{
    if (is_done || file == "") return
    is_done = 1
    if (match(text, /[.?] [A-Z`"(]/)) text = substr(text, 1, RSTART)
    sub(/ +$/, "", text)
    if (text ~ /[A-Za-z]/) print file ": " text
    else {
        print file " does not begin with a comment on what it is for"
        bad = 1
    }
}

function exists(file,    line, found)
{
    found = (getline line < file) >= 0
    close(file)
    return found
}

END {
    finish()
    exit bad
}
