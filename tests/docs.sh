#!/bin/sh
# Does each file exist that the docs name (cmake/docs.awk)? Is each test of docs/PAINS.md run? Has docs/API.md the lists
# of the headers (cmake/api.awk)? UPDATE=1 writes them. Do these say how long pointers are needed (cmake/lifetimes.awk)?
set -eu
cd "$(dirname "$0")/.."
bad=0
find . \( -path './build*' -o -path ./.git \) -prune -o -type f -print |
    awk -f cmake/docs.awk - README.md CONTRIBUTING.md docs/*.md || bad=1

new=$(mktemp)
trap 'rm -f "$new" "${rows:-}"' EXIT
sed '/^## Headers/,$d' docs/API.md >"$new"
awk -f cmake/api.awk include/*.h >>"$new" || bad=1
awk -f cmake/lifetimes.awk include/*.h || bad=1
[ -z "${UPDATE:-}" ] || cp "$new" docs/API.md
diff docs/API.md "$new" || { echo "docs/API.md differs from the headers: UPDATE=1 tests/docs.sh"; bad=1; }

# The last column of a row: files, and behind each the functions in it.
sed -n '/^| [0-9]/s/ *|$//p' docs/PAINS.md >"${rows:=$(mktemp)}"
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
done <"$rows"
[ -s "$rows" ] || { echo "docs/PAINS.md has no table"; bad=1; }
exit $bad
