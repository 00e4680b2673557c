#!/bin/sh
# Has the table of docs/MODELS.md a row for each model that comes with attend (models/) or that `attend fetch` downloads, with
# its size, its terms (models/TERMS, known_models.c) and a command that exists?
# usage: tests/cli/models.sh ATTEND
set -eu
attend=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# NAME|MB of the weights or the download|LICENSE|restricted, or nothing
{
    for folder in models/*/; do
        name=$(basename "$folder")
        sed -n -E "s/^$name: (free|restricted): (.*)/\2|\1/p" models/TERMS |
            sed "s/|free$/|/; s/^/$name|$(wc -c <"$folder/model.safetensors" | awk '{ printf "%.1f", $1 / 1e6 }')|/"
    done
    ATTEND_MODELS=$work "$attend" fetch --json |
        sed -n -E 's/.*"name": "([^"]*)", "bytes": ([0-9]*), "license": "([^"]*)".*/\1|\2|\3|/p' |
        awk -F '|' -v OFS='|' '{ $2 = sprintf("%.1f", $2 / 1e6) } 1'
} >"$work/models"

# check DOCUMENT: prints what is wrong with its table
check() {
    awk -F ' *[|] *' '
        FILENAME == ARGV[1] {
            size[$1] = $2
            license[$1] = $3
            restricted[$1] = $4
            next
        }
        /^[|] model / { inside = 1; next } # the other tables are of kinds and types
        !/^[|]/ { inside = 0 }
        inside && /^[|] / {
            name = $2
            gsub(/^\[|\].*/, "", name)
            if (!(name in size)) { print name " is neither in models/ nor downloaded"; next }
            rows[name]++
            if (index($5, size[name] " MB") != 1) print name ": " $5 ", not " size[name] " MB"
            if (index($6, license[name]) != 1) print name ": " $6 ", not " license[name]
            if (($6 ~ /restricted/) != (restricted[name] != "")) print name ": restricted or not, as in models/TERMS?"
            if ($8 !~ /^`attend [a-z]+( [A-Za-z0-9.-]+)?`$/) print name ": " $8 " is not a command"
        }
        END { for (name in size) if (rows[name] != 1) print name " has " rows[name] + 0 " rows" }' "$work/models" "$1"
}

[ "$(wc -l <"$work/models")" -ge 5 ] || { echo "fewer models than there were:"; cat "$work/models"; exit 1; }
check docs/MODELS.md >"$work/wrong"
[ ! -s "$work/wrong" ] || { echo "docs/MODELS.md:"; cat "$work/wrong"; exit 1; }
sed -n 's/^| .* `attend \([a-z]*\)[^`]*` |$/\1/p' docs/MODELS.md | while read -r command; do
    "$attend" help "$command" >"$work/help" 2>&1 || { echo "docs/MODELS.md: attend $command is not a command"; exit 1; }
done
echo "docs/MODELS.md: a row for each of $(wc -l <"$work/models") models"

# spoiled SED EXPECTED: does a table that is changed so have this fault, and no other?
spoiled() {
    sed "$1" docs/MODELS.md >"$work/spoiled"
    check "$work/spoiled" >"$work/wrong"
    echo "$2" | diff - "$work/wrong" || { echo "after $1: <: what is wrong, >: what was found"; exit 1; }
}
spoiled '/^| \[fashion-mnist\]/d' "fashion-mnist has 0 rows"
spoiled '/^| all-MiniLM/p' "all-MiniLM-L6-v2 has 2 rows"
spoiled 's/92[.]9 MB/92.8 MB/' "SmolLM2-135M-Instruct: 92.8 MB to download, Q4_1, not 92.9 MB"
spoiled 's/[*]*restricted[*]*, //' "flickr8k-captions: restricted or not, as in models/TERMS?"
spoiled '/^| all/s/Apache 2.0/MIT/' "all-MiniLM-L6-v2: MIT, not Apache 2.0"
spoiled '/^| all/s/^| all-MiniLM-L6-v2/&x/' "all-MiniLM-L6-v2x is neither in models/ nor downloaded
all-MiniLM-L6-v2 has 0 rows"
