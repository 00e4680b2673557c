# awk -f cmake/layers.awk LAYERS FILE...: does each file include only what LAYERS allows its room? And does an indented
# comment follow each room there, what it is for?
# A room is a folder that LAYERS names by its path below src/ or app/; a folder that it does not name belongs to the one
# above. Headers of other rooms are included as "room/name.h".

FILENAME == ARGV[1] {
    if (room && !/^    # [A-Z]/) fail(FILENAME ":" FNR ": what is " room " for?")
    room = ""
    sub(/#.*/, "")
    if ($1 ~ /^\[/) {
        n_outside = split($0, outside)
        for (i = 2; i <= n_outside; i++) limited[outside[i]] = 1 # to those that name it
    } else if (NF) {
        room = substr($1, 1, length($1) - 1)
        above[room] = 1
        allowed[room, room] = 1
        for (i = 2; i <= NF; i++) {
            if (!(($i) in above) || $i == room) fail(FILENAME ": " room " includes " $i ", which is not above it")
            allowed[room, $i] = 1
        }
        for (i = 2; i <= n_outside; i++) header[room, outside[i]] = 1
    }
    next
}

FNR == 1 {
    top = FILENAME
    sub(/\/.*/, "", top)
    folder = FILENAME
    sub(/[^\/]*$/, "", folder)
    room = room_of(FILENAME)
    if (!room) fail(FILENAME ": LAYERS has no room for it")
}

/^[ \t]*#[ \t]*include[ \t]*["<]/ {
    split($0, part, /["<>]/)
    name = part[2]
    included = room_of(!/</ && exists(folder name) ? resolved(folder name) : top "/" name)
    if (name in limited) ok = (room, name) in header
    else if (included) ok = (room, included) in allowed
    else ok = name !~ /\// || /</ # generated, or libc's
    if (!ok) fail(FILENAME ":" FNR ": " room " may not include " name)
}

# The longest of the folders above a file that is a room, or "".
function room_of(file)
{
    sub(/^[^\/]*\//, "", file) # src/ or app/
    while (sub(/\/[^\/]*$/, "", file))
        if (file in above) return file
    return ""
}

function resolved(file)
{
    while (sub(/[^\/]+\/\.\.\//, "", file));
    return file
}

function exists(file,    line, found)
{
    found = (getline line < file) >= 0
    close(file)
    return found
}

function fail(sentence) { print sentence; bad = 1 }

END { exit bad }
