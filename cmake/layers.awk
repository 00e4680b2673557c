# awk -f cmake/layers.awk LAYERS FILE...: does each file include only what LAYERS allows its room?
# A file's room is the folder below src/ or app/; headers of rooms are included as "room/name.h".

FILENAME == ARGV[1] {
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
    split(FILENAME, path, "/")
    top = path[1]
    room = path[2]
    folder = FILENAME
    sub(/[^\/]*$/, "", folder)
    if (!(room in above)) fail(FILENAME ": LAYERS has no room " room)
}

/^[ \t]*#[ \t]*include[ \t]*["<]/ {
    split($0, part, /["<>]/)
    name = part[2]
    split(name, path, "/")
    if (name in limited) ok = (room, name) in header
    else if (!/</ && exists(folder name)) ok = index(resolved(folder name), top "/" room "/") == 1 # its own
    else if (path[1] in above) ok = (room, path[1]) in allowed
    else ok = name !~ /\// || /</ # generated, or libc's
    if (!ok) fail(FILENAME ":" FNR ": " room " may not include " name)
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
