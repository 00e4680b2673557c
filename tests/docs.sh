#!/bin/sh
# Does each file and each name of the code exist that the docs name (cmake/docs.awk), and comments (cmake/comments.awk)?
# Does each source file say what it is for (cmake/files.awk), and does each room of LAYERS exist? Is each test of
# docs/PAINS.md run? Has docs/API.md the lists of the headers (cmake/api.awk)? UPDATE=1 writes them. Do these say how long
# pointers are needed (cmake/lifetimes.awk)? Are speeds measured ones, is README short, does it lead to all
# documents, and has README.ja.md the same facts (cmake/facts.awk)?
set -eu
cd "$(dirname "$0")/.."
bad=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
find . \( -path './build*' -o -path ./.git \) -prune -o -type f -print >"$work/files"
sed -nE 's,^\./((src|include|app|python|tests|bench|fuzz|examples|cmake|runs|scripts|\.ci)/.*|dev|CMakeLists.txt)$,\1,p' "$work/files" |
    grep -vE '/golden/.*[.][^p][^.]*$|/corpus/|_table[.]h$|[.](jsonl|tsv|csv)$|[^s][.]txt$|^tests/docs.sh$' >"$work/code"
xargs awk -f cmake/without_comments.awk -f cmake/names.awk <"$work/code" >"$work/names"
awk -f cmake/docs.awk "$work/files" "$work/names" README.md README.ja.md CONTRIBUTING.md SECURITY.md LAYERS docs/*.md \
    models/README.md models/*/README.md || bad=1

# Is what does not exist found?
cat >"$work/page.md" <<'END'
`att_open`, `att_opened`, att_add_no, `att_tensor.dtype`, `att_tensor.kind`, `ATT_F32`, `att_NAME_open`, `att_none_NAME`
`src/tape/norm.c`, `tape/no.c`, `NAME.c`, `config.json`, `--no-such-option`, `a_name_of_nothing`, `plan_of
nothing_more` [a link](no.md), [one](#no-heading), [another](#a-heading-of-page)
## A heading, of `page`
```sh
build/no src/no.c tests/docs.sh; no_word
```
<!-- names: src/tape --> `tape_step`, `att_open`, `cli_option`
<!-- names: elsewhere --> `cli_no`, `att_no`, `
END
cat >"$work/expected" <<'END'
page.md:1: att_opened does not exist
page.md:1: att_add_no does not exist
page.md:1: att_none_NAME does not exist
page.md:6: src/no.c does not exist
page.md:9: att_no does not exist
page.md:1: att_tensor.kind is not a field of this struct
page.md:2: tape/no.c does not exist
page.md:2: a_name_of_nothing does not exist
page.md:3: nothing_more does not exist
page.md:8: tape_step does not exist in src/tape
page.md:8: cli_option does not exist in src/tape
page.md:10: a backquote is not closed
page.md:3: a link to no.md, which does not exist
page.md:3: a link to page.md#no-heading, which is not a heading
END
cat >"$work/bad.c" <<'END'
#include "no.h" /* tape/norm.c, nothing.c; att_open and att_opened
 * call/plan.h, ATT_NOTHING, att_NAME_open, att_nn_* */
int x = a.c, y; // of no.c.
END
cat >>"$work/expected" <<'END'
bad.c:1: att_opened does not exist
bad.c:1: nothing.c does not exist
bad.c:2: ATT_NOTHING does not exist
bad.c:3: no.c does not exist
bad.c does not begin with a comment on what it is for
END
checkers=$PWD/cmake
if (
    cd "$work"
    found=0
    awk -f "$checkers/docs.awk" files names page.md && found=1
    awk -f "$checkers/without_comments.awk" -f "$checkers/comments.awk" files names bad.c && found=1
    awk -f "$checkers/files.awk" bad.c && found=1
    exit $found
) >"$work/found"; then :; else echo "a check finds nothing where it should"; bad=1; fi
diff "$work/expected" "$work/found" || bad=1

find src app include python -name '*.[ch]' \
    -exec awk -f cmake/without_comments.awk -f cmake/comments.awk "$work/files" "$work/names" {} + || bad=1
find src app include python -name '*.[ch]' -exec awk -f cmake/files.awk {} + >"$work/sentences" ||
    { grep 'does not begin' "$work/sentences"; bad=1; }
for room in $(sed -n 's/^\([a-z/]*\):.*/\1/p' LAYERS); do
    [ -d "src/$room" ] || [ -d "app/$room" ] || { echo "LAYERS has the room $room, which does not exist"; bad=1; }
done

new=$work/api
sed '/^## Headers/,$d' docs/API.md >"$new"
awk -f cmake/api.awk include/*.h >>"$new" || bad=1
awk -f cmake/lifetimes.awk include/*.h || bad=1
[ -z "${UPDATE:-}" ] || cp "$new" docs/API.md
diff docs/API.md "$new" || { echo "docs/API.md differs from the headers: UPDATE=1 tests/docs.sh"; bad=1; }

# The last column of a row: files, and behind each the functions in it.
sed -n '/^| [0-9]/s/ *|$//p' docs/PAINS.md >"$work/rows"
while IFS= read -r row; do
    file=
    for name in $(echo "${row##* | }" | grep -oE '`[^`]+`' | tr -d '`'); do
        case $name in
        tests/*) file=$name ;;
        *) grep -qsE "[A-Za-z_]+\\($name[,)]" "$file" ||
            { echo "docs/PAINS.md: ${file:-no file} does not run $name"; bad=1; } ;;
        esac
    done
    [ -n "$file" ] || { echo "docs/PAINS.md: no test: $row"; bad=1; }
done <"$work/rows"
[ -s "$work/rows" ] || { echo "docs/PAINS.md has no table"; bad=1; }
# How much faster or slower attend is than others: "2.12 x" in these is a figure of docs/BENCHMARKS*.md, and that of
# bench/results where a script has made the table.
for page in README.md docs/COMPARISON.md; do
    grep -oE '[0-9]+[.][0-9]+ x' $page | sort -u >"$work/ratios"
    [ -s "$work/ratios" ] || { echo "$page has no figures"; bad=1; }
    while read -r ratio; do
        cat docs/BENCHMARKS*.md | grep -qF "$ratio" || { echo "$page: $ratio is not in docs/BENCHMARKS*.md"; bad=1; }
    done <"$work/ratios"
done
if command -v python3 >/dev/null; then
    python3 bench/accept/document.py --check || bad=1
else
    echo "python3 is not there: whether figures are those of bench/results was not checked"
fi
for page in docs/*.md; do
    grep -q "($page[)#]" README.md || { echo "README.md does not link to $page"; bad=1; }
done
for page in README.md README.ja.md; do
    lines=$(wc -l <$page)
    [ "$lines" -le 120 ] || { echo "$page has $lines lines, at most 120 are read; docs/ has room"; bad=1; }
    head -n 4 $page | grep -q '](README\(.ja\)\{0,1\}.md)' || { echo "$page does not begin with a link to the other"; bad=1; }
done

# The README in Japanese: its code, figures, names and links are those of README.md, paragraph by paragraph. Each change of
# one of these alone is found.
awk -f cmake/facts.awk README.md >"$work/facts"
equal_facts() { awk -f cmake/facts.awk "$1" | diff "$work/facts" -; }
equal_facts README.ja.md || { echo "README.md has <, README.ja.md >"; bad=1; }
n=0
while IFS= read -r change; do
    n=$((n + 1))
    sed -E "$change" README.ja.md >"$work/README.ja.md"
    ! cmp -s README.ja.md "$work/README.ja.md" || { echo "README.ja.md has nothing to change by $change"; bad=1; }
    ! equal_facts "$work/README.ja.md" >/dev/null || { echo "README.ja.md may differ by $change"; bad=1; }
done <<'END'
s/1[.]97倍/1.79倍/
s/1[.]97倍/1.97/
s/12[.]22/12.32/
s/0[.]98倍/0.89倍/
s/translate --text/translate --texts/
s/Can you help me/Can you help us/
s/^```sh not-run/```sh/
s/docs.TRACE[.]md/docs\/TOUR.md/
s/#what-attend-cannot-do//
s/`attend fetch`/attend fetch/
s/README[.]md/README.ja/
/^## Cから/d
s/^## 速さ/### 速さ/
/^- .*NaN/d
/^\| 推薦/d
s/ \| なし \|/ |/
/^[|] 翻訳 [|]/{h;d};/^[|] 言語モデル：/G
END
[ $n = 17 ] || { echo "README.ja.md: $n changes were tried"; bad=1; }
exit $bad
