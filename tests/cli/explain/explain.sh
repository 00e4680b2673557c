#!/bin/sh
# Do the chapters of `attend explain` show the right figures, in both languages, and say what is wrong with a file?
# usage: tests/cli/explain/explain.sh ATTEND          (with UPDATE=1 writes the golden texts instead of comparing)
set -eu
attend=$1
golden=$(dirname "$0")/../../golden/explain
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset COLUMNS LC_ALL LC_MESSAGES LANG
failures=0
# Those on vectors, on a log, and vit and captioning where their models are; three-uses is in three_uses.c.
vectors=$("$attend" explain | sed -nE 's/^  ([a-z-]+) .*/\1/p' |
    grep -vx -e three-uses -e vit -e captioning -e recommendation -e sentence-bert)
chapters="$vectors recommendation sentence-bert" skipped=" "
for both in vit:fashion-mnist captioning:flickr8k-captions; do
    if "$attend" info | grep -q "${both#*:}"; then chapters="$chapters ${both%:*}"
    else
        skipped="$skipped${both%:*} "
        echo "${both%:*}: skipped, its model ${both#*:} is not here"
    fi
done
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

# 1. The texts are the golden ones, and every figure that PyTorch computed is a line of them.
for language in en ja; do
    "$attend" explain --lang $language >"$work/list.$language.txt"
    for chapter in $chapters; do
        text=$work/$chapter.$language.txt
        "$attend" explain "$chapter" --lang $language >"$text" || fail "$chapter in $language ends with $?"
        words= # in Japanese they are others: only numbers are compared
        [ $language = en ] || words='s/[^0-9.]/ /g;'
        flat="$words s/  */ /g; s/^ *//; s/ *\$//"
        sed "$flat" "$text" >"$work/flat"
        cat "$golden"/figures*.txt | sed -n "s/^$chapter|//p" | sed "$flat" >"$work/figures"
        while IFS= read -r line; do
            grep -qxF -- "$line" "$work/flat" || fail "$chapter in $language has no line: $line"
        done <"$work/figures"
    done
done
for text in "$work"/*.??.txt; do
    name=$(basename "$text")
    [ -z "${UPDATE:-}" ] || cp "$text" "$golden/$name"
    diff -u "$golden/$name" "$text" || fail "$name differs from its golden text"
    LC_ALL=C awk '{ gsub(/[\200-\277]/, "") } length > 80 { exit 1 }' "$text" || fail "$name has a line that is too long"
done
for text in "$golden"/*.??.txt; do
    name=$(basename "$text")
    [ -e "$work/$name" ] || [ "${skipped#* ${name%%.*} }" != "$skipped" ] || fail "the golden text $name is of no chapter"
done

# The chapter on the fixed context shows each row of the measured figures, rounded.
sed -nE 's/.*"seed": ([0-9]+), .*"from": ([0-9]+),.*"lines": ([0-9]+), .*"bleu": ([0-9.]+).*/\1 \2 \3 \4/p' \
    "$(dirname "$0")/../../../runs/compare.jsonl" >"$work/measured"
[ "$(wc -l <"$work/measured")" -ge 6 ] || fail "runs/compare.jsonl has hardly any rows"
while read -r seed from lines bleu; do
    grep -qE "^ +$seed +$from-[0-9]* +$lines .* $(printf %.1f "$bleu") " "$work/fixed-context.en.txt" ||
        fail "fixed-context does not show BLEU $bleu on $lines lines of $from words and more, seed $seed"
done <"$work/measured"

# 2. One's own vectors: every separator, labels or none, comments, a byte order mark, CRLF.
printf '\357\273\277# three\r\nsea 1 0\r\nlake,0.8,\t0.1 # wet\r\n\r\n日本 0;1e0\r\n' >"$work/good.txt"
"$attend" explain softmax --input "$work/good.txt" >"$work/own" || fail "own vectors end with $?"
grep -qE '^ +lake +0\.8000 +0\.1000$' "$work/own" || fail "own vectors are not shown"
grep -qE '^ +s +0\.8000 +0\.6500 +0\.1000$' "$work/own" || fail "the second vector is not the query"
"$attend" explain simplified --query 3 --input - <"$work/good.txt" >"$work/own" || fail "standard input ends with $?"
grep -qE '^ +日本 · lake = 0×0\.8 \+ 1×0\.1 = 0\.1000$' "$work/own" || fail "query 3 is not the third vector"
! grep -q 'The figures of the source' "$work/own" || fail "own vectors have no source"
printf '\357\273\277# people\n名前,身長,体重\na,170,60\nb,160,50\n' >"$work/people.csv"
"$attend" explain softmax --input "$work/people.csv" >"$work/own" || fail "a table with a heading ends with $?"
grep -qE '^ +b +160\.0000 +50\.0000$' "$work/own" || fail "the table with a heading is not shown"
LANG=ja_JP.UTF-8 "$attend" explain | cmp - "$golden/list.ja.txt" || fail "LANG=ja_JP.UTF-8 is not Japanese"
LANG=ja_JP.UTF-8 LC_ALL=C "$attend" explain | cmp - "$golden/list.en.txt" || fail "LC_ALL does not precede LANG"
LANG=ja_JP.UTF-8 "$attend" explain --lang en | cmp - "$golden/list.en.txt" || fail "--lang does not precede LANG"
for chapter in $vectors; do
    for own in '1 2 3' '1e15' '0 0\n0 0' '1\n2\n-3' '1 2 3 4 5 6\n6 5 4 3 2 1\n1e15 1 1 1 1 1'; do
        [ "${ATTEND_TEST_LESS:-0}" = 0 ] || [ "${own#1 2 3 4}" != "$own" ] || continue
        printf "$own\n" | "$attend" explain "$chapter" --input - >/dev/null || fail "$chapter on $own ends with $?"
    done
done
printf 'a -1 0\nb 1 1\n' | "$attend" explain softmax --input - | grep -q 'negative' || fail "a negative score is not remarked"

# A picture: the last one of the chapter.
"$attend" explain positions --svg "$work/waves.svg" >/dev/null || fail "positions with a picture ends with $?"
grep -q '<title>Positions, in waves</title>' "$work/waves.svg" || fail "the picture has another title"
grep -q 'sin 0 → 1: 0\.9207' "$work/waves.svg" || fail "the picture is not that of the waves"
"$attend" explain fixed-context --svg "$work/bleu.svg" >/dev/null || fail "fixed-context with a picture ends with $?"
grep -q '>BLEU, joined</text>' "$work/bleu.svg" || fail "the picture is not that of BLEU by length"
points=$(awk 'NR == 1 { seed = $1 } $1 == seed' "$work/measured" | wc -l) # seeds share them
[ "$(grep -c '<circle ' "$work/bleu.svg")" = "$points" ] || fail "the plot has other points"

# 3. Bad files and wrong usage: one sentence, and the code.
# says CODE SENTENCE ARGUMENTS... with the last `file` on standard input
file() { printf "$1" >"$work/in"; }
says() {
    code=$1 sentence=$2
    shift 2
    set +e
    "$attend" explain "$@" <"$work/in" >"$work/out" 2>"$work/error"
    got=$?
    set -e
    [ $got = "$code" ] || fail "attend explain $*: code $got, not $code"
    grep -qF -- "$sentence" "$work/error" || fail "attend explain $*: says \"$(cat "$work/error")\", not \"$sentence\""
    [ "$(wc -l <"$work/error")" -le 2 ] || fail "attend explain $*: more than one sentence"
}
own="softmax --input -"
file '1 2\n\n3 4 5\n'
says 1 'standard input:3: this vector has 3 numbers but the one in line 1 has 2' $own
file 'a 1 2\nb 1 x\n'
says 1 'standard input:2: "x" is not a number' $own
file 'a 1 2\nb\n'
says 1 'standard input:2: the label "b" has no numbers after it' $own
file 'a 1 nan\n'
says 1 'standard input:1: nan is not between -1e+15 and 1e+15' $own
file 'a 1 1e16\n'
says 1 'standard input:1: 1e16 is not between -1e+15 and 1e+15' $own
file '1 2\n3\0004\n'
says 1 'standard input:2: a zero byte: this is not text' $own
file '# nothing\n\n'
says 1 'standard input: no vectors in it' $own
seq 300 >"$work/in"
says 1 'standard input:257: more than 256 vectors' $own
seq 5000 | tr '\n' ' ' >"$work/in"
says 1 'standard input:1: more than 4096 numbers in a vector' $own
seq 1025 | tr '\n' ' ' >"$work/in"
says 1 'the vectors have 1025 numbers, but this chapter has weights for no more than 1024' block --input -
file '1 2\n3 4\n'
says 1 'query 3: there are 2 vectors' $own --query 3
says 1 "$work/absent: No such file or directory" softmax --input "$work/absent"
says 1 "$work: Is a directory" softmax --input "$work"
says 2 'there is no chapter "softmx"; did you mean "softmax"?' softmx
says 2 '--svg needs a chapter' --svg x.svg
for chapter in $chapters; do
    if "$attend" explain "$chapter" --svg "$work/any.svg" >"$work/out" 2>"$work/error"; then
        [ -s "$work/any.svg" ] || fail "$chapter --svg writes no picture"
    else
        [ ! -s "$work/out" ] || fail "$chapter --svg prints before it is refused"
        grep -q "the chapter $chapter has no picture; those that have one: softmax, " "$work/error" ||
            fail "$chapter --svg says \"$(cat "$work/error")\""
    fi
    rm -f "$work/any.svg"
done
says 2 'explain: --svg: the chapter dropout has no picture' dropout --svg x.svg
{
    until [ -e "$work/closed" ]; do :; done
    "$attend" explain positions --svg "$work/any.svg" || echo $? >"$work/code"
} | { exec <&-; : >"$work/closed"; }
[ "$(cat "$work/code")" = 141 ] || fail "a closed pipe ends it with $(cat "$work/code")"
cmp "$work/any.svg" "$work/waves.svg" || fail "the picture is not written where the reader of the text goes away"
for word in 波 位置t; do
    "$attend" explain positions --lang ja --svg "$work/ja.svg" >/dev/null
    grep -q ">$word</text>" "$work/ja.svg" || fail "the picture does not say $word in Japanese"
done
says 1 'none/x.svg: No such file or directory' positions --svg none/x.svg
says 2 'recommendation is on data of its own: it takes no --input' recommendation --query 2
says 2 '--input needs a chapter' --input "$work/good.txt"
[ $failures = 0 ] || { echo "$failures failures"; exit 1; }
echo "all figures and sentences are right"
