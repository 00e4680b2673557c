#!/bin/sh
# Does the code use words that docs/GLOSSARY.md bans? And does cmake/words.awk find each kind of them?
set -eu
cd "$(dirname "$0")/.."
find src app include examples bench fuzz tests -name '*.[ch]' | xargs awk -f cmake/words.awk docs/GLOSSARY.md

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/src" "$folder/app"
cat >"$folder/table" <<'END'
## Words not used here
| word | use instead | folders |
|---|---|---|
| strand | thread | |
| so many | n | |
| `take_*` | read | src |
## Another table
| thread | not banned | |
END
cat >"$folder/src/bad.c" <<'END'
int host_strand; /* an identifier has the word */
int a; /* Strand: a comment
        * has so many of
        * these */
int take_it(void); // take_it in a comment is none
const char *text = "strand, so many", c = '"'; int strands, thread;
END
sed 's/host_strand//' "$folder/src/bad.c" >"$folder/app/bad.c"
cat >"$folder/expected" <<'END'
src/bad.c:1: "strand", use instead: thread
src/bad.c:2: "strand", use instead: thread
src/bad.c:3: "so many", use instead: n
src/bad.c:5: "`take_*`", use instead: read
app/bad.c:2: "strand", use instead: thread
app/bad.c:3: "so many", use instead: n
END
words=$PWD/cmake/words.awk
cd "$folder"
if awk -f "$words" table src/bad.c app/bad.c >found; then
    echo "words.awk found nothing in a bad file"
    exit 1
fi
diff expected found
