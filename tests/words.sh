#!/bin/sh
# Does the project use words that docs/GLOSSARY.md bans? And does cmake/words.awk find each kind of them?
set -eu
cd "$(dirname "$0")/.."
{
    find src app include python examples bench fuzz tests -name '*.[ch]'
    echo README.md README.ja.md CONTRIBUTING.md SECURITY.md
    ls docs/*.md models/*/README.md | grep -v GLOSSARY
} | xargs awk -f cmake/words.awk docs/GLOSSARY.md

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/src" "$folder/app" "$folder/tests"
cat >"$folder/table" <<'END'
## Words not used here
| words | use instead | folders |
|---|---|---|
| strand, strands | thread | |
| hue* | color | |
| so many | n | |
| `take` | read | src tests |
| `take_note` | allowed | |
| `drop()` | free | tests |
## Another table
| thread | not banned | |
END
cat >"$folder/src/bad.c" <<'END'
int host_strand; /* a part of an identifier is the word, huegenot begins like it */
int a; /* Strand: a comment
        * has so many of these; so
        * many are in two lines */
int x_take_it(void), TAKE, take_note, intake; // take it in a comment is none
const char *text = "strand, so many", *two = "of so "
                                             "many, the strands' number", c = '"';
const char *names[] = {"strand", "--strand", "an --strand=3", "a strand.txt", "the \"strand\": none"};
int thread, drop(void), stranded;
END
cp "$folder/src/bad.c" "$folder/app/bad.c"
cat >"$folder/tests/bad.c" <<'END'
static void a_model_may_take_more(void) { drop(take_it, drop); }
static void a_strand_is_one_too_many(void) {}
END
printf '%s\n' 'A strand, `a strand` and [more](strand.md)' 'take' >"$folder/bad.md"
cat >"$folder/expected" <<'END'
src/bad.c:1: "strand" in host_strand, use instead: thread
src/bad.c:1: "hue*", use instead: color
src/bad.c:2: "strand", use instead: thread
src/bad.c:3: "so many", use instead: n
src/bad.c:4: "so many", use instead: n
src/bad.c:5: "`take`" in x_take_it, use instead: read
src/bad.c:5: "`take`" in take, use instead: read
src/bad.c:6: "strand", use instead: thread
src/bad.c:6: "so many", use instead: n
src/bad.c:7: "strands", use instead: thread
src/bad.c:7: "so many", use instead: n
END
sed -n '/take/!s/^src/app/p' "$folder/expected" >"$folder/more"
cat >>"$folder/more" <<'END'
tests/bad.c:1: "`drop()`" in drop, use instead: free
tests/bad.c:1: "`take`" in take_it, use instead: read
tests/bad.c:2: "strand" in a_strand_is_one_too_many, use instead: thread
bad.md:1: "strand", use instead: thread
END
cat "$folder/more" >>"$folder/expected"
words=$PWD/cmake/words.awk
cd "$folder"
if awk -f "$words" table src/bad.c app/bad.c tests/bad.c bad.md >found; then
    echo "words.awk found nothing in a bad file"
    exit 1
fi
diff expected found
