#!/bin/sh
# Do the commands and options exist that the documents name (cmake/commands.awk)?
# usage: tests/commands.sh ATTEND
set -eu
attend=$(realpath "$1")
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{
    "$attend" help --completion fish | awk '
        !/^complete / { next }
        /use_subcommand/ && match($0, / -a [a-z]+/) { print "command", substr($0, RSTART + 4, RLENGTH - 4) }
        {
            for (path = ""; match($0, /subcommand_from [a-z]+/); $0 = substr($0, RSTART + RLENGTH))
                path = path " " substr($0, RSTART + 16, RLENGTH - 16)
            sub(/ -d .*/, "")
            if (path == "") next
            values = "="
            if (match($0, / -x -a \047[^\047]*/)) values = "=" substr($0, RSTART + 8, RLENGTH - 8)
            gsub(/ /, "|", values)
            if (match($0, / -l [a-z0-9-]+/)) print "option" path, "--" substr($0, RSTART + 4, RLENGTH - 4), values
            if (match($0, / -s [A-Za-z]/)) print "option" path, "-" substr($0, RSTART + 4, 1), values
            if ($0 !~ / -[lsxrF] / && match($0, / -a [a-z]+/)) print "command" path, substr($0, RSTART + 4, RLENGTH - 4)
        }'
    "$attend" explain | sed -nE 's/^  ([a-z-]+) .*/command explain \1/p'
    "$attend" --version >/dev/null && echo "other --version"
    sed -nE 's/^#: ([a-z-]+) .*/dev \1/p' dev scripts/*.sh
    sed -nE 's/^ *(option|set)\((ATT_[A-Z_]+) .*/cmake \2/p' CMakeLists.txt cmake/*.cmake
    grep -rhoE 'add_argument\("--[a-z-]+"' bench | sed 's/.*"\(.*\)"/other \1/'
} >"$work/table"
awk -f cmake/commands.awk "$work/table" README.md README.ja.md CONTRIBUTING.md SECURITY.md docs/*.md \
    models/README.md models/*/README.md

cat >"$work/bad.md" <<'PAGE'
`attend embed --model` and `attend embedd`, `attend train caption --src`, `train --src`, `attend train
language`, `--no-such` and `--beam 5`, `embed --dtype f33`, `--arch rnn|cnn`, `embed --beam`, `attend explain softmax --svg FILE`, `attend explain soft`
`attend explain --lang ja softmax`, `attend explain --lang ja soft`, `./dev check` and `./dev chek`, `-DATT_MODEL=OFF -DATT_MODELS=ON`, `pkg-config --static`, `cc -static | attend embed -q`
    attend embed --jason \
        --npy
```sh not-run
echo --none | FOLDER=x attend tokenize --none >file && ls --none; build/attend tokenize --id # attend none
cc program.c $(pkg-config --libs attend) --none
```
```console
$ attend --none
attend no command --none
```
PAGE
cat >"$work/expected" <<'LIST'
bad.md:5: attend embed --jason does not exist
bad.md:5: attend embed --npy does not exist
bad.md:7: attend tokenize --none does not exist
bad.md:7: attend tokenize --id does not exist
bad.md:11: --none does not exist
bad.md:1: attend embedd does not exist
bad.md:1: attend train caption --src does not exist
bad.md:1: attend train language does not exist
bad.md:2: --no-such does not exist
bad.md:2: attend embed --dtype f33 does not exist
bad.md:2: --arch cnn does not exist
bad.md:2: attend embed --beam does not exist
bad.md:2: attend explain soft does not exist
bad.md:3: attend explain soft does not exist
bad.md:3: ./dev chek does not exist
bad.md:3: -DATT_MODELS does not exist
bad.md:3: attend embed -q does not exist
LIST
cd "$work"
if awk -f "$OLDPWD/cmake/commands.awk" table bad.md >found; then
    echo "commands.awk found nothing in a bad page"
    exit 1
fi
diff expected found
